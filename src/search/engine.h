/* SPDX-License-Identifier: Apache-2.0 */
/* Search engines: pure functions of ap_problem. One row each in engines.def. */
#ifndef AP_SEARCH_ENGINE_H
#define AP_SEARCH_ENGINE_H

#include "problem/problem.h"

struct ap_domain;

#define AP_ANY_OPTIMUM 0x1p-45 /* as a gap: an optimum, but of several it need not be the smallest */

struct ap_budget {
	uint64_t work; /* inner steps, 0: no limit; deterministic */
	size_t table_bytes; /* largest table an engine may build, 0: 1 GiB */
	double gap; /* stop when cost <= lower_bound * (1 + gap) is proven; 0: only exact */
	const uint32_t *start[2]; /* [n] picks to start from, good or bad; NULL: none */
	bool no_fold; /* what repeats is solved each time; the answer is the same */
};

/* What is left of the work when `done` is spent; UINT64_MAX: no limit. */
static inline uint64_t ap_budget_left(const struct ap_budget *b, uint64_t done)
{
	return b->work == 0 ? UINT64_MAX : b->work > done ? b->work - done : 0;
}

static inline size_t ap_budget_bytes(const struct ap_budget *b)
{
	return b->table_bytes ? b->table_bytes : (size_t)1 << 30;
}

enum {
	AP_ENGINE_EXACT = 1,
	AP_ENGINE_MEMORY = 2, /* honours memory_limit itself */
	AP_ENGINE_NEXT = 4, /* needs `next` of every node that has a choice */
	AP_ENGINE_NARROW = 8, /* may be given what ap_narrow() leaves; the others share nothing with it */
	AP_ENGINE_SMALLEST = 16 /* of equal optima, finds the lexicographically smallest */
};

struct ap_engine {
	const char *name; /* as in --search-mode */
	const char *help; /* one line */
	unsigned flags;
	/* Fills *out (pick in the run arena). Polls ctx->stop. */
	void (*solve)(struct ap_ctx *ctx, const struct ap_problem *p,
		const struct ap_budget *budget, struct ap_choice *out);
};

/* The engine of that name, or NULL. */
const struct ap_engine *ap_engine_find(const char *name);

/* Solves p with some of the candidates of each node (at least one), by a problem of its own: the choice
 * is one of p, its bound one of these candidates. */
void ap_engine_solve_within(struct ap_ctx *ctx, const struct ap_engine *engine,
	const struct ap_problem *p, const struct ap_domain *domain, const struct ap_budget *budget,
	struct ap_choice *out);

/* Row i of the table in order, NULL past the end. */
const struct ap_engine *ap_engine_at(size_t i);

#endif
