/* test_maps.c - real children report their own descriptors: all maps of four onto four,
   and many random ones.  WEAN_SEED=N repeats a run. */
#define _GNU_SOURCE
#include "descriptors.h"

enum {
	LIMIT = 2000,
	POOL = 300,         /* numbers that entries are made of, */
	FAR = LIMIT - 20,   /* and twenty below the limit */
	NOTHING = -1,
	DEV_NULL = -2
};

/* The caller's table: which numbers are open, and what file is there. */
static ino_t inodes[LIMIT];
static char is_open[LIMIT];      /* 1, or 2: close-on-exec */
static ino_t null_inode;

static void look_at_caller(void)
{
	struct stat st;

	ck_assert_int_eq(stat("/dev/null", &st), 0);
	null_inode = st.st_ino;
	for (int fd = 0; fd < LIMIT; fd++) {
		int flags = fcntl(fd, F_GETFD);
		is_open[fd] = flags < 0 ? 0 : flags & FD_CLOEXEC ? 2 : 1;
		if (flags >= 0 && !fstat(fd, &st))
			inodes[fd] = st.st_ino;
	}
}

/* ---- what the child should have ------------------------------------------ */

struct map {
	struct wean_options o;
	struct wean_fd fds[POOL];
	int entry[LIMIT];       /* of a number of the child's, or NOTHING */
};

static int stdio_at(const struct map *m, int n)
{
	const int kinds[] = { m->o.in, m->o.out, m->o.err };

	switch (kinds[n]) {
	case WEAN_NULL:
		return DEV_NULL;
	case WEAN_CLOSED:
		return NOTHING;
	default:
		return n;
	}
}

enum { SAME_BASE = -10000 };

static int direct(const struct map *m, int n)
{
	const struct wean_fd *e = m->fds + m->entry[n];

	if (m->entry[n] == NOTHING && n <= 2)
		return n == 2 && m->o.err == WEAN_MERGE ? SAME_BASE - 1 : stdio_at(m, n);
	if (m->entry[n] == NOTHING)
		return m->o.flags & WEAN_INHERIT_ALL && is_open[n] == 1 ? n : NOTHING;
	switch (e->kind) {
	case WEAN_DUP:
		return e->source;
	case WEAN_KEEP:
		return n;
	case WEAN_SAME:
		return SAME_BASE - e->source;
	case WEAN_NULL:
		return DEV_NULL;
	default:
		return NOTHING;
	}
}

/* The caller's number, NOTHING (also for a cycle) or DEV_NULL. */
static int expected(const struct map *m, int n)
{
	int is = direct(m, n);

	for (int hops = 0; is <= SAME_BASE && hops <= LIMIT; hops++)
		is = direct(m, SAME_BASE - is);
	return is <= SAME_BASE ? NOTHING : is;
}

static int is_valid(const struct map *m)
{
	for (size_t i = 0; i < m->o.nfds; i++)
		if (m->fds[i].kind == WEAN_SAME && expected(m, m->fds[i].target) == NOTHING)
			return 0;
	return m->o.err != WEAN_MERGE || expected(m, 2) != NOTHING;
}

/* ---- what it has --------------------------------------------------------- */

static void wrong(const struct map *m, const char *what, int n)
{
	fprintf(stderr, "flags %#llx in %d out %d err %d", m->o.flags, m->o.in, m->o.out,
	        m->o.err);
	for (size_t i = 0; i < m->o.nfds; i++)
		fprintf(stderr, " {%d %d<-%d}", m->fds[i].kind, m->fds[i].target,
		        m->fds[i].source);
	ck_abort_msg("%s: %d", what, n);
}

static void compare(const struct map *m, const struct report *r)
{
	static int numbers[LIMIT];
	size_t n = report_fds(r, numbers, LIMIT), at = 0;

	for (int fd = 0; fd < LIMIT; fd++) {
		int is = expected(m, fd), there = at < n && numbers[at] == fd;

		if (there != (is != NOTHING))
			wrong(m, there ? "is there" : "is missing", fd);
		if (there && report_fd(r, fd)->ino != (is < 0 ? null_inode : inodes[is]))
			wrong(m, "is another file", fd);
		at += (size_t)there;
	}
	if (at < n)
		wrong(m, "is there", numbers[at]);
}

static void must_hold(struct map *m, char **argv)
{
	struct wean_status status;
	struct wean_child child;
	int error;

	m->o.fds = m->fds;
	if ((error = wean_spawn(&child, argv, &m->o)) != 0)
		wrong(m, strerror(error), child.index);
	if (wean_wait(&child, -1, &status) || status.code)
		wrong(m, "ends with", status.code);
	wean_release(&child);
	struct report *r = report_read_file(argv[2]);
	if (!r)
		wrong(m, "no report", 0);
	compare(m, r);
	report_free(r);
}

/* ---- all small maps ------------------------------------------------------ */

static void new_map(struct map *m, unsigned long long flags)
{
	memset(&m->o, 0, sizeof m->o);
	m->o.flags = flags;
	memset(m->entry, 0xff, sizeof m->entry);
}

static void add(struct map *m, int kind, int target, int source)
{
	m->entry[target] = (int)m->o.nfds;
	m->fds[m->o.nfds++] = (struct wean_fd){ .kind = kind, .target = target,
	                                        .source = source };
}

static const unsigned long long ways[] = { 0, WEAN_NO_SHARED_MEMORY, WEAN_INHERIT_ALL };

/* Half of them each way, or of a part of them: t/test_table.c has all of them for each
   kind of table. */
START_TEST(all_maps_of_four_onto_four)
{
	enum { FIRST = 4, ALL = 5 * 5 * 5 * 5 };
	int step = ALL / scaled(ALL) | 1; /* odd: in a part of them too there are both ways */
	char *path = report_path(), *argv[] = { kid(), (char[]){ "report" }, path, NULL };
	static struct map m;
	struct baseline b;

	for (int fd = FIRST; fd < FIRST + 4; fd++)
		open_at(fd);
	look_at_caller();
	baseline_take(&b);
	for (int code = 0; code < ALL; code += step) {
		new_map(&m, ways[code % 2]);
		for (int i = 0, rest = code; i < 4; i++, rest /= 5)
			if (rest % 5)
				add(&m, WEAN_DUP, FIRST + i, FIRST + rest % 5 - 1);
		must_hold(&m, argv);
	}
	errno = b.error;
	baseline_same(&b);
	unlink(path);
	free(path);
}
END_TEST

/* ---- random ones --------------------------------------------------------- */

static int any(int n)
{
	return (int)(random() % n);
}

/* Half of the pool, some of it close-on-exec, and all of the far ones. */
static void open_pool(void)
{
	for (int fd = 0; fd < LIMIT; fd++) {
		if ((fd < 4 || fd >= POOL || any(2)) && fd < FAR)
			continue;
		open_at(fd);
		if (any(4) == 0)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
}

static int number_from_pool(void)
{
	return any(10) ? any(POOL) : FAR + any(20);
}

static int open_number(void)
{
	int n;

	do
		n = number_from_pool();
	while (!is_open[n]);
	return n;
}

static void add_random(struct map *m)
{
	int target = number_from_pool(), dice = any(20);

	if (m->entry[target] != NOTHING)
		return;
	if (dice < 13)
		add(m, WEAN_DUP, target, open_number());
	else if (dice < 15 && is_open[target])
		add(m, WEAN_KEEP, target, 0);
	else if (dice < 16)
		add(m, WEAN_NULL, target, 0);
	else if (dice < 17)
		add(m, WEAN_CLOSED, target, 0);
	else if (m->o.nfds > 0)
		add(m, WEAN_SAME, target, m->fds[any((int)m->o.nfds)].target);
}

/* A permutation of some of the open numbers among themselves. */
static void add_cycle(struct map *m, int length)
{
	int first = open_number(), at = first;

	if (m->entry[first] != NOTHING)
		return;
	for (int i = 1; i < length; i++) {
		int source = open_number();
		if (source == first || m->entry[source] != NOTHING || m->entry[at] != NOTHING)
			continue;
		add(m, WEAN_DUP, at, source);
		at = source;
	}
	if (m->entry[at] == NOTHING)
		add(m, WEAN_DUP, at, first);
}

static void random_map(struct map *m, int size)
{
	static const int kinds[] = { 0, WEAN_INHERIT, WEAN_NULL, WEAN_CLOSED };

	new_map(m, ways[any(3)]);
	if (any(3) == 0)
		add_cycle(m, 2 + any(12));
	while ((int)m->o.nfds < size)
		add_random(m);
	if (m->entry[0] == NOTHING)
		m->o.in = kinds[any(4)];
	if (m->entry[1] == NOTHING)
		m->o.out = kinds[any(4)];
	if (m->entry[2] == NOTHING)
		m->o.err = any(5) ? kinds[any(4)] : WEAN_MERGE;
}

static unsigned seed(void)
{
	return getenv("WEAN_SEED") ? (unsigned)atoi(getenv("WEAN_SEED")) : 19002;
}

START_TEST(random_maps_of_up_to_two_hundred_entries)
{
	char *path = report_path(), *argv[] = { kid(), (char[]){ "report" }, path, NULL };
	static struct map m;
	struct baseline b;

	NEED_DESCRIPTORS(LIMIT);
	ck_assert_int_eq(set_limit(LIMIT), 0);
	printf("seed %u\n", seed());
	srandom(seed());
	open_pool();
	look_at_caller();
	baseline_take(&b);
	for (int done = 0, n = scaled(250); done < n; ) {
		random_map(&m, done == 0 ? 200 : any(4) ? any(20) : any(201));
		if (!is_valid(&m))
			continue;
		must_hold(&m, argv);
		done++;
	}
	errno = b.error;
	baseline_same(&b);
	unlink(path);
	free(path);
}
END_TEST

static Suite *maps_suite(void)
{
	Suite *s = suite_create("maps");
	TCase *small = tcase_create("small"), *random = tcase_create("random");

	tcase_set_timeout(small, 300);
	tcase_set_timeout(random, 300);
	tcase_set_tags(random, "table");
	tcase_add_test(small, all_maps_of_four_onto_four);
	tcase_add_test(random, random_maps_of_up_to_two_hundred_entries);
	suite_add_tcase(s, small);
	suite_add_tcase(s, random);
	return s;
}

RUN_WITH_STDIO_ALONE(maps_suite)
