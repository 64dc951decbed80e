/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes over a border between two parts of a pipeline at least, wherever it lies between layers: of a
 * plan in which the network runs in one stage, on the devices of one of several. A stage has its block of
 * ranks; parts send to the next one's, and the last stage's to the first one's.
 */
#ifndef AP_API_LAYER_BORDER_H
#define AP_API_LAYER_BORDER_H

#include "partition/partition.h"
#include "plan/plan.h"

struct ap_layer_border {
	double send_s, send_back_s; /* of a micro-batch: results, and gradients; the least of: */
	const struct ap_partition_border *behind; /* [nlayer + 1] each layer; last: what is in front */
	double once_s; /* parameters that are used in front of the layers and behind them, in a step, from
	                  the first stage to the last */
	int64_t held_bytes; /* of these, and of the sums of their gradients, all through the step, where they
	                       are sent to */
	double summed_s; /* exchange of these gradients where they are sent from, before they are */
	double once_back_s; /* their gradients, and the exchange that waits for them */
};

/*
 * p: a priced plan of one stage. row_of: by block of p, the layers' numbers, then one for all that is in
 * front of them, then one for all behind. staged: the whole machine, in its stages. scattered: the devices of
 * a stage that hold the same may each send a part of it. behind: [nlayer + 1] of *out, where there are
 * several stages. O(operands + layers * devices * levels).
 */
void ap_layer_border_make(struct ap_ctx *ctx, const struct ap_plan *p, const uint32_t *row_of,
	uint32_t nlayer, const struct ap_machine *staged, bool scattered, struct ap_partition_border *behind,
	struct ap_layer_border *out);

#endif
