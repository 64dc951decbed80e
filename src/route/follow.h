/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that have no strategy of their own, but the layout of their neighbours. */
#ifndef AP_ROUTE_FOLLOW_H
#define AP_ROUTE_FOLLOW_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "shard/step.h"

/* Does node take the layout of a neighbour, whatever a strategy would say? Cast, views that MindSpore
 * keeps no strategy for, both ends of a way between stages. */
bool ap_follow_is(const struct ap_node *n);

/* How a tensor arrives that is an input of the graph; cut 0: as the step says of all inputs. O(inputs). */
struct ap_arrival ap_follow_arrival(const struct ap_graph *g, const struct ap_step *step, ap_id tensor);

/*
 * Decides the rows of counts ([g->nnode]) that are NULL, which must be such operators, as MindSpore
 * does. A Cast, a Send or a Receive lies as what its producer makes, those of a parameter as the first
 * of its users reads it. A Reshape leaves what the first user with a strategy reads, sought depth first
 * through Casts, Sends and Receives; where only other Reshapes read it, it lies as its producer, and it
 * is whole where nobody does. Where no cut of the operator leads to that layout, the one with the least
 * redistribution is taken. Equal operators between equal layouts are decided once. O(operands) + what
 * that takes.
 */
void ap_follow_layouts(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t **counts);

#endif
