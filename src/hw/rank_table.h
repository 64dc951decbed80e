/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables: read and checked, whatever their form. */
#ifndef AP_HW_RANK_TABLE_H
#define AP_HW_RANK_TABLE_H

#include "base/map.h"
#include "hw/topo.h"

/* Reads any known form, a row {name, recognise, parse} each; the order of entries never matters.
 * Located messages for everything that is wrong (reliability.md section 2 D). An unknown form says
 * which are known; an operator graph given by mistake is recognised and named. */
enum ap_status ap_topo_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_topo **out);

#endif
