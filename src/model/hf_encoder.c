/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hf_encoder.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "model/bert.h"
#include "model/t5.h"
#include "model/vit.h"

/* Elements of the largest tensor, about: of a layer, of the scores, of a table. */
static double largest(double rows, double width, double scores, double table)
{
	return fmax(fmax(rows * width, scores), fmax(width * width, table));
}

/* Reports if heads do not divide hidden units. */
static void check_heads(struct ap_hf_keys *r, int64_t heads, int64_t hidden)
{
	if (!ap_diag_count(r->ctx->diag, AP_ERROR) && hidden % heads)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, ap_hf_head_keys), "key-range",
			"%" PRId64 " heads do not divide hidden_size of %" PRId64, heads, hidden);
}

/* The number of the class that the configuration names, of these, or of the first where it names none; NULL
 * ends them. */
static size_t class_of(struct ap_hf_keys *r, const char *const *classes)
{
	const struct ap_jv *list = ap_hf_member(r, "architectures"), *v;

	v = list && ap_jv_type(list) == AP_JARRAY ? ap_jv_first(list) : NULL;
	if (!v || ap_jv_type(v) != AP_JSTRING)
		return 0;
	for (size_t i = 0; classes[i]; i++)
		if (!strcmp(classes[i], ap_jv_str(v)))
			return i;
	(void)AP_HF_FAULT(r, v, "model-known", "no graph is built of the class \"%s\"; expected %s, %s%s%s",
		ap_diag_name(r->ctx->diag, ap_jv_str(v)), classes[0], classes[1], classes[2] ? " or " : "",
		classes[2] ? classes[2] : "");
	return 0;
}

/* Keys that say nothing about the graph. */
static void pass_over(struct ap_hf_keys *r, const char *const *keys)
{
	for (; *keys; keys++)
		(void)ap_hf_member(r, *keys);
}

static enum ap_status note_mean(struct ap_hf_keys *r)
{
	return ap_json_report(r->ctx, r->doc, r->root, AP_NOTE, AP_OK, NULL, NULL,
		"the model has no head: its loss is the mean of what the pooler gives");
}

/* ---- BERT ---- */

static struct ap_model *make_bert(struct ap_arena *arena, const void *dimensions)
{
	return ap_model_bert_of(arena, dimensions);
}

static enum ap_status read_bert(struct ap_hf_keys *r, const struct ap_hf_options *o, struct ap_hf_net *out)
{
	static const struct ap_bert_names names = {
		.block = {"BertLayer", .attention = {"attention-BertAttention", "attention.self.query",
				"attention.self.key", "attention.self.value", "attention.output.dense",
				"attention.output.LayerNorm"},
			.feed_forward = "output-BertOutput", .mapping = "intermediate.dense",
			.projection = "output.dense", .norm = "output.LayerNorm"},
		.top = "Default/network-BertForPreTraining", .embeddings = "bert.embeddings",
		.words = "word_embeddings.weight", .types = "token_type_embeddings.weight",
		.positions = "position_embeddings.weight", .embedding_norm = "bert.embeddings.LayerNorm",
		.blocks_cell = "encoder-BertEncoder/layer-CellList", .blocks = "bert.encoder.layer",
		.pooler = "bert.pooler.dense", .word_dense = "cls.predictions.transform.dense",
		.word_norm = "cls.predictions.transform.LayerNorm", .word_bias = "cls.predictions.bias",
		.sentence_dense = "cls.seq_relationship"};
	static const char *const classes[] = {"BertModel", "BertForMaskedLM", "BertForPreTraining", NULL};
	static const char *const idle[] = {"pooler_fc_size", "pooler_num_attention_heads",
		"pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "directionality", NULL};
	struct ap_bert *b = AP_NEW(r->ctx->arena, struct ap_bert);
	const struct ap_jv *positions = ap_hf_member(r, "position_embedding_type");
	size_t class = class_of(r, classes);

	*b = (struct ap_bert){.name = o->name, .names = &names, .batch = o->batch, .loss = o->loss,
		.flash = o->flash, .torch = true, .pooled = class != 1, .words = class > 0,
		.sentences = class == 2};
	b->hidden = ap_hf_count(r, ap_hf_hidden_keys, AP_HF_MOST, 0);
	b->layers = ap_hf_count(r, ap_hf_layer_keys, AP_HF_LAYERS_MOST, 0);
	b->heads = ap_hf_count(r, ap_hf_head_keys, AP_HF_MOST, 0);
	b->inner = ap_hf_count(r, ap_hf_inner_keys, INT64_C(4) * AP_HF_MOST, 0);
	b->vocabulary = ap_hf_count(r, ap_hf_vocabulary_keys, AP_HF_MOST, 0);
	b->positions = ap_hf_count(r, ap_hf_position_keys, AP_HF_MOST, 512);
	b->types = ap_hf_count(r, (ap_hf_keys_of){"type_vocab_size"}, AP_HF_MOST, 2);
	b->activation = ap_hf_activation(r, true);
	check_heads(r, b->heads, b->hidden);
	ap_hf_want(r, "is_decoder", false, "BERT as a decoder");
	ap_hf_want(r, "add_cross_attention", false, "attention to another model");
	ap_hf_want(r, "tie_word_embeddings", true, "a head with a table of its own");
	if (positions && (ap_jv_type(positions) != AP_JSTRING ||
		strcmp(ap_jv_str(positions), "absolute") != 0))
		(void)AP_HF_FAULT(r, positions, "model-known",
			"no graph is built of these positions; expected \"absolute\"");
	pass_over(r, idle);
	AP_TRY(ap_hf_dtype(r, o, &b->dtype));
	AP_TRY(ap_hf_sequence(r, o, 512, true, &b->sequence));
	b->masked = b->words ? o->masked : 0;
	if (b->masked > b->sequence)
		return ap_json_report(r->ctx, r->doc, NULL, AP_ERROR, AP_USAGE, NULL, NULL,
			"--masked-positions %" PRId64 ": a sample has %" PRId64 " tokens", b->masked,
			b->sequence);
	if (b->masked < o->masked)
		return ap_hf_no_masks(r);
	*out = (struct ap_hf_net){make_bert, b, largest((double)b->batch * (double)b->sequence,
		(double)b->hidden + (double)b->inner + (double)b->vocabulary,
		(double)b->batch * (double)b->heads * (double)b->sequence * (double)b->sequence,
		(double)b->positions * (double)b->hidden), NULL};
	return class == 0 ? note_mean(r) : AP_OK;
}

/* ---- ViT ---- */

static struct ap_model *make_vit(struct ap_arena *arena, const void *dimensions)
{
	return ap_model_vit_of(arena, dimensions);
}

/* As many as there are names of them, or as a number says; 2 if nothing does. */
static int64_t labels(struct ap_hf_keys *r)
{
	const struct ap_jv *names = ap_hf_member(r, "id2label");

	if (names && ap_jv_type(names) != AP_JOBJECT)
		(void)AP_HF_FAULT(r, names, "key-type", "expected an object with the name of each label");
	else if (names && ap_jv_count(names))
		return (int64_t)ap_jv_count(names);
	return ap_hf_count(r, (ap_hf_keys_of){"num_labels"}, AP_HF_MOST, 2);
}

static enum ap_status read_vit(struct ap_hf_keys *r, const struct ap_hf_options *o, struct ap_hf_net *out)
{
	static const struct ap_vit_names names = {
		.block = {"ViTLayer", .attention = {"attention-ViTAttention", "attention.attention.query",
				"attention.attention.key", "attention.attention.value",
				"attention.output.dense", "layernorm_before"},
			.feed_forward = "output-ViTOutput", .mapping = "intermediate.dense",
			.projection = "output.dense", .norm = "layernorm_after"},
		.projection = "vit.embeddings.patch_embeddings.projection",
			.token = "vit.embeddings.cls_token",
		.positions = "vit.embeddings.position_embeddings",
		.blocks_cell = "encoder-ViTEncoder/layer-CellList", .blocks = "vit.encoder.layer",
		.norm = "vit.layernorm", .pooler = "vit.pooler.dense", .head = "classifier"};
	static const char *const classes[] = {"ViTForImageClassification", "ViTModel", NULL};
	static const char *const idle[] = {"encoder_stride", "pooler_output_size", "pooler_act", NULL};
	struct ap_vit *v = AP_NEW(r->ctx->arena, struct ap_vit);
	size_t class = class_of(r, classes);
	double tokens;

	*v = (struct ap_vit){.name = o->name, .names = &names, .batch = o->batch, .loss = o->loss,
		.flash = o->flash, .torch = true};
	v->hidden = ap_hf_count(r, ap_hf_hidden_keys, AP_HF_MOST, 0);
	v->layers = ap_hf_count(r, ap_hf_layer_keys, AP_HF_LAYERS_MOST, 0);
	v->heads = ap_hf_count(r, ap_hf_head_keys, AP_HF_MOST, 0);
	v->inner = ap_hf_count(r, ap_hf_inner_keys, INT64_C(4) * AP_HF_MOST, 0);
	v->image = ap_hf_count(r, (ap_hf_keys_of){"image_size"}, 1 << 20, 224);
	v->patch = ap_hf_count(r, (ap_hf_keys_of){"patch_size"}, 1 << 20, 16);
	v->channels = ap_hf_count(r, (ap_hf_keys_of){"num_channels"}, 1 << 20, 3);
	v->classes = class == 0 ? labels(r) : 0;
	v->no_qkv_bias = !ap_hf_flag(r, "qkv_bias", true);
	v->activation = ap_hf_activation(r, true);
	check_heads(r, v->heads, v->hidden);
	if (v->patch > v->image)
		(void)AP_HF_FAULT(r, ap_hf_member(r, "image_size"), "key-range", "patches of %" PRId64
			" pixels are larger than an image of %" PRId64, v->patch, v->image);
	pass_over(r, idle);
	AP_TRY(ap_hf_dtype(r, o, &v->dtype));
	AP_TRY(ap_diag_status(r->ctx->diag));
	tokens = (double)(v->image / v->patch) * (double)(v->image / v->patch) + 1;
	if (o->sequence)
		return ap_json_report(r->ctx, r->doc, NULL, AP_ERROR, AP_USAGE, NULL, NULL,
			"--sequence is not for images: a sample has %.0f tokens, a patch each and the class",
				tokens);
	*out = (struct ap_hf_net){make_vit, v, largest((double)v->batch * tokens,
		(double)v->hidden + (double)v->inner + (double)v->classes,
		(double)v->batch * (double)v->heads * tokens * tokens,
		(double)v->batch * (double)v->channels * (double)v->image * (double)v->image +
		(double)v->hidden * (double)v->channels * (double)v->patch * (double)v->patch), NULL};
	return class == 1 ? note_mean(r) : AP_OK;
}

/* ---- T5 ---- */

static struct ap_model *make_t5(struct ap_arena *arena, const void *dimensions)
{
	return ap_model_t5(arena, dimensions);
}

static enum ap_model_activation projection(struct ap_hf_keys *r)
{
	static const struct { const char *name; enum ap_model_activation is; } rows[] = {
		{"relu", AP_MODEL_RELU}, {"gelu", AP_MODEL_GELU}, {"gelu_new", AP_MODEL_GELU},
		{"gated-gelu", AP_MODEL_GEGLU}, {"gated-silu", AP_MODEL_SWIGLU}};
	const struct ap_jv *v = ap_hf_member(r, "feed_forward_proj");
	const char *name = !v ? "relu" : ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : "";

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (!strcmp(rows[i].name, name))
			return rows[i].is;
	(void)AP_HF_FAULT(r, v, "key-range", "expected \"relu\", \"gelu\", \"gated-gelu\" or \"gated-silu\"");
	return AP_MODEL_RELU;
}

static enum ap_status read_t5(struct ap_hf_keys *r, const struct ap_hf_options *o, struct ap_hf_net *out)
{
	static const char *const classes[] = {"T5ForConditionalGeneration", "T5WithLMHeadModel", NULL};
	static const char *const idle[] = {"relative_attention_max_distance", "dense_act_fn", "is_gated_act",
		"output_past", NULL};
	struct ap_t5 *t = AP_NEW(r->ctx->arena, struct ap_t5);

	(void)class_of(r, classes);
	*t = (struct ap_t5){.name = o->name, .batch = o->batch, .loss = o->loss,
		.flash = o->flash};
	t->hidden = ap_hf_count(r, ap_hf_hidden_keys, AP_HF_MOST, 0);
	t->layers = ap_hf_count(r, ap_hf_layer_keys, AP_HF_LAYERS_MOST, 0);
	t->decoder_layers = ap_hf_count(r, (ap_hf_keys_of){"num_decoder_layers"}, AP_HF_LAYERS_MOST,
		t->layers);
	t->heads = ap_hf_count(r, ap_hf_head_keys, AP_HF_MOST, 0);
	t->head_size = ap_hf_count(r, ap_hf_head_size_keys, AP_HF_MOST, 64);
	t->inner = ap_hf_count(r, ap_hf_inner_keys, INT64_C(4) * AP_HF_MOST, 0);
	t->vocabulary = ap_hf_count(r, ap_hf_vocabulary_keys, AP_HF_MOST, 0);
	t->buckets = ap_hf_count(r, (ap_hf_keys_of){"relative_attention_num_buckets"}, AP_HF_MOST, 32);
	t->activation = projection(r);
	t->tied = ap_hf_flag(r, "tie_word_embeddings", true);
	ap_hf_want(r, "is_encoder_decoder", true, "a part of the model alone");
	pass_over(r, idle);
	AP_TRY(ap_hf_dtype(r, o, &t->dtype));
	AP_TRY(ap_hf_sequence(r, o, 512, false, &t->sequence));
	*out = (struct ap_hf_net){make_t5, t, largest((double)t->batch * (double)t->sequence,
		(double)t->hidden + (double)t->inner + (double)t->vocabulary +
		(double)t->heads * (double)t->head_size, ((double)t->batch + 1) * (double)t->heads *
		(double)t->sequence * (double)t->sequence, (double)t->buckets * (double)t->heads), NULL};
	return AP_OK;
}

/* ---- types ---- */

static const struct {
	const char *type, *class; /* model_type, start of the class */
	enum ap_status (*read)(struct ap_hf_keys *r, const struct ap_hf_options *o, struct ap_hf_net *out);
	const char *mark; /* a key that old files have, which name neither; NULL: none */
} types[] = {
	{"bert", "Bert", read_bert, "type_vocab_size"},
	{"vit", "ViT", read_vit, NULL},
	{"t5", "T5", read_t5, "relative_attention_num_buckets"},
};

const char *ap_hf_encoder_type_at(size_t i)
{
	return i < AP_COUNT(types) ? types[i].type : NULL;
}

enum ap_status ap_hf_encoder_read(struct ap_hf_keys *r, const struct ap_hf_options *o, bool *known,
	struct ap_hf_net *out)
{
	const struct ap_jv *type = ap_hf_member(r, "model_type"), *list = ap_hf_member(r, "architectures");
	const struct ap_jv *class = list && ap_jv_type(list) == AP_JARRAY ? ap_jv_first(list) : NULL;

	*known = true;
	for (size_t i = 0; i < AP_COUNT(types); i++) {
		bool is;

		if (type)
			is = ap_jv_type(type) == AP_JSTRING && !strcmp(ap_jv_str(type), types[i].type);
		else if (class && ap_jv_type(class) == AP_JSTRING)
			is = !strncmp(ap_jv_str(class), types[i].class, strlen(types[i].class));
		else
			is = types[i].mark && ap_jv_get(r->root, types[i].mark);
		if (!is)
			continue;
		r->type = types[i].type;
		return types[i].read(r, o, out);
	}
	*known = false;
	return AP_OK;
}
