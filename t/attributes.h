/* attributes.h - for the tests of what a child is, besides what it holds. */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#include "count.h"
#include "spawning.h"

/* ---- the caller ---- */

static inline void read_line(const char *path, const char *prefix, char *line, int size)
{
	FILE *f = fopen(path, "re");

	while (f && fgets(line, size, f) && strncmp(line, prefix, strlen(prefix)))
		;
	if (f)
		fclose(f);
	else
		*line = '\0';
}

/* What a baseline does not have, as a text: no start changes it. */
static inline void self(char *text, size_t size)
{
	char cgroup[512], groups[512] = "", pending[64] = "";
	int death = 0;

	read_line("/proc/thread-self/cgroup", "0::", cgroup, sizeof cgroup);
	read_line("/proc/thread-self/status", "Groups:", groups, sizeof groups);
	read_line("/proc/thread-self/status", "SigPnd:", pending, sizeof pending);
	prctl(PR_GET_PDEATHSIG, &death);
	snprintf(text, size, "group %d, session %d, uid %d %d, gid %d %d, nice %d, "
	         "dumpable %d, no-new-privs %d, pdeathsig %d, %s %s %s", (int)getpgrp(),
	         (int)getsid(0), (int)getuid(), (int)geteuid(), (int)getgid(),
	         (int)getegid(), getpriority(PRIO_PROCESS, 0), prctl(PR_GET_DUMPABLE),
	         prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), death, groups, pending, cgroup);
}

enum { SELF_TEXT = 2048 };

/* ---- what comes of a request ---- */

/* kid_report(), and the caller is as it was. */
static inline struct report *reported(const struct wean_options *opt)
{
	char before[SELF_TEXT], after[SELF_TEXT];
	struct baseline b;

	self(before, sizeof before);
	baseline_take(&b);
	struct report *r = kid_report(opt);
	baseline_same(&b);
	self(after, sizeof after);
	ck_assert_str_eq(before, after);
	return r;
}

static inline void reports(const struct wean_options *opt, const char *key,
                           const char *value)
{
	struct report *r = reported(opt);

	ck_assert_str_eq(report_value(r, key), value);
	report_free(r);
}

static inline int ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len > n && strcmp(text + len - n, end) == 0;
}

/* refused(), with exactly this sentence, or with one that ends so: "...: it". */
static inline void refused_saying(const struct wean_options *opt, struct refusal r,
                                  const char *sentence)
{
	char before[SELF_TEXT], after[SELF_TEXT], text[512];
	char **argv = KID("exit", "0");
	struct wean_child child;

	self(before, sizeof before);
	refused_as(&child, sentence, argv, opt, r);
	self(after, sizeof after);
	ck_assert_str_eq(before, after);
	errno = BASELINE_ERRNO;
	ck_assert_int_eq(wean_explain(&child, argv, opt, r.error, text, sizeof text), 0);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	if (strncmp(sentence, "...", 3) == 0)
		ck_assert_msg(ends_with(text, sentence + 3), "%s", text);
	else
		ck_assert_str_eq(text, sentence);
}

/* For a request that is refused as a whole, whichever way it would have gone; test_explain
   has the sentences. */
static inline void refused_as_invalid(const struct wean_options *opt)
{
	for (int i = 0; i < WAYS; i++) {
		struct wean_options one = *opt;
		one.flags |= way(i);
		refused_saying(&one, (struct refusal){ EINVAL, WEAN_STAGE_OPTIONS, -1 },
		               "...: Invalid argument");
	}
}

/* A workload for count_calls(): a start with the options that arg points at. */
static inline int spawn_counted(void *arg)
{
	const struct wean_options *opt = arg;
	struct wean_child child;

	count_begin();
	int error = wean_spawn(&child, KID("exit", "0"), opt);
	count_end();
	if (!error)
		finish(&child);
	return error;
}

#endif
