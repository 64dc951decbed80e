/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which dumps can be imported. */
#ifndef AP_IMPORT_SOURCE_H
#define AP_IMPORT_SOURCE_H

#include "base/ctx.h"

/* Returns AP_MEANING, after a message, if the file name shows an unsuitable dump. */
enum ap_status ap_source_check(struct ap_ctx *ctx, const char *file);

/* Refuses a dump because of a line: "holds ..". Returns AP_MEANING. */
enum ap_status ap_source_refuse(struct ap_ctx *ctx, const char *file, int64_t line, const char *why);

#endif
