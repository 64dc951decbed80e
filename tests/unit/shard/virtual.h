/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual ranks: redistributions are executed on slices of a tensor of distinct numbers. */
#ifndef TEST_SHARD_VIRTUAL_H
#define TEST_SHARD_VIRTUAL_H

#include "bound.h"
#include "shard/reshard.h"

/* Gives every rank its slice under a, runs the steps over the groups of their axes and checks that
 * every rank holds its slice under b; also that each step's sizes are the slices' true ones. */
void virtual_check(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	int64_t ndev, const struct ap_reshard_step *steps, int n);

/* Does every rank's slice under b lie within its slice under a? */
bool virtual_nested(const struct ap_layout *a, const struct ap_layout *b, int64_t ndev);

/* The smallest extents that both layouts divide; doubled where a bit of spare is set. */
void virtual_sizes(const struct ap_layout *a, const struct ap_layout *b, int spare, int64_t *size);

/* All layouts of a tensor of this rank on ndev ranks; at most cap. */
int virtual_layouts(int rank, int64_t ndev, struct ap_layout *out, int cap);

struct ap_layout virtual_random_layout(int rank, int64_t ndev, uint64_t *seed);

#endif
