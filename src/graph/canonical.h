/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a graph's operators and of its inputs, parameters and constants: a function of the graph's
 * structure, so that neither names nor the order of the file's lists change anything that is planned.
 */
#ifndef AP_GRAPH_CANONICAL_H
#define AP_GRAPH_CANONICAL_H

#include "graph/load.h"

/*
 * Sets l->order, in which operators run, and l->leaves, of which every operator is bound:
 *
 *   operators as a walk in depth meets them from the outputs, in their order, each behind its operands and
 *   then what its "after" names, in their order; but what several read, inputs flow into and needs nothing
 *   met before (an encoder that a decoder reads, a mask) is in front of all else;
 *   one that no output reaches right behind the last of these that it depends on, in front of all if on
 *   none. Several there lie in the order of the same walk from those of them that nothing reads, least
 *   first: by the longest path of such operators to them, then by what they are, attributes and settings
 *   included, and what their operands are, in turn. Only of those that are alike in all this does the file's
 *   order decide.
 *
 *   inputs, then parameters, then constants; in each kind as operators first read them, then outputs, then
 *   what nothing reads, by type, shape and flags, and the file's order where these are alike.
 *
 * O(nodes + slots); for operators that no output reaches, times the log of their number.
 */
void ap_load_order(struct ap_load *l);

#endif
