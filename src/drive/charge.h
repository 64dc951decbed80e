/* SPDX-License-Identifier: Apache-2.0 */
/* What an objective charges of the gradient exchange: searches assume that a part of it is hidden and that
 * buckets are full, and also look for the best plan without one of these assumptions. */
#ifndef AP_DRIVE_CHARGE_H
#define AP_DRIVE_CHARGE_H

#include "plan/plan.h"
#include "table/table.h"

enum ap_charge {
	AP_CHARGE_USUAL, /* the objective that plans state */
	AP_CHARGE_ALL, /* the whole gradient exchange is exposed */
	AP_CHARGE_ALONE, /* each exchange has its own latency, as if there were no buckets */
	AP_CHARGE_COUNT
};

/* The table's problem at a charge, in the run arena. */
struct ap_problem ap_charged_problem(struct ap_ctx *ctx, const struct ap_table *t, enum ap_charge charge);

/* A plan's objective at a charge, and what it has more for an operator than the usual one; quantised. */
double ap_charged_objective_s(const struct ap_plan *p, enum ap_charge charge);
double ap_charged_more_s(const struct ap_op_cost *cost, const struct ap_step *step, enum ap_charge charge);

/* Text for people, after "the objective": "" for the usual one. */
const char *ap_charge_text(enum ap_charge charge);

#endif
