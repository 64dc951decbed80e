/* SPDX-License-Identifier: Apache-2.0 */
#include "decision/space.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "hybrid/hybrid_parse.h"
#include "pipeline/schedule.h"

/* Are there no values to decide among, or is v one of them? */
static bool may_be(const struct ap_choices *c, int64_t v)
{
	return c->n == 0 || ap_choices_has(c, v);
}

/* Divisors of n up to most that a has, ascending. */
static struct ap_choices divisors(struct ap_ctx *ctx, int64_t n, int64_t most,
	const struct ap_choices *a)
{
	AP_VEC(int64_t) low = {0}, high = {0};

	for (int64_t d = 1; d <= n / d; d++) {
		if (n % d)
			continue;
		if (d <= most && may_be(a, d))
			AP_PUSH(ctx->scratch, low, d);
		if (d < n / d && n / d <= most && may_be(a, n / d))
			AP_PUSH(ctx->scratch, high, n / d);
	}
	while (high.n > 0)
		AP_PUSH(ctx->scratch, low, high.v[--high.n]);
	return (struct ap_choices){.n = low.n, .v = low.v};
}

struct emitting {
	struct ap_ctx *ctx;
	const struct ap_decision_space *s;
	void (*emit)(void *user, const struct ap_decision_point *p);
	void *user;
};

/* May the scheduler's row be used at this point? */
static bool runs(const struct ap_decision_space *s, size_t row, const struct ap_decision_point *p)
{
	const struct ap_scheduler *sched = ap_scheduler_at(row);
	bool said = false;

	if (s->scheduler.n)
		said = may_be(&s->scheduler, (int64_t)row);
	else
		for (size_t i = 0; s->language->schedulers[i]; i++)
			said |= ap_scheduler_find(s->language->schedulers[i]) == sched;
	if ((s->language->fills && p->pp > 1 && p->micro_batches < p->pp) ||
		(s->language->whole_rounds && p->vpp > 1 && p->micro_batches % p->pp))
		return false;
	if (!said || p->vpp < sched->least_segments ||
		(sched->most_segments && p->vpp > sched->most_segments))
		return false;
	/* With one segment, interleaving is 1F1B; of one stage all rows are alike. */
	if (!s->scheduler.n && ((p->pp == 1 && row != 0 && ap_scheduler_find("1f1b") != sched) ||
		(sched == ap_scheduler_find("interleaved") && p->vpp == 1)))
		return false;
	return !sched->refuses((int32_t)p->pp, (int32_t)p->vpp, p->micro_batches);
}

const char *const *ap_decision_kinds(const struct ap_decision_space *s, const struct ap_decision_point *p)
{
	const struct ap_recompute_mix *mix = &s->mix[p->mix];

	return p->regathers && mix->rule == AP_KINDS_LIST ? mix->few[p->sp] : mix->kind[p->sp];
}

int64_t ap_decision_dealt(const struct ap_decision_point *p)
{
	int64_t all = p->dp * p->cp;

	return p->shard && p->shard < all ? p->shard : all;
}

/* May groups of so many ranks each have all of a parameter? */
static bool is_group(const struct ap_decision_space *s, const struct ap_decision_point *p, int64_t ranks)
{
	const struct ap_executor_language *l = s->language;
	int64_t all = p->dp * p->cp;

	return ranks > 1 && ranks < all && all % ranks == 0 && l->groups >> p->level & 1 &&
		!(l->groups_of_samples && p->cp > 1) && !(l->groups_of_dense && p->ep > 1);
}

static void each_group(const struct emitting *e, struct ap_decision_point *p)
{
	const struct ap_decision_space *s = e->s;
	bool all = !p->level || s->shard.n == 0;

	for (size_t i = 0; i < s->shard.n; i++)
		all |= s->shard.v[i] < 0 || s->shard.v[i] >= p->dp * p->cp;
	p->shard = 0;
	if (all)
		e->emit(e->user, p);
	for (size_t i = 0; p->level && i < (s->shard.n ? s->shard.n : s->nblock); i++) {
		int64_t ranks = s->shard.n ? s->shard.v[i] : s->block[i] % p->tp ? 0 : s->block[i] / p->tp;

		if (!is_group(s, p, ranks))
			continue;
		p->shard = ranks;
		e->emit(e->user, p);
	}
	p->shard = 0;
}

/* Is it open whether weights are gathered again, with kinds that are computed again at this point? */
static bool may_regather(const struct ap_decision_space *s, const struct ap_decision_point *p)
{
	const char *const *kind = ap_decision_kinds(s, p);
	bool again = false;

	for (int k = 0; k < AP_MIX_KINDS && kind[k]; k++)
		again |= (p->kind < 0 || p->kind == k) && strcmp(kind[k], "none") != 0;
	return again && s->language->regathers && (p->level == 1 || p->level == 2);
}

/* Can experts be dealt so? Where their degrees were asked for, it is told why not. */
static bool may_deal_experts(const struct ap_decision_space *s, const struct ap_decision_point *p)
{
	const struct ap_hybrid h = {.dp = p->dp, .tp = p->tp, .cp = p->cp, .ep = p->ep, .etp = p->etp};

	return s->ep.n || s->etp.n || ap_hybrid_expert_stride(&h) > 0;
}

static void each_degree(const struct emitting *e, struct ap_decision_point *p)
{
	const struct ap_decision_space *s = e->s;
	int64_t devices = s->devices / p->pp;
	const struct ap_choices tps = divisors(e->ctx, devices, s->most_tp, &s->tp);

	for (size_t t = 0; t < tps.n; t++) {
		const struct ap_choices cps = divisors(e->ctx, devices / tps.v[t], s->most_cp, &s->cp);

		for (size_t c = 0; c < cps.n; c++) {
			int64_t dp = devices / tps.v[t] / cps.v[c];
			struct ap_choices eps;

			if (!may_be(&s->dp, dp) || (s->language->sequences_alone && cps.v[c] > 1 &&
				(p->pp > 1 || tps.v[t] > 1)))
				continue;
			p->tp = tps.v[t];
			p->cp = cps.v[c];
			p->dp = dp;
			if (s->batch && s->batch % (dp * p->micro_batches))
				continue;
			p->mbs = s->batch ? s->batch / dp / p->micro_batches : 0;
			if (!may_be(&s->mbs, p->mbs))
				continue;
			eps = s->experts ? divisors(e->ctx, s->experts, devices, &s->ep)
				: (struct ap_choices){.n = 1, .v = (const int64_t[]){1}};
			for (size_t x = 0; x < eps.n && !(s->language->experts_whole && eps.v[x] > 1); x++)
				for (int whole = 0; whole <= (eps.v[x] > 1 && p->tp > 1); whole++)
					for (int sp = 0; sp <= (p->tp > 1); sp++) {
						p->ep = eps.v[x];
						p->etp = whole ? 1 : p->tp;
						p->sp = sp;
						if (p->kind >= 0 && !ap_decision_kinds(s, p)[p->kind])
							continue;
						if (p->regathers && !s->regathers.n && !may_regather(s, p))
							continue;
						if (!may_be(&s->etp, p->etp) || !may_be(&s->sp, sp) ||
							(sp && !s->language->sums) ||
							(s->language->experts_by_sequence && s->experts &&
							p->tp > 1 && !sp) || !may_deal_experts(s, p))
							continue;
						each_group(e, p);
					}
		}
	}
}

static void each_kind(const struct emitting *e, struct ap_decision_point *p)
{
	const struct ap_recompute_mix *mix = &e->s->mix[p->mix];
	bool one = !e->s->uneven && !mix->kind[0][1] && !mix->kind[1][1], whole = !e->s->by_layer || one;

	if (whole && !e->s->parts && e->s->layers && e->s->layers < p->pp * p->vpp)
		return;
	for (p->kind = whole ? 0 : -1; p->kind < (whole ? AP_MIX_KINDS : 0); p->kind++) {
		struct ap_mark mark = ap_arena_mark(e->ctx->scratch);

		if (whole && !mix->kind[0][p->kind] && !mix->kind[1][p->kind])
			break;
		each_degree(e, p);
		ap_arena_release(e->ctx->scratch, mark);
	}
}

static void each_choice(const struct emitting *e, struct ap_decision_point *p)
{
	const struct ap_decision_space *s = e->s;

	p->sums_whole = s->language->sums_whole && p->pp > 1;
	for (size_t row = 0; ap_scheduler_at(row); row++) {
		if (!runs(s, row, p))
			continue;
		p->scheduler = (int)row;
		for (p->level = 0; p->level <= 3; p->level++) {
			if (s->level.n ? !may_be(&s->level, p->level)
				: !(s->language->levels >> p->level & 1))
				continue;
			if (p->pp > 1 && s->language->stage_levels &&
				!(s->language->stage_levels >> p->level & 1))
				continue;
			for (p->mix = 0; (size_t)p->mix < s->nmix; p->mix++)
				for (int again = 0; again < 2; again++) {
					p->regathers = again;
					if (may_be(&s->regathers, again))
						each_kind(e, p);
				}
		}
	}
}

void ap_decision_each(struct ap_ctx *ctx, const struct ap_decision_space *s,
	void (*emit)(void *user, const struct ap_decision_point *p), void *user)
{
	const struct emitting e = {ctx, s, emit, user};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	bool uneven = s->uneven && s->by_layer;
	int64_t most_parts = s->layers + (uneven || s->parts ? 2 : 0);
	struct ap_choices stages = divisors(ctx, s->devices, s->layers && !s->pp.n ? most_parts : INT32_MAX,
		&s->pp);
	struct ap_choices micro = s->batch ? divisors(ctx, s->batch, s->micro_batches.n ? INT32_MAX
		: AP_DECISION_MOST_MICRO, &s->micro_batches)
		: (struct ap_choices){.n = 1, .v = (const int64_t[]){1}};

	for (size_t i = 0; i < stages.n; i++) {
		int64_t pp = stages.v[i], most = pp == 1 ? 1 : s->layers ? most_parts / pp : 2;
		bool even = s->layers % pp == 0;

		if (!s->uneven && !s->parts && s->layers && !even)
			continue;
		for (int64_t v = 1; v <= most; v++) {
			if (!may_be(&s->vpp, v) || (v > 1 && !s->vpp.n && s->layers && !uneven && (!even ||
				s->layers / pp % v)))
				continue;
			for (size_t k = 0; k < micro.n; k++) {
				struct ap_decision_point p = {.pp = pp, .vpp = v,
					.micro_batches = micro.v[k]};

				each_choice(&e, &p);
			}
		}
	}
	ap_arena_release(ctx->scratch, mark);
}
