/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/bundle.h"

#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "bundle/bundle_parts.h"
#include "bundle/mindformers.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_pb.h"
#include "ckpt/groups.h"
#include "ckpt/op_strategy.h"
#include "hw/builtin.h"
#include "pipeline/stages.h"
#include "planfile/plan_json.h"

extern const struct ap_builtin ap_builtin_scripts[]; /* made by the build */

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

static bool by_mindspore(const struct ap_bundle *b)
{
	return ap_bundle_way(b)->mode;
}

static bool by_mindspore_staged(const struct ap_bundle *b)
{
	return by_mindspore(b) && b->plan->nstage > 1;
}

static void write_script(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	(void)ctx;
	(void)b;
	write(user, ap_builtin_scripts->text, strlen(ap_builtin_scripts->text));
}

static void write_stages(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_stages_write_config(ctx, b->plan->graph, &text);
	write(user, text.s, text.len);
}

static void write_segments(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_stages_write_segments(ctx, b->plan->graph, &text);
	write(user, text.s, text.len);
}

static void write_groups(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_groups groups;

	ap_groups_of_plan(ctx, b->plan, b->global_rank, &groups);
	ap_groups_write(ctx, &groups, write, user);
}

static void write_plan(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	ap_emit_plan_json(ctx, b->plan, write, user);
}

static void write_ckpt(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_ckpt ckpt;

	ap_ckpt_of_plan(ctx, b->plan, b->frozen, &ckpt);
	ap_ckpt_write_pb(ctx, &ckpt, write, user);
}

static void write_operators(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user)
{
	ap_op_strategy_write(ctx, b->plan, b->op_template, write, user);
}

static const struct ap_bundle_file files[] = {
	{AP_BUNDLE_README, "these steps", NULL, ap_bundle_write_readme},
	{"apply_plan.py", "applies the files below to a network", by_mindspore, write_script},
	{"settings.json", "calls of AutoParallel, or keys of set_auto_parallel_context", by_mindspore,
		ap_bundle_write_settings},
	{AP_BUNDLE_SPEED_UP, "switches of transformer_opt() that were asked for", ap_bundle_speeds_up,
		ap_bundle_write_speed_up},
	{"stage_config.json", "pipeline_stage of each cell", by_mindspore_staged, write_stages},
	{"segment_config.json", "pipeline_segment of each cell", by_mindspore_staged, write_segments},
	{"recompute.json", "calls of recompute() of cells and primitives", by_mindspore,
		ap_bundle_write_recompute},
	{AP_BUNDLE_SHARD, "calls of shard() of primitives, for strategies that the graph has",
		ap_bundle_shards, ap_bundle_write_shard},
	{AP_BUNDLE_OPERATORS, "strategy of every operator, for load_operator_strategy_file()", by_mindspore,
		write_operators},
	{"group_info.pb", "communication groups of one rank, to look at", by_mindspore, write_groups},
	{"mindformers.yaml", "what of the plan MindFormers' YAML can say", NULL, ap_mindformers_write},
	{"megatron_args.txt", "what of the plan arguments of Megatron-LM can say", NULL, ap_megatron_write},
	{AP_BUNDLE_PLAN, "everything that was decided and predicted; for autopar-plan", NULL, write_plan},
	{AP_BUNDLE_CKPT, "strategy checkpoint", NULL, write_ckpt},
	{AP_BUNDLE_MANIFEST, "size and SHA-256 of all these files; for autopar-plan check", NULL,
		ap_bundle_write_manifest},
};

const struct ap_bundle_file *ap_bundle_file_at(size_t i)
{
	return i < AP_COUNT(files) ? &files[i] : NULL;
}
