/* SPDX-License-Identifier: Apache-2.0 */
/* Vision transformers: an encoder of the patches of an image. */
#ifndef AP_MODEL_VIT_H
#define AP_MODEL_VIT_H

#include "model/block.h"
#include "model/families.h"
#include "model/model.h"

/* Cells and parameters. */
struct ap_vit_names {
	struct ap_model_encoder_names block;
	const char *projection; /* of patches; prefix */
	const char *token, *positions; /* whole */
	const char *blocks_cell, *blocks;
	const char *norm; /* behind the blocks; prefix */
	const char *pooler; /* prefix */
	const char *head; /* prefix */
};

struct ap_vit {
	const char *name;
	const struct ap_vit_names *names;
	int64_t batch, layers, hidden, heads, inner;
	int64_t image, patch, channels; /* pixels of an edge, and of a patch's */
	int64_t classes; /* 0: no head; the loss is the mean of what the pooler gives */
	enum ap_model_activation activation; /* without a gate */
	bool no_qkv_bias;
	bool torch; /* norms have weight and bias */
	enum ap_model_loss loss;
	bool flash, fused;
	double dropout;
	enum ap_dtype dtype;
};

/* Parameters: those of blocks, 12 L h^2 + 13 L h if inner is 4 h; C p^2 h + h of patches, h of the token,
 * ((image / p)^2 + 1) h of positions, 2 h of the norm; (h + 1) classes, or h^2 + h of the pooler. */
struct ap_model *ap_model_vit_of(struct ap_arena *arena, const struct ap_vit *v);

/*
 * ViT with patches of 16x16 of images of 224x224 and a class token. Parameters:
 * 12 L h^2 + 13 L h + 768 h + h + h + 197 h + 2 h + (h + 1) classes.
 */
ap_model_make_fn ap_model_vit;

#endif
