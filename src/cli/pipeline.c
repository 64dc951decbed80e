/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pipeline.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "pipeline/stages.h"
#include "shard/arrival.h"
#include "shard/imposed.h"

enum ap_status ap_pipeline_read_config(struct ap_run *run, struct ap_json **out)
{
	const struct ap_option *row = ap_option_at(AP_OPT_stage_config);
	const char *text = run->opt->stage_config, *path = ap_option_path(row, run->opt);
	struct ap_input in;

	*out = NULL;
	if (!text)
		return AP_OK;
	if (!path) {
		in = (struct ap_input){.path = row->key, .len = strlen(text),
			.text = ap_arena_strdup(run->ctx.arena, text)};
		return ap_input_json(run, &in, 0, out);
	}
	AP_TRY(ap_input_read(run, path, &in));
	return ap_input_json(run, &in, 0, out);
}

enum ap_status ap_pipeline_hybrid(struct ap_run *run, const struct ap_inputs *in, struct ap_options *o,
	struct ap_hybrid *hybrid)
{
	int64_t micro_batches = o->micro_batches;

	if (!o->hybrid)
		return AP_OK;
	AP_TRY(ap_hybrid_parse(&run->ctx, o->hybrid, hybrid));
	hybrid->pp = o->pipeline_stages;
	hybrid->vpp = o->pipeline_segments;
	AP_TRY(ap_hybrid_fill(&run->ctx, in->machine->ndev, hybrid));
	AP_TRY(ap_hybrid_step(&run->ctx, hybrid, in->graph->batch, &o->micro_batches));
	if (o->micro_batches == micro_batches || o->origin[AP_OPT_micro_batches] == AP_FROM_DEFAULT)
		return AP_OK;
	return ap_settings_contradict(&run->ctx, run->opt, AP_OPT_hybrid, AP_OPT_micro_batches,
		ap_arena_printf(run->ctx.arena, "dp=%" PRId64 " x mbs=%" PRId64 " of a batch of %" PRId64
			" are %" PRId64 " micro-batches", hybrid->dp, hybrid->mbs, in->graph->batch,
			o->micro_batches));
}

/* Stages that the graph file says, for a run that has none. */
static bool says_stages(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].stage > 0 || g->node[i].segment > 0)
			return true;
	return false;
}

static enum ap_status cut(struct ap_run *run, const struct ap_sources *src,
	const struct ap_scheduler *scheduler, struct ap_inputs *in)
{
	const struct ap_options *o = run->opt;
	const struct ap_stages_request rq = {
		.graph = in->graph,
		.machine = in->machine,
		.step = &in->step,
		.scheduler = scheduler,
		.nstage = (int32_t)o->pipeline_stages,
		.nsegment = (int32_t)o->pipeline_segments,
		.doc = src->stage_config,
		.config = src->stage_config ? ap_json_root(src->stage_config) : NULL,
	};
	const struct ap_spot *spot;

	AP_TRY(ap_stages_make(&run->ctx, &rq, &spot));
	if (o->pipeline_stages * o->pipeline_segments > 1 || says_stages(in->graph))
		ap_graph_staged(&run->ctx, in->graph, spot, &in->graph);
	return AP_OK;
}

/* What makes the scheduler the one that it is. */
static enum ap_opt_id asked_by(const struct ap_options *o)
{
	return o->origin[AP_OPT_pipeline_scheduler] != AP_FROM_DEFAULT ? AP_OPT_pipeline_scheduler
		: o->pipeline_interleave ? AP_OPT_pipeline_interleave
		: o->pipeline_segments > 1 ? AP_OPT_pipeline_segments : AP_OPT_pipeline_stages;
}

enum ap_status ap_pipeline_make(struct ap_run *run, const struct ap_sources *src,
	struct ap_inputs *in)
{
	const struct ap_options *o = run->opt;
	int32_t nstage = (int32_t)o->pipeline_stages, nsegment = (int32_t)o->pipeline_segments;
	const struct ap_scheduler *scheduler =
		ap_scheduler_find(ap_choices_scheduler((size_t)o->pipeline_scheduler));
	struct ap_pipe *pipe = AP_NEW(run->ctx.arena, struct ap_pipe);
	const char *why = scheduler->refuses(nstage, nsegment, o->micro_batches);

	if (why)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s %s",
			ap_settings_said(&run->ctx, o, asked_by(o)), scheduler->name, why);
	AP_TRY(ap_stages_check(&run->ctx, in->graph, in->machine->ndev, nstage, nsegment));
	if (nstage > 1)
		ap_machine_staged(&run->ctx, in->machine, (uint32_t)nstage, &in->machine);
	in->graph = ap_graph_imposed(&run->ctx, in->graph, in->machine->ndev, &in->step);
	AP_TRY(ap_arrival_parse_text(&run->ctx, "--dataset-strategy", o->dataset_strategy, in->graph,
		in->machine->ndev, &in->step));
	ap_schedule_pipe(&run->ctx, scheduler, nstage, nsegment, o->micro_batches, pipe);
	in->step.pipe = pipe;
	return cut(run, src, scheduler, in);
}

static enum ap_status refuse(struct ap_run *run, const char *why)
{
	return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, "hybrid", "--hybrid %s: %s",
		run->opt->hybrid, why);
}

enum ap_status ap_pipeline_counts(struct ap_run *run, struct ap_inputs *in,
	const int32_t *const **counts)
{
	const char *why = "";
	const struct ap_graph *dealt = ap_hybrid_deal(&run->ctx, in->graph, in->machine->ndev, &in->step,
		&in->hybrid, &why);

	if (!dealt)
		return refuse(run, why);
	in->graph = in->request.graph = dealt;
	*counts = ap_hybrid_counts(&run->ctx, dealt, in->machine->ndev, &in->step, &in->hybrid, &why);
	return *counts ? AP_OK : refuse(run, why);
}
