/* SPDX-License-Identifier: Apache-2.0 */
/* What settings mean together: contradictions, defaults that depend on others, notes. */
#ifndef AP_API_SETTLE_H
#define AP_API_SETTLE_H

#include "api/settings.h"

/* Reports settings that contradict each other (AP_USAGE, both named), then gives those that are not
 * given the value that follows from others. */
enum ap_status ap_settings_settle(struct ap_ctx *ctx, struct ap_settings *o);

/* All contradictions that the settings alone show. */
void ap_settings_check(struct ap_ctx *ctx, const struct ap_settings *o);

/* "A 1 and B 2 contradict each other: why". AP_USAGE. */
enum ap_status ap_settings_contradict(struct ap_ctx *ctx, const struct ap_settings *o, enum ap_setting_id a,
	enum ap_setting_id b, const char *why);

/* Notes of settings, among those for uses (AP_FOR_...), that are not at their defaults and change what
 * whoever runs the plan does, but not the plan, or count only beside some other one; a warning of what
 * MindSpore would refuse. */
enum ap_status ap_settings_note(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses);

/* Holds the settings against a machine of ndev devices. AP_USAGE. */
enum ap_status ap_settings_fit_devices(struct ap_ctx *ctx, const struct ap_settings *o, int64_t ndev);

#endif
