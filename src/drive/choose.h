/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's choice, from a table of costs, with an eye on the memory of a device. */
#ifndef AP_DRIVE_CHOOSE_H
#define AP_DRIVE_CHOOSE_H

#include "drive/request.h"
#include "table/table.h"

struct ap_chosen {
	const struct ap_table *table; /* that was searched */
	struct ap_choice choice;
	uint64_t priced; /* work that the table took */
};

/* Counts per node of a pick of the table; in the run arena. */
const int32_t *const *ap_chosen_counts(struct ap_ctx *ctx, const struct ap_table *t,
	const uint32_t *pick);

/* The engine that a request names. */
const struct ap_engine *ap_choose_engine(const struct ap_request *rq);

/* What the plan itself may use of a device. */
int64_t ap_choose_limit_bytes(const struct ap_request *rq);

/* The same of all stages together, which is all that the recursion knows of their memory. */
int64_t ap_choose_sum_bytes(const struct ap_request *rq);

/* by_memory: for a search with a limit. As ap_table_make(). */
enum ap_status ap_choose_table(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, bool by_memory, const struct ap_table **out);

/* What the stage that needs most needs at least of ap_choose_limit_bytes(), redistribution left out; -1: not
 * known. Warns of a table that is not made. *work is counted up. */
int64_t ap_choose_least_bytes(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, uint64_t *work);

/* What is known before a search. */
struct ap_hints {
	const struct ap_table *wider; /* of the same request with no more fixed: its prices can be used */
	const int32_t *const *start; /* counts of a plan to start from */
	bool limit_binds; /* the memory limit is expected to bind */
};

/*
 * The engine's choice that fits the memory, some operators fixed. hints, and what is in it, may be
 * NULL. AP_OK with any outcome (table NULL: told to stop before there was one, or it would be too
 * large, of which there is a warning then).
 */
enum ap_status ap_choose(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const int32_t *const *fixed, const struct ap_hints *hints,
	struct ap_chosen *out);

/* Says why a choice is infeasible: what is short and by how much. AP_INFEASIBLE. */
enum ap_status ap_choose_infeasible(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_choice *c);

#endif
