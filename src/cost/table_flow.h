/* SPDX-License-Identifier: Apache-2.0 */
/* A part of making the table, see table_parts.h. */
#ifndef AP_COST_TABLE_FLOW_H
#define AP_COST_TABLE_FLOW_H

#include "cost/table_parts.h"

/* Prices the bonds of flows, into their cost and kept; unfinished when told to stop. */
void ap_table_flows(const struct ap_making *mk);

#endif
