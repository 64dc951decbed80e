/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plan file against itself: its form, and values that follow from others. */
#ifndef AP_PLANFILE_PLAN_CHECK_H
#define AP_PLANFILE_PLAN_CHECK_H

#include "base/json.h"

/* Checks a document's form (planfile/plan_form.h) and, if right, each rule of plan_rules.def.
 * Returns AP_MEANING after reporting every fault with its location. O(document). */
enum ap_status ap_plan_check(struct ap_ctx *ctx, const struct ap_json *doc);

#endif
