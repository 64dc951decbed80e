/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

enum { STDIN_STEP = 64 << 10 };

static enum ap_status __attribute__((format(printf, 4, 5))) complain(struct ap_ctx *ctx,
	const char *path, enum ap_status st, const char *fmt, ...)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_where where = {.file = strcmp(path, "-") ? path : "standard input"};
	struct ap_str text;
	va_list ap;

	ap_str_init(&text, ctx->scratch);
	va_start(ap, fmt);
	ap_str_vaddf(&text, fmt, ap);
	va_end(ap);
	st = ap_diag_add(ctx->diag, AP_ERROR, st, &where, NULL, "%s", text.s);
	ap_arena_release(ctx->scratch, mark);
	return st;
}

static enum ap_status too_large(struct ap_ctx *ctx, const char *path, size_t max)
{
	return complain(ctx, path, AP_LIMIT, "larger than the limit of %zu bytes", max);
}

/* read() until len bytes or the end of the file; -1 with errno set on failure. */
static ssize_t read_full(int fd, char *bytes, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, bytes + got, len - got);

		if (n == 0)
			break;
		if (n > 0)
			got += (size_t)n;
		else if (errno != EINTR)
			return -1;
	}
	return (ssize_t)got;
}

static enum ap_status read_stdin(struct ap_ctx *ctx, size_t max, char **text, size_t *len)
{
	struct ap_str b;
	char *step = ap_arena_alloc_raw(ctx->arena, STDIN_STEP, 1);
	ssize_t n;

	ap_str_init(&b, ctx->arena);
	do {
		n = read_full(STDIN_FILENO, step, STDIN_STEP);
		if (n < 0)
			return complain(ctx, "-", AP_IO, "cannot read: %s", strerror(errno));
		if ((size_t)n > max - b.len)
			return too_large(ctx, "-", max);
		ap_str_addn(&b, step, (size_t)n);
	} while (n == STDIN_STEP);
	*text = b.s;
	*len = b.len;
	return AP_OK;
}

/* An open file of a size that is known and allowed. */
static enum ap_status read_sized(struct ap_ctx *ctx, const char *path, int fd, size_t size,
	char **text)
{
	char *bytes = ap_arena_alloc_raw(ctx->arena, size + 1, 1);
	ssize_t n = read_full(fd, bytes, size + 1); /* one more, to see whether it grew */

	if (n < 0)
		return complain(ctx, path, AP_IO, "cannot read: %s", strerror(errno));
	if ((size_t)n != size)
		return complain(ctx, path, AP_IO, "changed while it was read");
	bytes[size] = '\0';
	*text = bytes;
	return AP_OK;
}

static enum ap_status read_open(struct ap_ctx *ctx, const char *path, int fd, size_t max,
	char **text, size_t *len)
{
	struct stat st;

	if (fstat(fd, &st))
		return complain(ctx, path, AP_IO, "cannot read: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return complain(ctx, path, AP_IO, "is a folder");
	if (!S_ISREG(st.st_mode))
		return complain(ctx, path, AP_IO, "is not a regular file (use - for standard input)");
	if ((uint64_t)st.st_size > max)
		return too_large(ctx, path, max);
	*len = (size_t)st.st_size;
	return read_sized(ctx, path, fd, *len, text);
}

/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
static int open_to_read(const char *path)
{
	int fd;

	do
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	while (fd < 0 && errno == EINTR);
	return fd;
}

enum ap_status ap_file_read(struct ap_ctx *ctx, const char *path, size_t max, char **text,
	size_t *len)
{
	char *bytes = NULL;
	size_t size = 0;

	if (!strcmp(path, "-")) {
		AP_TRY(read_stdin(ctx, max, &bytes, &size));
	} else {
		int fd = open_to_read(path);
		enum ap_status st;

		if (fd < 0)
			return complain(ctx, path, AP_IO, "cannot open: %s", strerror(errno));
		st = read_open(ctx, path, fd, max, &bytes, &size);
		close(fd);
		AP_TRY(st);
	}
	if (!size)
		return complain(ctx, path, AP_SYNTAX, "empty");
	*text = bytes;
	*len = size;
	return AP_OK;
}

const char *ap_file_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool ap_file_same(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

bool ap_file_suffix(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);

	return n >= m && !strcmp(path + n - m, suffix);
}
