/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/plan_match.h"

#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/conflict.h"
#include "shard/layout.h"
#include "shard/legal.h"

struct matching {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	int64_t ndev;
	const struct ap_step *step;
	const int32_t **counts;
	const char **why;
};

/* Replaces double quotes, so that a message can be nested. */
static const char *plain(struct ap_ctx *ctx, const char *text)
{
	char *copy = ap_arena_strdup(ctx->arena, text);

	for (char *c = copy; *c; c++)
		if (*c == '"')
			*c = '\'';
	return copy;
}

/* Asks for dealt sums where counts may, and the plan's result was cut so. */
static bool ask(const struct ap_bound *b, int64_t ndev, const struct ap_saved_op *op, int32_t *count)
{
	struct ap_placement p;
	int32_t cut[AP_MAX_RANK];
	bool same = true;

	if (!b->deal_asked || op->out_strategy.n == 0)
		return false;
	ap_placement_make(b, count, ndev, &p);
	ap_strategy_vector(&p, &b->out[0], cut);
	for (uint32_t d = 0; d < op->out_strategy.v->n && d < b->out[0].rank; d++)
		same &= op->out_strategy.v->v[d] == cut[d];
	for (int f = 0; f < b->nfactor && !same; f++)
		if (b->dealt >> f & 1 && count[f] > 1)
			count[f] = -count[f];
	return !same;
}

static void match_op(struct matching *m, ap_id node, const struct ap_saved_op *op)
{
	const struct ap_node *n = &m->g->node[node];
	int32_t *count = AP_NEW_N(m->ctx->arena, int32_t, AP_MAX_FACTOR);
	bool same = n->bound.nfactor == op->nfactor;
	int64_t ndev = ap_graph_devices(m->g, node, m->ndev);
	const char *why;

	if (strcmp(n->type, op->type) != 0)
		return;
	for (uint32_t f = 0; same && f < op->nfactor; f++)
		same = n->bound.factor[f].letter == op->factor[f].letter;
	if (!same) {
		m->why[node] = "its dimensions are others";
		return;
	}
	for (uint32_t f = 0; f < op->nfactor; f++)
		count[f] = op->factor[f].parts;
	if (ap_space_legal(m->ctx, &n->bound, count, ndev, m->step, &why) &&
		(!ask(&n->bound, ndev, op, count) ||
		ap_space_legal(m->ctx, &n->bound, count, ndev, m->step, &why)))
		m->counts[node] = count;
	else
		m->why[node] = plain(m->ctx, why);
}

void ap_plan_match(struct ap_ctx *ctx, const struct ap_saved *plan, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, struct ap_plan_match *out)
{
	struct matching m = {.ctx = ctx, .g = g, .ndev = ndev, .step = step};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *names = ap_map_create(ctx->scratch);
	const char *why;
	ap_id node;

	m.counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	m.why = AP_NEW_N(ctx->arena, const char *, g->nnode);
	for (uint32_t i = 0; i < plan->nop; i++)
		ap_map_put_str(names, plan->op[i].name, NULL);
	for (ap_id i = 0; i < g->nnode; i++) {
		ap_id op = ap_map_get_str(names, g->node[i].name);

		if (op != AP_NONE)
			match_op(&m, i, &plan->op[op]);
	}
	/* if two operators need a parameter in different layouts, drop the later one's */
	while ((why = ap_plan_conflict(ctx, g, ndev, m.counts, &node))) {
		m.counts[node] = NULL;
		m.why[node] = plain(ctx, why);
	}
	ap_arena_release(ctx->scratch, mark);
	*out = (struct ap_plan_match){.counts = m.counts, .why = m.why};
	for (ap_id i = 0; i < g->nnode; i++)
		out->nopen += !m.counts[i];
}

/* A copy with shapes and types of results among the compared fields. */
static struct ap_saved with_results(struct ap_ctx *ctx, const struct ap_saved *s)
{
	struct ap_saved_op *op = ap_arena_memdup(ctx->arena, s->op, s->nop * sizeof *op);
	struct ap_saved copy = *s;

	for (uint32_t i = 0; i < s->nop; i++) {
		op[i].field[AP_SAVED_OUT_SHAPE] = op[i].out_shape;
		op[i].field[AP_SAVED_OUT_DTYPE] = op[i].out_dtype;
	}
	copy.op = op;
	return copy;
}

/* Replaces new strategies by the reasons why the plan's are no longer valid. */
static void set_reasons(struct ap_ctx *ctx, const struct ap_plan_match *m, const struct ap_graph *g,
	struct ap_saved *now)
{
	struct ap_saved_op *op = ap_arena_memdup(ctx->arena, now->op, now->nop * sizeof *op);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *names = ap_map_create(ctx->scratch);

	for (uint32_t i = 0; i < now->nop; i++)
		ap_map_put_str(names, op[i].name, NULL);
	for (ap_id i = 0; i < g->nnode; i++) {
		ap_id id = m->why[i] ? ap_map_get_str(names, g->node[i].name) : AP_NONE;
		struct ap_str json;
		struct ap_jw w;

		if (id == AP_NONE)
			continue;
		ap_str_init(&json, ctx->arena);
		ap_jw_str_init(&w, &json, 0);
		ap_jw_str(&w, m->why[i]);
		op[id].field[AP_SAVED_IN_STRATEGY] = json.s;
		op[id].field[AP_SAVED_OUT_STRATEGY] = op[id].field[AP_SAVED_STRIDES] = NULL;
	}
	ap_arena_release(ctx->scratch, mark);
	now->op = op;
}

static bool is_one_of(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(s, *list))
			return true;
	return false;
}

/* Is a figure one of the inputs? Those in one plan only come from another version. */
static bool is_of_inputs(const struct ap_diff_figure *f, bool machine)
{
	static const char *const asked[] = {"chip", "capacity_bytes", NULL}; /* without a rank table */
	static const char *const told[] = {"device_num", "devices_per_server", "devices_per_pod",
		"chip", "memory", "batch", NULL}; /* given by machine and graph */

	if (!f->was || !f->is)
		return false;
	if (!strcmp(f->section, "machine"))
		return machine || is_one_of(f->key, asked);
	if (!strcmp(f->section, "settings"))
		return !is_one_of(f->key, told);
	return !strcmp(f->section, "graph") && strcmp(f->key, "name") != 0;
}

static void sort_figures(struct ap_ctx *ctx, bool kept, bool machine, struct ap_plan_change *c)
{
	static const char *const outcome[] = {"prediction", "memory", "stages", "pipeline", "recompute",
		NULL};
	AP_VEC(struct ap_diff_figure) all = {0};

	for (uint32_t i = 0; i < c->diff.nfigure; i++) {
		const struct ap_diff_figure *f = &c->diff.figure[i];

		if (is_of_inputs(f, machine))
			c->inputs |= f->changed;
		else if (kept && f->was && f->is && is_one_of(f->section, outcome))
			c->outcome |= f->changed;
		else
			continue;
		AP_PUSH(ctx->arena, all, *f);
	}
	c->diff.nfigure = (uint32_t)all.n;
	c->diff.figure = all.v;
}

void ap_plan_change(struct ap_ctx *ctx, const struct ap_saved *plan, const struct ap_saved *now,
	const struct ap_plan_match *match, const struct ap_graph *g, bool machine,
	struct ap_plan_change *out)
{
	struct ap_saved was = with_results(ctx, plan), is = with_results(ctx, now);
	struct ap_diff *d = &out->diff;

	*out = (struct ap_plan_change){0};
	set_reasons(ctx, match, g, &is);
	ap_diff_make(ctx, &was, &is, d);
	d->held = true;
	d->npart = d->nrest = 0;
	out->inputs = d->operators.n || d->parameters.n;
	sort_figures(ctx, !match->nopen, machine, out);
	if (out->inputs)
		d->redistributions.n = d->collectives.n = d->totals.n = 0;
	out->outcome |= d->redistributions.n || d->totals.n;
	d->equal = !out->inputs && !out->outcome;
}
