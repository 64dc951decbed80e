/* SPDX-License-Identifier: Apache-2.0 */
/* A program on all ranks: gradients back through operators and redistributions, exchange, update. */
#include <inttypes.h>

#include "base/arena.h"
#include "shard/layout.h"
#include "fault.h"
#include "graph_parts.h"

enum ex_holds ex_graph_holds(const struct ex_graph_run *r)
{
	return r->w->executor == AP_EXECUTOR_MINDSPORE ? EX_SUM : EX_EVERY;
}

void ex_graph_add(struct ex_graph_run *r, struct ex_shards *sum, const struct ex_shards *x)
{
	if (!sum->of)
		*sum = ex_like(r->w->ctx->scratch, x);
	ex_accumulate(sum, x);
}

static int64_t holders_of(const struct ap_layout *l, int64_t ndev)
{
	return ndev / ap_layout_parts(l);
}

/* Each rank differentiates its own copy of the loss: mindspore divides by their number. */
static struct ex_shards at_loss(struct ex_graph_run *r, const struct ex_tensor *dy,
	const struct ap_layout *l)
{
	struct ex_shards s = ex_cut(r->w->ctx->scratch, dy, l, r->w->ndev);
	uint64_t one = ex_graph_holds(r) == EX_SUM ? ex_inverse((uint64_t)holders_of(l, r->w->ndev)) : 1;

	if (r->w->fault && r->w->fault->seed)
		r->w->faulted |= r->w->fault->seed(r->w, &one);
	for (int64_t d = 0; d < s.ndev; d++)
		for (int64_t i = 0; i < ex_count(&s.of[d].box); i++)
			s.of[d].v[i] = ex_mul(s.of[d].v[i], one);
	return s;
}

void ex_graph_start_gradient(struct ex_graph_run *r, ap_id out)
{
	const struct ap_graph *g = r->p->graph;
	const struct ap_tensor *t = &g->tensor[out];
	const struct ex_tensor *start = &r->truth->batch[r->batch].start[out];
	const struct ap_layout *l;
	struct ex_shards s;

	if (!start->v)
		return;
	l = &r->p->oper[t->producer].out[t->result];
	if (g->loss == out)
		s = at_loss(r, start, l);
	else if (ex_graph_holds(r) == EX_SUM)
		s = ex_deal_partial(r->w->ctx->scratch, start, l, r->w->ndev, &r->w->rng);
	else
		s = ex_cut(r->w->ctx->scratch, start, l, r->w->ndev);
	ex_graph_add(r, &r->grad[out], &s);
}

/* Gradients of tensor a go with those of b, which equal views made of the same. */
static void mix(struct ex_graph_run *r, ap_id a, ap_id b)
{
	const struct ap_graph *g = r->p->graph;

	if (!r->mixed)
		r->mixed = AP_NEW_N(r->w->ctx->scratch, bool, g->ntensor);
	for (; a != b; a = g->node[g->tensor[a].producer].in[0], b = g->node[g->tensor[b].producer].in[0])
		r->mixed[a] = r->mixed[b] = true;
}

void ex_graph_compare_gradient(struct ex_graph_run *r, ap_id node, int i, const struct ex_shards *got)
{
	ap_id tensor = r->p->graph->node[node].out[i];
	const struct ex_oper *o = &r->p->oper[node];

	if (o->out_grad[i] && !(r->mixed && r->mixed[tensor]))
		ex_graph_compare(r, "gradient", tensor, got, &r->truth->batch[r->batch].grad[tensor], &o->out[i],
			ex_graph_holds(r));
}

bool ex_graph_send_back(struct ex_graph_run *r, ap_id node, int i, struct ex_shards *g)
{
	const struct ex_program_move *m = ex_program_move_to(r->p, node, (uint32_t)i);

	if (!r->waiting)
		r->waiting = AP_NEW_N(r->w->ctx->scratch, struct ex_shards, r->p->nmove);
	if (m && m->shares != AP_NONE) {
		const struct ex_program_move *own = &r->p->move[m->shares];

		mix(r, r->p->graph->node[node].in[i], r->p->graph->node[own->node].in[own->operand]);
		ex_graph_add(r, &r->waiting[m->shares], g);
		return false;
	}
	if (m && r->waiting[m - r->p->move].of) {
		ex_accumulate(g, &r->waiting[m - r->p->move]);
		r->waiting[m - r->p->move].of = NULL;
	}
	if (m && ex_graph_holds(r) == EX_SUM) {
		ex_move_back(r->w, m->step, m->nstep, &m->a, g);
	} else if (m && m->nback == 0) {
		ex_trouble(r->w, "the gradient of \"%s\" has no way back",
			r->p->graph->tensor[r->p->graph->node[node].in[i]].name);
	} else if (m) {
		ex_move(r->w, m->back, m->nback, &m->a, g);
	}
	return true;
}

static void backward(struct ex_graph_run *r, ap_id node)
{
	const struct ap_graph *g = r->p->graph;
	const struct ap_node *n = &g->node[node];
	const struct ex_oper *o = &r->p->oper[node];
	struct ex_shards din[EX_MAX_IN], dout[EX_MAX_OUT];

	for (int i = 0; i < o->nout; i++) {
		if (!r->grad[n->out[i]].of)
			r->grad[n->out[i]] = ex_like(r->w->ctx->scratch, &r->value[n->out[i]]);
		dout[i] = r->grad[n->out[i]];
		ex_graph_compare_gradient(r, node, i, &dout[i]);
	}
	ex_backward(r->w, r->run[node], dout, din);
	for (int i = 0; i < o->nin; i++) {
		enum ap_tensor_kind kind = g->tensor[n->in[i]].kind;

		if (!o->in_grad[i])
			continue;
		if (kind == AP_TENSOR_ACT) {
			if (r->p->task[node].in[i].returns)
				ex_exchange_gradient_when(r->w, o, i, &(struct ap_opt_shard){.shards = 1},
					EX_AT_ONCE, &din[i]);
			if (ex_graph_send_back(r, node, i, &din[i]))
				ex_graph_add(r, &r->grad[n->in[i]], &din[i]);
		} else if (kind == AP_TENSOR_PARAM) {
			ex_graph_add(r, &r->use_grad[node][i], &din[i]);
		}
	}
}

void ex_graph_backward(struct ex_graph_run *r)
{
	for (uint32_t i = 0; i < r->p->graph->noutput; i++)
		ex_graph_start_gradient(r, r->p->graph->output[i]);
	for (ap_id i = r->p->graph->nnode; i-- > 0 && !ex_graph_failed(r);)
		if (r->p->task[i].backward) {
			backward(r, i);
			if (r->w->trouble && !r->why)
				r->why = ap_arena_printf(r->w->ctx->arena, "backward of %s: %s",
					r->p->graph->node[i].name, r->w->trouble);
		}
}

/* Collectives of the update that no rule of the convention asks for. */
static void check_exchange(struct ex_graph_run *r, const struct ap_use *use, bool owner)
{
	const struct ex_oper *o = &r->p->oper[use->node];

	for (uint32_t i = 0; i < o->ncomm; i++)
		if (o->comm[i].operand == (int)use->operand && !owner &&
			(o->comm[i].phase == AP_PHASE_OPTIMIZER || (ex_graph_holds(r) == EX_SUM &&
				o->comm[i].phase == AP_PHASE_GRADIENT)))
			ex_trouble(r->w, "%s exchanges a parameter that is not its own",
				r->p->graph->node[use->node].name);
}

void ex_graph_join(struct ex_graph_run *r, const struct ex_program_param *param)
{
	const struct ap_use *owner = &r->p->graph->tensor[param->tensor].owner;

	for (uint32_t i = 0; i < param->nsum; i++) {
		struct ex_shards *own = &r->use_grad[param->sum[i].node][param->sum[i].operand];

		if (own->of)
			ex_graph_add(r, &r->use_grad[owner->node][owner->operand], own);
		own->of = NULL;
	}
}

/* mindspore: the gradients of all uses are added up, then exchanged by the owner. generic: each use
 * exchanges its own, then they are added; but for those that the owner's exchange has. */
static struct ex_shards exchanged(struct ex_graph_run *r, const struct ap_tensor *t,
	const struct ex_program_param *param)
{
	const struct ap_opt_shard *shard = &param->shard;
	enum ex_when when = r->dealt && shard->shards > 1 ? EX_AT_THE_END : EX_AT_ONCE;
	struct ex_shards sum = {0};

	ex_graph_join(r, param);
	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct ap_use *use = &t->use[u];
		struct ex_shards *own = &r->use_grad[use->node][use->operand];

		check_exchange(r, use, use->node == t->owner.node && use->operand == t->owner.operand);
		if (!own->of)
			continue;
		if (ex_graph_holds(r) == EX_EVERY)
			ex_exchange_gradient_when(r->w, &r->p->oper[use->node], (int)use->operand, shard,
				when, own);
		ex_graph_add(r, &sum, own);
	}
	if (ex_graph_holds(r) == EX_SUM && sum.of)
		ex_exchange_gradient_when(r->w, &r->p->oper[t->owner.node], (int)t->owner.operand, shard,
			when, &sum);
	return sum;
}

static void update(struct ex_graph_run *r, const struct ex_program_param *param)
{
	const struct ap_tensor *t = &r->p->graph->tensor[param->tensor];
	const struct ex_tensor *want = &r->truth->param_grad[param->tensor];
	struct ex_shards grad, weight, slices;

	if (!want->v || !t->trainable)
		return;
	r->w->ndev = ex_devices(r->p, r->p->graph->node[t->owner.node].stage);
	grad = exchanged(r, t, param);
	if (!grad.of) {
		ex_trouble(r->w, "\"%s\" has no gradient", t->name);
		return;
	}
	if (param->shard.shards == 1)
		ex_graph_compare(r, "exchanged gradient", param->tensor, &grad, want, &param->layout,
			EX_EVERY);
	weight = ex_cut(r->w->ctx->scratch, &r->truth->batch[0].value[param->tensor], &param->layout,
		r->w->ndev);
	slices = weight;
	ex_update(r->w, &r->p->oper[t->owner.node], (int)t->owner.operand, &param->shard, &grad,
		&weight);
	if (r->p->task[t->owner.node].in[t->owner.operand].regather && param->shard.shards > 1)
		ex_gather_parts(r->w, &param->shard.group, &param->shard, &slices, NULL, t->shape.dtype, &weight);
	ex_graph_compare(r, "update", param->tensor, &weight, &r->truth->new_param[param->tensor],
		&param->layout, EX_EVERY);
}

void ex_graph_update(struct ex_graph_run *r)
{
	uint32_t trained = 0, listed = 0;

	for (ap_id t = 0; t < r->p->graph->ntensor; t++)
		trained += r->truth->new_param[t].v != NULL;
	for (uint32_t i = 0; i < r->p->nparam && !ex_graph_failed(r); i++) {
		listed += r->truth->new_param[r->p->param[i].tensor].v != NULL;
		update(r, &r->p->param[i]);
	}
	if (listed != trained && !ex_graph_failed(r))
		ex_trouble(r->w, "%" PRIu32 " of %" PRIu32 " trained parameters are updated", listed,
			trained);
}
