/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of plans and graphs in memory. */
#include "emit/picture.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "emit/terms.h"

void ap_pic_finish(struct ap_pic_builder *b, const char *title, struct ap_picture *out)
{
	*out = (struct ap_picture){
		.title = title,
		.nnode = (uint32_t)b->nodes.n,
		.node = b->nodes.v,
		.nedge = (uint32_t)b->edges.n,
		.edge = b->edges.v,
	};
}

uint32_t ap_pic_add_input(struct ap_pic_builder *b, const char *tensor)
{
	struct ap_pic_node node = {.name = tensor, .type = "Input", .cell = "", .cut = ""};

	AP_PUSH(b->ctx->arena, b->nodes, node);
	return (uint32_t)b->nodes.n - 1;
}

static enum ap_pic_class class_of(int n, const int64_t *parts, const bool *batch)
{
	bool cut_batch = false, cut_model = false;

	for (int i = 0; i < n; i++) {
		cut_batch |= parts[i] > 1 && batch[i];
		cut_model |= parts[i] > 1 && !batch[i];
	}
	if (cut_batch)
		return cut_model ? AP_PIC_BOTH : AP_PIC_BATCH;
	return cut_model ? AP_PIC_MODEL : AP_PIC_WHOLE;
}

/* Products, for a file may hold anything; false on overflow. */
static bool product(int n, const int64_t *v, int64_t *r)
{
	return ap_product(v, (size_t)n, r) && *r > 0;
}

void ap_pic_set_cut(struct ap_ctx *ctx, struct ap_pic_node *node, int n, const int64_t *parts,
	const bool *batch, int rank, const int64_t *cut)
{
	struct ap_str text;
	int64_t all, shown;

	ap_str_init(&text, ctx->arena);
	for (int d = 0; d < rank; d++)
		ap_str_addf(&text, "%s%" PRId64, d ? "x" : "", cut[d]);
	if (product(n, parts, &all) && product(rank, cut, &shown) && all > shown && !(all % shown))
		ap_str_addf(&text, "%spartial over %" PRId64, rank ? ", " : "", all / shown);
	node->cut = text.s;
	node->cls = class_of(n, parts, batch);
}

const char *ap_pic_moves(struct ap_ctx *ctx, size_t n, const char *const *kind, int64_t bytes,
	double time_s)
{
	struct ap_str text;
	char buf[32];

	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; i < n; i++)
		if (!i || strcmp(kind[i - 1], kind[i]) != 0)
			ap_str_addf(&text, "%s%s", i ? "+" : "", kind[i]);
	if (bytes > 0)
		ap_str_addf(&text, " %s", ap_format_bytes(bytes, buf));
	if (time_s > 0)
		ap_str_addf(&text, " %s", ap_format_seconds(time_s, buf));
	return text.s;
}

const char *ap_pic_title(struct ap_ctx *ctx, const char *graph, int64_t devices, const char *chip,
	double step_time_s)
{
	char buf[32];

	return ap_arena_printf(ctx->arena, "%s on %" PRId64 " x %s: %s a step", graph, devices,
		chip, ap_format_seconds(step_time_s, buf));
}

static void add_operators(struct ap_pic_builder *b, const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		struct ap_pic_node node = {
			.name = n->name, .type = n->type, .cell = n->cell, .cut = ""};

		AP_PUSH(b->ctx->arena, b->nodes, node);
	}
}

static void add_edge(struct ap_pic_builder *b, const struct ap_tensor *t, uint32_t to)
{
	struct ap_pic_edge edge = {.to = to, .tensor = t->name, .moves = ""};

	edge.from = t->kind == AP_TENSOR_ACT ? t->producer : ap_pic_add_input(b, t->name);
	AP_PUSH(b->ctx->arena, b->edges, edge);
}

/* One edge per operand that is no parameter; *slot (NULL: not wanted) maps the operands of all
 * nodes, counted through, to edges. */
static void add_edges(struct ap_pic_builder *b, const struct ap_graph *g, uint32_t *slot)
{
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint32_t j = 0; j < g->node[i].bound.nin; j++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[j]];

			if (slot)
				*slot++ = (uint32_t)b->edges.n;
			if (t->kind == AP_TENSOR_ACT || t->kind == AP_TENSOR_INPUT)
				add_edge(b, t, i);
		}
}

void ap_picture_of_graph(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_picture *out)
{
	struct ap_pic_builder b = {.ctx = ctx};

	add_operators(&b, g);
	add_edges(&b, g, NULL);
	ap_pic_finish(&b, g->name, out);
}

static void set_operator(struct ap_ctx *ctx, const struct ap_plan_op *op, struct ap_pic_node *node)
{
	const struct ap_bound *bound = op->place.bound;
	int64_t parts[AP_MAX_FACTOR], cut[AP_MAX_RANK];
	bool batch[AP_MAX_FACTOR];
	int rank = bound->nout ? op->out[0].rank : 0;

	for (int f = 0; f < bound->nfactor; f++) {
		parts[f] = op->place.count[f];
		batch[f] = bound->factor[f].flags & AP_FACTOR_BATCH;
	}
	for (int d = 0; d < rank; d++)
		cut[d] = op->out[0].dim[d].cut;
	ap_pic_set_cut(ctx, node, bound->nfactor, parts, batch, rank, cut);
	node->time_s = ap_plan_op_time_s(&op->cost);
}

static void set_move(struct ap_ctx *ctx, const struct ap_plan_move *m, struct ap_pic_edge *edge)
{
	const char *kind[AP_RESHARD_MAX];

	for (int i = 0; i < m->nstep; i++)
		kind[i] = ap_move_name(m->step[i].move);
	edge->time_s = ap_plan_move_time_s(m);
	edge->moves = ap_pic_moves(ctx, (size_t)m->nstep, kind, m->cost.bytes, edge->time_s);
}

static void set_moves(struct ap_pic_builder *b, const struct ap_plan *p)
{
	struct ap_mark mark = ap_arena_mark(b->ctx->scratch);
	uint32_t *first = AP_NEW_N(b->ctx->scratch, uint32_t, p->graph->nnode + 1), *slot;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		first[i + 1] = first[i] + p->graph->node[i].bound.nin;
	slot = AP_NEW_N(b->ctx->scratch, uint32_t, first[p->graph->nnode]);
	add_edges(b, p->graph, slot);
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];

		set_move(b->ctx, m, &b->edges.v[slot[first[m->to] + m->operand]]);
	}
	ap_arena_release(b->ctx->scratch, mark);
}

void ap_picture_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_picture *out)
{
	struct ap_pic_builder b = {.ctx = ctx};
	const char *title = ap_pic_title(ctx, p->graph->name, p->machine->ndev,
		p->machine->chip->name, p->prediction.step_time_s);

	add_operators(&b, p->graph);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		set_operator(ctx, &p->op[i], &b.nodes.v[i]);
	set_moves(&b, p);
	ap_pic_finish(&b, title, out);
}
