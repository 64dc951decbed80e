/* SPDX-License-Identifier: Apache-2.0 */
/* An operator as the cost model sees it: its bound rule, and the roles of its tensors in this
 * graph. Operators with equal tasks have equal candidates and costs, and share a class. */
#ifndef AP_COST_TASK_H
#define AP_COST_TASK_H

#include "graph/graph.h"
#include "shard/step.h"

/* What is neither read nor written where two operators are one kernel (cost/chain.h). */
enum ap_fused {
	AP_FUSED_NOT,
	AP_FUSED_READ, /* not read: it is written, since a backward pass needs it */
	AP_FUSED_WHOLE, /* nor written */
	AP_FUSED_ORDER /* not put in order: the reader's kernel reads it as it was before */
};

struct ap_task_operand {
	enum ap_tensor_kind kind;
	bool grad; /* has a gradient: causes backward work and communication */
	bool owner; /* a parameter or constant charged to this operator */
	bool trainable;
	bool shardable; /* parameter_optimizer flag and size allow optimizer sharding */
	bool stays; /* a weight that is gathered again for each micro-batch: until its backward pass */
	bool regather; /* a dealt parameter: gathered again for each use; an activation: held in
	                  parts, which are gathered here before its reader runs again */
	bool returns; /* a weight that another stage sent for the step: its gradient is added up over
	                 micro-batches, then exchanged and sent back, once */
	bool alone; /* its gradient is not exchanged: each rank has its own parameter */
	bool unfused; /* its exchange is numbered 0, which on Ascend processors means in no bucket */
	int64_t gradients_bytes; /* on the wire, of all parameters of a stage, in the mean, whose gradients
	                            may go in one bucket with its own; 0: none may */
	int64_t weights_bytes; /* the same of the weights that the optimizer gathers */
	bool updated; /* by the rank with the largest update if dealt whole; else true */
	bool kept; /* needed in the backward pass, in this operator's layout */
	bool again; /* if kept: brought into that layout again, not held */
	bool beside; /* read by products that run beside what gathers it, part by part */
	uint8_t fused; /* enum ap_fused: what lies between it and its producer's kernel */
	bool cast; /* read in another type than stored: the operator keeps its own copy */
	enum ap_dtype stored; /* if cast: the stored type */
	uint16_t float8_readers; /* of an activation that is copied into 8 bits: number of products that read
	                            this copy; else 0 */
	bool float8_only; /* an activation that products in 8 bits alone read, here or behind views, and
	                     that is sent so */
	bool float8_copy; /* which is kept beside the activation itself, and charged to this operator */
	uint16_t twin; /* the first operand that reads the same tensor, usually itself */
	uint8_t batch; /* dimensions that carry the batch */
	bool uneven; /* an activation of experts with uneven numbers of tokens */
	uint16_t share; /* of a lent result: number of operands that may read it in place; else 0 */
	struct ap_arrival arrival; /* of a graph input */
	/* Operands at the same place of operators of one kind that read one tensor in one pass, or
	 * what equal views make of it, and keep it, make it again and give it a gradient alike, share
	 * the copy that is made for them where they want the same layout (generic). Not in the
	 * signature. */
	uint16_t sharers; /* number of such operands, with this one; 0: there is no other */
	ap_id sharer; /* the first of their nodes; AP_NONE */
	bool apart; /* they do not all read one tensor, but what equal views make of one: the copy may be
	               there before what this operand reads, which is not waited for */
};
struct ap_task_result {
	bool kept; /* held, and charged to this operator, because a backward pass (its own or a
	              consumer's) or a recomputed operator needs it */
	bool lent; /* kept only for consumers' backward passes: held if one of them reads it in
	              place, not in a layout of its own; there is room for it while it is computed,
	              since its gradient needs room later */
	bool sliced; /* held in parts by devices with the same slice: only recomputed operators read
	                it */
	bool again; /* needed by a backward pass, and brought back by recomputing */
	bool needed; /* again, or read only by another recomputed operator */
	bool fused; /* not written: its reader is in the same kernel, and nothing else needs it */
	bool float8; /* kept only for products in 8 bits, as their copy */
	bool twice; /* left to others, and computed once more by an operator that is repeated: there a
	               second time until that has run back */
	bool grad;
	bool uneven; /* as of operands */
	uint8_t batch;
};

struct ap_task {
	const struct ap_bound *bound;
	bool backward;
	bool once; /* runs once per step instead of per micro-batch */
	bool float8; /* a product in 8 bits, see cost/float8.h */
	bool joins; /* computed by the kernel that another operator starts */
	double part; /* of a product that the software makes of several, its share; 0: it is one by itself */
	bool strided; /* not computed: a neighbour's kernel reads or writes dimensions in that order */
	int32_t stage, peer; /* of a Send or Receive; otherwise 0 and -1, so that equal operators of
	                        different stages share a class */
	int32_t block; /* where stages have unequal numbers of devices: the first one with as many as its own,
	                  which lie alike (ap_machine_at()); else 0 */
	bool across; /* a Send or Receive between stages of different numbers of devices, */
	bool received; /* a Receive */
	int64_t in_flight; /* micro-batches whose kept activations a search charges, >= 0 */
	double weight_share; /* share of its backward kernel that a pass for weights runs: of a
	                        product, the part for operands that are parameters; of others, 1 if
	                        all operands with a gradient are, else 0; 0 without such a pass or
	                        if an operand is made again for the backward pass. Not in the
	                        signature */
	bool waits; /* weight_share > 0: gradients of its results wait for the pass for weights */
	int64_t late; /* number of waiting micro-batches that a search charges, >= 0 */
	bool recomputed; /* runs again before the backward pass; its results are not kept */
	bool repeated; /* recomputed whether a backward pass needs its results or not */
	bool keep_comm; /* except results of its forward communication, if any */
	uint32_t recompute_sets; /* sets recomputed one at a time in its stage: additive memory
	                            charges each with its part of one; 0 if in none */
	ap_id like; /* of a view of an activation: the first one that makes the same of the same, itself or
	               another; not in the signature */
	uint32_t recompute_set; /* id of its set, not part of the signature; AP_NONE unless it is
	                           recomputed or redistributes an operand again */
	bool cross_batch; /* a reduction whose partial results may stay unsummed */
	double imbalance; /* of experts, of factors AP_FACTOR_UNEVEN; 0 if there is none */
	bool measured;
	double measured_forward_s, measured_backward_s; /* of the whole operator on one device */
	const struct ap_task_operand *in; /* [bound->nin] */
	const struct ap_task_result *out; /* [bound->nout] */
};

/* The type in which operand i is stored and its gradient is summed. */
static inline enum ap_dtype ap_task_stored(const struct ap_task *t, int i)
{
	return t->in[i].cast ? t->in[i].stored : t->bound->in[i].dtype;
}

/* Tasks of all nodes of a graph, [g->nnode], in the run arena. A tensor is kept if an operator's
 * backward pass needs it (save column of the row; for an operand of a product, only if the other
 * one has a gradient), or if it is needed to recompute what is not kept. Views (Reshape) keep
 * nothing themselves: their operand is kept instead. O(operands). */
void ap_tasks_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const struct ap_task **out);

/* May the collectives of a parameter go in buckets: do all its users compute in one type? */
bool ap_task_fuses(const struct ap_graph *g, const struct ap_tensor *t);

/* The fusion number that a parameter or its owner is given; -1: none. */
int32_t ap_task_fusion(const struct ap_graph *g, const struct ap_tensor *t);

/* Operators with equal ties must have equal strategies: they share a checkpoint key, and their
 * vectors have equal lengths. (Otherwise no strategy could be equal; a checkpoint cannot tell such
 * a pair apart, see ap_ckpt_check_names().) NULL if the operator has no key. In scratch. */
const char *ap_task_tie(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node);

/* Bytes that are equal exactly for tasks of equal content, for interning. */
const void *ap_task_signature(struct ap_ctx *ctx, const struct ap_task *t, size_t *len);

/* The class of each of n tasks, numbered by first occurrence: tasks with equal signatures. In the
 * run arena. */
const uint32_t *ap_task_classes(struct ap_ctx *ctx, const struct ap_task *task, uint32_t n);

/* Why parameters of an optimizer (NULL: none) cannot be dealt whole to ndev devices, and what is
 * needed; NULL if they can. */
const char *ap_dealt_refuses(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_optimizer *optimizer);

/* The parameters [ntensor] of the first device with most bytes to update, whose memory and time
 * count. NULL if parameters are not dealt whole. In scratch. */
const bool *ap_dealt_params(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step);

#endif
