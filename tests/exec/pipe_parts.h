/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline while it runs. Shared by pipe_*.c. */
#ifndef AP_TEST_EXEC_PIPE_PARTS_H
#define AP_TEST_EXEC_PIPE_PARTS_H

#include "graph_parts.h"
#include "pipe.h"

#include "base/vec.h"

enum { EX_ONCE = -1 }; /* instead of a micro-batch: once a step */

struct ex_held { /* of one node and micro-batch */
	struct ex_shards *in; /* [nin] copies of operands, as the operator reads them */
	int64_t *again; /* [nin] bytes of those that were made again */
	struct ex_run *run; /* that was computed again */
	bool twice; /* its results have been computed a second time */
	struct ex_shards *dout; /* [nout] that the pass for weights waits for */
};

struct ex_letter { /* a slice on its way to a rank, numbered through all stages */
	int64_t to, micro;
	ap_id tensor;
	bool back, taken;
	double at_s;
	struct ex_tensor slice;
};

struct ex_pipe_run {
	struct ex_world *w;
	const struct ex_pipeline *l;
	const struct ap_graph *g;
	const struct ap_task *task;
	struct ex_graph_run *batch; /* [nbatch]; what is once a step is in the first */
	struct ex_held **held; /* [nbatch][nnode] */
	uint8_t **done; /* [nbatch][part] passes, a bit each */
	bool **here; /* [nbatch][ntensor] made again */
	AP_VEC(struct ex_letter) mail;
	int64_t *flying; /* [part] */
	int64_t **own; /* [nbatch][part] bytes of activations that are held */
	double clock_s, end_s; /* of the slot; what is sent after its start has not come yet */
	struct ex_shards **total; /* [nnode][nin] gradients of parameters, of all micro-batches; and of
	                             weights that other stages sent, where these go back once */
	const struct ex_oper *bucketed; /* [nnode] without the exchanges that no bucket has */
	struct ex_peaks *now, *peak; /* [nstage] */
	ap_id *last; /* [ntensor] the node whose backward pass is the last to read it */
};

static inline int32_t ex_part(const struct ex_pipe_run *p, int32_t stage, int32_t segment)
{
	return stage * p->l->nsegment + segment;
}

static inline bool ex_is_in(const struct ap_node *n, int32_t stage, int32_t segment)
{
	return !n->once && n->stage == stage && n->segment == segment;
}

static inline bool ex_is_view(const struct ap_node *n)
{
	return n->bound.row->unit == AP_OP_VIEW;
}

/* Is it a weight that came from another stage? */
static inline bool ex_came_once(const struct ex_pipe_run *p, ap_id tensor)
{
	ap_id from = p->g->tensor[tensor].producer;

	return from != AP_NONE && p->g->node[from].once;
}

void ex_note_peaks(struct ex_pipe_run *p, int32_t stage);
/* On the rank that has most. */
int64_t ex_most_bytes(const struct ex_shards *s);

/* ---- pipe_mail.c ---- */

/* What the forward (or backward) Send of an operator takes from its ranks to those of the other stage. */
void ex_post(struct ex_pipe_run *p, ap_id send, bool back, int64_t micro, const struct ex_shards *s);
/* False, with trouble, where a rank waits in vain. */
bool ex_take(struct ex_pipe_run *p, ap_id tensor, bool back, int64_t micro, int32_t stage,
	struct ex_shards *out);
/* Has it come to all ranks of the stage? */
bool ex_has_come(const struct ex_pipe_run *p, ap_id tensor, bool back, int64_t micro, int32_t stage);
/* Letters that nobody took are trouble. */
void ex_check_mail(struct ex_pipe_run *p);

/* ---- pipe_keep.c ---- */

/* An operand in the forward pass; of a weight that is dealt, gathered by the collective of the phase. */
struct ex_shards ex_pipe_operand(struct ex_pipe_run *p, int64_t b, ap_id node, int i, enum ap_phase phase);
/* After its forward pass: keeps what the plan says of a node, and forgets the rest. */
void ex_keep(struct ex_pipe_run *p, int64_t b, ap_id node, const struct ex_shards *in,
	const struct ex_run *run);
/* All of a part that is not kept, when its forward pass is over. */
void ex_forget_rest(struct ex_pipe_run *p, int64_t b, int32_t stage, int32_t segment);
/* What a tensor's producer made: there, shown by a view, or made again. False where it is gone. */
bool ex_recall_value(struct ex_pipe_run *p, int64_t b, ap_id tensor);
/* Numbers in place of an operand that is not there; integers are 0. */
struct ex_shards ex_noise(struct ex_pipe_run *p, ap_id node, int i);
/* An operand in a backward pass: kept, made again, or noise. */
struct ex_shards ex_recall(struct ex_pipe_run *p, int64_t b, ap_id node, int i);
/* After a node's backward pass: what nothing reads any more of all that was made again. */
void ex_drop_again(struct ex_pipe_run *p, int64_t b, ap_id node);
/* After the last pass of a part. */
void ex_forget(struct ex_pipe_run *p, int64_t b, int32_t stage, int32_t segment);
void ex_find_last_readers(struct ex_pipe_run *p);

/* ---- pipe_again.c ---- */

/* Computes again all of the set that a node belongs to, if that was not done yet. */
void ex_compute_again(struct ex_pipe_run *p, int64_t b, ap_id node);
/* Is operand i made again for the node's backward pass? */
bool ex_comes_again(const struct ex_pipe_run *p, ap_id node, int i);
/* Is what the node made kept, because its collective gave it? */
bool ex_keeps_results(const struct ex_pipe_run *p, ap_id node);

/* ---- pipe_pass.c ---- */

void ex_run_slot(struct ex_pipe_run *p, const struct ex_slot *s);
void ex_send_weights(struct ex_pipe_run *p);
void ex_return_weights(struct ex_pipe_run *p);

/* ---- pipe_exchange.c ---- */

/* After every micro-batch, where gradients are kept in parts. */
void ex_deal_gradients(struct ex_pipe_run *p, int64_t b, int32_t stage, int32_t segment);
void ex_deal_returned(struct ex_pipe_run *p, ap_id node);
/* What is held of weights, and of their gradients after all micro-batches. */
void ex_note_parameters(struct ex_pipe_run *p);
/* Finds bucketed. */
void ex_take_buckets(struct ex_pipe_run *p);
/* Those that the plan's buckets have are exchanged, weights are updated. */
void ex_finish(struct ex_pipe_run *p);

#endif
