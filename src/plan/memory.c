/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a plan, additive, by stage and kind. */
#include "base/arena.h"
#include "plan/live.h"

static int32_t stage_of(const struct ap_plan *p, ap_id node)
{
	return p->machine->nstage > 1 ? p->graph->node[node].stage : 0;
}

static bool recomputes(const struct ap_plan *p)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (p->task[i].recompute_set != AP_NONE)
			return true;
	return false;
}

/* Sets are recomputed one at a time, but one may be needed until the next has begun. */
static void add_recompute(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_plan_stage *stage)
{
	struct ap_plan_index index;
	struct ap_live live;
	const int64_t *bytes;

	if (!recomputes(p))
		return;
	ap_plan_index_make(ctx, p, &index);
	ap_live_make(ctx, &index, false, &live);
	bytes = ap_live_recomputed(ctx, &index, &live);
	for (int32_t s = 0; s < index.nstage; s++)
		stage[s].memory.recompute = bytes[s];
}

/* Does the redistribution leave a copy that is held? One that is made anew is recomputed. */
static bool holds(const struct ap_plan *p, const struct ap_plan_move *move)
{
	return move->from != AP_NONE && !p->task[move->to].in[move->operand].again;
}

static void add_operators(const struct ap_plan *p, struct ap_plan_stage *stage)
{
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		struct ap_plan_stage *s = &stage[stage_of(p, i)];
		const struct ap_op_cost *c = &p->op[i].cost;

		s->noperator++;
		s->memory.weights += c->weight_bytes;
		s->memory.gathered += c->gathered_bytes;
		s->memory.gradients += c->gradient_bytes;
		s->memory.optimizer += c->optimizer_bytes;
		s->memory.activations += c->activation_bytes;
		if (c->temporary_bytes > s->memory.temporary)
			s->memory.temporary = c->temporary_bytes;
	}
	for (uint32_t i = 0; i < p->nmove; i++)
		if (holds(p, &p->move[i]))
			stage[stage_of(p, p->move[i].to)].memory.activations +=
				p->move[i].cost.kept_bytes;
}

static int64_t most_in_flight(const struct ap_step *step, int32_t stage)
{
	int64_t most = 1;

	for (int32_t v = 0; step->pipe && v < step->pipe->nsegment; v++) {
		int64_t n = ap_step_in_flight(step, stage, v);

		most = n > most ? n : most;
	}
	return most;
}

void ap_plan_stages(struct ap_ctx *ctx, struct ap_plan *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_software *sw = p->step->software;
	uint32_t n = p->machine->nstage;
	struct ap_plan_stage *stage = AP_NEW_N(ctx->arena, struct ap_plan_stage, n);

	add_operators(p, stage);
	add_recompute(ctx, p, stage);
	for (uint32_t s = 0; s < n; s++) {
		struct ap_memory *m = &stage[s].memory;

		stage[s].first_rank = (int64_t)s * p->machine->ndev;
		stage[s].in_flight = most_in_flight(p->step, (int32_t)s);
		m->context = sw ? sw->context_bytes : 0;
		m->buffers = sw && p->machine->total > 1 ? sw->comm_buffer_bytes : 0;
		m->total = m->weights + m->gathered + m->gradients + m->optimizer +
			m->activations + m->recompute + m->temporary + m->context + m->buffers;
		if (s == 0 || m->total > p->prediction.memory.total)
			p->prediction.memory = *m;
	}
	p->nstage = n;
	p->stage = stage;
	ap_arena_release(ctx->scratch, mark);
}
