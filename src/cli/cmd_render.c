/* SPDX-License-Identifier: Apache-2.0 */
#include "api/files.h"
#include "api/outputs.h"
#include "base/arena.h"
#include "base/diag.h"
#include "cli/cmd.h"
#include "cli/run.h"
#include "draw/picture.h"

static enum ap_status make_picture(struct ap_run *run, const struct ap_known *file, struct ap_picture *pic)
{
	const struct ap_graph_params params = {
		.unknown_batch_parallel = run->set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	const struct ap_graph *g;

	if (file->kind == AP_KIND_PLAN)
		return ap_picture_of_file(&run->ctx, file->doc, pic);
	if (file->kind == AP_KIND_STRATEGY && !file->json)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_SYNTAX,
			&(struct ap_where){.file = file->in.path}, NULL,
			"is not JSON; expected a plan or an operator graph");
	if (file->kind != AP_KIND_GRAPH)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = file->in.path}, NULL,
			"is %s; expected a plan or an operator graph", ap_kind_text(file->kind));
	AP_TRY(ap_graph_load(&run->ctx, file->doc,
		ap_input_sha256(&run->ctx, &file->in), &params, &g));
	ap_picture_of_graph(&run->ctx, g, pic);
	return AP_OK;
}

enum ap_status ap_cmd_render(struct ap_run *run)
{
	const char *path = run->set->dot_out;
	struct ap_known file;
	struct ap_picture pic;
	enum ap_status st;

	if (!path)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"render: no output; expected --dot-out FILE");
	AP_TRY(ap_out_check(&run->to, NULL));
	ap_ctx_phase(&run->ctx, "reading");
	AP_TRY(ap_kind_read(&run->ctx, run->set, run->cli->arg[0], &file));
	AP_TRY(make_picture(run, &file, &pic));
	ap_ctx_phase(&run->ctx, "drawing");
	st = ap_out_draw(&run->to, path, NULL, &pic);
	if (st == AP_LIMIT)
		return ap_out_fault(&run->to, st, path, "memory ran out while the picture was drawn");
	AP_TRY(st);
	return ap_out_commit(&run->to);
}
