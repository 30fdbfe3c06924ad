/* test_signals.c - which signals a child blocks and ignores. */
#define _GNU_SOURCE
#include "attributes.h"

#define BASE  (WEAN_SIG(SIGPIPE) | WEAN_SIG(SIGXFSZ) | WEAN_SIG(SIGCHLD))
#define ALL   (~(WEAN_SIG(SIGKILL) | WEAN_SIG(SIGSTOP))) /* that can be changed */

enum { LAST = 64 };

/* ---- the caller's ---- */

/* Raw calls: libc keeps 32 and 33 for itself. */
static void block(unsigned long long set)
{
	uint64_t mask = set;

	ck_assert_int_eq(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8), 0);
}

static void act(unsigned long long set, void (*handler)(int))
{
	const uintptr_t action[16] = { (uintptr_t)handler };

	for (int sig = 1; sig <= LAST; sig++)
		if (set & ALL & WEAN_SIG(sig))
			ck_assert_int_eq(syscall(SYS_rt_sigaction, sig, action, 0, 8), 0);
}

/* ---- the child's ---- */

struct signals {
	unsigned long long blocked, ignored, caught, pending;
};

static struct signals read_signals(const char *path)
{
	struct report *r = report_read_file(path);

	ck_assert_ptr_nonnull(r);
	struct signals s = { report_mask(r, "sigblk"), report_mask(r, "sigign"),
	                     report_mask(r, "sigcgt"), report_mask(r, "sigpnd") };
	report_free(r);
	return s;
}

/* Not by kid_report(): the status of a caller's child that ignores SIGCHLD may be
   unknown. */
static struct signals signals_of(const struct wean_options *opt)
{
	char *path = report_path();
	struct wean_child child;
	struct baseline b;

	baseline_take(&b);
	ck_assert_int_eq(wean_spawn(&child, KID("report", path), opt), 0);
	ck_assert_int_eq(wean_wait(&child, -1, NULL), 0);
	wean_release(&child);
	baseline_same(&b);
	struct signals s = read_signals(path);
	unlink(path);
	free(path);
	return s;
}

static void assert_signals(struct signals is, unsigned long long blocked,
                           unsigned long long ignored)
{
	ck_assert_msg(is.blocked == blocked, "blocked: %#llx, not %#llx", is.blocked,
	              blocked);
	ck_assert_msg(is.ignored == ignored, "ignored: %#llx, not %#llx", is.ignored,
	              ignored);
	ck_assert_uint_eq(is.caught, 0);
	ck_assert_uint_eq(is.pending, 0);
}

static void starts_with(const struct wean_options *opt, unsigned long long blocked,
                        unsigned long long ignored)
{
	for (int i = 0; i < WAYS; i++) {
		struct wean_options one = *opt;
		one.flags |= way(i);
		assert_signals(signals_of(&one), blocked, ignored);
	}
}

/* ---- the base ---- */

START_TEST(a_child_of_a_plain_caller_blocks_and_ignores_nothing)
{
	act(ALL, SIG_DFL);
	block(0);
	starts_with(&(struct wean_options){ 0 }, 0, 0);
}
END_TEST

START_TEST(what_the_caller_blocks_is_not_blocked_in_the_child)
{
	act(ALL, SIG_DFL);
	block(ALL);
	starts_with(&(struct wean_options){ 0 }, 0, 0);
}
END_TEST

START_TEST(what_the_caller_ignores_stays_ignored_but_for_the_base)
{
	block(0);
	act(ALL, SIG_IGN);
	starts_with(&(struct wean_options){ 0 }, 0, ALL & ~BASE);
}
END_TEST

START_TEST(each_signal_of_the_base_is_reset_by_itself)
{
	const int base[] = { SIGPIPE, SIGXFSZ, SIGCHLD, SIGHUP };

	for (int i = 0; i < 4; i++) {
		act(ALL, SIG_DFL);
		act(WEAN_SIG(base[i]), SIG_IGN);
		starts_with(&(struct wean_options){ 0 }, 0, WEAN_SIG(base[i]) & ~BASE);
	}
}
END_TEST

static const unsigned long long about_signals[] = {
	0, WEAN_KEEP_SIGMASK, WEAN_KEEP_IGNORED, WEAN_KEEP_SIGNALS, WEAN_RESET_SIGNALS,
	WEAN_RESET_SIGNALS | WEAN_KEEP_SIGMASK,
};

START_TEST(what_the_caller_catches_is_never_caught_in_the_child)
{
	block(0);
	act(ALL & ~WEAN_SIG(SIGCHLD), on_tick);
	handle(SIGCHLD, on_tick); /* which comes: it needs libc's way back */
	starts_with(&(struct wean_options){ .flags = about_signals[_i] }, 0, 0);
	ck_assert_int_ge(ticks, WAYS); /* in the caller */
}
END_TEST

START_TEST(what_is_pending_for_the_caller_is_not_the_childs)
{
	const struct wean_options opt = { .flags = WEAN_KEEP_SIGMASK };
	sigset_t pending;

	act(ALL, SIG_DFL);
	block(WEAN_SIG(SIGUSR1) | WEAN_SIG(SIGTERM));
	raise(SIGUSR1);
	kill(getpid(), SIGTERM);
	starts_with(&opt, WEAN_SIG(SIGUSR1) | WEAN_SIG(SIGTERM), 0);
	ck_assert_int_eq(sigpending(&pending), 0);
	ck_assert_int_eq(sigismember(&pending, SIGUSR1), 1);
	ck_assert_int_eq(sigismember(&pending, SIGTERM), 1);
}
END_TEST

/* ---- the sets ---- */

START_TEST(each_signal_can_be_blocked)
{
	act(ALL, SIG_DFL);
	block(WEAN_SIG(SIGUSR2));
	for (int sig = 1; sig <= LAST; sig++)
		starts_with(&(struct wean_options){ .sigmask = WEAN_SIG(sig) },
		            WEAN_SIG(sig) & ALL, 0);
	starts_with(&(struct wean_options){ .sigmask = ~0ULL }, ALL, 0);
}
END_TEST

START_TEST(each_signal_can_be_ignored)
{
	act(ALL, SIG_DFL);
	for (int sig = 1; sig <= LAST; sig++)
		starts_with(&(struct wean_options){ .sigignore = WEAN_SIG(sig) }, 0,
		            WEAN_SIG(sig) & ALL);
	starts_with(&(struct wean_options){ .sigignore = ~0ULL }, 0, ALL);
}
END_TEST

START_TEST(each_signal_can_be_reset)
{
	act(ALL, SIG_IGN);
	for (int sig = 1; sig <= LAST; sig++) {
		starts_with(&(struct wean_options){ .sigdefault = WEAN_SIG(sig) }, 0,
		            ALL & ~BASE & ~WEAN_SIG(sig));
		starts_with(&(struct wean_options){ .sigdefault = WEAN_SIG(sig),
		                                    .flags = WEAN_KEEP_IGNORED }, 0,
		            ALL & ~WEAN_SIG(sig));
	}
	starts_with(&(struct wean_options){ .sigdefault = ~0ULL }, 0, 0);
}
END_TEST

START_TEST(sigignore_goes_over_the_base_and_over_a_reset)
{
	act(ALL, SIG_DFL);
	starts_with(&(struct wean_options){ .sigignore = BASE }, 0, BASE);
	act(ALL, SIG_IGN);
	starts_with(&(struct wean_options){ .sigignore = WEAN_SIG(SIGXFSZ) }, 0,
	            ALL & ~(WEAN_SIG(SIGPIPE) | WEAN_SIG(SIGCHLD)));
	starts_with(&(struct wean_options){ .sigignore = WEAN_SIG(SIGPIPE),
	                                    .flags = WEAN_RESET_SIGNALS }, 0,
	            WEAN_SIG(SIGPIPE));
}
END_TEST

START_TEST(the_three_sets_go_together)
{
	const struct wean_options opt = {
		.sigmask = WEAN_SIG(SIGTERM) | WEAN_SIG(SIGHUP) | WEAN_SIG(40),
		.sigdefault = WEAN_SIG(SIGINT) | WEAN_SIG(SIGHUP) | WEAN_SIG(SIGKILL),
		.sigignore = WEAN_SIG(SIGQUIT) | WEAN_SIG(SIGTERM) | WEAN_SIG(SIGSTOP),
	};

	act(ALL, SIG_DFL);
	act(WEAN_SIG(SIGINT) | WEAN_SIG(SIGHUP) | WEAN_SIG(SIGUSR1), SIG_IGN);
	block(WEAN_SIG(SIGUSR2));
	starts_with(&opt, opt.sigmask,
	            WEAN_SIG(SIGQUIT) | WEAN_SIG(SIGTERM) | WEAN_SIG(SIGUSR1));
}
END_TEST

/* ---- the flags ---- */

#define CALLERS_MASK (WEAN_SIG(SIGHUP) | WEAN_SIG(SIGUSR1) | WEAN_SIG(32) | \
	WEAN_SIG(33) | WEAN_SIG(34) | WEAN_SIG(LAST))

static const struct kept_signals {
	unsigned long long flags;
	int mask, ignored; /* are kept */
} kept[] = {
	{ 0, 0, 0 },
	{ WEAN_KEEP_SIGMASK, 1, 0 },
	{ WEAN_KEEP_IGNORED, 0, 1 },
	{ WEAN_KEEP_SIGNALS, 1, 1 },
};

START_TEST(mask_and_ignored_signals_are_kept_where_asked_for)
{
	const struct kept_signals *k = &kept[_i];
	unsigned long long callers = k->mask ? CALLERS_MASK : 0;
	unsigned long long ignored = k->ignored ? ALL : ALL & ~BASE;
	unsigned long long added = WEAN_SIG(SIGUSR2) | WEAN_SIG(SIGHUP) | WEAN_SIG(63);

	act(ALL, SIG_IGN);
	block(CALLERS_MASK);
	starts_with(&(struct wean_options){ .flags = k->flags }, callers, ignored);
	starts_with(&(struct wean_options){ .flags = k->flags,
	                                    .sigmask = added | WEAN_SIG(SIGKILL) },
	            callers | added, ignored);
}
END_TEST

START_TEST(reset_signals_lets_nothing_stay_ignored)
{
	act(ALL, SIG_IGN);
	block(CALLERS_MASK);
	starts_with(&(struct wean_options){ .flags = WEAN_RESET_SIGNALS }, 0, 0);
	starts_with(&(struct wean_options){ .flags = WEAN_RESET_SIGNALS
	                                             | WEAN_KEEP_SIGMASK },
	            CALLERS_MASK, 0);
	starts_with(&(struct wean_options){ .flags = WEAN_RESET_SIGNALS,
	                                    .sigdefault = WEAN_SIG(SIGHUP),
	                                    .sigignore = WEAN_SIG(LAST) },
	            0, WEAN_SIG(LAST));
}
END_TEST

static void *spawn_in_thread(void *flags)
{
	const struct wean_options opt = { .flags = *(unsigned long long *)flags };

	block(WEAN_SIG(SIGUSR2) | WEAN_SIG(50));
	starts_with(&opt, opt.flags ? WEAN_SIG(SIGUSR2) | WEAN_SIG(50) : 0, 0);
	return NULL;
}

START_TEST(the_mask_that_is_kept_is_the_threads)
{
	unsigned long long flags = _i ? WEAN_KEEP_SIGMASK : 0;
	pthread_t thread;

	act(ALL, SIG_DFL);
	block(WEAN_SIG(SIGUSR1));
	ck_assert_int_eq(pthread_create(&thread, NULL, spawn_in_thread, &flags), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	starts_with(&(struct wean_options){ .flags = flags },
	            flags ? WEAN_SIG(SIGUSR1) : 0, 0);
}
END_TEST

static const struct wean_options contradictions[] = {
	{ .sigdefault = WEAN_SIG(SIGTERM), .sigignore = WEAN_SIG(SIGTERM) },
	{ .sigdefault = WEAN_SIG(1) | WEAN_SIG(64),
	  .sigignore = WEAN_SIG(2) | WEAN_SIG(64) },
	{ .sigdefault = ~0ULL, .sigignore = WEAN_SIG(SIGPIPE) },
	{ .flags = WEAN_RESET_SIGNALS | WEAN_KEEP_IGNORED },
	{ .flags = WEAN_RESET_SIGNALS | WEAN_KEEP_SIGNALS },
	{ .sigdefault = WEAN_SIG(1), .sigignore = WEAN_SIG(1),
	  .flags = WEAN_RESET_SIGNALS },
};

START_TEST(contradictions_are_refused)
{
	refused_as_invalid(&contradictions[_i]);
}
END_TEST

/* ---- what it is for ---- */

static int ends_by(int sig, const struct wean_options *opt)
{
	char number[12];

	snprintf(number, sizeof number, "%d", sig);
	return run(KID("kill", number, "--then", "exit", "7"), opt);
}

START_TEST(a_child_survives_what_it_blocks_or_ignores_alone)
{
	struct wean_options opt = { .flags = way(_i) };

	act(ALL & ~WEAN_SIG(SIGCHLD), SIG_IGN);
	act(WEAN_SIG(SIGTERM), SIG_DFL);
	block(ALL);
	ck_assert_int_eq(ends_by(SIGTERM, &opt), 128 + SIGTERM);
	ck_assert_int_eq(ends_by(SIGPIPE, &opt), 128 + SIGPIPE);
	ck_assert_int_eq(ends_by(SIGINT, &opt), 7);
	opt.sigdefault = WEAN_SIG(SIGINT);
	ck_assert_int_eq(ends_by(SIGINT, &opt), 128 + SIGINT);
	opt.sigmask = WEAN_SIG(SIGINT);
	ck_assert_int_eq(ends_by(SIGINT, &opt), 7);
	opt.sigignore = WEAN_SIG(SIGTERM);
	ck_assert_int_eq(ends_by(SIGTERM, &opt), 7);
}
END_TEST

/* ---- a signal that comes on the way ---- */

/* A child that SIGTERM meets while it opens a file, and what its program then sees. */
static struct signals met_on_the_way(struct wean_options *opt, struct trap *trap)
{
	const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 8, .path = trap->path };
	char *path = report_path();
	struct wean_child child;

	opt->fds = &fd;
	opt->nfds = 1;
	start(&child, KID("report", path), opt);
	trap_sprung(trap);
	ck_assert_int_eq(finish(&child).code, 0);
	struct signals s = read_signals(path);
	unlink(path);
	free(path);
	return s;
}

START_TEST(a_blocked_signal_on_the_way_waits_for_the_program)
{
	struct wean_options opt = { .sigmask = WEAN_SIG(SIGTERM), .flags = way(_i) };
	struct trap trap;

	if (!trap_set(&trap, "blocked", act_term))
		SKIP("no leases on %s", scratch);
	act(ALL & ~WEAN_SIG(TRAP_SIGNAL), SIG_DFL);
	struct signals s = met_on_the_way(&opt, &trap);
	ck_assert_uint_eq(s.pending, WEAN_SIG(SIGTERM));
	ck_assert_uint_eq(s.blocked, WEAN_SIG(SIGTERM));
}
END_TEST

START_TEST(an_ignored_signal_on_the_way_does_nothing)
{
	struct wean_options opt = { .sigignore = WEAN_SIG(SIGTERM), .flags = way(_i) };
	struct trap trap;

	if (!trap_set(&trap, "ignored", act_term))
		SKIP("no leases on %s", scratch);
	act(ALL & ~WEAN_SIG(TRAP_SIGNAL), SIG_DFL);
	struct signals s = met_on_the_way(&opt, &trap);
	assert_signals(s, 0, WEAN_SIG(SIGTERM));
}
END_TEST

START_TEST(a_signal_on_the_way_that_kills_is_told)
{
	struct wean_child child;
	struct trap trap;
	char text[128];

	if (!trap_set(&trap, "killed", act_term))
		SKIP("no leases on %s", scratch);
	const struct wean_fd fd = { .kind = WEAN_OPEN, .target = 8, .path = trap.path };
	struct wean_options opt = { .fds = &fd, .nfds = 1, .flags = way(_i) };
	act(WEAN_SIG(SIGTERM), SIG_DFL);
	ck_assert_int_eq(wean_spawn(&child, KID("exit", "0"), &opt), ECANCELED);
	trap_sprung(&trap);
	ck_assert_int_eq(child.stage, WEAN_STAGE_SIGNALS);
	ck_assert_int_eq(wean_explain(&child, KID("exit", "0"), &opt, ECANCELED, text,
	                              sizeof text), 0);
	ck_assert_str_eq(text, "the child was killed before it ran the program, at step "
	                 "signals: Operation canceled");
}
END_TEST

/* ------------------------------------------------------------------------- */

#define COUNT(array) (int)(sizeof (array) / sizeof *(array))

static Suite *signals_suite(void)
{
	Suite *s = suite_create("signals");
	TCase *t = tcase_create("base");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, a_child_of_a_plain_caller_blocks_and_ignores_nothing);
	tcase_add_test(t, what_the_caller_blocks_is_not_blocked_in_the_child);
	tcase_add_test(t, what_the_caller_ignores_stays_ignored_but_for_the_base);
	tcase_add_test(t, each_signal_of_the_base_is_reset_by_itself);
	tcase_add_loop_test(t, what_the_caller_catches_is_never_caught_in_the_child, 0,
	                    COUNT(about_signals));
	tcase_add_test(t, what_is_pending_for_the_caller_is_not_the_childs);
	suite_add_tcase(s, t);

	t = tcase_create("sets and flags");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, each_signal_can_be_ignored);
	tcase_add_test(t, each_signal_can_be_reset);
	tcase_add_test(t, sigignore_goes_over_the_base_and_over_a_reset);
	tcase_add_test(t, the_three_sets_go_together);
	tcase_add_loop_test(t, the_mask_that_is_kept_is_the_threads, 0, 2);
	tcase_add_loop_test(t, contradictions_are_refused, 0, COUNT(contradictions));
	suite_add_tcase(s, t);

	t = tcase_create("effect");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, a_child_survives_what_it_blocks_or_ignores_alone, 0, WAYS);
	tcase_add_loop_test(t, a_blocked_signal_on_the_way_waits_for_the_program, 0,
	                    WAYS);
	tcase_add_loop_test(t, an_ignored_signal_on_the_way_does_nothing, 0, WAYS);
	suite_add_tcase(s, t);

	/* posix_spawn(3) lets libc's own signals through, and tells of no death. */
	t = case_that_needs(s, "default");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, each_signal_can_be_blocked);
	tcase_add_loop_test(t, mask_and_ignored_signals_are_kept_where_asked_for, 0,
	                    COUNT(kept));
	tcase_add_test(t, reset_signals_lets_nothing_stay_ignored);
	tcase_add_loop_test(t, a_signal_on_the_way_that_kills_is_told, 0, WAYS);
	return s;
}

RUN_SUITE(signals_suite)
