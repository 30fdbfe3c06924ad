/* jobs.c - runs a command for each line of its input, so many at a time, each for so many
 * seconds at most.  A line is words; what a job wrote is shown when it is over, and the
 * number of those that failed is the exit status.
 *
 *    $ printf 'sh -c exit\necho two words\nno-such-program\n' | ./jobs -P 1
 *    1: sh -c exit: 0
 *    2: echo two words: 0
 *    two words
 *    3: no-such-program: No such file or directory
 *    3 jobs, 1 failed
 *    $ printf 'sleep 60\ntrue\nls /missing/file\n' | ./jobs -P 2 -t 3; echo $?
 *    2: true: 0
 *    3: ls /missing/file: 2
 *    ls: cannot access '/missing/file': No such file or directory
 *    1: sleep 60: time limit
 *    3 jobs, 2 failed
 *    2
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <wean_cmd.h>

enum { MOST = 64, GRACE_MS = 2000 };

/* A place without a line is free: its struct holds no child. */
static struct wean_child children[MOST];
static struct job {
	char line[1024];
	int number;
	long long ends_at; /* in ms; 0: whenever it likes */
	FILE *output;
} jobs[MOST];
static int places = 1, limit_s, begun, failed;

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* ---- the end of a job ---------------------------------------------------- */

static void show(struct job *job, const char *how)
{
	int c;

	printf("%d: %s: %s\n", job->number, job->line, how);
	rewind(job->output);
	while ((c = getc(job->output)) != EOF)
		putchar(c);
	fflush(stdout);
	fclose(job->output);
	job->number = 0;
}

/* Of one that is over, or has to be. */
static void finish(int place, int in_time)
{
	struct wean_status status;
	char how[32];
	int error = in_time ? wean_wait(&children[place], 0, &status)
	                    : wean_stop(&children[place], GRACE_MS, &status);

	snprintf(how, sizeof how, "%d", error ? 255 : status.code);
	failed += !in_time || error || status.code != 0;
	show(&jobs[place], in_time ? how : "time limit");
	wean_release(&children[place]);
}

/* How long until the first one has to end; -1: for ever. */
static int time_left(int *first)
{
	long long left, now = now_ms();

	*first = -1;
	for (int i = 0; i < places; i++)
		if (jobs[i].number && jobs[i].ends_at
		    && (*first < 0 || jobs[i].ends_at < jobs[*first].ends_at))
			*first = i;
	if (*first < 0)
		return -1;
	left = jobs[*first].ends_at - now;
	return left > 0 ? (int)left : 0;
}

/* Gives the place that is free then; -1: all are. */
static int finish_one(void)
{
	int place, left = time_left(&place);
	size_t which;
	int error = wean_wait_any(children, (size_t)places, left, &which);

	if (error == 0)
		place = (int)which;
	else if (error != ETIMEDOUT)
		return -1;
	finish(place, error == 0);
	return place;
}

/* ---- its beginning ------------------------------------------------------- */

static int free_place(void)
{
	for (int i = 0; i < places; i++)
		if (!jobs[i].number)
			return i;
	return finish_one();
}

/* Whatever fails sticks, and is what the start returns. */
static wean_cmd *make(const struct job *job)
{
	char words[sizeof job->line], *word, *rest = words;
	int output = fileno(job->output);
	wean_cmd *cmd;

	strcpy(words, job->line);
	if (!(word = strtok_r(words, " \t", &rest)) || !(cmd = wean_cmd_new(word)))
		return NULL;
	while ((word = strtok_r(NULL, " \t", &rest)))
		wean_cmd_arg(cmd, word);
	wean_cmd_set(cmd, "flags", WEAN_NEW_GROUP);
	wean_cmd_set(cmd, "in", WEAN_NULL);
	wean_cmd_fd(cmd, WEAN_DUP, 1, output);
	wean_cmd_set(cmd, "err", WEAN_MERGE);
	wean_cmd_limit(cmd, RLIMIT_CORE, 0, 0);
	return cmd;
}

static void start(const char *line)
{
	int place = free_place(), error = ENOMEM;
	struct job *job = &jobs[place];
	wean_cmd *cmd;

	snprintf(job->line, sizeof job->line, "%s", line);
	job->number = ++begun;
	job->ends_at = limit_s > 0 ? now_ms() + 1000LL * limit_s : 0;
	if (!(job->output = tmpfile())) {
		perror("tmpfile");
		exit(255);
	}
	if ((cmd = make(job)))
		error = wean_cmd_spawn(cmd, &children[place]);
	if (error) {
		failed++;
		show(job, strerror(error));
	}
	wean_cmd_free(cmd);
}

int main(int argc, char **argv)
{
	char line[sizeof jobs[0].line];

	for (int i = 1; i + 1 < argc; i += 2)
		*(strcmp(argv[i], "-P") == 0 ? &places : &limit_s) = atoi(argv[i + 1]);
	if (argc % 2 == 0 || places < 1 || places > MOST) {
		fprintf(stderr, "usage: jobs [-P number] [-t seconds] <lines\n");
		return 255;
	}
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[strspn(line, " \t")])
			start(line);
	}
	while (finish_one() >= 0)
		;
	printf("%d jobs, %d failed\n", begun, failed);
	return failed > 254 ? 254 : failed;
}
