/* SPDX-License-Identifier: Apache-2.0 */
/* A site's own defaults: where they are kept. */
#ifndef AP_CLI_SITE_H
#define AP_CLI_SITE_H

#include "api/settings.h"

/* Applies the defaults of the nearest autopar-plan.json of the working folder and those above it, else of
 * autopar-plan/autopar-plan.json in $XDG_CONFIG_HOME, else in ~/.config. A file of that name that is another
 * file of ours, such as a plan, is passed over. None is no error; one that cannot be read is AP_IO, one that
 * is wrong the status of ap_config_site(). *path: the file that was applied, else NULL. */
enum ap_status ap_site_load(struct ap_ctx *ctx, unsigned uses, struct ap_settings *into, const char **path);

#endif
