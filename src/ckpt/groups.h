/* SPDX-License-Identifier: Apache-2.0 */
/* The group file of one rank (formats section 1.9), as data, with its writer. */
#ifndef AP_CKPT_GROUPS_H
#define AP_CKPT_GROUPS_H

#include "plan/plan.h"

struct ap_group_ranks {
	const char *name; /* "4-" and a number that comes from the ranks; the group of all ranks has the name
	                     that the collective library gives it */
	uint32_t n;
	const int64_t *rank; /* global, ascending */
};

struct ap_groups {
	uint32_t n;
	const struct ap_group_ranks *group; /* in the order in which a step uses them first */
	uint32_t nrestore;
	const int64_t *restore; /* ranks whose checkpoints this rank may load, itself among them, ascending */
};

/* The groups that a global rank is in: of redistributions and collectives of its stage's operators, and
 * the pairs that send from stage to stage. O(collectives of the stage * ranks of a group). */
void ap_groups_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, int64_t rank, struct ap_groups *out);

/* ParallelGroupMap, protobuf. */
void ap_groups_write(struct ap_ctx *ctx, const struct ap_groups *g, ap_write_fn *write, void *user);

/* Do these bytes begin as such a file does? No strategy checkpoint does, whose first field is a number. */
bool ap_groups_look_like(const char *bytes, size_t len);

/* Reads one, and checks it. */
enum ap_status ap_groups_read(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	struct ap_groups *out);

/* AP_MEANING: names that are not different, ranks that do not ascend, a group that lacks what all have in
 * common, nobody to restore from (which restore_group_info_list() refuses). */
enum ap_status ap_groups_check(struct ap_ctx *ctx, const char *file, const struct ap_groups *g);

#endif
