/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a pipeline problem that come to mind first, without a search: what an expert would try. */
#ifndef AP_PARTITION_EVEN_H
#define AP_PARTITION_EVEN_H

#include "partition/partition.h"

/*
 * The better of two plans: with the body's layers dealt evenly (those left over to the parts before the
 * last one), and with layers moved from the busiest stage to others until that helps no more; kinds so
 * that each stage takes the least time that fits its memory, of choices of two kinds and one layer in a
 * third, or all stages do where kinds are uniform. Of one degree. *step_s: its objective; if that is not
 * below below_s, it may be less than that of the plan, which is not written then. False: neither fits, or
 * layers that are dealt evenly break the rules of counts. In the run arena. O(slots + parts *
 * kinds^3 * (runs + log layers)) for each layer that is moved.
 */
bool ap_partition_even(struct ap_ctx *ctx, const struct ap_partition *p, double below_s,
	struct ap_partition_plan *out, double *step_s);

/* The body's layers dealt evenly, count[parts], unless the problem gives their numbers. False: they break the
 * rules of counts. */
bool ap_partition_even_counts(const struct ap_partition *p, int64_t *count);

#endif
