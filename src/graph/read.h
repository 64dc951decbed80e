/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a graph's document. */
#ifndef AP_GRAPH_READ_H
#define AP_GRAPH_READ_H

#include "graph/load.h"

/* Reads all but the operators. Returns false if nothing can be checked. */
bool ap_load_read(struct ap_load *l);

/* Finds the cells of operators, and applies their settings; g is otherwise complete. */
void ap_load_place_cells(struct ap_load *l, struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node);

#endif
