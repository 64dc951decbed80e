/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/ckpt_make.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/task.h"
#include "graph/graph.h"
#include "plan/terms.h"
#include "rule/op.h"
#include "shard/strategy.h"

struct layouts {
	struct ap_ckpt_layout *v;
	size_t n, cap;
};

static struct ap_ckpt_vec make_vec(struct ap_ctx *ctx, const int32_t *v, size_t n)
{
	int64_t *copy = ap_arena_alloc_raw(ctx->arena, n, sizeof *copy);

	for (size_t i = 0; i < n; i++)
		copy[i] = v[i];
	return (struct ap_ckpt_vec){(uint32_t)n, copy};
}

/* Is it a parameter in the checkpoint: trainable, or any if frozen is set? */
static bool is_known(const struct ap_tensor *t, bool frozen)
{
	return t->kind == AP_TENSOR_PARAM && (t->trainable || frozen);
}

/* One stage of a plan. */
struct part {
	const struct ap_plan *p;
	int32_t stage;
	bool frozen; /* includes frozen parameters */
};

const char *ap_ckpt_key(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node, bool frozen)
{
	const struct ap_node *n = &g->node[node];

	for (uint32_t i = 0; i < n->bound.nin; i++) {
		const struct ap_tensor *t = &g->tensor[n->in[i]];

		/* looks through Cast and sends between stages, as MindSpore does */
		while (t->producer != AP_NONE && (g->node[t->producer].peer >= 0 ||
				!strcmp(g->node[t->producer].type, "Cast")))
			t = &g->tensor[g->node[t->producer].in[0]];
		if (is_known(t, frozen))
			return ap_arena_printf(ctx->arena, "%s_%s", n->type, t->name);
	}
	return NULL;
}

static bool is_saved(struct ap_ctx *ctx, const struct part *part, ap_id node)
{
	const struct ap_plan *p = part->p;

	if (ap_plan_op_stage(p, node) != part->stage || p->graph->node[node].peer >= 0)
		return false;
	return p->op[node].in_checkpoint || (part->frozen &&
		ap_op_has_strategy(p->op[node].place.bound->row) &&
		ap_ckpt_key(ctx, p->graph, node, true));
}

static struct ap_ckpt_item make_item(struct ap_ctx *ctx, const struct part *part, ap_id node)
{
	struct ap_mark mark;
	struct ap_strategy cuts;
	struct ap_ckpt_vec *strategy;
	struct ap_ckpt_item item = {
		.node_name = ap_ckpt_key(ctx, part->p->graph, node, part->frozen),
		.stage = (uint32_t)part->stage,
	};

	assert(item.node_name);
	mark = ap_arena_mark(ctx->scratch);
	cuts = ap_strategy_of(ctx->scratch, &part->p->op[node].place);
	item.n = cuts.n;
	item.strategy = strategy = AP_NEW_N(ctx->arena, struct ap_ckpt_vec, cuts.n);
	for (uint32_t i = 0; i < cuts.n; i++)
		strategy[i] = make_vec(ctx, cuts.cut[i], cuts.rank[i]);
	ap_arena_release(ctx->scratch, mark);
	return item;
}

static struct ap_ckpt_layout make_layout(struct ap_ctx *ctx, const struct ap_plan *p,
	const struct ap_plan_param *param)
{
	const struct ap_tensor *t = &p->graph->tensor[param->tensor];
	struct ap_ckpt_vec *map = AP_NEW(ctx->arena, struct ap_ckpt_vec);
	bool whole = p->step->saved_whole || !param->shard.by_rows;

	*map = make_vec(ctx, param->map, t->shape.rank);
	return (struct ap_ckpt_layout){
		.param_name = t->name,
		.dev_matrix = make_vec(ctx, param->dev.axis, (size_t)param->dev.n),
		.nmap = 1,
		.tensor_map = map,
		.weight_step = whole ? 0 : param->shard.weight_step,
		.weight_size = whole ? 0 : param->shard.weight_size,
		.tensor_shape = {t->shape.rank, t->shape.dim},
		.has_shape = true,
	};
}

static void add_clone(struct ap_ctx *ctx, struct layouts *out, const struct ap_ckpt_layout *source,
	const char *prefix)
{
	struct ap_ckpt_layout clone = *source;

	clone.param_name = ap_arena_printf(ctx->arena, "%s.%s", prefix, source->param_name);
	AP_PUSH(ctx->arena, *out, clone);
}

/* Adds a parameter's layout, and the same for optimizer states and for gradients accumulated over
 * micro-batches, which every pipeline has. */
static void add_layouts(struct ap_ctx *ctx, const struct ap_plan *p,
	const struct ap_plan_param *param, struct layouts *out)
{
	struct ap_ckpt_layout layout = make_layout(ctx, p, param);
	bool trained = p->step->training && p->graph->tensor[param->tensor].trainable;
	const struct ap_optimizer *optimizer = trained ? p->step->optimizer : NULL;
	char prefix[32];

	AP_PUSH(ctx->arena, *out, layout);
	for (int i = 0; optimizer && i < optimizer->nstate; i++)
		add_clone(ctx, out, &layout, ap_optimizer_prefix(optimizer, i, prefix));
	if (trained && (p->step->micro_batches > 1 || p->nstage > 1))
		add_clone(ctx, out, &layout, "accu_grads");
}

void ap_ckpt_of_stage(struct ap_ctx *ctx, const struct ap_plan *p, int32_t stage, bool frozen,
	struct ap_ckpt *out)
{
	const struct part part = {p, stage, frozen};
	const struct ap_graph *g = p->graph;
	AP_VEC(struct ap_ckpt_item) items = {0};
	struct layouts layouts = {0};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *keys = ap_map_create(ctx->scratch);
	bool *saved = AP_NEW_N(ctx->scratch, bool, g->ntensor); /* operands of saved operators */

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *node = &g->node[i];
		struct ap_ckpt_item item;
		bool fresh;
		ap_id id;

		if (!is_saved(ctx, &part, i))
			continue;
		for (uint32_t j = 0; j < node->bound.nin; j++)
			saved[node->in[j]] = is_known(&g->tensor[node->in[j]], frozen);
		item = make_item(ctx, &part, i);
		id = ap_map_put_str(keys, item.node_name, &fresh);
		/* the last of several operators with the same key counts, as in MindSpore */
		if (fresh)
			AP_PUSH(ctx->arena, items, item);
		else
			items.v[id] = item;
	}
	for (uint32_t i = 0; i < p->nparam; i++)
		if (saved[p->param[i].tensor] && ap_plan_op_stage(p, p->param[i].node) == stage)
			add_layouts(ctx, p, &p->param[i], &layouts);
	ap_arena_release(ctx->scratch, mark);
	*out = (struct ap_ckpt){
		.current_stage = 1,
		.nitem = (uint32_t)items.n,
		.item = items.v,
		.nlayout = (uint32_t)layouts.n,
		.layout = layouts.v,
	};
	ap_ckpt_sort(ctx, out);
}

void ap_ckpt_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, bool frozen, struct ap_ckpt *out)
{
	struct ap_ckpt *stage;

	if (p->nstage == 1) {
		ap_ckpt_of_stage(ctx, p, 0, frozen, out);
		return;
	}
	stage = AP_NEW_N(ctx->arena, struct ap_ckpt, p->nstage);
	for (uint32_t s = 0; s < p->nstage; s++)
		ap_ckpt_of_stage(ctx, p, (int32_t)s, frozen, &stage[s]);
	ap_ckpt_join(ctx, p->nstage, stage, out);
}

/* Operators with the same key must have strategies of the same form to be loaded. */
static enum ap_status check_keys(struct ap_ctx *ctx, const struct ap_graph *g)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *keys = ap_map_create(ctx->scratch);
	ap_id *first = AP_NEW_N(ctx->scratch, ap_id, g->nnode);
	enum ap_status st = AP_OK;

	for (ap_id i = 0; i < g->nnode; i++) {
		struct ap_where where = {.file = g->file, .oper = g->node[i].name};
		const char *key = ap_node_key(ctx, g, i);
		bool fresh;
		ap_id id;

		if (!key)
			continue;
		id = ap_map_put_str(keys, key, &fresh);
		if (fresh)
			first[id] = i;
		else if (strcmp(ap_task_tie(ctx, g, first[id]), ap_task_tie(ctx, g, i)) != 0)
			st = ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &where, "ckpt-key",
				"it shares the checkpoint key \"%s\" with operator \"%s\", whose strategy "
				"has vectors of other lengths; a strategy checkpoint cannot hold both",
				ap_diag_name(ctx->diag, key),
				ap_diag_name(ctx->diag, g->node[first[id]].name));
	}
	ap_arena_release(ctx->scratch, mark);
	return st;
}

enum ap_status ap_ckpt_check_names(struct ap_ctx *ctx, const struct ap_graph *g, bool frozen)
{
	enum ap_status st = AP_OK;

	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];
		struct ap_where where = {.file = g->file};

		if (is_known(t, frozen) && strchr(t->name, '-'))
			st = ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &where, "ckpt-dash",
				"parameter \"%s\": its name holds '-', where MindSpore splits the "
				"names of a strategy checkpoint into stage and parameter",
				ap_diag_name(ctx->diag, t->name));
	}
	return st == AP_OK ? check_keys(ctx, g) : st;
}
