/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for one test, which is the working directory until the test is over. */
#ifndef FOLDER_H
#define FOLDER_H

#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_out.h"

struct folder {
	char path[64];
	int before; /* the working directory it came from */
};

static inline struct folder folder_enter(void)
{
	struct folder f = {.path = "/tmp/autopar-unit.XXXXXX", .before = open(".", O_RDONLY)};

	ck_assert_int_ge(f.before, 0);
	ck_assert_ptr_nonnull(mkdtemp(f.path));
	ck_assert_int_eq(chdir(f.path), 0);
	return f;
}

/* Names in a folder, without "." and "..", of at most 64 entries; -1 where it cannot be read. */
static inline int folder_count(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		return -1;
	for (struct dirent *e; (e = readdir(dir));)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(dir);
	return n;
}

/* Removes what is in the open folder, and closes it. */
static inline void folder_empty(int fd)
{
	DIR *dir = fdopendir(fd);

	ck_assert_ptr_nonnull(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			!unlinkat(fd, e->d_name, 0))
			continue;
		folder_empty(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY));
		ck_assert_int_eq(unlinkat(fd, e->d_name, AT_REMOVEDIR), 0);
	}
	closedir(dir);
}

static inline void folder_leave(const struct folder *f)
{
	ck_assert_int_eq(fchdir(f->before), 0);
	close(f->before);
	folder_empty(open(f->path, O_RDONLY | O_DIRECTORY));
	ck_assert_int_eq(rmdir(f->path), 0);
}

static inline void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* Up to four megabytes of a file's text, NULL where there is no such file; the caller frees it. */
static inline char *get_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text;

	if (!f)
		return NULL;
	text = calloc(1, (4 << 20) + 1);
	ck_assert_uint_le(fread(text, 1, 4 << 20, f), 4 << 20);
	fclose(f);
	return text;
}

static inline void ck_file(const char *path, const char *text)
{
	char *got = get_file(path);

	ck_assert_msg(got != NULL, "no file %s", path);
	ck_assert_str_eq(got, text);
	free(got);
}

/* Makes fd the standard stream `stream`; returns what it was, for stream_restore(). */
static inline int stream_replace(int stream, int fd)
{
	int old = dup(stream);

	fflush(NULL);
	ck_assert_int_ge(old, 0);
	if (fd >= 0) {
		ck_assert_int_eq(dup2(fd, stream), stream);
		close(fd);
	} else {
		close(stream);
	}
	return old;
}

static inline void stream_restore(int stream, int old)
{
	dup2(old, stream);
	close(old);
}

static inline void write_text(struct ap_outputs *o, size_t id, const char *text)
{
	ap_outputs_write(o, id, text, strlen(text));
}

/* Stages text for path. */
static inline enum ap_status stage(struct ap_ctx *ctx, struct ap_outputs *o, const char *path,
	const char *text)
{
	size_t id;

	AP_TRY(ap_outputs_open(ctx, o, path, &id));
	write_text(o, id, text);
	return AP_OK;
}

#endif
