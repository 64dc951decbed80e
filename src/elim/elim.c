/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/elim.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

struct link { /* a list of a node's factors; dead ones are unlinked when met */
	ap_id factor, next;
};

struct graph {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	bool share;
	double cap; /* limit of cells in a table */
	uint32_t *k;
	ap_id *like; /* by matrix: the first matrix with equal content */
	struct ap_map *symbols; /* how a table is made -> table */
	struct ap_map *lists; /* addresses of a node's lists -> index into table_of */
	struct ap_map *scopes; /* scope -> index into at_scope */
	struct ap_map *signatures; /* signatures of eliminations -> index into done */
	uint64_t serial; /* makes signatures differ if nothing is shared */
	AP_VEC(struct ap_etable) table;
	AP_VEC(ap_id) table_of;
	AP_VEC(struct ap_ereduction) reduction;
	AP_VEC(struct ap_efactor) factor;
	AP_VEC(bool) alive; /* by factor */
	AP_VEC(ap_id) at_scope; /* latest factor over this scope */
	AP_VEC(struct link) link;
	AP_VEC(ap_id) done; /* by signature: the table, or AP_NONE until made */
	AP_VEC(struct ap_estep) step;
	AP_VEC(ap_id) list; /* factors of the current node */
	AP_VEC(ap_id) clique; /* nodes of those factors, ascending */
	AP_VEC(struct ap_einput) input; /* the factors relative to the clique */
	AP_VEC(uint64_t) key; /* of a lookup */
	ap_id *own; /* by node: table of its costs */
	ap_id *head; /* by node: index into link */
	uint32_t *degree; /* by node: number of live factors */
	uint32_t *mark, stamp; /* by node: stamp of the latest gathering */
	uint32_t *place; /* by node: index in the clique, if in it */
	double work, cells;
	bool split;
};

enum { FEW = 32, SAMPLES = 16 };

static struct ap_arena *arena(const struct graph *g)
{
	return g->ctx->scratch;
}

/* ---- tables ---- */

/* Returns the table that g->key describes; makes it if new. */
static ap_id intern(struct graph *g, struct ap_etable t)
{
	bool fresh;
	if (!g->share)
		AP_PUSH(arena(g), g->key, ++g->serial);
	ap_id id = ap_map_put(g->symbols, g->key.v, g->key.n * sizeof *g->key.v, &fresh);
	if (fresh)
		AP_PUSH(arena(g), g->table, t);
	return id;
}

static void add_words(struct graph *g, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t word;
		memcpy(&word, (const char *)p + i * sizeof word, sizeof word);
		AP_PUSH(arena(g), g->key, word);
	}
}

static ap_id table_of_costs(struct graph *g, ap_id v, bool with_memory)
{
	const struct ap_pnode *node = &g->p->node[v];
	g->key.n = 0;
	AP_PUSH(arena(g), g->key, (uint64_t)AP_ET_NODE << 32 | node->k);
	AP_PUSH(arena(g), g->key, with_memory);
	add_words(g, node->cost, node->k);
	if (with_memory)
		add_words(g, node->memory, node->k);
	return intern(g, (struct ap_etable){AP_ET_NODE, v, 0, node->k});
}

/* Nodes with shared lists are identified by their addresses. */
static ap_id node_table(struct graph *g, ap_id v, bool by_memory)
{
	const struct ap_pnode *node = &g->p->node[v];
	struct { /* has no padding */
		const double *cost;
		const int64_t *memory;
		uint64_t k;
	} key = {node->cost, by_memory ? node->memory : NULL, node->k};
	bool fresh;
	ap_id id;
	if (!g->share)
		return table_of_costs(g, v, key.memory);
	id = ap_map_put(g->lists, &key, sizeof key, &fresh);
	if (fresh)
		AP_PUSH(arena(g), g->table_of, table_of_costs(g, v, key.memory));
	return g->table_of.v[id];
}

static ap_id derived_table(struct graph *g, enum ap_etable_kind kind, ap_id a, ap_id b,
	size_t cells)
{
	size_t before = g->table.n;
	g->key.n = 0;
	AP_PUSH(arena(g), g->key, (uint64_t)kind << 32 | a);
	AP_PUSH(arena(g), g->key, b);
	ap_id id = intern(g, (struct ap_etable){kind, a, b, cells});
	if (g->table.n > before && kind != AP_ET_MATRIX) {
		g->cells += (double)cells;
		g->work += kind == AP_ET_REDUCED ? 0 : (double)cells;
	}
	return id;
}

/* ---- factors ---- */

static void add_factor(struct graph *g, ap_id table, uint32_t nscope, const ap_id *scope)
{
	bool fresh;
	ap_id slot = ap_map_put(g->scopes, scope, nscope * sizeof *scope, &fresh);
	if (fresh)
		AP_PUSH(arena(g), g->at_scope, AP_NONE);
	ap_id there = g->at_scope.v[slot];
	if (there != AP_NONE && g->alive.v[there]) {
		ap_id old = g->factor.v[there].table, low = old < table ? old : table;
		g->factor.v[there].table = derived_table(g, AP_ET_SUM, low, old + table - low,
			g->table.v[table].cells);
		return;
	}
	ap_id id = (ap_id)g->factor.n;
	struct ap_efactor f = {table, nscope,
		ap_arena_memdup(arena(g), scope, nscope * sizeof *scope)};
	AP_PUSH(arena(g), g->factor, f);
	AP_PUSH(arena(g), g->alive, true);
	g->at_scope.v[slot] = id;
	for (uint32_t i = 0; i < nscope; i++) {
		struct link link = {id, g->head[scope[i]]};
		g->head[scope[i]] = (ap_id)g->link.n;
		AP_PUSH(arena(g), g->link, link);
		g->degree[scope[i]]++;
	}
}

static bool same_words(const void *a, const void *b, size_t n)
{
	return a == b || (a && b && memcmp(a, b, n * sizeof(uint64_t)) == 0);
}

static bool same_matrix(const struct ap_pmatrix *a, const struct ap_pmatrix *b, bool by_memory)
{
	size_t cells = (size_t)a->rows * a->cols;
	return a->rows == b->rows && a->cols == b->cols && same_words(a->cost, b->cost, cells) &&
		(!by_memory || same_words(a->memory, b->memory, cells));
}

/* A key that differs for most matrices: shape and a few numbers. */
static void sample_matrix(struct graph *g, const struct ap_pmatrix *m)
{
	size_t cells = (size_t)m->rows * m->cols, part = cells / SAMPLES + 1;
	g->key.n = 0;
	AP_PUSH(arena(g), g->key, (uint64_t)m->rows << 32 | m->cols);
	for (size_t i = 0; i < cells; i += part)
		add_words(g, m->cost + i, 1);
}

/* Compares each matrix with those of equal sample, which are chained from the latest. */
static void find_like(struct graph *g, bool by_memory)
{
	struct ap_map *samples = ap_map_create(arena(g));
	ap_id *latest = AP_NEW_N(arena(g), ap_id, g->p->nmatrix);
	ap_id *other = AP_NEW_N(arena(g), ap_id, g->p->nmatrix);
	g->like = AP_NEW_N(arena(g), ap_id, g->p->nmatrix);
	for (ap_id i = 0; i < g->p->nmatrix; i++) {
		const struct ap_pmatrix *m = &g->p->matrix[i];
		bool fresh;
		sample_matrix(g, m);
		ap_id slot = ap_map_put(samples, g->key.v, g->key.n * sizeof *g->key.v, &fresh);
		ap_id like = fresh ? AP_NONE : latest[slot];
		while (like != AP_NONE && !same_matrix(m, &g->p->matrix[like], by_memory))
			like = other[like];
		g->like[i] = like == AP_NONE ? i : like;
		if (like != AP_NONE)
			continue;
		other[i] = fresh ? AP_NONE : latest[slot];
		latest[slot] = i;
	}
}

static void add_edge(struct graph *g, const struct ap_pedge *e)
{
	bool flip = e->u > e->v;
	ap_id scope[2] = {flip ? e->v : e->u, flip ? e->u : e->v};
	size_t cells = (size_t)g->k[e->u] * g->k[e->v];
	add_factor(g, derived_table(g, flip ? AP_ET_FLIPPED : AP_ET_MATRIX, g->like[e->matrix], 0,
		cells), 2, scope);
}

/* Makes the factors of p: one per node, and one per pair of nodes joined by edges. */
static void graph_init(struct graph *g, struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options, double cap)
{
	*g = (struct graph){.ctx = ctx, .p = p, .share = !options->no_share, .cap = cap};
	g->symbols = ap_map_create(ctx->scratch);
	g->lists = ap_map_create(ctx->scratch);
	g->scopes = ap_map_create(ctx->scratch);
	g->signatures = ap_map_create(ctx->scratch);
	g->k = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	g->own = AP_NEW_N(ctx->scratch, ap_id, p->n);
	g->head = AP_NEW_N(ctx->scratch, ap_id, p->n);
	g->degree = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	g->mark = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	g->place = AP_NEW_N(ctx->scratch, uint32_t, p->n);
	for (ap_id v = 0; v < p->n; v++) {
		g->k[v] = p->node[v].k;
		g->head[v] = AP_NONE;
		g->own[v] = node_table(g, v, options->by_memory);
		add_factor(g, g->own[v], 1, &v);
	}
	find_like(g, options->by_memory);
	for (uint32_t i = 0; i < p->nedge; i++)
		add_edge(g, &p->edge[i]);
}

/* ---- cliques ---- */

static void start_clique(struct graph *g, ap_id v)
{
	g->clique.n = 0;
	g->stamp++;
	g->mark[v] = g->stamp;
	AP_PUSH(arena(g), g->clique, v);
}

/* Adds a scope to the clique; returns by which factor its cells grow. */
static double join(struct graph *g, const struct ap_efactor *f)
{
	double grow = 1;
	for (uint32_t i = 0; i < f->nscope; i++) {
		ap_id u = f->scope[i];
		if (g->mark[u] == g->stamp)
			continue;
		g->mark[u] = g->stamp;
		AP_PUSH(arena(g), g->clique, u);
		grow *= g->k[u];
	}
	return grow;
}

static int by_id(const void *a, const void *b)
{
	ap_id x = *(const ap_id *)a, y = *(const ap_id *)b;
	return (x > y) - (x < y);
}

/* Insertion sort: most cliques are small. */
static void sort_ids(ap_id *v, size_t n)
{
	if (n > FEW) {
		qsort(v, n, sizeof *v, by_id);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		ap_id id = v[i];
		size_t j = i;
		for (; j > 0 && v[j - 1] > id; j--)
			v[j] = v[j - 1];
		v[j] = id;
	}
}

static void sort_clique(struct graph *g)
{
	ap_id *v = g->clique.v;
	sort_ids(v, g->clique.n);
	for (size_t i = 0; i < g->clique.n; i++)
		g->place[v[i]] = (uint32_t)i;
}

/* Fills list and clique with the factors and neighbours of v; false once cells exceed cap. */
static bool gather(struct graph *g, ap_id v, double cap, double *cells)
{
	*cells = 1;
	g->list.n = 0;
	start_clique(g, v);
	for (ap_id *at = &g->head[v]; *at != AP_NONE;) {
		struct link *link = &g->link.v[*at];
		if (!g->alive.v[link->factor]) {
			*at = link->next;
			continue;
		}
		*cells *= join(g, &g->factor.v[link->factor]);
		if (*cells > cap)
			return false;
		AP_PUSH(arena(g), g->list, link->factor);
		at = &link->next;
	}
	sort_clique(g);
	return true;
}

/* ---- eliminations ---- */

static bool input_before(struct ap_einput a, struct ap_einput b)
{
	return a.mask != b.mask ? a.mask < b.mask : a.table < b.table;
}

/* Fills g->input with the factors of list, nodes given by clique index; sorted. */
static void make_inputs(struct graph *g, const ap_id *list, size_t n)
{
	g->input.n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct ap_efactor *f = &g->factor.v[list[i]];
		struct ap_einput input = {0, f->table};
		for (uint32_t j = 0; j < f->nscope; j++)
			input.mask |= UINT64_C(1) << g->place[f->scope[j]];
		AP_PUSH(arena(g), g->input, input);
		struct ap_einput *in = g->input.v;
		size_t j = i;
		for (; j > 0 && input_before(input, in[j - 1]); j--)
			in[j] = in[j - 1];
		in[j] = input;
	}
}

/* Index into done of the elimination of v (in the clique) from the factors of list. */
static ap_id sign(struct graph *g, ap_id v, const ap_id *list, size_t n)
{
	make_inputs(g, list, n);
	g->key.n = 0;
	AP_PUSH(arena(g), g->key, g->place[v]);
	if (!g->share)
		AP_PUSH(arena(g), g->key, v);
	for (size_t i = 0; i < n; i++) {
		AP_PUSH(arena(g), g->key, g->input.v[i].mask);
		AP_PUSH(arena(g), g->key, g->input.v[i].table);
	}
	bool fresh;
	ap_id id = ap_map_put(g->signatures, g->key.v, g->key.n * sizeof *g->key.v, &fresh);
	if (fresh)
		AP_PUSH(arena(g), g->done, AP_NONE);
	return id;
}

/* Signature (index into done) of eliminating v now, with its work in inner steps; AP_NONE if the
 * result would exceed the cap. */
static ap_id graph_signature(struct graph *g, ap_id v, double *work)
{
	double cells;
	if (!gather(g, v, g->cap, &cells))
		return AP_NONE;
	*work = cells * g->k[v];
	return sign(g, v, g->list.v, g->list.n);
}

/* The table that results from eliminating v from g->input. */
static ap_id reduce(struct graph *g, ap_id v, size_t cells)
{
	uint32_t width = (uint32_t)g->clique.n;
	uint32_t *dim = AP_NEW_N(arena(g), uint32_t, width);
	for (uint32_t i = 0; i < width; i++)
		dim[i] = g->k[g->clique.v[i]];
	struct ap_ereduction r = {
		.width = width,
		.at = g->place[v],
		.dim = dim,
		.ninput = (uint32_t)g->input.n,
		.input = ap_arena_memdup(arena(g), g->input.v, g->input.n * sizeof *g->input.v),
	};
	AP_PUSH(arena(g), g->reduction, r);
	g->work += (double)cells * g->k[v];
	return derived_table(g, AP_ET_REDUCED, (ap_id)g->reduction.n - 1, 0, cells);
}

static void retire(struct graph *g, ap_id factor)
{
	const struct ap_efactor *f = &g->factor.v[factor];
	g->alive.v[factor] = false;
	for (uint32_t i = 0; i < f->nscope; i++)
		g->degree[f->scope[i]]--;
}

/* Replaces the factors of list, which span the clique and have this signature, by one without v. */
static void step(struct graph *g, ap_id v, ap_id signature, const ap_id *list, size_t n)
{
	size_t cells = 1;
	uint32_t nscope = 0;
	ap_id *scope = AP_NEW_N(arena(g), ap_id, g->clique.n);
	for (size_t i = 0; i < g->clique.n; i++) {
		if (g->clique.v[i] != v) {
			scope[nscope++] = g->clique.v[i];
			cells *= g->k[g->clique.v[i]];
		}
	}
	if (g->done.v[signature] == AP_NONE) {
		make_inputs(g, list, n);
		g->done.v[signature] = reduce(g, v, cells);
	}
	for (size_t i = 0; i < n; i++)
		retire(g, list[i]);
	struct ap_estep s = {
		.node = v,
		.nscope = nscope, .scope = scope,
		.nfactor = (uint32_t)n, .factor = ap_arena_memdup(arena(g), list, n * sizeof *list),
		.result = g->done.v[signature],
	};
	AP_PUSH(arena(g), g->step, s);
	if (nscope)
		add_factor(g, s.result, nscope, scope);
}

/* Eliminates v in one step; signature is its current one. Leaves the nodes that were joined to v,
 * and v, in g->clique. */
static void graph_eliminate(struct graph *g, ap_id v, ap_id signature)
{
	double cells;
	bool whole = gather(g, v, INFINITY, &cells);
	assert(whole && cells <= g->cap);
	(void)whole;
	step(g, v, signature, g->list.v, g->list.n);
}

/* Makes the clique of v and as many factors from the front of list as the cap allows, at least one;
 * moves those to the start of list. */
static size_t take_part(struct graph *g, ap_id v, ap_id *list, size_t n)
{
	size_t taken = 0;
	double cells = 1;
	start_clique(g, v);
	for (size_t i = 0; i < n; i++) {
		const struct ap_efactor *f = &g->factor.v[list[i]];
		double grow = 1;
		for (uint32_t j = 0; j < f->nscope; j++)
			grow *= g->mark[f->scope[j]] == g->stamp ? 1 : g->k[f->scope[j]];
		if (taken && cells * grow > g->cap)
			continue;
		cells *= join(g, f);
		ap_id id = list[i];
		memmove(&list[taken + 1], &list[taken], (i - taken) * sizeof *list);
		list[taken++] = id;
	}
	sort_clique(g);
	return taken;
}

static void graph_split(struct graph *g, ap_id v)
{
	double cells;
	gather(g, v, INFINITY, &cells);
	size_t n = g->list.n, nclique = g->clique.n;
	ap_id *list = ap_arena_memdup(arena(g), g->list.v, n * sizeof *list);
	ap_id *clique = ap_arena_memdup(arena(g), g->clique.v, nclique * sizeof *clique);
	for (size_t done = 0; done < n;) {
		size_t part = take_part(g, v, list + done, n - done);
		step(g, v, sign(g, v, list + done, part), list + done, part);
		done += part;
	}
	g->split = true;
	for (size_t i = g->clique.n = 0; i < nclique; i++)
		AP_PUSH(arena(g), g->clique, clique[i]);
}

/*
 * The order of elimination. Nodes with equal signatures form a class: eliminating one of them gives
 * the result for all. The class of least price goes next, as a whole: eliminating a node changes
 * its neighbours' signatures, so a round eliminates an independent set of the class.
 *
 * The price of a class is its work, or its work divided by the number of its nodes. With the
 * former, a chain is eaten from its ends, in cheap steps that all differ. With the latter, in equal
 * layers every second node goes at once, all in the same step, and ends and other unique nodes go
 * last. Neither is always best; plans are cheap, so both are made.
 */
struct class { /* nodes with one signature */
	double work;
	uint32_t count; /* number of nodes that have it now */
	AP_VEC(ap_id) member; /* nodes that got it since its last round */
};

struct entry { /* a heap entry; a class is entered again whenever its price falls */
	double price;
	ap_id class;
};

struct order {
	struct graph *g;
	bool amortise;
	AP_VEC(struct class) class;
	AP_VEC(struct entry) heap; /* least first */
	ap_id *class_of; /* by node; AP_NONE: too wide, or eliminated */
	bool *gone;
	uint32_t left;
};

static double price(const struct order *o, ap_id c)
{
	if (o->g->done.v[c] != AP_NONE)
		return 0;
	return o->class.v[c].work / (o->amortise ? o->class.v[c].count : 1);
}

static bool before(struct entry a, struct entry b)
{
	return a.price != b.price ? a.price < b.price : a.class < b.class;
}

static void heap_push(struct order *o, struct entry e)
{
	AP_PUSH(o->g->ctx->scratch, o->heap, e);
	struct entry *h = o->heap.v;
	size_t i = o->heap.n - 1;
	for (; i > 0 && before(e, h[(i - 1) / 2]); i = (i - 1) / 2)
		h[i] = h[(i - 1) / 2];
	h[i] = e;
}

static struct entry heap_pop(struct order *o)
{
	struct entry *h = o->heap.v, top = h[0], e = h[--o->heap.n];
	size_t n = o->heap.n, i = 0;
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		child += child + 1 < n && before(h[child + 1], h[child]);
		if (!before(h[child], e))
			break;
		h[i] = h[child];
	}
	h[i] = e;
	return top;
}

static void leave_class(struct order *o, ap_id v)
{
	if (o->class_of[v] != AP_NONE)
		o->class.v[o->class_of[v]].count--;
	o->class_of[v] = AP_NONE;
}

/* Moves v to the class of its current signature. */
static void classify(struct order *o, ap_id v)
{
	double work;
	ap_id c = graph_signature(o->g, v, &work);
	if (c == o->class_of[v])
		return;
	leave_class(o, v);
	if (c == AP_NONE)
		return;
	while (o->class.n <= c) {
		struct class none = {0};
		AP_PUSH(o->g->ctx->scratch, o->class, none);
	}
	o->class_of[v] = c;
	o->class.v[c].work = work;
	o->class.v[c].count++;
	AP_PUSH(o->g->ctx->scratch, o->class.v[c].member, v);
	heap_push(o, (struct entry){price(o, c), c});
}

/* The class to eliminate next; false if only nodes that are too wide are left. */
static bool next_class(struct order *o, ap_id *c)
{
	while (o->heap.n) {
		struct entry e = heap_pop(o);
		if (o->class.v[e.class].count == 0)
			continue;
		double now = price(o, e.class);
		if (now > e.price) {
			heap_push(o, (struct entry){now, e.class});
			continue;
		}
		*c = e.class;
		return true;
	}
	return false;
}

/* Reclassifies the neighbours of v, which has been eliminated. */
static void update(struct order *o, ap_id v)
{
	struct graph *g = o->g;
	size_t n = g->clique.n;
	ap_id *touched = ap_arena_memdup(g->ctx->scratch, g->clique.v, n * sizeof *touched);
	leave_class(o, v);
	o->gone[v] = true;
	o->left--;
	for (size_t i = 0; i < n; i++) {
		if (touched[i] != v)
			classify(o, touched[i]);
	}
}

static void eliminate_class(struct order *o, ap_id c)
{
	size_t n = o->class.v[c].member.n;
	ap_id *member = o->class.v[c].member.v;
	qsort(member, n, sizeof *member, by_id);
	o->class.v[c].member.v = NULL; /* new members wait for the next round */
	o->class.v[c].member.n = o->class.v[c].member.cap = 0;
	for (size_t i = 0; i < n; i++) {
		if (o->gone[member[i]] || o->class_of[member[i]] != c)
			continue;
		graph_eliminate(o->g, member[i], c);
		update(o, member[i]);
	}
	if (o->class.v[c].count)
		heap_push(o, (struct entry){price(o, c), c});
}

/* Gives up as soon as the work reaches rival_work (INFINITY: never). */
static bool eliminate_all(struct graph *g, bool amortise, double rival_work)
{
	struct ap_arena *arena = g->ctx->scratch;
	uint32_t n = g->p->n;
	struct order o = {.g = g, .amortise = amortise, .left = n};
	o.class_of = AP_NEW_N(arena, ap_id, n);
	o.gone = AP_NEW_N(arena, bool, n);
	for (ap_id v = 0; v < n; v++)
		o.class_of[v] = AP_NONE;
	for (ap_id v = 0; v < n; v++)
		classify(&o, v);
	while (o.left) {
		ap_id c;
		if (g->work >= rival_work)
			return false;
		if (next_class(&o, &c)) {
			eliminate_class(&o, c);
		} else {
			ap_id best = AP_NONE;
			uint32_t least = UINT32_MAX;

			/* all nodes left are too wide: split one with the fewest factors */
			for (ap_id v = 0; v < o.g->p->n; v++) {
				if (!o.gone[v] && o.g->degree[v] < least) {
					least = o.g->degree[v];
					best = v;
				}
			}
			graph_split(o.g, best);
			update(&o, best);
		}
	}
	return true;
}

struct attempt {
	double cap; /* limit of cells in a table */
	bool amortise;
	double rival_work; /* work at which to give up */
};

/* Returns NULL if it gave up. */
static struct graph *try_plan(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options, struct attempt a)
{
	struct graph *g = AP_NEW(ctx->scratch, struct graph);
	graph_init(g, ctx, p, options, a.cap);
	return eliminate_all(g, a.amortise, a.rival_work) ? g : NULL;
}

static bool fits(const struct graph *g, const struct ap_elim_options *options)
{
	return g->cells * sizeof(double) <= (double)options->table_bytes &&
		(options->work == 0 || g->work <= (double)options->work);
}

static bool better(const struct graph *a, const struct graph *b,
	const struct ap_elim_options *options)
{
	if (a->split != b->split)
		return b->split;
	if (fits(a, options) != fits(b, options))
		return fits(a, options);
	return a->work < b->work;
}

/* The largest domain: messages over one node must be allowed. */
static double least_cap(const struct ap_problem *p)
{
	double k = 0;
	for (uint32_t i = 0; i < p->n; i++)
		k = p->node[i].k > k ? p->node[i].k : k;
	return k;
}

/* Tries both orders and keeps the better one. If equal layers share eliminations, the order in
 * rounds soon shows that the other need not be completed. */
static const struct graph *best_plan(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options, double cap)
{
	struct graph *rounds = NULL, *plain;
	struct attempt a = {cap, true, INFINITY};
	if (!options->no_share)
		rounds = try_plan(ctx, p, options, a);
	if (rounds && !rounds->split && fits(rounds, options))
		a.rival_work = rounds->work;
	a.amortise = false;
	plain = try_plan(ctx, p, options, a);
	return plain && (!rounds || better(plain, rounds, options)) ? plain : rounds;
}

const struct ap_elim *ap_elim_plan(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	double least = least_cap(p), cap = (double)options->table_bytes / sizeof(double);
	bool work_splits = false;

	cap = cap > least ? cap : least;
	for (;; cap = cap / 8 > least ? cap / 8 : least) {
		const struct graph *best = best_plan(ctx, p, options, cap);
		work_splits |= !best->split && best->cells * sizeof(double) <= (double)options->table_bytes;
		if (fits(best, options) || cap <= least || (options->whole && best->split)) {
			struct ap_elim *e = AP_NEW(ctx->scratch, struct ap_elim);

			*e = (struct ap_elim){
				.n = best->p->n, .k = best->k,
				.ntable = (uint32_t)best->table.n, .table = best->table.v,
				.nreduction = (uint32_t)best->reduction.n, .reduction = best->reduction.v,
				.factor = best->factor.v, .own = best->own,
				.nstep = (uint32_t)best->step.n, .step = best->step.v,
				.split = best->split,
				.work_splits = work_splits && best->split,
				.work = best->work < 0x1p63 ? (uint64_t)best->work : UINT64_MAX,
				.bytes = (size_t)(best->cells * sizeof(double)),
			};
			return e;
		}
		ap_arena_release(ctx->scratch, mark);
	}
}
