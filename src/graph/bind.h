/* SPDX-License-Identifier: Apache-2.0 */
/* Binds operators to rules and shapes. */
#ifndef AP_GRAPH_BIND_H
#define AP_GRAPH_BIND_H

#include "graph/load.h"

/* Binds all operators in order, infers shapes and compares them with declared ones. */
void ap_load_bind(struct ap_load *l);

/* --batch: multiplies batch extents by batch / l->batch and binds everything again. */
void ap_load_rescale(struct ap_load *l, int64_t batch);

#endif
