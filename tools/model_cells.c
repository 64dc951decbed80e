/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: several operators, or one with parameters of its own. */
#include "tools/model_ops.h"

ap_id model_linear(struct model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name)
{
	struct ap_shape s = model_shape(m, x);
	ap_id w = model_param(m, model_name(m, param, "weight"),
		MODEL_SHAPE(s.dtype, out, s.dim[s.rank - 1]));

	return model_matmul(m, scope, x, w, true, name);
}

ap_id model_dense(struct model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name)
{
	bool fused = model_is_fused(m);
	ap_id y = model_linear(m, scope, param, x, out, fused ? name : model_name(m, name, "product")), b;

	if (fused)
		return y;
	b = model_param(m, model_name(m, param, "bias"),
		MODEL_SHAPE(model_shape(m, x).dtype, out));
	return model_binary(m, scope, "BiasAdd", y, b, name);
}

ap_id model_layer_norm(struct model *m, const char *scope, const char *param, ap_id x,
	const char *name)
{
	struct ap_shape s = model_shape(m, x), one = MODEL_SHAPE(s.dtype, s.dim[s.rank - 1]);
	ap_id gamma = model_param(m, model_name(m, param, "gamma"), one);
	ap_id beta = model_param(m, model_name(m, param, "beta"), one);
	struct model_op op = {.scope = scope, .type = "LayerNorm", .nin = 3,
		.in = {x, gamma, beta}, .nattr = 3, .attr = {MODEL_INT("begin_norm_axis", -1),
			MODEL_INT("begin_params_axis", -1), MODEL_REAL("epsilon", 1e-5)}};

	return model_op_one(m, op, name, s);
}

ap_id model_rms_norm(struct model *m, const char *scope, const char *param, ap_id x,
	const char *name)
{
	struct ap_shape s = model_shape(m, x);
	bool fused = model_is_fused(m);
	ap_id gamma = model_param(m, model_name(m, param, "weight"),
		MODEL_SHAPE(fused ? s.dtype : AP_FLOAT32, s.dim[s.rank - 1]));
	ap_id wide = s.dtype == AP_FLOAT32 || fused ? x :
		model_cast(m, scope, x, AP_FLOAT32, model_name(m, name, "in"));
	struct ap_shape full = model_shape(m, wide), rest = full;
	struct model_op op = {.scope = scope, .type = "RmsNorm", .nin = 2, .in = {wide, gamma},
		.nout = 2, .out = {{.shape = full}, {.name = model_name(m, name, "rstd")}},
		.nattr = 1, .attr = {MODEL_REAL("epsilon", 1e-5)}};
	ap_id y;

	rest.dim[rest.rank - 1] = 1;
	op.out[1].shape = rest;
	op.out[0].name = wide == x ? name : model_name(m, name, "float32");
	y = model_op(m, &op);
	return wide == x ? y : model_cast(m, scope, y, s.dtype, name);
}

ap_id model_cross_entropy(struct model *m, const char *scope, ap_id logits, ap_id labels)
{
	struct ap_shape s = model_shape(m, logits);
	ap_id max, exp, sum, softmax, hot, y;

	if (s.dtype != AP_FLOAT32)
		logits = model_cast(m, scope, logits, AP_FLOAT32, "logits.float32");
	max = model_reduce(m, scope, "ReduceMax", logits, 1, true, "logits.max");
	y = model_binary(m, scope, "Sub", logits, max, "logits.shifted");
	exp = model_unary(m, scope, "Exp", y, "exp");
	sum = model_reduce(m, scope, "ReduceSum", exp, 1, !model_is_fused(m), "exp.sum");
	if (model_is_fused(m)) {
		y = model_unary(m, scope, "Log", sum, "sum.log");
		labels = model_cast(m, scope, labels, AP_FLOAT32, "chosen");
		return model_binary(m, scope, "Sub", y, labels, "losses");
	}
	softmax = model_binary(m, scope, "Div", exp, sum, "softmax");
	hot = model_one_hot(m, scope, labels, s.dim[s.rank - 1], AP_FLOAT32, "one_hot");
	y = model_unary(m, scope, "Log", softmax, "softmax.log");
	y = model_binary(m, scope, "Mul", y, hot, "chosen");
	y = model_reduce(m, scope, "ReduceSum", y, 1, false, "likelihood");
	return model_binary(m, scope, "Mul", model_number(m, "minus_one", AP_FLOAT32), y, "losses");
}
