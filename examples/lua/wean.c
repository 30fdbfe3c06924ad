/* wean.c - wean for Lua 5.1 to 5.4.  (LuaJIT needs no C: see examples/ffi.)
 *
 *    $ cc -shared -fPIC $(pkg-config --cflags lua5.4) -o wean.so wean.c \
 *          $(pkg-config --cflags --libs wean)
 *    $ lua5.4
 *    > wean = require "wean"
 *
 *    > wean.run{"sort", "-r", input = "a\nb\n", timeout_ms = 5000}.out
 *    b
 *    a
 *    > wean.run{"./missing"}
 *    nil	cannot run './missing': No such file or directory	2
 *
 *    > c = wean.spawn{"cat", stdin = "pipe", stdout = "pipe"}
 *    > c:write("hello\n"):read("*l")
 *    hello
 *    > c:close()
 *    true	exit	0
 *
 *    > wean.replace()       -- io.popen and os.execute are wean's from here on
 *
 * What fails gives nil, a message and an errno; a wrong argument is an error.  How a
 * child ended is told as by os.execute: true or nil, "exit" or "signal" ("unknown" where
 * another reaped it), and the number.
 *
 * wean.spawn{argv..., options}: a child.  Its options are the members and flags of struct
 *   wean_options by their names in small letters, see man 3 wean_options: dir, file, umask,
 *   uid, new_group = true ...  The other ones:
 *     env, setenv             from name to value; false in the second: it has none
 *     stdin, stdout, stderr   "inherit", "null", "pipe", "closed", for stderr "merge"; a
 *                             file of Lua's or a number of ours
 *     fds                     from a number of the child to the same
 *     limits                  {nofile = 64, cpu = {1, 2}}: soft and hard; < 0: none
 *     sigmask ...             lists of numbers
 * child.pid, .pidfd; .stdin, .stdout, .stderr: where it has a pipe, a file of Lua's.
 * child:read, :lines: of its stdout, and child:write: to its stdin, as of files.  What is
 *   written is in the pipe at once.  Where nobody reads it, child:write fails; the write of
 *   the file itself brings SIGPIPE, as that of an io.popen.
 * child:wait([ms]): how it ended.  nil, "timed out", ETIMEDOUT: it runs.
 * child:kill([sig]), child:kill_group([sig]), child:stop(grace_ms): SIGTERM if not said;
 *   wean.SIGINT and so on.
 * child:close(): closes its files and waits for it, as the file of an io.popen.
 * A child that is dropped, by the collector or at the end of its scope (<close>), is
 *   neither waited for nor killed; once it is over, a later spawn or run reaps it.
 *
 * wean.run{argv..., options}: a table with out, err, ok, kind and code ("exit", 0), and
 *   what else struct wean_result has.  More options: input, out_max, err_max, timeout_ms,
 *   grace_ms, linger_ms, lines; on_out, on_err: functions that take what comes, and
 *   return false to end the child.  After nil, message, errno comes the table, if it was
 *   started.  An error in one of the functions ends the child, and is thrown on.
 *
 * wean.popen(command [, mode]), wean.execute([command]): as io.popen and os.execute; a
 *   table is a program with its arguments, and never needs a shell.  A stream that is
 *   dropped is not waited for, but what was written to it arrives.
 * wean.replace(): puts these two in their places, and gives those that were there.
 */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <wean.h>
#include <wean_popen.h>

#define CHILD "wean.child"
#define CALL "wean.call"
#define LEFT "wean.left"

#if LUA_VERSION_NUM < 502
typedef struct { FILE *f; lua_CFunction closef; } luaL_Stream; /* it knows the first */
# define lua_rawlen lua_objlen
# define lua_getuservalue lua_getfenv
# define lua_setuservalue lua_setfenv
# define luaL_setmetatable(L, name) (luaL_getmetatable(L, name), lua_setmetatable(L, -2))
# define luaL_setfuncs(L, list, n) luaL_register(L, NULL, list)
#endif

int luaopen_wean(lua_State *L);

/* ---- results ----------------------------------------------------------- */

static int
failure(lua_State *L, const char *what, int error)
{
	const char *text = error == ETIMEDOUT ? "timed out" : strerror(error);

	lua_pushnil(L);
	if (what)
		lua_pushfstring(L, "%s: %s", what, text);
	else
		lua_pushstring(L, text);
	lua_pushinteger(L, error);
	return 3;
}

static int
success_or(lua_State *L, int error)
{
	if (error)
		return failure(L, NULL, error);
	lua_pushboolean(L, 1);
	return 1;
}

/* How a child ended, if there was no error. */
static int
push_end(lua_State *L, int error, const struct wean_status *s)
{
	int is_known = s->kind == WEAN_EXITED || s->kind == WEAN_SIGNALED;

	if (error)
		return failure(L, NULL, error);
	if (is_known && s->code == 0)
		lua_pushboolean(L, 1);
	else
		lua_pushnil(L);
	lua_pushstring(L, !is_known ? "unknown" : s->kind == WEAN_EXITED ? "exit" : "signal");
	lua_pushinteger(L, is_known ? s->value : 255);
	return 3;
}

/* Of wait(2), as wean_pclose() and wean_system() give it. */
static int
push_wait_status(lua_State *L, int status)
{
	struct wean_status s = { .kind = WEAN_EXITED };

	if (status == -1)
		return failure(L, NULL, errno);
	if (WIFSIGNALED(status))
		s.kind = WEAN_SIGNALED;
	s.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	s.code = status;
	return push_end(L, 0, &s);
}

/* ---- files of Lua's ---------------------------------------------------- */

/* Held for a moment: it would end the interpreter. */
struct sigpipe {
	sigset_t mask;
	int pending;
};

static void
hold_sigpipe(struct sigpipe *s)
{
	sigset_t set;

	sigpending(&set);
	s->pending = sigismember(&set, SIGPIPE);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &s->mask);
}

static void
drop_sigpipe(const struct sigpipe *s)
{
	const struct timespec now = { 0 };
	int saved = errno;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (!s->pending)
		while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
	errno = saved;
}

/* So that what the file still holds needs no reader to be written.  A pipe may be of a
   megabyte; where it may not, what does not fit is lost. */
static void
make_room_in_pipe(FILE *file)
{
	size_t rest = __fpending(file);
	int fd = fileno(file), size;

	if (rest == 0 || (size = fcntl(fd, F_GETPIPE_SZ)) < 0)
		return;
	if (rest < INT_MAX / 4)
		fcntl(fd, F_SETPIPE_SZ, size + (int)rest + PIPE_BUF);
	fcntl(fd, F_SETFL, O_WRONLY | O_NONBLOCK);
}

static int
close_file(luaL_Stream *s, int may_wait)
{
	FILE *file = s->f;
	struct sigpipe held;
	int error = 0;

	s->f = NULL;
	s->closef = NULL;
	if (!file)
		return 0;
	if (!may_wait)
		make_room_in_pipe(file);
	hold_sigpipe(&held);
	if (fclose(file) != 0)
		error = errno;
	drop_sigpipe(&held);
	return error;
}

/* Whether it is the collector, or the end of a scope, that closes the file: Lua calls
   `closef` from the function that was called, which is then __gc or __close. */
static int
was_dropped(lua_State *L)
{
	lua_Debug running;
	int dropped;

	if (!luaL_getmetafield(L, 1, "__gc"))
		return 0;
	lua_getstack(L, 0, &running);
	lua_getinfo(L, "f", &running);
	dropped = lua_rawequal(L, -1, -2);
	lua_pop(L, 2);
	return dropped;
}

static int
close_end(lua_State *L)
{
	luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);

	return success_or(L, close_file(s, !was_dropped(L)));
}

/* Without waiting: wean_popen() and wean_system() reap whose stream is gone. */
static int
close_popened(lua_State *L)
{
	luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);
	int status;

	if (was_dropped(L))
		return success_or(L, close_file(s, 0));
	status = wean_pclose(s->f);
	s->f = NULL;
	return LUA_VERSION_NUM < 502 && status != -1 ? success_or(L, 0)
	                                             : push_wait_status(L, status);
}

/* On top; a closed one until it gets an f and, from Lua 5.2 on, a closef. */
static luaL_Stream *
new_file(lua_State *L, lua_CFunction close, size_t buffer)
{
	luaL_Stream *s = lua_newuserdata(L, sizeof *s + buffer);

	s->f = NULL;
	s->closef = NULL;
	luaL_setmetatable(L, LUA_FILEHANDLE);
#if LUA_VERSION_NUM < 502
	lua_newtable(L);
	lua_pushcfunction(L, close);
	lua_setfield(L, -2, "__close");
	lua_setfenv(L, -2);
#else
	(void)close;
#endif
	return s;
}

/* ---- what an argument says --------------------------------------------- */

/* Where the functions below have their table, and what they made of it. */
enum { TABLE = 1, KEPT };

struct request {
	char **argv;
	size_t argc;
	struct wean_options o;
	struct wean_fd *fds;
	size_t room;           /* for fds */
	struct wean_io io;
	int on_out, on_err;    /* in KEPT */
};

struct option {
	const char *name;
	void (*set)(lua_State *, struct request *, const struct option *);
	size_t at;             /* in the request */
	unsigned long long what; /* a flag, or a descriptor */
};

/* Pops it; it lives as long as the call. */
static int
keep(lua_State *L)
{
	int place = (int)lua_rawlen(L, KEPT) + 1;

	lua_rawseti(L, KEPT, place);
	return place;
}

static void *
keep_memory(lua_State *L, size_t n, size_t size)
{
	void *p = memset(lua_newuserdata(L, n * size), 0, n * size);

	keep(L);
	return p;
}

/* The type of what is on top. */
static void
need(lua_State *L, int type, const char *name)
{
	if (lua_type(L, -1) != type)
		luaL_error(L, "%s: %s expected, got %s", name, lua_typename(L, type),
		           luaL_typename(L, -1));
}

static const char *
keep_text(lua_State *L, const char *name, size_t *len)
{
	const char *text;

	if (lua_type(L, -1) != LUA_TNUMBER)
		need(L, LUA_TSTRING, name);
	text = lua_tolstring(L, -1, len);
	keep(L);
	return text;
}

/* The kernel would cut it. */
static const char *
keep_word(lua_State *L, const char *name)
{
	size_t len;
	const char *text = keep_text(L, name, &len);

	if (strlen(text) != len)
		luaL_error(L, "%s: it has a zero byte", name);
	return text;
}

static char **
keep_words(lua_State *L, const char *name)
{
	size_t n;
	char **list;

	need(L, LUA_TTABLE, name);
	n = lua_rawlen(L, -1);
	list = keep_memory(L, n + 1, sizeof *list);
	for (size_t i = 0; i < n; i++) {
		lua_rawgeti(L, -1, (int)i + 1);
		list[i] = (char *)keep_word(L, name);
	}
	lua_pop(L, 1);
	return list;
}

static lua_Number
take_number(lua_State *L, const char *name, lua_Number min, lua_Number max)
{
	lua_Number n;
	int good;

	need(L, LUA_TNUMBER, name);
	n = lua_tonumber(L, -1);
	good = n >= min && n <= max;
	if (good && n < (lua_Number)LLONG_MAX)
		good = n == (lua_Number)(long long)n;
	if (!good)
		luaL_error(L, "%s: it can't be %f", name, n);
	lua_pop(L, 1);
	return n;
}

/* A table that is gone through has as many as were counted: a finalizer, which runs where
   memory is taken, may have changed it. */
static void
need_room(lua_State *L, int has_room, const char *name)
{
	if (!has_room)
		luaL_error(L, "%s: changed meanwhile", name);
}

static size_t
count(lua_State *L)
{
	size_t n = 0;

	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		n++;
	return n;
}

/* ---- options ----------------------------------------------------------- */

#define AT(type, r, option) (*(type *)(void *)((char *)(r) + (option)->at))

static void
set_flag(lua_State *L, struct request *r, const struct option *option)
{
	if (lua_toboolean(L, -1))
		r->o.flags |= option->what;
	lua_pop(L, 1);
}

static void
set_int(lua_State *L, struct request *r, const struct option *option)
{
	AT(int, r, option) = (int)take_number(L, option->name, INT_MIN, INT_MAX);
	r->o.flags |= option->what;
}

static void
set_id(lua_State *L, struct request *r, const struct option *option)
{
	AT(unsigned, r, option) = (unsigned)take_number(L, option->name, 0, UINT_MAX);
	r->o.flags |= option->what;
}

static void
set_word(lua_State *L, struct request *r, const struct option *option)
{
	AT(const char *, r, option) = keep_word(L, option->name);
}

static void
set_words(lua_State *L, struct request *r, const struct option *option)
{
	AT(char *const *, r, option) = keep_words(L, option->name);
}

static void
set_signals(lua_State *L, struct request *r, const struct option *option)
{
	need(L, LUA_TTABLE, option->name);
	for (int i = 1; i <= (int)lua_rawlen(L, -1); i++) {
		lua_rawgeti(L, -1, i);
		AT(unsigned long long, r, option) |=
			WEAN_SIG((int)take_number(L, option->name, 1, 64));
	}
	lua_pop(L, 1);
}

/* From name and value, which it pops. */
static char *
keep_variable(lua_State *L, const char *option)
{
	size_t len;
	const char *name;

	lua_pushvalue(L, -2); /* what lua_next() needs must stay a number if it is one */
	name = keep_text(L, option, &len);
	if (*name == '\0' || strlen(name) != len || strchr(name, '='))
		luaL_error(L, "%s: '%s' is no name", option, name);
	if (lua_isboolean(L, -1) && !lua_toboolean(L, -1)) {
		lua_pop(L, 1);
		return (char *)name;
	}
	lua_pushfstring(L, "%s=%s", name, keep_word(L, name));
	return (char *)keep_word(L, option);
}

static void
set_variables(lua_State *L, struct request *r, const struct option *option)
{
	char **list;
	size_t n = 0, room;

	need(L, LUA_TTABLE, option->name);
	room = count(L);
	list = keep_memory(L, room + 1, sizeof *list);
	for (lua_pushnil(L); lua_next(L, -2); n++) {
		need_room(L, n < room, option->name);
		list[n] = keep_variable(L, option->name);
	}
	lua_pop(L, 1);
	AT(char *const *, r, option) = list;
}

static void
set_groups(lua_State *L, struct request *r, const struct option *option)
{
	unsigned *groups;
	size_t n;

	need(L, LUA_TTABLE, option->name);
	n = lua_rawlen(L, -1);
	groups = keep_memory(L, n + 1, sizeof *groups);
	for (size_t i = 0; i < n; i++) {
		lua_rawgeti(L, -1, (int)i + 1);
		groups[i] = (unsigned)take_number(L, option->name, 0, UINT_MAX);
	}
	lua_pop(L, 1);
	r->o.groups = groups;
	r->o.ngroups = n;
	r->o.flags |= option->what;
}

static int
resource_of(lua_State *L, const char *name)
{
	static const struct { const char *name; int resource; } known[] = {
		{ "as", RLIMIT_AS }, { "core", RLIMIT_CORE }, { "cpu", RLIMIT_CPU },
		{ "data", RLIMIT_DATA }, { "fsize", RLIMIT_FSIZE },
		{ "memlock", RLIMIT_MEMLOCK }, { "nofile", RLIMIT_NOFILE },
		{ "nproc", RLIMIT_NPROC }, { "stack", RLIMIT_STACK },
	};

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].resource;
	return luaL_error(L, "limits: '%s' is unknown", name);
}

/* On top. */
static unsigned long long
take_limit(lua_State *L)
{
	lua_Number n = take_number(L, "limits", -1, 18446744073709549568.0);

	return n < 0 ? ~0ULL : (unsigned long long)n;
}

static void
set_limits(lua_State *L, struct request *r, const struct option *option)
{
	struct wean_limit *l;
	size_t room;

	need(L, LUA_TTABLE, option->name);
	room = count(L);
	l = keep_memory(L, room + 1, sizeof *l);
	r->o.limits = l;
	for (lua_pushnil(L); lua_next(L, -2); l++) {
		need_room(L, l < r->o.limits + room, option->name);
		lua_pushvalue(L, -2);
		l->resource = resource_of(L, keep_word(L, option->name));
		if (!lua_istable(L, -1)) {
			l->soft = l->hard = take_limit(L);
			continue;
		}
		lua_rawgeti(L, -1, 2);
		l->hard = take_limit(L);
		lua_rawgeti(L, -1, 1);
		l->soft = take_limit(L);
		lua_pop(L, 1);
	}
	r->o.nlimits = (size_t)(l - r->o.limits);
	lua_pop(L, 1);
}

/* A file's number, with nothing left in its buffer that should come before. */
static int
number_of_file(lua_State *L, const char *name)
{
	luaL_Stream *s;

	luaL_getmetatable(L, LUA_FILEHANDLE);
	if (!lua_getmetatable(L, -2) || !lua_rawequal(L, -1, -2))
		luaL_error(L, "%s: it is no file, number or known word", name);
	lua_pop(L, 2);
	s = lua_touserdata(L, -1);
	lua_pop(L, 1);
	if (!s->f || (LUA_VERSION_NUM >= 502 && !s->closef))
		luaL_error(L, "%s: a closed file", name);
	fflush(s->f);
	return fileno(s->f);
}

/* By the word on top; 0: it is none of these. */
static int
kind_of(lua_State *L)
{
	static const char *const names[] = { "inherit", "null", "pipe", "merge", "closed" };
	const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";

	for (int i = 0; i < 5; i++)
		if (strcmp(names[i], name) == 0)
			return WEAN_INHERIT + i;
	return 0;
}

static void
set_fd(lua_State *L, struct request *r, int target, const char *name)
{
	struct wean_fd *fd = &r->fds[r->o.nfds];

	need_room(L, r->o.nfds++ < r->room, name);
	r->o.fds = r->fds;
	fd->target = target;
	fd->kind = kind_of(L);
	if (fd->kind) {
		lua_pop(L, 1);
		return;
	}
	fd->kind = WEAN_DUP;
	fd->source = lua_type(L, -1) == LUA_TNUMBER
		? (int)take_number(L, name, 0, INT_MAX) : number_of_file(L, name);
}

static void
set_stdio(lua_State *L, struct request *r, const struct option *option)
{
	if ((AT(int, r, option) = kind_of(L)) != 0)
		lua_pop(L, 1);
	else
		set_fd(L, r, (int)option->what, option->name);
}

static void
set_fds(lua_State *L, struct request *r, const struct option *option)
{
	need(L, LUA_TTABLE, option->name);
	for (lua_pushnil(L); lua_next(L, -2); ) {
		lua_pushvalue(L, -2);
		set_fd(L, r, (int)take_number(L, option->name, 0, INT_MAX), option->name);
	}
	lua_pop(L, 1);
}

static void
set_input(lua_State *L, struct request *r, const struct option *option)
{
	r->io.input = keep_text(L, option->name, &r->io.input_len);
}

static void
set_size(lua_State *L, struct request *r, const struct option *option)
{
	const lua_Number max = sizeof(size_t) > 4 ? 9007199254740992.0 : UINT_MAX;

	AT(size_t, r, option) = (size_t)take_number(L, option->name, 0, max);
}

static void
set_lines(lua_State *L, struct request *r, const struct option *option)
{
	r->io.flags = lua_toboolean(L, -1) ? (unsigned)option->what : 0;
	lua_pop(L, 1);
}

static void
set_function(lua_State *L, struct request *r, const struct option *option)
{
	need(L, LUA_TFUNCTION, option->name);
	AT(int, r, option) = keep(L);
}

#define IN(member) offsetof(struct request, member)

static const struct option spawn_options[] = {
	{ "candidates", set_words, IN(o.candidates), 0 },
	{ "cgroupfd", set_int, IN(o.cgroupfd), WEAN_IN_CGROUP },
	{ "dir", set_word, IN(o.dir), 0 },
	{ "dirfd", set_int, IN(o.dirfd), WEAN_DIR_FD },
	{ "env", set_variables, IN(o.env), 0 },
	{ "fds", set_fds, 0, 0 },
	{ "file", set_word, IN(o.file), 0 },
	{ "gid", set_id, IN(o.gid), WEAN_SET_GID },
	{ "groups", set_groups, 0, WEAN_SET_GROUPS },
	{ "limits", set_limits, 0, 0 },
	{ "nice", set_int, IN(o.nice), WEAN_SET_NICE },
	{ "pdeathsig", set_int, IN(o.pdeathsig), 0 },
	{ "pgid", set_int, IN(o.pgid), WEAN_JOIN_GROUP },
	{ "setenv", set_variables, IN(o.env_edit), 0 },
	{ "sigdefault", set_signals, IN(o.sigdefault), 0 },
	{ "sigignore", set_signals, IN(o.sigignore), 0 },
	{ "sigmask", set_signals, IN(o.sigmask), 0 },
	{ "stderr", set_stdio, IN(o.err), 2 },
	{ "stdin", set_stdio, IN(o.in), 0 },
	{ "stdout", set_stdio, IN(o.out), 1 },
	{ "ttyfd", set_int, IN(o.ttyfd), 0 },
	{ "uid", set_id, IN(o.uid), WEAN_SET_UID },
	{ "umask", set_int, IN(o.umask), WEAN_SET_UMASK },

	{ "child_path", set_flag, 0, WEAN_CHILD_PATH },
	{ "control_tty", set_flag, 0, WEAN_CONTROL_TTY },
	{ "eintr", set_flag, 0, WEAN_EINTR },
	{ "foreground", set_flag, 0, WEAN_FOREGROUND },
	{ "inherit_all", set_flag, 0, WEAN_INHERIT_ALL },
	{ "keep_ignored", set_flag, 0, WEAN_KEEP_IGNORED },
	{ "keep_sigmask", set_flag, 0, WEAN_KEEP_SIGMASK },
	{ "keep_signals", set_flag, 0, WEAN_KEEP_SIGNALS },
	{ "need_pidfd", set_flag, 0, WEAN_NEED_PIDFD },
	{ "new_group", set_flag, 0, WEAN_NEW_GROUP },
	{ "new_session", set_flag, 0, WEAN_NEW_SESSION },
	{ "no_new_privs", set_flag, 0, WEAN_NO_NEW_PRIVS },
	{ "no_shared_memory", set_flag, 0, WEAN_NO_SHARED_MEMORY },
	{ "nonblock", set_flag, 0, WEAN_NONBLOCK },
	{ "reset_signals", set_flag, 0, WEAN_RESET_SIGNALS },
	{ "shell_script", set_flag, 0, WEAN_SHELL_SCRIPT },
	{ "stdio_as_is", set_flag, 0, WEAN_STDIO_AS_IS },
	{ NULL, NULL, 0, 0 }
};

static const struct option run_options[] = {
	{ "err_max", set_size, IN(io.err_max), 0 },
	{ "grace_ms", set_int, IN(io.grace_ms), 0 },
	{ "input", set_input, 0, 0 },
	{ "lines", set_lines, 0, WEAN_LINES },
	{ "linger_ms", set_int, IN(io.linger_ms), 0 },
	{ "on_err", set_function, IN(on_err), 0 },
	{ "on_out", set_function, IN(on_out), 0 },
	{ "out_max", set_size, IN(io.out_max), 0 },
	{ "timeout_ms", set_int, IN(io.timeout_ms), 0 },
	{ NULL, NULL, 0, 0 }
};

static const struct option *
find_option(const struct option *option, const char *name)
{
	while (option->name && strcmp(option->name, name) != 0)
		option++;
	return option->name ? option : NULL;
}

/* By the key and the value on top; pops the value. */
static void
set_option(lua_State *L, struct request *r, int runs)
{
	const struct option *option;
	const char *name;

	if (lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) >= 1
	    && lua_tonumber(L, -2) <= (lua_Number)r->argc) {
		lua_pop(L, 1); /* an argument */
		return;
	}
	lua_pushvalue(L, -2);
	name = keep_word(L, "option");
	option = find_option(spawn_options, name);
	if (!option && runs)
		option = find_option(run_options, name);
	if (!option)
		luaL_error(L, "'%s' is no option", name);
	option->set(L, r, option);
}

static void
read_request(lua_State *L, struct request *r, int runs)
{
	*r = (struct request){ .room = 3 };
	lua_getfield(L, TABLE, "fds");
	if (lua_istable(L, -1))
		r->room += count(L);
	lua_pop(L, 1);
	r->fds = keep_memory(L, r->room, sizeof *r->fds);
	lua_pushvalue(L, TABLE);
	r->argc = lua_rawlen(L, TABLE);
	r->argv = keep_words(L, "argument");
	for (lua_pushnil(L); lua_next(L, TABLE); )
		set_option(L, r, runs);
}

/* Leaves TABLE and KEPT alone on the stack. */
static void
begin(lua_State *L)
{
	luaL_checktype(L, TABLE, LUA_TTABLE);
	lua_settop(L, TABLE);
	lua_newtable(L);
}

static int
not_started(lua_State *L, const struct request *r, const struct wean_child *child,
            int error)
{
	char text[1024];

	wean_explain(child, r->argv, &r->o, error, text, sizeof text);
	lua_pushnil(L);
	lua_pushstring(L, text);
	lua_pushinteger(L, error);
	return 3;
}

/* ---- children that were dropped ---------------------------------------- */

/* One for an interpreter.  A place in it is made when a child is started, since a
   finalizer must not fail. */
struct left {
	struct wean_child *children;
	size_t n, room;
	size_t promised;       /* places, to children that are not dropped yet */
};

static void
reap(struct left *left)
{
	size_t i = 0;

	if (wean_wait_any(left->children, left->n, 0, &i) != 0)
		return;
	while (i < left->n) {
		if (wean_wait(&left->children[i], 0, NULL) != 0) {
			i++;
			continue;
		}
		wean_release(&left->children[i]);
		left->children[i] = left->children[--left->n];
	}
}

static struct left *
reap_those_left(lua_State *L)
{
	struct left *left;

	lua_getfield(L, LUA_REGISTRYINDEX, LEFT);
	left = lua_touserdata(L, -1);
	lua_pop(L, 1);
	reap(left);
	return left;
}

static void
promise_place(lua_State *L, struct left *left)
{
	struct wean_child *children;
	size_t room = 2 * left->room + 16;

	if (left->n + left->promised == left->room) {
		children = realloc(left->children, room * sizeof *children);
		if (!children)
			luaL_error(L, "not enough memory");
		left->children = children;
		left->room = room;
	}
	left->promised++;
}

/* When the interpreter is closed, after all that uses it. */
static int
left_gc(lua_State *L)
{
	struct left *left = lua_touserdata(L, 1);

	reap(left);
	while (left->n > 0)
		wean_release(&left->children[--left->n]);
	free(left->children);
	left->children = NULL;
	left->room = 0;
	return 0;
}

/* ---- a child ----------------------------------------------------------- */

struct child {
	struct wean_child wean;
	struct left *left;     /* where it has a place, as long as it was not dropped */
};

enum { END_BUFFER = 65536 + 8 /* musl keeps 8 bytes for ungetc(3) */ };

static const char *const end_names[3] = { "stdin", "stdout", "stderr" };

static struct child *
check_child(lua_State *L)
{
	return luaL_checkudata(L, 1, CHILD);
}

static int
int_or(lua_State *L, int arg, int otherwise)
{
	lua_Integer n = luaL_optinteger(L, arg, otherwise);

	luaL_argcheck(L, n >= INT_MIN && n <= INT_MAX, arg, "too large");
	return (int)n;
}

/* Closed ones, for its pipes, in the table on top: no memory is needed once it runs. */
static void
prepare_ends(lua_State *L, const struct request *r, luaL_Stream *ends[3])
{
	const int kinds[3] = { r->o.in, r->o.out, r->o.err };

	for (int i = 0; i < 3; i++) {
		ends[i] = NULL;
		if (kinds[i] != WEAN_PIPE)
			continue;
		ends[i] = new_file(L, close_end, i == 0 ? 0 : END_BUFFER);
		lua_setfield(L, -2, end_names[i]);
	}
}

static int
open_end(luaL_Stream *s, int *fd, int writes)
{
	if (!(s->f = fdopen(*fd, writes ? "w" : "r")))
		return errno;
	*fd = -1;
	s->closef = close_end;
	if (writes)
		setvbuf(s->f, NULL, _IONBF, 0); /* nothing is left to be written later */
	else
		setvbuf(s->f, (char *)(s + 1), _IOFBF, END_BUFFER);
	return 0;
}

static int
open_ends(struct wean_child *child, luaL_Stream *const ends[3])
{
	int *const fds[3] = { &child->in, &child->out, &child->err };
	int error = 0;

	for (int i = 0; i < 3 && !error; i++)
		if (ends[i])
			error = open_end(ends[i], fds[i], i == 0);
	return error;
}

static int
spawn(lua_State *L)
{
	luaL_Stream *ends[3];
	struct left *left;
	struct request r;
	struct child *c;
	int error;

	begin(L);
	read_request(L, &r, 0);
	c = lua_newuserdata(L, sizeof *c);
	*c = (struct child){ .left = NULL };
	luaL_setmetatable(L, CHILD);
	lua_newtable(L);
	prepare_ends(L, &r, ends);
	lua_setuservalue(L, -2);
	left = reap_those_left(L);
	promise_place(L, left);
	c->left = left;
	error = wean_spawn(&c->wean, r.argv, &r.o);
	if (error == EMFILE) { /* those of handles that were dropped, not collected yet */
		lua_gc(L, LUA_GCCOLLECT, 0);
		error = wean_spawn(&c->wean, r.argv, &r.o);
	}
	if (error)
		return not_started(L, &r, &c->wean, error);
	if ((error = open_ends(&c->wean, ends)) != 0) {
		wean_stop(&c->wean, 0, NULL);
		return failure(L, NULL, error);
	}
	return 1;
}

static int
child_gc(lua_State *L)
{
	struct child *c = check_child(L);
	struct left *left = c->left;

	if (!left)
		return 0;
	c->left = NULL;
	left->promised--;
	if (wean_wait(&c->wean, 0, NULL) == ETIMEDOUT)
		left->children[left->n++] = c->wean;
	else
		wean_release(&c->wean);
	c->wean = (struct wean_child){ 0 };
	return 0;
}

static void
close_ends(lua_State *L, int may_wait)
{
	lua_getuservalue(L, 1);
	for (int i = 0; i < 3; i++) {
		lua_getfield(L, -1, end_names[i]);
		if (!lua_isnil(L, -1))
			close_file(lua_touserdata(L, -1), may_wait);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

static int
child_leave(lua_State *L)
{
	check_child(L);
	close_ends(L, 0);
	return child_gc(L);
}

static int
child_wait(lua_State *L)
{
	struct child *c = check_child(L);
	int ms = int_or(L, 2, -1);
	struct wean_status status = { 0 };

	return push_end(L, wean_wait(&c->wean, ms, &status), &status);
}

static int
child_close(lua_State *L)
{
	struct child *c = check_child(L);
	struct wean_status status = { 0 };
	int error;

	close_ends(L, 1);
	error = wean_wait(&c->wean, -1, &status);
	if (!error && c->wean.pidfd >= 0) {
		close(c->wean.pidfd);
		c->wean.pidfd = -1;
	}
	return push_end(L, error, &status);
}

static int
child_stop(lua_State *L)
{
	struct child *c = check_child(L);
	int grace_ms = (luaL_checknumber(L, 2), int_or(L, 2, 0));
	struct wean_status status = { 0 };

	return push_end(L, wean_stop(&c->wean, grace_ms, &status), &status);
}

static int
child_kill(lua_State *L)
{
	struct child *c = check_child(L);

	return success_or(L, wean_kill(&c->wean, int_or(L, 2, SIGTERM)));
}

static int
child_kill_group(lua_State *L)
{
	struct child *c = check_child(L);

	return success_or(L, wean_kill_group(&c->wean, int_or(L, 2, SIGTERM)));
}

/* Calls a method of one of its files with the arguments of ours. */
static int
call_of_end(lua_State *L, int end, const char *method)
{
	int n = lua_gettop(L);

	check_child(L);
	luaL_checkstack(L, n + 2, "too many arguments");
	lua_getuservalue(L, 1);
	lua_getfield(L, -1, end_names[end]);
	if (lua_isnil(L, -1))
		luaL_error(L, "%s is no pipe", end_names[end]);
	lua_replace(L, -2);
	lua_getfield(L, -1, method);
	lua_insert(L, -2);
	for (int i = 2; i <= n; i++)
		lua_pushvalue(L, i);
	lua_call(L, n, LUA_MULTRET);
	return lua_gettop(L) - n;
}

static int
child_read(lua_State *L)
{
	return call_of_end(L, 1, "read");
}

static int
child_lines(lua_State *L)
{
	return call_of_end(L, 1, "lines");
}

static int
write_to_end(lua_State *L)
{
	return call_of_end(L, 0, "write");
}

/* Gives the child, as the write of a file gives the file. */
static int
child_write(lua_State *L)
{
	int n = lua_gettop(L), failed;
	struct sigpipe held;

	luaL_checkstack(L, n + 1, "too many arguments");
	lua_pushcfunction(L, write_to_end);
	for (int i = 1; i <= n; i++)
		lua_pushvalue(L, i);
	hold_sigpipe(&held);
	failed = lua_pcall(L, n, LUA_MULTRET, 0);
	drop_sigpipe(&held);
	if (failed)
		return lua_error(L);
	if (lua_isnil(L, n + 1))
		return lua_gettop(L) - n;
	lua_pushvalue(L, 1);
	return 1;
}

/* A method, one of its files, or a number. */
static int
child_index(lua_State *L)
{
	struct child *c = check_child(L);
	const char *name = luaL_checkstring(L, 2);

	lua_settop(L, 2);
	lua_pushvalue(L, 2);
	lua_rawget(L, lua_upvalueindex(1));
	if (!lua_isnil(L, -1))
		return 1;
	if (strcmp(name, "pid") == 0 || strcmp(name, "pidfd") == 0) {
		lua_pushinteger(L, name[3] ? c->wean.pidfd : c->wean.pid);
		return 1;
	}
	lua_getuservalue(L, 1);
	lua_pushvalue(L, 2);
	lua_rawget(L, -2);
	return 1;
}

/* ---- the whole of a child's output ------------------------------------- */

struct call {
	lua_State *L;
	const struct request *r;
	struct wean_result result;
	const char *data;      /* what is handed over */
	size_t len;
	int threw;             /* a function did, and its error is on top */
};

enum { HAND_OVER = KEPT + 1 };

/* Protected, since a string takes memory. */
static int
hand_over(lua_State *L)
{
	const struct call *c = lua_touserdata(L, 2);

	lua_settop(L, 1);
	lua_pushlstring(L, c->data, c->len);
	lua_call(L, 1, 1);
	return 1;
}

/* Nothing is thrown through wean_run(). */
static int
give(struct call *c, int function, const char *data, size_t len)
{
	lua_State *L = c->L;
	int ends;

	c->data = data;
	c->len = len;
	lua_pushvalue(L, HAND_OVER);
	lua_rawgeti(L, KEPT, function);
	lua_pushlightuserdata(L, c);
	c->threw = lua_pcall(L, 2, 1, 0) != 0;
	if (c->threw)
		return ECANCELED;
	ends = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
	lua_pop(L, 1);
	return ends ? ECANCELED : 0;
}

static int
give_out(void *context, const char *data, size_t len)
{
	struct call *c = context;

	return give(c, c->r->on_out, data, len);
}

static int
give_err(void *context, const char *data, size_t len)
{
	struct call *c = context;

	return give(c, c->r->on_err, data, len);
}

static void
add_text(lua_State *L, const char *name, const char *text, size_t len)
{
	if (text) {
		lua_pushlstring(L, text, len);
		lua_setfield(L, -2, name);
	}
}

static void
add_number(lua_State *L, const char *name, long long n)
{
	lua_pushnumber(L, (lua_Number)n);
	lua_setfield(L, -2, name);
}

static void
add_flags(lua_State *L, unsigned flags)
{
	static const struct { const char *name; unsigned flag; } names[] = {
		{ "timed_out", WEAN_TIMED_OUT }, { "out_truncated", WEAN_OUT_TRUNCATED },
		{ "err_truncated", WEAN_ERR_TRUNCATED }, { "still_open", WEAN_STILL_OPEN },
		{ "input_unread", WEAN_INPUT_UNREAD },
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		lua_pushboolean(L, (flags & names[i].flag) != 0);
		lua_setfield(L, -2, names[i].name);
	}
}

static void
push_result(lua_State *L, const struct wean_result *r)
{
	lua_newtable(L);
	add_text(L, "out", r->out, r->out_len);
	add_text(L, "err", r->err, r->err_len);
	add_flags(L, r->flags);
	push_end(L, 0, &r->status);
	lua_setfield(L, -4, "code");
	lua_setfield(L, -3, "kind");
	lua_setfield(L, -2, "ok");
	add_number(L, "in_written", (long long)r->in_written);
	add_number(L, "user_us", r->status.user_us);
	add_number(L, "system_us", r->status.system_us);
	add_number(L, "maxrss_kb", r->status.maxrss_kb);
}

static int
run(lua_State *L)
{
	struct request r;
	struct call *c;
	int error;

	begin(L);
	lua_pushcfunction(L, hand_over);
	read_request(L, &r, 1);
	c = lua_newuserdata(L, sizeof *c);
	*c = (struct call){ .L = L, .r = &r };
	luaL_setmetatable(L, CALL); /* frees the result, whatever is thrown below */
	r.io.context = c;
	r.io.on_out = r.on_out ? give_out : NULL;
	r.io.on_err = r.on_err ? give_err : NULL;
	reap_those_left(L);
	error = wean_run(r.argv, &r.o, &r.io, &c->result);
	if (c->threw)
		return lua_error(L);
	if (c->result.child.stage)
		return not_started(L, &r, &c->result.child, error);
	if (error)
		failure(L, NULL, error);
	push_result(L, &c->result);
	wean_result_free(&c->result);
	return error ? 4 : 1;
}

static int
call_gc(lua_State *L)
{
	struct call *c = lua_touserdata(L, 1);

	wean_result_free(&c->result);
	return 0;
}

/* ---- io.popen, os.execute ---------------------------------------------- */

/* The words of a table.  NULL: it is a text, or nothing.  The second argument stays on
   the stack. */
static char **
words_of(lua_State *L)
{
	if (!lua_istable(L, TABLE))
		return NULL;
	lua_settop(L, 2);
	lua_newtable(L);
	lua_insert(L, KEPT);
	lua_pushvalue(L, TABLE);
	return keep_words(L, "argument");
}

static int
popen_stream(lua_State *L)
{
	const char *mode = luaL_optstring(L, 2, "r");
	int known = strcmp(mode, "r") == 0 || strcmp(mode, "w") == 0;
	const char *text = lua_istable(L, TABLE) ? NULL : luaL_checkstring(L, TABLE);
	luaL_Stream *s;
	char **argv;

	luaL_argcheck(L, known || LUA_VERSION_NUM < 503, 2, "invalid mode");
	argv = words_of(L);
	s = new_file(L, close_popened, 0);
	fflush(NULL); /* as Lua does */
	s->f = text ? wean_popen(text, mode) : wean_popenv(argv, mode);
	if (!s->f)
		return failure(L, text ? text : argv[0], errno);
	s->closef = close_popened;
	return 1;
}

static int
execute(lua_State *L)
{
	char **argv = words_of(L);
	const char *text = argv ? NULL : luaL_optstring(L, TABLE, NULL);
	int status = argv ? wean_systemv(argv) : wean_system(text);

	if (LUA_VERSION_NUM < 502)
		lua_pushinteger(L, status);
	else if (!argv && !text)
		lua_pushboolean(L, status);
	else
		return push_wait_status(L, status);
	return 1;
}

/* Gives what was there. */
static void
replace_one(lua_State *L, const char *library, const char *name)
{
	lua_getglobal(L, library);
	lua_getfield(L, -1, name);
	lua_insert(L, -2);
	lua_getfield(L, lua_upvalueindex(1), name);
	lua_setfield(L, -2, name);
	lua_pop(L, 1);
}

static int
replace(lua_State *L)
{
	replace_one(L, "io", "popen");
	replace_one(L, "os", "execute");
	return 2;
}

/* ---- the module -------------------------------------------------------- */

static const luaL_Reg functions[] = {
	{ "spawn", spawn },
	{ "run", run },
	{ "popen", popen_stream },
	{ "execute", execute },
	{ NULL, NULL }
};

static const luaL_Reg methods[] = {
	{ "read", child_read },
	{ "lines", child_lines },
	{ "write", child_write },
	{ "close", child_close },
	{ "wait", child_wait },
	{ "kill", child_kill },
	{ "kill_group", child_kill_group },
	{ "stop", child_stop },
	{ NULL, NULL }
};

static void
new_type(lua_State *L, const char *name, lua_CFunction gc)
{
	luaL_newmetatable(L, name);
	lua_pushcfunction(L, gc);
	lua_setfield(L, -2, "__gc");
}

static void
make_child_type(lua_State *L)
{
	new_type(L, CHILD, child_gc);
	lua_pushcfunction(L, child_leave);
	lua_setfield(L, -2, "__close");
	lua_newtable(L);
	luaL_setfuncs(L, methods, 0);
	lua_pushcclosure(L, child_index, 1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

static void
make_left(lua_State *L)
{
	struct left *left = lua_newuserdata(L, sizeof *left);

	*left = (struct left){ .n = 0 };
	new_type(L, LEFT " type", left_gc);
	lua_setmetatable(L, -2);
	lua_setfield(L, LUA_REGISTRYINDEX, LEFT);
}

static void
add_signals(lua_State *L)
{
	static const struct { const char *name; int number; } signals[] = {
		{ "SIGHUP", SIGHUP }, { "SIGINT", SIGINT }, { "SIGQUIT", SIGQUIT },
		{ "SIGKILL", SIGKILL }, { "SIGTERM", SIGTERM }, { "SIGSTOP", SIGSTOP },
		{ "SIGCONT", SIGCONT }, { "SIGUSR1", SIGUSR1 }, { "SIGUSR2", SIGUSR2 },
	};

	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		lua_pushinteger(L, signals[i].number);
		lua_setfield(L, -2, signals[i].name);
	}
}

int
luaopen_wean(lua_State *L)
{
	lua_getglobal(L, "jit");
	if (!lua_isnil(L, -1))
		return luaL_error(L, "LuaJIT takes no files of a module's: see examples/ffi");
	lua_getfield(L, LUA_REGISTRYINDEX, LEFT);
	if (lua_isnil(L, -1)) {
		make_child_type(L);
		new_type(L, CALL, call_gc);
		make_left(L); /* last: where it is, all is */
	}
	lua_newtable(L);
	luaL_setfuncs(L, functions, 0);
	lua_pushvalue(L, -1);
	lua_pushcclosure(L, replace, 1);
	lua_setfield(L, -2, "replace");
	add_signals(L);
	return 1;
}
