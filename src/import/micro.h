/* SPDX-License-Identifier: Apache-2.0 */
/* Folds unrolled micro-batches of a dump. */
#ifndef AP_IMPORT_MICRO_H
#define AP_IMPORT_MICRO_H

#include "import/flat.h"

/* Reduces several micro-batches in the dump to one. Returns AP_MEANING if their number or operators
 * differ from expected. */
enum ap_status ap_flat_fold_micro(struct ap_ctx *ctx, struct ap_flat *f, int64_t micro_batches);

#endif
