/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the summary. Private to report/summary*.c. */
#ifndef AP_REPORT_SUMMARY_PARTS_H
#define AP_REPORT_SUMMARY_PARTS_H

#include "plan/plan.h"

struct ap_str;

/* "12.3", rounded, without the locale; and so a part of a whole, "12.3 %". */
void ap_summary_tenths(struct ap_str *out, double v);
void ap_summary_percent(struct ap_str *out, double part, double whole);

/* A line about the pipeline, and a table of its stages; nothing without one. */
void ap_summary_pipeline(struct ap_str *out, const struct ap_plan *p);
void ap_summary_stages(struct ap_str *out, const struct ap_plan *p);

/* The stage that needs most memory, the first of several. */
uint32_t ap_summary_worst_stage(const struct ap_plan *p);

/* The baselines, a line each: of many the best ones. */
void ap_summary_baselines(struct ap_str *out, const struct ap_plan *p);

/* A line about what the route decides, and a table of what costs most; nothing where it decides nothing. */
void ap_summary_route(struct ap_str *out, const struct ap_plan *p);
void ap_summary_differs(struct ap_str *out, const struct ap_plan *p);

#endif
