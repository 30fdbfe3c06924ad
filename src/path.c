#include <string.h>

#include "path.h"

/* The next absolute element from *at on: its length, 0 where there is none. */
static size_t
next_element(const char **at, const char **element)
{
	while (**at != '\0') {
		const char *start = *at;
		size_t len = strcspn(start, ":");

		*at += len + (start[len] == ':');
		if (*start == '/') {
			*element = start;
			return len;
		}
	}
	return 0;
}

size_t
wean_path_count(const char *path, const char *name, size_t *bytes)
{
	const char *element;
	size_t n = 0, len;

	*bytes = 0;
	while ((len = next_element(&path, &element)) > 0) {
		*bytes += len + 1 + strlen(name) + 1;
		n++;
	}
	return n;
}

void
wean_path_list(const char *path, const char *name, char *text, char **list)
{
	const char *element;
	size_t len;

	while ((len = next_element(&path, &element)) > 0) {
		*list++ = text;
		memcpy(text, element, len);
		text += len;
		*text++ = '/';
		text += strlen(strcpy(text, name)) + 1;
	}
	*list = NULL;
}
