/* _weanmodule.c - what Python's subprocess needs of wean.
 *
 * fork_exec() does what _posixsubprocess.fork_exec does: it starts a program, and gives
 * the pid of a child that the caller is to wait for.  A Child is a process to wait for,
 * to talk to and to send signals to.  wean_subprocess.py puts them under subprocess.
 *
 *    $ cc -shared -fPIC -o _wean.so _weanmodule.c $(python3-config --includes) \
 *          $(pkg-config --cflags --libs wean)
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wean.h>

static PyObject *
fail(int error)
{
	errno = error;
	return PyErr_SetFromErrno(PyExc_OSError);
}

/* ---- a start: its arguments --------------------------------------------- */

/* The two that are first are ours, the others those of _posixsubprocess.fork_exec. */
struct request {
	PyObject *original;    /* it */
	const char *chdir_mark; /* how subprocess is told that cwd could not be entered */
	PyObject *args, *programs, *keep, *cwd, *env, *gid, *groups, *uid, *preexec_fn;
	int close_fds, restore_signals, new_session, pgid, umask, may_share;
	int theirs[3], ours[3]; /* ends of pipes: of the child's 0, 1 and 2, or -1 */
	int report[2];
};

#if PY_VERSION_HEX >= 0x030b0000
# define PGID_FORMAT "i"
# define PGID(r) &(r)->pgid,
# define SHARE_FORMAT "p"
# define SHARE(r) , &(r)->may_share
#else
# define PGID_FORMAT
# define PGID(r)
# define SHARE_FORMAT
# define SHARE(r)
#endif

static int
parse(struct request *r, PyObject *args)
{
	r->pgid = -1;
	r->may_share = 1;
	return PyArg_ParseTuple(args,
	    "Oy" "OOpO!OO" "iiiiiiii" "pp" PGID_FORMAT "OOOiO" SHARE_FORMAT ":fork_exec",
	    &r->original, &r->chdir_mark,
	    &r->args, &r->programs, &r->close_fds, &PyTuple_Type, &r->keep, &r->cwd,
	    &r->env, &r->theirs[0], &r->ours[0], &r->ours[1], &r->theirs[1], &r->ours[2],
	    &r->theirs[2], &r->report[0], &r->report[1], &r->restore_signals,
	    &r->new_session, PGID(r)
	    &r->gid, &r->groups, &r->uid, &r->umask, &r->preexec_fn SHARE(r));
}

static int
keep_is_sound(PyObject *keep)
{
	long last = -1;

	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keep); i++) {
		PyObject *item = PyTuple_GET_ITEM(keep, i);
		long fd = PyLong_Check(item) ? PyLong_AsLong(item) : -1;

		PyErr_Clear(); /* too large is -1 too */
		if (fd <= last || fd > INT_MAX)
			return 0;
		last = fd;
	}
	return 1;
}

static int
check(const struct request *r)
{
	const char *fault = NULL;

	if (r->close_fds && r->report[1] < 3)
		fault = "errpipe_write must be >= 3";
	else if (!keep_is_sound(r->keep))
		fault = "bad value(s) in fds_to_keep";
	if (fault)
		PyErr_SetString(PyExc_ValueError, fault);
	return !fault;
}

/* ---- a start: its options ----------------------------------------------- */

struct start {
	struct wean_options options;
	PyObject *held;        /* what the texts below lie in */
	char **argv, **programs, **env;
	struct wean_fd *fds;
	unsigned *groups;
};

static void
drop(struct start *s)
{
	Py_XDECREF(s->held);
	PyMem_Free(s->argv);
	PyMem_Free(s->programs);
	PyMem_Free(s->env);
	PyMem_Free(s->fds);
	PyMem_Free(s->groups);
}

static void *
take(size_t n, size_t size)
{
	void *memory = PyMem_Calloc(n, size);

	if (!memory)
		PyErr_NoMemory();
	return memory;
}

static char *
take_text(struct start *s, PyObject *object)
{
	PyObject *bytes;
	int kept;

	if (!PyUnicode_FSConverter(object, &bytes))
		return NULL;
	kept = PyList_Append(s->held, bytes) == 0;
	Py_DECREF(bytes); /* the list has it */
	return kept ? PyBytes_AS_STRING(bytes) : NULL;
}

static int
take_texts(struct start *s, PyObject *sequence, char ***texts)
{
	PyObject *items = PySequence_Tuple(sequence);
	Py_ssize_t n = items ? PyTuple_GET_SIZE(items) : 0, i = 0;

	if (items && (*texts = take((size_t)n + 1, sizeof **texts)) != NULL)
		while (i < n && ((*texts)[i] = take_text(s, PyTuple_GET_ITEM(items, i))))
			i++;
	Py_XDECREF(items);
	return *texts && i == n;
}

/* A copy, since other threads may change it as soon as they may run. */
static char **
take_environ(void)
{
	size_t n = 0, bytes = 0;
	char **copy, *text;

	for (; environ && environ[n]; n++)
		bytes += strlen(environ[n]) + 1;
	if (!(copy = take((n + 1) * sizeof copy[0] + bytes, 1)))
		return NULL;
	text = (char *)(copy + n + 1);
	for (size_t i = 0; i < n; i++) {
		copy[i] = text;
		text = stpcpy(text, environ[i]) + 1;
	}
	return copy;
}

static int
set_environment(struct start *s, const struct request *r)
{
	if (r->env != Py_None)
		return take_texts(s, r->env, &s->env);
	s->env = take_environ();
	return s->env != NULL;
}

static int
set_texts(struct start *s, const struct request *r)
{
	if (!(s->held = PyList_New(0)) || !take_texts(s, r->programs, &s->programs)
	    || !take_texts(s, r->args, &s->argv) || !set_environment(s, r))
		return 0;
	s->options.candidates = s->programs;
	s->options.env = s->env;
	return r->cwd == Py_None || (s->options.dir = take_text(s, r->cwd)) != NULL;
}

enum { SPECIAL = 7 };

/* Of what is said about a number the first counts.  What is kept comes last, and says
   nothing twice. */
static void
add_fd(struct start *s, int kind, int target, int source)
{
	size_t *n = &s->options.nfds;

	for (size_t i = 0; i < *n && i < SPECIAL; i++)
		if (s->fds[i].target == target)
			return;
	s->fds[(*n)++] = (struct wean_fd){
		.kind = kind, .target = target, .source = source
	};
}

/* Errors are told by us and not by the child, which does not get that pipe. */
static int
set_descriptors(struct start *s, const struct request *r)
{
	Py_ssize_t n = PyTuple_GET_SIZE(r->keep);

	if (!(s->fds = take(SPECIAL + (size_t)n, sizeof s->fds[0])))
		return 0;
	s->options.fds = s->fds;
	for (int i = 0; i < 3; i++)
		if (r->theirs[i] >= 0)
			add_fd(s, WEAN_DUP, i, r->theirs[i]);
	for (int i = 0; i < 3; i++)
		if (r->ours[i] >= 0)
			add_fd(s, WEAN_CLOSED, r->ours[i], 0);
	if (r->report[0] >= 0)
		add_fd(s, WEAN_CLOSED, r->report[0], 0);
	for (Py_ssize_t i = 0; i < n; i++) {
		int fd = (int)PyLong_AsLong(PyTuple_GET_ITEM(r->keep, i));

		if (fd != r->report[1])
			add_fd(s, WEAN_KEEP, fd, 0);
	}
	return 1;
}

static int
to_id(PyObject *object, unsigned *id)
{
	PyObject *number = PyNumber_Index(object);
	unsigned long value = number ? PyLong_AsUnsignedLong(number) : 0;

	Py_XDECREF(number);
	if (PyErr_Occurred())
		return 0;
	if (value > UINT_MAX) {
		PyErr_SetString(PyExc_OverflowError, "the id is too large");
		return 0;
	}
	*id = (unsigned)value;
	return 1;
}

static int
set_groups(struct start *s, PyObject *list)
{
	PyObject *items = PySequence_Tuple(list);
	Py_ssize_t n = items ? PyTuple_GET_SIZE(items) : 0, i = 0;

	if (items && (s->groups = take((size_t)n + 1, sizeof s->groups[0])) != NULL)
		while (i < n && to_id(PyTuple_GET_ITEM(items, i), &s->groups[i]))
			i++;
	Py_XDECREF(items);
	if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError))
		PyErr_SetString(PyExc_ValueError, "invalid group id");
	s->options.flags |= WEAN_SET_GROUPS;
	s->options.groups = s->groups;
	s->options.ngroups = (size_t)n;
	return s->groups && i == n;
}

static int
set_ids(struct start *s, const struct request *r)
{
	struct wean_options *o = &s->options;

	if (r->uid != Py_None)
		o->flags |= WEAN_SET_UID;
	if (r->gid != Py_None)
		o->flags |= WEAN_SET_GID;
	return (r->groups == Py_None || set_groups(s, r->groups))
	    && (r->gid == Py_None || to_id(r->gid, &o->gid))
	    && (r->uid == Py_None || to_id(r->uid, &o->uid));
}

static void
set_attributes(struct start *s, const struct request *r)
{
	struct wean_options *o = &s->options;

	o->flags |= WEAN_KEEP_SIGNALS | WEAN_STDIO_AS_IS;
	if (!r->close_fds)
		o->flags |= WEAN_INHERIT_ALL;
	if (!r->may_share)
		o->flags |= WEAN_NO_SHARED_MEMORY;
	if (r->restore_signals)
		o->sigdefault = WEAN_SIG(SIGPIPE) | WEAN_SIG(SIGXFSZ);
	if (r->new_session)
		o->flags |= WEAN_NEW_SESSION;
	if (r->pgid >= 0)
		o->flags |= r->pgid ? WEAN_JOIN_GROUP : WEAN_NEW_GROUP;
	if (r->pgid >= 0)
		o->pgid = r->pgid;
	if (r->umask >= 0) {
		o->flags |= WEAN_SET_UMASK;
		o->umask = r->umask & 0777;
	}
}

/* ---- a start ------------------------------------------------------------ */

static PyObject *
call_original(const struct request *r, PyObject *args)
{
	PyObject *theirs = PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args));
	PyObject *pid = theirs ? PyObject_Call(r->original, theirs, NULL) : NULL;

	Py_XDECREF(theirs);
	return pid;
}

/* Python between fork and exec; what the kernel refuses and wean does not ask it for. */
static int
is_for_original(const struct request *r)
{
	return r->preexec_fn != Py_None || (r->new_session && r->pgid >= 0);
}

/* It enters the directory before it changes ids, and goes on past whatever an exec
   says. */
static int
original_does_more(const struct start *s, const struct wean_child *child, int error)
{
	const unsigned long long ids = WEAN_SET_GROUPS | WEAN_SET_GID | WEAN_SET_UID;

	if (child->stage == WEAN_STAGE_DIR)
		return (s->options.flags & ids) != 0;
	return child->stage == WEAN_STAGE_EXEC && s->programs[1] && error != ENOENT
	    && error != ENOTDIR && error != EACCES;
}

/* The caller waits for a child in any case, and wean leaves none of a start that failed:
   one that ends as the original's does. */
static pid_t
make_stand_in(void)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before); /* it is in our memory */
	pid = vfork();
	if (pid == 0)
		_exit(255);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static PyObject *
report(const struct request *r, const struct wean_child *child, int error)
{
	const char *mark = child->stage == WEAN_STAGE_EXEC ? ""
	    : child->stage == WEAN_STAGE_DIR ? r->chdir_mark : "noexec";
	char text[64];
	int len = snprintf(text, sizeof text, "OSError:%x:%s", (unsigned)error, mark);
	pid_t pid;

	if (write(r->report[1], text, (size_t)len) < 0)
		return fail(error);
	pid = make_stand_in();
	return pid < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(pid);
}

/* Other threads run on meanwhile: an exec from a dead file server takes its time. */
static PyObject *
start(const struct start *s, const struct request *r, PyObject *args)
{
	struct wean_child child;
	int error;

	Py_BEGIN_ALLOW_THREADS
	error = wean_spawn(&child, s->argv, &s->options);
	wean_release(&child);
	Py_END_ALLOW_THREADS
	if (!error)
		return PyLong_FromLong(child.pid);
	if (child.stage <= WEAN_STAGE_LAUNCH)
		return fail(error);
	if (original_does_more(s, &child, error))
		return call_original(r, args);
	return report(r, &child, error);
}

static PyObject *
fork_exec(PyObject *module, PyObject *args)
{
	struct request r;
	struct start s = { .held = NULL };
	PyObject *pid = NULL;

	(void)module;
	if (!parse(&r, args))
		return NULL;
	if (is_for_original(&r))
		return call_original(&r, args);
	if (check(&r) && set_texts(&s, &r) && set_descriptors(&s, &r)
	    && set_ids(&s, &r)) {
		set_attributes(&s, &r);
		pid = start(&s, &r, args);
	}
	drop(&s);
	return pid;
}

/* ---- a child ------------------------------------------------------------ */

typedef struct {
	PyObject_HEAD
	struct wean_child child;
	struct wean_result result;
	Py_buffer input;
	PyObject *said;        /* what communicate() gave in the end */
	int waiters;           /* threads in a call that may use the pidfd */
	int is_over, is_talking;
} Child;

static Child *
child_of(PyObject *self)
{
	return (Child *)(void *)self;
}

static PyObject *
child_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	PyObject *self;
	int pid, error;

	(void)keywords;
	if (!PyArg_ParseTuple(args, "i:Child", &pid) || !(self = type->tp_alloc(type, 0)))
		return NULL;
	error = wean_adopt(&child_of(self)->child, pid, WEAN_EINTR);
	if (!error)
		return self;
	Py_DECREF(self);
	return fail(error);
}

static void
child_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Child *c = child_of(self);

	wean_result_free(&c->result);
	wean_release(&c->child);
	PyBuffer_Release(&c->input);
	Py_XDECREF(c->said);
	type->tp_free(self);
	Py_DECREF(type);
}

static void
begin_wait(Child *c)
{
	c->waiters++;
}

/* A program may keep thousands that are over. */
static void
end_wait(Child *c, int is_over)
{
	c->is_over |= is_over;
	if (--c->waiters == 0 && c->is_over && c->child.pidfd >= 0) {
		close(c->child.pidfd);
		c->child.pidfd = -1;
	}
}

/* What a wait came to that ended too early: 0 and no exception, go on. */
static int
is_failure(int error)
{
	if (error == ETIMEDOUT || error == EINTR)
		return PyErr_CheckSignals() != 0;
	if (error)
		fail(error);
	return error != 0;
}

static PyObject *
child_wait(PyObject *self, PyObject *args)
{
	Child *c = child_of(self);
	struct wean_status status;
	int timeout_ms, error;

	if (!PyArg_ParseTuple(args, "i:wait", &timeout_ms))
		return NULL;
	begin_wait(c);
	Py_BEGIN_ALLOW_THREADS
	error = wean_wait(&c->child, timeout_ms, &status);
	Py_END_ALLOW_THREADS
	end_wait(c, !error);
	if (is_failure(error))
		return NULL;
	if (error)
		Py_RETURN_NONE;
	return PyLong_FromLong(status.kind == WEAN_SIGNALED ? -status.value
	                                                    : status.code);
}

static PyObject *
child_kill(PyObject *self, PyObject *args)
{
	int sig, error;

	if (!PyArg_ParseTuple(args, "i:kill", &sig))
		return NULL;
	error = wean_kill(&child_of(self)->child, sig);
	if (error)
		return fail(error);
	Py_RETURN_NONE;
}

static int
is_free(const Child *c)
{
	if (c->is_talking)
		PyErr_SetString(PyExc_RuntimeError, "another thread is in communicate");
	return !c->is_talking;
}

static int
copy_end(int fd, int *end)
{
	if (*end >= 0)
		close(*end);
	*end = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 || *end >= 0;
}

/* wean closes what it has read, and Python what it has opened. */
static PyObject *
child_attach(PyObject *self, PyObject *args)
{
	Child *c = child_of(self);
	int in, out, err;

	if (!is_free(c))
		return NULL;
	Py_CLEAR(c->said);
	PyBuffer_Release(&c->input);
	if (!PyArg_ParseTuple(args, "y*iii:attach", &c->input, &in, &out, &err))
		return NULL;
	if (!copy_end(in, &c->child.in) || !copy_end(out, &c->child.out)
	    || !copy_end(err, &c->child.err))
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

static PyObject *
output(const char *data, size_t len)
{
	if (data)
		return PyBytes_FromStringAndSize(data, (Py_ssize_t)len);
	Py_RETURN_NONE;
}

/* It may be called once more after the end: a handler that throws may run between the
   return from here and the use of what was returned. */
static PyObject *
child_communicate(PyObject *self, PyObject *args)
{
	Child *c = child_of(self);
	struct wean_io io = { .linger_ms = -1 };
	struct wean_result *r = &c->result;
	PyObject *said;
	int error;

	if (!PyArg_ParseTuple(args, "i:communicate", &io.timeout_ms) || !is_free(c))
		return NULL;
	if (c->said)
		return Py_NewRef(c->said);
	io.input = c->input.buf;
	io.input_len = (size_t)c->input.len;
	begin_wait(c);
	c->is_talking = 1;
	Py_BEGIN_ALLOW_THREADS
	error = wean_communicate(&c->child, &io, r);
	Py_END_ALLOW_THREADS
	c->is_talking = 0;
	end_wait(c, !error);
	if (is_failure(error))
		return NULL;
	said = Py_BuildValue("NNN", PyBool_FromLong(!error), output(r->out, r->out_len),
	                     output(r->err, r->err_len));
	if (said && !error) {
		c->said = Py_NewRef(said);
		wean_result_free(r);
		PyBuffer_Release(&c->input);
	}
	return said;
}

/* ---- the module --------------------------------------------------------- */

static PyMethodDef child_methods[] = {
	{ "wait", child_wait, METH_VARARGS,
	  "wait(ms): the returncode of subprocess; None: it still runs." },
	{ "kill", child_kill, METH_VARARGS, "kill(signal): never another process." },
	{ "attach", child_attach, METH_VARARGS,
	  "attach(input, in, out, err): what to write; our ends of the pipes, or -1." },
	{ "communicate", child_communicate, METH_VARARGS,
	  "communicate(ms): (True, out, err); (False, ...): call again." },
	{ NULL, NULL, 0, NULL },
};

/* Slots hold functions as pointers to objects. */
#define SLOT(function) (void *)(uintptr_t)(function)

static PyType_Slot child_slots[] = {
	{ Py_tp_new, SLOT(child_new) },
	{ Py_tp_dealloc, SLOT(child_dealloc) },
	{ Py_tp_methods, child_methods },
	{ 0, NULL },
};

static PyType_Spec child_spec = {
	.name = "_wean.Child",
	.basicsize = sizeof(Child),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = child_slots,
};

static int
add_child(PyObject *module)
{
	PyObject *type = PyType_FromModuleAndSpec(module, &child_spec, NULL);
	int error = type ? PyModule_AddType(module, (PyTypeObject *)(void *)type) : -1;

	Py_XDECREF(type);
	return error;
}

static PyMethodDef functions[] = {
	{ "fork_exec", fork_exec, METH_VARARGS,
	  "fork_exec(original, chdir_mark, *args): as original(*args)." },
	{ NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot module_slots[] = {
	{ Py_mod_exec, SLOT(add_child) },
#if PY_VERSION_HEX >= 0x030c0000
	{ Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_wean",
	.m_methods = functions,
	.m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__wean(void)
{
	return PyModuleDef_Init(&definition);
}
