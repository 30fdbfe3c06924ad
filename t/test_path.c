/* test_path.c - the candidates that a search in PATH tries. */
#define _GNU_SOURCE
#include "common.h"

#include "../src/env.h"
#include "../src/path.h"

/* The candidates, joined by blanks.  Asserts that what was counted is what is written,
   to the byte. */
static const char *candidates(const char *path, const char *name)
{
	static char joined[1 << 16];
	size_t bytes = 4711, n = wean_path_count(path, name, &bytes), len = 0, used = 0;
	char **list = malloc((n + 2) * sizeof *list), *text = malloc(bytes + 1);
	char canary[1];

	ck_assert(list && text);
	list[n + 1] = canary;
	text[bytes] = '!';
	wean_path_list(path, name, text, list);
	ck_assert_ptr_null(list[n]);
	ck_assert_ptr_eq(list[n + 1], canary);
	ck_assert_int_eq(text[bytes], '!');
	joined[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		ck_assert_ptr_nonnull(list[i]);
		ck_assert_ptr_eq(list[i], text + used);
		used += strlen(list[i]) + 1;
		len += (size_t)snprintf(joined + len, sizeof joined - len, "%s%s",
		                        i ? " " : "", list[i]);
		ck_assert_uint_lt(len, sizeof joined);
	}
	ck_assert_uint_eq(used, bytes);
	free(list);
	free(text);
	return joined;
}

static const struct {
	const char *path, *candidates;
} rules[] = {
	{ "/usr/bin", "/usr/bin/x" },
	{ "/a:/b:/c", "/a/x /b/x /c/x" },
	{ "/b:/a:/b", "/b/x /a/x /b/x" },
	{ "/", "//x" },
	{ "/a/", "/a//x" },
	{ "/a b:/c", "/a b/x /c/x" },
	/* empty elements mean the current directory to others */
	{ "", "" },
	{ ":", "" },
	{ ":::", "" },
	{ ":/a", "/a/x" },
	{ "/a:", "/a/x" },
	{ "/a::", "/a/x" },
	{ "/a::/b", "/a/x /b/x" },
	{ "::/a:::/b::", "/a/x /b/x" },
	/* and so do relative ones */
	{ ".", "" },
	{ "..", "" },
	{ "bin", "" },
	{ "./bin:/a", "/a/x" },
	{ "/a:bin", "/a/x" },
	{ "/a:.:/b", "/a/x /b/x" },
	{ "~/bin:/a", "/a/x" },
	{ " /a:/b", "/b/x" },
	{ "bin:./x:..", "" },
};

START_TEST(absolute_elements_are_tried_in_order_and_others_never)
{
	ck_assert_str_eq(candidates(rules[_i].path, "x"), rules[_i].candidates);
}
END_TEST

START_TEST(the_default_path_has_three_elements)
{
	ck_assert_str_eq(candidates(WEAN_DEFAULT_PATH, "ls"),
	                 "/usr/local/bin/ls /usr/bin/ls /bin/ls");
}
END_TEST

START_TEST(a_long_path_and_a_long_name_are_kept_whole)
{
	char element[6000], name[300], path[6100], expected[6400];

	memset(element, 'e', sizeof element - 1);
	element[0] = '/';
	element[sizeof element - 1] = '\0';
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	snprintf(path, sizeof path, "/a:%s:/b", element);
	snprintf(expected, sizeof expected, "/a/%s", name);
	const char *all = candidates(path, name);
	ck_assert_int_eq(strncmp(all, expected, strlen(expected)), 0);
	ck_assert_uint_eq(strlen(all), 2 + strlen(element) + 2 + 2 + 3 * (1 + strlen(name)));
}
END_TEST

START_TEST(a_thousand_elements_are_a_thousand_candidates)
{
	char path[16000];
	size_t len = 0, bytes;

	for (int i = 0; i < 1000; i++)
		len += (size_t)snprintf(path + len, sizeof path - len, "/d%d:.:", i);
	ck_assert_uint_eq(wean_path_count(path, "prog", &bytes), 1000);
	const char *all = candidates(path, "prog");
	ck_assert_int_eq(strncmp(all, "/d0/prog /d1/prog ", 18), 0);
	ck_assert_str_eq(all + strlen(all) - 10, "/d999/prog");
}
END_TEST

/* Every path of up to seven of these characters, against the rule in plain words. */
START_TEST(every_short_path_gives_its_absolute_elements)
{
	static const char letters[] = ":/a.";
	char path[8], expected[64];

	for (int length = 0; length <= 7; length++)
		for (int code = 0; code < 1 << 2 * length; code++) {
			size_t len = 0;

			for (int i = 0; i < length; i++)
				path[i] = letters[code >> 2 * i & 3];
			path[length] = '\0';
			expected[0] = '\0';
			for (const char *at = path; at; at = strchr(at, ':'), at += at ? 1 : 0)
				if (*at == '/')
					len += (size_t)snprintf(expected + len, sizeof expected - len,
					                        "%s%.*s/x", len ? " " : "",
					                        (int)strcspn(at, ":"), at);
			const char *all = candidates(path, "x");
			if (strcmp(all, expected))
				ck_abort_msg("'%s' gives '%s', not '%s'", path, all, expected);
		}
}
END_TEST

static Suite *path_suite(void)
{
	Suite *s = suite_create("path");
	TCase *c = tcase_create("candidates");

	tcase_add_loop_test(c, absolute_elements_are_tried_in_order_and_others_never, 0,
	                    sizeof rules / sizeof *rules);
	tcase_add_test(c, the_default_path_has_three_elements);
	tcase_add_test(c, a_long_path_and_a_long_name_are_kept_whole);
	tcase_add_test(c, a_thousand_elements_are_a_thousand_candidates);
	tcase_add_test(c, every_short_path_gives_its_absolute_elements);
	suite_add_tcase(s, c);
	return s;
}

RUN_SUITE(path_suite)
