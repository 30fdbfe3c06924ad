/* storm.c - a start costs the same, and gives the child what it was given and nothing
   else, under a limit of a million or a billion descriptors and with a million open.
 *
 *   storm               the tests: as root of a kernel of its own, where t/highlimit
 *                       runs it, since they change settings of the machine
 *   storm only NUMBER...
 *                       their child: leaves with 0 if exactly these are open
 *   storm echo NUMBER...
 *                       and hands on what it reads from 0 to 1 and 2
 */
#define _GNU_SOURCE
#include "storming.h"

#include <spawn.h>
#include <time.h>

enum {
	MILLION = 1000000, MANY = 100000, THOUSAND = 1000,
	LIMIT_1024 = 1024, LIMIT_MILLION = 1048576, LIMIT_BILLION = 1073741816,
	FEW = 3 /* Check's own file may be one more, and is closed too */
};

extern char **environ;

static char *self;

/* ---- a start, as the tests want it -------------------------------------- */

struct start {
	struct wean_options o;
	const char *method;    /* the child's has to be so */
	int (*arrange)(void);  /* before, in a process of its own; 0: done */
	int warm;              /* not the first of its process */
};

static int says_wean(int fd)
{
	char text[8] = "";

	return read(fd, text, sizeof text) == 4 && !memcmp(text, "wean", 4);
}

/* 0: the child has said what it was to say, and had open what it was to have. */
static int wait_for(const struct start *s, struct wean_child *child)
{
	struct wean_status status = { 0 };
	int wrong = 0;

	if (s->o.in == WEAN_PIPE) {
		wrong = write(child->in, "wean", 4) != 4;
		close(child->in);
		child->in = -1;
		wrong |= !says_wean(child->out) || !says_wean(child->err);
	}
	wrong |= wean_wait(child, -1, &status) || status.code != 0;
	wean_release(child);
	return wrong;
}

static int spawn(const struct start *s, struct wean_child *child)
{
	char only[] = "only", echo[] = "echo", in[] = "0", out[] = "1", err[] = "2";
	char *argv[] = { self, s->o.in == WEAN_PIPE ? echo : only, in, out, err, NULL };

	return wean_spawn(child, argv, &s->o);
}

static int is_as_wanted(const struct start *s, const struct wean_child *child, int error)
{
	const char *method = wean_method_name(child->method);

	if (!error && !strcmp(method, s->method))
		return 1;
	dprintf(2, "%s at %s, by %s\n", strerror(error), wean_stage_name(child->stage),
	        method);
	return 0;
}

/* In the counter's fork: nothing of Check in here. */
static int counted(void *arg)
{
	const struct start *s = arg;
	struct wean_child child;

	if (s->arrange && s->arrange())
		return -1;
	if (s->warm && (spawn(s, &child) || wait_for(s, &child)))
		return -1;
	count_begin();
	int error = spawn(s, &child);
	count_end();
	return !is_as_wanted(s, &child, error) || wait_for(s, &child);
}

/* A fixture would fail without a word of where. */
static void have(int limit, int open)
{
	ck_assert_msg(!set_limit(limit), "%d descriptors: %s", limit, strerror(errno));
	if (open > FEW)
		open_all_below(open);
}

static void count(const struct start *s, struct count *c)
{
	struct start copy = *s;

	ck_assert_int_eq(count_calls(c, counted, &copy), 0);
	ck_assert_int_eq(c->executed, 1);
}

/* ---- counts: equal to those of an ordinary caller ----------------------- */

struct calls {
	size_t n;
	char names[2][800]; /* of the parent's and of the child's */
};

static void name_calls(const struct start *s, struct calls *calls)
{
	struct count c;

	count(s, &c);
	calls->n = count_total(&c, COUNT_BOTH);
	count_names(&c, COUNT_PARENT, calls->names[0], sizeof calls->names[0]);
	count_names(&c, COUNT_CHILD, calls->names[1], sizeof calls->names[1]);
	printf("%zu calls in the parent, %zu in the child\n",
	       count_total(&c, COUNT_PARENT), count_total(&c, COUNT_CHILD));
	fflush(stdout);
	count_free(&c);
}

static const struct {
	int limit, open;
} callers[] = {
	{ LIMIT_MILLION, FEW }, { LIMIT_MILLION, MILLION },
	{ LIMIT_BILLION, FEW }, { LIMIT_BILLION, MILLION },
};

/* As here, after a caller of 1,024 with so many open. */
static void costs_the_same(const struct start *s, int ordinary, int i)
{
	struct calls before, now;

	have(LIMIT_1024, ordinary);
	name_calls(s, &before);
	syscall(SYS_close_range, FEW, ~0U, 0);
	have(callers[i].limit, callers[i].open);
	printf("limit %d, %d open: ", callers[i].limit, callers[i].open);
	name_calls(s, &now);
	ck_assert_uint_gt(now.n, 0);
	ck_assert_str_eq(now.names[0], before.names[0]);
	ck_assert_str_eq(now.names[1], before.names[1]);
}

START_TEST(a_start_makes_the_calls_that_it_makes_at_1024_with_few_open)
{
	struct start s = { .method = "clone3+unshare", .warm = 1 };

	costs_the_same(&s, FEW, _i);
}
END_TEST

/* The ends of pipes lie above all that is open, and from 128 on they are fetched. */
START_TEST(three_pipes_take_the_calls_that_they_take_at_1024_with_900_open)
{
	struct start s = {
		.o = { .in = WEAN_PIPE, .out = WEAN_PIPE, .err = WEAN_PIPE },
		.method = "clone3+unshare", .warm = 1,
	};

	costs_the_same(&s, callers[_i].open > FEW ? 900 : FEW, _i);
}
END_TEST

/* ---- every other rung, once --------------------------------------------- */

static int no_close_range(void)
{
	return !deny(SYS_close_range, EPERM);
}

static int no_close_range_and_no_proc(void)
{
	return hide_proc() || no_close_range();
}

static int no_unshare_by_close_range(void)
{
	struct denial any_flag = { SYS_close_range, EINVAL, DENY_WITH, 2, ~0U };

	return !deny_these(&any_flag, 1);
}

static int no_unshare(void)
{
	return no_unshare_by_close_range() || !deny(SYS_unshare, EPERM);
}

static int no_clone3(void)
{
	return !deny(SYS_clone3, ENOSYS);
}

static int no_shared_memory(void)
{
	struct denial shared = { SYS_clone, EPERM, DENY_WITH, 0, CLONE_VM };

	return no_clone3() || !deny_these(&shared, 1);
}

static const struct rung {
	const char *what;
	struct start start;
	size_t unshares; /* calls of unshare(2) that succeed in the child */
	int closes;      /* one by one */
} rungs[] = {
	{ "close_range denied",
	  { .method = "clone3+procfs", .arrange = no_close_range }, 1, 1 },
	{ "close_range denied, /proc hidden",
	  { .method = "clone3+scan", .arrange = no_close_range_and_no_proc }, 1, 1 },
	{ "close_range without UNSHARE",
	  { .method = "clone3+close_range", .arrange = no_unshare_by_close_range }, 1, 0 },
	{ "no unshare of any kind",
	  { .method = "clone3+close_range", .arrange = no_unshare }, 0, 0 },
	{ "clone3 denied",
	  { .method = "clone+unshare", .arrange = no_clone3 }, 0, 0 },
	{ "clone3, clone(VM) denied",
	  { .method = "fork+close_range", .arrange = no_shared_memory }, 0, 0 },
	{ "a copy of the memory",
	  { .method = "clone3copy+unshare", .o = { .flags = WEAN_NO_SHARED_MEMORY } }, 0, 0 },
};

/* Untraced: a stop of a traced process costs this machine much more than the call. */
START_TEST(every_rung_gives_the_child_what_it_was_given)
{
	struct start s = rungs[_i].start;
	int status;

	have(LIMIT_BILLION, MANY);
	pid_t pid = fork();
	if (pid == 0)
		_exit(counted(&s) ? 1 : 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "%s", rungs[_i].what);
}
END_TEST

static size_t succeeded(const struct count *c, long nr)
{
	return count_of(c, COUNT_CHILD, nr) - count_failed(c, COUNT_CHILD, nr, 0);
}

/* And the listing's own, and the pidfd, which lies in the table that is copied. */
START_TEST(closes_of_every_rung_follow_what_is_open)
{
	const struct rung *r = &rungs[_i];
	size_t doomed = r->closes ? THOUSAND - FEW : 0;
	struct count c;

	have(LIMIT_BILLION, THOUSAND);
	count(&r->start, &c);
	printf("%-32s %-18s %5zu calls in the child, %4zu close\n", r->what,
	       r->start.method, count_total(&c, COUNT_CHILD),
	       count_of(&c, COUNT_CHILD, SYS_close));
	fflush(stdout);
	ck_assert_uint_eq(succeeded(&c, SYS_unshare), r->unshares);
	ck_assert_uint_eq(count_failed(&c, COUNT_CHILD, SYS_close, 0), 0);
	ck_assert_uint_ge(count_of(&c, COUNT_CHILD, SYS_close), doomed);
	ck_assert_uint_le(count_of(&c, COUNT_CHILD, SYS_close), doomed ? doomed + 2 : 0);
	count_free(&c);
}
END_TEST

/* ---- the scan ----------------------------------------------------------- */

enum { CHUNK = 512 };

static size_t polls(const struct count *c)
{
	size_t n = count_of(c, COUNT_CHILD, SYS_ppoll);

#ifdef SYS_poll
	n += count_of(c, COUNT_CHILD, SYS_poll);
#endif
	return n;
}

/* The kernel's table has room for a power of two, and at first for 64. */
static const struct {
	int open;
	size_t table;
} tables[] = { { FEW, 64 }, { THOUSAND, 1024 }, { 2 * THOUSAND, 2048 } };

START_TEST(a_scan_follows_the_table_and_not_the_limit)
{
	struct start s = { .method = "clone3+scan", .arrange = no_close_range_and_no_proc };
	size_t table = tables[_i].table;
	struct count c;

	have(LIMIT_BILLION, tables[_i].open);
	count(&s, &c);
	printf("scan, %6d open: %zu polls, %zu fcntl, %zu pselect6, %zu close\n",
	       tables[_i].open, polls(&c), count_of(&c, COUNT_CHILD, SYS_fcntl),
	       count_of(&c, COUNT_CHILD, SYS_pselect6), count_of(&c, COUNT_CHILD, SYS_close));
	fflush(stdout);
	ck_assert_uint_le(polls(&c), table / CHUNK + 1);
	ck_assert_uint_le(count_of(&c, COUNT_CHILD, SYS_fcntl), table);
	ck_assert_uint_le(count_of(&c, COUNT_CHILD, SYS_pselect6), 64);
	ck_assert_uint_eq(count_failed(&c, COUNT_CHILD, SYS_close, 0), 0);
	count_free(&c);
}
END_TEST

/* ---- a host's own fork -------------------------------------------------- */

static int close_from(void *arg)
{
	static const int left[] = { 0, 1, 2 };

	(void)arg;
	count_begin();
	int error = wean_closefrom(3);
	count_end();
	return error || others_are_open(left, COUNT(left));
}

static int close_except(void *arg)
{
	static const int left[] = { 0, 1, 2, MILLION - 1, 10, MILLION / 2 };

	(void)arg;
	count_begin();
	int error = wean_close_except(3, left + 3, 3);
	count_end();
	return error || others_are_open(left, COUNT(left));
}

static void takes(int (*closes)(void *), size_t calls)
{
	struct count c;

	have(LIMIT_BILLION, MILLION);
	ck_assert_int_eq(count_calls(&c, closes, NULL), 0);
	ck_assert_uint_eq(count_of(&c, COUNT_PARENT, SYS_close_range), calls);
	ck_assert_uint_eq(count_total(&c, COUNT_PARENT), calls);
	count_free(&c);
}

START_TEST(closefrom_of_a_million_is_one_call)
{
	takes(close_from, 1);
}
END_TEST

START_TEST(close_except_of_a_million_is_a_call_a_gap)
{
	takes(close_except, 4);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static void set_system(const char *name, const char *value)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/sys/%s", name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_msg(fd >= 0 && write(fd, value, strlen(value)) > 0, "%s: %s", path,
	              strerror(errno));
	close(fd);
}

static void overcommit_off(void)
{
	set_system("vm/overcommit_ratio", "90");
	set_system("vm/overcommit_memory", "2");
}

static void overcommit_on(void)
{
	set_system("vm/overcommit_memory", "0");
}

/* Two thirds of what the machine has. */
static void hold_most_of_the_memory(void)
{
	size_t size = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 3 * 2;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	ck_assert_msg(memory != MAP_FAILED, "%zu bytes: %s", size, strerror(errno));
	printf("%zu MB held\n", size >> 20);
	fflush(stdout);
}

START_TEST(a_parent_that_holds_most_of_the_memory_starts_children)
{
	struct start s = { .method = "clone3+unshare" };
	struct wean_child child;

	hold_most_of_the_memory();
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	ck_assert_msg(pid < 0 && errno == ENOMEM, "a fork did not want more than there is");
	int error = spawn(&s, &child);
	ck_assert(is_as_wanted(&s, &child, error));
	ck_assert_int_eq(wait_for(&s, &child), 0);
	s.o.flags = WEAN_NO_SHARED_MEMORY;
	ck_assert_int_eq(spawn(&s, &child), ENOMEM);
	ck_assert_int_eq(child.stage, WEAN_STAGE_LAUNCH);
}
END_TEST

/* ---- times -------------------------------------------------------------- */

enum { TURNS = 11, LOOP_S = 60 };

static char *tiny_argv[2];

static int start_by_wean(void)
{
	struct wean_status status = { 0 };
	struct wean_child child;
	int error = wean_spawn(&child, tiny_argv, NULL);

	if (!error)
		error = wean_wait(&child, -1, &status);
	wean_release(&child);
	return error || status.code != 0;
}

static int reap(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) != pid || status != 0;
}

static int start_by_posix_spawn(void)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	int error = posix_spawn(&pid, tiny_argv[0], &actions, NULL, tiny_argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error || reap(pid);
}

static int start_by_loop(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(LOOP_S);
		for (int fd = 3; fd < LIMIT_MILLION; fd++)
			close(fd);
		alarm(0);
		execve(tiny_argv[0], tiny_argv, environ);
		_exit(127);
	}
	return reap(pid);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double us_of(int (*start)(void))
{
	double begin = now_us();

	ck_assert_int_eq(start(), 0);
	return now_us() - begin;
}

static int by_time(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct times {
	double us[TURNS]; /* ascending */
};

/* Turn about, so that whatever else the machine does meets both. */
static void compare(struct times *wean, struct times *posix)
{
	us_of(start_by_wean);
	us_of(start_by_posix_spawn);
	for (int i = 0; i < TURNS; i++) {
		wean->us[i] = us_of(start_by_wean);
		posix->us[i] = us_of(start_by_posix_spawn);
	}
	qsort(wean->us, TURNS, sizeof *wean->us, by_time);
	qsort(posix->us, TURNS, sizeof *posix->us, by_time);
}

static void print_times(const char *what, double wean, double posix)
{
	printf("  %-8s %8.0f us %8.0f us %6.1f\n", what, wean, posix, posix / wean);
	fflush(stdout);
}

/* The one assertion on time of all the tests, on the fastest of each: a load from outside
   only adds, and to many short calls more than to a long one. */
START_TEST(a_start_is_ten_times_as_fast_as_posix_spawn_with_a_million_open)
{
	struct times wean, posix;

	have(callers[_i].limit, callers[_i].open);
	compare(&wean, &posix);
	printf("limit %d, %d open: wean, posix_spawn + closefrom, ratio\n", callers[_i].limit,
	       callers[_i].open);
	print_times("fastest", wean.us[0], posix.us[0]);
	print_times("median", wean.us[TURNS / 2], posix.us[TURNS / 2]);
	if (callers[_i].open == MILLION)
		ck_assert_double_le(10 * wean.us[0], posix.us[0]);
}
END_TEST

START_TEST(the_loop_of_old_for_comparison)
{
	have(LIMIT_MILLION, FEW);
	double begin = now_us();
	int error = start_by_loop();
	printf("limit %10d, %7d open: fork, close(2) to the limit, exec: %s%.0f us\n",
	       LIMIT_MILLION, FEW, error ? "given up after " : "", now_us() - begin);
	fflush(stdout);
}
END_TEST

/* ---- running ------------------------------------------------------------ */

static TCase *add_case(Suite *s, const char *name)
{
	TCase *c = tcase_create(name);

	tcase_set_timeout(c, 240);
	suite_add_tcase(s, c);
	return c;
}

static Suite *storm_suite(void)
{
	Suite *s = suite_create("storm");
	TCase *c = add_case(s, "counts");

	tcase_add_loop_test(c, a_start_makes_the_calls_that_it_makes_at_1024_with_few_open,
	                    0, COUNT(callers));
	tcase_add_loop_test(c, three_pipes_take_the_calls_that_they_take_at_1024_with_900_open,
	                    0, COUNT(callers));
	c = add_case(s, "rungs");
	tcase_add_loop_test(c, every_rung_gives_the_child_what_it_was_given, 0, COUNT(rungs));
	tcase_add_loop_test(c, closes_of_every_rung_follow_what_is_open, 0, COUNT(rungs));
	c = add_case(s, "scan");
	tcase_add_loop_test(c, a_scan_follows_the_table_and_not_the_limit, 0, COUNT(tables));
	c = add_case(s, "closing");
	tcase_add_test(c, closefrom_of_a_million_is_one_call);
	tcase_add_test(c, close_except_of_a_million_is_a_call_a_gap);
	c = add_case(s, "memory");
	tcase_add_unchecked_fixture(c, overcommit_off, overcommit_on);
	tcase_add_test(c, a_parent_that_holds_most_of_the_memory_starts_children);
	c = add_case(s, "times");
	tcase_add_loop_test(c, a_start_is_ten_times_as_fast_as_posix_spawn_with_a_million_open,
	                    0, COUNT(callers));
	tcase_add_test(c, the_loop_of_old_for_comparison);
	return s;
}

static int is_a_machine_of_its_own(void)
{
	char text[4096] = "";
	int fd = open("/proc/cpuinfo", O_RDONLY);

	return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && !close(fd) &&
	       strstr(text, "User Mode Linux");
}

static int be_the_child(int echoes, char **words)
{
	int numbers[8];
	size_t n = 0;
	char text[8];

	for (; *words && n < COUNT(numbers); words++)
		numbers[n++] = atoi(*words);
	if (others_are_open(numbers, n))
		return 1;
	ssize_t len = echoes ? read(0, text, sizeof text) : 0;
	return len < 0 || (len > 0 && (write(1, text, (size_t)len) != len ||
	                               write(2, text, (size_t)len) != len));
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc > 1)
		return be_the_child(!strcmp(argv[1], "echo"), argv + 2);
	tiny_argv[0] = getenv("WEAN_TINY");
	if (!tiny_argv[0] || !is_a_machine_of_its_own()) {
		fprintf(stderr, "skipped: storm: t/highlimit runs it\n");
		return 77;
	}
	syscall(SYS_close_range, 3, ~0U, 0);
	return run_suite(storm_suite());
}
