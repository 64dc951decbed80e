/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "plan/blocks.h"
#include "plan/terms.h"
#include "plan/whole_step.h"
#include "rule/op.h"

enum kind { RUN_FORWARD, RUN_AGAIN, RUN_BACKWARD, RUN_WEIGHT, RUN_MEETING };

/* A kernel of a pass, or the streams' meeting where a block ends. Places in line are numbered from 1: 0 is
 * the start of the pass. */
struct run {
	ap_id node; /* AP_NONE: a meeting */
	enum kind kind;
	bool solid; /* in every plan a kernel runs here; else it hands on what it waits for */
	uint32_t behind; /* its own place; if it is not solid, the last solid one that it surely waits for */
	uint32_t before; /* its own place; if it is not solid, the first solid one that waits for it */
	uint32_t begins, ends; /* the meetings around its block, or the start and the end of the pass */
};

/*
 * A collective or redistribution of a pass: if it takes any time, it starts behind the kernel at one place,
 * and that at another place waits for it. All of a pass stand in line on the communication stream. So between
 * the kernels at places a and b all those that are behind a or a later one, and before b or an earlier one,
 * take no less than their sum: the first of them that a plan has waits for a, all for one another, and b
 * waits for the last, or is behind one that does.
 */
struct item {
	uint32_t behind, before;
	int leg; /* of node; < 0: it is a redistribution */
	ap_id node;
	uint32_t operand; /* numbered in all */
	int way;
	uint32_t next; /* with the same `before`; AP_NONE */
};

/* The longest chain of kernels and what is between them. */
struct chain {
	double *end_s; /* [places] earliest end of the kernel there */
	uint32_t *from; /* [places] the place before */
	bool *hosted; /* [places] is that where its block begins, and between them what the host takes to
	                 start kernels, up to this one? */
	bool hides; /* tokens on their way to experts and back take no time */
};

struct pass {
	AP_VEC(struct run) runs; /* in the order of the compute stream; run i is at place i + 1 */
	AP_VEC(struct item) items;
	uint32_t *first; /* [places] items by the place that waits for them */
	uint32_t end; /* place behind all */
	struct chain chain;
	struct chain beside; /* of a pass that runs as one with another, which take no less than both of these
	                        together; none where passes run alone */
	struct chain slowed; /* with what is between kernels divided by the slowdown; none without one */
};

enum { THERE, AGAIN, BACK, WAYS };

/* How latencies of buckets are counted: a share for each byte, or an nth of a call for each member, or calls
 * of operators that no plan has in one bucket. */
struct latency {
	double share, nth;
	const double *part; /* [nnode] of an operator's calls, which may be in one bucket; NULL: none */
};

struct tracing {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	struct ap_whole_step w;
	double per_micro;
	const struct ap_legs *leg; /* [nnode] of the plan, in a step */
	const bool *fixed; /* [nnode] strategies that all plans have; NULL: none */
	const uint32_t *first; /* [nnode + 1] operands */
	double *way_s[WAYS]; /* [operands] redistributions of the plan, for a micro-batch */
	struct ap_legs *passed; /* [nnode] how often the path passes a leg */
	double *passed_way[WAYS]; /* [operands] */
	struct pass (*pass)[AP_PASS_WEIGHT + 1]; /* [npart] */
	uint32_t *at[RUN_WEIGHT + 1]; /* [nnode] the node's run in its pass; AP_NONE */
	uint32_t *set_of; /* [nnode] */
	struct latency *exchange, *gather; /* [nstage] of buckets */
};

static bool has_kernel(const struct ap_task *t)
{
	return t->bound->row->unit != AP_OP_VIEW && t->bound->row->unit != AP_OP_LINK &&
		!(t->measured && t->measured_forward_s <= 0);
}

/* Does every plan run a kernel here? */
static bool is_solid(const struct tracing *x, ap_id node, enum kind kind)
{
	const struct ap_task *t = &x->p->task[node];

	switch (kind) {
	case RUN_FORWARD:
		return true;
	case RUN_AGAIN:
		return t->recomputed && !t->keep_comm && has_kernel(t);
	case RUN_BACKWARD:
		return x->w.live.weight_share[node] < 1;
	case RUN_WEIGHT:
	case RUN_MEETING:
		return true;
	}
	return false;
}

static double micro_s(const struct tracing *x, ap_id node, enum ap_leg leg)
{
	return x->leg[node].s[leg] * x->per_micro;
}

/* The leg that a run's kernel is, and its part of that. */
static enum ap_leg kernel_leg(const struct tracing *x, const struct run *r, double *share)
{
	double late = x->w.live.weight_share[r->node];

	*share = r->kind == RUN_WEIGHT ? late : r->kind == RUN_BACKWARD ? 1 - late : 1;
	return r->kind == RUN_FORWARD ? AP_LEG_FORWARD
		: r->kind == RUN_AGAIN  ? AP_LEG_AGAIN
					: AP_LEG_BACKWARD;
}

static double kernel_s(const struct tracing *x, const struct run *r)
{
	double share;
	enum ap_leg leg;

	if (r->kind == RUN_MEETING)
		return 0;
	leg = kernel_leg(x, r, &share);
	return micro_s(x, r->node, leg) * share;
}

/* The leg that the host's work for a run is. */
static enum ap_leg launch_leg(const struct run *r)
{
	return r->kind == RUN_FORWARD ? AP_LEG_FORWARD_LAUNCH
		: r->kind == RUN_AGAIN ? AP_LEG_AGAIN_LAUNCH : AP_LEG_BACKWARD_LAUNCH;
}

/* Seconds of the host to start it. */
static double host_s(const struct tracing *x, const struct run *r)
{
	double share;

	if (r->kind == RUN_MEETING)
		return 0;
	(void)kernel_leg(x, r, &share);
	return micro_s(x, r->node, launch_leg(r)) * share;
}

static double item_s(const struct tracing *x, const struct item *c)
{
	return c->leg < 0 ? x->way_s[c->way][c->operand] : micro_s(x, c->node, (enum ap_leg)c->leg);
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The place of an earlier run of the pass that a run waits for, 0: none. */
static uint32_t giver(const struct tracing *x, const struct pass *pass, uint32_t run, enum kind kind,
	ap_id node)
{
	uint32_t at = x->at[kind][node];

	return at < run ? pass->runs.v[at].behind : 0;
}

/* Lowers *before to the place of a later run of the pass. */
static void add_taker(const struct tracing *x, const struct pass *pass, uint32_t run, enum kind kind,
	ap_id node, uint32_t *before)
{
	uint32_t at = x->at[kind][node];

	if (at != AP_NONE && at > run && pass->runs.v[at].before < *before)
		*before = pass->runs.v[at].before;
}

static bool together(const struct tracing *x, ap_id one, ap_id other)
{
	return x->w.x.part_of[one] == x->w.x.part_of[other];
}

/* Are both run again in one set? */
static bool again_together(const struct tracing *x, ap_id one, ap_id other)
{
	return together(x, one, other) && x->set_of[one] != AP_NONE && x->set_of[one] == x->set_of[other];
}

/* Does the gradient of operand k go back within the part? *from: to which node. */
static bool goes_back(const struct tracing *x, ap_id node, uint32_t k, ap_id *from)
{
	const struct ap_task_operand *in = &x->p->task[node].in[k];

	*from = x->p->graph->tensor[x->p->graph->node[node].in[k]].producer;
	return in->grad && in->kind == AP_TENSOR_ACT && !in->returns && *from != AP_NONE;
}

/* The last place of those that give a run its operand k; at least where its block begins. */
static uint32_t operand_from(const struct tracing *x, const struct pass *pass, uint32_t i, uint32_t k)
{
	const struct run *r = &pass->runs.v[i];
	ap_id from = x->p->graph->tensor[x->p->graph->node[r->node].in[k]].producer;

	if (from == AP_NONE || !together(x, from, r->node) ||
		(r->kind == RUN_AGAIN && !again_together(x, from, r->node)))
		return r->begins;
	return later(giver(x, pass, i, r->kind, from), r->begins);
}

/* The last place of those whose gradients a backward run waits for, or that make anew what it reads. */
static uint32_t gradients_from(const struct tracing *x, const struct pass *pass, uint32_t i)
{
	const struct run *r = &pass->runs.v[i];
	const struct ap_graph *g = x->p->graph;
	const struct ap_node *n = &g->node[r->node];
	uint32_t last = later(giver(x, pass, i, RUN_AGAIN, r->node), r->begins);

	for (uint32_t o = 0; o < n->bound.nout; o++) {
		const struct ap_tensor *t = &g->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			ap_id from;

			if (together(x, t->use[u].node, r->node) &&
				goes_back(x, t->use[u].node, t->use[u].operand, &from))
				last = later(last, giver(x, pass, i, RUN_BACKWARD, t->use[u].node));
		}
	}
	return last;
}

static uint32_t all_from(const struct tracing *x, const struct pass *pass, uint32_t i)
{
	const struct run *r = &pass->runs.v[i];
	uint32_t last = r->begins;

	if (r->kind == RUN_BACKWARD)
		return gradients_from(x, pass, i);
	for (uint32_t k = 0; k < x->p->graph->node[r->node].bound.nin && r->kind != RUN_WEIGHT; k++)
		last = later(last, operand_from(x, pass, i, k));
	return last;
}

/* The first place that waits for what run i makes; of its operands' gradients for that of one, unless it is
 * AP_NONE. */
static uint32_t waited_for(const struct tracing *x, const struct pass *pass, uint32_t i, uint32_t operand)
{
	const struct run *r = &pass->runs.v[i];
	const struct ap_graph *g = x->p->graph;
	const struct ap_node *n = &g->node[r->node];
	uint32_t before = r->ends;
	ap_id from;

	for (uint32_t k = 0; k < n->bound.nin && r->kind == RUN_BACKWARD; k++)
		if ((operand == AP_NONE || operand == k) && goes_back(x, r->node, k, &from) &&
			together(x, from, r->node))
			add_taker(x, pass, i, RUN_BACKWARD, from, &before);
	for (uint32_t o = 0; o < n->bound.nout && r->kind <= RUN_AGAIN; o++) {
		const struct ap_tensor *t = &g->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++)
			if (r->kind == RUN_AGAIN ? again_together(x, t->use[u].node, r->node)
						 : together(x, t->use[u].node, r->node))
				add_taker(x, pass, i, r->kind, t->use[u].node, &before);
	}
	if (r->kind == RUN_AGAIN)
		add_taker(x, pass, i, RUN_BACKWARD, r->node, &before);
	return before;
}

static void add_item(struct tracing *x, struct pass *pass, struct item c)
{
	if (c.behind >= c.before)
		return;
	c.next = pass->first[c.before];
	pass->first[c.before] = (uint32_t)pass->items.n;
	AP_PUSH(x->ctx->scratch, pass->items, c);
}

/* The collectives and redistributions of a run. A copy that may be that of what another view made waits
 * for nothing here, and its way back is not waited for. */
static void list_items(struct tracing *x, struct pass *pass, uint32_t i)
{
	static const enum ap_leg out[] = {AP_LEG_FORWARD_OUT, AP_LEG_AGAIN_OUT, AP_LEG_BACKWARD_OUT};
	const struct run *r = &pass->runs.v[i];
	const struct ap_task *t = &x->p->task[r->node];
	struct item c = {.behind = all_from(x, pass, i), .before = r->before, .node = r->node};
	uint32_t nin = x->p->graph->node[r->node].bound.nin;

	if (r->kind == RUN_WEIGHT)
		return;
	c.leg = r->kind == RUN_FORWARD ? AP_LEG_FORWARD_IN : r->kind == RUN_AGAIN ? AP_LEG_AGAIN_IN
		: AP_LEG_BACKWARD_IN;
	add_item(x, pass, c);
	c.leg = AP_LEG_AGAIN_IN;
	if (r->kind == RUN_BACKWARD && t->recompute_set == AP_NONE) /* weights gathered anew */
		add_item(x, pass, c);
	c.leg = AP_LEG_INPUT;
	c.behind = r->begins;
	if (r->kind == RUN_FORWARD)
		add_item(x, pass, c);
	c.leg = (int)out[r->kind];
	c.behind = r->behind;
	c.before = waited_for(x, pass, i, AP_NONE);
	add_item(x, pass, c);
	c.leg = -1;
	for (uint32_t k = 0; k < nin && !t->received; k++) { /* count_giver() counts what is sent */
		ap_id from;

		c.operand = x->first[r->node] + k;
		c.way = r->kind == RUN_FORWARD ? THERE : r->kind == RUN_AGAIN ? AGAIN : BACK;
		if (r->kind == RUN_BACKWARD) {
			if (!goes_back(x, r->node, k, &from))
				continue;
			c.behind = r->behind;
			c.before = t->in[k].apart ? r->ends : waited_for(x, pass, i, k);
		} else {
			if (r->kind == RUN_AGAIN && !t->in[k].again)
				continue;
			c.behind = t->in[k].apart ? r->begins : operand_from(x, pass, i, k);
			c.before = r->before;
		}
		add_item(x, pass, c);
	}
}

static void push_run(struct tracing *x, struct pass *pass, ap_id node, enum kind kind)
{
	uint32_t place = (uint32_t)pass->runs.n + 1;
	struct run r = {.node = node, .kind = kind, .solid = is_solid(x, node, kind), .behind = place,
		.before = place};

	x->at[kind][node] = (uint32_t)pass->runs.n;
	AP_PUSH(x->ctx->scratch, pass->runs, r);
}

static void push_meeting(struct tracing *x, struct pass *pass)
{
	uint32_t place = (uint32_t)pass->runs.n + 1;
	struct run r = {.node = AP_NONE, .kind = RUN_MEETING, .solid = true, .behind = place,
		.before = place};

	AP_PUSH(x->ctx->scratch, pass->runs, r);
}

/* Tells runs where their blocks begin and end. */
static void bracket(struct pass *pass)
{
	uint32_t border = 0, n = (uint32_t)pass->runs.n;

	for (uint32_t i = 0; i < n; i++) {
		pass->runs.v[i].begins = border;
		border = pass->runs.v[i].kind == RUN_MEETING ? i + 1 : border;
	}
	border = n + 1;
	for (uint32_t i = n; i-- > 0;) {
		pass->runs.v[i].ends = border;
		border = pass->runs.v[i].kind == RUN_MEETING ? i + 1 : border;
	}
}

/* The runs of a pass in the order of ap_pass_make(). */
static void list_runs(struct tracing *x, int32_t part, enum ap_pass kind, struct pass *out)
{
	const struct ap_parts *parts = &x->w.x;
	const struct ap_live *live = &x->w.live;
	uint32_t lo = parts->first[part], n = parts->first[part + 1] - lo, block = AP_NONE;

	for (uint32_t k = 0; k < n; k++) {
		ap_id node = parts->node[lo + (kind == AP_PASS_FORWARD ? k : n - 1 - k)];

		if (x->p->task[node].once)
			continue;
		if (block != AP_NONE && x->p->blocks->of[node] != block)
			push_meeting(x, out);
		block = x->p->blocks->of[node];
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
	bracket(out);
}

/* The largest of what is at places, to which may be added for all up to one. */
struct most {
	uint32_t leaves; /* a power of two */
	double *value; /* [2 leaves] of the subtree, without what is added above it */
	double *added; /* [2 leaves] to all of the subtree, and in value */
	uint32_t *at; /* [2 leaves] the first place with it */
};

static void most_pull(struct most *m, uint32_t node)
{
	uint32_t best = m->value[2 * node + 1] > m->value[2 * node] ? 2 * node + 1 : 2 * node;

	m->value[node] = m->value[best] + m->added[node];
	m->at[node] = m->at[best];
}

static void most_init(struct ap_ctx *ctx, uint32_t places, struct most *m)
{
	*m = (struct most){.leaves = 1};
	while (m->leaves < places)
		m->leaves *= 2;
	m->value = AP_NEW_N(ctx->scratch, double, 2 * m->leaves);
	m->added = AP_NEW_N(ctx->scratch, double, 2 * m->leaves);
	m->at = AP_NEW_N(ctx->scratch, uint32_t, 2 * m->leaves);
	for (uint32_t i = 1; i < 2 * m->leaves; i++)
		m->value[i] = -INFINITY;
}

/* Places are set once, in order, before anything is added to them. */
static void most_set(struct most *m, uint32_t place, double value)
{
	uint32_t node = m->leaves + place;

	m->value[node] = value;
	m->at[node] = place;
	while ((node /= 2) > 0)
		most_pull(m, node);
}

static void most_add(struct most *m, uint32_t last, double more)
{
	uint32_t node = m->leaves + last;

	m->value[node] += more;
	m->added[node] += more;
	for (; node > 1; node /= 2) {
		if (node & 1) {
			m->value[node - 1] += more;
			m->added[node - 1] += more;
		}
		most_pull(m, node / 2);
	}
}

static bool is_hidden(const struct tracing *x, const struct chain *chain, const struct item *c)
{
	return chain->hides && c->leg < 0 &&
		ap_parts_moves_tokens(x->p->graph, c->node, c->operand - x->first[c->node]);
}

/* O((runs + items) log runs). scale: of what is between kernels, and of the host. */
static void trace_chain(struct tracing *x, const struct pass *pass, double scale, bool hides,
	struct chain *out)
{
	struct most m;
	double host = 0; /* since the block began */

	*out = (struct chain){AP_NEW_N(x->ctx->scratch, double, pass->end + 1),
		AP_NEW_N(x->ctx->scratch, uint32_t, pass->end + 1),
		AP_NEW_N(x->ctx->scratch, bool, pass->end + 1), hides};
	most_init(x->ctx, pass->end + 1, &m);
	most_set(&m, 0, 0);
	for (uint32_t place = 1; place <= pass->end; place++) {
		const struct run *r = place < pass->end ? &pass->runs.v[place - 1] : NULL;

		for (uint32_t c = pass->first[place]; c != AP_NONE; c = pass->items.v[c].next)
			if (item_s(x, &pass->items.v[c]) > 0 && !is_hidden(x, out, &pass->items.v[c]))
				most_add(&m, pass->items.v[c].behind, scale * item_s(x, &pass->items.v[c]));
		out->from[place] = r && !r->solid ? place - 1 : m.at[1]; /* that one waits for no item */
		out->end_s[place] = r && !r->solid ? out->end_s[place - 1] : m.value[1];
		host = r && r->kind != RUN_MEETING ? host + host_s(x, r) : 0;
		if (host > 0 && r->solid && out->end_s[r->begins] + scale * host > out->end_s[place]) {
			out->from[place] = r->begins;
			out->hosted[place] = true;
			out->end_s[place] = out->end_s[r->begins] + scale * host;
		}
		out->end_s[place] += r ? kernel_s(x, r) : 0;
		most_set(&m, place, out->end_s[place]);
	}
}

static void trace_pass(struct tracing *x, int32_t part, enum ap_pass kind)
{
	struct pass *out = &x->pass[part][kind];

	list_runs(x, part, kind, out);
	out->end = (uint32_t)out->runs.n + 1;
	out->first = AP_NEW_N(x->ctx->scratch, uint32_t, out->end + 1);
	for (uint32_t i = 0; i <= out->end; i++)
		out->first[i] = AP_NONE;
	for (uint32_t i = 0; i < out->runs.n; i++)
		if (!out->runs.v[i].solid)
			out->runs.v[i].behind = all_from(x, out, i);
	for (uint32_t i = (uint32_t)out->runs.n; i-- > 0;)
		if (!out->runs.v[i].solid)
			out->runs.v[i].before = waited_for(x, out, i, AP_NONE);
	for (uint32_t i = 0; i < out->runs.n; i++)
		if (out->runs.v[i].kind != RUN_MEETING)
			list_items(x, out, i);
	trace_chain(x, out, 1, false, &out->chain);
	if (x->w.x.pipe && x->w.x.pipe->scheduler->beside)
		trace_chain(x, out, 1, true, &out->beside);
	if (kind != AP_PASS_FORWARD && x->w.maker.slowdown > 1)
		trace_chain(x, out, 1 / x->w.maker.slowdown, false, &out->slowed);
}

static void count_kernel(struct tracing *x, const struct run *r, double times)
{
	double share;
	enum ap_leg leg;

	if (r->kind == RUN_MEETING)
		return;
	leg = kernel_leg(x, r, &share);
	x->passed[r->node].s[leg] += times * share;
}

/* Counts the host's work for the runs behind a place, up to another one. */
static void count_host(struct tracing *x, const struct pass *pass, uint32_t from, uint32_t place,
	double times)
{
	for (uint32_t at = from; at < place; at++) {
		const struct run *r = &pass->runs.v[at];
		double share;

		if (r->kind == RUN_MEETING)
			continue;
		(void)kernel_leg(x, r, &share);
		x->passed[r->node].s[launch_leg(r)] += times * share;
	}
}

/* Counts what the chain up to a place passes, `times` micro-batches' worth, of what is between kernels
 * `scale` as much. */
static void count_chain(struct tracing *x, const struct pass *pass, const struct chain *chain, uint32_t place,
	double times, double scale)
{
	while (place > 0) {
		uint32_t from = chain->from[place];

		if (place < pass->end)
			count_kernel(x, &pass->runs.v[place - 1], times);
		if (chain->hosted[place])
			count_host(x, pass, from, place, times * scale);
		for (uint32_t at = from + 1; at <= place && !chain->hosted[place]; at++)
			for (uint32_t i = pass->first[at]; i != AP_NONE; i = pass->items.v[i].next) {
				const struct item *c = &pass->items.v[i];

				if (c->behind < from || is_hidden(x, chain, c))
					continue;
				if (c->leg < 0)
					x->passed_way[c->way][c->operand] += times * scale;
				else
					x->passed[c->node].s[c->leg] += times * scale;
			}
		place = from;
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

/* Is it sent with each micro-batch to a stage with another number of devices? */
static bool is_sent(const struct ap_plan *p, const struct ap_plan_move *m)
{
	return m->sent && !p->task[m->to].once;
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
	for (uint32_t m = 0; m < x->p->nmove; m++)
		if (is_sent(x->p, &x->p->move[m])) {
			int32_t hop = ap_whole_step_hop(&x->w, x->p->move[m].from);

			s->send_s[hop] += x->p->move[m].cost.forward_s * x->per_micro;
			s->send_back_s[hop] += x->p->move[m].cost.backward_s * x->per_micro;
		}
}

/* What slot i passes. Two that run as one start when both may, and hand on what they make when both are done,
 * so that one after the other they are no later. */
static const struct chain *chain_of(const struct tracing *x, const struct slots *s, uint32_t i)
{
	const struct pass *pass = &x->pass[s->part[i]][s->t->slot[i].slot.pass];

	return s->t->slot[i].slot.beside ? &pass->beside : &pass->chain;
}

static double taken_s(const struct tracing *x, const struct slots *s, uint32_t i)
{
	return chain_of(x, s, i)->end_s[x->pass[s->part[i]][s->t->slot[i].slot.pass].end];
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
				s->end_s[i] = start + taken_s(x, s, i);
				done[i] = moved = true;
				next[stage]++;
			}
	}
}

/* The slot that slot i waits for; counts what is sent between. */
static uint32_t count_giver(struct tracing *x, const struct slots *s, uint32_t i)
{
	uint32_t give = s->giver[i];
	bool back = s->t->slot[i].slot.pass != AP_PASS_FORWARD;
	double send_s;
	int32_t over;

	if (give == AP_NONE || s->part[give] == s->part[i] || give != needed(x, s, i, &send_s))
		return give;
	over = back ? s->part[i] : s->part[give];
	for (ap_id v = 0; v < x->p->graph->nnode && send_s > 0; v++)
		if (x->leg[v].s[AP_LEG_SEND] > 0 && !x->p->task[v].once &&
			ap_whole_step_hop(&x->w, v) == over)
			x->passed[v].s[back ? AP_LEG_SEND_BACK : AP_LEG_SEND] += 1;
	for (uint32_t m = 0; m < x->p->nmove && send_s > 0; m++) {
		const struct ap_plan_move *move = &x->p->move[m];

		if (is_sent(x->p, move) && ap_whole_step_hop(&x->w, move->from) == over)
			x->passed_way[back ? BACK : THERE][x->first[move->to] + move->operand] += 1;
	}
	return give;
}

static void count_slots(struct tracing *x, const struct slots *s, uint32_t i)
{
	const struct ap_timeline *t = s->t;

	while (i != AP_NONE) {
		const struct ap_schedule_slot *slot = &t->slot[i].slot;
		const struct pass *pass = &x->pass[s->part[i]][slot->pass];

		count_chain(x, pass, chain_of(x, s, i), pass->end, 1, 1);
		i = count_giver(x, s, i);
	}
}

/*
 * Where the path leaves the passes: behind the kernel at place `place` of the last slot of `part` (AP_NONE:
 * behind the slot), with the exchange of gradients completed from there on.
 *
 * slowed: beside the exchange, kernels take s times as long, s the slowdown. Of a chain up to there let K be
 * the kernels and C what is between them, X the exchange of gradients completed before, of which E is left.
 * Then X is at most E, C and what runs beside the chain's kernels, B, together, and what the chain and what
 * is left take (C has the host's work as well, where the chain waits for it) is
 *   K + (1 - 1/s) B + C + E >= K + (1 - 1/s) (X - C - E) + C + E >= K + C / s + (1 - 1/s) X.
 */
struct leave {
	double length_s;
	int32_t stage, part;
	uint32_t slot, place;
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

static double bucketed_s(const struct tracing *x, ap_id node, const struct latency *l, enum ap_leg leg)
{
	const double *s = &x->leg[node].s[leg];

	return s[0] + l->share * s[1] + (l->part ? l->part[node] : l->nth) * s[2];
}

static void count_bucketed(struct tracing *x, ap_id node, const struct latency *l, enum ap_leg leg,
	double times)
{
	double *s = &x->passed[node].s[leg];

	s[0] = times;
	s[1] = times * l->share;
	s[2] = times * (l->part ? l->part[node] : l->nth);
}

static int32_t stage_of(const struct tracing *x, ap_id node)
{
	return x->w.x.stage[x->w.x.part_of[node]];
}

/* How many collectives of one kind an operator may have for its parameters. */
static double parameters(const struct tracing *x, ap_id node)
{
	double n = 0;

	for (uint32_t k = 0; k < x->p->graph->node[node].bound.nin; k++)
		n += x->p->task[node].in[k].kind == AP_TENSOR_PARAM || x->p->task[node].in[k].returns;
	return n;
}

struct bucket_group { /* without padding */
	struct ap_axes axes;
	int32_t kind, stage;
};

/* Adds the groups of the operator's collectives of a phase to seen. False, with nothing added, if one was
 * there. */
static bool has_own_groups(const struct tracing *x, ap_id node, enum ap_phase phase, struct ap_map *seen)
{
	const struct ap_plan_op *op = &x->p->op[node];

	for (int add = 0; add < 2; add++)
		for (uint32_t i = 0; i < op->ncomm; i++) {
			const struct ap_comm *c = &op->comm[i].comm;
			struct bucket_group key;

			if (c->phase != phase)
				continue;
			memset(&key, 0, sizeof key);
			key.axes.n = c->axes.n;
			memcpy(key.axes.axis, c->axes.axis, (size_t)c->axes.n * sizeof *c->axes.axis);
			key.kind = (int32_t)c->kind;
			key.stage = stage_of(x, node);
			if (add)
				ap_map_put(seen, &key, sizeof key, NULL);
			else if (ap_map_get(seen, &key, sizeof key) != AP_NONE)
				return false;
		}
	return true;
}

struct ranked {
	double rank;
	ap_id node;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* For each stage, counts latencies of buckets in the way that has most of them in this plan: of operators,
 * those of highest rank, which are one, or several of those with a fixed strategy, whose groups differ. */
static struct latency *latencies(struct tracing *x, enum ap_leg leg, enum ap_phase phase, const double *rank)
{
	int32_t nstage = x->w.x.nstage;
	uint32_t n = x->p->graph->nnode, ncaller = 0;
	struct ap_map *seen = ap_map_create(x->ctx->scratch);
	struct latency *out = AP_NEW_N(x->ctx->scratch, struct latency, nstage);
	double *share_s = AP_NEW_N(x->ctx->scratch, double, nstage);
	double *call_s = AP_NEW_N(x->ctx->scratch, double, nstage);
	double *one_s = AP_NEW_N(x->ctx->scratch, double, nstage);
	double *fixed_s = AP_NEW_N(x->ctx->scratch, double, nstage);
	double *most = AP_NEW_N(x->ctx->scratch, double, nstage); /* members of a bucket */
	double *one = AP_NEW_N(x->ctx->scratch, double, n), *fixed = AP_NEW_N(x->ctx->scratch, double, n);
	struct ranked *caller = AP_NEW_N(x->ctx->scratch, struct ranked, n);

	for (ap_id i = 0; i < n; i++) {
		int32_t stage = stage_of(x, i);
		const double *t = &x->leg[i].s[leg];

		share_s[stage] += t[1];
		call_s[stage] += t[2];
		most[stage] += parameters(x, i);
		if (t[2] > 0 && rank[i] > 0)
			caller[ncaller++] = (struct ranked){rank[i], i};
	}
	qsort(caller, ncaller, sizeof *caller, by_rank);
	for (uint32_t i = 0; i < ncaller; i++) {
		ap_id node = caller[i].node;
		int32_t stage = stage_of(x, node);
		double part = 1 / parameters(x, node), s = part * x->leg[node].s[leg + 2];

		if (one_s[stage] <= 0) {
			one[node] = part;
			one_s[stage] = s;
		}
		if (x->fixed && x->fixed[node] && has_own_groups(x, node, phase, seen)) {
			fixed[node] = part;
			fixed_s[stage] += s;
		}
	}
	for (int32_t s = 0; s < nstage; s++) {
		double nth = most[s] > 0 ? 1 / most[s] : 0;
		const double *part = fixed_s[s] > one_s[s] ? fixed : one;

		if (fmax(one_s[s], fixed_s[s]) > share_s[s] && fmax(one_s[s], fixed_s[s]) >= nth * call_s[s])
			out[s] = (struct latency){0, 0, part};
		else
			out[s] = nth * call_s[s] > share_s[s] ? (struct latency){0, nth, NULL}
							      : (struct latency){1, 0, NULL};
	}
	return out;
}

/* May the run complete gradients? */
static bool completes(const struct run *r)
{
	return r->kind == RUN_BACKWARD || r->kind == RUN_WEIGHT;
}

/* Operators by the order in which their gradients are complete; 0: never, or in several places. */
static const double *completion_rank(const struct tracing *x, const struct slots *s, const ap_id *by)
{
	const struct ap_parts *parts = &x->w.x;
	double *rank = AP_NEW_N(x->ctx->scratch, double, x->p->graph->nnode), n = 0;

	for (uint32_t i = 0; i < s->t->first[s->t->nstage]; i++) {
		const struct pass *pass = &x->pass[s->part[i]][s->t->slot[i].slot.pass];

		if (x->w.part[s->part[i]].last_slot != i)
			continue;
		for (uint32_t k = 0; k < pass->runs.n; k++) {
			ap_id node = pass->runs.v[k].node;

			n++;
			if (!completes(&pass->runs.v[k]))
				continue;
			for (uint32_t g = parts->first_gradient[node]; g < parts->first_gradient[node + 1];
				g++)
				if (by[parts->gradient[g].node] == node)
					rank[parts->gradient[g].node] = n;
		}
	}
	return rank;
}

/* The exchange of the gradients that the backward run of a node completes, in seconds; counted so often. */
static double exchange(struct tracing *x, const ap_id *by, ap_id node, double times)
{
	const struct ap_parts *parts = &x->w.x;
	ap_id before = AP_NONE;
	double sum = 0;

	for (uint32_t i = parts->first_gradient[node]; i < parts->first_gradient[node + 1]; i++) {
		ap_id owner = parts->gradient[i].node;

		if (owner == before || by[owner] != node)
			continue;
		before = owner;
		sum += bucketed_s(x, owner, &x->exchange[stage_of(x, owner)], AP_LEG_EXCHANGE);
		if (times > 0)
			count_bucketed(x, owner, &x->exchange[stage_of(x, owner)], AP_LEG_EXCHANGE, times);
	}
	return sum;
}

static void take_longer(struct leave *best, double length_s, int32_t stage, int32_t part, uint32_t slot,
	uint32_t place, bool slowed)
{
	if (length_s > best->length_s)
		*best = (struct leave){length_s, stage, part, slot, place, slowed};
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
			if (stage_of(x, i) == stage)
				update += bucketed_s(x, i, &x->gather[stage], AP_LEG_OPTIMIZER);
		for (uint32_t i = end; i-- > t->first[stage];) {
			int32_t part = s->part[i];
			const struct pass *pass = &x->pass[part][finishing];
			double start = s->end_s[i] - taken_s(x, s, i) + update;
			double all = 0, before = 0;

			if (i + 1 == end)
				take_longer(best, s->end_s[i] + update, stage, part, i, AP_NONE, false);
			if (x->w.part[part].last_slot != i)
				continue;
			for (uint32_t k = 0; k < pass->runs.n; k++)
				if (completes(&pass->runs.v[k]))
					all += exchange(x, by, pass->runs.v[k].node, 0);
			for (uint32_t k = 0; k < pass->runs.n; k++) {
				const struct run *r = &pass->runs.v[k];
				double behind = later + all - before;

				take_longer(best, start + pass->chain.end_s[k + 1] + behind, stage, part, i,
					k + 1, false);
				if (slow < 1)
					take_longer(best, start + pass->slowed.end_s[k + 1] +
						(1 - slow) * before + behind, stage, part, i, k + 1, true);
				if (completes(r))
					before += exchange(x, by, r->node, 0);
			}
			if (later <= 0 && slow < 1)
				take_longer(best, start + pass->slowed.end_s[pass->end] + (1 - slow) * all,
					stage, part, i, pass->end, true);
			later += all;
		}
	}
}

static void count_leave(struct tracing *x, const struct slots *s, const ap_id *by,
	const struct leave *l)
{
	const struct ap_timeline *t = s->t;
	enum ap_pass finishing = x->w.maker.splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
	double slow = 1 / x->w.maker.slowdown;
	const struct pass *last;

	for (ap_id i = 0; i < x->p->graph->nnode; i++)
		if (stage_of(x, i) == l->stage)
			count_bucketed(x, i, &x->gather[l->stage], AP_LEG_OPTIMIZER, 1);
	if (l->place == AP_NONE) {
		count_slots(x, s, l->slot);
		return;
	}
	count_slots(x, s, count_giver(x, s, l->slot));
	last = &x->pass[l->part][finishing];
	count_chain(x, last, l->slowed ? &last->slowed : &last->chain, l->place, 1, l->slowed ? slow : 1);
	for (uint32_t k = 0; l->slowed && k + 1 < l->place; k++)
		if (completes(&last->runs.v[k]))
			exchange(x, by, last->runs.v[k].node, 1 - slow);
	for (uint32_t i = l->slot; i < t->first[l->stage + 1] && l->place < last->end; i++) {
		const struct pass *pass = &x->pass[s->part[i]][finishing];

		if (x->w.part[s->part[i]].last_slot != i)
			continue;
		for (uint32_t k = i == l->slot ? l->place - 1 : 0; k < pass->runs.n; k++)
			if (completes(&pass->runs.v[k]))
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

		if (move->from == AP_NONE || move->sent)
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

void ap_path_longest(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_path_terms *terms,
	const bool *fixed, struct ap_path *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct tracing x = {.ctx = ctx, .p = p, .leg = terms->leg, .fixed = fixed,
		.per_micro = 1.0 / (double)p->step->micro_batches};
	uint32_t n = p->graph->nnode;
	struct slots slots;
	struct leave leave;
	const ap_id *by;
	double *there, *back, *bytes_s;

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
	x.exchange = latencies(&x, AP_LEG_EXCHANGE, AP_PHASE_GRADIENT, completion_rank(&x, &slots, by));
	bytes_s = AP_NEW_N(ctx->scratch, double, n);
	for (ap_id i = 0; i < n; i++)
		bytes_s[i] = x.leg[i].s[AP_LEG_OPTIMIZER];
	x.gather = latencies(&x, AP_LEG_OPTIMIZER, AP_PHASE_OPTIMIZER, bytes_s);
	find_leave(&x, &slots, by, &leave);
	count_leave(&x, &slots, by, &leave);
	for (ap_id i = 0; i < n; i++)
		for (int k = 0; k < AP_LEG_EXCHANGE; k++)
			x.passed[i].s[k] *= p->task[i].once ? 0 : x.per_micro;
	there = AP_NEW_N(ctx->arena, double, x.first[n] + 1);
	back = AP_NEW_N(ctx->arena, double, x.first[n] + 1);
	for (ap_id i = 0; i < n; i++)
		for (uint32_t k = 0; k < p->graph->node[i].bound.nin; k++) {
			uint32_t at = x.first[i] + k;

			there[at] = x.passed_way[THERE][at] * x.per_micro;
			back[at] = x.passed_way[BACK][at] * x.per_micro;
			if (p->task[i].in[k].again) /* the price of the way back has the second way there */
				there[at] += x.passed_way[AGAIN][at] * x.per_micro - back[at];
		}
	*out = (struct ap_path){.weights = {.node = x.passed, .first = x.first,
		.there = there, .back = back}, .length_s = leave.length_s};
	ap_arena_release(ctx->scratch, mark);
}

void ap_path_terms_make(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_path_terms *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_pricer *pricer = ap_pricer_create(ctx->scratch, p->machine, p->step);
	uint32_t n = p->graph->nnode, *first = AP_NEW_N(ctx->scratch, uint32_t, n + 1);
	struct ap_legs *leg = AP_NEW_N(ctx->arena, struct ap_legs, n);
	double *there_s, *back_s;

	for (ap_id i = 0; i < n; i++) {
		first[i + 1] = first[i] + p->graph->node[i].bound.nin;
		ap_legs_make(pricer, &p->task[i], &p->op[i].place, &p->op[i].cost, &leg[i]);
	}
	there_s = AP_NEW_N(ctx->arena, double, first[n] + 1);
	back_s = AP_NEW_N(ctx->arena, double, first[n] + 1);
	for (uint32_t m = 0; m < p->nmove; m++)
		if (p->move[m].from != AP_NONE) {
			struct ap_move_cost cost = ap_plan_move_part(p, &p->move[m]);

			there_s[first[p->move[m].to] + p->move[m].operand] += cost.forward_s;
			back_s[first[p->move[m].to] + p->move[m].operand] += cost.backward_s;
		}
	*out = (struct ap_path_terms){leg, there_s, back_s};
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
		sum += w->there[i] * t->there_s[i] + w->back[i] * t->back_s[i];
	return sum;
}

void ap_path_mix(struct ap_ctx *ctx, const struct ap_path *const *path, const double *share, uint32_t n,
	const struct ap_graph *g, struct ap_path *out)
{
	struct ap_legs *node = AP_NEW_N(ctx->arena, struct ap_legs, g->nnode);
	uint32_t operands = path[0]->weights.first[g->nnode];
	double *there = AP_NEW_N(ctx->arena, double, operands + 1);
	double *back = AP_NEW_N(ctx->arena, double, operands + 1);

	*out = (struct ap_path){.weights = {.node = node, .first = path[0]->weights.first, .there = there,
		.back = back}};
	for (uint32_t j = 0; j < n; j++) {
		for (ap_id i = 0; i < g->nnode && share[j] > 0; i++)
			for (int k = 0; k < AP_LEG_COUNT; k++)
				node[i].s[k] += share[j] * path[j]->weights.node[i].s[k];
		for (uint32_t i = 0; i < operands && share[j] > 0; i++) {
			there[i] += share[j] * path[j]->weights.there[i];
			back[i] += share[j] * path[j]->weights.back[i];
		}
		out->length_s += share[j] * path[j]->length_s;
	}
}
