/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators and cells that models are built of. Operands: the scope, then tensors, last the name of
 * the result, whose shape is derived.
 */
#ifndef AP_TOOLS_MODEL_OPS_H
#define AP_TOOLS_MODEL_OPS_H

#include "tools/model.h"

ap_id model_unary(struct model *m, const char *scope, const char *type, ap_id x, const char *name);

/* Broadcasts; a comparison gives bool. */
ap_id model_binary(struct model *m, const char *scope, const char *type, ap_id x, ap_id y,
	const char *name);
ap_id model_less(struct model *m, const char *scope, ap_id x, ap_id y, const char *name);

ap_id model_cast(struct model *m, const char *scope, ap_id x, enum ap_dtype to, const char *name);

/* Dimension 0 of the given shape carries the batch and is written as -1. */
ap_id model_reshape(struct model *m, const char *scope, ap_id x, struct ap_shape shape,
	const char *name);

ap_id model_transpose(struct model *m, const char *scope, ap_id x, const int64_t perm[],
	const char *name);
ap_id model_gather(struct model *m, const char *scope, ap_id table, ap_id indices,
	const char *name);
ap_id model_softmax(struct model *m, const char *scope, ap_id x, const char *name);
ap_id model_dropout(struct model *m, const char *scope, ap_id x, double keep, const char *name);

/* Ones and zeros of this type along a new last dimension of length depth. */
ap_id model_one_hot(struct model *m, const char *scope, ap_id indices, int64_t depth,
	enum ap_dtype dtype, const char *name);

/* x[..., from : to, ...] in dimension axis. */
ap_id model_slice(struct model *m, const char *scope, ap_id x, int axis, int64_t from, int64_t to,
	const char *name);

/* x[:, 0]: dimension 1 is gone. */
ap_id model_first(struct model *m, const char *scope, ap_id x, const char *name);

/* n copies along dimension axis: Tile. */
ap_id model_repeat(struct model *m, const char *scope, ap_id x, int axis, int64_t n,
	const char *name);

ap_id model_concat(struct model *m, const char *scope, ap_id x, ap_id y, int axis,
	const char *name);

/* x w or x w^T on the last two dimensions: MatMul for matrices, BatchMatMul above, where w may lack
 * outer dimensions. */
ap_id model_matmul(struct model *m, const char *scope, ap_id x, ap_id w, bool transpose_w,
	const char *name);

/* x^T w */
ap_id model_matmul_tn(struct model *m, const char *scope, ap_id x, ap_id w, const char *name);

/* Over the last n dimensions; over one. */
ap_id model_reduce(struct model *m, const char *scope, const char *type, ap_id x, int n,
	bool keep_dims, const char *name);
ap_id model_reduce_axis(struct model *m, const char *scope, const char *type, ap_id x, int axis,
	bool keep_dims, const char *name);

/*
 * Cells with parameters of their own, whose names begin with param. nn.Dense: MatMul and BiasAdd,
 * weight [out,in], bias [out]; linear: the product alone. Norms: gamma and beta; gamma alone, in
 * float32 whatever x is.
 */
ap_id model_dense(struct model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name);
ap_id model_linear(struct model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name);
ap_id model_layer_norm(struct model *m, const char *scope, const char *param, ap_id x,
	const char *name);
ap_id model_rms_norm(struct model *m, const char *scope, const char *param, ap_id x,
	const char *name);

/*
 * Cross entropy by its formula, operator by operator, as MindSpore's tutorials of distributed
 * training write it for automatic parallelism: logits [n,c], labels [n]. The loss of each row, in
 * float32; the mean of it is the loss.
 */
ap_id model_cross_entropy(struct model *m, const char *scope, ap_id logits, ap_id labels);

#endif
