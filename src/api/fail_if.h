/* SPDX-License-Identifier: Apache-2.0 */
/* --fail-if: conditions on the figures of plans, on which a run ends with exit code 1. */
#ifndef AP_API_FAIL_IF_H
#define AP_API_FAIL_IF_H

#include "api/settings.h"
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

#endif
