/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/json_write.h"
#include "problem/problem.h"

static const char *const outcome_name[] = {
	[AP_OUT_OPTIMAL] = "optimal",
	[AP_OUT_FEASIBLE] = "feasible",
	[AP_OUT_INFEASIBLE] = "infeasible",
	[AP_OUT_LIMIT] = "stopped",
};

static const struct ap_problem *as_given(const struct ap_problem *p)
{
	return p->given ? p->given : p;
}

static void write_costs(struct ap_jw *w, const double *cost, size_t n)
{
	ap_jw_karr_flat(w, "cost");
	for (size_t i = 0; i < n; i++)
		ap_jw_num(w, cost[i]);
	ap_jw_end(w);
}

static void write_node(struct ap_jw *w, const struct ap_pnode *node)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", node->name);
	write_costs(w, node->cost, node->k);
	if (node->memory)
		ap_jw_kints(w, "memory", node->memory, node->k);
	if (node->fixed)
		ap_jw_kbool(w, "fixed", true);
	if (node->next) {
		ap_jw_karr_flat(w, "next");
		for (uint32_t c = 0; c < node->k; c++) {
			ap_jw_arr_flat(w);
			for (uint32_t i = 0; i < node->nway; i++)
				ap_jw_int(w, node->next[(size_t)c * node->nway + i]);
			ap_jw_end(w);
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_edge(struct ap_jw *w, const struct ap_pedge *e)
{
	ap_jw_obj_flat(w);
	ap_jw_kint(w, "from", e->u);
	ap_jw_kint(w, "to", e->v);
	ap_jw_kint(w, "matrix", e->matrix);
	ap_jw_end(w);
}

static void write_matrix(struct ap_jw *w, const struct ap_pmatrix *m)
{
	size_t cells = (size_t)m->rows * m->cols;
	ap_jw_obj_flat(w);
	ap_jw_kint(w, "rows", m->rows);
	ap_jw_kint(w, "cols", m->cols);
	write_costs(w, m->cost, cells);
	if (m->memory)
		ap_jw_kints(w, "memory", m->memory, cells);
	ap_jw_end(w);
}

void ap_problem_write_json(const struct ap_problem *problem, ap_write_fn *write, void *user)
{
	const struct ap_problem *p = as_given(problem);
	struct ap_jw w;
	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-problem/1");
	ap_jw_key(&w, "memory_limit");
	if (p->memory_limit == AP_NO_LIMIT)
		ap_jw_null(&w);
	else
		ap_jw_int(&w, p->memory_limit);
	ap_jw_karr(&w, "nodes");
	for (uint32_t i = 0; i < p->n; i++)
		write_node(&w, &p->node[i]);
	ap_jw_end(&w);
	ap_jw_karr(&w, "edges");
	for (uint32_t i = 0; i < p->nedge; i++)
		write_edge(&w, &p->edge[i]);
	ap_jw_end(&w);
	ap_jw_karr(&w, "matrices");
	for (uint32_t i = 0; i < p->nmatrix; i++)
		write_matrix(&w, &p->matrix[i]);
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

/* The bound in given numbers: each was rounded by at most half a quantum. */
static double given_bound(const struct ap_problem *p, const struct ap_choice *c, double objective)
{
	if (c->outcome == AP_OUT_OPTIMAL)
		return objective;
	double slack = p->given ? ((double)p->n + p->nedge) * p->quantum / 2 : 0;
	return fmin(c->lower_bound - slack, objective);
}

void ap_choice_write_json(const struct ap_problem *p, const struct ap_choice *c,
	ap_write_fn *write, void *user)
{
	struct ap_jw w;
	ap_jw_init(&w, write, user, 0);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-solution/1");
	ap_jw_kstr(&w, "engine", c->engine);
	ap_jw_kstr(&w, "status", outcome_name[c->outcome]);
	ap_jw_kstr(&w, "ended", ap_ended_name(c->ended));
	if (c->pick) {
		double objective = ap_problem_cost(as_given(p), c->pick);

		ap_jw_knum(&w, "objective", objective);
		ap_jw_knum(&w, "lower_bound", given_bound(p, c, objective));
		ap_jw_kint(&w, "memory", c->memory);
		ap_jw_karr_flat(&w, "choice");
		for (uint32_t i = 0; i < p->n; i++)
			ap_jw_int(&w, c->pick[i]);
		ap_jw_end(&w);
	} else {
		ap_jw_key(&w, "objective");
		ap_jw_null(&w);
		ap_jw_knum(&w, "lower_bound", given_bound(p, c, INFINITY));
		if (c->outcome == AP_OUT_INFEASIBLE && c->least_memory >= 0)
			ap_jw_kint(&w, "least_memory", c->least_memory);
		ap_jw_key(&w, "choice");
		ap_jw_null(&w);
	}
	if (c->certificate) {
		const struct ap_certificate *x = c->certificate;
		struct ap_choice proven = {.outcome = AP_OUT_FEASIBLE, .lower_bound = x->lower_bound};

		ap_jw_kobj_flat(&w, "certificate");
		ap_jw_kstr(&w, "engine", x->engine);
		ap_jw_kstr(&w, "status", x->proven ? "agrees" : "open");
		ap_jw_knum(&w, "lower_bound", x->proven && c->pick ? ap_problem_cost(as_given(p), c->pick)
			: given_bound(p, &proven, INFINITY));
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
