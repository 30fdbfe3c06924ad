#include <string.h>

#include "env.h"

const char *
wean_env_value(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

size_t
wean_env_count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static size_t
name_length(const char *variable)
{
	return strcspn(variable, "=");
}

const char *
wean_env_nameless(char *const *edits)
{
	while (edits && *edits && name_length(*edits) > 0)
		edits++;
	return edits ? *edits : NULL;
}

/* The last edit of the variable that `variable` names or sets. */
static char *
edit_of(char *const *edits, size_t n, const char *variable)
{
	size_t len = name_length(variable);

	for (size_t i = n; i-- > 0; )
		if (name_length(edits[i]) == len && memcmp(edits[i], variable, len) == 0)
			return edits[i];
	return NULL;
}

static int
is_removal(const char *edit)
{
	return edit[name_length(edit)] == '\0';
}

static size_t
put_edit(char **env, size_t n, char *edit)
{
	for (size_t i = 0; i < n; i++)
		if (env[i] == edit)
			return n;
	if (!is_removal(edit))
		env[n++] = edit;
	return n;
}

void
wean_env_merge(char **merged, char *const *env, char *const *edits)
{
	size_t n = 0, nedits = wean_env_count(edits);

	for (; *env; env++) {
		char *edit = edit_of(edits, nedits, *env);

		if (edit)
			n = put_edit(merged, n, edit);
		else
			merged[n++] = *env;
	}
	for (size_t i = 0; i < nedits; i++)
		n = put_edit(merged, n, edit_of(edits, nedits, edits[i]));
	merged[n] = NULL;
}
