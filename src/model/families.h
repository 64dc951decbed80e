/* SPDX-License-Identifier: Apache-2.0 */
/* Families of networks, each made from dimensions. */
#ifndef AP_MODEL_FAMILIES_H
#define AP_MODEL_FAMILIES_H

#include "model/activation.h"
#include "model/loss.h"
#include "model/model.h"

/* Dimensions; a family reads those in ap_model_family.takes. */
struct ap_model_params {
	const char *name;
	int64_t batch; /* samples per step on all devices */
	int64_t layers, hidden;
	int64_t heads, kv_heads; /* of the queries; of keys and values */
	int64_t head_size; /* 0: hidden / heads */
	int64_t inner; /* units of the feed-forward part; 0: 4 hidden */
	enum ap_model_activation activation;
	int64_t sequence, vocabulary, classes;
	int64_t masked; /* words of a sample that BERT's head predicts, at given positions; 0: all */
	int64_t experts, active; /* experts per layer; per token */
	double capacity; /* room of an expert in tokens / its fair share */
	bool flash; /* FlashAttentionScore replaces small operators */
	enum ap_dtype dtype; /* of parameters and activations; the loss is float32 */
	double dropout; /* 0: no Dropout operators */
	enum ap_model_loss loss;
	bool fused; /* kernels as in Megatron or compiled by torch, see below */
};

/* The dimensions that a family reads, a bit each; all read name and batch. */
enum {
	AP_MODEL_LAYERS = 1 << 0,
	AP_MODEL_HIDDEN = 1 << 1,
	AP_MODEL_HEADS = 1 << 2,
	AP_MODEL_KV_HEADS = 1 << 3,
	AP_MODEL_INNER = 1 << 4,
	AP_MODEL_SEQUENCE = 1 << 5,
	AP_MODEL_VOCABULARY = 1 << 6,
	AP_MODEL_CLASSES = 1 << 7,
	AP_MODEL_EXPERTS = 1 << 8,
	AP_MODEL_ACTIVE = 1 << 9,
	AP_MODEL_CAPACITY = 1 << 10,
	AP_MODEL_ATTENTION = 1 << 11,
	AP_MODEL_DTYPE = 1 << 12,
	AP_MODEL_DROPOUT = 1 << 13,
	AP_MODEL_HEAD_SIZE = 1 << 14,
	AP_MODEL_ACTIVATION = 1 << 15,
	AP_MODEL_KERNELS = 1 << 16,
	AP_MODEL_LOSS = 1 << 17
};

typedef struct ap_model *ap_model_make_fn(struct ap_arena *arena, const struct ap_model_params *params);

/* Why there is no network of so many layers, "expected ..."; NULL if there is one. */
typedef const char *ap_model_depth_fn(int64_t layers);

struct ap_model_family {
	const char *name, *help; /* what it makes, in a line */
	ap_model_make_fn *make;
	uint32_t takes; /* AP_MODEL_... */
	struct ap_model_params standard; /* values without options; the name is the family's */
	ap_model_depth_fn *depth; /* of a family with certain numbers of layers; NULL: any number */
};

/* Family i; NULL past the end. */
const struct ap_model_family *ap_model_family_at(size_t i);

/* NULL if unknown. */
const struct ap_model_family *ap_model_family_find(const char *name);

/* Why these dimensions make no network, or NULL; *option: the bit of the dimension to blame, 0 if there is no
 * one. The maker of a family asserts that nothing is refused. */
const char *ap_model_refuses(const struct ap_model_family *f, const struct ap_model_params *p,
	uint32_t *option);

/*
 * The network of MindSpore's multiple_mix sample: Flatten, three Dense layers 784-512-512-1 with
 * ReLU between them, nn.MAELoss; SGD; both ReLU cells are recomputed.
 *
 * The labels of the sample's data set have shape [batch], the logits [batch, 1], so nn.MAELoss
 * broadcasts their difference to [batch, batch]. The graph keeps what the sample computes.
 */
ap_model_make_fn ap_model_multiple_mix;

/*
 * Networks for images of 224x224 with MindSpore's expanded cross entropy.
 *
 * ResNet of 18, 34, 50, 101 or 152 layers, stride in the 3x3 convolutions; momentum. Batch norms keep their
 * parameters and averages in float32 whatever the dtype. Parameters of 50: 23,508,032 + 2049 classes.
 */
ap_model_make_fn ap_model_resnet;
ap_model_depth_fn ap_model_resnet_depth;

/*
 * VGG of 11, 13, 16 or 19 layers, with biases, without batch norm; momentum. Stage i has n_i convolutions of
 * w_i = 64, 128, 256, 512, 512 channels. Parameters: sum over all convolutions of 9 in out + out, then
 * 25088 * 4096 + 4096 + 4096^2 + 4096 + 4097 classes; of 16: 134,260,544 + 4097 classes.
 */
ap_model_make_fn ap_model_vgg;
ap_model_depth_fn ap_model_vgg_depth;

/*
 * ConvNeXt of 18 or 36 blocks, n = 3, 3, 9 or 27, 3 in stages of h, 2 h, 4 h and 8 h channels: windows
 * of 7x7 of each channel, layer norm over the channels, products to 4 times the channels and back, layer
 * scale; adam_weight_decay. Stochastic depth is left out. Parameters, with i from 0 to 3:
 * 168 h^2 + 95 h + sum of n_i (8 4^i h^2 + 58 2^i h) + (8 h + 1) classes.
 */
ap_model_make_fn ap_model_convnext;
ap_model_depth_fn ap_model_convnext_depth;

/*
 * Wide&Deep over 39 fields: tables of V rows with one column (wide) and with h (deep), dense layers
 * 39 h - 1024 - 512 - 256 - 128 - 1. Parameters: V (h + 1) + 39 h * 1024 + 690,178.
 */
ap_model_make_fn ap_model_wide_deep;

/*
 * Fused transformers are made to be timed: one operator stands for what one kernel does, so that no time goes
 * into passes over memory that nobody makes. Biases, the dropout of hidden states, scale and mask of the
 * scores, and casts around RmsNorm are part of their neighbours. A turn by the positions is one product, and
 * so is a gate. The loss is the logarithm of a sum and looks nothing up. Tokens
 * are moved to places of their experts and back (MoeDispatch, MoeCombine), not dealt by a product.
 *
 * Formulas for transformers assume biases, heads of h / n units and, unless it is an option, a feed-forward
 * part of 4 h.
 *
 * GPT-3: learned positions, L pre-norm blocks of h hidden units, head tied to the word embedding.
 * Parameters: 12 L h^2 + 13 L h + (V + s) h + 2 h.
 */
ap_model_make_fn ap_model_gpt;

/*
 * Llama: rotary positions, L blocks with RmsNorm, n heads of queries in g groups that share a head
 * of keys and values, SwiGLU of f units, head of its own. Parameters:
 * L (2 h^2 + 2 h^2 g / n + 3 h f + 2 h) + 2 V h + h; an activation without a gate has 2 h f.
 */
ap_model_make_fn ap_model_llama;

/*
 * Mixtral: Llama with e experts in place of the feed-forward part and a router. Each sample is a
 * group that shares the experts' room. Parameters:
 * L (2 h^2 + 2 h^2 g / n + 3 e h f + e h + 2 h) + 2 V h + h.
 */
ap_model_make_fn ap_model_mixtral;

#endif
