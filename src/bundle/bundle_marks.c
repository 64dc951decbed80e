/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/bundle_marks.h"

#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "bundle/bundle_way.h"
#include "cost/recompute.h"
#include "graph/cell.h"
#include "rule/op.h"
#include "shard/imposed.h"
#include "shard/strategy.h"

/* ---- recompute() of cells and primitives ---- */

enum call { LEFT, RECOMPUTED, KEPT }; /* no call; recompute(True); recompute(False) */

struct calls {
	const struct ap_graph *g;
	enum call *call; /* [nnode] of the operator itself */
	ap_id *kind; /* [nnode] equal for the operators of one mark; AP_NONE: no mark reaches it */
	ap_id nkind;
	bool *mixed; /* [kind] its operators have different calls */
};

/* The marks if no operator or cell were given as kept: MindSpore itself keeps what leaves a cell.
 * On the scratch arena. */
static const struct ap_again *mark_unrefused(
	struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step)
{
	struct ap_again *mark = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	struct ap_node *node = AP_NEW_N(ctx->scratch, struct ap_node, g->nnode);
	struct ap_graph unrefused = *g;

	for (ap_id i = 0; i < g->nnode; i++) {
		struct ap_node *n = &node[i];

		*n = g->node[i];
		while (n->in_cell != AP_NONE && g->cell[n->in_cell].recompute != 1)
			n->in_cell = g->cell[n->in_cell].parent;
		n->recompute_cell = n->in_cell;
		n->recompute = n->recompute == 0 ? -1 : n->recompute;
	}
	unrefused.node = node;
	ap_recompute_mark(ctx, &unrefused, step, mark);
	return mark;
}

static enum call call_of(const struct ap_graph *g, const struct ap_again *mark,
	const struct ap_again *unrefused, const struct ap_map *cells, ap_id i)
{
	const struct ap_node *n = &g->node[i];

	if (n->peer >= 0)
		return LEFT;
	if (mark[i].group != AP_NONE)
		return mark[i].group < g->nnode ? RECOMPUTED : LEFT;
	if (mark[i].keeps && ap_cell_find(cells, n->cell) != AP_NONE)
		return KEPT;
	return ap_recompute_refused(g, n) && unrefused[i].group != AP_NONE &&
			       ap_cell_find(cells, n->cell) != AP_NONE
		       ? KEPT
		       : LEFT;
}

/* The kind of this name in the operator's cell; first: [kind] its first operator. */
static ap_id put_kind(struct ap_ctx *ctx, struct calls *c, struct ap_map *ids, ap_id *first, const char *name,
	ap_id i)
{
	bool fresh;
	ap_id kind = ap_map_put_str(ids,
		ap_arena_printf(ctx->scratch, "%s/%s", c->g->node[i].cell, name), &fresh);

	if (fresh)
		first[kind] = i;
	c->mixed[kind] |= c->call[i] != c->call[first[kind]];
	return kind;
}

/* A mark by type affects all primitives of the type that attributes of the cell hold, even those
 * with marks of their own. */
static void find_kinds(struct ap_ctx *ctx, struct calls *c)
{
	ap_id n = c->g->nnode, *first = AP_NEW_N(ctx->scratch, ap_id, 2 * (size_t)n);
	struct ap_map *ids = ap_map_create(ctx->scratch);

	c->kind = AP_NEW_N(ctx->scratch, ap_id, n);
	c->mixed = AP_NEW_N(ctx->scratch, bool, 2 * (size_t)n);
	for (ap_id i = 0; i < n; i++) {
		const char *instance = c->g->node[i].instance;

		c->kind[i] = AP_NONE;
		if (instance && !*instance)
			continue;
		c->kind[i] = put_kind(ctx, c, ids, first, c->g->node[i].type, i);
		if (instance)
			c->kind[i] = put_kind(ctx, c, ids, first,
				ap_arena_printf(ctx->scratch, ".%s", instance), i);
	}
	c->nkind = (ap_id)ap_map_size(ids);
}

/* Why the operator's call cannot be made; NULL: it can, or there is none. */
static const char *why_not(const struct calls *c, ap_id i)
{
	if (c->call[i] == LEFT)
		return NULL;
	if (c->kind[i] == AP_NONE)
		return "no attribute of its cell holds it";
	if (!c->mixed[c->kind[i]])
		return NULL;
	return c->g->node[i].instance ? "its primitive runs operators that are marked differently"
				      : "operators of this type in this cell are marked differently";
}

/* The marked cells, and the calls of operators outside them, on the scratch arena. */
static struct calls find_calls(struct ap_ctx *ctx, const struct ap_bundle *b, uint32_t *ncell,
	const struct ap_again_cell **cell)
{
	const struct ap_graph *g = b->plan->graph;
	struct ap_map *names = ap_map_create(ctx->scratch);
	struct ap_again *mark = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	const struct ap_again *unrefused = mark_unrefused(ctx, g, b->plan->step);
	struct calls c = {.g = g, .call = AP_NEW_N(ctx->scratch, enum call, g->nnode)};

	ap_recompute_cells(ctx, g, b->plan->step, ncell, cell);
	for (uint32_t i = 0; i < *ncell; i++)
		ap_map_put_str(names, (*cell)[i].name, NULL);
	ap_recompute_mark(ctx, g, b->plan->step, mark);
	for (ap_id i = 0; i < g->nnode; i++)
		c.call[i] = call_of(g, mark, unrefused, names, i);
	find_kinds(ctx, &c);
	return c;
}

/* Norms whose result is gathered again: MindSpore asks the operator in front of a collective that it
 * inserts. */
static struct calls find_gathered(struct ap_ctx *ctx, const struct ap_bundle *b)
{
	const struct ap_graph *g = b->plan->graph;
	struct ap_again *mark = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	struct calls c = {.g = g, .call = AP_NEW_N(ctx->scratch, enum call, g->nnode)};

	ap_recompute_mark(ctx, g, b->plan->step, mark);
	for (ap_id i = 0; i < g->nnode; i++)
		if (mark[i].gathers != AP_NONE)
			c.call[mark[i].gathers] = RECOMPUTED;
	find_kinds(ctx, &c);
	return c;
}

static uint32_t rest_of(const struct calls *c)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < c->g->nnode; i++)
		n += why_not(c, i) != NULL;
	return n;
}

uint32_t ap_bundle_recompute_rest(struct ap_ctx *ctx, const struct ap_bundle *b)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	const struct ap_again_cell *cell;
	uint32_t ncell, n;
	struct calls calls = find_calls(ctx, b, &ncell, &cell);

	n = rest_of(&calls);
	ap_arena_release(ctx->scratch, scratch);
	return n;
}

uint32_t ap_bundle_gather_rest(struct ap_ctx *ctx, const struct ap_bundle *b)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct calls gathered = find_gathered(ctx, b);
	uint32_t n = rest_of(&gathered);

	ap_arena_release(ctx->scratch, scratch);
	return n;
}

static void begin_list(struct ap_jw *w, const char *key)
{
	ap_jw_karr(w, key);
}

/* One call per mark, at its first operator. */
static void write_calls(struct ap_ctx *ctx, struct ap_jw *w, const struct calls *c, const char *key)
{
	bool *done = AP_NEW_N(ctx->scratch, bool, c->nkind);

	for (ap_id i = 0; i < c->g->nnode; i++) {
		const struct ap_node *n = &c->g->node[i];

		if (c->call[i] == LEFT || why_not(c, i) || done[c->kind[i]])
			continue;
		done[c->kind[i]] = true;
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "cell", n->cell);
		if (n->instance)
			ap_jw_kstr(w, "instance", n->instance);
		ap_jw_kstr(w, "type", n->type);
		ap_jw_kbool(w, key, c->call[i] == RECOMPUTED);
		ap_jw_end(w);
	}
}

static void write_rest(struct ap_jw *w, const struct calls *c, const char *key)
{
	for (ap_id i = 0; i < c->g->nnode; i++) {
		if (!why_not(c, i))
			continue;
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "operator", c->g->node[i].name);
		ap_jw_kbool(w, key, c->call[i] == RECOMPUTED);
		ap_jw_kstr(w, "why", why_not(c, i));
		ap_jw_end(w);
	}
}

void ap_bundle_write_recompute(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	const struct ap_again_cell *cell;
	uint32_t ncell;
	struct calls calls = find_calls(ctx, b, &ncell, &cell), gathered = find_gathered(ctx, b);
	struct ap_jw w;

	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	begin_list(&w, "cells");
	for (uint32_t i = 0; i < ncell; i++) {
		ap_jw_obj_flat(&w);
		ap_jw_kstr(&w, "cell", cell[i].name);
		ap_jw_kbool(&w, "mp_comm_recompute", !cell[i].keep_comm);
		ap_jw_kbool(&w, "parallel_optimizer_comm_recompute", cell[i].regather);
		ap_jw_kbool(&w, "recompute_slice_activation", cell[i].slice);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	begin_list(&w, "primitives");
	write_calls(ctx, &w, &calls, "recompute");
	ap_jw_end(&w);
	begin_list(&w, "communications");
	write_calls(ctx, &w, &gathered, "recompute_comm_op");
	ap_jw_end(&w);
	begin_list(&w, "not_applicable");
	write_rest(&w, &calls, "recompute");
	write_rest(&w, &gathered, "recompute_comm_op");
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ap_arena_release(ctx->scratch, scratch);
}

/* ---- shard() of primitives ---- */

struct shards {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	ap_id *kind; /* [nnode] equal for operators of one primitive; AP_NONE: unknown */
	ap_id *first; /* [kind] the first with a strategy in the graph; AP_NONE */
	bool *mixed; /* [kind] another operator is cut otherwise */
};

/* Does MindSpore take its strategy? It refuses a Reshape's and ignores a Cast's. */
static bool takes_strategy(const struct ap_node *n)
{
	return n->peer < 0 && ap_op_has_strategy(n->bound.row) && !ap_op_follows(n->bound.row);
}

static bool is_pinned(const struct ap_node *n)
{
	return n->in_pin.n > 0 && takes_strategy(n);
}

/* Is operator i cut as by shard() of the primitive that it shares with operator `with`? */
static bool is_cut_alike(const struct shards *c, ap_id with, ap_id i)
{
	struct ap_mark scratch = ap_arena_mark(c->ctx->scratch);
	struct ap_strategy cuts = ap_strategy_of(c->ctx->scratch, &c->p->op[i].place);
	const struct ap_pin *pin = &c->p->graph->node[with].in_pin;
	bool same = pin->n == cuts.n && !c->p->op[with].place.dealt == !c->p->op[i].place.dealt;

	for (uint32_t k = 0; same && k < pin->n; k++)
		same = pin->v[k].rank == cuts.rank[k] && !memcmp(pin->v[k].cut, cuts.cut[k],
			cuts.rank[k] * sizeof *cuts.cut[k]);
	ap_arena_release(c->ctx->scratch, scratch);
	return same;
}

static struct shards find_shards(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_graph *g = p->graph;
	struct ap_map *ids = ap_map_create(ctx->scratch);
	struct shards c = {.ctx = ctx, .p = p, .kind = AP_NEW_N(ctx->scratch, ap_id, g->nnode),
		.first = AP_NEW_N(ctx->scratch, ap_id, g->nnode),
		.mixed = AP_NEW_N(ctx->scratch, bool, g->nnode)};

	memset(c.kind, 0xff, g->nnode * sizeof *c.kind);
	memset(c.first, 0xff, g->nnode * sizeof *c.first);
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		ap_id *first;

		if (!n->instance || !*n->instance || !takes_strategy(n))
			continue;
		c.kind[i] = ap_map_put_str(ids,
			ap_arena_printf(ctx->scratch, "%s/%s", n->cell, n->instance), NULL);
		first = &c.first[c.kind[i]];
		if (*first == AP_NONE && is_pinned(n))
			*first = i;
	}
	for (ap_id i = 0; i < g->nnode; i++) {
		ap_id kind = c.kind[i], first = kind == AP_NONE ? AP_NONE : c.first[kind];

		if (first != AP_NONE && first != i)
			c.mixed[kind] |= !is_cut_alike(&c, first, i);
	}
	return c;
}

/* Why shard() cannot be called; NULL: it can. */
static const char *why_no_shard(const struct shards *c, ap_id i)
{
	const struct ap_node *n = &c->p->graph->node[i];

	if (!n->instance)
		return "the graph does not tell the attribute that holds it (instance)";
	if (!*n->instance)
		return "no attribute of its cell holds it";
	return c->mixed[c->kind[i]] ? "its primitive runs operators that are cut otherwise" : NULL;
}

static void write_pin(struct ap_jw *w, const char *key, const struct ap_pin *pin)
{
	if (!pin->n)
		return;
	ap_jw_karr_flat(w, key);
	for (uint32_t k = 0; k < pin->n; k++) {
		ap_jw_arr_flat(w);
		for (uint8_t d = 0; d < pin->v[k].rank; d++)
			ap_jw_int(w, pin->v[k].cut[d]);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

bool ap_bundle_shards(const struct ap_bundle *b)
{
	const struct ap_graph *g = b->plan->graph;

	for (ap_id i = 0; ap_bundle_loads(b, AP_BUNDLE_CKPT) && i < g->nnode; i++)
		if (is_pinned(&g->node[i]))
			return true;
	return false;
}

struct ap_bundle_pins ap_bundle_pins(struct ap_ctx *ctx, const struct ap_bundle *b)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct shards c = find_shards(ctx, b->plan);
	struct ap_bundle_pins pins = {0};

	for (ap_id i = 0; ap_bundle_loads(b, AP_BUNDLE_CKPT) && i < b->plan->graph->nnode; i++) {
		const struct ap_node *n = &b->plan->graph->node[i];
		bool said;

		if (!is_pinned(n))
			continue;
		said = !why_no_shard(&c, i);
		pins.left += !said;
		pins.said += said;
		pins.dealt += said && n->out_pin.n &&
			ap_placement_needs_out(&b->plan->op[i].place, b->plan->step);
	}
	ap_arena_release(ctx->scratch, scratch);
	return pins;
}

static void write_shards(struct ap_jw *w, const struct shards *c, bool said)
{
	for (ap_id i = 0; i < c->p->graph->nnode; i++) {
		const struct ap_node *n = &c->p->graph->node[i];
		const char *why = is_pinned(n) ? why_no_shard(c, i) : NULL;

		if (!is_pinned(n) || !why != said || (said && c->first[c->kind[i]] != i))
			continue;
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, said ? "cell" : "operator", said ? n->cell : n->name);
		if (said)
			ap_jw_kstr(w, "instance", n->instance);
		write_pin(w, "in_strategy", &n->in_pin);
		write_pin(w, "out_strategy", &n->out_pin);
		if (!said)
			ap_jw_kstr(w, "why", why);
		ap_jw_end(w);
	}
}

void ap_bundle_write_shard(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct shards c = find_shards(ctx, b->plan);
	struct ap_jw w;

	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	begin_list(&w, "shards");
	write_shards(&w, &c, true);
	ap_jw_end(&w);
	begin_list(&w, "not_applicable");
	write_shards(&w, &c, false);
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ap_arena_release(ctx->scratch, scratch);
}
