/* SPDX-License-Identifier: Apache-2.0 */
/* What a planner would pick: strategies of one model on one machine, by what is predicted of them. */
#ifndef BENCH_RANKING_H
#define BENCH_RANKING_H

#include "rows.h"

enum { GROUP = 10 }; /* rows of a group at least */

struct group { /* strategies of one model on one machine */
	const char *key, *name;
	struct { const struct row **v; size_t n, cap; } rows;
};

/* Groups of at least GROUP rows that differ in nothing but the strategy. */
size_t groups_of(struct ap_arena *arena, const struct table *t, struct group **out);

enum { SHOWN = 3 }; /* strategies that a user would try */

struct ranking {
	double correlation;
	/* Time of what is predicted best, and the least of the SHOWN best, / best time - 1, in percent. */
	double regret, of_shown;
	/* Amounts of predicted / measured time - 1, in percent: their mean, and that of what is predicted
	 * best. */
	double error, of_chosen;
};
struct ranking ranking_of(struct ap_arena *arena, const struct group *g);

#endif
