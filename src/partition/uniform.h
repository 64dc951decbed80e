/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uniform plans whose parts have known numbers of layers: all there is to choose is how many layers of each
 * part take each kind, so every choice is tried, the exact way.
 */
#ifndef AP_PARTITION_UNIFORM_H
#define AP_PARTITION_UNIFORM_H

#include "partition/options.h"

struct ap_uniform { /* the best of them */
	int64_t value; /* of the objective, in ticks; -1: none fits */
	const int64_t *number; /* [nkind] as of a plan */
	const uint32_t *kind; /* [layers of all runs] */
	const int64_t *first; /* [parts + 1] */
};

/* Does the problem have only such plans, and not too many? */
bool ap_uniform_is(const struct ap_partition *p);

/* Those of a degree. Adds its work. In the arena. O(choices *
 * (layers + replay)). */
void ap_uniform_best(struct ap_ctx *ctx, const struct ap_partition *p, const struct ap_options *c,
	struct ap_replay *replay, uint32_t degree, uint64_t *work, struct ap_uniform *out);

#endif
