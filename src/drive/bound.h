/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lower bound on the simulated step. No plan's step is shorter than a path through it (plan/path.h), and
 * what a path takes is a sum over operators and redistributions, so an exact engine finds the plan of
 * which it takes least: the path's length there bounds the step of all plans. It starts with the
 * longest path of the best plan known. Where the plan that it finds has a longer path of its own, paths
 * are mixed, which gives weight to all of them, and the mixture is solved: the largest bound counts.
 * Where a solve is dear, the mixture is first improved among the candidates of the plans met so far.
 * Plans that are found on the way are good ones, and are handed out.
 */
#ifndef AP_DRIVE_BOUND_H
#define AP_DRIVE_BOUND_H

#include "drive/request.h"
#include "plan/make.h"
#include "table/table.h"

struct ap_step_bound {
	double bound_s; /* of the step of every plan of the table that fits the memory; 0: none known */
	uint64_t work;
};

#define AP_MOST_KNOWN 8

/*
 * best: the fastest plan known; known: up to AP_MOST_KNOWN other ones, whose paths are mixed from the start,
 * simulated by maker. known_s: a bound known before, 0 if none: solves within the memory need not be exact
 * beside what it leaves open. found() gets the counts of each plan that a solve among all candidates finds,
 * and of any that is the fastest so far; they are gone after the call. Ends when the bound is within
 * rq->step_gap of the fastest step, when no mixture of the known paths bounds better, or after so much work,
 * of which the first solve may take `first` times as much as all.
 */
void ap_bound_step(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_table *table,
	struct ap_plan_maker *maker, const struct ap_plan *best, const int32_t *const *const *known,
	uint32_t nknown, double known_s, uint64_t work, uint64_t first,
	void (*found)(void *user, const int32_t *const *counts), void *user,
	struct ap_step_bound *out);

#endif
