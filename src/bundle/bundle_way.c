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
	{"megatron", NULL, NULL, NULL, NULL,
		"megatron.sh starts pretrain_gpt.py with the plan's degrees, from which it follows\n"
		"how operators are cut.\n"},
	{"mindspeed", NULL, NULL, NULL, NULL,
		"mindspeed.sh starts pretrain_gpt.py with the plan's degrees, from which it follows\n"
		"how operators are cut.\n"},
	{"torchtitan", NULL, NULL, NULL, NULL,
		"torchtitan.sh starts torchtitan with the plan's degrees, from which it follows how\n"
		"operators are cut. torchtitan_plan.py has the modules of uneven stages, and what is\n"
		"recomputed.\n"},
	{"deepspeed", NULL, NULL, NULL, NULL,
		"deepspeed.sh starts a training script with ds_config.json: ZeRO, batch, autotp and\n"
		"parts of sequences. deepspeed_plan.py has what such a script makes by itself: stages,\n"
		"and what is recomputed.\n"},
	{"generic", NULL, NULL, NULL, NULL,
		"plan.json holds the layout of every tensor on every rank, each collective with its group,\n"
		"and the order of all of them.\n"},
};

/* The way of this name, or other if there is none. */
static const struct ap_bundle_way *find_way(const char *name, const struct ap_bundle_way *other)
{
	for (size_t i = 0; name && i < AP_COUNT(ways); i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	return other;
}

const struct ap_bundle_way *ap_bundle_way(const struct ap_bundle *b)
{
	static const char *const by_mode[] = {
		[AP_BUNDLE_ROUTE] = NULL,
		[AP_BUNDLE_SEMI_AUTO] = "mindspore-semi-auto",
		[AP_BUNDLE_DATA_PARALLEL] = "data_parallel",
		[AP_BUNDLE_HYBRID_PARALLEL] = "hybrid_parallel",
		[AP_BUNDLE_STAND_ALONE] = "stand_alone",
	};
	const struct ap_bundle_way *way = find_way(b->asked.route ? b->asked.route->name : NULL, &ways[0]);

	if (b->plan->route)
		way = find_way(b->plan->route->route->name, way);
	if (b->plan->step->executor == AP_EXECUTOR_GENERIC)
		return way->mode ? find_way("generic", way) : way;
	return find_way(by_mode[b->asked.mode], way);
}

bool ap_bundle_loads(const struct ap_bundle *b, const char *file)
{
	const char *loaded = ap_bundle_way(b)->file;

	return loaded && !strcmp(loaded, file);
}

int64_t ap_bundle_devices(const struct ap_bundle *b)
{
	return b->plan->machine->ndev * b->plan->nstage;
}
