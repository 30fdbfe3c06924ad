/* test_reader.c - wean_reader: records exactly as they were written, from any descriptor,
   at the moment they come, by few and large reads and without allocations. */
#define _GNU_SOURCE
#include "talking.h"

#include "count.h"
#include "heap.h"
#include "pty.h"

#include <sys/socket.h>

/* ---- where it comes from ---- */

enum { PIPE, FILE_, SOCKET, KINDS };

/* Bytes, written by a thread in pieces of this size. */
struct source {
	int fd, to;
	const char *data;
	size_t len, piece;
	pthread_t thread;
};

static void *feed(void *arg)
{
	struct source *s = arg;

	for (size_t at = 0; at < s->len;) {
		size_t n = s->len - at < s->piece ? s->len - at : s->piece;
		ssize_t put = write(s->to, s->data + at, n);

		if (put < 0)
			break;
		at += (size_t)put;
	}
	close(s->to);
	return NULL;
}

static void source_of(struct source *s, int kind, const char *data, size_t len, size_t piece)
{
	int ends[2];

	*s = (struct source){ .data = data, .len = len, .piece = piece };
	if (kind == FILE_) {
		ck_assert_int_ge(ends[0] = memfd_create("source", MFD_CLOEXEC), 0);
		ck_assert_int_ge(ends[1] = dup(ends[0]), 0);
	} else if (kind == SOCKET) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	} else {
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	}
	s->fd = ends[0];
	s->to = ends[1];
	ck_assert_int_eq(pthread_create(&s->thread, NULL, feed, s), 0);
	if (kind == FILE_) {
		ck_assert_int_eq(pthread_join(s->thread, NULL), 0);
		ck_assert_int_eq(lseek(s->fd, 0, SEEK_SET), 0);
	}
}

static void source_end(struct source *s, int kind)
{
	if (kind != FILE_)
		ck_assert_int_eq(pthread_join(s->thread, NULL), 0);
	close(s->fd);
}

/* A pipe that holds a text, and whose other end is given, or closed. */
static int pipe_of(const char *text, size_t len, int *to)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(write(ends[1], text, len), (ssize_t)len);
	if (to)
		*to = ends[1];
	else
		close(ends[1]);
	return ends[0];
}

static wean_reader *reader_of(int fd, size_t max)
{
	wean_reader *r = NULL;

	ck_assert_int_eq(wean_reader_new(&r, fd, max), 0);
	ck_assert_ptr_nonnull(r);
	return r;
}

static void put(int fd, const char *text)
{
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* ---- what comes ---- */

static void gives_by(wean_reader *r, int delimiter, int error, const char *text, size_t len)
{
	const char *data = "?";
	size_t got = 4711;

	errno = BASELINE_ERRNO;
	int e = wean_read_record(r, delimiter, &data, &got);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	ck_assert_msg(e == error, "%s; wanted %s", strerror(e), strerror(error));
	if (text) {
		assert_bytes(data, got, text, len);
	} else {
		ck_assert_ptr_null(data);
		ck_assert_uint_eq(got, 0);
	}
}

static void gives(wean_reader *r, const char *text)
{
	const char *data = "?";
	size_t len = 4711;
	int error = wean_read_line(r, &data, &len);

	ck_assert_msg(!error, "%s", strerror(error));
	assert_text(data, len, text);
}

static void gives_none(wean_reader *r, int error)
{
	gives_by(r, '\n', error, NULL, 0);
}

/* ---- records ---- */

START_TEST(lines_come_without_their_newlines)
{
	int fd = pipe_of("a\n\nbc\nlast", 10, NULL);
	wean_reader *r = reader_of(fd, 0);

	gives(r, "a");
	gives(r, "");
	gives(r, "bc");
	gives(r, "last");
	gives_none(r, 0);
	gives_none(r, 0);
	wean_reader_free(r);
	close(fd);
}
END_TEST

START_TEST(an_empty_input_has_no_record)
{
	int fd = _i ? open("/dev/null", O_RDONLY | O_CLOEXEC) : pipe_of("", 0, NULL);
	wean_reader *r = reader_of(fd, 0);
	const char *data = "?";
	size_t len = 1;

	gives_none(r, 0);
	ck_assert_int_eq(wean_read_some(r, &data, &len), 0);
	ck_assert_ptr_null(data);
	ck_assert_uint_eq(len, 0);
	wean_reader_free(r);
	close(fd);
}
END_TEST

START_TEST(zero_bytes_are_bytes)
{
	int fd = pipe_of("a\0b\n\0\n\0\0", 8, NULL);
	wean_reader *r = reader_of(fd, 0);

	gives_by(r, '\n', 0, "a\0b", 3);
	gives_by(r, '\n', 0, "\0", 1);
	gives_by(r, '\n', 0, "\0\0", 2);
	gives_none(r, 0);
	wean_reader_free(r);
	close(fd);
}
END_TEST

START_TEST(a_record_ends_at_any_delimiter)
{
	for (int d = 0; d < 256; d++) {
		char text[] = { (char)(d + 1), (char)d, (char)(d + 2), (char)(d + 3), (char)d,
		                (char)d, (char)(d + 4) };
		int fd = pipe_of(text, sizeof text, NULL);
		wean_reader *r = reader_of(fd, 0);

		gives_by(r, d, 0, (char[]){ (char)(d + 1), 0 }, 1);
		gives_by(r, d, 0, (char[]){ (char)(d + 2), (char)(d + 3), 0 }, 2);
		gives_by(r, d, 0, "", 0);
		gives_by(r, d, 0, (char[]){ (char)(d + 4), 0 }, 1);
		gives_by(r, d, 0, NULL, 0);
		wean_reader_free(r);
		close(fd);
	}
}
END_TEST

START_TEST(the_delimiter_may_change_between_records)
{
	int to, fd = pipe_of("a:b\nc:d\0e", 9, &to);
	wean_reader *r = reader_of(fd, 0);

	ck_assert_int_eq(wean_reader_timeout(r, 0), 0);
	gives_by(r, ':', 0, "a", 1);
	gives_by(r, '\n', 0, "b", 1);
	gives_by(r, '!', ETIMEDOUT, NULL, 0); /* all was searched for it */
	gives_by(r, 0, 0, "c:d", 3);
	gives_by(r, '!', ETIMEDOUT, NULL, 0);
	close(to);
	gives_by(r, ':', 0, "e", 1);
	gives_by(r, ':', 0, NULL, 0);
	wean_reader_free(r);
	close(fd);
}
END_TEST

/* Around what a pipe holds, what a read asks for, and what the buffer has. */
START_TEST(records_across_the_borders_of_the_buffer_are_exact)
{
	static const size_t sizes[] = {
		65535, 65536, 65537, 131073, 1, 0, 262143, 262144, 262145, 196607, 65537, 3, 131071,
		131072, 524289, 65535,
	};
	static const size_t pieces[] = { 1048576, 65536, 4093 };
	size_t len = 0, at = 0;
	struct source s;

	for (size_t i = 0; i < COUNT(sizes); i++)
		len += sizes[i] + 1;
	char *all = for_good(malloc(len + 1));
	for (size_t i = 0; i < len; i++)
		all[i] = (char)(kid_pattern(i) == '\n' ? 'n' : kid_pattern(i));
	for (size_t i = 0; i < COUNT(sizes); i++) {
		at += sizes[i];
		all[at++] = '\n';
	}
	source_of(&s, _i % KINDS, all, len, pieces[_i / KINDS]);
	wean_reader *r = reader_of(s.fd, 0);
	for (size_t i = 0, from = 0; i < COUNT(sizes); from += sizes[i++] + 1)
		gives_by(r, '\n', 0, memcpy(for_good(calloc(1, sizes[i] + 1)), all + from,
		                            sizes[i]), sizes[i]);
	gives_none(r, 0);
	wean_reader_free(r);
	source_end(&s, _i % KINDS);
}
END_TEST

START_TEST(what_is_longer_than_the_longest_comes_in_parts)
{
	int fd = pipe_of("0123456789\n0123456789a\n0123456789abcdefghij\nx\n0123456789abc", 59,
	                 NULL);
	wean_reader *r = reader_of(fd, 10);

	gives_by(r, '\n', 0, "0123456789", 10);
	gives_by(r, '\n', EMSGSIZE, "0123456789", 10);
	gives_by(r, '\n', 0, "a", 1);
	gives_by(r, '\n', EMSGSIZE, "0123456789", 10);
	gives_by(r, '\n', 0, "abcdefghij", 10);
	gives_by(r, '\n', 0, "x", 1);
	gives_by(r, '\n', EMSGSIZE, "0123456789", 10);
	gives_by(r, '\n', 0, "abc", 3);
	gives_none(r, 0);
	wean_reader_free(r);
	close(fd);
}
END_TEST

START_TEST(fifty_megabytes_without_a_newline_are_one_record_or_many_parts)
{
	const size_t len = 50 * 1000 * 1000, part = 1 << 20;
	char *all = pattern(len);
	const char *data;
	struct source s;
	size_t got, sum = 0;
	int error;

	for (size_t i = 0; i < len; i++)
		all[i] = all[i] == '\n' ? 'n' : all[i];
	source_of(&s, PIPE, all, len, 1 << 20);
	wean_reader *r = reader_of(s.fd, _i ? len : 0);
	while ((error = wean_read_line(r, &data, &got)) == EMSGSIZE) {
		ck_assert_uint_eq(got, part);
		ck_assert_mem_eq(data, all + sum, got);
		ck_assert_int_eq(data[got], 0);
		sum += got;
	}
	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(sum, _i ? 0 : len / part * part);
	ck_assert_uint_eq(sum + got, len);
	ck_assert(!memcmp(data, all + sum, got) && data[got] == 0);
	gives_none(r, 0);
	wean_reader_free(r);
	source_end(&s, PIPE);
}
END_TEST

/* ---- as it comes ---- */

START_TEST(a_carriage_return_whose_newline_comes_later_stays)
{
	int to, fd = pipe_of("abc\r", 4, &to);
	wean_reader *r = reader_of(fd, 0);

	ck_assert_int_eq(wean_reader_timeout(r, 0), 0);
	gives_none(r, ETIMEDOUT);
	put(to, "\ndef\r\n");
	gives(r, "abc\r");
	gives(r, "def\r");
	close(to);
	gives_none(r, 0);
	wean_reader_free(r);
	close(fd);
}
END_TEST

START_TEST(after_a_timeout_nothing_is_lost)
{
	int to, fd = pipe_of("one\ntw", 6, &to);
	wean_reader *r = reader_of(fd, 0);

	if (_i)
		ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(wean_reader_timeout(r, 20), 0);
	gives(r, "one");
	gives_none(r, ETIMEDOUT);
	gives_none(r, ETIMEDOUT);
	put(to, "o\nthree");
	gives(r, "two");
	gives_none(r, ETIMEDOUT);
	close(to);
	ck_assert_int_eq(wean_reader_timeout(r, -1), 0);
	gives(r, "three");
	gives_none(r, 0);
	wean_reader_free(r);
	close(fd);
}
END_TEST

START_TEST(a_nonblocking_descriptor_gives_eagain_and_loses_nothing)
{
	int to, fd = pipe_of("one\ntw", 6, &to);
	wean_reader *r = reader_of(fd, 0);
	const char *data;
	size_t len;

	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	gives(r, "one");
	gives_none(r, EAGAIN);
	gives_none(r, EAGAIN);
	put(to, "o\n");
	gives(r, "two");
	ck_assert_int_eq(wean_read_some(r, &data, &len), EAGAIN);
	ck_assert_ptr_null(data);
	put(to, "rest");
	gives_none(r, EAGAIN);
	close(to);
	gives(r, "rest");
	gives_none(r, 0);
	ck_assert_int_eq(is_nonblocking(fd), 1);
	wean_reader_free(r);
	close(fd);
}
END_TEST

START_TEST(chunks_are_what_is_there)
{
	int to, fd = pipe_of("line\nchunk", 10, &to);
	wean_reader *r = reader_of(fd, 0);
	const char *data;
	size_t len;

	gives(r, "line");
	ck_assert_int_eq(wean_read_some(r, &data, &len), 0);
	assert_text(data, len, "chunk");
	put(to, "next");
	ck_assert_int_eq(wean_read_some(r, &data, &len), 0);
	assert_text(data, len, "next");
	ck_assert_int_eq(wean_reader_timeout(r, 10), 0);
	ck_assert_int_eq(wean_read_some(r, &data, &len), ETIMEDOUT);
	ck_assert_ptr_null(data);
	close(to);
	ck_assert_int_eq(wean_read_some(r, &data, &len), 0);
	ck_assert_ptr_null(data);
	ck_assert_uint_eq(len, 0);
	wean_reader_free(r);
	close(fd);
}
END_TEST

START_TEST(chunks_are_all_bytes_in_order)
{
	const size_t len = 3000000;
	struct heard heard = { 0 };
	const char *data;
	struct source s;
	size_t got;

	source_of(&s, _i, pattern(len), len, 100000);
	wean_reader *r = reader_of(s.fd, 0);
	do {
		ck_assert_int_eq(wean_read_some(r, &data, &got), 0);
		if (data)
			hear(&heard, data, got);
	} while (data);
	assert_pattern(heard.data, heard.len, len);
	free(heard.data);
	wean_reader_free(r);
	source_end(&s, _i);
}
END_TEST

/* The producer goes on only when it was answered. */
START_TEST(a_line_is_handed_over_when_it_comes)
{
	struct wean_options opt = { .in = WEAN_PIPE, .out = WEAN_PIPE };
	struct wean_child child;
	char text[12];

	start(&child, KID("ask", "200"), &opt);
	wean_reader *r = reader_of(child.out, 0);
	ck_assert_int_eq(wean_reader_timeout(r, _i ? LONG : -1), 0);
	for (int i = 0; i < 200; i++) {
		sprintf(text, "%d", i);
		gives(r, text);
		put(child.in, "y");
	}
	gives_none(r, 0);
	wean_reader_free(r);
	ck_assert_int_eq(finish(&child).code, 0);
}
END_TEST

/* ---- descriptors ---- */

START_TEST(a_terminal_ends_when_its_other_side_does)
{
	struct pty p = pty_open();
	wean_reader *r = reader_of(p.master, 0);

	put(p.slave, "one\ntwo");
	close(p.slave);
	gives(r, "one\r");
	gives(r, "two");
	gives_none(r, 0);
	gives_none(r, 0);
	wean_reader_free(r);
	close(p.master);
}
END_TEST

START_TEST(the_descriptor_stays_the_callers)
{
	int fd = pipe_of("a\nb\n", 4, NULL);
	struct baseline b;

	baseline_take(&b);
	wean_reader *r = reader_of(fd, 0);
	gives(r, "a");
	wean_reader_free(r);
	baseline_same(&b);
	close(fd);
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
	int fd = pipe_of("a\n", 2, NULL), directory = open("/", O_RDONLY | O_CLOEXEC);
	wean_reader *r = (wean_reader *)&fd;
	const char *data;
	size_t len;

	errno = BASELINE_ERRNO;
	ck_assert_int_eq(wean_reader_new(NULL, fd, 0), EINVAL);
	ck_assert_int_eq(wean_reader_new(&r, -1, 0), EBADF);
	ck_assert_ptr_null(r);
	ck_assert_int_eq(errno, BASELINE_ERRNO);
	wean_reader_free(NULL);
	ck_assert_int_eq(wean_reader_timeout(NULL, 1), EINVAL);
	ck_assert_int_eq(wean_read_line(NULL, &data, &len), EINVAL);
	ck_assert_int_eq(wean_read_some(NULL, &data, &len), EINVAL);
	r = reader_of(fd, 0);
	ck_assert_int_eq(wean_read_line(r, NULL, &len), EINVAL);
	ck_assert_int_eq(wean_read_line(r, &data, NULL), EINVAL);
	ck_assert_int_eq(wean_read_some(r, NULL, &len), EINVAL);
	ck_assert_int_eq(wean_read_some(r, &data, NULL), EINVAL);
	ck_assert_int_eq(wean_read_record(r, -1, &data, &len), EINVAL);
	ck_assert_int_eq(wean_read_record(r, 256, &data, &len), EINVAL);
	gives(r, "a");
	wean_reader_free(r);
	r = reader_of(directory, 0);
	gives_none(r, EISDIR);
	ck_assert_int_eq(wean_read_some(r, &data, &len), EISDIR);
	wean_reader_free(r);
	close(directory);
	close(fd);
}
END_TEST

START_TEST(a_handler_does_not_end_a_read)
{
	struct wean_options opt = { .out = WEAN_PIPE };
	struct wean_child child;

	start(&child, KID("sleep", "60", "--then", "echo", "late"), &opt);
	wean_reader *r = reader_of(child.out, 0);
	ck_assert_int_eq(wean_reader_timeout(r, _i ? LONG : -1), 0);
	tick();
	gives(r, "late");
	gives_none(r, 0);
	ck_assert_int_gt(ticks, 0);
	stop_ticking();
	wean_reader_free(r);
	ck_assert_int_eq(finish(&child).code, 0);
}
END_TEST

/* ---- enlarged pipes ---- */

/* Linux' own default, in bytes; less where somebody has set it so. */
static long budget(void)
{
	FILE *f = fopen("/proc/sys/fs/pipe-user-pages-soft", "re");
	long pages = 0;

	if (!f || fscanf(f, "%ld", &pages) != 1)
		pages = 1;
	if (f)
		fclose(f);
	return pages ? pages * sysconf(_SC_PAGESIZE) : LONG_MAX;
}

#define NEED_LARGE_PIPES() \
	do { \
		if (budget() / 8 < 4 * 1048576) \
			SKIP("pipes may not be so large here"); \
	} while (0)

struct full {
	int fd, to;
	wean_reader *reader;
};

static void full_begin(struct full *f)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	*f = (struct full){ ends[0], ends[1], reader_of(ends[0], 0) };
}

/* Reads it as full as it is, so many times in a row. */
static void read_full(struct full *f, int times)
{
	static const char zeros[65536];
	const char *data;
	size_t len;

	for (int i = 0; i < times; i++) {
		ck_assert_int_eq(write(f->to, zeros, sizeof zeros), sizeof zeros);
		ck_assert_int_eq(wean_read_some(f->reader, &data, &len), 0);
		ck_assert_uint_eq(len, sizeof zeros);
	}
}

static void full_end(struct full *f)
{
	wean_reader_free(f->reader);
	ck_assert_int_eq(fcntl(f->fd, F_GETPIPE_SZ), 65536);
	close(f->fd);
	close(f->to);
}

START_TEST(a_pipe_is_enlarged_after_four_full_reads_in_a_row)
{
	struct full f;

	NEED_LARGE_PIPES();
	full_begin(&f);
	read_full(&f, 3);
	put(f.to, "x");
	ck_assert_int_eq(wean_read_some(f.reader, &(const char *){ 0 }, &(size_t){ 0 }), 0);
	read_full(&f, 3);
	ck_assert_int_eq(fcntl(f.fd, F_GETPIPE_SZ), 65536);
	read_full(&f, 1);
	ck_assert_int_eq(fcntl(f.fd, F_GETPIPE_SZ), 1048576);
	full_end(&f);
}
END_TEST

START_TEST(at_most_four_pipes_are_enlarged_and_given_back)
{
	struct full f[6];

	NEED_LARGE_PIPES();
	for (int i = 0; i < 6; i++)
		full_begin(&f[i]);
	for (int i = 0; i < 5; i++) {
		read_full(&f[i], 8);
		ck_assert_int_eq(fcntl(f[i].fd, F_GETPIPE_SZ), i < 4 ? 1048576 : 65536);
	}
	full_end(&f[2]);
	read_full(&f[5], 4);
	ck_assert_int_eq(fcntl(f[5].fd, F_GETPIPE_SZ), 1048576);
	for (int i = 0; i < 6; i++)
		if (i != 2)
			full_end(&f[i]);
}
END_TEST

START_TEST(a_pipe_of_a_chosen_size_keeps_it)
{
	struct full f;

	full_begin(&f);
	ck_assert_int_eq(fcntl(f.fd, F_SETPIPE_SZ, 32768), 32768);
	for (int i = 0; i < 8; i++) {
		ck_assert_int_eq(write(f.to, for_good(calloc(1, 32768)), 32768), 32768);
		ck_assert_int_eq(wean_read_some(f.reader, &(const char *){ 0 }, &(size_t){ 0 }),
		                 0);
	}
	ck_assert_int_eq(fcntl(f.fd, F_GETPIPE_SZ), 32768);
	wean_reader_free(f.reader);
	ck_assert_int_eq(fcntl(f.fd, F_GETPIPE_SZ), 32768);
	close(f.fd);
	close(f.to);
}
END_TEST

/* ---- counts ---- */

/* What is read in a counted process. */
struct job {
	int from_file, by_lines;
	int enlarge;
	const char *bytes, *chunk;
	size_t len;
};

/* So that no more can be. */
static void enlarge_four(void)
{
	struct full f;

	for (int i = 0; i < 4; i++) {
		full_begin(&f);
		read_full(&f, 4);
	}
}

static int read_job(void *arg)
{
	struct job *job = arg;
	struct wean_options opt = { .out = WEAN_PIPE };
	struct wean_child child;
	wean_reader *r;
	const char *data;
	size_t len, sum = 0;
	int error, fd = -1;

	if (!job->enlarge)
		enlarge_four();
	if (job->from_file)
		fd = memfd_create("lines", MFD_CLOEXEC);
	struct wean_options to_file = { FDS(DUP(1, fd)) };
	if (wean_spawn(&child, KID("write", "1", (char *)job->bytes, (char *)job->chunk),
	               job->from_file ? &to_file : &opt))
		return -1;
	if (job->from_file && (wean_wait(&child, -1, NULL) || lseek(fd, 0, SEEK_SET)))
		return -1;
	if (wean_reader_new(&r, job->from_file ? fd : child.out, 0))
		return -1;
	count_begin();
	do {
		error = job->by_lines ? wean_read_line(r, &data, &len)
		                      : wean_read_some(r, &data, &len);
		sum += data ? len + (job->by_lines ? 1 : 0) : 0;
	} while (!error && data);
	count_end();
	wean_reader_free(r);
	error = error ? error : wean_wait(&child, -1, NULL);
	wean_release(&child);
	/* Its last line may lack the newline. */
	return error || sum < job->len || sum > job->len + 1;
}

/* The number of reads, all of them of 64 KiB at least; 0: can't be counted here. */
static size_t reads_of(struct job *job)
{
	struct count c;
	int error = count_calls(&c, read_job, job);
	long file = -1;
	size_t n;

	if (error > 0)
		return 0;
	ck_assert_int_eq(error, 0);
	n = count_of(&c, COUNT_PARENT, SYS_read);
	ck_assert_uint_gt(n, 0);
	for (size_t i = 0; i < c.n; i++) {
		if (c.calls[i].nr == SYS_openat)
			file = c.calls[i].result; /* what pipes may have in all */
		else if (c.calls[i].nr == SYS_read && (long)c.calls[i].args[0] != file)
			ck_assert_uint_ge(c.calls[i].args[2], 65536);
	}
	if (getenv("WEAN_DUMP"))
		fprintf(stderr, "%s bytes by %s from a %s: %zu reads\n", job->bytes,
		        job->by_lines ? "lines" : "chunks", job->from_file ? "file" : "pipe", n);
	count_free(&c);
	return n;
}

#define SKIP_UNLESS_COUNTED(n) \
	do { \
		if ((n) == 0) \
			SKIP("no counting here"); \
	} while (0)

START_TEST(large_writes_are_read_by_few_and_large_reads)
{
	struct job job = { .by_lines = _i, .bytes = "33554432", .chunk = "1048576",
	                   .len = 33554432 };
	size_t plain, enlarged;

	NEED_LARGE_PIPES();
	plain = reads_of(&job);
	SKIP_UNLESS_COUNTED(plain);
	ck_assert_uint_le(plain, 540);
	job.enlarge = 1;
	enlarged = reads_of(&job);
	ck_assert_uint_lt(enlarged, plain);
}
END_TEST

START_TEST(a_moderate_text_is_read_by_eight_reads_at_most)
{
	struct job job = { .from_file = _i, .by_lines = 1, .enlarge = 1, .bytes = "318893",
	                   .chunk = "318893", .len = 318893 };
	size_t n = reads_of(&job);

	SKIP_UNLESS_COUNTED(n);
	ck_assert_uint_le(n, 8);
}
END_TEST

START_TEST(a_million_lines_take_nothing_from_the_heap)
{
	int lines = scaled(1000000) < 1000000 ? scaled(1000000) : 1000000;
	struct wean_options opt = { .out = WEAN_PIPE };
	struct wean_child child;
	const char *data;
	size_t len, before, made, rest;
	char text[12];
	wean_reader *r;

	snprintf(text, sizeof text, "%d", lines);
	start(&child, KID("lines", "1", text), &opt);
	before = allocations;
	int error = wean_reader_new(&r, child.out, 0);
	made = allocations - before;
	for (int i = 0; i < lines; i++)
		if (wean_read_line(r, &data, &len) || !data || atoi(data) != i)
			ck_abort_msg("line %d", i);
	rest = allocations - before - made;
	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(made, 1);
	ck_assert_uint_eq(rest, 0);
	gives_none(r, 0);
	wean_reader_free(r);
	ck_assert_int_eq(finish(&child).code, 0);
}
END_TEST

/* ------------------------------------------------------------------------- */

static void add_records(TCase *t)
{
	tcase_add_test(t, lines_come_without_their_newlines);
	tcase_add_loop_test(t, an_empty_input_has_no_record, 0, 2);
	tcase_add_test(t, zero_bytes_are_bytes);
	tcase_add_test(t, a_record_ends_at_any_delimiter);
	tcase_add_test(t, the_delimiter_may_change_between_records);
	tcase_add_loop_test(t, records_across_the_borders_of_the_buffer_are_exact, 0,
	                    3 * KINDS);
	tcase_add_test(t, what_is_longer_than_the_longest_comes_in_parts);
	tcase_add_loop_test(t, fifty_megabytes_without_a_newline_are_one_record_or_many_parts,
	                    0, 2);
}

static void add_rest(TCase *t)
{
	tcase_add_test(t, a_carriage_return_whose_newline_comes_later_stays);
	tcase_add_loop_test(t, after_a_timeout_nothing_is_lost, 0, 2);
	tcase_add_test(t, a_nonblocking_descriptor_gives_eagain_and_loses_nothing);
	tcase_add_test(t, chunks_are_what_is_there);
	tcase_add_loop_test(t, chunks_are_all_bytes_in_order, 0, KINDS);
	tcase_add_loop_test(t, a_line_is_handed_over_when_it_comes, 0, 2);
	tcase_add_test(t, a_terminal_ends_when_its_other_side_does);
	tcase_add_test(t, the_descriptor_stays_the_callers);
	tcase_add_test(t, what_is_wrong_is_said);
	tcase_add_test(t, a_pipe_of_a_chosen_size_keeps_it);
}

START_TEST(without_memory_there_is_no_reader)
{
	wean_reader *r = NULL;
	uint64_t before = soft_limit(RLIMIT_AS, 1);
	int error = wean_reader_new(&r, 0, 0);

	soft_limit(RLIMIT_AS, before);
	ck_assert_int_eq(error, ENOMEM);
	ck_assert_ptr_null(r);
}
END_TEST

static Suite *reader_suite(void)
{
	Suite *s = suite_create("reader");
	TCase *t = tcase_create("reader");

	tcase_set_timeout(t, 30);
	add_records(t);
	add_rest(t);
	suite_add_tcase(s, t);
	t = case_that_needs(s, "signals");
	tcase_add_loop_test(t, a_handler_does_not_end_a_read, 0, 2);
	t = case_that_needs(s, "native");
	tcase_add_test(t, a_pipe_is_enlarged_after_four_full_reads_in_a_row);
	tcase_add_test(t, at_most_four_pipes_are_enlarged_and_given_back);
	if (COUNTS_HEAP)
		tcase_add_test(t, a_million_lines_take_nothing_from_the_heap);
	tcase_add_test(t, without_memory_there_is_no_reader);
	t = case_that_needs(s, "ptrace default");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, large_writes_are_read_by_few_and_large_reads, 0, 2);
	tcase_add_loop_test(t, a_moderate_text_is_read_by_eight_reads_at_most, 0, 2);
	return s;
}

RUN_SUITE(reader_suite)
