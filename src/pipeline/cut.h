/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a sequence into runs of nearly equal cost. Knows no graph; pure, deterministic. */
#ifndef AP_PIPELINE_CUT_H
#define AP_PIPELINE_CUT_H

#include <stdbool.h>

#include "base/ctx.h"

#define AP_CUT_MOST (INT64_MAX / 8) /* so that all sums fit */

struct ap_cut {
	uint32_t n, parts; /* items; runs, 1..n */
	const int64_t *weight; /* [n] */
	const int64_t *const *crossing; /* [parts][n] [p][i]: cost of a cut between run
	                                   p - 1 and p in front of item i; p, i > 0 */
	int halves; /* of a crossing (0, 1 or 2) that count for each of the runs on its sides */
	const bool *vital; /* [n] the first `wanting` runs need such an item each; NULL: any will do */
	uint32_t wanting;
	const int64_t *const *own; /* [parts][n] weights in a run, where runs differ; NULL: weight, in all */
};

/* Can the runs be as vital and wanting require? O(n). */
bool ap_cut_possible(const struct ap_cut *cut);

/*
 * Cuts the items, in order, into runs, none of them empty. A run costs the weights of its items and
 * its share of the crossings on both sides. The dearest run is as cheap as possible; among such
 * cuts the sum of all crossings is least; among those every cut comes as early as possible. Weights
 * and crossings are at least 0, the sum of the weights in a run and each crossing at most AP_CUT_MOST; the
 * cut is possible. first[p] is the first item of run p. O(n parts log n) at most; less if the cost
 * is nearly even, as most items then cannot begin most runs.
 */
void ap_cut_even(struct ap_ctx *ctx, const struct ap_cut *cut, uint32_t *first);

/*
 * Runs whose time depends on the memory that they have. Each item can run in several ways, each with a time
 * and bytes; a run may mix two ways, a share of it in one and the rest in the other, so its time falls
 * along a line as its bytes rise.
 */
struct ap_cut_ways {
	uint32_t nway; /* 1 to AP_CUT_WAYS */
	const struct ap_cut_way {
		const double *time_s; /* [n] at least 0; as are the bytes */
		const int64_t *held; /* [n] bytes, whatever is in flight */
		const int64_t *each; /* [n] bytes of one in flight */
		int64_t once, border; /* of every run; of every run but the first, for each in flight */
	} *way;
	const int64_t *in_flight, *limit; /* [parts] of a run, and bytes that it may take */
	double crossing_s; /* of one unit of cut.crossing */
};

/* Seconds of work that takes so long, and so many bytes, in each way [1 .. AP_CUT_WAYS], within a limit; a
 * number above AP_CUT_MISFIT_S, which grows with what is needed, if not even the leanest way fits.
 * O(nway^2). */
#define AP_CUT_WAYS 32
#define AP_CUT_MISFIT_S 1e99
double ap_cut_mix_s(uint32_t nway, const double *time_s, const double *bytes, double limit);

/*
 * Cuts as ap_cut_even(), by the times of ways instead of weights, which are ignored: the slowest run is as
 * fast as possible, then the sum of all crossings is least. Where no cut fits, the largest excess over a
 * limit, as a part of it, is as small as possible. Of more than a few hundred items runs begin only at
 * some: of as many stretches of equal time in the first way, where the crossing is least; false if these are
 * too few. O(nway * items), and O(nway^2 * parts * begins^2) at most, mostly nway^2 * begins^2.
 */
bool ap_cut_within(struct ap_ctx *ctx, const struct ap_cut *cut, const struct ap_cut_ways *ways,
	uint32_t *first);

#endif
