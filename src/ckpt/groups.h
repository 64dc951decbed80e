/* SPDX-License-Identifier: Apache-2.0 */
/* The group file of a rank (formats section 1.9) as data, with its writer. */
#ifndef AP_CKPT_GROUPS_H
#define AP_CKPT_GROUPS_H

#include "plan/plan.h"

struct ap_group_ranks {
	const char *name; /* "4-" and a number derived from the ranks; the collective library's
			own name for all ranks */
	uint32_t n;
	const int64_t *rank; /* global, ascending */
};

struct ap_groups {
	uint32_t n;
	const struct ap_group_ranks *group; /* in order of first use in a step */
	uint32_t nrestore;
	const int64_t *restore; /* ranks whose checkpoints this rank may load, itself included, ascending */
};

/* Groups of a global rank: for redistributions and collectives of its stage, and pairs that send
 * between stages. O(collectives of the stage * ranks of a group). */
void ap_groups_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, int64_t rank, struct ap_groups *out);

/* Writes a ParallelGroupMap in protobuf. */
void ap_groups_write(struct ap_ctx *ctx, const struct ap_groups *g, ap_write_fn *write, void *user);

/* Do these bytes begin like a group file? No strategy checkpoint does: its first field is a
 * number. */
bool ap_groups_look_like(const char *bytes, size_t len);

/* Reads and checks a group file. */
enum ap_status ap_groups_read(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	struct ap_groups *out);

/* Returns AP_MEANING if names repeat, ranks do not ascend or are missing, or the restore list is
 * empty, which restore_group_info_list() refuses. */
enum ap_status ap_groups_check(struct ap_ctx *ctx, const char *file, const struct ap_groups *g);

#endif
