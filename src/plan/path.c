/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/path.h"

#include <math.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "plan/terms.h"
#include "plan/whole_step.h"
#include "rule/op.h"

enum kind { RUN_FORWARD, RUN_AGAIN, RUN_BACKWARD, RUN_WEIGHT };

/*
 * A kernel of a pass. line_s: when it has ended at the earliest, as kernels stand in line; data_s:
 * when what it makes is ready. Both are the same where every plan runs a kernel here.
 */
struct run {
	ap_id node;
	enum kind kind;
	double line_s, data_s;
	double wait_s; /* for the data that it reads */
	uint32_t giver; /* the run that it waits for; AP_NONE: none */
	uint32_t operand; /* of the giver (backward) or its own: the redistribution between; AP_NONE: none */
	bool input; /* it waits for inputs of the graph, from the start of the pass */
	bool all; /* it waits for all that is sent behind the giver on the way to it, see meeting() */
	bool line_by_data; /* line_s comes from data, not from the run before */
};

struct pass {
	AP_VEC(struct run) runs; /* in the order of the compute stream */
	uint32_t last; /* where the longest path ends; AP_NONE: the pass runs nothing */
	bool from_data; /* it ends behind what that run makes */
	double length_s;
};

enum { THERE, AGAIN, BACK, WAYS };

struct tracing {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	struct ap_whole_step w;
	double per_micro;
	const struct ap_legs *leg; /* [nnode] of the plan, in a step */
	const uint32_t *first; /* [nnode + 1] operands */
	double *way_s[WAYS]; /* [operands] redistributions of the plan, for a micro-batch */
	struct ap_legs *passed; /* [nnode] how often the path passes a leg */
	double *passed_way[WAYS]; /* [operands] */
	struct pass (*pass)[AP_PASS_WEIGHT + 1]; /* [npart] */
	uint32_t *at[RUN_WEIGHT + 1]; /* [nnode] the node's run in its pass; AP_NONE */
	uint32_t *set_of; /* [nnode] */
};

static bool has_kernel(const struct ap_task *t)
{
	return t->bound->row->unit != AP_OP_VIEW && t->bound->row->unit != AP_OP_LINK &&
		!(t->measured && t->measured_forward_s <= 0);
}

/* Does every plan run a kernel here? */
static bool is_solid(const struct tracing *x, const struct run *r)
{
	const struct ap_task *t = &x->p->task[r->node];

	switch (r->kind) {
	case RUN_FORWARD:
		return true;
	case RUN_AGAIN:
		return t->recomputed && !t->keep_comm && has_kernel(t);
	case RUN_BACKWARD:
		return x->w.live.weight_share[r->node] < 1;
	case RUN_WEIGHT:
		return true;
	}
	return false;
}

static double micro_s(const struct tracing *x, ap_id node, enum ap_leg leg)
{
	return x->leg[node].s[leg] * x->per_micro;
}

static double kernel_s(const struct tracing *x, const struct run *r)
{
	double share = x->w.live.weight_share[r->node];

	switch (r->kind) {
	case RUN_FORWARD:
		return micro_s(x, r->node, AP_LEG_FORWARD);
	case RUN_AGAIN:
		return micro_s(x, r->node, AP_LEG_AGAIN);
	case RUN_BACKWARD:
		return micro_s(x, r->node, AP_LEG_BACKWARD) * (1 - share);
	case RUN_WEIGHT:
		return micro_s(x, r->node, AP_LEG_BACKWARD) * share;
	}
	return 0;
}

/* The collectives right before a run, once its data are there. */
static double before_s(const struct tracing *x, const struct run *r)
{
	bool gathers = x->p->task[r->node].recompute_set == AP_NONE;

	switch (r->kind) {
	case RUN_FORWARD:
		return micro_s(x, r->node, AP_LEG_FORWARD_IN);
	case RUN_AGAIN:
		return micro_s(x, r->node, AP_LEG_AGAIN_IN);
	case RUN_BACKWARD:
		return micro_s(x, r->node, AP_LEG_BACKWARD_IN) +
			(gathers ? micro_s(x, r->node, AP_LEG_AGAIN_IN) : 0);
	case RUN_WEIGHT:
		break;
	}
	return 0;
}

static void count_before(struct tracing *x, const struct run *r, double times)
{
	double *leg = x->passed[r->node].s;

	switch (r->kind) {
	case RUN_FORWARD:
		leg[AP_LEG_FORWARD_IN] += times;
		break;
	case RUN_AGAIN:
		leg[AP_LEG_AGAIN_IN] += times;
		break;
	case RUN_BACKWARD:
		leg[AP_LEG_BACKWARD_IN] += times;
		leg[AP_LEG_AGAIN_IN] += x->p->task[r->node].recompute_set == AP_NONE ? times : 0;
		break;
	case RUN_WEIGHT:
		break;
	}
}

static const enum ap_leg after[] = {AP_LEG_FORWARD_OUT, AP_LEG_AGAIN_OUT, AP_LEG_BACKWARD_OUT, AP_LEG_COUNT};

/* The collectives right after a run. */
static double after_s(const struct tracing *x, const struct run *r)
{
	return r->kind == RUN_WEIGHT ? 0 : micro_s(x, r->node, after[r->kind]);
}

/* A run waits for another one's data. */
struct edge {
	uint32_t to;
	uint32_t operand; /* whose redistribution stands between; AP_NONE: none */
	int way; /* of it */
};

struct edges {
	AP_VEC(struct edge) v;
};

static void add_edge(struct tracing *x, struct edges *out, uint32_t from, uint32_t to, uint32_t operand,
	int way)
{
	struct edge e = {to, operand, way};

	if (to != AP_NONE && to > from)
		AP_PUSH(x->ctx->scratch, out->v, e);
}

/* Those that wait for what run i makes in the same part. Where a redistribution is made again behind a run
 * that is not run again, nothing before it waits; and it is not waited for where its copy may be that of what
 * another view made. */
static void list_edges(struct tracing *x, const struct pass *pass, uint32_t i, struct edges *out)
{
	const struct run *r = &pass->runs.v[i];
	const struct ap_graph *g = x->p->graph;
	const struct ap_node *n = &g->node[r->node];
	const int32_t *part_of = x->w.x.part_of;

	out->v.n = 0;
	for (uint32_t k = 0; k < n->bound.nin && r->kind == RUN_BACKWARD; k++) {
		const struct ap_task_operand *in = &x->p->task[r->node].in[k];
		ap_id from = g->tensor[n->in[k]].producer;

		if (in->grad && in->kind == AP_TENSOR_ACT && !in->returns && from != AP_NONE &&
			part_of[from] == part_of[r->node])
			add_edge(x, out, i, x->at[RUN_BACKWARD][from], in->apart ? AP_NONE :
				x->first[r->node] + k, BACK);
	}
	for (uint32_t o = 0; o < n->bound.nout && r->kind <= RUN_AGAIN; o++) {
		const struct ap_tensor *t = &g->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			ap_id reader = t->use[u].node;
			bool again = r->kind == RUN_AGAIN;
			const struct ap_task_operand *in = &x->p->task[reader].in[t->use[u].operand];
			bool moves = !in->apart && (!again || in->again);

			if (part_of[reader] != part_of[r->node] ||
				(again && x->set_of[reader] != x->set_of[r->node]))
				continue;
			add_edge(x, out, i, x->at[r->kind][reader], moves ? x->first[reader] +
				t->use[u].operand : AP_NONE, again ? AGAIN : THERE);
		}
	}
	if (r->kind == RUN_AGAIN)
		add_edge(x, out, i, x->at[RUN_BACKWARD][r->node], AP_NONE, AGAIN);
}

static double edge_s(const struct tracing *x, const struct edge *e)
{
	return e->operand == AP_NONE ? 0 : x->way_s[e->way][e->operand];
}

static void offer(struct run *r, double at, uint32_t giver, uint32_t operand, bool all)
{
	if (r->giver != AP_NONE && at <= r->wait_s)
		return;
	r->wait_s = at;
	r->giver = giver;
	r->operand = operand;
	r->all = all;
}

/*
 * Where several runs wait for run i, and all that follow from it come together again in one, the
 * collectives between stand in line, and take no less than their sum. Returns the run where they meet;
 * AP_NONE: none is near. *sum_s: what they take, without those right before that run. Counts them so
 * many times.
 */
static uint32_t meeting(struct tracing *x, const struct pass *pass, uint32_t i, double times, double *sum_s)
{
	enum { FAR = 256 };
	struct ap_mark mark = ap_arena_mark(x->ctx->scratch);
	uint32_t rest = (uint32_t)pass->runs.n - i, most = rest < FAR ? rest : FAR, reach = 0, last = 0;
	bool *follows = AP_NEW_N(x->ctx->scratch, bool, most), *leads = AP_NEW_N(x->ctx->scratch, bool, most);
	struct edges *edges = AP_NEW_N(x->ctx->scratch, struct edges, most);

	follows[0] = true;
	for (uint32_t k = 0; k < most && last == 0; k++) {
		if (!follows[k])
			continue;
		if (k > 0 && k == reach) {
			last = k;
			break;
		}
		list_edges(x, pass, i + k, &edges[k]);
		if (k == 0 && edges[k].v.n < 2)
			break;
		for (size_t e = 0; e < edges[k].v.n; e++) {
			uint32_t to = edges[k].v.v[e].to - i;

			reach = to > reach ? to : reach;
			if (to < most)
				follows[to] = true;
		}
		if (reach >= most)
			break;
	}
	*sum_s = 0;
	leads[last] = last > 0;
	for (uint32_t k = last; k-- > 0;) {
		const struct run *r = &pass->runs.v[i + k];

		for (size_t e = 0; e < edges[k].v.n; e++) {
			const struct edge *to = &edges[k].v.v[e];

			if (!leads[to->to - i])
				continue;
			leads[k] = true;
			*sum_s += edge_s(x, to);
			if (times > 0 && to->operand != AP_NONE)
				x->passed_way[to->way][to->operand] += times;
		}
		if (!leads[k])
			continue;
		*sum_s += after_s(x, r) + (k > 0 ? before_s(x, r) : 0);
		if (times > 0 && r->kind != RUN_WEIGHT)
			x->passed[r->node].s[after[r->kind]] += times;
		if (times > 0 && k > 0)
			count_before(x, r, times);
	}
	ap_arena_release(x->ctx->scratch, mark);
	return last > 0 ? i + last : AP_NONE;
}

static void give(struct tracing *x, struct pass *pass, uint32_t i, struct edges *edges)
{
	const struct run *r = &pass->runs.v[i];
	double sum_s;
	uint32_t last;

	list_edges(x, pass, i, edges);
	for (size_t k = 0; k < edges->v.n; k++) {
		const struct edge *e = &edges->v.v[k];

		offer(&pass->runs.v[e->to], r->data_s + after_s(x, r) + edge_s(x, e), i, e->operand, false);
	}
	if (edges->v.n < 2)
		return;
	last = meeting(x, pass, i, 0, &sum_s);
	if (last != AP_NONE)
		offer(&pass->runs.v[last], r->data_s + sum_s, i, AP_NONE, true);
}

static void push_run(struct tracing *x, struct pass *pass, ap_id node, enum kind kind)
{
	struct run r = {.node = node, .kind = kind, .giver = AP_NONE, .operand = AP_NONE};

	x->at[kind][node] = (uint32_t)pass->runs.n;
	AP_PUSH(x->ctx->scratch, pass->runs, r);
}

/* The runs of a pass in the order of ap_pass_make(). */
static void list_runs(struct tracing *x, int32_t part, enum ap_pass kind, struct pass *out)
{
	const struct ap_parts *parts = &x->w.x;
	const struct ap_live *live = &x->w.live;
	uint32_t lo = parts->first[part], n = parts->first[part + 1] - lo;

	for (uint32_t k = 0; k < n; k++) {
		ap_id node = parts->node[lo + (kind == AP_PASS_FORWARD ? k : n - 1 - k)];

		if (x->p->task[node].once)
			continue;
		if (kind == AP_PASS_FORWARD)
			push_run(x, out, node, RUN_FORWARD);
		if (kind == AP_PASS_WEIGHT && live->weight_share[node] > 0)
			push_run(x, out, node, RUN_WEIGHT);
		if (kind != AP_PASS_BACKWARD)
			continue;
		for (uint32_t s = live->sets_at[node]; s != AP_NONE; s = live->next_set[s])
			for (uint32_t i = live->set_first[s]; i < live->set_first[s + 1]; i++)
				push_run(x, out, live->set_node[i], RUN_AGAIN);
		if (x->p->task[node].backward)
			push_run(x, out, node, RUN_BACKWARD);
	}
}

static void trace_pass(struct tracing *x, int32_t part, enum ap_pass kind)
{
	struct pass *out = &x->pass[part][kind];
	struct edges edges = {0};
	double line = 0;

	list_runs(x, part, kind, out);
	out->last = AP_NONE;
	for (uint32_t i = 0; i < out->runs.n; i++) {
		struct run *r = &out->runs.v[i];
		double kernel = kernel_s(x, r), data, end;
		bool solid = is_solid(x, r), waits;

		if (kind == AP_PASS_FORWARD && micro_s(x, r->node, AP_LEG_INPUT) > r->wait_s) {
			r->wait_s = micro_s(x, r->node, AP_LEG_INPUT);
			r->input = true;
		}
		waits = r->giver != AP_NONE || r->input;
		data = waits ? r->wait_s + before_s(x, r) : 0;
		r->line_by_data = solid && waits && data >= line;
		r->line_s = (r->line_by_data ? data : line) + kernel;
		r->data_s = solid ? r->line_s : data;
		line = r->line_s;
		give(x, out, i, &edges);
		end = r->kind == RUN_FORWARD ? r->data_s + after_s(x, r) : r->line_s;
		if (out->last != AP_NONE && end < out->length_s)
			continue;
		out->last = i;
		out->length_s = end;
		out->from_data = r->kind == RUN_FORWARD;
	}
}

static void count_kernel(struct tracing *x, const struct run *r, double times)
{
	double *leg = x->passed[r->node].s, share = x->w.live.weight_share[r->node];

	switch (r->kind) {
	case RUN_FORWARD:
		leg[AP_LEG_FORWARD] += times;
		break;
	case RUN_AGAIN:
		leg[AP_LEG_AGAIN] += times;
		break;
	case RUN_BACKWARD:
		leg[AP_LEG_BACKWARD] += times * (1 - share);
		break;
	case RUN_WEIGHT:
		leg[AP_LEG_BACKWARD] += times * share;
		break;
	}
}

/* Counts what the path up to run i passes, `times` micro-batches' worth. */
static void count_path(struct tracing *x, const struct pass *pass, uint32_t i, bool data, double times)
{
	while (i != AP_NONE) {
		const struct run *r = &pass->runs.v[i], *giver;
		bool by_data = is_solid(x, r) ? r->line_by_data : data;

		if (is_solid(x, r) || !data)
			count_kernel(x, r, times);
		if (!by_data) {
			i = i > 0 && (is_solid(x, r) || !data) ? i - 1 : AP_NONE;
			data = false;
			continue;
		}
		if (r->input) {
			count_before(x, r, times);
			x->passed[r->node].s[AP_LEG_INPUT] += times;
			return;
		}
		if (r->giver == AP_NONE)
			return;
		giver = &pass->runs.v[r->giver];
		count_before(x, r, times);
		if (r->all) {
			double sum_s;

			meeting(x, pass, r->giver, times, &sum_s);
			i = r->giver;
			data = true;
			continue;
		}
		x->passed[giver->node].s[after[giver->kind]] += times;
		if (r->operand != AP_NONE)
			x->passed_way[giver->kind == RUN_FORWARD ? THERE : giver->kind == RUN_AGAIN
				? AGAIN : BACK][r->operand] += times;
		i = r->giver;
		data = true;
	}
}

/* The longest path through slots of the schedule, by the lengths of passes and sends. */
struct slots {
	const struct ap_timeline *t;
	int32_t *part; /* [slots] */
	double *end_s; /* [slots] */
	uint32_t *giver; /* [slots] the slot that it waits for; AP_NONE: none */
	uint32_t *index; /* [part][pass][micro] */
	double *send_s, *send_back_s; /* [npart] to the part behind, and back */
};

static uint32_t *slot_at(const struct tracing *x, const struct slots *s, int32_t part, int pass,
	int32_t micro)
{
	return &s->index[((size_t)part * (AP_PASS_WEIGHT + 1) + (size_t)pass) *
		(size_t)x->p->step->micro_batches + (size_t)micro];
}

/* The slot of another pass that slot i needs, and what is sent between; AP_NONE: none. */
static uint32_t needed(const struct tracing *x, const struct slots *s, uint32_t i, double *send_s)
{
	const struct ap_schedule_slot *slot = &s->t->slot[i].slot;
	int32_t part = s->part[i], last = x->w.x.npart - 1;

	*send_s = 0;
	if (slot->pass == AP_PASS_FORWARD) {
		if (part == 0)
			return AP_NONE;
		*send_s = s->send_s[part - 1];
		return *slot_at(x, s, part - 1, AP_PASS_FORWARD, slot->micro);
	}
	if (slot->pass == AP_PASS_WEIGHT)
		return *slot_at(x, s, part, AP_PASS_BACKWARD, slot->micro);
	if (part == last)
		return *slot_at(x, s, part, AP_PASS_FORWARD, slot->micro);
	*send_s = s->send_back_s[part];
	return *slot_at(x, s, part + 1, AP_PASS_BACKWARD, slot->micro);
}

static void list_slots(struct tracing *x, struct slots *s)
{
	const struct ap_timeline *t = x->w.timeline;
	const struct ap_graph *g = x->p->graph;
	struct ap_arena *scratch = x->ctx->scratch;
	uint32_t n = t->first[t->nstage];

	*s = (struct slots){.t = t, .part = AP_NEW_N(scratch, int32_t, n),
		.end_s = AP_NEW_N(scratch, double, n),
		.giver = AP_NEW_N(scratch, uint32_t, n),
		.index = AP_NEW_N(scratch, uint32_t, (size_t)x->w.x.npart * (AP_PASS_WEIGHT + 1) *
			(size_t)x->p->step->micro_batches),
		.send_s = AP_NEW_N(scratch, double, x->w.x.npart),
		.send_back_s = AP_NEW_N(scratch, double, x->w.x.npart)};
	for (int32_t stage = 0; stage < t->nstage; stage++)
		for (uint32_t i = t->first[stage]; i < t->first[stage + 1]; i++) {
			(void)ap_whole_step_slot(&x->w, stage, i, &s->part[i]);
			*slot_at(x, s, s->part[i], t->slot[i].slot.pass, t->slot[i].slot.micro) = i;
		}
	for (ap_id i = 0; i < g->nnode; i++)
		if (x->leg[i].s[AP_LEG_SEND] > 0 && !x->p->task[i].once) {
			int32_t hop = ap_whole_step_hop(&x->w, i);

			s->send_s[hop] += micro_s(x, i, AP_LEG_SEND);
			s->send_back_s[hop] += micro_s(x, i, AP_LEG_SEND_BACK);
		}
}

/* Stages take turns: each goes on until it needs a slot that is not laid out yet. */
static void lay_out(struct tracing *x, struct slots *s)
{
	const struct ap_timeline *t = s->t;
	uint32_t *next = ap_arena_memdup(x->ctx->scratch, t->first, (size_t)t->nstage * sizeof *next);
	bool *done = AP_NEW_N(x->ctx->scratch, bool, t->first[t->nstage]);

	for (bool moved = true; moved;) {
		moved = false;
		for (int32_t stage = 0; stage < t->nstage; stage++)
			while (next[stage] < t->first[stage + 1]) {
				uint32_t i = next[stage], give;
				uint32_t before = i > t->first[stage] ? i - 1 : AP_NONE;
				double send_s, start = before == AP_NONE ? 0 : s->end_s[before];

				give = needed(x, s, i, &send_s);
				if (give != AP_NONE && !done[give])
					break;
				s->giver[i] = before;
				if (give != AP_NONE && s->end_s[give] + send_s >= start) {
					start = s->end_s[give] + send_s;
					s->giver[i] = give;
				}
				s->end_s[i] = start + x->pass[s->part[i]][t->slot[i].slot.pass].length_s;
				done[i] = moved = true;
				next[stage]++;
			}
	}
}

static void count_slots(struct tracing *x, const struct slots *s, uint32_t i)
{
	const struct ap_timeline *t = s->t;

	while (i != AP_NONE) {
		const struct ap_schedule_slot *slot = &t->slot[i].slot;
		const struct pass *pass = &x->pass[s->part[i]][slot->pass];
		uint32_t give = s->giver[i];
		double send_s;

		count_path(x, pass, pass->last, pass->from_data, 1);
		if (give != AP_NONE && s->part[give] != s->part[i] && give == needed(x, s, i, &send_s)) {
			bool back = slot->pass != AP_PASS_FORWARD;
			int32_t over = back ? s->part[i] : s->part[give];

			for (ap_id v = 0; v < x->p->graph->nnode && send_s > 0; v++)
				if (x->leg[v].s[AP_LEG_SEND] > 0 && !x->p->task[v].once &&
					ap_whole_step_hop(&x->w, v) == over)
					x->passed[v].s[back ? AP_LEG_SEND_BACK : AP_LEG_SEND] += 1;
		}
		i = give;
	}
}

/*
 * Where the path leaves the passes: behind run `run` of the last slot of `part` (AP_NONE: behind the slot),
 * with the exchange of gradients completed from there on.
 *
 * slowed: beside the exchange, kernels take s times as long, s the slowdown. Up to that run let K be the
 * kernels of the pass, I the time that none runs, X the exchange of gradients completed before it, of
 * which E is left behind it. Then X is at most E, I and what runs beside kernels, B, together, and the
 * pass so far and what is left take
 *   K + (1 - 1/s) B + I + E >= K + (1 - 1/s) (X - I - E) + I + E >= (K + I) / s + (1 - 1/s) (K + X),
 * in which K + I is at least the length of a path to that run.
 */
struct leave {
	double length_s;
	int32_t stage, part;
	uint32_t slot, run;
	bool slowed;
};

/* For each operator with gradient collectives, the one whose backward run completes the gradients;
 * AP_NONE if several do, and then they do not count. */
static const ap_id *completions(const struct tracing *x)
{
	const struct ap_parts *parts = &x->w.x;
	uint32_t n = x->p->graph->nnode;
	ap_id *by = AP_NEW_N(x->ctx->scratch, ap_id, n);
	bool *met = AP_NEW_N(x->ctx->scratch, bool, n);

	for (ap_id node = 0; node < n; node++)
		for (uint32_t i = parts->first_gradient[node]; i < parts->first_gradient[node + 1]; i++) {
			ap_id owner = parts->gradient[i].node;

			by[owner] = !met[owner] || by[owner] == node ? node : AP_NONE;
			met[owner] = true;
		}
	return by;
}

/* The exchange of the gradients that the backward run of a node completes, in seconds; counted so often. */
static double exchange(const struct tracing *x, const ap_id *by, ap_id node, double times)
{
	const struct ap_parts *parts = &x->w.x;
	ap_id before = AP_NONE;
	double sum = 0;

	for (uint32_t i = parts->first_gradient[node]; i < parts->first_gradient[node + 1]; i++) {
		ap_id owner = parts->gradient[i].node;

		if (owner == before || by[owner] != node)
			continue;
		before = owner;
		sum += x->leg[owner].s[AP_LEG_EXCHANGE];
		if (times > 0)
			x->passed[owner].s[AP_LEG_EXCHANGE] = times;
	}
	return sum;
}

static void take_longer(struct leave *best, double length_s, int32_t stage, int32_t part, uint32_t slot,
	uint32_t run, bool slowed)
{
	if (length_s > best->length_s)
		*best = (struct leave){length_s, stage, part, slot, run, slowed};
}

static void find_leave(struct tracing *x, const struct slots *s, const ap_id *by, struct leave *best)
{
	const struct ap_timeline *t = s->t;
	enum ap_pass finishing = x->w.maker.splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
	double slow = 1 / x->w.maker.slowdown;

	*best = (struct leave){.length_s = -1};
	for (int32_t stage = 0; stage < t->nstage; stage++) {
		uint32_t end = t->first[stage + 1];
		double update = 0, later = 0; /* the exchange of later slots' gradients */

		for (ap_id i = 0; i < x->p->graph->nnode; i++)
			if (x->w.x.stage[x->w.x.part_of[i]] == stage)
				update += x->leg[i].s[AP_LEG_OPTIMIZER];
		for (uint32_t i = end; i-- > t->first[stage];) {
			int32_t part = s->part[i];
			const struct pass *pass = &x->pass[part][finishing];
			double start = s->end_s[i] - pass->length_s + update;
			double all = 0, before = 0, kernels = 0;

			if (i + 1 == end)
				take_longer(best, s->end_s[i] + update, stage, part, i, AP_NONE, false);
			if (x->w.part[part].last_slot != i)
				continue;
			for (uint32_t k = 0; k < pass->runs.n; k++)
				if (pass->runs.v[k].kind != RUN_AGAIN)
					all += exchange(x, by, pass->runs.v[k].node, 0);
			for (uint32_t k = 0; k < pass->runs.n; k++) {
				const struct run *r = &pass->runs.v[k];
				double behind = later + all - before;

				kernels += kernel_s(x, r);
				take_longer(best, start + r->line_s + behind, stage, part, i, k, false);
				take_longer(best, start + slow * r->line_s + (1 - slow) * (kernels + before) +
					behind, stage, part, i, k, true);
				if (r->kind != RUN_AGAIN)
					before += exchange(x, by, r->node, 0);
			}
			if (later <= 0)
				take_longer(best, start + slow * pass->length_s +
					(1 - slow) * (kernels + all), stage, part, i, AP_NONE, true);
			later += all;
		}
	}
}

static void count_leave(struct tracing *x, const struct slots *s, const ap_id *by,
	const struct leave *l)
{
	const struct ap_timeline *t = s->t;
	enum ap_pass finishing = x->w.maker.splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
	double slow = l->slowed ? 1 - 1 / x->w.maker.slowdown : 0;
	const struct pass *last;

	for (ap_id i = 0; i < x->p->graph->nnode; i++)
		if (x->w.x.stage[x->w.x.part_of[i]] == l->stage)
			x->passed[i].s[AP_LEG_OPTIMIZER] = 1;
	if (l->run == AP_NONE && !l->slowed) {
		count_slots(x, s, l->slot);
		return;
	}
	count_slots(x, s, s->giver[l->slot]);
	last = &x->pass[l->part][finishing];
	count_path(x, last, l->run == AP_NONE ? last->last : l->run, l->run == AP_NONE && last->from_data,
		1 - slow);
	for (uint32_t k = 0; l->slowed && k < last->runs.n && (l->run == AP_NONE || k <= l->run); k++) {
		count_kernel(x, &last->runs.v[k], slow);
		if (last->runs.v[k].kind != RUN_AGAIN && k != l->run)
			exchange(x, by, last->runs.v[k].node, slow);
	}
	for (uint32_t i = l->slot; i < t->first[l->stage + 1] && l->run != AP_NONE; i++) {
		const struct pass *pass = &x->pass[s->part[i]][finishing];

		if (x->w.part[s->part[i]].last_slot != i)
			continue;
		for (uint32_t k = i == l->slot ? l->run : 0; k < pass->runs.n; k++)
			if (pass->runs.v[k].kind != RUN_AGAIN)
				exchange(x, by, pass->runs.v[k].node, 1);
	}
}

/* Times of the plan's redistributions. Who shares a copy waits for at least its part of it. */
static void time_plan(struct tracing *x)
{
	const struct ap_plan *p = x->p;
	uint32_t *first = AP_NEW_N(x->ctx->arena, uint32_t, p->graph->nnode + 1), operands;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		first[i + 1] = first[i] + p->graph->node[i].bound.nin;
	operands = first[p->graph->nnode];
	for (int w = 0; w < WAYS; w++) {
		x->way_s[w] = AP_NEW_N(x->ctx->scratch, double, operands + 1);
		x->passed_way[w] = AP_NEW_N(x->ctx->scratch, double, operands + 1);
	}
	x->first = first;
	for (uint32_t m = 0; m < p->nmove; m++) {
		const struct ap_plan_move *move = &p->move[m];
		struct ap_move_cost cost = ap_plan_move_part(p, move);
		uint32_t at = first[move->to] + move->operand;
		bool again = p->task[move->to].in[move->operand].again;

		if (move->from == AP_NONE)
			continue;
		x->way_s[THERE][at] = cost.forward_s * x->per_micro;
		x->way_s[AGAIN][at] = again ? cost.forward_s * x->per_micro : 0;
		x->way_s[BACK][at] = cost.backward_s * x->per_micro - x->way_s[AGAIN][at];
	}
}

static void index_runs(struct tracing *x)
{
	uint32_t n = x->p->graph->nnode;

	x->set_of = AP_NEW_N(x->ctx->scratch, uint32_t, n);
	for (int k = 0; k <= RUN_WEIGHT; k++)
		x->at[k] = AP_NEW_N(x->ctx->scratch, uint32_t, n);
	for (ap_id i = 0; i < n; i++) {
		x->set_of[i] = AP_NONE;
		for (int k = 0; k <= RUN_WEIGHT; k++)
			x->at[k][i] = AP_NONE;
	}
	for (uint32_t s = 0; s < x->w.live.nset; s++)
		for (uint32_t k = x->w.live.set_first[s]; k < x->w.live.set_first[s + 1]; k++)
			x->set_of[x->w.live.set_node[k]] = s;
}

/* How often a redistribution counts: a price holds both ways, and a second way there if the copy is made
 * again, so it counts as often as the way that the path passes least. */
static double flow_weight(const struct tracing *x, ap_id node, uint32_t operand)
{
	const struct ap_task_operand *in = &x->p->task[node].in[operand];
	uint32_t at = x->first[node] + operand;
	bool gathers = x->p->step->executor == AP_EXECUTOR_GENERIC && !in->grad;
	double least = x->passed_way[THERE][at];

	if (in->grad)
		least = fmin(least, x->passed_way[BACK][at]);
	if (!in->kept || !(in->again || gathers))
		return least;
	/* what is passed is at least half of there + again + back */
	return fmin(least, fmax(x->passed_way[AGAIN][at], least / 2));
}

void ap_path_longest(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_path_terms *terms,
	struct ap_path *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct tracing x = {.ctx = ctx, .p = p, .leg = terms->leg,
		.per_micro = 1.0 / (double)p->step->micro_batches};
	uint32_t n = p->graph->nnode;
	struct slots slots;
	struct leave leave;
	const ap_id *by;
	double *flow;

	x.passed = AP_NEW_N(ctx->arena, struct ap_legs, n);
	ap_whole_step_make(ctx, p, false, &x.w);
	time_plan(&x);
	index_runs(&x);
	x.pass = ap_arena_alloc(ctx->scratch, (size_t)x.w.x.npart, sizeof *x.pass);
	for (int32_t part = 0; part < x.w.x.npart; part++)
		for (int k = 0; k <= AP_PASS_WEIGHT; k++)
			trace_pass(&x, part, (enum ap_pass)k);
	list_slots(&x, &slots);
	lay_out(&x, &slots);
	by = completions(&x);
	find_leave(&x, &slots, by, &leave);
	count_leave(&x, &slots, by, &leave);
	for (ap_id i = 0; i < n; i++)
		for (int k = 0; k < AP_LEG_EXCHANGE; k++)
			x.passed[i].s[k] *= p->task[i].once ? 0 : x.per_micro;
	flow = AP_NEW_N(ctx->arena, double, x.first[n] + 1);
	for (ap_id i = 0; i < n; i++)
		for (uint32_t k = 0; k < p->graph->node[i].bound.nin; k++)
			flow[x.first[i] + k] = flow_weight(&x, i, k) * x.per_micro;
	*out = (struct ap_path){.weights = {.node = x.passed, .first = x.first,
		.flow = flow}, .length_s = leave.length_s};
	ap_arena_release(ctx->scratch, mark);
}

void ap_path_terms_make(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_path_terms *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_pricer *pricer = ap_pricer_create(ctx->scratch, p->machine, p->step);
	uint32_t n = p->graph->nnode, *first = AP_NEW_N(ctx->scratch, uint32_t, n + 1);
	struct ap_legs *leg = AP_NEW_N(ctx->arena, struct ap_legs, n);
	double *flow_s;

	for (ap_id i = 0; i < n; i++) {
		first[i + 1] = first[i] + p->graph->node[i].bound.nin;
		ap_legs_make(pricer, &p->task[i], &p->op[i].place, &p->op[i].cost, &leg[i]);
	}
	flow_s = AP_NEW_N(ctx->arena, double, first[n] + 1);
	for (uint32_t m = 0; m < p->nmove; m++)
		if (p->move[m].from != AP_NONE) {
			struct ap_move_cost cost = ap_plan_move_part(p, &p->move[m]);

			flow_s[first[p->move[m].to] + p->move[m].operand] +=
				cost.forward_s + cost.backward_s;
		}
	*out = (struct ap_path_terms){leg, flow_s};
	ap_arena_release(ctx->scratch, mark);
}

double ap_path_length_s(const struct ap_path *path, const struct ap_graph *g, const struct ap_path_terms *t)
{
	const struct ap_path_weights *w = &path->weights;
	double sum = 0;

	for (ap_id i = 0; i < g->nnode; i++)
		for (int k = 0; k < AP_LEG_COUNT; k++)
			sum += w->node[i].s[k] * t->leg[i].s[k];
	for (uint32_t i = 0; i < w->first[g->nnode]; i++)
		sum += w->flow[i] * t->flow_s[i];
	return sum;
}

void ap_path_mix(struct ap_ctx *ctx, const struct ap_path *const *path, const double *share, uint32_t n,
	const struct ap_graph *g, struct ap_path *out)
{
	struct ap_legs *node = AP_NEW_N(ctx->arena, struct ap_legs, g->nnode);
	uint32_t operands = path[0]->weights.first[g->nnode];
	double *flow = AP_NEW_N(ctx->arena, double, operands + 1);

	*out = (struct ap_path){.weights = {.node = node, .first = path[0]->weights.first, .flow = flow}};
	for (uint32_t j = 0; j < n; j++) {
		for (ap_id i = 0; i < g->nnode && share[j] > 0; i++)
			for (int k = 0; k < AP_LEG_COUNT; k++)
				node[i].s[k] += share[j] * path[j]->weights.node[i].s[k];
		for (uint32_t i = 0; i < operands && share[j] > 0; i++)
			flow[i] += share[j] * path[j]->weights.flow[i];
		out->length_s += share[j] * path[j]->length_s;
	}
}
