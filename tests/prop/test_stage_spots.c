/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs in random pipelines of which only some stages are said: what is said holds, nothing goes
 * back, and what is cut by the program is as good as the best contiguous cut.
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

/* What goes over the boundary in front of operator i, between parts, and its gradients. */
static int64_t sends_at(const struct trial *t, ap_id i, int32_t part)
{
	int32_t from, to, segment;
	int64_t sum = 0;

	ap_schedule_spot(t->rq.scheduler, t->rq.nstage, part - 1, &from, &segment);
	ap_schedule_spot(t->rq.scheduler, t->rq.nstage, part, &to, &segment);
	for (ap_id x = 0; x < t->g.ntensor; x++) {
		const struct ap_tensor *v = &t->g.tensor[x];
		bool before = v->producer != AP_NONE && v->producer < i, behind = false;
		double s;

		for (uint32_t u = 0; u < v->nuse; u++) {
			before |= v->kind == AP_TENSOR_PARAM && v->use[u].node < i;
			behind |= v->use[u].node >= i;
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

/* sends[part * nnode + i], of which so many halves count for either part. */
static struct value value_of(const struct trial *t, const double *least, const int64_t *sends,
	int halves, const int32_t *part)
{
	struct value v = {0, 0};
	int64_t sum = 0;

	for (ap_id i = 0; i < t->g.nnode; i++) {
		if (i > 0 && part[i] != part[i - 1]) {
			int64_t border = sends[(ap_id)part[i] * t->g.nnode + i], share = border / 2 * halves;

			v.most = sum + share > v.most ? sum + share : v.most;
			v.sends += border;
			sum = share;
		}
		sum += quanta(least[i]);
	}
	v.most = sum > v.most ? sum : v.most;
	return v;
}

/* Has each stage a parameter of its own in its first segment? */
static bool has_parameters(const struct trial *t, const int32_t *part)
{
	uint32_t having = 0;

	for (ap_id i = 0; i < t->g.nnode; i++) {
		ap_id x = t->g.node[i].param;

		if (x != AP_NONE && t->g.tensor[x].owner.node == i && part[i] < t->rq.nstage &&
			ap_op_has_strategy(t->g.node[i].bound.row))
			having |= UINT32_C(1) << part[i];
	}
	return having == (UINT32_C(1) << t->rq.nstage) - 1;
}

/* Where no cut gives each stage parameters, of all of them. */
static struct value best_of_all(const struct trial *t, const double *least, const int64_t *sends,
	int halves, int32_t npart, bool any)
{
	struct value best = {INT64_MAX, 0};
	int32_t part[MOST_NODES];

	for (uint32_t mask = 0; mask < UINT32_C(1) << (t->g.nnode - 1); mask++) {
		struct value v;

		part[0] = 0;
		for (ap_id i = 1; i < t->g.nnode; i++)
			part[i] = part[i - 1] + (int32_t)(mask >> (i - 1) & 1);
		if (part[t->g.nnode - 1] != npart - 1 || (!any && !has_parameters(t, part)))
			continue;
		v = value_of(t, least, sends, halves, part);
		if (v.most < best.most || (v.most == best.most && v.sends < best.sends))
			best = v;
	}
	return any || best.most < INT64_MAX ? best : best_of_all(t, least, sends, halves, npart, true);
}

/* It is the best for one of the shares of sends that may count. */
static void check_cut(struct trial *t)
{
	int32_t part[MOST_NODES], npart = t->rq.nstage * t->rq.nsegment;
	int64_t *sends = AP_NEW_N(t->f.ctx.arena, int64_t, (size_t)npart * t->g.nnode);
	const struct ap_spot *spot;
	const double *least;
	bool found = false;

	ck_assert_int_eq(ap_stages_make(&t->f.ctx, &t->rq, &spot, NULL), AP_OK);
	check_spots(t, spot);
	least = ap_plan_least_s(&t->f.ctx, &t->g, t->rq.machine, &t->f.step);
	for (ap_id i = 0; i < t->g.nnode; i++)
		part[i] = spot[i].part;
	for (int32_t p = 1; p < npart; p++)
		for (ap_id i = 1; i < t->g.nnode; i++)
			sends[(ap_id)p * t->g.nnode + i] = sends_at(t, i, p);
	for (int halves = 0; halves <= 2; halves++) {
		struct value got = value_of(t, least, sends, halves, part);
		struct value best = best_of_all(t, least, sends, halves, npart, false);

		found |= got.most == best.most && got.sends == best.sends;
	}
	ck_assert(found);
}

START_LOOP_TEST(cuts_are_the_best, AP_COUNT(pipes))
{
	uint32_t made = 0;

	seed = random_seed() + 100 + (uint64_t)_i;
	for (int round = 0; round < 8; round++) {
		struct trial t;

		open_case(&t, FEW, pipes[_i].scheduler, pipes[_i].nstage, pipes[_i].nsegment);
		if (can_run(&t) && t.g.nnode <= MOST_NODES) {
			check_cut(&t);
			made++;
		}
		fixture_close(&t.f);
	}
	ck_assert_uint_gt(made, 0);
}
END_TEST
