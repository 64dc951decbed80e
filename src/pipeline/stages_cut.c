/* SPDX-License-Identifier: Apache-2.0 */
/* Operators in order, cut into parts of equal cost. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "cost/least.h"
#include "hw/coll.h"
#include "pipeline/cut.h"
#include "pipeline/stages_parts.h"

/* Of cost, so many at most that they add up whatever there is. */
static int64_t quanta(double seconds, int64_t most)
{
	double n = seconds / AP_QUANTUM_S;

	return n < (double)most ? (int64_t)llround(n) : most;
}

static int64_t *make_weights(struct ap_stages *s, const ap_id *node, uint32_t n)
{
	int64_t *weight = AP_NEW_N(s->ctx->scratch, int64_t, n);
	struct ap_step step = *s->rq->step;
	const double *least;

	step.pipe = NULL; /* whoever holds what for how long: it takes as much time */
	least = ap_plan_least_s(s->ctx, s->g, s->rq->machine, &step);
	for (uint32_t i = 0; i < n; i++)
		weight[i] = quanta(least[node ? node[i] : i], AP_CUT_MOST / n);
	return weight;
}

struct passage { /* of a tensor over a boundary */
	int64_t bytes; /* that a rank sends */
	uint8_t once, back, spare[6]; /* once a step; the gradient comes back */
};

struct passing {
	struct ap_stages *s;
	struct ap_map *passages; /* all that there are */
	ap_id *passage; /* [ntensor] AP_NONE: it goes nowhere */
	struct rates { /* what each passage costs from one stage to another, and the sum of those in
	                * front of each operator */
		int64_t *cost, *crossing;
	} *rates; /* [nrates] those that differ */
	uint32_t nrates;
};

/* A micro-batch of the tensor, dealt to the devices of a stage as far as its dimensions allow. */
static int64_t dealt_bytes(const struct ap_stages *s, const struct ap_tensor *x)
{
	int64_t devices = s->rq->machine->ndev, bytes = ap_dtype_bytes(x->shape.dtype);

	for (int d = 0; d < x->shape.rank; d++) {
		int64_t extent = x->shape.dim[d], parts;

		if (x->batch >> d & 1)
			extent /= s->rq->step->micro_batches;
		parts = ap_gcd(extent, devices);
		devices /= parts;
		bytes *= extent / parts;
	}
	return bytes;
}

static ap_id last_use(const struct ap_tensor *x)
{
	return x->use[x->nuse - 1].node;
}

/* The operator behind which a tensor is in memory. */
static ap_id origin(const struct ap_tensor *x)
{
	return x->kind == AP_TENSOR_ACT ? x->producer : x->use[0].node;
}

static void list_passages(struct passing *x)
{
	const struct ap_graph *g = x->s->g;

	x->passages = ap_map_create(x->s->ctx->scratch);
	x->passage = AP_NEW_N(x->s->ctx->scratch, ap_id, g->ntensor);
	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];
		struct passage key = {.once = t->kind == AP_TENSOR_PARAM, .back = t->needs_grad};

		x->passage[i] = AP_NONE;
		if (t->nuse == 0 || t->kind == AP_TENSOR_INPUT || t->kind == AP_TENSOR_CONST ||
			origin(t) == last_use(t))
			continue;
		key.bytes = dealt_bytes(x->s, t);
		x->passage[i] = ap_map_put(x->passages, &key, sizeof key, NULL);
	}
}

/* Of all passages, from stage to stage and back, in a step. */
static int64_t *price_passages(const struct passing *x, int32_t from, int32_t to)
{
	const struct ap_stages_request *rq = x->s->rq;
	size_t n = ap_map_size(x->passages);
	int64_t *out = AP_NEW_N(x->s->ctx->scratch, int64_t, n);

	for (size_t i = 0; i < n; i++) {
		const struct passage *p = (const void *)ap_map_key(x->passages, (ap_id)i, NULL);
		double time_s = ap_send_time_s(rq->machine, (uint32_t)from, (uint32_t)to,
			(double)p->bytes);

		if (p->back)
			time_s += ap_send_time_s(rq->machine, (uint32_t)to, (uint32_t)from,
				(double)p->bytes);
		out[i] = quanta(p->once ? time_s : time_s * (double)rq->step->micro_batches,
			AP_CUT_MOST / x->s->g->ntensor);
	}
	return out;
}

/* In front of each operator what is made, or first used, before it and used by it or behind it. */
static int64_t *add_up(const struct passing *x, const int64_t *cost)
{
	const struct ap_graph *g = x->s->g;
	int64_t *sum = AP_NEW_N(x->s->ctx->scratch, int64_t, g->nnode + 1);

	for (ap_id i = 0; i < g->ntensor; i++) {
		if (x->passage[i] == AP_NONE)
			continue;
		sum[origin(&g->tensor[i]) + 1] += cost[x->passage[i]];
		sum[last_use(&g->tensor[i]) + 1] -= cost[x->passage[i]];
	}
	for (ap_id i = 1; i <= g->nnode; i++)
		sum[i] += sum[i - 1];
	return sum;
}

/* Many pairs of stages lie alike. */
static const int64_t *crossing_of(struct passing *x, int32_t from, int32_t to)
{
	struct rates r = {.cost = price_passages(x, from, to)};

	for (uint32_t i = 0; i < x->nrates; i++)
		if (memcmp(x->rates[i].cost, r.cost, ap_map_size(x->passages) * sizeof *r.cost) == 0)
			return x->rates[i].crossing;
	r.crossing = add_up(x, r.cost);
	x->rates[x->nrates++] = r;
	return r.crossing;
}

/* In front of each part and operator. */
static const int64_t **make_crossings(struct ap_stages *s)
{
	const int64_t **out = AP_NEW_N(s->ctx->scratch, const int64_t *, s->npart);
	struct passing x = {.s = s, .rates = AP_NEW_N(s->ctx->scratch, struct rates, s->npart)};
	int32_t from, to, segment;

	list_passages(&x);
	ap_schedule_spot(s->rq->scheduler, s->rq->nstage, 0, &from, &segment);
	for (int32_t p = 1; p < s->npart; p++, from = to) {
		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, p, &to, &segment);
		out[p] = crossing_of(&x, from, to);
	}
	return out;
}

/* Seconds of a step of these parts, one after the other a third forward; sends of them all at once. */
static double step_s(struct ap_stages *s, const struct ap_cut *cut, const uint32_t *first)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	const struct ap_stages_request *rq = s->rq;
	const struct ap_pipe pipe = {rq->nstage, rq->nsegment, rq->scheduler, NULL};
	struct ap_pass_times *time = AP_NEW_N(s->ctx->scratch, struct ap_pass_times, cut->parts);
	double third_s = AP_QUANTUM_S / 3 / (double)rq->step->micro_batches;
	struct ap_ctx local = *s->ctx;
	struct ap_timeline line;

	for (uint32_t p = 0; p < cut->parts; p++) {
		struct ap_pass_times *t = &time[p];
		int64_t weight = 0;

		for (uint32_t i = first[p]; i < first[p + 1]; i++)
			weight += cut->weight[i];
		t->forward_s = (double)weight * third_s * (rq->step->training ? 1 : 3);
		t->backward_s = (double)weight * third_s * (rq->scheduler->splits ? 1 : 2);
		t->weight_s = rq->scheduler->splits ? t->forward_s : 0;
		t->last_backward_s = rq->scheduler->splits ? t->weight_s : t->backward_s;
		if (p + 1 < cut->parts)
			t->send_s = t->send_back_s = (double)cut->crossing[p + 1][first[p + 1]] * third_s *
				(rq->step->training ? 1.5 : 3);
	}
	local.arena = s->ctx->scratch;
	ap_schedule_run(&local, &pipe, rq->step->micro_batches, rq->step->training, time, &line);
	ap_arena_release(s->ctx->scratch, mark);
	return line.end_s;
}

/* How far sends hide beside other work depends on the schedule: so it is asked which cut is the best. */
static void cut_best(struct ap_stages *s, struct ap_cut *cut, uint32_t *best)
{
	static const int halves[] = {1, 2, 0};
	uint32_t *first = AP_NEW_N(s->ctx->scratch, uint32_t, cut->parts + 1);
	double least_s = INFINITY;

	first[cut->parts] = cut->n;
	for (size_t k = 0; k < AP_COUNT(halves); k++) {
		double now_s;

		cut->halves = halves[k];
		ap_cut_even(s->ctx, cut, first);
		now_s = step_s(s, cut, first);
		if (now_s >= least_s)
			continue;
		least_s = now_s;
		memcpy(best, first, (cut->parts + 1) * sizeof *first);
	}
}

/* A stage without a trainable parameter of its own has an empty strategy checkpoint, which MindSpore
 * refuses. */
static void want_parameters(struct ap_stages *s, struct ap_cut *cut)
{
	bool *vital = AP_NEW_N(s->ctx->scratch, bool, cut->n);

	for (ap_id i = 0; i < cut->n; i++) {
		const struct ap_node *n = &s->g->node[i];

		vital[i] = n->param != AP_NONE && s->g->tensor[n->param].owner.node == i &&
			ap_op_has_strategy(n->bound.row);
	}
	cut->vital = vital;
	cut->wanting = (uint32_t)s->rq->nstage; /* all have their first segments first */
	if (!ap_cut_possible(cut))
		cut->wanting = 0;
}

void ap_stages_cut(struct ap_stages *s)
{
	struct ap_cut cut = {.n = s->g->nnode, .parts = (uint32_t)s->npart};
	uint32_t *first = AP_NEW_N(s->ctx->scratch, uint32_t, cut.parts + 1);

	cut.weight = make_weights(s, NULL, cut.n);
	cut.crossing = make_crossings(s);
	want_parameters(s, &cut);
	cut_best(s, &cut, first);
	for (uint32_t p = 0; p < cut.parts; p++)
		for (ap_id i = first[p]; i < first[p + 1]; i++)
			s->part[i] = (int32_t)p;
}

void ap_stages_halve(struct ap_stages *s, const ap_id *node, uint32_t n, int32_t first_part)
{
	const int64_t *nothing = AP_NEW_N(s->ctx->scratch, int64_t, n), *sent[2] = {nothing, nothing};
	const struct ap_cut cut = {.n = n, .parts = 2, .weight = make_weights(s, node, n),
		.crossing = sent};
	uint32_t first[2];

	ap_cut_even(s->ctx, &cut, first);
	for (uint32_t i = 0; i < n; i++)
		s->part[node[i]] = first_part + (i >= first[1]);
}
