/* SPDX-License-Identifier: Apache-2.0 */
/* T5: an encoder, and a decoder whose blocks also read what the encoder gives. Positions are a bias of the
 * scores, learned for buckets of distances and added in every block of a stack. */
#ifndef AP_MODEL_T5_H
#define AP_MODEL_T5_H

#include "model/activation.h"
#include "model/loss.h"
#include "model/model.h"

struct ap_t5 {
	const char *name;
	int64_t batch, sequence; /* tokens of the encoder and of the decoder, each */
	int64_t layers, decoder_layers, hidden, heads, head_size, inner, vocabulary;
	int64_t buckets; /* of distances */
	enum ap_model_activation activation;
	bool tied; /* the head's weight is the embedding's */
	enum ap_model_loss loss;
	bool flash;
	enum ap_dtype dtype;
};

/* Parameters: V h, and V h of a head of its own; h and buckets A for each stack; for each block of n
 * attentions of A heads of d units n (4 A d h + h), and 2 h f + h, or 3 h f + h with a gate. Named as
 * checkpoints of Hugging Face spell them. */
struct ap_model *ap_model_t5(struct ap_arena *arena, const struct ap_t5 *t);

#endif
