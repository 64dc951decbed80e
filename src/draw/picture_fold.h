/* SPDX-License-Identifier: Apache-2.0 */
/* Repetition in a picture: stretches of operators that recur in a row, equal in all but names.
 * Copies are equal if their operators have equal keys one by one, and each operand has the same
 * source: inside the copy, the previous copy, the same outside operator, or an input. What the
 * first copy reads instead of the previous copy may come from anywhere before the loop, with any
 * redistribution. Copies that do not read each other fold only if there are at least four. Copies are
 * whole parts of a pipeline, or lie in one. */
#ifndef AP_DRAW_PICTURE_FOLD_H
#define AP_DRAW_PICTURE_FOLD_H

#include "draw/picture.h"

struct ap_pic_loop {
	uint32_t parent; /* loop that contains the first copy; AP_NONE */
	uint32_t first, length; /* the first copy: operators [first, first + length) */
	uint32_t copies;
	bool chained; /* each copy reads the previous one; else side by side */
	bool parts; /* each copy is a part of the pipeline */
	ap_id like; /* equal for loops whose copies, however many, are equal in all but names and what
			they read from outside */
};

struct ap_pic_fold {
	uint32_t nloop;
	const struct ap_pic_loop *loop; /* parents before children */
	const uint32_t *stand; /* [noperator] the operator drawn: its counterpart in the first copy */
	const uint32_t *in; /* [noperator] innermost loop of a drawn operator; AP_NONE */
};

/* Finds the loops, in the scratch arena. O(n log n) for n operators and edges, times the nesting
 * depth. */
void ap_pic_fold_make(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_pic_fold *out);

/* A fold without loops. */
void ap_pic_fold_none(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_pic_fold *out);

/* Does an edge lead between different copies of a loop? */
bool ap_pic_fold_again(const struct ap_pic_fold *f, uint32_t from, uint32_t to);

#endif
