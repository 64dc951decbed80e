/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With sum[i] the weights before item i, a run from i to j costs (sum[j] + share[j]) - (sum[i] -
 * share[i]), share being its share of a crossing. So runs of a given cost are tried one after the
 * other: the best item to begin a run with has the largest sum[i] - share[i] of those that the runs
 * before can reach.
 */
#include "pipeline/cut.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/num.h"

struct cutting {
	const struct ap_cut *cut;
	uint32_t n, parts;
	int64_t *sum; /* [n + 1] of the weights before an item, the least ones of all runs */
	int64_t **own; /* [parts][n + 1] of those in run p */
	uint32_t *low, *high; /* [parts + 1] range of run p's first item; last: n */
	uint32_t *vital; /* [n + 1] the first vital item from here on; n: none */
	int64_t *reached[2]; /* [n + 1] sum - share by first item, runs p and p - 1; or NOWHERE */
};

#define NOWHERE INT64_MIN

static int64_t crossing(const struct cutting *c, uint32_t p, uint32_t i)
{
	return p > 0 && p < c->parts ? c->cut->crossing[p][i] : 0;
}

/* The share of a crossing that counts for each of its two runs. */
static int64_t share(const struct cutting *c, uint32_t p, uint32_t i)
{
	return crossing(c, p, i) / 2 * c->cut->halves;
}

/* Does run p, of items first to end - 1, have the vital item that it needs? */
static bool satisfied(const struct cutting *c, uint32_t p, uint32_t first, uint32_t end)
{
	return (p < c->cut->wanting ? c->vital[first] : first) < end;
}

/* Can runs of cost `most` hold the weight? */
static bool holds(int64_t weight, uint32_t runs, int64_t most)
{
	return weight == 0 || (weight - 1) / runs < most;
}

/* Sets low and high for runs of cost `most`, crossings ignored; false if there are none. */
static bool bound_firsts(struct cutting *c, int64_t most)
{
	uint32_t low = 0, high = 0;

	if (!holds(c->sum[c->n], c->parts, most))
		return false;
	c->low[0] = c->high[0] = 0;
	c->low[c->parts] = c->high[c->parts] = c->n;
	for (uint32_t p = 1; p < c->parts; p++) {
		uint32_t last = c->n - (c->parts - p);

		low = low < p ? p : low;
		while (low < last && !holds(c->sum[c->n] - c->sum[low], c->parts - p, most))
			low++;
		high = high < p ? p : high;
		while (high < last && holds(c->sum[high + 1], p, most))
			high++;
		if (high < low)
			return false;
		c->low[p] = low;
		c->high[p] = high;
	}
	return true;
}

static bool is_enough(struct cutting *c, int64_t most)
{
	if (!bound_firsts(c, most))
		return false;
	c->reached[0][0] = 0;
	for (uint32_t p = 1; p <= c->parts; p++) {
		const int64_t *before = c->reached[(p - 1) % 2];
		int64_t *now = c->reached[p % 2], best = NOWHERE;
		uint32_t i = c->low[p - 1];
		bool any = false;

		for (uint32_t j = c->low[p]; j <= c->high[p]; j++) {
			int64_t cost = share(c, p, j);

			for (; satisfied(c, p - 1, i, j) && i <= c->high[p - 1]; i++)
				best = before[i] > best ? before[i] : best;
			now[j] = NOWHERE;
			if (best == NOWHERE || c->own[p - 1][j] + cost - best > most)
				continue;
			now[j] = c->own[p < c->parts ? p : p - 1][j] - cost;
			any = true;
		}
		if (!any)
			return false;
	}
	return true;
}

static int64_t least_most(struct cutting *c)
{
	int64_t low = c->sum[c->n] / c->parts, high = low + 1;

	while (!is_enough(c, high)) {
		low = high + 1;
		high *= 2;
	}
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (is_enough(c, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t r;

	return ap_add(a, b, &r) ? r : INT64_MAX;
}

struct begin { /* of a run: its item, and sum + share there, for the run that ends before it */
	int64_t end;
	uint32_t item;
};

struct layer { /* of run p: for each first item, the best first item of the next run */
	int64_t *cost; /* [high - low + 1] crossings to the end; INT64_MAX: impossible */
	uint32_t *next;
};

/* A tree of prefixes: the least cost among the first k begins, of those put in; ties: the one put
 * in last. */
struct least {
	uint32_t n;
	const struct begin *begin; /* ascending */
	uint32_t *rank; /* of each begin's item, from 1 */
	int64_t *cost; /* [n + 1] */
	uint32_t *item;
};

static int by_end(const void *x, const void *y)
{
	const struct begin *a = x, *b = y;

	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return (a->item > b->item) - (a->item < b->item);
}

static void least_init(struct ap_ctx *ctx, const struct cutting *c, uint32_t p, struct least *out)
{
	uint32_t low = c->low[p], n = c->high[p] - low + 1;
	struct begin *begin = AP_NEW_N(ctx->scratch, struct begin, n);

	*out = (struct least){.n = n, .begin = begin};
	out->rank = AP_NEW_N(ctx->scratch, uint32_t, n);
	out->cost = AP_NEW_N(ctx->scratch, int64_t, n + 1);
	out->item = AP_NEW_N(ctx->scratch, uint32_t, n + 1);
	for (uint32_t k = 0; k < n; k++) {
		begin[k] = (struct begin){c->own[p - 1][low + k] + share(c, p, low + k), low + k};
		out->cost[k + 1] = INT64_MAX;
	}
	qsort(begin, n, sizeof *begin, by_end);
	for (uint32_t k = 0; k < n; k++)
		out->rank[begin[k].item - low] = k + 1;
}

static void least_put(struct least *t, uint32_t rank, int64_t cost, uint32_t item)
{
	for (; rank <= t->n; rank += rank & -rank)
		if (cost <= t->cost[rank]) {
			t->cost[rank] = cost;
			t->item[rank] = item;
		}
}

/* The least cost of begins with at most this end; INT64_MAX if none. */
static int64_t least_upto(const struct least *t, int64_t end, uint32_t *item)
{
	uint32_t low = 0, high = t->n;
	int64_t cost = INT64_MAX;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->begin[middle].end <= end)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low > 0; low -= low & -low)
		if (t->cost[low] < cost || (t->cost[low] == cost && t->item[low] < *item)) {
			cost = t->cost[low];
			*item = t->item[low];
		}
	return cost;
}

/* As the first item of run p goes down, the begins of run p + 1 that become possible are put in. */
static void fill_layer(struct ap_ctx *ctx, const struct cutting *c, uint32_t p, int64_t most,
	const struct layer *after, struct layer *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t low = c->low[p], next_low = c->low[p + 1], j = c->high[p + 1] + 1;
	struct least ends;

	least_init(ctx, c, p + 1, &ends);
	for (uint32_t i = c->high[p] + 1; i-- > low;) {
		int64_t rest;

		while (j > next_low && satisfied(c, p, i, j - 1)) {
			if (after->cost[--j - next_low] < INT64_MAX)
				least_put(&ends, ends.rank[j - next_low], after->cost[j - next_low], j);
		}
		rest = least_upto(&ends, most + c->own[p][i] - share(c, p, i), &out->next[i - low]);
		out->cost[i - low] = rest == INT64_MAX ? rest : add(rest, crossing(c, p, i));
	}
	ap_arena_release(ctx->scratch, mark);
}

static struct layer new_layer(struct ap_ctx *ctx, const struct cutting *c, uint32_t p)
{
	uint32_t n = c->high[p] - c->low[p] + 1;

	return (struct layer){AP_NEW_N(ctx->scratch, int64_t, n), AP_NEW_N(ctx->scratch, uint32_t, n)};
}

bool ap_cut_possible(const struct ap_cut *cut)
{
	uint32_t i = 0, found = 0;

	for (; i < cut->n && found < cut->wanting; i++)
		found += !cut->vital || cut->vital[i];
	return found == cut->wanting && cut->n - i >= cut->parts - cut->wanting;
}

/* Sets sum and own. */
static void add_up(struct ap_ctx *ctx, struct cutting *c)
{
	const struct ap_cut *cut = c->cut;

	c->own = AP_NEW_N(ctx->scratch, int64_t *, c->parts);
	for (uint32_t p = 0; p < c->parts; p++) {
		if (!cut->own || (p > 0 && cut->own[p] == cut->own[p - 1])) {
			c->own[p] = p > 0 ? c->own[p - 1] : c->sum;
			continue;
		}
		c->own[p] = AP_NEW_N(ctx->scratch, int64_t, c->n + 1);
		for (uint32_t i = 0; i < c->n; i++)
			c->own[p][i + 1] = c->own[p][i] + cut->own[p][i];
	}
	for (uint32_t i = 0; i < c->n; i++) {
		int64_t least = cut->own ? cut->own[0][i] : cut->weight[i];

		for (uint32_t p = 1; p < c->parts && cut->own; p++)
			least = cut->own[p][i] < least ? cut->own[p][i] : least;
		c->sum[i + 1] = c->sum[i] + least;
	}
}

void ap_cut_even(struct ap_ctx *ctx, const struct ap_cut *cut, uint32_t *first)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct cutting c = {.cut = cut, .n = cut->n, .parts = cut->parts};
	int64_t most;
	struct layer *layer;

	assert(c.parts >= 1 && c.parts <= c.n && ap_cut_possible(cut));
	c.vital = AP_NEW_N(ctx->scratch, uint32_t, c.n + 1);
	c.vital[c.n] = c.n;
	for (uint32_t i = c.n; i-- > 0;)
		c.vital[i] = !c.cut->vital || c.cut->vital[i] ? i : c.vital[i + 1];
	c.sum = AP_NEW_N(ctx->scratch, int64_t, c.n + 1);
	c.low = AP_NEW_N(ctx->scratch, uint32_t, c.parts + 1);
	c.high = AP_NEW_N(ctx->scratch, uint32_t, c.parts + 1);
	for (int k = 0; k < 2; k++)
		c.reached[k] = AP_NEW_N(ctx->scratch, int64_t, c.n + 1);
	add_up(ctx, &c);
	most = least_most(&c);
	layer = AP_NEW_N(ctx->scratch, struct layer, c.parts + 1);
	bound_firsts(&c, most);
	layer[c.parts] = new_layer(ctx, &c, c.parts);
	for (uint32_t p = c.parts; p-- > 0;) {
		layer[p] = new_layer(ctx, &c, p);
		fill_layer(ctx, &c, p, most, &layer[p + 1], &layer[p]);
	}
	first[0] = 0;
	for (uint32_t p = 0; p + 1 < c.parts; p++)
		first[p + 1] = layer[p].next[first[p] - c.low[p]];
	ap_arena_release(ctx->scratch, mark);
}

/* Runs whose time depends on memory. */

#define MOST_BEGINS 256
#define NOWHERE_S 1e300

struct sums { /* of a way, before an item */
	double *time_s; /* [n + 1] */
	int64_t *held, *each;
};

struct mixing {
	const struct ap_cut *cut;
	const struct ap_cut_ways *ways;
	struct sums *sum; /* [nway] */
	uint32_t *vital; /* [n + 1] the first vital item from here on */
	uint32_t nbegin, *begin; /* items at which runs may begin, ascending; the last: n */
};

double ap_cut_mix_s(uint32_t nway, const double *time_s, const double *bytes, double limit)
{
	double best = NOWHERE_S, least = bytes[0];

	for (uint32_t g = 0; g < nway; g++) {
		least = bytes[g] < least ? bytes[g] : least;
		if (bytes[g] <= limit && time_s[g] < best)
			best = time_s[g];
	}
	if (least > limit)
		return AP_CUT_MISFIT_S * (1 + least / (limit > 1 ? limit : 1));
	for (uint32_t g = 0; g < nway; g++)
		for (uint32_t h = 0; h < nway; h++) {
			double mixed;

			if (bytes[g] > limit || bytes[h] <= limit || time_s[h] >= best)
				continue;
			mixed = (limit - bytes[g]) / (bytes[h] - bytes[g]);
			mixed = time_s[g] + (time_s[h] - time_s[g]) * mixed;
			best = mixed < best ? mixed : best;
		}
	return best;
}

static double mixed_s(const struct mixing *m, uint32_t p, uint32_t first, uint32_t end)
{
	const struct ap_cut_ways *w = m->ways;
	double time_s[AP_CUT_WAYS], bytes[AP_CUT_WAYS];

	for (uint32_t g = 0; g < w->nway; g++) {
		const struct sums *s = &m->sum[g];
		int64_t each = s->each[end] - s->each[first] + (p > 0 ? w->way[g].border : 0);

		time_s[g] = s->time_s[end] - s->time_s[first];
		bytes[g] = (double)(s->held[end] - s->held[first] + w->way[g].once) +
			(double)each * (double)w->in_flight[p];
	}
	return ap_cut_mix_s(w->nway, time_s, bytes, (double)w->limit[p]);
}

static void add_sums(struct ap_ctx *ctx, struct mixing *m)
{
	uint32_t n = m->cut->n;

	m->sum = AP_NEW_N(ctx->scratch, struct sums, m->ways->nway);
	for (uint32_t g = 0; g < m->ways->nway; g++) {
		const struct ap_cut_way *w = &m->ways->way[g];
		struct sums *s = &m->sum[g];

		s->time_s = AP_NEW_N(ctx->scratch, double, n + 1);
		s->held = AP_NEW_N(ctx->scratch, int64_t, n + 1);
		s->each = AP_NEW_N(ctx->scratch, int64_t, n + 1);
		for (uint32_t i = 0; i < n; i++) {
			s->time_s[i + 1] = s->time_s[i] + w->time_s[i];
			s->held[i + 1] = s->held[i] + w->held[i];
			s->each[i + 1] = s->each[i] + w->each[i];
		}
	}
}

/* All items if they are few. */
static void choose_begins(struct ap_ctx *ctx, struct mixing *m)
{
	const struct ap_cut *cut = m->cut;
	const double *time_s = m->sum[0].time_s;
	bool all = cut->n <= MOST_BEGINS || time_s[cut->n] <= 0 || cut->parts > MOST_BEGINS / 4;
	uint32_t last = UINT32_MAX;

	m->begin = AP_NEW_N(ctx->scratch, uint32_t, cut->n + 1);
	m->begin[m->nbegin++] = 0;
	for (uint32_t i = 1; i < cut->n; i++) {
		uint32_t stretch = (uint32_t)(time_s[i] / time_s[cut->n] * MOST_BEGINS);
		const int64_t *sends = cut->parts > 1 ? cut->crossing[1] : NULL;

		if (all || stretch != last) {
			m->begin[m->nbegin++] = i;
			last = stretch;
		} else if (sends && sends[i] < sends[m->begin[m->nbegin - 1]]) {
			m->begin[m->nbegin - 1] = i;
		}
	}
	m->begin[m->nbegin] = cut->n;
}

/* With its share of the crossings. NOWHERE_S if it lacks the vital item that it needs. */
static double run_s(const struct mixing *m, uint32_t p, uint32_t first, uint32_t end)
{
	const struct ap_cut *cut = m->cut;
	int64_t share = 0;

	if ((p < cut->wanting ? m->vital[first] : first) >= end)
		return NOWHERE_S;
	if (p > 0)
		share += cut->crossing[p][first] / 2 * cut->halves;
	if (p + 1 < cut->parts)
		share += cut->crossing[p + 1][end] / 2 * cut->halves;
	return mixed_s(m, p, first, end) + (double)share * m->ways->crossing_s;
}

struct ending { /* a run that ends before a begin */
	double most_s; /* of all runs up to it; NOWHERE_S: there are none */
	int64_t sends; /* of all crossings up to it */
	uint32_t from; /* the begin of the run */
};

/* Fills end[p * (nbegin + 1) + b] with the best runs 0 to p of the items before begin b: by the slowest, or
 * if bound_s is given, of those that are not slower, by the crossings. */
static void fill_endings(const struct mixing *m, double bound_s, struct ending *end)
{
	const struct ap_cut *cut = m->cut;
	uint32_t n = m->nbegin + 1;
	bool known = bound_s < NOWHERE_S;

	for (uint32_t p = 0; p < cut->parts; p++)
		for (uint32_t b = 1; b < n; b++) {
			struct ending *best = &end[p * n + b];

			*best = (struct ending){NOWHERE_S, INT64_MAX, 0};
			if ((p + 1 == cut->parts) != (b == m->nbegin))
				continue;
			for (uint32_t a = b; a-- > 0;) {
				const struct ending *before = p > 0 ? &end[(p - 1) * n + a] : NULL;
				struct ending now = {0, 0, a};

				if (p == 0 ? a > 0 : a == 0)
					continue;
				if (mixed_s(m, p, m->begin[a], m->begin[b]) > fmin(bound_s, best->most_s))
					break; /* and the longer ones are slower */
				now.most_s = run_s(m, p, m->begin[a], m->begin[b]);
				if (p > 0) {
					now.most_s = fmax(now.most_s, before->most_s);
					now.sends = before->sends == INT64_MAX ? INT64_MAX
						: add(before->sends, cut->crossing[p][m->begin[a]]);
				}
				if (now.most_s > bound_s || now.most_s >= NOWHERE_S)
					continue;
				if (known ? now.sends >= best->sends : now.most_s >= best->most_s)
					continue;
				*best = now;
				best->most_s = known ? bound_s : now.most_s;
			}
		}
}

bool ap_cut_within(struct ap_ctx *ctx, const struct ap_cut *cut, const struct ap_cut_ways *ways,
	uint32_t *first)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct mixing m = {.cut = cut, .ways = ways};
	struct ending *end;
	uint32_t n, b;
	bool any;

	assert(cut->parts >= 1 && cut->parts <= cut->n && ap_cut_possible(cut));
	assert(ways->nway >= 1 && ways->nway <= AP_CUT_WAYS);
	m.vital = AP_NEW_N(ctx->scratch, uint32_t, cut->n + 1);
	m.vital[cut->n] = cut->n;
	for (uint32_t i = cut->n; i-- > 0;)
		m.vital[i] = !cut->vital || cut->vital[i] ? i : m.vital[i + 1];
	add_sums(ctx, &m);
	choose_begins(ctx, &m);
	n = m.nbegin + 1;
	end = AP_NEW_N(ctx->scratch, struct ending, (size_t)cut->parts * n);
	fill_endings(&m, NOWHERE_S, end);
	any = end[(cut->parts - 1) * n + m.nbegin].most_s < NOWHERE_S;
	if (any)
		fill_endings(&m, end[(cut->parts - 1) * n + m.nbegin].most_s, end);
	b = m.nbegin;
	for (uint32_t p = cut->parts; any && p-- > 0;) {
		b = end[p * n + b].from;
		first[p] = m.begin[b];
	}
	ap_arena_release(ctx->scratch, mark);
	return any;
}
