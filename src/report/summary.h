/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a plan. */
#ifndef AP_REPORT_SUMMARY_H
#define AP_REPORT_SUMMARY_H

#include "plan/plan.h"

struct ap_str;

/* The summary for people (devices, search status, objective and bound, step time, memory against
 * capacity by kind, gain over the baselines, operators the checkpoint does not pin, the most
 * expensive operators and redistributions), and the same as one JSON object for --json. */
void ap_emit_summary(const struct ap_plan *p, struct ap_str *out);
void ap_emit_summary_json(const struct ap_plan *p, ap_write_fn *write, void *user);

#endif
