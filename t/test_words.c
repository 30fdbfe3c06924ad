/* test_words.c - which command texts need no shell, and their words. */
#define _GNU_SOURCE
#include "common.h"

#include "../src/words.h"

/* The words, each between < and >; "sh": it needs a shell.  Asserts that as many are cut
   as were counted. */
static const char *words_of(const char *text)
{
	static char joined[2000];
	char copy[500], *list[300];
	size_t n = wean_words_count(text), len = 0;

	if (n == 0)
		return "sh";
	strcpy(copy, text);
	list[n + 1] = copy;
	wean_words_cut(copy, list);
	ck_assert_ptr_null(list[n]);
	ck_assert_ptr_eq(list[n + 1], copy);
	for (size_t i = 0; i < n; i++)
		len += (size_t)sprintf(joined + len, "<%s>", list[i]);
	return joined;
}

static const struct {
	const char *text, *words;
} texts[] = {
	{ "ls", "<ls>" },
	{ "ls -l /tmp", "<ls><-l></tmp>" },
	{ " \t ls\t-l  /tmp \t", "<ls><-l></tmp>" },
	{ "./x", "<./x>" },
	{ "../a/b.c _d 7", "<../a/b.c><_d><7>" },
	{ "cc -DA=1 -I../x,y:z +w @f 50% if", "<cc><-DA=1><-I../x,y:z><+w><@f><50%><if>" },
	{ "a%b a", "<a%b><a>" },
	{ "/bin/echo -n", "</bin/echo><-n>" },
	{ "catalog", "<catalog>" },
	{ "iff", "<iff>" },
	{ "i", "<i>" },
	/* nothing to start */
	{ "", "sh" },
	{ " \t", "sh" },
	/* an assignment, a job, an option of the shell's */
	{ "A=1", "sh" },
	{ "A=1 ls", "sh" },
	{ "./a=b", "sh" },
	{ "%1", "sh" },
	{ "-x", "sh" },
	{ "+x ls", "sh" },
	{ " -c", "sh" },
	/* not ASCII */
	{ "ls \xc3\xa9", "sh" },
	{ "ls \xa0", "sh" },
};

START_TEST(plain_words_need_no_shell)
{
	ck_assert_str_eq(words_of(texts[_i].text), texts[_i].words);
}
END_TEST

START_TEST(every_other_character_needs_one)
{
	static const char plain[] = "_-./,:+@%= \t";

	for (int c = 1; c < 256; c++) {
		char text[] = { 'x', ' ', 'a', (char)c, 'b', '\0' };
		int is_plain = (c < 128 && strchr(plain, c)) || (c >= '0' && c <= '9')
		            || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		ck_assert_msg((wean_words_count(text) != 0) == is_plain, "character %d", c);
	}
}
END_TEST

/* Of dash, bash and ash of busybox, as they tell them, and the reserved words of POSIX and
   bash. */
static const char own[] =
	". : alias bg bind break builtin caller case cd chdir command compgen complete compopt "
	"continue coproc declare dirs disown do done echo elif else enable esac eval exec exit "
	"export false fc fg fi for function getopts hash help history if in jobs kill let local "
	"logout mapfile popd printf pushd pwd read readarray readonly return select set shift "
	"shopt source suspend test then time times trap true type typeset ulimit umask unalias "
	"unset until wait while print whence nameref";

START_TEST(a_name_of_the_shell_s_own_needs_it)
{
	char names[sizeof own], text[40];
	int n = 0;

	strcpy(names, own);
	for (char *name = strtok(names, " "); name; name = strtok(NULL, " "), n++) {
		sprintf(text, "%s x", name);
		ck_assert_msg(wean_words_count(name) == 0 && wean_words_count(text) == 0,
		              "%s", name);
		sprintf(text, "x %s", name);
		ck_assert_msg(wean_words_count(text) == 2, "%s", text);
		sprintf(text, "/bin/%s", name);
		ck_assert_msg(wean_words_count(text) == 1, "%s", text);
	}
	ck_assert_int_gt(n, 80);
}
END_TEST

static const struct {
	const char *word, *path, *more;
	int alike;
} searches[] = {
	{ "ls", "PATH=/bin", "A=B", 1 },
	{ "ls", "PATH=/bin:/usr/bin", "A=B", 1 },
	{ "ls", "PATH=", "A=B", 0 },
	{ "ls", "PATH=:/bin", "A=B", 0 },
	{ "ls", "PATH=/bin:", "A=B", 0 },
	{ "ls", "PATH=/bin::/usr/bin", "A=B", 0 },
	{ "ls", "PATH=/bin:.", "A=B", 0 },
	{ "ls", "PATH=/bin:x:/usr/bin", "A=B", 0 },
	{ "ls", "PATH=~/bin", "A=B", 0 },
	{ "ls", "PATH=/a%func:/bin", "A=B", 0 },
	{ "ls", "PATHS=/bin", "A=B", 0 },
	{ "./ls", "PATHS=/bin", "A=B", 1 },
	{ "/bin/ls", "PATH=.", "A=B", 1 },
	/* a function that bash takes from its environment */
	{ "ls", "PATH=/bin", "BASH_FUNC_ls%%=() {  :\n}", 0 },
	{ "/bin/ls", "PATH=/bin", "BASH_FUNC_/bin/ls%%=() {  :\n}", 0 },
	{ "ls", "PATH=/bin", "BASH_FUNC_lsx%%=() {  :\n}", 1 },
	{ "lsx", "PATH=/bin", "BASH_FUNC_ls%%=() {  :\n}", 1 },
	{ "ls", "PATH=/bin", "XBASH_FUNC_ls%%=() {  :\n}", 1 },
	{ "ls", "PATH=/bin", "BASH_FUNC_ls()=() {  :\n}", 0 },
	{ "ls", "PATH=/bin", "BASH_FUNC_ls.old()=() {  :\n}", 1 },
	/* options of bash, as in a script that exports what "set -x" has set */
	{ "ls", "PATH=/bin", "SHELLOPTS=xtrace", 0 },
	{ "/bin/ls", "PATH=/bin", "SHELLOPTS=noexec", 0 },
};

START_TEST(where_a_shell_might_find_something_else_it_is_asked)
{
	char path[100], more[100], *env[] = { path, more, NULL };

	strcpy(path, searches[_i].path);
	strcpy(more, searches[_i].more);
	ck_assert_int_eq(wean_words_found_by_all(searches[_i].word, env), searches[_i].alike);
}
END_TEST

START_TEST(without_an_environment_a_shell_is_asked)
{
	char *none[] = { NULL };

	ck_assert_int_eq(wean_words_found_by_all("ls", none), 0);
	ck_assert_int_eq(wean_words_found_by_all("ls", NULL), 0);
	ck_assert_int_eq(wean_words_found_by_all("/ls", NULL), 1);
}
END_TEST

static Suite *words_suite(void)
{
	Suite *s = suite_create("words");
	TCase *t = tcase_create("words");

	tcase_add_loop_test(t, plain_words_need_no_shell, 0, sizeof texts / sizeof *texts);
	tcase_add_test(t, every_other_character_needs_one);
	tcase_add_test(t, a_name_of_the_shell_s_own_needs_it);
	tcase_add_loop_test(t, where_a_shell_might_find_something_else_it_is_asked, 0,
	                    sizeof searches / sizeof *searches);
	tcase_add_test(t, without_an_environment_a_shell_is_asked);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(words_suite)
