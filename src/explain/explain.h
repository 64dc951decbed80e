/* SPDX-License-Identifier: Apache-2.0 */
/* Why a plan is as it is: what its parts take, by the formulas and constants that price them, and what
 * else they could be. Everything is told to a sheet (report/sheet.h). */
#ifndef AP_EXPLAIN_EXPLAIN_H
#define AP_EXPLAIN_EXPLAIN_H

#include "drive/alternatives.h"
#include "plan/plan.h"
#include "report/sheet.h"

struct ap_explaining {
	struct ap_ctx *ctx;
	struct ap_sheet *sheet;
	const struct ap_plan *plan;
	const struct ap_alternatives_report *others; /* of the operators that are asked for, or of all */
};

/* An operator; folded: its name with those of others that lie alike, n in all. others has it, with all
 * its cuts simulated that it asks for. */
void ap_explain_operator(const struct ap_explaining *x, ap_id node, const char *folded, uint32_t n);

/* A pipeline stage, by number; the device group without a pipeline is stage 0. */
void ap_explain_stage(const struct ap_explaining *x, uint32_t stage);

/* A tensor: how it lies, who makes and reads it, what is sent of it. */
void ap_explain_tensor(const struct ap_explaining *x, ap_id tensor);

/* All collectives of a kind. */
void ap_explain_collective(const struct ap_explaining *x, enum ap_coll kind);

struct ap_explained_baseline {
	const char *name;
	struct ap_prediction prediction;
	bool fits;
	const char *why_not; /* there is no such plan; NULL: there is */
};

/* The plan as a whole: what dominates, the decisions that matter most (others has all operators), and
 * what the baselines take beside it. */
void ap_explain_plan(const struct ap_explaining *x, const struct ap_explained_baseline *baseline, uint32_t n);

/* The strategy vectors of counts, "[8,1],[1,8]", and ", dealt" where sums are; in the run arena. */
const char *ap_explain_cut(struct ap_ctx *ctx, const struct ap_bound *b, const int32_t *count, int64_t ndev);

#endif
