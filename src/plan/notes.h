/* SPDX-License-Identifier: Apache-2.0 */
/* Notes on settings of the step that change nothing in a plan, with the reason. */
#ifndef AP_PLAN_NOTES_H
#define AP_PLAN_NOTES_H

#include "plan/plan.h"

/* For a plan with parameters and buckets: a parallel optimizer that deals nothing, settings of
 * gradients if none are exchanged, flags that only other modes or operators read, fusion positions
 * past the end. */
void ap_plan_notes(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
