/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expanders: rules that no text can state, because which dimension is which factor follows from
 * shapes and attributes ("=concat"). Several operators may share one. An expander finds the ranks
 * and extents of the operands in b->bin, sets those of the results in b->bout, and gives both their
 * factors; what does not fit it tells through ap_bind_fail(). They are listed in expanders.def.
 */
#ifndef AP_RULE_EXPAND_H
#define AP_RULE_EXPAND_H

#include "rule/binding.h"

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

/* A row of expanders.def. */
struct ap_expander {
	const char *name;
	uint16_t least, most; /* operands */
	uint16_t results; /* at most */
	bool gaps;
	const char *attrs, *lacks, *says;
};

#define EXPANDER(name, ...) bool ap_expand_##name(struct ap_binding *b);
#include "rule/expanders.def"

#endif
