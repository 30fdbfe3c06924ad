/* test_field.c - cases from the field that belong to no one module: a real make and
   its jobserver, names below /dev/fd, an empty root, a large caller, a grandchild that
   stays. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "waiting.h"

#include <poll.h>
#include <sys/ioctl.h>

/* ---- make -j ---------------------------------------------------------------- */

static char *make_program(void)
{
	static char usual[] = "make";
	char *given = getenv("MAKE");

	return given && *given && !strchr(given, ' ') ? given : usual;
}

/* 0: this one does not take 3 and 4 for the jobserver by this option. */
static int is_new_enough(char *make)
{
	struct wean_child child;
	struct wean_options o = { .out = WEAN_PIPE };
	int major = 0, minor = 0;

	if (wean_spawn(&child, (char *[]){ make, (char[]){ "--version" }, NULL }, &o))
		return 0;
	char *text = read_end(child.out);
	child.out = -1;
	finish(&child);
	int known = sscanf(text, "GNU Make %d.%d", &major, &minor) == 2;
	free(text);
	return known && (major > 4 || (major == 4 && minor >= 2));
}

/* The pipe on 3 and 4, with one token: two jobs, of which one is the make's own. */
static void open_jobserver(void)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(dup2(ends[1], 90), 90);
	ck_assert_int_eq(dup2(ends[0], 3), 3);
	ck_assert_int_eq(dup2(90, 4), 4);
	close(90);
	for (int i = 0; i < 2; i++)
		if (ends[i] > 4)
			close(ends[i]);
	ck_assert_int_eq(write(4, "+", 1), 1);
}

static int tokens(void)
{
	int n = -1;

	ioctl(3, FIONREAD, &n);
	return n;
}

/* Two jobs that wait for each other. */
static const char meeting[] =
	"all: a b\n"
	"a:\n\t@echo here >one; read x <two\n"
	"b:\n\t@read x <one; echo here >two\n";

/* What a make says on 1 and 2 that is started as a make starts another one. */
static char *make_says(const char *file, const struct wean_options *options)
{
	char *edit[] = {
		(char[]){ "MAKEFLAGS= -j2 --jobserver-auth=3,4" }, (char[]){ "MAKELEVEL=1" },
		(char[]){ "LC_ALL=C" }, (char[]){ "MFLAGS" }, (char[]){ "MAKEOVERRIDES" }, NULL,
	};
	struct wean_options o = *options;

	o.env_edit = edit;
	o.dir = scratch;
	o.err = WEAN_MERGE;
	return output((char *[]){ make_program(), (char[]){ "--no-print-directory" },
	                          (char[]){ "-f" }, at(file), NULL }, &o);
}

START_TEST(a_make_takes_part_in_the_jobserver_that_it_is_given)
{
	struct wean_options kept = { FDS(KEEP(3), KEEP(4)), .flags = way(_i) };
	struct wean_options without = { .flags = way(_i) };

	if (!is_new_enough(make_program()))
		SKIP("needs GNU make 4.2 or newer");
	ck_assert_int_eq(mkfifo(at("one"), 0600), 0);
	ck_assert_int_eq(mkfifo(at("two"), 0600), 0);
	write_text("meeting", 0644, meeting);
	write_text("nothing", 0644, "all:\n\t@:\n");
	int checks = fcntl(3, F_DUPFD_CLOEXEC, 100); /* 3 is Check's in a test */
	open_jobserver();
	char *text = make_says("meeting", &kept);
	int left = tokens();
	char *warning = make_says("nothing", &without);
	dup2(checks, 3);
	close(4);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(left, 1);
	ck_assert_msg(strstr(warning, "jobserver"), "not missed: '%s'", warning);
	unlink(at("one"));
	unlink(at("two"));
}
END_TEST

/* ---- process substitution ---------------------------------------------------- */

static const int far_pipes[] = { 63, 700 }; /* 63 is bash's first */

/* >(...): the program opens the name for writing. */
START_TEST(a_program_writes_to_a_name_below_dev_fd)
{
	int number = far_pipes[_i / WAYS], ends[2];
	struct wean_options o = { FDS(KEEP(number)), .flags = way(_i % WAYS) };
	struct wean_child child;
	char name[32], list[32];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(dup3(ends[1], number, O_CLOEXEC), number);
	close(ends[1]);
	snprintf(name, sizeof name, "/dev/fd/%d", number);
	snprintf(list, sizeof list, "0 1 2 %d", number);
	start(&child, KID("report", name), &o);
	close(number);
	struct report *r = report_read(ends[0]);
	ck_assert_int_eq(finish(&child).code, 0);
	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(report_fd_list(r), list);
	report_free(r);
	close(ends[0]);
}
END_TEST

/* <(...): here it is opened on the way, when the descriptors are in their places. */
START_TEST(a_child_reads_from_a_name_below_dev_fd)
{
	int number = far_pipes[_i / WAYS], ends[2];
	char name[32];
	struct wean_options o = { FDS(KEEP(number), OPEN(0, name)), .flags = way(_i % WAYS) };

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(dup3(ends[0], number, O_CLOEXEC), number);
	close(ends[0]);
	ck_assert_int_eq(write(ends[1], "substituted", 11), 11);
	close(ends[1]);
	snprintf(name, sizeof name, "/dev/fd/%d", number);
	char *text = output(KID("cat"), &o);
	ck_assert_str_eq(text, "substituted");
	free(text);
}
END_TEST

/* ---- an empty root ------------------------------------------------------------ */

/* Where it is made without any library of the system (TINY_START of configure). */
#if defined __x86_64__ || defined __aarch64__
# define HAS_TINY 1
#else
# define HAS_TINY 0
#endif

/* 0: not permitted.  From here on there are two files: no /proc, no /dev, no loader. */
static int enter_empty_root(void)
{
	char tiny[PATH_MAX];

	snprintf(tiny, sizeof tiny, "%.*s/bench/tiny", (int)(strrchr(kid(), '/') - kid()),
	         kid());
	make_dir("root");
	copy_program(tiny, "root/tiny", 0755);
	copy_program("/proc/self/exe", "root/dynamic", 0755);
	return !chroot(at("root")) && !chdir("/");
}

static void start_fails(char *program, const struct wean_options *o, int error, int stage,
                        int index)
{
	struct wean_child child;
	int got = wean_spawn(&child, (char *[]){ program, NULL }, o);

	assert_refused(&child, program, got, (struct refusal){ error, stage, index });
}

static char tiny[] = "/tiny", dynamic[] = "/dynamic", absent[] = "/absent";

static void tiny_says_a_byte(const struct wean_options *options)
{
	struct wean_options o = *options;

	o.in = o.out = o.err = WEAN_PIPE;
	char *text = output((char *[]){ tiny, (char[]){ "x" }, NULL }, &o);
	ck_assert_uint_le(strlen(text), 1); /* which byte is not said */
	free(text);
}

START_TEST(a_static_program_starts_in_an_empty_root)
{
	struct wean_options o = { .flags = way(_i) };
	struct filling f;

	fill_descriptors(&f, 500);
	if (!enter_empty_root())
		SKIP("no permission to change the root");
	tiny_says_a_byte(&o); /* by pipes that can't be found by name */
	release_descriptors(&f);
	tiny_says_a_byte(&o);
	ck_assert_int_eq(run((char *[]){ tiny, NULL }, &o), 0);
}
END_TEST

START_TEST(what_is_missing_in_an_empty_root_is_told)
{
	struct wean_options o = { .flags = way(_i) };
	struct wean_options dir = { .dir = absent, .flags = way(_i) };
	struct wean_options null = { FDS(NUL(5)), .flags = way(_i) };

	if (!enter_empty_root())
		SKIP("no permission to change the root");
	start_fails(absent, &o, ENOENT, WEAN_STAGE_EXEC, -1);
	start_fails(dynamic, &o, ENOENT, WEAN_STAGE_EXEC, -1); /* its loader */
	start_fails(tiny, &dir, ENOENT, WEAN_STAGE_DIR, -1);
	start_fails(tiny, &null, ENOENT, WEAN_STAGE_OPEN, 0);
	close(0); /* which /dev/null should be */
	start_fails(tiny, &o, ENOENT, WEAN_STAGE_OPEN, 0);
	o.flags |= WEAN_STDIO_AS_IS;
	ck_assert_int_eq(run((char *[]){ tiny, NULL }, &o), 0);
}
END_TEST

/* ---- a large caller ------------------------------------------------------------ */

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* How many of these pages a start makes the caller fault in again: those whose entry was
   copied for the child, since then neither may write there. */
static size_t faults_of_a_start(volatile char *pages, size_t size, size_t step,
                                const struct wean_options *o)
{
	long before = faults();

	ck_assert_int_eq(run(KID("exit", "0"), o), 0);
	for (size_t at = 0; at < size; at += step)
		pages[at]++;
	return (size_t)(faults() - before);
}

/* A quarter of a gigabyte in small pages, of which each eighth is asked. */
START_TEST(a_start_copies_no_page_table_of_a_large_caller)
{
	const struct wean_options copy = { .flags = WEAN_NO_SHARED_MEMORY };
	const struct wean_options plain = { 0 };
	const size_t size = (size_t)256 << 20, step = 8 * (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	madvise(pages, size, MADV_NOHUGEPAGE);
	memset(pages, 1, size);
	kid();
	size_t shared = faults_of_a_start(pages, size, step, &plain);
	size_t copied = faults_of_a_start(pages, size, step, &copy);
	munmap(pages, size);
	ck_assert_uint_ge(copied, size / step); /* or nothing was measured */
	ck_assert_uint_lt(shared, 200);
}
END_TEST

/* ---- a grandchild that stays ---------------------------------------------------- */

START_TEST(a_grandchild_that_holds_the_pipe_does_not_hold_the_wait)
{
	struct wean_options o = { .out = WEAN_PIPE, .flags = way(_i % WAYS) };
	char *verb = _i / WAYS ? (char[]){ "setsid-hold" } : (char[]){ "fork-hold" };
	struct wean_status status;
	struct wean_child child;
	struct orphan held;

	adopt_orphans();
	start(&child, KID(verb, "600000", "--then", "exit", "6"), &o);
	pid_t pid = read_pid(child.out);
	ck_assert_int_eq(wean_wait(&child, -1, &status), 0);
	assert_exited(&status, 6);
	struct pollfd p = { child.out, POLLIN, 0 };
	ck_assert_int_eq(poll(&p, 1, 0), 0); /* no end yet */
	orphan_watch(&held, pid);
	orphan_end(&held);
	char c;
	ck_assert_int_eq(read(child.out, &c, 1), 0);
	wean_release(&child);
}
END_TEST

static Suite *field_suite(void)
{
	Suite *s = suite_create("field");
	TCase *passed = tcase_create("passed on"), *root = tcase_create("root");
	TCase *large = tcase_create("large"), *stays = tcase_create("stays");

	tcase_set_tags(root, "root native");
	tcase_set_timeout(root, 60);
	tcase_set_tags(large, "default native");
	tcase_set_timeout(passed, 60);
	tcase_set_timeout(stays, 60);
	tcase_set_timeout(large, 120);
	tcase_add_unchecked_fixture(passed, scratch_make, scratch_remove);
	tcase_add_unchecked_fixture(root, scratch_make, scratch_remove);
	tcase_add_loop_test(passed, a_make_takes_part_in_the_jobserver_that_it_is_given, 0,
	                    WAYS);
	tcase_add_loop_test(passed, a_program_writes_to_a_name_below_dev_fd, 0,
	                    WAYS * (int)COUNT(far_pipes));
	tcase_add_loop_test(passed, a_child_reads_from_a_name_below_dev_fd, 0,
	                    WAYS * (int)COUNT(far_pipes));
	tcase_add_loop_test(root, a_static_program_starts_in_an_empty_root, 0,
	                    HAS_TINY * WAYS);
	tcase_add_loop_test(root, what_is_missing_in_an_empty_root_is_told, 0,
	                    HAS_TINY * WAYS);
	tcase_add_test(large, a_start_copies_no_page_table_of_a_large_caller);
	tcase_add_loop_test(stays, a_grandchild_that_holds_the_pipe_does_not_hold_the_wait, 0,
	                    2 * WAYS);
	suite_add_tcase(s, passed);
	suite_add_tcase(s, root);
	suite_add_tcase(s, large);
	suite_add_tcase(s, stays);
	return s;
}

RUN_WITH_STDIO_ALONE(field_suite)
