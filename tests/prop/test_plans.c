/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs, from the text of a graph to a verified plan, held against what must be true of them. */
#include <math.h>

#include "base/num.h"
#include "base/vec.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_match.h"
#include "ckpt/ckpt_pb.h"
#include "drive/verify.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "planfile/plan_json.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 14, DEVICES = 16, LIMITS = 3, PLANS = 12, MOST_SLOWER = 6 };

static enum ap_status search(struct trial *t, int64_t capacity, struct ap_plan *out)
{
	return trial_search(t, capacity, "auto", PRUNED | FOLDED, out);
}

/* The optimum without a memory limit. False where operators with one checkpoint key can have no
 * strategy in common; then no random plan may be found either. */
static bool find_best(struct trial *t, struct ap_plan *out)
{
	if (search(t, NO_MEMORY_LIMIT, out) == AP_OK)
		return true;
	REQUIRE(t, !trial_counts(t), "a plan exists");
	return false;
}

static void same_outcome(struct trial *t, int64_t capacity, const char *what, enum ap_status sa,
	const struct ap_plan *a, enum ap_status sb, const struct ap_plan *b)
{
	REQUIRE(t, sa == sb, "%s, %" PRId64 " bytes: %s or %s", what, capacity - t->taken_bytes,
		ap_status_text(sa), ap_status_text(sb));
	if (sa == AP_OK)
		REQUIRE(t, a->search.lower_bound_s == b->search.lower_bound_s,
			"%s, %" PRId64 " bytes: %.17g or %.17g", what, capacity - t->taken_bytes,
			a->search.lower_bound_s, b->search.lower_bound_s);
}

/* A search with all short cuts ended with st and *out. */
static void without_short_cuts(struct trial *t, int64_t capacity, enum ap_status st, const struct ap_plan *out)
{
	static const int other[] = {0, PRUNED, FOLDED};

	for (size_t i = 0; i < AP_COUNT(other); i++) {
		struct ap_plan longer;
		enum ap_status sl = trial_search(t, capacity, "auto", other[i], &longer);

		same_outcome(t, capacity, "with all short cuts and not", st, out, sl, &longer);
		REQUIRE(t, st != AP_OK || longer.search.status == out->search.status, "status");
	}
}

static void short_cuts(struct trial *t)
{
	struct ap_plan p, limited;

	if (!find_best(t, &p))
		return;
	without_short_cuts(t, NO_MEMORY_LIMIT, AP_OK, &p);
	for (int i = 0; i < LIMITS; i++) {
		int64_t capacity = trial_capacity(t, &p);
		enum ap_status st = search(t, capacity, &limited);

		without_short_cuts(t, capacity, st, &limited);
		t->telling |= st == AP_OK && limited.search.lower_bound_s > p.search.lower_bound_s;
	}
}

START_TEST(short_cuts_keep_the_optimum)
{
	trial_each(30, OPERATORS, DEVICES, short_cuts);
}
END_TEST

static void below_bound(struct trial *t)
{
	struct ap_plan best, limited;
	int64_t capacity;
	enum ap_status st;

	if (!find_best(t, &best))
		return;
	capacity = trial_capacity(t, &best);
	st = search(t, capacity, &limited);
	for (int i = 0; i < PLANS; i++) {
		const int32_t *const *counts = trial_counts(t);
		struct ap_plan p;
		double objective;

		if (!counts)
			continue;
		trial_plan(t, counts, &p);
		objective = ap_plan_objective_s(&p);
		REQUIRE(t, objective >= best.search.lower_bound_s, "%.17g is below %.17g", objective,
			best.search.lower_bound_s);
		if (p.prediction.memory.total > capacity)
			continue;
		t->telling = true;
		REQUIRE(t, st == AP_OK, "a plan of %" PRId64 " bytes fits",
			p.prediction.memory.total - t->taken_bytes);
		REQUIRE(t, objective >= limited.search.lower_bound_s, "%.17g is below %.17g",
			objective, limited.search.lower_bound_s);
	}
}

START_TEST(no_plan_is_below_the_bound)
{
	trial_each(100, OPERATORS, DEVICES, below_bound);
}
END_TEST

static bool is_small(const struct trial *t)
{
	double picks = 1;

	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		picks *= t->space[i].n;
	return picks <= 20000;
}

static void brute_force(struct trial *t)
{
	int64_t capacity = NO_MEMORY_LIMIT;
	struct ap_plan a, b, best;
	enum ap_status sa, sb;

	if (!is_small(t) || !find_best(t, &best))
		return;
	t->telling = true;
	for (int i = 0; i < LIMITS; i++) {
		sa = trial_search(t, capacity, "dynamic_programming", PRUNED | FOLDED, &a);
		sb = trial_search(t, capacity, "brute_force", 0, &b);
		same_outcome(t, capacity, "two engines", sa, &a, sb, &b);
		capacity = trial_capacity(t, &best);
	}
}

START_TEST(engines_agree)
{
	trial_each(100, 6, 8, brute_force);
}
END_TEST

static const int32_t *const *through_checkpoint(struct trial *t, const struct ap_plan *p, bool json)
{
	struct ap_ckpt written, read;
	const int32_t *const *counts;
	struct ap_str s;

	ap_ckpt_of_plan(&t->f.ctx, p, false, &written);
	if (written.nitem == 0)
		return NULL;
	ap_str_init(&s, t->f.ctx.arena);
	if (json)
		ap_ckpt_write_json(&written, ap_str_take, &s);
	else
		ap_ckpt_write_pb(&t->f.ctx, &written, ap_str_take, &s);
	REQUIRE(t, ap_ckpt_read(&t->f.ctx, "s.ckpt", s.s, s.len, json, &read) == AP_OK, "reading");
	REQUIRE(t, ap_ckpt_counts(&t->f.ctx, &read, t->f.graph, t->f.machine->ndev, &t->f.step,
			   &counts) == AP_OK, "matching");
	return counts;
}

static void evaluate(struct trial *t, const int32_t *const *fixed, struct ap_plan *out)
{
	struct ap_request rq = {.graph = t->f.graph, .machine = t->f.machine, .step = &t->f.step,
		.capacity_bytes = NO_MEMORY_LIMIT, .search_mode = "auto", .prune = true};

	REQUIRE(t, ap_drive_evaluate(&t->f.ctx, &rq, fixed, out) == AP_OK, "evaluating");
}

static int slower; /* plans that their checkpoint does not tell */

/* Does it ask for dealt sums, which no checkpoint holds? */
static bool asks(struct trial *t, const struct ap_plan *p)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (ap_placement_counts(t->f.ctx.arena, &p->op[i].place) != p->op[i].place.count)
			return true;
	return false;
}

static void round_trip(struct trial *t, const struct ap_plan *p, bool json)
{
	const int32_t *const *counts = through_checkpoint(t, p, json);
	const int32_t **all = AP_NEW_N(t->f.ctx.arena, const int32_t *, p->graph->nnode);
	struct ap_plan again, completed;

	if (!counts || asks(t, p))
		return;
	t->telling = true;
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_placement *place = &p->op[i].place;

		all[i] = counts[i] ? counts[i] : place->count;
		for (int f = 0; f < place->bound->nfactor; f++)
			REQUIRE(t, all[i][f] == place->count[f], "%s, factor %c: %d or %d",
				p->graph->node[i].name, place->bound->factor[f].letter, all[i][f],
				place->count[f]);
	}
	evaluate(t, all, &again);
	REQUIRE(t, again.search.objective_s == p->search.objective_s, "%.17g or %.17g",
		again.search.objective_s, p->search.objective_s);
	REQUIRE(t, memcmp(&again.prediction.memory, &p->prediction.memory,
			   sizeof(struct ap_memory)) == 0, "memory");
	evaluate(t, counts, &completed);
	/* What convention has is taken for its simulated time, whatever its objective: where the host is waited
	 * for, both may take equally long. Of a plan that is faster than what its checkpoint is completed to
	 * there are few. */
	slower += completed.search.objective_s > p->search.objective_s &&
		completed.prediction.step_time_s > p->prediction.step_time_s;
	REQUIRE(t, slower <= MOST_SLOWER, "%.17g is worse than %.17g",
		completed.search.objective_s, p->search.objective_s);
}

static void checkpoint(struct trial *t)
{
	const int32_t *const *counts = trial_counts(t);
	struct ap_plan p;

	if (!find_best(t, &p) || ap_ckpt_check_names(&t->f.ctx, t->f.graph, false) != AP_OK)
		return;
	round_trip(t, &p, false);
	if (counts) {
		trial_plan(t, counts, &p);
		round_trip(t, &p, true);
	}
}

START_TEST(checkpoint_comes_back)
{
	trial_each(150, OPERATORS, DEVICES, checkpoint);
}
END_TEST

/* What is planned of one text of a graph. */
struct planned {
	struct ap_plan best, limited;
	enum ap_status st, limited_st;
	uint32_t nnode;
	const struct ap_plan_op *op; /* [nnode] of one choice of counts */
	struct ap_prediction prediction; /* of it, simulated */
	double objective_s;
};

/* Plans the graph of the text, with this capacity and the counts of operators in the graph's order. */
static void plan_of(struct trial *t, const char *text, int64_t capacity, const int32_t *const *counts,
	struct planned *out)
{
	struct ap_plan sketch, p;

	fixture_graph(&t->f, text);
	trial_impose(t);
	out->nnode = t->f.graph->nnode;
	out->st = search(t, NO_MEMORY_LIMIT, &out->best);
	out->limited_st = search(t, capacity, &out->limited);
	trial_plan(t, counts, &sketch);
	ap_plan_complete(&t->f.ctx, &sketch, &p);
	out->op = p.op;
	out->prediction = p.prediction;
	out->objective_s = ap_plan_objective_s(&p);
}

static bool same_prediction(const struct ap_prediction *a, const struct ap_prediction *b)
{
	return a->step_time_s == b->step_time_s && a->compute_s == b->compute_s &&
		a->communication_s == b->communication_s &&
		a->exposed_communication_s == b->exposed_communication_s && a->bubble_s == b->bubble_s &&
		a->optimizer_s == b->optimizer_s && a->memory.total == b->memory.total;
}

static void same_planned(struct trial *t, const char *text, const char *other)
{
	struct planned a, b;
	struct ap_plan p;
	int64_t capacity;

	fixture_graph(&t->f, text);
	trial_impose(t);
	if (!find_best(t, &p))
		return;
	t->telling = p.nmove > 0;
	capacity = trial_capacity(t, &p);
	plan_of(t, text, capacity, ap_plan_counts(&t->f.ctx, &p), &a);
	plan_of(t, other, capacity, ap_plan_counts(&t->f.ctx, &p), &b);
	same_outcome(t, NO_MEMORY_LIMIT, "order", a.st, &a.best, b.st, &b.best);
	same_outcome(t, capacity, "order", a.limited_st, &a.limited, b.limited_st, &b.limited);
	REQUIRE(t, same_prediction(&a.best.prediction, &b.best.prediction), "%.17g or %.17g\n%s",
		a.best.prediction.step_time_s, b.best.prediction.step_time_s, other);
	REQUIRE(t, a.objective_s == b.objective_s, "%.17g or %.17g\n%s", a.objective_s, b.objective_s, other);
	REQUIRE(t, same_prediction(&a.prediction, &b.prediction), "%.17g or %.17g\n%s",
		a.prediction.step_time_s, b.prediction.step_time_s, other);
	for (ap_id i = 0; i < a.nnode; i++)
		REQUIRE(t, memcmp(&a.op[i].cost, &b.op[i].cost, sizeof a.op[i].cost) == 0,
			"costs of operator %u\n%s", i, other);
}

static void reordered(struct trial *t)
{
	same_planned(t, t->text.text, t->text.reordered);
}

START_TEST(neither_order_nor_names_matter)
{
	trial_each(100, OPERATORS, DEVICES, reordered);
}
END_TEST

static void part_reordered(struct trial *t)
{
	same_planned(t, t->text.part, t->text.part_reordered);
}

START_TEST(order_of_operators_that_no_output_reaches_does_not_matter)
{
	trial_each(100, OPERATORS, DEVICES, part_reordered);
}
END_TEST

static const char *plan_text(struct trial *t, const struct ap_plan *p)
{
	struct ap_str s;

	ap_str_init(&s, t->f.ctx.arena);
	ap_emit_plan_json(&t->f.ctx, p, ap_str_take, &s);
	return s.s;
}

static void threads(struct trial *t)
{
	struct ap_plan one, three;

	if (!find_best(t, &one))
		return;
	t->f.ctx.jobs = 3;
	t->telling = one.nmove > 0;
	REQUIRE(t, search(t, NO_MEMORY_LIMIT, &three) == AP_OK, "three threads");
	REQUIRE(t, strcmp(plan_text(t, &one), plan_text(t, &three)) == 0, "plans differ");
}

START_TEST(threads_change_nothing)
{
	trial_each(100, OPERATORS, DEVICES, threads);
}
END_TEST

/* From the largest limit down: bounds rise, and what is infeasible stays so. */
static void monotone(struct trial *t)
{
	struct ap_plan p;
	int64_t most;
	double bound;
	bool feasible = true;

	if (!find_best(t, &p))
		return;
	most = p.prediction.memory.total - t->taken_bytes;
	bound = p.search.lower_bound_s;
	for (int i = 8; i >= 0; i--) {
		int64_t limit = most * i / 8;

		if (search(t, t->taken_bytes + limit, &p) == AP_INFEASIBLE) {
			feasible = false;
			continue;
		}
		REQUIRE(t, feasible, "%" PRId64 " bytes suffice, more do not", limit);
		REQUIRE(t, p.search.lower_bound_s >= bound, "%" PRId64 " bytes: %.17g, with more %.17g",
			limit, p.search.lower_bound_s, bound);
		REQUIRE(t, p.prediction.memory.total <= t->taken_bytes + limit, "does not fit");
		t->telling |= p.search.lower_bound_s > bound;
		bound = p.search.lower_bound_s;
	}
}

START_TEST(more_memory_is_never_worse)
{
	trial_each(40, OPERATORS, DEVICES, monotone);
}
END_TEST

static void refuses(struct trial *t, const struct ap_plan *p, const char *what)
{
	REQUIRE(t, ap_verify(&t->f.ctx, p) == AP_INTERNAL, "%s", what);
}

static void falsify_operator(struct trial *t, const struct ap_plan *p)
{
	ap_id i = (ap_id)random_below(&t->random, p->graph->nnode);
	struct ap_plan_op *op = ap_arena_memdup(t->f.ctx.arena, p->op, p->graph->nnode * sizeof *op);
	const struct ap_space *s = &t->space[i];
	const int32_t *other = s->count + random_below(&t->random, s->n) * s->nfactor;
	struct ap_plan false_plan = *p;

	false_plan.op = op;
	if (memcmp(other, op[i].place.count, s->nfactor * sizeof *other) != 0) {
		memcpy(op[i].place.count, other, s->nfactor * sizeof *other);
		refuses(t, &false_plan, p->graph->node[i].name);
		op[i] = p->op[i];
	}
	if (s->nfactor > 0) {
		op[i].place.count[0] = 7;
		refuses(t, &false_plan, "a count that does not divide");
	}
}

static void falsify_layout(struct trial *t, const struct ap_plan *p)
{
	ap_id i = (ap_id)random_below(&t->random, p->graph->nnode);
	struct ap_plan_op *op = ap_arena_memdup(t->f.ctx.arena, p->op, p->graph->nnode * sizeof *op);
	struct ap_layout *out = ap_arena_memdup(t->f.ctx.arena, op[i].out, sizeof *out);
	struct ap_plan false_plan = *p;

	if (out->rank == 0)
		return;
	out->dim[0] = out->dim[0].cut > 1 ? (struct ap_cut_dim){1, 0} : (struct ap_cut_dim){2, 1};
	op[i].out = out;
	false_plan.op = op;
	refuses(t, &false_plan, "another layout");
}

static void falsify_sums(struct trial *t, const struct ap_plan *p)
{
	struct ap_plan objective = *p, memory = *p, capacity = *p, bound = *p;

	objective.search.objective_s += AP_QUANTUM_S;
	refuses(t, &objective, "another objective");
	memory.prediction.memory.activations += 1;
	refuses(t, &memory, "another memory");
	capacity.capacity_bytes = p->prediction.memory.total - 1;
	refuses(t, &capacity, "too little memory");
	bound.search.lower_bound_s = p->search.objective_s + AP_QUANTUM_S;
	refuses(t, &bound, "a bound above the objective");
}

/* Ranks moved: a group of the same size, or of another one. */
static void falsify_gradient(struct trial *t, const struct ap_plan *p)
{
	struct ap_plan_param *param =
		ap_arena_memdup(t->f.ctx.arena, p->param, p->nparam * sizeof *param);
	struct ap_plan false_plan = *p;

	false_plan.param = param;
	for (uint32_t i = 0; i < p->nparam; i++) {
		if (param[i].gradient.n == 0)
			continue;
		t->telling = true;
		param[i].gradient.axis[0].stride *= 2;
		refuses(t, &false_plan, "gradients exchanged with others");
		param[i].gradient = (struct ap_axes){0};
		refuses(t, &false_plan, "gradients exchanged with nobody");
		param[i].gradient = p->param[i].gradient;
	}
}

static void verified(struct trial *t)
{
	struct ap_plan p;

	if (!find_best(t, &p))
		return;
	REQUIRE(t, ap_verify(&t->f.ctx, &p) == AP_OK, "again");
	if (t->f.machine->ndev == 1)
		return;
	falsify_operator(t, &p);
	falsify_layout(t, &p);
	falsify_sums(t, &p);
	falsify_gradient(t, &p);
}

START_TEST(verifier_sees_what_is_false)
{
	trial_each(100, OPERATORS, DEVICES, verified);
}
END_TEST

static void micro_batches(struct trial *t)
{
	const int32_t *const *counts = trial_counts(t);
	struct ap_memory one, two;
	struct ap_plan p;

	if (!counts || t->f.step.micro_batches == 1)
		return;
	t->telling = true;
	trial_plan(t, counts, &p);
	two = p.prediction.memory;
	t->f.step.micro_batches = 1;
	fixture_in_flight(&t->f, 1);
	trial_plan(t, counts, &p);
	one = p.prediction.memory;
	REQUIRE(t, one.weights == two.weights, "%" PRId64 " or %" PRId64, one.weights, two.weights);
	REQUIRE(t, one.optimizer == two.optimizer && one.gradients <= two.gradients, "states");
	/* MindSpore deals gradients where they arise if no micro-batch adds to them */
	REQUIRE(t, one.gradients == two.gradients || (t->f.step.executor == AP_EXECUTOR_MINDSPORE &&
		t->f.step.optimizer_sharding), "gradients");
}

START_TEST(weights_do_not_depend_on_micro_batches)
{
	trial_each(500, OPERATORS, DEVICES, micro_batches);
}
END_TEST

static void alone(struct trial *t)
{
	struct ap_plan p;

	if (!find_best(t, &p))
		return;
	t->telling = true;
	REQUIRE(t, p.nmove == 0 && p.prediction.communication_s == 0 &&
		p.prediction.memory.buffers == 0, "communication");
	for (ap_id i = 0; i < p.graph->nnode; i++) {
		REQUIRE(t, p.op[i].ncomm == 0 && p.op[i].cost.input_s == 0, "%s",
			p.graph->node[i].name);
		for (int f = 0; f < p.op[i].place.bound->nfactor; f++)
			REQUIRE(t, p.op[i].place.count[f] == 1, "%s", p.graph->node[i].name);
	}
}

START_TEST(one_device_is_silent)
{
	trial_each(200, OPERATORS, 1, alone);
}
END_TEST
