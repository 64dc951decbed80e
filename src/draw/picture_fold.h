/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repetition in a picture: stretches of operators that come several times in a row, equal in all
 * but names.
 *
 * Copies are equal when their operators have equal keys one by one, and every operand comes from
 * the same place: inside the copy, from the copy before, from the same operator outside, or from an
 * input. What the first copy takes from the copy before may come from anywhere before the loop,
 * with any redistribution. Copies that read nothing of each other count from four on.
 */
#ifndef AP_DRAW_PICTURE_FOLD_H
#define AP_DRAW_PICTURE_FOLD_H

#include "draw/picture.h"

struct ap_pic_loop {
	uint32_t parent; /* loop that the first copy lies in, AP_NONE */
	uint32_t first, length; /* the first copy: operators [first, first + length) */
	uint32_t copies;
	bool chained; /* each copy reads of the one before; else they stand side by side */
};

struct ap_pic_fold {
	uint32_t nloop;
	const struct ap_pic_loop *loop; /* parents before children */
	const uint32_t *stand; /* [noperator] the one that is drawn: where it is in the first copy */
	const uint32_t *in; /* [noperator] innermost loop of one that is drawn, AP_NONE */
};

/* Into the scratch arena. O(n log n) for n operators and edges, times the depth of nesting. */
void ap_pic_fold_make(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_pic_fold *out);

/* The same with nothing folded. */
void ap_pic_fold_none(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_pic_fold *out);

/* Does an edge lead from one copy of a loop to another one? */
bool ap_pic_fold_again(const struct ap_pic_fold *f, uint32_t from, uint32_t to);

#endif
