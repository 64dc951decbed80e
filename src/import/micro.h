/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-batches of a dump that was unrolled, folded into one. */
#ifndef AP_IMPORT_MICRO_H
#define AP_IMPORT_MICRO_H

#include "import/flat.h"

/* micro.c: makes of several micro-batches in the dump one. */
enum ap_status ap_flat_fold_micro(struct ap_ctx *ctx, struct ap_flat *f, int64_t micro_batches);

#endif
