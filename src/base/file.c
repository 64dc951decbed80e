/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file_lock.h"
#include "base/file_temp.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"

enum { STDIN_STEP = 64 << 10, PIECE_BYTES = 8 << 10 };

static enum ap_status __attribute__((format(printf, 4, 5))) complain(struct ap_ctx *ctx,
	const char *path, enum ap_status st, const char *fmt, ...)
{
	struct ap_where where = {.file = strcmp(path, "-") ? path : "standard input"};
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(ctx->diag, AP_ERROR, st, &where, NULL, fmt, ap);
	va_end(ap);
	return st;
}

static enum ap_status too_large(struct ap_ctx *ctx, const char *path, size_t max)
{
	return complain(ctx, path, AP_LIMIT, "larger than the limit of %zu bytes", max);
}

/* Reads up to len bytes of a file at an offset (-1: current); returns their number, or -1 with
 * errno. */
static ssize_t read_full(int fd, char *bytes, size_t len, off_t at)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = at < 0 ? read(fd, bytes + got, len - got)
				   : pread(fd, bytes + got, len - got, at + (off_t)got);

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
		n = read_full(STDIN_FILENO, step, STDIN_STEP, -1);
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

static enum ap_status read_open(struct ap_ctx *ctx, const char *path, int fd, size_t max,
	char **text, size_t *len)
{
	struct stat st;
	char *bytes;
	ssize_t n;

	if (fstat(fd, &st))
		return complain(ctx, path, AP_IO, "cannot read: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return complain(ctx, path, AP_IO, "is a folder");
	if (!S_ISREG(st.st_mode))
		return complain(ctx, path, AP_IO, "is not a regular file (use - for standard input)");
	if ((uint64_t)st.st_size > max)
		return too_large(ctx, path, max);
	*len = (size_t)st.st_size;
	*text = bytes = ap_arena_alloc_raw(ctx->arena, *len + 1, 1);
	n = read_full(fd, bytes, *len + 1, -1); /* one more, to detect growth */
	if (n < 0)
		return complain(ctx, path, AP_IO, "cannot read: %s", strerror(errno));
	if ((size_t)n != *len)
		return complain(ctx, path, AP_IO, "changed while it was read");
	bytes[*len] = '\0';
	return AP_OK;
}

enum ap_status ap_file_read(struct ap_ctx *ctx, const char *path, size_t max, char **text,
	size_t *len)
{
	char *bytes = NULL;
	size_t size = 0;

	if (!strcmp(path, "-")) {
		AP_TRY(read_stdin(ctx, max, &bytes, &size));
	} else {
		int fd = ap_open(path, O_RDONLY | O_NONBLOCK); /* does not wait for a FIFO's writer */
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

size_t ap_file_head(const char *path, char *bytes, size_t n)
{
	int fd = strcmp(path, "-") ? ap_open(path, O_RDONLY | O_NONBLOCK) : -1;
	struct stat st;
	ssize_t got = 0;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		got = read_full(fd, bytes, n, 0);
	close(fd);
	return got > 0 ? (size_t)got : 0;
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

struct reading {
	int fd;
	off_t at;
};

static ptrdiff_t read_piece(void *user, void *piece, size_t len)
{
	struct reading *r = user;
	ssize_t n = read_full(r->fd, piece, len, r->at);

	r->at += n > 0 ? n : 0;
	return n;
}

int ap_file_sum_fd(int fd, struct ap_file_sum *out)
{
	struct reading r = {.fd = fd};

	if (!ap_sha256_read(read_piece, &r, out->sha256))
		return errno;
	out->bytes = r.at;
	return 0;
}

int ap_file_sum(const char *path, struct ap_file_sum *out)
{
	int fd = ap_open(path, O_RDONLY | O_NONBLOCK), error;
	struct stat st;

	if (fd < 0)
		return errno;
	error = fstat(fd, &st) ? errno : S_ISREG(st.st_mode) ? ap_file_sum_fd(fd, out) : EINVAL;
	close(fd);
	return error;
}

bool ap_file_holds(const char *path, int fd)
{
	int other = ap_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	char a[PIECE_BYTES], b[PIECE_BYTES];
	struct stat x, y;
	bool same;
	ssize_t n = PIECE_BYTES;

	if (other < 0)
		return false;
	same = !fstat(other, &x) && !fstat(fd, &y) && S_ISREG(x.st_mode) && S_ISREG(y.st_mode) &&
		x.st_size == y.st_size;
	for (off_t at = 0; same && n == PIECE_BYTES; at += n) {
		n = read_full(other, a, sizeof a, at);
		same = n >= 0 && read_full(fd, b, sizeof b, at) == n && !memcmp(a, b, (size_t)n);
	}
	close(other);
	return same;
}

struct names {
	const char **v;
	size_t n, cap;
};

bool ap_file_is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool ap_folder_is_free(const char *path)
{
	DIR *dir = opendir(path);
	bool is_free = dir;

	for (const struct dirent *e; is_free && (e = readdir(dir));)
		is_free = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || ap_temp_is(e->d_name);
	if (dir)
		closedir(dir);
	return is_free;
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Returns 0 or an errno. */
static int read_names(struct ap_ctx *ctx, DIR *dir, struct names *names)
{
	for (;;) {
		const struct dirent *e;

		errno = 0;
		e = readdir(dir);
		if (!e)
			return errno;
		if (*e->d_name != '.')
			AP_PUSH(ctx->arena, *names, ap_arena_strdup(ctx->arena, e->d_name));
	}
}

enum ap_status ap_folder_names(struct ap_ctx *ctx, const char *path, size_t *n,
	const char *const **out)
{
	struct names names = {0};
	DIR *dir = opendir(path);
	int error = dir ? read_names(ctx, dir, &names) : errno;

	if (dir)
		closedir(dir);
	if (error)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_IO, &(struct ap_where){.file = path}, NULL,
			"cannot read: %s", strerror(error));
	if (names.n)
		qsort(names.v, names.n, sizeof *names.v, by_name);
	*n = names.n;
	*out = names.v;
	return AP_OK;
}
