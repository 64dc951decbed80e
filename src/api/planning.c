/* SPDX-License-Identifier: Apache-2.0 */
#include "api/planning.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/bundle.h"
#include "api/relax.h"
#include "api/rules.h"
#include "api/stage_files.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_pb.h"
#include "ckpt/groups.h"
#include "drive/certify.h"
#include "pipeline/stages.h"
#include "planfile/plan_json.h"
#include "report/summary.h"
#include "report/trace.h"
#include "shard/imposed.h"

/* ---- files of a finished plan ---- */

enum ap_status ap_plan_check_outputs(struct ap_writing *to)
{
	AP_TRY(ap_out_check_names(to, NULL, ap_bundle_paths(to)));
	(void)ap_out_check_targets(to, NULL);
	(void)ap_bundle_check(to);
	return ap_diag_status(to->ctx->diag);
}

/* The folder of stage files must be writable, or it must be possible to make it. */
static enum ap_status check_folder(struct ap_writing *to, const char *path)
{
	struct stat st;

	AP_TRY(ap_out_check_input(to, path));
	if (ap_out_is_output(to, path))
		return ap_out_fault(to, AP_USAGE, path, "is an output, and the folder of the stage files");
	if (lstat(path, &st))
		return AP_OK;
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return ap_out_fault(to, AP_USAGE, path,
			"is no folder; the files of the pipeline stages are written into one of this name");
	return access(path, W_OK | X_OK) ? ap_out_cannot_write(to, path) : AP_OK;
}

enum ap_status ap_plan_check_stages(struct ap_writing *to, uint32_t nstage)
{
	const char *path = to->set->strategy_ckpt_save_file;

	if (nstage == 1 || !path)
		return AP_OK;
	if (strcmp(path, "-") != 0)
		return check_folder(to, ap_ckpt_folder(to->ctx->arena, path));
	return ap_out_fault(to, AP_USAGE, path, ap_arena_printf(to->ctx->arena,
		"takes the strategy checkpoint of one pipeline stage, not of %" PRIu32
		"; expected the name of a file", nstage));
}

typedef void write_fn(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_made *made,
	ap_write_fn *write, void *user);

static void write_trace(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_made *made,
	ap_write_fn *write, void *user)
{
	ap_emit_trace(ctx, made->plan, (enum ap_trace_detail)set->trace_detail, write, user);
}

static void write_problem(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_made *made,
	ap_write_fn *write, void *user)
{
	(void)ctx;
	(void)set;
	ap_problem_write_json(made->problem, write, user);
}

static void write_plan(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_made *made,
	ap_write_fn *write, void *user)
{
	(void)set;
	ap_emit_plan_json(ctx, made->plan, write, user);
}

static void write_stage_config(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_made *made, ap_write_fn *write, void *user)
{
	struct ap_str text;

	(void)set;
	ap_str_init(&text, ctx->arena);
	ap_stages_write_config(ctx, made->plan->graph, &text);
	write(user, text.s, text.len);
}

static void write_groups(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_made *made,
	ap_write_fn *write, void *user)
{
	struct ap_groups groups;

	ap_groups_of_plan(ctx, made->plan, set->global_rank, &groups);
	ap_groups_write(ctx, &groups, write, user);
}

/* Drawing may take seconds. */
static enum ap_status stage_picture(struct ap_writing *to, const char *path, const struct ap_made *m)
{
	if (ap_draw_format(path) && to->hurry)
		return AP_STOPPED;
	return ap_out_draw(to, path, m->plan, NULL);
}

static enum ap_status stage_bundle(struct ap_writing *to, const char *path, const struct ap_made *m)
{
	(void)path;
	return ap_bundle_stage(to, m);
}

/* A checkpoint stands for its plan, but for sums that the search deals. */
static void warn_of_sums(struct ap_ctx *ctx, const char *path, const struct ap_plan *p)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		n += p->op[i].place.bound->deal_asked && ap_placement_needs_out(&p->op[i].place, p->step);
	if (n && p->step->executor == AP_EXECUTOR_MINDSPORE)
		(void)ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "out-strategy",
			"%s: a strategy checkpoint cannot hold the out_strategy of %" PRIu32
			" operator%s, whose sums MindSpore then does not deal: --bundle writes files that "
			"can, --no-out-strategy plans without", ap_out_shown(path), n, n == 1 ? "" : "s");
}

const char *ap_plan_settings_path(struct ap_ctx *ctx, const struct ap_settings *set)
{
	const char *path = set->strategy_ckpt_save_file;

	return path && strcmp(path, "-") != 0 ? ap_arena_printf(ctx->arena, "%s.settings.json", path) : NULL;
}

/* What a checkpoint does not hold: settings that were decided or given, but for cuts, unless its
 * executor is told nothing but degrees. */
static enum ap_status stage_settings(struct ap_writing *to)
{
	const char *path = ap_plan_settings_path(to->ctx, to->set);
	bool degrees = ap_route_at((size_t)to->set->executor)->degrees;
	struct ap_output_sink sink;
	struct ap_jw w;

	if (!path)
		return AP_OK;
	AP_TRY(ap_out_open(to, path, &sink));
	ap_jw_init(&w, ap_output_write_fn, &sink, 1);
	ap_jw_obj(&w);
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)i);

		if (ap_setting_given(to->set, (enum ap_setting_id)i) && (row->group < AP_GROUP_DECIDE ||
			(i == AP_SET_hybrid && degrees)))
			ap_jw_kraw(&w, row->key, ap_setting_json(to->ctx->arena, row, to->set));
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
	return AP_OK;
}

/* The merged file comes after the stage files. */
static enum ap_status stage_strategy(struct ap_writing *to, const char *path, const struct ap_made *m)
{
	const struct ap_plan *p = m->plan;
	const char *folder = ap_ckpt_folder(to->ctx->arena, path);
	struct ap_ckpt *stage = AP_NEW_N(to->ctx->arena, struct ap_ckpt, p->nstage), ckpt;
	struct ap_written older = {0};

	if (p->joint)
		AP_TRY(stage_settings(to));
	if (p->nstage > 1) {
		for (uint32_t s = 0; s < p->nstage; s++)
			ap_ckpt_of_stage(to->ctx, p, (int32_t)s, !to->set->only_trainable_params, &stage[s]);
		ap_ckpt_written(to->ctx, path, &older);
		AP_TRY(ap_ckpt_stage_folder(to, folder, ap_path_is_json(path) ? ".json" : ".ckpt", p->nstage,
			stage, &older));
	} else { /* leftovers of a killed run with more stages */
		ap_out_clear(to, folder);
	}
	ap_ckpt_of_plan(to->ctx, p, !to->set->only_trainable_params, &ckpt);
	warn_of_sums(to->ctx, path, p);
	AP_TRY(ap_ckpt_check_empty(to->ctx, ap_out_shown(path), &ckpt));
	return ap_ckpt_stage_file(to, path, &ckpt);
}

static const struct product {
	enum ap_setting_id id;
	write_fn *write; /* NULL if stage writes it */
	enum ap_status (*stage)(struct ap_writing *, const char *, const struct ap_made *);
	const char *hint; /* shown if it is left out */
} products[] = { /* in the order of putting them in place */
	{AP_SET_dot_out, NULL, stage_picture, "; `autopar-plan render` draws it from the plan"},
	{AP_SET_trace_out, write_trace, NULL, ""},
	{AP_SET_problem_out, write_problem, NULL, ""},
	{AP_SET_plan_out, write_plan, NULL, ""},
	{AP_SET_stage_config_out, write_stage_config, NULL, ""},
	{AP_SET_group_ckpt_save_file, write_groups, NULL, ""},
	{AP_SET_bundle, NULL, stage_bundle, ""},
	{AP_SET_strategy_ckpt_save_file, NULL, stage_strategy, ""},
};

static enum ap_status stage_product(struct ap_writing *to, const struct product *p, const char *path,
	const struct ap_made *made)
{
	struct ap_output_sink sink;

	if (p->id == AP_SET_problem_out && !made->problem)
		return AP_STOPPED;
	if (p->stage)
		return p->stage(to, path, made);
	AP_TRY(ap_out_open(to, path, &sink));
	p->write(to->ctx, to->set, made, ap_output_write_fn, &sink);
	return AP_OK;
}

/* If the run is told to stop, files that take long are left out rather than the plan. */
enum ap_status ap_plan_stage(struct ap_writing *to, const struct ap_made *made, bool *taken)
{
	enum ap_status outcome = AP_OK;

	*taken = false;
	for (size_t i = 0; i < AP_COUNT(products); i++) {
		const struct product *p = &products[i];
		const char *path = ap_setting_path(ap_setting_at(p->id), to->set);
		enum ap_status st = path ? stage_product(to, p, path, made) : AP_OK;

		*taken |= path && !strcmp(path, "-");
		if (st == AP_STOPPED || (st == AP_LIMIT && p->id == AP_SET_dot_out)) {
			outcome = AP_STOPPED;
			st = ap_diag_add(to->ctx->diag, AP_WARNING, AP_OK,
				&(struct ap_where){.file = path}, NULL,
				"is left out, for %s%s", st == AP_STOPPED ? "the run was stopped"
				: "memory ran out while it was drawn", p->hint);
		}
		AP_TRY(st);
	}
	return outcome;
}

static enum ap_status write_picture(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_plan *plan, const char *name, ap_write_fn *write, void *user)
{
	struct ap_drawn drawn;
	enum ap_status st = ap_draw(ctx, set, ap_draw_format(name), plan, NULL, &drawn);

	if (st == AP_OK)
		write(user, drawn.text, drawn.len);
	ap_arena_destroy(drawn.arena);
	return st != AP_LIMIT ? st : ap_diag_add(ctx->diag, AP_ERROR, st, NULL, NULL,
		"memory ran out while the picture was drawn");
}

enum ap_status ap_plan_write(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_made *made,
	enum ap_setting_id id, const char *name, ap_write_fn *write, void *user)
{
	bool frozen = !set->only_trainable_params;
	struct ap_ckpt ckpt;

	for (size_t i = 0; i < AP_COUNT(products); i++)
		if (products[i].id == id && products[i].write &&
			(id != AP_SET_problem_out || made->problem)) {
			products[i].write(ctx, set, made, write, user);
			return AP_OK;
		}
	if (id == AP_SET_dot_out)
		return write_picture(ctx, set, made->plan, name, write, user);
	if (id != AP_SET_strategy_ckpt_save_file)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: there are no such bytes of this plan", ap_setting_at(id)->key);
	AP_TRY(ap_ckpt_check_names(ctx, made->plan->graph, frozen));
	ap_ckpt_of_plan(ctx, made->plan, frozen, &ckpt);
	if (ap_path_is_json(name))
		ap_ckpt_write_json(&ckpt, write, user);
	else
		ap_ckpt_write_pb(ctx, &ckpt, write, user);
	return AP_OK;
}

/* ---- planning ---- */

/* Refuses settings that ask for what no plan under them has. */
static enum ap_status check_settings(struct ap_ctx *ctx, const struct ap_settings *set, unsigned use)
{
	if (use == AP_FOR_evaluate && !set->strategy && !set->hybrid)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"evaluate: no strategy; expected --strategy FILE or --hybrid LIST");
	if (use == AP_FOR_evaluate || !set->certify)
		return AP_OK;
	if (!ap_settings_search(set))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--certify: %s leaves nothing to search", ap_settings_giver(ctx, set));
	return ap_certify_check(ctx, ap_setting_text(ctx->arena, ap_setting_at(AP_SET_search_mode), set));
}

enum ap_status ap_planning_check(struct ap_writing *to, unsigned use, struct ap_planning *p)
{
	*p = (struct ap_planning){0};
	AP_TRY(check_settings(to->ctx, to->set, use));
	AP_TRY(ap_plan_check_outputs(to));
	return ap_bundle_template(to->ctx, to->set, &p->made.op_template);
}

/* Outputs that depend on the inputs. */
static enum ap_status begin_outputs(struct ap_writing *to, struct ap_planning *p)
{
	AP_TRY(ap_plan_check_stages(to, p->in.machine->nstage));
	if (to->set->strategy_ckpt_save_file || to->set->bundle)
		AP_TRY(ap_ckpt_check_names(to->ctx, p->in.graph, !to->set->only_trainable_params));
	return ap_bundle_begin(to);
}

enum ap_status ap_planning_begin(struct ap_writing *to, const struct ap_sources *src, unsigned use,
	struct ap_planning *p)
{
	AP_TRY(ap_inputs_make(to->ctx, to->set, src, use, &p->in));
	AP_TRY(ap_inputs_give(to->ctx, to->set, src, use, &p->in));
	return begin_outputs(to, p);
}

/* Compares the memory of a plan that was not searched with the limit. */
static enum ap_status check_memory(struct ap_ctx *ctx, const struct ap_settings *set, unsigned use,
	const struct ap_plan *plan)
{
	int64_t bytes = plan->prediction.memory.total, usable = plan->capacity_bytes;
	char need[32], have[32], lack[32];

	if (bytes <= usable)
		return AP_OK;
	if (use == AP_FOR_evaluate)
		return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "memory-fits",
			"this strategy needs %s on a device that has %s", ap_format_bytes(bytes, need),
			ap_format_bytes(usable, have));
	(void)ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"%s does not fit the memory: %s are needed on a device, %s are usable, %s are short",
		ap_settings_giver(ctx, set), ap_format_bytes(bytes, need), ap_format_bytes(usable, have),
		ap_format_bytes(bytes - usable, lack));
	ap_diag_figure(ctx->diag, "needed_bytes", bytes);
	ap_diag_figure(ctx->diag, "usable_bytes", usable);
	ap_diag_figure(ctx->diag, "short_bytes", bytes - usable);
	return AP_INFEASIBLE;
}

static enum ap_status make_plan(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, unsigned use, struct ap_planning *p)
{
	enum ap_status st;

	ap_ctx_phase(ctx, use == AP_FOR_search ? "planning" : "evaluating");
	st = ap_inputs_plan(ctx, &p->in, &p->found, &p->plan, &p->made.problem);
	if (p->found.arena)
		ap_arena_own(ctx->arena, p->found.arena);
	if (st == AP_OK && p->in.counts)
		st = check_memory(ctx, set, use, &p->plan);
	p->made.plan = &p->plan;
	p->made.decoder = src->decoder;
	p->made.loaded = p->in.loaded;
	p->made.hybrid = &p->in.hybrid;
	return st;
}

/* The table, where none was needed so far. */
static enum ap_status make_table(struct ap_writing *to, struct ap_planning *p)
{
	return to->set->problem_out && !p->made.problem
		? ap_drive_table(to->ctx, &p->in.request, &p->made.problem) : AP_OK;
}

enum ap_status ap_planning_make(struct ap_writing *to, const struct ap_sources *src, unsigned use,
	struct ap_planning *p)
{
	enum ap_status st = make_plan(to->ctx, to->set, src, use, p);

	if (st == AP_INFEASIBLE && use == AP_FOR_search && !to->set->quiet) {
		ap_rules_conflict(to->ctx, to->set, src);
		ap_relax_report(to->ctx, to->set, src, &p->in, p->found.steps);
	}
	return st == AP_OK ? make_table(to, p) : st;
}

enum ap_status ap_planning_try(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_planning *p)
{
	AP_TRY(ap_inputs_make(ctx, set, src, AP_FOR_search, &p->in));
	AP_TRY(ap_inputs_give(ctx, set, src, AP_FOR_search, &p->in));
	return make_plan(ctx, set, src, AP_FOR_search, p);
}

enum ap_status ap_planning_take(struct ap_writing *to, struct ap_planning *p)
{
	AP_TRY(begin_outputs(to, p));
	return p->plan.search.status == AP_PLAN_STOPPED ? AP_OK : make_table(to, p);
}

struct writing {
	struct ap_writing *to;
	const struct ap_made *made;
	const char *rest;
	enum ap_status st;
};

static enum ap_status write_all(struct writing *w)
{
	const struct ap_settings *set = w->to->set;
	struct ap_str summary;
	bool taken;
	enum ap_status st = ap_plan_stage(w->to, w->made, &taken);

	if (st != AP_OK && st != AP_STOPPED)
		return st;
	ap_str_init(&summary, w->to->ctx->arena);
	if (set->json)
		ap_emit_summary_json(w->made->plan, w->made->tries, ap_str_take, &summary);
	else if (!set->quiet)
		ap_emit_summary(w->to->ctx, w->made->plan, w->made->tries, set->verbose, &summary);
	if (!taken && summary.len)
		AP_TRY(ap_out_text(w->to, summary.s, summary.len));
	AP_TRY(ap_out_commit(w->to));
	w->rest = taken ? summary.s : "";
	return st;
}

static void try_write(void *user)
{
	struct writing *w = user;

	w->st = write_all(w);
}

static void discard(void *user)
{
	struct writing *w = user;

	ap_outputs_discard(w->to->staged);
	w->to->staged = NULL;
}

enum ap_status ap_planning_write(struct ap_writing *to, struct ap_planning *p, const char **rest)
{
	bool again = p->found.arena && !to->set->problem_out && !to->staged;
	struct writing w = {.to = to, .made = &p->made, .rest = ""};
	struct ap_diag_mark said = ap_diag_mark(to->ctx->diag);
	struct ap_arena *made = NULL;

	ap_ctx_phase(to->ctx, "writing");
	if (!again) {
		try_write(&w);
	} else if (!ap_attempt_apart(to->ctx, try_write, discard, &w, &made)) {
		ap_diag_forget(to->ctx->diag, &said);
		AP_TRY(ap_drive_again(to->ctx, &p->in.request, &p->found, &p->plan));
		try_write(&w);
	}
	if (made)
		ap_arena_own(to->ctx->arena, made);
	if (p->found.arena)
		ap_arena_own(to->ctx->arena, p->found.arena);
	*rest = w.rest;
	return w.st;
}
