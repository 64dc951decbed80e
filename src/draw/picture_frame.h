/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From operators to boxes and frames. A box is known by its head, the first of its operators.
 * Private to draw/picture_*.c.
 */
#ifndef AP_DRAW_PICTURE_FRAME_H
#define AP_DRAW_PICTURE_FRAME_H

#include "draw/picture_view.h"

struct ap_pic_heads {
	const struct ap_picture *pic;
	const struct ap_pic_fold *fold;
	uint32_t *head; /* [noperator], of those drawn: one nearer to the head of the box */
	uint32_t *frame; /* [noperator], of heads */
	const char **title; /* [noperator], of heads: NULL unless a group */
	uint32_t nbox;
	uint32_t nframe;
	struct ap_pic_frame *tree; /* parents before children */
};

/* A box for each operator that is drawn, no frames. Into the scratch arena. */
void ap_pic_heads_make(struct ap_ctx *ctx, const struct ap_picture *pic,
	const struct ap_pic_fold *fold, struct ap_pic_heads *h);

/* The head of the box that an operator is in. */
uint32_t ap_pic_head(const struct ap_pic_heads *h, uint32_t i);

/* The box of head b becomes part of that of head a; a < b. */
void ap_pic_heads_join(struct ap_pic_heads *h, uint32_t a, uint32_t b);

/* Puts an operator that views or changes single elements into the box of the one it reads of, where
 * it is the only one to do so, nothing is redistributed and it is none of the most expensive. */
void ap_pic_heads_chain(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint8_t *rank);

/* Frames for cells that have several boxes, nested, and for loops. O(operators * depth). */
void ap_pic_frames_make(struct ap_ctx *ctx, struct ap_pic_heads *h);

/* Frames become boxes, those first that save most boxes for the time they hide; where that hides
 * too much, neighbours join. At most so many boxes (>= 1) are left. */
void ap_pic_frames_shrink(struct ap_ctx *ctx, struct ap_pic_heads *h, uint32_t most);

#endif
