/* SPDX-License-Identifier: Apache-2.0 */
/* What is built in, or installed with it: chips, engines, models, operators, optimizers, software. */
#ifndef AP_API_CATALOGUE_H
#define AP_API_CATALOGUE_H

#include "api/settings.h"

struct ap_jw;
struct ap_str;

/* All of a topic, by name, or everything about the one called name: lines onto out, or objects of the array
 * that w has open on it. False where there is none of that name, or a file of it cannot be read, which is
 * then reported; *known: there is such a topic. */
bool ap_catalogue(struct ap_ctx *ctx, const struct ap_settings *set, const char *topic, const char *name,
	struct ap_str *out, struct ap_jw *w, bool *known);

#endif
