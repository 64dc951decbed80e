/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "ckpt/ckpt.h"
#include "cli/bundle.h"
#include "cli/cmd.h"
#include "cli/given.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/relax.h"
#include "cli/run.h"
#include "cli/stop.h"
#include "drive/certify.h"

/* A plan that was not searched: its own counts, priced and held against the memory. */
static enum ap_status plan_given(struct ap_run *run, const struct ap_inputs *in,
	const int32_t *const *counts, struct ap_plan *plan)
{
	char need[32], have[32], lack[32];
	int64_t bytes;
	enum ap_status st;

	AP_TRY(ap_drive_evaluate(&run->ctx, &in->request, counts, plan));
	bytes = plan->prediction.memory.total;
	if (bytes <= plan->capacity_bytes)
		return AP_OK;
	st = ap_diag_add(run->ctx.diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"%s does not fit the memory: %s are needed on a device, %s are usable, %s are short",
		ap_given_name(&run->ctx, run->opt), ap_format_bytes(bytes, need),
		ap_format_bytes(plan->capacity_bytes, have),
		ap_format_bytes(bytes - plan->capacity_bytes, lack));
	ap_diag_figure(run->ctx.diag, "needed_bytes", bytes);
	ap_diag_figure(run->ctx.diag, "usable_bytes", plan->capacity_bytes);
	ap_diag_figure(run->ctx.diag, "short_bytes", bytes - plan->capacity_bytes);
	return st;
}

static enum ap_status check_options(struct ap_run *run)
{
	const struct ap_options *o = run->opt;

	if (o->certify && !ap_given_searches(o))
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--certify: %s leaves nothing to search", ap_given_name(&run->ctx, o));
	return o->certify
		? ap_certify_check(&run->ctx, ap_choices_search_mode((size_t)o->search_mode)) : AP_OK;
}

struct writing {
	struct ap_run *run;
	const struct ap_plan *plan;
	const struct ap_problem *problem;
	const struct ap_op_template *op_template;
	enum ap_status st;
};

static void write_plan(void *user)
{
	struct writing *w = user;

	w->st = ap_out_plan(w->run, w->plan, w->problem, w->op_template);
}

static void discard(void *user)
{
	struct writing *w = user;

	ap_outputs_discard(w->run->outputs);
	w->run->outputs = NULL;
}

/* Where memory runs out, the search gives back what it holds, and the plan is made and written again. */
static enum ap_status write_outputs(struct writing *w, const struct ap_request *rq,
	struct ap_found *found, struct ap_plan *plan)
{
	bool again = found->arena && !w->run->opt->problem_out && !w->run->outputs;

	struct ap_arena *made = NULL;

	if (!again) {
		write_plan(w);
	} else if (!ap_attempt_apart(&w->run->ctx, write_plan, discard, w, &made)) {
		AP_TRY(ap_drive_again(&w->run->ctx, rq, found, plan));
		write_plan(w);
	}
	if (made)
		ap_arena_own(w->run->ctx.arena, made);
	if (found->arena)
		ap_arena_own(w->run->ctx.arena, found->arena);
	return w->st;
}

enum ap_status ap_cmd_search(struct ap_run *run)
{
	struct ap_sources src;
	struct ap_inputs in;
	struct ap_plan plan;
	struct ap_found found = {0};
	struct writing w = {.run = run, .plan = &plan};
	const int32_t *const *counts;
	enum ap_status st;

	if (run->opt->time_limit > 0)
		ap_stop_after(run->opt->time_limit);
	AP_TRY(check_options(run));
	AP_TRY(ap_out_check(run, NULL));
	AP_TRY(ap_bundle_template(run, &w.op_template));
	AP_TRY(ap_sources_read(run, &src));
	if (run->opt->time_limit == 0)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_LIMIT, NULL, NULL,
			"--time-limit 0 leaves no time for a plan");
	if (run->opt->min_devices)
		return ap_relax_min_devices(run, &src);
	AP_TRY(ap_inputs_make(run, &src, &in));
	AP_TRY(ap_given_counts(run, &in, &counts));
	AP_TRY(ap_out_check_stages(run, in.machine->nstage));
	if (run->opt->strategy_ckpt_save_file || run->opt->bundle)
		AP_TRY(ap_ckpt_check_names(&run->ctx, in.graph,
			!run->opt->only_trainable_params));
	AP_TRY(ap_bundle_begin(run));
	ap_run_phase(run, "planning");
	ap_stop_arm();
	st = counts ? plan_given(run, &in, counts, &plan)
		: ap_drive_find(&run->ctx, &in.request, &found, &plan, &w.problem);
	if (found.arena)
		ap_arena_own(run->ctx.arena, found.arena);
	if (st == AP_INFEASIBLE && !run->opt->quiet)
		ap_relax_report(run, &src, &in, counts, found.steps);
	if (st != AP_OK && st != AP_STOPPED)
		return st;
	if (run->opt->problem_out && !w.problem && st == AP_OK) /* what needed no table has one, too */
		AP_TRY(ap_drive_table(&run->ctx, &in.request, &w.problem));
	ap_run_phase(run, "writing");
	AP_TRY(write_outputs(&w, &in.request, &found, &plan));
	return st;
}
