/* SPDX-License-Identifier: Apache-2.0 */
/* Folds casts of parameters into the parameters. */
#ifndef AP_IMPORT_CAST_H
#define AP_IMPORT_CAST_H

#include "import/model.h"

/* Sets read_as of parameters that are read only through Casts to one type, and removes the Casts.
 * Adds a note if some stay because of other uses. */
enum ap_status ap_import_fold_casts(struct ap_ctx *ctx, struct ap_import *g, const char *file);

#endif
