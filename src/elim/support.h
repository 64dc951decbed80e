/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of an evaluated elimination that picks of at most a given cost pass through. With the
 * least cost as threshold, it is the set of all optima.
 *
 * The steps of a plan that is not split form a forest: the parent of a step is the step of the
 * first node of its scope to be eliminated later; a clique is a step's scope and its node. Top
 * down, a group is a choice for a scope, a tuple a choice for a clique; `through` is the least cost
 * of all picks that agree with the tuple. A tuple is in the support if that does not exceed the
 * threshold, so each tuple extends, up and down, to a pick within the threshold.
 */
#ifndef AP_ELIM_SUPPORT_H
#define AP_ELIM_SUPPORT_H

#include "base/vec.h"
#include "elim/elim.h"

struct ap_sgroup {
	size_t cell; /* index in the table over the scope */
	double through;
	uint32_t first, count; /* its tuples */
};

struct ap_stuple {
	double through;
	uint32_t group, x; /* candidate of the step's node */
};

struct ap_sstep {
	uint32_t parent; /* step, or AP_NONE for a root */
	uint32_t child, sibling; /* steps, or AP_NONE; roots are siblings, too */
	AP_VEC(struct ap_sgroup) group;
	AP_VEC(struct ap_stuple) tuple;
	uint32_t *link; /* [tuples of the parent] the group implied here */
};

struct ap_support {
	struct ap_sstep *step; /* as in the plan */
	uint32_t *step_of; /* [n] step of each node */
	uint32_t root; /* the first root; AP_NONE if there are no nodes */
	uint64_t ntuple; /* total number */
};

/* The support of an evaluated plan of least cost `least`, in scratch; NULL if it has more than
 * max_tuples. O(groups * k * degree). */
struct ap_support *ap_support_make(struct ap_ctx *ctx, const struct ap_elim *e,
	const double *const *value, double least, double threshold, uint64_t max_tuples);

/* Sets pick[] of the nodes in the scope of step s from a group's cell. */
void ap_support_decode(const struct ap_elim *e, const struct ap_estep *s, size_t cell,
	uint32_t *pick);

/* The lexicographically smallest pick of a support whose threshold was the least cost: node by
 * node, takes the smallest candidate left and removes, up and down the forest, tuples that no
 * longer extend to an optimum. Each tuple is removed once: O(tuples * children). */
void ap_support_first(struct ap_ctx *ctx, const struct ap_elim *e, const struct ap_support *s,
	uint32_t *pick);

#endif
