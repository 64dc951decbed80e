/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second opinion: integer_programming on the table that dynamic_programming has searched, or the other
 * way round. The two share nothing but the table, so a mistake of one is found; and where the second gets
 * further, its pick and its bound are taken over.
 */
#ifndef AP_DRIVE_CERTIFY_H
#define AP_DRIVE_CERTIFY_H

#include "drive/choose.h"

/* AP_OK if the answer of this search mode can be certified; else AP_USAGE, with a message. */
enum ap_status ap_certify_check(struct ap_ctx *ctx, const char *search_mode);

/*
 * Compares two answers to one problem. AP_OK: `other` proves `found`, or has not finished
 * (out->proven false). AP_INTERNAL, with a message, if they contradict each other.
 */
enum ap_status ap_certify_compare(struct ap_ctx *ctx, const struct ap_choice *found,
	const struct ap_choice *other, struct ap_certificate *out);

/* Certifies an engine's answer to a problem: sets its certificate, in the run arena, and takes over a
 * cheaper pick and a higher bound. The budget's work is for the certification alone; its gap is ignored. */
enum ap_status ap_certify_problem(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *found);

/*
 * The same for a search, if the request asks for it: on the choice's table, under the memory limit
 * of a device with the largest temporary. Does nothing if the run is stopped: there is no
 * certificate then.
 */
enum ap_status ap_certify(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_chosen *c);

#endif
