/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a network between two plans, in few words: which parts of it are cut along other
 * dimensions, and how many layers changed. */
#ifndef AP_DIFF_DIFF_PARTS_H
#define AP_DIFF_DIFF_PARTS_H

#include "planfile/plan_parts.h"

struct ap_diff_part { /* a part of the network that both plans have products or lookups of */
	const char *name; /* "attention" */
	uint32_t n; /* of its products and lookups, those cut otherwise */
	uint32_t of;
	/* The cut that most of their time changed from and to, what is in both left out: "sequence over 2",
	 * "heads over 8"; "" where nothing is left, NULL if n is 0. Equal texts: other dimensions of that
	 * kind. */
	const char *was, *is;
};

struct ap_diff_layers { /* layers are what has a number in its name: blocks.0, blocks.1, .. */
	uint32_t nlayer; /* of the new plan */
	uint32_t changed, added, removed;
	uint32_t op_changed, op_added, op_removed; /* operators outside layers */
};

struct ap_diff_pairs { /* counterparts of operators; AP_NONE: none */
	const ap_id *new_op; /* [was->nop] */
	const ap_id *old_op; /* [is->nop] */
};

/* Writes at most AP_SAVED_PART_COUNT parts onto out, in the order of the enumeration, and into *nrest how
 * many other operators are cut otherwise. Returns the number of parts. O(operators), and what
 * ap_saved_parts() takes. */
uint32_t ap_diff_parts(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	const struct ap_diff_pairs *pairs, struct ap_diff_part out[AP_SAVED_PART_COUNT], uint32_t *nrest);

/* changed[is->nop]: does an operator differ from its counterpart? O(length of names). */
void ap_diff_layers(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	const struct ap_diff_pairs *pairs, const bool *changed, struct ap_diff_layers *out);

#endif
