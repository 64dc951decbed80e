/* SPDX-License-Identifier: Apache-2.0 */
#include "search/incident.h"

#include "base/arena.h"

struct ap_incident ap_incident_make(struct ap_ctx *ctx, const struct ap_problem *p)
{
	ap_id *first = AP_NEW_N(ctx->scratch, ap_id, (size_t)p->n + 2);
	ap_id *edge = AP_NEW_N(ctx->scratch, ap_id, 2 * (size_t)p->nedge);
	for (uint32_t i = 0; i < p->nedge; i++) {
		first[p->edge[i].u + 2]++;
		first[p->edge[i].v + 2]++;
	}
	for (uint32_t v = 0; v < p->n; v++)
		first[v + 2] += first[v + 1];
	for (uint32_t i = 0; i < p->nedge; i++) { /* moves each start, one place up, to its end */
		edge[first[p->edge[i].u + 1]++] = i;
		edge[first[p->edge[i].v + 1]++] = i;
	}
	return (struct ap_incident){first, edge};
}
