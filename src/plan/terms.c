/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/terms.h"

#include <assert.h>
#include <string.h>

#include "cost/opcost.h"
#include "graph/work.h"
#include "hw/chip.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "pipeline/schedule.h"
#include "shard/layout.h"

const char *ap_plan_status_name(enum ap_plan_status st)
{
	static const char *const names[] = {
		[AP_PLAN_OPTIMAL] = "optimal",
		[AP_PLAN_FEASIBLE] = "feasible",
		[AP_PLAN_GIVEN] = "given",
		[AP_PLAN_STOPPED] = "stopped",
	};

	return names[st];
}

const char *ap_step_status_name(enum ap_step_status st)
{
	static const char *const names[] = {
		[AP_STEP_OPEN] = "open", [AP_STEP_BOUNDED] = "bounded", [AP_STEP_PROVEN] = "proven"};

	return names[st];
}

const char *ap_move_name(enum ap_move m)
{
	switch (m) {
	case AP_MOVE_GATHER:
		return ap_coll_name(AP_COLL_ALLGATHER);
	case AP_MOVE_ALLTOALL:
		return ap_coll_name(AP_COLL_ALLTOALL);
	case AP_MOVE_REDUCESCATTER:
		return ap_coll_name(AP_COLL_REDUCESCATTER);
	case AP_MOVE_ALLREDUCE:
		return ap_coll_name(AP_COLL_ALLREDUCE);
	case AP_MOVE_SLICE:
		break;
	}
	return "Slice";
}

const char *ap_phase_name(enum ap_phase phase)
{
	static const char *const names[] = {
		[AP_PHASE_FORWARD] = "forward",
		[AP_PHASE_BACKWARD] = "backward",
		[AP_PHASE_GRADIENT] = "gradient",
		[AP_PHASE_OPTIMIZER] = "optimizer",
		[AP_PHASE_RECOMPUTE] = "recompute",
	};

	return names[phase];
}

void ap_plan_slice(const struct ap_plan *p, const struct ap_tensor *t, const struct ap_layout *l,
	int64_t slice[AP_MAX_RANK])
{
	int64_t size[AP_MAX_RANK];

	for (int d = 0; d < t->shape.rank; d++)
		size[d] = t->batch >> d & 1 ? t->shape.dim[d] / p->step->micro_batches :
			t->shape.dim[d];
	ap_layout_slice(l, size, slice);
}

const char *ap_short_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	bool scope = !strncmp(name, "Default/", 8);

	return scope && slash[1] ? slash + 1 : name;
}

struct ap_memory_kind ap_memory_kind(const struct ap_memory *m, int i)
{
	const struct ap_memory_kind kinds[AP_MEMORY_KINDS] = {
		{"weights_bytes", "weights", m->weights},
		{"gathered_bytes", "gathered", m->gathered},
		{"gradients_bytes", "gradients", m->gradients},
		{"optimizer_bytes", "optimizer", m->optimizer},
		{"activations_bytes", "activations", m->activations},
		{"recompute_bytes", "recompute", m->recompute},
		{"temporary_bytes", "temporary", m->temporary},
		{"context_bytes", "context", m->context},
		{"buffers_bytes", "buffers", m->buffers},
	};

	assert(i >= 0 && i < AP_MEMORY_KINDS);
	return kinds[i];
}

int32_t ap_plan_op_stage(const struct ap_plan *p, ap_id node)
{
	return p->nstage > 1 ? p->graph->node[node].stage : 0;
}

int32_t ap_plan_op_segment(const struct ap_plan *p, ap_id node)
{
	return p->nstage > 1 ? p->graph->node[node].segment : 0;
}

const char *ap_plan_scheduler(const struct ap_plan *p)
{
	const struct ap_pipe *pipe = p->step->pipe;

	return p->nstage > 1 && pipe->scheduler ? pipe->scheduler->name : "";
}

int64_t ap_plan_comm_ranks(const struct ap_comm *c)
{
	if (c->kind == AP_COLL_SEND)
		return c->from_stage == c->to_stage ? 1 : 2;
	return ap_axes_size(&c->axes);
}

bool ap_plan_bounds_baselines(const struct ap_plan *p)
{
	return p->search.status != AP_PLAN_GIVEN && p->search.lower_bound_s > 0 &&
		!(p->route && p->route->route->complete);
}

uint32_t ap_plan_pinned(const struct ap_plan *p)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		n += p->op[i].in_checkpoint;
	return n;
}

double ap_plan_op_time_s(const struct ap_op_cost *c)
{
	return ap_op_cost_kernels_s(c) + c->optimizer_s +
		(c->forward_comm_s + c->backward_comm_s + c->gradient_s - c->joined_s + c->input_s);
}

double ap_plan_move_time_s(const struct ap_plan_move *m)
{
	return m->cost.forward_s + m->cost.backward_s;
}

struct ap_move_cost ap_plan_move_part(const struct ap_plan *p, const struct ap_plan_move *m)
{
	struct ap_move_cost c = m->shares == AP_NONE ? m->cost : p->move[m->shares].cost;
	uint16_t sharers = p->task[m->to].in[m->operand].sharers;

	if (sharers == 0)
		return c;
	c.forward_s /= sharers;
	c.backward_s /= sharers;
	c.again_s /= sharers;
	return c;
}

ap_id ap_plan_comm_tensor(const struct ap_graph *g, ap_id node, const struct ap_comm *c)
{
	return c->operand >= 0 ? g->node[node].in[c->operand] : g->node[node].out[c->result];
}

const struct ap_measured *ap_plan_measured(const struct ap_plan *p, bool *is_like)
{
	return p->step->software ? ap_measured_nearest(p->machine->chip->name, p->step->software->name,
		ap_graph_kind(p->graph), is_like) : NULL;
}

double ap_plan_sum_s(const struct ap_plan *p, const struct ap_use *use)
{
	return ap_op_sum_s(p->machine->chip, p->step, &p->graph->node[use->node].bound, &p->task[use->node],
		&p->op[use->node].place, (int)use->operand);
}
