/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks rank tables of all forms. */
#ifndef AP_HW_RANK_TABLE_H
#define AP_HW_RANK_TABLE_H

#include "base/map.h"
#include "hw/topo.h"

/* Reads a rank table of any known form; the order of entries never matters. Reports all faults with
 * location (reliability.md section 2 D), known forms if the form is unknown, and an operator graph
 * given by mistake. */
enum ap_status ap_topo_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_topo **out);

#endif
