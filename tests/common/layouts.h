/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts to try redistributions on: all, and random ones. */
#ifndef TEST_SHARD_LAYOUTS_H
#define TEST_SHARD_LAYOUTS_H

#include "bound.h"
#include "shard/reshard.h"

/* Does every rank's slice under b lie within its slice under a? */
bool layouts_nested(const struct ap_layout *a, const struct ap_layout *b, int64_t ndev);

/* The smallest extents that both layouts divide; doubled where a bit of spare is set. */
void layouts_sizes(const struct ap_layout *a, const struct ap_layout *b, int spare, int64_t *size);

/* All layouts of a tensor of this rank on ndev ranks; at most cap. */
int layouts_all(int rank, int64_t ndev, struct ap_layout *out, int cap);

struct ap_layout layouts_random(int rank, int64_t ndev, uint64_t *seed);

#endif
