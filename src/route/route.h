/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes: the ways a plan gets into an executor, and how much of it each honours. A strategy checkpoint
 * names only operators that have a parameter; what it does not name, the executor decides by a rule of
 * its own. A route is that rule, so that the plan that is written is the plan that runs.
 */
#ifndef AP_ROUTE_ROUTE_H
#define AP_ROUTE_ROUTE_H

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

#endif
