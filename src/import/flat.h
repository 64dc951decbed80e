/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of a dump without sub-graphs, tuples, monads and other plumbing: operators on
 * tensors in execution order, each with its source node. */
#ifndef AP_IMPORT_FLAT_H
#define AP_IMPORT_FLAT_H

#include "base/vec.h"
#include "import/import.h"
#include "import/ir.h"

enum ap_flat_kind {
	AP_FLAT_NOTHING, /* None, a monad, or the value of a dropped node */
	AP_FLAT_CONST,
	AP_FLAT_TENSOR,
	AP_FLAT_TUPLE,
	AP_FLAT_FUNC /* a sub-graph, with some arguments bound */
};

struct ap_flat_frame;

struct ap_flat_value {
	enum ap_flat_kind kind;
	uint8_t depth; /* TUPLE: nesting */
	uint32_t n; /* of v: elements, or bound arguments */
	uint32_t size; /* TUPLE: all nested parts and itself */
	ap_id id; /* of a tensor, or a sub-graph */
	const struct ap_flat_value *v;
	const struct ap_ir_value *c; /* CONST */
	const struct ap_ir_type *type; /* CONST; NULL: unknown */
	const struct ap_flat_frame *frame; /* FUNC: frame of its free variables; NULL: any */
};

struct ap_flat_tensor {
	enum ap_tensor_kind kind; /* INPUT, PARAM, ACT */
	const char *name; /* "" for ACT */
	int64_t line;
	struct ap_ir_type type;
	ap_id op; /* ACT: producer */
	uint32_t result;
	bool used;
};

struct ap_flat_op {
	const struct ap_ir_node *node;
	uint32_t nin;
	const struct ap_flat_value *in;
	uint32_t nout;
	ap_id out; /* first of nout tensors */
	int64_t micro; /* its micro-batch; -1: none */
	bool gone; /* folded */
};

struct ap_flat {
	const struct ap_ir *ir;
	AP_VEC(struct ap_flat_tensor) tensors;
	AP_VEC(struct ap_flat_op) ops;
	AP_VEC(ap_id) outputs; /* tensors; the loss first */
	bool inference; /* no gradient is taken */
	bool sliced; /* a piece with device slices */
};

/* Extracts the forward pass of a dump. Faults have the line of their node. O(nodes of all
 * copies). */
enum ap_status ap_flat_make(struct ap_ctx *ctx, const struct ap_ir *ir,
	const struct ap_import_params *params, struct ap_flat *out);

#endif
