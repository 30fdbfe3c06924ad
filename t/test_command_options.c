/* test_command_options.c - wean(1): each option with its effect in the program. */
#define _GNU_SOURCE
#include "commanding.h"

#include <pwd.h>
#include <sys/resource.h>

/* ---- descriptors, files ------------------------------------------------ */

static void open_5_and_63(void)
{
	if (dup2(open("/dev/zero", O_RDONLY), 5) < 0 ||
	    dup2(open("/dev/full", O_WRONLY), 63) < 0)
		_exit(98);
}

static void is_linked(struct report *r, int fd, const char *path)
{
	ck_assert_ptr_nonnull(report_fd(r, fd));
	ck_assert_str_eq(report_fd(r, fd)->link, path);
}

START_TEST(map_places_one_descriptor_as_another)
{
	struct report *r = report_after(WEAN("-m", "9=5", "--map", "0=5", "--map=5=63",
	                                     kid(), "report"), open_5_and_63);

	ck_assert_str_eq(report_fd_list(r), "0 1 2 5 9");
	is_linked(r, 0, "/dev/zero");
	is_linked(r, 9, "/dev/zero");
	is_linked(r, 5, "/dev/full");
	report_free(r);
	r = report_after(WEAN("-m5=63", "-m63=5", kid(), "report"), open_5_and_63);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 5 63");
	is_linked(r, 5, "/dev/full");
	is_linked(r, 63, "/dev/zero");
	report_free(r);
	r = report_after(WEAN("--keep", "63", "--keep=5", kid(), "report"),
	                 open_5_and_63);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 5 63");
	report_free(r);
}
END_TEST

static void reads(const char *name, const char *wanted)
{
	size_t len;

	ck_assert_str_eq(read_all(at(name), &len), wanted);
	ck_assert_uint_eq(len, strlen(wanted));
}

START_TEST(files_become_the_standard_descriptors)
{
	write_text("in", 0600, "text\n");
	write_text("old", 0600, "a long text that was here before\n");
	gives(0, "text\n", "", WEAN("-i", at("in"), kid(), "cat"));
	gives(0, "", "", WEAN("--input", at("in"), "--output", at("old"), kid(), "cat"));
	reads("old", "text\n");
	gives(0, "", "", WEAN("-a", at("old"), kid(), "echo", "more"));
	gives(0, "", "", WEAN("--append", at("old"), kid(), "echo", "and", "more"));
	reads("old", "text\nmore\nand more\n");
	gives(0, "out\n", "", WEAN("-E", at("wrong"), kid(), "say", "2", "wrong",
	                           "--then", "say", "1", "out"));
	gives(0, "", "", WEAN("--errors", at("new"), kid(), "say", "2", "wrong"));
	reads("new", "wrong\n");
	reads("wrong", "wrong\n");
	gives(0, "", "", WEAN("-o", at("created"), kid(), "echo", "x"));
	reads("created", "x\n");
}
END_TEST

START_TEST(files_are_opened_for_what_they_are_for)
{
	char *path = at("report"), *argv[] = {
		command(), (char[]){ "-i" }, write_text("i", 0600, ""), (char[]){ "-a" },
		at("a"), (char[]){ "-E" }, at("e"), kid(), (char[]){ "report" }, path,
		NULL,
	};
	struct stat st;

	write_text("report", 0600, "");
	umask(027);
	gives(0, "", "", argv);
	struct report *r = report_read_file(path);
	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	ck_assert_int_eq(report_fd(r, 0)->access, 'r');
	ck_assert_int_eq(report_fd(r, 1)->access, 'w');
	ck_assert_int_eq(report_fd(r, 2)->access, 'w');
	ck_assert(report_fd(r, 1)->fl_flags & O_APPEND);
	ck_assert(!(report_fd(r, 2)->fl_flags & O_APPEND));
	is_linked(r, 0, at("i"));
	is_linked(r, 1, at("a"));
	is_linked(r, 2, at("e"));
	report_free(r);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(stat(at(i ? "a" : "e"), &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0640);
	}
}
END_TEST

START_TEST(what_cannot_be_opened_is_told_and_nothing_started)
{
	char *kid_says[] = { kid(), (char[]){ "echo" }, (char[]){ "started" } };

	gives(126, "", "wean: cannot open '/absent/x' as descriptor 0: "
	      "No such file or directory\n",
	      WEAN("-i", "/absent/x", kid_says[0], kid_says[1], kid_says[2]));
	gives(126, "", "wean: cannot open '/absent/x' as descriptor 1: "
	      "No such file or directory\n",
	      WEAN("-a", "/absent/x", kid_says[0], kid_says[1], kid_says[2]));
	gives(126, "", "wean: cannot open '/' as descriptor 2: Is a directory\n",
	      WEAN("-E", "/", kid_says[0], kid_says[1], kid_says[2]));
	gives(126, "", "wean: cannot pass descriptor 77 as 9 (77 is not open): "
	      "Bad file descriptor\n",
	      WEAN("-m", "9=77", kid_says[0], kid_says[1], kid_says[2]));
	gives(125, "", "wean: descriptor 1 is given twice\nTry 'wean --help'.\n",
	      WEAN("-o", at("x"), "-a", at("y"), kid_says[0], kid_says[1], kid_says[2]));
	ck_assert_int_eq(access(at("x"), F_OK), -1);
}
END_TEST

/* ---- directory, environment --------------------------------------------- */

START_TEST(variables_are_set_and_removed)
{
	ck_assert_int_eq(setenv("MARK", "old", 1), 0);
	ck_assert_int_eq(setenv("OTHER", "other", 1), 0);
	struct report *r = REPORT("-e", "A=1", "--env", "B=", "--env=C=x=y", "-u",
	                          "MARK");
	ck_assert_str_eq(report_getenv(r, "A"), "1");
	ck_assert_str_eq(report_getenv(r, "B"), "");
	ck_assert_str_eq(report_getenv(r, "C"), "x=y");
	ck_assert_str_eq(report_getenv(r, "OTHER"), "other");
	ck_assert_ptr_null(report_getenv(r, "MARK"));
	report_free(r);
	r = REPORT("-e", "MARK=new", "-e", "OTHER=1", "-e", "OTHER=2", "--unset",
	           "ABSENT");
	ck_assert_str_eq(report_getenv(r, "MARK"), "new");
	ck_assert_str_eq(report_getenv(r, "OTHER"), "2");
	report_free(r);
	r = REPORT("-e", "MARK=1", "-u", "MARK", "-u", "OTHER", "-e", "OTHER=3");
	ck_assert_ptr_null(report_getenv(r, "MARK"));
	ck_assert_str_eq(report_getenv(r, "OTHER"), "3");
	report_free(r);
}
END_TEST

START_TEST(directory_is_where_it_runs)
{
	struct report *r = REPORT("--directory", make_dir("sub"));

	reports(r, "cwd", at("sub"));
	report_free(r);
}
END_TEST

/* ---- identity ---------------------------------------------------------- */

#define NEED_ROOT() \
	do { \
		if (geteuid() != 0) \
			SKIP("needs root"); \
	} while (0)

static void in_groups_7_and_8(void)
{
	if (setgroups(2, (gid_t[]){ 7, 8 }))
		_exit(98);
}

/* From a program that anybody may run. */
#define AS(...) \
	report_after(WEAN(__VA_ARGS__, copy_kid("program", 0755), "report"), \
	             in_groups_7_and_8)

START_TEST(a_user_has_no_groups_but_those_it_is_given)
{
	NEED_ROOT();
	struct report *r = AS("--uid", "1234");
	reports(r, "uid", "1234 1234 1234");
	reports(r, "gid", "0 0 0");
	reports(r, "groups", "0");
	report_free(r);
	r = AS("--uid=1234", "--gid", "5678", "--groups", "11,12");
	reports(r, "uid", "1234 1234 1234");
	reports(r, "gid", "5678 5678 5678");
	reports(r, "groups", "2 11 12");
	report_free(r);
	r = AS("--groups", "11,12", "--uid", "0");
	reports(r, "groups", "2 11 12");
	report_free(r);
	r = AS("--uid", "0");
	reports(r, "groups", "0");
	report_free(r);
}
END_TEST

START_TEST(groups_alone_change_and_nothing_else)
{
	NEED_ROOT();
	struct report *r = AS("--groups", "11");
	reports(r, "uid", "0 0 0");
	reports(r, "gid", "0 0 0");
	reports(r, "groups", "1 11");
	report_free(r);
	r = AS("--groups", "");
	reports(r, "groups", "0");
	report_free(r);
	r = AS("--gid", "5678");
	reports(r, "gid", "5678 5678 5678");
	reports(r, "groups", "2 7 8");
	report_free(r);
	r = AS("--groups", "11,12,13", "--groups", "14");
	reports(r, "groups", "1 14");
	report_free(r);
}
END_TEST

START_TEST(users_and_groups_have_names)
{
	const struct passwd *user = getpwnam("nobody");
	const struct group *group = getgrnam("daemon");

	NEED_ROOT();
	if (!user || !group)
		SKIP("no user nobody, or no group daemon");
	struct report *r = AS("--uid", "nobody", "--gid", "daemon", "--groups",
	                      "7,daemon");
	char wanted[64];
	snprintf(wanted, sizeof wanted, "%u %u %u", user->pw_uid, user->pw_uid,
	         user->pw_uid);
	reports(r, "uid", wanted);
	snprintf(wanted, sizeof wanted, "%u %u %u", group->gr_gid, group->gr_gid,
	         group->gr_gid);
	reports(r, "gid", wanted);
	snprintf(wanted, sizeof wanted, "2 %u 7", group->gr_gid);
	reports(r, "groups", wanted);
	report_free(r);
}
END_TEST

START_TEST(the_last_user_counts_and_no_group_of_another)
{
	const struct passwd *user = getpwnam("nobody");
	char wanted[64];

	NEED_ROOT();
	if (!user)
		SKIP("no user nobody");
	snprintf(wanted, sizeof wanted, "%u %u %u", user->pw_gid, user->pw_gid,
	         user->pw_gid);
	struct report *r = AS("--uid", "root", "--uid", "nobody");
	reports(r, "gid", wanted);
	report_free(r);
	r = AS("--uid", "nobody", "--uid", "12345");
	reports(r, "gid", "0 0 0");
	report_free(r);
	r = AS("--uid", "root", "--gid", "9", "--uid", "nobody");
	reports(r, "gid", "9 9 9");
	report_free(r);
}
END_TEST

static void as_1234(void)
{
	if (setgroups(1, (gid_t[]){ 7 }) || setresgid(1234, 1234, 1234) ||
	    setresuid(1234, 1234, 1234))
		_exit(98);
}

/* The same command, with this option, by a user. */
static void by_user(char *option, char *value, int code, const char *err)
{
	char *argv[] = { copy_program(command(), "wean", 0755), option, value,
	                 copy_kid("program", 0755), (char[]){ "exit" }, (char[]){ "3" },
	                 NULL };
	struct result r = result_of(argv, as_1234);

	ck_assert_str_eq(r.err, err);
	ck_assert_int_eq(r.code, code);
}

START_TEST(who_may_not_become_another_is_told)
{
	NEED_ROOT();
	by_user((char[]){ "--uid" }, (char[]){ "1234" }, 3, "");
	by_user((char[]){ "--uid" }, (char[]){ "0" }, 126,
	        "wean: cannot become group 0: Operation not permitted\n");
	by_user((char[]){ "--gid" }, (char[]){ "0" }, 126,
	        "wean: cannot become group 0: Operation not permitted\n");
	by_user((char[]){ "--groups" }, (char[]){ "" }, 126,
	        "wean: cannot set the supplementary groups: Operation not permitted\n");
}
END_TEST

/* ---- limits, umask, nice ----------------------------------------------- */

static const struct {
	const char *name;
	int resource;
} resources[] = {
	{ "as", RLIMIT_AS }, { "core", RLIMIT_CORE }, { "cpu", RLIMIT_CPU },
	{ "data", RLIMIT_DATA }, { "fsize", RLIMIT_FSIZE }, { "locks", 10 },
	{ "memlock", RLIMIT_MEMLOCK }, { "msgqueue", 12 }, { "nice", 13 },
	{ "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC }, { "rss", RLIMIT_RSS },
	{ "rtprio", 14 }, { "rttime", 15 }, { "sigpending", 11 },
	{ "stack", RLIMIT_STACK },
};

/* Half of what may be had, whatever it counts. */
START_TEST(every_limit_has_a_name)
{
	unsigned long long soft, hard;
	char text[100], *upper;

	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
		unsigned long long most = limit_of(resources[i].resource).hard;
		if (most == UINT64_MAX)
			most = 1ULL << 41;
		snprintf(text, sizeof text, "%s=%llu:%llu", resources[i].name,
		         most / 2, most);
		for (upper = text; i % 2 && *upper != '='; upper++)
			*upper = (char)(*upper - 'a' + 'A');
		struct report *r = REPORT("--limit", text);
		report_limit(r, resources[i].resource, &soft, &hard);
		ck_assert_msg(soft == most / 2 && hard == most, "%s: %llu:%llu", text,
		              soft, hard);
		report_free(r);
	}
}
END_TEST

START_TEST(a_limit_has_one_value_or_two)
{
	unsigned long long soft, hard;
	struct report *r = REPORT("--limit", "nofile=64", "--limit=core=0:unlimited",
	                          "--limit", "cpu=unlimited");

	report_limit(r, RLIMIT_NOFILE, &soft, &hard);
	ck_assert(soft == 64 && hard == 64);
	report_limit(r, RLIMIT_CORE, &soft, &hard);
	ck_assert(soft == 0 && hard == ~0ULL);
	report_limit(r, RLIMIT_CPU, &soft, &hard);
	ck_assert(soft == ~0ULL && hard == ~0ULL);
	report_free(r);
	gives(125, "", "wean: the soft limit of 'nofile' is above the hard one\n"
	      "Try 'wean --help'.\n",
	      WEAN("--limit", "nofile=64:32", kid(), "echo", "started"));
}
END_TEST

START_TEST(umask_and_nice_value_are_set)
{
	umask(022);
	struct report *r = REPORT("--umask", "27");
	ck_assert_uint_eq(report_mask(r, "umask"), 027);
	report_free(r);
	r = REPORT("--umask=0");
	ck_assert_int_eq(report_number(r, "umask"), 0);
	report_free(r);
	r = REPORT("--nice", "19");
	reports(r, "nice", "19");
	report_free(r);
	if (may_lower_nice()) {
		r = REPORT("--nice", "-3");
		reports(r, "nice", "-3");
		report_free(r);
	}
	r = REPORT("--umask", "0777");
	ck_assert_uint_eq(report_mask(r, "umask"), 0777);
	report_free(r);
}
END_TEST

/* ---- group, session, signals ------------------------------------------- */

START_TEST(session_and_group_are_of_its_own_when_asked_for)
{
	struct report *r = REPORT("--session");
	long pid = report_number(r, "pid");

	reports_number(r, "sid", pid);
	reports_number(r, "pgid", pid);
	report_free(r);
	r = REPORT("--group");
	pid = report_number(r, "pid");
	reports_number(r, "sid", getsid(0));
	reports_number(r, "pgid", pid);
	report_free(r);
	r = REPORT("--group", "--session");
	pid = report_number(r, "pid");
	reports_number(r, "sid", pid);
	report_free(r);
	r = REPORT("-e", "A=1");
	pid = report_number(r, "pid");
	reports_number(r, "sid", getsid(0));
	reports_number(r, "pgid", report_number(r, "ppid")); /* the command's */
	report_free(r);
}
END_TEST

static const struct {
	const char *name;
	int sig;
} signals[] = {
	{ "ABRT", SIGABRT }, { "SIGALRM", SIGALRM }, { "cont", SIGCONT },
	{ "HUP", SIGHUP }, { "sigint", SIGINT }, { "KILL", SIGKILL },
	{ "PIPE", SIGPIPE }, { "QUIT", SIGQUIT }, { "STOP", SIGSTOP },
	{ "TERM", SIGTERM }, { "TSTP", SIGTSTP }, { "USR1", SIGUSR1 },
	{ "SIGusr2", SIGUSR2 }, { "1", 1 }, { "64", 64 },
};

START_TEST(the_signal_at_the_death_of_the_command_has_a_name_or_a_number)
{
	struct report *r = REPORT("-e", "A=1");

	reports(r, "pdeathsig", "0");
	report_free(r);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		char name[16];
		strcpy(name, signals[i].name);
		r = REPORT("--pdeathsig", name);
		reports_number(r, "pdeathsig", signals[i].sig);
		report_free(r);
	}
}
END_TEST

START_TEST(no_privileges_are_gained)
{
	struct report *r = REPORT("--no-new-privs");

	reports(r, "nonewprivs", "1");
	report_free(r);
	r = REPORT("-e", "A=1");
	reports(r, "nonewprivs", "0");
	report_free(r);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *command_options_suite(void)
{
	Suite *s = suite_create("command_options");
	TCase *t = tcase_create("command_options");

	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, map_places_one_descriptor_as_another);
	tcase_add_test(t, files_become_the_standard_descriptors);
	tcase_add_test(t, files_are_opened_for_what_they_are_for);
	tcase_add_test(t, what_cannot_be_opened_is_told_and_nothing_started);
	tcase_add_test(t, variables_are_set_and_removed);
	tcase_add_test(t, directory_is_where_it_runs);
	tcase_add_test(t, every_limit_has_a_name);
	tcase_add_test(t, a_limit_has_one_value_or_two);
	tcase_add_test(t, umask_and_nice_value_are_set);
	tcase_add_test(t, session_and_group_are_of_its_own_when_asked_for);
	tcase_add_test(t, the_signal_at_the_death_of_the_command_has_a_name_or_a_number);
	tcase_add_test(t, no_privileges_are_gained);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "root");
	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, a_user_has_no_groups_but_those_it_is_given);
	tcase_add_test(t, groups_alone_change_and_nothing_else);
	tcase_add_test(t, users_and_groups_have_names);
	tcase_add_test(t, the_last_user_counts_and_no_group_of_another);

	t = case_that_needs(s, "root");
	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, who_may_not_become_another_is_told);
	return s;
}

RUN_SUITE(command_options_suite)
