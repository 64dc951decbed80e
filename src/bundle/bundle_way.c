/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/bundle_way.h"

#include <string.h>

#include "base/vec.h"

static const struct ap_bundle_way ways[] = {
	{"mindspore", "auto_parallel", "sharding_propagation", "sharding_propagation",
		AP_BUNDLE_OPERATORS,
		"Every operator's strategy is in " AP_BUNDLE_OPERATORS ", by its full name; MindSpore then\n"
		"searches nothing. It takes them instead of shard() and of a strategy checkpoint.\n"},
	{"mindspore-semi-auto", "semi_auto_parallel", NULL, "semi_auto", AP_BUNDLE_CKPT,
		"Operators with a parameter are cut as the strategy checkpoint says, unless shard() of the\n"
		"script says otherwise; all others by their batch, which the plan reckons with.\n"},
	{"mindspore-sharding-propagation", "auto_parallel", "sharding_propagation", "sharding_propagation",
		AP_BUNDLE_CKPT,
		"Operators with a parameter are cut as the strategy checkpoint says; from them MindSpore\n"
		"propagates strategies to all others, which the plan reckons with.\n"},
	{"data_parallel", "data_parallel", NULL, NULL, NULL,
		"The batch is cut and nothing else; no strategy file is read.\n"},
	{"hybrid_parallel", "hybrid_parallel", NULL, NULL, NULL,
		"The batch is cut and nothing else, gradients of layerwise parameters stay where they are;\n"
		"no strategy file is read.\n"},
	{"stand_alone", "stand_alone", NULL, NULL, NULL, "One device; nothing is cut.\n"},
	{"generic", NULL, NULL, NULL, NULL,
		"plan.json holds the layout of every tensor on every rank, each collective with its group,\n"
		"and the order of all of them.\n"},
};

/* Of a JSON string, less its quotes. */
static bool is_word(const char *json, const char *word)
{
	size_t len = strlen(word);

	return json && *json == '"' && !strncmp(json + 1, word, len) && !strcmp(json + 1 + len, "\"");
}

static const struct ap_bundle_way *find_way(const char *json, const char *name)
{
	for (size_t i = 0; i < AP_COUNT(ways); i++)
		if (name ? !strcmp(ways[i].name, name) : is_word(json, ways[i].name))
			return &ways[i];
	return NULL;
}

const struct ap_bundle_way *ap_bundle_way(const struct ap_bundle *b)
{
	const char *mode = ap_bundle_setting(b, "parallel_mode");
	const struct ap_bundle_way *way = NULL;

	if (b->plan->step->executor == AP_EXECUTOR_GENERIC)
		return find_way(NULL, "generic");
	if (is_word(mode, "semi_auto_parallel"))
		return find_way(NULL, "mindspore-semi-auto");
	way = find_way(mode, NULL);
	if (!way && b->plan->route)
		way = find_way(NULL, b->plan->route->route->name);
	if (!way)
		way = find_way(ap_bundle_setting(b, "executor"), NULL);
	return way ? way : &ways[0];
}

bool ap_bundle_loads(const struct ap_bundle *b, const char *file)
{
	const char *loaded = ap_bundle_way(b)->file;

	return loaded && !strcmp(loaded, file);
}

const char *ap_bundle_setting(const struct ap_bundle *b, const char *name)
{
	for (uint32_t i = 0; i < b->nsetting; i++)
		if (!strcmp(b->setting[i].name, name))
			return b->setting[i].value;
	return NULL;
}

bool ap_bundle_differs(const struct ap_bundle *b, const char *name, const char *json)
{
	const char *value = ap_bundle_setting(b, name);

	return value && strcmp(value, json) != 0;
}

int64_t ap_bundle_devices(const struct ap_bundle *b)
{
	return b->plan->machine->ndev * b->plan->nstage;
}
