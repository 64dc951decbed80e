/* SPDX-License-Identifier: Apache-2.0 */
/* Named checks of checks.def. */
#ifndef AP_GRAPH_CHECK_H
#define AP_GRAPH_CHECK_H

#include "graph/load.h"

/* Is it a Python path of attributes and indices: "matmul", "list.0"? */
bool ap_instance_is_path(const char *instance);

/* Does out_strategy deal the partial sums? Requires a checked pin. */
bool ap_pin_deals(const struct ap_node *n);

/* Runs checks first..last of the table, except those without a function. */
void ap_load_check(struct ap_load *l, enum ap_check first, enum ap_check last);

#endif
