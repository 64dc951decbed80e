/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/inputs.h"
#include "cli/kind.h"
#include "cli/outputs.h"
#include "cli/run.h"
#include "emit/ckpt.h"

enum ap_status ap_input_strategy(struct ap_run *run, const struct ap_inputs *in, const char *path,
	bool whole, const int32_t *const **counts)
{
	struct ap_input file;
	struct ap_ckpt ckpt;
	bool json;

	ap_run_phase(run, "reading the strategy");
	AP_TRY(ap_input_read(run, path, &file));
	json = strcmp(path, "-") ? ap_out_is_json(path) : ap_kind_is_json(&file);
	AP_TRY(ap_ckpt_read(&run->ctx, file.path, file.text, file.len, json, &ckpt));
	return (whole ? ap_ckpt_counts : ap_ckpt_counts_some)(&run->ctx, &ckpt, in->graph,
		in->machine->ndev, &in->step, counts);
}
