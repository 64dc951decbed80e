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
	struct ap_choices regathers; /* 0 or 1; n 0: as the language can be told */
	struct ap_choices shard; /* ranks that a parameter is dealt to, -1: all; n 0: see below */
	size_t nblock;
	const int64_t *block; /* [nblock] devices of a server, and of other blocks of links */
	size_t nmix;
	const struct ap_recompute_mix *mix;
	bool by_layer; /* kinds of recomputation, and layers of each part, may be decided layer by layer */
	bool uneven; /* parts may have unequal numbers of layers */
	const char *parts; /* layers of each part, as --hybrid takes them, where they are given; else NULL */
	const char *rest; /* given keys of --hybrid that no point decides, each behind a comma */
};

struct ap_decision_point {
	int64_t pp, vpp, micro_batches;
	int64_t dp, tp, cp, ep, etp, mbs;
	int scheduler; /* row of schedulers.def */
	int level;
	int64_t shard; /* ranks that a parameter is dealt to; 0: all that hold the same */
	bool regathers; /* what is computed again gathers its dealt weights again */
	bool sums_whole; /* gradients are dealt after the last micro-batch, whatever the level */
	int mix; /* index in the space's */
	int kind; /* of all layers, of the mix; -1: any of them */
	bool sp;
	const char *recompute; /* as --recompute takes it, where that is decided; NULL: the kind */
	const char *layers; /* of each part, as --hybrid takes them; NULL: those of the space */
	const char *devices; /* of each stage, as --stage-devices takes them, where they are unequal: then
	                        there are no dp and no mbs; NULL: equal */
};

/*
 * Emits the points of a space, in the order in which equals are preferred: by stages, segments,
 * micro-batches, level, recomputation without gathers and with them, then tp, cp, ep. dp * tp * cp * pp are
 * the devices, dp * mbs * micro_batches the batch, in at most AP_DECISION_MOST_MICRO micro-batches unless
 * they are given.
 * Layers divide evenly into parts, unless stages are given; segments are as many as the scheduler takes.
 * Where parts may be uneven, neither has to divide, and parts may be more than layers by the two that have
 * embedding and head. What is decided layer by layer is a point without a kind, unless its layers can lie in
 * one way and be of one kind only.
 * Parameters are dealt to all ranks that hold the same, or to those of them in one block of links, where
 * that is less: groups between two blocks pay for the outer links, and hold more. So there are at most
 * 1 + nblock times the points.
 * O(points * divisors).
 */
void ap_decision_each(struct ap_ctx *ctx, const struct ap_decision_space *s,
	void (*emit)(void *user, const struct ap_decision_point *p), void *user);

/* The kinds of recomputation of a point's mix, AP_MIX_KINDS, NULL-terminated unless full. */
const char *const *ap_decision_kinds(const struct ap_decision_space *s, const struct ap_decision_point *p);

/* Ranks that a parameter is dealt to, where parameters are dealt. */
int64_t ap_decision_dealt(const struct ap_decision_point *p);

#endif
