/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: how a tensor lies on the row-major ranks of a stage. A dimension cut in `cut` parts by
 * an axis of stride `stride` gives rank r part (r / stride) % cut: exactly what dev_matrix and
 * tensor_map say, in a form that two operators can be compared by (decision 1).
 */
#ifndef AP_SHARD_LAYOUT_H
#define AP_SHARD_LAYOUT_H

#include "hw/machine.h"
#include "rule/rule.h"

struct ap_cut_dim {
	int32_t cut; /* >= 1 */
	int32_t stride; /* 0 when cut == 1 */
};

struct ap_layout { /* plain data, comparable with memcmp (no padding, unused dims zero) */
	int32_t rank;
	struct ap_cut_dim dim[AP_MAX_RANK];
};

bool ap_layout_equal(const struct ap_layout *a, const struct ap_layout *b);
bool ap_layout_is_whole(const struct ap_layout *l); /* nothing is cut */
int64_t ap_layout_parts(const struct ap_layout *l); /* product of cuts */

/* An operator's factors on ndev ranks, given their counts: the dev_matrix. */
struct ap_placement {
	const struct ap_bound *bound;
	int64_t ndev;
	int32_t count[AP_MAX_FACTOR]; /* parts per factor */
	int32_t stride[AP_MAX_FACTOR]; /* of the factor's axis; 0 when count == 1 */
	int32_t repeat; /* ndev / product of counts */
	int32_t repeat_stride; /* 0 when repeat == 1 */
	bool left; /* repeat is the first axis */
	uint32_t dealt; /* factors whose partial sums are dealt along dimension 0 of result 0 */
};

/* Parts into which factor f cuts a dimension of t, an operand or result of p; 1 if f's sums could be dealt
 * along it but are not with these counts. */
static inline int32_t ap_placement_parts(const struct ap_placement *p, const struct ap_operand *t, int f)
{
	bool summed = t == p->bound->out && (p->bound->dealt & ~p->dealt) >> f & 1;

	return summed ? 1 : p->count[f];
}

/* Counts (>= 1, or negative where they ask for dealt sums; their product divides ndev) to placement: axes
 * in the rule's dev order, repeat at the side the rule says (formats 1.5). O(factors). */
void ap_placement_make(const struct ap_bound *b, const int32_t *count, int64_t ndev,
	struct ap_placement *out);

/* The counts that it was made of, p's own or, where they ask for dealt sums, in the arena. O(factors). */
const int32_t *ap_placement_counts(struct ap_arena *arena, const struct ap_placement *p);

/* Layout of an operand or result. False when two factors composed into one dimension do not form
 * one axis (not adjacent in the dev_matrix): such counts are no candidate. */
bool ap_layout_make(const struct ap_placement *p, const struct ap_operand *t,
	struct ap_layout *out);

/* The communication axes of the factors in mask, and of the repeat when with_repeat. */
void ap_placement_axes(const struct ap_placement *p, uint32_t mask, bool with_repeat,
	struct ap_axes *out);

/* Axes over which all ranks hold the same slice of t: split factors that t lacks, and the
 * repeat. */
void ap_placement_replicas(const struct ap_placement *p, const struct ap_operand *t,
	struct ap_axes *out);

/*
 * dev_matrix and tensor_map as MindSpore writes them. raw: with axes of size one, one axis per
 * factor of the rule plus the repeat (formats 1.5 step 2); standard: without them, [1] when nothing
 * is left (step 3). map: per dimension the axis number from the right, -1 not cut (raw: or without
 * a factor); a dimension composed of several cut factors names the outermost one's axis.
 */
struct ap_dev_matrix {
	int n;
	int32_t axis[AP_MAX_FACTOR + 1];
};
void ap_dev_matrix_raw(const struct ap_placement *p, struct ap_dev_matrix *out);
void ap_dev_matrix_standard(const struct ap_placement *p, struct ap_dev_matrix *out);

/* dev: of p, in either form. False where a dimension is cut by several axes of dev: the operand
 * then needs a dev_matrix of its own, ap_layout_dev_matrix(). */
bool ap_tensor_map(const struct ap_placement *p, const struct ap_operand *t,
	const struct ap_dev_matrix *dev, int32_t map[AP_MAX_RANK]);

/* dev_matrix and map of a bare layout: the coarsest arrangement of ndev that it needs. */
void ap_layout_dev_matrix(const struct ap_layout *l, int64_t ndev, struct ap_dev_matrix *dev,
	int32_t map[AP_MAX_RANK]);

/* The strategy vector of an operand: parts per dimension. */
void ap_strategy_vector(const struct ap_placement *p, const struct ap_operand *t,
	int32_t cut[AP_MAX_RANK]);

/* Slice of a tensor of these extents on one rank. */
void ap_layout_slice(const struct ap_layout *l, const int64_t *size, int64_t *slice);

#endif
