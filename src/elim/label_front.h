/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of label.c, and which of several stay. */
#ifndef AP_ELIM_LABEL_FRONT_H
#define AP_ELIM_LABEL_FRONT_H

#include "base/vec.h"
#include "elim/support.h"

/*
 * The labels of a step are made child by child, the last child first: `left` is what there was
 * before, `right` the label of the child. At the end of the chain `left` is AP_NONE and `right` the
 * candidate of the step's node. So walking a chain meets the children in their order. The roots of
 * the forest are the children of one step more than the plan has.
 */
struct ap_label {
	double cost;
	int64_t memory;
	double excess; /* of its price over the least there is for the same choices */
	uint32_t left, right;
};

struct ap_labels {
	struct ap_label *v;
	size_t n, cap;
};

struct ap_lrange { /* of labels in the pool */
	uint32_t first, count;
};

struct ap_lpair {
	uint32_t step, a, b;
};

/*
 * The front: of labels of one step, made of the same children, those that no other one makes
 * useless, by ascending cost, then descending memory (which makes memory descend all along). A
 * label makes useless what needs no less memory and costs more, or, at equal cost: without ties,
 * what needs no less memory; with ties, only what is lexicographically larger as well. (A cheaper
 * one that fits wherever the dearer does keeps it out of any optimum; among equals the smaller one
 * may need more memory and still fit.)
 */
struct ap_lfront {
	struct ap_arena *arena;
	const struct ap_elim *e;
	const struct ap_support *support;
	bool ties;
	uint64_t work; /* counted up */
	struct ap_labels pool; /* all finished labels */
	struct ap_labels front;
	struct ap_labels fresh; /* waiting to be merged with the front */
	struct ap_labels merged, level; /* scratch of that */
	uint32_t step, child; /* what the front is of: made of the children from `child` on */
	AP_VEC(struct ap_lpair) pending;
};

/* Starts an empty front of labels of step made of its children from `child` on. */
void ap_lfront_start(struct ap_lfront *f, uint32_t step, uint32_t child);

/* Takes a label in unless it is useless, and, in time, out what it makes so. O(log) on average. */
void ap_lfront_add(struct ap_lfront *f, struct ap_label l);

/* Is a, a label of the front's step, the better answer: cheaper, or with ties as cheap and
 * smaller? */
bool ap_lfront_prefer(struct ap_lfront *f, const struct ap_label *a, const struct ap_label *b);

/* Moves the front to the pool, least excess first. */
struct ap_lrange ap_lfront_finish(struct ap_lfront *f);

/* The first child of a step; AP_NONE: none. */
uint32_t ap_lfront_child(const struct ap_lfront *f, uint32_t step);

#endif
