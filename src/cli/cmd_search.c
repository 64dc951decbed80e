/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "cli/cmd.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/pipeline.h"
#include "cli/relax.h"
#include "cli/run.h"
#include "cli/stop.h"
#include "emit/ckpt.h"
#include "plan/certify.h"
#include "plan/complete.h"
#include "plan/lean.h"
#include "plan/pins.h"

static enum ap_status refuse_memory(struct ap_run *run, const struct ap_plan *plan)
{
	int64_t bytes = plan->prediction.memory.total;
	char need[32], have[32], lack[32];

	(void)ap_diag_add(run->ctx.diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"%s needs %s on a device that has %s, %s are short",
		run->opt->hybrid ? "this strategy"
				 : ap_choices_parallel_mode((size_t)run->opt->parallel_mode),
		ap_format_bytes(bytes, need), ap_format_bytes(plan->capacity_bytes, have),
		ap_format_bytes(bytes - plan->capacity_bytes, lack));
	(void)ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, "memory-largest", "most of it: %s",
		ap_plan_contributors(&run->ctx, plan));
	return AP_INFEASIBLE;
}

/* A plan that was not searched: its own counts, priced and held against the memory. */
static enum ap_status plan_given(struct ap_run *run, const struct ap_inputs *in,
	const int32_t *const *counts, struct ap_plan *plan)
{
	AP_TRY(ap_drive_evaluate(&run->ctx, &in->request, counts, plan));
	if (plan->prediction.memory.total > plan->capacity_bytes)
		return refuse_memory(run, plan);
	return AP_OK;
}

/* Cuts nothing, on a machine of one device. */
static enum ap_status plan_stand_alone(struct ap_run *run, const struct ap_inputs *in,
	struct ap_plan *plan)
{
	const int32_t **counts = AP_NEW_N(run->ctx.arena, const int32_t *, in->graph->nnode);
	int32_t *whole = AP_NEW_N(run->ctx.arena, int32_t, AP_MAX_FACTOR);

	for (int f = 0; f < AP_MAX_FACTOR; f++)
		whole[f] = 1;
	for (ap_id i = 0; i < in->graph->nnode; i++)
		counts[i] = whole;
	return plan_given(run, in, counts, plan);
}

/* Cuts the batch and nothing else. */
static enum ap_status plan_data_parallel(struct ap_run *run, const struct ap_inputs *in,
	struct ap_plan *plan)
{
	const char *why;
	const int32_t *const *counts = ap_baseline_data_parallel(&run->ctx, in->graph,
		in->machine->ndev, &in->step, &why);

	if (!counts)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--parallel-mode %s: %s",
			ap_choices_parallel_mode((size_t)run->opt->parallel_mode), why);
	return plan_given(run, in, counts, plan);
}

/* Takes what is given and cuts the rest by MindSpore's fixed rule. */
static enum ap_status plan_semi_auto(struct ap_run *run, const struct ap_inputs *in,
	struct ap_plan *plan)
{
	const int32_t *const *fixed, *const *counts;

	AP_TRY(ap_pins_make(&run->ctx, in->graph, in->machine->ndev, &in->step, in->request.given,
		&fixed));
	AP_TRY(ap_complete_batch(&run->ctx, in->graph, in->machine->ndev, &in->step, fixed, &counts));
	return plan_given(run, in, counts, plan);
}

/* As the expert's list says. */
static enum ap_status plan_hybrid(struct ap_run *run, struct ap_inputs *in, struct ap_plan *plan)
{
	const int32_t *const *counts;

	AP_TRY(ap_pipeline_counts(run, in, &counts));
	return plan_given(run, in, counts, plan);
}

static enum ap_status plan_it(struct ap_run *run, struct ap_inputs *in, struct ap_plan *plan,
	const struct ap_problem **problem)
{
	const struct ap_options *o = run->opt;

	if (o->time_limit == 0)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_LIMIT, NULL, NULL,
			"--time-limit 0 leaves no time for a plan");
	ap_stop_arm();
	if (o->hybrid)
		return plan_hybrid(run, in, plan);
	switch (o->parallel_mode) {
	case AP_MODE_STAND_ALONE:
		return plan_stand_alone(run, in, plan);
	case AP_MODE_DATA_PARALLEL:
	case AP_MODE_HYBRID_PARALLEL:
		return plan_data_parallel(run, in, plan);
	case AP_MODE_SEMI_AUTO_PARALLEL:
		return plan_semi_auto(run, in, plan);
	default:
		return ap_drive_search(&run->ctx, &in->request, plan, problem);
	}
}

static enum ap_status check_options(struct ap_run *run)
{
	const struct ap_options *o = run->opt;

	if (o->certify && o->parallel_mode != AP_MODE_AUTO_PARALLEL)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--certify: --parallel-mode %s searches nothing",
			ap_choices_parallel_mode((size_t)o->parallel_mode));
	return o->certify
		? ap_certify_check(&run->ctx, ap_choices_search_mode((size_t)o->search_mode)) : AP_OK;
}

enum ap_status ap_cmd_search(struct ap_run *run)
{
	struct ap_sources src;
	struct ap_inputs in;
	struct ap_plan plan;
	const struct ap_problem *problem = NULL;
	enum ap_status st, written;

	if (run->opt->time_limit > 0)
		ap_stop_after(run->opt->time_limit);
	AP_TRY(check_options(run));
	AP_TRY(ap_out_check(run, NULL));
	AP_TRY(ap_sources_read(run, &src));
	if (run->opt->min_devices)
		return ap_relax_min_devices(run, &src);
	AP_TRY(ap_inputs_make(run, &src, &in));
	if (run->opt->strategy_ckpt_load_file)
		AP_TRY(ap_input_strategy(run, &in, run->opt->strategy_ckpt_load_file, false,
			&in.request.given));
	AP_TRY(ap_out_check_stages(run, in.machine->nstage));
	if (run->opt->strategy_ckpt_save_file)
		AP_TRY(ap_ckpt_check_names(&run->ctx, in.graph,
			!run->opt->only_trainable_params));
	ap_run_phase(run, "planning");
	st = plan_it(run, &in, &plan, &problem);
	if (st == AP_INFEASIBLE && run->opt->parallel_mode == AP_MODE_AUTO_PARALLEL &&
		!run->opt->hybrid && !run->opt->quiet)
		ap_relax_report(run, &src, &in);
	if (st != AP_OK && st != AP_STOPPED)
		return st;
	if (run->opt->problem_out && !problem && st == AP_OK) /* what needed no table has one, too */
		AP_TRY(ap_drive_table(&run->ctx, &in.request, &problem));
	ap_run_phase(run, "writing");
	written = ap_out_plan(run, &plan, problem);
	return written == AP_OK ? st : written;
}
