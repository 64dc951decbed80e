/* SPDX-License-Identifier: Apache-2.0 */
/* The graph that is written. */
#ifndef AP_IMPORT_WRITE_H
#define AP_IMPORT_WRITE_H

#include "import/model.h"
#include "import/import.h"

/* All that carries the batch, times micro_batches. AP_MEANING where that cannot be. */
enum ap_status ap_import_scale(struct ap_ctx *ctx, struct ap_import *g, const char *file,
	int64_t micro_batches, bool unknown_batch_parallel);

/* Writes it as autopar-graph/1. */
void ap_import_write(struct ap_ctx *ctx, const struct ap_import *g, ap_write_fn *write, void *user);

#endif
