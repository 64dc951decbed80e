/* SPDX-License-Identifier: Apache-2.0 */
/* Other settings under which a plan fits the memory, and how many devices it takes. */
#ifndef AP_API_RELAX_H
#define AP_API_RELAX_H

#include "api/request.h"

/*
 * Where nothing fits: notes that say what takes the room, and which other settings would fit, nearest
 * first, each with the memory of a plan that was found under them; how many devices would do; else what
 * would together. in: as planned; steps: of the search. Takes as much as the run so far, or a third of a
 * second, within the run's limits; whatever runs out, or whoever stops it, what is said by then stays.
 */
void ap_relax_report(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_inputs *in, uint64_t steps);

struct ap_devices {
	int64_t fits; /* the least number that does; 0: none was found */
	int64_t memory_bytes; /* of its plan */
	int64_t below; /* the largest number tried below it that does not; 0: none */
	bool proven; /* of that */
	int64_t below_bytes; /* the smallest plan found there; 0: none */
	int64_t server; /* devices of one */
	int64_t usable_bytes; /* of a device */
};

/* The least number of devices of this kind, up to 65,536, on which a plan fits under the settings as they
 * are. AP_INFEASIBLE where none was found, AP_LIMIT where it was stopped. */
enum ap_status ap_min_devices(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_devices *out);

#endif
