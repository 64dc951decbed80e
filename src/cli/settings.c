/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/settings.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "hybrid/hybrid.h"
#include "route/route.h"

static bool given(const struct ap_options *o, enum ap_opt_id id)
{
	return o->origin[id] != AP_FROM_DEFAULT;
}

/* What a key of --hybrid says of another setting, as if that had been given. */
static enum ap_status imply(struct ap_ctx *ctx, struct ap_options *o, enum ap_opt_id id, const char *key,
	int64_t value)
{
	const char *text = ap_arena_printf(ctx->arena, "%" PRId64, value), *why;
	const char *name = ap_arena_printf(ctx->arena, "%s %s=%s", o->name[AP_OPT_hybrid], key, text);

	if (!value || ap_option_give(ctx->arena, ap_option_at(id), o, text, o->origin[AP_OPT_hybrid], name,
			&why))
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", name, why);
}

static enum ap_status settle_hybrid(struct ap_ctx *ctx, struct ap_options *o)
{
	struct ap_hybrid h;

	if (!o->hybrid)
		return AP_OK;
	AP_TRY(ap_hybrid_parse(ctx, o->hybrid, &h));
	AP_TRY(imply(ctx, o, AP_OPT_pipeline_stages, "pp", h.pp));
	AP_TRY(imply(ctx, o, AP_OPT_pipeline_segments, "vpp", h.vpp));
	return imply(ctx, o, AP_OPT_micro_batches, "mbn", h.micro_batches);
}

static void settle_pipeline(struct ap_options *o)
{
	bool several = o->pipeline_interleave || o->pipeline_segments > 1;

	if (!given(o, AP_OPT_pipeline_scheduler) ||
		(o->pipeline_scheduler == AP_SCHEDULER_1F1B && o->pipeline_interleave))
		o->pipeline_scheduler = several ? AP_SCHEDULER_INTERLEAVED : AP_SCHEDULER_1F1B;
	if (!o->pipeline_segments)
		o->pipeline_segments = o->pipeline_scheduler == AP_SCHEDULER_ZERO_BUBBLE_V ? 2 : 1;
}

static void settle_inputs(struct ap_options *o)
{
	if (o->dataset_strategy && !strcmp(o->dataset_strategy, "full_batch"))
		o->full_batch = true;
	if (!o->dataset_strategy)
		o->dataset_strategy = o->full_batch ? "full_batch" : "data_parallel";
}

enum ap_status ap_settings_settle(struct ap_ctx *ctx, struct ap_cli *cli)
{
	struct ap_options *o = &cli->opt;

	AP_TRY(settle_hybrid(ctx, o));
	ap_settings_check(ctx, o);
	AP_TRY(ap_diag_status(ctx->diag));
	settle_pipeline(o);
	settle_inputs(o);
	if (!given(o, AP_OPT_optimizer_level))
		o->optimizer_level = o->gradient_accumulation_shard ? 1 : 0;
	if (!given(o, AP_OPT_parameter_broadcast))
		o->parameter_broadcast = o->parallel_mode == AP_MODE_DATA_PARALLEL;
	if (o->parallel_mode == AP_MODE_STAND_ALONE)
		o->device_num = 1;
	return AP_OK;
}

static enum ap_status note_idle(struct ap_ctx *ctx, const struct ap_cli *cli)
{
	struct ap_options usual;

	ap_options_init(&usual);
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);
		const char *now, *then;

		if (!(row->on & AP_ON_NOTED) || !given(&cli->opt, (enum ap_opt_id)i) ||
			!ap_cli_takes(cli, row))
			continue;
		now = ap_option_text(ctx->arena, row, &cli->opt);
		then = ap_option_text(ctx->arena, row, &usual);
		if (!then || strcmp(now, then) != 0)
			AP_TRY(ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, NULL,
				"%s has no influence on planning: %s",
				ap_settings_said(ctx, &cli->opt, (enum ap_opt_id)i), row->idle));
	}
	return AP_OK;
}

/* What MindSpore 2.7, which the routes are of, does not take. */
static enum ap_status note_scheduler(struct ap_ctx *ctx, const struct ap_options *o)
{
	if (o->pipeline_scheduler != AP_SCHEDULER_ZERO_BUBBLE_V || o->pipeline_stages == 1 ||
		ap_route_at((size_t)o->executor)->executor != AP_EXECUTOR_MINDSPORE)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "scheduler-new",
		"%s: MindSpore 2.7 refuses this scheduler; newer ones have it, and 2.7 takes 1f1b, "
		"interleaved or not, and gpipe", ap_settings_said(ctx, o, AP_OPT_pipeline_scheduler));
}

enum ap_status ap_settings_note(struct ap_ctx *ctx, const struct ap_cli *cli)
{
	const struct ap_options *o = &cli->opt;

	AP_TRY(note_idle(ctx, cli));
	AP_TRY(ap_settings_note_needs(ctx, o));
	AP_TRY(note_scheduler(ctx, o));
	if (o->micro_batches < o->pipeline_stages && (!o->hybrid || given(o, AP_OPT_micro_batches)))
		AP_TRY(ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, NULL,
			"micro_batches %" PRId64 ", pipeline_stages %" PRId64 ": MindSpore's Pipeline takes "
			"at least as many micro-batches as stages", o->micro_batches, o->pipeline_stages));
	return AP_OK;
}
