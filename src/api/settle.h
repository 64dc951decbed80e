/* SPDX-License-Identifier: Apache-2.0 */
/* Settles settings together: contradictions, defaults that depend on others, notes. */
#ifndef AP_API_SETTLE_H
#define AP_API_SETTLE_H

#include "api/settings.h"

/* Reports contradicting settings (AP_USAGE, naming both), then derives values of those that are not
 * given. Settings that have several values are left out of both: when they are picked, settling again does
 * what is left. uses: AP_FOR_...; with AP_FOR_plan a pipeline's settings that are not given contradict
 * nothing, as they are decided. */
enum ap_status ap_settings_settle(struct ap_ctx *ctx, struct ap_settings *o, unsigned uses);

/* Refuses several values of a setting of settled ones unless a command of uses (AP_FOR_...) decides among
 * them; who: its name. AP_USAGE. */
enum ap_status ap_settings_one(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses,
	const char *who);

/* Reports all contradictions that need only the settings. uses: as above. */
void ap_settings_check(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses);

/* "A 1 and B 2 contradict each other: why". AP_USAGE. */
enum ap_status ap_settings_contradict(struct ap_ctx *ctx, const struct ap_settings *o, enum ap_setting_id a,
	enum ap_setting_id b, const char *why);

/* Notes settings for uses (AP_FOR_...) that differ from their defaults and do not change the plan
 * but what its executor does, or that have an effect only beside another setting; warns of what
 * MindSpore would refuse. */
enum ap_status ap_settings_note(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses);

/* Checks the settings against a machine of ndev devices. AP_USAGE. */
enum ap_status ap_settings_fit_devices(struct ap_ctx *ctx, const struct ap_settings *o, int64_t ndev);

#endif
