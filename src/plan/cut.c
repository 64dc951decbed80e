/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cut.h"

#include <assert.h>

#include "base/arena.h"
#include "base/num.h"

struct cutting {
	uint32_t n, parts;
	const int64_t *crossing;
	int64_t *sum; /* [n + 1] weights of the items before */
	int64_t most; /* weight of a run */
	uint32_t *low, *high; /* [parts + 1] where run p may begin; the last one: n */
};

/* Runs that are needed where none may be heavier than `most`; at most parts + 1. */
static uint32_t runs_needed(const struct cutting *c, int64_t most)
{
	uint32_t runs = 1, first = 0;

	for (uint32_t i = 0; i < c->n && runs <= c->parts; i++)
		if (c->sum[i + 1] - c->sum[first] > most) {
			first = i;
			runs++;
		}
	return runs;
}

static int64_t least_most(const struct cutting *c, const int64_t *weight)
{
	int64_t low = 0, high = c->sum[c->n];

	for (uint32_t i = 0; i < c->n; i++)
		low = weight[i] > low ? weight[i] : low;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (runs_needed(c, middle) <= c->parts)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Every item between these two has a cut to its left and one to its right, none too heavy. */
static void bound_firsts(struct cutting *c)
{
	c->low[c->parts] = c->high[c->parts] = c->n;
	for (uint32_t p = c->parts; p-- > 0;) {
		uint32_t i = c->low[p + 1] - 1;

		while (i > p && c->sum[c->low[p + 1]] - c->sum[i - 1] <= c->most)
			i--;
		c->low[p] = i > p ? i : p;
	}
	for (uint32_t p = 1; p < c->parts; p++) {
		uint32_t i = c->high[p - 1] + 1, last = c->n - (c->parts - p);

		while (i < last && c->sum[i + 1] - c->sum[c->high[p - 1]] <= c->most)
			i++;
		c->high[p] = i < last ? i : last;
	}
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t r;

	return ap_add(a, b, &r) ? r : INT64_MAX;
}

struct layer { /* of run p: for each first item the best first item of the next run */
	int64_t *cost; /* crossings from here to the end, [high - low + 1]; INT64_MAX: cannot be */
	uint32_t *next;
};

/*
 * The first items of run p + 1 that a run from i reaches slide along as i goes down: those that may
 * still be best wait in a queue, dearest first, and of equal ones only the earliest.
 */
static void fill_layer(struct ap_ctx *ctx, const struct cutting *c, uint32_t p, const struct layer *after,
	struct layer *out)
{
	uint32_t low = c->low[p], high = c->high[p], next_low = c->low[p + 1];
	uint32_t *queue = AP_NEW_N(ctx->scratch, uint32_t, c->high[p + 1] - next_low + 1);
	uint32_t head = 0, tail = 0, j = c->high[p + 1] + 1; /* queue[head] is the best, and the oldest */

	for (uint32_t i = high + 1; i-- > low;) {
		while (j > next_low && j > i + 1) {
			int64_t cost = after->cost[--j - next_low];

			while (tail > head && after->cost[queue[tail - 1] - next_low] >= cost)
				tail--;
			queue[tail++] = j;
		}
		while (head < tail && c->sum[queue[head]] - c->sum[i] > c->most)
			head++;
		out->cost[i - low] = INT64_MAX;
		if (head == tail)
			continue;
		out->next[i - low] = queue[head];
		out->cost[i - low] = after->cost[queue[head] - next_low];
		if (i > 0)
			out->cost[i - low] = add(out->cost[i - low], c->crossing[i]);
	}
}

static struct layer new_layer(struct ap_ctx *ctx, const struct cutting *c, uint32_t p)
{
	uint32_t n = c->high[p] - c->low[p] + 1;

	return (struct layer){AP_NEW_N(ctx->scratch, int64_t, n), AP_NEW_N(ctx->scratch, uint32_t, n)};
}

void ap_cut_even(struct ap_ctx *ctx, uint32_t n, const int64_t *weight, const int64_t *crossing,
	uint32_t parts, uint32_t *first)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct cutting c = {.n = n, .parts = parts, .crossing = crossing};
	struct layer *layer = AP_NEW_N(ctx->scratch, struct layer, parts + 1);

	assert(parts >= 1 && parts <= n);
	c.sum = AP_NEW_N(ctx->scratch, int64_t, n + 1);
	c.low = AP_NEW_N(ctx->scratch, uint32_t, parts + 1);
	c.high = AP_NEW_N(ctx->scratch, uint32_t, parts + 1);
	for (uint32_t i = 0; i < n; i++)
		c.sum[i + 1] = c.sum[i] + weight[i];
	c.most = least_most(&c, weight);
	bound_firsts(&c);
	layer[parts] = new_layer(ctx, &c, parts);
	for (uint32_t p = parts; p-- > 0;) {
		layer[p] = new_layer(ctx, &c, p);
		fill_layer(ctx, &c, p, &layer[p + 1], &layer[p]);
	}
	first[0] = 0;
	for (uint32_t p = 0; p + 1 < parts; p++)
		first[p + 1] = layer[p].next[first[p] - c.low[p]];
	ap_arena_release(ctx->scratch, mark);
}
