/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From operators to boxes and frames: chains, cells, loops, and fewer boxes. A box is known by its
 * head, the first of its operators.
 */
#ifndef AP_DRAW_PICTURE_FRAME_H
#define AP_DRAW_PICTURE_FRAME_H

#include "draw/picture_fold.h"

struct ap_pic_frame {
	uint32_t parent; /* AP_NONE: in none */
	uint32_t loop; /* of the fold; AP_NONE: a cell or a part of the pipeline */
	const char *part; /* of the pipeline; NULL: a cell or a loop */
	const char *path; /* cell */
	const char *label;
	uint32_t operators; /* of one copy of the loops around it and of its own */
	uint32_t all; /* operators in all copies */
	double time_s; /* all copies */
};

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

/* Puts an operator that views or changes single elements into the box of the one it reads of, where
 * it is the only one to do so, nothing is redistributed and it is none of the most expensive. */
void ap_pic_heads_chain(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint8_t *rank);

/* Frames for cells that have several boxes, nested, and for loops. O(operators * depth). */
void ap_pic_frames_make(struct ap_ctx *ctx, struct ap_pic_heads *h);

/* Frames become boxes, those first that save most boxes for the time they hide; where that hides
 * too much, neighbours join. At most so many boxes (>= 1) are left. */
void ap_pic_frames_shrink(struct ap_ctx *ctx, struct ap_pic_heads *h, uint32_t most);

#endif
