/* SPDX-License-Identifier: Apache-2.0 */
/* What each cause of a difference does alone: the old plan's run is repeated with one of its inputs
 * exchanged. */
#ifndef AP_API_REPLAN_H
#define AP_API_REPLAN_H

#include "api/outputs.h"
#include "diff/diff.h"

struct ap_replan_side {
	const struct ap_json *doc; /* the plan file; NULL: it is a strategy */
	const struct ap_saved *plan;
};

/*
 * Sets d->alone, if set names the graphs; d compares old and new. A search for each cause that changed, for
 * each changed setting if there are several, and one for what this version makes of the old plan's
 * inputs. AP_USAGE or AP_MEANING, reported, if a file is not the one that its plan was made from, or is
 * missing.
 */
enum ap_status ap_replan(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_replan_side *old,
	const struct ap_replan_side *new, struct ap_diff *d);

#endif
