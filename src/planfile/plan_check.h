/* SPDX-License-Identifier: Apache-2.0 */
/* Does a plan file agree with itself: its form, and what of it follows from the rest of it? */
#ifndef AP_PLANFILE_PLAN_CHECK_H
#define AP_PLANFILE_PLAN_CHECK_H

#include "base/json.h"

/* Holds autopar-plan/1 against its form (planfile/plan_form.h) and, where that is right, each rule of
 * plan_rules.def. AP_MEANING, every fault located. O(document). */
enum ap_status ap_plan_check(struct ap_ctx *ctx, const struct ap_json *doc);

#endif
