/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expanders: rules that no text can state, because which dimension is which factor follows from
 * shapes and attributes ("=concat"). Several operators may share one. An expander finds the ranks
 * and extents of the operands in b->bin, sets those of the results in b->bout, and gives both their
 * factors; what does not fit it tells through ap_bind_fail().
 */
#ifndef AP_RULE_EXPAND_H
#define AP_RULE_EXPAND_H

#include "rule/bind.h"

/* A factor of this length; AP_NO_FACTOR for a length of one. False when there are too many. */
bool ap_expand_factor(struct ap_binding *b, char letter, uint8_t flags, int64_t size, uint8_t *id);

/* Composes a factor into a dimension, inside those that are there; AP_NO_FACTOR: nothing. */
void ap_expand_put(struct ap_dim *dim, uint8_t id);

/* Factors A, B, .. for the dimensions of o that are not in whole, put there. */
bool ap_expand_dims(struct ap_binding *b, struct ap_operand *o, uint32_t whole,
	uint8_t id[AP_MAX_RANK]);

/* Adds a dimension with the factor id. False when the rank gets too large. */
bool ap_expand_add(struct ap_binding *b, struct ap_operand *o, int64_t size, uint8_t id);

/* One number, or `otherwise` where the attribute is missing. */
bool ap_expand_number(struct ap_binding *b, const char *name, int64_t otherwise, int64_t *v);

/* A dimension out of rank, counted from the end where negative. */
bool ap_expand_axis(struct ap_binding *b, const char *name, int64_t otherwise, uint8_t rank,
	uint8_t *at);

/* An attribute that must be there. NULL: it is missing, which is told. */
const struct ap_attr *ap_expand_list(struct ap_binding *b, const char *name);

/* Operand i has operand 0's extents but in the dimensions of `except`. */
bool ap_expand_same(struct ap_binding *b, unsigned i, uint32_t except);

/* Operand i has at least this many dimensions. */
bool ap_expand_rank(struct ap_binding *b, unsigned i, uint8_t least);

/* rule_shape.c */
bool ap_expand_reshape(struct ap_binding *b);
bool ap_expand_flatten(struct ap_binding *b);

/* rule_join.c */
bool ap_expand_concat(struct ap_binding *b);
bool ap_expand_stack(struct ap_binding *b);
bool ap_expand_alike(struct ap_binding *b);
bool ap_expand_sums(struct ap_binding *b);
bool ap_expand_split(struct ap_binding *b);
bool ap_expand_split_sizes(struct ap_binding *b);
bool ap_expand_split_chunks(struct ap_binding *b);
bool ap_expand_halves(struct ap_binding *b);

/* rule_slice.c */
bool ap_expand_slice(struct ap_binding *b);
bool ap_expand_strided(struct ap_binding *b);

/* rule_repeat.c */
bool ap_expand_new_dim(struct ap_binding *b);
bool ap_expand_squeeze(struct ap_binding *b);
bool ap_expand_broadcast(struct ap_binding *b);
bool ap_expand_tile(struct ap_binding *b);
bool ap_expand_repeat(struct ap_binding *b);

/* rule_pick.c */
bool ap_expand_topk(struct ap_binding *b);
bool ap_expand_gather_dim(struct ap_binding *b);
bool ap_expand_gather_points(struct ap_binding *b);
bool ap_expand_segments(struct ap_binding *b);

/* rule_whole.c */
bool ap_expand_whole(struct ap_binding *b);
bool ap_expand_batch(struct ap_binding *b);
bool ap_expand_dataset(struct ap_binding *b);
bool ap_expand_fill(struct ap_binding *b);

#endif
