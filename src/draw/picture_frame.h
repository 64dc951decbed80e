/* SPDX-License-Identifier: Apache-2.0 */
/* From operators to boxes and frames: chains, cells, loops, and fewer boxes. A box is identified by
 * its head, its first operator. */
#ifndef AP_DRAW_PICTURE_FRAME_H
#define AP_DRAW_PICTURE_FRAME_H

#include "draw/picture_fold.h"

struct ap_pic_frame {
	uint32_t parent; /* AP_NONE: outermost */
	uint32_t loop; /* index in the fold; AP_NONE: a cell or pipeline part */
	const char *part; /* pipeline part, with a loop the first of several; NULL: a cell or loop */
	const char *path; /* cell */
	const char *label;
	uint32_t operators; /* in one copy of each enclosing loop and its own */
	uint32_t all; /* operators in all copies */
	double time_s; /* all copies */
};

struct ap_pic_heads {
	const struct ap_picture *pic;
	const struct ap_pic_fold *fold;
	uint32_t *head; /* [noperator] of drawn operators: one closer to the box's head */
	uint32_t *frame; /* [noperator] of heads */
	const char **title; /* [noperator] of heads; NULL unless a group */
	uint32_t nbox;
	uint32_t nframe;
	struct ap_pic_frame *tree; /* parents before children */
	uint32_t nshell;
	const char **shell; /* cells without a frame, since nearly everything is in them */
};

/* Makes a box of each drawn operator, without frames. In the scratch arena. */
void ap_pic_heads_make(struct ap_ctx *ctx, const struct ap_picture *pic,
	const struct ap_pic_fold *fold, struct ap_pic_heads *h);

/* The head of an operator's box. */
uint32_t ap_pic_head(const struct ap_pic_heads *h, uint32_t i);

/* Joins a view or elementwise operator with the operator it reads if it is the only reader, nothing
 * is redistributed and it is not among the most expensive. */
void ap_pic_heads_chain(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint8_t *rank);

/* Adds nested frames for cells with several boxes, and for loops. O(operators * depth). */
void ap_pic_frames_make(struct ap_ctx *ctx, struct ap_pic_heads *h);

/* A cell as it is named in a frame of cell `path` ("": in none): without that, and without the cells that
 * have no frame. */
const char *ap_pic_short_path(const char *path, uint32_t nshell, const char *const *shell, const char *cell);

/* Turns frames into boxes that show nothing new: loops that are equal to one that is drawn, and, while
 * there are more than `plenty` boxes, frames whose operators are all cut alike and have nothing
 * redistributed, or that take next to no time; those first that hide least time per box saved. Frames of
 * little time that have the operators of a loop, of which they cut some otherwise, and neighbours in a
 * frame that feed one another, are cut alike and take little time become a box, too. A graph without times
 * keeps these. rank: not 0 for operators that stay alone. */
void ap_pic_frames_tidy(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint8_t *rank, uint32_t plenty);

/* Turns frames into boxes, those first that hide least time per box saved; if that would hide too
 * much, joins neighbours. Leaves at most `most` (>= 1) boxes. */
void ap_pic_frames_shrink(struct ap_ctx *ctx, struct ap_pic_heads *h, uint32_t most);

#endif
