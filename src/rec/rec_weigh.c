/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "rec/rec_parts.h"

double ap_rec_charge(const struct ap_rec *r, struct ap_rec_price p)
{
	int64_t over = p.temporary > r->rates.cap ? p.temporary - r->rates.cap : 0;
	double q = r->view->quantum;

	if (r->rates.over == 0)
		return p.s;
	return p.s + rint((r->rates.byte * (double)p.bytes + r->rates.over * (double)over) / q) * q;
}

void ap_rec_add(struct ap_rec_score *score, const struct ap_rec *r, struct ap_rec_price p)
{
	score->bytes += p.bytes;
	if (p.s < INFINITY)
		score->cost += ap_rec_charge(r, p);
	else
		score->forbidden++;
}

bool ap_rec_less(const struct ap_rec_score *a, const struct ap_rec_score *b)
{
	if (a->forbidden != b->forbidden)
		return a->forbidden < b->forbidden;
	return a->cost < b->cost;
}

struct ap_rec_price ap_rec_pair(struct ap_rec *r, const struct ap_rec_side *side, uint32_t own,
	uint32_t other)
{
	const struct ap_rec_view *v = r->view;

	r->work++;
	return side->is_v ? v->pair(v->self, side->cls, other, own)
			  : v->pair(v->self, side->cls, own, other);
}

struct ap_rec_score ap_rec_weigh(struct ap_rec *r, ap_id u, uint32_t state)
{
	const struct ap_rec_view *v = r->view;
	struct ap_rec_score score = {0};

	ap_rec_add(&score, r, v->node(v->self, v->cls[u], state));
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++)
		ap_rec_add(&score, r,
			ap_rec_pair(r, &r->side[s], state, r->pick[r->side[s].other]));
	return score;
}

struct ap_rec_score ap_rec_total(struct ap_rec *r, int64_t *temporary)
{
	const struct ap_rec_view *v = r->view;
	struct ap_rec_score score = {0};
	int64_t most = 0;

	for (ap_id i = 0; i < v->n; i++) {
		struct ap_rec_price p = v->node(v->self, v->cls[i], r->pick[i]);

		ap_rec_add(&score, r, p);
		most = p.temporary > most ? p.temporary : most;
	}
	for (uint32_t i = 0; i < v->nedge; i++) {
		const struct ap_rec_edge *e = &v->edge[i];

		ap_rec_add(&score, r, v->pair(v->self, e->cls, r->pick[e->u], r->pick[e->v]));
	}
	if (temporary)
		*temporary = most;
	return score;
}
