/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ONNX operators, onnx_ops.def. */
#ifndef AP_IMPORT_ONNX_OPS_H
#define AP_IMPORT_ONNX_OPS_H

#include "import/onnx_val.h"

struct ap_onnx_op {
	const char *domain, *name;
	const char *type; /* of the operator that it becomes, or of the one that counts among several */
	uint32_t least; /* operands */
	void (*make)(struct ap_onnx_walk *w, const struct ap_onnx_op *row); /* the node at work */
};

/* NULL if there is no row. */
const struct ap_onnx_op *ap_onnx_op_find(const char *domain, const char *name);

/* Row i; NULL past the end. */
const struct ap_onnx_op *ap_onnx_op_at(size_t i);

/* Names of rows near to a name, "Relu or Elu"; "". */
const char *ap_onnx_ops_near(struct ap_ctx *ctx, const char *name);

/* a x and y of the operands' shapes: numbers in place of constants that are the same everywhere. */
ap_id ap_onnx_binary(struct ap_onnx_walk *w, const char *type, ap_id x, ap_id y);

#endif
