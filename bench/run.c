/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/again.h"

bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = text; *at; at++) {
		size_t i = 0;

		while (i < n && tolower((unsigned char)at[i]) == tolower((unsigned char)word[i]))
			i++;
		if (i == n && (at == text || !isalnum((unsigned char)at[-1])) &&
			!isalnum((unsigned char)at[n]))
			return true;
	}
	return false;
}

bool begins(const char *text, const char *with)
{
	for (; *with; text++, with++)
		if (tolower((unsigned char)*text) != tolower((unsigned char)*with))
			return false;
	return true;
}

bool holds(const char *text, const char *part)
{
	for (; *text; text++)
		if (begins(text, part))
			return true;
	return false;
}

/* A whole number, otherwise where the field is blank; -1 for anything else. */
static int64_t whole(const char *text, int64_t otherwise)
{
	int64_t v;

	return !*text ? otherwise : ap_parse_int(text, 0, INT64_C(1) << 30, &v) ? v : -1;
}

static const struct fabric fabrics[] = {
	{"Omni-Path", 0.125}, /* of 50 GB/s 5.1 in an all-reduce of 32 A100 on 4 servers, 6.8 in one of 64
	                       * V100 on 16, experiments/bandwidth of bigscience-workshop/bigscience; within
	                       * that fitted by hand to 63 runs of BigScience */
};

static const struct device devices[] = {
	{"V100", 16, "v100-16", 0},
	{"V100", 0, "v100-32", 0},
	{"A100", 40, "a100-40", 0},
	{"A100", 0, "a100-80", 0},
	{"A800", 0, "a800-80", 0},
	{"H100", 0, "h100-80", 0},
	{"H800", 0, "h800-80", 0},
	{"H200", 0, "h200-141", 0},
	{"B200", 0, "b200-180", 4},
	{"GB200", 0, "gb200-186", 4, .pod = 64},
	{"Ascend910A", 0, "ascend910a", 0},
	{"Ascend910", 0, "ascend910a", 0},
	{"800T", 0, "ascend910b4-1", 0}, /* Atlas 800T A2: 10 % slower in float16, 17 in bfloat16 than 900 */
	{"Ascend910B", 0, "ascend910b3", 0},
	{"Ascend910B1", 0, "ascend910b1", 0},
	{"Ascend910B2", 0, "ascend910b1", 0},
	{"Ascend910B2C", 0, "ascend910b1", 0},
	{"Ascend910B3", 0, "ascend910b3", 0},
	{"Ascend910B4", 0, "ascend910b4-pcie", 0},
	{"Ascend910C", 0, "ascend910c", 0},
};

enum { /* how losses are computed */
	EXPANDED = AP_LOSS_EXPANDED, FUSED = AP_LOSS_FUSED, KERNEL = AP_LOSS_KERNEL,
	BY_VOCABULARY = AP_LOSS_VOCABULARY_PARALLEL
};

static const struct framework frameworks[] = {
	{"Megatron-DeepSpeed", "megatron", "megatron-deepspeed", BY_VOCABULARY, WIDE_BF16, 128, true, 0.1,
		.scatters = true, .behind = true},
	{"Megatron-LM 1.1.5 + DeepSpeed ZeRO-3", "generic", "deepspeed-zero3-2021", BY_VOCABULARY,
		AS_PARAMETER, 128, true, 0.1},
	{"HF Trainer + DeepSpeed", "generic", "deepspeed-zero3-2021", KERNEL, AS_PARAMETER, 0, true, 0.1},
	{"DeepSpeed ZeRO-3", "generic", "deepspeed-zero3-2021", BY_VOCABULARY, AS_PARAMETER, 128, true, 0.1},
	{"Megatron-Bridge", "megatron", "megatron", BY_VOCABULARY, AS_PARAMETER, 128, true, 0,
		.scales = "tensorwise", .dispatcher = "deepep", .calls = "GPT OSS", .balanced = true,
		.beside = true, .narrow = true},
	{"Megatron-LM (2022", "megatron", "megatron-2022", BY_VOCABULARY, WIDE_BF16, 128, true, 0.1,
		.scatters = true, .behind = true},
	{"Megatron-LM (202", "megatron", "megatron-2021", BY_VOCABULARY, WIDE_BF16, 128, true, 0.1,
		.scatters = true, .behind = true},
	{"Megatron", "megatron", "megatron", BY_VOCABULARY, WIDE_BF16, 128, true, 0, .behind = true},
	{"NeMo", "megatron", "megatron", BY_VOCABULARY, AS_PARAMETER, 128, true, 0, .balanced = true,
		.beside = true, .narrow = true},
	{"MindSpeed", "mindspeed", "mindspeed", BY_VOCABULARY, WIDE_BF16, 128, true, 0, .behind = true},
	{"ModelLink", "mindspeed", "mindspeed", BY_VOCABULARY, WIDE_BF16, 128, true, 0, .behind = true},
	{"llm-foundry", "generic", "llm-foundry-fsdp", KERNEL, AS_PARAMETER, 0, true, 0},
	{"torchtitan", "torchtitan", "torchtitan", FUSED, WIDE, 0, true, 0, .scales = "tensorwise",
		.cuts_loss = true},
	{"nanotron", "generic", "nanotron", BY_VOCABULARY, WIDE_BF16, 0, false, 0, .by_cost = true},
	{"LitGPT", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"OneFlow", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"LiBai", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"NVIDIA DLE", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"NGC", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"PyTorch", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"DeepSpeed", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"MindFormers r1.0", "mindformers", "mindspore", EXPANDED, WIDE_BF16, 0, false, 0, .capacity = 1},
	{"MindFormers", "mindformers", "mindspore", EXPANDED, WIDE_BF16, 0, true, 0, .capacity = 1},
	/* scripts of the model zoo set O2 */
	{"MindSpore 1", "mindspore", "mindspore-1", EXPANDED, WIDE, 0, false, 0, .precision = "fp16"},
	{"MindSpore", "mindspore", "mindspore", EXPANDED, WIDE, 0, false, 0, .precision = "fp16"},
};

static const struct precision precisions[] = {
	{"fp4", AP_BFLOAT16, 4, NULL},
	{"fp8-cs", AP_BFLOAT16, 8, "tensorwise"},
	{"mxfp8", AP_BFLOAT16, 8, "mxfp8"},
	{"fp8-mx", AP_BFLOAT16, 8, "mxfp8"},
	{"fp8-te", AP_BFLOAT16, 8, "delayed"},
	{"fp8", AP_BFLOAT16, 8, NULL},
	{"bf16", AP_BFLOAT16, 0, NULL},
	{"fp16", AP_FLOAT16, 0, NULL},
	{"amp", AP_FLOAT16, 0, NULL},
	{"tf32", AP_FLOAT32, 0, NULL},
	{"fp32", AP_FLOAT32, 0, NULL},
};

static const struct generator generators[] = {
	{"dense", "", "gelu relu", true, "gpt3", "network.backbone.blocks"},
	{"dense", "", "", false, "llama", "model.layers"},
	{"moe", "", "swiglu", false, "mixtral", "model.layers"},
	{"bert", "", "", true, "bert", "bert.bert.bert_encoder.layers"},
	{"vit", "ViT", "", true, "vit", "vit.blocks"},
	{"cnn", "ResNet", "", false, "resnet", ""},
	{"cnn", "VGG16", "", false, "vgg16", ""},
	{"recsys", "Wide&Deep", "", false, "wide_deep", ""},
};


static const struct latent latents[] = {
	{2048, 0, 512, 64, 128, 128, 2, 1, 27}, /* DeepSeek-V2-Lite */
	{5120, 1536, 512, 64, 128, 128, 2, 1, 60}, /* DeepSeek-V2 */
	{7168, 1536, 512, 64, 128, 128, 1, 3, 61}, /* DeepSeek-V3 */
};

struct facts facts_of(struct ap_arena *arena, const struct row *row)
{
	return (struct facts){arena,
#define FIELD(name) row->field[COL_##name],
		FACTS(FIELD) REMARKS(FIELD)
#undef FIELD
	};
}

/* Why a row cannot be expressed. */
#define BECAUSE(f, ...) return ap_arena_printf((f)->arena, __VA_ARGS__)

const struct device *device_of(const struct facts *f)
{
	int64_t gib = whole(f->hw_mem_gib, 0);

	for (size_t i = 0; i < AP_COUNT(devices); i++) {
		const struct device *d = &devices[i];

		if (has_word(f->hw, d->word) && (!d->gib || d->gib == gib || holds(f->hw,
			ap_arena_printf(f->arena, "%dGB", (int)d->gib))))
			return d;
	}
	return NULL;
}

static const char *find_device(const struct facts *f, struct run *run)
{
	run->device = device_of(f);
	if (!run->device)
		BECAUSE(f, "unknown device: %s", f->hw);
	if (holds(f->hw, "PCIe") && whole(f->devices, 1) != 1)
		BECAUSE(f, "no profile of PCIe boards in one server: %s", f->hw);
	return NULL;
}

const struct framework *framework_of(const char *name)
{
	for (size_t i = 0; i < AP_COUNT(frameworks); i++)
		if (begins(name, frameworks[i].name))
			return &frameworks[i];
	for (size_t i = 0; i < AP_COUNT(frameworks); i++)
		if (holds(name, frameworks[i].name))
			return &frameworks[i];
	return NULL;
}

static const char *find_framework(const struct facts *f, struct run *run)
{
	run->framework = framework_of(f->framework);
	if (!run->framework)
		BECAUSE(f, "unknown framework: %s", f->framework);
	return NULL;
}

static const char *find_precision(const struct facts *f, struct run *run)
{
	const char *text = holds(f->precision, "not stated") && run->framework->precision
		? run->framework->precision : f->precision;

	for (size_t i = 0; i < AP_COUNT(precisions) && !run->precision; i++)
		if (holds(text, precisions[i].word))
			run->precision = &precisions[i];
	if (!run->precision)
		BECAUSE(f, "unknown precision: %s", f->precision);
	if (run->precision->bits == 4 && run->device->fp4 == 0)
		BECAUSE(f, "%s has no products in %s", run->device->chip, f->precision);
	return NULL;
}

/* What no plan says: that only parts of a network are trained, that the host holds states of the device. */
static const char *find_missing(const struct facts *f, struct run *run)
{
	static const char *const parts[] = {"lora", "adapter", "adapter_v2", "ptuning", "ptuning2"};
	static const char *const host[] = {"checkpoints in CPU", "optimizer offload Y"};

	(void)run;
	for (size_t i = 0; i < AP_COUNT(parts); i++)
		if (has_word(f->model, parts[i]))
			BECAUSE(f, "parts of a network are trained: %s", parts[i]);
	for (size_t i = 0; i < AP_COUNT(host); i++)
		if (holds(f->notes, host[i]))
			BECAUSE(f, "the host's memory holds parts of the state: %s", host[i]);
	return NULL;
}

static const char *find_generator(const struct facts *f, struct run *run)
{
	bool alike = !*f->kv_heads || !strcmp(f->kv_heads, f->heads);

	for (size_t i = 0; i < AP_COUNT(generators) && !run->generator; i++) {
		const struct generator *g = &generators[i];

		if (!strcmp(f->arch, g->arch) && begins(f->model, g->model) && (!g->heads_alike || alike) &&
			(!*g->ffn_types || has_word(g->ffn_types, f->ffn_type)))
			run->generator = g;
	}
	if (!run->generator)
		BECAUSE(f, *f->arch ? "no generator of this network: %s" :
			"nothing is said of the network: %s", f->model);
	return NULL;
}

/* A dimension that has to be stated, and be one that graphs may have. */
static const char *dimension(const struct facts *f, const char *name, const char *text, int64_t most,
	int64_t *out)
{
	*out = whole(text, 0);
	if (!*text)
		BECAUSE(f, "%s is not stated", name);
	if (*out < 1 || *out > most)
		BECAUSE(f, "%s: %s", name, text);
	return NULL;
}

static const char *read_transformer(const struct facts *f, struct run *run)
{
	struct ap_model_params *p = &run->params;
	uint32_t takes = ap_model_family_find(run->generator->kind)->takes;
	const char *ffn = *f->moe_ffn && (takes & AP_MODEL_EXPERTS) ? f->moe_ffn : f->ffn, *why;
	enum ap_model_activation a = *f->ffn_type ? ap_model_activation_find(f->ffn_type) : AP_MODEL_GELU;
	int64_t multiple = run->framework->vocab_multiple * run->tp;

	if ((why = dimension(f, "layers", f->layers, 1000, &p->layers)) ||
		(why = dimension(f, "hidden", f->hidden, 1 << 20, &p->hidden)) ||
		(why = dimension(f, "heads", f->heads, 1 << 16, &p->heads)) ||
		(why = dimension(f, "ffn", ffn, 1 << 24, &p->inner)))
		return why;
	if ((takes & AP_MODEL_VOCABULARY) && (why = dimension(f, "vocab", f->vocab, 1 << 26, &p->vocabulary)))
		return why;
	if ((takes & AP_MODEL_SEQUENCE) && (why = dimension(f, "seq_len", f->seq_len, 1 << 24, &p->sequence)))
		return why;
	if ((takes & AP_MODEL_EXPERTS) &&
		((why = dimension(f, "experts", f->experts, 1 << 14, &p->experts)) ||
		(why = dimension(f, "topk", f->topk, p->experts, &p->active))))
		return why;
	for (size_t i = 0; i < AP_COUNT(latents) && !strcmp(f->head_dim, "MLA"); i++)
		if (latents[i].hidden == p->hidden && takes & AP_MODEL_EXPERTS)
			run->latent = &latents[i];
	if (!strcmp(f->head_dim, "MLA") && !run->latent)
		BECAUSE(f, "nothing is known of the latent attention of this network: %s", f->model);
	if (run->latent && (why = dimension(f, "ffn", f->ffn, 1 << 24, &run->dense_inner)))
		return why;
	p->head_size = run->latent ? run->latent->plain + run->latent->turned : whole(f->head_dim, 0);
	if (!p->head_size)
		p->head_size = p->hidden / p->heads;
	p->kv_heads = run->latent ? p->heads : whole(f->kv_heads, p->heads);
	if (p->head_size < 1 || p->kv_heads < 1 || p->heads % p->kv_heads)
		BECAUSE(f, "heads %s, kv_heads %s, head_dim %s", f->heads, f->kv_heads, f->head_dim);
	if ((takes & AP_MODEL_KV_HEADS) && p->head_size % 2)
		BECAUSE(f, "heads of odd size: %" PRId64, p->head_size);
	if (a == AP_MODEL_ACTIVATIONS)
		BECAUSE(f, "unknown ffn_type: %s", f->ffn_type);
	if (takes & AP_MODEL_EXPERTS ? a != AP_MODEL_SWIGLU
		: !(takes & AP_MODEL_KV_HEADS) && a > AP_MODEL_RELU)
		BECAUSE(f, "no generator of %s networks with %s", f->arch, f->ffn_type);
	p->activation = a;
	if (multiple && (takes & AP_MODEL_VOCABULARY))
		p->vocabulary = (p->vocabulary + multiple - 1) / multiple * multiple;
	p->flash = !strcmp(f->flash_attn, "1") && (takes & AP_MODEL_ATTENTION);
	p->dropout = takes & AP_MODEL_DROPOUT && !p->flash ? run->framework->dropout : 0;
	p->masked = !strcmp(f->arch, "bert") ? (15 * p->sequence + 99) / 100 : 0; /* as BERT's data has it */
	p->capacity = run->framework->capacity;
	p->fused = run->framework->fused;
	p->loss = (enum ap_model_loss)(run->tp > 1 && run->framework->cuts_loss ? AP_LOSS_VOCABULARY_PARALLEL
		: run->framework->loss);
	return NULL;
}

static const char *read_network(const struct facts *f, struct run *run)
{
	const struct ap_model_family *kind = ap_model_family_find(run->generator->kind);

	run->params = kind->standard;
	run->params.name = kind->name;
	run->params.batch = run->batch;
	if (kind->takes & AP_MODEL_DTYPE)
		run->params.dtype = run->precision->dtype;
	if (kind->takes & AP_MODEL_HEADS)
		return read_transformer(f, run);
	if (kind->takes & AP_MODEL_LAYERS) { /* ResNet50: the number is part of the name */
		run->params.layers = strtol(f->model + strcspn(f->model, "0123456789"), NULL, 10);
		if (kind->depth && kind->depth(run->params.layers))
			BECAUSE(f, "no generator of this network: %s", f->model);
	}
	return NULL;
}

static const char *read_grid(const struct facts *f, struct run *run)
{
	int64_t accumulated = whole(f->grad_accum, 0), gbs = whole(f->gbs, 0), product;

	run->tp = whole(f->tp, 1);
	run->pp = whole(f->pp, 1);
	run->cp = whole(f->cp, 1);
	run->vpp = whole(f->vpp, 1);
	run->ep = whole(f->ep, 1);
	run->mbs = whole(f->mbs, 1);
	run->sp = !strcmp(f->sp, "1");
	run->scatters = run->framework->scatters || holds(f->overlap, "scatter/gather");
	run->devices = whole(f->devices, 0);
	run->per_node = whole(f->devices_per_node, 0);
	if (run->tp < 1 || run->pp < 1 || run->cp < 1 || run->vpp < 1 || run->ep < 1 || run->mbs < 1 ||
		run->devices < 0 || run->per_node < 0 || gbs < 0 || accumulated < 0)
		BECAUSE(f, "the strategy is no list of whole numbers");
	if (!ap_product((int64_t[]){run->tp, run->pp, run->cp}, 3, &product) || product > 1 << 20)
		BECAUSE(f, "tp %s, pp %s, cp %s", f->tp, f->pp, f->cp);
	run->dp = whole(f->dp, run->devices / product);
	if (!run->devices && run->dp > 0)
		run->devices = run->dp * product;
	if (run->dp < 1 || run->devices != run->dp * product)
		BECAUSE(f, "dp %s x tp %s x pp %s x cp %s are not the %s devices", f->dp, f->tp, f->pp, f->cp,
			f->devices);
	if (run->per_node > run->devices)
		run->per_node = run->devices;
	run->batch = gbs ? gbs : run->dp * run->mbs * (accumulated ? accumulated : run->pp);
	if (run->batch % (run->dp * run->mbs))
		BECAUSE(f, "a batch of %s is not dealt to dp %s in samples of mbs %s", f->gbs, f->dp, f->mbs);
	run->zero = *f->zero ? *f->zero - '0' : 0;
	if (run->zero < 0 || run->zero > 3)
		BECAUSE(f, "unknown zero: %s", f->zero);
	return NULL;
}

/*
 * The network between servers, for each device: "4x Omni-Path 100 Gb/s per node", "IB NDR 400 Gb/s per GPU".
 * Of clauses that name what joins the devices of a server none counts, nor of those that end in other
 * devices, "(H100/B200)". Without a word a card is the server's.
 */
static double read_network_Bps(const struct facts *f, const struct run *run)
{
	static const struct { const char *text; double Bps; } units[] = {{"Gb/s", 1e9 / 8}, {"Gbps", 1e9 / 8},
		{"Gbit/s", 1e9 / 8}, {"GB/s", 1e9}, {"Tb/s", 1e12 / 8}, {"Tbps", 1e12 / 8}};
	static const char *const inner[] = {"NVLink", "NVSwitch", "HCCS", "PCIe", "NVL", "intra"};
	double found = 0;

	for (const char *p = f->interconnect; *p;) {
		size_t n = strcspn(p, ";,");
		const char *clause = ap_arena_strndup(f->arena, p, n), *note = strchr(clause, '(');
		double cards = 1, rate = 0, Bps = 0;
		bool skip = false, others = false, own = false;

		p += n + (p[n] != '\0');
		for (size_t i = 0; i < AP_COUNT(inner) && !holds(clause, "inter"); i++)
			skip = skip || holds(clause, inner[i]);
		for (size_t i = 0; note && i < AP_COUNT(devices); i++)
			if (has_word(note, devices[i].word))
				*(devices[i].chip == run->device->chip ? &own : &others) = true;
		for (const char *c = clause; *c; c++) {
			char *end;

			if (!isdigit((unsigned char)*c) || (c > clause && isalnum((unsigned char)c[-1])))
				continue;
			rate = ap_strtod(c, &end);
			if (tolower((unsigned char)*end) == 'x')
				cards = rate;
			while (*end == ' ')
				end++;
			for (size_t i = 0; i < AP_COUNT(units) && Bps == 0; i++)
				if (!strncmp(end, units[i].text, strlen(units[i].text)))
					Bps = rate * units[i].Bps;
			c = end - 1;
		}
		if (skip || (others && !own) || Bps == 0)
			continue;
		if (!holds(clause, "per GPU") && !holds(clause, "per NPU") && !holds(clause, "per device") &&
			run->per_node)
			cards /= (double)whole(f->devices_per_node, 1);
		found = Bps * cards;
	}
	return found;
}

/* A stage takes blocks until all so far cost more than its and the earlier stages' share. The last ones may
 * be left without layers then, which no plan says: they have one. */
static int64_t layers_by_cost(const struct run *run, int64_t stage)
{
	const struct ap_model_params *p = &run->params;
	int64_t layer = 4 * p->heads * p->head_size + 3 * p->inner; /* times hidden units, as of the head */
	int64_t all = p->layers * layer + p->vocabulary, at = 0, n = 0;

	for (int64_t i = 1; i <= p->layers; i++) {
		n += at == stage;
		at += at < run->pp - 1 && (i * layer * run->pp > all * (at + 1) ||
			p->layers - i < run->pp - at);
	}
	return n;
}

int64_t layers_of(const struct run *run, int64_t part)
{
	int64_t parts = run->pp * run->vpp, layers = run->params.layers;
	int64_t all = layers % parts ? layers + 2 : layers;

	if (run->framework->by_cost)
		return layers_by_cost(run, part);
	return all / parts + (part < all % parts) - (all > layers && (part == 0 || part == parts - 1));
}

/* At most as many layers as a stage has in all of its segments; stage -1: as a segment has. */
static int64_t limited(const struct run *run, int64_t n, int64_t stage)
{
	int64_t sum = 0, most = 0, step = stage < 0 ? 1 : run->pp;

	for (int64_t part = stage < 0 ? 0 : stage; part < run->pp * run->vpp; part += step) {
		sum += layers_of(run, part);
		most = layers_of(run, part) > most ? layers_of(run, part) : most;
	}
	sum = stage < 0 ? most : sum;
	return n < sum ? n : sum;
}

/* "full:8" of "full:block:8", which counts in each segment; "activation:8,4,1" of "none+select[8,4,1]", whose
 * last number holds for all stages that follow. NULL: there is no number. */
static const char *counted(const struct facts *f, const struct run *run, const char *kind, const char *counts,
	bool of_stages)
{
	int64_t last = -1;
	struct ap_str s;

	ap_str_init(&s, f->arena);
	ap_str_addf(&s, "%s:", kind);
	for (int64_t stage = 0; stage < (of_stages ? run->pp : 1); stage++) {
		counts += strcspn(counts, "0123456789");
		if (*counts) {
			char *end;

			last = strtol(counts, &end, 10);
			counts = end;
		}
		ap_str_addf(&s, "%s%" PRId64, stage ? "," : "", limited(run, last, of_stages ? stage : -1));
	}
	return last < 0 ? NULL : s.s;
}

/* "core_attn+mlp" of "selective[core_attn, mlp]", if all of these words are known; NULL: none is there. */
static const char *modules_of(const struct facts *f, const char *text)
{
	struct ap_str s;

	ap_str_init(&s, f->arena);
	for (const char *p = text; *p;) {
		size_t skip = strspn(p, " []()+,:;"), len = strcspn(p + skip, " []()+,:;"), bad_len;
		unsigned what;
		const char *bad;

		if (len && !ap_again_read(p + skip, len, &what, &bad, &bad_len))
			return NULL;
		if (len)
			ap_str_addf(&s, "%s%.*s", s.len ? "+" : "", (int)len, p + skip);
		p += skip + len;
	}
	return s.len ? s.s : NULL;
}

static const char *read_recompute(const struct facts *f, struct run *run)
{
	/* What a row may say, and what of it is recomputed; ':' a count of layers follows, '[' one of each
	 * stage. */
	static const struct {
		const char *text, *kind;
		char counts;
	} words[] = {
		{"", "none", 0},
		{"recipe", "none", 0}, /* that is not published with its results */
		{"none+select[", "activation", '['},
		{"none+select", "activation", 0}, /* MindFormers' usual patterns: what is between products */
		{"none+actfn", "activation", 0},
		{"none", "none", 0},
		{"full:block:", "full", ':'},
		{"full:uniform:", "uniform", ':'},
		{"full:layers", "full", '['},
		{"full", "full", 0},
		{"selective(op)", "products/2", 0}, /* torchtitan's list: products, every second one */
		{"selective(every 2nd", "none", 0}, /* said of the layers */
	};
	const char *r = f->recompute, *named;
	size_t i = 0;

	run->recompute = NULL;
	run->every_second = begins(r, "selective(every 2nd");
	while (i < AP_COUNT(words) && !(*words[i].text ? begins(r, words[i].text) : !*r))
		i++;
	if (i < AP_COUNT(words)) {
		const char *counts = r + strlen(words[i].text);

		run->recompute = !words[i].counts ? words[i].kind
			: counted(f, run, words[i].kind, counts, words[i].counts == '[');
	} else if (begins(r, "selective")) {
		named = modules_of(f, r + strlen("selective"));
		run->recompute = named ? named : "selective";
	}
	if (!run->recompute)
		BECAUSE(f, "unknown recompute: %s", r);
	return NULL;
}

const char *express(const struct facts *f, struct run *run)
{
	typedef const char *reader(const struct facts *f, struct run *run);
	static reader *const readers[] = {find_framework, find_missing, find_generator, find_device,
		find_precision, read_grid, read_network, read_recompute};
	const char *why = NULL;

	*run = (struct run){0};
	for (size_t i = 0; i < AP_COUNT(readers) && !why; i++)
		why = readers[i](f, run);
	if (!why)
		run->network_Bps = read_network_Bps(f, run);
	for (size_t i = 0; i < AP_COUNT(fabrics); i++)
		if (holds(f->interconnect, fabrics[i].word))
			run->fabric = &fabrics[i];
	return why;
}
