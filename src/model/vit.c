/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families.h"

#include "model/block.h"

#define TOP "Default/network-ViTForImageClassification/"
#define BACKBONE TOP "vit-ViTModel"
#define LOSS TOP "loss-SoftmaxCrossEntropyExpand"

enum { IMAGE = 224, PATCH = 16, GRID = IMAGE / PATCH, PATCHES = GRID * GRID };

/* A convolution with adjacent windows: [B,3,224,224] to [B,196,h]. */
static ap_id patches(const struct ap_model_encoder *e)
{
	static const int64_t size[] = {PATCH, PATCH}, channels_last[] = {0, 2, 1};
	static const char scope[] = BACKBONE "/patch_embed-PatchEmbed";
	struct ap_model *m = e->m;
	ap_id image = ap_model_input(m, "image", AP_MODEL_SHAPE(e->dtype, e->batch, 3, IMAGE, IMAGE));
	ap_id w = ap_model_param(m, "vit.patch_embed.proj.weight",
		AP_MODEL_SHAPE(e->dtype, e->hidden, 3, PATCH, PATCH));
	ap_id b = ap_model_param(m, "vit.patch_embed.proj.bias", AP_MODEL_SHAPE(e->dtype, e->hidden));
	struct ap_model_op conv = {.scope = BACKBONE "/patch_embed-PatchEmbed/proj-Conv2d",
		.type = "Conv2D", .nin = 2, .in = {image, w}, .nattr = 3, .attr = {
			AP_MODEL_INTS("kernel_size", size, 2), AP_MODEL_INTS("stride", size, 2),
			AP_MODEL_TEXT("pad_mode", "valid")}};
	ap_id x = ap_model_op_one(m, conv, "patches.conv",
		AP_MODEL_SHAPE(e->dtype, e->batch, e->hidden, GRID, GRID));
	struct ap_model_op bias = {.scope = conv.scope, .type = "BiasAdd", .nin = 2, .in = {x, b}};

	x = ap_model_op_one(m, bias, "patches.grid", ap_model_shape(m, x));
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(e->dtype, e->batch, e->hidden, PATCHES),
		"patches.row");
	return ap_model_transpose(m, scope, x, channels_last, "patches");
}

/* Adds the class token before the patches, and a learned position to each. */
static ap_id embed(const struct ap_model_encoder *e)
{
	struct ap_model *m = e->m;
	ap_id x = patches(e);
	ap_id token = ap_model_param(m, "vit.cls_tokens", AP_MODEL_SHAPE(e->dtype, 1, 1, e->hidden));
	ap_id places = ap_model_param(m, "vit.pos_embed",
		AP_MODEL_SHAPE(e->dtype, 1, e->sequence, e->hidden));

	token = ap_model_repeat(m, BACKBONE, token, 0, e->batch, "class");
	x = ap_model_concat(m, BACKBONE, token, x, 1, "tokens");
	x = ap_model_binary(m, BACKBONE, "Add", x, places, "embedding");
	return ap_model_encoder_dropout(e, BACKBONE, x, "embedding.dropped");
}

struct ap_model *ap_model_vit(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_model *m = ap_model_create(arena, p->name, "adam_weight_decay");
	struct ap_model_encoder e = ap_model_encoder_of(m, p, PATCHES + 1);
	ap_id x = embed(&e), labels = ap_model_input(m, "label", AP_MODEL_SHAPE(AP_INT32, p->batch));

	ap_model_attention_constants(m, &e.attention, e.fused, e.sequence, e.dtype);
	for (int64_t i = 0; i < p->layers; i++)
		x = ap_model_encoder_block(&e, BACKBONE "/blocks-CellList", "vit.blocks", i, x);
	x = ap_model_layer_norm(m, BACKBONE "/fc_norm-LayerNorm", "vit.fc_norm", x, "norm");
	x = ap_model_first(m, BACKBONE, x, "norm.class");
	x = ap_model_dense(m, TOP "head-Dense", "head", x, p->classes, "logits");
	x = ap_model_cross_entropy(m, LOSS, x, labels);
	ap_model_reduce(m, LOSS, "ReduceMean", x, 1, false, "loss");
	return m;
}
