/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes: the ways a plan gets into an executor, and how much of it each honours. A strategy
 * checkpoint holds only operators with a parameter; the executor decides the others by a rule of
 * its own. A route implements that rule, so that the plan that is written is the plan that runs.
 */
#ifndef AP_ROUTE_ROUTE_H
#define AP_ROUTE_ROUTE_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "shard/step.h"

/*
 * Sets *out, in the run arena, to counts per node ([nnode], NULL: not decided) from the held ones:
 * given by the user, by shard() in the graph, or by a checkpoint. Held rows stay as they are.
 * AP_INFEASIBLE, reported, naming the operator at which the executor would stop.
 */
typedef enum ap_status ap_route_fn(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

/*
 * Completes plans of one graph, machine and step repeatedly, as an ap_route_fn; what does not
 * depend on the held rows is computed once. For one thread; destroy it before the arena that it was
 * created in.
 */
struct ap_completer {
	enum ap_status (*complete)(struct ap_completer *c, struct ap_ctx *ctx,
		const int32_t *const *held, const int32_t *const **out);
	void (*destroy)(struct ap_completer *c);
};

typedef struct ap_completer *ap_completer_fn(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step);

struct ap_route {
	const char *name; /* of --executor: "mindspore-semi-auto" */
	const char *software; /* the software profile of its executor */
	const char *text; /* one line: how the plan gets there, and what is honoured of it */
	enum ap_executor executor;
	enum ap_dealing dealing; /* how it deals what the parallel optimizer deals */
	bool recompute_whole; /* struct ap_step */
	enum ap_cp_algo cp_algo; /* of a hybrid that names none */
	uint8_t cp_algos; /* those that it has, a bit each */
	bool cp_even; /* it deals a causal sequence so that each rank has as much work */
	bool vocabulary_parallel; /* it computes the loss of a vocabulary that may be cut, unless told */
	bool relays; /* it may send tokens once to each server that has experts of them: DeepEP */
	bool fsdp2; /* parameters are dealt as torch's FSDP2 does: without a pipeline each micro-batch gathers
	             * them and deals its gradients; in one, gradients are dealt after the last one */
	bool degrees; /* it takes degrees of parallelism only, not the cut of an operator */
	ap_route_fn *fix; /* decides operators that do not depend on the search; NULL: none */
	ap_route_fn *complete; /* decides all, once those with a parameter are held; NULL: the executor
	                        * gets every operator's strategy */
	ap_completer_fn *completer; /* of complete; NULL: it keeps nothing between runs */
};

/* Row i; NULL past the end. Row 0 is the default. */
const struct ap_route *ap_route_at(size_t i);

/* The completer of a route that has complete. g, m and step must outlive it. */
struct ap_completer *ap_route_completer(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_graph *g, const struct ap_machine *m, const struct ap_step *step);

#endif
