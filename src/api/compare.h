/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a plan, compares two plans or strategies, and judges conditions on their figures (--fail-if). */
#ifndef AP_API_COMPARE_H
#define AP_API_COMPARE_H

#include "api/outputs.h"
#include "diff/limit.h"

struct ap_fail_if {
	uint32_t n; /* 0 if none are given */
	const struct ap_limit *limit;
	uint32_t nchange; /* how many of them compare with an older plan */
};

/* Reads the conditions in the settings. AP_USAGE. */
enum ap_status ap_fail_if_read(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_fail_if *out);

/* Judges plan `is` and its change since `was` (NULL: none). Each condition that holds is an error,
 * and the return value is then AP_DIFFERS; *verdict (may be NULL) receives the f->n verdicts.
 * AP_USAGE if `is` or `was` is no plan, or if a condition needs an older plan that is not given. */
enum ap_status ap_fail_if_judge(struct ap_ctx *ctx, const struct ap_fail_if *f, const struct ap_saved *was,
	const struct ap_saved *is, const struct ap_verdict **verdict);

/* Writes a plan onto text as report/show.h has it. AP_MEANING if the file is no plan. */
enum ap_status ap_show_plan(struct ap_writing *to, const char *path, struct ap_str *text);

/* Compares two plans, two strategies, or one of each, and writes the changes onto text in the
 * format that the settings name. AP_DIFFERS if there are changes and no conditions are given; each
 * condition that holds is an error of to->ctx. */
enum ap_status ap_compare(struct ap_writing *to, const char *old, const char *new, bool color,
	struct ap_str *text);

#endif
