/* SPDX-License-Identifier: Apache-2.0 */
/* What pictures of plans in memory and of plan files are made with. Private to emit/picture*.c. */
#ifndef AP_EMIT_PICTURE_H
#define AP_EMIT_PICTURE_H

#include "emit/emit.h"

struct ap_pic_builder {
	struct ap_ctx *ctx;
	struct {
		struct ap_pic_node *v;
		size_t n, cap;
	} nodes;
	struct {
		struct ap_pic_edge *v;
		size_t n, cap;
	} edges;
};

/* Into the run arena. */
void ap_pic_finish(struct ap_pic_builder *b, const char *title, struct ap_picture *out);

/* A node of its own for each use of a graph input: one that all layers read (a mask) would knot the
 * picture. Returns its index. */
uint32_t ap_pic_add_input(struct ap_pic_builder *b, const char *tensor);

/* How an operator is cut: of its factors the parts and whether they carry the batch (n of them),
 * and the parts of the first result's dimensions (rank of them). */
void ap_pic_set_cut(struct ap_ctx *ctx, struct ap_pic_node *node, int n, const int64_t *parts,
	const bool *batch, int rank, const int64_t *cut);

/* "AllGather+Slice 2.00 MiB 14.0 us" from the names of the steps. */
const char *ap_pic_moves(struct ap_ctx *ctx, size_t n, const char *const *kind, int64_t bytes,
	double time_s);

/* "NAME on 8 x CHIP: 1.23 ms a step" */
const char *ap_pic_title(struct ap_ctx *ctx, const char *graph, int64_t devices, const char *chip,
	double step_time_s);

#endif
