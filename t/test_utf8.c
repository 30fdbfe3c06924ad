/* test_utf8.c - wean_utf8_whole(): a character that the end cuts is left out, and no byte
   else, whatever the bytes are. */
#define _GNU_SOURCE
#include "descriptors.h"

#include "../src/utf8.h"

static void assert_whole(const char *text, size_t len, size_t wanted)
{
	/* No byte before or behind it: valgrind and a sanitizer see who looks there. */
	char *copy = malloc(len ? len : 1);
	size_t got;

	memcpy(copy, text, len);
	got = wean_utf8_whole(copy, len);
	if (got != wanted)
		ck_abort_msg("%02x %02x %02x %02x, %zu bytes: %zu, wanted %zu",
		             len > 0 ? (unsigned char)text[0] : 0, len > 1 ? (unsigned char)text[1] : 0,
		             len > 2 ? (unsigned char)text[2] : 0, len > 3 ? (unsigned char)text[3] : 0,
		             len, got, wanted);
	free(copy);
}

/* The usual way from a code point. */
static size_t encode(unsigned long code, char *text)
{
	if (code < 0x80) {
		text[0] = (char)code;
		return 1;
	}
	size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, code >>= 6)
		text[i] = (char)(0x80 | (code & 0x3f));
	text[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | code);
	return n;
}

START_TEST(every_cut_of_every_character_goes_back_to_its_begin)
{
	static const char *const before[] = { "", "a", "\xc3\xa4", "\xe2\x82\xac", "\x80", "\xff" };

	for (size_t b = 0; b < COUNT(before); b++)
		for (unsigned long code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 61) {
			char text[16];
			size_t at = strlen(before[b]), n;

			if (code >= 0xd800 && code < 0xe000)
				continue; /* none */
			memcpy(text, before[b], at);
			n = encode(code, text + at);
			for (size_t cut = 1; cut < n; cut++)
				assert_whole(text, at + cut, at);
			assert_whole(text, at + n, at + n);
		}
}
END_TEST

/* All pairs: what may be the begin of a character by RFC 3629's table is cut. */
START_TEST(every_pair_of_bytes_is_cut_by_the_table)
{
	static const struct { int first, last, low, high; } table[] = {
		{ 0xe0, 0xe0, 0xa0, 0xbf }, { 0xe1, 0xec, 0x80, 0xbf }, { 0xed, 0xed, 0x80, 0x9f },
		{ 0xee, 0xef, 0x80, 0xbf }, { 0xf0, 0xf0, 0x90, 0xbf }, { 0xf1, 0xf3, 0x80, 0xbf },
		{ 0xf4, 0xf4, 0x80, 0x8f },
	};

	for (int a = 0; a < 256; a++)
		for (int b = 0; b < 256; b++) {
			char text[2] = { (char)a, (char)b };
			size_t wanted = b >= 0xc2 && b <= 0xf4 ? 1 : 2;

			for (size_t i = 0; i < COUNT(table); i++)
				if (a >= table[i].first && a <= table[i].last && b >= table[i].low
				    && b <= table[i].high)
					wanted = 0;
			assert_whole(text, 2, wanted);
		}
}
END_TEST

START_TEST(what_is_no_utf8_is_left_as_it_is)
{
	static const struct { const char *text; size_t wanted; } rows[] = {
		{ "", 0 },
		{ "\x80", 1 }, { "\xbf\xbf", 2 }, { "\x80\x80\x80\x80\x80", 5 }, /* never begun */
		{ "a\x80", 2 }, { "a\x80\x80", 3 }, { "a\x80\x80\x80", 4 },
		{ "\xc0", 1 }, { "\xc1", 1 }, { "\xc0\x80", 2 },                 /* too long */
		{ "\xe0\x80", 2 }, { "\xe0\x80\x80", 3 }, { "\xf0\x80\x80", 3 },
		{ "\xed\xa0", 2 }, { "\xed\xbf\xbf", 3 },                        /* surrogates */
		{ "\xf4\x90", 2 }, { "\xf4\x90\x80", 3 },                        /* too high */
		{ "\xf5", 1 }, { "\xf8\x88", 2 }, { "\xfe", 1 }, { "\xff", 1 },
		{ "\xc3\xa4\x80", 3 }, { "\xf0\x9f\x98\x80\x80", 5 },            /* one too many */
		{ "\xe2\x82\xe2", 2 }, { "\xf0\x9f\x98\xc3", 3 },                /* a new one */
		{ "\xe2\x82" "a", 3 }, { "\xf0" "a", 2 },                        /* given up */
		{ "\xf0\x9f\x98", 0 }, { "\xf0\x9f", 0 }, { "\xf0", 0 },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		assert_whole(rows[i].text, strlen(rows[i].text), rows[i].wanted);
}
END_TEST

/* And those are the begin of one. */
START_TEST(any_bytes_lose_three_at_most)
{
	static const unsigned char kinds[] = {
		0, 'a', 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef,
		0xf0, 0xf1, 0xf4, 0xf5, 0xff,
	};
	const size_t n = sizeof kinds;

	for (size_t i = 0; i < n * n * n * n; i++) {
		char text[4] = { (char)kinds[i % n], (char)kinds[i / n % n],
		                 (char)kinds[i / n / n % n], (char)kinds[i / n / n / n] };
		size_t len = wean_utf8_whole(text, 4);

		if (len < 1 || len > 4)
			ck_abort_msg("%zu left of 4", len);
		if (len < 4 /* what went began as a character does */
		    && ((unsigned char)text[len] < 0xc2 || (unsigned char)text[len] > 0xf4))
			ck_abort_msg("%02x begins none", (unsigned char)text[len]);
	}
}
END_TEST

static Suite *utf8_suite(void)
{
	Suite *s = suite_create("utf8");
	TCase *t = tcase_create("utf8");

	tcase_add_test(t, every_cut_of_every_character_goes_back_to_its_begin);
	tcase_add_test(t, every_pair_of_bytes_is_cut_by_the_table);
	tcase_add_test(t, what_is_no_utf8_is_left_as_it_is);
	tcase_add_test(t, any_bytes_lose_three_at_most);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(utf8_suite)
