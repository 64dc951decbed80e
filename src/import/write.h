/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the imported graph. */
#ifndef AP_IMPORT_WRITE_H
#define AP_IMPORT_WRITE_H

#include "import/model.h"
#include "import/import.h"

/* Multiplies all batch dimensions by micro_batches. Returns AP_MEANING if impossible. */
enum ap_status ap_import_scale(struct ap_ctx *ctx, struct ap_import *g, const char *file,
	int64_t micro_batches, bool unknown_batch_parallel);

/* Writes the graph as autopar-graph/1. */
void ap_import_write(struct ap_ctx *ctx, const struct ap_import *g, ap_write_fn *write, void *user);

#endif
