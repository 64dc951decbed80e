/* SPDX-License-Identifier: Apache-2.0 */
/* The engine dynamic_programming with its internal switches, for tests and benchmarks. */
#ifndef AP_ELIM_DP_H
#define AP_ELIM_DP_H

#include <stdbool.h>

#include "search/engine.h"

enum ap_dp_prune {
	AP_DP_PRUNE_AUTO, /* if the elimination would cost more than pruning */
	AP_DP_PRUNE_NEVER,
	AP_DP_PRUNE_ALWAYS
};

struct ap_dp_options {
	enum ap_dp_prune prune;
	bool no_share; /* repeat equal eliminations */
};

/*
 * The result does not depend on the options, except for `work`, unless a limit of the budget is
 * hit. OPTIMAL picks are the lexicographically smallest optimum, with two exceptions, both
 * deterministic: tables over the budget (a bound that happens to be tight then proves the pick),
 * and more ties than the budget has room for or, under a memory limit, than MAX_TIE_WORK of
 * memory_limit.c can resolve.
 */
void ap_dp_solve_with(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget, const struct ap_dp_options *options, struct ap_choice *out);

#endif
