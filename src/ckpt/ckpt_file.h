/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes strategy checkpoint files, in JSON and protobuf form. */
#ifndef AP_CKPT_CKPT_FILE_H
#define AP_CKPT_CKPT_FILE_H

#include "ckpt/ckpt.h"

void ap_ckpt_write_json(const struct ap_ckpt *c, ap_write_fn *write, void *user);

/* Reads either form; json: the file has the suffix ".json", which is how MindSpore decides. Makes
 * all checks of reliability.md section 2 F that need no graph. bytes[len] is NUL; file is for
 * messages. */
enum ap_status ap_ckpt_read(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	bool json, struct ap_ckpt *out);

/* Warns (check "ckpt-empty") if there is no operator: MindSpore refuses such a file. Also warns of
 * each operator without vectors, which MindSpore saves, and can load, only if a script gives
 * layouts. */
enum ap_status ap_ckpt_check_empty(struct ap_ctx *ctx, const char *file, const struct ap_ckpt *c);

#endif
