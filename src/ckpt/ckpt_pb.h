/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf form of the strategy checkpoint. (That of group files is declared in ckpt/groups.h.) */
#ifndef AP_CKPT_CKPT_PB_H
#define AP_CKPT_CKPT_PB_H

#include "ckpt/ckpt.h"

void ap_ckpt_write_pb(struct ap_ctx *ctx, const struct ap_ckpt *c, ap_write_fn *write, void *user);

/* Parses a checkpoint, refusing files that are of another format or incomplete. Values are
 * unchecked and in file order. Returns AP_SYNTAX or AP_MEANING on a fault. */
enum ap_status ap_ckpt_pb_parse(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	struct ap_ckpt *out);

#endif
