/* SPDX-License-Identifier: Apache-2.0 */
/* settings.json and parallel_speed_up.json: the calls that make MindSpore run as planned. */
#ifndef AP_BUNDLE_BUNDLE_SETTINGS_H
#define AP_BUNDLE_BUNDLE_SETTINGS_H

#include "base/str.h"
#include "bundle/bundle.h"

#define AP_BUNDLE_SPEED_UP "parallel_speed_up.json"

void ap_bundle_write_settings(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);

/* Is a switch of computation and communication (transformer_opt) on? */
bool ap_bundle_speeds_up(const struct ap_bundle *b);
void ap_bundle_write_speed_up(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);

/* Appends "NAME VALUE, ..": settings of the context for which the class AutoParallel has no method
 * and another default. Returns their number; 0 if the class does not have the mode either. */
size_t ap_bundle_unsaid(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_str *out);

/* May settings.json have this call? type: of the argument; NULL: any. *keys: those allowed in its
 * value, separated by blanks; NULL: any. */
bool ap_bundle_call_known(const char *api, const char *name, const char *type, const char **keys);

#endif
