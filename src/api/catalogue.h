/* SPDX-License-Identifier: Apache-2.0 */
/* Lists what is built in or installed: chips, engines, families, models, operators, optimizers, software. */
#ifndef AP_API_CATALOGUE_H
#define AP_API_CATALOGUE_H

#include "api/settings.h"

struct ap_jw;
struct ap_str;

/* Lists a topic's entries by name, or shows everything about the entry called name: lines onto out,
 * or objects in w's open array. Returns false if there is no such entry, or if one of its files
 * cannot be read (reported); *known: the topic exists. */
bool ap_catalogue(struct ap_ctx *ctx, const struct ap_settings *set, const char *topic, const char *name,
	struct ap_str *out, struct ap_jw *w, bool *known);

#endif
