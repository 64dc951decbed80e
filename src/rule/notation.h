/* SPDX-License-Identifier: Apache-2.0 */
/* The parsed text of a rule: terms as written, independent of shapes. See rule.h. */
#ifndef AP_RULE_NOTATION_H
#define AP_RULE_NOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rule/rule.h"

#define AP_MAX_RULE_OPERAND 26
#define AP_MAX_RULE_RESULT 5
#define AP_MAX_RULE_AXIS 3
#define AP_MAX_RULE_EQUATION 3

enum ap_term_kind {
	AP_TERM_FACTOR, /* a dimension: one letter, or several composed */
	AP_TERM_STAR, /* the dimensions not named otherwise */
	AP_TERM_AXIS, /* the dimensions an attribute names */
	AP_TERM_UNIT, /* [1]: the named dimensions with length one */
	AP_TERM_FIXED, /* a length, never cut */
	AP_TERM_ANY /* any length, never cut */
};

struct ap_term {
	enum ap_term_kind kind;
	uint8_t n; /* FACTOR: number of letters */
	char letter[AP_MAX_DIM_FACTOR];
	bool broadcast; /* FACTOR: length one is allowed, too */
	char window; /* FACTOR: letter of windows that slide over the dimension; 0 if none */
	uint8_t axis; /* AXIS: index into ap_rule.axis */
	int64_t length; /* FIXED */
};

struct ap_tensor_rule {
	bool whole; /* "?" */
	bool star;
	uint8_t nterm;
	struct ap_term term[AP_MAX_RANK];
};

struct ap_name { /* part of a row's text, not NUL-terminated */
	const char *s;
	size_t len;
};

struct ap_axis_rule {
	struct ap_name attr;
	bool frozen, single, to_end, has_default;
	bool reorder; /* named only by a result: dimensions in the attribute's order */
	int64_t otherwise; /* if the attribute is missing and has_default */
};

struct ap_equation {
	struct ap_name attr;
	uint8_t n;
	char letter[AP_MAX_DIM_FACTOR];
};

struct ap_rule {
	struct ap_name expander; /* len is 0 if there is none */
	uint16_t nrequired, nin, nout; /* for an expander: nin and nout are maxima */
	uint8_t nmade; /* number of computed results; later ones follow from them */
	uint8_t naxis, nequation;
	uint32_t frozen, lookup, window; /* masks of letters, a = bit 0 */
	struct ap_tensor_rule in[AP_MAX_RULE_OPERAND], out[AP_MAX_RULE_RESULT];
	struct ap_axis_rule axis[AP_MAX_RULE_AXIS];
	struct ap_equation equation[AP_MAX_RULE_EQUATION];
};

/* Parses text, which *r borrows. Returns NULL, or an error (static text) with its offset in *at.
 * O(length). */
const char *ap_rule_parse(const char *text, struct ap_rule *r, size_t *at);

#endif
