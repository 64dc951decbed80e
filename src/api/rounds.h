/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which trials of a decision come next, in rounds whose size does not depend on threads: first all are
 * looked at that may be fastest by what their kin tells, then those that are still open are bounded,
 * then dealt; the least bound first. What is learnt in a round counts from the next one on.
 */
#ifndef AP_API_ROUNDS_H
#define AP_API_ROUNDS_H

#include "api/kin.h"
#include "api/trial.h"

#define AP_ROUND 16 /* trials */

struct ap_rounds {
	uint32_t n;
	struct ap_decision_trial *trial; /* [n] */
	uint32_t nopen, *open; /* [n] trials that may still be the best, or are, ascending; with others,
	                          until the next round is picked */
	double *bound_s; /* [nopen] of these, while they are open; INFINITY: they fit, or are out */
	uint8_t *state; /* [nopen] what else is known of them: see rounds.c */
	struct ap_kins *kins; /* of these */
	uint32_t *group; /* [n] equal for trials with the same degrees, sp and micro-batches */
	int32_t *refused; /* [groups] the trial by which all of the group are refused; -1: none */
	uint32_t best; /* the fastest that fits; AP_NONE: none does yet */
	double below_s; /* only plans that take less are of interest; INFINITY: all */
	int64_t usable_bytes; /* of a device */
	bool prune; /* normally true: trials that cannot fit, or be fastest, are left out */
	bool timed; /* passes add up to a bound: two may not run as one */
	bool learnt; /* trials told something of their kin since the last round was picked; true at first */
	bool refuses; /* groups were refused since then */
};

/* Fills open, group and refused. O(trials). */
void ap_rounds_begin(struct ap_ctx *ctx, struct ap_rounds *r);

struct ap_round {
	uint32_t n, at[AP_ROUND]; /* trials */
};

/* Picks a round, and closes trials that what is known shows to be out. False: nothing is left to do.
 * O(open trials), a few bytes each; what changed since, and trials of whose kin something was learnt, are
 * judged again. */
bool ap_rounds_next(struct ap_ctx *ctx, struct ap_rounds *r, struct ap_round *out);

/* When no such round is left: picks the trials that the bound of all comes from, a few, to be bounded with
 * more work. False: that bound is near the best, or the trial that it comes from was picked often enough.
 * O(open trials). */
bool ap_rounds_press(const struct ap_rounds *r, struct ap_round *out);

/* How many trials are open, and their least bound, INFINITY if there are none. O(open trials). */
uint32_t ap_rounds_left(const struct ap_rounds *r, double *bound_s);

/* Step of the best; below_s: there is none yet. */
double ap_rounds_best_s(const struct ap_rounds *r);

/* Learns what trial i told, and takes it for the best if it fits and is faster, or as fast and before it. */
void ap_rounds_offer(struct ap_rounds *r, uint32_t i, const struct ap_kin_told *told);

/* Trial i is refused, and so are all of its group, which the next round is picked without. */
void ap_rounds_refuse(struct ap_rounds *r, uint32_t i);

#endif
