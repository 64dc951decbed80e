/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a picture, whatever its source: a plan in memory, a plan file or a bare graph.
 * Names are raw; the DOT writer escapes them. */
#ifndef AP_DRAW_PICTURE_H
#define AP_DRAW_PICTURE_H

#include "planfile/dimension.h"
#include "plan/plan.h"
#include "planfile/plan_read.h"

enum ap_pic_kind {
	AP_PIC_OPERATOR,
	AP_PIC_INPUT, /* graph input; one node per use */
	AP_PIC_SHARED /* parameter or constant read by several operators; one node per use */
};
struct ap_pic_node {
	const char *name, *type; /* of an input or shared tensor: the tensor, "Input" or "Shared" */
	const char *cell; /* cluster, nested as "a.b.c"; "": none */
	const char *cut; /* "8x1, 1x4 to 8x4": operands and first result, with ", partial over 2"
			if it is summed over the remaining parts; "": unknown */
	const char *slice; /* first result on one rank ("16x2048x640"); "": unknown */
	const char *comms; /* a line each: "AllReduce of 8, 2.00 MiB"; "": none */
	const char *key; /* operators with equal keys differ only in names and wiring */
	enum ap_pic_kind kind;
	enum ap_pic_class {
		AP_PIC_NONE, /* unknown */
		AP_PIC_WHOLE, /* nothing is cut */
		AP_PIC_BATCH, /* batch dimensions are cut */
		AP_PIC_MODEL, /* other dimensions are cut */
		AP_PIC_BOTH
	} cls;
	uint32_t ncomm;
	double time_s; /* per step; 0: unknown */
	const char *part; /* outermost cluster, "stage 0, segment 1"; NULL without a pipeline */
	int64_t cut_in[AP_DIMENSION_COUNT]; /* parts of each dimension; 1, of a graph 0: not cut */
	const char *
		was; /* "was batch 8": what it is held against has it otherwise; NULL: not held, or equal */
};
struct ap_pic_edge {
	uint32_t from, to; /* nodes */
	const char *tensor;
	const char *moves; /* "AllGather 2.0 MiB 14.0 us"; "" if not redistributed */
	int64_t bytes; /* of the redistribution; time_s per step */
	double time_s;
	bool sent; /* goes from a Send to its Receive */
	int64_t sent_bytes; /* per rank and micro-batch, forward */
};
struct ap_picture {
	const char *title;
	const char *facts; /* legend lines: time, memory, machine, status; "": none */
	uint32_t nnode, noperator; /* operators come first */
	const struct ap_pic_node *node;
	uint32_t nedge;
	const struct ap_pic_edge *edge; /* edges to an operator are in operand order */
};

/* Each fills *out in the run arena. */
void ap_picture_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_picture *out);
void ap_picture_of_graph(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_picture *out);

/* From a plan file: the same picture as of the plan in memory, without what the file lacks. old: an older
 * plan that it is held against, or NULL; operators are found again by their names. */
void ap_picture_of_saved(struct ap_ctx *ctx, const struct ap_saved *plan, const struct ap_saved *old,
	struct ap_picture *out);

#endif
