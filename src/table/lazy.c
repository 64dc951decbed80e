/* SPDX-License-Identifier: Apache-2.0 */
#include "table/lazy.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/space.h"
#include "shard/strategy.h"

#define FEW_MOVES (1u << 7) /* powers of two: the cache is of the size that the graph can fill */
#define MOST_MOVES (1u << 15)
#define AP_LAZY_PRIMES 8 /* distinct prime divisors of a number up to 2^20 */

struct ap_map;

struct lazy_known { /* a list, once it has been computed */
	bool known;
	struct ap_lazy_list list;
};

struct lazy_entry {
	struct ap_lazy_state pub;
	uint32_t *layout; /* [nin + nout] ids */
	uint32_t strategy; /* id; AP_NONE until needed */
	struct lazy_known further[AP_LAZY_PRIMES], beside;
};

struct lazy_class {
	const struct ap_task *task;
	const int32_t *fixed;
	struct ap_map *counts; /* counts looked up so far */
	AP_VEC(uint32_t) state_of; /* state by index in counts; AP_NONE: no candidate */
	AP_VEC(struct lazy_entry *) states;
};

struct lazy_bond {
	enum ap_bond_type type;
	uint32_t cls_u, cls_v;
	uint32_t slot_u, slot_v; /* indices into the states' layouts */
	uint32_t flow; /* id of the flow of one copy in flight */
	bool sent; /* of a flow: to another number of devices, which equal layouts cost as well */
	int64_t copies; /* number of copies kept */
};

struct lazy_remembered {
	uint32_t flow, a, b; /* flow: from 1 on; 0: not used */
	struct ap_lazy_move move;
};

struct ap_lazy {
	struct ap_ctx ctx; /* shares the run's arena and scratch */
	struct ap_arena *arena; /* owned */
	const struct ap_machine *m;
	const struct ap_step *step;
	struct ap_pricer *pricer;
	int nprime;
	int32_t prime[AP_LAZY_PRIMES]; /* divisors of the number of devices, ascending */
	uint32_t *class_of;
	AP_VEC(struct lazy_class) classes;
	AP_VEC(struct ap_lazy_link) links;
	AP_VEC(struct lazy_bond) bonds;
	struct ap_map *flows, *layouts, *strategies; /* interned by content */
	struct lazy_remembered *moves; /* [nmove] cache of the latest moves, by hash */
	uint32_t nmove;
	struct ap_map *matches;
	AP_VEC(struct ap_lazy_list) match;
};

enum { MOST_VECTORS = 32 }; /* limit of one strategy */

/* The number of devices that operators of such a task run on. */
static int64_t devices_of(const struct ap_lazy *l, const struct ap_task *t)
{
	return ap_machine_at(l->m, t->block)->ndev;
}

static bool divides(const struct ap_lazy *l, const struct ap_task *t, const int32_t *count)
{
	const struct ap_bound *b = t->bound;
	int64_t rest = devices_of(l, t);

	for (int f = 0; f < b->nfactor; f++) {
		int32_t parts = ap_rule_parts(count[f]);

		if (ap_factor_extent(b, f, l->step) % parts || rest % parts)
			return false;
		rest /= parts;
	}
	return true;
}

static bool legal(struct ap_lazy *l, const struct ap_task *t, const int32_t *count)
{
	return divides(l, t, count) &&
		ap_space_legal(&l->ctx, t->bound, count, devices_of(l, t), l->step, NULL);
}

struct lazy_end { /* of an edge, up to what is used of it */
	struct ap_layout layout;
	struct ap_axes partial; /* of an operand: over which its gradient is */
};

static uint32_t layout_id(struct ap_lazy *l, const struct ap_placement *p,
	const struct ap_operand *t)
{
	struct ap_layout layout = {0};

	ap_layout_make(p, t, &layout);
	return ap_map_put(l->layouts, &layout,
		offsetof(struct ap_layout, dim) + (size_t)layout.rank * sizeof *layout.dim, NULL);
}

static uint32_t operand_id(struct ap_lazy *l, const struct ap_task *t, int i, const struct ap_placement *p)
{
	struct lazy_end end = {0};

	ap_gradient_partial(t, i, p, l->step, &end.partial);
	if (end.partial.n == 0)
		return layout_id(l, p, &t->bound->in[i]);
	ap_layout_make(p, &t->bound->in[i], &end.layout);
	return ap_map_put(l->layouts, &end, offsetof(struct lazy_end, partial.axis) +
		(size_t)end.partial.n * sizeof *end.partial.axis, NULL);
}

/* Does the operator hold a parameter that it reads twice in a single layout? */
static bool holds_alike(const struct ap_task *t, const uint32_t *layout)
{
	for (uint16_t i = 0; i < t->bound->nin; i++)
		if (t->in[i].kind == AP_TENSOR_PARAM && layout[i] != layout[t->in[i].twin])
			return false;
	return true;
}

static struct lazy_entry *price(struct ap_lazy *l, const struct ap_task *t,
	const int32_t *count)
{
	const struct ap_bound *b = t->bound;
	struct lazy_entry *e = AP_NEW(l->arena, struct lazy_entry);
	int32_t *counts = AP_NEW_N(l->arena, int32_t, AP_MAX_FACTOR);
	struct ap_placement p;
	struct ap_op_cost oc;

	for (int f = 0; f < AP_MAX_FACTOR; f++)
		counts[f] = f < b->nfactor ? count[f] : 1;
	ap_placement_make(b, counts, devices_of(l, t), &p);
	ap_op_cost_make(l->pricer, t, &p, &oc);
	oc.lent_bytes = oc.read_bytes = 0; /* counted in full: what fits must really fit */
	e->layout = AP_NEW_N(l->arena, uint32_t, b->nin + b->nout);
	for (uint16_t i = 0; i < b->nin; i++)
		e->layout[i] = operand_id(l, t, i, &p);
	for (uint16_t o = 0; o < b->nout; o++)
		e->layout[b->nin + o] = layout_id(l, &p, &b->out[o]);
	e->strategy = AP_NONE;
	e->pub = (struct ap_lazy_state){.count = counts,
		.cost_s = holds_alike(t, e->layout) ? ap_op_cost_total_s(&oc, l->step) : INFINITY,
		.memory = ap_op_cost_memory_bytes(&oc, t), .temporary = oc.temporary_bytes};
	return e;
}

uint32_t ap_lazy_find(struct ap_lazy *l, uint32_t cls, const int32_t *count)
{
	struct lazy_class *c = &l->classes.v[cls];
	const struct ap_bound *b = c->task->bound;
	uint32_t state = AP_NONE;
	bool fresh;
	ap_id id = ap_map_put(c->counts, count, b->nfactor * sizeof *count, &fresh);

	if (!fresh)
		return c->state_of.v[id];
	if (legal(l, c->task, count) &&
		(c->fixed || ap_space_wanted(b, count, devices_of(l, c->task), l->step))) {
		state = (uint32_t)c->states.n;
		AP_PUSH(l->arena, c->states, price(l, c->task, count));
	}
	AP_PUSH(l->arena, c->state_of, state);
	return state;
}

const struct ap_lazy_state *ap_lazy_state(const struct ap_lazy *l, uint32_t cls, uint32_t state)
{
	return &l->classes.v[cls].states.v[state]->pub;
}

/* Id of a state's strategy vectors. */
static uint32_t lazy_strategy(struct ap_lazy *l, uint32_t cls, uint32_t state)
{
	struct lazy_class *c = &l->classes.v[cls];
	struct lazy_entry *e = c->states.v[state];
	int32_t cut[MOST_VECTORS][AP_MAX_RANK] = {{0}};
	uint8_t rank[MOST_VECTORS];
	struct ap_placement p;
	uint32_t n;

	if (e->strategy != AP_NONE)
		return e->strategy;
	ap_placement_make(c->task->bound, e->pub.count, devices_of(l, c->task), &p);
	n = ap_space_to_strategy(&p, rank, cut, MOST_VECTORS);
	n = n < MOST_VECTORS ? n : MOST_VECTORS; /* ap_task_tie() ignores the vectors beyond, too */
	e->strategy = ap_map_put(l->strategies, cut, n * sizeof *cut, NULL);
	return e->strategy;
}

static void read_end(const struct ap_lazy *l, uint32_t id, struct lazy_end *out)
{
	size_t len;
	const char *key = ap_map_key(l->layouts, id, &len);

	*out = (struct lazy_end){0};
	memcpy(out, key, len);
}

static struct ap_lazy_move price_flow(struct ap_lazy *l, uint32_t flow, uint32_t a, uint32_t b)
{
	struct lazy_end from, to;
	struct ap_move_cost mc;
	struct ap_flow f;

	memcpy(&f, ap_map_key(l->flows, flow, NULL), sizeof f);
	read_end(l, a, &from);
	read_end(l, b, &to);
	ap_move_cost_make(l->pricer, &f, &from.layout, &to.layout, &to.partial, &mc);
	return (struct ap_lazy_move){mc.objective_s, mc.kept_bytes};
}

static struct ap_lazy_move flow_move(struct ap_lazy *l, uint32_t flow, bool is_sent, uint32_t a, uint32_t b)
{
	const uint32_t key[] = {flow, a, b};
	struct lazy_remembered *r;

	if (a == b && !is_sent)
		return (struct ap_lazy_move){0, 0};
	r = &l->moves[ap_hash(key, sizeof key, 0) & (l->nmove - 1)];
	if (r->flow != flow + 1 || r->a != a || r->b != b)
		*r = (struct lazy_remembered){flow + 1, a, b, price_flow(l, flow, a, b)};
	return r->move;
}

struct ap_lazy_move ap_lazy_move(struct ap_lazy *l, uint32_t bond, uint32_t a, uint32_t b)
{
	const struct lazy_bond *x = &l->bonds.v[bond];
	uint32_t la, lb;

	if (x->type == AP_BOND_SAME) {
		const struct lazy_class *u = &l->classes.v[x->cls_u], *v = &l->classes.v[x->cls_v];
		uint8_t nu = u->task->bound->nfactor, nv = v->task->bound->nfactor;
		bool same = nu == nv && memcmp(u->states.v[a]->pub.count, v->states.v[b]->pub.count,
			nu * sizeof *u->states.v[a]->pub.count) == 0;

		return (struct ap_lazy_move){same ? 0 : INFINITY, 0};
	}
	if (x->type == AP_BOND_STRATEGY) {
		la = lazy_strategy(l, x->cls_u, a);
		lb = lazy_strategy(l, x->cls_v, b);
	} else {
		la = l->classes.v[x->cls_u].states.v[a]->layout[x->slot_u];
		lb = l->classes.v[x->cls_v].states.v[b]->layout[x->slot_v];
	}
	if (x->type == AP_BOND_FLOW) {
		struct ap_lazy_move one = flow_move(l, x->flow, x->sent, la, lb);

		return (struct ap_lazy_move){one.cost_s, one.kept_bytes * x->copies};
	}
	if (x->type == AP_BOND_FOLLOW && la != lb) {
		struct lazy_end from, to;

		read_end(l, la, &from);
		read_end(l, lb, &to);
		return (struct ap_lazy_move){ap_layout_equal(&from.layout, &to.layout) ? 0 : INFINITY, 0};
	}
	return (struct ap_lazy_move){la == lb ? 0 : INFINITY, 0};
}

const uint32_t *ap_lazy_classes(const struct ap_lazy *l)
{
	return l->class_of;
}

uint32_t ap_lazy_links(const struct ap_lazy *l, const struct ap_lazy_link **out)
{
	*out = l->links.v;
	return (uint32_t)l->links.n;
}

static struct lazy_bond bond_of(struct ap_lazy *l, const struct ap_joint *link)
{
	struct lazy_bond b = {.type = link->type, .cls_u = l->class_of[link->u],
		.cls_v = l->class_of[link->v], .slot_u = link->slot_u, .slot_v = link->slot_v};

	if (b.type == AP_BOND_FLOW || b.type == AP_BOND_FOLLOW)
		b.slot_u += l->classes.v[b.cls_u].task->bound->nin;
	if (b.type == AP_BOND_FLOW) {
		struct ap_flow one = link->flow;

		b.copies = one.again ? 1 : one.in_flight;
		one.in_flight = 1;
		b.sent = one.sent;
		b.flow = ap_map_put(l->flows, &one, sizeof one, NULL);
	}
	return b;
}

struct linking {
	struct ap_lazy *l;
	struct ap_map *bonds; /* interned by content */
};

static void add_link(void *user, const struct ap_joint *j)
{
	struct linking *k = user;
	struct ap_lazy *l = k->l;
	struct lazy_bond b = bond_of(l, j);
	const uint32_t key[] = {(uint32_t)b.type, b.cls_u, b.cls_v, b.slot_u, b.slot_v, b.flow,
		(uint32_t)b.copies};
	struct ap_lazy_link link = {.u = j->u, .v = j->v, .strict = b.type != AP_BOND_FLOW};
	bool fresh;

	if (b.type == AP_BOND_FOLLOW && l->classes.v[b.cls_u].fixed)
		return; /* a given cut follows no other */
	link.bond = ap_map_put(k->bonds, key, sizeof key, &fresh);
	if (fresh)
		AP_PUSH(l->arena, l->bonds, b);
	AP_PUSH(l->arena, l->links, link);
}

/* The different primes of the machine's axes, ascending. */
static void add_primes(struct ap_lazy *l)
{
	int32_t last = 1;

	for (;;) {
		int32_t next = INT32_MAX;

		for (int i = 0; i < l->m->naxis; i++)
			if (l->m->axis[i].size > last && l->m->axis[i].size < next)
				next = l->m->axis[i].size;
		if (next == INT32_MAX || l->nprime == AP_LAZY_PRIMES)
			return;
		l->prime[l->nprime++] = last = next;
	}
}

struct ap_lazy *ap_lazy_create(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *fixed)
{
	struct ap_arena *arena = ap_arena_create_like(ctx->arena);
	struct ap_lazy *l = AP_NEW(arena, struct ap_lazy);
	struct linking k = {.l = l};
	const struct ap_task *task;
	struct ap_map *seen;

	*l = (struct ap_lazy){.ctx = *ctx, .arena = arena, .m = m, .step = step};
	l->ctx.arena = arena;
	l->pricer = ap_pricer_create(arena, m, step);
	l->flows = ap_map_create(arena);
	l->layouts = ap_map_create(arena);
	l->strategies = ap_map_create(arena);
	for (l->nmove = FEW_MOVES; l->nmove < MOST_MOVES && l->nmove < 64 * (uint64_t)g->nnode;)
		l->nmove *= 2;
	l->moves = AP_NEW_N(arena, struct lazy_remembered, l->nmove);
	l->matches = ap_map_create(arena);
	add_primes(l);
	ap_tasks_make(&l->ctx, g, step, &task);
	seen = ap_map_create(l->arena);
	l->class_of = AP_NEW_N(l->arena, uint32_t, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++) {
		struct lazy_class c = {.task = &task[i], .fixed = fixed ? fixed[i] : NULL};
		struct ap_mark mark = ap_arena_mark(l->ctx.scratch);
		bool fresh;
		size_t len, more = c.fixed ? c.task->bound->nfactor * sizeof *c.fixed : 0;
		const void *sig = ap_task_signature(&l->ctx, c.task, &len);
		char *key = ap_arena_alloc_raw(l->ctx.scratch, 1, len + more + 1);

		/* The task's signature and, for a fixed node, its counts. */
		memcpy(key, sig, len);
		if (more > 0)
			memcpy(key + len, c.fixed, more);
		l->class_of[i] = ap_map_put(seen, key, len + more, &fresh);
		ap_arena_release(l->ctx.scratch, mark);
		if (!fresh)
			continue;
		c.counts = ap_map_create(l->arena);
		AP_PUSH(l->arena, l->classes, c);
	}
	k.bonds = ap_map_create(arena);
	ap_joints_each(&l->ctx, g, task, step, add_link, &k);
	return l;
}

void ap_lazy_destroy(struct ap_lazy *l)
{
	ap_arena_destroy(l->arena);
}

struct found { /* a set of states */
	struct ap_lazy *l;
	uint32_t cls, self;
	AP_VEC(uint32_t) list;
};

static void offer_as_is(struct found *f, const int32_t *count)
{
	uint32_t s = ap_lazy_find(f->l, f->cls, count);

	if (s == AP_NONE || s == f->self)
		return;
	for (size_t i = 0; i < f->list.n; i++)
		if (f->list.v[i] == s)
			return;
	AP_PUSH(f->l->arena, f->list, s);
}

static void offer(struct found *f, const int32_t *count)
{
	offer_as_is(f, count);
	if (f->l->step->fully_use) {
		const struct ap_task *t = f->l->classes.v[f->cls].task;
		const struct ap_bound *b = t->bound;
		int64_t left = devices_of(f->l, t);

		/* If all devices must be used: offers the counts with the devices left over dealt
		 * to the factors in turn, starting from each factor. */
		for (int i = 0; i < b->nfactor; i++)
			left = left % count[i] ? 1 : left / count[i];
		for (int first = 0; left > 1 && first < b->nfactor; first++) {
			int32_t full[AP_MAX_FACTOR];
			int64_t rest = left;

			memcpy(full, count, b->nfactor * sizeof *full);
			for (int i = 0; i < b->nfactor; i++) {
				int to = b->dev[(first + i) % b->nfactor];
				int32_t more = (int32_t)ap_gcd(ap_factor_extent(b, to,
					f->l->step) / full[to], rest);

				full[to] *= more;
				rest /= more;
			}
			offer_as_is(f, full);
		}
	}
}

static struct ap_lazy_list listed(const struct found *f)
{
	return (struct ap_lazy_list){(uint32_t)f->list.n, f->list.v};
}

uint32_t ap_lazy_start(struct ap_lazy *l, uint32_t cls)
{
	const int32_t *fixed = l->classes.v[cls].fixed;
	int32_t count[AP_MAX_FACTOR];

	ap_space_start(l->classes.v[cls].task->bound, devices_of(l, l->classes.v[cls].task), count);
	return ap_lazy_find(l, cls, fixed ? fixed : count);
}

static void find_further(struct found *f, const int32_t *count, int32_t prime)
{
	const struct ap_bound *b = f->l->classes.v[f->cls].task->bound;
	int32_t to[AP_MAX_FACTOR];

	for (int i = 0; i < b->ndev; i++) {
		memcpy(to, count, sizeof to);
		to[b->dev[i]] *= prime;
		offer(f, to);
	}
}

struct ap_lazy_list ap_lazy_further(struct ap_lazy *l, uint32_t cls, uint32_t state, int32_t prime)
{
	struct lazy_entry *e = l->classes.v[cls].states.v[state];
	struct found f = {.l = l, .cls = cls, .self = state};
	int i = 0;

	while (i < l->nprime && l->prime[i] != prime)
		i++;
	if (i == l->nprime) /* of more primes than are looked at */
		return (struct ap_lazy_list){0};
	if (!e->further[i].known && !l->classes.v[cls].fixed)
		find_further(&f, e->pub.count, prime);
	if (!e->further[i].known)
		e->further[i] = (struct lazy_known){true, listed(&f)};
	return e->further[i].list;
}

/* Places that parts can move between: the factors, and the repeat after them. */
struct places {
	int n;
	int32_t parts[AP_MAX_FACTOR + 1];
};

static void shift(struct found *f, const struct places *p, int from, int to, int32_t by)
{
	int32_t count[AP_MAX_FACTOR + 1];

	memcpy(count, p->parts, sizeof count);
	count[from] /= by;
	count[to] *= by;
	offer(f, count);
}

/* The largest number of parts that can move from `from` to `to`; 1 if none. */
static int32_t all_of(const struct found *f, const struct places *p, int from, int to)
{
	const struct ap_bound *b = f->l->classes.v[f->cls].task->bound;

	if (to == b->nfactor)
		return p->parts[from];
	return (int32_t)ap_gcd(ap_factor_extent(b, to, f->l->step) / p->parts[to], p->parts[from]);
}

/* Cuts two factors further at once, in case one alone does not pay. */
static void pairs(struct found *f, const struct places *p, int32_t by)
{
	int32_t count[AP_MAX_FACTOR + 1];

	for (int a = 0; a < p->n - 1; a++)
		for (int b = 0; b < a; b++) {
			memcpy(count, p->parts, sizeof count);
			count[a] *= by;
			count[b] *= by;
			offer(f, count);
		}
}

/* Offers no cut, and each single factor cut as far as possible: a way back from anywhere. */
static void corners(struct found *f, const struct ap_bound *b)
{
	int32_t count[AP_MAX_FACTOR];

	for (int i = 0; i < AP_MAX_FACTOR; i++)
		count[i] = 1;
	offer(f, count);
	for (int i = 0; i < b->ndev; i++) {
		int to = b->dev[i];

		count[to] = (int32_t)ap_gcd(ap_factor_extent(b, to, f->l->step),
			devices_of(f->l, f->l->classes.v[f->cls].task));
		offer(f, count);
		count[to] = 1;
	}
}

static void find_beside(struct found *f, const int32_t *count)
{
	const struct ap_lazy *l = f->l;
	const struct ap_bound *b = l->classes.v[f->cls].task->bound;
	struct places p = {.n = b->nfactor + 1};
	int64_t rest = devices_of(l, l->classes.v[f->cls].task);

	for (int i = 0; i < b->nfactor; i++) {
		p.parts[i] = count[i];
		rest /= count[i];
	}
	p.parts[b->nfactor] = (int32_t)rest;
	for (int from = 0; from < p.n; from++)
		for (int to = 0; to < p.n; to++) {
			int32_t all = from == to ? 1 : all_of(f, &p, from, to);

			for (int i = 0; i < l->nprime && all > 1; i++)
				if (all % l->prime[i] == 0)
					shift(f, &p, from, to, l->prime[i]);
			if (all > 1)
				shift(f, &p, from, to, all);
		}
	for (int i = 0; i < l->nprime; i++)
		if (rest % ((int64_t)l->prime[i] * l->prime[i]) == 0)
			pairs(f, &p, l->prime[i]);
	corners(f, b);
}

struct ap_lazy_list ap_lazy_beside(struct ap_lazy *l, uint32_t cls, uint32_t state)
{
	struct lazy_entry *e = l->classes.v[cls].states.v[state];
	struct found f = {.l = l, .cls = cls, .self = state};

	if (!e->beside.known && !l->classes.v[cls].fixed)
		find_beside(&f, e->pub.count);
	if (!e->beside.known)
		e->beside = (struct lazy_known){true, listed(&f)};
	return e->beside.list;
}

static uint32_t *all_states(struct ap_lazy *l, uint32_t cls, uint32_t *n)
{
	struct ap_mark mark = ap_arena_mark(l->ctx.scratch);
	const struct lazy_class *c = &l->classes.v[cls];
	struct ap_ctx ctx = l->ctx;
	struct ap_space space;
	uint32_t *state;

	if (c->fixed) {
		state = AP_NEW(l->arena, uint32_t);
		*state = ap_lazy_start(l, cls);
		*n = 1;
		return state;
	}
	ctx.arena = l->arena;
	ap_space_make(&ctx, c->task->bound, devices_of(l, c->task), l->step, &space);
	ap_arena_release(l->ctx.scratch, mark);
	state = AP_NEW_N(l->arena, uint32_t, space.n);
	for (uint32_t i = 0; i < space.n; i++)
		state[i] = ap_lazy_find(l, cls, space.count + (size_t)i * space.nfactor);
	*n = space.n;
	return state;
}

static struct ap_lazy_list find_matching(struct ap_lazy *l, uint32_t bond, bool of_v,
	uint32_t other)
{
	const struct lazy_bond *b = &l->bonds.v[bond];
	uint32_t n, kept = 0, *state = all_states(l, of_v ? b->cls_v : b->cls_u, &n);

	for (uint32_t i = 0; i < n; i++) {
		struct ap_lazy_move m = of_v ? ap_lazy_move(l, bond, other, state[i])
					     : ap_lazy_move(l, bond, state[i], other);

		if (m.cost_s == 0)
			state[kept++] = state[i];
	}
	return (struct ap_lazy_list){kept, state};
}

struct ap_lazy_list ap_lazy_matching(struct ap_lazy *l, uint32_t bond, bool of_v, uint32_t other)
{
	const uint32_t key[] = {bond, of_v, other};
	bool fresh;
	ap_id id = ap_map_put(l->matches, key, sizeof key, &fresh);

	if (fresh)
		AP_PUSH(l->arena, l->match, find_matching(l, bond, of_v, other));
	return l->match.v[id];
}
