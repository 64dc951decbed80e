/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from JSON: a config file, MindSpore's parallel_speed_up.json, the value of an option. */
#ifndef AP_API_CONFIG_H
#define AP_API_CONFIG_H

#include "api/settings.h"

struct ap_json;
struct ap_jv;

/* Applies the config file, ours or one of api/launch.h, to settings that no option gave. Settings
 * for other commands than uses (AP_FOR_...) are only checked: one file may serve all commands. */
enum ap_status ap_config_load(struct ap_ctx *ctx, const char *path, unsigned uses,
	struct ap_settings *into);

/* ap_config_load() of a parsed document. */
enum ap_status ap_config_set(struct ap_ctx *ctx, const struct ap_json *doc, unsigned uses,
	struct ap_settings *into);

/* Applies the defaults of a site where nothing else gives a value, and notes them; only settings that are
 * marked SITE in settings.def may be among them. Names of files are beside the file. *is_one: false of a
 * file of ours that is another one by its schema, such as a plan; nothing is then applied. */
enum ap_status ap_config_site(struct ap_ctx *ctx, const char *path, unsigned uses, struct ap_settings *into,
	bool *is_one);

/* Is a document meant as a config file? It is if it is an object with a setting's key. */
bool ap_config_is_one(const struct ap_jv *root);

/* Reports every fault of a config file, including contradictions between settings. AP_MEANING. */
enum ap_status ap_config_check(struct ap_ctx *ctx, const struct ap_json *doc);

/* ap_config_load() for the file of --transformer-opt, an object of members of parallel_speed_up. */
enum ap_status ap_config_speed_up(struct ap_ctx *ctx, const char *path, unsigned uses,
	struct ap_settings *into);

/* Applies the settings that a plan echoes (the object settings of doc) where none was given;
 * ignores null and keys that no longer exist. */
enum ap_status ap_config_echo(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *settings,
	unsigned uses, struct ap_settings *into);

/* Applies an option's value that is an object; name is the option as written. */
void ap_config_option(struct ap_ctx *ctx, const char *name, const char *text,
	const struct ap_object_spelling *object, unsigned uses, struct ap_settings *into);

#endif
