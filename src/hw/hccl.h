/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that HCCL has for the devices of a job. */
#ifndef AP_HW_HCCL_H
#define AP_HW_HCCL_H

#include "hw/topo.h"

bool ap_hccl_known(const char *family);

/* Rules of HCCL for the devices of a job, a row for each family of chips (formats 2.7): "910", "910b",
 * "910_93". as_warning: `--no-hccl-rules`. A family without rules holds none. */
enum ap_status ap_hccl_check(
	struct ap_ctx *ctx, const struct ap_topo *t, const char *family, bool as_warning);

#endif
