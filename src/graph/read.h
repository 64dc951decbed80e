/* SPDX-License-Identifier: Apache-2.0 */
/* The document of a graph, read part by part. */
#ifndef AP_GRAPH_READ_H
#define AP_GRAPH_READ_H

#include "graph/load.h"

/* The whole document but the operators. False: nothing can be checked. */
bool ap_load_read(struct ap_load *l);

/* Which cells operators are in, what follows from it; g is complete but for that. */
void ap_load_place_cells(struct ap_load *l, struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node);

#endif
