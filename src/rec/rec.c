/* SPDX-License-Identifier: Apache-2.0 */
#include "rec/rec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "problem/problem.h"
#include "rec/rec_parts.h"

enum { STEPS = 12, OCTAVES = 20, SQUEEZES = 16, LARGE = 8, POLL = 256 };
enum { MOST = 1 << 22, ENOUGH = 1 << 20 }; /* work after which stopping is heeded: nothing fits, or some */

struct solving {
	struct ap_rec r;
	int64_t limit;
	uint32_t *best; /* NULL: none fits */
	double best_s;
	uint32_t *leanest;
	int64_t least; /* its bytes and temporary */
	bool first; /* the first that fits is enough */
	uint32_t forbidden; /* of the leanest */
};

struct figures {
	struct ap_rec_score sum;
	int64_t temporary;
	bool fits;
};

static struct figures measure(struct solving *s)
{
	struct figures f;

	struct ap_rec_rates rates = s->r.rates;

	s->r.rates = (struct ap_rec_rates){0};
	f.sum = ap_rec_total(&s->r, &f.temporary);
	s->r.rates = rates;
	f.fits = f.sum.forbidden == 0 &&
		(s->limit == AP_NO_LIMIT || f.sum.bytes + f.temporary <= s->limit);
	return f;
}

static uint32_t *copy(struct solving *s)
{
	return ap_arena_memdup(s->r.ctx->arena, s->r.pick, s->r.view->n * sizeof *s->r.pick);
}

/* Keeps the pick where it is the cheapest that fits, or the leanest. */
static void keep(struct solving *s, const struct figures *f)
{
	int64_t need = f->sum.bytes + f->temporary;

	if (f->fits && (!s->best || f->sum.cost < s->best_s)) {
		s->best = copy(s);
		s->best_s = f->sum.cost;
		if (s->r.patience > ENOUGH)
			s->r.patience = ENOUGH;
	}
	if (!s->leanest || f->sum.forbidden < s->forbidden ||
		(f->sum.forbidden == s->forbidden && need < s->least)) {
		s->leanest = copy(s);
		s->least = need;
		s->forbidden = f->sum.forbidden;
	}
}

static struct figures run(struct solving *s, double byte, double over, int64_t cap)
{
	struct figures f;

	ap_rec_run(&s->r, (struct ap_rec_rates){byte, over, cap});
	f = measure(s);
	keep(s, &f);
	return f;
}

/* Changes single nodes where that is cheaper and still fits: the price of bytes, which is the same
 * everywhere, leaves some room unused. */
static bool squeeze_node(struct solving *s, ap_id u, struct figures *f)
{
	struct ap_rec *r = &s->r;
	struct ap_rec_list list = r->view->beside(r->view->self, r->view->cls[u], r->pick[u]);
	struct ap_rec_score now, least;
	uint32_t best = r->pick[u];

	if (list.n == 0)
		return false;
	now = least = ap_rec_weigh(r, u, best);
	for (uint32_t i = 0; i < list.n; i++) {
		struct ap_rec_score score = ap_rec_weigh(r, u, list.state[i]);
		int64_t temporary = r->view->node(r->view->self, r->view->cls[u],
			list.state[i]).temporary;

		if (temporary < f->temporary)
			temporary = f->temporary;
		if (ap_rec_less(&score, &least) &&
			f->sum.bytes - now.bytes + score.bytes + temporary <= s->limit) {
			least = score;
			best = list.state[i];
		}
	}
	if (best == r->pick[u])
		return false;
	r->pick[u] = best;
	f->sum.bytes += least.bytes - now.bytes;
	if (r->view->node(r->view->self, r->view->cls[u], best).temporary > f->temporary)
		f->temporary = r->view->node(r->view->self, r->view->cls[u], best).temporary;
	return true;
}

static void squeeze(struct solving *s)
{
	struct ap_rec *r = &s->r;
	struct figures f;
	bool moved = true;

	memcpy(r->pick, s->best, r->view->n * sizeof *r->pick);
	r->rates = (struct ap_rec_rates){0};
	for (int pass = 0; pass < SQUEEZES && moved; pass++) {
		moved = false;
		f = measure(s);
		for (ap_id u = 0; u < r->view->n; u++) {
			if (u % POLL == 0 && ap_rec_spent(r))
				break;
			moved |= squeeze_node(s, u, &f);
		}
	}
	f = measure(s);
	keep(s, &f);
}

/* Bytes get a price: so high that the limit holds, if it can, then lower, halving the interval of its
 * logarithm. */
static void price_bytes(struct solving *s, double scale, int64_t cap)
{
	double lo = ldexp(scale, -OCTAVES), hi = ldexp(scale, OCTAVES), most = hi;

	if (!run(s, hi, most, cap).fits)
		return;
	for (int i = 0; i < STEPS && !s->first && !ap_rec_spent(&s->r); i++) {
		double mid = sqrt(lo * hi);

		if (run(s, mid, most, cap).fits)
			hi = mid;
		else
			lo = mid;
	}
}

/* Seconds a byte, roughly, whatever the sign of the costs. */
static double exchange_rate(struct solving *s, const struct figures *fastest)
{
	struct figures start;

	ap_rec_reset(&s->r);
	start = measure(s);
	return (fabs(start.sum.cost) + fabs(fastest->sum.cost) + s->r.view->quantum) /
		((double)llabs(fastest->sum.bytes) + (double)fastest->temporary + 1);
}

/* The fastest pick does not keep to the limit. What adds up has one price; the largest temporary,
 * where it is a good part of the limit, is also tried below caps: only what is above them matters. */
static void fit(struct solving *s, const struct figures *fastest)
{
	double scale = exchange_rate(s, fastest);
	int64_t cap[] = {s->limit, fastest->temporary / 2, fastest->temporary / 4};
	int ncap = fastest->temporary > s->limit / LARGE ? 3 : 1;
	struct figures f;

	for (int i = 0; i < ncap && !(s->first && s->best) && !ap_rec_spent(&s->r); i++)
		if (cap[i] <= s->limit && !run(s, 0, ldexp(scale, OCTAVES), cap[i]).fits)
			price_bytes(s, scale, cap[i]);
	if (s->best || ap_rec_spent(&s->r))
		return;
	f = run(s, ldexp(scale, OCTAVES), ldexp(scale, OCTAVES), s->limit);
	if (s->limit > f.sum.bytes)
		price_bytes(s, scale, s->limit - f.sum.bytes);
}

static void report(struct solving *s, struct ap_rec_result *out)
{
	struct figures f;

	memcpy(s->r.pick, s->best ? s->best : s->leanest, s->r.view->n * sizeof *s->r.pick);
	f = measure(s);
	*out = (struct ap_rec_result){.pick = copy(s), .allowed = f.sum.forbidden == 0,
		.fits = f.fits, .s = f.sum.forbidden > 0 ? INFINITY : f.sum.cost,
		.bytes = f.sum.bytes, .temporary = f.temporary, .work = s->r.work};
}

void ap_rec_solve(struct ap_ctx *ctx, const struct ap_rec_view *view,
	const struct ap_rec_limits *limits, struct ap_rec_result *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct solving s = {.limit = limits->bytes, .first = limits->first};
	struct figures f;

	s.r.most_work = limits->work;
	ap_rec_open(&s.r, ctx, view);
	f = run(&s, 0, 0, 0);
	if (!f.fits && f.sum.forbidden == 0) {
		s.r.patience = limits->insist ? MOST : 0;
		fit(&s, &f);
		if (s.best && !s.first)
			squeeze(&s);
	}
	report(&s, out);
	ap_arena_release(ctx->scratch, mark);
}
