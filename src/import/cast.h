/* SPDX-License-Identifier: Apache-2.0 */
/* Casts of parameters, folded into the parameter's two types. */
#ifndef AP_IMPORT_CAST_H
#define AP_IMPORT_CAST_H

#include "import/model.h"

/* cast.c: a parameter that is only read through Casts to one type is said to be read as it; the Casts
 * are gone. A note where they stay because it is read otherwise, too. */
enum ap_status ap_import_fold_casts(struct ap_ctx *ctx, struct ap_import *g, const char *file);

#endif
