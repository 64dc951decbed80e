/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: what they begin with, from a plan in memory, and whether two are the same. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "cost/comms.h"
#include "cost/task.h"
#include "hw/group.h"
#include "plan/plan.h"
#include "shard/layout.h"
#include "program.h"

static struct ap_shape shape_of(const struct ap_tensor *t, const struct ap_step *step)
{
	struct ap_shape s = t->shape;

	for (int d = 0; d < s.rank; d++)
		if (t->batch >> d & 1)
			s.dim[d] /= step->micro_batches;
	return s;
}

static const struct ap_shape *shapes_of(struct ap_ctx *ctx, const struct ap_graph *g, const ap_id *tensor,
	uint16_t n, const struct ap_step *step)
{
	struct ap_shape *s = AP_NEW_N(ctx->arena, struct ap_shape, n);

	for (int i = 0; i < n; i++)
		s[i] = shape_of(&g->tensor[tensor[i]], step);
	return s;
}

static struct ex_oper begin_oper(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node,
	const struct ap_task *task, const struct ap_step *step)
{
	const struct ap_node *n = &g->node[node];
	uint16_t nin = n->bound.nin, nout = n->bound.nout;
	struct ex_oper o = {.type = n->type, .attrs = &n->attrs, .nin = nin, .nout = nout, .in_8_bits = task->float8};
	uint16_t *slot = AP_NEW_N(ctx->arena, uint16_t, nin);
	bool *in_grad = AP_NEW_N(ctx->arena, bool, nin), *out_grad = AP_NEW_N(ctx->arena, bool, nout);
	bool *differentiable = AP_NEW_N(ctx->arena, bool, nin);

	for (int i = 0; i < nin; i++) {
		slot[i] = (uint16_t)i;
		in_grad[i] = task->in[i].grad;
		differentiable[i] = n->bound.in[i].differentiable;
	}
	for (int i = 0; i < nout; i++)
		out_grad[i] = task->out[i].grad;
	o.slot = slot;
	o.in_grad = in_grad;
	o.out_grad = out_grad;
	o.in_differentiable = differentiable;
	o.in_shape = shapes_of(ctx, g, n->in, nin, step);
	o.out_shape = shapes_of(ctx, g, n->out, nout, step);
	return o;
}

void ex_program_begin(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	int64_t ndev, struct ex_program *out)
{
	*out = (struct ex_program){.graph = g, .step = *step, .ndev = ndev};
	ap_tasks_make(ctx, g, step, &out->task);
	out->oper = AP_NEW_N(ctx->arena, struct ex_oper, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++)
		out->oper[i] = begin_oper(ctx, g, i, &out->task[i], step);
}

static void take_oper(struct ap_ctx *ctx, const struct ap_plan *p, ap_id node, struct ex_oper *o)
{
	const struct ap_plan_op *op = &p->op[node];
	struct ap_comm *comm = AP_NEW_N(ctx->arena, struct ap_comm, op->ncomm);
	bool *narrow = AP_NEW_N(ctx->arena, bool, op->ncomm);

	for (uint32_t i = 0; i < op->ncomm; i++) {
		comm[i] = op->comm[i].comm;
		narrow[i] = ap_comm_in_8_bits(&p->task[node], &comm[i], p->step);
	}
	o->comm = comm;
	o->narrow = narrow;
	o->ncomm = op->ncomm;
	o->in = op->in;
	o->out = op->out;
}

struct taking {
	struct ap_piece *piece;
	uint32_t n;
};

static void take_piece(void *user, const struct ap_piece *p)
{
	struct taking *t = user;

	if (t->piece)
		t->piece[t->n] = *p;
	t->n++;
}

static const struct ap_piece *pieces_between(struct ap_ctx *ctx, const struct ex_program *p, int32_t from,
	const struct ap_layout *a, int32_t to, const struct ap_layout *b, const struct ap_shape *shape, uint32_t *n)
{
	struct ap_pieces_side left = {a, ex_devices(p, from)}, right = {b, ex_devices(p, to)};
	struct taking t = {0};

	ap_pieces_each(ctx->scratch, &left, &right, shape->dim, take_piece, &t);
	t.piece = AP_NEW_N(ctx->arena, struct ap_piece, t.n);
	t.n = 0;
	ap_pieces_each(ctx->scratch, &left, &right, shape->dim, take_piece, &t);
	*n = t.n;
	return t.piece;
}

static void take_pieces(struct ap_ctx *ctx, const struct ex_program *p, struct ex_program_move *m)
{
	const struct ap_node *n = &p->graph->node[m->node];
	const struct ap_shape *shape = &p->oper[m->node].in_shape[m->operand];

	m->sent = true;
	m->piece = pieces_between(ctx, p, n->peer, &m->a, n->stage, &m->b, shape, &m->npiece);
	if (p->task[m->node].in[m->operand].grad)
		m->back_piece = pieces_between(ctx, p, n->stage, &m->b, n->peer, &m->a, shape,
			&m->nback_piece);
}

void ex_program_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ex_program *out)
{
	ex_program_begin(ctx, p->graph, p->step, p->machine->ndev, out);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		take_oper(ctx, p, i, &out->oper[i]);
	out->nmove = p->nmove;
	out->move = AP_NEW_N(ctx->arena, struct ex_program_move, p->nmove);
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];

		out->move[i] = (struct ex_program_move){.node = m->to, .operand = m->operand, .a = m->a,
			.b = m->b, .nstep = m->nstep, .step = m->step, .nback = m->nback, .back = m->back,
			.bytes = m->cost.bytes,
			.element_bytes = m->cost.element_bytes, .shares = m->shares};
		if (m->sent)
			take_pieces(ctx, out, &out->move[i]);
	}
	out->nparam = p->nparam;
	out->param = AP_NEW_N(ctx->arena, struct ex_program_param, p->nparam);
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct ap_plan_param *q = &p->param[i];
		struct ap_use *sum = AP_NEW_N(ctx->arena, struct ap_use, q->nsum);

		for (uint32_t k = 0; k < q->nsum; k++)
			sum[k] = (struct ap_use){q->sum[k].node, q->sum[k].operand};
		out->param[i] = (struct ex_program_param){.tensor = q->tensor, .layout = q->layout,
			.shard = q->shard, .gradient = q->gradient, .nsum = q->nsum, .sum = sum};
	}
}

const struct ex_program_param *ex_program_param_of(const struct ex_program *p, ap_id tensor)
{
	for (uint32_t i = 0; i < p->nparam; i++)
		if (p->param[i].tensor == tensor)
			return &p->param[i];
	return NULL;
}

const struct ex_program_move *ex_program_move_to(const struct ex_program *p, ap_id node,
	uint32_t operand)
{
	for (uint32_t i = 0; i < p->nmove; i++)
		if (p->move[i].node == node && p->move[i].operand == operand)
			return &p->move[i];
	return NULL;
}

const struct ex_program_move *ex_program_copy_to(const struct ex_program *p, ap_id node,
	uint32_t operand)
{
	const struct ex_program_move *m = ex_program_move_to(p, node, operand);

	if (m && m->shares != AP_NONE)
		m = &p->move[m->shares];
	return m && m->nstep > 0 ? m : NULL;
}

static bool same_comm(const struct ap_comm *a, const struct ap_comm *b)
{
	return a->phase == b->phase && a->kind == b->kind && ap_axes_equal(&a->axes, &b->axes) &&
		a->bytes == b->bytes && a->dim == b->dim && a->concat == b->concat && a->operand == b->operand && a->result == b->result &&
		a->reduce == b->reduce && a->each == b->each && a->part == b->part &&
		a->from_stage == b->from_stage && a->to_stage == b->to_stage;
}

static const char *oper_differs(const struct ex_oper *a, const struct ex_oper *b)
{
	for (int i = 0; i < a->nin; i++)
		if (!ap_layout_equal(&a->in[i], &b->in[i]))
			return "layout of an operand";
	for (int i = 0; i < a->nout; i++)
		if (!ap_layout_equal(&a->out[i], &b->out[i]))
			return "layout of a result";
	if (a->in_8_bits != b->in_8_bits)
		return "products in 8 bits";
	if (a->ncomm != b->ncomm)
		return "number of collectives";
	for (uint32_t i = 0; i < a->ncomm; i++)
		if (!same_comm(&a->comm[i], &b->comm[i]) || a->narrow[i] != b->narrow[i])
			return "a collective";
	return NULL;
}

static bool same_step(const struct ap_reshard_step *a, const struct ap_reshard_step *b)
{
	bool twice = a->move == AP_MOVE_ALLTOALL;

	return a->move == b->move && a->axis.stride == b->axis.stride && a->axis.size == b->axis.size &&
		a->dim == b->dim && a->outer == b->outer && a->before == b->before &&
		a->after == b->after &&
		a->inner_parts == b->inner_parts && (a->inner_parts == 1 ||
			(a->inner == b->inner && a->inner_outer == b->inner_outer)) &&
		(!twice || (a->concat == b->concat && a->concat_outer == b->concat_outer)) &&
		(!twice || a->inner_parts == 1 || (a->concat_inner == b->concat_inner &&
			a->concat_inner_outer == b->concat_inner_outer));
}

static bool same_steps(const struct ap_reshard_step *a, int na, const struct ap_reshard_step *b, int nb)
{
	for (int i = 0; i < na && na == nb; i++)
		if (!same_step(&a[i], &b[i]))
			return false;
	return na == nb;
}

static bool same_pieces(const struct ap_piece *a, uint32_t na, const struct ap_piece *b, uint32_t nb, int rank)
{
	for (uint32_t i = 0; na == nb && i < na; i++)
		if (a[i].from != b[i].from || a[i].to != b[i].to ||
			memcmp(a[i].start, b[i].start, (size_t)rank * sizeof *a[i].start) != 0 ||
			memcmp(a[i].extent, b[i].extent, (size_t)rank * sizeof *a[i].extent) != 0)
			return false;
	return na == nb;
}

static bool same_move(const struct ex_program_move *a, const struct ex_program_move *b)
{
	return a->node == b->node && a->operand == b->operand && ap_layout_equal(&a->a, &b->a) &&
		ap_layout_equal(&a->b, &b->b) && a->bytes == b->bytes && a->shares == b->shares &&
		(a->nstep == 0 || a->element_bytes == b->element_bytes) && a->sent == b->sent &&
		same_pieces(a->piece, a->npiece, b->piece, b->npiece, a->a.rank) &&
		same_pieces(a->back_piece, a->nback_piece, b->back_piece, b->nback_piece, a->a.rank) &&
		same_steps(a->step, a->nstep, b->step, b->nstep) &&
		same_steps(a->back, a->nback, b->back, b->nback);
}

static bool same_param(const struct ex_program_param *a, const struct ex_program_param *b)
{
	for (uint32_t i = 0; a->nsum == b->nsum && i < a->nsum; i++)
		if (a->sum[i].node != b->sum[i].node || a->sum[i].operand != b->sum[i].operand)
			return false;
	return a->nsum == b->nsum && a->tensor == b->tensor && ap_layout_equal(&a->layout, &b->layout) &&
		a->shard.shards == b->shard.shards && a->shard.by_rows == b->shard.by_rows &&
		(a->shard.shards == 1 || a->shard.by_rows || a->shard.part == b->shard.part) &&
		a->shard.weight_step == b->shard.weight_step &&
		a->shard.weight_size == b->shard.weight_size &&
		(a->shard.shards == 1 || ap_axes_equal(&a->shard.group, &b->shard.group)) &&
		ap_axes_equal(&a->gradient, &b->gradient);
}

const char *ex_program_differs(struct ap_ctx *ctx, const struct ex_program *a,
	const struct ex_program *b)
{
	for (ap_id i = 0; i < a->graph->nnode; i++) {
		const char *what = oper_differs(&a->oper[i], &b->oper[i]);

		if (what)
			return ap_arena_printf(ctx->arena, "%s of %s", what, a->graph->node[i].name);
	}
	if (a->nmove != b->nmove || a->nparam != b->nparam)
		return "number of redistributions or parameters";
	for (uint32_t i = 0; i < a->nmove; i++)
		if (!same_move(&a->move[i], &b->move[i]))
			return ap_arena_printf(ctx->arena, "redistribution to %s",
				a->graph->node[a->move[i].node].name);
	for (uint32_t i = 0; i < a->nparam; i++)
		if (!same_param(&a->param[i], &b->param[i]))
			return ap_arena_printf(ctx->arena, "parameter %s",
				a->graph->tensor[a->param[i].tensor].name);
	return NULL;
}
