/* SPDX-License-Identifier: Apache-2.0 */
/* What an executor can be told: the settings among which a plan for it is decided. */
#ifndef AP_DECISION_LANGUAGE_H
#define AP_DECISION_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ctx.h"
#include "partition/partition.h"

#define AP_MIX_KINDS 8
#define AP_MIXES 4
#define AP_MODULES 7

/* Kinds of recomputation, as --recompute takes them, that layers of one plan may have. */
struct ap_recompute_mix {
	const char *kind[2][AP_MIX_KINDS]; /* where sums are whole, and where they are dealt (sp): the least
	                                      first, NULL-terminated unless full; in a list each means all
	                                      that those before it mean */
	const char *few[2][AP_MIX_KINDS]; /* those of them that may stand beside one another where weights are
	                                     gathered again for what is computed again, likewise: layers
	                                     differ in more figures then, and there are too many plans of many
	                                     kinds; of a list */
	enum ap_partition_kinds rule; /* of several */
};

struct ap_executor_language {
	const char *route; /* --executor */
	const char *schedulers[4]; /* that it runs, NULL-terminated; of one segment and of several */
	unsigned levels; /* of dealt parameters, a bit each: 1 << 0 nothing is dealt, .. 1 << 3 weights too */
	struct ap_recompute_mix mix[AP_MIXES]; /* without kinds: none */
	const char *modules[AP_MODULES]; /* words of --recompute for all layers, NULL-terminated unless full:
	                                    a mix each; words that mark nothing in the network beside
	                                    those before them are left out */
	unsigned groups; /* levels at which groups of ranks may each have all of a parameter, a bit each */
	bool groups_of_samples; /* but not beside cp */
	bool groups_of_dense; /* nor beside ep */
	bool regathers; /* layers that compute something again may gather its dealt weights again for that, at
	                   levels 1 and 2 */
	bool sums_whole; /* gradients of a pipeline are dealt after its last micro-batch, at any level */
	bool uneven; /* parts of a pipeline may have unequal numbers of layers, and none where the embedding
	                or the head is; else layers divide evenly into stages, given ones as well */
	bool unequal; /* stages may have unequal numbers of devices, where somebody asks (api/unequal.h) */
	bool sums; /* that they are dealt (sp) */
	bool fills; /* a pipeline has at least as many micro-batches as stages */
	bool whole_rounds; /* stages with several segments divide the micro-batches */
	unsigned stage_levels; /* those beside pipeline stages, a bit each; 0: all */
	bool sequences_alone; /* parts of sequences (cp) stand beside neither tp nor stages */
	bool experts_whole; /* experts are not dealt (ep) */
	bool experts_by_sequence; /* experts and tp want what lies between dealt by tokens (sp) */
};

/* The language of a route; every route has one. */
const struct ap_executor_language *ap_executor_language_of(const char *route);

/* What software can be told that works as that of own does, without its limits: generic's language. */
const struct ap_executor_language *ap_executor_language_free(struct ap_ctx *ctx,
	const struct ap_executor_language *own);

/* Row i; NULL past the end. */
const struct ap_executor_language *ap_executor_language_at(size_t i);

#endif
