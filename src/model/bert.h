/* SPDX-License-Identifier: Apache-2.0 */
/* BERT: an encoder that reads words in both directions, with the heads of its pre-training or none. */
#ifndef AP_MODEL_BERT_H
#define AP_MODEL_BERT_H

#include "model/block.h"
#include "model/families.h"
#include "model/model.h"

/* Cells and parameters. */
struct ap_bert_names {
	struct ap_model_encoder_names block;
	const char *top; /* scope */
	const char *embeddings, *words, *types, *positions; /* prefix, and tables behind it */
	const char *embedding_norm; /* prefix */
	const char *blocks_cell, *blocks;
	const char *pooler;
	const char *word_dense, *word_norm, *word_bias; /* of the head that predicts words */
	const char *sentence_dense;
};

struct ap_bert {
	const char *name;
	const struct ap_bert_names *names;
	int64_t batch, sequence, layers, hidden, heads, inner, vocabulary;
	int64_t positions, types; /* rows of their tables */
	enum ap_model_activation activation; /* without a gate */
	bool pooled; /* the first word's result passes the pooler */
	int64_t masked; /* words of a sample that the head predicts, at positions that are inputs; 0: all */
	bool words, sentences; /* heads; without any, the loss is the mean of what the pooler gives */
	bool torch; /* norms have weight and bias */
	enum ap_model_loss loss;
	bool flash, fused;
	double dropout;
	enum ap_dtype dtype;
};

/* Parameters: V h + P h + T h + 2 h, 12 L h^2 + 13 L h of blocks of 4 h, h^2 + h of the pooler; of heads
 * h^2 + 3 h + V and 2 h + 2. */
struct ap_model *ap_model_bert_of(struct ap_arena *arena, const struct ap_bert *b);

/* BERT with both heads of its pre-training; the word head is tied to the embedding. Parameters of
 * the encoder with its pooler: 12 L h^2 + 13 L h + (V + s + 2) h + 2 h + h^2 + h; of the heads: h^2
 * + 3 h + V and 2 h + 2. */
ap_model_make_fn ap_model_bert;

#endif
