/* SPDX-License-Identifier: Apache-2.0 */
/* Expanders: rules that text cannot express, because which dimension is which factor follows from
 * shapes and attributes ("=concat"). Operators may share one. An expander reads the ranks and
 * extents of operands in b->bin, sets those of results in b->bout, and gives both their factors; it
 * reports faults by ap_bind_fail(). expanders.def lists them. */
#ifndef AP_RULE_EXPAND_H
#define AP_RULE_EXPAND_H

#include "rule/binding.h"

/* Adds a factor of this length; AP_NO_FACTOR if the length is one. False if there are too many. */
bool ap_expand_factor(struct ap_binding *b, char letter, uint8_t flags, int64_t size, uint8_t *id);

/* Composes a factor into a dimension as the innermost one; AP_NO_FACTOR adds nothing. */
void ap_expand_put(struct ap_dim *dim, uint8_t id);

/* Adds factors A, B, .. for the dimensions of o that are not in whole, and composes them in. */
bool ap_expand_dims(struct ap_binding *b, struct ap_operand *o, uint32_t whole,
	uint8_t id[AP_MAX_RANK]);

/* Appends a dimension with factor id. Returns false if the rank gets too large. */
bool ap_expand_add(struct ap_binding *b, struct ap_operand *o, int64_t size, uint8_t id);

/* Reads a number; `otherwise` if the attribute is missing. */
bool ap_expand_number(struct ap_binding *b, const char *name, int64_t otherwise, int64_t *v);

/* Reads a dimension (negative: from the end) of rank. */
bool ap_expand_axis(struct ap_binding *b, const char *name, int64_t otherwise, uint8_t rank,
	uint8_t *at);

/* A required attribute; reports a fault and returns NULL if it is missing. */
const struct ap_attr *ap_expand_list(struct ap_binding *b, const char *name);

/* Checks that operand i has operand 0's extents, except in dimensions `except`. */
bool ap_expand_same(struct ap_binding *b, unsigned i, uint32_t except);

/* Checks that operand i has at least this many dimensions. */
bool ap_expand_rank(struct ap_binding *b, unsigned i, uint8_t least);

/* A row of expanders.def. */
struct ap_expander {
	const char *name;
	uint16_t least, most; /* number of operands */
	uint16_t results; /* at most this many */
	bool gaps;
	const char *attrs, *lacks, *says;
};

#define EXPANDER(name, ...) bool ap_expand_##name(struct ap_binding *b);
#include "rule/expanders.def"

#endif
