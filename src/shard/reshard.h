/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redistribution between two layouts of one tensor, as MindSpore infers it (formats 5.1, 5.2):
 * bring both to the union of their boundaries, then SPLIT, PERMUTE and CONCAT passes.
 */
#ifndef AP_SHARD_RESHARD_H
#define AP_SHARD_RESHARD_H

#include "shard/layout.h"

enum ap_move {
	AP_MOVE_SLICE, /* SplitByAxis: local */
	AP_MOVE_GATHER, /* ConcatByAxis: AllGather, and local copies unless `first` */
	AP_MOVE_ALLTOALL /* PermuteByAxis: split one dimension, concatenate another */
};

/*
 * A step of all ranks at once, in the groups of one axis. It sees a dimension of the running slice
 * as three, (outer, parts, inner): outer is given, inner is the rest, parts is axis.size or, before
 * they are put together, 1. A rank's part number is rank / axis.stride % axis.size.
 *   SLICE     keeps the rank's own part of `dim`.
 *   GATHER    puts the slices of the group together as the parts of `dim`.
 *   ALLTOALL  sends part i of `dim` to member i, then puts what came as parts of `concat`.
 * dim and concat may be one dimension: concat_outer counts after `dim` was split.
 */
struct ap_reshard_step {
	enum ap_move move;
	struct ap_axis axis; /* of the ranks */
	uint8_t dim; /* of the tensor: cut (SLICE, ALLTOALL) or concatenated (GATHER) */
	uint8_t concat; /* ALLTOALL: dimension concatenated */
	bool first; /* what is concatenated is the first dimension of the expanded shape: AllGather
	               alone does it, without local copies */
	int32_t outer, concat_outer;
	int64_t before, after; /* elements of the slice on one rank */
};

#define AP_RESHARD_MAX 48

/*
 * Steps from layout a to layout b of a tensor with these extents; returns their number, 0 when the
 * layouts are equal. Layouts whose boundaries do not divide one another: every cut dimension of a
 * is gathered, then b is sliced (formats 5.1 step 5). No allocation; 0.1 to 0.2 us, thrice that
 * where cuts or strides are no powers of two.
 */
int ap_reshard(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	int64_t ndev, struct ap_reshard_step steps[AP_RESHARD_MAX]);

#endif
