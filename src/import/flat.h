/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass of a dump without sub-graphs, tuples, monads and what else is plumbing: operators on
 * tensors in the order in which they run, each with the node that it is from.
 */
#ifndef AP_IMPORT_FLAT_H
#define AP_IMPORT_FLAT_H

#include "base/vec.h"
#include "import/import.h"
#include "import/ir.h"

enum ap_flat_kind {
	AP_FLAT_NOTHING, /* None, a monad, what a dropped node gives */
	AP_FLAT_CONST,
	AP_FLAT_TENSOR,
	AP_FLAT_TUPLE,
	AP_FLAT_FUNC /* a sub-graph, some of its arguments bound */
};

struct ap_flat_frame;

struct ap_flat_value {
	enum ap_flat_kind kind;
	uint8_t depth; /* TUPLE: of tuples */
	uint32_t n; /* of v: elements, or bound arguments */
	uint32_t size; /* TUPLE: of all that is in it, itself counted */
	ap_id id; /* of a tensor, or a sub-graph */
	const struct ap_flat_value *v;
	const struct ap_ir_value *c; /* CONST */
	const struct ap_ir_type *type; /* CONST; NULL not told */
	const struct ap_flat_frame *frame; /* FUNC: where its free variables are; NULL anywhere */
};

struct ap_flat_tensor {
	enum ap_tensor_kind kind; /* INPUT, PARAM, ACT */
	const char *name; /* "" ACT */
	int64_t line;
	struct ap_ir_type type;
	ap_id op; /* ACT: operator that gives it */
	uint32_t result;
	bool used;
};

struct ap_flat_op {
	const struct ap_ir_node *node;
	uint32_t nin;
	const struct ap_flat_value *in;
	uint32_t nout;
	ap_id out; /* first of nout tensors */
	int64_t micro; /* micro-batch that it is of; -1 none */
	bool gone; /* folded */
};

struct ap_flat {
	const struct ap_ir *ir;
	AP_VEC(struct ap_flat_tensor) tensors;
	AP_VEC(struct ap_flat_op) ops;
	AP_VEC(ap_id) outputs; /* tensors; the loss first */
	bool inference; /* nothing is derived from it */
	bool sliced; /* a piece of what each device runs */
};

/* Takes the dump's forward pass apart. Faults have the line of their node. O(nodes of all copies). */
enum ap_status ap_flat_make(struct ap_ctx *ctx, const struct ap_ir *ir,
	const struct ap_import_params *params, struct ap_flat *out);

#endif
