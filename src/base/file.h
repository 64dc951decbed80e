/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files and folders. */
#ifndef AP_BASE_FILE_H
#define AP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/json_write.h"

#define AP_FILE_MAX_BYTES ((size_t)64 << 20) /* default limit of inputs */

/* Reads a regular file (or standard input for "-") into the run arena, NUL-terminated. Returns
 * AP_IO if it cannot be read or is no regular file (never blocks on a FIFO), AP_LIMIT above max
 * bytes (checked before reading), AP_SYNTAX if empty. */
enum ap_status ap_file_read(struct ap_ctx *ctx, const char *path, size_t max, char **text,
	size_t *len);

/* The first bytes of a regular file, at most n; 0 for any other, and standard input. Issues no messages. */
size_t ap_file_head(const char *path, char *bytes, size_t n);

/* Last component of a path; "-" for standard input. Borrowed from path. */
const char *ap_file_base(const char *path);

/* Do two paths name the same existing file (device and inode)? */
bool ap_file_same(const char *a, const char *b);

/* Does path end in suffix (case-sensitive)? */
bool ap_file_suffix(const char *path, const char *suffix);

bool ap_file_is_folder(const char *path);

/* Does the regular file path, not a link, hold the same bytes as the readable fd? False if it
 * cannot be read. */
bool ap_file_holds(const char *path, int fd);

struct ap_file_sum {
	int64_t bytes;
	char sha256[65]; /* lower-case hexadecimal */
};

/* Size and digest of a regular file; follows links. Returns 0 or an errno: EINVAL if not a regular
 * file. */
int ap_file_sum(const char *path, struct ap_file_sum *out);

/* The same for an open file, from its beginning, whatever its offset. Returns 0 or an errno. */
int ap_file_sum_fd(int fd, struct ap_file_sum *out);

/* Is the folder empty but for temporary files of outputs? False if it cannot be read. */
bool ap_folder_is_free(const char *path);

/* Names in a folder, in bytewise order, without those that begin with a dot. Returns AP_IO if it
 * cannot be read. */
enum ap_status ap_folder_names(struct ap_ctx *ctx, const char *path, size_t *n,
	const char *const **out);

#endif
