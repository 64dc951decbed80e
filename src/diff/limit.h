/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on figures of plans, for use in scripts:
 *   CONDITION[,CONDITION..], each METRIC OPERATOR [+|-]NUMBER[UNIT]
 * "step_time>0.5s" is about one plan. With a sign it is about two: "step_time>+2%" holds if the new
 * plan takes over two per cent longer than the old one, "memory<-1GB" if it needs over 1 GiB
 * less. */
#ifndef AP_DIFF_LIMIT_H
#define AP_DIFF_LIMIT_H

#include "planfile/plan_read.h"

struct ap_metric;

struct ap_limit {
	const char *text; /* "step_time>+2%", without blanks */
	const struct ap_metric *metric;
	enum ap_limit_op { AP_ABOVE, AP_AT_LEAST, AP_BELOW, AP_AT_MOST } op;
	bool change; /* against the old plan */
	bool share; /* value is a share of another figure; in a change, of the old value */
	double value; /* seconds, bytes, or 0.02 for 2% */
};

/* Parses a list of conditions, in order. Returns AP_USAGE, with the position in the text and what
 * is expected; option: its name in messages. */
enum ap_status ap_limits_parse(struct ap_ctx *ctx, const char *option, const char *text, uint32_t *n,
	const struct ap_limit **out);

struct ap_verdict {
	const char *text; /* the condition */
	const char *metric, *was, *is; /* "step time", values for display; was: "" if unused */
	const char *note; /* "+10.2 %", "96.9 % of 32.0 GiB"; "": none */
	double was_number, is_number; /* NaN if unused */
	bool holds;
};

/* Judges plan `is`, against `was` for conditions on changes (NULL if there are none). Returns
 * AP_MEANING if a plan lacks the figure. */
enum ap_status ap_limit_judge(struct ap_ctx *ctx, const struct ap_limit *limit,
	const struct ap_saved *was, const struct ap_saved *is, struct ap_verdict *out);

#endif
