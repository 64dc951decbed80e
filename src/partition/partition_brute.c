/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exhaustive search, the oracle for the exact engine: every plan by the checker, without bounds and without
 * what that engine is made of. Layers of a class that lie in one part are alike, so of plans that differ in
 * their order one is tried.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "partition/partition.h"
#include "pipeline/schedule.h"
#include "shard/step.h"

struct brute {
	struct ap_ctx *ctx;
	struct ap_ctx own; /* its arena is emptied after each plan */
	const struct ap_partition *p;
	struct ap_pipe pipe;
	int32_t npart;
	int64_t nfirst, nbody, nlayer;
	uint32_t *cls; /* [nlayer] */
	int64_t *first; /* [npart + 1] */
	uint32_t *degree; /* [nstage] */
	uint32_t *digit; /* [nlayer] steps from the last kind of a list, or a kind */
	int32_t *part; /* [nlayer] */
	uint32_t *kind;
	int64_t *number; /* [nkind] */
	struct ap_partition_choice *out;
	uint64_t most; /* plans */
	ap_partition_visit_fn *visit; /* NULL: the best is kept */
	void *user;
	int64_t shortest; /* bytes that a plan lacks */
};

static bool is_body(const struct brute *b, int64_t i)
{
	return i >= b->nfirst && i < b->nfirst + b->nbody;
}

static uint32_t standard_or(const struct brute *b, int64_t i, uint32_t kind)
{
	int32_t stage, segment;
	const struct ap_partition_row *row;

	ap_schedule_spot(b->p->scheduler, b->p->nstage, b->part[i], &stage, &segment);
	row = &b->p->cls[b->cls[i]].row[b->degree[stage] * b->p->nkind];
	if (!row[kind].absent)
		return kind;
	for (kind = 0; kind + 1 < b->p->nkind && row[kind].absent; kind++)
		;
	return kind;
}

/* Kinds from digits or numbers, by the rule. */
static void say_kinds(const struct brute *b)
{
	int64_t nth = 0;

	for (int64_t i = 0; i < b->nlayer; i++) {
		uint32_t k = b->p->nkind - 1;
		int64_t n;

		nth = i > 0 && b->part[i] == b->part[i - 1] ? nth : 0;
		if (b->p->kinds == AP_KINDS_FREE) {
			b->kind[i] = b->digit[i];
		} else if (!is_body(b, i)) {
			b->kind[i] = standard_or(b, i, 0);
		} else if (b->p->kinds == AP_KINDS_LIST) {
			b->kind[i] = standard_or(b, i, k - b->digit[i]);
		} else {
			for (n = nth; k > 0 && n >= b->number[k]; k--)
				n -= b->number[k];
			b->kind[i] = standard_or(b, i, k);
			nth++;
		}
	}
}

static void keep(struct brute *b, const struct ap_partition_worth *worth, double cost)
{
	struct ap_arena *arena = b->ctx->arena;
	struct ap_partition_plan *plan = AP_NEW(arena, struct ap_partition_plan);
	const struct ap_partition *p = b->p;

	*plan = (struct ap_partition_plan){
		.first = ap_arena_memdup(arena, b->first, (size_t)(b->npart + 1) * sizeof *b->first),
		.degree = ap_arena_memdup(arena, b->degree, (size_t)p->nstage * sizeof *b->degree),
		.kind = ap_arena_memdup(arena, b->kind, (size_t)b->nlayer * sizeof *b->kind),
		.number = p->kinds == AP_KINDS_UNIFORM
				  ? ap_arena_memdup(arena, b->number, p->nkind * sizeof *b->number)
				  : NULL};
	b->out->plan = plan;
	b->out->cost = cost;
	b->out->worth = *worth;
	b->out->worth.stage = ap_arena_memdup(arena, worth->stage, (size_t)p->nstage * sizeof *worth->stage);
}

static void try_one(struct brute *b)
{
	struct ap_mark mark = ap_arena_mark(b->own.arena);
	struct ap_partition_plan plan = {b->first, b->degree, b->kind, b->number};
	struct ap_partition_worth worth;
	double cost;

	say_kinds(b);
	ap_partition_judge_in(&b->own, b->p, &b->pipe, &plan, &worth);
	cost = b->p->objective == AP_OBJECTIVE_STEP ? worth.step_s : worth.largest_s;
	b->out->work++;
	if (!worth.fault && cost < b->out->cost && b->visit)
		b->visit(b->user, &plan, cost);
	else if (!worth.fault && cost < b->out->cost)
		keep(b, &worth, cost);
	if (worth.fault && worth.stage) {
		int64_t lack = 0;

		for (int32_t s = 0; s < b->p->nstage; s++)
			if (worth.stage[s].memory_bytes - b->p->capacity_bytes[s] > lack)
				lack = worth.stage[s].memory_bytes - b->p->capacity_bytes[s];
		b->shortest = lack && (!b->shortest || lack < b->shortest) ? lack : b->shortest;
	}
	ap_arena_release(b->own.arena, mark);
}

/* Digits do not fall within a group: of equal layers, or of a list. */
static bool same_group(const struct brute *b, int64_t i)
{
	if (i == 0 || b->part[i] != b->part[i - 1] || is_body(b, i) != is_body(b, i - 1))
		return false;
	return b->p->kinds == AP_KINDS_LIST || b->cls[i] == b->cls[i - 1];
}

static bool next_digits(struct brute *b)
{
	int64_t i = b->nlayer - 1;

	while (i >= 0 && (b->digit[i] + 1 == b->p->nkind || (b->p->kinds == AP_KINDS_LIST && !is_body(b, i))))
		i--;
	if (i < 0)
		return false;
	b->digit[i]++;
	for (i++; i < b->nlayer; i++)
		b->digit[i] = same_group(b, i) ? b->digit[i - 1] : 0;
	return true;
}

static bool next_numbers(struct brute *b)
{
	int64_t most = 0, sum = 0;
	uint32_t k = 1;

	for (int32_t q = 0; q < b->npart; q++)
		most = b->first[q + 1] - b->first[q] > most ? b->first[q + 1] - b->first[q] : most;
	for (uint32_t i = 1; i < b->p->nkind; i++)
		sum += b->number[i];
	if (sum == most) {
		while (k < b->p->nkind && b->number[k] == 0)
			k++;
		if (k < b->p->nkind)
			b->number[k++] = 0;
	}
	if (k >= b->p->nkind)
		return false;
	b->number[k]++;
	return true;
}

static bool next_kinds(struct brute *b)
{
	return b->p->kinds == AP_KINDS_UNIFORM ? next_numbers(b) : next_digits(b);
}

static bool next_first(struct brute *b)
{
	int32_t q = b->npart - 1;

	while (q > 0 && b->first[q] == b->nbody)
		q--;
	if (q <= 0)
		return false;
	b->first[q]++;
	for (q++; q < b->npart; q++)
		b->first[q] = b->first[q - 1];
	return true;
}

static bool next_degrees(struct brute *b)
{
	int32_t s = b->p->nstage - 1;

	if (!b->p->degree_by_stage) {
		if (b->degree[0] + 1 == b->p->ndegree)
			return false;
		for (s = 0; s < b->p->nstage; s++)
			b->degree[s]++;
		return true;
	}
	for (; s >= 0 && b->degree[s] + 1 == b->p->ndegree; s--)
		b->degree[s] = 0;
	if (s >= 0)
		b->degree[s]++;
	return s >= 0;
}

static bool counts_are_legal(const struct brute *b)
{
	for (int32_t q = 0; q < b->npart; q++) {
		int64_t n = b->first[q + 1] - b->first[q];

		if (n < ap_partition_least(b->p, q) ||
			(b->p->counts == AP_COUNTS_EQUAL && n * b->npart != b->nbody) ||
			(b->p->counts == AP_COUNTS_GIVEN && n != b->p->count[q]))
			return false;
	}
	return true;
}

/* All kinds of one cut. Returns false if there was no end to it. */
static bool try_kinds(struct brute *b)
{
	for (int32_t q = 0; q < b->npart; q++) {
		int64_t from = q == 0 ? 0 : b->nfirst + b->first[q];
		int64_t to = q + 1 == b->npart ? b->nlayer : b->nfirst + b->first[q + 1];

		for (int64_t i = from; i < to; i++)
			b->part[i] = q;
	}
	memset(b->digit, 0, (size_t)b->nlayer * sizeof *b->digit);
	memset(b->number, 0, b->p->nkind * sizeof *b->number);
	do {
		if (b->out->work >= b->most || ap_ctx_stopped(b->ctx))
			return false;
		try_one(b);
	} while (next_kinds(b));
	return true;
}

static bool try_all(struct brute *b)
{
	if (ap_partition_least_before(b->p, b->npart) > b->nbody)
		return true; /* none of very many cuts is legal */
	do {
		memset(b->first, 0, (size_t)b->npart * sizeof *b->first);
		b->first[b->npart] = b->nbody;
		do {
			if (b->out->work >= b->most || ap_ctx_stopped(b->ctx))
				return false;
			if (!counts_are_legal(b))
				b->out->work++; /* it was looked at */
			else if (!try_kinds(b))
				return false;
		} while (next_first(b));
	} while (next_degrees(b));
	return true;
}

static void lay_out(struct brute *b)
{
	struct ap_arena *scratch = b->ctx->scratch;
	int64_t n = ap_partition_layers(b->p);

	b->cls = AP_NEW_N(scratch, uint32_t, n);
	b->digit = AP_NEW_N(scratch, uint32_t, n);
	b->kind = AP_NEW_N(scratch, uint32_t, n);
	b->part = AP_NEW_N(scratch, int32_t, n);
	b->first = AP_NEW_N(scratch, int64_t, b->npart + 1);
	b->degree = AP_NEW_N(scratch, uint32_t, b->p->nstage);
	b->number = AP_NEW_N(scratch, int64_t, b->p->nkind);
	for (uint32_t r = 0; r < b->p->nrun; r++) {
		for (int64_t i = 0; i < b->p->run[r].count; i++)
			b->cls[b->nlayer++] = b->p->run[r].cls;
		b->nfirst += b->p->run[r].at == AP_AT_FIRST ? b->p->run[r].count : 0;
	}
	b->nbody = ap_partition_body(b->p);
}

void ap_partition_brute(struct ap_ctx *ctx, const struct ap_partition *p,
	const struct ap_partition_budget *budget, struct ap_partition_choice *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct brute b = {.ctx = ctx, .own = *ctx, .p = p, .npart = p->nstage * p->nsegment, .out = out,
		.most = budget->work ? budget->work : AP_PARTITION_WORK};
	bool all;

	*out = (struct ap_partition_choice){.outcome = AP_OUT_LIMIT, .engine = "brute_force",
		.cost = INFINITY,
		.lower_bound = ap_partition_bound(ctx, p)};
	lay_out(&b);
	ap_schedule_pipe(ctx, p->scheduler, p->nstage, p->nsegment, p->nmicro, &b.pipe);
	b.own.arena = ap_arena_create_like(ctx->arena);
	all = try_all(&b);
	ap_arena_destroy(b.own.arena);
	ap_arena_release(ctx->scratch, mark);
	if (all)
		out->lower_bound = out->cost;
	if (all && !out->plan)
		out->short_bytes = b.shortest;
	out->outcome =
		out->plan ? all ? AP_OUT_OPTIMAL : AP_OUT_FEASIBLE : all ? AP_OUT_INFEASIBLE : AP_OUT_LIMIT;
	out->ended = all ? AP_ENDED_PROVEN : ap_ctx_stopped(ctx) ? AP_ENDED_STOPPED : AP_ENDED_WORK;
}

/* Ways to share n equal things out to k. */
static double ways(int64_t n, int64_t k)
{
	double sum = 1;

	for (int64_t i = 1; i < k; i++)
		sum *= (double)(n + i) / (double)i;
	return sum;
}

/* Plans that are looked at, about. */
static double about(const struct ap_partition *p)
{
	int64_t parts = (int64_t)p->nstage * p->nsegment, body = ap_partition_body(p);
	int64_t each = p->kinds == AP_KINDS_UNIFORM ? body : body / parts + 1;
	double kinds = p->kinds == AP_KINDS_FREE ? pow((double)p->nkind, (double)body)
		: pow(ways(each, (int64_t)p->nkind), p->kinds == AP_KINDS_LIST ? (double)parts : 1);

	return ways(body, parts) * kinds * pow((double)p->ndegree, p->degree_by_stage ? p->nstage : 1);
}

bool ap_partition_each(struct ap_ctx *ctx, const struct ap_partition *p, double below, uint64_t most,
	ap_partition_visit_fn *visit, void *user)
{
	struct ap_partition_choice choice = {.cost = below};
	struct brute b = {.ctx = ctx, .own = *ctx, .p = p, .npart = p->nstage * p->nsegment, .out = &choice,
		.most = most, .visit = visit, .user = user};
	bool all;

	if (about(p) > (double)most)
		return false;
	lay_out(&b);
	ap_schedule_pipe(ctx, p->scheduler, p->nstage, p->nsegment, p->nmicro, &b.pipe);
	b.own.arena = ap_arena_create_like(ctx->arena);
	all = try_all(&b);
	ap_arena_destroy(b.own.arena);
	return all;
}
