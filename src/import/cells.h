/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of an imported graph. */
#ifndef AP_IMPORT_CELLS_H
#define AP_IMPORT_CELLS_H

#include "import/model.h"

/* Finds the recomputed cells from their operators. */
void ap_import_find_cells(struct ap_ctx *ctx, struct ap_import *g);

#endif
