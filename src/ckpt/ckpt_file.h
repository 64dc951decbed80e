/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy checkpoint as a file: reads and writes its two forms, JSON and protobuf. */
#ifndef AP_CKPT_CKPT_FILE_H
#define AP_CKPT_CKPT_FILE_H

#include "ckpt/ckpt.h"

void ap_ckpt_write_json(const struct ap_ckpt *c, ap_write_fn *write, void *user);

/* Reads either form; json: by the ".json" suffix of the file, as MindSpore decides. All checks of
 * reliability.md section 2 F that need no graph; bytes[len] is NUL, file is for messages. */
enum ap_status ap_ckpt_read(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	bool json, struct ap_ckpt *out);

/* A warning (check "ckpt-empty") when no operator is in it: MindSpore refuses such a file. Another one for
 * each operator without vectors, which MindSpore saves where a script gives layouts, and loads there only. */
enum ap_status ap_ckpt_check_empty(struct ap_ctx *ctx, const char *file, const struct ap_ckpt *c);

#endif
