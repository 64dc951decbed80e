/* SPDX-License-Identifier: Apache-2.0 */
/* The drawing of a picture: boxes for one or more operators, notes for inputs, edges between them,
 * frames around them. Each operator is in exactly one box. */
#ifndef AP_DRAW_PICTURE_VIEW_H
#define AP_DRAW_PICTURE_VIEW_H

#include "draw/picture.h"
#include "draw/picture_fold.h"
#include "draw/picture_frame.h"

/* FOLD draws repeated layers once and at most AP_PIC_MOST_BOXES boxes, FULL every operator. */
enum ap_pic_detail { AP_PIC_FOLD, AP_PIC_FULL };
enum { AP_PIC_MOST_BOXES = 80 };

enum { AP_PIC_RANKS = 10 }; /* most expensive operators to mark */

enum ap_pic_box_kind {
	AP_BOX_OPERATOR, /* one operator, in all copies of its loops */
	AP_BOX_CHAIN, /* operators that each feed only the next */
	AP_BOX_GROUP, /* operators of a frame, or neighbours */
	AP_BOX_NOTE /* inputs, shared tensors or results read by one box, where lines would be
			too long or too many */
};

struct ap_pic_moved { /* redistributions */
	uint32_t n; /* all copies */
	int64_t bytes;
	double time_s;
};

struct ap_pic_box {
	enum ap_pic_box_kind kind;
	uint32_t nmember;
	const uint32_t *member; /* drawn operators, ascending; of a note: its first node */
	const char *title; /* of a group: its frame's label; "": none */
	uint32_t frame; /* AP_NONE: outermost */
	uint32_t operators; /* all copies; of a note: number of tensors */
	uint32_t ncomm; /* all copies */
	double time_s; /* all copies */
	struct ap_pic_moved inside;
	uint32_t nrank;
	uint8_t rank[AP_PIC_RANKS]; /* ranks of its members, from 1 */
};

struct ap_pic_line { /* an edge between boxes */
	uint32_t from, to;
	bool again; /* to another copy of a loop */
	bool one_kind; /* all redistributions have the same text */
	const struct ap_pic_edge *first; /* one with a redistribution, if any */
	uint32_t count; /* edges represented */
	uint32_t sent; /* of these, sent between pipeline parts */
	int64_t sent_bytes;
	struct ap_pic_moved moved;
};

struct ap_pic_view {
	const struct ap_picture *pic;
	struct ap_pic_fold fold;
	uint32_t nbox, nnote; /* notes come last */
	struct ap_pic_box *box;
	uint32_t nline;
	const struct ap_pic_line *line;
	uint32_t nframe;
	const struct ap_pic_frame *frame; /* parents before children */
	uint32_t nshell;
	const char *const *shell; /* cells that have no frame: ap_pic_short_path() */
	const uint32_t *box_of; /* [noperator] */
	double total_s; /* operators and redistributions */
};

/* Copies of what a frame has: its own, and those of the frames around it; 1 of AP_NONE. */
uint32_t ap_pic_copies(const struct ap_pic_view *v, uint32_t frame);

/* Lays out a picture, in the scratch arena. Near-linear. */
void ap_pic_view_make(struct ap_ctx *ctx, const struct ap_picture *pic, enum ap_pic_detail detail,
	struct ap_pic_view *out);

#endif
