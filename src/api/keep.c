/* SPDX-License-Identifier: Apache-2.0 */
#include "api/keep.h"

#include <string.h>

#include "api/bundle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "diff/plan_match.h"
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

/* Reads a plan and places it on the graph of a search. */
static enum ap_status match_plan(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_inputs *in, struct ap_plan_match *out)
{
	struct ap_known file;
	struct ap_saved old;

	AP_TRY(ap_keep_read(ctx, set, path, &file, &old));
	ap_plan_match(ctx, &old, in->graph, in->machine->ndev, &in->step, out);
	return AP_OK;
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

enum ap_status ap_keep_give(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_inputs *in)
{
	struct ap_plan_match match;

	if (!set->keep)
		return AP_OK;
	AP_TRY(match_plan(ctx, set, set->keep, in, &match));
	if (has_any(ctx, set->keep, in, &match)) {
		in->request.keep = match.counts;
		in->request.keep_file = ap_file_base(set->keep);
		in->request.keep_within = set->within / 100;
		in->request.keep_best_s = set->keep_best_s;
	}
	return ap_diag_status(ctx->diag);
}

enum ap_status ap_keep_base(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_inputs *in)
{
	struct ap_plan_match match;
	const int32_t **given;

	AP_TRY(match_plan(ctx, set, path, in, &match));
	(void)has_any(ctx, path, in, &match);
	given = AP_NEW_N(ctx->arena, const int32_t *, in->graph->nnode);
	for (ap_id i = 0; i < in->graph->nnode; i++)
		given[i] = ap_plan_is_held(&in->graph->node[i]) ? match.counts[i] : NULL;
	in->request.given = given;
	return ap_diag_status(ctx->diag);
}
