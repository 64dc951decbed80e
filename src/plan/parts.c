/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/parts.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "pipeline/schedule.h"

int32_t ap_part_of(const struct ap_step *step, const struct ap_node *n)
{
	int32_t stage = n->stage > 0 ? n->stage : 0, segment = n->segment > 0 ? n->segment : 0;

	return step->pipe && step->pipe->scheduler
		? ap_schedule_part(step->pipe->scheduler, step->pipe->nstage, stage, segment) : 0;
}

static void make_parts(struct ap_arena *scratch, struct ap_parts *x)
{
	const struct ap_pipe *given = x->p->step->pipe, *pipe = given && given->scheduler ? given : NULL;
	const struct ap_graph *g = x->p->graph;
	int32_t *stage, *segment, *part_of = AP_NEW_N(scratch, int32_t, g->nnode);
	uint32_t *first, *at;
	ap_id *node = AP_NEW_N(scratch, ap_id, g->nnode);

	x->pipe = pipe;
	x->nstage = pipe ? pipe->nstage : 1;
	x->nsegment = pipe ? pipe->nsegment : 1;
	x->npart = x->nstage * x->nsegment;
	stage = AP_NEW_N(scratch, int32_t, x->npart);
	segment = AP_NEW_N(scratch, int32_t, x->npart);
	first = AP_NEW_N(scratch, uint32_t, x->npart + 1);
	at = AP_NEW_N(scratch, uint32_t, x->npart);
	for (int32_t k = 0; pipe && k < x->npart; k++)
		ap_schedule_spot(pipe->scheduler, pipe->nstage, k, &stage[k], &segment[k]);
	for (ap_id i = 0; i < g->nnode; i++) {
		part_of[i] = pipe ? ap_part_of(x->p->step, &g->node[i]) : 0;
		first[part_of[i] + 1]++;
	}
	for (int32_t k = 0; k < x->npart; k++) {
		first[k + 1] += first[k];
		at[k] = first[k];
	}
	for (ap_id i = 0; i < g->nnode; i++)
		node[at[part_of[i]]++] = i;
	x->stage = stage;
	x->segment = segment;
	x->first = first;
	x->node = node;
	x->part_of = part_of;
}

static void index_moves(struct ap_arena *scratch, struct ap_parts *x)
{
	const struct ap_plan *p = x->p;
	uint32_t *first = AP_NEW_N(scratch, uint32_t, p->graph->nnode + 1);

	for (uint32_t m = 0; m < p->nmove; m++)
		first[p->move[m].to + 1]++;
	for (ap_id i = 0; i < p->graph->nnode; i++)
		first[i + 1] += first[i];
	x->first_move = first;
}

/* The user of a parameter whose backward pass is the last, of those that run with every
 * micro-batch; AP_NONE if none. */
static ap_id last_to_run_back(const struct ap_parts *x, const struct ap_tensor *t)
{
	ap_id last = AP_NONE;

	for (uint32_t u = 0; u < t->nuse; u++) {
		ap_id node = t->use[u].node;
		const struct ap_task *task = &x->p->task[node];

		if (!task->in[t->use[u].operand].grad || task->once)
			continue;
		if (last == AP_NONE || x->part_of[node] < x->part_of[last])
			last = node;
	}
	return last;
}

struct gathering {
	struct ap_arena *scratch;
	struct ap_parts *x;
	AP_VEC(struct ap_gradient) all;
};

/* Adds the gradient collectives of an operand of node; of all operands if operand is negative. */
static void gather(struct gathering *l, ap_id node, int operand)
{
	const struct ap_plan_op *op = &l->x->p->op[node];
	int before = -1;

	for (uint32_t c = 0; c < op->ncomm; c++) {
		const struct ap_comm *comm = &op->comm[c].comm;
		struct ap_gradient g = {.node = node, .comm = c, .chained = comm->operand == before};

		if (comm->phase != AP_PHASE_GRADIENT || (operand >= 0 && comm->operand != operand))
			continue;
		before = comm->operand;
		AP_PUSH(l->scratch, l->all, g);
	}
}

/* mindspore: the owner exchanges a parameter's gradient once the last user has added its own. */
static void gather_mirrored(struct gathering *l, const ap_id *last, ap_id node)
{
	const struct ap_task *t = &l->x->p->task[node];

	for (uint32_t i = 0; i < t->bound->nin; i++) {
		ap_id tensor = l->x->p->graph->node[node].in[i];
		const struct ap_use *owner = &l->x->p->graph->tensor[tensor].owner;

		if (t->in[i].trainable && t->in[i].twin == i && last[tensor] == node)
			gather(l, owner->node, (int)owner->operand);
	}
}

static void index_gradients(struct ap_arena *scratch, struct ap_parts *x)
{
	const struct ap_graph *g = x->p->graph;
	struct gathering l = {.scratch = scratch, .x = x};
	uint32_t *first = AP_NEW_N(scratch, uint32_t, g->nnode + 1);
	ap_id *last = AP_NEW_N(scratch, ap_id, g->ntensor);

	for (ap_id t = 0; t < g->ntensor; t++) {
		const struct ap_tensor *tensor = &g->tensor[t];

		last[t] = AP_NONE;
		if (tensor->kind != AP_TENSOR_PARAM || tensor->owner.node == AP_NONE)
			continue;
		last[t] = last_to_run_back(x, tensor);
		if (last[t] == AP_NONE)
			last[t] = tensor->owner.node;
	}
	for (ap_id i = 0; i < g->nnode; i++) {
		first[i] = (uint32_t)l.all.n;
		if (x->p->step->executor == AP_EXECUTOR_GENERIC)
			gather(&l, i, -1);
		else
			gather_mirrored(&l, last, i);
	}
	first[g->nnode] = (uint32_t)l.all.n;
	x->first_gradient = first;
	x->gradient = l.all.v;
}

bool ap_parts_moves_tokens(const struct ap_graph *g, ap_id node, uint32_t operand)
{
	ap_id from = g->tensor[g->node[node].in[operand]].producer;
	const char *type = from == AP_NONE ? "" : g->node[from].type;

	return !strcmp(type, "MoeDispatch") || !strcmp(type, "MoeWeights") ||
		!strcmp(g->node[node].type, "MoeCombine");
}

void ap_parts_make(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_parts *out)
{
	*out = (struct ap_parts){.p = p};
	make_parts(ctx->scratch, out);
	index_moves(ctx->scratch, out);
	index_gradients(ctx->scratch, out);
}
