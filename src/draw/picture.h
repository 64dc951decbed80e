/* SPDX-License-Identifier: Apache-2.0 */
/* What a picture shows, apart from where it comes from: a plan in memory, a plan file or a bare graph.
 * Names are raw; the DOT writer makes them safe. */
#ifndef AP_DRAW_PICTURE_H
#define AP_DRAW_PICTURE_H

#include "plan/plan.h"
#include "planfile/plan_read.h"

enum ap_pic_kind {
	AP_PIC_OPERATOR,
	AP_PIC_INPUT, /* of the graph; a node of its own for each use */
	AP_PIC_SHARED /* parameter or constant that several operators read; likewise */
};
struct ap_pic_node {
	const char *name, *type; /* of an input or shared tensor: the tensor, "Input" */
	const char *cell; /* cluster, "a.b.c" nested; "" none */
	const char *cut; /* "8x1, 1x4 to 8x4": operands and first result, ", partial over 2" where
	                    the rest of the parts is summed up; "" unknown */
	const char *slice; /* of the first result on one rank ("16x2048x640"); "" unknown */
	const char *comms; /* collectives, a line each: "AllReduce of 8, 2.00 MiB"; "" none */
	const char *key; /* operators of equal keys differ in names and wiring only */
	enum ap_pic_kind kind;
	enum ap_pic_class {
		AP_PIC_NONE, /* unknown */
		AP_PIC_WHOLE, /* nothing is cut */
		AP_PIC_BATCH, /* what carries the batch is cut */
		AP_PIC_MODEL, /* other dimensions are cut */
		AP_PIC_BOTH
	} cls;
	uint32_t ncomm;
	double time_s; /* per step, 0 unknown */
	const char *part; /* outermost cluster: "stage 0, segment 1"; NULL without a pipeline */
};
struct ap_pic_edge {
	uint32_t from, to; /* nodes */
	const char *tensor;
	const char *moves; /* "AllGather 2.0 MiB 14.0 us", "" when nothing is redistributed */
	int64_t bytes; /* of the redistribution, and its time per step */
	double time_s;
	bool sent; /* from a Send to its Receive */
	int64_t sent_bytes; /* by one rank, forward, one micro-batch */
};
struct ap_picture {
	const char *title;
	const char *facts; /* lines for the legend: time, memory, machine, status; "" none */
	uint32_t nnode, noperator; /* the first nodes are the operators */
	const struct ap_pic_node *node;
	uint32_t nedge;
	const struct ap_pic_edge *edge; /* those to one operator in the order of its operands */
};

/* Into the run arena. */
void ap_picture_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_picture *out);
void ap_picture_of_graph(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_picture *out);

/* Of a plan file: the picture of the plan that it was written from. What the file does not tell, it lacks. */
void ap_picture_of_saved(struct ap_ctx *ctx, const struct ap_saved *plan, struct ap_picture *out);

#endif
