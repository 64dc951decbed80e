/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the step that change nothing in the plan at hand, and why: a note each. */
#ifndef AP_PLAN_NOTES_H
#define AP_PLAN_NOTES_H

#include "plan/plan.h"

/* Of a plan with parameters and buckets: the parallel optimizer that deals nothing, settings of gradients
 * that are not exchanged, flags that are read in other modes or of other operators only, positions of
 * fusion past the end. */
void ap_plan_notes(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
