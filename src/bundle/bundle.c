/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/bundle.h"

#include <string.h>

#include "autopar/version.h"
#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/bundle_marks.h"
#include "bundle/bundle_readme.h"
#include "bundle/bundle_settings.h"
#include "bundle/bundle_way.h"
#include "bundle/mindformers.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_pb.h"
#include "ckpt/groups.h"
#include "ckpt/op_strategy.h"
#include "hw/builtin.h"
#include "pipeline/stages.h"
#include "planfile/plan_json.h"

#define SCHEMA "autopar-bundle/1" /* of the manifest */

extern const struct ap_builtin ap_builtin_scripts[]; /* made by the build */

/* ---- the files ---- */

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

static void write_readme(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	ap_bundle_write_readme(ctx, b, ap_bundle_file_at, write, user);
}

static const struct ap_bundle_part *find(uint32_t n, const struct ap_bundle_part *part, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(part[i].name, name))
			return &part[i];
	return NULL;
}

static void write_manifest(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	const struct ap_bundle_part *plan = find(b->npart, b->part, AP_BUNDLE_PLAN);
	struct ap_jw w;

	(void)ctx;
	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", SCHEMA);
	ap_jw_kobj_flat(&w, "tool");
	ap_jw_kstr(&w, "name", "autopar-plan");
	ap_jw_kstr(&w, "version", AP_VERSION);
	ap_jw_end(&w);
	ap_jw_kstr(&w, "plan_sha256", plan ? plan->sha256 : "");
	ap_jw_karr(&w, "files");
	for (uint32_t i = 0; i < b->npart; i++) {
		ap_jw_obj_flat(&w);
		ap_jw_kstr(&w, "name", b->part[i].name);
		ap_jw_kint(&w, "bytes", b->part[i].bytes);
		ap_jw_kstr(&w, "sha256", b->part[i].sha256);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

static const struct ap_bundle_file files[] = {
	{AP_BUNDLE_README, "these steps", NULL, write_readme},
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
		write_manifest},
};

const struct ap_bundle_file *ap_bundle_file_at(size_t i)
{
	return i < AP_COUNT(files) ? &files[i] : NULL;
}

/* ---- reading the manifest ---- */

/* Does the name lead to a file inside the folder? */
static bool is_inside(const char *name)
{
	for (;; name++) {
		size_t len = strcspn(name, "/");

		if (!len || (*name == '.' && len <= 2 && (len == 1 || name[1] == '.')))
			return false;
		name += len;
		if (!*name)
			return true;
	}
}

#define REPORT(v, check, ...) \
	ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, check, __VA_ARGS__)

static enum ap_status read_part(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	struct ap_map *names, struct ap_bundle_part *out)
{
	static const char *const known[] = {"name", "bytes", "sha256", NULL};
	bool fresh;

	if (ap_jv_type(v) != AP_JOBJECT)
		return REPORT(v, "key-type", "should be an object");
	AP_TRY(ap_json_known(ctx, doc, v, known));
	AP_TRY(ap_json_get_str(ctx, doc, v, "name", &out->name));
	AP_TRY(ap_json_get_int(ctx, doc, v, "bytes", 0, INT64_MAX, &out->bytes));
	AP_TRY(ap_json_get_str(ctx, doc, v, "sha256", &out->sha256));
	if (!is_inside(out->name) || !strcmp(out->name, AP_BUNDLE_MANIFEST))
		return REPORT(ap_jv_get(v, "name"), "manifest-name",
			"should be the name of another file in the folder of the bundle");
	if (!ap_sha256_is_hex(out->sha256, strlen(out->sha256)))
		return REPORT(ap_jv_get(v, "sha256"), "manifest-hash",
			"should be a SHA-256: 64 digits of 0 to 9 and a to f");
	ap_map_put_str(names, out->name, &fresh);
	return fresh ? AP_OK : REPORT(v, "manifest-name", "%s is listed twice",
		ap_diag_path(ctx->diag, out->name));
}

enum ap_status ap_bundle_manifest_read(struct ap_ctx *ctx, const struct ap_json *doc,
	struct ap_bundle_manifest *out)
{
	static const char *const known[] = {"schema", "tool", "plan_sha256", "files", NULL};
	static const char *const tool_keys[] = {"name", "version", NULL};
	const struct ap_jv *root = ap_json_root(doc), *list, *tool;
	struct ap_map *names = ap_map_create(ctx->arena);
	const struct ap_bundle_part *plan;
	struct ap_bundle_part *part;
	const char *schema, *hash, *text;

	if (ap_jv_type(root) != AP_JOBJECT)
		return REPORT(root, "key-type", "should be an object");
	AP_TRY(ap_json_get_str(ctx, doc, root, "schema", &schema));
	if (strcmp(schema, SCHEMA) != 0)
		return REPORT(ap_jv_get(root, "schema"), "schema-known",
			"\"%s\" is not known; " SCHEMA " is expected", ap_diag_name(ctx->diag, schema));
	AP_TRY(ap_json_known(ctx, doc, root, known));
	AP_TRY(ap_json_get_obj(ctx, doc, root, "tool", &tool));
	AP_TRY(ap_json_known(ctx, doc, tool, tool_keys));
	AP_TRY(ap_json_get_str(ctx, doc, tool, "name", &text));
	AP_TRY(ap_json_get_str(ctx, doc, tool, "version", &text));
	AP_TRY(ap_json_get_str(ctx, doc, root, "plan_sha256", &hash));
	AP_TRY(ap_json_get_arr(ctx, doc, root, "files", &list));
	part = AP_NEW_N(ctx->arena, struct ap_bundle_part, ap_jv_count(list) + 1);
	*out = (struct ap_bundle_manifest){.part = part};
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		AP_TRY(read_part(ctx, doc, v, names, &part[out->npart++]));
	plan = find(out->npart, part, AP_BUNDLE_PLAN);
	if (!plan || strcmp(plan->sha256, hash) != 0)
		return REPORT(ap_jv_get(root, "plan_sha256"), "manifest-plan",
			"is not the hash of " AP_BUNDLE_PLAN " in \"files\"");
	return AP_OK;
}
