/* SPDX-License-Identifier: Apache-2.0 */
#include "api/settle.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/choices.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/float8.h"
#include "cost/optimizer.h"
#include "decision/language.h"
#include "hybrid/hybrid.h"
#include "route/route.h"
#include "shard/recompute_parse.h"

enum ap_status ap_settings_contradict(struct ap_ctx *ctx, const struct ap_settings *o, enum ap_setting_id a,
	enum ap_setting_id b, const char *why)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"%s and %s contradict each other: %s", ap_setting_said(ctx, o, a),
		ap_setting_said(ctx, o, b), why);
}

#define CONTRADICT(a, b, why) \
	((void)ap_settings_contradict(ctx, o, AP_SET_##a, AP_SET_##b, why))
#define REFUSE(id, why) \
	((void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", \
		ap_setting_said(ctx, o, AP_SET_##id), why))
#define GIVEN(id) ap_setting_given(o, AP_SET_##id)

static void check_inputs(struct ap_ctx *ctx, const struct ap_settings *o)
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

/* Do settings leave one of these (a list that ends with AP_SET_COUNT) to be decided? */
static bool is_open(const struct ap_settings *o, const enum ap_setting_id *of)
{
	for (; *of != AP_SET_COUNT; of++)
		if (o->among[*of])
			return true;
	return false;
}

#define OPEN(...) is_open(o, (const enum ap_setting_id[]){__VA_ARGS__, AP_SET_COUNT})
#define OF_PIPELINE AP_SET_pipeline_scheduler, AP_SET_pipeline_segments, AP_SET_pipeline_stages, \
	AP_SET_micro_batches, AP_SET_hybrid

/* Does `plan` decide a setting, as it is not given? */
static bool is_decided(const struct ap_settings *o, enum ap_setting_id id, unsigned uses)
{
	return uses & AP_FOR_plan && !ap_setting_given(o, id);
}

static void check_pipeline(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses)
{
	int scheduler = o->pipeline_scheduler;
	bool several = scheduler == AP_SCHEDULER_INTERLEAVED || scheduler == AP_SCHEDULER_ZERO_BUBBLE_V;
	int64_t segments;

	if (GIVEN(pipeline_interleave) && !o->pipeline_interleave && several) {
		CONTRADICT(pipeline_interleave, pipeline_scheduler, "it runs several segments of a stage");
		return;
	}
	if (scheduler < 0 && o->pipeline_segments > 1)
		scheduler = AP_SCHEDULER_INTERLEAVED;
	if (scheduler < 0 || scheduler == AP_SCHEDULER_1F1B)
		scheduler = o->pipeline_interleave ? AP_SCHEDULER_INTERLEAVED : AP_SCHEDULER_1F1B;
	segments = o->pipeline_segments;
	if (scheduler == AP_SCHEDULER_INTERLEAVED) {
		enum ap_setting_id by = o->pipeline_interleave ? AP_SET_pipeline_interleave
			: GIVEN(pipeline_scheduler) ? AP_SET_pipeline_scheduler : AP_SET_pipeline_segments;

		if (o->pipeline_segments < 2 && !is_decided(o, AP_SET_pipeline_segments, uses))
			(void)ap_settings_contradict(ctx, o, by, AP_SET_pipeline_segments,
				"interleaved stages run at least two segments");
		if (o->micro_batches < o->pipeline_stages && (!o->hybrid || GIVEN(micro_batches)) &&
			!is_decided(o, AP_SET_micro_batches, uses))
			(void)ap_settings_contradict(ctx, o, by, AP_SET_micro_batches,
				"interleaved stages need at least as many micro-batches as stages");
	}
	if (scheduler == AP_SCHEDULER_ZERO_BUBBLE_V && segments && segments != 2)
		CONTRADICT(pipeline_scheduler, pipeline_segments, "its stages run two segments");
	if ((scheduler == AP_SCHEDULER_1F1B || scheduler == AP_SCHEDULER_GPIPE) && segments > 1)
		CONTRADICT(pipeline_scheduler, pipeline_segments,
			"it runs one segment of a stage, interleaved several");
	if (segments > 1 && o->pipeline_stages == 1 && !is_decided(o, AP_SET_pipeline_stages, uses))
		CONTRADICT(pipeline_segments, pipeline_stages, "segments are parts of several stages");
}

static const char dealing[] = "in data_parallel it takes lamb or adam_weight_decay";

/* Modes that cut only the batch, or nothing. */
static void check_plain_mode(struct ap_ctx *ctx, const struct ap_settings *o)
{
	static const char cuts[] = "the mode takes no strategies";
	bool alone = o->parallel_mode == AP_MODE_STAND_ALONE;

	if (!alone && o->parallel_mode != AP_MODE_DATA_PARALLEL &&
		o->parallel_mode != AP_MODE_HYBRID_PARALLEL)
		return;
	if (alone && (o->device_num > 1 || OPEN(AP_SET_device_num)))
		CONTRADICT(parallel_mode, device_num, "it is a mode of one device");
	if (o->pipeline_stages > 1 || OPEN(AP_SET_pipeline_stages))
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

static void check_modes(struct ap_ctx *ctx, const struct ap_settings *o)
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

static void check_fusion(struct ap_ctx *ctx, const struct ap_settings *o, enum ap_setting_id mode_id,
	enum ap_setting_id config_id, int mode, const struct ap_ints *config)
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

static void check_fusions(struct ap_ctx *ctx, const struct ap_settings *o)
{
	static const char why[] = "both say how AllReduces are parted";

#define CHECK(kind) \
	check_fusion(ctx, o, AP_SET_comm_fusion_##kind##_mode, AP_SET_comm_fusion_##kind##_config, \
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

/* --vary asks for other plans, and writes one at most. */
static void check_vary(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses)
{
	if (!o->vary) {
		if (GIVEN(plot_out))
			REFUSE(plot_out, "expected --vary, too, which says what is plotted");
		return;
	}
	if (o->min_devices)
		CONTRADICT(vary, min_devices, "each gives another answer");
	if (GIVEN(keep))
		CONTRADICT(vary, keep, "the best plan of each value is asked for");
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (o->among[i] && !(uses & AP_FOR_plan))
			(void)ap_settings_contradict(ctx, o, AP_SET_vary, (enum ap_setting_id)i,
				"beside it a search takes one value of each setting");
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (ap_setting_at(i)->type >= AP_SET_OUTPUT && i != AP_SET_plot_out && i != AP_SET_plan_out &&
			ap_setting_given(o, (enum ap_setting_id)i))
			(void)ap_settings_contradict(ctx, o, AP_SET_vary, (enum ap_setting_id)i,
				"it tells of plans; expected --plan-out FILE, for the best plan of now");
}

/* --min-devices makes no plan. */
static void check_min_devices(struct ap_ctx *ctx, const struct ap_settings *o)
{
	if (!o->min_devices)
		return;
	if (GIVEN(device_num))
		CONTRADICT(min_devices, device_num, "it is what is asked for");
	if (o->parallel_mode == AP_MODE_STAND_ALONE)
		CONTRADICT(min_devices, parallel_mode, "it is a mode of one device");
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (o->among[i] && i != AP_SET_device_num)
			(void)ap_settings_contradict(ctx, o, AP_SET_min_devices, (enum ap_setting_id)i,
				"it takes one value");
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (ap_setting_at(i)->type >= AP_SET_OUTPUT && ap_setting_given(o, (enum ap_setting_id)i))
			(void)ap_settings_contradict(ctx, o, AP_SET_min_devices, (enum ap_setting_id)i,
				"there is no plan to write");
}

static bool sums_where_it_is_read(const struct ap_settings *o)
{
	return ap_route_at((size_t)o->executor)->executor == AP_EXECUTOR_GENERIC;
}

static void check_dispatcher(struct ap_ctx *ctx, const struct ap_settings *o)
{
	if (o->moe_token_dispatcher_type != AP_DISPATCH_DEEPEP)
		return;
	if (!ap_route_at((size_t)o->executor)->relays)
		CONTRADICT(moe_token_dispatcher_type, executor,
			"it sends tokens to each of their experts; megatron, torchtitan and generic have "
			"DeepEP");
	if (o->moe_shared_expert_overlap)
		CONTRADICT(moe_token_dispatcher_type, moe_shared_expert_overlap,
			"shared experts run beside alltoall alone");
}

/* Passes that run as one: where Megatron has none. */
static void check_passes_beside(struct ap_ctx *ctx, const struct ap_settings *o)
{
	if (!o->overlap_moe_expert_parallel_comm)
		return;
	if (o->pipeline_scheduler >= 0 && o->pipeline_scheduler != AP_SCHEDULER_INTERLEAVED &&
		o->pipeline_stages > 1)
		CONTRADICT(overlap_moe_expert_parallel_comm, pipeline_scheduler,
			"in a pipeline interleaved stages alone run a forward and a backward pass as one");
	else if (o->pipeline_stages > 1 && o->pipeline_segments < 2)
		CONTRADICT(overlap_moe_expert_parallel_comm, pipeline_segments,
			"in a pipeline it needs at least two segments of each stage");
	if (o->moe_shared_expert_overlap)
		CONTRADICT(overlap_moe_expert_parallel_comm, moe_shared_expert_overlap,
			"the tokens of a pass hide behind the other pass, or behind shared experts");
}

static void check_level(struct ap_ctx *ctx, const struct ap_settings *o)
{
	int level = o->optimizer_level;

	if (!GIVEN(optimizer_level) || OPEN(AP_SET_optimizer_level))
		return;
	if (level == AP_LEVEL_NONE && o->enable_parallel_optimizer)
		CONTRADICT(optimizer_level, enable_parallel_optimizer, "with none, nothing is dealt");
	if ((level == AP_LEVEL_NONE || level == AP_LEVEL1) && o->gradient_accumulation_shard)
		CONTRADICT(gradient_accumulation_shard, optimizer_level,
			"gradients are dealt from level2 on");
}

void ap_settings_check(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses)
{
	const struct ap_choices *sizes = o->among[AP_SET_optimizer_weight_shard_size];

	check_inputs(ctx, o);
	if (!OPEN(OF_PIPELINE)) {
		check_pipeline(ctx, o, uses);
		check_passes_beside(ctx, o);
	}
	check_dispatcher(ctx, o);
	check_modes(ctx, o);
	check_fusions(ctx, o);
	if (sizes ? !sizes->any && ap_choices_has(sizes, 0) : !o->optimizer_weight_shard_size)
		REFUSE(optimizer_weight_shard_size, "expected -1, for all, or a number above 0");
	check_level(ctx, o);
	if (GIVEN(deadline) && !GIVEN(tokens))
		REFUSE(deadline, "expected --tokens, too, which say how long training takes");
	check_min_devices(ctx, o);
	if (o->unequal_stages && !ap_executor_language_of(ap_route_at((size_t)o->executor)->name)->unequal)
		CONTRADICT(unequal_stages, executor, "its stages have equal numbers of devices; generic "
			"stands for software without that limit");
	check_vary(ctx, o, uses);
	/* a file of settings may say it for whoever keeps a plan */
	if ((uses & AP_FOR_DECIDERS) && !o->keep && o->origin[AP_SET_within] == AP_FROM_OPTION)
		REFUSE(within, "expected --keep, too, of whose plan it is said");
	if (GIVEN(global_rank) && !OPEN(AP_SET_device_num) && o->device_num &&
		o->global_rank >= o->device_num)
		CONTRADICT(global_rank, device_num, "ranks count from 0");
	if (GIVEN(algo_approxi_epsilon) && o->algo_approxi_epsilon <= 0)
		REFUSE(algo_approxi_epsilon, "expected a number above 0, at most 1");
}

/* Given numbers of devices of the stages. */
static enum ap_status fit_stages(struct ap_ctx *ctx, const struct ap_settings *o, int64_t ndev)
{
	int64_t sum = 0, least = INT64_MAX;

	for (size_t i = 0; i < o->stage_devices.n; i++) {
		sum += o->stage_devices.v[i];
		least = o->stage_devices.v[i] < least ? o->stage_devices.v[i] : least;
	}
	if (sum != ndev)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: they are %" PRId64 " devices; the machine has %" PRId64,
			ap_setting_said(ctx, o, AP_SET_stage_devices), sum, ndev);
	if (o->optimizer_weight_shard_size > least)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: a stage has %" PRId64 " device%s",
			ap_setting_said(ctx, o, AP_SET_optimizer_weight_shard_size), least,
			least == 1 ? "" : "s");
	return ap_diag_status(ctx->diag);
}

enum ap_status ap_settings_fit_devices(struct ap_ctx *ctx, const struct ap_settings *o, int64_t ndev)
{
	int64_t stages = o->pipeline_stages;

	if (o->global_rank >= ndev)
		(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: the machine has %" PRId64 " devices",
			ap_setting_said(ctx, o, AP_SET_global_rank),
			ndev);
	if (o->stage_devices.n > 0)
		return fit_stages(ctx, o, ndev);
	if (stages > ndev || ndev % stages)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: %s the %" PRId64 " devices of the machine",
			ap_setting_said(ctx, o, AP_SET_pipeline_stages),
			stages > ndev ? "more stages than" : "the stages do not divide", ndev);
	if (o->optimizer_weight_shard_size > ndev / stages)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: a stage has %" PRId64 " devices",
			ap_setting_said(ctx, o, AP_SET_optimizer_weight_shard_size), ndev / stages);
	return ap_diag_status(ctx->diag);
}

/* Given, and different from the default. */
static bool differs(struct ap_ctx *ctx, const struct ap_settings *o, const struct ap_settings *usual,
	enum ap_setting_id id)
{
	const struct ap_setting_row *row = ap_setting_at(id);
	const char *then = ap_setting_text(ctx->arena, row, usual);

	return ap_setting_given(o, id) &&
		(!then || strcmp(ap_setting_text(ctx->arena, row, o), then) != 0);
}

static bool deals(const struct ap_settings *o)
{
	return o->enable_parallel_optimizer;
}

static bool deals_as_asked(const struct ap_settings *o)
{
	return o->enable_parallel_optimizer || o->optimizer_level == AP_LEVEL_NONE;
}

static bool deals_parts_as_asked(const struct ap_settings *o)
{
	return deals_as_asked(o) && (o->parallel_mode != AP_MODE_DATA_PARALLEL ||
		o->optimizer_level == AP_LEVEL_NONE);
}

static bool deals_parts(const struct ap_settings *o)
{
	return o->enable_parallel_optimizer && o->parallel_mode != AP_MODE_DATA_PARALLEL;
}

static bool aligns(const struct ap_settings *o)
{
	return o->tensor_slice_align_enable;
}

static bool has_stages(const struct ap_settings *o)
{
	return o->pipeline_stages > 1;
}

static bool trains(const struct ap_settings *o)
{
	return o->run_phase == AP_RUN_TRAINING;
}

static bool computes_in_8_bits(const struct ap_settings *o)
{
	return o->fp8_format >= 0;
}

static bool fuses(const struct ap_settings *o)
{
	return o->comm_fusion_openstate;
}

/* Settings that have an effect only if another one has a certain value; only the first matching row
 * is reported. */
static const struct need {
	enum ap_setting_id setting, other;
	bool (*holds)(const struct ap_settings *o);
} needs[] = {
	{AP_SET_enable_parallel_optimizer, AP_SET_run_phase, trains},
	{AP_SET_gradients_mean, AP_SET_run_phase, trains},
	{AP_SET_gradient_fp32_sync, AP_SET_run_phase, trains},
	{AP_SET_overlap_grad_reduce, AP_SET_run_phase, trains},
	{AP_SET_tp_comm_overlap, AP_SET_executor, sums_where_it_is_read},
	{AP_SET_overlap_moe_expert_parallel_comm, AP_SET_executor, sums_where_it_is_read},
	{AP_SET_overlap_moe_expert_parallel_comm, AP_SET_run_phase, trains},
	{AP_SET_fp8_recipe, AP_SET_fp8_format, computes_in_8_bits},
	{AP_SET_fp8_param_gather, AP_SET_fp8_format, computes_in_8_bits},
	{AP_SET_all_reduce_fusion_config, AP_SET_run_phase, trains},
	{AP_SET_recompute, AP_SET_run_phase, trains},
	{AP_SET_optimizer, AP_SET_run_phase, trains},
	{AP_SET_optimizer_level, AP_SET_enable_parallel_optimizer, deals_as_asked},
	{AP_SET_optimizer_level, AP_SET_parallel_mode, deals_parts_as_asked},
	{AP_SET_gradient_accumulation_shard, AP_SET_enable_parallel_optimizer, deals},
	{AP_SET_gradient_accumulation_shard, AP_SET_parallel_mode, deals_parts},
	{AP_SET_parallel_optimizer_threshold, AP_SET_enable_parallel_optimizer, deals},
	{AP_SET_parallel_optimizer_threshold, AP_SET_parallel_mode, deals_parts},
	{AP_SET_optimizer_weight_shard_size, AP_SET_enable_parallel_optimizer, deals},
	{AP_SET_optimizer_weight_shard_size, AP_SET_parallel_mode, deals_parts},
	{AP_SET_optimizer_weight_shard_aggregated_save, AP_SET_enable_parallel_optimizer, deals},
	{AP_SET_tensor_slice_align_size, AP_SET_tensor_slice_align_enable, aligns},
	{AP_SET_pipeline_scheduler, AP_SET_pipeline_stages, has_stages},
	{AP_SET_comm_fusion_allreduce_mode, AP_SET_comm_fusion_openstate, fuses},
	{AP_SET_comm_fusion_allgather_mode, AP_SET_comm_fusion_openstate, fuses},
	{AP_SET_comm_fusion_reducescatter_mode, AP_SET_comm_fusion_openstate, fuses},
};

/* A level that is still to be picked says whether anything is dealt, and `plan` decides what is not given. */
static bool is_open_need(const struct ap_settings *o, const struct need *n, unsigned uses)
{
	bool decided = n->other == AP_SET_enable_parallel_optimizer || n->other == AP_SET_parallel_mode ||
		n->other == AP_SET_pipeline_stages;

	if (decided && is_decided(o, n->other, uses))
		return true;
	return OPEN(n->setting, n->other) ||
		(n->other == AP_SET_enable_parallel_optimizer && OPEN(AP_SET_optimizer_level));
}

static enum ap_status note_needs(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses)
{
	enum ap_setting_id said = AP_SET_COUNT;
	struct ap_settings usual;

	ap_settings_init(&usual);
	for (size_t i = 0; i < AP_COUNT(needs); i++) {
		const struct need *n = &needs[i];

		if (n->setting == said || is_open_need(o, n, uses) || n->holds(o) ||
			!differs(ctx, o, &usual, n->setting))
			continue;
		said = n->setting;
		AP_TRY(ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, NULL, "%s is without effect: %s",
			ap_setting_said(ctx, o, n->setting), ap_setting_said(ctx, o, n->other)));
	}
	return AP_OK;
}

/* Gives a setting the values that a key of --hybrid implies. */
static enum ap_status imply(struct ap_ctx *ctx, struct ap_settings *o, enum ap_setting_id id,
	const char *word, const struct ap_hybrid_space *space, enum ap_hybrid_key key)
{
	const char *text = ap_choices_text(ctx->arena, &space->key[key], AP_RANGE_EVERY), *why;
	const char *name = ap_arena_printf(ctx->arena, "%s %s=%s", o->name[AP_SET_hybrid], word, text);

	if (!space->given[key] || ap_setting_give(ctx->arena, ap_setting_at(id), o, text,
			o->origin[AP_SET_hybrid], name, &why))
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", name, why);
}

static const char *names_of(struct ap_ctx *ctx, unsigned algorithms)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (int a = AP_CP_ALL_GATHER; a < AP_CP_ALGOS; a++)
		if (algorithms >> a & 1)
			ap_str_addf(&s, s.len ? ", %s" : "%s", ap_cp_algo_name((enum ap_cp_algo)a));
	return s.s;
}

/* What a key of --hybrid asks for may be more than the executor does. */
static enum ap_status hold_hybrid(struct ap_ctx *ctx, const struct ap_settings *o,
	const struct ap_hybrid_space *space)
{
	const struct ap_route *route = ap_route_at((size_t)o->executor);
	const struct ap_choices *scatter = &space->key[AP_HYBRID_PP_SCATTER],
		*algorithm = &space->key[AP_HYBRID_CP_ALGO];

	if (scatter->n && ap_choices_has(scatter, 1) && route->executor == AP_EXECUTOR_MINDSPORE)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: pp_scatter=1: %s sends "
			"what a rank has, and gathers nothing behind; --executor megatron or generic does",
			ap_setting_said(ctx, o, AP_SET_hybrid), route->name);
	for (size_t i = 0; i < algorithm->n; i++)
		if (!(route->cp_algos >> algorithm->v[i] & 1))
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: cp_algo=%s: %s has %s", ap_setting_said(ctx, o, AP_SET_hybrid),
				ap_cp_algo_name((enum ap_cp_algo)algorithm->v[i]), route->name,
				names_of(ctx, route->cp_algos));
	return AP_OK;
}

static void check_float8(struct ap_ctx *ctx, const struct ap_settings *o)
{
	if (o->fp8_format < 0)
		return;
	if (!sums_where_it_is_read(o))
		CONTRADICT(fp8_format, executor, "MindSpore runs products in the types of the graph; "
			"megatron, torchtitan and generic run them in 8 bits");
	if (o->fp8_param_gather && !o->enable_parallel_optimizer)
		CONTRADICT(fp8_param_gather, enable_parallel_optimizer,
			"what is gathered are the weights that the optimizer deals");
}

static enum ap_status settle_hybrid(struct ap_ctx *ctx, struct ap_settings *o)
{
	struct ap_choices *several = AP_NEW(ctx->arena, struct ap_choices);
	struct ap_hybrid_space space;

	if (!o->hybrid)
		return AP_OK;
	AP_TRY(ap_hybrid_space_parse(ctx, o->hybrid, &space));
	AP_TRY(hold_hybrid(ctx, o, &space));
	several->n = ap_hybrid_space_count(&space);
	several->any = several->n == 0;
	o->among[AP_SET_hybrid] = ap_hybrid_space_single(&space) ? NULL : several;
	if (o->overlap_moe_expert_parallel_comm && ap_hybrid_space_single(&space) && space.one.ep <= 1)
		return ap_settings_contradict(ctx, o, AP_SET_overlap_moe_expert_parallel_comm, AP_SET_hybrid,
			"without ep above 1 no tokens change hands");
	AP_TRY(imply(ctx, o, AP_SET_pipeline_stages, "pp", &space, AP_HYBRID_PP));
	AP_TRY(imply(ctx, o, AP_SET_pipeline_segments, "vpp", &space, AP_HYBRID_VPP));
	return imply(ctx, o, AP_SET_micro_batches, "mbn", &space, AP_HYBRID_MICRO_BATCHES);
}

/* Numbers of devices of the stages, which say how many there are. */
static enum ap_status settle_stage_devices(struct ap_ctx *ctx, struct ap_settings *o, unsigned uses)
{
	static const enum ap_setting_id equal_alone[] = {AP_SET_strategy_ckpt_save_file,
		AP_SET_strategy_ckpt_load_file, AP_SET_group_ckpt_save_file, AP_SET_bundle};
	int64_t n = (int64_t)o->stage_devices.n;
	const char *why;

	if (n == 0)
		return AP_OK;
	if (!ap_executor_language_of(ap_route_at((size_t)o->executor)->name)->unequal)
		return ap_settings_contradict(ctx, o, AP_SET_stage_devices, AP_SET_executor,
			"its stages have equal numbers of devices; generic stands for software without that "
			"limit");
	if (uses & AP_FOR_plan)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: plan decides how devices "
			"are dealt to stages, unequally with --unequal-stages; search and evaluate take them "
			"as given", ap_setting_said(ctx, o, AP_SET_stage_devices));
	if (o->min_devices || OPEN(AP_SET_device_num))
		return ap_settings_contradict(ctx, o, AP_SET_stage_devices, o->min_devices
			? AP_SET_min_devices : AP_SET_device_num, "they are all devices that there are");
	if (OPEN(AP_SET_pipeline_stages) || (GIVEN(pipeline_stages) && o->pipeline_stages != n))
		return ap_settings_contradict(ctx, o, AP_SET_stage_devices, AP_SET_pipeline_stages,
			ap_arena_printf(ctx->arena, "they are numbers of %" PRId64 " stage%s", n,
				n == 1 ? "" : "s"));
	if (o->dataset_strategy && (*o->dataset_strategy == '[' || *o->dataset_strategy == '('))
		return ap_settings_contradict(ctx, o, AP_SET_stage_devices, AP_SET_dataset_strategy,
			"inputs are cut otherwise on each number of devices");
	if (o->parallel_mode != AP_MODE_AUTO_PARALLEL && !ap_ints_equal(&o->stage_devices))
		return ap_settings_contradict(ctx, o, AP_SET_stage_devices, AP_SET_parallel_mode,
			"strategies that follow others, or one number of devices, are for stages of equal "
			"numbers of devices");
	if (!GIVEN(pipeline_stages) && !ap_setting_give(ctx->arena, ap_setting_at(AP_SET_pipeline_stages),
			o, ap_arena_printf(ctx->arena, "%" PRId64, n), o->origin[AP_SET_stage_devices],
			ap_setting_said(ctx, o, AP_SET_stage_devices), &why))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s",
			ap_setting_said(ctx, o, AP_SET_stage_devices), why);
	for (size_t i = 0; i < AP_COUNT(equal_alone); i++)
		if (ap_setting_given(o, equal_alone[i]) && !ap_ints_equal(&o->stage_devices))
			return ap_settings_contradict(ctx, o, AP_SET_stage_devices, equal_alone[i],
				"it is made for stages of equal numbers of devices; --plan-out has all of "
				"a plan");
	return AP_OK;
}

static void settle_pipeline(struct ap_settings *o)
{
	bool several = o->pipeline_interleave || o->pipeline_segments > 1;

	if (OPEN(AP_SET_pipeline_scheduler, AP_SET_pipeline_segments))
		return;
	if (!ap_setting_given(o, AP_SET_pipeline_scheduler) ||
		(o->pipeline_scheduler == AP_SCHEDULER_1F1B && o->pipeline_interleave))
		o->pipeline_scheduler = several ? AP_SCHEDULER_INTERLEAVED : AP_SCHEDULER_1F1B;
	if (!GIVEN(pipeline_segments))
		o->pipeline_segments = o->pipeline_scheduler == AP_SCHEDULER_ZERO_BUBBLE_V ? 2 : 1;
}

static void settle_inputs(struct ap_settings *o)
{
	if (o->dataset_strategy && !strcmp(o->dataset_strategy, "full_batch"))
		o->full_batch = true;
	if (!o->dataset_strategy)
		o->dataset_strategy = o->full_batch ? "full_batch" : "data_parallel";
}

static enum ap_status check_recomputed(struct ap_ctx *ctx, const struct ap_settings *o, const char *text)
{
	struct ap_step step = {0};
	unsigned what;

	AP_TRY(ap_recompute_parse(ctx, o->name[AP_SET_recompute], text, &step));
	what = step.recompute;
	for (uint32_t i = 0; i < step.nrecompute_first; i++)
		what |= step.recompute_first[i].what;
	if (o->fp8_format >= 0 && ap_float8_recipe_at((size_t)o->fp8_recipe)->delayed &&
		ap_route_at((size_t)o->executor)->degrees &&
		what & (AP_RECOMPUTE_NORM | AP_RECOMPUTE_MOE_ACT))
		return ap_settings_contradict(ctx, o, AP_SET_fp8_recipe, AP_SET_recompute,
			"with delayed scales Megatron recomputes neither norms nor activations of experts; "
			"with other recipes it does");
	if (o->overlap_moe_expert_parallel_comm && what & (AP_RECOMPUTE_FULL | AP_RECOMPUTE_MOE))
		return ap_settings_contradict(ctx, o, AP_SET_overlap_moe_expert_parallel_comm,
			AP_SET_recompute, "experts that are run again exchange their tokens once more: "
			"recompute other parts");
	if (step.recompute_unit > 1 && !ap_route_at((size_t)o->executor)->recompute_whole)
		return ap_settings_contradict(ctx, o, AP_SET_recompute, AP_SET_executor,
			"MindSpore recomputes layers one by one, as full does");
	return AP_OK;
}

static enum ap_status check_recompute(struct ap_ctx *ctx, const struct ap_settings *o)
{
	const struct ap_choices *c = o->among[AP_SET_recompute];

	if (!c)
		return check_recomputed(ctx, o, o->recompute);
	for (size_t i = 0; i < c->n; i++)
		AP_TRY(check_recomputed(ctx, o, c->word[i]));
	return AP_OK;
}

enum ap_status ap_settings_one(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses,
	const char *who)
{
	if (uses & (AP_FOR_plan | AP_FOR_search))
		return AP_OK;
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (o->among[i] && ap_setting_at(i)->uses & uses &&
			!strchr(o->name[i], ' ')) /* it is not implied */
			(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: %s takes one value; plan and search decide among several",
				ap_setting_said(ctx, o, (enum ap_setting_id)i), who);
	return ap_diag_status(ctx->diag);
}

enum ap_status ap_settings_settle(struct ap_ctx *ctx, struct ap_settings *o, unsigned uses)
{
	AP_TRY(settle_hybrid(ctx, o));
	AP_TRY(settle_stage_devices(ctx, o, uses));
	AP_TRY(check_recompute(ctx, o));
	ap_settings_check(ctx, o, uses);
	check_float8(ctx, o);
	AP_TRY(ap_diag_status(ctx->diag));
	settle_pipeline(o);
	settle_inputs(o);
	if (!ap_setting_given(o, AP_SET_optimizer_level))
		o->optimizer_level = o->gradient_accumulation_shard ? 1 : 0;
	if (!ap_setting_given(o, AP_SET_parameter_broadcast))
		o->parameter_broadcast = o->parallel_mode == AP_MODE_DATA_PARALLEL;
	if (o->parallel_mode == AP_MODE_STAND_ALONE)
		o->device_num = 1;
	return AP_OK;
}

static enum ap_status note_idle(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses)
{
	struct ap_settings usual;

	ap_settings_init(&usual);
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);
		const char *now, *then;

		if (!(row->on & AP_ON_NOTED) || !ap_setting_given(o, (enum ap_setting_id)i) ||
			!(row->uses & uses))
			continue;
		now = ap_setting_text(ctx->arena, row, o);
		then = ap_setting_text(ctx->arena, row, &usual);
		if (!then || strcmp(now, then) != 0)
			AP_TRY(ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, NULL,
				"%s has no influence on planning: %s",
				ap_setting_said(ctx, o, (enum ap_setting_id)i), row->idle));
	}
	return AP_OK;
}

/* Warns of a scheduler that MindSpore 2.7, which the routes target, refuses. */
static enum ap_status note_scheduler(struct ap_ctx *ctx, const struct ap_settings *o)
{
	if (OPEN(AP_SET_pipeline_scheduler, AP_SET_pipeline_stages) ||
		o->pipeline_scheduler != AP_SCHEDULER_ZERO_BUBBLE_V || o->pipeline_stages == 1 ||
		ap_route_at((size_t)o->executor)->executor != AP_EXECUTOR_MINDSPORE)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "scheduler-new",
		"%s: MindSpore 2.7 refuses this scheduler; newer ones have it, and 2.7 takes 1f1b, "
		"interleaved or not, and gpipe", ap_setting_said(ctx, o, AP_SET_pipeline_scheduler));
}

/* Warns of what the way into the executor cannot carry: cuts operator by operator if it is told degrees
 * alone, dealt sums if it loads a strategy checkpoint, which has no strategies of results. */
static enum ap_status note_executor(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses)
{
	const struct ap_route *route = ap_route_at((size_t)o->executor);
	struct ap_hybrid h;

	if (uses & AP_FOR_plan) /* it decides what the executor can be told */
		return AP_OK;
	if (route->degrees && !o->hybrid && o->parallel_mode == AP_MODE_AUTO_PARALLEL)
		return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "executor-degrees",
			"%s can be told degrees of parallelism only, and a search cuts each operator by "
			"itself; `evaluate --hybrid` plans what it can run", route->name);
	if (!o->hybrid || OPEN(AP_SET_hybrid) || !route->complete)
		return AP_OK;
	AP_TRY(ap_hybrid_parse(ctx, o->hybrid, &h));
	if (!h.sp)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "executor-sums",
		"--hybrid %s: sp=1 deals the sums of products to the ranks (out_strategy), which the "
		"strategy checkpoint that %s loads cannot say; --executor mindspore runs it", o->hybrid,
		route->name);
}

enum ap_status ap_settings_note(struct ap_ctx *ctx, const struct ap_settings *o, unsigned uses)
{
	AP_TRY(note_idle(ctx, o, uses));
	AP_TRY(note_needs(ctx, o, uses));
	AP_TRY(note_scheduler(ctx, o));
	AP_TRY(note_executor(ctx, o, uses));
	if (!OPEN(AP_SET_micro_batches, AP_SET_pipeline_stages) &&
		o->micro_batches < o->pipeline_stages && (!o->hybrid || GIVEN(micro_batches)) &&
		!is_decided(o, AP_SET_micro_batches, uses))
		AP_TRY(ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, NULL,
			"micro_batches %" PRId64 ", pipeline_stages %" PRId64 ": MindSpore's Pipeline takes "
			"at least as many micro-batches as stages", o->micro_batches, o->pipeline_stages));
	return AP_OK;
}
