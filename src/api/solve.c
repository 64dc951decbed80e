/* SPDX-License-Identifier: Apache-2.0 */
#include "api/solve.h"

#include <inttypes.h>
#include <string.h>

#include "api/settings.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "drive/certify.h"
#include "partition/partition.h"
#include "problem/problem.h"
#include "search/engine.h"

#define TABLES 4 /* held at once by an engine, usually, beside the problem */
#define FAULT(to, st, ...) ap_diag_add((to)->ctx->diag, AP_ERROR, st, NULL, NULL, __VA_ARGS__)

static enum ap_status check_next(struct ap_writing *to, const struct ap_problem *p, const char *engine)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->node[i].k > 1 && !p->node[i].next)
			return FAULT(to, AP_USAGE, "--search-mode %s needs \"next\" of every node, "
				"and node %" PRIu32 " (\"%s\") has none", engine, i,
				ap_diag_name(to->ctx->diag, p->node[i].name));
	return AP_OK;
}

/* The engine that --search-mode names. */
static enum ap_status choose_engine(struct ap_writing *to, const struct ap_problem *p,
	const struct ap_engine **out)
{
	const char *name = ap_setting_text(to->ctx->arena, ap_setting_at(AP_SET_search_mode), to->set);
	unsigned needed = p->memory_limit == AP_NO_LIMIT ? 0 : AP_ENGINE_MEMORY;

	*out = ap_engine_find(name);
	if (needed && !((*out)->flags & needed))
		return FAULT(to, AP_USAGE,
			"--search-mode %s cannot honour the problem's memory limit", name);
	return (*out)->flags & AP_ENGINE_NEXT ? check_next(to, p, name) : AP_OK;
}

static enum ap_status write_problem(struct ap_writing *to, const struct ap_problem *p)
{
	struct ap_output_sink sink;

	if (to->set->write_lp) {
		AP_TRY(ap_out_open(to, to->set->write_lp, &sink));
		ap_problem_write_lp(p, ap_output_write_fn, &sink);
	}
	if (!to->set->write_wcsp)
		return AP_OK;
	if (p->memory_limit != AP_NO_LIMIT)
		return FAULT(to, AP_USAGE, "--write-wcsp: the format cannot express the problem's "
			"memory limit");
	AP_TRY(ap_out_open(to, to->set->write_wcsp, &sink));
	ap_problem_write_wcsp(p, ap_output_write_fn, &sink);
	return AP_OK;
}

/* The exit status for an outcome. */
static enum ap_status status_of(struct ap_writing *to, const struct ap_problem *p,
	const struct ap_choice *c)
{
	switch (c->outcome) {
	case AP_OUT_OPTIMAL:
		return AP_OK;
	case AP_OUT_FEASIBLE:
		return ap_ctx_stopped(to->ctx) ? AP_STOPPED : AP_OK;
	case AP_OUT_INFEASIBLE:
		if (c->least_memory >= 0)
			return FAULT(to, AP_INFEASIBLE, "no choice fits: the least needs %" PRId64
				", the limit is %" PRId64, c->least_memory, p->memory_limit);
		return FAULT(to, AP_INFEASIBLE, "no choice exists: every one is forbidden");
	case AP_OUT_LIMIT:
		break;
	}
	return AP_LIMIT;
}

static enum ap_status read_file(struct ap_writing *to, const char *path, struct ap_json **out)
{
	struct ap_input in;

	AP_TRY(ap_input_read(to->ctx, to->set, path, &in));
	return ap_input_json(to->ctx, &in, 0, out);
}

/* No search without any work or time. */
static enum ap_status check_limits(struct ap_writing *to)
{
	const struct ap_settings *o = to->set;

	if (o->time_limit == 0)
		return FAULT(to, AP_LIMIT, "--time-limit 0 leaves no time for a search");
	if (ap_setting_given(o, AP_SET_work_limit) && o->work_limit == 0)
		return FAULT(to, AP_LIMIT, "--work-limit 0 leaves no steps for a search");
	return AP_OK;
}

static bool takes_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

/* The solution is written for any outcome, files only if there is a choice. */
static enum ap_status report(struct ap_writing *to, const struct ap_problem *p, const struct ap_choice *c,
	const char **rest)
{
	enum ap_status st = status_of(to, p, c);
	struct ap_str text;

	ap_str_init(&text, to->ctx->arena);
	ap_choice_write_json(p, c, ap_str_take, &text);
	*rest = text.s;
	if (st != AP_OK && st != AP_STOPPED)
		return st;
	if (!takes_stdout(to->set->write_lp) && !takes_stdout(to->set->write_wcsp)) {
		AP_TRY(ap_out_text(to, text.s, text.len));
		*rest = "";
	}
	AP_TRY(ap_out_commit(to));
	return st;
}

/* Runs the engine. An inexact one proves nothing: if it finds no choice, an exact one decides. */
static void solve(struct ap_writing *to, const struct ap_problem *p, const struct ap_engine *engine,
	const struct ap_budget *budget, struct ap_choice *choice)
{
	const struct ap_engine *exact = ap_engine_find("auto");
	struct ap_choice proof;

	engine->solve(to->ctx, p, budget, choice);
	if (choice->outcome != AP_OUT_LIMIT || engine->flags & AP_ENGINE_EXACT ||
		ap_ctx_stopped(to->ctx))
		return;
	exact->solve(to->ctx, p, budget, &proof);
	if (proof.outcome == AP_OUT_LIMIT)
		return;
	if (proof.outcome != AP_OUT_INFEASIBLE)
		ap_diag_add(to->ctx->diag, AP_NOTE, AP_OK, NULL, "mode-fits",
			"%s found no choice within the limit; the choice is one of %s", engine->name,
			proof.engine);
	proof.work += choice->work;
	*choice = proof;
}

/* What `solve` of a pipeline cannot do. */
static enum ap_status check_pipeline(struct ap_writing *to, const struct ap_partition_engine **out)
{
	const char *name = ap_setting_text(to->ctx->arena, ap_setting_at(AP_SET_search_mode), to->set);

	if (to->set->write_lp || to->set->write_wcsp)
		return FAULT(to, AP_USAGE, "%s: the format cannot express a pipeline problem",
			to->set->write_lp ? "--write-lp" : "--write-wcsp");
	if (to->set->certify)
		return FAULT(to, AP_USAGE, "--certify: there is no second engine for pipeline problems but "
			"brute_force");
	*out = ap_partition_engine(name);
	if (!*out)
		return FAULT(to, AP_USAGE, "--search-mode %s does not solve pipeline problems; auto, "
			"dynamic_programming and brute_force do", name);
	return check_limits(to);
}

static enum ap_status pipeline_status(struct ap_writing *to, const struct ap_partition_choice *c)
{
	char text[32];

	if (c->plan)
		return c->ended == AP_ENDED_STOPPED ? AP_STOPPED : AP_OK;
	if (c->outcome != AP_OUT_INFEASIBLE)
		return AP_LIMIT;
	if (c->short_bytes > 0)
		return FAULT(to, AP_INFEASIBLE, "no plan fits: a stage lacks at least %s",
			ap_format_bytes(c->short_bytes, text));
	return FAULT(to, AP_INFEASIBLE, "no plan exists that keeps all rules and fits");
}

static enum ap_status solve_pipeline(struct ap_writing *to, const struct ap_json *doc, const char **rest)
{
	const struct ap_partition_budget budget = {.work = (uint64_t)to->set->work_limit,
		.gap = to->set->gap < 0 ? 0 : to->set->gap / 100};
	const struct ap_partition_engine *engine = NULL;
	const struct ap_partition *p;
	struct ap_partition_choice choice;
	enum ap_status st;
	struct ap_str text;

	AP_TRY(ap_partition_load(to->ctx, doc, &p));
	AP_TRY(check_pipeline(to, &engine));
	ap_ctx_phase(to->ctx, "solving");
	engine->solve(to->ctx, p, &budget, &choice);
	st = pipeline_status(to, &choice);
	ap_str_init(&text, to->ctx->arena);
	ap_partition_choice_write_json(p, &choice, ap_str_take, &text);
	*rest = text.s;
	if (st != AP_OK && st != AP_STOPPED)
		return st;
	AP_TRY(ap_out_text(to, text.s, text.len));
	*rest = "";
	AP_TRY(ap_out_commit(to));
	return st;
}

enum ap_status ap_solve(struct ap_writing *to, const char *path, const char **rest)
{
	const struct ap_settings *o = to->set;
	const struct ap_budget budget = {
		.work = (uint64_t)o->work_limit,
		.table_bytes = (size_t)o->planner_memory / TABLES,
		.gap = o->gap < 0 ? 0 : o->gap / 100,
		.no_fold = !o->fold,
	};
	const struct ap_engine *engine;
	const struct ap_problem *p;
	struct ap_choice choice;
	struct ap_json *doc;

	*rest = "";
	AP_TRY(ap_out_check(to, NULL));
	ap_ctx_phase(to->ctx, "reading");
	AP_TRY(read_file(to, path, &doc));
	if (ap_kind_of(ap_json_root(doc)) == AP_KIND_PIPELINE)
		return solve_pipeline(to, doc, rest);
	AP_TRY(ap_problem_load(to->ctx, doc, &p));
	if (o->certify)
		AP_TRY(ap_certify_check(to->ctx, ap_setting_text(to->ctx->arena,
			ap_setting_at(AP_SET_search_mode), o)));
	AP_TRY(choose_engine(to, p, &engine));
	AP_TRY(write_problem(to, p));
	AP_TRY(check_limits(to));
	ap_ctx_phase(to->ctx, "solving");
	solve(to, p, engine, &budget, &choice);
	if (o->certify) {
		ap_ctx_phase(to->ctx, "certifying");
		AP_TRY(ap_certify_problem(to->ctx, p, &budget, &choice));
	}
	return report(to, p, &choice, rest);
}
