/* SPDX-License-Identifier: Apache-2.0 */
/* Builds operator graphs: tensors and operators are added one by one, result shapes are derived
 * from the operands, and the graph is written as autopar-graph/1. A mistake of the caller (unknown
 * id, duplicate name, shapes that do not fit) is an assertion. */
#ifndef AP_MODEL_MODEL_H
#define AP_MODEL_MODEL_H

#include "base/json_write.h"
#include "rule/rule.h"

struct ap_arena;
struct ap_model;

/* Allocates from arena. Strings are borrowed and must outlive the model. */
struct ap_model *ap_model_create(struct ap_arena *arena, const char *name, const char *optimizer);

struct ap_arena *ap_model_arena(struct ap_model *m);

/* From now on one operator stands for what one kernel of other software does (families.h). */
void ap_model_fuse(struct ap_model *m);
bool ap_model_is_fused(const struct ap_model *m);

/* Sets the prefix of result names, "" at first ("blocks.3."). */
void ap_model_prefix(struct ap_model *m, const char *prefix);

/* Adds a tensor and returns its id. Dimension 0 of an input carries the batch. */
ap_id ap_model_input(struct ap_model *m, const char *name, struct ap_shape shape);
ap_id ap_model_param(struct ap_model *m, const char *name, struct ap_shape shape);
ap_id ap_model_state(struct ap_model *m, const char *name, struct ap_shape shape); /* not trained */
ap_id ap_model_const(struct ap_model *m, const char *name, struct ap_shape shape);
ap_id ap_model_number(struct ap_model *m, const char *name, enum ap_dtype dtype); /* scalar, one per
                                                                               name */

ap_id ap_model_find(const struct ap_model *m, const char *name); /* an existing tensor */
struct ap_shape ap_model_shape(const struct ap_model *m, ap_id tensor);
int64_t ap_model_parameters(const struct ap_model *m); /* elements of all trained parameters */

/* Bytes of all tensors, each once more for every reader: a graph is refused above AP_MODEL_BYTES_MOST.
 * O(tensors). */
double ap_model_bytes(const struct ap_model *m);
#define AP_MODEL_BYTES_MOST 0x1p57
uint32_t ap_model_operators(const struct ap_model *m);

/* Marks a cell, by its path, with Cell.recompute(). */
void ap_model_recompute(struct ap_model *m, const char *cell);

/* Leaves as they are the parameters whose names the pattern of fnmatch(3) matches. Returns how many. */
uint32_t ap_model_freeze(struct ap_model *m, const char *pattern);

/*
 * Low-rank adapters: to x W of each matrix W named "PREFIX.weight", of whose PREFIX the last part is one of n
 * targets, or that with "_proj", s B (A x) is added, with A of [rank, in] and B of [out, rank] named
 * "PREFIX.lora_A.weight" and "PREFIX.lora_B.weight". They alone are trained. For a model that is whole.
 * Returns
 * how many products have one.
 */
uint32_t ap_model_adapt(struct ap_model *m, int64_t rank, const char *const *targets, size_t n);

/* Is there a product that a target names? */
bool ap_model_has_target(const struct ap_model *m, const char *target);

/* What targets there are: the last parts of the prefixes of matrices, each once, separated by commas. */
const char *ap_model_targets(struct ap_model *m);

#define AP_MODEL_MAX_IN 8
#define AP_MODEL_MAX_OUT 5
#define AP_MODEL_MAX_ATTR 6

struct ap_model_op {
	const char *scope; /* of the cell; the operator's name appends "/<type>-op<n>" */
	const char *type;
	uint32_t nin, nout, nattr;
	ap_id in[AP_MODEL_MAX_IN]; /* AP_NONE for an optional operand that is missing */
	struct {
		const char *name; /* appended to the prefix */
		struct ap_shape shape;
	} out[AP_MODEL_MAX_OUT];
	struct ap_attr attr[AP_MODEL_MAX_ATTR]; /* lists are borrowed */
};

#define AP_MODEL_INT(key, v) {.name = (key), .type = AP_ATTR_INT, .i = (v)}
#define AP_MODEL_FLAG(key, v) {.name = (key), .type = AP_ATTR_BOOL, .i = (v)}
#define AP_MODEL_REAL(key, v) {.name = (key), .type = AP_ATTR_FLOAT, .f = (v)}
#define AP_MODEL_TEXT(key, v) {.name = (key), .type = AP_ATTR_STRING, .s = (v)}
#define AP_MODEL_INTS(key, v, count) {.name = (key), .type = AP_ATTR_INTS, .list = (v), .n = (count)}

/* Adds an operator; returns the id of its first result; other results follow. */
ap_id ap_model_op(struct ap_model *m, const struct ap_model_op *op);

/* Operator `node`, by the count of operators added before it, runs behind the one that makes the tensor. */
void ap_model_run_behind(struct ap_model *m, uint32_t node, ap_id tensor);

/* Adds an operator with a single result, given here. */
ap_id ap_model_op_one(struct ap_model *m, struct ap_model_op op, const char *name, struct ap_shape shape);

/* "SCOPE/CELL" in the arena. */
const char *ap_model_scope(struct ap_model *m, const char *scope, const char *cell);

/* "PREFIX.NAME" in the arena. */
const char *ap_model_name(struct ap_model *m, const char *prefix, const char *name);

/* Writes autopar-graph/1, a line per tensor or operator. outputs: the last result added. */
void ap_model_write(const struct ap_model *m, ap_write_fn *write, void *user);

/* A shape of given extents: AP_MODEL_SHAPE(AP_FLOAT16, 32, 784). */
#define AP_MODEL_SHAPE(type, ...) \
	ap_model_shape_of(type, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
		(int64_t[]){__VA_ARGS__})
struct ap_shape ap_model_shape_of(enum ap_dtype dtype, size_t rank, const int64_t *dim);
struct ap_shape ap_model_scalar(enum ap_dtype dtype);

#endif
