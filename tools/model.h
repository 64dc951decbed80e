/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator graphs made by a program: tensors and operators are added one by one, every result shape
 * is derived from the operands, and the whole is written as autopar-graph/1. A mistake of the
 * caller (unknown id, name used twice, shapes that do not fit) is an assertion.
 */
#ifndef AP_TOOLS_MODEL_H
#define AP_TOOLS_MODEL_H

#include "base/json_write.h"
#include "rule/rule.h"

struct ap_arena;
struct model;

/* All memory from arena. Strings are borrowed and must live as long as the model. */
struct model *model_create(struct ap_arena *arena, const char *name, const char *optimizer);

struct ap_arena *model_arena(struct model *m);

/* What the names of results begin with from now on, "" at first ("blocks.3."). */
void model_prefix(struct model *m, const char *prefix);

/* Tensors; each returns an id. Dimension 0 of an input carries the batch. */
ap_id model_input(struct model *m, const char *name, struct ap_shape shape);
ap_id model_param(struct model *m, const char *name, struct ap_shape shape);
ap_id model_state(struct model *m, const char *name, struct ap_shape shape); /* not learned */
ap_id model_const(struct model *m, const char *name, struct ap_shape shape);
ap_id model_number(struct model *m, const char *name, enum ap_dtype dtype); /* scalar, one a name */

ap_id model_find(const struct model *m, const char *name); /* a tensor that there is */
struct ap_shape model_shape(const struct model *m, ap_id tensor);
int64_t model_parameters(const struct model *m); /* elements of all parameters that are learned */
uint32_t model_operators(const struct model *m);

/* Cell.recompute() of a cell, by its path. */
void model_recompute(struct model *m, const char *cell);

#define MODEL_MAX_IN 8
#define MODEL_MAX_OUT 5
#define MODEL_MAX_ATTR 6

struct model_op {
	const char *scope; /* of the cell; the operator's name adds "/<type>-op<n>" */
	const char *type;
	uint32_t nin, nout, nattr;
	ap_id in[MODEL_MAX_IN]; /* AP_NONE: an optional operand that is left out */
	struct {
		const char *name; /* after the prefix */
		struct ap_shape shape;
	} out[MODEL_MAX_OUT];
	struct ap_attr attr[MODEL_MAX_ATTR]; /* lists are borrowed */
};

#define MODEL_INT(key, v) {.name = (key), .type = AP_ATTR_INT, .i = (v)}
#define MODEL_FLAG(key, v) {.name = (key), .type = AP_ATTR_BOOL, .i = (v)}
#define MODEL_REAL(key, v) {.name = (key), .type = AP_ATTR_FLOAT, .f = (v)}
#define MODEL_TEXT(key, v) {.name = (key), .type = AP_ATTR_STRING, .s = (v)}
#define MODEL_INTS(key, v, count) {.name = (key), .type = AP_ATTR_INTS, .list = (v), .n = (count)}

/* Adds an operator; the id of its first result, further ones follow. */
ap_id model_op(struct model *m, const struct model_op *op);

/* Adds an operator that lacks only its single result. */
ap_id model_op_one(struct model *m, struct model_op op, const char *name, struct ap_shape shape);

/* "SCOPE/CELL" in the arena. */
const char *model_scope(struct model *m, const char *scope, const char *cell);

/* "PREFIX.NAME" in the arena. */
const char *model_name(struct model *m, const char *prefix, const char *name);

/* Writes autopar-graph/1, one tensor or operator a line. outputs: the last result added. */
void model_write(const struct model *m, ap_write_fn *write, void *user);

/* A shape from its extents: MODEL_SHAPE(AP_FLOAT16, 32, 784). */
#define MODEL_SHAPE(type, ...) \
	model_shape_of(type, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
		(int64_t[]){__VA_ARGS__})
struct ap_shape model_shape_of(enum ap_dtype dtype, size_t rank, const int64_t *dim);
struct ap_shape model_scalar(enum ap_dtype dtype);

#endif
