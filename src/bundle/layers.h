/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of a network, as frameworks number them, and where a plan runs and recomputes them: cells
 * NAME.0, NAME.1, .., of all such families the one with the most operators. Counts of layers are per part of
 * the pipeline: [segment * nstage + stage].
 */
#ifndef AP_BUNDLE_LAYERS_H
#define AP_BUNDLE_LAYERS_H

#include "plan/plan.h"

struct ap_layer_again { /* an operator of layers that is recomputed in layers that are not, as a whole */
	const char *name; /* in its layer: "attention.softmax" */
	bool shared; /* some layer has others of this name, which are not recomputed */
	const int64_t *part; /* layers of each part */
};

struct ap_layers {
	const char *name; /* "network.blocks"; NULL: no cells are numbered */
	uint32_t n;
	int32_t nstage, nsegment;
	const int64_t *part; /* layers of each part; NULL: that cannot be said */
	const char *why; /* then */
	uint32_t nsplit; /* layers of which some operators run elsewhere than most */
	int64_t first_split; /* the number of the first of them */
	uint32_t noutside; /* operators of no layer that run neither in the first part nor in the last */
	const char *first_outside; /* the name of the first of them */
	uint32_t nfull; /* layers that are recomputed wholly, but for what leaves them */
	const int64_t *full; /* such layers of each part */
	bool full_first; /* in each part they come before the others */
	uint32_t nagain;
	const struct ap_layer_again *again; /* [nagain] in the graph's order */
	uint32_t nagain_outside; /* operators of no layer that are recomputed */
	bool keep_comm, regather, slice; /* of what is recomputed, or, where nothing is, of the step */
	bool mixed; /* not of all of it */
};

/* O(operators * layers in a name). Everything in the run arena. */
void ap_layers_find(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_layers *out);

/* Is a count the same in all parts? */
bool ap_layers_even(const struct ap_layers *l, const int64_t *part);

#endif
