/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of plans and graphs: what they show, and their DOT text. */
#ifndef AP_DRAW_DRAW_H
#define AP_DRAW_DRAW_H

#include "plan/plan.h"

/*
 * What a picture shows, apart from where it comes from: a plan in memory, a plan file or a bare
 * graph. Names are raw; the DOT writer makes them safe.
 */
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
void ap_picture_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_picture *out);
void ap_picture_of_graph(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_picture *out);
enum ap_status ap_picture_of_file(struct ap_ctx *ctx, const struct ap_json *plan_doc,
	struct ap_picture *out);

/* FOLD draws repeated layers once and at most AP_PIC_MOST_BOXES boxes, FULL every operator. */
enum ap_pic_detail { AP_PIC_FOLD, AP_PIC_FULL };
enum { AP_PIC_MOST_BOXES = 80 };

/*
 * DOT through cgraph: our own ids (n17), names only in labels (escaped, always quoted), clusters by
 * cell and repetition, colour by what is cut, redistributions as edge labels, legend. The text is
 * made in memory (run arena). Pipeline stages are the outermost clusters, dashed edges lead from one to
 * another. Not to be called by two threads at once: cgraph has global state.
 * *nbox: boxes drawn.
 *
 * In a label a name stands as it is, but for control and bidi characters, which are shown as \x1b
 * or \u202e; of a full scope name of MindSpore ("Default/..") only the last part is shown, the
 * tooltip holds all of it.
 */
enum ap_status ap_emit_dot(struct ap_ctx *ctx, const struct ap_picture *pic,
	enum ap_pic_detail detail, const char **text, size_t *len, uint32_t *nbox);

/* The same in a child process, on a copy of all there is: AP_LIMIT, without a message, where memory runs out
 * there or here, AP_STOPPED where ctx is told to stop meanwhile; nothing is left behind. */
enum ap_status ap_emit_dot_apart(struct ap_ctx *ctx, const struct ap_picture *pic,
	enum ap_pic_detail detail, const char **text, size_t *len, uint32_t *nbox);

/* Renders DOT text with Graphviz' dot (searched on PATH, no shell) to "svg", "png" or "pdf"; AP_IO
 * when it is absent or fails, AP_STOPPED when the run is stopped meanwhile, AP_LIMIT, without a message,
 * when memory runs out. Bytes into the run
 * arena. */
enum ap_status ap_emit_rendered(struct ap_ctx *ctx, const char *dot, size_t len, const char *format,
	const char **bytes, size_t *nbytes);

#endif
