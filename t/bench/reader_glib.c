/* reader_glib.c - GSubprocess, which collects both outputs. */
#include "reading.h"

#ifdef HAVE_GLIB

#include <errno.h>
#include <gio/gio.h>

static size_t size_of(GBytes *bytes)
{
	const size_t size = bytes ? g_bytes_get_size(bytes) : 0;

	if (bytes)
		g_bytes_unref(bytes);
	return size;
}

static int collect(const struct text *text, long long *ns)
{
	const GSubprocessFlags both =
		G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE;
	GSubprocess *p = g_subprocess_newv((const char *const *)text->argv, both, NULL);
	GBytes *out = NULL, *err = NULL;
	int good;

	(void)ns;
	if (!p)
		return EIO;
	good = g_subprocess_communicate(p, NULL, NULL, &out, &err, NULL) &&
	       g_subprocess_get_successful(p);
	good &= size_of(out) == text->bytes;
	good &= size_of(err) == 0;
	g_object_unref(p);
	return good ? 0 : EPROTO;
}

read_fn *const collect_glib = collect;

#else

read_fn *const collect_glib = NULL;

#endif
