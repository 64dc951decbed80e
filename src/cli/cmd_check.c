/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "api/against.h"
#include "api/bundle.h"
#include "api/config.h"
#include "api/fail_if.h"
#include "api/files.h"
#include "api/outputs.h"
#include "api/stage_files.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/bundle.h"
#include "bundle/bundle_check.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/groups.h"
#include "cli/cmd.h"
#include "cli/run.h"
#include "draw/picture.h"
#include "import/import.h"

/* Each adds to what what is to be said of a file in which nothing is wrong. */
typedef enum ap_status check_fn(struct ap_run *run, const struct ap_known *file,
	struct ap_str *what);

struct report {
	struct ap_run *run;
	struct ap_fail_if conditions; /* on every plan */
	uint32_t nplan;
	struct ap_str text;
	struct ap_jw json; /* onto text, where JSON is wanted */
};

static enum ap_status check_graph(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	const struct ap_graph_params params = {
		.micro_batches = 2, /* every finding */
		.unknown_batch_parallel = run->set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	const struct ap_graph *g;

	AP_TRY(ap_graph_load(&run->ctx, file->doc, ap_input_sha256(&run->ctx, &file->in), &params, &g));
	ap_str_addf(what, "%" PRIu32 " operators, %" PRId64 " parameter elements", g->nnode,
		g->parameters);
	return AP_OK;
}

static enum ap_status check_rank_table(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	const struct ap_topo *topo;
	const struct ap_chip *chip = NULL;

	AP_TRY(ap_topo_load(&run->ctx, file->doc, ap_input_sha256(&run->ctx, &file->in), &topo));
	if (*topo->chip_info)
		AP_TRY(ap_chip_by_info(&run->ctx, topo->chip_info, &chip));
	if (chip)
		AP_TRY(ap_hccl_check(&run->ctx, topo, chip->hccl, !run->set->hccl_rules));
	ap_str_addf(what, "form %s, devices %" PRIu32 ", servers %" PRIu32, topo->form, topo->ndev,
		topo->nserver);
	if (topo->pod.n)
		ap_str_addf(what, ", super pods %" PRIu32, topo->pod.n);
	if (topo->cluster.n)
		ap_str_addf(what, ", clusters %" PRIu32, topo->cluster.n);
	return AP_OK;
}

static enum ap_status check_chip(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	struct ap_chip chip;

	AP_TRY(ap_chip_parse(&run->ctx, file->doc, &chip));
	ap_str_add(what, chip.name);
	return AP_OK;
}

static enum ap_status check_software(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	struct ap_software software;

	AP_TRY(ap_software_parse(&run->ctx, file->doc, &software));
	ap_str_add(what, software.name);
	return AP_OK;
}

static enum ap_status check_plan(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	struct ap_picture pic;

	AP_TRY(ap_plan_check_file(&run->ctx, file->doc));
	AP_TRY(ap_picture_of_file(&run->ctx, file->doc, &pic));
	ap_str_addf(what, "%zu operators",
		ap_jv_count(ap_jv_get(ap_json_root(file->doc), "operators")));
	return AP_OK;
}

/* Conditions are judged on every plan in which nothing is wrong. */
static enum ap_status judge_plan(struct report *r, const struct ap_known *file)
{
	struct ap_saved plan;

	r->nplan++;
	if (!r->conditions.n)
		return AP_OK;
	AP_TRY(ap_saved_of_plan(&r->run->ctx, file->doc, &plan));
	plan.file = file->in.path;
	return ap_fail_if_judge(&r->run->ctx, &r->conditions, NULL, &plan, NULL);
}

static enum ap_status check_problem(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	const struct ap_problem *p;

	AP_TRY(ap_problem_load(&run->ctx, file->doc, &p));
	ap_str_addf(what, "%" PRIu32 " nodes, %" PRIu32 " edges", p->n, p->nedge);
	return AP_OK;
}

/* The stages of a merged file are all there. */
static enum ap_status describe_strategy(struct ap_run *run, const struct ap_ckpt *c, struct ap_str *what)
{
	struct ap_ckpt *stage;
	uint32_t n = 1;

	if (ap_ckpt_is_merged(c))
		AP_TRY(ap_ckpt_split(&run->ctx, c, &n, &stage));
	if (n > 1)
		ap_str_addf(what, ", pipeline stages %" PRIu32, n);
	ap_str_addf(what, ", %" PRIu32 " operators, %" PRIu32 " parameters", c->nitem, c->nlayout);
	return AP_OK;
}

static enum ap_status check_strategy(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	struct ap_ckpt c;

	AP_TRY(ap_ckpt_read(&run->ctx, file->in.path, file->in.text, file->in.len, file->json, &c));
	AP_TRY(ap_ckpt_check_empty(&run->ctx, file->in.path, &c));
	ap_str_add(what, file->json ? "JSON" : "protobuf");
	return describe_strategy(run, &c, what);
}

static enum ap_status check_groups(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	struct ap_groups groups;

	AP_TRY(ap_groups_read(&run->ctx, file->in.path, file->in.text, file->in.len, &groups));
	ap_str_addf(what, "%" PRIu32 " groups, ranks to restore from %" PRIu32, groups.n, groups.nrestore);
	return AP_OK;
}

static enum ap_status check_dump(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	const struct ap_import_params params = {
		.micro_batches = 1,
		.unknown_batch_parallel = run->set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	const struct ap_import *g;

	AP_TRY(ap_import_ir(&run->ctx, file->in.path, file->in.text, file->in.len, &params, &g));
	ap_str_addf(what, "%zu operators", ap_import_size(g));
	return AP_OK;
}

static enum ap_status check_op_strategy(struct ap_run *run, const struct ap_known *file,
	struct ap_str *what)
{
	const struct ap_op_template *t;

	AP_TRY(ap_op_template_read(&run->ctx, file->doc, &t));
	ap_str_addf(what, "%" PRIu32 " operators", t->n);
	return AP_OK;
}

static enum ap_status check_config(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	AP_TRY(ap_config_check(&run->ctx, file->doc));
	ap_str_addf(what, "%zu settings", ap_jv_count(ap_json_root(file->doc)));
	return AP_OK;
}

#define FORM(name) \
	static enum ap_status check_##name(struct ap_run *run, const struct ap_known *file, \
		struct ap_str *what) \
	{ \
		return ap_bundle_check_##name(&run->ctx, file->doc, what); \
	}
FORM(settings)
FORM(cells)
FORM(recompute)
FORM(shard)
FORM(trace)
FORM(switches)

static enum ap_status check_manifest(struct ap_run *run, const struct ap_known *file, struct ap_str *what)
{
	struct ap_bundle_manifest manifest;

	AP_TRY(ap_bundle_manifest_read(&run->ctx, file->doc, &manifest));
	ap_str_addf(what, "%" PRIu32 " files", manifest.npart);
	return AP_OK;
}

/* The stage files of a folder, each of them and all together. */
static enum ap_status check_folder(struct ap_run *run, const char *path, struct ap_str *what)
{
	struct ap_ckpt c;

	AP_TRY(ap_ckpt_load(&run->ctx, run->set, path, &c));
	ap_str_add(what, "a folder");
	return describe_strategy(run, &c, what);
}

static check_fn *const checks[AP_KIND_COUNT] = {
	[AP_KIND_GRAPH] = check_graph,
	[AP_KIND_RANK_TABLE] = check_rank_table,
	[AP_KIND_CHIP] = check_chip,
	[AP_KIND_SOFTWARE] = check_software,
	[AP_KIND_PLAN] = check_plan,
	[AP_KIND_PROBLEM] = check_problem,
	[AP_KIND_TRACE] = check_trace,
	[AP_KIND_MANIFEST] = check_manifest,
	[AP_KIND_RECOMPUTE] = check_recompute,
	[AP_KIND_SHARD] = check_shard,
	[AP_KIND_SETTINGS] = check_settings,
	[AP_KIND_OP_STRATEGY] = check_op_strategy,
	[AP_KIND_STRATEGY] = check_strategy,
	[AP_KIND_CONFIG] = check_config,
	[AP_KIND_CELLS] = check_cells,
	[AP_KIND_SWITCHES] = check_switches,
	[AP_KIND_GROUPS] = check_groups,
	[AP_KIND_DUMP] = check_dump,
};

static void report_text(struct report *r, const char *path, const char *kind, const char *what,
	size_t errors, size_t warnings)
{
	struct ap_diag *diag = r->run->ctx.diag;
	struct ap_str *out = &r->text;

	ap_str_addf(out, "%s: ", ap_diag_path(diag, path));
	if (kind)
		ap_str_addf(out, "%s (%s): ", kind, ap_diag_name(diag, what));
	if (errors || warnings)
		ap_str_addf(out, "errors %zu, warnings %zu\n", errors, warnings);
	else
		ap_str_add(out, "nothing to report\n");
}

static void report_json(struct report *r, const char *path, const char *kind, const char *what,
	size_t errors, size_t warnings)
{
	struct ap_jw *w = &r->json;

	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "file", ap_diag_path(r->run->ctx.diag, path));
	if (kind) {
		ap_jw_kstr(w, "kind", strchr(kind, ' ') + 1); /* without its article */
		ap_jw_kstr(w, "what", ap_diag_name(r->run->ctx.diag, what));
	}
	ap_jw_kint(w, "errors", (int64_t)errors);
	ap_jw_kint(w, "warnings", (int64_t)warnings);
	ap_jw_end(w);
}

/* What the bundle has of a kind that is known, by the ends of names that such files have there. That a stage
 * has no cell of its own is among the limits that its README.txt tells, and no fault of the file. */
static void check_part(struct report *r, const char *path)
{
	static const char *const ends[] = {".json", ".ckpt", ".pb"};
	struct ap_known file;
	struct ap_str what;

	for (size_t i = 0; i < AP_COUNT(ends); i++) {
		if (!ap_file_suffix(path, ends[i]))
			continue;
		ap_str_init(&what, r->run->ctx.arena);
		if (ap_kind_read(&r->run->ctx, r->run->set, path,
			&file) == AP_OK && file.kind != AP_KIND_CELLS &&
			checks[file.kind](r->run, &file, &what) == AP_OK && file.kind == AP_KIND_PLAN)
			(void)judge_plan(r, &file);
	}
}

/* That of the files which the manifest lists; then each of these, as if it were named itself. */
static enum ap_status check_bundle(struct report *r, const char *path, struct ap_str *what)
{
	struct ap_bundle_manifest manifest;

	AP_TRY(ap_bundle_verify(&r->run->ctx, r->run->set, path, &manifest));
	ap_str_addf(what, "%" PRIu32 " files", manifest.npart);
	for (uint32_t i = 0; i < manifest.npart; i++)
		check_part(r, ap_arena_printf(r->run->ctx.arena, "%s%s%s", path,
				      ap_file_suffix(path, "/") ? "" : "/", manifest.part[i].name));
	return AP_OK;
}

/* One line about a file: what it is, and how many findings there are. */
static void check_file(struct report *r, const char *path)
{
	struct ap_run *run = r->run;
	struct ap_diag *diag = run->ctx.diag;
	size_t errors = ap_diag_count(diag, AP_ERROR), warnings = ap_diag_count(diag, AP_WARNING);
	struct ap_known file = {.kind = AP_KIND_STRATEGY};
	bool folder = ap_file_is_folder(path), bundle = folder && ap_bundle_is(&run->ctx, path);
	struct ap_str what;
	enum ap_status st;

	ap_str_init(&what, run->ctx.arena);
	st = bundle ? check_bundle(r, path, &what)
	   : folder ? check_folder(run, path, &what)
		    : ap_kind_read(&run->ctx, run->set, path, &file);
	if (st == AP_OK && !folder)
		st = checks[file.kind](run, &file, &what);
	if (st == AP_OK && file.kind == AP_KIND_PLAN)
		(void)judge_plan(r, &file);
	errors = ap_diag_count(diag, AP_ERROR) - errors;
	warnings = ap_diag_count(diag, AP_WARNING) - warnings;
	(run->set->json ? report_json : report_text)(r, path,
		st != AP_OK ? NULL : bundle ? "a bundle" : ap_kind_text(file.kind), what.s, errors,
			warnings);
}

/* What says how a plan is held against inputs says nothing else. */
static enum ap_status check_options(struct ap_run *run)
{
	static const enum ap_setting_id inputs[] = {AP_SET_device_num, AP_SET_devices_per_server,
		AP_SET_devices_per_pod, AP_SET_chip, AP_SET_memory, AP_SET_software, AP_SET_batch,
		AP_SET_micro_batches, AP_SET_search};

	for (size_t i = 0; i < AP_COUNT(inputs); i++)
		if (run->set->origin[inputs[i]] == AP_FROM_OPTION)
			(void)ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: check takes it beside --against only",
				run->set->name[inputs[i]]);
	return ap_diag_status(run->ctx.diag);
}

static void begin(struct report *r)
{
	ap_str_init(&r->text, r->run->ctx.arena);
	if (!r->run->set->json)
		return;
	ap_jw_str_init(&r->json, &r->text, 1);
	ap_jw_obj(&r->json);
	ap_jw_kstr(&r->json, "schema", "autopar-check/1");
	ap_jw_key(&r->json, "files");
	ap_jw_arr(&r->json);
}

static enum ap_status finish(struct report *r)
{
	if (r->conditions.n && !r->nplan)
		(void)ap_diag_add(r->run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--fail-if: none of these files is a plan");
	if (r->run->set->json) {
		ap_jw_end(&r->json);
		ap_diag_write(r->run->ctx.diag, &r->json, (size_t)r->run->set->max_errors);
		ap_jw_end(&r->json);
		ap_jw_finish(&r->json);
	}
	r->run->answered = !r->run->set->quiet;
	if (!r->run->set->quiet)
		AP_TRY(ap_stdout_write(&r->run->ctx, r->text.s, r->text.len));
	return ap_diag_status(r->run->ctx.diag);
}

enum ap_status ap_cmd_check(struct ap_run *run)
{
	struct report r = {.run = run};

	AP_TRY(ap_out_check(&run->to, NULL));
	if (run->set->against)
		return ap_check_against(run);
	AP_TRY(check_options(run));
	AP_TRY(ap_fail_if_read(&run->ctx, run->set, &r.conditions));
	begin(&r);
	ap_ctx_phase(&run->ctx, "checking");
	for (size_t i = 0; i < run->cli->narg; i++)
		check_file(&r, run->cli->arg[i]);
	return finish(&r);
}
