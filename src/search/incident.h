/* SPDX-License-Identifier: Apache-2.0 */
/* The edges at each node. */
#ifndef AP_SEARCH_INCIDENT_H
#define AP_SEARCH_INCIDENT_H

#include "problem/problem.h"

struct ap_incident {
	const ap_id *first; /* [n + 1] */
	const ap_id *edge; /* of node v: edge[first[v]] .. edge[first[v + 1] - 1], ascending */
};

/* In scratch. O(n + edges). */
struct ap_incident ap_incident_make(struct ap_ctx *ctx, const struct ap_problem *p);

#endif
