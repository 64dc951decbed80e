/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs in random pipelines of which only some stages are said: what is said holds, nothing goes
 * back, and what is cut by the program is as good as the best contiguous cut along one of its orders, never
 * better than the best of all cuts, and never slower than along the graph's own order.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "fixture.h"
#include "cost/least.h"
#include "harness.h"
#include "hw/coll.h"
#include "pipeline/cut.h"
#include "pipeline/order.h"
#include "pipeline/stages.h"
#include "rule/op.h"
#include "random_graph.h"
#include "unit.h"

enum { MANY = 20, FEW = 12, MOST_NODES = 14 };

struct trial {
	struct fixture f;
	struct ap_graph g; /* with some stages said */
	struct ap_node *node;
	struct ap_stages_request rq;
	int32_t *truth; /* [nnode] parts that there may be */
};

static uint64_t seed;

/* Has it an even batch, and wherever a length stands for it? */
static bool can_halve(const struct ap_graph *g)
{
	bool even = g->batch % 2 == 0;

	for (ap_id i = 0; i < g->nnode; i++)
		for (int f = 0; f < g->node[i].bound.nfactor; f++) {
			const struct ap_factor *factor = &g->node[i].bound.factor[f];

			even &= !(factor->flags & AP_FACTOR_BATCH) || factor->size % 2 == 0;
		}
	return even;
}

static void open_case(struct trial *t, uint32_t operators, const char *scheduler, int32_t nstage,
	int32_t nsegment)
{
	struct random_graph text;

	memset(t, 0, sizeof *t);
	fixture_open(&t->f, 8, 4, "ascend910b");
	random_graph(&t->f.ctx, &seed, operators, &text);
	fixture_graph(&t->f, text.text);
	t->g = *t->f.graph;
	t->node = ap_arena_memdup(t->f.ctx.arena, t->g.node, t->g.nnode * sizeof *t->node);
	t->g.node = t->node;
	t->f.step.micro_batches = can_halve(t->f.graph) ? 2 : 1;
	t->rq = (struct ap_stages_request){.graph = &t->g, .step = &t->f.step, .nstage = nstage,
		.nsegment = nsegment, .scheduler = ap_scheduler_find(scheduler)};
	ap_machine_staged(&t->f.ctx, t->f.machine, (uint32_t)nstage, &t->rq.machine);
}

static bool can_run(const struct trial *t)
{
	return t->g.nnode >= (uint32_t)(t->rq.nstage * t->rq.nsegment) &&
		!t->rq.scheduler->refuses(t->rq.nstage, t->rq.nsegment, t->f.step.micro_batches);
}

/* Parts that ascend along every edge, of which some operators tell: of all of them stage and segment. */
static void say_some(struct trial *t, uint32_t one_in)
{
	t->truth = AP_NEW_N(t->f.ctx.arena, int32_t, t->g.nnode);
	for (ap_id i = 0; i < t->g.nnode; i++) {
		for (int k = 0; k < t->node[i].bound.nin; k++) {
			ap_id from = t->g.tensor[t->node[i].in[k]].producer;

			if (from != AP_NONE && t->truth[from] > t->truth[i])
				t->truth[i] = t->truth[from];
		}
		while (t->truth[i] + 1 < t->rq.nstage * t->rq.nsegment && random_below(&seed, 3) == 0)
			t->truth[i]++;
		if (random_below(&seed, one_in) == 0)
			ap_schedule_spot(t->rq.scheduler, t->rq.nstage, t->truth[i], &t->node[i].stage,
				&t->node[i].segment);
	}
}

static void check_spots(const struct trial *t, const struct ap_spot *spot)
{
	for (ap_id i = 0; i < t->g.nnode; i++) {
		const struct ap_node *n = &t->node[i];

		ck_assert_int_eq(spot[i].part, ap_schedule_part(t->rq.scheduler, t->rq.nstage,
			spot[i].stage, spot[i].segment));
		if (n->stage >= 0) {
			ck_assert_int_eq(spot[i].stage, n->stage);
			ck_assert_int_eq(spot[i].segment, n->segment);
		}
		for (int k = 0; k < n->bound.nin; k++) {
			ap_id from = t->g.tensor[n->in[k]].producer;

			if (from != AP_NONE)
				ck_assert_int_le(spot[from].part, spot[i].part);
		}
	}
}

static bool only_empty_parts(struct trial *t)
{
	const char *text, *check;
	enum ap_level level;

	for (size_t i = 0; (text = ap_diag_text(t->f.ctx.diag, i, &level, &check)); i++)
		if (level == AP_ERROR && (!check || strcmp(check, "stage-empty") != 0))
			return false;
	return true;
}

static const struct {
	const char *scheduler;
	int32_t nstage, nsegment;
} pipes[] = {{"1f1b", 2, 1}, {"gpipe", 4, 1}, {"interleaved", 2, 2}, {"zero_bubble_v", 2, 2}, {"1f1b", 8, 1}};

START_LOOP_TEST(what_is_said_holds, AP_COUNT(pipes))
{
	uint32_t made = 0;

	seed = random_seed() + (uint64_t)_i;
	for (int round = 0; round < 80; round++) {
		const struct ap_spot *spot;
		struct trial t;

		open_case(&t, MANY, pipes[_i].scheduler, pipes[_i].nstage, pipes[_i].nsegment);
		say_some(&t, 1 + (uint32_t)random_below(&seed, 4));
		if (!can_run(&t)) {
			fixture_close(&t.f);
			continue;
		}
		if (ap_stages_make(&t.f.ctx, &t.rq, &spot, NULL) == AP_OK) {
			check_spots(&t, spot);
			made++;
		} else {
			ck_assert(only_empty_parts(&t));
		}
		fixture_close(&t.f);
	}
	ck_assert(pipes[_i].nstage > 4 || made > 3);
}
END_TEST

struct value { /* in quanta */
	int64_t most, sends;
};

static int64_t quanta(double seconds)
{
	return llround(seconds / AP_QUANTUM_S);
}

/* A device's share of a micro-batch, as far as each dimension can be dealt. */
static double share_of(const struct trial *t, const struct ap_tensor *x)
{
	int64_t devices = t->rq.machine->ndev, elements = 1;

	for (int d = 0; d < x->shape.rank; d++) {
		int64_t length = x->shape.dim[d] / (x->batch >> d & 1 ? t->f.step.micro_batches : 1);

		for (int64_t by = 2; by <= devices; by++)
			while (devices % by == 0 && length % by == 0) {
				length /= by;
				devices /= by;
			}
		elements *= length;
	}
	return (double)(elements * ap_dtype_bytes(x->shape.dtype));
}

/* What goes over the boundary in front of place i of an order, between parts, and its gradients. */
static int64_t sends_at(const struct trial *t, const ap_id *at, ap_id i, int32_t part)
{
	int32_t from, to, segment;
	int64_t sum = 0;

	ap_schedule_spot(t->rq.scheduler, t->rq.nstage, part - 1, &from, &segment);
	ap_schedule_spot(t->rq.scheduler, t->rq.nstage, part, &to, &segment);
	for (ap_id x = 0; x < t->g.ntensor; x++) {
		const struct ap_tensor *v = &t->g.tensor[x];
		bool before = v->producer != AP_NONE && at[v->producer] < i, behind = false;
		double s;

		for (uint32_t u = 0; u < v->nuse; u++) {
			before |= v->kind == AP_TENSOR_PARAM && at[v->use[u].node] < i;
			behind |= at[v->use[u].node] >= i;
		}
		if (!before || !behind)
			continue;
		s = ap_send_time_s(t->rq.machine, (uint32_t)from, (uint32_t)to, share_of(t, v));
		if (v->needs_grad)
			s += ap_send_time_s(t->rq.machine, (uint32_t)to, (uint32_t)from, share_of(t, v));
		sum += quanta(v->kind == AP_TENSOR_PARAM ? s : s * (double)t->f.step.micro_batches);
	}
	return sum;
}

struct along { /* an order */
	const ap_id *node, *at; /* [nnode] */
	int64_t *sends; /* [part * nnode + place] */
};

/* Of parts by place; so many halves of the sends count for either part. */
static struct value value_of(const struct trial *t, const double *least, const struct along *o,
	int halves, const int32_t *part)
{
	struct value v = {0, 0};
	int64_t sum = 0;

	for (ap_id i = 0; i < t->g.nnode; i++) {
		if (i > 0 && part[i] != part[i - 1]) {
			int64_t border = o->sends[(ap_id)part[i] * t->g.nnode + i], share = border / 2 * halves;

			v.most = sum + share > v.most ? sum + share : v.most;
			v.sends += border;
			sum = share;
		}
		sum += quanta(least[o->node[i]]);
	}
	v.most = sum > v.most ? sum : v.most;
	return v;
}

/* Has each stage a parameter of its own in its first segment? */
static bool has_parameters(const struct trial *t, const struct along *o, const int32_t *part)
{
	uint32_t having = 0;

	for (ap_id i = 0; i < t->g.nnode; i++) {
		const struct ap_node *n = &t->g.node[o->node[i]];

		if (n->param != AP_NONE && t->g.tensor[n->param].owner.node == o->node[i] &&
			part[i] < t->rq.nstage && ap_op_has_strategy(n->bound.row))
			having |= UINT32_C(1) << part[i];
	}
	return having == (UINT32_C(1) << t->rq.nstage) - 1;
}

/* Of the cuts along an order; none: most is INT64_MAX. */
static struct value best_along(const struct trial *t, const double *least, const struct along *o,
	int halves, bool any)
{
	int32_t npart = t->rq.nstage * t->rq.nsegment, part[MOST_NODES];
	struct value best = {INT64_MAX, 0};

	for (uint32_t mask = 0; mask < UINT32_C(1) << (t->g.nnode - 1); mask++) {
		struct value v;

		part[0] = 0;
		for (ap_id i = 1; i < t->g.nnode; i++)
			part[i] = part[i - 1] + (int32_t)(mask >> (i - 1) & 1);
		if (part[t->g.nnode - 1] != npart - 1 || (!any && !has_parameters(t, o, part)))
			continue;
		v = value_of(t, least, o, halves, part);
		if (v.most < best.most || (v.most == best.most && v.sends < best.sends))
			best = v;
	}
	return best;
}

static struct along along(const struct trial *t, ap_id *node)
{
	int32_t npart = t->rq.nstage * t->rq.nsegment;
	ap_id *at = AP_NEW_N(t->f.ctx.arena, ap_id, t->g.nnode);
	struct along o = {node, at, AP_NEW_N(t->f.ctx.arena, int64_t, (size_t)npart * t->g.nnode)};

	for (ap_id i = 0; i < t->g.nnode; i++)
		at[node[i]] = i;
	for (int32_t p = 1; p < npart; p++)
		for (ap_id i = 1; i < t->g.nnode; i++)
			o.sends[(ap_id)p * t->g.nnode + i] = sends_at(t, at, i, p);
	return o;
}

/* The next of the orders in which each operator is behind what it needs, as positions; false: no more. */
struct all_orders {
	const struct trial *t;
	ap_id node[MOST_NODES];
	uint32_t n;
	uint32_t seen; /* orders so far */
	const double *least;
	struct value best[3]; /* by halves */
};

enum { MOST_ORDERS = 300 };

static void try_orders(struct all_orders *x, uint32_t done)
{
	const struct ap_graph *g = &x->t->g;

	if (x->n == g->nnode) {
		struct along o = along(x->t, x->node);

		x->seen++;
		for (int halves = 0; halves <= 2; halves++) {
			struct value v = best_along(x->t, x->least, &o, halves, true);

			if (v.most < x->best[halves].most)
				x->best[halves] = v;
		}
		return;
	}
	for (ap_id i = 0; i < g->nnode && x->seen < MOST_ORDERS; i++) {
		bool ready = !(done >> i & 1);

		for (int k = 0; k < g->node[i].bound.nin; k++) {
			ap_id from = g->tensor[g->node[i].in[k]].producer;

			ready &= from == AP_NONE || done >> from & 1;
		}
		if (!ready)
			continue;
		x->node[x->n++] = i;
		try_orders(x, done | UINT32_C(1) << i);
		x->n--;
	}
}

/* Seconds of a step of these parts by place: a third of what a part costs is forward. */
static double step_of(struct trial *t, const double *least, const struct along *o, const int32_t *part)
{
	const struct ap_pipe pipe = {t->rq.nstage, t->rq.nsegment, t->rq.scheduler, NULL};
	struct ap_pass_times *time = AP_NEW_N(t->f.ctx.arena, struct ap_pass_times,
		t->rq.nstage * t->rq.nsegment);
	double micro = (double)t->f.step.micro_batches;
	struct ap_timeline line;

	for (ap_id i = 0; i < t->g.nnode; i++) {
		struct ap_pass_times *p = &time[part[i]];

		p->forward_s += (double)quanta(least[o->node[i]]) * AP_QUANTUM_S / 3 / micro;
		if (i > 0 && part[i] != part[i - 1])
			p[-1].send_s = p[-1].send_back_s = (double)o->sends[(ap_id)part[i] * t->g.nnode + i] *
				AP_QUANTUM_S / 2 / micro;
	}
	for (int32_t p = 0; p < t->rq.nstage * t->rq.nsegment; p++) {
		time[p].weight_s = t->rq.scheduler->splits ? time[p].forward_s : 0;
		time[p].backward_s = time[p].forward_s * (t->rq.scheduler->splits ? 1 : 2);
		time[p].last_backward_s = t->rq.scheduler->splits ? time[p].weight_s : time[p].backward_s;
	}
	ap_schedule_run(&t->f.ctx, &pipe, t->f.step.micro_batches, true, time, &line);
	return line.end_s;
}

/* The step of the best cuts along the graph's own order, by each of the shares of sends. */
static double own_order_s(struct trial *t, const double *least, const struct along *o, bool any)
{
	uint32_t npart = (uint32_t)(t->rq.nstage * t->rq.nsegment), n = t->g.nnode;
	int64_t weight[MOST_NODES];
	const int64_t *crossing[8];
	bool vital[MOST_NODES] = {0};
	struct ap_cut cut = {.n = n, .parts = npart, .weight = weight, .crossing = crossing, .vital = vital,
		.wanting = any ? 0 : (uint32_t)t->rq.nstage};
	double best_s = INFINITY;

	for (uint32_t p = 0; p < npart; p++)
		crossing[p] = o->sends + p * n;
	for (ap_id i = 0; i < n; i++) {
		ap_id x = t->g.node[i].param;

		weight[i] = quanta(least[i]);
		vital[i] = x != AP_NONE && t->g.tensor[x].owner.node == i &&
			ap_op_has_strategy(t->g.node[i].bound.row);
	}
	for (cut.halves = 0; cut.halves <= 2; cut.halves++) {
		uint32_t first[MOST_NODES + 1];
		int32_t part[MOST_NODES];

		ap_cut_even(&t->f.ctx, &cut, first);
		first[npart] = n;
		for (uint32_t p = 0; p < npart; p++)
			for (uint32_t i = first[p]; i < first[p + 1]; i++)
				part[i] = (int32_t)p;
		best_s = fmin(best_s, step_of(t, least, o, part));
	}
	return best_s;
}

/* It is the best along one of the orders, for one of the shares of sends that may count. */
static void check_cut(struct trial *t, uint32_t *whole)
{
	int64_t *bytes = AP_NEW_N(t->f.ctx.arena, int64_t, t->g.ntensor);
	struct all_orders all = {.t = t, .best = {{INT64_MAX, 0}, {INT64_MAX, 0}, {INT64_MAX, 0}}};
	const struct ap_spot *spot;
	bool found = false, any = true;

	for (ap_id x = 0; x < t->g.ntensor; x++)
		bytes[x] = (int64_t)share_of(t, &t->g.tensor[x]);
	ck_assert_int_eq(ap_stages_make(&t->f.ctx, &t->rq, &spot, NULL), AP_OK);
	check_spots(t, spot);
	all.least = ap_plan_least_s(&t->f.ctx, &t->g, t->rq.machine, &t->f.step);
	try_orders(&all, 0);
	for (size_t k = 0; ap_order_at(k); k++) {
		ap_id *node = AP_NEW_N(t->f.ctx.arena, ap_id, t->g.nnode);
		int32_t part[MOST_NODES];
		struct along o;
		bool rises = true;

		ap_order_at(k)->fill(&t->f.ctx, &t->g, bytes, node);
		o = along(t, node);
		if (k == 0)
			any = best_along(t, all.least, &o, 0, false).most == INT64_MAX;
		for (ap_id i = 0; i < t->g.nnode; i++) {
			part[i] = spot[node[i]].part;
			rises &= i == 0 || part[i] == part[i - 1] || part[i] == part[i - 1] + 1;
		}
		if (k == 0 && rises)
			ck_assert_double_le(step_of(t, all.least, &o, part),
				own_order_s(t, all.least, &o, any) * (1 + 1e-9));
		for (int halves = 0; rises && halves <= 2; halves++) {
			struct value got = value_of(t, all.least, &o, halves, part);
			struct value best = best_along(t, all.least, &o, halves, any);

			found |= got.most == best.most && got.sends == best.sends;
			if (all.seen < MOST_ORDERS)
				ck_assert_int_ge(got.most, all.best[halves].most);
		}
	}
	ck_assert(found);
	*whole += all.seen < MOST_ORDERS;
}

START_LOOP_TEST(cuts_are_the_best, AP_COUNT(pipes))
{
	uint32_t made = 0, whole = 0;

	seed = random_seed() + 100 + (uint64_t)_i;
	for (int round = 0; round < 8; round++) {
		struct trial t;

		open_case(&t, FEW, pipes[_i].scheduler, pipes[_i].nstage, pipes[_i].nsegment);
		if (can_run(&t) && t.g.nnode <= MOST_NODES) {
			check_cut(&t, &whole);
			made++;
		}
		fixture_close(&t.f);
	}
	ck_assert_uint_gt(made, 0);
	ck_assert(pipes[_i].nstage > 4 || whole > 0); /* graphs of many parts have too many orders */
}
END_TEST

/* Bytes that begin to live with an operator, less those of operands that nothing else reads from now on. */
static int64_t growth(const struct ap_graph *g, const int64_t *bytes, const bool *done, ap_id i)
{
	int64_t sum = 0;

	for (ap_id x = 0; x < g->ntensor; x++) {
		bool read = false, later = false;

		if (g->tensor[x].producer == i && g->tensor[x].nuse > 0)
			sum += bytes[x];
		for (uint32_t u = 0; u < g->tensor[x].nuse; u++) {
			read |= g->tensor[x].use[u].node == i;
			later |= g->tensor[x].use[u].node != i && !done[g->tensor[x].use[u].node];
		}
		if (g->tensor[x].producer != AP_NONE && read && !later)
			sum -= bytes[x];
	}
	return sum;
}

static bool is_ready(const struct ap_graph *g, const bool *done, ap_id i)
{
	bool ready = !done[i];

	for (int k = 0; k < g->node[i].bound.nin; k++) {
		ap_id from = g->tensor[g->node[i].in[k]].producer;

		ready &= from == AP_NONE || done[from];
	}
	return ready;
}

START_TEST(orders_are_what_they_say)
{
	seed = random_seed() + 200;
	for (int round = 0; round < 40; round++) {
		int64_t *bytes;
		ap_id *node;
		struct trial t;

		open_case(&t, MANY, "1f1b", 2, 1);
		bytes = AP_NEW_N(t.f.ctx.arena, int64_t, t.g.ntensor);
		node = AP_NEW_N(t.f.ctx.arena, ap_id, t.g.nnode);
		for (ap_id x = 0; x < t.g.ntensor; x++)
			bytes[x] = 1 + (int64_t)random_below(&seed, 50);
		for (size_t k = 0; ap_order_at(k); k++) {
			bool *done = AP_NEW_N(t.f.ctx.arena, bool, t.g.nnode);

			ap_order_at(k)->fill(&t.f.ctx, &t.g, bytes, node);
			for (ap_id i = 0; i < t.g.nnode; i++) {
				ap_id best = AP_NONE;

				ck_assert_uint_lt(node[i], t.g.nnode);
				ck_assert(is_ready(&t.g, done, node[i]));
				for (ap_id x = 0; x < t.g.nnode; x++)
					if (is_ready(&t.g, done, x) && (best == AP_NONE ||
						growth(&t.g, bytes, done, x) < growth(&t.g, bytes, done, best)))
						best = x;
				if (strcmp(ap_order_at(k)->name, "bytes") == 0)
					ck_assert_uint_eq(node[i], best);
				done[node[i]] = true;
			}
		}
		fixture_close(&t.f);
	}
}
END_TEST
