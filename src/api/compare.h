/* SPDX-License-Identifier: Apache-2.0 */
/* What changed between two plans or strategies, and conditions on their figures (--fail-if). */
#ifndef AP_API_COMPARE_H
#define AP_API_COMPARE_H

#include "api/outputs.h"
#include "diff/limit.h"

struct ap_fail_if {
	uint32_t n; /* 0: none are given */
	const struct ap_limit *limit;
	uint32_t nchange; /* of them, that compare with an older plan */
};

/* The conditions that the settings give. AP_USAGE. */
enum ap_status ap_fail_if_read(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_fail_if *out);

/*
 * Judges plan `is`, and what became of `was` (NULL: there is none). Every condition that holds is an
 * error that ends the run with AP_DIFFERS, which is also returned; *verdict (may be NULL) receives
 * what all of them, f->n, are like. AP_USAGE where one of the two is no plan, or where a condition needs an
 * older plan and there is none.
 */
enum ap_status ap_fail_if_judge(struct ap_ctx *ctx, const struct ap_fail_if *f, const struct ap_saved *was,
	const struct ap_saved *is, const struct ap_verdict **verdict);

/* Compares two plans, two strategies, or one of each: what changed, onto text, in the form that the
 * settings name. AP_DIFFERS where there is something, and no condition judges it; what holds is an error of
 * to->ctx. */
enum ap_status ap_compare(struct ap_writing *to, const char *old, const char *new, bool color,
	struct ap_str *text);

#endif
