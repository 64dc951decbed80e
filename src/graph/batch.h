/* SPDX-License-Identifier: Apache-2.0 */
/* Which dimensions carry the batch. */
#ifndef AP_GRAPH_BATCH_H
#define AP_GRAPH_BATCH_H

#include "graph/load.h"

/* Which dimensions and factors carry the batch. */
void ap_load_mark_batch(struct ap_load *l);

/* Notes where a micro-batch would not compute what the whole batch does. */
void ap_load_judge_batch(struct ap_load *l);

#endif
