/* Pure: command texts that mean the same to execve(2) as to /bin/sh -c. */
#ifndef WEAN_WORDS_H
#define WEAN_WORDS_H

#include <stddef.h>

/* How many words there are; 0: none, or something that only a shell understands. */
size_t wean_words_count(const char *text);

/* Cuts such a text at its blanks and points list at the words, NULL at the end. */
void wean_words_cut(char *text, char **list);

/* Whether a shell with this environment finds the same program by this word as
   wean_spawn() does, and would do no more than run it. */
int wean_words_found_by_all(const char *word, char *const *env);

#endif
