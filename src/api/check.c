/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

#include <inttypes.h>
#include <string.h>

#include "api/against.h"
#include "api/bundle.h"
#include "api/config.h"
#include "api/files.h"
#include "api/machine_file.h"
#include "api/model.h"
#include "api/onnx.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/bundle.h"
#include "bundle/bundle_check.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/groups.h"
#include "graph/graph.h"
#include "hw/hccl.h"
#include "hw/rank_table.h"
#include "import/import.h"
#include "partition/partition.h"
#include "pipeline/schedule.h"

/* Appends a description of a faultless file to what. */
typedef enum ap_status check_fn(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file,
	struct ap_str *what);

static enum ap_status check_graph(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	const struct ap_graph_params params = {
		.micro_batches = 2, /* makes the reader report every finding */
		.unknown_batch_parallel = set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	const struct ap_graph *g;

	AP_TRY(ap_graph_load(ctx, file->doc, ap_input_sha256(ctx, &file->in), &params, &g));
	ap_str_addf(what, "%" PRIu32 " operators, %" PRId64 " parameter elements", g->nnode,
		g->parameters);
	return AP_OK;
}

static enum ap_status check_rank_table(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	const struct ap_topo *topo;
	const struct ap_chip *chip = NULL;

	AP_TRY(ap_topo_load(ctx, file->doc, ap_input_sha256(ctx, &file->in), &topo));
	if (*topo->chip_info)
		AP_TRY(ap_chip_by_info(ctx, topo->chip_info, &chip));
	if (chip)
		AP_TRY(ap_hccl_check(ctx, topo, chip->hccl, !set->hccl_rules));
	ap_str_addf(what, "form %s, devices %" PRIu32 ", servers %" PRIu32, topo->form, topo->ndev,
		topo->nserver);
	if (topo->pod.n)
		ap_str_addf(what, ", super pods %" PRIu32, topo->pod.n);
	if (topo->cluster.n)
		ap_str_addf(what, ", clusters %" PRIu32, topo->cluster.n);
	return AP_OK;
}

static enum ap_status check_hosts(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	struct ap_machine_file machine;
	const struct ap_topo *topo;
	uint32_t untold = 0;

	(void)set;
	AP_TRY(ap_machine_file_read(ctx, &file->in, &machine));
	for (uint32_t i = 0; i < machine.hosts->n; i++)
		untold += !machine.hosts->slots[i];
	if (untold) {
		ap_str_addf(what, "servers %" PRIu32 ", devices not said", machine.hosts->n);
		return AP_OK;
	}
	AP_TRY(ap_machine_file_topo(ctx, &machine, 0, 0, &topo));
	ap_str_addf(what, "devices %" PRIu32 ", servers %" PRIu32, topo->ndev, topo->nserver);
	return AP_OK;
}

/* With the levels that the chip which it names gets. */
static enum ap_status check_server(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	struct ap_machine_file machine;
	const struct ap_server *server;
	const struct ap_chip *chip;
	const char *name;

	(void)set;
	AP_TRY(ap_machine_file_read(ctx, &file->in, &machine));
	server = machine.server;
	ap_str_addf(what, "%s, devices %" PRIu32, server->form, server->ndev);
	if (server->ncard)
		ap_str_addf(what, ", network cards %" PRIu32, server->ncard);
	AP_TRY(ap_server_profile(ctx, server, &name));
	if (!*name) {
		ap_str_add(what, ", chip not said");
		return AP_OK;
	}
	AP_TRY(ap_chip_get(ctx, name, &chip));
	AP_TRY(ap_server_chip(ctx, server, chip, &chip));
	ap_str_addf(what, ", chip %s, links", chip->name);
	for (int l = 0; l < chip->nlevel && chip->level[l].within == AP_WITHIN_SERVER; l++)
		ap_str_addf(what, "%s %s", l ? "," : "", chip->level[l].name);
	return AP_OK;
}

static enum ap_status check_chip(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	struct ap_chip chip;

	(void)set;
	AP_TRY(ap_chip_parse(ctx, file->doc, &chip));
	ap_str_add(what, chip.name);
	return AP_OK;
}

static enum ap_status check_software(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	struct ap_software software;

	(void)set;
	AP_TRY(ap_software_parse(ctx, file->doc, &software));
	ap_str_add(what, software.name);
	return AP_OK;
}

static enum ap_status check_plan(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	struct ap_saved plan;

	(void)set;
	AP_TRY(ap_plan_check_file(ctx, file->doc));
	AP_TRY(ap_saved_of_plan(ctx, file->doc, &plan));
	ap_str_addf(what, "%" PRIu32 " operators", plan.nop);
	return AP_OK;
}

static enum ap_status check_problem(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	const struct ap_problem *p;

	(void)set;
	AP_TRY(ap_problem_load(ctx, file->doc, &p));
	ap_str_addf(what, "%" PRIu32 " nodes, %" PRIu32 " edges", p->n, p->nedge);
	return AP_OK;
}

static enum ap_status check_pipeline(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	const struct ap_partition *p;

	(void)set;
	AP_TRY(ap_partition_load(ctx, file->doc, &p));
	ap_str_addf(what,
		"layers %" PRId64 ", stages %" PRId32 ", segments %" PRId32 ", micro-batches %" PRId64
		", %s", ap_partition_layers(p), p->nstage, p->nsegment, p->nmicro, p->scheduler->name);
	return AP_OK;
}

/* A merged file is described together with its stages. */
static enum ap_status describe_strategy(struct ap_ctx *ctx, const struct ap_ckpt *c, struct ap_str *what)
{
	struct ap_ckpt *stage;
	uint32_t n = 1;

	if (ap_ckpt_is_merged(c))
		AP_TRY(ap_ckpt_split(ctx, c, &n, &stage));
	if (n > 1)
		ap_str_addf(what, ", pipeline stages %" PRIu32, n);
	ap_str_addf(what, ", %" PRIu32 " operators, %" PRIu32 " parameters", c->nitem, c->nlayout);
	return AP_OK;
}

static enum ap_status check_strategy(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	struct ap_ckpt c;

	(void)set;
	AP_TRY(ap_ckpt_read(ctx, file->in.path, file->in.text, file->in.len, file->json, &c));
	AP_TRY(ap_ckpt_check_empty(ctx, file->in.path, &c));
	ap_str_add(what, file->json ? "JSON" : "protobuf");
	return describe_strategy(ctx, &c, what);
}

static enum ap_status check_groups(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	struct ap_groups groups;

	(void)set;
	AP_TRY(ap_groups_read(ctx, file->in.path, file->in.text, file->in.len, &groups));
	ap_str_addf(what, "%" PRIu32 " groups, ranks to restore from %" PRIu32, groups.n, groups.nrestore);
	return AP_OK;
}

static enum ap_status check_dump(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	const struct ap_import_params params = {
		.micro_batches = 1,
		.unknown_batch_parallel = set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	const struct ap_import *g;

	AP_TRY(ap_import_ir(ctx, file->in.path, file->in.text, file->in.len, &params, &g));
	ap_str_addf(what, "%zu operators", ap_import_size(g));
	return AP_OK;
}

static enum ap_status check_onnx(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	const struct ap_import *g;

	AP_TRY(ap_onnx_load(ctx, set, &file->in, &g));
	ap_str_addf(what, "%zu operators", ap_import_size(g));
	return AP_OK;
}

static enum ap_status check_op_strategy(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	const struct ap_op_template *t;

	(void)set;
	AP_TRY(ap_op_template_read(ctx, file->doc, &t));
	ap_str_addf(what, "%" PRIu32 " operators", t->n);
	return AP_OK;
}

/* With a short sample in place of what only options say. */
static enum ap_status check_model(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	enum { SHORT = 2 };
	struct ap_settings o = *set;
	struct ap_input made;
	struct ap_json *doc;
	const struct ap_graph_params params = {0};
	const struct ap_graph *g;

	o.batch = o.sequence = SHORT;
	AP_TRY(ap_model_of_config(ctx, &o, file->doc, &made));
	AP_TRY(ap_input_json(ctx, &made, 0, &doc));
	AP_TRY(ap_graph_load(ctx, doc, "", &params, &g));
	ap_str_addf(what, "%s, %" PRId64 " parameter elements",
		ap_diag_name(ctx->diag, g->name), g->parameters);
	return AP_OK;
}

static enum ap_status check_config(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	(void)set;
	AP_TRY(ap_config_check(ctx, file->doc));
	ap_str_addf(what, "%zu settings", ap_jv_count(ap_json_root(file->doc)));
	return AP_OK;
}

static enum ap_status check_manifest(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_known *file, struct ap_str *what)
{
	struct ap_bundle_manifest manifest;

	(void)set;
	AP_TRY(ap_bundle_manifest_read(ctx, file->doc, &manifest));
	ap_str_addf(what, "%" PRIu32 " files", manifest.npart);
	return AP_OK;
}

/* Checks the stage files of a folder, each alone and all together. */
static enum ap_status check_folder(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_str *what)
{
	struct ap_ckpt c;

	AP_TRY(ap_ckpt_load(ctx, set, path, &c));
	ap_str_add(what, "a folder");
	return describe_strategy(ctx, &c, what);
}

static check_fn *const checks[AP_KIND_COUNT] = {
	[AP_KIND_GRAPH] = check_graph,
	[AP_KIND_RANK_TABLE] = check_rank_table,
	[AP_KIND_CHIP] = check_chip,
	[AP_KIND_SOFTWARE] = check_software,
	[AP_KIND_PLAN] = check_plan,
	[AP_KIND_PROBLEM] = check_problem,
	[AP_KIND_PIPELINE] = check_pipeline,
	[AP_KIND_MANIFEST] = check_manifest,
	[AP_KIND_OP_STRATEGY] = check_op_strategy,
	[AP_KIND_STRATEGY] = check_strategy,
	[AP_KIND_MODEL] = check_model,
	[AP_KIND_CONFIG] = check_config,
	[AP_KIND_GROUPS] = check_groups,
	[AP_KIND_DUMP] = check_dump,
	[AP_KIND_HOSTS] = check_hosts,
	[AP_KIND_SERVER] = check_server,
	[AP_KIND_ONNX] = check_onnx,
};

typedef enum ap_status form_fn(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what);

/* Checks of the other files of a bundle. */
static form_fn *const forms[AP_KIND_COUNT] = {
	[AP_KIND_TRACE] = ap_bundle_check_trace,
	[AP_KIND_RECOMPUTE] = ap_bundle_check_recompute,
	[AP_KIND_SHARD] = ap_bundle_check_shard,
	[AP_KIND_SETTINGS] = ap_bundle_check_settings,
	[AP_KIND_CELLS] = ap_bundle_check_cells,
	[AP_KIND_SWITCHES] = ap_bundle_check_switches,
};

/* A launch: its settings, and the network if it describes one. */
static enum ap_status check_launch(struct ap_ctx *ctx, const struct ap_settings *set,
	enum ap_launch_language language, const struct ap_input *in, struct ap_str *what)
{
	struct ap_json *doc;
	int64_t n;

	AP_TRY(ap_launch_settings(ctx, language, in->path, in->text, in->len, &doc));
	AP_TRY(ap_config_check(ctx, doc));
	ap_str_addf(what, "%zu settings", ap_jv_count(ap_json_root(doc)));
	n = ap_model_launch_parameters(ctx, set, language, in);
	if (n > 0)
		ap_str_addf(what, ", a network of %" PRId64 " parameter elements", n);
	return AP_OK;
}

/* The language of a file that is a launch. */
static enum ap_launch_language launch_of(struct ap_ctx *ctx, const struct ap_settings *set,
	const char *path, struct ap_input *in)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	enum ap_launch_language language = strcmp(path, "-") != 0 &&
		ap_input_read(&quiet, set, path, in) == AP_OK ? ap_launch_language(in->text, in->len)
		: AP_LAUNCH_NONE;

	return language == AP_LAUNCH_DEEPSPEED || !ap_file_suffix(path, ".json") ? language : AP_LAUNCH_NONE;
}

struct checking {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	const struct ap_fail_if *conditions; /* judged on every faultless plan */
	uint32_t *nplan;
};

static enum ap_status check_known(struct checking *c, const struct ap_known *file, struct ap_str *what)
{
	struct ap_saved plan;

	if (forms[file->kind])
		return forms[file->kind](c->ctx, file->doc, what);
	AP_TRY(checks[file->kind](c->ctx, c->set, file, what));
	if (file->kind != AP_KIND_PLAN)
		return AP_OK;
	++*c->nplan;
	if (!c->conditions->n || ap_saved_of_plan(c->ctx, file->doc, &plan) != AP_OK)
		return AP_OK;
	plan.file = file->in.path;
	(void)ap_fail_if_judge(c->ctx, c->conditions, NULL, &plan, NULL);
	return AP_OK;
}

/* Checks a bundle's file if its kind is known from its suffix. A stage without cells of its own is
 * a limit that README.txt states, not a fault of the file. */
static void check_part(struct checking *c, const char *path)
{
	static const char *const ends[] = {".json", ".ckpt", ".pb"};
	struct ap_known file;
	struct ap_str what;

	for (size_t i = 0; i < AP_COUNT(ends); i++) {
		if (!ap_file_suffix(path, ends[i]))
			continue;
		ap_str_init(&what, c->ctx->arena);
		if (ap_kind_read(c->ctx, c->set, path, &file) == AP_OK && file.kind != AP_KIND_CELLS)
			(void)check_known(c, &file, &what);
	}
}

/* Checks the manifest, then each file that it lists as if it had been named. */
static enum ap_status check_bundle(struct checking *c, const char *path, struct ap_str *what)
{
	struct ap_bundle_manifest manifest;

	AP_TRY(ap_bundle_verify(c->ctx, c->set, path, &manifest));
	ap_str_addf(what, "%" PRIu32 " files", manifest.npart);
	for (uint32_t i = 0; i < manifest.npart; i++)
		check_part(c, ap_path_join(c->ctx->arena, path, manifest.part[i].name));
	return AP_OK;
}

void ap_check_file(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_fail_if *conditions, uint32_t *nplan, struct ap_checked *out)
{
	struct checking c = {ctx, set, conditions, nplan};
	struct ap_known file = {.kind = AP_KIND_STRATEGY};
	bool folder = ap_file_is_folder(path), bundle = folder && ap_bundle_is(ctx, path);
	enum ap_status st = ap_model_file(ctx, path, &path);
	struct ap_input in;
	enum ap_launch_language language = st == AP_OK && !folder ? launch_of(ctx, set, path, &in)
		: AP_LAUNCH_NONE;
	struct ap_str what;

	ap_str_init(&what, ctx->arena);
	if (language != AP_LAUNCH_NONE) {
		st = check_launch(ctx, set, language, &in, &what);
		out->kind = st == AP_OK ? ap_launch_text(language) : NULL;
		out->what = what.s;
		return;
	}
	if (st == AP_OK)
		st = bundle ? check_bundle(&c, path, &what)
			: folder ? check_folder(ctx, set, path, &what) : ap_kind_read(ctx, set, path, &file);
	if (st == AP_OK && !folder)
		st = check_known(&c, &file, &what);
	out->kind = st != AP_OK ? NULL : bundle ? "a bundle" : ap_kind_text(file.kind);
	out->what = what.s;
}
