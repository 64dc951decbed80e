/* SPDX-License-Identifier: Apache-2.0 */
/* An engine's choice from a table of costs, within the memory of a device. */
#ifndef AP_DRIVE_CHOOSE_H
#define AP_DRIVE_CHOOSE_H

#include "drive/request.h"
#include "table/table.h"

struct ap_chosen {
	const struct ap_table *table; /* the table searched */
	struct ap_choice choice;
	uint64_t priced; /* work to make the table */
};

/* Counts per node of a pick of the table; in the run arena. */
const int32_t *const *ap_chosen_counts(struct ap_ctx *ctx, const struct ap_table *t,
	const uint32_t *pick);

/* The engine that a request names. */
const struct ap_engine *ap_choose_engine(const struct ap_request *rq);

/* Bytes of a device that the plan may use: the capacity less context and buffers. */
int64_t ap_choose_limit_bytes(const struct ap_request *rq);

/* The same summed over the stages, for the recursion, which only knows the sum. */
int64_t ap_choose_sum_bytes(const struct ap_request *rq);

/* Makes the table, as ap_table_make(). by_memory: for a search with a limit. */
enum ap_status ap_choose_table(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, bool by_memory, const struct ap_table **out);

/* Lower bound of what the stage that needs most needs of ap_choose_limit_bytes(), without
 * redistribution; -1: unknown. Warns if the table is not made. Adds to *work. */
int64_t ap_choose_least_bytes(struct ap_ctx *ctx, const struct ap_request *rq,
	const int32_t *const *fixed, uint64_t *work);

/* Tables of one request, for several searches. */
struct ap_tables {
	const struct ap_table *plain; /* as ap_choose_table() makes it */
	const struct ap_table *lean; /* pruned by cost and memory; NULL: not made yet */
	enum ap_status st; /* AP_OK: plain can be searched; AP_LIMIT: it was not made; AP_STOPPED */
};

/* What is known before a search. */
struct ap_hints {
	struct ap_tables *tables; /* of this very request and these fixed rows, to search again */
	const struct ap_table *wider; /* of this request with fewer rows fixed, to take prices from */
	const int32_t *const *start; /* counts of a plan to start from */
	bool limit_binds; /* the memory limit is expected to bind */
	bool fits; /* a plan is known that fits: none has to be found at any price */
};

/*
 * The engine's choice that fits the memory, some operators fixed. hints, and its members, may be
 * NULL. AP_OK with any outcome (table NULL: stopped before it was made, or too large, with a
 * warning).
 */
enum ap_status ap_choose(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const int32_t *const *fixed, const struct ap_hints *hints,
	struct ap_chosen *out);

/* Makes the tables, with by_memory as the hints say. Other than AP_OK, AP_LIMIT and AP_STOPPED are errors. */
enum ap_status ap_choose_tables(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_engine *engine, const int32_t *const *fixed, const struct ap_hints *hints,
	struct ap_tables *out);

/* Reports why a choice is infeasible: what is short and by how much. AP_INFEASIBLE. */
enum ap_status ap_choose_infeasible(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_choice *c);

#endif
