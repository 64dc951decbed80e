/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "rec/rec_parts.h"

struct set { /* the states that a node decides between */
	uint32_t n;
	uint32_t *state; /* the present one first */
	double *cost;
};

struct ids { /* by id in a map */
	uint32_t *v;
	size_t n, cap;
};

struct part { /* of what comes later, a state of its node */
	double cost;
	uint32_t state;
};

struct ap_rec_pass { /* what passes of one run remember */
	struct ap_rec *r;
	struct ap_arena *a;
	int32_t prime;
	bool backward;
	struct ap_map *sets; /* by class, state and prime */
	AP_VEC(struct set) set;
	struct ap_map *vectors; /* a number for each state of a set, the least is 0 */
	struct ap_map *messages, *rests, *decisions;
	struct ids message, rest, decision;
	double *sum;
	uint32_t room; /* of sum */
	struct part *part;
	uint32_t parts; /* room of part */
};

static bool is_later(const struct ap_rec_pass *p, ap_id u, ap_id other)
{
	return p->backward ? other < u : other > u;
}

static ap_id nth(const struct ap_rec_pass *p, uint32_t i)
{
	return p->backward ? p->r->view->n - 1 - i : i;
}

static struct set make_set(struct ap_rec_pass *p, uint32_t cls, uint32_t state)
{
	const struct ap_rec_view *v = p->r->view;
	struct ap_rec_list list = p->prime ? v->further(v->self, cls, state, p->prime)
					   : v->beside(v->self, cls, state);
	struct set s = {.n = list.n + 1, .state = AP_NEW_N(p->a, uint32_t, list.n + 1),
		.cost = AP_NEW_N(p->a, double, list.n + 1)};

	s.state[0] = state;
	if (list.n > 0)
		memcpy(s.state + 1, list.state, list.n * sizeof *list.state);
	for (uint32_t i = 0; i < s.n; i++)
		s.cost[i] = ap_rec_charge(p->r, v->node(v->self, cls, s.state[i]));
	p->r->work += s.n;
	return s;
}

static uint32_t set_of(struct ap_rec_pass *p, ap_id u)
{
	const uint32_t key[] = {p->r->view->cls[u], p->r->pick[u], (uint32_t)p->prime};
	bool fresh;
	ap_id id = ap_map_put(p->sets, key, sizeof key, &fresh);

	if (fresh) {
		struct set s = make_set(p, key[0], key[1]);

		AP_PUSH(p->a, p->set, s);
	}
	return id;
}

static const double *vector(const struct ap_rec_pass *p, uint32_t id)
{
	return (const double *)(const void *)ap_map_key(p->vectors, id, NULL);
}

/* Only differences count; equal ones get one id. */
static uint32_t intern(struct ap_rec_pass *p, double *v, uint32_t n)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < n; i++)
		least = v[i] < least ? v[i] : least;
	for (uint32_t i = 0; i < n && least < INFINITY; i++)
		v[i] -= least;
	return ap_map_put(p->vectors, v, n * sizeof *v, NULL);
}

static double *room_for(struct ap_rec_pass *p, uint32_t n)
{
	if (n > p->room) {
		p->sum = AP_NEW_N(p->a, double, 2 * n);
		p->room = 2 * n;
	}
	return p->sum;
}

static double shared(const struct ap_rec_pass *p, double cost, uint32_t share)
{
	double q = p->r->view->quantum;

	return share > 1 && cost < INFINITY ? rint(cost / share / q) * q : cost;
}

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return x->state < y->state ? -1 : x->state > y->state;
}

/* The rests of w, shared out, the cheapest first. */
static const struct part *sorted_parts(struct ap_rec_pass *p, ap_id w)
{
	const struct set *set = &p->set.v[p->r->set_of[w]];
	const double *rest = vector(p, p->r->rest_of[w]);

	if (set->n > p->parts) {
		p->part = AP_NEW_N(p->a, struct part, 2 * set->n);
		p->parts = 2 * set->n;
	}
	for (uint32_t i = 0; i < set->n; i++)
		p->part[i] = (struct part){shared(p, rest[i], p->r->share[w]), set->state[i]};
	qsort(p->part, set->n, sizeof *p->part, compare_parts);
	return p->part;
}

/* What each state of u costs over this edge and beyond. */
static uint32_t send(struct ap_rec_pass *p, ap_id u, const struct ap_rec_side *side)
{
	const struct set *to = &p->set.v[p->r->set_of[u]];
	uint32_t n = p->set.v[p->r->set_of[side->other]].n;
	const struct part *part = sorted_parts(p, side->other);
	bool all = p->r->view->negative;
	double *out = room_for(p, to->n);

	for (uint32_t t = 0; t < to->n; t++) {
		out[t] = INFINITY;
		for (uint32_t s = 0; s < n && (all || part[s].cost < out[t]); s++) {
			double cost = part[s].cost +
				ap_rec_charge(p->r, ap_rec_pair(p->r, side, to->state[t],
							     part[s].state));

			out[t] = cost < out[t] ? cost : out[t];
		}
	}
	return intern(p, out, to->n);
}

static uint32_t message(struct ap_rec_pass *p, ap_id u, const struct ap_rec_side *side)
{
	ap_id w = side->other;
	const uint32_t key[] = {side->cls << 1 | side->is_v, p->r->set_of[u], p->r->set_of[w],
		p->r->rest_of[w], p->r->share[w]};
	bool fresh;
	ap_id id = ap_map_put(p->messages, key, sizeof key, &fresh);

	if (fresh)
		AP_PUSH(p->a, p->message, send(p, u, side));
	return p->message.v[id];
}

static uint32_t add_up(struct ap_rec_pass *p, ap_id u)
{
	const struct set *set = &p->set.v[p->r->set_of[u]];
	double *sum = AP_NEW_N(p->a, double, set->n);

	memcpy(sum, set->cost, set->n * sizeof *sum);
	for (uint32_t s = p->r->first[u]; s < p->r->first[u + 1]; s++) {
		const struct ap_rec_side *side = &p->r->side[s];
		const double *m;

		if (!is_later(p, u, side->other))
			continue;
		m = vector(p, message(p, u, side));
		for (uint32_t i = 0; i < set->n; i++)
			sum[i] += m[i];
	}
	return intern(p, sum, set->n);
}

static uint32_t rest_of(struct ap_rec_pass *p, ap_id u)
{
	const struct ap_rec *r = p->r;
	uint32_t *k = p->r->key;
	bool fresh;
	ap_id id;

	*k++ = p->r->set_of[u];
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++) {
		ap_id w = r->side[s].other;

		if (!is_later(p, u, w))
			continue;
		*k++ = r->side[s].cls << 1 | r->side[s].is_v;
		*k++ = p->r->set_of[w];
		*k++ = p->r->rest_of[w];
		*k++ = p->r->share[w];
	}
	id = ap_map_put(p->rests, p->r->key, (size_t)(k - p->r->key) * sizeof *k, &fresh);
	if (fresh)
		AP_PUSH(p->a, p->rest, add_up(p, u));
	return p->rest.v[id];
}

/* The cheapest of the set, given the nodes before. */
static uint32_t cheapest(struct ap_rec_pass *p, ap_id u)
{
	struct ap_rec *r = p->r;
	const struct set *set = &p->set.v[p->r->set_of[u]];
	const double *rest = vector(p, p->r->rest_of[u]);
	struct ap_rec_score least = {UINT32_MAX, INFINITY, 0};
	uint32_t best = set->state[0];

	for (uint32_t i = 0; i < set->n; i++) {
		struct ap_rec_score score = {0};

		ap_rec_add(&score, r, (struct ap_rec_price){.s = rest[i]});
		for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++) {
			const struct ap_rec_side *side = &r->side[s];

			if (is_later(p, u, side->other))
				continue;
			if (!r->view->negative && !ap_rec_less(&score, &least))
				break;
			ap_rec_add(&score, r,
				ap_rec_pair(r, side, set->state[i], r->pick[side->other]));
		}
		if (ap_rec_less(&score, &least)) {
			least = score;
			best = set->state[i];
		}
	}
	return best;
}

static uint32_t decide(struct ap_rec_pass *p, ap_id u)
{
	const struct ap_rec *r = p->r;
	uint32_t *k = p->r->key;
	bool fresh;
	ap_id id;

	*k++ = p->r->set_of[u];
	*k++ = p->r->rest_of[u];
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++) {
		ap_id w = r->side[s].other;

		if (is_later(p, u, w))
			continue;
		*k++ = r->side[s].cls << 1 | r->side[s].is_v;
		*k++ = r->pick[w];
	}
	id = ap_map_put(p->decisions, p->r->key, (size_t)(k - p->r->key) * sizeof *k, &fresh);
	if (fresh)
		AP_PUSH(p->a, p->decision, cheapest(p, u));
	return p->decision.v[id];
}

/* Where a tie does not hold, its whole group stays as it was. */
static void mend(struct ap_rec *r)
{
	const struct ap_rec_view *v = r->view;
	bool any = false;

	memset(r->torn, 0, v->n * sizeof *r->torn);
	for (uint32_t i = 0; i < v->nedge; i++) {
		const struct ap_rec_edge *e = &v->edge[i];

		if (e->strict && !(v->pair(v->self, e->cls, r->pick[e->u], r->pick[e->v]).s < INFINITY))
			any = r->torn[r->group[e->u]] = true;
	}
	for (ap_id u = 0; any && u < v->n; u++)
		if (r->torn[r->group[u]])
			r->pick[u] = r->before[u];
}

void ap_rec_open_passes(struct ap_rec *r)
{
	struct ap_arena *a = r->ctx->scratch;

	r->pass = AP_NEW(a, struct ap_rec_pass);
	*r->pass = (struct ap_rec_pass){.r = r, .a = a, .sets = ap_map_create(a),
		.vectors = ap_map_create(a), .messages = ap_map_create(a),
		.rests = ap_map_create(a), .decisions = ap_map_create(a)};
}

static void count_shares(struct ap_rec_pass *p)
{
	struct ap_rec *r = p->r;

	for (ap_id u = 0; u < r->view->n; u++) {
		r->share[u] = 0;
		for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++)
			r->share[u] += !is_later(p, u, r->side[s].other);
	}
}

static void decide_all(struct ap_rec_pass *p)
{
	struct ap_rec *r = p->r;
	uint32_t n = r->view->n;

	for (uint32_t i = n; i-- > 0;) {
		ap_id u = nth(p, i);

		p->r->set_of[u] = set_of(p, u);
		p->r->rest_of[u] = rest_of(p, u);
	}
	for (uint32_t i = 0; i < n; i++) {
		ap_id u = nth(p, i);

		r->pick[u] = decide(p, u);
	}
}

bool ap_rec_pass(struct ap_rec *r, int32_t prime, bool backward, struct ap_rec_score *total)
{
	struct ap_rec_score is;
	size_t bytes = r->view->n * sizeof *r->pick;

	r->pass->prime = prime;
	r->pass->backward = backward;
	count_shares(r->pass);
	memcpy(r->before, r->pick, bytes);
	decide_all(r->pass);
	mend(r);
	if (!memcmp(r->pick, r->before, bytes))
		return false;
	is = ap_rec_total(r, NULL);
	if (ap_rec_less(&is, total)) {
		*total = is;
		return true;
	}
	memcpy(r->pick, r->before, bytes);
	return false;
}
