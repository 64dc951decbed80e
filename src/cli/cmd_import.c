/* SPDX-License-Identifier: Apache-2.0 */
#include "api/outputs.h"
#include "api/request.h"
#include "base/diag.h"
#include "cli/cmd.h"
#include "cli/run.h"
#include "import/import.h"

enum ap_status ap_cmd_import(struct ap_run *run)
{
	const struct ap_settings *o = run->set;
	const struct ap_import_params params = {
		.micro_batches = o->micro_batches,
		.partial = o->partial,
		.searched = o->searched_strategies,
		.unknown_batch_parallel = o->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	const struct ap_import *g;
	struct ap_output_sink sink;
	struct ap_input in;

	AP_TRY(ap_out_check(&run->to, NULL));
	ap_ctx_phase(&run->ctx, "reading");
	AP_TRY(ap_input_read(&run->ctx, run->set, run->cli->arg[0], &in));
	AP_TRY(ap_import_ir(&run->ctx, in.path, in.text, in.len, &params, &g));
	AP_TRY(ap_out_open(&run->to, o->graph_out ? o->graph_out : "-", &sink));
	ap_import_write(&run->ctx, g, ap_output_write_fn, &sink);
	return ap_out_commit(&run->to);
}
