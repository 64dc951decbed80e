/* SPDX-License-Identifier: Apache-2.0 */
#include "api/layer_border.h"

#include <math.h>

#include "base/arena.h"
#include "cost/comms.h"
#include "hw/coll.h"
#include "plan/blocks.h"

/* Bytes of a micro-batch on a device, as the producer deals them; or among all devices of the stage. */
static int64_t local_bytes(const struct ap_plan *p, ap_id node, uint32_t result, bool scattered)
{
	const struct ap_operand *out = &p->graph->node[node].bound.out[result];
	struct ap_placement place = p->op[node].place;

	for (int f = 0; f < AP_MAX_FACTOR && scattered; f++)
		place.count[f] = 1;
	return ap_local_bytes(out, p->task[node].out[result].batch, &place, p->step) /
		(scattered ? p->machine->ndev : 1);
}

/* Seconds over the fastest link between two stages. */
static double least_s(const struct ap_machine *staged, int64_t bytes, bool back)
{
	double least = INFINITY;

	for (uint32_t s = 0; s < staged->nstage; s++) {
		uint32_t next = (s + 1) % staged->nstage;

		least = fmin(least, ap_send_time_s(staged, back ? next : s, back ? s : next,
			(double)bytes));
	}
	return least;
}

void ap_layer_border_make(struct ap_ctx *ctx, const struct ap_plan *p, const uint32_t *row_of,
	uint32_t nlayer, const struct ap_machine *staged, bool scattered, struct ap_layer_border *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_graph *g = p->graph;
	int64_t *there = AP_NEW_N(ctx->scratch, int64_t, nlayer + 2), sent = INT64_MAX;
	int64_t *back = AP_NEW_N(ctx->scratch, int64_t, nlayer + 2), returned = INT64_MAX;
	bool *met = AP_NEW_N(ctx->scratch, bool, g->ntensor);

	*out = (struct ap_layer_border){0};
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			ap_id t = g->node[i].in[k], from = g->tensor[t].producer;
			uint32_t row = from == AP_NONE ? 0 : row_of[p->blocks->of[from]];
			int64_t bytes;

			if (from == AP_NONE || met[t] || p->task[from].once ||
				row == row_of[p->blocks->of[i]])
				continue;
			met[t] = true;
			bytes = local_bytes(p, from, g->tensor[t].result, scattered);
			there[row] += bytes;
			back[row] += p->task[from].out[g->tensor[t].result].grad ? bytes : 0;
		}
	for (uint32_t i = 0; i <= nlayer; i++) { /* nothing is behind the last row */
		sent = there[i] < sent ? there[i] : sent;
		returned = back[i] < returned ? back[i] : returned;
	}
	if (staged->nstage > 1) {
		out->send_s = least_s(staged, sent, false);
		out->send_back_s = least_s(staged, returned, true);
	}
	ap_arena_release(ctx->scratch, mark);
}
