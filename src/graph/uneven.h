/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the dimensions whose parts have uneven work: experts, of which some get more tokens than others. */
#ifndef AP_GRAPH_UNEVEN_H
#define AP_GRAPH_UNEVEN_H

#include "graph/load.h"

/* Marks them, from the results of each MoeDispatch that states an imbalance to the operators that read them,
 * by the factors of their rules, and these factors. Reports an imbalance below 1. O(operands). */
void ap_load_mark_uneven(struct ap_load *l);

#endif
