/* SPDX-License-Identifier: Apache-2.0 */
/* A run under other settings, which says nothing and keeps nothing: would a plan fit the memory? */
#ifndef AP_CLI_TRIAL_H
#define AP_CLI_TRIAL_H

#include "cli/inputs.h"
#include "cli/options.h"

enum ap_verdict {
	AP_VERDICT_FITS,
	AP_VERDICT_UNKNOWN, /* none was found that does */
	AP_VERDICT_PROVEN_NOT,
	AP_VERDICT_NO_PLAN /* these settings contradict each other, or the network or machine */
};

struct ap_trial {
	enum ap_verdict verdict;
	int64_t bytes; /* of the plan that fits, else of the smallest one met; 0: none */
	bool hopeless; /* what a device needs before anything else is too much */
};

/*
 * What trials may take, in inner steps of a search, which are the same on every machine: what reading a
 * network, making a machine and a pipeline take is known before. NULL in its place: no limit.
 */
struct ap_allowance {
	uint64_t steps; /* left */
	uint64_t most_bytes; /* that a trial may hold */
};

/* Steps and bytes of a run with these settings on a network of so many operators, before any search. */
struct ap_allowance ap_trial_price(const struct ap_options *o, const struct ap_sources *src,
	uint32_t operators);

/* prove: where no plan is found quickly, the exact search decides, as far as it comes. What is more than is
 * left is not tried: AP_VERDICT_UNKNOWN. */
struct ap_trial ap_trial_make(const struct ap_run *run, const struct ap_sources *src,
	const struct ap_options *o, bool prove, struct ap_allowance *left);

#endif
