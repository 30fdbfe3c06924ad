#include "utf8.h"

/* The range of the byte that may follow a first one; for the later ones it is the whole
   of 80..BF.  (RFC 3629, section 4.) */
static int
may_follow(unsigned char first, unsigned char second)
{
	unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

	return second >= low && second <= high;
}

static size_t
length_by_first(unsigned char first)
{
	return first < 0xc2 || first > 0xf4 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t
wean_utf8_whole(const char *text, size_t len)
{
	const unsigned char *t = (const unsigned char *)text;
	size_t at = len, have;

	while (at > 0 && len - at < 3 && (t[at - 1] & 0xc0) == 0x80)
		at--;
	if (at == 0)
		return len;
	have = len - --at;
	if (have >= length_by_first(t[at]) || (have > 1 && !may_follow(t[at], t[at + 1])))
		return len;
	return at;
}
