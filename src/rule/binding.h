/* SPDX-License-Identifier: Apache-2.0 */
/* State of a binding in progress, shared by the files of rule/. */
#ifndef AP_RULE_BINDING_H
#define AP_RULE_BINDING_H

#include "rule/notation.h"

#define AP_LETTERS 26

/* How far a row got before it failed; the fault of the furthest row is reported. */
enum ap_bind_stage {
	AP_STAGE_WHEN,
	AP_STAGE_COUNT,
	AP_STAGE_RANK,
	AP_STAGE_AXIS,
	AP_STAGE_SIZE,
	AP_STAGE_TYPE,
	AP_STAGE_DONE
};

struct ap_positions { /* dimensions named by an attribute, in its order */
	uint8_t n;
	uint8_t v[AP_MAX_RANK];
	uint32_t mask;
};

struct ap_binding {
	struct ap_ctx *ctx;
	const struct ap_op_row *row;
	const struct ap_bind_in *in;
	struct ap_rule rule;
	enum ap_bind_stage stage;
	unsigned passed; /* number of the row's conditions that hold */
	struct ap_bind_fault fault;
	uint8_t base_rank; /* of "*" and "[axis]", broadcast over the operands */
	int64_t base[AP_MAX_RANK];
	uint8_t base_factor[AP_MAX_RANK];
	uint32_t base_frozen, named; /* masks of positions in base */
	struct ap_positions axis[AP_MAX_RULE_AXIS];
	int64_t length[AP_LETTERS]; /* of letter factors; 0 if unknown */
	uint8_t letter_factor[AP_LETTERS];
	char window_letter[AP_MAX_WINDOW]; /* factor of bound.window[] */
	uint16_t nout; /* number of results to bind */
	struct ap_bound bound;
	struct ap_operand *bin, *bout;
};

/* Records the fault and returns false. operand -1: the operator as a whole. */
bool ap_bind_fail(struct ap_binding *b, const char *check, int operand, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The row's operand that operand i corresponds to. */
unsigned ap_bind_slot(const struct ap_binding *b, unsigned i);

/* Adds a factor; false if there are too many. */
bool ap_bind_factor(struct ap_binding *b, char letter, uint8_t flags, int64_t size, uint8_t *id);

/* "[2, 3]", in the run arena. */
const char *ap_bind_shape(struct ap_binding *b, const int64_t *dim, uint8_t rank);

/* The declared shape of result i; NULL if it has none. */
const struct ap_shape *ap_bind_declared(const struct ap_binding *b, unsigned i);

/* The attribute named by a part of a row's text; NULL if missing. */
const struct ap_attr *ap_bind_attr(const struct ap_binding *b, struct ap_name name);

/* "[32, 512]", owned by arena. */
const char *ap_shape_text(struct ap_arena *arena, const int64_t *dim, uint8_t rank);

#endif
