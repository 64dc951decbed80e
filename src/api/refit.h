/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of profiles that explain what runs measured, and a profile that is fitted to them. */
#ifndef AP_API_REFIT_H
#define AP_API_REFIT_H

#include "api/runs.h"

/*
 * Moves each number of the runs' profiles alone, within a plausible range, to the value with the least
 * error of the runs' times; out->term: those that lessen it, the best first, and of equal ones the one
 * that moves least. Nothing where the error is small anyway. Some hundred evaluations of each run.
 */
enum ap_status ap_refit_suspects(struct ap_ctx *ctx, size_t n, struct ap_run_held *run,
	struct ap_compared *out);

/*
 * Fits the runs' software profile to them: times, and memory where logs count all that a device holds.
 * Each number is held back to what it was, so that it moves only as far as the runs show. out: what was
 * fitted, and times with it; text: the profile, named `name`. The runs have one software. AP_USAGE if they
 * do not.
 */
enum ap_status ap_refit(struct ap_ctx *ctx, size_t n, struct ap_run_held *run, const char *name,
	struct ap_compared *out, struct ap_str *text);

#endif
