/* wean(1): how the program ended, for other programs to read. */
#include <stdio.h>

#include "main.h"

/* ---- text ---- */

/* The bytes of the UTF-8 character that s begins with; 0: it begins with none. */
static int
character(const unsigned char *s)
{
	int n = *s < 0x80 ? 1 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;

	if ((*s >= 0x80 && *s < 0xc2) || *s > 0xf4)
		return 0;
	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f)
	    || (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* A byte that is no text becomes the character that stands for such. */
static void
put_string(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	int n;

	fputc('"', stderr);
	for (; *s; s += n ? n : 1) {
		n = character(s);
		if (n == 0)
			fputs("\\ufffd", stderr);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(stderr, "\\u%04x", *s);
		else if (*s == '"' || *s == '\\')
			fprintf(stderr, "\\%c", *s);
		else
			fwrite(s, 1, (size_t)n, stderr);
	}
	fputc('"', stderr);
}

/* ---- members ---- */

static void
member(const char *name, const char *text)
{
	fprintf(stderr, ", \"%s\": ", name);
	put_string(text);
}

static void
member_number(const char *name, long long n)
{
	fprintf(stderr, ", \"%s\": %lld", name, n);
}

static void
member_truth(const char *name, unsigned is)
{
	fprintf(stderr, ", \"%s\": %s", name, is ? "true" : "false");
}

static const char *
kind_name(int kind)
{
	static const char *const names[] = { "running", "exited", "signaled", "unknown" };

	return names[kind];
}

static void
tell_status(const struct wean_result *r)
{
	const struct wean_status *s = &r->status;

	member("status", kind_name(s->kind));
	member_number("value", s->value);
	member_number("code", s->code);
	member_truth("core", s->core != 0);
	member_truth("timed_out", r->flags & WEAN_TIMED_OUT);
	member_number("user_us", s->user_us);
	member_number("system_us", s->system_us);
	member_number("maxrss_kb", s->maxrss_kb);
	member_number("pid", r->child.pid);
	member("method", wean_method_name(r->child.method));
}

static void
tell_outputs(const struct wean_result *r)
{
	member_number("out_bytes", (long long)r->out_len);
	member_truth("out_cut", r->flags & WEAN_OUT_TRUNCATED);
	member_number("err_bytes", (long long)r->err_len);
	member_truth("err_cut", r->flags & WEAN_ERR_TRUNCATED);
	member_truth("still_open", r->flags & WEAN_STILL_OPEN);
}

static void
tell_failure(const struct end *end)
{
	member("status", "not started");
	member("stage", wean_stage_name(end->result->child.stage));
	member_number("errno", end->error);
	member("error", end->complaint);
}

void
command_tell_json(const struct command *c, const struct end *end)
{
	fputs("{\"program\": ", stderr);
	put_string(c->argv[0]);
	member_number("exit", end->code);
	if (end->complaint)
		tell_failure(end);
	else
		tell_status(end->result);
	member_number("elapsed_us", end->elapsed_us);
	if (c->captures && !end->complaint)
		tell_outputs(end->result);
	fputs("}\n", stderr);
}
