/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "plan/drive.h"

struct building {
	struct ap_ctx *ctx;
	struct ap_plan *p;
	struct ap_pricer *pr;
	struct ap_plan_op *op;
	struct {
		struct ap_plan_move *v;
		size_t n, cap;
	} moves;
};

static void layouts(struct building *b, struct ap_plan_op *op)
{
	const struct ap_bound *bound = op->place.bound;
	struct ap_layout *in = AP_NEW_N(b->ctx->arena, struct ap_layout, bound->nin);
	struct ap_layout *out = AP_NEW_N(b->ctx->arena, struct ap_layout, bound->nout);

	for (int i = 0; i < bound->nin; i++)
		ap_layout_make(&op->place, &bound->in[i], &in[i]);
	for (int o = 0; o < bound->nout; o++)
		ap_layout_make(&op->place, &bound->out[o], &out[o]);
	op->in = in;
	op->out = out;
}

static void comms(struct building *b, ap_id node, struct ap_plan_op *op)
{
	const struct ap_node *n = &b->p->graph->node[node];
	struct ap_comm found[AP_MAX_COMMS];
	int count = ap_comms_derive(&b->p->task[node], &op->place, b->p->step, found);
	struct ap_plan_comm *list = AP_NEW_N(b->ctx->arena, struct ap_plan_comm, count);

	for (int i = 0; i < count; i++) {
		list[i].comm = found[i];
		list[i].tensor = found[i].operand >= 0 ? n->in[found[i].operand]
						       : n->out[found[i].result];
		list[i].time_s = ap_comm_time_s(b->pr, &found[i], &list[i].algorithm);
	}
	op->ncomm = (uint32_t)count;
	op->comm = list;
}

static void operators(struct building *b, const int32_t *const *counts)
{
	const struct ap_graph *g = b->p->graph;

	b->op = AP_NEW_N(b->ctx->arena, struct ap_plan_op, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++) {
		struct ap_plan_op *op = &b->op[i];

		ap_placement_make(&g->node[i].bound, counts[i], b->p->machine->ndev, &op->place);
		ap_op_cost_make(b->pr, &b->p->task[i], &op->place, &op->cost);
		layouts(b, op);
		comms(b, i, op);
		op->in_checkpoint = g->node[i].param != AP_NONE &&
			g->node[i].bound.row->unit != AP_OP_VIEW;
	}
	b->p->op = b->op;
}

static void move(struct building *b, ap_id to, uint32_t operand, ap_id from,
	const struct ap_layout *a)
{
	const struct ap_graph *g = b->p->graph;
	struct ap_plan_move m = {.tensor = g->node[to].in[operand], .from = from, .to = to,
		.operand = operand, .a = *a, .b = b->op[to].in[operand]};
	struct ap_reshard_step steps[AP_RESHARD_MAX];
	struct ap_flow flow;

	ap_flow_make(g, b->p->task, to, operand, b->p->step, &flow);
	m.nstep = ap_reshard(a, &m.b, flow.size, b->p->machine->ndev, steps);
	if (m.nstep == 0)
		return;
	m.step = ap_arena_memdup(b->ctx->arena, steps, (size_t)m.nstep * sizeof *steps);
	ap_move_cost_make(b->pr, &flow, a, &m.b, &m.cost);
	AP_PUSH(b->ctx->arena, b->moves, m);
}

static void redistributions(struct building *b)
{
	const struct ap_graph *g = b->p->graph;

	for (ap_id v = 0; v < g->nnode; v++) {
		for (uint32_t i = 0; i < g->node[v].bound.nin; i++) {
			const struct ap_tensor *t = &g->tensor[g->node[v].in[i]];
			struct ap_layout input;

			if (t->kind == AP_TENSOR_ACT) {
				move(b, v, i, t->producer, &b->op[t->producer].out[t->result]);
			} else if (t->kind == AP_TENSOR_INPUT) {
				ap_input_layout(&t->shape, t->batch, b->p->machine->ndev,
					b->p->step, &input);
				move(b, v, i, AP_NONE, &input);
			}
		}
	}
	b->p->nmove = (uint32_t)b->moves.n;
	b->p->move = b->moves.v;
}

static void gradient_group(const struct ap_plan_op *op, uint32_t operand, struct ap_axes *out)
{
	*out = (struct ap_axes){0};
	for (uint32_t i = 0; i < op->ncomm; i++)
		if (op->comm[i].comm.phase == AP_PHASE_GRADIENT &&
			op->comm[i].comm.operand == (int)operand)
			for (int x = 0; x < op->comm[i].comm.axes.n; x++)
				ap_axes_add(out, op->comm[i].comm.axes.axis[x]);
}

static void parameter(const struct building *b, ap_id tensor, struct ap_plan_param *out)
{
	const struct ap_tensor *t = &b->p->graph->tensor[tensor];
	ap_id node = t->owner.node;
	uint32_t operand = t->owner.operand;
	const struct ap_plan_op *op = &b->op[node];
	const struct ap_operand *o = &op->place.bound->in[operand];

	*out = (struct ap_plan_param){.tensor = tensor, .node = node, .operand = operand,
		.layout = op->in[operand]};
	ap_dev_matrix_standard(&op->place, &out->dev);
	if (!ap_tensor_map(&op->place, o, &out->dev, out->map))
		ap_layout_dev_matrix(&out->layout, b->p->machine->ndev, &out->dev, out->map);
	ap_layout_slice(&out->layout, t->shape.dim, out->slice);
	ap_opt_shard_make(&b->p->task[node], (int)operand, &op->place, b->p->step, &out->shard);
	gradient_group(op, operand, &out->gradient);
}

static void parameters(struct building *b)
{
	const struct ap_graph *g = b->p->graph;
	struct ap_plan_param *list = AP_NEW_N(b->ctx->arena, struct ap_plan_param, g->ntensor);
	uint32_t n = 0;

	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM && g->tensor[t].nuse > 0)
			parameter(b, t, &list[n++]);
	b->p->nparam = n;
	b->p->param = list;
}

void ap_plan_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t *const *counts, int64_t capacity_bytes,
	struct ap_plan *out)
{
	struct building b = {.ctx = ctx, .p = out};

	*out = (struct ap_plan){.graph = g, .machine = m, .step = step,
		.capacity_bytes = capacity_bytes};
	b.pr = ap_pricer_create(ctx->arena, m, step);
	ap_tasks_make(ctx, g, step, &out->task);
	operators(&b, counts);
	redistributions(&b);
	parameters(&b);
	ap_simulate(ctx, out);
	ap_plan_memory(out, &out->prediction.memory);
	out->search.objective_s = ap_plan_objective_s(out);
}

double ap_plan_objective_s(const struct ap_plan *p)
{
	double sum = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		sum += ap_op_cost_total_s(&p->op[i].cost, p->step);
	for (uint32_t i = 0; i < p->nmove; i++)
		if (p->move[i].from != AP_NONE)
			sum += ap_quantise_s(p->move[i].cost.forward_s + p->move[i].cost.backward_s);
	return sum;
}

void ap_plan_memory(const struct ap_plan *p, struct ap_memory *out)
{
	const struct ap_software *sw = p->step->software;

	*out = (struct ap_memory){.context = sw ? sw->context_bytes : 0,
		.buffers = sw && p->machine->ndev > 1 ? sw->comm_buffer_bytes : 0};
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_op_cost *c = &p->op[i].cost;

		out->weights += c->weight_bytes;
		out->gradients += c->gradient_bytes;
		out->optimizer += c->optimizer_bytes;
		out->activations += c->activation_bytes;
		if (c->temporary_bytes > out->temporary)
			out->temporary = c->temporary_bytes;
	}
	for (uint32_t i = 0; i < p->nmove; i++)
		if (p->move[i].from != AP_NONE)
			out->activations += p->move[i].cost.kept_bytes;
	out->total = out->weights + out->gradients + out->optimizer + out->activations +
		out->temporary + out->context + out->buffers;
}
