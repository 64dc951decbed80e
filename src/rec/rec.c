/* SPDX-License-Identifier: Apache-2.0 */
#include "rec/rec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "problem/problem.h"

struct side { /* an edge seen from one of its ends */
	ap_id other;
	uint32_t cls;
	bool is_v; /* seen from v */
	bool strict;
};

struct score { /* compared by forbidden, then by cost */
	uint32_t forbidden;
	double cost; /* seconds, including charged bytes */
	int64_t bytes;
};

struct run {
	struct ap_ctx *ctx;
	const struct ap_rec_view *view;
	uint32_t *first; /* [n + 1] into side */
	struct side *side;
	ap_id *group; /* [n] lowest node in its group of tied nodes */
	uint32_t *pick; /* [n] */
	uint32_t *before; /* [n] */
	struct rates {
		double byte; /* seconds per byte */
		double over; /* seconds per byte of a temporary above cap */
		int64_t cap;
	} rates;
	struct ap_map *memo; /* decisions of sweeps, by surroundings */
	AP_VEC(uint32_t) answer; /* by id in memo */
	uint32_t *key; /* surroundings in words */
	struct pass *pass;
	uint32_t *set_of; /* [n] set of states of a pass */
	uint32_t *rest_of; /* [n] vector: costs of the states, including all later nodes */
	uint32_t *share; /* [n] number of earlier neighbours */
	bool *torn; /* [n] a tie of the group is broken */
	bool *dirty; /* [n] surroundings changed since the last look */
	uint64_t work, most_work;
	uint64_t patience; /* work before which a stop request is ignored */
};

/* Seconds of a price with its bytes charged, in whole quanta. */
static double charge(const struct run *r, struct ap_rec_price p)
{
	int64_t over = p.temporary > r->rates.cap ? p.temporary - r->rates.cap : 0;
	double q = r->view->quantum;

	if (r->rates.over == 0)
		return p.s;
	return p.s + rint((r->rates.byte * (double)p.bytes + r->rates.over * (double)over) / q) * q;
}

static void add_price(struct score *score, const struct run *r, struct ap_rec_price p)
{
	score->bytes += p.bytes;
	if (p.s < INFINITY)
		score->cost += charge(r, p);
	else
		score->forbidden++;
}

static bool less(const struct score *a, const struct score *b)
{
	if (a->forbidden != b->forbidden)
		return a->forbidden < b->forbidden;
	return a->cost < b->cost;
}

/* Price of an edge for the states of its own and its other end. */
static struct ap_rec_price pair_price(struct run *r, const struct side *side, uint32_t own,
	uint32_t other)
{
	const struct ap_rec_view *v = r->view;

	r->work++;
	return side->is_v ? v->pair(v->self, side->cls, other, own)
			  : v->pair(v->self, side->cls, own, other);
}

/* Price of node u in this state, with edges to its neighbours. */
static struct score weigh(struct run *r, ap_id u, uint32_t state)
{
	const struct ap_rec_view *v = r->view;
	struct score score = {0};

	add_price(&score, r, v->node(v->self, v->cls[u], state));
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++)
		add_price(&score, r,
			pair_price(r, &r->side[s], state, r->pick[r->side[s].other]));
	return score;
}

/* Price of the pick, bytes charged. *temporary (may be NULL): the largest. */
static struct score total_of(struct run *r, int64_t *temporary)
{
	const struct ap_rec_view *v = r->view;
	struct score score = {0};
	int64_t most = 0;

	for (ap_id i = 0; i < v->n; i++) {
		struct ap_rec_price p = v->node(v->self, v->cls[i], r->pick[i]);

		add_price(&score, r, p);
		most = p.temporary > most ? p.temporary : most;
	}
	for (uint32_t i = 0; i < v->nedge; i++) {
		const struct ap_rec_edge *e = &v->edge[i];

		add_price(&score, r, v->pair(v->self, e->cls, r->pick[e->u], r->pick[e->v]));
	}
	if (temporary)
		*temporary = most;
	return score;
}

static void list_sides(struct run *r)
{
	const struct ap_rec_view *v = r->view;
	struct ap_arena *a = r->ctx->scratch;
	uint32_t *at;

	r->first = AP_NEW_N(a, uint32_t, v->n + 1);
	r->side = AP_NEW_N(a, struct side, 2 * (size_t)v->nedge);
	for (uint32_t i = 0; i < v->nedge; i++) {
		r->first[v->edge[i].u + 1]++;
		r->first[v->edge[i].v + 1]++;
	}
	for (uint32_t i = 0; i < v->n; i++)
		r->first[i + 1] += r->first[i];
	at = ap_arena_memdup(a, r->first, (v->n + 1) * sizeof *at);
	for (uint32_t i = 0; i < v->nedge; i++) {
		const struct ap_rec_edge *e = &v->edge[i];

		r->side[at[e->u]++] = (struct side){e->v, e->cls, false, e->strict};
		r->side[at[e->v]++] = (struct side){e->u, e->cls, true, e->strict};
	}
}

static ap_id root_of(ap_id *parent, ap_id i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

static void join_groups(struct run *r)
{
	const struct ap_rec_view *v = r->view;

	r->group = AP_NEW_N(r->ctx->scratch, ap_id, v->n);
	for (ap_id i = 0; i < v->n; i++)
		r->group[i] = i;
	for (uint32_t i = 0; i < v->nedge; i++) {
		ap_id a = root_of(r->group, v->edge[i].u), b = root_of(r->group, v->edge[i].v);

		if (v->edge[i].strict)
			r->group[a > b ? a : b] = a > b ? b : a;
	}
	for (ap_id i = 0; i < v->n; i++)
		r->group[i] = root_of(r->group, i);
}

/* Nodes reached over ties from immovable nodes, in order. */
struct settling {
	struct run *r;
	bool *settled; /* [n] */
	AP_VEC(ap_id) list;
};

static void add(struct settling *t, ap_id u)
{
	t->settled[u] = true;
	AP_PUSH(t->r->ctx->scratch, t->list, u);
}

/* The cheapest state of the other end that this edge from u allows, counting ties to settled
 * nodes. */
static uint32_t follow(struct settling *t, ap_id u, const struct side *side)
{
	struct run *r = t->r;
	const struct ap_rec_view *v = r->view;
	struct ap_rec_list list = v->matching(v->self, side->cls, !side->is_v, r->pick[u]);
	ap_id to = side->other;
	uint32_t best = r->pick[to];
	struct score least = {UINT32_MAX, INFINITY, 0};

	for (uint32_t i = 0; i < list.n; i++) {
		struct score score = {0};

		add_price(&score, r, v->node(v->self, v->cls[to], list.state[i]));
		for (uint32_t s = r->first[to]; s < r->first[to + 1]; s++)
			if (r->side[s].strict && t->settled[r->side[s].other])
				add_price(&score, r, pair_price(r, &r->side[s], list.state[i],
							      r->pick[r->side[s].other]));
		if (less(&score, &least)) {
			least = score;
			best = list.state[i];
		}
	}
	return best;
}

static void settle(struct settling *t, ap_id u)
{
	struct run *r = t->r;

	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++) {
		const struct side *side = &r->side[s];

		if (!side->strict || t->settled[side->other])
			continue;
		if (!(pair_price(r, side, r->pick[u], r->pick[side->other]).s < INFINITY))
			r->pick[side->other] = follow(t, u, side);
		add(t, side->other);
	}
}

static bool is_tied(const struct run *r, ap_id u)
{
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++)
		if (r->side[s].strict)
			return true;
	return false;
}

/* Sets all nodes to start(); nodes tied to immovable ones follow them. */
static void reset(struct run *r)
{
	const struct ap_rec_view *v = r->view;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct settling t = {.r = r, .settled = AP_NEW_N(r->ctx->scratch, bool, v->n)};

	for (ap_id i = 0; i < v->n; i++)
		r->pick[i] = v->start(v->self, v->cls[i]);
	for (ap_id i = 0; i < v->n; i++)
		if (is_tied(r, i) && v->beside(v->self, v->cls[i], r->pick[i]).n == 0)
			add(&t, i);
	for (size_t i = 0; i < t.list.n; i++)
		settle(&t, t.list.v[i]);
	ap_arena_release(r->ctx->scratch, mark);
}

struct set { /* states that a node chooses from */
	uint32_t n;
	uint32_t *state; /* the current one first */
	double *cost;
};

struct ids { /* by id in a map */
	uint32_t *v;
	size_t n, cap;
};

struct part { /* a state with its cost in later nodes */
	double cost;
	uint32_t state;
};

struct pass { /* memory of the passes of a run */
	struct run *r;
	struct ap_arena *a;
	int32_t prime;
	bool backward;
	struct ap_map *sets; /* by class, state and prime */
	AP_VEC(struct set) set;
	struct ap_map *vectors; /* a number per state of a set, the least being 0 */
	struct ap_map *messages, *rests, *decisions;
	struct ids message, rest, decision;
	double *sum;
	uint32_t room; /* of sum */
	struct part *part;
	uint32_t parts; /* room of part */
};

static bool is_later(const struct pass *p, ap_id u, ap_id other)
{
	return p->backward ? other < u : other > u;
}

static ap_id nth(const struct pass *p, uint32_t i)
{
	return p->backward ? p->r->view->n - 1 - i : i;
}

static struct set make_set(struct pass *p, uint32_t cls, uint32_t state)
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
		s.cost[i] = charge(p->r, v->node(v->self, cls, s.state[i]));
	p->r->work += s.n;
	return s;
}

static uint32_t set_of(struct pass *p, ap_id u)
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

static const double *vector(const struct pass *p, uint32_t id)
{
	return (const double *)(const void *)ap_map_key(p->vectors, id, NULL);
}

/* Interns a vector less its least entry: only differences matter. */
static uint32_t intern(struct pass *p, double *v, uint32_t n)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < n; i++)
		least = v[i] < least ? v[i] : least;
	for (uint32_t i = 0; i < n && least < INFINITY; i++)
		v[i] -= least;
	return ap_map_put(p->vectors, v, n * sizeof *v, NULL);
}

static double *room_for(struct pass *p, uint32_t n)
{
	if (n > p->room) {
		p->sum = AP_NEW_N(p->a, double, 2 * n);
		p->room = 2 * n;
	}
	return p->sum;
}

static double shared(const struct pass *p, double cost, uint32_t share)
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

/* States of w by shared cost, cheapest first. */
static const struct part *sorted_parts(struct pass *p, ap_id w)
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

/* Costs of each state of u over this edge and beyond. */
static uint32_t send(struct pass *p, ap_id u, const struct side *side)
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
				charge(p->r, pair_price(p->r, side, to->state[t],
							     part[s].state));

			out[t] = cost < out[t] ? cost : out[t];
		}
	}
	return intern(p, out, to->n);
}

static uint32_t message(struct pass *p, ap_id u, const struct side *side)
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

static uint32_t add_up(struct pass *p, ap_id u)
{
	const struct set *set = &p->set.v[p->r->set_of[u]];
	double *sum = AP_NEW_N(p->a, double, set->n);

	memcpy(sum, set->cost, set->n * sizeof *sum);
	for (uint32_t s = p->r->first[u]; s < p->r->first[u + 1]; s++) {
		const struct side *side = &p->r->side[s];
		const double *m;

		if (!is_later(p, u, side->other))
			continue;
		m = vector(p, message(p, u, side));
		for (uint32_t i = 0; i < set->n; i++)
			sum[i] += m[i];
	}
	return intern(p, sum, set->n);
}

static uint32_t rest_of(struct pass *p, ap_id u)
{
	const struct run *r = p->r;
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

/* The cheapest state, given the earlier nodes. */
static uint32_t cheapest(struct pass *p, ap_id u)
{
	struct run *r = p->r;
	const struct set *set = &p->set.v[p->r->set_of[u]];
	const double *rest = vector(p, p->r->rest_of[u]);
	struct score least = {UINT32_MAX, INFINITY, 0};
	uint32_t best = set->state[0];

	for (uint32_t i = 0; i < set->n; i++) {
		struct score score = {0};

		add_price(&score, r, (struct ap_rec_price){.s = rest[i]});
		for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++) {
			const struct side *side = &r->side[s];

			if (is_later(p, u, side->other))
				continue;
			if (!r->view->negative && !less(&score, &least))
				break;
			add_price(&score, r,
				pair_price(r, side, set->state[i], r->pick[side->other]));
		}
		if (less(&score, &least)) {
			least = score;
			best = set->state[i];
		}
	}
	return best;
}

static uint32_t decide(struct pass *p, ap_id u)
{
	const struct run *r = p->r;
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

/* Restores groups with a broken tie. */
static void mend(struct run *r)
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

static void count_shares(struct pass *p)
{
	struct run *r = p->r;

	for (ap_id u = 0; u < r->view->n; u++) {
		r->share[u] = 0;
		for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++)
			r->share[u] += !is_later(p, u, r->side[s].other);
	}
}

static void decide_all(struct pass *p)
{
	struct run *r = p->r;
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

/* Lets all nodes choose between their state and those one level further (prime > 0) or beside it
 * (prime 0). Messages from the last node to the first give the cost of each state there and beyond,
 * divided among the nodes that ask; then, from first to last, each node takes the cheapest state
 * given earlier ones. Exact on trees whose nodes have one earlier neighbour, else a good guess;
 * never increases the cost. backward: nodes in reverse order. Returns true if a node moved; updates
 * *total. */
static bool run_pass(struct run *r, int32_t prime, bool backward, struct score *total)
{
	struct score is;
	size_t bytes = r->view->n * sizeof *r->pick;

	r->pass->prime = prime;
	r->pass->backward = backward;
	count_shares(r->pass);
	memcpy(r->before, r->pick, bytes);
	decide_all(r->pass);
	mend(r);
	if (!memcmp(r->pick, r->before, bytes))
		return false;
	is = total_of(r, NULL);
	if (less(&is, total)) {
		*total = is;
		return true;
	}
	memcpy(r->pick, r->before, bytes);
	return false;
}

enum { SWEEPS = 16, PASSES = 12, POLL = 1024 };

/* Is it time to stop? */
static bool spent(const struct run *r)
{
	return (ap_ctx_stopped(r->ctx) && r->work >= r->patience) ||
		(r->most_work > 0 && r->work > r->most_work);
}

/* Collects all that the decision on u depends on; returns its bytes. */
static size_t surroundings(struct run *r, ap_id u)
{
	uint32_t *k = r->key;

	*k++ = r->view->cls[u];
	*k++ = r->pick[u];
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++) {
		*k++ = r->side[s].cls << 1 | r->side[s].is_v;
		*k++ = r->pick[r->side[s].other];
	}
	return (size_t)(k - r->key) * sizeof *k;
}

static uint32_t best_state(struct run *r, ap_id u)
{
	const struct ap_rec_view *v = r->view;
	struct ap_rec_list list = v->beside(v->self, v->cls[u], r->pick[u]);
	uint32_t best = r->pick[u];
	struct score least = weigh(r, u, best);

	for (uint32_t i = 0; i < list.n; i++) {
		struct score score = weigh(r, u, list.state[i]);

		if (less(&score, &least)) {
			least = score;
			best = list.state[i];
		}
	}
	return best;
}

static bool move_node(struct run *r, ap_id u)
{
	uint32_t state;
	size_t len = surroundings(r, u);
	bool fresh;
	ap_id id = ap_map_put(r->memo, r->key, len, &fresh);

	if (fresh)
		AP_PUSH(r->ctx->scratch, r->answer, best_state(r, u));
	state = r->answer.v[id];
	r->dirty[u] = false;
	if (state == r->pick[u])
		return false;
	r->pick[u] = state;
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++)
		r->dirty[r->side[s].other] = true;
	return true;
}

/* Moves one node at a time, alternately forward and backward. Returns true if a node moved. */
static bool sweep(struct run *r)
{
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	uint32_t n = r->view->n;
	bool moved = true, any = false;

	r->memo = ap_map_create(r->ctx->scratch);
	r->answer.v = NULL;
	r->answer.n = r->answer.cap = 0;
	memset(r->dirty, true, n * sizeof *r->dirty);
	for (int pass = 0; pass < SWEEPS && moved; pass++) {
		moved = false;
		for (uint32_t i = 0; i < n && !(i % POLL == 0 && spent(r)); i++) {
			ap_id u = pass % 2 ? n - 1 - i : i;

			moved |= r->dirty[u] && move_node(r, u);
		}
		any |= moved;
	}
	ap_arena_release(r->ctx->scratch, mark);
	return any;
}

/* Repeats of a level that moved nothing are skipped. */
static void cut_levels(struct run *r, struct score *total)
{
	const struct ap_rec_view *v = r->view;
	bool moved = true;

	for (uint32_t l = 0; l < v->nlevel && !spent(r); l++)
		if (moved || v->prime[l] != v->prime[l - 1])
			moved = run_pass(r, v->prime[l], false, total);
}

enum { STEPS = 12, OCTAVES = 20, SQUEEZES = 16, LARGE = 8, SQUEEZE_POLL = 256 };
enum { MOST = 1 << 22, ENOUGH = 1 << 20 }; /* work before stopping is heeded, until something
		fits; once it does */

struct solving {
	struct run r;
	int64_t limit;
	uint32_t *best; /* NULL: none fits yet */
	double best_s;
	uint32_t *leanest;
	int64_t least; /* its bytes plus temporary */
	bool first; /* the first pick that fits is enough */
	uint32_t forbidden; /* number in the leanest */
};

struct figures {
	struct score sum;
	int64_t temporary;
	bool fits;
};

static struct figures measure(struct solving *s)
{
	struct figures f;

	struct rates rates = s->r.rates;

	s->r.rates = (struct rates){0};
	f.sum = total_of(&s->r, &f.temporary);
	s->r.rates = rates;
	f.fits = f.sum.forbidden == 0 &&
		(s->limit == AP_NO_LIMIT || f.sum.bytes + f.temporary <= s->limit);
	return f;
}

static uint32_t *copy(struct solving *s)
{
	return ap_arena_memdup(s->r.ctx->arena, s->r.pick, s->r.view->n * sizeof *s->r.pick);
}

/* Keeps the pick if it is the cheapest that fits, or the leanest. */
static void keep(struct solving *s, const struct figures *f)
{
	int64_t need = f->sum.bytes + f->temporary;

	if (f->fits && (!s->best || f->sum.cost < s->best_s)) {
		s->best = copy(s);
		s->best_s = f->sum.cost;
		if (s->r.patience > ENOUGH)
			s->r.patience = ENOUGH;
	}
	if (!s->leanest || f->sum.forbidden < s->forbidden ||
		(f->sum.forbidden == s->forbidden && need < s->least)) {
		s->leanest = copy(s);
		s->least = need;
		s->forbidden = f->sum.forbidden;
	}
}

static struct figures run(struct solving *s, double byte, double over, int64_t cap)
{
	struct figures f;
	struct run *r = &s->r;
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct score total;
	int still = 0;
	struct ap_arena *a = r->ctx->scratch;

	r->rates = (struct rates){byte, over, cap};
	reset(r);
	/* memory of passes is valid as long as the rates */
	r->pass = AP_NEW(a, struct pass);
	*r->pass = (struct pass){.r = r, .a = a, .sets = ap_map_create(a),
		.vectors = ap_map_create(a), .messages = ap_map_create(a),
		.rests = ap_map_create(a), .decisions = ap_map_create(a)};
	total = total_of(r, NULL);
	cut_levels(r, &total);
	for (int i = 0; i < PASSES && still < 2 && !spent(r); i++) {
		bool moved = run_pass(r, 0, i % 2 == 0, &total);

		if (!moved && sweep(r)) {
			moved = true;
			total = total_of(r, NULL);
		}
		still = moved ? 0 : still + 1;
	}
	ap_arena_release(r->ctx->scratch, mark);
	f = measure(s);
	keep(s, &f);
	return f;
}

/* Moves a node if that is cheaper and still fits: a uniform price of bytes leaves some room
 * unused. */
static bool squeeze_node(struct solving *s, ap_id u, struct figures *f)
{
	struct run *r = &s->r;
	struct ap_rec_list list = r->view->beside(r->view->self, r->view->cls[u], r->pick[u]);
	struct score now, least;
	uint32_t best = r->pick[u];

	if (list.n == 0)
		return false;
	now = least = weigh(r, u, best);
	for (uint32_t i = 0; i < list.n; i++) {
		struct score score = weigh(r, u, list.state[i]);
		int64_t temporary = r->view->node(r->view->self, r->view->cls[u],
			list.state[i]).temporary;

		if (temporary < f->temporary)
			temporary = f->temporary;
		if (less(&score, &least) &&
			f->sum.bytes - now.bytes + score.bytes + temporary <= s->limit) {
			least = score;
			best = list.state[i];
		}
	}
	if (best == r->pick[u])
		return false;
	r->pick[u] = best;
	f->sum.bytes += least.bytes - now.bytes;
	if (r->view->node(r->view->self, r->view->cls[u], best).temporary > f->temporary)
		f->temporary = r->view->node(r->view->self, r->view->cls[u], best).temporary;
	return true;
}

static void squeeze(struct solving *s)
{
	struct run *r = &s->r;
	struct figures f;
	bool moved = true;

	memcpy(r->pick, s->best, r->view->n * sizeof *r->pick);
	r->rates = (struct rates){0};
	for (int pass = 0; pass < SQUEEZES && moved; pass++) {
		moved = false;
		f = measure(s);
		for (ap_id u = 0; u < r->view->n; u++) {
			if (u % SQUEEZE_POLL == 0 && spent(r))
				break;
			moved |= squeeze_node(s, u, &f);
		}
	}
	f = measure(s);
	keep(s, &f);
}

/* Finds a price of bytes: high enough for the limit, then bisected in its logarithm. */
static void price_bytes(struct solving *s, double scale, int64_t cap)
{
	double lo = ldexp(scale, -OCTAVES), hi = ldexp(scale, OCTAVES), most = hi;

	if (!run(s, hi, most, cap).fits)
		return;
	for (int i = 0; i < STEPS && !s->first && !spent(&s->r); i++) {
		double mid = sqrt(lo * hi);

		if (run(s, mid, most, cap).fits)
			hi = mid;
		else
			lo = mid;
	}
}

/* Searches picks within the limit if the fastest exceeds it. Sums have one price; a large temporary
 * is also tried under caps, charging only the excess. */
static void fit(struct solving *s, const struct figures *fastest)
{
	double scale;
	struct figures start;
	int64_t cap[] = {s->limit, fastest->temporary / 2, fastest->temporary / 4};
	int ncap = fastest->temporary > s->limit / LARGE ? 3 : 1;
	struct figures f;

	/* rough seconds per byte, whatever the sign of costs */
	reset(&s->r);
	start = measure(s);
	scale = (fabs(start.sum.cost) + fabs(fastest->sum.cost) + s->r.view->quantum) /
		((double)llabs(fastest->sum.bytes) + (double)fastest->temporary + 1);
	for (int i = 0; i < ncap && !(s->first && s->best) && !spent(&s->r); i++)
		if (cap[i] <= s->limit && !run(s, 0, ldexp(scale, OCTAVES), cap[i]).fits)
			price_bytes(s, scale, cap[i]);
	if (s->best || spent(&s->r))
		return;
	f = run(s, ldexp(scale, OCTAVES), ldexp(scale, OCTAVES), s->limit);
	if (s->limit > f.sum.bytes)
		price_bytes(s, scale, s->limit - f.sum.bytes);
}

static void report(struct solving *s, struct ap_rec_result *out)
{
	struct figures f;

	memcpy(s->r.pick, s->best ? s->best : s->leanest, s->r.view->n * sizeof *s->r.pick);
	f = measure(s);
	*out = (struct ap_rec_result){.pick = copy(s), .allowed = f.sum.forbidden == 0,
		.fits = f.fits, .s = f.sum.forbidden > 0 ? INFINITY : f.sum.cost,
		.bytes = f.sum.bytes, .temporary = f.temporary, .work = s->r.work};
}

void ap_rec_solve(struct ap_ctx *ctx, const struct ap_rec_view *view,
	const struct ap_rec_limits *limits, struct ap_rec_result *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct solving s = {.limit = limits->bytes, .first = limits->first};
	struct figures f;
	struct run *r = &s.r;
	struct ap_arena *a = ctx->scratch;
	uint32_t most = 0;

	s.r.most_work = limits->work;
	r->ctx = ctx;
	r->view = view;
	list_sides(r);
	join_groups(r);
	r->pick = AP_NEW_N(a, uint32_t, view->n);
	r->before = AP_NEW_N(a, uint32_t, view->n);
	r->set_of = AP_NEW_N(a, uint32_t, view->n);
	r->rest_of = AP_NEW_N(a, uint32_t, view->n);
	r->share = AP_NEW_N(a, uint32_t, view->n);
	r->torn = AP_NEW_N(a, bool, view->n);
	r->dirty = AP_NEW_N(a, bool, view->n);
	for (ap_id i = 0; i < view->n; i++)
		if (r->first[i + 1] - r->first[i] > most)
			most = r->first[i + 1] - r->first[i];
	r->key = AP_NEW_N(a, uint32_t, 2 + 4 * (size_t)most);
	f = run(&s, 0, 0, 0);
	if (!f.fits && f.sum.forbidden == 0) {
		s.r.patience = limits->insist ? MOST : 0;
		fit(&s, &f);
		if (s.best && !s.first)
			squeeze(&s);
	}
	report(&s, out);
	ap_arena_release(ctx->scratch, mark);
}
