/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/borders.h"

#include <math.h>

#include "base/arena.h"

struct ap_borders {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	int32_t npart;
	int64_t nbody;
	int64_t *send, *back; /* [nbody + 1] ticks */
};

struct ap_borders *ap_borders_make(struct ap_ctx *ctx, const struct ap_partition *p,
	const struct ap_options *c, uint32_t from, uint32_t to)
{
	struct ap_borders *b = AP_NEW(ctx->arena, struct ap_borders);
	int64_t n = ap_partition_body(p);

	*b = (struct ap_borders){ctx, p, p->nstage * p->nsegment, n, AP_NEW_N(ctx->arena, int64_t, n + 1),
		AP_NEW_N(ctx->arena, int64_t, n + 1)};
	for (int64_t i = 0; i <= n; i++) {
		int64_t most;

		ap_options_least_sends(c, from, to, i, &b->send[i], &b->back[i], &most);
	}
	return b;
}

/* Layers in front of the end of part q: from *from to *to. */
static void find_ends(const struct ap_borders *b, int32_t q, int64_t *from, int64_t *to)
{
	int64_t before = ap_partition_least_before(b->p, q + 1);

	*from = before;
	*to = b->nbody - (ap_partition_least_before(b->p, b->npart) - before);
	if (b->p->counts == AP_COUNTS_EQUAL)
		*from = *to = (q + 1) * b->nbody / b->npart;
	if (b->p->counts == AP_COUNTS_GIVEN) {
		*from = 0;
		for (int32_t i = 0; i <= q; i++)
			*from += b->p->count[i];
		*to = *from;
	}
}

double ap_borders_least(struct ap_borders *b, const int64_t *times, const int64_t *times_back, int64_t *at)
{
	struct ap_mark mark = ap_arena_mark(b->ctx->scratch);
	size_t wide = (size_t)b->nbody + 1;
	/* Of the borders so far, with the last one behind so many layers or fewer. */
	double *least = AP_NEW_N(b->ctx->scratch, double, wide);
	double *next = AP_NEW_N(b->ctx->scratch, double, wide);
	int64_t *last = at ? AP_NEW_N(b->ctx->scratch, int64_t, wide * (size_t)b->npart) : NULL; /* where */
	double sum;

	for (int32_t q = 0; q + 1 < b->npart; q++) {
		int64_t part = q > 0 ? ap_partition_least(b->p, q) : 0, best = 0, low, high;
		double *before = least;

		find_ends(b, q, &low, &high);
		for (int64_t i = 0; i <= b->nbody; i++) {
			next[i] = i < low || i > high || i < part ? INFINITY
				: before[i - part] + (double)times[q] * (double)b->send[i] +
					(double)times_back[q] * (double)b->back[i];
			best = next[i] < next[best] ? i : best;
			next[i] = next[best];
			if (at)
				last[(size_t)q * wide + (size_t)i] = best;
		}
		least = next;
		next = before;
	}
	sum = least[b->nbody];
	for (int32_t q = b->npart - 2; at && q >= 0; q--) {
		int64_t most = q + 2 < b->npart ? at[q + 1] - ap_partition_least(b->p, q + 1) : b->nbody;

		at[q] = last[(size_t)q * wide + (size_t)(most > 0 ? most : 0)];
	}
	ap_arena_release(b->ctx->scratch, mark);
	return sum < INFINITY ? sum : 0;
}

int64_t ap_borders_send(const struct ap_borders *b, int64_t at)
{
	return b->send[at];
}

int64_t ap_borders_send_back(const struct ap_borders *b, int64_t at)
{
	return b->back[at];
}
