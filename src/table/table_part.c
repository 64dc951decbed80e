/* SPDX-License-Identifier: Apache-2.0 */
#include "table/table_part.h"

#include "base/arena.h"
#include "base/vec.h"

struct parting {
	struct ap_ctx *ctx;
	const struct ap_table *t;
	int32_t stage;
	const uint32_t *pick; /* NULL: leave out edges to other stages, as those to AP_NONE */
	ap_id *id; /* [nodes of the whole] id in the part, or AP_NONE */
	AP_VEC(ap_id) nodes;
	AP_VEC(struct ap_pedge) edges;
	AP_VEC(struct ap_pmatrix) matrices;
	ap_id *matrix_id; /* [matrices of the whole] id in the part, or AP_NONE */
};

static ap_id *no_ids(struct ap_arena *arena, uint32_t n)
{
	ap_id *id = AP_NEW_N(arena, ap_id, n);

	for (uint32_t i = 0; i < n; i++)
		id[i] = AP_NONE;
	return id;
}

static bool is_inside(const struct parting *x, ap_id node)
{
	return x->t->graph->node[node].stage == x->stage;
}

static void add_node(struct parting *x, ap_id node)
{
	if (x->id[node] != AP_NONE)
		return;
	x->id[node] = (ap_id)x->nodes.n;
	AP_PUSH(x->ctx->arena, x->nodes, node);
}

static ap_id whole_matrix(struct parting *x, ap_id matrix)
{
	if (x->matrix_id[matrix] == AP_NONE) {
		x->matrix_id[matrix] = (ap_id)x->matrices.n;
		AP_PUSH(x->ctx->arena, x->matrices, x->t->problem->matrix[matrix]);
	}
	return x->matrix_id[matrix];
}

/* The row (or column) of a matrix for the outside node's pick. */
static ap_id cut_matrix(struct parting *x, const struct ap_pedge *e, bool row)
{
	const struct ap_pmatrix *m = &x->t->problem->matrix[e->matrix];
	uint32_t at = x->pick[row ? e->u : e->v], n = row ? m->cols : m->rows;
	double *cost = AP_NEW_N(x->ctx->arena, double, n);
	int64_t *memory = row && m->memory ? AP_NEW_N(x->ctx->arena, int64_t, n) : NULL;
	struct ap_pmatrix cut = {.rows = row ? 1 : n, .cols = row ? n : 1, .cost = cost,
		.memory = memory};

	for (uint32_t i = 0; i < n; i++) {
		size_t cell = row ? (size_t)at * m->cols + i : (size_t)i * m->cols + at;

		cost[i] = m->cost[cell];
		if (memory)
			memory[i] = m->memory[cell];
	}
	AP_PUSH(x->ctx->arena, x->matrices, cut);
	return (ap_id)(x->matrices.n - 1);
}

static void add_edge(struct parting *x, const struct ap_pedge *e)
{
	bool u = is_inside(x, e->u), v = is_inside(x, e->v);
	struct ap_pedge part;

	if ((!u && !v) || (u != v && (!x->pick || x->pick[u ? e->v : e->u] == AP_NONE)))
		return;
	add_node(x, e->u);
	add_node(x, e->v);
	part = (struct ap_pedge){x->id[e->u], x->id[e->v],
		u && v ? whole_matrix(x, e->matrix) : cut_matrix(x, e, v)};
	AP_PUSH(x->ctx->arena, x->edges, part);
}

/* The class of outside nodes: one candidate without cost. */
static struct ap_table_class outside_class(void)
{
	static const double none_s[1];
	static const int64_t none_bytes[1];

	return (struct ap_table_class){.k = 1, .before = 1, .cost = none_s, .hidden = none_s,
		.bucketed = none_s, .memory = none_bytes, .temporary = none_bytes};
}

/* The classes of inside nodes, and one for outside nodes. */
static void make_classes(struct parting *x, struct ap_table *part)
{
	uint32_t n = (uint32_t)x->nodes.n;
	struct ap_table_class *cls = AP_NEW_N(x->ctx->arena, struct ap_table_class, x->t->nclass + 1);
	uint32_t *class_of = AP_NEW_N(x->ctx->arena, uint32_t, n);
	ap_id *id = no_ids(x->ctx->scratch, x->t->nclass + 1);

	part->nclass = 0;
	for (uint32_t i = 0; i < n; i++) {
		ap_id whole = x->nodes.v[i];
		uint32_t c = is_inside(x, whole) ? x->t->class_of[whole] : x->t->nclass;

		if (id[c] == AP_NONE) {
			id[c] = part->nclass++;
			cls[id[c]] = c < x->t->nclass ? x->t->cls[c] : outside_class();
		}
		class_of[i] = id[c];
	}
	part->cls = cls;
	part->class_of = class_of;
}

static void make_nodes(struct parting *x, const struct ap_table *part, struct ap_problem *p)
{
	uint32_t n = (uint32_t)x->nodes.n;
	struct ap_pnode *node = AP_NEW_N(x->ctx->arena, struct ap_pnode, n);

	for (uint32_t i = 0; i < n; i++) {
		const struct ap_table_class *cls = &part->cls[part->class_of[i]];

		node[i] = x->t->problem->node[x->nodes.v[i]];
		if (!is_inside(x, x->nodes.v[i]))
			node[i] = (struct ap_pnode){.name = node[i].name, .k = 1, .cost = cls->cost,
				.memory = cls->memory};
	}
	p->n = n;
	p->node = node;
}

void ap_table_part_make(struct ap_ctx *ctx, const struct ap_table *t, int32_t stage,
	const uint32_t *pick, struct ap_table_part *out)
{
	struct parting x = {.ctx = ctx, .t = t, .stage = stage, .pick = pick,
		.id = no_ids(ctx->arena, t->problem->n),
		.matrix_id = no_ids(ctx->arena, t->problem->nmatrix)};
	struct ap_problem *p;

	for (ap_id i = 0; i < t->problem->n; i++)
		if (is_inside(&x, i))
			add_node(&x, i);
	out->ninside = (uint32_t)x.nodes.n;
	for (uint32_t e = 0; e < t->problem->nedge; e++)
		add_edge(&x, &t->problem->edge[e]);
	p = AP_NEW(x.ctx->arena, struct ap_problem);
	out->table = *x.t;
	out->table.task = NULL;
	make_classes(&x, &out->table);
	*p = (struct ap_problem){.nedge = (uint32_t)x.edges.n, .edge = x.edges.v,
		.nmatrix = (uint32_t)x.matrices.n, .matrix = x.matrices.v,
		.memory_limit = AP_NO_LIMIT, .quantum = x.t->problem->quantum};
	make_nodes(&x, &out->table, p);
	out->table.problem = p;
	out->node = x.nodes.v;
}
