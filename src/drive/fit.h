/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact memory limit: kept memory is a sum, which engines handle; the largest temporary is a
 * maximum, and is handled by branch and bound over its distinct sizes (decision 5).
 */
#ifndef AP_DRIVE_FIT_H
#define AP_DRIVE_FIT_H

#include <stdbool.h>

#include "search/engine.h"
#include "table/table.h"

/*
 * A low-memory choice, in little time and ignoring ctx's stop flag: the fallback of a stopped
 * search. Returns false if it does not fit limit_bytes either. Replaces *out if that holds no
 * choice or a dearer one; its lower bound stays.
 */
bool ap_fit_lean(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	int64_t limit_bytes, struct ap_choice *out);

/*
 * The best choice with the limit for each pipeline stage, of which there may be one. With several,
 * first all without the limit (unless it is known to bind); then each stage within it, without the
 * edges between stages, which gives a bound; if operators of different stages must have one
 * strategy, with each of these; then each stage again with its neighbours as they are. The choice's
 * memory is that of the stage that needs most, with its temporary; so is least_memory if a stage
 * has no choice at all.
 */
void ap_fit_staged(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	const struct ap_budget *budget, int64_t limit_bytes, bool binds, struct ap_choice *out);

/* A lower bound in bytes of what any choice needs, with its temporary, by one solve of
 * t->least_stage; -1: there is no choice. Adds to *work. */
int64_t ap_fit_least_bytes(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	const struct ap_budget *budget, uint64_t *work);

/* Memory of a pick, with its temporary, on the stage that needs most. O(nodes + edges). */
int64_t ap_fit_need_bytes(struct ap_ctx *ctx, const struct ap_table *t, const uint32_t *pick);

#endif
