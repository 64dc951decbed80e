/* SPDX-License-Identifier: Apache-2.0 */
/* From the operators of a dump to those of a graph; shared by the files lower*.c. */
#ifndef AP_IMPORT_LOWER_H
#define AP_IMPORT_LOWER_H

#include "base/vec.h"
#include "import/flat.h"
#include "import/model.h"
#include "import/prims.h"

struct lower {
	struct ap_ctx *ctx;
	const struct ap_import_params *params;
	const struct ap_flat *flat;
	struct ap_import *g;
	struct ap_prims *prims;
	struct ap_map *tensor_names, *op_names, *bases, *constants, *unknown, *types;
	AP_VEC(const char *) canonical; /* by id of types, as in the dump; NULL: not known */
	AP_VEC(uint32_t) numbers; /* by id of bases: the next number */
	AP_VEC(uint32_t) tensor_numbers; /* by id of tensor_names: the next number of those
	                                 * that want this name, too */
	size_t written, most; /* bytes of names and values in the graph */
	AP_VEC(ap_id) constant_tensors; /* by id of constants */
	bool instances; /* the dump tells attributes of cells: what has none is held by none */
	uint32_t made; /* names that are not the dump's */
	int64_t made_line; /* of the first */
	ap_id *tensor; /* by id of the flat graph's tensors */
	ap_id *learned_use; /* by the same: uses as an operand that is learned */
};

struct lower_op { /* while it is made */
	const struct ap_flat_op *from;
	const char *type; /* canonical; as in the dump where it is unknown */
	bool known;
	AP_VEC(ap_id) in; /* tensors of the graph; AP_NONE: left out */
	AP_VEC(bool) number; /* of each operand: it is a number, which has no strategy */
	AP_VEC(struct ap_attr) attrs;
	struct ap_import_op out;
};

/* Reports a fault in an operator; returns AP_MEANING. */
enum ap_status ap_lower_fault(struct lower *l, const struct ap_flat_op *op, const char *check,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

enum ap_status ap_lower(struct ap_ctx *ctx, const struct ap_flat *flat,
	const struct ap_import_params *params, struct ap_import *g);

/* lower_operand.c: operands and the attributes among them. */
enum ap_status ap_lower_operands(struct lower *l, struct lower_op *o);

/* lower_attr.c: an attribute from a constant. Constants that no rule has a name for are left out;
 * where one is set already, the first stays. */
enum ap_status ap_lower_attr(struct lower *l, struct lower_op *o, const char *name,
	const struct ap_ir_value *v);

/* lower_attr.c: attributes of the primitive, and marks. */
enum ap_status ap_lower_attrs(struct lower *l, struct lower_op *o);

/* lower_pin.c: in_strategy and out_strategy. */
enum ap_status ap_lower_pins(struct lower *l, struct lower_op *o);

/* lower_bind.c: does a rule fit, and do the results have the shapes that it gives? */
enum ap_status ap_lower_bind(struct lower *l, const struct lower_op *o);

#endif
