/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of a network, as frameworks number them: cells NAME.0, NAME.1, ..., the members of the family
 * NAME. They are found by their numbers; no name means anything.
 */
#ifndef AP_GRAPH_FAMILY_H
#define AP_GRAPH_FAMILY_H

#include "graph/graph.h"

struct ap_family {
	const char *name; /* "network.blocks"; NULL: no cells are numbered */
	size_t len; /* of the name */
	uint32_t n;
	const int64_t *number; /* [n] ascending */
	const int32_t *member; /* [nnode] place in number; -1: in none, as what is put between stages */
};

/* The family with the most operators of those that have two members; of nested ones the outer. In the run
 * arena. O(operators * numbers in a name). */
void ap_family_find(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_family *out);

struct ap_family_chain {
	const char *names; /* "encoder.blocks.N and decoder.blocks.N"; NULL: there is no layer */
	uint32_t n;
	const int32_t *layer; /* [nnode] -1: in none */
	const char *const *name; /* [n] cells: "decoder.blocks.3" */
};

/*
 * The layers of a network one behind the other: those of the family above and of all that lie in none of
 * another's cells, whose members have cells of their own and parameters (a list of plain layers, such
 * as those of a head, is none). Families come in the order in which the graph is done with them. In
 * the run arena. O(operators * numbers in a name).
 */
void ap_family_chain(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_family_chain *out);

/* The same graph, which knows its chain: of it and of copies with the same nodes it is found at once. */
const struct ap_graph *ap_family_note(struct ap_ctx *ctx, const struct ap_graph *g);

#endif
