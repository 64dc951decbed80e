/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from JSON: a config file, MindSpore's parallel_speed_up.json, the value of an option. */
#ifndef AP_API_CONFIG_H
#define AP_API_CONFIG_H

#include "api/settings.h"

struct ap_json;
struct ap_jv;

/* Sets what the config file says wherever no option did. Settings for none of uses (AP_FOR_...) are checked
 * too, but left alone: one file may serve all. */
enum ap_status ap_config_load(struct ap_ctx *ctx, const char *path, unsigned uses,
	struct ap_settings *into);

/* The same of a document. */
enum ap_status ap_config_set(struct ap_ctx *ctx, const struct ap_json *doc, unsigned uses,
	struct ap_settings *into);

/* Is a document meant as a config file: an object with the key of a setting in it? */
bool ap_config_is_one(const struct ap_jv *root);

/* Reports every fault of a config file, contradictions between its settings included. AP_MEANING. */
enum ap_status ap_config_check(struct ap_ctx *ctx, const struct ap_json *doc);

/* ap_config_load() for the file of --transformer-opt, an object of members of parallel_speed_up. */
enum ap_status ap_config_speed_up(struct ap_ctx *ctx, const char *path, unsigned uses,
	struct ap_settings *into);

/* Sets what a plan says its settings were, the object settings of doc, wherever nobody did; what is null
 * there, or known no more, is left alone. */
enum ap_status ap_config_echo(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *settings,
	unsigned uses, struct ap_settings *into);

/* Sets what the value of an option says that is an object; name is the option as it was written. */
void ap_config_option(struct ap_ctx *ctx, const char *name, const char *text,
	const struct ap_object_spelling *object, unsigned uses, struct ap_settings *into);

#endif
