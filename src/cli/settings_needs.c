/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "cli/settings.h"

/* Given, and other than where it is not. */
static bool differs(struct ap_ctx *ctx, const struct ap_options *o, const struct ap_options *usual,
	enum ap_opt_id id)
{
	const struct ap_option *row = ap_option_at(id);
	const char *then = ap_option_text(ctx->arena, row, usual);

	return o->origin[id] != AP_FROM_DEFAULT &&
		(!then || strcmp(ap_option_text(ctx->arena, row, o), then) != 0);
}

static bool deals(const struct ap_options *o)
{
	return o->enable_parallel_optimizer;
}

static bool deals_parts(const struct ap_options *o)
{
	return o->enable_parallel_optimizer && o->parallel_mode != AP_MODE_DATA_PARALLEL;
}

static bool aligns(const struct ap_options *o)
{
	return o->tensor_slice_align_enable;
}

static bool has_stages(const struct ap_options *o)
{
	return o->pipeline_stages > 1;
}

static bool trains(const struct ap_options *o)
{
	return o->run_phase == AP_RUN_TRAINING;
}

static bool fuses(const struct ap_options *o)
{
	return o->comm_fusion_openstate;
}

/* Settings that count only where another one has a certain value; the first row that speaks of one
 * that is given is enough. */
static const struct need {
	enum ap_opt_id setting, other;
	bool (*holds)(const struct ap_options *o);
} needs[] = {
	{AP_OPT_enable_parallel_optimizer, AP_OPT_run_phase, trains},
	{AP_OPT_gradients_mean, AP_OPT_run_phase, trains},
	{AP_OPT_gradient_fp32_sync, AP_OPT_run_phase, trains},
	{AP_OPT_all_reduce_fusion_config, AP_OPT_run_phase, trains},
	{AP_OPT_recompute, AP_OPT_run_phase, trains},
	{AP_OPT_optimizer, AP_OPT_run_phase, trains},
	{AP_OPT_optimizer_level, AP_OPT_enable_parallel_optimizer, deals},
	{AP_OPT_optimizer_level, AP_OPT_parallel_mode, deals_parts},
	{AP_OPT_gradient_accumulation_shard, AP_OPT_enable_parallel_optimizer, deals},
	{AP_OPT_gradient_accumulation_shard, AP_OPT_parallel_mode, deals_parts},
	{AP_OPT_parallel_optimizer_threshold, AP_OPT_enable_parallel_optimizer, deals},
	{AP_OPT_parallel_optimizer_threshold, AP_OPT_parallel_mode, deals_parts},
	{AP_OPT_optimizer_weight_shard_size, AP_OPT_enable_parallel_optimizer, deals},
	{AP_OPT_optimizer_weight_shard_size, AP_OPT_parallel_mode, deals_parts},
	{AP_OPT_optimizer_weight_shard_aggregated_save, AP_OPT_enable_parallel_optimizer, deals},
	{AP_OPT_tensor_slice_align_size, AP_OPT_tensor_slice_align_enable, aligns},
	{AP_OPT_pipeline_scheduler, AP_OPT_pipeline_stages, has_stages},
	{AP_OPT_comm_fusion_allreduce_mode, AP_OPT_comm_fusion_openstate, fuses},
	{AP_OPT_comm_fusion_allgather_mode, AP_OPT_comm_fusion_openstate, fuses},
	{AP_OPT_comm_fusion_reducescatter_mode, AP_OPT_comm_fusion_openstate, fuses},
};

enum ap_status ap_settings_note_needs(struct ap_ctx *ctx, const struct ap_options *o)
{
	enum ap_opt_id said = AP_OPT_COUNT;
	struct ap_options usual;

	ap_options_init(&usual);
	for (size_t i = 0; i < AP_COUNT(needs); i++) {
		const struct need *n = &needs[i];

		if (n->setting == said || n->holds(o) || !differs(ctx, o, &usual, n->setting))
			continue;
		said = n->setting;
		AP_TRY(ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, NULL, "%s is without effect: %s",
			ap_settings_said(ctx, o, n->setting), ap_settings_said(ctx, o, n->other)));
	}
	return AP_OK;
}
