/* SPDX-License-Identifier: Apache-2.0 */
#include "api/keep.h"

#include <string.h>

#include "api/bundle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/map.h"
#include "diff/plan_match.h"
#include "graph/staged.h"
#include "pipeline/schedule.h"
#include "plan/make.h"
#include "planfile/plan_form.h"

/* The file of the plan that path names, itself or in a bundle. */
static const char *plan_file(struct ap_ctx *ctx, const char *path)
{
	return ap_file_is_folder(path) && ap_bundle_is(ctx, path)
		? ap_path_join(ctx->arena, path, AP_BUNDLE_PLAN) : path;
}

enum ap_status ap_keep_read(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_known *file, struct ap_saved *plan)
{
	const char *what;

	AP_TRY(ap_kind_read(ctx, set, plan_file(ctx, path), file));
	what = !file->json && ap_input_is_prose(&file->in) ? "a text, and no plan" : ap_kind_text(file->kind);
	if (file->kind != AP_KIND_PLAN)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = file->in.path},
			NULL, "is %s; expected a plan, as --plan-out writes it", what);
	AP_TRY(ap_plan_form_check(ctx, file->doc));
	return ap_saved_of_plan(ctx, file->doc, plan);
}

/* Warns if the plan has nothing of the graph; true if it has. */
static bool has_any(struct ap_ctx *ctx, const char *path, const struct ap_inputs *in,
	const struct ap_plan_match *match)
{
	if (match->nopen < in->graph->nnode)
		return true;
	(void)ap_diag_add(ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path}, "keep",
		"has no operator of this graph with a cut that is valid here; nothing of it is kept");
	return false;
}

bool ap_keep_is_plan(struct ap_ctx *ctx, const struct ap_settings *set, const char *path)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	const char *file = plan_file(&quiet, path);
	struct ap_known known;

	return strcmp(path, "-") != 0 && !ap_file_is_folder(file) &&
		ap_kind_read(&quiet, set, file, &known) == AP_OK && known.kind == AP_KIND_PLAN;
}

/* Places operators that the plan does not have, part -1: with the earliest that use their results, else with
 * the latest whose results they use. */
static void place_new(const struct ap_graph *g, struct ap_spot *spot)
{
	for (ap_id i = g->nnode; i-- > 0;) {
		const struct ap_spot *first = NULL;

		for (uint16_t k = 0; spot[i].part < 0 && k < g->node[i].bound.nout; k++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].out[k]];

			for (uint32_t u = 0; u < t->nuse; u++) {
				const struct ap_spot *user = &spot[t->use[u].node];

				if (user->part >= 0 && (!first || user->part < first->part))
					first = user;
			}
		}
		if (first)
			spot[i] = *first;
	}
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0, open = spot[i].part < 0; open && k < g->node[i].bound.nin; k++) {
			ap_id from = g->tensor[g->node[i].in[k]].producer;

			if (from != AP_NONE && spot[from].part > spot[i].part)
				spot[i] = spot[from];
		}
}

const struct ap_spot *ap_keep_spots(struct ap_ctx *ctx, const struct ap_saved *plan,
	const struct ap_stages_request *cutting)
{
	const struct ap_graph *g = cutting->graph;
	struct ap_spot *spot = AP_NEW_N(ctx->arena, struct ap_spot, g->nnode);
	bool *filled = AP_NEW_N(ctx->arena, bool, (size_t)cutting->nstage * (size_t)cutting->nsegment);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *names = ap_map_create(ctx->scratch);
	int32_t parts = 0;

	for (uint32_t i = 0; i < plan->nop; i++)
		ap_map_put_str(names, plan->op[i].name, NULL);
	for (ap_id i = 0; i < g->nnode; i++) {
		ap_id at = ap_map_get_str(names, g->node[i].name);
		const struct ap_saved_op *op = at == AP_NONE ? NULL : &plan->op[at];

		spot[i].part = -1;
		if (op && op->stage >= 0 && op->stage < cutting->nstage && op->segment >= 0 &&
			op->segment < cutting->nsegment)
			spot[i] = (struct ap_spot){(int32_t)op->stage, (int32_t)op->segment,
				ap_schedule_part(cutting->scheduler, cutting->nstage, (int32_t)op->stage,
					(int32_t)op->segment)};
	}
	ap_arena_release(ctx->scratch, mark);
	place_new(g, spot);
	for (ap_id i = 0; i < g->nnode; i++) {
		if (spot[i].part < 0)
			return NULL;
		parts += !filled[spot[i].part];
		filled[spot[i].part] = true;
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			ap_id from = g->tensor[g->node[i].in[k]].producer;

			if (from != AP_NONE && spot[from].part > spot[i].part)
				return NULL;
		}
	}
	return parts == cutting->nstage * cutting->nsegment ? spot : NULL;
}

/* The number that a section of the plan file says; 0: none. */
static int64_t number_of(const struct ap_known *file, const char *section, const char *key)
{
	int64_t n = 0;

	return ap_jv_int(file->doc, ap_jv_get(ap_jv_get(ap_json_root(file->doc), section), key), &n) ? n : 0;
}

/* Offers the stages of the plan, where the cut is ours and the plan is a pipeline of as many. */
static void give_stages(struct ap_ctx *ctx, const struct ap_known *file, const struct ap_saved *old,
	struct ap_inputs *in)
{
	const struct ap_stages_request *cutting = &in->cutting;
	struct ap_pipe_cut *how = AP_NEW(ctx->arena, struct ap_pipe_cut);
	struct ap_pipe *pipe = ap_arena_memdup(ctx->arena, in->step.pipe, sizeof *pipe);
	struct ap_step *step = ap_arena_memdup(ctx->arena, &in->step, sizeof *step);
	const struct ap_spot *spot;
	struct ap_plan_match match;

	if (!cutting->graph || number_of(file, "pipeline", "stages") != cutting->nstage ||
		number_of(file, "pipeline", "segments") != cutting->nsegment)
		return;
	spot = ap_keep_spots(ctx, old, cutting);
	if (!spot)
		return;
	how->by = AP_CUT_BY_KEPT;
	pipe->cut = how;
	step->pipe = pipe;
	ap_graph_staged(ctx, cutting->graph, spot, &in->kept_cut.graph);
	ap_plan_match(ctx, old, in->kept_cut.graph, in->machine->ndev, step, &match);
	in->kept_cut.step = step;
	in->kept_cut.counts = match.counts;
	in->request.keep_cut = &in->kept_cut;
}

enum ap_status ap_keep_give(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_inputs *in)
{
	struct ap_plan_match match;
	struct ap_known file;
	struct ap_saved old;

	if (!set->keep)
		return AP_OK;
	AP_TRY(ap_keep_read(ctx, set, set->keep, &file, &old));
	ap_plan_match(ctx, &old, in->graph, in->machine->ndev, &in->step, &match);
	if (has_any(ctx, set->keep, in, &match)) {
		in->request.keep = match.counts;
		in->request.keep_file = ap_file_base(set->keep);
		in->request.keep_within = set->within / 100;
		in->request.keep_best_s = set->keep_best_s;
		give_stages(ctx, &file, &old, in);
	}
	return ap_diag_status(ctx->diag);
}

enum ap_status ap_keep_base(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_inputs *in)
{
	struct ap_plan_match match;
	struct ap_known file;
	struct ap_saved old;
	const int32_t **given;

	AP_TRY(ap_keep_read(ctx, set, path, &file, &old));
	ap_plan_match(ctx, &old, in->graph, in->machine->ndev, &in->step, &match);
	(void)has_any(ctx, path, in, &match);
	given = AP_NEW_N(ctx->arena, const int32_t *, in->graph->nnode);
	for (ap_id i = 0; i < in->graph->nnode; i++)
		given[i] = ap_plan_is_held(&in->graph->node[i]) ? match.counts[i] : NULL;
	in->request.given = given;
	return ap_diag_status(ctx->diag);
}
