/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stage: a compute stream and two communication streams, one for collectives that the
 * computation waits for, one for the gradient exchange. The micro-batches but the last are alike,
 * so one of them is simulated; the last one carries the gradient exchange.
 */
#include <math.h>

#include "base/arena.h"
#include "base/vec.h"
#include "plan/drive.h"

struct event_list {
	struct ap_event *v;
	size_t n, cap;
};

struct running {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	double per_micro; /* 1 / number of micro-batches */
	bool last; /* this micro-batch exchanges gradients */
	double compute, comm, gradient; /* when each stream is free */
	double slowdown; /* of kernels beside a gradient exchange */
	double *ready; /* [ntensor] the tensor is there; backward: its gradient is */
	uint32_t *first_move; /* [nnode + 1] moves by consumer */
	double compute_s, communication_s; /* totals of this micro-batch */
	struct event_list *events; /* NULL: not recorded */
};

static void record(struct running *r, enum ap_event_kind kind, uint32_t index, uint32_t sub, double start,
	double end)
{
	struct ap_event e = {.kind = kind, .index = index, .sub = sub, .start_s = start,
		.end_s = end};

	if (r->events)
		AP_PUSH(r->ctx->arena, *r->events, e);
}

/* A kernel of `work` seconds on the compute stream, slower while gradients are on their way. */
static double kernel(struct running *r, enum ap_event_kind kind, ap_id node, double work, double from)
{
	double start = fmax(r->compute, from), beside, end;

	beside = fmin(work * r->slowdown, fmax(0, r->gradient - start));
	end = start + beside + (work - beside / r->slowdown);
	r->compute = end;
	r->compute_s += end - start;
	record(r, kind, node, 0, start, end);
	return end;
}

static double collective(struct running *r, double *stream, enum ap_event_kind kind, uint32_t index,
	uint32_t sub, double time_s, double from)
{
	double start = fmax(*stream, from);

	*stream = start + time_s;
	r->communication_s += time_s;
	record(r, kind, index, sub, start, *stream);
	return *stream;
}

/* When operand `i` of `node` is there in the layout wanted. */
static double operand_ready(struct running *r, ap_id node, uint32_t i)
{
	ap_id t = r->p->graph->node[node].in[i];
	double ready = r->ready[t];

	for (uint32_t m = r->first_move[node]; m < r->first_move[node + 1]; m++)
		if (r->p->move[m].operand == i)
			ready = collective(r, &r->comm, AP_EVENT_MOVE, m, 0,
				r->p->move[m].cost.forward_s * r->per_micro, ready);
	return ready;
}

/* Runs the node's collectives of a phase one after another; of results, or of operands. */
static double collectives(struct running *r, ap_id node, enum ap_phase phase, bool of_results,
	double from)
{
	const struct ap_plan_op *op = &r->p->op[node];
	double *stream = phase == AP_PHASE_GRADIENT ? &r->gradient : &r->comm;

	for (uint32_t i = 0; i < op->ncomm; i++)
		if (op->comm[i].comm.phase == phase &&
			(op->comm[i].comm.result >= 0) == of_results)
			from = collective(r, stream, AP_EVENT_COMM, node, i, op->comm[i].time_s,
				from);
	return from;
}

static void forward(struct running *r, ap_id node)
{
	const struct ap_node *n = &r->p->graph->node[node];
	double at = 0;

	for (uint32_t i = 0; i < n->bound.nin; i++)
		at = fmax(at, operand_ready(r, node, i));
	at = collectives(r, node, AP_PHASE_FORWARD, false, at);
	at = kernel(r, AP_EVENT_FORWARD, node, r->p->op[node].cost.forward_s * r->per_micro, at);
	at = collectives(r, node, AP_PHASE_FORWARD, true, at);
	for (uint32_t o = 0; o < n->bound.nout; o++)
		r->ready[n->out[o]] = at;
}

/* The first user of a tensor that sends a gradient: the last one to run back. */
static ap_id last_to_run_back(const struct running *r, const struct ap_tensor *t)
{
	for (uint32_t u = 0; u < t->nuse; u++)
		if (r->p->task[t->use[u].node].in[t->use[u].operand].grad)
			return t->use[u].node;
	return AP_NONE;
}

/* mindspore: the gradient of a parameter goes out, by its owner, when all users have sent theirs. */
static void mirror(struct running *r, ap_id node, uint32_t i, double at)
{
	const struct ap_tensor *t = &r->p->graph->tensor[r->p->graph->node[node].in[i]];
	const struct ap_plan_op *owner;

	if (t->owner.node == AP_NONE || r->p->task[node].in[i].twin != i ||
		last_to_run_back(r, t) != node)
		return;
	owner = &r->p->op[t->owner.node];
	for (uint32_t c = 0; c < owner->ncomm; c++)
		if (owner->comm[c].comm.phase == AP_PHASE_GRADIENT &&
			owner->comm[c].comm.operand == (int)t->owner.operand)
			at = collective(r, &r->gradient, AP_EVENT_COMM, t->owner.node, c,
				owner->comm[c].time_s, at);
}

static void exchange(struct running *r, ap_id node, double at)
{
	const struct ap_task *t = &r->p->task[node];

	if (r->p->step->executor == AP_EXECUTOR_GENERIC) {
		collectives(r, node, AP_PHASE_GRADIENT, false, at);
		return;
	}
	for (uint32_t i = 0; i < t->bound->nin; i++)
		if (t->in[i].trainable && t->in[i].grad)
			mirror(r, node, i, at);
}

/* The gradient of operand i goes back to its producer, against the redistribution. */
static void send_back(struct running *r, ap_id node, uint32_t i, double at)
{
	ap_id t = r->p->graph->node[node].in[i];

	for (uint32_t m = r->first_move[node]; m < r->first_move[node + 1]; m++)
		if (r->p->move[m].operand == i)
			at = collective(r, &r->comm, AP_EVENT_MOVE_BACK, m, 0,
				r->p->move[m].cost.backward_s * r->per_micro, at);
	r->ready[t] = fmax(r->ready[t], at);
}

static void backward(struct running *r, ap_id node)
{
	const struct ap_node *n = &r->p->graph->node[node];
	const struct ap_task *t = &r->p->task[node];
	double at = 0;

	if (!t->backward)
		return;
	for (uint32_t o = 0; o < n->bound.nout; o++)
		at = fmax(at, r->ready[n->out[o]]);
	at = collectives(r, node, AP_PHASE_BACKWARD, true, at);
	at = kernel(r, AP_EVENT_BACKWARD, node, r->p->op[node].cost.backward_s * r->per_micro, at);
	if (r->last)
		exchange(r, node, at);
	at = collectives(r, node, AP_PHASE_BACKWARD, false, at);
	for (uint32_t i = 0; i < n->bound.nin; i++)
		if (t->in[i].grad && t->in[i].kind == AP_TENSOR_ACT)
			send_back(r, node, i, at);
}

/* One micro-batch from time 0; returns when computation and communication in its way are done. */
static double micro_batch(struct running *r)
{
	const struct ap_graph *g = r->p->graph;
	double turn;

	r->compute = r->comm = r->gradient = 0;
	r->compute_s = r->communication_s = 0;
	for (ap_id t = 0; t < g->ntensor; t++)
		r->ready[t] = 0;
	for (ap_id i = 0; i < g->nnode; i++)
		forward(r, i);
	turn = fmax(r->compute, r->comm);
	r->compute = r->comm = turn;
	for (ap_id t = 0; t < g->ntensor; t++)
		r->ready[t] = turn;
	for (ap_id i = g->nnode; i-- > 0;)
		backward(r, i);
	return fmax(r->compute, r->comm);
}

static void index_moves(struct running *r)
{
	const struct ap_plan *p = r->p;

	r->first_move = AP_NEW_N(r->ctx->scratch, uint32_t, p->graph->nnode + 1);
	for (uint32_t m = 0; m < p->nmove; m++)
		r->first_move[p->move[m].to + 1]++;
	for (ap_id i = 0; i < p->graph->nnode; i++)
		r->first_move[i + 1] += r->first_move[i];
}

/* After the last gradient: updates, and the gathering of sharded weights. */
static double optimizer_step(struct running *r, double at)
{
	double start = at;

	for (ap_id i = 0; i < r->p->graph->nnode; i++) {
		double work = r->p->op[i].cost.optimizer_s;

		if (work > 0) {
			record(r, AP_EVENT_OPTIMIZER, i, 0, at, at + work);
			at += work;
		}
	}
	return at - start;
}

static void predict(const struct running *r, double alike, double before_s, double last,
	double compute_s, double communication_s, double optimizer_s, struct ap_prediction *out)
{
	double end = fmax(last, r->gradient);

	out->compute_s = compute_s + r->compute_s;
	out->communication_s = communication_s + r->communication_s;
	out->optimizer_s = optimizer_s;
	out->step_time_s = alike * before_s + end + optimizer_s;
	out->bubble_s = 0;
	out->exposed_communication_s =
		fmax(0, out->step_time_s - out->compute_s - out->optimizer_s);
	out->samples_per_s = (double)r->p->graph->batch / out->step_time_s;
}

static void simulate(struct ap_ctx *ctx, const struct ap_plan *p, struct event_list *events,
	struct ap_prediction *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct running r = {.ctx = ctx, .p = p, .per_micro = 1.0 / (double)p->step->micro_batches,
		.slowdown = p->step->software ? p->step->software->overlap_slowdown : 1};
	double alike = (double)(p->step->micro_batches - 1);
	double before_s = 0, compute_s = 0, communication_s = 0, last, optimizer_s;

	r.ready = AP_NEW_N(ctx->scratch, double, p->graph->ntensor);
	index_moves(&r);
	if (alike > 0) {
		before_s = micro_batch(&r);
		compute_s = alike * r.compute_s;
		communication_s = alike * r.communication_s;
	}
	r.last = true;
	r.events = events;
	last = micro_batch(&r);
	optimizer_s = optimizer_step(&r, fmax(last, r.gradient));
	predict(&r, alike, before_s, last, compute_s, communication_s, optimizer_s, out);
	ap_arena_release(ctx->scratch, mark);
}

void ap_simulate(struct ap_ctx *ctx, struct ap_plan *p)
{
	simulate(ctx, p, NULL, &p->prediction);
}

void ap_plan_add_schedule(struct ap_ctx *ctx, struct ap_plan *p)
{
	struct event_list events = {0};
	struct ap_prediction again;

	AP_RESERVE(ctx->arena, events, 3 * (size_t)p->graph->nnode + 2 * (size_t)p->nmove);
	simulate(ctx, p, &events, &again);
	p->nevent = (uint32_t)events.n;
	p->event = events.v;
}
