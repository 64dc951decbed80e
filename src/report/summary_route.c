/* SPDX-License-Identifier: Apache-2.0 */
/* Of the summary: what the route of a plan costs. */
#include <inttypes.h>
#include <math.h>

#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "plan/terms.h"
#include "report/summary_parts.h"

enum { MOST_DIFFERS = 5 };

static double cost_s(const struct ap_route_differ *d)
{
	return d->operator_s + d->moves_s;
}

static void add_signed_seconds(struct ap_str *out, double s)
{
	char buf[32];

	ap_str_addc(out, s < 0 ? '-' : '+');
	ap_str_add(out, ap_format_seconds(fabs(s), buf));
}

void ap_summary_route(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_plan_route *r = p->route;
	double loss_s;
	char buf[32];

	if (!r || !r->route->complete)
		return;
	loss_s = p->prediction.step_time_s - r->free_step_time_s;
	ap_str_addf(out, "%-18s%s decides %" PRIu32 " operator%s otherwise", "route", r->route->name,
		r->n, r->n == 1 ? "" : "s");
	if (r->n) {
		ap_str_add(out, ": step time ");
		add_signed_seconds(out, loss_s);
		ap_str_addf(out, " to the best of all, %s", ap_format_seconds(r->free_step_time_s, buf));
	}
	ap_str_addc(out, '\n');
}

static void add_differ(struct ap_str *out, const struct ap_plan *p, const struct ap_route_differ *d,
	struct ap_diag *names)
{
	const struct ap_node *n = &p->graph->node[d->node];
	struct ap_str cost;

	ap_str_init(&cost, out->arena);
	add_signed_seconds(&cost, cost_s(d));
	ap_str_addf(out, "%12s  %-18s %s\n", cost.s, n->type, ap_diag_name(names, n->name));
}

/* Those that cost most, first; of equals the first of the graph. */
static uint32_t dearest(const struct ap_plan_route *r, uint32_t best[MOST_DIFFERS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t at = n;

		while (at > 0 && cost_s(&r->differ[i]) > cost_s(&r->differ[best[at - 1]]))
			at--;
		if (at == MOST_DIFFERS)
			continue;
		n += n < MOST_DIFFERS;
		for (uint32_t j = n - 1; j > at; j--)
			best[j] = best[j - 1];
		best[at] = i;
	}
	return n;
}

void ap_summary_differs(struct ap_str *out, const struct ap_plan *p)
{
	struct ap_diag *names = ap_diag_create(out->arena, false);
	const struct ap_plan_route *r = p->route;
	uint32_t best[MOST_DIFFERS], n;

	if (!r || !r->n)
		return;
	n = dearest(r, best);
	ap_str_addf(out, "\noperators that %s decides otherwise, and what that costs:\n",
		r->route->name);
	for (uint32_t i = 0; i < n; i++)
		add_differ(out, p, &r->differ[best[i]], names);
	if (r->n > n)
		ap_str_addf(out, "%12s  %" PRIu32 " more, which --plan-out lists\n", "and", r->n - n);
}
