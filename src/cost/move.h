/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of the steps of a redistribution. Private to this layer. */
#ifndef AP_COST_MOVE_H
#define AP_COST_MOVE_H

#include "cost/cost.h"

struct ap_pricer *ap_pricer_create(struct ap_arena *arena, const struct ap_machine *m,
	const struct ap_step *step);

const struct ap_machine *ap_pricer_machine(const struct ap_pricer *p);

/* The pricer of what runs in such a block of devices (struct ap_task): p itself where stages are equal. */
struct ap_pricer *ap_pricer_at(struct ap_pricer *p, int32_t block);


const struct ap_step *ap_pricer_step(const struct ap_pricer *p);

const struct ap_group *ap_pricer_group(struct ap_pricer *p, const struct ap_axes *axes);

double ap_comm_time_s(struct ap_pricer *pr, const struct ap_comm *c, const char **algorithm);

/* ap_move_cost_make() between two ends of a flow's tensor: for many pairs of few layouts. */
void ap_move_cost_between(struct ap_pricer *pr, const struct ap_flow *f,
	const struct ap_reshard_end *a, const struct ap_reshard_end *b, struct ap_move_cost *out);

/* Redistribution from layout a (producer) to layout b (consumer). Backward, mindspore: the adjoint
 * of each step (AllGather -> ReduceScatter, slice -> zero padding); generic: from b to a by
 * ap_reshard_back(), of a gradient that is partial over `partial` (NULL: over nothing), and a
 * copy larger than the producer's part is not held but made again for the backward pass. */
void ap_move_cost_make(struct ap_pricer *pr, const struct ap_flow *f, const struct ap_layout *a,
	const struct ap_layout *b, const struct ap_axes *partial, struct ap_move_cost *out);

/* The number of devices on which a flow's tensor lies at its consumer, or at its producer. */
int64_t ap_flow_devices(const struct ap_machine *m, const struct ap_flow *f, bool consumer);

void ap_flow_make(const struct ap_graph *g, const struct ap_task *tasks, ap_id node, uint32_t operand,
	const struct ap_step *step, struct ap_flow *out);

/* The layout of a graph input on arrival: as given; else whole, with full_batch; else its batch
 * dimension cut by the largest divisor of ndev that divides it, with repeats (VirtualDataset). */
void ap_input_layout(const struct ap_shape *shape, uint8_t batch, struct ap_arrival given,
	int64_t ndev, const struct ap_step *step, struct ap_layout *out);

#endif
