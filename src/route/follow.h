/* SPDX-License-Identifier: Apache-2.0 */
/* Operators without a strategy of their own, which take the layout of a neighbour. */
#ifndef AP_ROUTE_FOLLOW_H
#define AP_ROUTE_FOLLOW_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "shard/step.h"

/* Does the node take a neighbour's layout, whatever its strategy? So do Cast, views that MindSpore
 * keeps no strategy for, Send and Receive. */
bool ap_follow_is(const struct ap_node *n);

/* The arrival of a graph input; cut 0: as step->full_batch states for all inputs. O(inputs). */
struct ap_arrival ap_follow_arrival(const struct ap_graph *g, const struct ap_step *step, ap_id tensor);

/*
 * Decides, as MindSpore does, the rows of counts ([g->nnode]) that are NULL, all of which must be
 * such operators. A Cast, Send or Receive takes the layout of its producer's result, or if it reads
 * a parameter, the layout that the parameter's first user reads. A Reshape produces what its first
 * user with a strategy reads, found depth first through Casts, Sends and Receives; if only Reshapes
 * read it, it takes its producer's layout; if nothing does, its result is whole. If no cut of the
 * operator gives that layout, the one with the least redistribution is taken. Equal operators
 * between equal layouts are decided once. O(operands), and O(cuts) per distinct decision.
 */
void ap_follow_layouts(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t **counts);

#endif
