/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/models.h"

#include "tools/model_block.h"

#define TOP "Default/network-ViTForImageClassification/"
#define BACKBONE TOP "vit-ViTModel"
#define LOSS TOP "loss-SoftmaxCrossEntropyExpand"

enum { IMAGE = 224, PATCH = 16, GRID = IMAGE / PATCH, PATCHES = GRID * GRID };

/* A convolution with adjacent windows: [B,3,224,224] to [B,196,h]. */
static ap_id patches(const struct model_encoder *e)
{
	static const int64_t size[] = {PATCH, PATCH}, channels_last[] = {0, 2, 1};
	static const char scope[] = BACKBONE "/patch_embed-PatchEmbed";
	struct model *m = e->m;
	ap_id image = model_input(m, "image", MODEL_SHAPE(e->dtype, e->batch, 3, IMAGE, IMAGE));
	ap_id w = model_param(m, "vit.patch_embed.proj.weight",
		MODEL_SHAPE(e->dtype, e->hidden, 3, PATCH, PATCH));
	ap_id b = model_param(m, "vit.patch_embed.proj.bias", MODEL_SHAPE(e->dtype, e->hidden));
	struct model_op conv = {.scope = BACKBONE "/patch_embed-PatchEmbed/proj-Conv2d",
		.type = "Conv2D", .nin = 2, .in = {image, w}, .nattr = 3, .attr = {
			MODEL_INTS("kernel_size", size, 2), MODEL_INTS("stride", size, 2),
			MODEL_TEXT("pad_mode", "valid")}};
	ap_id x = model_op_one(m, conv, "patches.conv",
		MODEL_SHAPE(e->dtype, e->batch, e->hidden, GRID, GRID));
	struct model_op bias = {.scope = conv.scope, .type = "BiasAdd", .nin = 2, .in = {x, b}};

	x = model_op_one(m, bias, "patches.grid", model_shape(m, x));
	x = model_reshape(m, scope, x, MODEL_SHAPE(e->dtype, e->batch, e->hidden, PATCHES),
		"patches.row");
	return model_transpose(m, scope, x, channels_last, "patches");
}

/* Adds the class token before the patches, and a learned position to each. */
static ap_id embed(const struct model_encoder *e)
{
	struct model *m = e->m;
	ap_id x = patches(e);
	ap_id token = model_param(m, "vit.cls_tokens", MODEL_SHAPE(e->dtype, 1, 1, e->hidden));
	ap_id places = model_param(m, "vit.pos_embed",
		MODEL_SHAPE(e->dtype, 1, e->sequence, e->hidden));

	token = model_repeat(m, BACKBONE, token, 0, e->batch, "class");
	x = model_concat(m, BACKBONE, token, x, 1, "tokens");
	x = model_binary(m, BACKBONE, "Add", x, places, "embedding");
	return model_encoder_dropout(e, BACKBONE, x, "embedding.dropped");
}

struct model *model_vit(struct ap_arena *arena, const struct model_params *p)
{
	struct model *m = model_create(arena, p->name, "adam_weight_decay");
	struct model_encoder e = model_encoder_of(m, p, PATCHES + 1);
	ap_id x = embed(&e), labels = model_input(m, "label", MODEL_SHAPE(AP_INT32, p->batch));

	model_attention_constants(m, &e.attention, e.fused, e.sequence, e.dtype);
	for (int64_t i = 0; i < p->layers; i++)
		x = model_encoder_block(&e, BACKBONE "/blocks-CellList", "vit.blocks", i, x);
	x = model_layer_norm(m, BACKBONE "/fc_norm-LayerNorm", "vit.fc_norm", x, "norm");
	x = model_first(m, BACKBONE, x, "norm.class");
	x = model_dense(m, TOP "head-Dense", "head", x, p->classes, "logits");
	x = model_cross_entropy(m, LOSS, x, labels);
	model_reduce(m, LOSS, "ReduceMean", x, 1, false, "loss");
	return m;
}
