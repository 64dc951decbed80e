/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on the figures of plans, for those who let a program judge them:
 *   CONDITION[,CONDITION..], each METRIC OPERATOR [+|-]NUMBER[UNIT]
 * "step_time>0.5s" is about one plan; with a sign it is about two: "step_time>+2%" holds where the new
 * one takes longer than the old one by more than two per cent of it, "memory<-1GB" where it needs less
 * than the old one less 1 GiB.
 */
#ifndef AP_DIFF_LIMIT_H
#define AP_DIFF_LIMIT_H

#include "planfile/plan_read.h"

struct ap_metric;

struct ap_limit {
	const char *text; /* "step_time>+2%", without blanks */
	const struct ap_metric *metric;
	enum ap_limit_op { AP_ABOVE, AP_AT_LEAST, AP_BELOW, AP_AT_MOST } op;
	bool change; /* against the old plan */
	bool share; /* value is a part of another figure; of a change, of the old value */
	double value; /* seconds, bytes, 0.02 of 2% */
};

/* The conditions of a list, in its order. AP_USAGE, with the place in the text and what would be right
 * there; option is how messages call it. */
enum ap_status ap_limits_parse(struct ap_ctx *ctx, const char *option, const char *text, uint32_t *n,
	const struct ap_limit **out);

struct ap_verdict {
	const char *text; /* of the condition */
	const char *metric, *was, *is; /* "step time", values for people; was: "" where it plays no part */
	const char *note; /* "+10.2 %", "96.9 % of 32.0 GiB"; "" nothing */
	double was_number, is_number; /* NaN where it plays no part */
	bool holds;
};

/* Judges plan `is`, against `was` where conditions are about changes (NULL: none is). AP_MEANING: a plan
 * does not have the figure. */
enum ap_status ap_limit_judge(struct ap_ctx *ctx, const struct ap_limit *limit,
	const struct ap_saved *was, const struct ap_saved *is, struct ap_verdict *out);

#endif
