/* test_order.c - all that a child is told to become, in one request: in which order it
   does it, and that the whole of it comes out. */
#define _GNU_SOURCE
#include "count.h"
#include "descriptors.h"
#include "pty.h"

enum { USER = 4242, GROUP = 4343 };

/* ---- the request ---- */

static const unsigned groups[] = { 5, 77 };
static const struct wean_limit limit = { .resource = RLIMIT_CORE };

static const struct wean_fd fds[] = { DUP(8, 1), OPEN(9, "/dev/zero") };

static struct wean_options everything(const struct pty *p)
{
	return (struct wean_options){
		.flags = WEAN_NEW_SESSION | WEAN_CONTROL_TTY | WEAN_FOREGROUND
		         | WEAN_SET_UMASK | WEAN_SET_NICE | WEAN_SET_UID | WEAN_SET_GID
		         | WEAN_SET_GROUPS | WEAN_NO_NEW_PRIVS,
		.sigignore = WEAN_SIG(SIGUSR1), .sigmask = WEAN_SIG(SIGUSR2),
		.ttyfd = p->slave, .umask = 077, .nice = 3, .pdeathsig = SIGTERM,
		.uid = USER, .gid = GROUP, .groups = groups, .ngroups = 2,
		.limits = &limit, .nlimits = 1, .fds = fds, .nfds = 2, .dir = scratch,
		.file = at("kid"),
	};
}

static void make_kid(void)
{
	scratch_make();
	free(copy_kid("kid", 0755));
}

START_TEST(everything_at_once_comes_out)
{
	struct pty p = pty_open();
	struct wean_options opt = everything(&p);

	if (geteuid() != 0 || !may_lower_nice())
		SKIP("needs root, and to lower the nice value");
	struct report *r = reported(&opt);
	long pid = report_number(r, "pid");
	ck_assert_int_eq(report_number(r, "sid"), pid);
	ck_assert_int_eq(report_number(r, "pgid"), pid);
	ck_assert_int_eq(report_number(r, "tpgid"), pid);
	ck_assert_str_eq(report_fd_list(r), "0 1 2 8 9");
	ck_assert_str_eq(report_value(r, "umask"), "0077");
	ck_assert_str_eq(report_value(r, "limit 4"), "0 0");
	ck_assert_int_eq(report_number(r, "nice"), 3);
	ck_assert_str_eq(report_value(r, "groups"), "2 5 77");
	ck_assert_str_eq(report_value(r, "gid"), "4343 4343 4343");
	ck_assert_str_eq(report_value(r, "uid"), "4242 4242 4242");
	ck_assert_str_eq(report_value(r, "cwd"), scratch);
	ck_assert_int_eq(report_number(r, "pdeathsig"), SIGTERM);
	ck_assert_int_eq(report_number(r, "nonewprivs"), 1);
	ck_assert_uint_eq(report_mask(r, "sigign"), WEAN_SIG(SIGUSR1));
	ck_assert_uint_eq(report_mask(r, "sigblk"), WEAN_SIG(SIGUSR2));
	report_free(r);
}
END_TEST

/* ---- its calls ---- */

#ifdef SYS_setresuid32
# define SETRESUID SYS_setresuid32
# define SETRESGID SYS_setresgid32
# define SETGROUPS SYS_setgroups32
#else
# define SETRESUID SYS_setresuid
# define SETRESGID SYS_setresgid
# define SETGROUPS SYS_setgroups
#endif

enum { ANY = -1 };

/* Told from others of the same name by one argument. */
static const struct call {
	long nr;
	int which;
	unsigned long value;
	const char *name;
} calls[] = {
	{ SYS_setsid, ANY, 0, "session" },
	{ SYS_ioctl, 1, TIOCSCTTY, "terminal" },
	{ SYS_dup3, ANY, 0, "place" },
	{ SYS_openat, ANY, 0, "open" },
	{ SYS_umask, ANY, 0, "umask" },
	{ SYS_prlimit64, ANY, 0, "limit" },
	{ SYS_setpriority, ANY, 0, "nice" },
	{ SETGROUPS, ANY, 0, "groups" },
	{ SETRESGID, ANY, 0, "gid" },
	{ SETRESUID, ANY, 0, "uid" },
	{ SYS_chdir, ANY, 0, "dir" },
	{ SYS_prctl, 0, PR_SET_PDEATHSIG, "pdeathsig" },
	{ SYS_prctl, 0, PR_SET_NO_NEW_PRIVS, "privs" },
	{ SYS_rt_sigaction, 0, SIGUSR1, "dispositions" },
	{ SYS_ioctl, 1, TIOCSPGRP, "foreground" },
	{ SYS_rt_sigprocmask, ANY, 0, "mask" },
	{ SYS_execve, ANY, 0, "exec" },
};

static int is_call(const struct call *call, const struct count_call *c)
{
	return c->who == COUNT_CHILD && c->nr == call->nr &&
	       (call->which == ANY || c->args[call->which] == call->value);
}

static const char *name_of(const struct count_call *c)
{
	for (size_t i = 0; i < COUNT(calls); i++)
		if (is_call(&calls[i], c))
			return calls[i].name;
	return NULL;
}

/* One after another of the same is one step. */
static void list_calls(const struct count *c, char *text)
{
	const char *last = NULL;

	*text = '\0';
	for (size_t i = 0; i < c->n; i++) {
		const char *name = name_of(&c->calls[i]);
		if (name && name != last)
			sprintf(text + strlen(text), *text ? " %s" : "%s", name);
		last = name ? name : last;
	}
}

START_TEST(the_steps_are_taken_in_the_order_that_is_promised)
{
	struct pty p = pty_open();
	struct wean_options opt = everything(&p);
	struct count c;
	char text[2000];

	if (geteuid() != 0 || !may_lower_nice())
		SKIP("needs root, and to lower the nice value");
	int error = count_calls(&c, spawn_counted, &opt);
	if (error == ENOTSUP || error == EPERM)
		SKIP("cannot trace: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	list_calls(&c, text);
	char *from = strstr(text, "session");
	ck_assert_str_eq(from ? from : text,
	                 "session terminal place open place umask limit nice groups gid "
	                 "uid dir pdeathsig privs dispositions foreground mask exec");
	count_free(&c);
}
END_TEST

/* What is not asked for is not done. */
START_TEST(a_plain_child_takes_no_step_that_it_was_not_told)
{
	const struct wean_options opt = { .flags = way(_i) };
	struct count c;
	char text[2000];

	int error = count_calls(&c, spawn_counted, (void *)(uintptr_t)&opt);
	if (error == ENOTSUP || error == EPERM)
		SKIP("cannot trace: %s", strerror(error));
	ck_assert_int_eq(error, 0);
	list_calls(&c, text);
	ck_assert_str_eq(text, "mask exec");
	count_free(&c);
}
END_TEST

/* ------------------------------------------------------------------------- */

static Suite *order_suite(void)
{
	Suite *s = suite_create("order");
	TCase *t = tcase_create("order");

	tcase_set_tags(t, "default root ptrace");
	tcase_add_unchecked_fixture(t, make_kid, scratch_remove);
	tcase_add_loop_test(t, a_plain_child_takes_no_step_that_it_was_not_told, 0, WAYS);
	suite_add_tcase(s, t);

	TCase *root = tcase_create("as root");

	tcase_set_tags(root, "root");
	tcase_add_unchecked_fixture(root, make_kid, scratch_remove);
	tcase_add_test(root, everything_at_once_comes_out);
	tcase_add_test(root, the_steps_are_taken_in_the_order_that_is_promised);
	suite_add_tcase(s, root);
	return s;
}

RUN_WITH_STDIO_ALONE(order_suite)
