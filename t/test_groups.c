/* test_groups.c - process groups and sessions of a child. */
#define _GNU_SOURCE
#include "attributes.h"

/* ---- what the child says ---- */

struct place {
	long pid, group, session;
	long terminal; /* its group in front; -1: none */
};

static struct place place_in(struct report *r)
{
	struct place p = { report_number(r, "pid"), report_number(r, "pgid"),
	                   report_number(r, "sid"), report_number(r, "tpgid") };

	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	report_free(r);
	return p;
}

static struct place place_of(const struct wean_options *opt)
{
	return place_in(reported(opt));
}

/* ---- a group of others ---- */

/* A child that leads a group until its input ends. */
static void start_leader(struct wean_child *child)
{
	const struct wean_options opt = { .in = WEAN_PIPE, .flags = WEAN_NEW_GROUP };

	start(child, KID("exit-on-eof"), &opt);
}

static void end_leader(struct wean_child *child)
{
	close(child->in);
	child->in = -1;
	ck_assert_int_eq(finish(child).code, 0);
}

static struct wean_options joining(pid_t group, int i)
{
	return (struct wean_options){ .pgid = group, .flags = WEAN_JOIN_GROUP | way(i) };
}

static void refused_to_join(const struct wean_options *opt)
{
	char sentence[100];

	snprintf(sentence, sizeof sentence,
	         "cannot join process group %d: Operation not permitted", opt->pgid);
	refused_saying(opt, (struct refusal){ EPERM, WEAN_STAGE_GROUP, -1 }, sentence);
}

/* ---- groups ---- */

START_TEST(by_default_group_and_session_are_the_callers)
{
	const struct wean_options opt = { .flags = way(_i) };
	struct place p = place_of(&opt);

	ck_assert_int_ne(p.pid, getpgrp());
	ck_assert_int_eq(p.group, getpgrp());
	ck_assert_int_eq(p.session, getsid(0));
}
END_TEST

START_TEST(a_new_group_is_led_by_the_child)
{
	const struct wean_options opt = { .flags = WEAN_NEW_GROUP | way(_i) };
	struct place p = place_of(&opt);

	ck_assert_int_eq(p.group, p.pid);
	ck_assert_int_eq(p.session, getsid(0));
}
END_TEST

/* A parent that makes the group itself, after the start, would leave a gap. */
START_TEST(a_new_group_is_there_when_the_start_returns)
{
	struct wean_options opt = { .in = WEAN_PIPE, .flags = way(_i) };

	for (int leads = 0; leads <= 1; leads++) {
		struct wean_child child;
		opt.flags = (leads ? WEAN_NEW_GROUP : 0) | way(_i);
		start(&child, KID("exit-on-eof"), &opt);
		ck_assert_int_eq(getpgid(child.pid), leads ? child.pid : getpgrp());
		end_leader(&child);
	}
}
END_TEST

START_TEST(a_child_joins_the_group_that_it_is_told)
{
	struct wean_child leader;

	start_leader(&leader);
	struct wean_options opt = joining(leader.pid, _i);
	struct place p = place_in(kid_report(&opt));
	ck_assert_int_eq(p.group, leader.pid);
	ck_assert_int_eq(p.session, getsid(0));
	end_leader(&leader);
}
END_TEST

START_TEST(a_child_may_join_the_callers_own_group)
{
	struct wean_options opt = joining(getpgrp(), _i);

	ck_assert_int_eq(place_of(&opt).group, getpgrp());
}
END_TEST

START_TEST(a_group_is_joined_as_long_as_it_has_a_member)
{
	struct wean_child leader, second;

	start_leader(&leader);
	struct wean_options opt = joining(leader.pid, _i);
	opt.in = WEAN_PIPE;
	start(&second, KID("exit-on-eof"), &opt);
	end_leader(&leader);
	opt.in = 0;
	ck_assert_int_eq(place_in(kid_report(&opt)).group, leader.pid);
	end_leader(&second);
	refused_to_join(&opt);
}
END_TEST

START_TEST(a_group_that_does_not_exist_is_refused)
{
	struct wean_options opt = joining(INT_MAX, _i);

	refused_to_join(&opt);
}
END_TEST

START_TEST(a_process_that_leads_no_group_is_refused)
{
	const struct wean_options plain = { .in = WEAN_PIPE };
	struct wean_child other, child;

	start(&other, KID("exit-on-eof"), &plain);
	struct wean_options opt = joining(other.pid, _i);
	int error = wean_spawn(&child, KID("exit", "0"), &opt);
	assert_refused(&child, "no leader", error,
	               (struct refusal){ EPERM, WEAN_STAGE_GROUP, -1 });
	end_leader(&other);
}
END_TEST

START_TEST(a_group_of_another_session_is_refused)
{
	const struct wean_options away = { .in = WEAN_PIPE, .flags = WEAN_NEW_SESSION };
	struct wean_child leader, child;

	start(&leader, KID("exit-on-eof"), &away);
	struct wean_options opt = joining(leader.pid, _i);
	int error = wean_spawn(&child, KID("exit", "0"), &opt);
	assert_refused(&child, "another session", error,
	               (struct refusal){ EPERM, WEAN_STAGE_GROUP, -1 });
	end_leader(&leader);
}
END_TEST

static const struct wean_options no_groups[] = {
	{ .flags = WEAN_JOIN_GROUP },
	{ .flags = WEAN_JOIN_GROUP, .pgid = -1 },
	{ .flags = WEAN_JOIN_GROUP, .pgid = INT_MIN },
	{ .flags = WEAN_JOIN_GROUP | WEAN_NEW_GROUP, .pgid = 1 },
	{ .flags = WEAN_JOIN_GROUP | WEAN_NEW_SESSION, .pgid = 1 },
	{ .flags = WEAN_JOIN_GROUP | WEAN_NEW_SESSION | WEAN_NEW_GROUP, .pgid = 1 },
	{ .pgid = 1 },
	{ .pgid = -1 },
	{ .pgid = 1, .flags = WEAN_NEW_GROUP },
	{ .pgid = 1, .flags = WEAN_NEW_SESSION },
};

START_TEST(a_group_that_makes_no_sense_is_refused)
{
	refused_as_invalid(&no_groups[_i]);
}
END_TEST

/* ---- sessions ---- */

START_TEST(a_new_session_is_led_by_the_child_without_terminal)
{
	for (int both = 0; both <= 1; both++) {
		const struct wean_options opt = {
			.flags = WEAN_NEW_SESSION | (both ? WEAN_NEW_GROUP : 0) | way(_i),
		};
		struct place p = place_of(&opt);
		ck_assert_int_ne(p.pid, getsid(0));
		ck_assert_int_eq(p.session, p.pid);
		ck_assert_int_eq(p.group, p.pid);
		ck_assert_int_eq(p.terminal, -1);
	}
}
END_TEST

/* A signal to the caller's group, as a terminal sends it, ends the one and not the
   other. */
START_TEST(a_group_of_its_own_is_out_of_reach_of_the_callers)
{
	const unsigned long long alone[] = { WEAN_NEW_GROUP, WEAN_NEW_SESSION };
	struct wean_options opt = { .in = WEAN_PIPE, .flags = way(_i) };
	struct wean_child with, without;
	struct wean_status status;

	for (int i = 0; i < 2; i++) {
		handle(SIGINT, on_tick);
		opt.flags = way(_i);
		start(&with, KID("exit-on-eof"), &opt);
		opt.flags |= alone[i];
		start(&without, KID("exit-on-eof"), &opt);
		ck_assert_int_eq(kill(0, SIGINT), 0);
		status = finish(&with);
		ck_assert_int_eq(status.kind, WEAN_SIGNALED);
		ck_assert_int_eq(status.value, SIGINT);
		ck_assert_int_eq(wean_wait(&without, 0, NULL), ETIMEDOUT);
		end_leader(&without);
	}
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *groups_suite(void)
{
	Suite *s = suite_create("groups");
	TCase *t = tcase_create("groups");

	tcase_add_loop_test(t, by_default_group_and_session_are_the_callers, 0, WAYS);
	tcase_add_loop_test(t, a_new_group_is_led_by_the_child, 0, WAYS);
	tcase_add_loop_test(t, a_new_group_is_there_when_the_start_returns, 0, WAYS);
	tcase_add_loop_test(t, a_child_joins_the_group_that_it_is_told, 0, WAYS);
	tcase_add_loop_test(t, a_child_may_join_the_callers_own_group, 0, WAYS);
	tcase_add_loop_test(t, a_group_is_joined_as_long_as_it_has_a_member, 0, WAYS);
	tcase_add_loop_test(t, a_group_that_does_not_exist_is_refused, 0, WAYS);
	tcase_add_loop_test(t, a_process_that_leads_no_group_is_refused, 0, WAYS);
	tcase_add_loop_test(t, a_group_of_another_session_is_refused, 0, WAYS);
	tcase_add_loop_test(t, a_group_that_makes_no_sense_is_refused, 0,
	                    sizeof no_groups / sizeof *no_groups);
	suite_add_tcase(s, t);

	t = tcase_create("sessions");
	tcase_add_loop_test(t, a_new_session_is_led_by_the_child_without_terminal, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_group_of_its_own_is_out_of_reach_of_the_callers, 0,
	                    WAYS);
	suite_add_tcase(s, t);
	return s;
}

RUN_SUITE(groups_suite)
