/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes over the links when a training run continues under another plan: each rank gets what its new
 * checkpoint holds and its old one does not, from the nearest rank that has it. Rank i of both plans is one
 * device; a plan of fewer devices leaves the last ones out.
 */
#ifndef AP_DIFF_TRANSFER_H
#define AP_DIFF_TRANSFER_H

#include "planfile/plan_read.h"

enum { AP_TRANSFER_RANK = 16, AP_TRANSFER_LEVELS = 8 };

/* A parameter's layout on the ranks [first, first + ndev), cell by cell. */
struct ap_transfer_side {
	uint32_t rank; /* dimensions */
	int64_t size[AP_TRANSFER_RANK];
	int64_t cut[AP_TRANSFER_RANK], stride[AP_TRANSFER_RANK];
	int64_t first, ndev;
	int64_t shards; /* of a slice */
	int64_t part; /* elements of one where rows do not divide: then it is taken for the rows that begin
	                 in it (ap_dealing_first_row()); 0: rows of dimension 0, equally many */
	uint32_t naxis;
	struct ap_saved_axis axis[AP_TRANSFER_RANK]; /* by which they are numbered, outermost first */
};

/* False if what the plan says of the parameter is no such layout. */
bool ap_transfer_side_make(const struct ap_saved_param *p, struct ap_transfer_side *out);

/* The block of elements that a rank holds; rank: of the machine, within the side. */
void ap_transfer_box(const struct ap_transfer_side *s, int64_t rank, int64_t lo[AP_TRANSFER_RANK],
	int64_t hi[AP_TRANSFER_RANK]);

/* Part of a rank's new block, from one rank; from == to: it lies there already. */
struct ap_transfer_piece {
	int64_t from, to, elements;
	const int64_t *lo, *hi;
};
typedef void ap_transfer_visit(void *user, const struct ap_transfer_piece *piece);

/* Visits pieces that make up every rank's new block, each element once, in the order of ranks. span[nlevel]:
 * ranks in a block of a link level, inner to outer; among equally near ranks those that want a piece take
 * turns. O(pieces log ranks). */
void ap_transfer_pieces(struct ap_ctx *ctx, const struct ap_transfer_side *was,
	const struct ap_transfer_side *is, int nlevel, const int64_t *span, ap_transfer_visit *visit,
	void *user);

struct ap_transfer {
	int nlink;
	struct ap_transfer_link { /* of the machine with more devices, inner to outer */
		const char *name;
		int64_t span;
		double bandwidth_Bps; /* reached: with its efficiency */
		double latency_s;
		int64_t bytes; /* of all ranks */
		int64_t most_bytes; /* that a rank sends or receives */
		double time_s; /* latency and most_bytes at this bandwidth; 0 if nothing goes over it */
	} link[AP_TRANSFER_LEVELS];
	int64_t stays_bytes; /* what ranks have already */
	double time_s; /* one link level behind the other */
	uint32_t nparam; /* that are in both plans */
	uint32_t nnew; /* of the new plan alone: made anew */
	uint32_t nodd; /* whose shapes differ, or whose layouts contradict themselves: left out */
	bool states; /* the optimizer is the same, so its states go along */
};

/* old_param[is->nparam]: the counterparts; AP_NONE: none. Parameters that lie alike are computed once. */
void ap_transfer_make(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	const ap_id *old_param, struct ap_transfer *out);

#endif
