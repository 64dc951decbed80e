/* SPDX-License-Identifier: Apache-2.0 */
/* Finds settings, or a number of devices, under which a plan fits the memory. */
#ifndef AP_API_RELAX_H
#define AP_API_RELAX_H

#include "api/request.h"

/*
 * Explains why nothing fits: notes say what takes the memory, which other settings would fit
 * (nearest first, each with the memory of the plan found), how many devices would do, or else which
 * combination. in: inputs as planned; steps: of the search. Takes at most as long as the run so far
 * or a third of a second, within the run's limits. If stopped or out of anything, notes added so
 * far stay.
 */
void ap_relax_report(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_inputs *in, uint64_t steps);

struct ap_devices {
	int64_t fits; /* the least number that fits; 0 if none was found */
	int64_t memory_bytes; /* memory of the plan for it */
	int64_t below; /* the largest number tried below fits that does not fit; 0 if none */
	bool proven; /* below is proven not to fit */
	int64_t below_bytes; /* memory of the smallest plan found for below; 0 if none */
	int64_t server; /* devices per server */
	int64_t usable_bytes; /* usable memory of a device */
};

/* Finds the least number of devices of this kind, up to 65,536, on which a plan fits under the
 * settings. AP_INFEASIBLE if none was found, AP_LIMIT if it was stopped. */
enum ap_status ap_min_devices(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_devices *out);

#endif
