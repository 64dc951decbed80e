/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rounds.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/map.h"

#define NEAR 2e-3 /* a bound so near the best is well */
enum { PRESSED = 4 }; /* trials */
enum { CHANGED = 1, FRESH = 2, KNOWN = 4 }; /* state: judge it again; not looked at; its kin is known */

double ap_rounds_best_s(const struct ap_rounds *r)
{
	return r->best == AP_NONE ? r->below_s : r->trial[r->best].step_s;
}

void ap_rounds_begin(struct ap_ctx *ctx, struct ap_rounds *r)
{
	struct ap_map *seen = ap_map_create(ctx->scratch);
	uint32_t ngroup = 0;

	r->open = AP_NEW_N(ctx->arena, uint32_t, r->n);
	r->bound_s = AP_NEW_N(ctx->arena, double, r->n);
	r->state = AP_NEW_N(ctx->arena, uint8_t, r->n);
	r->group = AP_NEW_N(ctx->arena, uint32_t, r->n);
	r->nopen = r->n;
	r->learnt = true;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct ap_decision_point *p = &r->trial[i].point;
		const int64_t key[] = {p->pp, p->micro_batches, p->dp, p->tp, p->cp, p->ep, p->etp, p->sp};
		bool fresh;

		r->open[i] = i;
		r->state[i] = CHANGED;
		r->group[i] = ap_map_put(seen, key, sizeof key, &fresh);
		ngroup += fresh;
	}
	r->refused = AP_NEW_N(ctx->arena, int32_t, ngroup);
	for (uint32_t g = 0; g < ngroup; g++)
		r->refused[g] = -1;
}

void ap_rounds_refuse(struct ap_rounds *r, uint32_t i)
{
	r->refused[r->group[i]] = (int32_t)i;
	r->refuses = true;
}

/* Where trial i is among the open ones. */
static uint32_t place_of(const struct ap_rounds *r, uint32_t i)
{
	uint32_t from = 0, to = r->nopen;

	while (to - from > 1) {
		uint32_t middle = from + (to - from) / 2;

		if (r->open[middle] <= i)
			from = middle;
		else
			to = middle;
	}
	assert(r->open[from] == i);
	return from;
}

void ap_rounds_offer(struct ap_rounds *r, uint32_t i, const struct ap_kin_told *told)
{
	const struct ap_decision_trial *t = &r->trial[i];
	uint32_t place = place_of(r, i);

	r->state[place] |= CHANGED;
	ap_kins_note(r->kins, i, t->verdict == AP_DECISION_OPEN);
	r->bound_s[place] = t->verdict == AP_DECISION_OPEN ? t->bound_s : INFINITY;
	if (told->any && ap_kins_learn(r->kins, i, told))
		r->learnt = true;
	if (t->verdict == AP_DECISION_FITS && (t->step_s < ap_rounds_best_s(r) ||
		(r->best != AP_NONE && t->step_s <= r->trial[r->best].step_s && i < r->best)))
		r->best = i;
}

/* Judges a trial by what was learnt of its kin. */
static void judge_by_kin(const struct ap_rounds *r, uint32_t i)
{
	struct ap_decision_trial *t = &r->trial[i];
	int32_t by;
	double needed = ap_kins_least_bytes(r->kins, i, r->trial, &by);

	if (r->prune && needed > (double)r->usable_bytes) {
		t->verdict = AP_DECISION_TOO_LARGE;
		t->by = by;
		if (t->step != AP_TRIAL_NEW && t->memory_bytes == 0)
			t->memory_bytes = (int64_t)ceil(needed);
	} else if (r->timed) {
		t->bound_s = fmax(t->bound_s, ap_kins_least_s(r->kins, i, r->trial));
	}
}

/* Judges a trial by what is known now. False: it is out. */
static bool judge(const struct ap_rounds *r, uint32_t i)
{
	struct ap_decision_trial *t = &r->trial[i];
	int32_t by = r->refused[r->group[i]];

	if (by >= 0 && t->step == AP_TRIAL_NEW) {
		t->verdict = AP_DECISION_REFUSED;
		t->by = by;
		t->why = r->trial[by].why;
		return false;
	}
	if (r->learnt)
		judge_by_kin(r, i);
	if (t->verdict == AP_DECISION_OPEN && r->prune && t->bound_s >= ap_rounds_best_s(r))
		t->verdict = AP_DECISION_BOUNDED;
	return t->verdict == AP_DECISION_OPEN;
}

struct candidates { /* the least so far, by bounds */
	struct ap_round *round;
	double bound_s[AP_ROUND];
};

static void put(struct candidates *c, uint32_t i, double bound_s)
{
	struct ap_round *r = c->round;
	uint32_t place = r->n;

	while (place > 0 && bound_s < c->bound_s[place - 1])
		place--;
	if (place == AP_ROUND)
		return;
	r->n += r->n < AP_ROUND;
	for (uint32_t m = r->n - 1; m > place; m--) {
		r->at[m] = r->at[m - 1];
		c->bound_s[m] = c->bound_s[m - 1];
	}
	r->at[place] = i;
	c->bound_s[place] = bound_s;
}

/* Judges the trial at a place among the open ones again. False: it is out. */
static bool judge_again(struct ap_rounds *r, uint32_t place)
{
	uint32_t i = r->open[place];
	const struct ap_decision_trial *t = &r->trial[i];
	bool open = t->verdict == AP_DECISION_OPEN && judge(r, i);

	ap_kins_note(r->kins, i, open);
	r->bound_s[place] = open ? t->bound_s : INFINITY;
	r->state[place] &= KNOWN;
	if (open && t->step == AP_TRIAL_NEW)
		r->state[place] |= FRESH;
	return open || t->verdict == AP_DECISION_FITS;
}

/* New ones that may be fastest; of kin of which nothing is known one each. Leaves out closed ones. */
static void pick_new(struct ap_ctx *ctx, struct ap_rounds *r, struct ap_round *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	bool *met = AP_NEW_N(ctx->scratch, bool, ap_kins_count(r->kins));
	struct candidates list = {.round = out};
	double best_s = ap_rounds_best_s(r);
	uint32_t n = r->nopen;

	r->nopen = 0;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = r->open[k], to;
		enum ap_kin_turn turn = AP_KIN_KNOWN;

		if (((r->state[k] & CHANGED) || (r->prune && r->bound_s[k] >= best_s) ||
			(r->refuses && r->refused[r->group[i]] >= 0) ||
			(r->learnt && ap_kins_is_told(r->kins, i))) && !judge_again(r, k))
			continue;
		to = r->nopen++;
		r->open[to] = i;
		r->bound_s[to] = r->bound_s[k];
		r->state[to] = r->state[k];
		if (!(r->state[to] & FRESH))
			continue;
		if (!(r->state[to] & KNOWN))
			turn = ap_kins_turn(r->kins, i);
		if (turn == AP_KIN_WAITS || (turn == AP_KIN_FIRST && met[ap_kins_of(r->kins, i)]))
			continue;
		if (turn == AP_KIN_KNOWN)
			r->state[to] |= KNOWN;
		met[ap_kins_of(r->kins, i)] = true;
		put(&list, i, r->bound_s[to]);
	}
	ap_kins_forget(r->kins);
	r->learnt = r->refuses = false;
	ap_arena_release(ctx->scratch, mark);
}

/* Those with which this step was done last, and which may have a plan that is faster than the best. */
static void pick_open(const struct ap_rounds *r, int step, struct ap_round *out)
{
	struct candidates list = {.round = out};

	for (uint32_t k = 0; k < r->nopen; k++) {
		uint32_t i = r->open[k];
		const struct ap_decision_trial *t = &r->trial[i];

		if (t->point.kind < 0 && t->step == step && t->bound_s < ap_rounds_best_s(r) &&
			(t->verdict == AP_DECISION_OPEN || t->verdict == AP_DECISION_FITS))
			put(&list, i, t->bound_s);
	}
}

uint32_t ap_rounds_left(const struct ap_rounds *r, double *bound_s)
{
	double least_s = INFINITY;
	uint32_t n = 0;

	for (uint32_t k = 0; k < r->nopen; k++) {
		least_s = r->bound_s[k] < least_s ? r->bound_s[k] : least_s;
		n += r->bound_s[k] < INFINITY;
	}
	*bound_s = least_s;
	return n;
}

bool ap_rounds_press(const struct ap_rounds *r, struct ap_round *out)
{
	struct candidates list = {.round = out};

	out->n = 0;
	for (uint32_t k = 0; k < r->nopen; k++) {
		uint32_t i = r->open[k];
		const struct ap_decision_trial *t = &r->trial[i];

		if (t->point.kind < 0 && t->bound_s < ap_rounds_best_s(r) * (1 - NEAR) &&
			(t->verdict == AP_DECISION_OPEN || t->verdict == AP_DECISION_FITS))
			put(&list, i, t->bound_s);
	}
	for (uint32_t k = 0; k < out->n; k++) {
		struct ap_decision_trial *t = &r->trial[out->at[k]];

		if (t->step < AP_TRIAL_BOUNDED || t->step == AP_TRIAL_DONE)
			out->n = k;
		else if (t->step == AP_TRIAL_BOUNDED) /* the work to deal layers has ended */
			t->step = AP_TRIAL_DEALT;
	}
	out->n = out->n < PRESSED ? out->n : PRESSED;
	return out->n > 0;
}

bool ap_rounds_next(struct ap_ctx *ctx, struct ap_rounds *r, struct ap_round *out)
{
	out->n = 0;
	pick_new(ctx, r, out);
	for (int step = AP_TRIAL_LOOKED; out->n == 0 && step < AP_TRIAL_DEALT; step++)
		pick_open(r, step, out);
	return out->n > 0;
}
