/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/dealt.h"

#include <inttypes.h>

#include "base/arena.h"
#include "cost/optimizer.h"
#include "graph/graph.h"

static bool is_trained(const struct ap_tensor *t)
{
	return t->kind == AP_TENSOR_PARAM && t->trainable && t->needs_grad && t->nuse > 0;
}

static int64_t count_trained(const struct ap_graph *g)
{
	int64_t n = 0;

	for (ap_id t = 0; t < g->ntensor; t++)
		n += is_trained(&g->tensor[t]);
	return n;
}

const char *ap_dealt_refuses(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_optimizer *optimizer)
{
	int64_t n = count_trained(g);

	if (!optimizer || !optimizer->deals_whole)
		return "only lamb and adam_weight_decay are dealt to devices in data_parallel";
	if (n <= ndev)
		return ap_arena_printf(ctx->arena, "to deal whole parameters to %" PRId64
			" devices takes more than %" PRId64 " of them, the graph trains %" PRId64,
			ndev, ndev, n);
	return NULL;
}

const bool *ap_dealt_params(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step)
{
	int64_t ndev = step->deal_whole, n = 0, most = 0;
	int64_t *bytes;
	bool *in;

	if (ndev == 0 || !step->training)
		return NULL;
	bytes = AP_NEW_N(ctx->scratch, int64_t, (size_t)ndev);
	in = AP_NEW_N(ctx->scratch, bool, g->ntensor);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (is_trained(&g->tensor[t]))
			bytes[n++ % ndev] += ap_tensor_bytes(&g->tensor[t]);
	for (int64_t d = 0; d < ndev; d++)
		most = bytes[d] > bytes[most] ? d : most;
	n = 0;
	for (ap_id t = 0; t < g->ntensor; t++)
		if (is_trained(&g->tensor[t]))
			in[t] = n++ % ndev == most;
	return in;
}
