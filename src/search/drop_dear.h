/* SPDX-License-Identifier: Apache-2.0 */
/* Drops candidates of a large problem without a limit that sweeps (sweep.h) prove dearer than a
 * known pick. Equally cheap ones stay, so all optima do. Nodes that look alike keep the same
 * candidates, so the rest is as repetitive as the whole. */
#ifndef AP_SEARCH_DROP_DEAR_H
#define AP_SEARCH_DROP_DEAR_H

#include "search/compact.h"

struct ap_sifted { /* allocated in scratch */
	struct ap_domain *domain; /* [n] includes all picks that cost at most `cost` */
	uint32_t *pick; /* [n] the best pick known */
	double cost; /* of it */
	double bound; /* lower bound for all picks, a multiple of the quantum */
};

/* pick: any pick that is not forbidden. Uses about max_work at most, added to *work. If told to
 * stop, returns what it has. */
void ap_drop_dear(struct ap_ctx *ctx, const struct ap_problem *p, const uint32_t *pick, uint64_t max_work,
	struct ap_sifted *out, uint64_t *work);

#endif
