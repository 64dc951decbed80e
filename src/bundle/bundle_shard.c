/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.json: the calls of Primitive.shard() for operators that the graph has an in_strategy of. A
 * strategy checkpoint cannot say it of operators without a parameter, and no out_strategy at all.
 */
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "bundle/bundle_parts.h"
#include "ckpt/op_strategy.h"
#include "shard/imposed.h"

struct calls {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	ap_id *kind; /* [nnode] operators of one primitive; AP_NONE: it is not known */
	ap_id *first; /* [kind] the first that the graph has a strategy of; AP_NONE */
	bool *mixed; /* [kind] another one is cut otherwise */
};

/* Does MindSpore take a strategy of it? It refuses that of a Reshape, and does not look at a Cast's. */
static bool takes_strategy(const struct ap_node *n)
{
	return n->peer < 0 && ap_op_has_strategy(n->bound.row) && !ap_op_follows(n->bound.row);
}

static bool is_pinned(const struct ap_node *n)
{
	return n->in_pin.n > 0 && takes_strategy(n);
}

static bool same_vectors(const struct ap_pin *pin, const struct ap_op_cuts *cuts)
{
	if (pin->n != cuts->n)
		return false;
	for (uint32_t k = 0; k < pin->n; k++)
		if (pin->v[k].rank != cuts->rank[k] || memcmp(pin->v[k].cut, cuts->cut[k],
				cuts->rank[k] * sizeof *cuts->cut[k]) != 0)
			return false;
	return true;
}

/* Is operator i planned as shard() of the primitive that it shares with operator `with` has it? */
static bool is_cut_alike(const struct calls *c, ap_id with, ap_id i)
{
	struct ap_mark scratch = ap_arena_mark(c->ctx->scratch);
	struct ap_op_cuts cuts = ap_op_cuts_of_node(c->ctx, c->p, i);
	bool same = same_vectors(&c->p->graph->node[with].in_pin, &cuts) &&
		    !c->p->op[with].place.dealt == !c->p->op[i].place.dealt;

	ap_arena_release(c->ctx->scratch, scratch);
	return same;
}

static void find_kinds(struct calls *c)
{
	const struct ap_graph *g = c->p->graph;
	struct ap_map *ids = ap_map_create(c->ctx->scratch);

	memset(c->kind, 0xff, g->nnode * sizeof *c->kind);
	memset(c->first, 0xff, g->nnode * sizeof *c->first);
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		ap_id *first;

		if (!n->instance || !*n->instance || !takes_strategy(n))
			continue;
		c->kind[i] = ap_map_put_str(ids,
			ap_arena_printf(c->ctx->scratch, "%s/%s", n->cell, n->instance), NULL);
		first = &c->first[c->kind[i]];
		if (*first == AP_NONE && is_pinned(n))
			*first = i;
	}
}

static struct calls find_calls(struct ap_ctx *ctx, const struct ap_plan *p)
{
	ap_id n = p->graph->nnode;
	struct calls c = {.ctx = ctx, .p = p, .kind = AP_NEW_N(ctx->scratch, ap_id, n),
		.first = AP_NEW_N(ctx->scratch, ap_id, n), .mixed = AP_NEW_N(ctx->scratch, bool, n)};

	find_kinds(&c);
	for (ap_id i = 0; i < n; i++) {
		ap_id kind = c.kind[i], first = kind == AP_NONE ? AP_NONE : c.first[kind];

		if (first != AP_NONE && first != i)
			c.mixed[kind] |= !is_cut_alike(&c, first, i);
	}
	return c;
}

/* NULL: it can be called. */
static const char *why_not(const struct calls *c, ap_id i)
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
	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
	for (uint32_t k = 0; k < pin->n; k++) {
		ap_jw_arr_flat(w);
		for (uint8_t d = 0; d < pin->v[k].rank; d++)
			ap_jw_int(w, pin->v[k].cut[d]);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_call(struct ap_jw *w, const struct ap_node *n)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "cell", n->cell);
	ap_jw_kstr(w, "instance", n->instance);
	write_pin(w, "in_strategy", &n->in_pin);
	write_pin(w, "out_strategy", &n->out_pin);
	ap_jw_end(w);
}

static void write_left(struct ap_jw *w, const struct ap_node *n, const char *why)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "operator", n->name);
	write_pin(w, "in_strategy", &n->in_pin);
	write_pin(w, "out_strategy", &n->out_pin);
	ap_jw_kstr(w, "why", why);
	ap_jw_end(w);
}

bool ap_bundle_shards(const struct ap_bundle *b)
{
	const struct ap_bundle_way *way = ap_bundle_way(b);
	const struct ap_graph *g = b->plan->graph;

	if (!way->file || strcmp(way->file, AP_BUNDLE_CKPT) != 0)
		return false;
	for (ap_id i = 0; i < g->nnode; i++)
		if (is_pinned(&g->node[i]))
			return true;
	return false;
}

struct ap_bundle_pins ap_bundle_pins(struct ap_ctx *ctx, const struct ap_bundle *b)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct calls c = find_calls(ctx, b->plan);
	struct ap_bundle_pins pins = {0};

	for (ap_id i = 0; ap_bundle_shards(b) && i < b->plan->graph->nnode; i++) {
		const struct ap_node *n = &b->plan->graph->node[i];

		if (!is_pinned(n))
			continue;
		pins.left += why_not(&c, i) != NULL;
		pins.said += !why_not(&c, i);
		pins.dealt += !why_not(&c, i) && n->out_pin.n &&
			ap_placement_needs_out(&b->plan->op[i].place, b->plan->step);
	}
	ap_arena_release(ctx->scratch, scratch);
	return pins;
}

void ap_bundle_write_shard(
	struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	const struct ap_graph *g = b->plan->graph;
	struct calls c = find_calls(ctx, b->plan);
	struct ap_jw w;

	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_key(&w, "shards");
	ap_jw_arr(&w);
	for (ap_id i = 0; i < g->nnode; i++)
		if (is_pinned(&g->node[i]) && !why_not(&c, i) && c.first[c.kind[i]] == i)
			write_call(&w, &g->node[i]);
	ap_jw_end(&w);
	ap_jw_key(&w, "not_applicable");
	ap_jw_arr(&w);
	for (ap_id i = 0; i < g->nnode; i++)
		if (is_pinned(&g->node[i]) && why_not(&c, i))
			write_left(&w, &g->node[i], why_not(&c, i));
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ap_arena_release(ctx->scratch, scratch);
}
