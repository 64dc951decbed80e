/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_speed_up.json, which transformer_opt() and ascend_config name: the switches that are on. */
#include "base/json_write.h"
#include "base/vec.h"
#include "bundle/bundle_parts.h"

static const char *const switches[] = { /* of parallel_speed_up.json */
	"recomputation_communication_overlap",
	"grad_matmul_communication_overlap",
	"grad_fa_allgather_overlap",
	"enable_communication_fusion",
	"grad_computation_allreduce_overlap",
	"computation_allgather_overlap",
	"computation_communication_fusion_level",
	"dataset_broadcast_opt_level",
	"allreduce_and_biasadd_swap",
	"enable_allreduce_slice_to_reducescatter",
	"enable_interleave_split_concat_branch",
	"enable_interleave_parallel_branch",
};

static bool is_on(const struct ap_bundle *b, const char *name)
{
	return ap_bundle_differs(b, name, "false") && ap_bundle_differs(b, name, "0");
}

bool ap_bundle_speeds_up(const struct ap_bundle *b)
{
	for (size_t i = 0; i < AP_COUNT(switches); i++)
		if (is_on(b, switches[i]))
			return true;
	return false;
}

void ap_bundle_write_speed_up(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user)
{
	struct ap_jw w;

	(void)ctx;
	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	for (size_t i = 0; i < AP_COUNT(switches); i++) {
		if (!is_on(b, switches[i]))
			continue;
		ap_jw_key(&w, switches[i]);
		ap_jw_raw(&w, ap_bundle_setting(b, switches[i]));
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
