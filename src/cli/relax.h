/* SPDX-License-Identifier: Apache-2.0 */
/* Other settings under which a plan fits the memory, and how many devices it takes. */
#ifndef AP_CLI_RELAX_H
#define AP_CLI_RELAX_H

#include "cli/inputs.h"

/*
 * Where nothing fits: notes that say what takes the room, and which other settings would fit, nearest
 * first, each with the memory of a plan that was found under them; how many devices would do; else what
 * would together. in: as planned; counts: what was not searched, or NULL; steps: of the search. Takes as much
 * as the run so far, or a third of a second, within the run's limits; whatever runs out, or whoever stops it,
 * what is said by then stays.
 */
void ap_relax_report(struct ap_run *run, const struct ap_sources *src, const struct ap_inputs *in,
	const int32_t *const *counts, uint64_t steps);

struct ap_allowance;

struct ap_devices {
	int64_t fits; /* the least number that does; 0: none was found */
	int64_t memory_bytes; /* of its plan */
	int64_t below; /* the largest number tried below it that does not; 0: none */
	bool proven; /* of that */
	int64_t below_bytes; /* the smallest plan found there; 0: none */
	int64_t server; /* devices of one */
	int64_t usable_bytes; /* of a device */
};

/* The least number of devices of this kind, up to most, for which a plan fits under the settings as they
 * are. Counts are tried as servers hold them: 1, 2, 4, ... up to a server, then whole servers. known: so
 * many do not do, and of fewer only one is tried; left: what may be taken; NULL: no limit, and where no plan
 * is found quickly, the exact search decides. */
enum ap_status ap_relax_devices(struct ap_run *run, const struct ap_sources *src, int64_t most,
	int64_t known, struct ap_allowance *left, struct ap_devices *out);

/* --min-devices: that, up to 65,536 devices, to standard output. AP_INFEASIBLE where none was found,
 * AP_LIMIT where the run was stopped. */
enum ap_status ap_relax_min_devices(struct ap_run *run, const struct ap_sources *src);

#endif
