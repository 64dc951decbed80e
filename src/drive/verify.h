/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies a finished plan from the rules. */
#ifndef AP_DRIVE_VERIFY_H
#define AP_DRIVE_VERIFY_H

#include "plan/plan.h"

/* Recomputes legality, layouts, groups (by enumerating ranks), objective and memory of a finished
 * plan and compares. AP_INTERNAL, with a message, on any difference. */
enum ap_status ap_verify(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
