/* SPDX-License-Identifier: Apache-2.0 */
/* What pictures of plans in memory and of plan files are made with. Private to draw/picture*.c. */
#ifndef AP_DRAW_PICTURE_H
#define AP_DRAW_PICTURE_H

#include "base/vec.h"
#include "draw/draw.h"


struct ap_pic_builder {
	struct ap_ctx *ctx;
	AP_VEC(struct ap_pic_node) nodes;
	AP_VEC(struct ap_pic_edge) edges;
};

/* Into the run arena. */
void ap_pic_finish(struct ap_pic_builder *b, const char *title, const char *facts,
	struct ap_picture *out);

/* A node of its own for each use of an input or a shared tensor: one that all layers read (a mask)
 * would knot the picture. Returns its index. */
uint32_t ap_pic_add_input(struct ap_pic_builder *b, enum ap_pic_kind kind, const char *tensor);

/* How an operator is cut. */
struct ap_pic_cuts {
	int nfactor;
	const struct ap_pic_factor {
		int64_t size, parts, stride;
		bool batch;
	} *factor;
	uint32_t nin;
	const struct ap_pic_vector {
		size_t rank;
		const int64_t *v;
	} *in; /* strategy vectors */
	struct ap_pic_vector out; /* of the first result; rank 0: none */
	uint32_t nslice;
	const struct ap_pic_vector *slice; /* of the results */
	uint32_t ncomm;
	const struct ap_pic_comm {
		const char *phase, *kind;
		int64_t ranks, bytes;
	} *comm;
};

/* Sets class, texts and key of a node that has its type. */
void ap_pic_set_cuts(struct ap_ctx *ctx, struct ap_pic_node *node, const struct ap_pic_cuts *cuts);

/* "AllGather+Slice 2.00 MiB 14.0 us" from the names of the steps. */
const char *ap_pic_moves(struct ap_ctx *ctx, size_t n, const char *const *kind, int64_t bytes,
	double time_s);

/* "NAME on 8 x CHIP: 1.23 ms a step" */
const char *ap_pic_title(struct ap_ctx *ctx, const char *graph, int64_t devices, const char *chip,
	double step_time_s);

/* "stage 0, segment 1", into the run arena; NULL where there is one stage. */
const char *ap_pic_part(struct ap_ctx *ctx, int64_t nstage, int64_t nsegment, int64_t stage,
	int64_t segment);

struct ap_pic_facts {
	int64_t stages, micro_batches; /* stages 0 or 1: no pipeline */
	const char *scheduler;
	int64_t devices, servers, batch, memory_bytes, capacity_bytes;
	const char *mode, *status;
	double gap, step_time_s, compute_s, communication_s, exposed_communication_s, samples_per_s;
};
/* The lines of the legend. */
const char *ap_pic_facts_text(struct ap_ctx *ctx, const struct ap_pic_facts *facts);

#endif
