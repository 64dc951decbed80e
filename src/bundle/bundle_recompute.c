/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute.json: the calls of Cell.recompute() and Primitive.recompute() that mark what the plan
 * recomputes. A primitive is known by its cell and the attribute that holds it; where the graph does
 * not tell that, by its cell and its type.
 */
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "bundle/bundle_parts.h"
#include "cost/recompute.h"
#include "graph/cell.h"

enum call { LEFT, RECOMPUTED, KEPT }; /* nothing; recompute(True); recompute(False) */

struct calls {
	const struct ap_graph *g;
	enum call *call; /* [nnode] of the operator itself */
	ap_id *kind; /* [nnode] the operators that one mark is of; AP_NONE: no mark reaches it */
	ap_id nkind;
	bool *mixed; /* [kind] they do not have the same call */
};

struct kinds { /* while they are found */
	struct ap_map *ids;
	ap_id *first; /* [kind] an operator of it */
};

/* What would be marked if no operator and no cell were said to be kept: MindSpore keeps by itself what
 * leaves a cell. On the scratch arena. */
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
	return ap_recompute_refused(g, n) && unrefused[i].group != AP_NONE &&
			       ap_cell_find(cells, n->cell) != AP_NONE
		       ? KEPT
		       : LEFT;
}

static ap_id put_kind(struct ap_ctx *ctx, struct calls *c, struct kinds *k, const char *name, ap_id i)
{
	bool fresh;
	ap_id kind = ap_map_put_str(
		k->ids, ap_arena_printf(ctx->scratch, "%s/%s", c->g->node[i].cell, name), &fresh);

	if (fresh)
		k->first[kind] = i;
	c->mixed[kind] |= c->call[i] != c->call[k->first[kind]];
	return kind;
}

/* A mark by type is of all primitives of the type that attributes of the cell hold, those too that
 * are marked by themselves. */
static void find_kinds(struct ap_ctx *ctx, struct calls *c)
{
	ap_id n = c->g->nnode;
	struct kinds k = {.ids = ap_map_create(ctx->scratch),
		.first = AP_NEW_N(ctx->scratch, ap_id, 2 * (size_t)n)};

	c->kind = AP_NEW_N(ctx->scratch, ap_id, n);
	c->mixed = AP_NEW_N(ctx->scratch, bool, 2 * (size_t)n);
	for (ap_id i = 0; i < n; i++) {
		const char *instance = c->g->node[i].instance;

		c->kind[i] = AP_NONE;
		if (instance && !*instance)
			continue;
		c->kind[i] = put_kind(ctx, c, &k, c->g->node[i].type, i);
		if (instance)
			c->kind[i] = put_kind(ctx, c, &k,
				ap_arena_printf(ctx->scratch, ".%s", instance), i);
	}
	c->nkind = (ap_id)ap_map_size(k.ids);
}

/* Why its call cannot be made for it alone; NULL: it can, or there is none. */
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

static void find_calls(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const struct ap_map *cells, struct calls *c)
{
	struct ap_again *mark = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	const struct ap_again *unrefused = mark_unrefused(ctx, g, step);

	*c = (struct calls){.g = g, .call = AP_NEW_N(ctx->scratch, enum call, g->nnode)};
	ap_recompute_mark(ctx, g, step, mark);
	for (ap_id i = 0; i < g->nnode; i++)
		c->call[i] = call_of(g, mark, unrefused, cells, i);
	find_kinds(ctx, c);
}

static void write_cell(struct ap_jw *w, const struct ap_again_cell *c)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "cell", c->name);
	ap_jw_kbool(w, "mp_comm_recompute", !c->keep_comm);
	ap_jw_kbool(w, "parallel_optimizer_comm_recompute", c->regather);
	ap_jw_kbool(w, "recompute_slice_activation", c->slice);
	ap_jw_end(w);
}

/* A call for all that a mark is of, told where its first operator comes. */
static void write_primitives(struct ap_ctx *ctx, struct ap_jw *w, const struct calls *c)
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
		ap_jw_kbool(w, "recompute", c->call[i] == RECOMPUTED);
		ap_jw_end(w);
	}
}

static void write_rest(struct ap_jw *w, const struct calls *c)
{
	for (ap_id i = 0; i < c->g->nnode; i++) {
		if (!why_not(c, i))
			continue;
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "operator", c->g->node[i].name);
		ap_jw_kbool(w, "recompute", c->call[i] == RECOMPUTED);
		ap_jw_kstr(w, "why", why_not(c, i));
		ap_jw_end(w);
	}
}

/* The cells that are marked, and the calls of what is in none of them, on the scratch arena. */
static void find_all(struct ap_ctx *ctx, const struct ap_bundle *b, uint32_t *ncell,
	const struct ap_again_cell **cell, struct calls *calls)
{
	struct ap_map *names = ap_map_create(ctx->scratch);

	ap_recompute_cells(ctx, b->plan->graph, b->plan->step, ncell, cell);
	for (uint32_t i = 0; i < *ncell; i++)
		ap_map_put_str(names, (*cell)[i].name, NULL);
	find_calls(ctx, b->plan->graph, b->plan->step, names, calls);
}

uint32_t ap_bundle_recompute_rest(struct ap_ctx *ctx, const struct ap_bundle *b)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	const struct ap_again_cell *cell;
	struct calls calls;
	uint32_t ncell, n = 0;

	find_all(ctx, b, &ncell, &cell, &calls);
	for (ap_id i = 0; i < calls.g->nnode; i++)
		n += why_not(&calls, i) != NULL;
	ap_arena_release(ctx->scratch, scratch);
	return n;
}

void ap_bundle_write_recompute(
	struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	const struct ap_again_cell *cell;
	struct calls calls;
	struct ap_jw w;
	uint32_t ncell;

	find_all(ctx, b, &ncell, &cell, &calls);
	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_key(&w, "cells");
	ap_jw_arr(&w);
	for (uint32_t i = 0; i < ncell; i++)
		write_cell(&w, &cell[i]);
	ap_jw_end(&w);
	ap_jw_key(&w, "primitives");
	ap_jw_arr(&w);
	write_primitives(ctx, &w, &calls);
	ap_jw_end(&w);
	ap_jw_key(&w, "not_applicable");
	ap_jw_arr(&w);
	write_rest(&w, &calls);
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ap_arena_release(ctx->scratch, scratch);
}
