/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"
#include "base/num.h"
#include "ckpt/ckpt.h"
#include "cli/bundle.h"
#include "cli/cmd.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/pipeline.h"
#include "cli/run.h"
#include "cli/stop.h"
#include "cost/pins.h"
#include "route/semi_auto.h"

static enum ap_status warn_of_memory(struct ap_run *run, const struct ap_plan *plan)
{
	char need[32], have[32];

	if (plan->prediction.memory.total <= plan->capacity_bytes)
		return AP_OK;
	return ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK, NULL, "memory-fits",
		"this strategy needs %s on a device that has %s",
		ap_format_bytes(plan->prediction.memory.total, need),
		ap_format_bytes(plan->capacity_bytes, have));
}

/* What the strategy does not name is completed as its mode says; in auto_parallel by cost. */
static enum ap_status complete(struct ap_run *run, const struct ap_inputs *in,
	const int32_t *const **counts)
{
	int64_t ndev = in->machine->ndev;

	if (run->opt->parallel_mode == AP_MODE_AUTO_PARALLEL)
		return AP_OK;
	AP_TRY(ap_pins_make(&run->ctx, in->graph, ndev, &in->step, *counts, counts));
	return ap_semi_auto_complete(&run->ctx, in->graph, in->machine, &in->step, *counts, counts);
}

static enum ap_status given_counts(struct ap_run *run, struct ap_inputs *in,
	const int32_t *const **counts)
{
	if (run->opt->hybrid)
		return ap_pipeline_counts(run, in, counts);
	AP_TRY(ap_input_strategy(run, in, run->opt->strategy, true, counts));
	return complete(run, in, counts);
}

enum ap_status ap_cmd_evaluate(struct ap_run *run)
{
	struct ap_inputs in;
	struct ap_plan plan;
	const struct ap_op_template *op_template;
	const int32_t *const *counts;

	if (!run->opt->strategy && !run->opt->hybrid)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"evaluate: no strategy; expected --strategy FILE or --hybrid LIST");
	AP_TRY(ap_out_check(run, NULL));
	AP_TRY(ap_bundle_template(run, &op_template));
	AP_TRY(ap_inputs_load(run, &in));
	if (run->opt->bundle)
		AP_TRY(ap_ckpt_check_names(&run->ctx, in.graph, !run->opt->only_trainable_params));
	AP_TRY(given_counts(run, &in, &counts));
	AP_TRY(ap_bundle_begin(run));
	ap_run_phase(run, "evaluating");
	ap_stop_arm();
	AP_TRY(ap_drive_evaluate(&run->ctx, &in.request, counts, &plan));
	AP_TRY(warn_of_memory(run, &plan));
	ap_run_phase(run, "writing");
	return ap_out_plan(run, &plan, NULL, op_template);
}
