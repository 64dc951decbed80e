/* SPDX-License-Identifier: Apache-2.0 */
#include "api/explain.h"

#include <stdio.h>
#include <string.h>

#include "api/against.h"
#include "api/bundle.h"
#include "api/config.h"
#include "api/model.h"
#include "api/planning.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/name_fold.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "drive/baseline.h"
#include "drive/rival.h"
#include "graph/glob.h"
#include "hw/coll.h"
#include "plan/terms.h"
#include "explain/explain.h"

enum { SIMULATED = 10, MOST_FOLDS = 12, MOST_BASELINES = 12 };

struct explaining {
	struct ap_writing *to;
	const char *path, *name;
	const struct ap_json *doc; /* of the plan */
	struct ap_settings set; /* of the plan, applied to the inputs of now */
	struct ap_sources src;
	struct ap_inputs in;
	struct ap_plan plan;
	struct ap_alternatives_report others;
};

/* ---- inputs ---- */

static enum ap_status read_plan(struct explaining *x)
{
	struct ap_ctx *ctx = x->to->ctx;
	const char *path = x->path;
	struct ap_known file;

	if (!strcmp(path, "-"))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"explain: a plan on standard input cannot be read twice; expected the name of "
			"a file");
	if (ap_file_is_folder(path) && ap_bundle_is(ctx, path))
		path = ap_path_join(ctx->arena, path, AP_BUNDLE_PLAN);
	AP_TRY(ap_kind_read(ctx, x->to->set, path, &file));
	if (file.kind != AP_KIND_PLAN)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file =
		file.in.path}, NULL,
			"is %s; expected a plan, as --plan-out writes it", ap_kind_text(file.kind));
	AP_TRY(ap_plan_check_file(ctx, file.doc));
	x->doc = file.doc;
	return AP_OK;
}

static const char *input_of(const struct explaining *x, const char *role, const char *key)
{
	const struct ap_jv *v = ap_jv_get(ap_jv_get(ap_json_root(x->doc), "inputs"), role);

	return v && ap_jv_type(v) == AP_JOBJECT ? ap_jv_str(ap_jv_get(v, key)) : NULL;
}

/* Is there a file of this content? Says nothing. */
static bool is_same(const struct explaining *x, const char *path, const char *sha256)
{
	struct ap_ctx quiet = ap_diag_apart(x->to->ctx);
	struct ap_input in;

	return ap_input_read(&quiet, x->to->set, path, &in) == AP_OK &&
		!strcmp(ap_input_sha256(&quiet, &in), sha256);
}

/* The file that an input of the plan was, beside the plan, here, or of a bundled model; NULL: there is
 * none. */
static const char *find_input(const struct explaining *x, const char *role)
{
	const char *name = input_of(x, role, "name"), *sha256 = input_of(x, role, "sha256"), *suffix, *file;
	struct ap_arena *arena = x->to->ctx->arena;
	struct ap_ctx quiet = ap_diag_apart(x->to->ctx);

	if (!name || !sha256)
		return NULL;
	file = ap_path_join(arena, ap_path_folder(arena, x->path), name);
	if (is_same(x, file, sha256))
		return file;
	if (is_same(x, name, sha256))
		return name;
	suffix = strstr(name, ".json");
	if (suffix && ap_model_file(&quiet, ap_arena_strndup(arena, name, (size_t)(suffix - name)), &file) ==
		AP_OK && is_same(x, file, sha256))
		return file;
	return NULL;
}

static enum ap_status make_inputs(struct explaining *x, const char *table)
{
	struct ap_ctx *ctx = x->to->ctx;
	const char *role = input_of(x, "model", "name") ? "model" : "graph";
	const char *graph = x->to->set->graph ? x->to->set->graph : find_input(x, role);
	const char *own_table = find_input(x, "rank_table");
	const struct ap_named named = {.graph = {.path = graph}, .table = {.path = own_table ? own_table
		: table}};
	const struct ap_jv *step = ap_jv_get(ap_jv_get(ap_json_root(x->doc), "prediction"), "step_time_s");
	char was[32], is[32];
	double step_s;

	if (!graph)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, &(struct ap_where){.file = x->path}, NULL,
			"the plan holds no graph, and \"%s\" of which it was made is neither beside it "
			"nor here, or is "
			"another file now; expected --graph GRAPH",
			ap_diag_name(ctx->diag, input_of(x, role, "name") ? input_of(x, role, "name") : "?"));
	AP_TRY(ap_against_inputs(ctx, x->to->set, x->path, &named, &x->set, &x->src, &x->in));
	AP_TRY(ap_diag_status(ctx->diag));
	AP_TRY(ap_inputs_plan(ctx, &x->in, NULL, &x->plan, NULL));
	step_s = step && ap_jv_type(step) == AP_JNUMBER ? ap_jv_double(step) : 0;
	if (step_s > 0 && step_s != x->plan.prediction.step_time_s)
		return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = x->path},
		"plan-step",
			"says a step of %s; of these inputs, and by this version, it is %s, which is "
			"explained",
			ap_format_seconds(step_s, was),
			ap_format_seconds(x->plan.prediction.step_time_s, is));
	return AP_OK;
}

/* ---- what is asked for ---- */

static enum ap_status make_others(struct explaining *x, const bool *wanted, uint32_t simulated)
{
	const struct ap_alternatives_job job = {.rq = &x->in.request, .plan = &x->plan, .wanted = wanted,
		.nsimulated = simulated, .prove = x->to->set->prove};

	ap_ctx_phase(x->to->ctx, "pricing other cuts");
	return ap_alternatives_make(x->to->ctx, &job, &x->others);
}

/* The first of those operators that lie alike, with how many there are. */
static uint32_t fold(const struct explaining *x, const bool *meant, const struct ap_name_fold **out,
	ap_id *node)
{
	struct ap_ctx *ctx = x->to->ctx;
	const struct ap_graph *g = x->plan.graph;
	struct ap_name_item *item = AP_NEW_N(ctx->arena, struct ap_name_item, g->nnode);
	uint32_t n = 0;

	for (ap_id i = 0; i < g->nnode; i++) {
		if (!meant[i])
			continue;
		node[n] = i;
		item[n++] = (struct ap_name_item){g->node[i].name, ap_arena_printf(ctx->arena, "%s %s",
			g->node[i].type, ap_explain_cut(ctx, &g->node[i].bound,
			ap_placement_counts(ctx->arena, &x->plan.op[i].place), x->plan.op[i].place.ndev))};
	}
	return ap_name_folds(ctx, n, item, out);
}

static enum ap_status explain_operators(struct explaining *x, struct ap_explaining *to, const bool *meant)
{
	const struct ap_graph *g = x->plan.graph;
	ap_id *node = AP_NEW_N(x->to->ctx->arena, ap_id, g->nnode);
	bool *wanted = AP_NEW_N(x->to->ctx->arena, bool, g->nnode);
	const struct ap_name_fold *folds;
	uint32_t n = fold(x, meant, &folds, node), told = n < MOST_FOLDS ? n : MOST_FOLDS;

	for (uint32_t f = 0; f < told; f++)
		wanted[node[folds[f].item[0]]] = true;
	AP_TRY(make_others(x, wanted, SIMULATED));
	for (uint32_t f = 0; f < told; f++)
		ap_explain_operator(to, node[folds[f].item[0]], folds[f].name, folds[f].n);
	if (told < n)
		return ap_diag_add(x->to->ctx->diag, AP_NOTE, AP_OK, NULL, NULL,
			"of %u kinds of operators that \"%s\" means, the first %u are explained", n,
			ap_diag_name(x->to->ctx->diag, x->name), told);
	return AP_OK;
}

/* The data-parallel plan and the grids of experts, as far as they are plans of this graph. */
static uint32_t find_baselines(struct explaining *x, struct ap_explained_baseline *out)
{
	struct ap_ctx *ctx = x->to->ctx;
	const struct ap_request *rq = &x->in.request;
	struct ap_plan_maker *maker = ap_plan_maker_create(ctx, rq->graph, rq->machine, rq->step,
		rq->capacity_bytes);
	const char *why = NULL;
	struct ap_rivals r;
	uint32_t ngrid, n = 0;
	const struct ap_grid *grid;
	const int32_t *const *counts = ap_baseline_data_parallel(ctx, rq->graph, rq->machine->ndev,
		rq->step, &why);

	ap_rivals_init(&r, ctx, rq);
	grid = ap_rival_grids(&r, rq, &ngrid);
	for (uint32_t i = 0; i <= ngrid && n < MOST_BASELINES; i++) {
		struct ap_explained_baseline b = {.name = i ? grid[i - 1].name : "data parallel"};
		struct ap_plan p;

		if (i && grid[i - 1].rare)
			continue;
		counts = i ? grid[i - 1].counts : counts;
		if (counts) {
			ap_plan_sketch(maker, counts, &p);
			b.prediction = p.prediction;
			b.fits = p.prediction.memory.total <= rq->capacity_bytes;
		} else {
			b.why_not = i ? grid[i - 1].why : why;
		}
		out[n++] = b;
	}
	return n;
}

static enum ap_status explain_whole(struct explaining *x, struct ap_explaining *to)
{
	struct ap_explained_baseline baseline[MOST_BASELINES];
	bool *all = AP_NEW_N(x->to->ctx->arena, bool, x->plan.graph->nnode);

	for (ap_id i = 0; i < x->plan.graph->nnode; i++)
		all[i] = true;
	AP_TRY(make_others(x, all, 0));
	ap_explain_plan(to, baseline, find_baselines(x, baseline));
	return AP_OK;
}

static void explain_setting(struct explaining *x, struct ap_sheet *sheet, const struct ap_setting_row *row)
{
	static const struct {
		unsigned on;
		const char *what;
	} what[] = {{AP_ON_PLAN, "which plans there are"}, {AP_ON_COST, "predicted times"},
		{AP_ON_MEMORY, "predicted memory"}, {AP_ON_FILES, "the files alone"},
		{AP_ON_NOTED, "nothing that is planned, but what the executor does"}};
	struct ap_arena *arena = x->to->ctx->arena;
	struct ap_str on;

	ap_str_init(&on, arena);
	for (size_t i = 0; i < AP_COUNT(what); i++)
		if (row->on & what[i].on)
			ap_str_addf(&on, "%s%s", on.len ? ", " : "", what[i].what);
	if (!on.len)
		ap_str_add(&on, row->idle ? "nothing" : "how the planner runs");
	ap_sheet_thing(sheet, "setting", row->key, "%s", row->help);
	ap_sheet_block(sheet, "setting", "in this plan");
	ap_sheet_words(sheet, "value", "value", ap_setting_text(arena, row, &x->set));
	ap_sheet_words(sheet, "default", "default", row->otherwise);
	ap_sheet_words(sheet, "expected", "may be", ap_setting_expects(arena, row));
	ap_sheet_words(sheet, "influences", "influences", on.s);
	if (row->idle)
		ap_sheet_remark(sheet, "%s.", row->idle);
}

/* A stage by "stage:3" or "stage 3"; -1: the name is none. */
static int64_t stage_of(const char *name)
{
	int64_t stage;

	return !strncmp(name, "stage", 5) && (name[5] == ':' || name[5] == ' ') &&
		ap_parse_int(name + 6, 0, INT32_MAX, &stage) ? stage : -1;
}

static bool is_operator(const struct ap_graph *g, const char *name)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (!strcmp(g->node[i].name, name))
			return true;
	return false;
}

/* What the name means, tried from the narrowest on. */
static enum ap_status explain_name(struct explaining *x, struct ap_explaining *to)
{
	struct ap_ctx *ctx = x->to->ctx;
	const struct ap_graph *g = x->plan.graph;
	bool *meant = AP_NEW_N(ctx->arena, bool, g->nnode);
	int64_t stage = stage_of(x->name);

	if (stage >= (int64_t)x->plan.nstage)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"explain: the plan has %u stage%s, from 0 on; \"%s\" is none of them", x->plan.nstage,
			x->plan.nstage > 1 ? "s" : "", ap_diag_name(ctx->diag, x->name));
	if (stage >= 0) {
		ap_explain_stage(to, (uint32_t)stage);
		return AP_OK;
	}
	for (ap_id i = 0; i < g->ntensor && !is_operator(g, x->name); i++)
		if (!strcmp(g->tensor[i].name, x->name)) {
			ap_explain_tensor(to, i);
			return AP_OK;
		}
	for (int k = 0; k < AP_COLL_COUNT; k++)
		if (!strcmp(ap_coll_name((enum ap_coll)k), x->name)) {
			ap_explain_collective(to, (enum ap_coll)k);
			return AP_OK;
		}
	if (ap_setting_of_key(x->name)) {
		explain_setting(x, to->sheet, ap_setting_of_key(x->name));
		return AP_OK;
	}
	if (ap_glob_operators(g, x->name, meant))
		return explain_operators(x, to, meant);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"explain: \"%s\" is no operator, tensor, stage (stage:N), collective or setting of "
		"this plan%s",
		ap_diag_name(ctx->diag, x->name), ap_glob_near(ctx, g, x->name));
}

static enum ap_status form_of(struct ap_writing *to, enum ap_sheet_form *form)
{
	const char *name = ap_setting_text(to->ctx->arena, ap_setting_at(AP_SET_format), to->set);

	*form = to->set->json || !strcmp(name, "json") ? AP_SHEET_JSON
		: !strcmp(name, "markdown") ? AP_SHEET_MARKDOWN : AP_SHEET_TEXT;
	return AP_OK;
}

/* Of inputs and plan, in the form of the settings. */
static enum ap_status tell(struct explaining *x, struct ap_str *text)
{
	struct ap_ctx *ctx = x->to->ctx;
	struct ap_explaining told = {.ctx = ctx, .plan = &x->plan, .others = &x->others,
		.sheet = ap_sheet_create(ctx, "autopar-explain/1")};
	enum ap_sheet_form form;

	AP_TRY(form_of(x->to, &form));
	AP_TRY(x->name ? explain_name(x, &told) : explain_whole(x, &told));
	ap_ctx_phase(ctx, "writing");
	ap_sheet_write(told.sheet, form, text);
	return AP_OK;
}

enum ap_status ap_explain(struct ap_writing *to, const char *path, const char *name, const char *table,
	struct ap_str *text)
{
	struct explaining x = {.to = to, .path = path, .name = name};

	AP_TRY(ap_out_check(to, NULL));
	ap_ctx_phase(to->ctx, "reading");
	AP_TRY(read_plan(&x));
	AP_TRY(make_inputs(&x, table));
	return tell(&x, text);
}

/* The settings as they are in force, also where they were not given: as a plan file says them. */
static enum ap_status take_echo(struct explaining *x)
{
	struct ap_ctx *ctx = x->to->ctx;
	struct ap_json *doc;
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, ctx->arena);
	ap_jw_str_init(&w, &text, 0);
	ap_jw_obj(&w);
	for (uint32_t i = 0; i < x->plan.nsetting; i++) {
		ap_setting_unset(&x->set, (enum ap_setting_id)(ap_setting_of_key(x->plan.setting[i].name) -
			ap_setting_at(0)));
		ap_jw_kraw(&w, x->plan.setting[i].name, x->plan.setting[i].value);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
	AP_TRY(ap_json_parse(ctx, "plan", text.s, text.len, 0, &doc));
	return ap_config_echo(ctx, doc, ap_json_root(doc), AP_FOR_PLANNERS, &x->set);
}

enum ap_status ap_explain_made(struct ap_writing *to, const struct ap_planning *made, const char *name,
	struct ap_str *text)
{
	struct explaining x = {.to = to, .path = "plan", .name = name, .set = *to->set, .in = made->in,
		.plan = made->plan};

	AP_TRY(take_echo(&x));
	return tell(&x, text);
}
