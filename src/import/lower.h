/* SPDX-License-Identifier: Apache-2.0 */
/* Converts operators of a dump to those of a graph. */
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
	AP_VEC(const char *) canonical; /* by id of types; NULL: unknown */
	AP_VEC(uint32_t) numbers; /* by id of bases: the next number */
	AP_VEC(uint32_t) tensor_numbers; /* by id of tensor_names: next number for duplicates */
	size_t written, most; /* bytes of names and values in the graph */
	AP_VEC(ap_id) constant_tensors; /* by id of constants */
	bool instances; /* the dump gives attributes of cells, so a missing one means none */
	uint32_t made; /* names not from the dump */
	int64_t made_line; /* of the first of them */
	ap_id *tensor; /* by id of the flat graph's tensors */
	ap_id *learned_use; /* by the same id: uses as a learned operand */
};

struct lower_op { /* while being made */
	const struct ap_flat_op *from;
	const char *type; /* canonical; the dump's if unknown */
	bool known;
	AP_VEC(ap_id) in; /* tensors of the graph; AP_NONE: omitted */
	AP_VEC(bool) number; /* per operand: a number, without strategy */
	AP_VEC(struct ap_attr) attrs;
	struct ap_import_op out;
};

enum ap_status ap_lower(struct ap_ctx *ctx, const struct ap_flat *flat,
	const struct ap_import_params *params, struct ap_import *g);

#endif
