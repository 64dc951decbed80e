/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/anneal.h"

#include <string.h>

#include "base/arena.h"
#include "pipeline/schedule.h"

#define MISFIT (INT64_C(1) << 60) /* plans that do not fit are worse than any that do, by bytes */
#define LEAST_TRIES 200 /* whatever the work */

struct annealing {
	const struct ap_partition *p;
	struct ap_lattice *l;
	int32_t npart;
	int64_t nbody;
	const int32_t *stage_of; /* [npart] */
	struct ap_lattice_walk now, next, best;
	uint64_t *fitted, nfit; /* [nstage] when a stage was last given options; how often any were */
	uint64_t random;
};

static uint64_t draw(struct annealing *x, uint64_t n)
{
	x->random ^= x->random << 13;
	x->random ^= x->random >> 7;
	x->random ^= x->random << 17;
	return (x->random >> 11) % n;
}

static void copy(const struct annealing *x, struct ap_lattice_walk *to, const struct ap_lattice_walk *from)
{
	memcpy(to->first, from->first, (size_t)(x->npart + 1) * sizeof *to->first);
	memcpy(to->option, from->option, (size_t)x->npart * sizeof *to->option);
}

static int64_t passes(const struct annealing *x, uint32_t id)
{
	const int64_t *c = ap_lattice_option(x->l, id)->cost;

	return c[AP_TIME_FORWARD] + c[AP_TIME_BACKWARD] + c[AP_TIME_WEIGHT];
}

static uint32_t options(struct annealing *x, int32_t q, uint32_t *first)
{
	return ap_lattice_options(x->l, q, x->next.first[q], x->next.first[q + 1], first);
}

/* Devices of a degree; 0 where none are shared. */
static int64_t devices_in(const struct annealing *x, uint32_t degree)
{
	return x->p->devices > 0 ? x->p->degree[degree].devices : 0;
}

/* Those of a stage of the next plan. */
static int64_t devices_of(const struct annealing *x, int32_t stage)
{
	int32_t q = ap_schedule_part(x->p->scheduler, x->p->nstage, stage, 0);

	return devices_in(x, ap_lattice_option(x->l, x->next.option[q])->degree);
}

/* The quickest option of a part in a degree (AP_NONE: in any) on so many devices at most. */
static uint32_t quickest(struct annealing *x, int32_t q, uint32_t degree, int64_t most)
{
	uint32_t first, n = options(x, q, &first), best = AP_NONE;

	for (uint32_t i = first; i < first + n; i++) {
		uint32_t own = ap_lattice_option(x->l, i)->degree;

		if ((degree == AP_NONE || own == degree) && devices_in(x, own) <= most &&
			(best == AP_NONE || passes(x, i) < passes(x, best)))
			best = i;
	}
	return best;
}

/* The quickest options of a stage in one degree. Returns their passes; INT64_MAX if a part has none. */
static int64_t take_degree(struct annealing *x, int32_t stage, uint32_t degree)
{
	int64_t sum = 0;

	for (int32_t c = 0; c < x->p->nsegment; c++) {
		int32_t q = ap_schedule_part(x->p->scheduler, x->p->nstage, stage, c);
		uint32_t best = quickest(x, q, degree, INT64_MAX);

		if (best == AP_NONE)
			return INT64_MAX;
		x->next.option[q] = best;
		sum += passes(x, best);
	}
	return sum;
}

/*
 * Lets the options of a stage with several parts fit: from the quickest ones, as long as they do not, the
 * change that frees the most for its time.
 */
static void make_fit(struct annealing *x, int32_t stage)
{
	uint32_t *option = x->next.option;
	int64_t excess = ap_lattice_excess(x->l, option, stage);

	while (excess > 0) {
		int64_t best_gain = 0, best_loss = 0;
		int32_t best_part = -1;
		uint32_t best = AP_NONE;

		for (int32_t c = 0; c < x->p->nsegment; c++) {
			int32_t q = ap_schedule_part(x->p->scheduler, x->p->nstage, stage, c);
			uint32_t first, n = options(x, q, &first), old = option[q];

			for (uint32_t i = first; i < first + n; i++) {
				int64_t gain, loss = passes(x, i) - passes(x, old);

				if (ap_lattice_option(x->l, i)->degree != ap_lattice_option(x->l,
					old)->degree)
					continue;
				option[q] = i;
				gain = excess - ap_lattice_excess(x->l, option, stage);
				gain = gain < excess ? gain : excess;
				loss = loss > 0 ? loss : 0;
				if (gain <= 0 || (best != AP_NONE && (double)loss * (double)best_gain >=
					(double)best_loss * (double)gain))
					continue;
				best_gain = gain;
				best_loss = loss;
				best_part = q;
				best = i;
			}
			option[q] = old;
		}
		if (best == AP_NONE)
			return;
		option[best_part] = best;
		excess = ap_lattice_excess(x->l, option, stage);
	}
}

/* Gives a stage options in its quickest degree on so many devices at most. Returns false if there are
 * none. */
static bool refit_stage(struct annealing *x, int32_t stage, int64_t most)
{
	int64_t least = INT64_MAX;
	uint32_t best = AP_NONE;

	for (uint32_t d = 0; d < x->p->ndegree; d++) {
		int64_t sum = devices_in(x, d) <= most ? take_degree(x, stage, d) : INT64_MAX;

		if (sum < least) {
			least = sum;
			best = d;
		}
	}
	if (best == AP_NONE)
		return false;
	take_degree(x, stage, best);
	if (x->p->nsegment > 1)
		make_fit(x, stage);
	return true;
}

/* Has part q other choices than now? */
static bool is_changed(struct annealing *x, int32_t q)
{
	uint32_t now, next, n = ap_lattice_options(x->l, q, x->now.first[q], x->now.first[q + 1], &now);

	return n != options(x, q, &next) || n == 0 || now != next;
}

/* Gives the parts from..to options for their ranges, where these are new, on the devices that their stages
 * have. Returns false if one has none. */
static bool refit(struct annealing *x, int32_t from, int32_t to, bool all)
{
	x->nfit++;
	for (int32_t q = from; q <= to; q++) {
		int32_t stage = x->stage_of[q];

		if (x->fitted[stage] == x->nfit || (!all && !is_changed(x, q)))
			continue;
		if (x->p->nsegment > 1) {
			x->fitted[stage] = x->nfit;
			if (!refit_stage(x, stage, devices_of(x, stage)))
				return false;
			continue;
		}
		x->next.option[q] = quickest(x, q, AP_NONE, devices_of(x, stage));
		if (x->next.option[q] == AP_NONE)
			return false;
	}
	return true;
}

static int64_t worth(struct annealing *x, const struct ap_lattice_walk *w)
{
	int64_t most = 0, devices = 0;

	for (int32_t q = 0; x->p->devices > 0 && q < x->npart; q++)
		devices += ap_lattice_option(x->l, w->option[q])->cost[AP_COST_DEVICES];
	if (devices > x->p->devices)
		return MISFIT + devices;
	for (int32_t s = 0; x->p->nsegment > 1 && s < x->p->nstage; s++) {
		int64_t excess = ap_lattice_excess(x->l, w->option, s);

		most = excess > most ? excess : most;
	}
	if (most > 0)
		return MISFIT + (most < MISFIT ? most : MISFIT);
	return ap_lattice_value(x->l, w->option);
}

/* A layer leaves part `from` for part `to`; those between move by one. */
static bool move_layer(struct annealing *x)
{
	int32_t from = (int32_t)draw(x, (uint64_t)x->npart), to = (int32_t)draw(x, (uint64_t)x->npart);
	int32_t low = from < to ? from : to, high = from < to ? to : from, by = from < to ? -1 : 1;

	if (from == to || x->p->counts != AP_COUNTS_FREE ||
		x->next.first[from + 1] - x->next.first[from] <= ap_partition_least(x->p, from))
		return false;
	for (int32_t q = low + 1; q <= high; q++)
		x->next.first[q] += by;
	return refit(x, low, high, false);
}

static bool change_option(struct annealing *x)
{
	int32_t q = (int32_t)draw(x, (uint64_t)x->npart);
	uint32_t first, n = options(x, q, &first), old = x->next.option[q];

	if (n < 2)
		return false;
	x->next.option[q] = first + (uint32_t)draw(x, n);
	return x->next.option[q] != old;
}

/* Two stages share their devices otherwise, and those that nobody has: one takes those of some degree, the
 * other one what is left. Where each stage is one part they may exchange their numbers of layers, too. */
static bool trade_devices(struct annealing *x)
{
	int32_t a = (int32_t)draw(x, (uint64_t)x->p->nstage), b = (int32_t)draw(x, (uint64_t)x->p->nstage);
	uint32_t degree = (uint32_t)draw(x, x->p->ndegree);
	bool trades_layers = draw(x, 2) && x->p->nsegment == 1 && x->p->counts == AP_COUNTS_FREE;
	int64_t left = x->p->devices, had = devices_of(x, a);
	int64_t layers_a = x->next.first[a + 1] - x->next.first[a];
	int64_t layers_b = x->next.first[b + 1] - x->next.first[b];

	for (int32_t s = 0; s < x->p->nstage; s++)
		left -= s == a || s == b ? 0 : devices_of(x, s);
	left -= devices_in(x, degree);
	if (a == b || devices_in(x, degree) == had || left < 1)
		return false;
	if (trades_layers && layers_a >= ap_partition_least(x->p, b) &&
		layers_b >= ap_partition_least(x->p, a)) {
		int32_t low = a < b ? a : b, high = a < b ? b : a;

		for (int32_t q = low + 1; q <= high; q++)
			x->next.first[q] += (int32_t)(a < b ? layers_b - layers_a : layers_a - layers_b);
		if (!refit(x, low, high, true))
			return false;
	}
	return take_degree(x, a, degree) < INT64_MAX && refit_stage(x, b, left);
}

/* Steps of work that `share` of `parts` of the whole have taken, as a bar for changes to the worse. */
static int64_t bar(int64_t value, uint64_t done, uint64_t all)
{
	uint64_t left = done < all ? all - done : 0;

	return (int64_t)((double)(value < MISFIT ? value : 0) * 0.01 * ((double)left / (double)all) *
		((double)left / (double)all));
}

int64_t ap_anneal(struct ap_ctx *ctx, const struct ap_partition *p, struct ap_lattice *l,
	struct ap_lattice_walk *walk, int64_t enough, uint64_t work)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct annealing x = {.p = p, .l = l, .npart = p->nstage * p->nsegment, .nbody = ap_partition_body(p),
		.random = UINT64_C(0x9E3779B97F4A7C15)};
	struct ap_lattice_walk *w[] = {&x.now, &x.next, &x.best};
	int32_t *stage_of = AP_NEW_N(ctx->scratch, int32_t, x.npart), segment;
	uint64_t begin = ap_lattice_work(l);
	int64_t now, best;

	for (int i = 0; i < 3; i++) {
		w[i]->first = AP_NEW_N(ctx->scratch, int32_t, x.npart + 1);
		w[i]->option = AP_NEW_N(ctx->scratch, uint32_t, x.npart);
		copy(&x, w[i], walk);
	}
	for (int32_t q = 0; q < x.npart; q++)
		ap_schedule_spot(p->scheduler, p->nstage, q, &stage_of[q], &segment);
	x.stage_of = stage_of;
	x.fitted = AP_NEW_N(ctx->scratch, uint64_t, p->nstage);
	if (!refit(&x, 0, x.npart - 1, true))
		copy(&x, &x.next, walk);
	copy(&x, &x.now, &x.next);
	copy(&x, &x.best, &x.next);
	now = best = worth(&x, &x.now);
	for (uint64_t i = 0; i < LEAST_TRIES || ap_lattice_work(l) - begin < work; i++) {
		int64_t next;

		if (best <= enough || ap_ctx_stopped(ctx) || (i > LEAST_TRIES && i > work / 16))
			break;
		copy(&x, &x.next, &x.now);
		if (p->devices > 0 && p->degree_by_stage && draw(&x, 4) == 0) {
			if (!trade_devices(&x))
				continue;
		} else if (!(draw(&x, 4) ? move_layer(&x) : change_option(&x))) {
			continue;
		}
		next = worth(&x, &x.next);
		if (next >= now + 1 + bar(now, ap_lattice_work(l) - begin, work))
			continue;
		copy(&x, &x.now, &x.next);
		now = next;
		if (now < best) {
			best = now;
			copy(&x, &x.best, &x.now);
		}
	}
	copy(&x, walk, &x.best);
	ap_arena_release(ctx->scratch, mark);
	return best < MISFIT ? best : -1;
}
