/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inputs.h"
#include "cli/run.h"
#include "cli/stage_files.h"

enum ap_status ap_input_strategy(struct ap_run *run, const struct ap_inputs *in, const char *path,
	bool whole, const int32_t *const **counts)
{
	struct ap_ckpt ckpt;

	ap_run_phase(run, "reading the strategy");
	AP_TRY(ap_ckpt_load(run, path, &ckpt));
	return (whole ? ap_ckpt_counts : ap_ckpt_counts_some)(&run->ctx, &ckpt, in->graph,
		in->machine->ndev, &in->step, counts);
}
