/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redistribution between two layouts of one tensor, as MindSpore infers it (formats 5.1, 5.2):
 * bring both to the union of their boundaries, then SPLIT, PERMUTE and CONCAT passes.
 */
#ifndef AP_SHARD_RESHARD_H
#define AP_SHARD_RESHARD_H

#include "shard/layout.h"
#include "shard/step.h"

enum ap_move {
	AP_MOVE_SLICE, /* SplitByAxis: local */
	AP_MOVE_GATHER, /* ConcatByAxis: AllGather, and local copies unless `first` */
	AP_MOVE_ALLTOALL, /* PermuteByAxis: split one dimension, concatenate another */
	/* Of a partial gradient only: */
	AP_MOVE_REDUCESCATTER, /* a SLICE of the sum over its axis */
	AP_MOVE_ALLREDUCE /* the sum, over the axis */
};

/*
 * A step of all ranks at once, in the groups of one axis. It sees a dimension of the running slice
 * as three, (outer, parts, inner): outer is given, inner is the rest, parts is axis.size or, before
 * they are put together, 1. A rank's part number is rank / axis.stride % axis.size.
 *   SLICE     keeps the rank's own part of `dim`.
 *   GATHER    puts the slices of the group together as the parts of `dim`.
 *   ALLTOALL  sends part i of `dim` to member i, then puts what came as parts of `concat`.
 *   REDUCESCATTER  adds up the slices of the group, and keeps the rank's own part of `dim` of the sum.
 *   ALLREDUCE      adds them up; dim and outer are 0 and 1.
 * dim and concat may be one dimension: concat_outer counts after `dim` was split.
 * Where inner_parts is above 1, a step is one of two dimensions at once: part p of the axis is part
 * p / inner_parts of `dim`, and of that part p % inner_parts of `inner`, whose outer is inner_outer. Of an
 * ALLTOALL what comes from member p is likewise part p / inner_parts of `concat` and of that part
 * p % inner_parts of `concat_inner`; on either side the two may be one dimension.
 */
struct ap_reshard_step {
	enum ap_move move;
	struct ap_axis axis; /* of the ranks */
	uint8_t dim; /* of the tensor: cut (SLICE, ALLTOALL, REDUCESCATTER) or concatenated (GATHER) */
	uint8_t concat; /* ALLTOALL: dimension concatenated */
	uint8_t inner; /* of two dimensions: the second one */
	uint8_t concat_inner; /* ALLTOALL: likewise of those concatenated */
	bool first; /* what is concatenated, or cut of a sum, is the first dimension of the expanded
	               shape: the collective alone does it, without local copies */
	int32_t outer, concat_outer, inner_outer, concat_inner_outer;
	int32_t inner_parts; /* of axis.size, those of `inner`; 1: the step is of `dim`, `concat` alone */
	int64_t before, after; /* elements of the slice on one rank */
};

#define AP_RESHARD_MAX 48

/* Which steps may be used, as bits. */
#define AP_RESHARD_ALLTOALL 1u /* else a GATHER and a SLICE stand for each ALLTOALL */
#define AP_RESHARD_JOINT 2u /* two steps of one move, one behind the other, over an axis and the next one
                               inside it, are one over both: MindSpore has no such operators */

/* The bits that the step's executor allows. */
static inline unsigned ap_reshard_ways(const struct ap_step *step)
{
	return (step->alltoall ? AP_RESHARD_ALLTOALL : 0) |
		(step->executor == AP_EXECUTOR_GENERIC ? AP_RESHARD_JOINT : 0);
}

/*
 * Steps from layout a to layout b of a tensor with these extents. Returns their number, 0 if the
 * layouts are equal. If boundaries do not divide one another, every cut dimension of a is gathered,
 * then b is sliced (formats 5.1 step 5). Allocates nothing.
 */
int ap_reshard(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	int64_t ndev, unsigned ways, struct ap_reshard_step steps[AP_RESHARD_MAX]);

/*
 * One end of redistributions of a tensor: a layout, read once where it is compared with many. Where an axis
 * of the ranks begins and ends are bits of a set: bit n, where 2^20 ranks fall into 2^n blocks.
 */
struct ap_reshard_end {
	struct ap_layout layout;
	int64_t elements; /* of the slice on one rank */
	int64_t slice[AP_MAX_RANK]; /* its extents */
	uint8_t first; /* the first dimension of more than one element */
	uint8_t other; /* dimensions whose cut or stride is no power of two, a bit each */
	struct ap_reshard_axis { /* that cuts a dimension; zeroes: none does, or no powers of two */
		int32_t start; /* number of the bit where it begins */
		uint32_t ends; /* where it begins and ends */
		uint32_t inside; /* where it could be divided */
		uint32_t parts; /* where its parts could end */
	} dim[AP_MAX_RANK];
	struct ap_axes partial; /* of a reader: over these, which do not cut the tensor, its gradient is
	                           partial, and comes back as the sum; none of ap_reshard_end_make() */
};

/* The layout's parts must divide ndev. */
void ap_reshard_end_make(const struct ap_layout *l, const int64_t *size, int64_t ndev,
	struct ap_reshard_end *out);

/* ap_reshard() between two ends. */
int ap_reshard_steps(const struct ap_reshard_end *a, const struct ap_reshard_end *b, unsigned ways,
	struct ap_reshard_step steps[AP_RESHARD_MAX]);

/* The steps between two ends of one tensor; without AP_RESHARD_JOINT outer and concat_outer, which no
 * price depends on, are 1. Some 0.15 us, twice that where cuts or strides are no powers of two. */
int ap_reshard_moves(const struct ap_reshard_end *a, const struct ap_reshard_end *b, unsigned ways,
	struct ap_reshard_step steps[AP_RESHARD_MAX]);

/*
 * The steps of a gradient that is partial over from->partial to the sum in the layout of `to`. Those between
 * the layouts, but a SLICE over axes of which the gradient is partial is a REDUCESCATTER; over what is left
 * it is an ALLREDUCE, before the first GATHER, or a SLICE over ranks that have other sums, or at the end. An
 * ALLREDUCE for each axis.
 */
int ap_reshard_back(const struct ap_reshard_end *from, const struct ap_reshard_end *to, unsigned ways,
	struct ap_reshard_step steps[AP_RESHARD_MAX]);

#define AP_MAX_LOG 20 /* a machine has at most 2^20 ranks */
#define AP_MAX_CHAIN (AP_MAX_LOG + 1) /* numbers up to 2^20, each dividing the next */
#define AP_MAX_SUBS 40 /* each cut by an axis of at least two ranks in one of the layouts */

/* A dimension of the unified shape. Left out is what never moves: tensor dimensions that lie alike
 * in both layouts, and of the others the innermost part, which neither cuts. */
struct ap_sub {
	int32_t size;
	uint32_t in, out; /* the axis that cuts it in the first and in the second layout, as a bit; 0 not
	                     cut. Both have one device matrix, so an axis has one bit */
	uint32_t dim; /* of the tensor, that it is a part of */
};

struct ap_unified {
	int n; /* outermost first within a tensor dimension, dimensions ascending */
	struct ap_sub sub[AP_MAX_SUBS];
	uint32_t in, out; /* all axes of the sub-dimensions */
	const int32_t *stride; /* of axes, by number of their bit */
	int32_t own_stride[AP_MAX_CHAIN]; /* where stride may point to */
};

/* False where the layouts are not expandable: boundaries that do not divide one another. */
bool ap_reshard_unify(const struct ap_reshard_end *a, const struct ap_reshard_end *b,
	struct ap_unified *out);

#endif
