/* SPDX-License-Identifier: Apache-2.0 */
/* Older plans that a search goes on from: --keep, and a plan in the place of a strategy checkpoint. */
#ifndef AP_API_KEEP_H
#define AP_API_KEEP_H

#include "api/files.h"
#include "api/request.h"
#include "planfile/plan_read.h"

/* Is path, of --strategy-ckpt-load-file, a plan, or the bundle of one? Says nothing; reads no standard
 * input. */
bool ap_keep_is_plan(struct ap_ctx *ctx, const struct ap_settings *set, const char *path);

/* Reads the plan, or that of the bundle, in path. AP_MEANING and others if the file is no plan, reported. */
enum ap_status ap_keep_read(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_known *file, struct ap_saved *plan);

/* Where a plan has the operators of cutting's graph, in the run arena: those that it does not have are with
 * the earliest operators that use their results, else with the latest whose results they use. NULL: that is
 * no pipeline of as many parts, in order, none empty. O(operators). */
const struct ap_spot *ap_keep_spots(struct ap_ctx *ctx, const struct ap_saved *plan,
	const struct ap_stages_request *cutting);

/* Reads the plan, or that of the bundle, that set->keep names, and places it on the graph of a search:
 * sets in->request.keep and what belongs to it; nothing without --keep. AP_MEANING and others if the file
 * is no plan, reported; a warning if nothing of it is there any more. */
enum ap_status ap_keep_give(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_inputs *in);

/* Takes the cuts of operators that a checkpoint of the plan in file path would name for given, as those of
 * --strategy-ckpt-load-file are. Likewise. */
enum ap_status ap_keep_base(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_inputs *in);

#endif
