/* test_kid.c - what kid does and reports, where the answer is known. */
#define _GNU_SOURCE
#include "common.h"

#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>

/* ---- helpers ------------------------------------------------------------ */

/* fork and exec; in the child stdout becomes `out` and `prepare` runs. */
static pid_t start(char **argv, int out, void (*prepare)(void))
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	if (out >= 0)
		dup2(out, 1);
	if (prepare)
		prepare();
	execv(argv[0], argv);
	_exit(126);
}

static int status_of(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int run(char **argv)
{
	return status_of(start(argv, -1, NULL));
}

/* Its output, and its status when wanted. */
static const char *output(char **argv, int *status)
{
	static char text[4096];
	size_t len = 0;
	ssize_t n;
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = start(argv, ends[1], NULL);
	close(ends[1]);
	while ((n = read(ends[0], text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(ends[0]);
	int code = status_of(pid);
	if (status)
		*status = code;
	return text;
}

static struct report *report_after(void (*prepare)(void))
{
	char *path = report_path();

	ck_assert_int_eq(status_of(start(KID("report", path), -1, prepare)), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	unlink(path);
	free(path);
	return r;
}

/* ---- kid reports -------------------------------------------------------- */

static void only_7_and_500(void)
{
	int fd = open("/dev/zero", O_WRONLY | O_APPEND);

	dup2(fd, 500);
	dup2(fd, 7);
	for (int i = 0; i < 500; i++)
		if (i != 7)
			close(i);
	for (int i = 501; i < 1024; i++)
		close(i);
}

START_TEST(the_report_lists_exactly_what_is_open)
{
	struct report *r = report_after(only_7_and_500);
	struct stat st;
	int numbers[8];

	ck_assert_int_eq(stat("/dev/zero", &st), 0);
	ck_assert_str_eq(report_fd_list(r), "7 500");
	ck_assert_uint_eq(report_fds(r, numbers, 8), 2);
	ck_assert_int_eq(numbers[1], 500);
	const struct report_fd *fd = report_fd(r, 500);
	ck_assert_int_eq(fd->access, 'w');
	ck_assert_int_eq(fd->type, 'c');
	ck_assert_int_eq(fd->fd_flags, 0);
	ck_assert_int_eq(fd->fl_flags & O_APPEND, O_APPEND);
	ck_assert_uint_eq(fd->ino, st.st_ino);
	ck_assert_uint_eq(fd->dev, st.st_dev);
	ck_assert_uint_eq(fd->rdev, st.st_rdev);
	ck_assert_str_eq(fd->link, "/dev/zero");
	ck_assert_ptr_null(report_fd(r, 0));
	ck_assert_str_eq(report_value(r, "listing"), "proc");
	report_free(r);
}
END_TEST

START_TEST(a_report_comes_through_the_descriptor_that_was_named)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, 0), 0);
	ck_assert_int_eq(dup2(ends[1], 77), 77);
	close(ends[1]);
	pid_t pid = start(KID("report", "77"), -1, NULL);
	close(77);
	struct report *r = report_read(ends[0]);
	ck_assert_int_eq(status_of(pid), 0);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(report_fd(r, 77)->type, 'p');
	ck_assert_int_eq(report_number(r, "pid"), pid);
	ck_assert_int_eq(report_number(r, "ppid"), getpid());
	report_free(r);
	close(ends[0]);
}
END_TEST

START_TEST(nineteen_thousand_descriptors_are_listed)
{
	struct filling f;
	struct rlimit limit;
	struct report *few = report_after(NULL);

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 19100)
		SKIP("the hard limit of descriptors is %llu",
		     (unsigned long long)limit.rlim_max);
	fill_descriptors(&f, 19000);
	struct report *many = report_after(NULL);
	release_descriptors(&f);
	ck_assert_uint_eq(report_fds(many, NULL, 0), report_fds(few, NULL, 0) + 19000);
	report_free(few);
	report_free(many);
}
END_TEST

static void hide_proc(void)
{
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/proc", "tmpfs", 0, NULL))
		_exit(77);
}

static void hide_proc_and_give_a_fake(void)
{
	hide_proc();
	mkdir("/proc/self", 0755);
	mkdir("/proc/self/fd", 0755);
	dup2(1, 1000);
}

START_TEST(without_procfs_descriptors_are_found_by_a_scan)
{
	if (status_of(start(KID("exit", "0"), -1, hide_proc)) == 77)
		SKIP("no permission to mount");
	struct report *with = report_after(NULL);
	struct report *without = report_after(hide_proc);
	struct report *fake = report_after(hide_proc_and_give_a_fake);
	ck_assert_str_eq(report_value(without, "listing"), "scan");
	ck_assert_str_eq(report_fd_list(without), report_fd_list(with));
	ck_assert_str_eq(report_value(fake, "listing"), "scan");
	ck_assert_ptr_nonnull(report_fd(fake, 1000));
	ck_assert_str_eq(report_fd(fake, 1000)->link, "?");
	report_free(with);
	report_free(without);
	report_free(fake);
}
END_TEST

START_TEST(arguments_and_environment_come_back_byte_for_byte)
{
	static const char *const hard[] = { "", " a  b ", "\\x41", "\n\t\xff\x01", "=" };
	char *path = report_path();
	char *argv[] = { kid(), "report", path, (char *)hard[0], (char *)hard[1],
	                 (char *)hard[2], (char *)hard[3], (char *)hard[4], NULL };
	size_t length;

	ck_assert_int_eq(setenv("HARD", hard[3], 1), 0);
	ck_assert_int_eq(run(argv), 0);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(report_number(r, "argc"), 8);
	for (size_t i = 0; i < 5; i++) {
		ck_assert_str_eq(report_arg(r, i + 3, &length), hard[i]);
		ck_assert_uint_eq(length, strlen(hard[i]));
	}
	ck_assert_ptr_null(report_arg(r, 8, NULL));
	ck_assert_str_eq(report_getenv(r, "HARD"), hard[3]);
	size_t n = 0;
	for (; environ[n]; n++)
		ck_assert_str_eq(report_env(r, n, NULL), environ[n]);
	ck_assert_ptr_null(report_env(r, n, NULL));
	report_free(r);
	unlink(path);
	free(path);
}
END_TEST

static void change_everything(void)
{
	uint64_t mask = (uint64_t)1 << 31 | 1; /* 32, which libc hides, and SIGHUP */
	struct rlimit limit = { 50, 60 };

	umask(0123);
	setpgid(0, 0);
	signal(SIGPIPE, SIG_IGN);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, sizeof mask);
	kill(getpid(), SIGHUP);
	setrlimit(RLIMIT_NOFILE, &limit);
	errno = 0;
	if (nice(3) == -1 && errno)
		_exit(126);
	if (chdir("/usr/bin"))
		_exit(126);
}

START_TEST(the_report_tells_the_state_it_was_started_in)
{
	unsigned long long soft, hard;
	struct report *r = report_after(change_everything);

	ck_assert_int_eq(report_number(r, "umask"), 0123);
	ck_assert_int_eq(report_number(r, "pgid"), report_number(r, "pid"));
	ck_assert_int_eq(report_number(r, "sid"), getsid(0));
	ck_assert_uint_eq(report_mask(r, "sigblk"), 1ULL << 31 | 1);
	ck_assert_uint_eq(report_mask(r, "sigpnd"), 1);
	ck_assert(report_mask(r, "sigign") & 1ULL << (SIGPIPE - 1));
	ck_assert_uint_eq(report_mask(r, "sigcgt"), 0);
	report_limit(r, RLIMIT_NOFILE, &soft, &hard);
	ck_assert_uint_eq(soft, 50);
	ck_assert_uint_eq(hard, 60);
	ck_assert_str_eq(report_value(r, "limit 7"), "50 60");
	int nice = getpriority(PRIO_PROCESS, 0);
	ck_assert_int_eq(report_number(r, "nice"), nice > 16 ? 19 : nice + 3);
	ck_assert_str_eq(report_value(r, "cwd"), "/usr/bin");
	report_free(r);
}
END_TEST

static void enter_a_directory_that_is_gone(void)
{
	char name[] = "/tmp/wean-gone-XXXXXX";

	if (!mkdtemp(name) || chdir(name) || rmdir(name))
		_exit(126);
}

START_TEST(a_removed_directory_is_told)
{
	struct report *r = report_after(enter_a_directory_that_is_gone);

	ck_assert_str_eq(report_value(r, "cwd"), "?");
	report_free(r);
}
END_TEST

/* Writes the first len bytes of text and gives what is made of them. */
static struct report *read_part(const char *text, size_t len)
{
	FILE *f = tmpfile();

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, len, f), len);
	ck_assert_int_eq(fflush(f), 0);
	ck_assert_int_eq(lseek(fileno(f), 0, SEEK_SET), 0);
	struct report *r = report_read(fileno(f));
	fclose(f);
	return r;
}

START_TEST(a_report_that_was_cut_short_is_none)
{
	static const char text[] = "listing proc\narg 0 3 a\\x20b\nend\n";
	struct report *r = read_part(text, sizeof text - 1);

	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(report_arg(r, 0, NULL), "a b");
	report_free(r);
	for (size_t len = 0; len < sizeof text - 1; len++)
		ck_assert_msg(!read_part(text, len), "%zu bytes", len);
	static const char wrong[] = "arg 0 4 a\\x20b\nend\n";
	ck_assert_ptr_null(read_part(wrong, sizeof wrong - 1));
}
END_TEST

/* ---- kid's verbs -------------------------------------------------------- */

START_TEST(verbs_are_done_in_turn_until_one_fails)
{
	int status;

	ck_assert_str_eq(output(KID("echo", "a", "b", "--then", "say", "1", "c", "--then",
	                             "exit", "9", "--then", "echo", "d"), &status),
	                 "a b\nc\n");
	ck_assert_int_eq(status, 9);
	ck_assert_int_eq(run(KID("close", "2", "--then", "close", "2")), 121);
	ck_assert_int_eq(run(KID("kill", "9")), 1009);
	ck_assert_int_eq(run(KID("sleep", "1")), 0);
	ck_assert_int_eq(run(KID("burn", "1")), 0);
}
END_TEST

START_TEST(a_wrong_command_line_is_told)
{
	int null = open("/dev/null", O_WRONLY);

	dup2(null, 2);
	ck_assert_int_eq(run(KID(NULL)), 120);
	ck_assert_int_eq(run(KID("nonsense")), 120);
	ck_assert_int_eq(run(KID("exit")), 120);
	ck_assert_int_eq(run(KID("exit", "1x")), 120);
	ck_assert_int_eq(run(KID("ignore", "15", "--then", "--then")), 120);
	close(null);
}
END_TEST

START_TEST(exec_hands_on_everything_that_is_left)
{
	int status;

	ck_assert_str_eq(output(KID("exec", kid(), "echo", "x", "--then", "exit", "4"),
	                        &status), "x\n");
	ck_assert_int_eq(status, 4);
}
END_TEST

static int source;

static void read_from_source(void)
{
	dup2(source, 0);
}

START_TEST(a_pattern_passes_through_cat_unharmed)
{
	int a[2], b[2], status[2];
	char text[64];

	ck_assert_int_eq(pipe2(a, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(b, O_CLOEXEC), 0);
	pid_t writer = start(KID("write", "1", "300001", "777"), a[1], NULL);
	source = a[0];
	pid_t cat = start(KID("cat"), b[1], read_from_source);
	close(a[0]);
	close(a[1]);
	close(b[1]);
	source = b[0];
	ck_assert_int_eq(pipe2(a, O_CLOEXEC), 0);
	pid_t reader = start(KID("read", "0"), a[1], read_from_source);
	close(a[1]);
	ssize_t n = read(a[0], text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	ck_assert_str_eq(text, "300001 pattern\n");
	status[0] = status_of(writer);
	status[1] = status_of(cat);
	ck_assert_int_eq(status[0] + status[1] + status_of(reader), 0);
	close(a[0]);
	close(b[0]);
}
END_TEST

START_TEST(read_tells_bytes_that_are_not_the_pattern)
{
	int a[2];

	ck_assert_int_eq(pipe2(a, O_CLOEXEC), 0);
	ck_assert_int_eq(write(a[1], "\0\1\3", 3), 3);
	close(a[1]);
	dup2(a[0], 0);
	close(a[0]);
	ck_assert_str_eq(output(KID("read", "0"), NULL), "3 other\n");
	ck_assert_int_eq(run(KID("exit-on-eof")), 0);
}
END_TEST

/* Its first line, as a number. */
static int first_line(int fd, char *text, size_t size)
{
	ssize_t n = read(fd, text, size - 1);

	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	return atoi(text);
}

START_TEST(lines_are_numbered_and_tee_writes_twice)
{
	ck_assert_str_eq(output((char *[]){ kid(), "lines", "1", "3", NULL }, NULL), "0\n1\n2\n");
	ck_assert_str_eq(output((char *[]){ "/bin/sh", "-c", "printf ab | \"$0\" tee 2>&1", kid(),
	                                    NULL }, NULL), "abab");
	ck_assert_str_eq(output((char *[]){ "/bin/sh", "-c", "printf yy | \"$0\" ask 2", kid(),
	                                    NULL }, NULL), "0\n1\n");
}
END_TEST

START_TEST(last_words_are_written_and_its_value_left)
{
	int code = 0;
	const char *text = output((char *[]){ kid(), "last-words", "10", "7", "1", "3", "--then",
	                                      "kill", "10", NULL }, &code);

	ck_assert_int_eq(code, 7);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq((unsigned char)text[i], kid_pattern(i));
}
END_TEST

START_TEST(a_signal_is_ignored_or_answered_as_asked)
{
	int ends[2];
	char text[64];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = start(KID("ignore", "15", "--then", "on", "10", "33", "--then",
	                       "echo", "7", "--then", "pause"), ends[1], NULL);
	ck_assert_int_eq(first_line(ends[0], text, sizeof text), 7);
	kill(pid, SIGTERM);
	usleep(20000);
	ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGUSR1);
	ck_assert_int_eq(status_of(pid), 33);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

START_TEST(a_stopped_kid_goes_on_when_continued)
{
	pid_t pid = start(KID("stop", "--then", "exit", "6"), -1, NULL);
	int status;

	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	kill(pid, SIGCONT);
	ck_assert_int_eq(status_of(pid), 6);
}
END_TEST

START_TEST(a_grandchild_holds_the_pipe_after_its_parent_left)
{
	char *const verbs[] = { "fork-hold", "setsid-hold" };
	char text[64];
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = start(KID(verbs[_i], "60000"), ends[1], NULL);
	close(ends[1]);
	ck_assert_int_eq(status_of(pid), 0);
	pid_t grandchild = first_line(ends[0], text, sizeof text);
	ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(read(ends[0], text, 1), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(getsid(grandchild), _i ? grandchild : getsid(0));
	ck_assert_int_eq(kill(grandchild, SIGKILL), 0);
	ck_assert_int_eq(fcntl(ends[0], F_SETFL, 0), 0);
	ck_assert_int_eq(read(ends[0], text, 1), 0);
	close(ends[0]);
}
END_TEST

START_TEST(lock_test_sees_both_kinds_of_lock)
{
	char text[64];
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char **argv = KID("lock-test", "200");

	open_at(200);
	ck_assert_str_eq(output(argv, NULL), "flock free\nfcntl 0\n");
	ck_assert_int_eq(flock(200, LOCK_EX), 0);
	ck_assert_int_eq(fcntl(200, F_SETLK, &lock), 0);
	snprintf(text, sizeof text, "flock held\nfcntl %d\n", (int)getpid());
	ck_assert_str_eq(output(argv, NULL), text);
	close(200);
}
END_TEST

START_TEST(ids_are_those_of_the_process)
{
	char text[128];
	int pid, ppid, pgid, sid;
	const char *line = output(KID("ids"), NULL);

	snprintf(text, sizeof text, "%s", line);
	ck_assert_int_eq(sscanf(text, "pid %d ppid %d pgid %d sid %d", &pid, &ppid,
	                        &pgid, &sid), 4);
	ck_assert_int_eq(ppid, getpid());
	ck_assert_int_eq(pgid, getpgrp());
	ck_assert_int_eq(sid, getsid(0));
}
END_TEST

/* ---- suite -------------------------------------------------------------- */

static TCase *kid_case(void)
{
	TCase *t = tcase_create("kid");

	tcase_add_test(t, the_report_lists_exactly_what_is_open);
	tcase_add_test(t, a_report_comes_through_the_descriptor_that_was_named);
	tcase_add_test(t, nineteen_thousand_descriptors_are_listed);
	tcase_add_test(t, without_procfs_descriptors_are_found_by_a_scan);
	tcase_add_test(t, arguments_and_environment_come_back_byte_for_byte);
	tcase_add_test(t, the_report_tells_the_state_it_was_started_in);
	tcase_add_test(t, a_removed_directory_is_told);
	tcase_add_test(t, a_report_that_was_cut_short_is_none);
	tcase_add_test(t, verbs_are_done_in_turn_until_one_fails);
	tcase_add_test(t, a_wrong_command_line_is_told);
	tcase_add_test(t, exec_hands_on_everything_that_is_left);
	tcase_add_test(t, a_pattern_passes_through_cat_unharmed);
	tcase_add_test(t, read_tells_bytes_that_are_not_the_pattern);
	tcase_add_test(t, lines_are_numbered_and_tee_writes_twice);
	tcase_add_test(t, last_words_are_written_and_its_value_left);
	tcase_add_test(t, a_signal_is_ignored_or_answered_as_asked);
	tcase_add_test(t, a_stopped_kid_goes_on_when_continued);
	tcase_add_loop_test(t, a_grandchild_holds_the_pipe_after_its_parent_left, 0, 2);
	tcase_add_test(t, lock_test_sees_both_kinds_of_lock);
	tcase_add_test(t, ids_are_those_of_the_process);
	return t;
}

static Suite *kid_suite(void)
{
	Suite *s = suite_create("kid");

	suite_add_tcase(s, kid_case());
	return s;
}

RUN_SUITE(kid_suite)
