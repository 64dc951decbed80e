/* SPDX-License-Identifier: Apache-2.0 */
/* Folders: what is in them. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/file_temp.h"
#include "base/vec.h"

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

/* 0 or an errno. */
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
