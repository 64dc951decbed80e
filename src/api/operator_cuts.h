/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts of single operators beside decided hybrids: where the executor can be told the cut of each
 * operator, and no hybrid was asked for, a search under the settings of the fastest hybrids may find a
 * faster plan.
 */
#ifndef AP_API_OPERATOR_CUTS_H
#define AP_API_OPERATOR_CUTS_H

#include "api/decide.h"

/* Can the cut of each operator be told, and is no hybrid asked for? */
bool ap_operator_cuts_sayable(const struct ap_settings *set);

/* The settings of a search of cuts under those of a point but for degrees, in the memory less headroom. */
void ap_operator_cuts_settings(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision *d,
	const struct ap_decision_point *point, struct ap_settings *out);

/* The step of what such a search finds; 0: nothing. Reports nothing. */
double ap_operator_cuts_step(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src);

/*
 * Searches cuts within the memory less headroom; a search ends at a fraction of the usual work unless
 * the settings say how much. True if a plan is faster than the best hybrid: *out are its settings, those
 * of *trial but for degrees, *step_s its step. False leaves them alone.
 */
bool ap_operator_cuts_search(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_decision *d, struct ap_settings *out, double *step_s, uint32_t *trial);

#endif
