/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/diag.h"
#include "cli/settings.h"
#include "cost/dealt.h"
#include "cost/recompute.h"
#include "route/route.h"
#include "shard/arrival.h"

static struct ap_fusion fusion(struct ap_arena *arena, const struct ap_options *o, int mode,
	const struct ap_ints *config)
{
	struct ap_fusion f = {.mode = AP_FUSION_SIZE, .bytes = AP_FUSION_BYTES};

	if (!o->comm_fusion_openstate)
		return (struct ap_fusion){.mode = AP_FUSION_OFF};
	if (mode == AP_FUSE_SIZE)
		f.bytes = config->v[0] << 20;
	if (mode == AP_FUSE_INDEX)
		f = (struct ap_fusion){.mode = AP_FUSION_INDEX, .nindex = (uint32_t)config->n,
			.index = ap_arena_memdup(arena, config->v, config->n * sizeof *config->v)};
	return f;
}

void ap_settings_step(struct ap_arena *arena, const struct ap_options *o, struct ap_step *step)
{
	const struct ap_ints *parts = &o->all_reduce_fusion_config;

	step->micro_batches = o->micro_batches;
	step->training = o->run_phase == AP_RUN_TRAINING;
	step->executor = ap_route_at((size_t)o->executor)->executor;
	step->full_batch = o->full_batch;
	step->optimizer_sharding = o->enable_parallel_optimizer;
	step->optimizer_level = o->optimizer_level + 1;
	step->shard_size = o->optimizer_weight_shard_size;
	step->shard_threshold_bytes = o->parallel_optimizer_threshold << 10;
	step->layerwise = o->parallel_mode == AP_MODE_HYBRID_PARALLEL;
	step->gradient_fp32_sync = o->gradient_fp32_sync;
	step->force_fp32 = o->force_fp32_communication;
	step->gradients_mean = o->gradients_mean;
	step->alltoall = o->enable_alltoall;
	step->recompute = (enum ap_recompute)o->recompute;
	step->recompute_keeps_comm = !o->mp_comm_recompute;
	step->recompute_regathers = o->parallel_optimizer_comm_recompute;
	step->recompute_slices = o->recompute_slice_activation;
	step->fully_use = o->fully_use_devices;
	step->slice_align = o->tensor_slice_align_enable ? o->tensor_slice_align_size : 0;
	step->follow = o->elementwise_op_strategy_follow;
	step->saved_whole = o->optimizer_weight_shard_aggregated_save;
	step->allreduce = parts->n
		? fusion(arena, o, AP_FUSE_INDEX, parts)
		: fusion(arena, o, o->comm_fusion_allreduce_mode, &o->comm_fusion_allreduce_config);
	step->allgather = fusion(arena, o, o->comm_fusion_allgather_mode,
		&o->comm_fusion_allgather_config);
	step->reducescatter = fusion(arena, o, o->comm_fusion_reducescatter_mode,
		&o->comm_fusion_reducescatter_config);
}

/* Whole parameters are dealt to the devices, as data_parallel does. */
static enum ap_status deal_whole(struct ap_ctx *ctx, const struct ap_options *o, const struct ap_graph *g,
	int64_t ndev, struct ap_step *step)
{
	const char *why = ap_dealt_refuses(ctx, g, ndev, step->optimizer);

	if (why)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s and %s contradict each other: %s",
			ap_settings_said(ctx, o, AP_OPT_parallel_mode),
			ap_settings_said(ctx, o, AP_OPT_enable_parallel_optimizer), why);
	step->optimizer_sharding = false;
	step->deal_whole = ndev;
	return AP_OK;
}

enum ap_status ap_settings_step_on(struct ap_ctx *ctx, const struct ap_options *o,
	const struct ap_graph *g, int64_t ndev, struct ap_step *step)
{
	if (*o->dataset_strategy == '[' || *o->dataset_strategy == '(')
		AP_TRY(ap_arrival_parse_text(ctx, o->name[AP_OPT_dataset_strategy], o->dataset_strategy, g,
			ndev / o->pipeline_stages, step));
	if (step->training && step->optimizer_sharding && o->parallel_mode == AP_MODE_DATA_PARALLEL &&
		ndev > 1)
		AP_TRY(deal_whole(ctx, o, g, ndev, step));
	return ap_recompute_notes(ctx, g, step);
}
