/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan of a pipeline quicker by small changes, for a time also by slightly bad ones. Proves nothing.
 * */
#ifndef AP_PARTITION_ANNEAL_H
#define AP_PARTITION_ANNEAL_H

#include "partition/lattice.h"

/* Improves *walk, which may not fit its memory, by so many steps of work, or until it takes at most `enough`.
 * Returns the objective; -1 if no plan that fits was found. The same walk and work give the same answer. */
int64_t ap_anneal(struct ap_ctx *ctx, const struct ap_partition *p, struct ap_lattice *l,
	struct ap_lattice_walk *walk, int64_t enough, uint64_t work);

#endif
