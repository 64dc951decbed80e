/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/make.h"

#include <math.h>

#include <inttypes.h>

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "cost/recompute.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "hw/group.h"
#include "plan/blocks.h"
#include "plan/buckets.h"
#include "plan/memory.h"
#include "plan/notes.h"
#include "plan/simulate.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/reshard.h"

#define MOST_MASKED 32 /* results that may count as unread, operands whose exchange may be joined */

struct ap_plan_maker {
	struct ap_ctx *ctx; /* prices are kept in its arena */
	struct ap_plan blank;
	struct ap_pricer *pricer;
	const uint32_t *class_of; /* [nnode] */
	struct ap_map *op_ids, *move_ids, *flow_ids, *end_ids;
	AP_VEC(struct ap_plan_op) ops; /* by op_ids */
	AP_VEC(struct ends) ends; /* by op_ids */
	AP_VEC(struct ap_plan_move) moves; /* by move_ids */
	const uint32_t *first_in; /* [nnode] of its operands among all */
	ap_id *flow_of; /* [operands] by flow_ids; AP_NONE: not asked for yet */
};

struct ends { /* of redistributions, at a priced operator; by end_ids */
	ap_id *in, *out; /* [nin], [nout] */
	struct ap_axes *partial; /* [nin] over which the operand's gradient is */
};

struct end_key { /* without padding */
	struct ap_layout l;
	struct ap_axes partial;
};

struct op_key {
	uint32_t class;
	uint32_t unread; /* mask of lent results that no operator reads in their own layout */
	uint32_t joined; /* as of ap_plan_op */
	int32_t count[AP_MAX_FACTOR];
};

struct move_key {
	ap_id flow, a, b; /* by flow_ids, end_ids */
};

struct share_key { /* of a copy that operands may share; without padding */
	struct ap_layout b;
	struct ap_axes partial;
	ap_id tensor, first; /* tensor: as of result_of_view() */
	uint32_t operand;
};

struct view_key { /* of a view's result; without padding */
	ap_id tensor, like;
	int32_t count[AP_MAX_FACTOR];
};

struct listing {
	struct ap_plan_maker *k;
	struct ap_op_cost *cost;
	uint32_t joined;
	AP_VEC(struct ap_plan_comm) comms;
};

static bool is_joined(uint32_t joined, const struct ap_comm *c)
{
	return c->phase == AP_PHASE_GRADIENT && c->operand < MOST_MASKED && joined >> c->operand & 1;
}

static void list_comm(void *user, const struct ap_comm *c)
{
	struct listing *l = user;
	struct ap_plan_comm x = {.comm = *c};

	x.time_s = ap_op_comm_time_s(l->k->pricer, l->cost, c, &x.algorithm);
	if (!is_joined(l->joined, c))
		AP_PUSH(l->k->ctx->arena, l->comms, x);
	else if (c->each)
		l->cost->joined_each_s += (double)l->k->blank.step->micro_batches * x.time_s;
	else
		l->cost->joined_s += x.time_s;
}

static ap_id end_id(struct ap_plan_maker *k, const struct ap_layout *l, const struct ap_axes *partial)
{
	const struct end_key key = {*l, *partial};

	return ap_map_put(k->end_ids, &key, sizeof key, NULL);
}

/* Lent results that are unread are not kept. */
static void price_op(struct ap_plan_maker *k, ap_id node, const int32_t *count, uint32_t unread,
	uint32_t joined)
{
	struct ap_arena *arena = k->ctx->arena;
	struct ap_task task = k->blank.task[node];
	const struct ap_bound *b = &k->blank.graph->node[node].bound;
	struct ap_task_result *result = ap_arena_memdup(arena, task.out, b->nout * sizeof *result);
	struct ap_layout *in = AP_NEW_N(arena, struct ap_layout, b->nin);
	struct ap_layout *out = AP_NEW_N(arena, struct ap_layout, b->nout);
	struct ap_plan_op op = {.in = in, .out = out};
	struct ends e = {AP_NEW_N(arena, ap_id, b->nin), AP_NEW_N(arena, ap_id, b->nout),
		AP_NEW_N(arena, struct ap_axes, b->nin)};
	struct listing l = {.k = k, .joined = joined};

	for (int o = 0; o < b->nout; o++)
		result[o].lent = o < MOST_MASKED && unread >> o & 1;
	task.out = result;
	ap_placement_make(b, count, ap_graph_devices(k->blank.graph, node, k->blank.machine->ndev),
		&op.place);
	ap_op_cost_make(k->pricer, &task, &op.place, &op.cost);
	op.cost.activation_bytes -= op.cost.lent_bytes;
	op.cost.lent_bytes = op.cost.read_bytes = 0;
	for (int i = 0; i < b->nin; i++) {
		ap_layout_make(&op.place, &b->in[i], &in[i]);
		ap_gradient_partial(&k->blank.task[node], i, &op.place, k->blank.step, &e.partial[i]);
		e.in[i] = end_id(k, &in[i], &e.partial[i]);
	}
	for (int o = 0; o < b->nout; o++) {
		ap_layout_make(&op.place, &b->out[o], &out[o]);
		e.out[o] = end_id(k, &out[o], &(struct ap_axes){0});
	}
	l.cost = &op.cost;
	ap_comms_derive(&k->blank.task[node], &op.place, k->blank.step, list_comm, &l);
	op.ncomm = (uint32_t)l.comms.n;
	op.comm = l.comms.v;
	AP_PUSH(arena, k->ops, op);
	AP_PUSH(arena, k->ends, e);
}

bool ap_plan_is_held(const struct ap_node *n)
{
	return n->param != AP_NONE && ap_op_has_strategy(n->bound.row);
}

/* The priced operator, by op_ids. */
static ap_id priced(struct ap_plan_maker *k, ap_id i, const int32_t *count, uint32_t unread, uint32_t joined)
{
	const struct ap_bound *b = &k->blank.graph->node[i].bound;
	struct op_key key = {.class = k->class_of[i], .unread = unread, .joined = joined};
	bool fresh;
	ap_id id;

	memcpy(key.count, count, b->nfactor * sizeof *key.count);
	id = ap_map_put(k->op_ids, &key, offsetof(struct op_key, count[b->nfactor]), &fresh);
	if (fresh)
		price_op(k, i, count, unread, joined);
	return id;
}

static ap_id operator(struct ap_plan_maker *k, ap_id i, const int32_t *count, uint32_t unread,
	uint32_t joined, struct ap_plan_op *op)
{
	const struct ap_node *n = &k->blank.graph->node[i];
	ap_id id = priced(k, i, count, unread, joined);

	*op = k->ops.v[id];
	op->joined = joined;
	op->place.bound = &n->bound;
	op->in_checkpoint = ap_plan_is_held(n);
	return id;
}

static ap_id flow_id(struct ap_plan_maker *k, ap_id to, uint32_t operand)
{
	ap_id *id = &k->flow_of[k->first_in[to] + operand];
	struct ap_flow key;

	if (*id != AP_NONE)
		return *id;
	ap_flow_make(k->blank.graph, k->blank.task, to, operand, k->blank.step, &key);
	key.in_flight = 0; /* of no matter to what a redistribution costs */
	return *id = ap_map_put(k->flow_ids, &key, sizeof key, NULL);
}

/* The redistribution from a layout, an end of that number, to an operand of a priced operator, there or back.
 * NULL: none; without steps: none either. Until the next one is asked for. */
static const struct ap_plan_move *move(struct ap_plan_maker *k, ap_id to, uint32_t operand,
	const struct ap_layout *a, ap_id end, ap_id reader)
{
	struct move_key key = {.a = end, .b = k->ends.v[reader].in[operand]};
	bool fresh;
	ap_id id;

	if (key.a == key.b && !k->blank.task[to].received)
		return NULL;
	key.flow = flow_id(k, to, operand);
	id = ap_map_put(k->move_ids, &key, sizeof key, &fresh);
	if (fresh) {
		const struct ap_layout *b = &k->ops.v[reader].in[operand];
		unsigned ways = ap_reshard_ways(k->blank.step);
		struct ap_plan_move m = {.a = *a, .b = *b, .shares = AP_NONE};
		const struct ap_machine *machine = k->blank.machine;
		struct ap_reshard_step steps[AP_RESHARD_MAX];
		struct ap_reshard_end there, here;
		struct ap_flow flow;

		ap_flow_make(k->blank.graph, k->blank.task, to, operand, k->blank.step, &flow);
		ap_reshard_end_make(a, flow.size, ap_flow_devices(machine, &flow, false), &there);
		ap_reshard_end_make(b, flow.size, ap_flow_devices(machine, &flow, true), &here);
		here.partial = k->ends.v[reader].partial[operand];
		m.sent = flow.sent;
		m.nstep = m.sent ? 0 : ap_reshard_steps(&there, &here, ways, steps);
		m.step = ap_arena_memdup(k->ctx->arena, steps, (size_t)m.nstep * sizeof *steps);
		if (!m.sent && flow.grad && k->blank.step->executor == AP_EXECUTOR_GENERIC) {
			m.nback = ap_reshard_back(&here, &there, ways, steps);
			m.back = ap_arena_memdup(k->ctx->arena, steps, (size_t)m.nback * sizeof *steps);
		}
		ap_move_cost_between(k->pricer, &flow, &there, &here, &m.cost);
		AP_PUSH(k->ctx->arena, k->moves, m);
	}
	return &k->moves.v[id];
}

/* Is the redistribution's result made again from its source instead of kept, or its source itself? */
static bool is_made_anew(const struct ap_plan *p, const struct ap_plan_move *m)
{
	return p->task[m->to].in[m->operand].again ||
		m->nstep == 0 ||
		(p->step->executor == AP_EXECUTOR_GENERIC && m->step[m->nstep - 1].after > m->step[0].before);
}

/*
 * A result, or the copy that a redistribution to a view makes, is kept for backward passes of
 * others only if one of them reads it in that layout; a further redistribution keeps a copy of its
 * own. Readers come before what they read.
 */
static void settle(struct ap_plan_maker *k, const struct ap_plan *p, struct ap_plan_move *move,
	size_t nmove, struct ap_plan_op *op)
{
	const struct ap_graph *g = p->graph;
	bool *read = AP_NEW_N(k->ctx->scratch, bool, g->ntensor);

	for (ap_id v = g->nnode; v-- > 0;) {
		const struct ap_node *n = &g->node[v];
		const struct ap_task *t = &p->task[v];
		uint32_t unread = 0;

		for (uint32_t i = n->bound.nin; i-- > 0;) {
			bool wanted = ap_op_is_view(n->bound.row) ? read[n->out[0]] : true;
			struct ap_plan_move *m = NULL;

			if (nmove > 0 && move[nmove - 1].to == v && move[nmove - 1].operand == i)
				m = &move[--nmove];
			if (!t->in[i].kept || t->in[i].cast)
				continue;
			if (m && t->in[i].share > 0 && !wanted)
				m->cost.kept_bytes = 0;
			read[n->in[i]] |= wanted && (!m || is_made_anew(p, m));
		}
		for (uint16_t o = 0; o < n->bound.nout && o < MOST_MASKED; o++)
			if (t->out[o].lent && !read[n->out[o]])
				unread |= UINT32_C(1) << o;
		if (unread)
			operator(k, v, ap_placement_counts(k->ctx->scratch, &op[v].place), unread,
				op[v].joined, &op[v]);
	}
}

/* Where view v holds what an equal one before it does, on the same ranks: that one's result; else its own.
 * held: the same of the tensors before it; views: of all before it, to their results. */
static ap_id result_of_view(struct ap_plan_maker *k, const struct ap_plan *p, ap_id v, const ap_id *held,
	struct ap_map *views, ap_id *result)
{
	const struct ap_node *n = &p->graph->node[v];
	struct view_key key = {.tensor = held[n->in[0]], .like = k->blank.task[v].like};
	bool fresh;
	ap_id id;

	memcpy(key.count, ap_placement_counts(k->ctx->scratch, &p->op[v].place),
		n->bound.nfactor * sizeof *key.count);
	id = ap_map_put(views, &key, offsetof(struct view_key, count[n->bound.nfactor]), &fresh);
	if (fresh)
		result[id] = n->out[0];
	return result[id];
}

/* id: of the plan's operators, by op_ids. */
static void redistributions(struct ap_plan_maker *k, struct ap_arena *arena, struct ap_plan *p,
	const ap_id *id, struct ap_plan_op *op)
{
	const struct ap_graph *g = p->graph;
	struct ap_mark mark = ap_arena_mark(k->ctx->scratch);
	AP_VEC(struct ap_plan_move) moves = {0};
	AP_VEC(uint32_t) leader = {0}; /* redistributions by shared */
	struct ap_map *shared = ap_map_create(k->ctx->scratch), *views = ap_map_create(k->ctx->scratch);
	ap_id *held = ap_arena_alloc_raw(k->ctx->scratch, g->ntensor, sizeof *held);
	ap_id *result = ap_arena_alloc_raw(k->ctx->scratch, g->nnode, sizeof *result); /* by views */

	for (ap_id t = 0; t < g->ntensor; t++)
		held[t] = t;
	for (ap_id v = 0; v < g->nnode; v++) {
		if (k->blank.task[v].like != AP_NONE)
			held[g->node[v].out[0]] = result_of_view(k, p, v, held, views, result);
		for (uint32_t i = 0; i < g->node[v].bound.nin; i++) {
			ap_id tensor = g->node[v].in[i], sharer = k->blank.task[v].in[i].sharer;
			const struct ap_tensor *t = &g->tensor[tensor];
			struct share_key key = {.tensor = held[tensor], .first = sharer, .operand = i};
			const struct ap_plan_move *found;
			struct ap_layout a = {0};
			struct ap_plan_move m;

			if (t->kind == AP_TENSOR_ACT) {
				found = move(k, v, i, &p->op[t->producer].out[t->result],
					k->ends.v[id[t->producer]].out[t->result], id[v]);
			} else if (t->kind == AP_TENSOR_INPUT) {
				ap_input_layout(&t->shape, t->batch, k->blank.task[v].in[i].arrival,
					ap_graph_devices(g, v, p->machine->ndev), p->step, &a);
				found = move(k, v, i, &a, end_id(k, &a, &(struct ap_axes){0}), id[v]);
			} else {
				continue;
			}
			if (!found || (!found->sent && found->nstep == 0 && found->nback == 0))
				continue;
			m = *found;
			if (k->blank.task[v].in[i].sharers > 0) {
				bool fresh;
				ap_id group;

				key.partial = k->ends.v[id[v]].partial[i];
				key.b = m.b;
				group = ap_map_put(shared, &key, sizeof key, &fresh);
				if (fresh)
					AP_PUSH(k->ctx->scratch, leader, (uint32_t)moves.n);
				else
					m = (struct ap_plan_move){.a = m.a, .b = m.b,
						.shares = leader.v[group],
						.cost.objective_s = m.cost.objective_s};
			}
			m.tensor = tensor;
			m.from = t->kind == AP_TENSOR_ACT ? t->producer : AP_NONE;
			m.to = v;
			m.operand = i;
			AP_PUSH(k->ctx->scratch, moves, m);
		}
	}
	settle(k, p, moves.v, moves.n, op);
	p->nmove = (uint32_t)moves.n;
	p->move = ap_arena_memdup(arena, moves.v, moves.n * sizeof *moves.v);
	ap_arena_release(k->ctx->scratch, mark);
}

/* Lists the collectives of the gradient of a use (out NULL: not); returns their number. */
static uint32_t list_exchanges(const struct ap_plan *p, const struct ap_use *use,
	struct ap_plan_exchange *out)
{
	const struct ap_plan_op *op = &p->op[use->node];
	uint32_t n = 0;

	for (uint32_t i = 0; i < op->ncomm; i++) {
		const struct ap_comm *c = &op->comm[i].comm;

		if (c->phase != AP_PHASE_GRADIENT || c->operand != (int)use->operand)
			continue;
		if (out)
			out[n] = (struct ap_plan_exchange){use->node, c};
		n++;
	}
	return n;
}

/* Lists the collectives of all uses, the owner's first. */
static void exchanges(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_tensor *t,
	struct ap_plan_param *out)
{
	struct ap_plan_exchange *list;
	uint32_t n = 0;

	for (uint32_t u = 0; u < t->nuse; u++)
		n += list_exchanges(p, &t->use[u], NULL);
	list = AP_NEW_N(ctx->arena, struct ap_plan_exchange, n);
	out->nexchange = list_exchanges(p, &t->owner, list);
	for (uint32_t u = 0; u < t->nuse; u++)
		if (t->use[u].node != t->owner.node || t->use[u].operand != t->owner.operand)
			out->nexchange += list_exchanges(p, &t->use[u], &list[out->nexchange]);
	out->exchange = list;
}

/* Lists the uses whose gradient is added to the owner's. */
static void sums(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_tensor *t,
	struct ap_plan_param *out)
{
	struct ap_plan_sum *sum = AP_NEW_N(ctx->arena, struct ap_plan_sum, t->nuse);

	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct ap_use *use = &t->use[u];
		const struct ap_plan_op *op = &p->op[use->node];
		uint32_t twins = 0;

		if (use->operand >= MOST_MASKED || !(op->joined >> use->operand & 1))
			continue;
		for (uint32_t mask = op->joined; mask; mask &= mask - 1)
			twins++;
		sum[out->nsum++] = (struct ap_plan_sum){use->node, use->operand,
			(op->cost.joined_s + op->cost.joined_each_s) / twins};
	}
	out->sum = sum;
}

static void parameter(struct ap_ctx *ctx, const struct ap_plan *p, ap_id tensor,
	struct ap_plan_param *out)
{
	const struct ap_tensor *t = &p->graph->tensor[tensor];
	ap_id node = t->owner.node;
	uint32_t operand = t->owner.operand;
	const struct ap_plan_op *op = &p->op[node];
	const struct ap_operand *o = &op->place.bound->in[operand];

	*out = (struct ap_plan_param){.tensor = tensor, .node = node, .operand = operand,
		.layout = op->in[operand]};
	ap_dev_matrix_standard(&op->place, &out->dev);
	if (!ap_tensor_map(&op->place, o, &out->dev, out->map))
		ap_layout_dev_matrix(&out->layout, op->place.ndev, &out->dev, out->map);
	ap_layout_slice(&out->layout, t->shape.dim, out->slice);
	ap_opt_shard_make(&p->task[node], (int)operand, &op->place, p->step, &out->shard);
	for (uint32_t i = 0; i < op->ncomm; i++)
		if (op->comm[i].comm.phase == AP_PHASE_GRADIENT && op->comm[i].comm.operand == (int)operand)
			for (int x = 0; x < op->comm[i].comm.axes.n; x++)
				ap_axes_add(&out->gradient, op->comm[i].comm.axes.axis[x]);
	exchanges(ctx, p, t, out);
	sums(ctx, p, t, out);
}

static const struct ap_plan_recompute *recomputed(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_step *step)
{
	struct ap_plan_recompute *r = AP_NEW(ctx->arena, struct ap_plan_recompute);
	struct ap_again_layers l;
	int64_t *count;
	const char **kind;
	unsigned *what;
	size_t npart;

	if (!ap_recompute_is_asked(g, step))
		return NULL;
	ap_recompute_layers(ctx, g, step, &l);
	npart = (size_t)(l.nstage * l.nsegment);
	count = AP_NEW_N(ctx->arena, int64_t, l.n * npart);
	kind = AP_NEW_N(ctx->arena, const char *, l.n);
	what = AP_NEW_N(ctx->arena, unsigned, l.n);
	*r = (struct ap_plan_recompute){.layers = l.names, .nstage = l.nstage, .nsegment = l.nsegment,
		.kind = kind, .count = count};
	for (uint32_t i = 0; i < l.n; i++) {
		uint32_t k = 0;

		while (k < r->nkind && what[k] != l.at[i].what)
			k++;
		if (k == r->nkind) {
			what[k] = l.at[i].what;
			kind[k] = what[k] == AP_RECOMPUTE_FULL && step->recompute_unit > 1
				? ap_arena_printf(ctx->arena, "uniform:%" PRId64, step->recompute_unit)
				: ap_again_text(ctx->arena, what[k]);
			r->nkind++;
		}
		count[k * npart + l.at[i].part]++;
	}
	return l.n ? r : NULL;
}

void ap_plan_complete(struct ap_ctx *ctx, const struct ap_plan *sketch, struct ap_plan *out)
{
	const struct ap_graph *g = sketch->graph;
	struct ap_plan_param *list;
	uint32_t n = 0;

	for (ap_id t = 0; t < g->ntensor; t++)
		n += g->tensor[t].kind == AP_TENSOR_PARAM && g->tensor[t].nuse > 0;
	list = AP_NEW_N(ctx->arena, struct ap_plan_param, n);
	*out = *sketch;
	out->param = list;
	out->nparam = n;
	out->recompute = recomputed(ctx, g, sketch->step);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM && g->tensor[t].nuse > 0)
			parameter(ctx, sketch, t, list++);
	ap_buckets_explain(ctx, sketch);
	out->event = ap_simulate_schedule(ctx, sketch, &out->nevent);
	ap_plan_notes(ctx, out);
}

const int32_t *const *ap_plan_counts(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, p->graph->nnode);

	for (ap_id i = 0; i < p->graph->nnode; i++)
		counts[i] = ap_placement_counts(ctx->arena, &p->op[i].place);
	return counts;
}

struct ap_plan_maker *ap_plan_maker_create(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, int64_t capacity_bytes)
{
	struct ap_plan_maker *k = AP_NEW(ctx->arena, struct ap_plan_maker);
	uint32_t *first_in = AP_NEW_N(ctx->arena, uint32_t, g->nnode + 1);
	struct ap_blocks *blocks = AP_NEW(ctx->arena, struct ap_blocks);

	k->ctx = ctx;
	k->blank = (struct ap_plan){.graph = g, .machine = m, .step = step,
		.capacity_bytes = capacity_bytes};
	k->pricer = ap_pricer_create(ctx->arena, m, step);
	ap_tasks_make(ctx, g, step, &k->blank.task);
	ap_blocks_make(ctx, g, step, k->blank.task, blocks);
	k->blank.blocks = blocks;
	k->class_of = ap_task_classes(ctx, k->blank.task, g->nnode);
	k->op_ids = ap_map_create(ctx->arena);
	k->move_ids = ap_map_create(ctx->arena);
	k->flow_ids = ap_map_create(ctx->arena);
	k->end_ids = ap_map_create(ctx->arena);
	for (ap_id i = 0; i < g->nnode; i++)
		first_in[i + 1] = first_in[i] + g->node[i].bound.nin;
	k->first_in = first_in;
	k->flow_of = ap_arena_alloc_raw(ctx->arena, first_in[g->nnode], sizeof *k->flow_of);
	memset(k->flow_of, 0xff, first_in[g->nnode] * sizeof *k->flow_of);
	return k;
}

/* Do both uses of a parameter, which lies alike for both, exchange its gradient alike? */
static bool exchange_alike(const struct ap_plan_op *op, const struct ap_use *a, const struct ap_use *b)
{
	const struct ap_plan_op *one = &op[a->node], *other = &op[b->node];
	uint32_t i = 0, k = 0, n = 0;

	for (;; i++, k++, n++) {
		const struct ap_comm *x, *y;

		while (i < one->ncomm && (one->comm[i].comm.phase != AP_PHASE_GRADIENT ||
			one->comm[i].comm.operand != (int)a->operand))
			i++;
		while (k < other->ncomm && (other->comm[k].comm.phase != AP_PHASE_GRADIENT ||
			other->comm[k].comm.operand != (int)b->operand))
			k++;
		if (i == one->ncomm || k == other->ncomm)
			return n > 0 && i == one->ncomm && k == other->ncomm;
		x = &one->comm[i].comm;
		y = &other->comm[k].comm;
		if (x->kind != y->kind || x->bytes != y->bytes || x->part != y->part || x->each != y->each ||
			!ap_axes_equal(&x->axes, &y->axes))
			return false;
	}
}

/* Uses of a parameter that run back before its owner does, in the same passes, and would exchange the
 * gradient as the owner does, leave it to the owner: it sums theirs with its own. */
static void join_gradients(struct ap_plan_maker *k, struct ap_plan_op *op)
{
	const struct ap_graph *g = k->blank.graph;

	for (ap_id id = 0; k->blank.step->executor == AP_EXECUTOR_GENERIC && id < g->ntensor; id++) {
		const struct ap_tensor *t = &g->tensor[id];
		const struct ap_node *owner = &g->node[t->owner.node];

		for (uint32_t u = 0; t->kind == AP_TENSOR_PARAM && t->nuse > 1 && u < t->nuse; u++) {
			const struct ap_use *use = &t->use[u];
			const struct ap_node *n = &g->node[use->node];

			if (use->node > t->owner.node && use->operand < MOST_MASKED && !n->once &&
				!owner->once && n->stage == owner->stage &&
				n->segment == owner->segment &&
				ap_layout_equal(&op[use->node].in[use->operand],
					&op[t->owner.node].in[t->owner.operand]) &&
				exchange_alike(op, &t->owner, use))
				operator(k, use->node, ap_placement_counts(k->ctx->scratch,
					&op[use->node].place), 0,
					op[use->node].joined | UINT32_C(1) << use->operand, &op[use->node]);
		}
	}
}

/* ctx: the maker's, with the arena that the plan is laid into. */
static void price(struct ap_plan_maker *k, struct ap_ctx *ctx, const int32_t *const *counts,
	struct ap_plan *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_plan_op *op = ap_arena_alloc_raw(ctx->arena, k->blank.graph->nnode, sizeof *op);
	ap_id *id = ap_arena_alloc_raw(ctx->scratch, k->blank.graph->nnode, sizeof *id);

	*out = k->blank;
	for (ap_id i = 0; i < k->blank.graph->nnode; i++)
		id[i] = operator(k, i, counts[i], 0, 0, &op[i]);
	join_gradients(k, op);
	out->op = op;
	redistributions(k, ctx->arena, out, id, op);
	ap_arena_release(ctx->scratch, mark);
	out->nstage = k->blank.machine->nstage;
	out->stage = ap_plan_stages(ctx, out);
	for (uint32_t s = 0; s < out->nstage; s++)
		if (s == 0 || out->stage[s].memory.total > out->prediction.memory.total)
			out->prediction.memory = out->stage[s].memory;
	out->search.objective_s = ap_plan_objective_s(out);
}

void ap_plan_price(struct ap_plan_maker *k, const int32_t *const *counts, struct ap_plan *out)
{
	price(k, k->ctx, counts, out);
}

static bool sketch(struct ap_plan_maker *k, struct ap_arena *arena, const int32_t *const *counts,
	int64_t most_bytes, struct ap_plan *out)
{
	struct ap_ctx ctx = *k->ctx;
	struct ap_simulation s;

	ctx.arena = arena;
	price(k, &ctx, counts, out);
	if (out->prediction.memory.total > most_bytes)
		return false;
	ap_simulate(&ctx, out, &s);
	out->prediction = s.prediction;
	out->stage = s.stage;
	out->nbucket = s.nbucket;
	out->bucket = s.bucket;
	out->timeline = s.timeline;
	return true;
}

void ap_plan_sketch_in(struct ap_plan_maker *k, struct ap_arena *arena, const int32_t *const *counts,
	struct ap_plan *out)
{
	sketch(k, arena, counts, INT64_MAX, out);
}

bool ap_plan_sketch_if_fits(struct ap_plan_maker *k, struct ap_arena *arena, const int32_t *const *counts,
	struct ap_plan *out)
{
	return sketch(k, arena, counts, k->blank.capacity_bytes, out);
}

void ap_plan_sketch(struct ap_plan_maker *k, const int32_t *const *counts, struct ap_plan *out)
{
	ap_plan_sketch_in(k, k->ctx->arena, counts, out);
}

/* Seconds from result `slot` of a priced operator to an operand of another. */
static double move_s(struct ap_plan_maker *k, ap_id to, uint32_t operand, ap_id from, uint32_t slot,
	ap_id reader)
{
	const struct ap_plan_move *m = move(k, to, operand, &k->ops.v[from].out[slot],
		k->ends.v[from].out[slot], reader);

	return !m || (!m->sent && m->nstep == 0 && m->nback == 0) ? 0
		: m->cost.forward_s + m->cost.backward_s;
}

/* Do all users of the node's parameters that have a row hold them as the node does, a priced operator? */
static bool agrees(struct ap_plan_maker *k, ap_id node, const int32_t *count, ap_id op,
	const int32_t *const *row, const int32_t *with)
{
	const struct ap_graph *g = k->blank.graph;

	for (uint32_t i = 0; i < g->node[node].bound.nin; i++) {
		const struct ap_tensor *t = &g->tensor[g->node[node].in[i]];

		for (uint32_t u = 0; t->kind == AP_TENSOR_PARAM && t->nuse > 1 && u < t->nuse; u++) {
			ap_id user = t->use[u].node, other;

			if (!row[user])
				continue;
			other = priced(k, user, user == node || row[user] == with ? count : row[user], 0, 0);
			if (!ap_layout_equal(&k->ops.v[op].in[i], &k->ops.v[other].in[t->use[u].operand]))
				return false;
		}
	}
	return true;
}

struct ap_plan_guess ap_plan_guess(struct ap_plan_maker *k, ap_id node, const int32_t *count,
	const int32_t *const *row, const int32_t *with)
{
	const struct ap_graph *g = k->blank.graph;
	const struct ap_node *n = &g->node[node];
	ap_id op = priced(k, node, count, 0, 0);
	const struct ap_op_cost *c = &k->ops.v[op].cost;
	struct ap_plan_guess out = {.own_s = ap_op_cost_kernels_s(c) + c->forward_comm_s +
		c->backward_comm_s + c->optimizer_s + c->input_s,
		.exchange_s = c->gradient_s + c->gradient_each_s};

	out.busy_s = agrees(k, node, count, op, row, with) ? out.own_s : INFINITY;
	for (uint32_t i = 0; i < n->bound.nin; i++) {
		const struct ap_tensor *t = &g->tensor[n->in[i]];
		ap_id from = t->producer;

		if (t->kind != AP_TENSOR_ACT || !row[from])
			continue;
		out.busy_s += move_s(k, node, i, priced(k, from, row[from] == with ? count : row[from], 0, 0),
			t->result, op);
	}
	for (uint16_t o = 0; o < n->bound.nout; o++) {
		const struct ap_tensor *t = &g->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			ap_id user = t->use[u].node;

			if (!row[user])
				continue;
			out.busy_s += move_s(k, user, t->use[u].operand, op, o,
				priced(k, user, row[user] == with ? count : row[user], 0, 0));
		}
	}
	return out;
}

void ap_plan_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t *const *counts, int64_t capacity_bytes,
	struct ap_plan *out)
{
	struct ap_plan sketch;

	ap_plan_sketch(ap_plan_maker_create(ctx, g, m, step, capacity_bytes), counts, &sketch);
	ap_plan_complete(ctx, &sketch, out);
}

double ap_plan_objective_s(const struct ap_plan *p)
{
	double sum = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		sum += ap_op_cost_total_s(&p->op[i].cost, p->step);
	for (uint32_t i = 0; i < p->nmove; i++)
		if (p->move[i].from != AP_NONE)
			sum += p->move[i].cost.objective_s;
	return sum;
}
