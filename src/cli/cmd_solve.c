/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/outputs.h"
#include "api/request.h"
#include "base/diag.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/run.h"
#include "cli/stop.h"
#include "drive/certify.h"
#include "problem/problem.h"
#include "search/engine.h"

#define FAULT(run, st, ...) ap_diag_add((run)->ctx.diag, AP_ERROR, st, NULL, NULL, __VA_ARGS__)

static enum ap_status check_next(struct ap_run *run, const struct ap_problem *p, const char *engine)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->node[i].k > 1 && !p->node[i].next)
			return FAULT(run, AP_USAGE, "--search-mode %s needs \"next\" of every node, "
				"and node %" PRIu32 " (\"%s\") has none", engine, i,
				ap_diag_name(run->ctx.diag, p->node[i].name));
	return AP_OK;
}

/* The engine that --search-mode names; auto is the first row that can do it all. */
static enum ap_status choose_engine(struct ap_run *run, const struct ap_problem *p,
	const struct ap_engine **out)
{
	const char *name = ap_setting_text(run->ctx.arena, ap_setting_at(AP_SET_search_mode), run->set);
	unsigned needed = p->memory_limit == AP_NO_LIMIT ? 0 : AP_ENGINE_MEMORY;

	*out = ap_engine_find(name);
	for (size_t i = 0; !*out; i++)
		if ((ap_engine_at(i)->flags & (needed | AP_ENGINE_EXACT)) ==
			(needed | AP_ENGINE_EXACT))
			*out = ap_engine_at(i);
	if (needed && !((*out)->flags & needed))
		return FAULT(run, AP_USAGE,
			"--search-mode %s cannot honour the problem's memory limit", name);
	return (*out)->flags & AP_ENGINE_NEXT ? check_next(run, p, name) : AP_OK;
}

static enum ap_status write_problem(struct ap_run *run, const struct ap_problem *p)
{
	struct ap_output_sink sink;

	if (run->set->write_lp) {
		AP_TRY(ap_out_open(&run->to, run->set->write_lp, &sink));
		ap_problem_write_lp(p, ap_output_write_fn, &sink);
	}
	if (!run->set->write_wcsp)
		return AP_OK;
	if (p->memory_limit != AP_NO_LIMIT)
		return FAULT(run, AP_USAGE, "--write-wcsp: the format cannot express the problem's "
			"memory limit");
	AP_TRY(ap_out_open(&run->to, run->set->write_wcsp, &sink));
	ap_problem_write_wcsp(p, ap_output_write_fn, &sink);
	return AP_OK;
}

/* What the program ends with after this outcome. */
static enum ap_status status_of(struct ap_run *run, const struct ap_problem *p, const struct ap_choice *c)
{
	switch (c->outcome) {
	case AP_OUT_OPTIMAL:
		return AP_OK;
	case AP_OUT_FEASIBLE:
		return ap_ctx_stopped(&run->ctx) ? AP_STOPPED : AP_OK;
	case AP_OUT_INFEASIBLE:
		if (c->least_memory >= 0)
			return FAULT(run, AP_INFEASIBLE, "no choice fits: the least needs %" PRId64
				", the limit is %" PRId64, c->least_memory, p->memory_limit);
		return FAULT(run, AP_INFEASIBLE, "no choice exists: every one is forbidden");
	case AP_OUT_LIMIT:
		break;
	}
	return ap_stop_signal() ? AP_LIMIT
		: FAULT(run, AP_LIMIT, "a limit was hit before any choice was found");
}

static enum ap_status read_problem(struct ap_run *run, const struct ap_problem **out)
{
	struct ap_input in;
	struct ap_json *doc;

	AP_TRY(ap_input_read(&run->ctx, run->set, run->cli->arg[0], &in));
	AP_TRY(ap_input_json(&run->ctx, &in, 0, &doc));
	return ap_problem_load(&run->ctx, doc, out);
}

static void add_text(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

static bool takes_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

/* The solution is printed whatever the outcome (to standard error when a file takes standard output),
 * files appear only with a choice. */
static enum ap_status report(struct ap_run *run, const struct ap_problem *p, const struct ap_choice *c)
{
	enum ap_status st = status_of(run, p, c);
	struct ap_str text;

	ap_str_init(&text, run->ctx.arena);
	ap_choice_write_json(p, c, add_text, &text);
	if (takes_stdout(run->set->write_lp) || takes_stdout(run->set->write_wcsp))
		fputs(text.s, stderr);
	else if (st == AP_OK || st == AP_STOPPED)
		AP_TRY(ap_out_text(&run->to, text.s, text.len));
	else
		(void)ap_stdout_write(&run->ctx, text.s, text.len);
	if (st == AP_OK || st == AP_STOPPED)
		AP_TRY(ap_out_commit(&run->to));
	return st;
}

static enum ap_status certify(struct ap_run *run, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *choice)
{
	ap_ctx_phase(&run->ctx, "certifying");
	return ap_certify_problem(&run->ctx, p, budget, choice);
}

/* The engine's choice. What is not exact proves nothing: where it found none, an exact one has to. */
static void solve(struct ap_run *run, const struct ap_problem *p, const struct ap_engine *engine,
	const struct ap_budget *budget, struct ap_choice *choice)
{
	const struct ap_engine *exact = ap_engine_find("dynamic_programming");
	struct ap_choice proof;

	engine->solve(&run->ctx, p, budget, choice);
	if (choice->outcome != AP_OUT_LIMIT || engine->flags & AP_ENGINE_EXACT ||
		ap_ctx_stopped(&run->ctx))
		return;
	exact->solve(&run->ctx, p, budget, &proof);
	if (proof.outcome == AP_OUT_LIMIT)
		return;
	if (proof.outcome != AP_OUT_INFEASIBLE)
		ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, "mode-fits",
			"%s found no choice within the limit; the choice is one of %s", engine->name,
			exact->name);
	proof.work += choice->work;
	*choice = proof;
}

enum ap_status ap_cmd_solve(struct ap_run *run)
{
	const struct ap_settings *o = run->set;
	const struct ap_budget budget = {
		.work = (uint64_t)o->work_limit,
		.table_bytes = (size_t)o->planner_memory,
		.gap = o->gap / 100,
		.no_fold = !o->fold,
	};
	const struct ap_engine *engine;
	const struct ap_problem *p;
	struct ap_choice choice;

	if (o->time_limit > 0)
		ap_stop_after(o->time_limit);
	AP_TRY(ap_out_check(&run->to, NULL));
	if (o->certify)
		AP_TRY(ap_certify_check(&run->ctx, ap_setting_text(run->ctx.arena,
			ap_setting_at(AP_SET_search_mode), o)));
	ap_ctx_phase(&run->ctx, "reading");
	AP_TRY(read_problem(run, &p));
	AP_TRY(choose_engine(run, p, &engine));
	AP_TRY(write_problem(run, p));
	if (o->time_limit == 0)
		return FAULT(run, AP_LIMIT, "--time-limit 0 leaves no time for a search");
	ap_ctx_phase(&run->ctx, "solving");
	solve(run, p, engine, &budget, &choice);
	if (o->certify)
		AP_TRY(certify(run, p, &budget, &choice));
	return report(run, p, &choice);
}
