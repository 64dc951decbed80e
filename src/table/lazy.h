/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The costs of table/table.h, priced when they are asked for and then remembered: for searches that
 * look at few candidates. Nothing here enumerates the candidates of an operator, or pairs of
 * layouts; operators of equal content share a class, so that repeated layers are priced once.
 *
 * A state is a candidate of a class that somebody has asked for, numbered in the order of asking.
 */
#ifndef AP_TABLE_LAZY_H
#define AP_TABLE_LAZY_H

#include "table/joint.h"

struct ap_lazy_state {
	const int32_t *count; /* [AP_MAX_FACTOR], 1 beyond the operator's factors */
	double cost_s; /* objective share, quantised; INFINITY: a parameter read twice would lie in
	                  two layouts */
	int64_t memory, temporary;
};

struct ap_lazy_list { /* of states */
	uint32_t n;
	const uint32_t *state;
};

struct ap_lazy_link {
	ap_id u, v;
	uint32_t bond; /* links of equal cost have one */
	bool strict; /* may forbid: costs 0 or INFINITY */
};

struct ap_lazy_move {
	double cost_s; /* quantised */
	int64_t kept_bytes;
};

struct ap_lazy;

/* fixed: counts that nodes are fixed to, rows may be NULL; may be NULL. Lives until destroyed; what it
 * returns lives as long. O(operands). */
struct ap_lazy *ap_lazy_create(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *fixed);
void ap_lazy_destroy(struct ap_lazy *l);

const uint32_t *ap_lazy_classes(const struct ap_lazy *l); /* [nnode] */
uint32_t ap_lazy_links(const struct ap_lazy *l, const struct ap_lazy_link **out);

/* The state of these counts ([factor]); AP_NONE where they are no candidate that is wanted, of a fixed
 * class where they are not legal. */
uint32_t ap_lazy_find(struct ap_lazy *l, uint32_t cls, const int32_t *count);

const struct ap_lazy_state *ap_lazy_state(const struct ap_lazy *l, uint32_t cls, uint32_t state);

/* Cost of a link between states a of its u and b of its v. */
struct ap_lazy_move ap_lazy_move(struct ap_lazy *l, uint32_t bond, uint32_t a, uint32_t b);

/* Everything repeated; of a fixed class the counts it is fixed to. */
uint32_t ap_lazy_start(struct ap_lazy *l, uint32_t cls);

/* One factor cut `prime` times further, a state per factor that allows it; none of a fixed class. Where
 * all devices are to be used (step.fully_use), also with the devices that this leaves dealt out to the
 * factors, and so beside. */
struct ap_lazy_list ap_lazy_further(struct ap_lazy *l, uint32_t cls, uint32_t state, int32_t prime);

/* One prime, or all there is, moved from a factor or the repeat to another of them; two factors cut a
 * prime further; nothing cut, or a single factor as far as it goes. */
struct ap_lazy_list ap_lazy_beside(struct ap_lazy *l, uint32_t cls, uint32_t state);

/* The states of u (or of v) that a strict bond allows beside this state of the other. Enumerates the
 * candidates of the class, once per state: only for what is tied to fixed operators. */
struct ap_lazy_list ap_lazy_matching(struct ap_lazy *l, uint32_t bond, bool of_v, uint32_t other);

#endif
