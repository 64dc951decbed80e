/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/model_block.h"

#include <math.h>

static const int64_t swapped[] = {0, 2, 1, 3};

ap_id model_swap_heads(struct model *m, const char *scope, ap_id x, const char *name)
{
	return model_transpose(m, scope, x, swapped, name);
}

void model_attention_constants(struct model *m, struct model_attention *a, bool fused,
	int64_t sequence, enum ap_dtype dtype)
{
	struct ap_shape compressed = MODEL_SHAPE(AP_UINT8, 2048, 2048);
	struct ap_shape full = MODEL_SHAPE(dtype, 1, 1, sequence, sequence);

	if (model_is_fused(m) && !fused) {
		a->mask = a->scale = AP_NONE;
		return;
	}
	a->mask = a->causal ? model_const(m, "attention_mask", fused ? compressed : full) : AP_NONE;
	a->scale = fused ? AP_NONE : model_number(m, "attention_scale", dtype);
}

ap_id model_attend(struct model *m, const char *scope, const struct model_attention *a, ap_id q,
	ap_id k, ap_id v)
{
	ap_id y = model_matmul(m, scope, q, k, true, "scores");

	if (a->scale != AP_NONE)
		y = model_binary(m, scope, "Mul", y, a->scale, "scores.scaled");
	if (a->mask != AP_NONE)
		y = model_binary(m, scope, "Add", y, a->mask, "scores.masked");
	y = model_softmax(m, model_scope(m, scope, "softmax-Softmax"), y, "probs");
	if (a->dropout != 0)
		y = model_dropout(m, model_scope(m, scope, "prob_dropout-Dropout"), y,
			1 - a->dropout, "probs.dropped");
	return model_matmul(m, scope, y, v, false, "context.heads");
}

/* Results: maxima and sums of the softmax, its unused matrix, the attention. */
ap_id model_attend_fused(struct model *m, const char *scope, const struct model_attention *a,
	ap_id q, ap_id k, ap_id v)
{
	struct ap_shape s = model_shape(m, q);
	bool split = s.rank == 4;
	struct ap_shape sums = MODEL_SHAPE(AP_FLOAT32, s.dim[0], a->heads, s.dim[split ? 2 : 1], 8);
	struct model_op op = {
		.scope = model_scope(m, scope, "flash_attention-FlashAttention"),
		.type = "FlashAttentionScore",
		.nin = 7,
		.in = {q, k, v, AP_NONE, AP_NONE, AP_NONE, a->mask},
		.nout = 4,
		.out = {{"softmax.max", sums}, {"softmax.sum", sums},
			{"softmax.unused", MODEL_SHAPE(s.dtype, 1)}, {"context", s}},
		.nattr = 4,
		.attr = {
			MODEL_INT("head_num", a->heads),
			MODEL_REAL("scale_value", 1 / sqrt((double)a->size)),
			MODEL_TEXT("input_layout", split ? "BNSD" : "BSH"),
			MODEL_INT("sparse_mode", a->causal ? 2 : 0),
		},
	};

	return model_op(m, &op) + 3;
}
