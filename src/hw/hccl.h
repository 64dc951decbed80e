/* SPDX-License-Identifier: Apache-2.0 */
/* HCCL's rules for the devices of a job. */
#ifndef AP_HW_HCCL_H
#define AP_HW_HCCL_H

#include "hw/topo.h"

bool ap_hccl_known(const char *family);

/* Checks HCCL's rules for a chip family (formats 2.7): "910", "910b", "910_93". as_warning:
 * `--no-hccl-rules`. Other families have no rules. */
enum ap_status ap_hccl_check(
	struct ap_ctx *ctx, const struct ap_topo *t, const char *family, bool as_warning);

#endif
