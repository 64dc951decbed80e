/* SPDX-License-Identifier: Apache-2.0 */
/* The models of make_model. */
#ifndef AP_TOOLS_MODELS_H
#define AP_TOOLS_MODELS_H

#include "tools/model.h"

enum model_activation { /* activation of the feed-forward part; gated ones: w2 (f(w1 x) * w3 x) */
	MODEL_GELU,
	MODEL_RELU,
	MODEL_SQUARED_RELU,
	MODEL_SWIGLU,
	MODEL_GEGLU,
	MODEL_ACTIVATIONS
};

/* Dimensions; a model reads those in model_kind.takes. */
struct model_params {
	const char *name;
	int64_t batch; /* samples per step on all devices */
	int64_t layers, hidden;
	int64_t heads, kv_heads; /* of the queries; of keys and values */
	int64_t head_size; /* 0: hidden / heads */
	int64_t inner; /* units of the feed-forward part; 0: 4 hidden */
	enum model_activation activation;
	int64_t sequence, vocabulary, classes;
	int64_t experts, active; /* experts per layer; per token */
	double capacity; /* room of an expert in tokens / its fair share */
	bool flash; /* FlashAttentionScore replaces small operators */
	enum ap_dtype dtype; /* of parameters and activations; the loss is float32 */
	double dropout; /* 0: no Dropout operators */
	bool fused; /* kernels as in Megatron or compiled by torch, see below */
};

/* A bit per option of make_model, except --name and --batch, which all models take. */
enum {
	MODEL_LAYERS = 1 << 0,
	MODEL_HIDDEN = 1 << 1,
	MODEL_HEADS = 1 << 2,
	MODEL_KV_HEADS = 1 << 3,
	MODEL_INNER = 1 << 4,
	MODEL_SEQUENCE = 1 << 5,
	MODEL_VOCABULARY = 1 << 6,
	MODEL_CLASSES = 1 << 7,
	MODEL_EXPERTS = 1 << 8,
	MODEL_ACTIVE = 1 << 9,
	MODEL_CAPACITY = 1 << 10,
	MODEL_ATTENTION = 1 << 11,
	MODEL_DTYPE = 1 << 12,
	MODEL_DROPOUT = 1 << 13,
	MODEL_HEAD_SIZE = 1 << 14,
	MODEL_ACTIVATION = 1 << 15,
	MODEL_FUSED = 1 << 16
};

/* "gelu", "relu", "squared_relu", "swiglu", "geglu"; MODEL_ACTIVATIONS: unknown. */
enum model_activation model_activation_find(const char *name);

/* Does it have a gate? */
bool model_activation_gated(enum model_activation a);

typedef struct model *model_make_fn(struct ap_arena *arena, const struct model_params *params);

struct model_kind {
	const char *name;
	model_make_fn *make;
	uint32_t takes; /* MODEL_... */
	struct model_params standard; /* values without options; the name is the kind's */
};

/* Kind i; NULL past the end. */
const struct model_kind *model_kind_at(size_t i);

/* NULL if unknown. */
const struct model_kind *model_kind_find(const char *name);

/*
 * The network of MindSpore's multiple_mix sample: Flatten, three Dense layers 784-512-512-1 with
 * ReLU between them, nn.MAELoss; SGD; both ReLU cells are recomputed.
 *
 * The labels of the sample's data set have shape [batch], the logits [batch, 1], so nn.MAELoss
 * broadcasts their difference to [batch, batch]. The graph keeps what the sample computes.
 */
model_make_fn model_multiple_mix;

/* ResNet of 18, 34, 50, 101 or 152 layers for images of 224x224, stride in the 3x3 convolutions,
 * MindSpore's expanded cross entropy; momentum. Parameters of 50: 23,508,032 + 2049 classes. */
model_make_fn model_resnet;

/* Is there a ResNet of so many layers? */
bool model_resnet_has(int64_t layers);

/*
 * VGG-16 for images of 224x224, with biases, without batch norm; momentum. Parameters:
 * 134,260,544 + 4097 classes.
 */
model_make_fn model_vgg16;

/*
 * Wide&Deep over 39 fields: tables of V rows with one column (wide) and with h (deep), dense layers
 * 39 h - 1024 - 512 - 256 - 128 - 1. Parameters: V (h + 1) + 39 h * 1024 + 690,178.
 */
model_make_fn model_wide_deep;

/*
 * Fused transformers are made to be timed: one operator stands for what one kernel does, so that no time goes
 * into passes over memory that nobody makes. Biases, the dropout of hidden states, scale and mask of the
 * scores, and casts around RmsNorm are part of their neighbours. A turn by the positions is one product, and
 * so is a gate. The loss is the logarithm of a sum and looks nothing up. Where experts get equal numbers of
 * tokens, tokens are copied to them, not dealt by a product.
 *
 * Formulas for transformers assume biases, heads of h / n units and, unless it is an option, a feed-forward
 * part of 4 h.
 *
 * GPT-3: learned positions, L pre-norm blocks of h hidden units, head tied to the word embedding.
 * Parameters: 12 L h^2 + 13 L h + (V + s) h + 2 h.
 */
model_make_fn model_gpt;

/* BERT with both heads of its pre-training; the word head is tied to the embedding. Parameters of
 * the encoder with its pooler: 12 L h^2 + 13 L h + (V + s + 2) h + 2 h + h^2 + h; of the heads: h^2
 * + 3 h + V and 2 h + 2. */
model_make_fn model_bert;

/*
 * ViT with patches of 16x16 of images of 224x224 and a class token. Parameters:
 * 12 L h^2 + 13 L h + 768 h + h + h + 197 h + 2 h + (h + 1) classes.
 */
model_make_fn model_vit;

/*
 * Llama: rotary positions, L blocks with RmsNorm, n heads of queries in g groups that share a head
 * of keys and values, SwiGLU of f units, head of its own. Parameters:
 * L (2 h^2 + 2 h^2 g / n + 3 h f + 2 h) + 2 V h + h; an activation without a gate has 2 h f.
 */
model_make_fn model_llama;

/*
 * Mixtral: Llama with e experts in place of the feed-forward part and a router. Each sample is a
 * group that shares the experts' room. Parameters:
 * L (2 h^2 + 2 h^2 g / n + 3 e h f + e h + 2 h) + 2 V h + h.
 */
model_make_fn model_mixtral;

#endif
