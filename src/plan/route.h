/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes: the ways a plan gets into an executor, and how much of it each honours. A strategy checkpoint
 * names only operators that have a parameter; what it does not name, the executor decides by a rule of
 * its own. A route is that rule, so that the plan that is written is the plan that runs.
 */
#ifndef AP_PLAN_ROUTE_H
#define AP_PLAN_ROUTE_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "shard/step.h"

/*
 * Counts per node ([nnode], rows NULL: not decided) of a route from those that are held: given by the
 * user, by shard() in the graph, or by a checkpoint. Rows that are held stay as they are. *out in the
 * run arena. AP_INFEASIBLE, told, naming the operator at which the executor would stop.
 */
typedef enum ap_status ap_route_fn(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out);

/*
 * Completes plans of one graph, machine and step again and again, as an ap_route_fn does; what depends on
 * nothing that is held is found once. Of one thread, and destroyed while the arena is in use under which
 * it was created.
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
	ap_route_fn *fix; /* operators whose cut depends on nothing that is searched; NULL: none */
	ap_route_fn *complete; /* every operator, once those with a parameter are held; NULL: the executor
	                        * is told of every operator */
	ap_completer_fn *completer; /* of complete; NULL: it finds everything anew each time */
};

/* Row i; NULL past the end. Row 0 is the default. */
const struct ap_route *ap_route_at(size_t i);

/* That of a route that completes. g, m and step outlive it. */
struct ap_completer *ap_route_completer(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_graph *g, const struct ap_machine *m, const struct ap_step *step);

/* An operator that a route decides otherwise than the free optimum does, and what that costs. */
struct ap_route_differ {
	ap_id node;
	const int32_t *free_count; /* of the free optimum, [factor] */
	double operator_s; /* of the objective: the operator's own share */
	double moves_s; /* and what is redistributed before it, and behind it to operators that do not
	                 * differ */
};

struct ap_plan_route { /* what the route made of a plan */
	const struct ap_route *route;
	double free_objective_s, free_step_time_s; /* of the free optimum */
	double loss_s; /* objective of the plan above the free one's: the sum of what each operator costs */
	uint32_t n;
	const struct ap_route_differ *differ; /* [n], in the graph's order */
};

struct ap_plan;

/* How plan, of this route, differs from the free one of the same graph, machine and step. Both priced.
 * O(operators + redistributions). */
const struct ap_plan_route *ap_route_compare(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_plan *plan, const struct ap_plan *free);

#endif
