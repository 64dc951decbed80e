/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families.h"

#include "model/cells.h"

#define NET "Default/network-WithLossCell/_backbone-Network/"
#define LOSS "Default/network-WithLossCell/_loss_fn-MAELoss"

enum { PIXELS = 28, HIDDEN = 512 };

static ap_id flatten(struct ap_model *m, ap_id x)
{
	struct ap_shape s = ap_model_shape(m, x);
	struct ap_model_op op = {.scope = NET "flatten-Flatten", .type = "Flatten", .nin = 1,
		.in = {x}};

	return ap_model_op_one(m, op, "flat",
		AP_MODEL_SHAPE(s.dtype, s.dim[0], s.dim[1] * s.dim[2] * s.dim[3]));
}

/* nn.MAELoss: the mean of weight * |logits - labels|, its weight the constant one. */
static void mean_absolute_error(struct ap_model *m, ap_id logits, ap_id labels)
{
	ap_id one = ap_model_const(m, "one", ap_model_scalar(AP_FLOAT32));
	ap_id real = ap_model_cast(m, LOSS, labels, AP_FLOAT32, "label.float32");
	ap_id error = ap_model_binary(m, LOSS, "Sub", logits, real, "error");
	ap_id absolute = ap_model_unary(m, LOSS, "Abs", error, "error.absolute");
	ap_id weighted = ap_model_binary(m, LOSS, "Mul", one, absolute, "error.weighted");

	ap_model_reduce(m, LOSS, "ReduceMean", weighted, 2, false, "loss");
}

struct ap_model *ap_model_multiple_mix(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_model *m = ap_model_create(arena, p->name, "sgd");
	ap_id x = ap_model_input(m, "x", AP_MODEL_SHAPE(AP_FLOAT32, p->batch, 1, PIXELS, PIXELS));
	ap_id labels = ap_model_input(m, "label", AP_MODEL_SHAPE(AP_INT32, p->batch));
	ap_id h = flatten(m, x);

	h = ap_model_dense(m, NET "layer1-Dense", "layer1", h, HIDDEN, "h1");
	h = ap_model_unary(m, NET "relu1-ReLU", "ReLU", h, "h1.relu");
	h = ap_model_dense(m, NET "layer2-Dense", "layer2", h, HIDDEN, "h2");
	h = ap_model_unary(m, NET "relu2-ReLU", "ReLU", h, "h2.relu");
	h = ap_model_dense(m, NET "layer3-Dense", "layer3", h, 1, "logits");
	mean_absolute_error(m, h, labels);
	ap_model_recompute(m, "_backbone.relu1");
	ap_model_recompute(m, "_backbone.relu2");
	return m;
}
