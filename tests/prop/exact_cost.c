/* SPDX-License-Identifier: Apache-2.0 */
#include "exact_cost.h"

#include <math.h>
#include <stdlib.h>

int64_t exact_quanta(const struct ap_problem *p, double v)
{
	int exponent, own;
	double fraction = frexp(v, &own), whole;
	if (frexp(p->quantum, &exponent) != 0.5) /* not a power of two */
		abort();
	whole = ldexp(fraction, own - (exponent - 1));
	if (!(fabs(whole) <= 0x1p53) || whole != trunc(whole))
		abort();
	return (int64_t)whole;
}

static bool add(const struct ap_problem *p, double cost, const int64_t *memory, size_t at,
	struct exact_cost *sum)
{
	if (isinf(cost))
		return false;
	sum->quanta += exact_quanta(p, cost);
	sum->bytes += memory ? memory[at] : 0;
	return true;
}

bool exact_cost_of(const struct ap_problem *p, const uint32_t *pick, struct exact_cost *out)
{
	*out = (struct exact_cost){0};
	for (uint32_t e = p->nedge; e-- > 0;) {
		const struct ap_pmatrix *m = &p->matrix[p->edge[e].matrix];
		uint32_t row = pick[p->edge[e].u], col = pick[p->edge[e].v];
		size_t at = (size_t)row * m->cols + col;
		if (row >= m->rows || col >= m->cols || !add(p, m->cost[at], m->memory, at, out))
			return false;
	}
	for (uint32_t i = p->n; i-- > 0;) {
		const struct ap_pnode *node = &p->node[i];
		if (pick[i] >= node->k || !add(p, node->cost[pick[i]], node->memory, pick[i], out))
			return false;
	}
	return true;
}
