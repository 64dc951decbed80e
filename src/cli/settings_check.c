/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cli/settings.h"
#include "cost/optimizer.h"

static bool given(const struct ap_options *o, enum ap_opt_id id)
{
	return o->origin[id] != AP_FROM_DEFAULT;
}

const char *ap_settings_said(struct ap_ctx *ctx, const struct ap_options *o, enum ap_opt_id id)
{
	const struct ap_option *row = ap_option_at(id);
	const char *text = ap_option_text(ctx->arena, row, o);

	if (!given(o, id))
		return ap_arena_printf(ctx->arena, "%s %s (default)", row->key, text ? text : "none");
	if (strchr(o->name[id], ' ')) /* by the way of another one's value */
		return o->name[id];
	if (row->type == AP_OPT_FLAG && !strncmp(o->name[id], "--", 2) && !strchr(o->name[id], '.') &&
		(!strcmp(text, "true") || !strncmp(o->name[id], "--no-", 5)))
		return o->name[id];
	return ap_arena_printf(ctx->arena, "%s %s", o->name[id], text);
}

enum ap_status ap_settings_contradict(struct ap_ctx *ctx, const struct ap_options *o,
	enum ap_opt_id a, enum ap_opt_id b, const char *why)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"%s and %s contradict each other: %s", ap_settings_said(ctx, o, a),
		ap_settings_said(ctx, o, b), why);
}

#define CONTRADICT(a, b, why) \
	((void)ap_settings_contradict(ctx, o, AP_OPT_##a, AP_OPT_##b, why))
#define REFUSE(id, why) \
	((void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", \
		ap_settings_said(ctx, o, AP_OPT_##id), why))
#define GIVEN(id) given(o, AP_OPT_##id)

static void check_inputs(struct ap_ctx *ctx, const struct ap_options *o)
{
	const char *ds = o->dataset_strategy;

	if (!ds)
		return;
	if (strcmp(ds, "data_parallel") != 0 && strcmp(ds, "full_batch") != 0 && *ds != '[' && *ds != '(')
		REFUSE(dataset_strategy, "expected data_parallel, full_batch, or lists such as "
			"[[8,1],[8]]");
	else if (GIVEN(full_batch) && o->full_batch != !strcmp(ds, "full_batch"))
		CONTRADICT(full_batch, dataset_strategy, "full_batch is the dataset_strategy full_batch");
}

static void check_interleaved(struct ap_ctx *ctx, const struct ap_options *o)
{
	enum ap_opt_id by = o->pipeline_interleave ? AP_OPT_pipeline_interleave
		: GIVEN(pipeline_scheduler) ? AP_OPT_pipeline_scheduler : AP_OPT_pipeline_segments;

	if (o->pipeline_segments < 2)
		(void)ap_settings_contradict(ctx, o, by, AP_OPT_pipeline_segments,
			"interleaved stages run at least two segments");
	if (o->micro_batches < o->pipeline_stages && (!o->hybrid || GIVEN(micro_batches)))
		(void)ap_settings_contradict(ctx, o, by, AP_OPT_micro_batches,
			"interleaved stages need at least as many micro-batches as stages");
}

static void check_segments(struct ap_ctx *ctx, const struct ap_options *o, int scheduler)
{
	int64_t segments = o->pipeline_segments;

	if (scheduler == AP_SCHEDULER_INTERLEAVED)
		check_interleaved(ctx, o);
	if (scheduler == AP_SCHEDULER_ZERO_BUBBLE_V && segments && segments != 2)
		CONTRADICT(pipeline_scheduler, pipeline_segments, "its stages run two segments");
	if ((scheduler == AP_SCHEDULER_1F1B || scheduler == AP_SCHEDULER_GPIPE) && segments > 1)
		CONTRADICT(pipeline_scheduler, pipeline_segments,
			"it runs one segment of a stage, interleaved several");
	if (segments > 1 && o->pipeline_stages == 1)
		CONTRADICT(pipeline_segments, pipeline_stages, "segments are parts of several stages");
}

static void check_pipeline(struct ap_ctx *ctx, const struct ap_options *o)
{
	int scheduler = o->pipeline_scheduler;
	bool several = scheduler == AP_SCHEDULER_INTERLEAVED || scheduler == AP_SCHEDULER_ZERO_BUBBLE_V;

	if (GIVEN(pipeline_interleave) && !o->pipeline_interleave && several) {
		CONTRADICT(pipeline_interleave, pipeline_scheduler, "it runs several segments of a stage");
		return;
	}
	if (scheduler < 0 && o->pipeline_segments > 1)
		scheduler = AP_SCHEDULER_INTERLEAVED;
	if (scheduler < 0 || scheduler == AP_SCHEDULER_1F1B)
		scheduler = o->pipeline_interleave ? AP_SCHEDULER_INTERLEAVED : AP_SCHEDULER_1F1B;
	check_segments(ctx, o, scheduler);
}

static const char dealing[] = "in data_parallel it takes lamb or adam_weight_decay";

/* Modes that cut the batch and nothing else, and the one that cuts nothing. */
static void check_plain_mode(struct ap_ctx *ctx, const struct ap_options *o)
{
	static const char cuts[] = "the mode takes no strategies";
	bool alone = o->parallel_mode == AP_MODE_STAND_ALONE;

	if (!alone && o->parallel_mode != AP_MODE_DATA_PARALLEL &&
		o->parallel_mode != AP_MODE_HYBRID_PARALLEL)
		return;
	if (alone && o->device_num > 1)
		CONTRADICT(parallel_mode, device_num, "it is a mode of one device");
	if (o->pipeline_stages > 1)
		CONTRADICT(parallel_mode, pipeline_stages, "the mode has no pipeline");
	if (o->strategy_ckpt_load_file)
		CONTRADICT(parallel_mode, strategy_ckpt_load_file, cuts);
	if (o->strategy)
		CONTRADICT(parallel_mode, strategy, cuts);
	if (o->enable_parallel_optimizer && o->parallel_mode != AP_MODE_DATA_PARALLEL)
		CONTRADICT(parallel_mode, enable_parallel_optimizer,
			"the mode keeps every parameter on every device");
	if (o->optimizer >= 0 && o->enable_parallel_optimizer &&
		o->parallel_mode == AP_MODE_DATA_PARALLEL &&
		!ap_optimizer_at((size_t)o->optimizer)->deals_whole)
		CONTRADICT(enable_parallel_optimizer, optimizer, dealing);
}

static void check_modes(struct ap_ctx *ctx, const struct ap_options *o)
{
	check_plain_mode(ctx, o);
	if (GIVEN(search_mode) && GIVEN(parallel_mode) && o->parallel_mode != AP_MODE_AUTO_PARALLEL)
		CONTRADICT(parallel_mode, search_mode, "the mode searches nothing");
	if (!o->hybrid)
		return;
	if (o->strategy)
		CONTRADICT(hybrid, strategy, "one strategy can be evaluated");
	if (o->strategy_ckpt_load_file)
		CONTRADICT(hybrid, strategy_ckpt_load_file, "hybrid says how every operator is cut");
	if (GIVEN(search_mode) && o->parallel_mode == AP_MODE_AUTO_PARALLEL)
		CONTRADICT(hybrid, search_mode, "hybrid says how every operator is cut");
	if (GIVEN(parallel_mode) && o->parallel_mode != AP_MODE_AUTO_PARALLEL &&
		o->parallel_mode != AP_MODE_SEMI_AUTO_PARALLEL)
		CONTRADICT(hybrid, parallel_mode, "hybrid says how every operator is cut");
}

static void check_fusion(struct ap_ctx *ctx, const struct ap_options *o, enum ap_opt_id mode_id,
	enum ap_opt_id config_id, int mode, const struct ap_ints *config)
{
	if (mode == AP_FUSE_AUTO && config->n)
		(void)ap_settings_contradict(ctx, o, mode_id, config_id, "auto takes no configuration");
	if (mode == AP_FUSE_SIZE && config->n != 1)
		(void)ap_settings_contradict(ctx, o, mode_id, config_id, "size takes one number of MB");
	if (mode == AP_FUSE_INDEX && (!config->n || !config->v[0]))
		(void)ap_settings_contradict(ctx, o, mode_id, config_id, "index takes positions above 0");
	if (mode == AP_FUSE_SIZE && config->n == 1 && !config->v[0])
		(void)ap_settings_contradict(ctx, o, mode_id, config_id, "a bucket holds at least 1 MB");
}

static void check_fusions(struct ap_ctx *ctx, const struct ap_options *o)
{
	static const char why[] = "both say how AllReduces are parted";

#define CHECK(kind) \
	check_fusion(ctx, o, AP_OPT_comm_fusion_##kind##_mode, AP_OPT_comm_fusion_##kind##_config, \
		o->comm_fusion_##kind##_mode, &o->comm_fusion_##kind##_config)
	CHECK(allreduce);
	CHECK(allgather);
	CHECK(reducescatter);
#undef CHECK
	if (!o->all_reduce_fusion_config.n)
		return;
	if (GIVEN(comm_fusion_allreduce_mode))
		CONTRADICT(all_reduce_fusion_config, comm_fusion_allreduce_mode, why);
	else if (GIVEN(comm_fusion_allreduce_config))
		CONTRADICT(all_reduce_fusion_config, comm_fusion_allreduce_config, why);
	else if (!o->comm_fusion_openstate)
		CONTRADICT(all_reduce_fusion_config, comm_fusion_openstate,
			"without fusion there are no buckets");
}

static void check_optimizer(struct ap_ctx *ctx, const struct ap_options *o)
{
	if (!o->optimizer_weight_shard_size)
		REFUSE(optimizer_weight_shard_size, "expected -1, for all, or a number above 0");
	if (GIVEN(optimizer_level) && !o->optimizer_level && o->gradient_accumulation_shard)
		CONTRADICT(gradient_accumulation_shard, optimizer_level,
			"gradients are dealt from level2 on");
}

/* --min-devices plans nothing. */
static void check_min_devices(struct ap_ctx *ctx, const struct ap_options *o)
{
	if (!o->min_devices)
		return;
	if (GIVEN(device_num))
		CONTRADICT(min_devices, device_num, "it is what is asked for");
	if (o->parallel_mode == AP_MODE_STAND_ALONE)
		CONTRADICT(min_devices, parallel_mode, "it is a mode of one device");
	for (int i = 0; i < AP_OPT_COUNT; i++)
		if (ap_option_at(i)->type >= AP_OPT_OUTPUT && given(o, (enum ap_opt_id)i))
			(void)ap_settings_contradict(ctx, o, AP_OPT_min_devices, (enum ap_opt_id)i,
				"there is no plan to write");
}

void ap_settings_check(struct ap_ctx *ctx, const struct ap_options *o)
{
	check_inputs(ctx, o);
	check_pipeline(ctx, o);
	check_modes(ctx, o);
	check_fusions(ctx, o);
	check_optimizer(ctx, o);
	check_min_devices(ctx, o);
	if (GIVEN(global_rank) && o->device_num && o->global_rank >= o->device_num)
		CONTRADICT(global_rank, device_num, "ranks count from 0");
	if (GIVEN(algo_approxi_epsilon) && o->algo_approxi_epsilon <= 0)
		REFUSE(algo_approxi_epsilon, "expected a number above 0, at most 1");
}

enum ap_status ap_settings_fit_devices(struct ap_ctx *ctx, const struct ap_options *o, int64_t ndev)
{
	int64_t stages = o->pipeline_stages;

	if (o->global_rank >= ndev)
		(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: the machine has %" PRId64 " devices",
			ap_settings_said(ctx, o, AP_OPT_global_rank),
			ndev);
	if (stages > ndev || ndev % stages)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: %s the %" PRId64 " devices of the machine",
			ap_settings_said(ctx, o, AP_OPT_pipeline_stages),
			stages > ndev ? "more stages than" : "the stages do not divide", ndev);
	if (o->optimizer_weight_shard_size > ndev / stages)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: a stage has %" PRId64 " devices",
			ap_settings_said(ctx, o, AP_OPT_optimizer_weight_shard_size), ndev / stages);
	return ap_diag_status(ctx->diag);
}
