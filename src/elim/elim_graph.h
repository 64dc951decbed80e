/* SPDX-License-Identifier: Apache-2.0 */
/* The factors that are left while an elimination is planned. Everything lives in scratch. */
#ifndef AP_ELIM_ELIM_GRAPH_H
#define AP_ELIM_ELIM_GRAPH_H

#include "base/vec.h"
#include "elim/elim.h"

struct ap_map;

struct ap_elink { /* a node's list of factors; dead ones are dropped when met */
	ap_id factor, next;
};

struct ap_egraph {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	bool share;
	double cap; /* cells a table may have */
	uint32_t *k;
	ap_id *like; /* by matrix: the first one of equal content */
	struct ap_map *symbols; /* how a table comes about -> table */
	struct ap_map *lists; /* a node's lists, by address -> index into table_of */
	struct ap_map *scopes; /* scope -> index into at_scope */
	struct ap_map *signatures; /* of eliminations -> index into done */
	uint64_t serial; /* keeps signatures apart when nothing is shared */
	AP_VEC(struct ap_etable) table;
	AP_VEC(ap_id) table_of;
	AP_VEC(struct ap_reduction) reduction;
	AP_VEC(struct ap_efactor) factor;
	AP_VEC(bool) alive; /* by factor */
	AP_VEC(ap_id) at_scope; /* the latest factor over it */
	AP_VEC(struct ap_elink) link;
	AP_VEC(ap_id) done; /* by signature: its table; AP_NONE: not made */
	AP_VEC(struct ap_estep) step;
	AP_VEC(ap_id) list; /* factors of the node at hand */
	AP_VEC(ap_id) clique; /* its nodes, ascending */
	AP_VEC(struct ap_einput) input; /* factors seen from the clique */
	AP_VEC(uint64_t) key; /* of a look-up */
	ap_id *own; /* by node: table of its costs */
	ap_id *head; /* by node, into link */
	uint32_t *degree; /* by node: live factors */
	uint32_t *mark, stamp; /* by node: seen in the gathering at hand */
	uint32_t *place; /* by node: in the clique, if it is there */
	double work, cells;
	bool split;
};

/* The factors of p: one per node, one per pair of nodes joined by edges. */
void ap_egraph_init(struct ap_egraph *g, struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_elim_options *options, double cap);

/* Signature (index into done) of eliminating v now, and its work in inner steps; AP_NONE when the
 * result would exceed the cap. */
ap_id ap_egraph_signature(struct ap_egraph *g, ap_id v, double *work);

/* Eliminates v as a whole, its present signature being known, or in parts that each keep to the cap.
 * The nodes that were joined to v are returned in g->clique (v among them). */
void ap_egraph_eliminate(struct ap_egraph *g, ap_id v, ap_id signature);
void ap_egraph_split(struct ap_egraph *g, ap_id v);

#endif
