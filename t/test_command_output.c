/* test_command_output.c - wean(1): what the program writes is collected, and how it ended
   is told to other programs. */
#define _GNU_SOURCE
#include "commanding.h"

#include <poll.h>
#include <sys/socket.h>

/* ---- JSON, as far as it is needed ---------------------------------------- */

/* The text of a member of the last line; fails unless that is one object. */
static const char *member(const char *text, const char *name)
{
	static char value[4096];
	char key[64];
	size_t len = strlen(text);

	ck_assert_msg(len > 1 && !strcmp(text + len - 2, "}\n"), "'%s'", text);
	while (len > 1 && text[len - 2] != '\n')
		len--;
	text += len > 1 ? len - 1 : 0;
	ck_assert_msg(*text == '{', "'%s'", text);
	snprintf(key, sizeof key, "\"%s\": ", name);
	const char *at = strstr(text, key);
	if (!at)
		return "absent";
	at += strlen(key);
	const char *end = at;
	while (*end != '}' && *end != ',' && *end != '"')
		end++;
	if (*end == '"')
		for (end++; *end != '"'; end++)
			end += *end == '\\';
	snprintf(value, sizeof value, "%.*s", (int)(end - at) + (*end == '"'), at);
	return value;
}

#define TELLS(result, name, value) ck_assert_str_eq(member((result).err, name), value)

static long long number(const struct result *r, const char *name)
{
	char *end;
	const char *text = member(r->err, name);
	long long n = strtoll(text, &end, 10);

	ck_assert_msg(end != text && !*end, "%s is %s", name, text);
	return n;
}

static struct result result(char *const argv[])
{
	return result_of(argv, NULL);
}

/* ---- capture ------------------------------------------------------------- */

START_TEST(what_is_captured_comes_out_where_it_was_meant_for)
{
	gives(3, "a\nc\n", "b\n", WEAN("--capture", kid(), "say", "1", "a", "--then", "say",
	                             "2", "b", "--then", "say", "1", "c", "--then",
	                             "exit", "3"));
	gives(0, "", "", WEAN("--capture", kid(), "exit", "0"));
	gives(128 + SIGKILL, "x\n", "", WEAN("--capture", kid(), "echo", "x", "--then",
	                                     "kill", "9"));
	gives(127, "", "wean: cannot run '/absent': No such file or directory\n",
	      WEAN("--capture", "/absent"));
}
END_TEST

START_TEST(nothing_comes_out_before_the_end)
{
	struct pollfd ready = { .events = POLLIN };
	int hold[2], out[2], err[2], told[2];
	char text[16], map[32];

	ck_assert_int_eq(pipe2(hold, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe(told), 0);
	snprintf(map, sizeof map, "9=%d", told[1]);
	pid_t pid = begin_with(WEAN("--capture", "-m", map, kid(), "echo", "early",
	                            "--then", "say", "9", "ready", "--then",
	                            "exit-on-eof"), hold[0], out[1], err[1], NULL);
	close(out[1]);
	close(err[1]);
	close(hold[0]);
	close(told[1]);
	for (text[0] = 0; text[0] != '\n';)
		ck_assert_int_eq(read(told[0], text, 1), 1);
	ready.fd = out[0];
	ck_assert_int_eq(poll(&ready, 1, 0), 0);
	close(hold[1]);
	code_of(pid);
	ck_assert_int_eq(read(out[0], text, sizeof text), 6);
	ck_assert_int_eq(memcmp(text, "early\n", 6), 0);
	close(out[0]);
	close(err[0]);
	close(told[0]);
}
END_TEST

/* More than both pipes hold: whoever reads one after the other waits for ever. */
START_TEST(both_outputs_are_read_at_once)
{
	struct stat out, err;

	ck_assert_int_eq(result(WEAN("--capture", kid(), "write", "2", "300000", "--then",
	                             "write", "1", "300000", "--then", "write", "2",
	                             "300000")).code, 0);
	ck_assert_int_eq(stat(at("out"), &out), 0);
	ck_assert_int_eq(stat(at("err"), &err), 0);
	ck_assert_int_eq(out.st_size, 300000);
	ck_assert_int_eq(err.st_size, 600000);
}
END_TEST

START_TEST(no_more_is_kept_than_was_asked_for)
{
	gives(0, "abc", "xyz", WEAN("--capture", "--max-output", "3", kid(), "echo",
	                            "abcdef", "--then", "say", "2", "xyz_"));
	gives(0, "abc\n", "", WEAN("--capture", "--max-output=4", kid(), "echo", "abc"));
	/* a character of three bytes is kept or not */
	gives(0, "a", "", WEAN("--capture", "--max-output=3", kid(), "echo",
	                       "a\xe2\x82\xac"));
	gives(0, "a\xe2\x82\xac", "", WEAN("--capture", "--max-output=4", kid(), "echo",
	                                   "a\xe2\x82\xac"));
	struct result r = result(WEAN("--capture", "--max-output", "4", "--json", kid(),
	                              "echo", "abc", "--then", "say", "2", "defghi"));
	ck_assert_str_eq(r.out, "abc\n");
	TELLS(r, "out_bytes", "4");
	TELLS(r, "out_cut", "false");
	TELLS(r, "err_bytes", "4");
	TELLS(r, "err_cut", "true");
	ck_assert_int_eq(strncmp(r.err, "defg\n{", 6), 0);
}
END_TEST

START_TEST(its_input_is_still_ours)
{
	int input[2];
	char *path = at("input");

	write_text("input", 0644, "text\n");
	gives(0, "text\n", "", WEAN("--capture", "-i", path, kid(), "cat"));
	ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
	ck_assert_int_eq(write(input[1], "word\n", 5), 5);
	close(input[1]);
	int saved = dup(0);
	ck_assert_int_eq(dup2(input[0], 0), 0);
	gives(0, "word\n", "", WEAN("--capture", kid(), "cat"));
	dup2(saved, 0);
	close(saved);
	close(input[0]);
}
END_TEST

START_TEST(what_was_written_by_the_limit_is_given_out)
{
	struct result r;

	r = result(WEAN("--capture", "-t", "0.6", "--grace", "10", "--json", kid(), "echo",
	                "early", "--then", "pause"));
	ck_assert_int_eq(r.code, 124);
	ck_assert_str_eq(r.out, "early\n");
	TELLS(r, "timed_out", "true");
	TELLS(r, "status", "\"signaled\"");
	TELLS(r, "value", "15");
	TELLS(r, "code", "143");
	TELLS(r, "exit", "124");
	gives(124, "", "", WEAN("--capture", "-t", "0", "--grace", "0", kid(), "pause"));
	gives(0, "x\n", "", WEAN("--capture", "-t", "600", kid(), "echo", "x"));
}
END_TEST

START_TEST(who_keeps_the_pipes_is_not_waited_for)
{
	adopt_orphans();
	struct result r = result(WEAN("--capture", "--json", kid(), "fork-hold", "5000",
	                              "--then", "exit", "2"));
	ck_assert_int_eq(r.code, 2);
	TELLS(r, "still_open", "true");
	TELLS(r, "timed_out", "false");
	pid_t held = atoi(r.out);
	if (held > 0) { /* it may be too late to be heard */
		ck_assert_int_eq(kill(held, SIGKILL), 0);
		ck_assert_int_eq(waitpid(held, NULL, 0), held);
	}
}
END_TEST

START_TEST(output_that_cannot_be_written_is_a_failure)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(full, 0);
	ck_assert_int_eq(code_of(begin(WEAN("--capture", kid(), "echo", "x"), full, full,
	                               NULL)), 125);
	ck_assert_int_eq(code_of(begin(WEAN("--capture", kid(), "exit", "4"), full, full,
	                               NULL)), 4);
	close(full);
}
END_TEST

START_TEST(what_contradicts_a_capture_is_refused)
{
	char *file = at("file");

#define REFUSED(text, ...) \
	gives(125, "", "wean: " text "\nTry 'wean --help'.\n", \
	      WEAN(__VA_ARGS__, kid(), "echo", "started"))
	REFUSED("--capture and another place for descriptor 1", "--capture", "-o", file);
	REFUSED("--capture and another place for descriptor 1", "-a", file, "--capture");
	REFUSED("--capture and another place for descriptor 2", "--capture", "-E", file);
	REFUSED("--capture and another place for descriptor 2", "--capture", "-m", "2=1");
	REFUSED("--capture and another place for descriptor 1", "--capture", "-k", "1");
	REFUSED("--max-output without --capture", "--max-output", "5");
	ck_assert_int_ne(access(file, F_OK), 0);
}
END_TEST

/* ---- JSON ---------------------------------------------------------------- */

START_TEST(json_tells_the_end_in_one_line)
{
	struct result r = result(WEAN("--json", kid(), "burn", "30", "--then", "echo", "x",
	                              "--then", "exit", "3"));

	ck_assert_int_eq(r.code, 3);
	ck_assert_str_eq(r.out, "x\n");
	ck_assert_ptr_eq(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
	TELLS(r, "status", "\"exited\"");
	TELLS(r, "value", "3");
	TELLS(r, "code", "3");
	TELLS(r, "exit", "3");
	TELLS(r, "core", "false");
	TELLS(r, "timed_out", "false");
	TELLS(r, "out_bytes", "absent");
	TELLS(r, "still_open", "absent");
	ck_assert_int_gt(number(&r, "pid"), 1);
	ck_assert_int_ge(number(&r, "user_us") + number(&r, "system_us"), 30000);
	ck_assert_int_ge(number(&r, "elapsed_us"), 30000);
	ck_assert_int_gt(number(&r, "maxrss_kb"), 0);
	ck_assert_ptr_nonnull(strchr(member(r.err, "method"), '+'));
	r = result(WEAN("--json", kid(), "kill", "9"));
	ck_assert_int_eq(r.code, 137);
	TELLS(r, "status", "\"signaled\"");
	TELLS(r, "value", "9");
	TELLS(r, "code", "137");
	r = result(WEAN("--json", "-t", "0", "--grace", "0", kid(), "pause"));
	ck_assert_int_eq(r.code, 124);
	TELLS(r, "timed_out", "true");
	TELLS(r, "code", "137");
	TELLS(r, "exit", "124");
}
END_TEST

/* Each write is a packet of its own.  Many commands may have one standard error, and none
   may cut the line of another. */
START_TEST(each_line_of_ours_is_one_write)
{
	char *const *const all[] = {
		WEAN("--json", kid(), "exit", "3"), WEAN("-v", kid(), "exit", "3"),
		WEAN("./missing"), WEAN("--limit", "no=1", kid()),
	};
	char text[4096];
	int fds[2];

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
		code_of(begin(all[i], 1, fds[1], NULL));
		ssize_t len = recv(fds[0], text, sizeof text, MSG_DONTWAIT);
		ck_assert_int_gt(len, 1);
		ck_assert_msg(text[len - 1] == '\n', "%zu: '%.*s'", i, (int)len, text);
		close(fds[0]);
		close(fds[1]);
	}
}
END_TEST

START_TEST(json_tells_what_did_not_start)
{
	for (int captures = 0; captures < 2; captures++) {
		struct result r = captures ? result(WEAN("--json", "--capture", "/absent"))
		                           : result(WEAN("--json", "/absent"));
		ck_assert_int_eq(r.code, 127);
		TELLS(r, "status", "\"not started\"");
		TELLS(r, "stage", "\"exec\"");
		TELLS(r, "errno", "2");
		TELLS(r, "exit", "127");
		TELLS(r, "value", "absent");
		TELLS(r, "error", "\"cannot run '/absent': No such file or directory\"");
	}
}
END_TEST

START_TEST(json_escapes_what_is_no_text)
{
	static const struct {
		const char *name, *wanted;
	} rows[] = {
		{ "/absent/a\"b\\c", "\"/absent/a\\\"b\\\\c\"" },
		{ "/absent/\n\t\x7f\x1b", "\"/absent/\\u000a\\u0009\\u007f\\u001b\"" },
		{ "/absent/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\"/absent/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "/absent/\xff\xc3", "\"/absent/\\ufffd\\ufffd\"" },
		{ "/absent/\xc0\xaf", "\"/absent/\\ufffd\\ufffd\"" },
		{ "/absent/\xe2\x82z", "\"/absent/\\ufffd\\ufffdz\"" },
		{ "/absent/\xed\xa0\x80", "\"/absent/\\ufffd\\ufffd\\ufffd\"" },
		{ "/absent/\xe0\x80\x80", "\"/absent/\\ufffd\\ufffd\\ufffd\"" },
		{ "/absent/\xf0\x80\x80\x80", "\"/absent/\\ufffd\\ufffd\\ufffd\\ufffd\"" },
		{ "/absent/\xf4\x90\x80\x80", "\"/absent/\\ufffd\\ufffd\\ufffd\\ufffd\"" },
	};
	char name[64];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		strcpy(name, rows[i].name);
		struct result r = result(WEAN("--json", name));
		TELLS(r, "program", rows[i].wanted);
	}
}
END_TEST

START_TEST(v_tells_of_a_capture_when_it_is_over)
{
	struct result r = result(WEAN("-v", "--capture", kid(), "say", "2", "x"));
	const char *line = strchr(r.err, '\n');

	ck_assert_int_eq(strncmp(r.err, "x\nwean: ", 8), 0);
	ck_assert_ptr_nonnull(strstr(line, " ran as "));
	ck_assert_ptr_nonnull(strstr(line, " us, given 0 1 2\n"));
}
END_TEST

/* ---- signals ------------------------------------------------------------- */

static char *const apart[] = { "-eA=1", "--group", "--session", "-t600" };

/* Ready is told on a pipe of its own. */
static pid_t begin_ready(char *option, char *sig)
{
	int told[2];
	char map[32], c;

	ck_assert_int_eq(pipe2(told, O_CLOEXEC), 0);
	int keep = fcntl(told[1], F_DUPFD, 50);
	snprintf(map, sizeof map, "9=%d", keep);
	pid_t pid = begin(WEAN("--capture", option, "-m", map, kid(), "on", sig, "40",
	                       "--then", "say", "9", "r", "--then", "pause"), 1, 2, NULL);
	close(keep);
	close(told[1]);
	do
		ck_assert_int_eq(read(told[0], &c, 1), 1);
	while (c != '\n');
	close(told[0]);
	return pid;
}

START_TEST(signals_are_passed_on_while_it_is_captured)
{
	pid_t pid = begin_ready(apart[_i], (char[]){ "15" });

	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(code_of(pid), 40);
	pid = begin_ready(apart[_i], (char[]){ "1" });
	ck_assert_int_eq(kill(pid, SIGHUP), 0);
	ck_assert_int_eq(code_of(pid), 40);
	pid = begin_ready(apart[_i], (char[]){ "2" });
	ck_assert_int_eq(kill(_i ? pid : -pid, SIGINT), 0);
	ck_assert_int_eq(code_of(pid), 40);
}
END_TEST

START_TEST(a_signal_during_the_start_of_a_capture_reaches_the_program)
{
	struct trap trap;
	int input[2];

	if (!trap_set(&trap, "held", act_term))
		SKIP("no leases on %s", scratch);
	ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
	pid_t pid = begin_with(WEAN("--capture", apart[_i], trap.path, "on", "15", "7",
	                            "--then", "cat"), input[0], 1, 2, NULL);
	close(input[0]);
	int code = code_of(pid);
	close(input[1]);
	trap_sprung(&trap);
	/* The program may not have its handler yet. */
	ck_assert_msg(code == 7 || code == 128 + SIGTERM, "%d", code);
}
END_TEST

static void ignore_two(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
}

START_TEST(a_captured_program_has_the_signals_of_any_other)
{
	struct report *plain = report_after(WEAN(kid(), "report"), ignore_two);
	struct report *r = report_after(WEAN("--capture", kid(), "report"), ignore_two);

	ck_assert_uint_eq(report_mask(r, "sigign"), report_mask(plain, "sigign"));
	ck_assert_uint_eq(report_mask(r, "sigblk"), 0);
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	report_free(plain);
	report_free(r);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *command_output_suite(void)
{
	Suite *s = suite_create("command_output");
	TCase *t = tcase_create("command_output");

	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, what_is_captured_comes_out_where_it_was_meant_for);
	tcase_add_test(t, nothing_comes_out_before_the_end);
	tcase_add_test(t, both_outputs_are_read_at_once);
	tcase_add_test(t, no_more_is_kept_than_was_asked_for);
	tcase_add_test(t, its_input_is_still_ours);
	tcase_add_test(t, who_keeps_the_pipes_is_not_waited_for);
	tcase_add_test(t, output_that_cannot_be_written_is_a_failure);
	tcase_add_test(t, what_contradicts_a_capture_is_refused);
	tcase_add_test(t, json_tells_the_end_in_one_line);
	tcase_add_test(t, each_line_of_ours_is_one_write);
	tcase_add_test(t, json_tells_what_did_not_start);
	tcase_add_test(t, json_escapes_what_is_no_text);
	tcase_add_test(t, v_tells_of_a_capture_when_it_is_over);
	tcase_add_test(t, a_captured_program_has_the_signals_of_any_other);
	tcase_add_loop_test(t, a_signal_during_the_start_of_a_capture_reaches_the_program,
	                    0, 4);
	suite_add_tcase(s, t);

	t = case_that_needs(s, "signals");
	tcase_add_unchecked_fixture(t, find_programs, scratch_remove);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, what_was_written_by_the_limit_is_given_out);
	tcase_add_loop_test(t, signals_are_passed_on_while_it_is_captured, 0, 4);
	return s;
}

RUN_SUITE(command_output_suite)
