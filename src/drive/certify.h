/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second opinion: integer_programming on the table that dynamic_programming has searched. The two
 * share no idea but the table, so a mistake of one does not pass.
 */
#ifndef AP_DRIVE_CERTIFY_H
#define AP_DRIVE_CERTIFY_H

#include "drive/choose.h"

/* Can the answer of this search mode be certified? AP_USAGE, with a message, where not. */
enum ap_status ap_certify_check(struct ap_ctx *ctx, const char *search_mode);

/*
 * What `other` says of `found`, both of one problem. AP_OK: it proves the same or, `proven` false in
 * *out, has not come to an end. AP_INTERNAL, with a message, where they contradict each other.
 */
enum ap_status ap_certify_compare(struct ap_ctx *ctx, const struct ap_choice *found,
	const struct ap_choice *other, struct ap_certificate *out);

/* Certifies the answer of an engine to a problem: sets its certificate (in the run arena). The budget
 * holds for this work alone; a gap that it allows does not. */
enum ap_status ap_certify_problem(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *found);

/*
 * The same for a search, where the request asks for it: for the table that the choice comes from, under
 * the memory limit of a device, the largest temporary included. Without effect when told to stop: what
 * was not looked at has no certificate.
 */
enum ap_status ap_certify(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_chosen *c);

#endif
