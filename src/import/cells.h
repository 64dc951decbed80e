/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of an imported graph. */
#ifndef AP_IMPORT_CELLS_H
#define AP_IMPORT_CELLS_H

#include "import/model.h"

/* cells.c: the cells that are recomputed, from the operators in them. */
void ap_import_find_cells(struct ap_ctx *ctx, struct ap_import *g);

#endif
