/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the user about cuts (--pin, --forbid, --same, --rules): read, priced, and named where they
 * conflict. */
#ifndef AP_API_RULES_H
#define AP_API_RULES_H

#include "api/request.h"
#include "shard/constraint.h"

/* Moves the rules of the file that --rules names to the settings pin, forbid and same, behind what is given
 * there; so the plan's echo has them all. AP_USAGE and others, reported with the line. */
enum ap_status ap_rules_merge(struct ap_ctx *ctx, struct ap_settings *io);

/* The rules of settings without a file of rules. AP_USAGE. */
enum ap_status ap_rules_parse(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_constraints *out);

/*
 * What each rule costs: the step of what a search finds without it, the others kept. Sets plan->rule;
 * nothing if there are no rules. A search for each; of more than some none is priced, and told as not
 * looked at.
 */
void ap_rules_price(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	unsigned use, struct ap_plan *plan);

/* Where nothing fits because of rules: a note with a smallest set of them that conflict, or of many one
 * of which none can be left out. Searches with some of them. */
void ap_rules_conflict(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src);

#endif
