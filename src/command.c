#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "env.h"
#include "sys.h"
#include "words.h"

static int
start_shell(struct wean_child *child, const char *text, struct wean_options o)
{
	char *argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c",
	                 (char *)(uintptr_t)"--", (char *)(uintptr_t)text, NULL };

	o.file = "/bin/sh";
	return wean_spawn(child, argv, &o);
}

/* ---- without a shell ---- */

enum { LONGEST = 4096 };   /* path that getcwd(2) gives, with its 0 */

struct words {
	char *edits[2];
	char pwd[4 + LONGEST];
	char *list[];           /* and the text of them */
};

static int
is_here(const char *path)
{
	struct sys_file there, here;

	return path && *path == '/' && wean_sys_file_at(SYS_HERE, path, &there) == 0
	    && wean_sys_file_at(SYS_HERE, ".", &here) == 0
	    && there.inode == here.inode && there.device == here.device;
}

/* A shell gives what it starts a PWD that is right. */
static int
set_pwd(struct words *w, struct wean_options *o)
{
	char *path = strcpy(w->pwd, "PWD=") + 4;

	if (is_here(wean_env_value(wean_sys_environ(), "PWD")))
		return 1;
	if (wean_sys_getcwd(path, LONGEST) < 0 || *path != '/')
		return 0;
	w->edits[0] = w->pwd;
	w->edits[1] = NULL;
	o->env_edit = w->edits;
	return 1;
}

/* What is not found, is no program or needs an interpreter is the shell's business: so its
   message, its status and its ways are the shell's own. */
static int
try_words(struct wean_child *child, struct words *w, struct wean_options o, int *by_shell)
{
	int error;

	*by_shell = 1;
	if (!wean_words_found_by_all(w->list[0], wean_sys_environ()) || !set_pwd(w, &o))
		return 0;
	error = wean_spawn(child, w->list, &o);
	*by_shell = error
	    && (child->stage == WEAN_STAGE_EXEC || child->stage == WEAN_STAGE_OPTIONS);
	return error;
}

static int
start_words(struct wean_child *child, const char *text, const struct wean_options *o,
            int *by_shell)
{
	size_t n = wean_words_count(text), list = (n + 1) * sizeof(char *);
	struct words *w;
	int error;

	*by_shell = n == 0;
	if (n == 0)
		return 0;
	if (!(w = malloc(sizeof *w + list + strlen(text) + 1)))
		return ENOMEM;
	wean_words_cut(strcpy((char *)w->list + list, text), w->list);
	error = try_words(child, w, *o, by_shell);
	free(w);
	return error;
}

int
wean_command_start(struct wean_child *child, const char *text,
                   const struct wean_options *o, int by_shell)
{
	int error = 0;

	if (!by_shell)
		error = start_words(child, text, o, &by_shell);
	return by_shell ? start_shell(child, text, *o) : error;
}
