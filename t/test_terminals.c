/* test_terminals.c - a terminal as the child's own, and its foreground. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "pty.h"

enum { TERMINAL = 9, HIGH = 700 };

/* ---- a controlling terminal ---- */

#define NEW_TERMINAL (WEAN_NEW_SESSION | WEAN_CONTROL_TTY)

/* The child tells that it has a terminal, and the terminal that it is this one. */
static void controls(const struct pty *p, const struct wean_options *opt,
                     const char *fds)
{
	struct wean_options piped = *opt;
	struct wean_child child;

	piped.in = piped.out = WEAN_PIPE;
	start(&child, KID("report", "1", "--then", "close", "1", "--then", "exit-on-eof"),
	      &piped);
	struct report *r = report_read(child.out);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(report_number(r, "sid"), child.pid);
	ck_assert_int_eq(report_number(r, "tpgid"), child.pid);
	ck_assert_str_eq(report_fd_list(r), fds);
	ck_assert_int_eq(tcgetsid(p->master), child.pid);
	close(child.in);
	child.in = -1;
	ck_assert_int_eq(finish(&child).code, 0);
	report_free(r);
}

START_TEST(a_fresh_terminal_is_taken_and_not_passed_on)
{
	for (int leads = 0; leads <= 1; leads++)
		for (int close_on_exec = 0; close_on_exec <= 1; close_on_exec++) {
			struct pty p = pty_open();
			struct wean_options opt = {
				.ttyfd = p.slave,
				.flags = NEW_TERMINAL | way(_i)
				         | (leads ? WEAN_NEW_GROUP : 0),
			};
			fcntl(p.slave, F_SETFD, close_on_exec);
			controls(&p, &opt, "0 1 2");
			pty_close(&p);
		}
}
END_TEST

START_TEST(the_caller_takes_no_terminal_itself)
{
	struct pty p = pty_open();
	struct wean_options opt = { .ttyfd = p.slave, .flags = NEW_TERMINAL | way(_i) };
	struct report *r = reported(&opt);

	ck_assert_int_eq(report_number(r, "tpgid"), report_number(r, "pid"));
	ck_assert_int_eq(open("/dev/tty", O_RDWR | O_CLOEXEC), -1);
	report_free(r);
	pty_close(&p);
}
END_TEST

START_TEST(a_terminal_stays_out_where_everything_is_inherited)
{
	struct pty p = pty_open();
	struct wean_options opt = { .ttyfd = p.slave,
	                            .flags = NEW_TERMINAL | WEAN_INHERIT_ALL | way(_i) };

	fcntl(p.slave, F_SETFD, 0);
	struct report *r = reported(&opt);
	ck_assert_int_eq(report_number(r, "tpgid"), report_number(r, "pid"));
	ck_assert_ptr_null(report_fd(r, p.slave));
	report_free(r);
	pty_close(&p);
}
END_TEST

START_TEST(a_terminal_is_passed_on_where_the_list_has_it)
{
	struct pty p = pty_open();
	struct wean_options opt = { .ttyfd = TERMINAL, .flags = NEW_TERMINAL | way(_i),
	                            FDS(KEEP(TERMINAL), DUP(6, TERMINAL)) };
	struct stat st;

	ck_assert_int_eq(dup3(p.slave, TERMINAL, O_CLOEXEC), TERMINAL);
	fstat(p.slave, &st);
	struct report *r = reported(&opt);
	ck_assert_int_eq(report_number(r, "tpgid"), report_number(r, "pid"));
	ck_assert_str_eq(report_fd_list(r), "0 1 2 6 9");
	ck_assert_uint_eq(report_fd(r, 6)->rdev, st.st_rdev);
	ck_assert_uint_eq(report_fd(r, TERMINAL)->rdev, st.st_rdev);
	report_free(r);
}
END_TEST

START_TEST(a_number_that_becomes_something_else_is_taken_before)
{
	struct pty p = pty_open();
	struct wean_options opt = { .ttyfd = TERMINAL, .flags = NEW_TERMINAL | way(_i),
	                            FDS(NUL(TERMINAL), DUP(6, TERMINAL),
	                                DUP(p.slave, 1)) };
	struct stat st;

	ck_assert_int_eq(dup3(p.slave, TERMINAL, O_CLOEXEC), TERMINAL);
	fstat(p.slave, &st);
	struct report *r = reported(&opt);
	ck_assert_int_eq(report_number(r, "tpgid"), report_number(r, "pid"));
	ck_assert_str_eq(report_fd(r, TERMINAL)->link, "/dev/null");
	ck_assert_uint_eq(report_fd(r, 6)->rdev, st.st_rdev);
	ck_assert_uint_eq(report_fd(r, p.slave)->ino, report_fd(r, 1)->ino);
	report_free(r);
}
END_TEST

START_TEST(the_callers_input_may_be_the_terminal)
{
	struct pty p = pty_open();
	struct wean_options opt = { .ttyfd = 0, .flags = NEW_TERMINAL | way(_i) };
	struct stat st;

	ck_assert_int_eq(dup2(p.slave, 0), 0);
	fstat(0, &st);
	struct report *r = reported(&opt);
	ck_assert_int_eq(report_number(r, "tpgid"), report_number(r, "pid"));
	ck_assert_str_eq(report_fd_list(r), "0 1 2");
	ck_assert_uint_eq(report_fd(r, 0)->rdev, st.st_rdev);
	report_free(r);
}
END_TEST

START_TEST(a_terminal_above_many_descriptors_is_found)
{
	struct pty p = pty_open();
	struct wean_options opt = { .ttyfd = HIGH, .flags = NEW_TERMINAL | way(_i) };
	struct filling f;

	fill_descriptors(&f, 300);
	ck_assert_int_eq(dup3(p.slave, HIGH, O_CLOEXEC), HIGH);
	controls(&p, &opt, "0 1 2");
	release_descriptors(&f);
}
END_TEST

START_TEST(a_terminal_needs_a_new_session)
{
	struct pty p = pty_open();
	const unsigned long long without[] = {
		0, WEAN_NEW_GROUP, WEAN_FOREGROUND, WEAN_NEW_GROUP | WEAN_FOREGROUND,
	};

	for (int i = 0; i < 4; i++)
		refused_as_invalid(&(struct wean_options){
			.ttyfd = p.slave, .flags = WEAN_CONTROL_TTY | without[i] });
	refused_as_invalid(&(struct wean_options){ .ttyfd = p.slave });
	refused_as_invalid(&(struct wean_options){ .ttyfd = p.slave,
	                                           .flags = WEAN_NEW_SESSION });
	refused_as_invalid(&(struct wean_options){ .ttyfd = -1 });
}
END_TEST

static void refused_terminal(unsigned long long flags, int tty, int error)
{
	const struct wean_options opt = { .ttyfd = tty, .flags = flags };
	char sentence[200];

	snprintf(sentence, sizeof sentence, "%s terminal %d: %s",
	         flags & WEAN_FOREGROUND ? "cannot take the foreground of"
	                                 : "cannot take as controlling",
	         tty, strerror(error));
	refused_saying(&opt, (struct refusal){ error, WEAN_STAGE_TTY, -1 }, sentence);
}

START_TEST(what_is_no_terminal_is_refused)
{
	const unsigned long long flags[] = { NEW_TERMINAL, WEAN_FOREGROUND,
	                                     WEAN_FOREGROUND | WEAN_NEW_GROUP };

	open_at(TERMINAL);
	for (int i = 0; i < 3; i++) {
		refused_terminal(flags[i] | way(_i), TERMINAL, ENOTTY);
		refused_terminal(flags[i] | way(_i), HIGH, EBADF);
		refused_terminal(flags[i] | way(_i), -1, EBADF);
	}
}
END_TEST

START_TEST(a_terminal_that_was_hung_up_is_refused)
{
	struct pty p = pty_open();

	close(p.master);
	refused_terminal(NEW_TERMINAL | way(_i), p.slave, EIO);
}
END_TEST

static void take_the_callers(const struct pty *p)
{
	for (int i = 0; i < WAYS; i++)
		refused_terminal(NEW_TERMINAL | way(i), p->slave, EPERM);
	ck_assert_int_eq(tcgetsid(p->slave), getpid());
}

START_TEST(a_terminal_of_another_session_is_refused)
{
	in_session(take_the_callers);
}
END_TEST

/* ---- the foreground ---- */

static struct wean_options in_front(const struct pty *p, unsigned long long flags)
{
	return (struct wean_options){ .ttyfd = p->slave,
	                              .flags = WEAN_FOREGROUND | flags };
}

static void start_in_front(struct wean_child *child, const struct pty *p,
                           unsigned long long flags)
{
	struct wean_options opt = in_front(p, flags);

	opt.in = WEAN_PIPE;
	start(child, KID("exit-on-eof"), &opt);
}

static void end(struct wean_child *child)
{
	close(child->in);
	child->in = -1;
	ck_assert_int_eq(finish(child).code, 0);
}

static void put_groups_in_front(const struct pty *p)
{
	for (int i = 0; i < WAYS; i++) {
		struct wean_child child;
		set_foreground(p->slave, getpgrp());
		start_in_front(&child, p, WEAN_NEW_GROUP | way(i));
		ck_assert_int_eq(tcgetpgrp(p->slave), child.pid);
		ck_assert_int_eq(getpgid(child.pid), child.pid);
		end(&child);
	}
}

START_TEST(a_group_is_in_front_when_the_start_returns)
{
	in_session(put_groups_in_front);
}
END_TEST

/* After the first the caller itself is in the background, where SIGTTOU would stop who
   touches the terminal. */
static void put_one_after_another_in_front(const struct pty *p)
{
	for (int i = 0; i < 3 * WAYS; i++) {
		struct wean_options opt = in_front(p, WEAN_NEW_GROUP | way(i % WAYS));
		struct report *r = reported(&opt);
		ck_assert_int_eq(report_number(r, "tpgid"), report_number(r, "pid"));
		ck_assert_int_eq(report_number(r, "pgid"), report_number(r, "pid"));
		ck_assert_int_eq(report_number(r, "sid"), getpid());
		ck_assert_str_eq(report_fd_list(r), "0 1 2");
		ck_assert_uint_eq(report_mask(r, "sigign"), 0);
		ck_assert_uint_eq(report_mask(r, "sigblk"), 0);
		report_free(r);
	}
}

START_TEST(a_caller_in_the_background_puts_children_in_front)
{
	in_session(put_one_after_another_in_front);
}
END_TEST

static void leave_the_foreground_alone(const struct pty *p)
{
	struct wean_child child;

	for (int i = 0; i < WAYS; i++) {
		const struct wean_options opt = { .flags = WEAN_NEW_GROUP | way(i) };
		struct report *r = reported(&opt);
		ck_assert_int_eq(report_number(r, "tpgid"), getpgrp());
		ck_assert_int_ne(report_number(r, "pgid"), getpgrp());
		report_free(r);
		start(&child, KID("exit", "0"), &opt);
		ck_assert_int_eq(tcgetpgrp(p->slave), getpgrp());
		finish(&child);
	}
}

START_TEST(a_new_group_alone_stays_in_the_background)
{
	in_session(leave_the_foreground_alone);
}
END_TEST

static void put_others_in_front(const struct pty *p)
{
	const struct wean_options group = { .in = WEAN_PIPE, .flags = WEAN_NEW_GROUP };

	for (int i = 0; i < WAYS; i++) {
		struct wean_child leader, child;
		start(&leader, KID("exit-on-eof"), &group);
		ck_assert_int_eq(tcgetpgrp(p->slave), getpgrp());
		struct wean_options opt = in_front(p, WEAN_JOIN_GROUP | way(i));
		opt.pgid = leader.pid;
		ck_assert_int_eq(run(KID("exit", "4"), &opt), 4);
		ck_assert_int_eq(tcgetpgrp(p->slave), leader.pid);
		start_in_front(&child, p, way(i)); /* in the caller's group */
		ck_assert_int_eq(tcgetpgrp(p->slave), getpgrp());
		end(&child);
		end(&leader);
	}
}

START_TEST(the_group_in_front_is_the_childs_whichever_it_is)
{
	in_session(put_others_in_front);
}
END_TEST

START_TEST(a_new_session_may_ask_for_the_foreground_too)
{
	struct pty p = pty_open();
	struct wean_options opt = in_front(&p, NEW_TERMINAL | way(_i));

	controls(&p, &opt, "0 1 2");
}
END_TEST

START_TEST(the_foreground_of_anothers_terminal_is_refused)
{
	struct pty p = pty_open();

	refused_terminal(WEAN_FOREGROUND | way(_i), p.slave, ENOTTY);
	refused_terminal(WEAN_FOREGROUND | WEAN_NEW_GROUP | way(_i), p.slave, ENOTTY);
	refused_terminal(WEAN_FOREGROUND | WEAN_NEW_SESSION | way(_i), p.slave, ENOTTY);
}
END_TEST

/* ---- given back ---- */

static void fail_in_front(const struct pty *p, pid_t group)
{
	for (int i = 0; i < WAYS; i++) {
		struct wean_options opt = in_front(p, WEAN_NEW_GROUP | way(i));
		opt.file = "/absent/program";
		refused_saying(&opt, (struct refusal){ ENOENT, WEAN_STAGE_EXEC, -1 },
		               "cannot run '/absent/program': No such file or directory");
		ck_assert_int_eq(tcgetpgrp(p->slave), group);
	}
}

static void fail_from_front(const struct pty *p)
{
	fail_in_front(p, getpgrp());
}

START_TEST(the_foreground_is_given_back_at_a_failure)
{
	in_session(fail_from_front);
}
END_TEST

/* Puts a group in front that is nobody's child here, so that a baseline holds.  It ends
   with its caller. */
static pid_t other_group(const struct pty *p)
{
	int tells[2], holds[2];
	pid_t pid = 0;
	char c;

	ck_assert_int_eq(pipe2(tells, O_CLOEXEC) | pipe2(holds, O_CLOEXEC), 0);
	if (fork() == 0) {
		if (fork() == 0 && close(holds[1]) == 0 && setpgid(0, 0) == 0) {
			pid = getpid();
			if (write(tells[1], &pid, sizeof pid) == sizeof pid)
				_exit((int)read(holds[0], &c, 1));
		}
		_exit(0);
	}
	wait(NULL);
	ck_assert_int_eq(read(tells[0], &pid, sizeof pid), sizeof pid);
	close(tells[0]);
	close(tells[1]);
	close(holds[0]);
	set_foreground(p->slave, pid);
	return pid;
}

static void fail_from_the_background(const struct pty *p)
{
	fail_in_front(p, other_group(p));
}

START_TEST(the_foreground_is_given_back_to_who_had_it)
{
	in_session(fail_from_the_background);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *terminals_suite(void)
{
	Suite *s = suite_create("terminals");
	TCase *t = tcase_create("controlling");

	tcase_add_loop_test(t, a_fresh_terminal_is_taken_and_not_passed_on, 0, WAYS);
	tcase_add_loop_test(t, the_caller_takes_no_terminal_itself, 0, WAYS);
	tcase_add_loop_test(t, a_terminal_stays_out_where_everything_is_inherited, 0,
	                    WAYS);
	tcase_add_loop_test(t, a_terminal_is_passed_on_where_the_list_has_it, 0, WAYS);
	tcase_add_loop_test(t, a_number_that_becomes_something_else_is_taken_before, 0,
	                    WAYS);
	tcase_add_loop_test(t, the_callers_input_may_be_the_terminal, 0, WAYS);
	tcase_add_loop_test(t, a_terminal_above_many_descriptors_is_found, 0, WAYS);
	tcase_add_test(t, a_terminal_needs_a_new_session);
	tcase_add_loop_test(t, what_is_no_terminal_is_refused, 0, WAYS);
	tcase_add_loop_test(t, a_terminal_that_was_hung_up_is_refused, 0, WAYS);
	tcase_add_test(t, a_terminal_of_another_session_is_refused);
	suite_add_tcase(s, t);

	t = tcase_create("foreground");
	tcase_add_test(t, a_group_is_in_front_when_the_start_returns);
	tcase_add_test(t, a_caller_in_the_background_puts_children_in_front);
	tcase_add_test(t, a_new_group_alone_stays_in_the_background);
	tcase_add_test(t, the_group_in_front_is_the_childs_whichever_it_is);
	tcase_add_loop_test(t, a_new_session_may_ask_for_the_foreground_too, 0, WAYS);
	tcase_add_loop_test(t, the_foreground_of_anothers_terminal_is_refused, 0, WAYS);
	tcase_add_test(t, the_foreground_is_given_back_at_a_failure);
	tcase_add_test(t, the_foreground_is_given_back_to_who_had_it);
	suite_add_tcase(s, t);
	return s;
}

RUN_WITH_STDIO_ALONE(terminals_suite)
