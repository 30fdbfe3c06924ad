/* test_command_usage.c - wean(1): the help, the version, and every wrong command line. */
#define _GNU_SOURCE
#include "commanding.h"

/* ---- help, version ------------------------------------------------------ */

/* All of them: each has its test in one of the files test_command*.c. */
static const char *const tested[] = {
	"--keep", "--map", "--input", "--output", "--append", "--errors", "--directory",
	"--env", "--unset", "--uid", "--gid", "--groups", "--limit", "--umask", "--nice",
	"--session", "--group", "--pdeathsig", "--no-new-privs", "--timeout", "--grace",
	"--capture", "--max-output", "--json", "--verbose", "--help", "--version",
};

enum { TESTED = sizeof tested / sizeof *tested };

START_TEST(help_lists_every_option_that_is_tested_and_no_other)
{
	static const char usage[] =
		"usage: wean [option]... [--] program [argument]...\n";
	struct result r = result_of(WEAN("--help"), NULL);
	char seen[TESTED] = { 0 };
	int options = 0;

	ck_assert_int_eq(r.code, 0);
	ck_assert_str_eq(r.err, "");
	ck_assert_msg(!strncmp(r.out, usage, sizeof usage - 1), "%s", r.out);
	for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n")) {
		char name[32];
		if (strncmp(line, "  ", 2))
			continue;
		options++;
		ck_assert_msg(sscanf(line + 6, "%31s", name) == 1 && line[33] == ' ' &&
		              line[34] != ' ' && strlen(line) <= 80, "'%s'", line);
		for (int i = 0; i < TESTED; i++)
			seen[i] |= strcmp(tested[i], name) == 0;
	}
	for (int i = 0; i < TESTED; i++)
		ck_assert_msg(seen[i], "%s is not in the help", tested[i]);
	ck_assert_int_eq(options, TESTED);
}
END_TEST

START_TEST(help_and_version_start_nothing)
{
	char version[64];

	snprintf(version, sizeof version, "wean %s\n", wean_version());
	gives(0, version, "", WEAN("--version"));
	gives(0, version, "", WEAN("--version", kid(), "echo", "started"));
	struct result r = result_of(WEAN("-v", "--help", kid(), "echo", "ran"), NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_ptr_null(strstr(r.out, "ran\n"));
	gives(0, "--help --version\n", "", WEAN(kid(), "echo", "--help", "--version"));
}
END_TEST

START_TEST(help_and_version_that_cannot_be_written_are_a_failure)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(full, 0);
	ck_assert_int_eq(code_of(begin(WEAN("--help"), full, full, NULL)), 125);
	ck_assert_int_eq(code_of(begin(WEAN("--version"), full, full, NULL)), 125);
	close(full);
}
END_TEST

/* ---- wrong command lines ------------------------------------------------- */

static const struct usage_row {
	const char *option, *argument, *wanted;
} usage_rows[] = {
	{ "-m", "5", "'5' is not TARGET=SOURCE" },
	{ "-m", "", "'' is not TARGET=SOURCE" },
	{ "-m", "x=5", "'x' is not a descriptor" },
	{ "-m", "5=", "'' is not a descriptor" },
	{ "-m", "=5", "'' is not a descriptor" },
	{ "-m", "5=-1", "'-1' is not a descriptor" },
	{ "-m", "5=6=7", "'6=7' is not a descriptor" },
	{ "--keep", "1.5", "'1.5' is not a descriptor" },
	{ "-e", "NAME", "'NAME' is not NAME=VALUE" },
	{ "-e", "=1", "'=1' is not NAME=VALUE" },
	{ "-e", "", "'' is not NAME=VALUE" },
	{ "-u", "A=1", "'A=1' is not the name of a variable" },
	{ "-u", "", "'' is not the name of a variable" },
	{ "--uid", "no such user", "'no such user' is not a user" },
	{ "--uid", "", "'' is not a user" },
	{ "--uid", "-1", "'-1' is not a user" },
	{ "--uid", "4294967295", "'4294967295' is not a user" },
	{ "--uid", "4294967296", "'4294967296' is not a user" },
	{ "--uid", "0x10", "'0x10' is not a user" },
	{ "--gid", "no such group", "'no such group' is not a group" },
	{ "--gid", "4294967295", "'4294967295' is not a group" },
	{ "--groups", "1,no such group", "'no such group' is not a group" },
	{ "--groups", "1;2", "'1;2' is not a group" },
	{ "--limit", "nofile", "'nofile' is not NAME=SOFT[:HARD]" },
	{ "--limit", "files=1", "'files' is not a limit" },
	{ "--limit", "=1", "'' is not a limit" },
	{ "--limit", "nofile=", "'' is not the value of a limit" },
	{ "--limit", "nofile=x", "'x' is not the value of a limit" },
	{ "--limit", "nofile=1:", "'' is not the value of a limit" },
	{ "--limit", "nofile=1:2:3", "'2:3' is not the value of a limit" },
	{ "--limit", "nofile=-1", "'-1' is not the value of a limit" },
	{ "--limit", "nofile=99999999999999999999",
	  "'99999999999999999999' is not the value of a limit" },
	{ "--umask", "8", "'8' is not a umask" },
	{ "--umask", "1000", "'1000' is not a umask" },
	{ "--umask", "-1", "'-1' is not a umask" },
	{ "--umask", "", "'' is not a umask" },
	{ "--nice", "20", "'20' is not a nice value" },
	{ "--nice", "-21", "'-21' is not a nice value" },
	{ "--nice", "low", "'low' is not a nice value" },
	{ "--pdeathsig", "FOO", "'FOO' is not a signal" },
	{ "--pdeathsig", "SIG", "'SIG' is not a signal" },
	{ "--pdeathsig", "0", "'0' is not a signal" },
	{ "--pdeathsig", "65", "'65' is not a signal" },
	{ "-t", "soon", "'soon' is not a time in seconds" },
	{ "-t", "", "'' is not a time in seconds" },
	{ "-t", "-1", "'-1' is not a time in seconds" },
	{ "-t", "1s", "'1s' is not a time in seconds" },
	{ "-t", "nan", "'nan' is not a time in seconds" },
	{ "-t", "inf", "'inf' is not a time in seconds" },
	{ "-t", "1e300", "'1e300' is not a time in seconds" },
	{ "-t", "2147484", "'2147484' is not a time in seconds" },
	{ "--grace", "-0.1", "'-0.1' is not a time in seconds" },
	{ "--max-output", "0", "'0' is not a number of bytes" },
	{ "--max-output", "-1", "'-1' is not a number of bytes" },
	{ "--max-output", "", "'' is not a number of bytes" },
	{ "--max-output", "64k", "'64k' is not a number of bytes" },
	{ "--max-output", "9223372036854775808",
	  "'9223372036854775808' is not a number of bytes" },
	{ "--capture=1", NULL, "--capture=1 takes no argument" },
	{ "--json=1", NULL, "--json=1 takes no argument" },
	{ "--session=1", NULL, "--session=1 takes no argument" },
	{ "--group=1", NULL, "--group=1 takes no argument" },
	{ "--no-new-privs=1", NULL, "--no-new-privs=1 takes no argument" },
	{ "--verbose=1", NULL, "--verbose=1 takes no argument" },
	{ "--nope", NULL, "there is no option --nope" },
	{ "--g", "1", "--g may be one of several options" },
	{ "-x", NULL, "there is no option -x" },
	{ "-vx", NULL, "there is no option -x" },
	{ "-", NULL, NULL },
};

static void refused_line(char *const argv[], const char *wanted)
{
	char err[256];

	snprintf(err, sizeof err, "wean: %s\nTry 'wean --help'.\n", wanted);
	gives(125, "", err, argv);
}

START_TEST(a_wrong_option_is_told_and_nothing_started)
{
	for (const struct usage_row *row = usage_rows; row->wanted; row++) {
		char option[32], argument[64];
		strcpy(option, row->option);
		strcpy(argument, row->argument ? row->argument : "");
		if (row->argument)
			refused_line(WEAN(option, argument, kid(), "echo", "started"),
			             row->wanted);
		else
			refused_line(WEAN(option, kid(), "echo", "started"), row->wanted);
	}
}
END_TEST

START_TEST(an_option_without_its_argument_is_told)
{
	static const char *const options[] = {
		"-k", "-m", "-i", "-o", "-a", "-E", "-C", "-e", "-u", "-t",
		"--keep", "--map", "--input", "--output", "--append", "--errors",
		"--directory", "--env", "--unset", "--uid", "--gid", "--groups",
		"--limit", "--umask", "--nice", "--pdeathsig", "--timeout", "--grace",
		"--max-output",
	};
	char option[32], wanted[64];

	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		strcpy(option, options[i]);
		snprintf(wanted, sizeof wanted, "%s needs an argument", option);
		refused_line(WEAN(option), wanted);
		refused_line(WEAN("-v", option), wanted);
	}
	refused_line(WEAN("--session"), "no program is named");
	refused_line(WEAN("-t", "1", "--"), "no program is named");
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *command_usage_suite(void)
{
	Suite *s = suite_create("command_usage");
	TCase *t = tcase_create("command_usage");

	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, help_lists_every_option_that_is_tested_and_no_other);
	tcase_add_test(t, help_and_version_start_nothing);
	tcase_add_test(t, help_and_version_that_cannot_be_written_are_a_failure);
	tcase_add_test(t, a_wrong_option_is_told_and_nothing_started);
	tcase_add_test(t, an_option_without_its_argument_is_told);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(command_usage_suite)
