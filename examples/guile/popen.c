/* popen.c - what the module (wean popen) has in C.
 *
 *    $ cc -shared -fPIC -o guile-wean.so popen.c \
 *          $(pkg-config --cflags --libs guile-3.0 wean)
 *    $ GUILE_EXTENSIONS_PATH=. guile -L .
 *    scheme@(guile-user)> (use-modules (wean popen))
 *
 * In C, because a thread in a foreign function still counts as one that runs Scheme: the
 * collector stops it by a signal, which wean_spawn() keeps blocked until the program is
 * executed, and ends the process when that takes long.  Here the thread has left Guile
 * meanwhile, and no collection waits for it.
 */
#include <errno.h>
#include <libguile.h>
#include <poll.h>
#include <string.h>
#include <wean.h>

void init_guile_wean(void);

/* ---- a child ------------------------------------------------------------- */

static SCM child_type;

/* Empty, so that it can be guarded before there is anything to lose. */
static SCM make_child(void)
{
	struct wean_child *child = scm_gc_malloc_pointerless(sizeof *child, "child");

	*child = (struct wean_child){ 0 };
	return scm_make_foreign_object_1(child_type, child);
}

static struct wean_child *to_child(SCM child)
{
	scm_assert_foreign_object_type(child_type, child);
	return scm_foreign_object_ref(child, 0);
}

static SCM child_pid(SCM child)
{
	return scm_from_int(to_child(child)->pid);
}

/* For the collector: reaps, and lets go of a child that is over.  It never waits. */
static SCM child_is_over(SCM child)
{
	struct wean_child *c = to_child(child);

	if (wean_wait(c, 0, NULL) == ETIMEDOUT)
		return SCM_BOOL_F;
	wean_release(c);
	return SCM_BOOL_T;
}

enum { NAP_US = 10000 };

static void *nap_or_end(void *pidfd)
{
	struct pollfd end = { .fd = *(int *)pidfd, .events = POLLIN };

	return poll(&end, 1, NAP_US / 1000) > 0 ? pidfd : NULL;
}

/* Until the child is over, which it then says, or there is something else for this thread
   to do, or for a while where there is no pidfd.  Other threads and the collector go on.
   It is fd_set that ends at 1,024, not select(2); but scm_std_select() puts what wakes the
   thread into the set, and ends the process where that number is too large for fd_set. */
static int pause_for(int pidfd)
{
	const int wakes = SCM_I_THREAD_DATA(scm_current_thread())->sleep_pipe[0];
	enum { BITS = 8 * sizeof(unsigned long) };
	struct timeval nap = { 0, NAP_US };
	size_t number = pidfd < 0 ? 0 : (size_t)pidfd, size = sizeof(fd_set);
	unsigned long *set;

	if (wakes >= FD_SETSIZE)
		return scm_without_guile(nap_or_end, &pidfd) != NULL;
	if (number >= FD_SETSIZE)
		size = (number / BITS + 1) * sizeof *set;
	set = scm_gc_malloc_pointerless(size, "set");
	memset(set, 0, size);
	if (pidfd < 0)
		return scm_std_select(0, (fd_set *)set, NULL, NULL, &nap) > 0;
	set[number / BITS] |= 1UL << number % BITS;
	return scm_std_select(pidfd + 1, (fd_set *)set, NULL, NULL, NULL) > 0;
}

/* The status as of wait(2).  A handler that leaves this by a throw loses nothing. */
static SCM end_child(SCM child)
{
	struct wean_child *c = to_child(child);
	struct wean_status s;
	int pidfd = c->pidfd, error;

	while ((error = wean_wait(c, 0, &s)) == ETIMEDOUT) {
		if (pause_for(pidfd))
			pidfd = -1; /* a tracer may keep the end to itself */
		scm_async_tick();
	}
	if (!error)
		wean_release(c);
	scm_remember_upto_here_1(child);
	if (error || s.kind == WEAN_UNKNOWN) {
		errno = ECHILD;
		scm_syserror("close-pipe");
	}
	return scm_from_int(s.kind == WEAN_EXITED ? s.value << 8
	                                          : s.value | (s.core ? 0x80 : 0));
}

/* ---- requests ------------------------------------------------------------ */

/* Cleared, and freed at the end of the dynwind. */
static void *some(size_t n, size_t size)
{
	void *memory = scm_calloc(n * size);

	scm_dynwind_free(memory);
	return memory;
}

/* C would end it there; libguile refuses it itself, but not in every encoding. */
static void refuse_nul(SCM word, const char *caller)
{
	SCM at = scm_string_index(word, SCM_MAKE_CHAR(0), SCM_UNDEFINED, SCM_UNDEFINED);

	if (scm_is_true(at))
		scm_misc_error(caller, "It has a zero byte: ~S", scm_list_1(word));
}

static char **to_argv(SCM words, const char *caller)
{
	long n = scm_ilength(words);
	char **argv;

	SCM_ASSERT_TYPE(n > 0, words, SCM_ARGn, caller, "list of strings");
	argv = some((size_t)n + 1, sizeof *argv);
	for (long i = 0; i < n; i++, words = scm_cdr(words)) {
		argv[i] = scm_to_locale_string(scm_car(words));
		scm_dynwind_free(argv[i]);
		refuse_nul(scm_car(words), caller);
	}
	return argv;
}

/* The file of a current port, or none. */
static struct wean_fd from_port(int target, SCM port)
{
	int is_file = target == 0 ? SCM_OPINFPORTP(port) : SCM_OPOUTFPORTP(port);

	return (struct wean_fd){
		.kind = is_file ? WEAN_DUP : WEAN_NULL, .target = target,
		.source = is_file ? SCM_FPORT_FDES(port) : 0,
	};
}

static _Noreturn void fail(const char *caller, const struct wean_child *child, char **argv,
                           const struct wean_options *options, int error)
{
	char text[512];

	wean_explain(child, argv, options, error, text, sizeof text);
	scm_syserror_msg(caller, "~A", scm_list_1(scm_from_locale_string(text)), error);
}

/* Of an end, which then is the port's.  -1: false. */
static SCM to_port(int *end, const char *mode, const char *name)
{
	int fd = *end;
	char text[8];

	if (fd < 0)
		return SCM_BOOL_F;
	*end = -1;
	strcpy(text, mode); /* libguile asks for a char * */
	return scm_fdes_to_port(fd, text, scm_from_utf8_string(name));
}

/* ---- one program ----------------------------------------------------------- */

struct start {
	struct wean_child *child;
	char **argv;
	struct wean_options options;
	struct wean_fd fds[3];
	int error;
};

static void *spawn(void *data)
{
	struct start *s = data;

	s->error = wean_spawn(s->child, s->argv, &s->options);
	return NULL;
}

/* Gives (FROM . TO), each a port or false.  TO is unbuffered: what is written is on its
   way, as in (ice-9 popen). */
static SCM start_child(SCM child, SCM words, SCM reads, SCM writes)
{
	static const char caller[] = "open-pipe*";
	struct start s = { .child = to_child(child), .options = { .fds = s.fds } };
	SCM from, to;

	scm_dynwind_begin(0);
	s.argv = to_argv(words, caller);
	if (scm_is_true(writes))
		s.options.in = WEAN_PIPE;
	else
		s.fds[s.options.nfds++] = from_port(0, scm_current_input_port());
	if (scm_is_true(reads))
		s.options.out = WEAN_PIPE;
	else
		s.fds[s.options.nfds++] = from_port(1, scm_current_output_port());
	s.fds[s.options.nfds++] = from_port(2, scm_current_error_port());
	scm_without_guile(spawn, &s);
	if (s.error)
		fail(caller, s.child, s.argv, &s.options, s.error);
	scm_dynwind_end();
	from = to_port(&s.child->out, "r", "read pipe");
	to = to_port(&s.child->in, "w0", "write pipe");
	scm_remember_upto_here_1(child);
	return scm_cons(from, to);
}

/* ---- several --------------------------------------------------------------- */

struct stages {
	size_t n;
	struct wean_child *children;
	char ***argvs;
	struct wean_options *options;
	struct wean_fd err;
	int error;
};

static void *spawn_all(void *data)
{
	struct stages *s = data;

	s->error = wean_pipeline(s->children, s->argvs, s->options, s->n);
	return NULL;
}

static _Noreturn void fail_stage(const char *caller, const struct stages *s)
{
	size_t i = 0;

	while (i < s->n - 1 && !s->children[i].stage)
		i++;
	fail(caller, &s->children[i], s->argvs[i], &s->options[i], s->error);
}

/* Gives (FROM TO PID...), the last one's pid first.  The pids are the caller's to wait
   for. */
static SCM start_pipeline(SCM commands)
{
	static const char caller[] = "pipeline";
	long n = scm_ilength(commands);
	struct stages s = { .err = from_port(2, scm_current_error_port()) };
	SCM from, to, pids = SCM_EOL;

	SCM_ASSERT_TYPE(n > 0, commands, SCM_ARG1, caller, "list of commands");
	scm_dynwind_begin(0);
	s.n = (size_t)n;
	s.children = some(s.n, sizeof *s.children);
	s.argvs = some(s.n, sizeof *s.argvs);
	s.options = some(s.n, sizeof *s.options);
	for (size_t i = 0; i < s.n; i++, commands = scm_cdr(commands)) {
		s.argvs[i] = to_argv(scm_car(commands), caller);
		s.options[i].fds = &s.err;
		s.options[i].nfds = 1;
	}
	s.options[0].in = s.options[s.n - 1].out = WEAN_PIPE;
	scm_without_guile(spawn_all, &s);
	if (s.error)
		fail_stage(caller, &s);
	from = to_port(&s.children[s.n - 1].out, "r", "read pipe");
	to = to_port(&s.children[0].in, "w", "write pipe");
	for (size_t i = 0; i < s.n; i++) {
		pids = scm_cons(scm_from_int(s.children[i].pid), pids);
		wean_release(&s.children[i]);
	}
	scm_dynwind_end();
	return scm_cons2(from, to, pids);
}

/* ---- the module ------------------------------------------------------------ */

#define DEFINE(name, n, function) \
	scm_c_define_gsubr(name, n, 0, 0, __extension__ (scm_t_subr)function)

void init_guile_wean(void)
{
	child_type = scm_make_foreign_object_type(scm_from_utf8_symbol("child"),
		scm_list_1(scm_from_utf8_symbol("struct")), NULL);
	DEFINE("make-child", 0, make_child);
	DEFINE("child-pid", 1, child_pid);
	DEFINE("child-over?", 1, child_is_over);
	DEFINE("end-child!", 1, end_child);
	DEFINE("start-child!", 4, start_child);
	DEFINE("start-pipeline", 1, start_pipeline);
}
