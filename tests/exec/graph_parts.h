/* SPDX-License-Identifier: Apache-2.0 */
/* A program while it runs. Shared by graph_*.c. */
#ifndef AP_TEST_EXEC_GRAPH_PARTS_H
#define AP_TEST_EXEC_GRAPH_PARTS_H

#include "program.h"

struct ex_graph_run {
	struct ex_world *w;
	const struct ex_program *p;
	const struct ex_graph_truth *truth;
	int64_t batch; /* micro-batch */
	struct ex_run **run; /* [nnode] */
	struct ex_shards *value, *grad; /* by tensor; as their producer has them; of NULL: none */
	struct ex_shards **use_grad; /* [nnode][nin] of parameters, of all micro-batches */
	const char *why; /* the first difference; NULL: none */
	struct ex_shards *waiting; /* [nmove] gradients of those that share it, for its way back; NULL: none */
	bool *mixed; /* [ntensor] where results of equal views share a way back: their gradients go with those
	                of another one, and only together are what one rank has; NULL: nowhere */
	bool dealt; /* gradients that are kept in parts were dealt after every micro-batch */
};

/* Holds shards against the truth; the first difference is kept. what: "result", "gradient". */
void ex_graph_compare(struct ex_graph_run *r, const char *what, ap_id tensor, const struct ex_shards *got,
	const struct ex_tensor *want, const struct ap_layout *l, enum ex_holds holds);

/* Anything found yet? */
bool ex_graph_failed(struct ex_graph_run *r);

/* Moves are of operands whose producer has another layout: of no parameter, and of none twice. */
void ex_graph_check_moves(struct ex_graph_run *r);

/* An operand as the operator wants it, of the tensor that is there. */
struct ex_shards ex_graph_operand(struct ex_graph_run *r, ap_id node, int i);

/* How gradients lie on the ranks in the executor's convention. */
enum ex_holds ex_graph_holds(const struct ex_graph_run *r);
/* Adds to the gradient of an output, of the loss, or, without one, numbers that were drawn. */
void ex_graph_start_gradient(struct ex_graph_run *r, ap_id out);
/* Against the redistribution: the adjoints of its steps, or another one the other way, with the gradients of
 * those that share it. False where it waits, with theirs, for who made the copy. */
bool ex_graph_send_back(struct ex_graph_run *r, ap_id node, int i, struct ex_shards *g);
/* Holds the gradient of result i of a node against the truth, unless it is mixed. */
void ex_graph_compare_gradient(struct ex_graph_run *r, ap_id node, int i, const struct ex_shards *got);
/* Adds gradients of uses to the owner's, which exchanges them. */
void ex_graph_join(struct ex_graph_run *r, const struct ex_program_param *param);
/* sum may be of nothing yet. */
void ex_graph_add(struct ex_graph_run *r, struct ex_shards *sum, const struct ex_shards *x);

/* graph_back.c: gradients of a micro-batch; and, after all of them, exchange and update. */
void ex_graph_backward(struct ex_graph_run *r);
void ex_graph_update(struct ex_graph_run *r);

#endif
