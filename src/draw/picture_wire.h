/* SPDX-License-Identifier: Apache-2.0 */
/* Wiring of stretches of operators, and where it is the same. Private to draw/picture_fold.c and
 * this. */
#ifndef AP_DRAW_PICTURE_WIRE_H
#define AP_DRAW_PICTURE_WIRE_H

#include "base/map.h"
#include "draw/draw.h"

struct ap_pic_item { /* an operator, or a loop of them */
	uint32_t first, length; /* operators, all copies */
	uint32_t drawn; /* operators of which a box is drawn */
	ap_id sig; /* equal: equal in all but names and what is read from outside */
	uint32_t loop; /* AP_NONE: an operator */
};

struct ap_pic_wire {
	const struct ap_picture *pic;
	uint32_t nitem;
	struct ap_pic_item *item;
	uint32_t *item_of; /* operator -> item */
	uint32_t *last_user; /* operator -> last item that reads of it */
	int32_t *across; /* item -> operators before it that are read from it on */
	const uint32_t *first_in; /* [noperator + 1] into in */
	const uint32_t *in; /* edges by consumer */
	const ap_id *moves; /* edge -> its redistribution as a number */
};

/* Items j and j + period of a run. */
struct ap_pic_pair {
	bool same; /* wired the same, provided copies begin at least at: */
	uint32_t least;
	uint32_t lo, hi; /* where they are not: they fit as parts of a first and a second copy when the
	                    second one begins in [lo, hi] (lo > hi: never) */
};

struct ap_pic_run { /* each item of [begin, end) has the sig of the one a period later */
	uint32_t begin, end, period;
	struct ap_pic_pair *pair; /* [end - begin] */
};

/* An item for each operator. Into the scratch arena, as is all of this. */
void ap_pic_wire_init(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_map *sigs,
	struct ap_pic_wire *w);

/* Numbers the items anew after they have changed. */
void ap_pic_wire_index(struct ap_pic_wire *w);

/* Compares the pairs of a run; pair must hold end - begin. O(operands). */
void ap_pic_wire_run(const struct ap_pic_wire *w, struct ap_pic_run *run);

/* What the last of these copies reads of the others. */
enum ap_pic_link {
	AP_LINK_NONE, /* nothing: they stand side by side */
	AP_LINK_CHAIN, /* of the one before it */
	AP_LINK_FAR /* of one further back */
};
enum ap_pic_link ap_pic_wire_link(const struct ap_pic_wire *w, uint32_t begin, uint32_t period,
	uint32_t copies);

#endif
