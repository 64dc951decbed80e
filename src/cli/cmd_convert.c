/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"
#include "cli/cmd.h"
#include "cli/kind.h"
#include "cli/outputs.h"
#include "cli/run.h"
#include "emit/ckpt.h"

/* Shapes of the parameters: the JSON form has them, protobuf has not, a graph knows them. */
static enum ap_status add_shapes(struct ap_run *run, const struct ap_known *file,
	struct ap_ckpt *ckpt)
{
	const struct ap_graph *g;

	if (run->opt->graph) {
		AP_TRY(ap_input_graph(run, run->opt->graph, &g));
		return ap_ckpt_add_shapes(&run->ctx, g, ckpt);
	}
	for (uint32_t i = 0; i < ckpt->nlayout; i++)
		if (!ckpt->layout[i].has_shape)
			return ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK,
				&(struct ap_where){.file = file->in.path}, "shape-known",
				"holds no full shapes; without --graph only MindSpore's Python tools "
				"will read the JSON form");
	return AP_OK;
}

static enum ap_status convert_strategy(struct ap_run *run, const struct ap_known *file,
	const char *to)
{
	bool json = ap_out_is_json(to);
	struct ap_ckpt ckpt;
	struct ap_output_sink sink;

	AP_TRY(ap_ckpt_read(&run->ctx, file->in.path, file->in.text, file->in.len, file->json,
		&ckpt));
	AP_TRY(json ? add_shapes(run, file, &ckpt) : ap_out_check_binary(run, to));
	AP_TRY(ap_out_open(run, to, &sink));
	if (json)
		ap_ckpt_write_json(&ckpt, ap_output_write_fn, &sink);
	else
		ap_ckpt_write_pb(&run->ctx, &ckpt, ap_output_write_fn, &sink);
	return AP_OK;
}

static enum ap_status convert_rank_table(struct ap_run *run, const struct ap_known *file,
	const char *to)
{
	const struct ap_topo *topo;
	struct ap_output_sink sink;

	AP_TRY(ap_topo_load(&run->ctx, file->doc, ap_input_sha256(run, &file->in), &topo));
	AP_TRY(ap_topo_write_losses(&run->ctx, file->doc, topo));
	AP_TRY(ap_out_open(run, to, &sink));
	ap_topo_write(topo, ap_output_write_fn, &sink);
	return AP_OK;
}

enum ap_status ap_cmd_convert(struct ap_run *run)
{
	const char *to = run->cli->arg[1];
	struct ap_known file;

	AP_TRY(ap_out_check(run, to));
	ap_run_phase(run, "reading");
	AP_TRY(ap_kind_read(run, run->cli->arg[0], &file));
	ap_run_phase(run, "converting");
	if (file.kind == AP_KIND_STRATEGY)
		AP_TRY(convert_strategy(run, &file, to));
	else if (file.kind == AP_KIND_RANK_TABLE)
		AP_TRY(convert_rank_table(run, &file, to));
	else
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = file.in.path}, NULL,
			"is %s; expected a strategy checkpoint or a rank table",
			ap_kind_text(file.kind));
	return ap_out_commit(run);
}
