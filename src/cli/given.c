/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/given.h"

#include "base/arena.h"
#include "base/diag.h"
#include "cli/pipeline.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "cost/pins.h"
#include "drive/baseline.h"
#include "route/semi_auto.h"

bool ap_given_searches(const struct ap_options *o)
{
	return !o->hybrid && o->parallel_mode == AP_MODE_AUTO_PARALLEL;
}

const char *ap_given_name(struct ap_ctx *ctx, const struct ap_options *o)
{
	return ap_settings_said(ctx, o, o->hybrid ? AP_OPT_hybrid : AP_OPT_parallel_mode);
}

/* Nothing is cut. */
static const int32_t *const *whole(struct ap_run *run, const struct ap_inputs *in)
{
	const int32_t **counts = AP_NEW_N(run->ctx.arena, const int32_t *, in->graph->nnode);
	int32_t *ones = AP_NEW_N(run->ctx.arena, int32_t, AP_MAX_FACTOR);

	for (int f = 0; f < AP_MAX_FACTOR; f++)
		ones[f] = 1;
	for (ap_id i = 0; i < in->graph->nnode; i++)
		counts[i] = ones;
	return counts;
}

/* The batch is cut and nothing else. */
static enum ap_status by_batch(struct ap_run *run, const struct ap_inputs *in,
	const int32_t *const **counts)
{
	const char *why;

	*counts = ap_baseline_data_parallel(&run->ctx, in->graph, in->machine->ndev, &in->step, &why);
	if (*counts)
		return AP_OK;
	return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s",
		ap_given_name(&run->ctx, run->opt), why);
}

/* What is given, and the rest by MindSpore's fixed rule. */
static enum ap_status semi_auto(struct ap_run *run, const struct ap_inputs *in,
	const int32_t *const **counts)
{
	int64_t ndev = in->machine->ndev;
	const int32_t *const *fixed;

	AP_TRY(ap_pins_make(&run->ctx, in->graph, ndev, &in->step, in->request.given, &fixed));
	return ap_semi_auto_complete(&run->ctx, in->graph, in->machine, &in->step, fixed, counts);
}

enum ap_status ap_given_counts(struct ap_run *run, struct ap_inputs *in, const int32_t *const **counts)
{
	const char *path = run->opt->strategy_ckpt_load_file;

	*counts = NULL;
	if (run->opt->hybrid)
		return ap_pipeline_counts(run, in, counts);
	if (path)
		AP_TRY(ap_input_strategy(run, in, path, false, &in->request.given));
	switch (run->opt->parallel_mode) {
	case AP_MODE_STAND_ALONE:
		*counts = whole(run, in);
		return AP_OK;
	case AP_MODE_DATA_PARALLEL:
	case AP_MODE_HYBRID_PARALLEL:
		return by_batch(run, in, counts);
	case AP_MODE_SEMI_AUTO_PARALLEL:
		return semi_auto(run, in, counts);
	default:
		return AP_OK;
	}
}
