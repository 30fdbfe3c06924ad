/* test_popen_alike.c - with a shell and without one, and by popen(3) and system(3), a
 * command gives the same output, the same errors and the same status; which ones go
 * without is told by what wean_spawn() is asked for. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "spawning.h"

#include <ctype.h>
#include <wean_popen.h>

/* ---- what wean_spawn() is asked for -------------------------------------- */

static int shells;

int __real_wean_spawn(struct wean_child *, char *const argv[], const struct wean_options *);
int __wrap_wean_spawn(struct wean_child *, char *const argv[], const struct wean_options *);

int __wrap_wean_spawn(struct wean_child *child, char *const argv[],
                      const struct wean_options *o)
{
	shells += o->file && strcmp(o->file, "/bin/sh") == 0;
	return __real_wean_spawn(child, argv, o);
}

/* ---- one text, one way --------------------------------------------------- */

struct result {
	char out[20000], err[4096];
	int status, shells;
};

struct redirected {
	int number, kept, file;
};

static struct redirected redirect(int number)
{
	struct redirected r = { number, fcntl(number, F_DUPFD_CLOEXEC, 20),
	                        memfd_create("redirected", MFD_CLOEXEC) };

	ck_assert(r.kept >= 0 && r.file >= 0 && dup2(r.file, number) == number);
	return r;
}

static void give_back(struct redirected r, char *text, size_t size)
{
	ssize_t n = pread(r.file, text, size - 1, 0);

	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	dup2(r.kept, r.number);
	close(r.kept);
	close(r.file);
}

static void take_all(FILE *f, struct result *r)
{
	size_t n = fread(r->out, 1, sizeof r->out - 1, f);

	ck_assert(feof(f));
	r->out[n] = '\0';
}

static void by_popen(struct result *r, const char *text)
{
	FILE *f = popen(text, "r");

	ck_assert_ptr_nonnull(f);
	take_all(f, r);
	r->status = pclose(f);
}

static void by_wean_popen(struct result *r, const char *text)
{
	FILE *f = wean_popen(text, "r");

	ck_assert_ptr_nonnull(f);
	take_all(f, r);
	r->status = wean_pclose(f);
}

static void by_wean_popen_and_shell(struct result *r, const char *text)
{
	FILE *f = wean_popen(text, "rs");

	ck_assert_ptr_nonnull(f);
	take_all(f, r);
	r->status = wean_pclose(f);
}

static void by_system(struct result *r, const char *text)
{
	struct redirected out = redirect(1);

	r->status = system(text);
	give_back(out, r->out, sizeof r->out);
}

static void by_wean_system(struct result *r, const char *text)
{
	struct redirected out = redirect(1);

	r->status = wean_system(text);
	give_back(out, r->out, sizeof r->out);
}

typedef void (*way_to_run)(struct result *, const char *);

static void result_of(struct result *r, way_to_run by, const char *text)
{
	struct redirected err = redirect(2);

	shells = 0;
	by(r, text);
	r->shells = shells;
	give_back(err, r->err, sizeof r->err);
}

/* Runs it so, and compares. */
static void runs_as(const struct result *wanted, way_to_run by, const char *text, int by_shell)
{
	static struct result r;

	result_of(&r, by, text);
	ck_assert_msg(r.status == wanted->status, "'%s': status %#x, not %#x", text,
	              (unsigned)r.status, (unsigned)wanted->status);
	ck_assert_msg(!strcmp(r.out, wanted->out), "'%s' writes '%s', not '%s'", text, r.out,
	              wanted->out);
	ck_assert_msg(!strcmp(r.err, wanted->err), "'%s' complains '%s', not '%s'", text, r.err,
	              wanted->err);
	ck_assert_msg(by_shell < 0 || r.shells == by_shell, "'%s': %d shells", text, r.shells);
}

static const struct result *is_alike(const char *text, int by_shell)
{
	static struct result wanted;

	result_of(&wanted, by_popen, text);
	runs_as(&wanted, by_wean_popen, text, by_shell);
	return &wanted;
}

/* Once a shell is asked all ways are the same. */
static void is_alike_all_ways(const char *text, int by_shell)
{
	const struct result *wanted = is_alike(text, by_shell);

	if (by_shell)
		return;
	runs_as(wanted, by_system, text, 0);
	runs_as(wanted, by_wean_system, text, 0);
	runs_as(wanted, by_wean_popen_and_shell, text, 1);
}

/* ---- where --------------------------------------------------------------- */

/* In the scratch directory, with a `tool` in PATH that is t/kid. */
static void prepare(void)
{
	char path[200];

	scratch_make();
	make_dir("bin");
	copy_kid("bin/tool", 0755);
	write_text("bin/script", 0755, "#!/bin/sh\necho script $0 $*; exit 5\n");
	write_text("bin/bare", 0755, "echo bare $*; exit 6\n");
	write_text("bin/empty", 0755, "");
	write_text("bin/locked", 0644, "echo never\n");
	write_text("bin/astray", 0755, "#!/missing/interpreter\n");
	make_dir("bin/folder");
	symlink("loop", at("bin/loop"));
	symlink("tool", at("bin/link"));
	snprintf(path, sizeof path, "%s/none:%s/bin:/usr/bin:/bin", scratch, scratch);
	setenv("PATH", path, 1);
	setenv("LC_ALL", "C", 1);
	ck_assert_int_eq(chdir(scratch), 0);
	setenv("PWD", scratch, 1);
}

/* ---- texts --------------------------------------------------------------- */

static const struct {
	const char *text;
	int by_shell;
} texts[] = {
	/* plain words */
	{ "tool echo one two", 0 },
	{ "  tool\techo \t three ", 0 },
	{ "tool echo a=b c,d e:f @g %h +i -j k/l . ..", 0 },
	{ "bin/tool echo by a relative path", 0 },
	{ "./bin/tool echo by another", 0 },
	{ "bin/../bin/tool echo", 0 },
	{ "link echo if then", 0 },
	{ "tool exit 0", 0 },
	{ "tool exit 3", 0 },
	{ "tool exit 255", 0 },
	{ "tool say 2 an error", 0 },
	{ "tool say 1 first --then say 2 second --then exit 9", 0 },
	{ "tool", 0 },
	{ "tool lines 1 1000", 0 },
	{ "script a b", 0 },
	{ "bin/script", 0 },
	/* the shell's business, after an attempt */
	{ "bare a b", 1 },
	{ "bin/bare", 1 },
	{ "empty", 1 },
	{ "missing", 1 },
	{ "missing with words", 1 },
	{ "./missing", 1 },
	{ "/missing/program", 1 },
	{ "bin/tool/x", 1 },
	{ "locked", 1 },
	{ "bin/locked", 1 },
	{ "folder", 1 },
	{ "bin/folder", 1 },
	{ "bin/folder/", 1 },
	{ "/", 1 },
	{ "..", 1 },
	{ "loop", 1 },
	{ "bin/loop", 1 },
	{ "astray", 1 },
	{ "bin/astray", 1 },
	/* nothing */
	{ "", 1 },
	{ " ", 1 },
	{ "\t", 1 },
	{ "\n", 1 },
	{ "#", 1 },
	/* more than words */
	{ "tool echo 'a  b'", 1 },
	{ "tool echo \"a $((1 + 2))\"", 1 },
	{ "tool echo $HOME ~", 1 },
	{ "tool echo `tool echo x`", 1 },
	{ "tool echo a; tool exit 4", 1 },
	{ "tool echo a | tool cat", 1 },
	{ "tool exit 1 || tool echo b", 1 },
	{ "tool echo bin/*", 1 },
	{ "tool echo bin/t?ol bin/[lt]ool", 1 },
	{ "tool echo {a,b}", 1 },
	{ "tool echo a\\ b", 1 },
	{ "tool echo a > /dev/null", 1 },
	{ "tool say 2 x 2>&1", 1 },
	{ "tool echo a\ntool echo b", 1 },
	{ "tool echo a\n", 1 },
	{ "(tool echo a)", 1 },
	{ "! tool exit 0", 1 },
	{ "A=1 tool echo x", 1 },
	{ "A=1", 1 },
	{ "tool echo 'open", 1 },
	{ "tool echo a &&", 1 },
	/* words of the shell's own */
	{ "echo -n x", 1 },
	{ "echo a\\tb", 1 },
	{ "printf %s-%s a b", 1 },
	{ "printf", 1 },
	{ "test a = a", 1 },
	{ "test a = b", 1 },
	{ "[ a = a ]", 1 },
	{ "[ a = a", 1 },
	{ "true", 1 },
	{ "false", 1 },
	{ ":", 1 },
	{ ": x", 1 },
	{ ". bin/bare", 1 },
	{ ". missing", 1 },
	{ "pwd", 1 },
	{ "cd", 1 },
	{ "cd missing", 1 },
	{ "exit", 1 },
	{ "exit 7", 1 },
	{ "exec tool echo x", 1 },
	{ "exec missing", 1 },
	{ "eval tool echo x", 1 },
	{ "command tool echo x", 1 },
	{ "command -v tool", 1 },
	{ "type tool", 1 },
	{ "umask", 1 },
	{ "ulimit -n", 1 },
	{ "kill -l 9", 1 },
	{ "kill", 1 },
	{ "set a b", 1 },
	{ "shift", 1 },
	{ "unset PATH", 1 },
	{ "wait", 1 },
	{ "if", 1 },
	{ "then", 1 },
	{ "do", 1 },
	{ "done", 1 },
	{ "esac", 1 },
	{ "in", 1 },
	{ "while", 1 },
	{ "source", 1 },
	{ "local", 1 },
	{ "declare", 1 },
	{ "time", 1 },
	{ "%1", 1 },
	{ "%", 1 },
	{ "=x", 1 },
	{ "@ x", 1 },
	{ ", x", 1 },
	{ "7 x", 1 },
};

START_TEST(a_text_gives_the_same_with_and_without_a_shell)
{
	for (size_t i = (size_t)_i; i < COUNT(texts); i += 4)
		is_alike_all_ways(texts[i].text, texts[i].by_shell);
}
END_TEST

/* t/test_words.c has all characters; what goes on in the background is read by popen(3)
   alone. */
static const char chars[] = " \t\n\1!\"#$%'()*+,-./:;<=>?@[\\]^_`{|}~a5";

START_TEST(each_character_between_words_gives_the_same)
{
	for (const char *c = chars; *c; c++) {
		char text[] = { 't', 'o', 'o', 'l', ' ', 'e', 'c', 'h', 'o', ' ', 'a', *c, 'b',
		                '\0' };

		is_alike(text, !isalnum(*c) && !strchr("_-./,:+@%= \t", *c));
	}
}
END_TEST

START_TEST(each_character_within_the_first_word_gives_the_same)
{
	for (const char *c = chars; *c; c++) {
		char text[] = { 't', 'o', 'o', 'l', *c, ' ', 'e', 'c', 'h', 'o', ' ', 'x', '\0' };

		is_alike(text, *c != ' ' && *c != '\t');
	}
}
END_TEST

/* glibc's popen takes a first "-" or "+" for an option of the shell. */
START_TEST(each_first_character_gives_the_same)
{
	for (const char *c = chars; *c; c++) {
		char text[] = { *c, 't', 'o', 'o', 'l', ' ', 'e', 'c', 'h', 'o', ' ', 'x', '\0' };

		if (*c != '-' && *c != '+')
			is_alike(text, *c != ' ' && *c != '\t');
	}
}
END_TEST

START_TEST(a_text_that_begins_like_an_option_is_a_command)
{
	static const char *const begins[] = { "-c", "-tool echo x", "+x", " -e" };
	struct result r;

	for (size_t i = 0; i < COUNT(begins); i++) {
		result_of(&r, by_wean_popen, begins[i]);
		ck_assert_msg(r.status == 127 << 8, "%s: %#x, %s", begins[i],
		              (unsigned)r.status, r.err);
	}
}
END_TEST

static const char *const paths[] = {
	NULL, "", ":/bin", "/bin:", "/usr/bin::/bin", ".", "bin", "bin:/bin", "/missing",
	"/bin/sh:/usr/bin:/bin", "~/bin:/bin",
};

START_TEST(whatever_path_is_the_same_program_is_found)
{
	const char *path = paths[_i];

	copy_kid("own", 0755); /* in the current directory */
	if (path)
		setenv("PATH", path, 1);
	else
		unsetenv("PATH");
	is_alike("own echo x", -1);
	is_alike("tool echo x", -1);
	is_alike("uname -s", -1);
	is_alike("bin/tool echo x", 0);
}
END_TEST

/* As a daemon has none, and a host that went elsewhere has a wrong one. */
START_TEST(pwd_is_what_a_shell_makes_it)
{
	static const char *const pwds[] = { NULL, "", "/", "missing", ".", "/missing", "right" };
	const char *pwd = pwds[_i];

	if (pwd && strcmp(pwd, "right") == 0)
		setenv("PWD", scratch, 1);
	else if (pwd)
		setenv("PWD", pwd, 1);
	else
		unsetenv("PWD");
	is_alike("printenv PWD", 0);
}
END_TEST

START_TEST(where_the_directory_is_gone_a_shell_is_asked)
{
	make_dir("gone");
	ck_assert_int_eq(chdir("gone"), 0);
	ck_assert_int_eq(rmdir(at("gone")), 0);
	is_alike("printenv PWD", 1);
	is_alike("tool echo x", 1);
}
END_TEST

START_TEST(a_very_long_text_gives_the_same)
{
	enum { LEN = 7 << 20 }; /* whatever the limit of the stack */
	char *over = long_text("tool exit ", LEN);

	is_alike(long_text("tool exit 3 ", 100000), 0);
	/* More than execve(2) takes, a shell's as well. */
	for (size_t i = 20; i < LEN; i += 1000)
		over[i] = ' ';
	ck_assert_ptr_null(popen(over, "r"));
	ck_assert_ptr_null(wean_popen(over, "r"));
	ck_assert_int_eq(errno, E2BIG);
}
END_TEST

/* Not every shell replaces itself by its last command; then it tells 128 + the signal. */
START_TEST(a_command_that_is_killed_is_told_as_killed)
{
	struct result r;

	result_of(&r, by_wean_popen, "tool kill 9");
	ck_assert(WIFSIGNALED(r.status) && WTERMSIG(r.status) == 9);
	ck_assert_int_eq(r.shells, 0);
	result_of(&r, by_wean_popen_and_shell, "tool kill 9");
	ck_assert(r.status == 9 || r.status == 137 << 8);
	ck_assert_int_eq(r.shells, 1);
}
END_TEST

static Suite *alike_suite(void)
{
	Suite *s = suite_create("popen alike");
	TCase *t = tcase_create("alike");

	tcase_add_checked_fixture(t, prepare, scratch_remove);
	tcase_add_loop_test(t, a_text_gives_the_same_with_and_without_a_shell, 0, 4);
	tcase_add_test(t, each_character_between_words_gives_the_same);
	tcase_add_test(t, each_character_within_the_first_word_gives_the_same);
	tcase_add_test(t, each_first_character_gives_the_same);
	tcase_add_test(t, a_text_that_begins_like_an_option_is_a_command);
	tcase_add_loop_test(t, whatever_path_is_the_same_program_is_found, 0, COUNT(paths));
	tcase_add_loop_test(t, pwd_is_what_a_shell_makes_it, 0, 7);
	tcase_add_test(t, where_the_directory_is_gone_a_shell_is_asked);
	tcase_add_test(t, a_very_long_text_gives_the_same);
	tcase_add_test(t, a_command_that_is_killed_is_told_as_killed);
	suite_add_tcase(s, t);
	return s;
}

RUN_WITH_STDIO_ALONE(alike_suite)
