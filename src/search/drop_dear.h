/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A large problem without a limit, less what sweeps (sweep.h) show to be dearer than a pick that is
 * known. Candidates that are as cheap stay, so all optima do. Nodes that look the same keep the same
 * candidates, so that what is left is as repetitive as the whole was.
 */
#ifndef AP_SEARCH_DROP_DEAR_H
#define AP_SEARCH_DROP_DEAR_H

#include "search/compact.h"

struct ap_sifted { /* in scratch */
	struct ap_domain *domain; /* [n] candidates of the picks that cost at most `cost` */
	uint32_t *pick; /* [n] the best one known */
	double cost; /* of it */
	double bound; /* of all picks, a multiple of the quantum */
};

/* pick is one that is not forbidden. At most about max_work; *work is counted up. Told to
 * stop, it gives what it has. */
void ap_drop_dear(struct ap_ctx *ctx, const struct ap_problem *p, const uint32_t *pick, uint64_t max_work,
	struct ap_sifted *out, uint64_t *work);

#endif
