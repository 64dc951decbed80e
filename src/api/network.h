/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder that a graph computes, where its operators and parameters leave no doubt. */
#ifndef AP_API_NETWORK_H
#define AP_API_NETWORK_H

#include "graph/graph.h"
#include "model/decoder.h"

struct ap_network {
	struct ap_decoder decoder; /* what was not found is 0; names are of no checkpoint */
	bool sizes_alone; /* all else of the decoder is not known to be so */
	const char *missing; /* "how positions enter, the activation": what the graph does not tell; NULL: all
	                      * is found, and the decoder has just the graph's parameters */
};

/*
 * Reads the sizes of a network of layers out of a graph as its file has it, without stages. By what
 * operators do, never by names: heads from attention, units from products with weights, words from a table
 * that is looked up and the product of as many columns behind the layers. False: there are no layers, no
 * tokens or no width that all of them share. In the run arena. O(operands).
 */
bool ap_network_find(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_network *out);

#endif
