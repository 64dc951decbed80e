/* SPDX-License-Identifier: Apache-2.0 */
/* What an executor can be told: the settings among which a plan for it is decided. */
#ifndef AP_DECISION_LANGUAGE_H
#define AP_DECISION_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>

struct ap_executor_language {
	const char *route; /* --executor */
	const char *schedulers[4]; /* that it runs, NULL-terminated; of one segment and of several */
	unsigned levels; /* of dealt parameters, a bit each: 1 << 0 nothing is dealt, .. 1 << 3 weights too */
	const char *recompute[4]; /* words for all layers, the least first, NULL-terminated */
	bool sums; /* that they are dealt (sp) */
	bool fills; /* a pipeline has at least as many micro-batches as stages */
	bool whole_rounds; /* stages with several segments divide the micro-batches */
	bool experts_by_sequence; /* experts and tp want what lies between dealt by tokens (sp) */
};

/* The language of a route; every route has one. */
const struct ap_executor_language *ap_executor_language_of(const char *route);

/* Row i; NULL past the end. */
const struct ap_executor_language *ap_executor_language_at(size_t i);

#endif
