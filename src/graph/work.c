/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/work.h"

#include <string.h>

/* Points of the iteration space, without looked-up factors, times the work of one. */
static double flop_of(const struct ap_bound *b)
{
	double n = b->flops;

	for (int f = 0; f < b->nfactor; f++)
		if (!(b->factor[f].flags & AP_FACTOR_LOOKUP))
			n *= (double)b->factor[f].size;
	return n;
}

static bool is_sequence(const struct ap_tensor *t)
{
	return t->kind == AP_TENSOR_INPUT && t->shape.rank == 2 && (t->batch & 1) &&
		!ap_dtype_is_float(t->shape.dtype);
}

static int64_t tokens_of(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->ntensor; i++)
		for (ap_id k = i + 1; is_sequence(&g->tensor[i]) && k < g->ntensor; k++) {
			const struct ap_tensor *a = &g->tensor[i], *b = &g->tensor[k];

			if (is_sequence(b) && a->shape.dim[1] == b->shape.dim[1])
				return a->shape.dim[1];
		}
	return 0;
}

struct ap_graph_work ap_graph_work(const struct ap_graph *g)
{
	struct ap_graph_work work = {.tokens = tokens_of(g)};

	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].bound.row->unit == AP_OP_CUBE)
			work.products_flop += flop_of(&g->node[i].bound);
	for (uint32_t i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];
		int64_t n = 1;

		for (int d = 0; d < t->shape.rank; d++)
			n *= t->shape.dim[d];
		work.trained += t->kind == AP_TENSOR_PARAM && t->trainable ? n : 0;
	}
	return work;
}

const char *ap_graph_kind(const struct ap_graph *g)
{
	const char *kind = "dense";

	for (ap_id i = 0; i < g->nnode; i++)
		if (!strcmp(g->node[i].type, "MoeDispatch"))
			return "moe";
		else if (!strncmp(g->node[i].type, "Conv2D", strlen("Conv2D")))
			kind = "cnn";
	return kind;
}
