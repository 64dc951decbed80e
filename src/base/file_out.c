/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of a run. A regular target gets a staged file beside it; standard output, devices and
 * FIFOs, which cannot be replaced by a rename, are collected in memory and written through at
 * commit. */
#include "base/file_out.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
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

enum { BUFFER_BYTES = 64 << 10, MAX_LINKS = 40, NOTES_BYTES = 1 << 20 };

struct output {
	const char *path; /* as the user named it */
	int fd; /* staged file or device; -1: closed */
	int error; /* first errno; 0: none */
	bool through; /* not staged */
	bool removal; /* removes the target */
	struct ap_str bytes; /* through: everything; staged: unwritten bytes */

	/* staged only */
	const char *target; /* file to replace, links resolved */
	const char *folder;
	dev_t dev; /* of the folder */
	ino_t ino;
	char *temp; /* the staged file */
	char *saved; /* another name of the old target until the commit cannot fail */
	int saved_fd; /* holds its lock; -1: none */
	bool has_temp, has_saved, renamed;
	bool same; /* the target already holds these bytes */
};

struct ap_outputs {
	struct ap_ctx *ctx;
	AP_VEC(struct output) outs;
	struct folders {
		const char **v;
		size_t n, cap;
	} made, emptied;
	const char *lock; /* file that keeps other runs out, or NULL */
	int lock_fd;
	bool spoke; /* wrote to standard output */
};

static enum ap_status io_error(struct ap_ctx *ctx, const char *path, int error)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_IO,
		&(struct ap_where){.file = strcmp(path, "-") ? path : "standard output"}, NULL,
		"cannot write: %s", strerror(error));
}

static enum ap_status usage_error(struct ap_ctx *ctx, const char *path, const char *text)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, &(struct ap_where){.file = path}, NULL,
		"%s", text);
}

/* rename(); returns 0 or an errno. */
static int rename_file(const char *from, const char *to)
{
	int failed;

	do
		failed = rename(from, to);
	while (failed && errno == EINTR);
	return failed ? errno : 0;
}

/* Writes everything; returns 0 or an errno. */
static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n >= 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) { /* another process made the pipe non-blocking */
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			if (poll(&wait, 1, -1) < 0 && errno != EINTR)
				return errno;
		} else if (errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

/* Flushes fd to disk; returns 0 or an errno. */
static int sync_fd(int fd)
{
	int failed;

	do
		failed = fsync(fd);
	while (failed && errno == EINTR);
	return failed && errno != EINVAL && errno != ENOTSUP ? errno : 0;
}

struct ap_outputs *ap_outputs_create(struct ap_ctx *ctx)
{
	struct ap_outputs *o = AP_NEW(ctx->arena, struct ap_outputs);

	o->ctx = ctx;
	return o;
}

static const char *folder_of(struct ap_arena *arena, const char *path)
{
	const char *base = ap_file_base(path);

	if (base == path)
		return ".";
	return base == path + 1 ? "/" : ap_arena_strndup(arena, path, (size_t)(base - path - 1));
}

/* Follows links at the end of path, even to a missing file. Returns 0 or an errno. */
static int follow_links(struct ap_arena *arena, const char *path, const char **target)
{
	struct stat st;
	char link[4096];

	for (int i = 0; i < MAX_LINKS; i++) {
		ssize_t n;

		*target = path;
		if (lstat(path, &st))
			return errno == ENOENT ? 0 : errno;
		if (!S_ISLNK(st.st_mode))
			return 0;
		n = readlink(path, link, sizeof link);
		if (n < 0 || n == sizeof link)
			return n < 0 ? errno : ENAMETOOLONG;
		path = *link == '/' ? ap_arena_strndup(arena, link, (size_t)n) :
			ap_arena_printf(arena, "%s/%.*s", folder_of(arena, path), (int)n, link);
	}
	return ELOOP;
}

static bool is_temp_of_ours(void *user, const char *base)
{
	const struct ap_outputs *o = user;

	for (size_t i = 0; i < o->outs.n; i++)
		if (o->outs.v[i].has_temp && !strcmp(ap_file_base(o->outs.v[i].temp), base))
			return true;
	return false;
}

/* Clears what killed runs left in a folder, once per folder. */
static void clear_folder(struct ap_outputs *o, const char *folder, const struct output *first)
{
	for (size_t i = 0; first && i < o->outs.n; i++)
		if (!o->outs.v[i].through && o->outs.v[i].dev == first->dev && o->outs.v[i].ino == first->ino)
			return;
	ap_temp_clear(folder, is_temp_of_ours, o);
}

void ap_outputs_clear(struct ap_outputs *o, const char *folder)
{
	clear_folder(o, folder, NULL);
}

/* Finds the folder of a regular target, which need not exist. */
static enum ap_status locate(struct ap_outputs *o, struct output *out)
{
	struct ap_arena *arena = o->ctx->arena;
	struct stat st;

	out->folder = folder_of(arena, out->target);
	if (stat(out->folder, &st))
		return io_error(o->ctx, out->path, errno);
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	for (size_t i = 0; i < o->outs.n; i++) {
		const struct output *other = &o->outs.v[i];

		if (!other->through && other->dev == out->dev && other->ino == out->ino &&
			!strcmp(ap_file_base(other->target), ap_file_base(out->target)))
			return usage_error(o->ctx, out->path, "two outputs have this name");
	}
	out->temp = ap_temp_name(arena, out->folder, ap_file_base(out->target));
	out->saved = ap_temp_name(arena, out->folder, ap_file_base(out->target));
	clear_folder(o, out->folder, out);
	return AP_OK;
}

static enum ap_status open_staged(struct ap_outputs *o, struct output *out)
{
	int error = follow_links(o->ctx->arena, out->path, &out->target);

	if (error)
		return io_error(o->ctx, out->path, error);
	AP_TRY(locate(o, out));
	AP_PUSH(o->ctx->arena, o->outs, *out); /* before the file exists, for discard */
	out = &o->outs.v[o->outs.n - 1];
	error = ap_temp_create(out->temp, &out->fd);
	out->has_temp = !error;
	return error ? io_error(o->ctx, out->path, error) : AP_OK;
}

/* Opens a device or FIFO without waiting for a reader. */
static enum ap_status open_through(struct ap_outputs *o, struct output *out)
{
	int flags;

	out->through = true;
	if (out->fd < 0)
		out->fd = ap_open(out->path, O_WRONLY | O_NONBLOCK);
	if (out->fd < 0)
		return io_error(o->ctx, out->path, errno);
	AP_PUSH(o->ctx->arena, o->outs, *out);
	if (out->fd == STDOUT_FILENO)
		return AP_OK;
	flags = fcntl(out->fd, F_GETFL);
	if (flags < 0 || fcntl(out->fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return io_error(o->ctx, out->path, errno);
	return AP_OK;
}

static enum ap_status open_existing(struct ap_outputs *o, struct output *out,
	const struct stat *st)
{
	struct stat to;

	if (S_ISDIR(st->st_mode))
		return usage_error(o->ctx, out->path, "is a folder; expected the name of a file");
	if (!fstat(STDOUT_FILENO, &to) && to.st_dev == st->st_dev && to.st_ino == st->st_ino &&
		to.st_rdev == st->st_rdev) /* /dev/stdout, even redirected to a file */
		out->fd = STDOUT_FILENO;
	if (out->fd >= 0 || S_ISCHR(st->st_mode) || S_ISFIFO(st->st_mode))
		return open_through(o, out);
	if (!S_ISREG(st->st_mode))
		return io_error(o->ctx, out->path, EINVAL);
	if (access(out->path, W_OK))
		return io_error(o->ctx, out->path, errno);
	return open_staged(o, out);
}

enum ap_status ap_outputs_open(struct ap_ctx *ctx, struct ap_outputs *o, const char *path,
	size_t *id)
{
	struct output out = {.path = ap_arena_strdup(ctx->arena, path), .fd = -1, .saved_fd = -1};
	size_t len = strlen(path);
	struct stat st;

	ap_str_init(&out.bytes, ctx->arena);
	*id = o->outs.n;
	if (!len)
		return usage_error(ctx, "", "the name of an output is empty");
	if (!strcmp(path, "-")) {
		out.fd = STDOUT_FILENO;
		return open_through(o, &out);
	}
	if (!stat(path, &st))
		return open_existing(o, &out, &st);
	if (errno != ENOENT)
		return io_error(ctx, path, errno);
	if (path[len - 1] == '/')
		return usage_error(ctx, path, "is a folder; expected the name of a file");
	return open_staged(o, &out);
}

enum ap_status ap_outputs_folder(struct ap_ctx *ctx, struct ap_outputs *o, const char *path)
{
	const char *kept = ap_arena_strdup(ctx->arena, path);
	struct stat st;

	if (!mkdir(path, 0777)) {
		AP_PUSH(ctx->arena, o->made, kept);
		return AP_OK;
	}
	if (errno != EEXIST)
		return io_error(ctx, kept, errno);
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return usage_error(ctx, kept, "is no folder");
	return AP_OK;
}

/* Reads whole lines of an open file, truncating a partial one: its work was not begun. */
static int read_notes(struct ap_arena *arena, int fd, const char **out)
{
	struct stat st;
	size_t size = fstat(fd, &st) ? 0 : st.st_size < NOTES_BYTES ? (size_t)st.st_size : NOTES_BYTES;
	char *text = ap_arena_alloc(arena, size + 1, 1);
	ssize_t n = pread(fd, text, size, 0);

	while (n > 0 && text[n - 1] != '\n')
		n--;
	n = n > 0 ? n : 0;
	text[n] = '\0';
	*out = text;
	return ftruncate(fd, n) ? errno : 0;
}

enum ap_status ap_outputs_lock(struct ap_ctx *ctx, struct ap_outputs *o, const char *dir, const char *name,
	const char **notes)
{
	const char *path = ap_arena_printf(ctx->arena, "%s/%s", dir, name);
	struct ap_where where = {.file = ap_arena_strdup(ctx->arena, dir)};
	int error = ap_lock_take(path, &o->lock_fd);

	assert(!o->lock);
	if (error == EAGAIN)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_IO, &where, NULL,
			"another run of autopar-plan is at work on it; expected to be alone");
	if (error)
		return io_error(ctx, path, error);
	o->lock = path;
	error = read_notes(ctx->arena, o->lock_fd, notes);
	return error ? io_error(ctx, path, error) : AP_OK;
}

enum ap_status ap_outputs_note(struct ap_ctx *ctx, struct ap_outputs *o, const char *text, size_t len)
{
	int error = lseek(o->lock_fd, 0, SEEK_END) < 0 ? errno : write_all(o->lock_fd, text, len);

	error = error ? error : sync_fd(o->lock_fd);
	return error ? io_error(ctx, o->lock, error) : AP_OK;
}

void ap_outputs_empty(struct ap_ctx *ctx, struct ap_outputs *o, const char *path)
{
	AP_PUSH(ctx->arena, o->emptied, ap_arena_strdup(ctx->arena, path));
}

enum ap_status ap_outputs_remove(struct ap_ctx *ctx, struct ap_outputs *o, const char *path)
{
	struct output out = {.path = ap_arena_strdup(ctx->arena, path), .fd = -1, .saved_fd = -1,
		.removal = true};

	ap_str_init(&out.bytes, ctx->arena);
	out.target = out.path; /* removes a link itself */
	AP_TRY(locate(o, &out));
	AP_PUSH(ctx->arena, o->outs, out);
	return AP_OK;
}

static void flush(struct output *out)
{
	if (!out->error)
		out->error = write_all(out->fd, out->bytes.s, out->bytes.len);
	out->bytes.len = 0;
	out->bytes.s[0] = '\0';
}

void ap_outputs_write(struct ap_outputs *o, size_t id, const char *bytes, size_t len)
{
	struct output *out;

	assert(id < o->outs.n);
	out = &o->outs.v[id];
	if (out->through) {
		ap_str_addn(&out->bytes, bytes, len);
		return;
	}
	if (out->bytes.len + len > BUFFER_BYTES)
		flush(out);
	if (len < BUFFER_BYTES)
		ap_str_addn(&out->bytes, bytes, len);
	else if (!out->error)
		out->error = write_all(out->fd, bytes, len);
}

void ap_outputs_sum(struct ap_outputs *o, size_t id, struct ap_file_sum *sum)
{
	struct output *out = &o->outs.v[id];

	*sum = (struct ap_file_sum){.bytes = (int64_t)out->bytes.len};
	if (out->through) {
		ap_sha256_hex(out->bytes.s, out->bytes.len, sum->sha256);
		return;
	}
	flush(out);
	if (!out->error)
		out->error = ap_file_sum_fd(out->fd, sum);
}

void ap_output_write_fn(void *sink, const char *bytes, size_t len)
{
	const struct ap_output_sink *s = sink;

	ap_outputs_write(s->o, s->id, bytes, len);
}

static void close_output(struct output *out)
{
	int fd = out->fd;

	out->fd = -1;
	if (fd < 0 || fd == STDOUT_FILENO)
		return;
	/* EINTR: the descriptor is closed, and its bytes are synced */
	if (close(fd) && errno != EINTR && !out->error)
		out->error = errno;
}

/* Flushes a staged file to disk, or sets out->error. It stays open until renamed, to keep its
 * lock. */
static void finish_staged(struct output *out)
{
	if (out->removal)
		return;
	flush(out);
	if (!out->error)
		out->same = ap_file_holds(out->target, out->fd);
	if (!out->error && !out->same)
		out->error = sync_fd(out->fd);
}

static void finish_through(struct output *out)
{
	flush(out);
	close_output(out);
}

static void rename_staged(struct output *out)
{
	if (out->same)
		return;
	if (out->removal) { /* the target keeps another name until the commit cannot fail */
		out->error = ap_temp_move(out->saved, out->target, &out->saved_fd);
		out->renamed = out->has_saved = !out->error;
		return;
	}
	/* a hard link allows restoring the old target; not all file systems have them */
	out->has_saved = !ap_temp_link(out->saved, out->target, &out->saved_fd);
	out->error = rename_file(out->temp, out->target);
	if (out->error)
		return;
	out->has_temp = false;
	out->renamed = true;
	close_output(out);
}

static void sync_folder(struct output *out)
{
	int fd;

	if (out->same)
		return;
	fd = ap_open(out->folder, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		out->error = errno == EACCES ? 0 : errno; /* writable but not readable */
		return;
	}
	out->error = sync_fd(fd);
	close(fd);
}

/* Takes one step for every output of a kind; false at the first error. */
static bool each(struct ap_outputs *o, bool through, void (*step)(struct output *))
{
	for (size_t i = 0; i < o->outs.n; i++) {
		struct output *out = &o->outs.v[i];

		if (out->through == through)
			step(out);
		o->spoke |= through && out->through && !strcmp(out->path, "-");
		if (out->error)
			return false;
	}
	return true;
}

static enum ap_status fail_commit(struct ap_ctx *ctx, struct ap_outputs *o)
{
	enum ap_status st = AP_IO;

	for (size_t i = 0; i < o->outs.n; i++) {
		struct output *out = &o->outs.v[i];
		bool undone = true;

		if (out->error)
			st = io_error(ctx, out->path, out->error);
		if (out->renamed && out->has_saved)
			undone = !rename_file(out->saved, out->target);
		else if (out->renamed)
			undone = !unlink(out->target);
		out->has_saved &= !out->renamed; /* a target that could not be restored keeps its
				other name */
		out->renamed = false;
		if (undone)
			continue;
		ap_temp_keep(out->saved);
		st = ap_diag_add(ctx->diag, AP_ERROR, AP_IO, &(struct ap_where){.file = out->path}, NULL,
			"cannot be restored; its old state is %s", out->saved);
	}
	return st;
}

/* Removes empty folders. */
static void remove_folders(struct folders *f)
{
	while (f->n)
		rmdir(f->v[--f->n]);
}

bool ap_outputs_spoke(const struct ap_outputs *o)
{
	return o->spoke;
}

enum ap_status ap_outputs_commit(struct ap_ctx *ctx, struct ap_outputs *o)
{
	bool done = each(o, false, finish_staged) && each(o, true, finish_through) &&
		each(o, false, rename_staged) && each(o, false, sync_folder);
	struct folders emptied = o->emptied;
	enum ap_status st = done ? AP_OK : fail_commit(ctx, o);

	ap_outputs_discard(o);
	if (done)
		remove_folders(&emptied);
	return st;
}

void ap_outputs_discard(struct ap_outputs *o)
{
	for (size_t i = 0; o && i < o->outs.n; i++) {
		struct output *out = &o->outs.v[i];

		if (out->has_temp)
			unlink(out->temp);
		if (out->has_saved)
			unlink(out->saved);
		out->has_temp = out->has_saved = false;
		close_output(out);
		if (out->saved_fd >= 0)
			close(out->saved_fd);
		out->saved_fd = -1;
	}
	if (!o)
		return;
	if (o->lock)
		ap_lock_give(o->lock, o->lock_fd);
	o->lock = NULL;
	remove_folders(&o->made);
	o->outs.n = o->emptied.n = 0;
}

enum ap_status ap_stdout_write(struct ap_ctx *ctx, const char *bytes, size_t len)
{
	int error = write_all(STDOUT_FILENO, bytes, len);

	return error ? io_error(ctx, "-", error) : AP_OK;
}
