/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a table at once. */
#ifndef AP_SEARCH_BOUND_H
#define AP_SEARCH_BOUND_H

#include "problem/problem.h"

/* The sum of the least cost of every node and edge: no pick costs less. O(size of the table). */
double ap_bound_plain(struct ap_ctx *ctx, const struct ap_problem *p);

/* The choice of a run that found nothing: LIMIT with the plain bound. */
void ap_choice_none(struct ap_ctx *ctx, const struct ap_problem *p, const char *engine,
	struct ap_choice *out);

/* Makes out the choice of pick (kept), with its cost and memory; OPTIMAL when bound reaches cost.
 * */
void ap_choice_found(const struct ap_problem *p, uint32_t *pick, double bound,
	struct ap_choice *out);

#endif
