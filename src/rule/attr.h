/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of operators: the rows of attrs.def, and lookup of an operator's values. */
#ifndef AP_RULE_ATTR_H
#define AP_RULE_ATTR_H

#include "rule/rule.h"

/* Is op a word in a list of types? An empty list contains all. */
bool ap_attr_concerns(const char *operators, const char *op);

/* The current name of attribute `name` for operators of type op ("": any), and its type; NULL if
 * attrs.def declares no such attribute. */
const char *ap_attr_find(const char *op, const char *name, enum ap_attr_type *type);

/* Name of declared attribute i; NULL past the end. */
const char *ap_attr_at(size_t i);

/* Alias i of an attribute; false past the end. */
bool ap_attr_alias_at(size_t i, struct ap_attr_alias *alias);

/* Refusal i and the operators (as in ap_attr_alias) and attribute it is for; false past the end. */
bool ap_attr_refusal_at(size_t i, const char **operators, const char **name,
	struct ap_attr_refusal *refusal);

/* Does this attribute make an operator compute what its rule does not describe? */
bool ap_attr_refused(const char *op, const struct ap_attr *a, struct ap_attr_refusal *why);

const struct ap_attr *ap_attr_get(const struct ap_attrs *a, const char *name);

int64_t ap_attr_int(const struct ap_attrs *a, const char *name, int64_t otherwise);

bool ap_attr_bool(const struct ap_attrs *a, const char *name, bool otherwise);

const char *ap_attr_str(const struct ap_attrs *a, const char *name, const char *otherwise);

#endif
