/* SPDX-License-Identifier: Apache-2.0 */
/* Operators in order, cut into parts of equal cost. */
#include <math.h>

#include "base/arena.h"
#include "base/num.h"
#include "plan/cut.h"
#include "plan/drive.h"
#include "plan/stages_parts.h"

/* Quanta of cost; so that they add up whatever there is. */
static int64_t *make_weights(struct ap_stages *s, const ap_id *node, uint32_t n)
{
	int64_t *weight = AP_NEW_N(s->ctx->scratch, int64_t, n), most = INT64_MAX / 2 / n;
	struct ap_step step = *s->rq->step;
	const double *least;

	step.pipe = NULL; /* whoever holds what for how long: it takes as much time */
	least = ap_plan_least_s(s->ctx, s->g, s->rq->machine, &step);
	for (uint32_t i = 0; i < n; i++) {
		double quanta = least[node ? node[i] : i] / AP_QUANTUM_S;

		weight[i] = quanta < (double)most ? (int64_t)llround(quanta) : most;
	}
	return weight;
}

/* What is made, or first used, before an operator and used there or later: its bytes, and those of
 * its gradient. */
static int64_t *make_crossings(struct ap_stages *s)
{
	const struct ap_graph *g = s->g;
	int64_t *begin = AP_NEW_N(s->ctx->scratch, int64_t, g->nnode + 1);
	int64_t *end = AP_NEW_N(s->ctx->scratch, int64_t, g->nnode + 1);
	int64_t open = 0;

	for (ap_id t = 0; t < g->ntensor; t++) {
		const struct ap_tensor *x = &g->tensor[t];
		int64_t bytes = ap_tensor_bytes(x) * (1 + x->needs_grad);
		ap_id from, to;

		if (x->nuse == 0 || x->kind == AP_TENSOR_INPUT || x->kind == AP_TENSOR_CONST)
			continue;
		from = x->kind == AP_TENSOR_ACT ? x->producer : x->use[0].node;
		to = x->use[x->nuse - 1].node;
		begin[from + 1] += bytes;
		end[to + 1] += bytes;
	}
	for (ap_id i = 0; i < g->nnode; i++) {
		open += begin[i] - end[i];
		begin[i] = open;
	}
	return begin;
}

void ap_stages_cut(struct ap_stages *s)
{
	uint32_t npart = (uint32_t)s->npart, *first = AP_NEW_N(s->ctx->scratch, uint32_t, npart + 1);
	const int64_t *weight = make_weights(s, NULL, s->g->nnode), *crossing = make_crossings(s);

	ap_cut_even(s->ctx, s->g->nnode, weight, crossing, npart, first);
	first[npart] = s->g->nnode;
	for (uint32_t p = 0; p < npart; p++)
		for (ap_id i = first[p]; i < first[p + 1]; i++)
			s->part[i] = (int32_t)p;
}

void ap_stages_halve(struct ap_stages *s, const ap_id *node, uint32_t n, int32_t first_part)
{
	const int64_t *weight = make_weights(s, node, n);
	const int64_t *crossing = AP_NEW_N(s->ctx->scratch, int64_t, n); /* nothing is sent */
	uint32_t first[2];

	ap_cut_even(s->ctx, n, weight, crossing, 2, first);
	for (uint32_t i = 0; i < n; i++)
		s->part[node[i]] = first_part + (i >= first[1]);
}
