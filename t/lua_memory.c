/* lua_memory.c - a piece of Lua, with every piece of memory in turn refused: whatever is
 * thrown, and wherever, no child and no descriptor is left.  Built and run by t/lua.sh.
 *
 *    $ lua_memory 'wean.run{ "true" }' ...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>

static long granted = -1; /* pieces, before no more is given; < 0: all */

static void *allocate(void *unused, void *old, size_t old_size, size_t size)
{
	(void)unused;
	if (size == 0) {
		free(old);
		return NULL;
	}
	if (granted >= 0 && (!old || size > old_size)) {
		if (granted == 0)
			return NULL;
		granted--;
	}
	return realloc(old, size);
}

static void must_run(lua_State *L, const char *text)
{
	if (luaL_loadstring(L, text) || lua_pcall(L, 0, 0, 0)) {
		printf("%s: %s\n", text, lua_tostring(L, -1));
		exit(1);
	}
}

/* What was dropped is over, and reaped, and so is what waited for its input. */
static void settle(lua_State *L)
{
	lua_gc(L, LUA_GCCOLLECT, 0);
	lua_gc(L, LUA_GCCOLLECT, 0);
	must_run(L, "package.loaded.wean = nil wean = require 'wean' "
	            "wean.spawn{ kid, 'exit', 0 }:close() "
	            "wean.run{ kid, 'sleep', 5 } wean.execute{ kid, 'exit', 0 }");
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static int refuse_in_turn(lua_State *L, const char *text)
{
	int open, failed = 1, bad = 0;
	long n = 0;

	must_run(L, text);
	settle(L);
	for (open = descriptors(); failed && !bad; n++) {
		if (luaL_loadstring(L, text))
			return 1;
		granted = n;
		failed = lua_pcall(L, 0, 0, 0);
		granted = -1;
		lua_settop(L, 0);
		settle(L);
		for (int i = 0; i < 2000 && has_children(); i++)
			settle(L);
		bad = has_children() || descriptors() != open;
	}
	printf("%s: memory was refused %ld times%s\n", text, n - 1,
	       bad ? ", AND SOMETHING IS LEFT" : "");
	return bad;
}

int main(int argc, char **argv)
{
	lua_State *L = lua_newstate(allocate, NULL);
	int bad = 0;

	if (!L)
		return 1;
	luaL_openlibs(L);
	must_run(L, "wean, kid = require 'wean', './kid'");
	for (int i = 1; i < argc; i++)
		bad |= refuse_in_turn(L, argv[i]);
	lua_close(L);
	return bad;
}
