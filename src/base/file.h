/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders that are read. */
#ifndef AP_BASE_FILE_H
#define AP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/json_write.h"

#define AP_FILE_MAX_BYTES ((size_t)64 << 20) /* default limit of an input */

/* Reads a regular file (or standard input for "-") into the run arena, NUL-terminated. AP_IO when
 * it cannot be read or is no regular file (never blocks on a FIFO), AP_LIMIT above max bytes
 * (checked before reading), AP_SYNTAX when empty. */
enum ap_status ap_file_read(struct ap_ctx *ctx, const char *path, size_t max, char **text,
	size_t *len);

/* Last component of a path; "-" for standard input. Borrowed from path. */
const char *ap_file_base(const char *path);

/* Do two paths name the same existing file (device and inode)? */
bool ap_file_same(const char *a, const char *b);

/* Does path end in suffix (case-sensitive, whole)? */
bool ap_file_suffix(const char *path, const char *suffix);

bool ap_file_is_folder(const char *path);

/* Does the regular file path, no link, hold the very bytes of the one that fd may read? What cannot be
 * read does not. */
bool ap_file_holds(const char *path, int fd);

struct ap_file_sum {
	int64_t bytes;
	char sha256[65]; /* hexadecimal, in small letters */
};

/* Of a regular file, or one that a link leads to. 0, or an errno: EINVAL for what is no such file. */
int ap_file_sum(const char *path, struct ap_file_sum *out);

/* Of an open one, from its beginning, wherever it stands. 0 or an errno. */
int ap_file_sum_fd(int fd, struct ap_file_sum *out);

/* Is nothing in the folder, but temporary files of outputs? false where it cannot be read. */
bool ap_folder_is_free(const char *path);

/* Names in a folder but those that begin with a dot, in bytewise order. AP_IO. */
enum ap_status ap_folder_names(struct ap_ctx *ctx, const char *path, size_t *n,
	const char *const **out);

#endif
