/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of given types with random small shapes and attributes. */
#ifndef AP_TEST_MOVE_MADE_H
#define AP_TEST_MOVE_MADE_H

#include "rule/rule.h"

enum { MADE_OPERANDS = 4, MADE_ATTRS = 9, MADE_VALUES = 16 };

struct made {
	uint64_t rng;
	const char *type;
	uint16_t nin, nout;
	struct ap_shape in[MADE_OPERANDS];
	struct ap_attrs attrs;
	struct ap_attr attr[MADE_ATTRS];
	int64_t list[MADE_ATTRS][MADE_VALUES];
};

struct made_kind {
	const char *type;
	void (*make)(struct made *m);
};

extern const struct made_kind made_kinds[];
extern const size_t made_nkind;

/* A number below n. */
uint32_t made_draw(struct made *m, uint32_t n);

/* An operator of the kind; the state of the generator goes on. */
void made_make(struct made *m, const struct made_kind *kind);

#endif
