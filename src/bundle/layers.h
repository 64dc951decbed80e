/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of a network, as frameworks number them, and where a plan runs and recomputes them: cells
 * NAME.0, NAME.1, .., of the family with the most operators. Counts of layers are per part of the
 * pipeline: [segment * nstage + stage].
 */
#ifndef AP_BUNDLE_LAYERS_H
#define AP_BUNDLE_LAYERS_H

#include "plan/plan.h"

struct ap_layer_again { /* an operator recomputed in layers that are not recomputed as a whole */
	const char *name; /* in its layer: "attention.softmax" */
	bool shared; /* some layer has another of this name that is not recomputed */
	const int64_t *part; /* layers per part */
	bool first; /* in each part, they come first, behind those recomputed as a whole */
};

struct ap_layers {
	const char *name; /* "network.blocks"; NULL: no numbered cells */
	uint32_t n;
	int32_t nstage, nsegment;
	const int32_t *place; /* of each part in the order in which data flows, in the arrays by part */
	const int64_t *part; /* layers of each part; NULL: unknown */
	const char *why; /* it is unknown */
	uint32_t nsplit; /* layers with operators in several parts */
	int64_t first_split; /* number of the first */
	uint32_t noutside; /* operators of no layer in other parts than the first and the last */
	const char *first_outside; /* name of the first */
	uint32_t nfull; /* layers recomputed as a whole, except results that leave them */
	const int64_t *full; /* such layers per part */
	bool full_first; /* in each part, they come first */
	uint32_t nagain;
	const struct ap_layer_again *again; /* [nagain] in the graph's order */
	const int64_t *gathered; /* layers per part in which what is gathered of norms is gathered again */
	uint32_t ngathered;
	bool gathered_first; /* they come first, behind those recomputed as a whole */
	bool alike; /* all layers are asked for the same */
	unsigned what; /* enum ap_recompute, bits: what the step asks of the first layer */
	int64_t unit; /* so many layers run again as one */
	bool experts; /* some layer chooses experts */
	bool latent; /* layers make queries, keys or values of what a norm within attention gives */
	uint32_t nagain_outside; /* recomputed operators outside layers */
	bool keep_comm, regather, slice; /* of what is recomputed; if nothing is, of the step */
	bool mixed; /* operators differ in these */
};

/* O(operators * numbers in a cell's name). All in the run arena. */
void ap_layers_find(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_layers *out);

/* Is the count equal in all parts? */
bool ap_layers_even(const struct ap_layers *l, const int64_t *part);

#endif
