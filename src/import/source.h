/* SPDX-License-Identifier: Apache-2.0 */
/* Which dumps are a source of graphs, and what to say of the others. */
#ifndef AP_IMPORT_SOURCE_H
#define AP_IMPORT_SOURCE_H

#include "base/ctx.h"

/* Refuses a dump whose name says that it is none. AP_MEANING. */
enum ap_status ap_source_check(struct ap_ctx *ctx, const char *file);

/* Refuses a dump at a line that shows it: "line holds ..". AP_MEANING. */
enum ap_status ap_source_refuse(struct ap_ctx *ctx, const char *file, int64_t line, const char *why);

#endif
