/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The costs of table/table.h, computed on demand and remembered: for searches that look at few
 * candidates. Never enumerates an operator's candidates or pairs of layouts; operators of equal
 * content share a class, so repeated layers are priced once.
 *
 * A state is a candidate of a class that was asked for, numbered in order of asking.
 */
#ifndef AP_TABLE_LAZY_H
#define AP_TABLE_LAZY_H

#include "table/joint.h"

struct ap_lazy_state {
	const int32_t *count; /* [AP_MAX_FACTOR], 1 beyond the operator's factors */
	double cost_s; /* share of the objective, quantised; INFINITY: a parameter read twice would
	                  have two layouts */
	int64_t memory, temporary;
};

struct ap_lazy_list { /* of states */
	uint32_t n;
	const uint32_t *state;
};

struct ap_lazy_link {
	ap_id u, v;
	uint32_t bond; /* equal for links of equal cost */
	bool strict; /* costs are 0 or INFINITY */
};

struct ap_lazy_move {
	double cost_s; /* quantised */
	int64_t kept_bytes;
};

struct ap_lazy;

/* fixed: counts that nodes are fixed to; NULL, or with rows NULL, for none. Valid until destroyed,
 * as is all that it returns. O(operands). */
struct ap_lazy *ap_lazy_create(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *fixed);
void ap_lazy_destroy(struct ap_lazy *l);

const uint32_t *ap_lazy_classes(const struct ap_lazy *l); /* [nnode] */
uint32_t ap_lazy_links(const struct ap_lazy *l, const struct ap_lazy_link **out);

/* The state of counts ([factor]). AP_NONE if they are no wanted candidate or, for a fixed class,
 * not legal. */
uint32_t ap_lazy_find(struct ap_lazy *l, uint32_t cls, const int32_t *count);

const struct ap_lazy_state *ap_lazy_state(const struct ap_lazy *l, uint32_t cls, uint32_t state);

/* Cost of a link between state a of its u and state b of its v. */
struct ap_lazy_move ap_lazy_move(struct ap_lazy *l, uint32_t bond, uint32_t a, uint32_t b);

/* The state without cuts; for a fixed class, with its fixed counts. */
uint32_t ap_lazy_start(struct ap_lazy *l, uint32_t cls);

/* States with one factor cut `prime` times further, one per factor that allows it; none for a fixed
 * class. If all devices must be used (step.fully_use), the devices left over are also dealt to the
 * factors; likewise for beside. */
struct ap_lazy_list ap_lazy_further(struct ap_lazy *l, uint32_t cls, uint32_t state, int32_t prime);

/* States with one prime, or all parts, moved from a factor or the repeat to another; with two
 * factors cut a prime further; with no cut; with a single factor cut as far as possible. */
struct ap_lazy_list ap_lazy_beside(struct ap_lazy *l, uint32_t cls, uint32_t state);

/* The states of u (or of v) that a strict bond allows beside this state of the other end.
 * Enumerates the class's candidates, once per state: use only next to fixed operators. */
struct ap_lazy_list ap_lazy_matching(struct ap_lazy *l, uint32_t bond, bool of_v, uint32_t other);

#endif
