/* SPDX-License-Identifier: Apache-2.0 */
/* Counts that the settings give instead of leaving them to the search. */
#ifndef AP_CLI_GIVEN_H
#define AP_CLI_GIVEN_H

#include "cli/inputs.h"
#include "cli/options.h"

/* Do the settings leave anything to search? */
bool ap_given_searches(const struct ap_options *o);

/* What gives all counts where nothing is searched, as the user said it: "--hybrid tp=8". */
const char *ap_given_name(struct ap_ctx *ctx, const struct ap_options *o);

/*
 * *counts: of modes that search nothing, and of --hybrid; NULL where there is something to search.
 * in->request.given: those of --strategy-ckpt-load-file, where it is given. in->graph and in->request
 * become those whose sums are dealt, where the hybrid says so. What is told ends with AP_USAGE and others:
 * it is no strategy.
 */
enum ap_status ap_given_counts(struct ap_run *run, struct ap_inputs *in, const int32_t *const **counts);

#endif
