#include <string.h>

#include "env.h"
#include "words.h"

/* ---- what the shell takes for more than a word ---- */

static const char plain[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%= \t";

static const char blanks[] = " \t";

/* As the first word: what is reserved or built in, in dash, bash, ash of busybox, ksh and
   mksh, or by POSIX.  Not here is what some have built in to save a process (cat, sleep). */
static const char *const names[] = {
	".", ":", "alias", "autoload", "bg", "bind", "break", "builtin", "caller",
	"case", "cd", "chdir", "command", "compgen", "complete", "compopt", "continue",
	"coproc", "declare", "dirs", "disown", "do", "done", "echo", "elif", "else",
	"enable", "enum", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg",
	"fi", "float", "for", "function", "getopts", "hash", "help", "hist", "history",
	"if", "in", "integer", "jobs", "kill", "let", "local", "logout", "mapfile",
	"nameref", "namespace", "popd", "print", "printf", "pushd", "pwd", "r", "read",
	"readarray", "readonly", "redirect", "rehash", "return", "select", "set",
	"shift", "shopt", "source", "stop", "suspend", "test", "then", "time", "times",
	"trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
	"until", "wait", "whence", "while",
};

static size_t
word_length(const char *word)
{
	return strcspn(word, blanks);
}

static int
is_name(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strncmp(names[i], word, len) == 0 && names[i][len] == '\0')
			return 1;
	return 0;
}

/* An assignment, a job, an option of the shell's own, or a name of its own. */
static int
is_for_shell(const char *word)
{
	size_t len = word_length(word);

	return memchr(word, '=', len) || strchr("%-+", *word) || is_name(word, len);
}

size_t
wean_words_count(const char *text)
{
	size_t n = 0;

	text += strspn(text, blanks);
	if (*text == '\0' || text[strspn(text, plain)] != '\0' || is_for_shell(text))
		return 0;
	for (; *text != '\0'; n++) {
		text += word_length(text);
		text += strspn(text, blanks);
	}
	return n;
}

void
wean_words_cut(char *text, char **list)
{
	for (;;) {
		text += strspn(text, blanks);
		if (*text == '\0')
			break;
		*list++ = text;
		text += word_length(text);
		if (*text != '\0')
			*text++ = '\0';
	}
	*list = NULL;
}

/* ---- what it finds by a word ---- */

/* A function that bash was given: BASH_FUNC_NAME%%=() {..., or NAME() in that of some
   distributions. */
static int
is_function(const char *variable, const char *word)
{
	static const char prefix[] = "BASH_FUNC_";
	size_t len = strlen(word);

	return strncmp(variable, prefix, sizeof prefix - 1) == 0
	    && strncmp(variable += sizeof prefix - 1, word, len) == 0
	    && (variable[len] == '%' || variable[len] == '(');
}

/* wean_spawn() leaves out what is not absolute, and "%" is special to ash. */
static int
is_searched_alike(const char *path)
{
	while (path && *path == '/') {
		size_t len = strcspn(path, ":%");

		if (path[len] != ':')
			return path[len] == '\0';
		path += len + 1;
	}
	return 0;
}

int
wean_words_found_by_all(const char *word, char *const *env)
{
	for (size_t i = 0; env && env[i]; i++)
		if (is_function(env[i], word))
			return 0;
	if (wean_env_value(env, "SHELLOPTS")) /* bash would trace it, or not run it at all */
		return 0;
	return strchr(word, '/') || is_searched_alike(wean_env_value(env, "PATH"));
}
