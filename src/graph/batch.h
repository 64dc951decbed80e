/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the dimensions that carry the batch. */
#ifndef AP_GRAPH_BATCH_H
#define AP_GRAPH_BATCH_H

#include "graph/load.h"

/* Marks dimensions and factors that carry the batch. */
void ap_load_mark_batch(struct ap_load *l);

/* Adds notes if micro-batches would not compute the same as the whole batch. */
void ap_load_judge_batch(struct ap_load *l);

#endif
