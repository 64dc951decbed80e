/* SPDX-License-Identifier: Apache-2.0 */
#include "ilp/glpk_cage.h"

#include <glpk.h>
#include <limits.h>
#include <unistd.h>

#include "autopar/status.h"

enum { HEARTBEAT = 50 }; /* iterations between two calls of go_on */

static void leave(void *user)
{
	(void)user;
	_exit(ap_status_exit(AP_INTERNAL));
}

/* GLPK is about to print: it must not, but this is when it can be stopped. */
static int on_text(void *user, const char *text)
{
	const struct ap_lp_limits *limits = user;

	(void)text;
	if (limits->go_on && !limits->go_on(limits->user))
		leave(NULL);
	return 1;
}

static glp_prob *build(const struct ap_lp *lp)
{
	glp_prob *p = glp_create_prob();

	glp_add_rows(p, (int)lp->nrow);
	glp_add_cols(p, (int)lp->ncol);
	for (size_t i = 0; i < lp->nrow; i++)
		glp_set_row_bnds(p, (int)i + 1, lp->loose[i] ? GLP_UP : GLP_FX, lp->right[i],
			lp->right[i]);
	for (size_t j = 0; j < lp->ncol; j++) {
		glp_set_col_bnds(p, (int)j + 1, GLP_LO, 0, 0);
		glp_set_obj_coef(p, (int)j + 1, lp->cost[j]);
	}
	glp_load_matrix(p, (int)lp->ncell, lp->row, lp->col, lp->value);
	return p;
}

static enum ap_lp_end end_of(glp_prob *p)
{
	switch (glp_get_status(p)) {
	case GLP_OPT:
		return AP_LP_OPTIMAL;
	case GLP_NOFEAS:
		return AP_LP_INFEASIBLE;
	default:
		return AP_LP_STOPPED;
	}
}

enum ap_lp_end ap_lp_solve(const struct ap_lp *lp, const struct ap_lp_limits *limits, double *x,
	double *dual, uint64_t *iterations)
{
	struct ap_lp_limits own = *limits;
	enum ap_lp_end end;
	glp_prob *p;
	glp_smcp how;

	glp_term_hook(on_text, &own);
	glp_error_hook(leave, NULL);
	if (limits->bytes)
		glp_mem_limit(limits->bytes >> 20 < INT_MAX ? (int)(limits->bytes >> 20) + 1 : INT_MAX);
	p = build(lp);
	glp_init_smcp(&how);
	how.meth = GLP_DUALP;
	how.out_frq = HEARTBEAT;
	if (limits->iterations && limits->iterations < INT_MAX)
		how.it_lim = (int)limits->iterations;
	end = glp_simplex(p, &how) ? AP_LP_STOPPED : end_of(p);
	for (size_t j = 0; j < lp->ncol; j++)
		x[j] = glp_get_col_prim(p, (int)j + 1);
	for (size_t i = 0; i < lp->nrow; i++)
		dual[i] = glp_get_row_dual(p, (int)i + 1);
	*iterations += (uint64_t)glp_get_it_cnt(p);
	glp_free_env();
	return end;
}
