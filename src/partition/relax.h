/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that share layers out in fractions: the least step of those is a bound of the others'. A bundle of
 * paths through the schedule (partition/replay.h) is a cost of each layer by part and kind, and so is each
 * limit; the least that the longest of some bundles can be is a linear program (partition/simplex.h), whose
 * solution says which paths to look at next. Its multipliers mix bundles and limits to one cost, of which the
 * least is computed anew, rounded down: it is a bound whatever the program came to.
 */
#ifndef AP_PARTITION_RELAX_H
#define AP_PARTITION_RELAX_H

#include "partition/options.h"

struct ap_relax;

/* Of the degrees from `from` to `to` - 1, which are one unless they may differ by stage. */
struct ap_relax *ap_relax_create(struct ap_ctx *ctx, const struct ap_partition *p, struct ap_options *c,
	struct ap_replay *replay, uint32_t from, uint32_t to);

#define AP_RELAX_NONE (INT64_MAX / 4) /* no plan */

/* A bound of the objective in ticks; one above `most` ends it. AP_RELAX_NONE: no plan keeps the limits of
 * memory, not even in fractions. Limits, in steps of a replay: work, and `whole`, which is spent beside it on
 * telling plans apart by the whole layers of their parts; 0: they may be fractions. */
int64_t ap_relax_bound(struct ap_relax *x, int64_t most, uint64_t work, uint64_t whole);

/* Some plan keeps the limits of memory, and a bound above so much, at least the `most` of ap_relax_bound(),
 * may be less than it could be. Before ap_relax_bound(). */
void ap_relax_hurry(struct ap_relax *x, int64_t plenty);

/* Is the bound less than it could be? */
bool ap_relax_hurried(const struct ap_relax *x);

/* The layers of the body, [parts], in the fastest plan in fractions that was met. After ap_relax_bound(). */
const double *ap_relax_layers(const struct ap_relax *x);

uint64_t ap_relax_work(const struct ap_relax *x); /* so far */

#endif
