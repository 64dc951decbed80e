/* SPDX-License-Identifier: Apache-2.0 */
#include "stages.h"

#include "base/arena.h"
#include "exec.h"

struct ex_pipe ex_random_pipe(uint64_t *rng, uint32_t most)
{
	struct ex_pipe p = {.nstage = 1 + (int32_t)ex_below(rng, most),
		.nsegment = 1 + (int32_t)ex_below(rng, 2)};

	p.vee = p.nsegment == 2 && ex_below(rng, 2);
	return p;
}

static struct ap_spot spot_of_part(const struct ex_pipe *p, int32_t part)
{
	int32_t segment = part / p->nstage, stage = part % p->nstage;

	return (struct ap_spot){p->vee && segment % 2 ? p->nstage - 1 - stage : stage, segment, part};
}

const struct ap_spot *ex_random_spots(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ex_pipe *pipe, uint64_t *rng)
{
	struct ap_spot *spot = AP_NEW_N(ctx->arena, struct ap_spot, g->nnode);

	for (ap_id i = 0; i < g->nnode; i++) {
		int32_t part = 0;

		for (int k = 0; k < g->node[i].bound.nin; k++) {
			ap_id from = g->tensor[g->node[i].in[k]].producer;

			if (from != AP_NONE && spot[from].part > part)
				part = spot[from].part;
		}
		while (part + 1 < pipe->nstage * pipe->nsegment && ex_below(rng, 3) == 0)
			part++;
		spot[i] = spot_of_part(pipe, part);
	}
	return spot;
}
