/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory limit, exact: what is kept adds up and is the engine's business; the largest temporary
 * is a maximum, and is handled by branch and bound over its distinct sizes (decision 5).
 */
#ifndef AP_DRIVE_FIT_H
#define AP_DRIVE_FIT_H

#include <stdbool.h>

#include "search/engine.h"
#include "table/table.h"

/*
 * A choice with little memory, in little time and whatever ctx's stop flag says: the fallback of a
 * search that was stopped. False when it does not fit limit_bytes either. Replaces *out where that
 * holds no choice or a dearer one; its lower bound stays.
 */
bool ap_fit_lean(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	int64_t limit_bytes, struct ap_choice *out);

/*
 * The same where the limit holds for each pipeline stage, of which there may be one. Of several, first
 * all without the limit (unless it is known to bind); else each stage within it, without the edges
 * between stages, which gives a bound; where operators of different stages must have one strategy, with
 * each of these; then each once more with its neighbours as they are. The choice's memory is that of the
 * stage that needs most, temporary included; so is least_memory, where a stage has no choice at all.
 */
void ap_fit_staged(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	const struct ap_budget *budget, int64_t limit_bytes, bool binds, struct ap_choice *out);

/* A lower bound of what any choice needs, temporary included, by one solve of t->least_stage; -1: it has no
 * choice at all. *work is counted up. */
int64_t ap_fit_least_bytes(struct ap_ctx *ctx, const struct ap_table *t, const struct ap_engine *engine,
	const struct ap_budget *budget, uint64_t *work);

/* Memory of a pick, temporary included, on the stage that needs most. O(nodes + edges). */
int64_t ap_fit_need_bytes(struct ap_ctx *ctx, const struct ap_table *t, const uint32_t *pick);

#endif
