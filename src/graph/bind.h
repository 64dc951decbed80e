/* SPDX-License-Identifier: Apache-2.0 */
/* Operators bound to their rules and shapes. */
#ifndef AP_GRAPH_BIND_H
#define AP_GRAPH_BIND_H

#include "graph/load.h"

/* Binds all operators in order, infers shapes, compares with declared ones. */
void ap_load_bind(struct ap_load *l);

/* --batch: extents that carry the batch times batch / l->batch, everything bound anew. */
void ap_load_rescale(struct ap_load *l, int64_t batch);

#endif
