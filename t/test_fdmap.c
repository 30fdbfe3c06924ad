/* test_fdmap.c - the order of the moves, against a table in memory. */
#define _GNU_SOURCE
#include "common.h"

#include "../src/fdmap.h"

/* Numbers of the small tables; the spare one is no source and no target. */
enum { SOURCES = 6, TARGETS = 6, SPARE = 12, ROOM = 13 };

/* ---- a table in memory --------------------------------------------------- */

struct table {
	int *file;          /* -1: closed */
	char *close_on_exec;
	int room;
};

static const char *carry_out(struct table *t, const struct fd_move *step)
{
	if (step->from < 0 || step->from >= t->room || step->to < 0 || step->to >= t->room)
		return "a step leaves the table";
	if (t->file[step->from] < 0)
		return "a step reads a closed number";
	t->file[step->to] = t->file[step->from];
	t->close_on_exec[step->to] = 0;
	return NULL;
}

/* wanted[to] is the source, -1 where nothing moves.  How many cycles there are, and
   which targets are on one; a number that only keeps itself needs no breaking. */
static size_t find_cycles(const int *wanted, int room, char *on_cycle)
{
	size_t cycles = 0;

	for (int n = 0; n < room; n++)
		on_cycle[n] = 0;
	for (int start = 0; start < room; start++) {
		int at = wanted[start], hops = 0;

		if (on_cycle[start] || at == start)
			continue;
		while (at >= 0 && at != start && hops++ < room)
			at = wanted[at];
		if (at != start)
			continue;
		cycles++;
		on_cycle[start] = 1;
		for (at = wanted[start]; at != start; at = wanted[at])
			on_cycle[at] = 1;
	}
	return cycles;
}

/* ---- one map ------------------------------------------------------------- */

enum { BASE = 100 }; /* the index of the move to n is BASE + n */

struct trial {
	const int *wanted;
	int room, spare;
	struct table now;
	char *on_cycle;
	struct fd_move *moves, *steps;
	size_t *scratch;
};

static void trial_new(struct trial *t, int room, int spare)
{
	size_t n = (size_t)room;

	memset(t, 0, sizeof *t);
	t->room = t->now.room = room;
	t->spare = spare;
	t->now.file = malloc(n * sizeof *t->now.file);
	t->now.close_on_exec = malloc(n);
	t->on_cycle = malloc(n);
	t->moves = malloc(n * sizeof *t->moves);
	t->steps = malloc((WEAN_FDMAP_STEPS(n) + 1) * sizeof *t->steps);
	t->scratch = malloc((3 * n + 1) * sizeof *t->scratch);
	ck_assert(t->now.file && t->now.close_on_exec && t->on_cycle && t->moves &&
	          t->steps && t->scratch);
}

static void trial_free(struct trial *t)
{
	free(t->now.file);
	free(t->now.close_on_exec);
	free(t->on_cycle);
	free(t->moves);
	free(t->steps);
	free(t->scratch);
}

static size_t write_moves(struct trial *t)
{
	size_t n = 0;

	for (int to = 0; to < t->room; to++)
		if (t->wanted[to] >= 0)
			t->moves[n++] = (struct fd_move){ t->wanted[to], to, BASE + to };
	return n;
}

static const char *check_step(const struct trial *t, const struct fd_move *step)
{
	int serves = step->index - BASE;

	if (serves < 0 || serves >= t->room || t->wanted[serves] < 0)
		return "a step serves no move";
	if (step->to == t->spare)
		return t->on_cycle[serves] ? NULL : "the spare number serves no cycle";
	return serves == step->to ? NULL : "a step tells another move's index";
}

/* Only sources are open, and all are close-on-exec. */
static void fill_table(struct trial *t)
{
	for (int i = 0; i < t->room; i++) {
		t->now.file[i] = -1;
		t->now.close_on_exec[i] = 1;
	}
	for (int to = 0; to < t->room; to++)
		if (t->wanted[to] >= 0)
			t->now.file[t->wanted[to]] = t->wanted[to];
}

static const char *check_end(const struct trial *t, int used_spare)
{
	for (int n = 0; n < t->room; n++) {
		int got = t->now.file[n];

		if (t->wanted[n] >= 0 && got != t->wanted[n])
			return "a target holds the wrong file";
		if (t->wanted[n] >= 0 && t->now.close_on_exec[n])
			return "a target is still close-on-exec";
		if (t->wanted[n] < 0 && !(n == t->spare && used_spare) && got != n && got >= 0)
			return "a number that is no target was overwritten";
	}
	return NULL;
}

/* NULL: all right.  Nothing of Check in here: a million of these are run. */
static const char *run_map(struct trial *t)
{
	size_t n = write_moves(t), cycles = find_cycles(t->wanted, t->room, t->on_cycle);
	const size_t canary = 0x7ea7;
	const char *wrong = NULL;
	int used_spare = -1;

	t->scratch[3 * n] = canary;
	t->steps[WEAN_FDMAP_STEPS(n)].index = BASE - 1;
	size_t nsteps = wean_fdmap_order(t->moves, n, t->spare, t->steps, t->scratch,
	                                 &used_spare);
	if (t->scratch[3 * n] != canary || t->steps[WEAN_FDMAP_STEPS(n)].index != BASE - 1)
		return "wrote beyond its room";
	if (nsteps != n + cycles)
		return "not one step a move and one more a cycle";
	if (used_spare != (cycles > 0))
		return "used_spare does not say whether there was a cycle";
	fill_table(t);
	for (size_t i = 0; i < nsteps && !wrong; i++)
		if (!(wrong = check_step(t, &t->steps[i])))
			wrong = carry_out(&t->now, &t->steps[i]);
	return wrong ? wrong : check_end(t, used_spare);
}

static void must_hold(struct trial *t)
{
	const char *wrong = run_map(t);

	if (!wrong)
		return;
	for (int to = 0; to < t->room; to++)
		if (t->wanted[to] >= 0)
			fprintf(stderr, "%d<-%d ", to, t->wanted[to]);
	ck_abort_msg("%s", wrong);
}

/* ---- the moves ----------------------------------------------------------- */

/* Each of six targets, from `first` on, gets one of the sources 0 to 5, its own number
   and duplicates included, or stays out. */
static long all_maps_at(struct trial *t, int *wanted, int first)
{
	long tried = 0;
	int choice[TARGETS] = { 0 }, place;

	do {
		for (int i = 0; i < TARGETS; i++)
			wanted[first + i] = choice[i] - 1;
		must_hold(t);
		tried++;
		for (place = 0; place < TARGETS && ++choice[place] > SOURCES; place++)
			choice[place] = 0;
	} while (place < TARGETS);
	return tried;
}

START_TEST(all_maps_of_six_sources_onto_six_targets_are_made_at_once)
{
	struct trial t;
	long tried = 0;

	trial_new(&t, ROOM, SPARE);
	for (int first = 0; first <= SOURCES; first++) {
		int wanted[ROOM];

		memset(wanted, 0xff, sizeof wanted);
		t.wanted = wanted;
		tried += all_maps_at(&t, wanted, first);
	}
	ck_assert_int_eq(tried, 7L * 117649);
	trial_free(&t);
}
END_TEST

static void shuffle(int *list, int n)
{
	for (int i = n - 1; i > 0; i--) {
		int k = (int)(random() % (i + 1)), kept = list[i];

		list[i] = list[k];
		list[k] = kept;
	}
}

START_TEST(two_thousand_random_maps_of_up_to_two_hundred_moves)
{
	enum { N = 200 };
	struct trial t;
	int wanted[N + 1];
	unsigned seed = getenv("WEAN_SEED") ? (unsigned)atoi(getenv("WEAN_SEED")) : 20140;

	printf("seed %u\n", seed);
	srandom(seed);
	trial_new(&t, N + 1, N);
	t.wanted = wanted;
	for (int round = 0; round < 2000; round++) {
		int n = 1 + (int)(random() % N);

		for (int i = 0; i <= N; i++)
			wanted[i] = i < n ? i : -1;
		if (round % 2)
			shuffle(wanted, n); /* cycles of all lengths */
		else
			for (int i = 0; i < n; i++)
				wanted[i] = random() % 4 ? (int)(random() % n) : -1;
		must_hold(&t);
	}
	trial_free(&t);
}
END_TEST

START_TEST(a_rotation_of_any_length_takes_one_step_more)
{
	static int wanted[5001];
	struct trial t;

	trial_new(&t, 5001, 5000);
	t.wanted = wanted;
	for (int n = 2; n <= 5000; n = n < 12 ? n + 1 : n * 5) {
		for (int i = 0; i <= 5000; i++)
			wanted[i] = i < n ? (i + 1) % n : -1;
		must_hold(&t);
	}
	trial_free(&t);
}
END_TEST

START_TEST(no_moves_are_no_steps)
{
	size_t scratch[1];
	int used_spare = 1;

	ck_assert_uint_eq(wean_fdmap_order(NULL, 0, 3, NULL, scratch, &used_spare), 0);
	ck_assert_int_eq(used_spare, 0);
}
END_TEST

/* ---- sets of numbers ----------------------------------------------------- */

START_TEST(a_set_is_sorted_and_has_each_number_once)
{
	for (int code = 0; code < 5 * 5 * 5 * 5 * 5; code++)
		for (size_t n = 0; n <= 5; n++) {
			int list[5], in[5] = { 0 }, rest = code;

			for (size_t i = 0; i < n; i++, rest /= 5)
				in[list[i] = rest % 5] = 1;
			struct fd_numbers set = { list, n };
			wean_fdmap_settle(&set);
			size_t at = 0;
			for (int i = 0; i < 5; i++)
				if (in[i] && (at >= set.n || list[at++] != i))
					ck_abort_msg("%d of list %d is lost", i, code);
			if (at != set.n)
				ck_abort_msg("list %d has grown", code);
		}
}
END_TEST

/* Every set of the numbers 0 to 9. */
START_TEST(the_free_number_is_the_lowest_that_is_in_no_set)
{
	for (unsigned bits = 0; bits < 1024; bits++) {
		int list[10];
		struct fd_numbers set = { list, 0 };

		for (int i = 0; i < 10; i++)
			if (bits & 1u << i)
				list[set.n++] = i;
		for (int low = 0; low <= 11; low++) {
			int lowest = low;
			size_t below = 0;

			while (lowest < 10 && bits & 1u << lowest)
				lowest++;
			for (int i = 0; i < low && i < 10; i++)
				below += bits >> i & 1;
			if (wean_fdmap_free(&set, low) != lowest)
				ck_abort_msg("set %#x from %d", bits, low);
			if (fd_lower_bound(&set, low) != below)
				ck_abort_msg("set %#x below %d", bits, low);
			if (fd_has(&set, low) != (low < 10 && (bits >> low & 1)))
				ck_abort_msg("set %#x has %d", bits, low);
		}
	}
}
END_TEST

START_TEST(sets_hold_the_largest_numbers)
{
	int list[] = { INT_MAX, 0, INT_MAX - 1, INT_MAX, 5 };
	struct fd_numbers set = { list, 5 };

	wean_fdmap_settle(&set);
	ck_assert_uint_eq(set.n, 4);
	ck_assert_int_eq(list[3], INT_MAX);
	ck_assert(fd_has(&set, INT_MAX));
	ck_assert(!fd_has(&set, INT_MAX - 2));
	ck_assert_int_eq(wean_fdmap_free(&set, 5), 6);
}
END_TEST

static Suite *fdmap_suite(void)
{
	Suite *s = suite_create("fdmap");
	TCase *moves = tcase_create("moves"), *sets = tcase_create("sets");

	tcase_set_timeout(moves, 30);
	tcase_add_test(moves, all_maps_of_six_sources_onto_six_targets_are_made_at_once);
	tcase_add_test(moves, two_thousand_random_maps_of_up_to_two_hundred_moves);
	tcase_add_test(moves, a_rotation_of_any_length_takes_one_step_more);
	tcase_add_test(moves, no_moves_are_no_steps);
	tcase_add_test(sets, a_set_is_sorted_and_has_each_number_once);
	tcase_add_test(sets, the_free_number_is_the_lowest_that_is_in_no_set);
	tcase_add_test(sets, sets_hold_the_largest_numbers);
	suite_add_tcase(s, moves);
	suite_add_tcase(s, sets);
	return s;
}

RUN_SUITE(fdmap_suite)
