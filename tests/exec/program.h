/* SPDX-License-Identifier: Apache-2.0 */
/* A whole plan on all ranks. See exec.h. */
#ifndef AP_TEST_EXEC_PROGRAM_H
#define AP_TEST_EXEC_PROGRAM_H

#include "oper.h"

/* ---- program*.c: a whole plan ------------------------------------------------------------------ */

struct ex_program_move {
	ap_id node;
	uint32_t operand;
	struct ap_layout a, b;
	int nstep;
	const struct ap_reshard_step *step;
};

struct ex_program_param {
	ap_id tensor;
	struct ap_layout layout;
	struct ap_opt_shard shard; /* shards, weight_step, weight_size, groups */
};

struct ex_program {
	const struct ap_graph *graph;
	struct ap_step step;
	int64_t ndev;
	struct ex_oper *oper; /* [graph->nnode] */
	uint32_t nmove;
	const struct ex_program_move *move; /* ascending (node, operand) */
	uint32_t nparam;
	const struct ex_program_param *param;
};

/* From the plan in memory; from the plan file (tests' own reader on base/json.h, beside
 * ap_saved_of_plan(), which must accept it); from a checkpoint in either form, which gives the
 * strategies of operators with parameters and the layouts of parameters, completed by evaluation. */
void ex_program_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ex_program *out);
enum ap_status ex_program_of_file(struct ap_ctx *ctx, const char *text, size_t len,
	const struct ap_graph *g, const struct ap_step *step, struct ex_program *out);
enum ap_status ex_program_of_ckpt(struct ap_ctx *ctx, const char *bytes, size_t len, bool json,
	const struct ap_graph *g, const struct ap_machine *m, const struct ap_step *step,
	struct ex_program *out);
/* The file's schedule: every event after what it needs, nothing missing, nothing twice. NULL, or what
 * is wrong. */
const char *ex_schedule_wrong(struct ap_ctx *ctx, const char *text, size_t len,
	const struct ex_program *p);
/* NULL, or what differs between two programs that should say the same. */
const char *ex_program_differs(struct ap_ctx *ctx, const struct ex_program *a,
	const struct ex_program *b);

/* ---- graph_run.c, graph_back.c, truth.c -------------------------------------------------------- */

struct ex_values { /* by tensor id, of one micro-batch; v NULL where there is none */
	struct ex_tensor *value, *grad;
};
/* Values of inputs, parameters and constants by name and seed; integer tensors within the limits
 * that their consumers' kernels state; then the whole graph, one micro-batch after the other. */
void ex_graph_truth(struct ex_world *w, const struct ap_graph *g, const struct ap_step *step,
	struct ex_values *batch, struct ex_tensor *param_grad, struct ex_tensor *new_param);
/* Runs a program and compares: outputs, every activation's gradient (EX_EVERY or EX_SUM), gradients
 * of parameters after the exchange, updated parameters. NULL, or what differs first. */
const char *ex_program_run(struct ex_world *w, const struct ex_program *p);

/* graphs.c: texts of the sample graphs, autopar-graph/1 with ' for ". */
struct ex_graph_sample {
	const char *name, *text;
};
extern const struct ex_graph_sample ex_graphs[];
extern const size_t ex_ngraph;

#endif
