/* SPDX-License-Identifier: Apache-2.0 */
/* The operator-strategy file of a plan. */
#include "ckpt/op_strategy.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/vec.h"
#include "ckpt/op_strategy_parts.h"
#include "graph/cell.h"
#include "shard/imposed.h"

#define DATASET_CELL "-_VirtualDatasetCell/"

struct line { /* of a map that no template prescribes */
	const char *name;
	ap_id node; /* AP_NONE: the inputs of the graph */
};

struct lines {
	struct line *v;
	size_t n, cap;
};

struct writing {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	struct ap_jw w;
	const struct ap_map *recomputed; /* cells */
};

const char *ap_op_map_key(enum ap_op_map map)
{
	static const char *const keys[AP_OP_MAP_COUNT] = {
		[AP_OP_LAYOUT] = "parallel_layout_value_item",
		[AP_OP_NESTED] = "parallel_newshape_layout_value_item",
		[AP_OP_OUT_LAYOUT] = "parallel_out_layout_value_item",
		[AP_OP_OUT_NESTED] = "parallel_out_newshape_layout_value_item",
		[AP_OP_OUT_STRATEGY] = "parallel_out_strategy_item",
		[AP_OP_STRATEGY] = "parallel_strategy_item",
	};

	return keys[map];
}

/* Neither what sends between stages, which are cut later, nor casts, which take what they are given. */
bool ap_op_is_asked(const struct ap_node *n)
{
	return n->peer < 0 && strcmp(n->type, "Cast") != 0;
}

static const char *full_name(struct writing *x, const struct ap_node *n)
{
	if (ap_op_says_recomputed(n->name) || ap_cell_find(x->recomputed, n->cell) == AP_NONE)
		return n->name;
	return ap_arena_printf(x->ctx->scratch, AP_OP_RECOMPUTED "%s", n->name);
}

/* Where the script has it in a cell of its own the scopes of all operators tell; else MindSpore puts it
 * in, in no cell. NULL where the graph has one, or has no inputs. */
static const char *dataset_name(struct ap_ctx *ctx, const struct ap_graph *g)
{
	const char *cell = NULL;

	for (ap_id i = 0; i < g->nnode; i++) {
		if (!strcmp(g->node[i].type, "VirtualDataset"))
			return NULL;
		if (!cell && (cell = strstr(g->node[i].name, DATASET_CELL)))
			cell = ap_arena_printf(ctx->scratch, "%.*s" DATASET_CELL AP_OP_DATASET "-op0",
				(int)(cell - g->node[i].name), g->node[i].name);
	}
	if (!g->ninput)
		return NULL;
	return cell ? cell : "Default/" AP_OP_DATASET "-op0";
}

static int by_name(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Does the plan say this of the operator: its operands, or the result where its sums ask for it? */
static bool belongs(const struct ap_plan *p, ap_id node, enum ap_op_map map)
{
	bool placed = node == AP_NONE && ap_op_inputs_need_layouts(p);

	switch (map) {
	case AP_OP_STRATEGY:
		return !placed;
	case AP_OP_LAYOUT:
		return placed;
	case AP_OP_OUT_STRATEGY:
		return node != AP_NONE && ap_placement_says_out(&p->op[node].place, p->step);
	default:
		return false;
	}
}

/* The lines of a map without a template, sorted. */
static void find_lines(struct writing *x, enum ap_op_map map, struct lines *out)
{
	const struct ap_graph *g = x->p->graph;
	struct line dataset = {dataset_name(x->ctx, g), AP_NONE};

	for (ap_id i = 0; i < g->nnode; i++)
		if (ap_op_is_asked(&g->node[i]) && belongs(x->p, i, map)) {
			struct line line = {full_name(x, &g->node[i]), i};

			AP_PUSH(x->ctx->scratch, *out, line);
		}
	if (dataset.name && belongs(x->p, AP_NONE, map))
		AP_PUSH(x->ctx->scratch, *out, dataset);
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, by_name);
}

static void write_map(struct writing *x, enum ap_op_map map)
{
	struct lines lines = {0};

	find_lines(x, map, &lines);
	if (!lines.n && map != AP_OP_STRATEGY && map != AP_OP_OUT_STRATEGY)
		return;
	ap_jw_key(&x->w, ap_op_map_key(map));
	ap_jw_obj(&x->w);
	for (size_t i = 0; i < lines.n; i++) {
		ap_jw_key(&x->w, lines.v[i].name);
		ap_op_write_value(x->ctx, &x->w, x->p, lines.v[i].node, map, (struct ap_op_said){.nout = 1});
	}
	ap_jw_end(&x->w);
}

void ap_op_strategy_write(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_op_template *t,
	ap_write_fn *write, void *user)
{
	struct writing x = {.ctx = ctx, .p = p};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);

	x.recomputed = ap_op_recomputed(ctx, p);
	ap_jw_init(&x.w, write, user, 1);
	ap_jw_obj(&x.w);
	ap_jw_kint(&x.w, "current_stage", t ? t->current_stage : 0);
	if (t)
		ap_op_fill(ctx, &x.w, p, t);
	for (int map = 0; !t && map < AP_OP_MAP_COUNT; map++)
		write_map(&x, (enum ap_op_map)map);
	ap_jw_end(&x.w);
	ap_jw_finish(&x.w);
	ap_arena_release(ctx->scratch, mark);
}
