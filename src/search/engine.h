/* SPDX-License-Identifier: Apache-2.0 */
/* Search engines: pure functions of ap_problem, a row each in engines.def. */
#ifndef AP_SEARCH_ENGINE_H
#define AP_SEARCH_ENGINE_H

#include "problem/problem.h"

struct ap_domain;

#define AP_ANY_OPTIMUM 0x1p-45 /* as a gap: any optimum will do, not only the smallest of several */

struct ap_budget {
	uint64_t work; /* limit in inner steps, deterministic; 0: none */
	size_t table_bytes; /* largest table an engine may build, 0: 1 GiB */
	double gap; /* stop once cost <= lower_bound * (1 + gap) is proven; 0: exact only */
	const uint32_t *start[2]; /* [n] initial picks, good or bad; NULL: none */
	bool whole; /* elimination ends with what it has before it begins if it would have to split
	               tables, or to take very much longer than sweeps (choice: ahead) */
	bool no_fold; /* solve repeated parts each time; does not change the answer */
};

/* Work left after `done`; UINT64_MAX if there is no limit. */
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
	AP_ENGINE_MEMORY = 2, /* respects memory_limit itself */
	AP_ENGINE_NEXT = 4, /* needs `next` in every node that has a choice */
	AP_ENGINE_NARROW = 8, /* may run on the result of ap_narrow(); others share nothing with
	                         it */
	AP_ENGINE_SMALLEST = 16, /* returns the lexicographically smallest of equal optima */
	AP_ENGINE_PARTS = 32 /* solves what parts of a search ask for themselves: one row has it */
};

struct ap_engine {
	const char *name; /* as given to --search-mode */
	const char *help; /* one line */
	unsigned flags;
	/* Fills *out (pick in the run arena). Polls ctx->stop. */
	void (*solve)(struct ap_ctx *ctx, const struct ap_problem *p,
		const struct ap_budget *budget, struct ap_choice *out);
};

/* The engine of a name, or NULL. */
const struct ap_engine *ap_engine_find(const char *name);

/* The exact engine of AP_ENGINE_PARTS. */
const struct ap_engine *ap_engine_of_parts(void);

/* Has an answer proven as much as is asked for? */
bool ap_engine_closed(const struct ap_budget *budget, const struct ap_choice *c);

/* Fills in why the engine went no further; lack: what it lacked if neither proof nor a stop ended it. */
void ap_engine_end(const struct ap_ctx *ctx, const struct ap_budget *budget, enum ap_ended lack,
	struct ap_choice *out);

/* Solves p restricted to some candidates of each node (at least one), as a problem of its own: the
 * choice is one of p, the bound holds for these candidates only. */
void ap_engine_solve_within(struct ap_ctx *ctx, const struct ap_engine *engine,
	const struct ap_problem *p, const struct ap_domain *domain, const struct ap_budget *budget,
	struct ap_choice *out);

/* Row i of the table; NULL past the end. */
const struct ap_engine *ap_engine_at(size_t i);

#endif
