/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of classifications: cross entropy of logits [n,c] in any type and class numbers [n]. */
#ifndef AP_MODEL_LOSS_H
#define AP_MODEL_LOSS_H

#include "model/model.h"

/* How it is computed, always in float32; but for AP_LOSS_KERNEL the logits are cast to it first. */
enum ap_model_loss {
	/* One operator per step of the formula, as in MindSpore's tutorials of distributed training with
	 * automatic parallelism; of fused kernels (families.h) the logarithm of a sum, nothing looked up. */
	AP_LOSS_EXPANDED,
	AP_LOSS_FUSED, /* one operator, which sees all classes */
	/* One kernel that reads and keeps logits in their own type, whose gradient has it, too: those of
	 * FlashAttention and Liger, a compiled one. Of a mean; losses of rows are as fused. */
	AP_LOSS_KERNEL,
	/* As Megatron's vocab_parallel_cross_entropy: logits may be cut by classes. Ranks sum up three
	 * numbers of a row: its maximum, the sum of exponentials, the logit of its class. */
	AP_LOSS_VOCABULARY_PARALLEL,
	AP_LOSSES
};

/* Name i: "expanded", "fused", "kernel", "vocabulary-parallel"; NULL past the end. */
const char *ap_model_loss_name(size_t i);

/* Each row's loss, [n] in float32. */
ap_id ap_model_row_losses(struct ap_model *m, const char *scope, enum ap_model_loss how, ap_id logits,
	ap_id labels);

/* Their mean: the scalar "loss". */
ap_id ap_model_mean_loss(struct ap_model *m, const char *scope, enum ap_model_loss how, ap_id logits,
	ap_id labels);

#endif
