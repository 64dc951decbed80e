/* SPDX-License-Identifier: Apache-2.0 */
/* The models are what was published: parameters, operators and names. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "harness.h"
#include "model/families.h"

enum { KINDS = 12 };

static struct ap_arena *arena;

static void setup(void)
{
	arena = ap_arena_create(0, NULL, NULL);
}

static void teardown(void)
{
	ap_arena_destroy(arena);
}

TEST_FIXTURE(setup, teardown)

static struct ap_model_params standard(const char *kind)
{
	struct ap_model_params p = ap_model_family_find(kind)->standard;

	p.name = kind;
	return p;
}

/* With two blocks, where there are blocks. */
static struct ap_model_params shallow(const char *kind)
{
	struct ap_model_params p = standard(kind);

	if (ap_model_family_find(kind)->takes & AP_MODEL_HEADS)
		p.layers = 2;
	return p;
}

static struct ap_model *make(const char *kind, const struct ap_model_params *p)
{
	return ap_model_family_find(kind)->make(arena, p);
}

static struct ap_model_params gpt(int64_t layers, int64_t hidden, int64_t heads)
{
	struct ap_model_params p = standard("gpt3");

	p.layers = layers;
	p.hidden = hidden;
	p.heads = heads;
	return p;
}

static struct ap_model *mix(void)
{
	struct ap_model_params p = standard("multiple_mix");

	return make("multiple_mix", &p);
}

static const char *text_of(const struct ap_model *m)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_model_write(m, ap_str_take, &s);
	return s.s;
}

static int occurrences(const char *text, const char *what)
{
	int n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

/* Loads a model as a graph of this batch (0: its own) in so many micro-batches, without a warning. */
static const struct ap_graph *load_in_parts(const struct ap_model *m, int64_t batch,
	int64_t micro_batches)
{
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create(0, NULL, NULL),
		.diag = ap_diag_create(arena, true), .jobs = 1};
	struct ap_graph_params params = {.batch = batch, .micro_batches = micro_batches};
	const struct ap_graph *g;
	const char *text = text_of(m);
	struct ap_str said;
	struct ap_json *doc;

	ap_str_init(&said, arena);
	ck_assert_int_eq(ap_json_parse(&ctx, "model.json", text, strlen(text), 0, &doc), AP_OK);
	if (ap_graph_load(&ctx, doc, "", &params, &g) != AP_OK) {
		ap_diag_render(ctx.diag, AP_WARNING, 20, &said);
		ck_abort_msg("%s", said.s);
	}
	ap_diag_render(ctx.diag, AP_NOTE, 20, &said);
	ck_assert_str_eq(said.s, "");
	ap_arena_destroy(ctx.scratch);
	return g;
}

static const struct ap_graph *load(const struct ap_model *m, int64_t batch)
{
	return load_in_parts(m, batch, 1);
}

static const struct ap_tensor *tensor(const struct ap_graph *g, const char *name)
{
	for (uint32_t t = 0; t < g->ntensor; t++)
		if (!strcmp(g->tensor[t].name, name))
			return &g->tensor[t];
	ck_abort_msg("no tensor %s", name);
}

/* 784*512 + 512 + 512*512 + 512 + 512*1 + 1; Flatten, 3 MatMul, 3 BiasAdd, 2 ReLU, 5 of the loss. */
START_TEST(mix_is_the_sample)
{
	const struct ap_model *m = mix();
	const char *text = text_of(m);

	ck_assert_int_eq(ap_model_parameters(m), 665089);
	ck_assert_uint_eq(ap_model_operators(m), 14);
	ck_assert_int_eq(occurrences(text, "\"recompute\": true"), 2);
	ck_assert_ptr_nonnull(strstr(text, "{\"name\": \"_backbone.relu1\", \"recompute\": true}"));
	ck_assert_int_eq(occurrences(text, "\"shape\": [32, 32]"), 3);
	ck_assert_ptr_nonnull(strstr(text,
		"\"Default/network-WithLossCell/_backbone-Network/layer1-Dense/MatMul-op0\""));
	ck_assert_ptr_nonnull(strstr(text,
		"\"Default/network-WithLossCell/_loss_fn-MAELoss/ReduceMean-op0\""));
}
END_TEST

/* The numbers that were published, or the authors' own programs give; models/README.md has the
 * sources. GPT-3 is worked out by hand: 12 L h^2 + 13 L h + (V + s) h + 2 h; so are
 * those with heads, widths and activations of their own. */
static const struct size {
	const char *kind;
	struct ap_model_params p; /* where it is not 0: instead of the standard */
	int64_t parameters;
} sizes[] = {
	{"resnet50", {.classes = 1000}, 25557032},
	{"resnet50", {.classes = 10}, 23528522},
	{"resnet", {.layers = 18}, 11689512},
	{"resnet", {.layers = 34}, 21797672},
	{"resnet", {.layers = 101}, 44549160},
	{"resnet", {.layers = 152}, 60192808},
	{"vgg16", {0}, 138357544},
	{"vgg", {.layers = 11}, 132863336},
	{"vgg", {.layers = 13}, 133047848},
	{"vgg", {.layers = 16}, 138357544},
	{"vgg", {.layers = 19}, 143667240},
	{"convnext", {0}, 28589128},
	{"convnext", {.layers = 36}, 50223688},
	{"convnext", {.layers = 36, .hidden = 128}, 88591464},
	{"convnext", {.layers = 36, .hidden = 192}, 197767336},
	{"convnext", {.layers = 18, .hidden = 40, .classes = 10}, 4928690},
	{"wide_deep", {0}, 20085058},
	{"wide_deep", {.vocabulary = 40000000}, 3243885058},
	{"gpt3", {0}, 1315819520},
	{"gpt3", {.vocabulary = 50257}, 1315723264},
	{"gpt3", {.layers = 40, .hidden = 5120, .heads = 40}, 12853626880},
	{"gpt3", {.layers = 96, .hidden = 12288, .heads = 96}, 174604836864},
	{"gpt3", {.layers = 96, .hidden = 12288, .heads = 96, .vocabulary = 50257}, 174604259328},
	{"gpt3", {.layers = 1, .hidden = 128, .heads = 2}, 6899584},
	{"gpt3", {.layers = 2, .hidden = 256, .heads = 4, .head_size = 96, .inner = 640, .vocabulary = 1000},
		2229248},
	{"bert", {0}, 336226108},
	{"bert", {.layers = 12, .hidden = 768, .heads = 12}, 110106428},
	{"vit", {0}, 304326632},
	{"vit", {.layers = 12, .hidden = 768, .heads = 12}, 86567656},
	{"llama", {0}, 6738415616},
	{"llama", {.layers = 40, .hidden = 5120, .heads = 40, .kv_heads = 40, .inner = 13824},
		13015864320},
	{"llama", {.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .inner = 28672},
		68976648192},
	{"llama", {.hidden = 6144, .heads = 48, .kv_heads = 8, .inner = 24576,
		.activation = AP_MODEL_SQUARED_RELU, .vocabulary = 256000}, INT64_C(15628376064)},
	{"llama", {.layers = 48, .hidden = 2048, .heads = 32, .head_size = 128, .kv_heads = 4,
		.inner = 6144, .activation = AP_MODEL_GEGLU, .vocabulary = 151936}, INT64_C(3340437504)},
	{"mixtral", {0}, 46702792704},
};

static int64_t choose(int64_t wanted, int64_t otherwise)
{
	return wanted ? wanted : otherwise;
}

static struct ap_model_params params_of(const struct size *s)
{
	struct ap_model_params p = standard(s->kind);

	p.layers = choose(s->p.layers, p.layers);
	p.hidden = choose(s->p.hidden, p.hidden);
	p.heads = choose(s->p.heads, p.heads);
	p.kv_heads = choose(s->p.kv_heads, p.kv_heads);
	p.head_size = s->p.head_size;
	p.inner = choose(s->p.inner, p.inner);
	p.activation = s->p.activation ? s->p.activation : p.activation;
	p.vocabulary = choose(s->p.vocabulary, p.vocabulary);
	p.classes = choose(s->p.classes, p.classes);
	return p;
}

START_LOOP_TEST(published_sizes, AP_COUNT(sizes))
{
	const struct size *s = &sizes[_i];
	struct ap_model_params p = params_of(s);

	for (int flash = 0; flash < 2; flash++) {
		p.flash = flash;
		ck_assert_int_eq(ap_model_parameters(make(s->kind, &p)), s->parameters);
	}
}
END_TEST

START_TEST(gpt_operators)
{
	struct ap_model_params p = gpt(3, 256, 4);
	uint32_t small = ap_model_operators(make("gpt3", &p)), dropped;

	ck_assert_uint_eq(small, 3 + 3 * 34 + 3 + 13);
	p.dropout = 0.1;
	dropped = ap_model_operators(make("gpt3", &p));
	ck_assert_uint_eq(dropped, small + 1 + 3 * 3);
	p.flash = true;
	ck_assert_uint_eq(ap_model_operators(make("gpt3", &p)), 3 + 1 + 3 * (34 - 8 + 2) + 3 + 13);
}
END_TEST

START_TEST(mix_loads)
{
	const struct ap_graph *g = load(mix(), 0);

	ck_assert_uint_eq(g->nnode, 14);
	ck_assert_int_eq(g->parameters, 665089);
	ck_assert_int_eq(g->batch, 32);
	ck_assert_str_eq(g->optimizer, "sgd");
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	ck_assert_uint_eq(tensor(g, "error")->batch, 3);
	ck_assert_uint_eq(tensor(g, "layer1.weight")->batch, 0);
	ck_assert_str_eq(g->node[1].cell, "_backbone.layer1");
}
END_TEST

/* _i: bit 0 fused attention, bit 1 dropout. The batch is 8 instead of 64. */
START_LOOP_TEST(gpt_loads, 4)
{
	struct ap_model_params p = gpt(2, 256, 4);
	const struct ap_graph *g;
	const struct ap_tensor *rows;

	p.flash = _i & 1;
	p.dropout = _i & 2 ? 0.1 : 0;
	g = load(make("gpt3", &p), 8);
	ck_assert_int_eq(g->batch, 8);
	ck_assert_int_eq(g->parameters, 12 * 2 * 256 * 256 + 13 * 2 * 256 + 52352 * 256 + 512);
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	rows = tensor(g, "blocks.1.context.rows");
	ck_assert_int_eq(rows->shape.dim[0], 8 * 2048);
	ck_assert_uint_eq(rows->batch, 1);
	ck_assert_uint_eq(tensor(g, "labels.rows")->batch, 1);
	ck_assert_uint_eq(tensor(g, "attention_mask")->batch, 0);
}
END_TEST

/* Every model, with two blocks where there are blocks, for other batches and in micro-batches, but
 * for those that mix samples. */
static const struct small {
	const char *kind;
	uint32_t operators;
	int64_t batch, other;
	bool mixes, flash, even;
} smalls[] = {
	{"multiple_mix", 14, 32, 48, true, false},
	{"resnet50", 187, 256, 320, true, false},
	{"resnet", 187, 256, 320, true, false},
	{"vgg16", 1 + 13 * 3 + 5 + 3 * 2 + 2 + 11, 256, 320, false, false},
	{"vgg", 1 + 13 * 3 + 5 + 3 * 2 + 2 + 11, 256, 320, false, false},
	{"convnext", 5 + 3 * 5 + 18 * 14 + 2 + 2 + 11, 4096, 1000, false, false},
	{"wide_deep", 45, 16000, 4000, false, false},
	{"gpt3", 3 + 2 * 34 + 16, 64, 24, false, false},
	{"bert", 11 + 2 * 34 + 20 + 20, 256, 80, false, false},
	{"vit", 8 + 2 * 33 + 15, 4096, 1000, false, false},
	{"vit", 8 + 2 * 26 + 15, 4096, 1000, false, true},
	{"llama", 1 + 2 * 48 + 18, 512, 40, false, false},
	{"llama", 1 + 2 * 44 + 18, 512, 40, false, true},
	{"mixtral", 1 + 2 * 87 + 18, 512, 40, false, false},
	{"mixtral", 1 + 2 * 77 + 18, 512, 40, false, true},
};

START_LOOP_TEST(every_model_loads, AP_COUNT(smalls))
{
	const struct small *s = &smalls[_i];
	struct ap_model_params p = shallow(s->kind);
	const struct ap_graph *g;

	p.flash = s->flash;
	g = load(make(s->kind, &p), 0);
	ck_assert_uint_eq(g->nnode, s->operators);
	ck_assert_int_eq(g->batch, s->batch);
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	for (uint32_t t = 0; t < g->ntensor; t++)
		ck_assert(!g->tensor[t].trainable || g->tensor[t].needs_grad);
	g = load_in_parts(make(s->kind, &p), s->other, s->mixes ? 1 : 4);
	ck_assert_int_eq(g->batch, s->other);
}
END_TEST

/* A block of an encoder lacks 6 BiasAdd, and, where it is no fused attention, scale and mask, but has dropout there;
 * one of Llama 4 Casts around norms, all but one of the 7 operators of both turns, and SiLU. Losses have 8 instead of
 * 11 operators. BERT lacks 4 for its mask, and biases of 3 more products. */
static const struct small fused[] = {
	{.kind = "gpt3", .operators = 3 + 2 * (34 - 8 + 1) + 16 - 3},
	{.kind = "gpt3", .operators = 3 + 2 * (26 - 6) + 16 - 3, .flash = true},
	{.kind = "bert", .operators = 11 + 2 * (34 - 8 + 1) + 20 + 20 - 4 - 3 - 2 * 3},
	{.kind = "vit", .operators = 8 + 2 * (33 - 7 + 1) + 15 - 1 - 3},
	{.kind = "llama", .operators = 1 + 2 * (48 - 4 - 12 - 2 - 1) + 18 - 2 - 3},
	{.kind = "llama", .operators = 1 + 2 * (44 - 4 - 12 - 1) + 18 - 2 - 3, .flash = true},
	{.kind = "mixtral", .operators = 1 + 2 * 40 + 18 - 2 - 3, .flash = true},
	{.kind = "mixtral", .operators = 1 + 2 * 40 + 18 - 2 - 3, .flash = true, .even = true},
};

START_LOOP_TEST(fused_models_load, AP_COUNT(fused))
{
	struct ap_model_params p = shallow(fused[_i].kind);
	const struct ap_graph *g;

	p.flash = fused[_i].flash;
	p.fused = true;
	p.dropout = 0.1;
	p.capacity = fused[_i].even ? 1 : p.capacity;
	g = load(make(fused[_i].kind, &p), 0);
	ck_assert_uint_eq(g->nnode, fused[_i].operators);
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
}
END_TEST

static int64_t elements(const struct ap_tensor *t)
{
	int64_t n = 1;

	for (uint8_t i = 0; i < t->shape.rank; i++)
		n *= t->shape.dim[i];
	return n;
}

/* Multiply-adds of convolutions and products of one image: those of Simonyan and Zisserman, He et al., and Liu et al.,
 * as torchvision and the authors count them, in thousand million. */
static const struct work {
	const char *kind;
	struct ap_model_params p;
	double published;
} works[] = {
	{"resnet", {.layers = 18}, 1.814},
	{"resnet", {.layers = 50}, 4.089},
	{"resnet", {.layers = 152}, 11.514},
	{"vgg", {.layers = 11}, 7.609},
	{"vgg16", {0}, 15.470},
	{"vgg", {.layers = 19}, 19.632},
	{"convnext", {0}, 4.456},
	{"convnext", {.layers = 36}, 8.684},
	{"convnext", {.layers = 36, .hidden = 128}, 15.355},
	{"convnext", {.layers = 36, .hidden = 192}, 34.361},
};

static double multiply_adds(const struct ap_graph *g)
{
	double sum = 0;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		const struct ap_tensor *w = n->bound.nin > 1 ? &g->tensor[n->in[1]] : NULL, *y = &g->tensor[n->out[0]];

		if (!strcmp(n->type, "Conv2D"))
			sum += (double)(elements(y) * w->shape.dim[1] * w->shape.dim[2] * w->shape.dim[3]);
		if (!strcmp(n->type, "MatMul"))
			sum += (double)(elements(y) * w->shape.dim[1]);
	}
	return sum / (double)g->batch;
}

START_LOOP_TEST(published_work, AP_COUNT(works))
{
	const struct work *w = &works[_i];
	struct ap_model_params p = params_of(&(struct size){w->kind, w->p, 0});

	p.batch = 4;
	ck_assert_msg(fabs(multiply_adds(load(make(w->kind, &p), 0)) / 1e9 - w->published) < 0.0011,
		"%s: %.4f", w->kind, multiply_adds(load(make(w->kind, &p), 0)) / 1e9);
}
END_TEST

/* Parameters and activations have the type, labels are int32, and the loss is float32; so is all that batch norms keep. */
START_LOOP_TEST(cnn_types, 9)
{
	static const char *const kinds[] = {"resnet", "vgg", "convnext"};
	static const enum ap_dtype types[] = {AP_FLOAT16, AP_BFLOAT16, AP_FLOAT32};
	struct ap_model_params p = standard(kinds[_i % 3]);
	const struct ap_graph *g;

	p.dtype = types[_i / 3];
	g = load(make(kinds[_i % 3], &p), 0);
	for (uint32_t t = 0; t < g->ntensor; t++) {
		const struct ap_tensor *x = &g->tensor[t];
		const char *name = x->name;
		bool norm = _i % 3 == 0 && x->shape.rank == 1 && !strstr(name, "end_point");

		if (x->kind == AP_TENSOR_PARAM)
			ck_assert_int_eq(x->shape.dtype, norm ? AP_FLOAT32 : p.dtype);
	}
	ck_assert_int_eq(tensor(g, "image")->shape.dtype, p.dtype);
	ck_assert_int_eq(tensor(g, "label")->shape.dtype, AP_INT32);
	ck_assert_int_eq(tensor(g, "logits")->shape.dtype, p.dtype);
	ck_assert_int_eq(tensor(g, "loss")->shape.dtype, AP_FLOAT32);
}
END_TEST

/* Stages of 56, 28, 14 and 7 points a side; each channel's windows are cut along the points. */
START_TEST(convnext_is_published)
{
	struct ap_model_params p = standard("convnext");
	const char *text = text_of(make("convnext", &p));
	const struct ap_graph *g = load(make("convnext", &p), 0);
	const struct ap_tensor *t = tensor(g, "stages.1.0.dwconv.weight");

	ck_assert_int_eq(occurrences(text, "\"Conv2D\""), 4 + 18);
	ck_assert_int_eq(occurrences(text, "\"group\": 768"), 3);
	ck_assert_int_eq(occurrences(text, "\"LayerNorm\""), 4 + 18 + 1);
	ck_assert_int_eq(t->shape.dim[0], 192);
	ck_assert_int_eq(t->shape.dim[1], 1);
	ck_assert_int_eq(t->shape.dim[2], 7);
	ck_assert_int_eq(tensor(g, "stages.0.2.sum")->shape.dim[2], 56);
	ck_assert_int_eq(tensor(g, "stages.2.8.sum")->shape.dim[3], 14);
	ck_assert_int_eq(tensor(g, "stages.2.8.points")->shape.dim[0], 4096 * 14 * 14);
	ck_assert_int_eq(tensor(g, "stages.2.8.points")->shape.dim[1], 384);
	ck_assert_int_eq(tensor(g, "stages.3.2.gamma")->shape.dim[0], 768);
	ck_assert_int_eq(tensor(g, "downsample_layers.3.1.weight")->shape.dim[3], 2);
	ck_assert_int_eq(tensor(g, "norm")->shape.dim[1], 768);
	ck_assert_str_eq(g->optimizer, "adam_weight_decay");
}
END_TEST

/* What BERT-large is without the heads of its pre-training. */
START_TEST(bert_without_heads)
{
	struct ap_model_params p = standard("bert");
	const struct ap_graph *g = load(make("bert", &p), 0);
	int64_t n = 0;

	for (uint32_t t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM &&
			!strncmp(g->tensor[t].name, "bert.", 5))
			n += elements(&g->tensor[t]);
	ck_assert_int_eq(n, 335141888);
}
END_TEST

/* The loss of the sample, operator by operator, and MindSpore's names. */
START_TEST(resnet_is_the_sample)
{
	static const char *const loss[] = {"ReduceMax-op0", "Sub-op0", "Exp-op0", "ReduceSum-op0",
		"Div-op0", "OneHot-op0", "Log-op0", "Mul-op0", "ReduceSum-op1", "Mul-op1",
		"ReduceMean-op0"};
	struct ap_model_params p = standard("resnet50");
	const char *text = text_of(make("resnet50", &p)), *at;
	const struct ap_graph *g = load(make("resnet50", &p), 0);

	ck_assert_str_eq(g->optimizer, "momentum");
	ck_assert_int_eq(occurrences(text, "\"Conv2D\""), 53);
	ck_assert_int_eq(occurrences(text, "\"trainable\": false"), 2 * 53);
	ck_assert_int_eq(g->parameters, 25557032 + 2 * 26560);
	ck_assert_ptr_nonnull(strstr(text, "\"Default/network-WithLossCell/_backbone-ResNet/"
		"layer1-SequentialCell/0-ResidualBlock/conv1-Conv2d/Conv2D-op0\""));
	at = strstr(text, "_loss_fn-SoftmaxCrossEntropyExpand/");
	for (size_t i = 0; i < AP_COUNT(loss); i++) {
		ck_assert_ptr_nonnull(at);
		at = strchr(at, '/') + 1;
		ck_assert_int_eq(strncmp(at, loss[i], strlen(loss[i])), 0);
		at = strstr(at, "_loss_fn-SoftmaxCrossEntropyExpand/");
	}
	ck_assert_ptr_null(at);
	ck_assert_int_eq(tensor(g, "layer4.0.conv2")->shape.dim[2], 7);
	ck_assert_int_eq(tensor(g, "maxpool")->shape.dim[3], 56);
	ck_assert_int_eq(tensor(g, "features")->shape.dim[1], 2048);
}
END_TEST

/* 4,096 tokens go to two of eight experts, 1,024 to each if they are fair, and a quarter more. */
START_TEST(mixtral_deals_tokens_out)
{
	struct ap_model_params p = standard("mixtral");
	const struct ap_graph *g;
	const struct ap_tensor *t;

	p.layers = 1;
	g = load(make("mixtral", &p), 8);
	t = tensor(g, "layers.0.dispatch");
	ck_assert_int_eq(t->shape.rank, 4);
	ck_assert_int_eq(t->shape.dim[2], 8);
	ck_assert_int_eq(t->shape.dim[3], 1280);
	ck_assert(!t->needs_grad);
	t = tensor(g, "layers.0.combine");
	ck_assert(t->needs_grad);
	t = tensor(g, "layers.0.gate");
	ck_assert_int_eq(t->shape.dim[0], 8);
	ck_assert_int_eq(t->shape.dim[1], 8);
	ck_assert_int_eq(t->shape.dim[2], 1280);
	ck_assert_int_eq(t->shape.dim[3], 14336);
	ck_assert_uint_eq(t->batch, 1);
	ck_assert_uint_eq(tensor(g, "layers.0.collected")->batch, 1);
	t = tensor(g, "model.layers.0.feed_forward.ffn.w2.weight");
	ck_assert_int_eq(t->shape.dim[0], 8);
	ck_assert_int_eq(t->shape.dim[1], 14336);
}
END_TEST

/* Eight queries share a head of keys and of values: copied for small operators, not for the fused. */
START_TEST(llama_groups_queries)
{
	struct ap_model_params p = standard("llama");
	const struct ap_graph *g;

	p.layers = 1;
	p.hidden = 8192;
	p.heads = 64;
	p.kv_heads = 8;
	g = load(make("llama", &p), 4);
	ck_assert_int_eq(tensor(g, "layers.0.key")->shape.dim[1], 1024);
	ck_assert_int_eq(tensor(g, "layers.0.key.repeated")->shape.dim[1], 64);
	ck_assert_int_eq(tensor(g, "layers.0.scores")->shape.dim[1], 64);
	p.flash = true;
	g = load(make("llama", &p), 4);
	ck_assert_int_eq(tensor(g, "layers.0.key.rotated")->shape.dim[1], 8);
	ck_assert_int_eq(tensor(g, "layers.0.context")->shape.dim[1], 64);
}
END_TEST

/* MindSpore cannot merge checkpoints of parameters whose names hold '-'. */
START_LOOP_TEST(parameters_have_no_dash, KINDS)
{
	struct ap_model_params p = shallow(ap_model_family_at((size_t)_i)->name);
	const struct ap_graph *g = load(make(p.name, &p), 0);

	for (uint32_t t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM)
			ck_assert_ptr_null(strchr(g->tensor[t].name, '-'));
}
END_TEST

START_TEST(kinds_are_found)
{
	size_t n = 0;

	for (; ap_model_family_at(n); n++)
		ck_assert_ptr_eq(ap_model_family_find(ap_model_family_at(n)->name), ap_model_family_at(n));
	ck_assert_uint_eq(n, KINDS);
	ck_assert_ptr_null(ap_model_family_find("gpt4"));
}
END_TEST

START_TEST(same_model_same_bytes)
{
	struct ap_model_params p = gpt(2, 256, 4);

	ck_assert_str_eq(text_of(make("gpt3", &p)), text_of(make("gpt3", &p)));
}
END_TEST
