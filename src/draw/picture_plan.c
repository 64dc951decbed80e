/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of plans and graphs in memory. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "draw/picture.h"
#include "plan/terms.h"
#include "shard/space.h"

static void add_operators(struct ap_pic_builder *b, const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		struct ap_pic_node node = {.name = n->name, .type = n->type, .cell = n->cell,
			.cut = "", .slice = "", .comms = "", .key = ""};

		AP_PUSH(b->ctx->arena, b->nodes, node);
	}
}

static bool is_shared(const struct ap_tensor *t)
{
	return t->nuse > 1 && t->use[0].node != t->use[t->nuse - 1].node;
}

static void add_edge(struct ap_pic_builder *b, const struct ap_tensor *t, uint32_t to)
{
	struct ap_pic_edge edge = {.to = to, .tensor = t->name, .moves = ""};

	if (t->kind == AP_TENSOR_ACT)
		edge.from = t->producer;
	else
		edge.from = ap_pic_add_input(b,
			t->kind == AP_TENSOR_INPUT ? AP_PIC_INPUT : AP_PIC_SHARED, t->name);
	AP_PUSH(b->ctx->arena, b->edges, edge);
}

/* One edge per operand that is no parameter of its own; *slot (NULL: not wanted) maps the operands
 * of all nodes, counted through, to edges. */
static void add_edges(struct ap_pic_builder *b, const struct ap_graph *g, uint32_t *slot)
{
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint32_t j = 0; j < g->node[i].bound.nin; j++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[j]];

			if (slot)
				*slot++ = (uint32_t)b->edges.n;
			if (t->kind == AP_TENSOR_ACT || t->kind == AP_TENSOR_INPUT || is_shared(t))
				add_edge(b, t, i);
		}
}

static void add_shape(struct ap_str *text, const struct ap_tensor *t)
{
	for (int d = 0; d < t->shape.rank; d++)
		ap_str_addf(text, "%s%" PRId64, d ? "x" : "", t->shape.dim[d]);
	ap_str_addf(text, " %s", ap_dtype_name(t->shape.dtype));
	if (t->read_as != AP_DTYPE_COUNT)
		ap_str_addf(text, " as %s", ap_dtype_name(t->read_as));
}

static void add_attr(struct ap_str *text, const struct ap_attr *a)
{
	ap_str_addf(text, " %s=%" PRId64 "/%a/%s", a->name, a->i, a->f, a->s ? a->s : "");
	for (uint32_t i = 0; i < a->n; i++)
		ap_str_addf(text, ",%" PRId64, a->list[i]);
}

static const char *key_of(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_node *n)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_str_add(&text, n->type);
	for (uint32_t i = 0; i < n->attrs.n; i++)
		add_attr(&text, &n->attrs.v[i]);
	for (uint32_t i = 0; i < n->bound.nin; i++)
		add_shape(&text, &g->tensor[n->in[i]]);
	ap_str_addc(&text, ':');
	for (uint32_t i = 0; i < n->bound.nout; i++)
		add_shape(&text, &g->tensor[n->out[i]]);
	return text.s;
}

static void set_shapes(struct ap_pic_builder *b, const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		struct ap_str text;

		b->nodes.v[i].key = key_of(b->ctx, g, n);
		ap_str_init(&text, b->ctx->arena);
		if (n->bound.nout)
			add_shape(&text, &g->tensor[n->out[0]]);
		b->nodes.v[i].slice = text.s;
	}
}

void ap_picture_of_graph(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_picture *out)
{
	struct ap_pic_builder b = {.ctx = ctx};
	const char *facts = ap_arena_printf(ctx->arena, "%" PRId64 " parameters, batch %" PRId64,
		g->parameters, g->batch);

	add_operators(&b, g);
	set_shapes(&b, g);
	add_edges(&b, g, NULL);
	ap_pic_finish(&b, g->name, facts, out);
}

static int64_t *widen(struct ap_ctx *ctx, const int32_t *v, size_t n)
{
	int64_t *wide = AP_NEW_N(ctx->scratch, int64_t, n);

	for (size_t i = 0; i < n; i++)
		wide[i] = v[i];
	return wide;
}

static void set_factors(struct ap_ctx *ctx, const struct ap_placement *p, struct ap_pic_cuts *c)
{
	struct ap_pic_factor *factor = AP_NEW_N(ctx->scratch, struct ap_pic_factor, AP_MAX_FACTOR);

	for (int i = 0; i < p->bound->nfactor; i++)
		factor[i] = (struct ap_pic_factor){p->bound->factor[i].size, p->count[i],
			p->stride[i], p->bound->factor[i].flags & AP_FACTOR_BATCH};
	c->nfactor = p->bound->nfactor;
	c->factor = factor;
}

/* The vectors that shard() takes, as the plan file has them. */
static void set_strategy(struct ap_ctx *ctx, const struct ap_placement *p, struct ap_pic_cuts *c)
{
	uint32_t cap = p->bound->nin + (uint32_t)strlen(p->bound->row->strategy);
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, cap);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(ctx->scratch, cap, sizeof *cut);
	struct ap_pic_vector *in = AP_NEW_N(ctx->scratch, struct ap_pic_vector, cap);
	int32_t out[AP_MAX_RANK];

	c->nin = ap_space_to_strategy(p, rank, cut, cap);
	for (uint32_t i = 0; i < c->nin; i++)
		in[i] = (struct ap_pic_vector){rank[i], widen(ctx, cut[i], rank[i])};
	c->in = in;
	if (!p->bound->nout)
		return;
	ap_strategy_vector(p, &p->bound->out[0], out);
	c->out.rank = p->bound->out[0].rank;
	c->out.v = widen(ctx, out, c->out.rank);
}

static void set_slices(struct ap_ctx *ctx, const struct ap_plan *p, ap_id i, struct ap_pic_cuts *c)
{
	const struct ap_node *n = &p->graph->node[i];
	struct ap_pic_vector *slice = AP_NEW_N(ctx->scratch, struct ap_pic_vector, n->bound.nout);

	for (int k = 0; k < n->bound.nout; k++) {
		const struct ap_tensor *t = &p->graph->tensor[n->out[k]];
		int64_t *v = AP_NEW_N(ctx->scratch, int64_t, AP_MAX_RANK);

		ap_plan_slice(p, t, &p->op[i].out[k], v);
		slice[k] = (struct ap_pic_vector){t->shape.rank, v};
	}
	c->nslice = n->bound.nout;
	c->slice = slice;
}

static void set_comms(struct ap_ctx *ctx, const struct ap_plan_op *op, struct ap_pic_cuts *c)
{
	struct ap_pic_comm *comm = AP_NEW_N(ctx->scratch, struct ap_pic_comm, op->ncomm);

	for (uint32_t i = 0; i < op->ncomm; i++)
		comm[i] = (struct ap_pic_comm){ap_phase_name(op->comm[i].comm.phase),
			ap_coll_name(op->comm[i].comm.kind),
			ap_plan_comm_ranks(&op->comm[i].comm), op->comm[i].comm.bytes};
	c->ncomm = op->ncomm;
	c->comm = comm;
}

static const char *part_of(struct ap_ctx *ctx, const struct ap_plan *p, ap_id i)
{
	return ap_pic_part(ctx, p->nstage, p->step->pipe ? p->step->pipe->nsegment : 1,
		ap_plan_op_stage(p, i), ap_plan_op_segment(p, i));
}

static void set_operators(struct ap_pic_builder *b, const struct ap_plan *p)
{
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		struct ap_mark mark = ap_arena_mark(b->ctx->scratch);
		struct ap_pic_cuts cuts = {0};

		b->nodes.v[i].part = part_of(b->ctx, p, i);
		set_factors(b->ctx, &p->op[i].place, &cuts);
		set_strategy(b->ctx, &p->op[i].place, &cuts);
		set_slices(b->ctx, p, i, &cuts);
		set_comms(b->ctx, &p->op[i], &cuts);
		ap_pic_set_cuts(b->ctx, &b->nodes.v[i], &cuts);
		b->nodes.v[i].time_s = ap_plan_op_time_s(&p->op[i].cost);
		ap_arena_release(b->ctx->scratch, mark);
	}
}

static void set_move(struct ap_ctx *ctx, const struct ap_plan_move *m, struct ap_pic_edge *edge)
{
	const char *kind[AP_RESHARD_MAX];

	for (int i = 0; i < m->nstep; i++)
		kind[i] = ap_move_name(m->step[i].move);
	edge->time_s = ap_plan_move_time_s(m);
	edge->bytes = m->cost.bytes;
	edge->moves = ap_pic_moves(ctx, (size_t)m->nstep, kind, m->cost.bytes, edge->time_s);
}

static void set_send(const struct ap_plan *p, struct ap_pic_edge *edge)
{
	const struct ap_plan_op *op;

	if (edge->from >= p->graph->nnode || p->graph->node[edge->from].peer < 0)
		return;
	edge->sent = p->graph->node[edge->to].peer >= 0;
	op = &p->op[edge->from];
	for (uint32_t i = 0; edge->sent && i < op->ncomm; i++)
		if (op->comm[i].comm.kind == AP_COLL_SEND && op->comm[i].comm.phase == AP_PHASE_FORWARD)
			edge->sent_bytes = op->comm[i].comm.bytes;
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
	for (size_t i = 0; i < b->edges.n; i++)
		set_send(p, &b->edges.v[i]);
	ap_arena_release(b->ctx->scratch, mark);
}

static const char *facts_of(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_pic_facts facts = {
		.devices = p->machine->total,
		.servers = p->machine->topo->nserver,
		.batch = p->graph->batch,
		.stages = p->nstage,
		.micro_batches = p->step->micro_batches,
		.scheduler = ap_plan_scheduler(p),
		.memory_bytes = p->prediction.memory.total,
		.capacity_bytes = p->capacity_bytes,
		.mode = p->search.mode,
		.status = ap_plan_status_name(p->search.status),
		.gap = p->search.gap,
		.step_time_s = p->prediction.step_time_s,
		.compute_s = p->prediction.compute_s,
		.communication_s = p->prediction.communication_s,
		.exposed_communication_s = p->prediction.exposed_communication_s,
		.samples_per_s = p->prediction.samples_per_s,
	};

	return ap_pic_facts_text(ctx, &facts);
}

void ap_picture_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_picture *out)
{
	struct ap_pic_builder b = {.ctx = ctx};
	const char *title = ap_pic_title(ctx, p->graph->name, p->machine->total,
		p->machine->chip->name, p->prediction.step_time_s);

	add_operators(&b, p->graph);
	set_operators(&b, p);
	set_moves(&b, p);
	ap_pic_finish(&b, title, facts_of(ctx, p), out);
}
