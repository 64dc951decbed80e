/* SPDX-License-Identifier: Apache-2.0 */
#include "model/loss.h"

#include <assert.h>

#include "base/vec.h"
#include "model/cells.h"

const char *ap_model_loss_name(size_t i)
{
	static const char *const names[] = {"expanded", "fused", "kernel", "vocabulary-parallel"};

	static_assert(AP_COUNT(names) == AP_LOSSES, "a loss without a name");
	return i < AP_LOSSES ? names[i] : NULL;
}

static ap_id one_hot(struct ap_model *m, const char *scope, ap_id logits, ap_id labels)
{
	struct ap_shape s = ap_model_shape(m, logits);

	return ap_model_one_hot(m, scope, labels, s.dim[s.rank - 1], AP_FLOAT32, "one_hot");
}

static ap_id expanded(struct ap_model *m, const char *scope, ap_id logits, ap_id labels)
{
	ap_id max = ap_model_reduce(m, scope, "ReduceMax", logits, 1, true, "logits.max");
	ap_id y = ap_model_binary(m, scope, "Sub", logits, max, "logits.shifted");
	ap_id exp = ap_model_unary(m, scope, "Exp", y, "exp"), sum, softmax, hot;

	sum = ap_model_reduce(m, scope, "ReduceSum", exp, 1, !ap_model_is_fused(m), "exp.sum");
	if (ap_model_is_fused(m)) {
		y = ap_model_unary(m, scope, "Log", sum, "sum.log");
		labels = ap_model_cast(m, scope, labels, AP_FLOAT32, "chosen");
		return ap_model_binary(m, scope, "Sub", y, labels, "losses");
	}
	softmax = ap_model_binary(m, scope, "Div", exp, sum, "softmax");
	hot = one_hot(m, scope, logits, labels);
	y = ap_model_unary(m, scope, "Log", softmax, "softmax.log");
	y = ap_model_binary(m, scope, "Mul", y, hot, "chosen");
	y = ap_model_reduce(m, scope, "ReduceSum", y, 1, false, "likelihood");
	return ap_model_binary(m, scope, "Mul", ap_model_number(m, "minus_one", AP_FLOAT32), y, "losses");
}

/* The operator also gives the gradient by the logits. */
static ap_id by_one_hot(struct ap_model *m, const char *scope, ap_id logits, ap_id labels)
{
	struct ap_model_op op = {.scope = scope, .type = "SoftmaxCrossEntropyWithLogits", .nin = 2,
		.in = {logits, one_hot(m, scope, logits, labels)}, .nout = 2,
		.out = {{.name = "losses", .shape = ap_model_shape(m, labels)},
			{.name = "logits.gradient", .shape = ap_model_shape(m, logits)}}};

	op.out[0].shape.dtype = AP_FLOAT32;
	return ap_model_op(m, &op);
}

/* log(sum of exp(x - max)) - (x of the class - max) */
static ap_id by_sums(struct ap_model *m, const char *scope, ap_id logits, ap_id labels)
{
	ap_id max = ap_model_reduce(m, scope, "ReduceMax", logits, 1, false, "logits.max"), log;
	struct ap_shape row = ap_model_shape(m, max);
	struct ap_model_op op = {.scope = scope, .type = "CrossEntropySums", .nin = 3,
		.in = {logits, labels, max}, .nout = 2,
		.out = {{.name = "exp.sum", .shape = row}, {.name = "chosen", .shape = row}}};
	ap_id sums = ap_model_op(m, &op);

	log = ap_model_unary(m, scope, "Log", sums, "sum.log");
	return ap_model_binary(m, scope, "Sub", log, sums + 1, "losses");
}

static ap_id wide(struct ap_model *m, const char *scope, ap_id logits)
{
	return ap_model_shape(m, logits).dtype == AP_FLOAT32 ? logits
		: ap_model_cast(m, scope, logits, AP_FLOAT32, "logits.float32");
}

ap_id ap_model_row_losses(struct ap_model *m, const char *scope, enum ap_model_loss how, ap_id logits,
	ap_id labels)
{
	static ap_id (*const ways[])(struct ap_model *m, const char *scope, ap_id logits, ap_id labels) = {
		[AP_LOSS_EXPANDED] = expanded, [AP_LOSS_FUSED] = by_one_hot,
		[AP_LOSS_KERNEL] = by_one_hot,
		[AP_LOSS_VOCABULARY_PARALLEL] = by_sums};

	return ways[how](m, scope, wide(m, scope, logits), labels);
}

ap_id ap_model_mean_loss(struct ap_model *m, const char *scope, enum ap_model_loss how, ap_id logits,
	ap_id labels)
{
	struct ap_model_op op = {.scope = scope, .type = "SparseSoftmaxCrossEntropyWithLogits", .nin = 2};
	enum ap_dtype dtype;

	if (how == AP_LOSS_FUSED || how == AP_LOSS_KERNEL) {
		op.in[0] = how == AP_LOSS_FUSED ? wide(m, scope, logits) : logits;
		op.in[1] = labels;
		dtype = ap_model_shape(m, op.in[0]).dtype;
		if (dtype == AP_FLOAT32)
			return ap_model_op_one(m, op, "loss", ap_model_scalar(AP_FLOAT32));
		logits = ap_model_op_one(m, op, "loss.narrow", ap_model_scalar(dtype));
		return ap_model_cast(m, scope, logits, AP_FLOAT32, "loss");
	}
	logits = ap_model_row_losses(m, scope, how, logits, labels);
	return ap_model_reduce(m, scope, "ReduceMean", logits, 1, false, "loss");
}
