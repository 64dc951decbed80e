/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the canonical hybrids, in the order that they run: what tensors and operators are
 * (hybrid_roles.c), how far a cut of a dimension is of use to what comes after (hybrid_sink.c), the
 * cuts of what depends on products with parameters, along the data flow (hybrid_flow.c, products in
 * hybrid_product.c), and of what does not, against it (hybrid_free.c).
 *
 * A cut is wanted as a range of the stage's ranks: cut and stride as in struct ap_cut_dim, where ranks are
 * numbered dp x cp x tp. Ranges stay what they are also where an operator's dev_matrix, which follows the
 * order of its dimensions, places them otherwise.
 */
#ifndef AP_HYBRID_HYBRID_PARTS_H
#define AP_HYBRID_HYBRID_PARTS_H

#include "hybrid/hybrid.h"
#include "shard/layout.h"

enum hybrid_role {
	HYBRID_OTHER,
	HYBRID_PRODUCT, /* of activations with a parameter, or what was made of one */
	HYBRID_LOOKUP /* in a table of more entries than a sample looks up */
};

enum hybrid_origin {
	HYBRID_CONSTANT, /* made of constants alone */
	HYBRID_WEIGHT, /* of parameters and constants */
	HYBRID_FREE, /* of graph inputs as well: it can be had in any cut */
	HYBRID_MAIN /* behind a product with a parameter, or such a look-up */
};

enum hybrid_end { /* what becomes of a cut of a dimension */
	HYBRID_GATHERED, /* an operator needs it whole */
	HYBRID_SUMMED, /* reduced: in the loss */
	HYBRID_PAIRED /* summed by a product with a parameter */
};

struct hybrid_sink {
	enum hybrid_end end;
	int32_t most; /* of tp parts that get there */
	ap_id node; /* what limits them; AP_NONE: nothing does */
	uint16_t operand;
	uint8_t dim;
};

struct hybrid_tensor {
	enum hybrid_origin origin;
	ap_id table; /* the parameter that a WEIGHT is made of alone; AP_NONE: none */
	bool product_after;
	bool used; /* a sink is known */
	struct hybrid_sink sink[AP_MAX_RANK];
	struct ap_layout flow; /* the cut that users should take, in ranges */
	const struct hybrid_sink *lost; /* what kept columns of a pair from being cut by tp; NULL: nothing */
};

struct hybrid_node {
	enum hybrid_role role;
	uint16_t act, weight; /* operands, of PRODUCT and LOOKUP (act: the indices) */
	bool cut_table; /* of LOOKUP: its table is cut by entries */
	uint32_t rows, columns, summed, experts; /* factors by the operands that have them */
	struct ap_cut_dim *want; /* [nfactor] ranges; NULL: not decided */
	int32_t *count; /* [AP_MAX_FACTOR] */
};

struct hybrid {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	int64_t ndev;
	const struct ap_step *step;
	const struct ap_hybrid *h;
	int32_t tp, cp, dp, ep;
	struct hybrid_tensor *tensor; /* [g->ntensor], in scratch like node */
	struct hybrid_node *node; /* [g->nnode] */
	bool *whole; /* [g->ntensor] tables that are not cut */
	bool sequence_cut, experts_cut; /* some operator is cut by cp, by ep */
	const char *why; /* NULL while all goes well */
};

void ap_hybrid_roles(struct hybrid *s);
void ap_hybrid_sinks(struct hybrid *s);
/* Which tables are cut. Look-ups in them, and what is behind products, are MAIN from here. */
void ap_hybrid_tables(struct hybrid *s);
void ap_hybrid_flow(struct hybrid *s);
void ap_hybrid_free(struct hybrid *s);

/* The cuts of a product with a parameter whose activations come as act; no
 * side effect but s->why and s->experts_cut. */
void ap_hybrid_product(struct hybrid *s, ap_id node, const struct ap_layout *act, struct ap_cut_dim *want);

/* The cuts of a look-up: its indices by batch and sequence, a cut table by its entries. */
void ap_hybrid_lookup(struct hybrid *s, ap_id node, struct ap_cut_dim *want);

/* Rows of a product's or look-up's result are cut by tp as well, as far as they divide: what sp makes of
 * a result that is the same on all tp ranks. */
void ap_hybrid_spread(const struct hybrid *s, ap_id node, struct ap_cut_dim *want);

/* The factor of a table's entries; -1 where there is none, or none that may be cut. */
int ap_hybrid_entries(const struct ap_bound *b);

/* Of the result's dimension that heads the product's columns; the parts that the columns are cut in, 1
 * where they stay whole. */
int32_t ap_hybrid_columns(const struct hybrid *s, ap_id node, int *factor, const struct hybrid_sink **sink);

void ap_hybrid_uncut(struct ap_cut_dim want[AP_MAX_FACTOR]);

/* Is a result's dimension a piece of the operand's: shorter, but not of length one? */
bool ap_hybrid_is_piece(const struct ap_bound *b, int operand, int result, int dim);

/* Adds the ranges of a tensor's layout to those of its factors, outer factors first; the greater of two
 * cuts of a factor stays. */
void ap_hybrid_take(const struct hybrid *s, const struct ap_bound *b, const struct ap_operand *o,
	const struct ap_layout *l, struct ap_cut_dim *want);

/* Layout of an operand or result, in ranges. */
void ap_hybrid_layout(const struct ap_operand *o, const struct ap_cut_dim *want, struct ap_layout *out);

/* Takes ranks below `high` of stride, from `low`, out of a range. */
void ap_hybrid_strip(struct ap_cut_dim *range, int32_t low, int32_t high);

/* Do the ranges have ranks of stride low to high in common? */
bool ap_hybrid_meets(const struct ap_cut_dim *range, int32_t low, int32_t high);

/* The first factor of the batch, in dev order, that may be cut; -1 none. */
int ap_hybrid_batch_factor(const struct ap_bound *b);

/* The batch is cut by dp where nothing is yet, and nothing else is unless it is an expert; of factors
 * that want the same ranks the first in dev order has them, those of the batch before others. */
void ap_hybrid_settle(const struct hybrid *s, const struct ap_bound *b, struct ap_cut_dim *want);

/* Makes wants of a node its counts. What is not legal is left out; *dropped (may be NULL) says why. */
void ap_hybrid_apply(struct hybrid *s, ap_id node, const struct ap_cut_dim *want, const char **dropped);

#endif
