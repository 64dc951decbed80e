/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator as the cost model sees it: its bound rule and what its tensors are in this graph.
 * Operators with equal tasks have equal candidates and equal costs: they share one class.
 */
#ifndef AP_COST_TASK_H
#define AP_COST_TASK_H

#include "graph/graph.h"
#include "shard/step.h"

struct ap_task_operand {
	enum ap_tensor_kind kind;
	bool grad; /* a gradient flows to it: it costs backward work and communication */
	bool owner; /* parameter or constant that is charged here */
	bool trainable;
	bool shardable; /* parameter_optimizer flag and size allow optimizer sharding */
	bool regather; /* where a parameter is dealt, it is gathered anew for each use; of an activation: it
	                  is held in parts, which are gathered here, before what reads it runs again */
	bool alone; /* its gradient is not exchanged: each rank has a parameter of its own */
	bool updated; /* on the rank that updates most, where whole parameters are dealt; else always */
	bool kept; /* must be there in the backward pass, in this operator's layout */
	bool again; /* and is brought into it anew for that, not held */
	bool cast; /* read in another type than it is stored in: what is kept is the operator's own copy */
	enum ap_dtype stored; /* where it is cast: the type in which it is stored */
	uint16_t twin; /* the first operand that reads the same tensor: itself but for one read twice */
	uint8_t batch; /* dimensions that carry the batch */
	uint16_t share; /* of a result that is lent: operands that may read it where it lies; else 0 */
	struct ap_arrival arrival; /* of an input */
};
struct ap_task_result {
	bool kept; /* held, and charged to this operator: its own backward pass or a consumer's needs it,
	              or an operator that is recomputed */
	bool lent; /* kept for consumers' backward passes only: held where one of them reads it as it lies,
	              not in a layout of its own; while it is made there is room for it, since its gradient
	              has to have some later */
	bool sliced; /* held in parts by the devices with the same slice: only what is recomputed reads it */
	bool again; /* a backward pass needs it, and recomputing brings it back */
	bool needed; /* that, or only another recomputed operator reads it */
	bool grad;
	uint8_t batch;
};

struct ap_task {
	const struct ap_bound *bound;
	bool backward;
	bool once; /* runs once a step, not once a micro-batch */
	int32_t stage, peer; /* of a Send or Receive; both 0 and -1 for all others, so that equal operators
	                        of different stages are one class */
	int64_t in_flight; /* micro-batches whose kept activations a search charges, 0 or more */
	double weight_share; /* of its backward kernel, which a pass for weights runs: of a product the part
	                        of its operands with a gradient that are parameters, of others all where all
	                        of them are, else nothing; 0 where weights have no pass of their own, or an
	                        operand is made again for the backward pass. Not part of the signature */
	bool waits; /* weight_share > 0: gradients of its results wait for that pass */
	int64_t late; /* micro-batches for which they do, that a search charges; 0 or more */
	bool recomputed; /* runs again before the backward pass; what it makes is not kept */
	bool keep_comm; /* but what its forward communication gives is, where it has some */
	uint32_t recompute_sets; /* sets that are recomputed one at a time in its stage: the additive memory
	                            charges each with its part of one; 0 unless it is in one */
	uint32_t recompute_set; /* which one: not part of the signature; AP_NONE unless it is recomputed or
	                           brings an operand into its layout again */
	bool cross_batch; /* a reduction whose parts may stay as they are */
	bool measured;
	double measured_forward_s, measured_backward_s; /* of the whole operator on one device */
	const struct ap_task_operand *in; /* [bound->nin] */
	const struct ap_task_result *out; /* [bound->nout] */
};

/* The type in which operand i lies in memory, and in which its gradient is summed. */
static inline enum ap_dtype ap_task_stored(const struct ap_task *t, int i)
{
	return t->in[i].cast ? t->in[i].stored : t->bound->in[i].dtype;
}

/*
 * Tasks of all nodes of a graph, [g->nnode], in the run arena. A tensor is kept when an operator's
 * backward pass needs it (row's save column; an operand of a product only for the other operand's
 * gradient), or when it is needed to make again what recomputed operators do not keep. Views (Reshape)
 * keep nothing themselves: what is kept of their result is kept of their operand. O(operands).
 */
void ap_tasks_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const struct ap_task **out);

/*
 * Operators with equal ties must have equal strategies: they share a checkpoint key and take vectors
 * of the same lengths. (With other lengths no strategy could be equal; such a pair cannot be told
 * apart in a checkpoint, see ap_ckpt_check_names().) NULL when the operator has no key. In scratch.
 */
const char *ap_task_tie(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node);

/* Bytes that are equal exactly for tasks of equal content; for interning. */
const void *ap_task_signature(struct ap_ctx *ctx, const struct ap_task *t, size_t *len);

/* The class of each of n tasks, numbered by first occurrence; equal classes have equal signatures. In
 * the run arena. */
const uint32_t *ap_task_classes(struct ap_ctx *ctx, const struct ap_task *task, uint32_t n);

/* Why an optimizer (NULL: none) cannot be dealt so to ndev devices, with what is needed; NULL: it
 * can. */
const char *ap_dealt_refuses(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_optimizer *optimizer);

/* The parameters [ntensor] of the device with most bytes to update, the first of them: what it holds and
 * how long it takes is what counts. NULL where nothing is dealt so. In scratch. */
const bool *ap_dealt_params(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step);

#endif
