/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings that are decided together, as points: degrees of parallelism, stages, segments, schedule,
 * micro-batches, recomputation and how parameters are dealt. Knows numbers only, neither graph nor machine.
 */
#ifndef AP_DECISION_SPACE_H
#define AP_DECISION_SPACE_H

#include "base/choices.h"
#include "base/ctx.h"
#include "decision/language.h"

#define AP_DECISION_MOST_MICRO 2048 /* micro-batches, where their number is not given */

struct ap_decision_space {
	const struct ap_executor_language *language;
	int64_t devices, batch; /* batch 0: the graph has none */
	int64_t layers; /* one behind the other; 0: none */
	int64_t experts; /* 0: none */
	int64_t most_tp, most_cp;
	/* What a setting may be; n 0: whatever divides. */
	struct ap_choices pp, vpp, dp, tp, cp, ep, etp, sp, mbs, micro_batches;
	struct ap_choices scheduler; /* rows of schedulers.def; n 0: those of the language */
	struct ap_choices level; /* 0: nothing is dealt; 1 to 3; n 0: those of the language */
	size_t nrecompute;
	const char *const *recompute; /* as --recompute takes them */
};

struct ap_decision_point {
	int64_t pp, vpp, micro_batches;
	int64_t dp, tp, cp, ep, etp, mbs;
	int scheduler; /* row of schedulers.def */
	int level;
	int recompute; /* index in the space's */
	bool sp;
};

/*
 * Emits the points of a space, in the order in which equals are preferred: by stages, segments,
 * micro-batches, level, recomputation, then tp, cp, ep. dp * tp * cp * pp are the devices,
 * dp * mbs * micro_batches the batch, in at most AP_DECISION_MOST_MICRO micro-batches unless they are given.
 * Layers divide evenly into parts, unless there are fewer than stages or stages are given; segments are as
 * many as the scheduler takes. O(points * divisors).
 */
void ap_decision_each(struct ap_ctx *ctx, const struct ap_decision_space *s,
	void (*emit)(void *user, const struct ap_decision_point *p), void *user);

#endif
