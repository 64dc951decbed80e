/* SPDX-License-Identifier: Apache-2.0 */
#include "api/layer_border.h"

#include <math.h>

#include "base/arena.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "hw/coll.h"
#include "plan/blocks.h"
#include "plan/buckets.h"

/* Bytes of a micro-batch on a device, as the producer deals them; or among all devices of the stage. */
static int64_t local_bytes(const struct ap_plan *p, ap_id node, uint32_t result, bool scattered)
{
	const struct ap_operand *out = &p->graph->node[node].bound.out[result];
	struct ap_placement place = p->op[node].place;

	for (int f = 0; f < AP_MAX_FACTOR && scattered; f++)
		place.count[f] = 1;
	return ap_local_bytes(out, p->task[node].out[result].batch, &place, p->step) /
		(scattered ? p->machine->ndev : 1);
}

/* Seconds over the fastest link between two stages. */
static double least_s(const struct ap_machine *staged, int64_t bytes, bool back)
{
	double least = INFINITY;

	for (uint32_t s = 0; s < staged->nstage; s++) {
		uint32_t next = (s + 1) % staged->nstage;

		least = fmin(least, ap_send_time_s(staged, back ? next : s, back ? s : next,
			(double)bytes));
	}
	return least;
}

struct sharing { /* parameters that first and last stage use */
	const struct ap_plan *p;
	const uint32_t *row_of;
	uint32_t first, last; /* rows */
	int64_t there, back, held; /* bytes */
	double exchange_s, summed_s; /* of gradients, in the first row and in the last one */
};

/* Elements of a tensor as the users in a row deal it, the least of them; 0: there are none. */
static int64_t read_elements(const struct sharing *x, const struct ap_tensor *t, uint32_t row, bool *trained)
{
	int64_t least = 0;

	for (uint32_t u = 0; u < t->nuse; u++) {
		ap_id node = t->use[u].node;
		uint32_t k = t->use[u].operand;
		const struct ap_plan *p = x->p;
		int64_t n = ap_local_elements(&p->graph->node[node].bound.in[k], p->task[node].in[k].batch,
			&p->op[node].place, p->step);

		if (x->row_of[p->blocks->of[node]] != row)
			continue;
		least = least == 0 || n < least ? n : least;
		*trained = *trained || p->task[node].in[k].grad;
	}
	return least;
}

/* What the exchanges of a tensor's gradient in the first row take. */
static double exchange_s(const struct sharing *x, struct ap_pricer *pricer, const struct ap_tensor *t)
{
	double sum = 0;

	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct ap_plan_op *op = &x->p->op[t->use[u].node];

		for (uint32_t c = 0; c < op->ncomm; c++)
			if (op->comm[c].comm.phase == AP_PHASE_GRADIENT &&
				op->comm[c].comm.operand == (int)t->use[u].operand &&
				x->row_of[x->p->blocks->of[t->use[u].node]] == x->first)
				sum += ap_buckets_least_s(pricer, &op->comm[c].comm);
	}
	return sum;
}

/* What the gradients of the uses in the last row take to be summed there, as they are where the first row
 * is in another stage (cost/comms.h). */
static double summed_s(const struct sharing *x, struct ap_pricer *pricer, const struct ap_tensor *t)
{
	const struct ap_plan *p = x->p;
	double sum = 0;

	for (uint32_t u = 0; u < t->nuse && p->step->executor == AP_EXECUTOR_GENERIC &&
		!p->step->exchange_behind; u++) {
		const struct ap_use *use = &t->use[u];
		const struct ap_operand *o = &p->graph->node[use->node].bound.in[use->operand];
		const struct ap_placement *place = &p->op[use->node].place;
		struct ap_comm c = {.phase = AP_PHASE_GRADIENT, .kind = AP_COLL_ALLREDUCE,
			.operand = (int)use->operand, .result = -1, .reduce = AP_REDUCE_SUM};
		uint32_t cut = 0;

		if (x->row_of[p->blocks->of[use->node]] != x->last ||
			!p->task[use->node].in[use->operand].grad)
			continue;
		for (int f = 0; f < place->bound->nfactor; f++)
			cut |= place->count[f] > 1 ? 1u << f : 0;
		ap_placement_axes(place, cut & ~o->factors, false, &c.axes);
		c.bytes = ap_local_elements(o, 0, place, p->step) *
			ap_dtype_bytes(ap_gradient_wire(t->shape.dtype, p->step));
		sum += c.axes.n > 0 ? ap_comm_time_s(pricer, &c, NULL) : 0;
	}
	return sum;
}

static void share(struct sharing *x, struct ap_pricer *pricer)
{
	const struct ap_graph *g = x->p->graph;

	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];
		const struct ap_step *step = x->p->step;
		bool trained = false, unused = false;
		int64_t first, last;

		if (t->kind != AP_TENSOR_PARAM || t->nuse < 2)
			continue;
		first = read_elements(x, t, x->first, &unused);
		last = read_elements(x, t, x->last, &trained);
		if (first == 0 || last == 0)
			continue;
		first = first < last ? first : last;
		x->there += first * ap_dtype_bytes(t->shape.dtype);
		x->held += first * (ap_dtype_bytes(t->shape.dtype) +
			(trained ? ap_gradient_held_bytes(t->shape.dtype, step) : 0));
		if (!trained)
			continue;
		x->back += first * ap_dtype_bytes(step->executor == AP_EXECUTOR_GENERIC
			? ap_gradient_wire(t->shape.dtype, step) : t->shape.dtype);
		x->exchange_s += exchange_s(x, pricer, t);
		x->summed_s += summed_s(x, pricer, t);
	}
}

void ap_layer_border_make(struct ap_ctx *ctx, const struct ap_plan *p, const uint32_t *row_of,
	uint32_t nlayer, const struct ap_machine *staged, bool scattered, struct ap_partition_border *behind,
	struct ap_layer_border *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_graph *g = p->graph;
	int64_t *there = AP_NEW_N(ctx->scratch, int64_t, nlayer + 2);
	int64_t *back = AP_NEW_N(ctx->scratch, int64_t, nlayer + 2);
	bool *met = AP_NEW_N(ctx->scratch, bool, g->ntensor);

	*out = (struct ap_layer_border){0};
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			ap_id t = g->node[i].in[k], from = g->tensor[t].producer;
			uint32_t row = from == AP_NONE ? 0 : row_of[p->blocks->of[from]];
			int64_t bytes;

			if (from == AP_NONE || met[t] || p->task[from].once ||
				row == row_of[p->blocks->of[i]])
				continue;
			met[t] = true;
			bytes = local_bytes(p, from, g->tensor[t].result, scattered);
			there[row] += bytes;
			back[row] += p->task[from].out[g->tensor[t].result].grad ? bytes : 0;
		}
	if (staged->nstage > 1) {
		struct sharing x = {.p = p, .row_of = row_of, .first = nlayer, .last = nlayer + 1};

		out->send_s = out->send_back_s = INFINITY;
		for (uint32_t i = 0; i <= nlayer; i++) { /* nothing is behind the last row */
			bool same = i > 0 && there[i] == there[i - 1] && back[i] == back[i - 1];

			behind[i] = same ? behind[i - 1] : (struct ap_partition_border){
				least_s(staged, there[i], false), least_s(staged, back[i], true)};
			out->send_s = fmin(out->send_s, behind[i].send_s);
			out->send_back_s = fmin(out->send_back_s, behind[i].send_back_s);
		}
		out->behind = behind;
		share(&x, ap_pricer_create(ctx->scratch, p->machine, p->step));
		out->held_bytes = x.held;
		out->summed_s = x.summed_s;
		out->once_s = ap_send_time_s(staged, 0, staged->nstage - 1, (double)x.there);
		if (x.back > 0)
			out->once_back_s = ap_send_time_s(staged, staged->nstage - 1, 0, (double)x.back) +
				x.exchange_s;
	}
	ap_arena_release(ctx->scratch, mark);
}
