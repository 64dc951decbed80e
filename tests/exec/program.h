/* SPDX-License-Identifier: Apache-2.0 */
/* A whole plan on all ranks. See exec.h. */
#ifndef AP_TEST_EXEC_PROGRAM_H
#define AP_TEST_EXEC_PROGRAM_H

#include "oper.h"
#include "plan/plan.h"
#include "shard/pieces.h"

/* ---- program*.c: a whole plan ------------------------------------------------------------------ */

struct ex_program_move {
	ap_id node;
	uint32_t operand;
	struct ap_layout a, b;
	int nstep, nback;
	const struct ap_reshard_step *step;
	const struct ap_reshard_step *back; /* of the gradient where it does not come by the adjoints */
	uint32_t shares; /* the redistribution whose copy is read, and that the gradient goes with; AP_NONE */
	bool sent; /* to a stage with another number of devices: pieces instead of steps, and back */
	uint32_t npiece, nback_piece;
	const struct ap_piece *piece, *back_piece;
	int64_t bytes; /* that are charged for, forward, one micro-batch */
	int element_bytes; /* of what is sent forward */
};

struct ex_program_param {
	ap_id tensor;
	struct ap_layout layout;
	struct ap_opt_shard shard; /* shards, part, by_rows, weight_step, weight_size, group */
	struct ap_axes gradient; /* ranks that the gradient is said to be exchanged between */
	uint32_t nsum;
	const struct ap_use *sum; /* [nsum] uses whose gradient is added to the owner's, before its exchange */
};

struct ex_program {
	const struct ap_graph *graph;
	const struct ap_task *task; /* [graph->nnode] */
	struct ap_step step;
	int64_t ndev;
	struct ex_oper *oper; /* [graph->nnode] */
	uint32_t nmove;
	struct ex_program_move *move; /* ascending (node, operand) */
	uint32_t nparam;
	struct ex_program_param *param; /* ascending tensor */
};

/* The number of devices of a stage, and its first rank among those of all stages. */
static inline int64_t ex_devices(const struct ex_program *p, int32_t stage)
{
	return p->graph->devices && stage > 0 ? p->graph->devices[stage].n
		: p->graph->devices ? p->graph->devices[0].n : p->ndev;
}

static inline int64_t ex_first_rank(const struct ex_program *p, int32_t stage)
{
	int64_t first = 0;

	for (int32_t s = 0; s < stage; s++)
		first += ex_devices(p, s);
	return first;
}

/* What graph and step alone say: types, extents of a micro-batch, which gradients come and go. The
 * graph leaves no operand out but the last ones. */
void ex_program_begin(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	int64_t ndev, struct ex_program *out);

/* From the plan in memory. */
void ex_program_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ex_program *out);

/* From the plan file, by a reader of its own; where the file says one thing twice, both must agree. NULL,
 * or what cannot be. ap_saved_of_plan() must accept the file, too. */
const char *ex_program_of_file(struct ap_ctx *ctx, const char *text, size_t len,
	const struct ap_graph *g, const struct ap_step *step, struct ex_program *out);

/* From a strategy checkpoint in either form, which gives the strategies of operators with parameters and
 * the layouts of parameters and optimizer states; completed by the route (NULL: by cost). NULL, or what
 * cannot be. */
const char *ex_program_of_ckpt(struct ap_ctx *ctx, const char *bytes, size_t len, bool json,
	const struct ap_graph *g, const struct ap_machine *m, const struct ap_step *step,
	const struct ap_route *route, struct ex_program *out);

/* The shard that the checkpoint's two numbers mean for a parameter of this layout (formats 1.5); false
 * where they mean none. part: elements of a part that is no rows; 0. */
bool ex_shard_of(const struct ap_shape *shape, const struct ap_layout *l, int64_t ndev, int64_t step,
	int64_t size, int64_t part, struct ap_opt_shard *out);

const struct ex_program_param *ex_program_param_of(const struct ex_program *p, ap_id tensor);
const struct ex_program_move *ex_program_move_to(const struct ex_program *p, ap_id node,
	uint32_t operand);

/* The same where values go through it, not only the gradient; the one that it shares. */
const struct ex_program_move *ex_program_copy_to(const struct ex_program *p, ap_id node,
	uint32_t operand);

/* NULL, or what differs between two programs that should say the same. */
const char *ex_program_differs(struct ap_ctx *ctx, const struct ex_program *a,
	const struct ex_program *b);

/* schedule.c: the file's schedule: every event after what it needs, nothing missing, nothing twice, one
 * thing at a time. NULL, or what is wrong. */
const char *ex_schedule_wrong(struct ap_ctx *ctx, const char *text, size_t len,
	const struct ex_program *p);

/* ---- truth.c, graph_run.c, graph_back.c -------------------------------------------------------- */

struct ex_values { /* by tensor id, of one micro-batch; v NULL where there is none */
	struct ex_tensor *value, *grad;
	struct ex_tensor *start; /* gradients of outputs, where they begin */
};

/* A step of a graph on one rank, without collectives. */
struct ex_graph_truth {
	const struct ap_graph *graph;
	int64_t nbatch;
	struct ex_values *batch; /* [nbatch] micro-batches */
	struct ex_tensor *param_grad, *new_param; /* by tensor id; v NULL: not trained */
};

/* The first operator type of the graph that has no kernel yet; NULL: all have. */
const char *ex_graph_lacks(const struct ap_graph *g);

/* Values of inputs, parameters and constants by name and seed, integers within the limits that the
 * kernels of their users state; then the whole graph, one micro-batch after the other. Gradients start
 * at the loss, or at all outputs with numbers that are drawn. False, with trouble, where a kernel
 * cannot be carried out. */
bool ex_graph_truth_make(struct ex_world *w, const struct ap_graph *g, const struct ap_step *step,
	uint64_t seed, struct ex_graph_truth *out);

/* The same with a step in several micro-batches, whose inputs are the parts of those of `whole`, made with
 * one. */
bool ex_graph_truth_of_parts(struct ex_world *w, const struct ap_graph *g, const struct ap_step *step,
	uint64_t seed, const struct ex_graph_truth *whole, struct ex_graph_truth *out);

/* Part b of so many of a whole tensor of the batch, as the graph says where the batch is in it. */
struct ex_tensor ex_micro_part(struct ap_arena *a, const struct ap_tensor *t, const struct ex_tensor *whole,
	int64_t parts, int64_t b);

/* Runs a program and compares: every result and its gradient where it arises (EX_EVERY or EX_SUM),
 * gradients of parameters after the exchange, updated parameters. NULL, or what differs first. */
const char *ex_program_run(struct ex_world *w, const struct ex_program *p,
	const struct ex_graph_truth *truth);

/* counts.c: random legal counts, [nnode][nfactor], that keep to the graph's pins and that users of one
 * parameter and operators of one checkpoint key agree on. NULL where none were found. */
struct ex_choice; /* the candidates of all operators */
struct ex_choice *ex_choice_make(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step);
const int32_t *const *ex_choice_draw(struct ap_ctx *ctx, const struct ex_choice *c, uint64_t *rng);
double ex_choice_picks(const struct ex_choice *c); /* how many picks there are */

/* graphs.c: texts of the sample graphs, autopar-graph/1 with ' for ". */
struct ex_graph_sample {
	const char *name, *text;
	bool pinned; /* operators have strategies */
	const char *must; /* step of redistributions that the pins lead to; NULL: none */
	bool random; /* it may be one that its own numbers cannot go through (an index out of range), or
	              * two operators share a checkpoint key that cannot hold both: no difference then */
};
const struct ex_graph_sample *ex_graph_at(size_t i); /* NULL past the end */
size_t ex_graph_count(void);
const struct ex_graph_sample *ex_graph_batch_at(size_t i); /* graphs_batch.c: the last of them */

#endif
