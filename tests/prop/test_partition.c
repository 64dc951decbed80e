/* SPDX-License-Identifier: Apache-2.0 */
/* Random pipeline problems: the exact engine against every plan there is. */
#include <math.h>

#include "partition/even.h"
#include "partition/partition.h"
#include "pipeline/schedule.h"
#include "unit.h"

enum { MOST_STAGES = 4, MOST_PARTS = 8, MOST_CLASSES = 3, MOST_KINDS = 3, MOST_DEGREES = 3, MOST_RUNS = 5 };
enum { MOST_PLANS = 20000, MOST_BODY = 15 };

static uint64_t case_count(void)
{
	const char *text = getenv("AP_CASES");
	return text ? strtoull(text, NULL, 0) : 300;
}

struct pipeline {
	struct ap_partition p;
	struct ap_partition_row row[MOST_CLASSES][MOST_DEGREES * MOST_KINDS];
	struct ap_partition_class cls[MOST_CLASSES];
	struct ap_partition_run run[MOST_RUNS];
	struct ap_partition_degree degree[MOST_DEGREES];
	const char *kind[MOST_KINDS];
	int64_t capacity[MOST_STAGES], fixed[MOST_STAGES], count[MOST_PARTS];
	struct ap_partition_border border[MOST_BODY + 1];
	bool round; /* all times are multiples of a power of two */
};

/* Often equal, often nothing. */
static double some_seconds(const struct pipeline *x, uint64_t *seed)
{
	if (!x->round)
		return (double)(random_next(seed) >> 11) / 0x1p53;
	return (double)random_below(seed, random_below(seed, 2) ? 4 : 12) / 4;
}

static void pick_row(struct pipeline *x, struct ap_partition_row *r, uint64_t *seed)
{
	bool splits = x->p.scheduler->splits;

	*r = (struct ap_partition_row){.absent = random_below(seed, 12) == 0,
		.forward_s = some_seconds(x, seed), .backward_s = some_seconds(x, seed) * 2,
		.weight_s = splits ? some_seconds(x, seed) : 0,
		.update_s = random_below(seed, 3) ? 0 : some_seconds(x, seed),
		.kept_bytes = (int64_t)random_below(seed, 12), .weights_bytes = (int64_t)random_below(seed,
			4),
		.late_bytes = splits ? (int64_t)random_below(seed, 6) : 0,
		.temporary_bytes = (int64_t)random_below(seed, 5)};
}

/* More memory for less time, as kinds are in earnest: only backward passes and what is kept differ. */
static void pick_kinds(struct pipeline *x, struct ap_partition_row *row, uint64_t *seed)
{
	bool alike = random_below(seed, 3) > 0;

	for (uint32_t k = 0; k < x->p.nkind; k++) {
		pick_row(x, &row[k], seed);
		if (k == 0 || !alike)
			continue;
		row[k].forward_s = row[0].forward_s;
		row[k].backward_s = row[k - 1].backward_s + some_seconds(x, seed) / 4;
		row[k].weight_s = row[0].weight_s;
		row[k].update_s = row[0].update_s;
		row[k].kept_bytes = row[k - 1].kept_bytes / 2;
		row[k].late_bytes = row[0].late_bytes;
		row[k].weights_bytes = row[0].weights_bytes;
	}
	row[random_below(seed, x->p.nkind)].absent = false;
}

static void pick_layers(struct pipeline *x, uint64_t *seed)
{
	struct ap_partition *p = &x->p;
	uint32_t body = 1 + (uint32_t)random_below(seed, 3);

	for (uint32_t c = 0; c < p->nclass; c++) {
		x->cls[c] = (struct ap_partition_class){"class", x->row[c]};
		for (uint32_t d = 0; d < p->ndegree; d++)
			pick_kinds(x, &x->row[c][d * p->nkind], seed);
	}
	p->nrun = 0;
	if (random_below(seed, 2))
		x->run[p->nrun++] = (struct ap_partition_run){0, 1, AP_AT_FIRST};
	for (uint32_t r = 0; r < body; r++)
		x->run[p->nrun++] = (struct ap_partition_run){(uint32_t)random_below(seed, p->nclass),
			1 + (int64_t)random_below(seed, body == 1 ? 10 : 5), AP_AT_BODY};
	if (random_below(seed, 2))
		x->run[p->nrun++] = (struct ap_partition_run){p->nclass - 1, 1, AP_AT_LAST};
}

static void pick_rules(struct pipeline *x, uint64_t *seed)
{
	struct ap_partition *p = &x->p;
	int32_t parts = p->nstage * p->nsegment;
	int64_t left = ap_partition_body(p);

	p->least_layers = random_below(seed, 4) ? 1 : (int64_t)random_below(seed, 3);
	p->least_at_ends = random_below(seed, 2) ? p->least_layers : (int64_t)random_below(seed, 3);
	p->kinds = (enum ap_partition_kinds)(random_below(seed, 2) ? 0 : random_below(seed, 3));
	p->degree_by_stage = random_below(seed, 2);
	p->objective = random_below(seed, 4) ? AP_OBJECTIVE_STEP : AP_OBJECTIVE_STAGE;
	p->counts = (enum ap_partition_counts)(random_below(seed, 6) ? 0 : random_below(seed, 3));
	if (p->counts == AP_COUNTS_GIVEN)
		p->least_layers = p->least_at_ends = 0;
	for (int32_t q = 0; q < parts; q++) {
		x->count[q] = q + 1 == parts ? left : (int64_t)random_below(seed, (uint64_t)left + 1);
		left -= x->count[q];
	}
}

/* shares: of several degrees, among which stages may choose. */
static void pick(struct pipeline *x, bool shares, uint64_t *seed)
{
	static const char *const names[] = {"a", "b", "c"};
	struct ap_partition *p = &x->p;
	const struct ap_scheduler *s;

	memset(x, 0, sizeof *x);
	*p = (struct ap_partition){.degree = x->degree, .kind = x->kind, .cls = x->cls, .run = x->run,
		.capacity_bytes = x->capacity, .fixed_bytes = x->fixed, .count = x->count};
	s = p->scheduler = ap_scheduler_at(random_below(seed, 4));
	ck_assert_ptr_null(ap_scheduler_at(4));
	x->round = random_below(seed, 3) > 0;
	p->nsegment = s->least_segments + (s->most_segments ? 0 : (int32_t)random_below(seed, 3));
	do
		p->nstage = 1 + (int32_t)random_below(seed, MOST_STAGES);
	while (p->nstage * p->nsegment > MOST_PARTS);
	do
		p->nmicro = 1 + (int64_t)random_below(seed, 9);
	while (s->refuses(p->nstage, p->nsegment, p->nmicro));
	p->ndegree = shares ? 2 + (uint32_t)random_below(seed, 2) : 1 + (random_below(seed, 4) == 0);
	p->nkind = 1 + (uint32_t)random_below(seed, MOST_KINDS);
	p->nclass = 1 + (uint32_t)random_below(seed, MOST_CLASSES);
	for (uint32_t d = 0; d < p->ndegree; d++) {
		bool sends = random_below(seed, 2);

		x->degree[d] = (struct ap_partition_degree){names[d], sends ? some_seconds(x, seed) / 4 : 0,
			sends ? some_seconds(x, seed) / 4 : 0};
	}
	for (uint32_t k = 0; k < p->nkind; k++)
		x->kind[k] = names[k];
	pick_layers(x, seed);
	pick_rules(x, seed);
	for (int32_t i = 0; i < p->nstage; i++) {
		x->fixed[i] = (int64_t)random_below(seed, 4);
		x->capacity[i] = AP_NO_LIMIT;
	}
}

/* Memory that binds: a little below what some plan without limits needs, and sometimes far below. */
static void tighten(struct pipeline *x, struct ap_ctx *ctx, uint64_t *seed)
{
	struct ap_partition_budget budget = {.work = MOST_PLANS};
	struct ap_partition_choice free;
	bool even = random_below(seed, 2);
	int64_t most = 0;

	ap_partition_brute(ctx, &x->p, &budget, &free);
	if (!free.plan)
		return;
	for (int32_t s = 0; s < x->p.nstage; s++)
		most = free.worth.stage[s].memory_bytes > most ? free.worth.stage[s].memory_bytes : most;
	for (int32_t s = 0; s < x->p.nstage; s++) {
		int64_t own = even ? most : free.worth.stage[s].memory_bytes;

		x->capacity[s] = own * (int64_t)(13 + random_below(seed, 8)) / 20;
	}
}

/* What borders send, by where they are; by a state of its own. */
static void pick_borders(struct pipeline *x, uint64_t own)
{
	uint64_t seed = own * UINT64_C(0x9E3779B97F4A7C15) | 1;

	ck_assert_int_le(ap_partition_body(&x->p), MOST_BODY);
	if (random_below(&seed, 2))
		return;
	for (int64_t i = 0; i <= ap_partition_body(&x->p); i++)
		x->border[i] = (struct ap_partition_border){
			random_below(&seed, 4) ? some_seconds(x, &seed) / 2 : 0,
			random_below(&seed, 4) ? some_seconds(x, &seed) / 2 : 0};
	x->p.border = x->border;
}

/* What runs beside passes, and what the first and the last part share; by a state of its own, so that problems without them stay as they are. Some classes
 * have none, and kinds of a class mostly the same. */
static void pick_streams(struct pipeline *x, uint64_t own)
{
	uint64_t seed = own * UINT64_C(0xD1B54A32D192ED03) | 1;

	if (random_below(&seed, 3) == 0)
		return;
	for (uint32_t c = 0; c < x->p.nclass; c++)
		for (uint32_t d = 0; d < x->p.ndegree; d++) {
			double one_s = random_below(&seed, 4) ? some_seconds(x, &seed) * 2 : 0;
			bool alike = random_below(&seed, 4) > 0;

			for (uint32_t k = 0; k < x->p.nkind; k++)
				x->row[c][d * x->p.nkind + k].exchange_s = alike ? one_s
					: some_seconds(x, &seed);
		}
	for (uint32_t c = 0; c < x->p.nclass && random_below(&seed, 2); c++)
		for (uint32_t i = 0; i < x->p.ndegree * x->p.nkind; i++)
			x->row[c][i].beside_s = some_seconds(x, &seed) * 3;
	for (uint32_t c = 0; c < x->p.nclass && random_below(&seed, 2); c++)
		for (uint32_t i = 0; i < x->p.ndegree * x->p.nkind; i++)
			x->row[c][i].slowed_s = some_seconds(x, &seed);
	for (uint32_t d = 0; d < x->p.ndegree && own % 3 == 0; d++)
		x->degree[d].left_s = (double)(own % 5) * some_seconds(x, &seed);
	if (random_below(&seed, 2))
		x->p.shared = (struct ap_partition_shared){some_seconds(x, &seed) * 3,
			random_below(&seed, 3) ? some_seconds(x, &seed) * 3 : 0};
}

/* Degrees of some devices, of which there are too few for some plans, and often passes that are the quicker the
 * more there are. */
static void pick_devices(struct pipeline *x, uint64_t *seed)
{
	struct ap_partition *p = &x->p;
	int64_t least = INT64_MAX, most = 1, unit = random_below(seed, 4) ? 1 : 60000; /* of them */
	bool quicker = random_below(seed, 3) > 0;

	for (uint32_t d = 0; d < p->ndegree; d++) {
		struct ap_partition_degree *own = &x->degree[d];

		own->devices = (1 + (int64_t)random_below(seed, 4)) * unit;
		least = own->devices < least ? own->devices : least;
		most = own->devices > most ? own->devices : most;
		if (random_below(seed, 2) == 0)
			continue;
		own->receive_s = some_seconds(x, seed) / 4;
		own->receive_back_s = some_seconds(x, seed) / 4;
	}
	p->devices = p->nstage * least + (int64_t)random_below(seed, (uint64_t)(p->nstage * (most - least) + 1));
	p->devices = p->devices < most ? most : p->devices;
	p->degree_by_stage = random_below(seed, 8) > 0;
	for (uint32_t c = 0; quicker && c < p->nclass; c++)
		for (uint32_t i = 0; i < p->ndegree * p->nkind; i++) {
			struct ap_partition_row *r = &x->row[c][i];
			double times = (double)(6 - x->degree[i / p->nkind].devices / unit);

			r->forward_s *= times;
			r->backward_s *= times;
			r->weight_s *= times;
		}
}

static void show(void *user, const char *bytes, size_t len)
{
	(void)user;
	printf("%.*s", (int)len, bytes);
}

static bool near(double a, double b)
{
	return a == b || fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void check_against(const struct pipeline *x, struct ap_ctx *ctx, const struct ap_partition_choice *all)
{
	static const uint64_t works[] = {0, 30000, 1};
	static const double shares[] = {0.5, 0.9, 1, 1.1};
	double cheap = ap_partition_bound(ctx, &x->p);
	uint64_t work = 0;

	ck_assert_msg(cheap <= all->cost * (1 + 1e-12), "bound %.17g of %.17g", cheap, all->cost);
	for (size_t i = 0; i < AP_COUNT(shares); i++) {
		double enough = fmin(cheap, all->cost) * shares[i];
		double bound = ap_partition_bound_to(ctx, &x->p, enough, i % 2 ? 8 : 1, &work);

		ck_assert_msg(bound <= all->cost * (1 + 1e-12), "bound %.17g of %.17g", bound, all->cost);
		ck_assert_msg(bound >= fmin(enough, cheap) * 0.99, "%.17g for %.17g, of %.17g", bound, enough,
			cheap);
	}
	for (size_t i = 0; i < AP_COUNT(works); i++) {
		struct ap_partition_budget budget = {.work = works[i]};
		struct ap_partition_worth worth;
		struct ap_partition_choice c;

		ap_partition_solve(ctx, &x->p, &budget, &c);
		ck_assert_msg(c.lower_bound <= all->cost * (1 + 1e-12),
			"work %" PRIu64 ": bound %.17g of %.17g",
			works[i], c.lower_bound, all->cost);
		ck_assert(!c.plan || c.cost >= all->cost * (1 - 1e-12));
		if (works[i] == 0)
			ck_assert_int_eq(c.outcome, all->outcome);
		if (c.outcome == AP_OUT_OPTIMAL)
			ck_assert_msg(near(c.cost, all->cost), "%.17g, best %.17g", c.cost, all->cost);
		if (c.outcome == AP_OUT_INFEASIBLE)
			ck_assert_int_eq(all->outcome, AP_OUT_INFEASIBLE);
		if (!c.plan)
			continue;
		ap_partition_judge(ctx, &x->p, c.plan, &worth);
		ck_assert_ptr_null(worth.fault);
		ck_assert_double_eq(x->p.objective == AP_OBJECTIVE_STEP ? worth.step_s : worth.largest_s,
			c.cost);
	}
}

/* A bound that is made in a hurry says enough, and no more than can be said. */
static void check_hurried(const struct pipeline *x, struct ap_ctx *ctx, const struct ap_partition_choice *all)
{
	double enough = all->cost * 0.7, plenty = all->cost * 0.8, soon, said;
	uint64_t work = 0;
	bool hurried;

	soon = ap_partition_bound_soon(ctx, &x->p, enough, plenty, &hurried);
	said = ap_partition_bound_to(ctx, &x->p, enough, 1, &work);
	if (hurried && soon > plenty)
		ck_assert_msg(soon <= all->cost * (1 + 1e-9), "%.17g is said, %.17g it takes", soon, all->cost);
	else /* of several degrees or numbers of layers the least was not hurried */
		ck_assert_msg(!(fabs(soon - said) > 0), "%.17g is said in a hurry, else %.17g", soon, said);
}

/* A limit from above: a plan below it is found, or there is none. */
static void check_below(const struct pipeline *x, struct ap_ctx *ctx, const struct ap_partition_choice *all)
{
	struct ap_partition_budget budget = {.below = all->cost * 1.01 + 1e-6};
	struct ap_partition_choice c;

	ap_partition_solve(ctx, &x->p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert(near(c.cost, all->cost));
	budget.below = all->cost * 0.99;
	ap_partition_solve(ctx, &x->p, &budget, &c);
	if (budget.below > 0) {
		ck_assert_int_eq(c.ended, AP_ENDED_PROVEN);
		ck_assert(c.lower_bound >= budget.below * (1 - 1e-9));
	}
	check_hurried(x, ctx, all);
}

/* What comes to mind is a plan that keeps all rules, and takes what the simulator says. Returns if there is one. */
static bool check_even(const struct pipeline *x, struct ap_ctx *ctx, const struct ap_partition_choice *all)
{
	struct ap_partition_plan plan;
	struct ap_partition_worth worth;
	double step_s, truth;

	if (x->p.ndegree > 1 || !ap_partition_even(ctx, &x->p, INFINITY, &plan, &step_s))
		return false;
	ap_partition_judge(ctx, &x->p, &plan, &worth);
	ck_assert_msg(!worth.fault, "%s", worth.fault);
	truth = x->p.objective == AP_OBJECTIVE_STEP ? worth.step_s : worth.largest_s;
	ck_assert_msg(fabs(truth - step_s) <= 1e-6 * fmax(1, truth), "%.17g is said, %.17g it takes", step_s,
		truth);
	ck_assert(truth >= all->cost * (1 - 1e-12));
	return true;
}

struct visits {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	double below, least;
	uint64_t n;
};

static void visit(void *user, const struct ap_partition_plan *plan, double cost)
{
	struct visits *v = user;
	struct ap_partition_worth worth;

	ap_partition_judge(v->ctx, v->p, plan, &worth);
	ck_assert_ptr_null(worth.fault);
	ck_assert_double_eq(v->p->objective == AP_OBJECTIVE_STEP ? worth.step_s : worth.largest_s, cost);
	ck_assert(cost < v->below);
	v->least = fmin(v->least, cost);
	v->n++;
}

/* Plans below a limit are all visited or, where there may be too many, not said to be. */
static void check_each(const struct pipeline *x, struct ap_ctx *ctx, const struct ap_partition_choice *all)
{
	struct visits v = {ctx, &x->p, nextafter(all->cost, INFINITY), INFINITY, 0};
	bool ended = ap_partition_each(ctx, &x->p, v.below, MOST_PLANS, visit, &v);
	uint64_t best = v.n;

	ck_assert(!ended || (near(v.least, all->cost) && best >= 1));
	v.below = all->cost * 1.1 + 1;
	ck_assert(ap_partition_each(ctx, &x->p, v.below, MOST_PLANS, visit, &v) == ended);
	ck_assert(v.n >= 2 * best && !(v.least < all->cost));
	v.n = 0;
	v.below = all->cost;
	(void)ap_partition_each(ctx, &x->p, v.below, MOST_PLANS, visit, &v);
	ck_assert_uint_eq(v.n, 0);
	ck_assert(!ap_partition_each(ctx, &x->p, INFINITY, 0, visit, &v) && v.n == 0);
}

START_TEST(the_engine_finds_what_all_plans_have)
{
	uint64_t seed = random_seed(), cases = case_count(), tried = 0, limited = 0, none = 0, even = 0;

	for (uint64_t i = 0; i < cases; i++) {
		uint64_t own = seed + i, state = own * UINT64_C(0x9E3779B97F4A7C15) | 1;
		struct ap_partition_budget budget = {.work = MOST_PLANS};
		struct ap_ctx ctx = ctx_create(true);
		struct ap_partition_choice all;
		struct pipeline x;

		pick(&x, false, &state);
		pick_streams(&x, own);
		pick_borders(&x, own);
		ck_assert_ptr_null(ap_partition_fault(&x.p));
		printf("AP_SEED=%" PRIu64 " AP_CASES=1: %s\n", own, x.p.scheduler->name);
		fflush(stdout);
		if (own % 2)
			tighten(&x, &ctx, &state);
		if (cases == 1)
			ap_partition_write_json(&x.p, show, NULL);
		ap_partition_brute(&ctx, &x.p, &budget, &all);
		if (all.ended == AP_ENDED_PROVEN) {
			tried++;
			limited += own % 2;
			none += all.outcome == AP_OUT_INFEASIBLE;
			check_against(&x, &ctx, &all);
			even += check_even(&x, &ctx, &all);
			if (all.plan)
				check_below(&x, &ctx, &all);
			if (all.plan)
				check_each(&x, &ctx, &all);
		}
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " of %" PRIu64 " small enough, %" PRIu64 " with memory that binds, %" PRIu64
		" without a plan, %" PRIu64 " with an even one\n", tried, cases, limited, none, even);
	ck_assert(cases < 100 ||
		(tried > cases / 3 && limited > cases / 8 && none < tried / 2 && even > tried / 8));
}
END_TEST

START_TEST(stages_share_devices_as_all_plans_have_it)
{
	uint64_t seed = random_seed(), cases = case_count(), tried = 0, uneven = 0, none = 0;

	for (uint64_t i = 0; i < cases; i++) {
		uint64_t own = seed + i, state = own * UINT64_C(0xDA942042E4DD58B5) | 1;
		struct ap_partition_budget budget = {.work = MOST_PLANS};
		struct ap_ctx ctx = ctx_create(true);
		struct ap_partition_choice all;
		struct pipeline x;

		pick(&x, true, &state);
		pick_streams(&x, own);
		pick_borders(&x, own);
		pick_devices(&x, &state);
		ck_assert_ptr_null(ap_partition_fault(&x.p));
		printf("AP_SEED=%" PRIu64 " AP_CASES=1: %s\n", own, x.p.scheduler->name);
		fflush(stdout);
		if (own % 2)
			tighten(&x, &ctx, &state);
		if (cases == 1)
			ap_partition_write_json(&x.p, show, NULL);
		ap_partition_brute(&ctx, &x.p, &budget, &all);
		if (all.ended == AP_ENDED_PROVEN) {
			bool differs = false;

			tried++;
			none += all.outcome == AP_OUT_INFEASIBLE;
			check_against(&x, &ctx, &all);
			if (all.plan)
				check_below(&x, &ctx, &all);
			for (int32_t s = 0; all.plan && s < x.p.nstage; s++)
				differs = differs || x.degree[all.plan->degree[s]].devices !=
					x.degree[all.plan->degree[0]].devices;
			uneven += differs;
		}
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " of %" PRIu64 " small enough, %" PRIu64 " best on unequal stages, %" PRIu64
		" without a plan\n", tried, cases, uneven, none);
	ck_assert(cases < 100 || (tried > cases / 4 && uneven > tried / 20 && none < tried / 2));
}
END_TEST

/* Of memory that two segments share, of ends in several degrees, of uniform kinds that a class lacks, and of
 * those of which the last one is the quickest. */
START_TEST(bounds_that_were_too_much)
{
	static const uint64_t seeds[] = {12000705, 5000480, 3000439, 2039};

	for (size_t i = 0; i < AP_COUNT(seeds); i++) {
		uint64_t state = seeds[i] * UINT64_C(0x9E3779B97F4A7C15) | 1;
		struct ap_partition_budget budget = {.work = MOST_PLANS};
		struct ap_ctx ctx = ctx_create(true);
		struct ap_partition_choice all;
		struct pipeline x;

		pick(&x, false, &state);
		if (seeds[i] % 2)
			tighten(&x, &ctx, &state);
		ap_partition_brute(&ctx, &x.p, &budget, &all);
		ck_assert_int_eq(all.ended, AP_ENDED_PROVEN);
		check_against(&x, &ctx, &all);
		ctx_destroy(&ctx);
	}
}
END_TEST
