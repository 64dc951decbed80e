/* SPDX-License-Identifier: Apache-2.0 */
/* Operators and cells of models. Arguments: the scope, tensors, and the name of the result, whose
 * shape is derived. */
#ifndef AP_MODEL_CELLS_H
#define AP_MODEL_CELLS_H

#include "model/model.h"

ap_id ap_model_unary(struct ap_model *m, const char *scope, const char *type, ap_id x, const char *name);

/* Broadcasts; comparisons return bool. */
ap_id ap_model_binary(struct ap_model *m, const char *scope, const char *type, ap_id x, ap_id y,
	const char *name);
ap_id ap_model_less(struct ap_model *m, const char *scope, ap_id x, ap_id y, const char *name);

ap_id ap_model_cast(struct ap_model *m, const char *scope, ap_id x, enum ap_dtype to, const char *name);

/* Dimension 0 of shape carries the batch and is written as -1. */
ap_id ap_model_reshape(struct ap_model *m, const char *scope, ap_id x, struct ap_shape shape,
	const char *name);

ap_id ap_model_transpose(struct ap_model *m, const char *scope, ap_id x, const int64_t perm[],
	const char *name);
ap_id ap_model_gather(struct ap_model *m, const char *scope, ap_id table, ap_id indices,
	const char *name);
ap_id ap_model_softmax(struct ap_model *m, const char *scope, ap_id x, const char *name);
ap_id ap_model_dropout(struct ap_model *m, const char *scope, ap_id x, double keep, const char *name);

/* Ones and zeros of dtype along a new last dimension of length depth. */
ap_id ap_model_one_hot(struct ap_model *m, const char *scope, ap_id indices, int64_t depth,
	enum ap_dtype dtype, const char *name);

/* x[..., from : to, ...] in dimension axis. */
ap_id ap_model_slice(struct ap_model *m, const char *scope, ap_id x, int axis, int64_t from, int64_t to,
	const char *name);

/* x[:, 0], without dimension 1. */
ap_id ap_model_first(struct ap_model *m, const char *scope, ap_id x, const char *name);

/* n copies along dimension axis: Tile. */
ap_id ap_model_repeat(struct ap_model *m, const char *scope, ap_id x, int axis, int64_t n,
	const char *name);

ap_id ap_model_concat(struct ap_model *m, const char *scope, ap_id x, ap_id y, int axis,
	const char *name);

/* x w or x w^T on the last two dimensions: MatMul for matrices, else BatchMatMul, where w may lack
 * outer dimensions. */
ap_id ap_model_matmul(struct ap_model *m, const char *scope, ap_id x, ap_id w, bool transpose_w,
	const char *name);

/* x^T w */
ap_id ap_model_matmul_tn(struct ap_model *m, const char *scope, ap_id x, ap_id w, const char *name);

/* Reduces the last n dimensions, or one. */
ap_id ap_model_reduce(struct ap_model *m, const char *scope, const char *type, ap_id x, int n,
	bool keep_dims, const char *name);
ap_id ap_model_reduce_axis(struct ap_model *m, const char *scope, const char *type, ap_id x, int axis,
	bool keep_dims, const char *name);

/* Cells with parameters, whose names start with param. nn.Dense: MatMul and BiasAdd, weight
 * [out,in], bias [out]; linear: only the product. Norms: gamma and beta; or gamma alone, always
 * float32. */
ap_id ap_model_dense(struct ap_model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name);
ap_id ap_model_linear(struct ap_model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name);
ap_id ap_model_layer_norm(struct ap_model *m, const char *scope, const char *param, ap_id x,
	const char *name);
ap_id ap_model_rms_norm(struct ap_model *m, const char *scope, const char *param, ap_id x,
	const char *name);

#endif
