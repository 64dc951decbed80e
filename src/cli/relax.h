/* SPDX-License-Identifier: Apache-2.0 */
/* Other settings under which a plan fits the memory, and how many devices it takes. */
#ifndef AP_CLI_RELAX_H
#define AP_CLI_RELAX_H

#include "cli/inputs.h"

/*
 * After a search that proved that nothing fits: notes that say what takes the room, and which other
 * settings would fit, nearest first, each with the memory of a plan that was found under it. in: as
 * searched.
 */
void ap_relax_report(struct ap_run *run, const struct ap_sources *src, const struct ap_inputs *in);

/*
 * --min-devices: the least number of devices of this kind for which a plan fits under the settings as
 * they are. Counts are tried as servers hold them: 1, 2, 4, ... up to a server, then whole servers.
 * Writes what was found to standard output; AP_INFEASIBLE where no number up to the most does.
 */
enum ap_status ap_relax_min_devices(struct ap_run *run, const struct ap_sources *src);

#endif
