/* SPDX-License-Identifier: Apache-2.0 */
/* Plan JSON: where the route of a plan decides otherwise than the plan that is best without it. */
#include "base/json_write.h"
#include "planfile/plan_json.h"

static void write_differ(struct ap_plan_writer *pw, const struct ap_route_differ *d)
{
	const struct ap_node *n = &pw->p->graph->node[d->node];
	struct ap_jw *w = &pw->w;
	struct ap_placement free;

	ap_placement_make(&n->bound, d->free_count, pw->p->machine->ndev, &free);
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", n->name);
	ap_plan_write_strategy(pw, "in_strategy", &pw->p->op[d->node].place);
	ap_plan_write_strategy(pw, "free_in_strategy", &free);
	ap_jw_knum(w, "operator_s", d->operator_s);
	ap_jw_knum(w, "redistribution_s", d->moves_s);
	ap_jw_end(w);
}

void ap_plan_write_route_figures(struct ap_plan_writer *pw)
{
	const struct ap_plan_route *r = pw->p->route;

	ap_jw_kstr(&pw->w, "executor", r->route->name);
	ap_jw_kstr(&pw->w, "told", r->route->text);
	ap_jw_knum(&pw->w, "free_objective_s", r->free_objective_s);
	ap_jw_knum(&pw->w, "free_step_time_s", r->free_step_time_s);
	ap_jw_knum(&pw->w, "loss_s", r->loss_s);
	ap_jw_kint(&pw->w, "differing_operators", r->n);
}

void ap_plan_write_route(struct ap_plan_writer *pw)
{
	const struct ap_plan_route *r = pw->p->route;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "route");
	if (!r) {
		ap_jw_null(w);
		return;
	}
	ap_jw_obj(w);
	ap_plan_write_route_figures(pw);
	ap_jw_key(w, "differs");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < r->n; i++)
		write_differ(pw, &r->differ[i]);
	ap_jw_end(w);
	ap_jw_end(w);
}
