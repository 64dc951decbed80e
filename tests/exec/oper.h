/* SPDX-License-Identifier: Apache-2.0 */
/* An operator on all ranks. See exec.h. */
#ifndef AP_TEST_EXEC_OPER_H
#define AP_TEST_EXEC_OPER_H

#include "kernel.h"

/* ---- halo.c ---- */

/* halo.c: rows that part `part` of `parts` needs of its neighbours, by formats 4.2 for convolutions
 * and from the definition for transposed ones; not by ap_window_halo(). */
struct ex_slide {
	int64_t in, out, kernel, stride, before, after; /* of a dimension; kernel dilated */
	bool transposed;
};
bool ex_slide_of(const struct ex_job *j, int window, struct ex_slide *out, int *dim);
void ex_halo(const struct ex_slide *s, int64_t parts, int64_t part, int64_t *before, int64_t *after);

/* ---- oper.c, oper_back.c: an operator on all ranks ------------------------------------------- */

struct ex_oper { /* as the planner says it; the only thing that is known of the cut */
	const char *type;
	const struct ap_attrs *attrs;
	uint16_t nin, nout;
	const uint16_t *slot;
	const struct ap_shape *in_shape, *out_shape; /* whole, of one micro-batch */
	const struct ap_layout *in, *out; /* [nin], [nout] */
	uint32_t ncomm;
	const struct ap_comm *comm; /* in the planner's order */
	const bool *in_grad; /* [nin] a gradient is wanted */
	const bool *out_grad; /* [nout] a gradient comes */
	const bool *in_differentiable; /* [nin] by the row */
	bool in_8_bits; /* its products read copies of operands and of the result's gradient */
	const bool *narrow; /* [ncomm] are copies sent? NULL: nowhere */
};

/* What stands for a number's copy in 8 bits: the same for all that are near. */
static inline uint64_t ex_copy_in_8_bits(uint64_t v)
{
	return v & ~(uint64_t)1023;
}

/* The type in which a collective of the operator sends what is of type t. */
enum ap_dtype ex_sent_as(const struct ex_oper *o, const struct ap_comm *c, enum ap_dtype t);

/* Is a result, of an operator that exchanges others, one that nothing but its own way back reads? It is not in the
 * layout that it is said to have. */
bool ex_stays_inside(const struct ex_oper *o, int result);

struct ex_run; /* an execution between forward and backward */

/* Runs halos, stage 0, reductions of statistics, stage 1, reductions and scatters of results. */
struct ex_run *ex_forward(struct ex_world *w, const struct ex_oper *o, const struct ex_shards *in,
	struct ex_shards *out);
/* Runs the adjoints of what forward ran, where the planner has a collective for it, then those of
 * operands. dout: in the convention of w->executor. din: likewise, zeroes where none is wanted. */
void ex_backward(struct ex_world *w, struct ex_run *r, const struct ex_shards *dout,
	struct ex_shards *din);

/* The GRADIENT collectives of a parameter: what is left is the gradient of the rows that the rank
 * updates, all of its slice without an optimizer shard. Rows are taken out of a gradient that is whole
 * where they are needed: before the ranks that do not share the update are asked, and at the end. */
void ex_exchange_gradient(struct ex_world *w, const struct ex_oper *o, int operand,
	const struct ap_opt_shard *shard, struct ex_shards *grad);
enum ex_when {
	EX_AT_ONCE, /* all collectives, one after the other */
	EX_EACH_TIME, /* those that are said to run after every micro-batch; what is left is dealt */
	EX_AT_THE_END /* the others, of a gradient that was dealt each time */
};
void ex_exchange_gradient_when(struct ex_world *w, const struct ex_oper *o, int operand,
	const struct ap_opt_shard *shard, enum ex_when when, struct ex_shards *grad);
/* Of slices the rows that each rank updates; all without an optimizer shard. */
/* Parts become the slices again that they are of; by c, which sends elements of that type, NULL: only to
 * compare. */
void ex_gather_parts(struct ex_world *w, const struct ap_axes *axes, const struct ap_opt_shard *shard,
	const struct ex_shards *slices, const struct ap_comm *c, enum ap_dtype sent, struct ex_shards *parts);
void ex_keep_own_rows(struct ex_world *w, const struct ap_opt_shard *shard, struct ex_shards *slices);
/* weight := weight - 3 gradient on the rows that are updated here, and the OPTIMIZER collectives. */
void ex_update(struct ex_world *w, const struct ex_oper *o, int operand,
	const struct ap_opt_shard *shard, const struct ex_shards *grad, struct ex_shards *weight);

/* ---- rows_oper.c: one operator, its truth and its tasks ----------------------------------------- */

/* The same operator on one rank, without collectives. */
struct ex_truth {
	struct ex_tensor in[EX_MAX_IN], out[EX_MAX_OUT], din[EX_MAX_IN], dout[EX_MAX_OUT];
	bool out_grad[EX_MAX_OUT]; /* a gradient comes */
};

struct ex_case { /* a bound sample with its task, for one executor */
	const struct ex_sample *sample;
	const struct ex_kernel *kernel;
	struct ap_bound bound;
	struct ap_shape out_shape[EX_MAX_OUT];
	struct ap_task task; /* operands are activations or owned parameters, as drawn */
	struct ap_task_operand in[EX_MAX_IN];
	struct ap_task_result out[EX_MAX_OUT];
	bool in_grad[EX_MAX_IN], in_differentiable[EX_MAX_IN];
	struct ap_step step;
	struct ex_truth truth;
};

enum ex_tasks { /* what operands may be */
	EX_ACTIVATIONS,
	EX_PARAMETERS, /* some are */
	EX_SHARDED, /* some are, with optimizer sharding */
	EX_NTASKS
};

/* Binds a sample and works out its truth, in ctx's arena. False, with trouble, where the row does not
 * bind or says another thing than the definition of which operands have gradients. */
bool ex_case_make(struct ex_world *w, const struct ex_sample *s, struct ex_case *out);
/* The same with its partial sums dealt: first where MindSpore does so by itself, then by an out_strategy;
 * false where there is no further way. */
bool ex_case_deal(struct ex_world *w, struct ex_case *c);
/* Draws which operands are parameters, and how the optimizer is sharded, for w's executor. */
void ex_case_draw(struct ex_world *w, enum ex_tasks tasks, struct ex_case *c);

/* An ex_oper from counts: layouts by dev_matrix and tensor_map as they are written, which must agree
 * with ap_layout_make(); collectives by ap_comms_derive(), and for each activation the sum of its gradient
 * over ap_gradient_partial(), which in a plan is on the way to who made it. */
struct ex_oper ex_oper_of_counts(struct ex_world *w, const struct ex_case *c, const int32_t *count,
	struct ap_placement *p);

/* ---- rows_json.c ---- */

/* The text of a graph file with the sample as its only operator, "op", of inputs "x0", "x1" ..; pin: its
 * in_strategy, NULL none. */
void ex_sample_write(struct ap_ctx *ctx, const struct ex_sample *s, const struct ap_pin *pin,
	struct ap_str *out);

/* The sample as a graph file of one operator: trouble where the loader refuses it, or binds it in
 * another way. */
void ex_sample_load(struct ex_world *w, const struct ex_sample *s, const struct ap_bound *b);

/* ---- rows.c: every row, every legal strategy -------------------------------------------------- */

/* NULL, or what differs: results, statistics, gradients of operands, of parameters after exchange,
 * updated parameters. */
const char *ex_case_run(struct ex_world *w, const struct ex_case *c, const int32_t *count);

struct ex_tally { /* of one operator type */
	const char *type;
	uint32_t samples, strategies, runs; /* strategies: legal ones, of which so many runs were made */
	uint32_t executed; /* strategies that were run, or would be */
	uint64_t collectives;
	uint64_t rows, met; /* of the table with this type, a bit each; those that samples were bound by */
	const char *difference; /* with all that repeats it; NULL: none */
};
struct ex_effort {
	uint32_t samples; /* of a type; more until each of its rows was met, as far as possible */
	uint32_t strategies; /* at most, of a sample on so many devices; more are sampled */
	const int64_t *ndev;
	size_t nndev;
	bool dry; /* nothing is run, only counted */
};
/* Runs all of a type, up to the first difference. */
struct ex_tally ex_rows_run(struct ap_ctx *ctx, const struct ex_kernel *k, uint64_t seed,
	const struct ex_effort *effort);

/* ---- parts.c ---- */

/* Is it a reduction whose result is, by definition, that of each device's own part? */
bool ex_stays_in_parts(const struct ex_oper *o, int64_t ndev);
/* NULL, or what differs from the same reduction of each part by itself; back: of gradients, too. */
const char *ex_run_parts(struct ex_world *w, const struct ex_oper *o, const struct ex_shards *in,
	const struct ex_tensor *dout, bool back);

/* ---- placed.c ---- */

/* Does it lie where MindSpore places an operator of its type and strategy? true where that is not
 * known of the type. */
bool ex_is_placed(const struct ex_oper *o, int64_t ndev);

/* ---- exchange.c ---- */

/* Axes that some tensor of the operator is cut over and operand i is not, from the layouts alone:
 * over these its gradient is partial. */
void ex_lacking(const struct ex_oper *o, int operand, struct ap_axes *out);

#endif
