/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds predictions against published measurements: of each row of a CSV file graph, machine and strategy are
 * made and evaluated. docs/fidelity.md is made by it.
 *
 *   fidelity FILE.csv [--only SOURCE] [--neutral] [--profiles FOLDER] [--csv OUT] [--markdown OUT]
 *     [--svg OUT]
 *
 * Profiles of the folder, NAME.json, replace built-in ones. The first line names the columns (COLUMNS below);
 * others are left alone. A row is predicted from FACTS alone.
 * What cannot be expressed is counted and named with its reason. Exit status: 0; 2 for a wrong call, 3 for a
 * file that is no such CSV, 6 for one that cannot be read or written.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autopar/autopar.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/again.h"
#include "hw/builtin.h"
#include "model/families.h"
#include "model/launched.h"

enum { EXIT_USAGE = 2, EXIT_CSV = 3, EXIT_IO = 6 };

/* ---- the file ---- */

/* What a prediction may look at, and what it may not. */
#define FACTS(X) \
	X(framework) X(model) X(arch) X(layers) X(hidden) X(heads) X(kv_heads) X(head_dim) X(ffn) \
	X(ffn_type) X(vocab) X(seq_len) X(experts) X(topk) X(moe_ffn) X(hw) X(hw_mem_gib) X(devices) \
	X(devices_per_node) \
	X(interconnect) X(dp) X(tp) X(pp) X(vpp) X(cp) X(ep) X(sp) X(zero) X(grad_accum) X(mbs) X(gbs) \
	X(recompute) X(precision) X(flash_attn) X(overlap)
#define COLUMNS(X) \
	FACTS(X) X(id) X(source_id) X(grade) X(iter_time_s) X(samples_per_s) X(tokens_per_s_per_dev) \
	X(mem_bytes)

enum column {
#define COLUMN(name) COL_##name,
	COLUMNS(COLUMN)
#undef COLUMN
	NCOLUMN
};

static const char *const column_names[] = {
#define COLUMN(name) #name,
	COLUMNS(COLUMN)
#undef COLUMN
};

struct terms { /* of a step, in seconds */
	double compute, exposed, bubble, optimizer;
};

struct row {
	const char *field[NCOLUMN];
	const char *reason; /* why there is no prediction; NULL: there is one */
	double measured_s, predicted_s; /* 0: none */
	int64_t measured_bytes, predicted_bytes;
	struct terms terms;
};

struct table {
	struct row *v;
	size_t n, cap;
};

static _Noreturn void die(int status, const char *file, const char *what)
{
	fprintf(stderr, "fidelity: %s: %s\n", file, what);
	exit(status);
}

/* Reads a field, which ends before a comma or the end of a line; *p then stands there. NULL: a quote is not
 * closed, or something follows one. */
static const char *read_field(struct ap_arena *arena, const char **p)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	if (**p != '"') {
		size_t n = strcspn(*p, ",\r\n");

		ap_str_addn(&s, *p, n);
		*p += n;
		return s.s;
	}
	for ((*p)++; **p != '"' || (*p)[1] == '"'; *p += **p == '"' ? 2 : 1) {
		if (!**p)
			return NULL;
		ap_str_addc(&s, **p);
	}
	(*p)++;
	return strchr(",\r\n", **p) ? s.s : NULL; /* the end of the text is found, too */
}

/* The fields of a line; *p behind it. */
static const char **read_line(struct ap_arena *arena, const char *file, int line, const char **p, size_t *n)
{
	struct { const char **v; size_t n, cap; } fields = {0};

	for (;; (*p)++) {
		const char *field = read_field(arena, p);

		if (!field)
			die(EXIT_CSV, file, ap_arena_printf(arena,
				"line %d: a quoted field does not end where its quotes do", line));
		AP_PUSH(arena, fields, field);
		if (**p != ',')
			break;
	}
	*p += **p == '\r';
	*p += **p == '\n';
	*n = fields.n;
	return fields.v;
}

static int find_column(const char *name)
{
	for (int c = 0; c < NCOLUMN; c++)
		if (!strcmp(column_names[c], name))
			return c;
	return -1;
}

/* Rows of a CSV file as RFC 4180 has it. What a file has no column for is blank, but the facts it must
 * have. */
static struct table read_table(struct ap_ctx *ctx, const char *file)
{
	struct ap_arena *arena = ctx->arena;
	struct table t = {0};
	const char **names, *p;
	size_t ncolumn, len;
	char *text;
	int line = 1;

	if (ap_file_read(ctx, file, (size_t)1 << 28, &text, &len) != AP_OK)
		die(EXIT_IO, file, "it cannot be read");
	if (strlen(text) != len)
		die(EXIT_CSV, file, "it holds a zero byte");
	p = text + (strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3);
	names = read_line(arena, file, line, &p, &ncolumn);
	for (int c = 0; c < COL_id; c++) {
		size_t i = 0;

		while (i < ncolumn && strcmp(names[i], column_names[c]) != 0)
			i++;
		if (i == ncolumn)
			die(EXIT_CSV, file, ap_arena_printf(arena, "there is no column %s", column_names[c]));
	}
	while (*p) {
		struct row row = {0};
		const char **fields;
		size_t n;

		line++;
		fields = read_line(arena, file, line, &p, &n);
		if (n == 1 && !*fields[0])
			continue;
		if (n != ncolumn)
			die(EXIT_CSV, file, ap_arena_printf(arena,
				"row %d has %zu fields, the first line %zu", line, n, ncolumn));
		for (int c = 0; c < NCOLUMN; c++)
			row.field[c] = "";
		for (size_t i = 0; i < n; i++)
			if (find_column(names[i]) >= 0)
				row.field[find_column(names[i])] = fields[i];
		AP_PUSH(arena, t, row);
	}
	return t;
}

static double number(const char *text)
{
	double v;

	return ap_parse_double(text, &v) && v > 0 ? v : 0;
}

/* Seconds of a step: as they are stated, or as a rate says. */
static double measured_s(const struct row *r)
{
	double gbs = number(r->field[COL_gbs]), samples = number(r->field[COL_samples_per_s]);
	double tokens = number(r->field[COL_tokens_per_s_per_dev]) * number(r->field[COL_devices]);

	if (number(r->field[COL_iter_time_s]) > 0)
		return number(r->field[COL_iter_time_s]);
	if (samples > 0)
		return gbs / samples;
	return tokens > 0 ? gbs * number(r->field[COL_seq_len]) / tokens : 0;
}

/* ---- what a row says ---- */

struct facts {
	struct ap_arena *arena;
#define FIELD(name) const char *name;
	FACTS(FIELD)
#undef FIELD
};

/* Is the word in the text, in capitals or not, and no part of a longer one? */
static bool has_word(const char *text, const char *word)
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

/* Does the text begin with it, in capitals or not? */
static bool begins(const char *text, const char *with)
{
	for (; *with; text++, with++)
		if (tolower((unsigned char)*text) != tolower((unsigned char)*with))
			return false;
	return true;
}

static bool holds(const char *text, const char *part)
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

static const struct fabric { /* what the column interconnect names that carries less than others */
	const char *word;
	double efficiency; /* share of the bandwidth of its links */
} fabrics[] = {
	{"Omni-Path", 0.102}, /* 5.1 of 50 GB/s: all-reduce of 32 A100 on 4 servers, experiments/bandwidth/
	                         all_reduce_bench-a100-n4.txt of bigscience-workshop/bigscience */
};

static const struct device { /* names of the column hw */
	const char *word;
	int64_t gib; /* of a part with less memory; 0: any */
	const char *chip;
	double fp4; /* peak of matrix products in 4 bits / that of bfloat16; 0: there is none */
	int64_t pod; /* devices of a super pod that large runs take, so that groups lie within it; 0 */
} devices[] = {
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
	{"Ascend910B", 0, "ascend910b3", 0},
	{"Ascend910B1", 0, "ascend910b1", 0},
	{"Ascend910B2", 0, "ascend910b1", 0},
	{"Ascend910B2C", 0, "ascend910b1", 0},
	{"Ascend910B3", 0, "ascend910b3", 0},
	{"Ascend910B4", 0, "ascend910b4-pcie", 0},
	{"Ascend910C", 0, "ascend910c", 0},
};

enum { /* how losses are computed */
	EXPANDED = AP_LOSS_EXPANDED, FUSED = AP_LOSS_FUSED, BY_VOCABULARY = AP_LOSS_VOCABULARY_PARALLEL
};
enum sums { AS_PARAMETER, WIDE_BF16, WIDE }; /* type of exchanged gradients: WIDE: float32 */

/* What the column framework begins with, or else holds; the longer ones first. */
static const struct framework {
	const char *name;
	const char *executor;
	const char *software; /* its profile */
	unsigned loss; /* enum ap_model_loss */
	enum sums sums;
	int64_t vocab_multiple; /* entries of a tp part's words are padded to; 0: not at all */
	bool fused; /* kernels, see model/families.h */
	double dropout; /* of GPT, by default */
	const char *precision; /* of rows that do not state theirs: what its scripts set; NULL: unknown */
	bool scatters; /* what a pipeline's stage sends is dealt to the tp ranks; else where a row says so */
	const char *scales; /* of operands in 8 bits, where a row does not say; NULL: as Megatron, delayed */
	bool balanced; /* its published runs force the router's load to balance */
	bool behind; /* gradients are exchanged behind all passes, unless overlap-grad-reduce is given; the
	                recipes of NeMo and Megatron-Bridge give it, as they give */
	bool beside; /* products beside the collectives of their results: tp_comm_overlap */
} frameworks[] = {
	{"Megatron-DeepSpeed", "megatron", "megatron-2021", BY_VOCABULARY, WIDE_BF16, 128, true, 0.1,
		.scatters = true, .behind = true},
	{"Megatron-Bridge", "megatron", "megatron", BY_VOCABULARY, AS_PARAMETER, 128, true, 0,
		.scales = "tensorwise", .balanced = true, .beside = true},
	{"Megatron-LM (202", "megatron", "megatron-2021", BY_VOCABULARY, WIDE_BF16, 128, true, 0.1,
		/* until 2022 */ .behind = true},
	{"Megatron", "megatron", "megatron", BY_VOCABULARY, WIDE_BF16, 128, true, 0, .behind = true},
	{"NeMo", "megatron", "megatron", BY_VOCABULARY, AS_PARAMETER, 128, true, 0, .balanced = true,
		.beside = true},
	{"MindSpeed", "mindspeed", "mindspeed", BY_VOCABULARY, WIDE_BF16, 128, true, 0, .behind = true},
	{"ModelLink", "mindspeed", "mindspeed", BY_VOCABULARY, WIDE_BF16, 128, true, 0, .behind = true},
	{"llm-foundry", "generic", "llm-foundry-fsdp", FUSED, AS_PARAMETER, 0, true, 0},
	{"torchtitan", "torchtitan", "torchtitan", FUSED, WIDE, 0, true, 0, .scales = "tensorwise"},
	{"nanotron", "generic", "generic", BY_VOCABULARY, WIDE_BF16, 0, true, 0},
	{"LitGPT", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"OneFlow", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"LiBai", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"NVIDIA DLE", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"NGC", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"PyTorch", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"DeepSpeed", "generic", "generic", FUSED, AS_PARAMETER, 0, true, 0},
	{"MindFormers", "mindformers", "mindspore", EXPANDED, WIDE, 0, false, 0},
	{"MindSpore", "mindspore", "mindspore", EXPANDED, WIDE, 0, false, 0, .precision = "fp16"}, /* O2 */
};

static const struct precision { /* parts of the column precision, the first that is found counts */
	const char *word;
	enum ap_dtype dtype;
	int bits; /* of the operands of matrix products, where they are fewer; 0 */
	const char *scales; /* of 8 bits; NULL: as the framework's */
} precisions[] = {
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

static const struct generator { /* which network a row is; the first that goes with it */
	const char *arch;
	const char *model; /* what its name begins with */
	const char *ffn_types; /* "": any */
	bool heads_alike; /* as many heads of keys as of queries */
	const char *kind; /* of model/families.h */
	const char *blocks; /* the cells of its layers are BLOCKS.N */
} generators[] = {
	{"dense", "", "gelu relu", true, "gpt3", "network.backbone.blocks"},
	{"dense", "", "", false, "llama", "model.layers"},
	{"moe", "", "swiglu", false, "mixtral", "model.layers"},
	{"bert", "", "", true, "bert", "bert.bert.bert_encoder.layers"},
	{"vit", "ViT", "", true, "vit", "vit.blocks"},
	{"cnn", "ResNet", "", false, "resnet", ""},
	{"cnn", "VGG16", "", false, "vgg16", ""},
	{"recsys", "Wide&Deep", "", false, "wide_deep", ""},
};


/* What networks with latent attention have that no column says, by their hidden units. */
static const struct latent {
	int64_t hidden;
	int64_t query, key, turned, plain, value; /* units: compressed queries (0: they are not), keys and
	                                             values; of a head, with positions, without, of values */
	int64_t shared; /* experts of every token */
	int64_t dense, layers; /* leading layers without experts, and all; one that is cut has its share */
} latents[] = {
	{2048, 0, 512, 64, 128, 128, 2, 1, 27}, /* DeepSeek-V2-Lite */
	{5120, 1536, 512, 64, 128, 128, 2, 1, 60}, /* DeepSeek-V2 */
	{7168, 1536, 512, 64, 128, 128, 1, 3, 61}, /* DeepSeek-V3 */
};

struct run { /* a row as it is evaluated */
	const struct device *device;
	const struct framework *framework;
	const struct precision *precision;
	const struct generator *generator;
	struct ap_model_params params;
	const struct latent *latent; /* NULL: attention is not latent */
	int64_t dense_inner; /* units of the feed-forward part of a layer without experts */
	int64_t devices, per_node, dp, tp, pp, vpp, cp, ep, mbs, batch, zero;
	bool sp, scatters;
	double network_Bps; /* of a device; 0: as in the profile */
	const struct fabric *fabric; /* NULL: as in the profile */
	const char *recompute; /* as --recompute has it */
	bool every_second; /* layer is recomputed as a whole, by flags of the graph */
};

/* Why a row cannot be expressed. */
#define BECAUSE(f, ...) return ap_arena_printf((f)->arena, __VA_ARGS__)

static const char *find_device(const struct facts *f, struct run *run)
{
	int64_t gib = whole(f->hw_mem_gib, 0);

	for (size_t i = 0; i < AP_COUNT(devices); i++) {
		const struct device *d = &devices[i];

		if (!has_word(f->hw, d->word) || (d->gib && d->gib != gib && !holds(f->hw,
			ap_arena_printf(f->arena, "%dGB", (int)d->gib))))
			continue;
		run->device = d;
		break;
	}
	if (!run->device)
		BECAUSE(f, "unknown device: %s", f->hw);
	if (holds(f->hw, "PCIe") && whole(f->devices, 1) != 1)
		BECAUSE(f, "no profile of PCIe boards in one server: %s", f->hw);
	return NULL;
}

/* NULL: it is not known. */
static const struct framework *framework_of(const char *name)
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
	p->capacity = run->framework->fused ? 0 : 1;
	p->fused = run->framework->fused;
	p->loss = (enum ap_model_loss)run->framework->loss;
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

/* Layers of a part, segment by segment of the stages: equal numbers, or, where these do not divide, such that
 * the first and the last have one less, for embedding and head. */
static int64_t layers_of(const struct run *run, int64_t part)
{
	int64_t parts = run->pp * run->vpp, layers = run->params.layers;
	int64_t all = layers % parts ? layers + 2 : layers;

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

static const char *express(const struct facts *f, struct run *run)
{
	typedef const char *reader(const struct facts *f, struct run *run);
	static reader *const readers[] = {find_framework, find_generator, find_device, find_precision,
		read_grid, read_network, read_recompute};
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

/* ---- profiles ---- */

struct edit { /* of a number in a profile; pointer NULL: the end */
	const char *pointer;
	double value;
};

static const struct edit neutral[] = { /* what of the software was fitted, or is a guess: as if it were not */
	{"/gradient_exposed", 1},
	{"/overlap_slowdown", 1},
	{NULL, 0},
};

/* Profiles are files: those that differ from the built-in ones are written into a folder of their own. */
struct profiles {
	struct ap_ctx *ctx;
	const char *given; /* a folder whose profiles replace built-in ones; NULL: none is */
	char *folder; /* NULL: there is none yet */
	struct { const char **v; size_t n, cap; } keys, files;
};

static void write_edited(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_json *doc,
	const struct ap_jv *v, const struct edit *edits)
{
	enum ap_jtype type = ap_jv_type(v);

	if (type == AP_JNUMBER) {
		const char *pointer = ap_jv_pointer(ctx->arena, v);

		for (; edits->pointer; edits++)
			if (!strcmp(edits->pointer, pointer)) {
				ap_jw_num(w, edits->value);
				return;
			}
	}
	if (type != AP_JOBJECT && type != AP_JARRAY) {
		ap_jw_value(w, doc, v);
		return;
	}
	type == AP_JOBJECT ? ap_jw_obj(w) : ap_jw_arr(w);
	for (const struct ap_jv *c = ap_jv_first(v); c; c = ap_jv_next(c)) {
		if (type == AP_JOBJECT)
			ap_jw_key(w, ap_jv_key(c));
		write_edited(ctx, w, doc, c, edits);
	}
	ap_jw_end(w);
}

/* NAME.json in the folder of profiles to take instead of built-in ones; NAME where there is none. */
static const char *file_of(const struct profiles *p, const char *name)
{
	const char *path = p->given ? ap_arena_printf(p->ctx->arena, "%s/%s.json", p->given, name) : name;

	return p->given && access(path, R_OK) == 0 ? path : name;
}

/* The profile that a name stands for; it has to be there. */
static const struct ap_json *profile(const struct profiles *p, const struct ap_builtin *b, const char *name)
{
	const char *path = file_of(p, name);
	struct ap_json *doc;
	char *text = NULL;
	size_t len = 0;

	while (b->name && strcmp(b->name, name) != 0)
		b++;
	if (path != name && ap_file_read(p->ctx, path, AP_FILE_MAX_BYTES, &text, &len) != AP_OK)
		die(EXIT_IO, path, "it cannot be read");
	if (!text && !b->name)
		die(EXIT_IO, name, "there is no such profile");
	if (ap_json_parse(p->ctx, name, text ? text : b->text, text ? len : strlen(b->text), 0,
			&doc) != AP_OK)
		die(EXIT_IO, path, "it is no JSON");
	return doc;
}

/* The name of a profile that is the built-in one with other numbers; key tells it from others. */
static const char *edited(struct profiles *p, const struct ap_json *doc, const char *key,
	const struct edit *edits)
{
	struct ap_arena *arena = p->ctx->arena;
	const char *path;
	struct ap_str text;
	struct ap_jw w;
	FILE *out;

	for (size_t i = 0; i < p->keys.n; i++)
		if (!strcmp(p->keys.v[i], key))
			return p->files.v[i];
	if (!p->folder) {
		const char *tmp = getenv("TMPDIR");

		p->folder = ap_arena_printf(arena, "%s/fidelity-XXXXXX", tmp ? tmp : "/tmp");
		if (!mkdtemp(p->folder))
			die(EXIT_IO, p->folder, strerror(errno));
	}
	path = ap_arena_printf(arena, "%s/%zu.json", p->folder, p->files.n);
	ap_jw_str_init(&w, &text, 1);
	ap_str_init(&text, arena);
	write_edited(p->ctx, &w, doc, ap_json_root(doc), edits);
	ap_jw_finish(&w);
	out = fopen(path, "wb");
	if (!out || fwrite(text.s, 1, text.len, out) != text.len || fclose(out))
		die(EXIT_IO, path, strerror(errno));
	AP_PUSH(arena, p->keys, ap_arena_strdup(arena, key));
	AP_PUSH(arena, p->files, path);
	return path;
}

static void remove_profiles(struct profiles *p)
{
	for (size_t i = 0; i < p->files.n; i++)
		unlink(p->files.v[i]);
	if (p->folder)
		rmdir(p->folder);
}

/* The level of the network between servers: the outermost. */
static int network_level(const struct ap_json *doc)
{
	return (int)ap_jv_count(ap_jv_get(ap_json_root(doc), "levels")) - 1;
}

/*
 * Products of layers in 4 bits, which have no name in a profile, run at a higher peak, but neither attention
 * nor the head does: the gain of all products together, by their FLOPs.
 */
static double narrow_gain(const struct run *run)
{
	const struct ap_model_params *p = &run->params;
	double peak = run->precision->bits == 4 ? run->device->fp4 : 1;
	double h = (double)p->hidden, width = (double)(p->heads * p->head_size);
	double matrices = ap_model_activation_gated(p->activation) ? 3 : 2;
	double layers = 2 * h * (2 * width + 2 * width * (double)p->kv_heads / (double)p->heads +
		matrices * (double)(p->inner * (p->active ? p->active : 1))) * (double)p->layers;
	double others = 4 * width * (double)p->sequence * (p->flash ? 0.5 : 1) * (double)p->layers +
		2 * h * (double)p->vocabulary;

	return p->heads ? (layers + others) / (layers / peak + others) : peak;
}

/* The chip of a run, whose network is that of its cluster, and whose products in 4 bits have their peak. */
static const char *chip_of(struct profiles *p, const struct run *run)
{
	const char *name = run->device->chip;
	const struct ap_json *doc = profile(p, ap_builtin_chips, name);
	struct ap_arena *arena = p->ctx->arena;
	const struct ap_jv *cube = ap_jv_get(ap_jv_get(ap_json_root(doc), "peak_flops"), "cube");
	struct edit edits[4] = {0};
	double narrow = narrow_gain(run);
	int n = 0;

	if (run->network_Bps > 0)
		edits[n++] = (struct edit){ap_arena_printf(arena, "/levels/%d/bandwidth_Bps",
			network_level(doc)), run->network_Bps};
	if (run->fabric)
		edits[n++] = (struct edit){ap_arena_printf(arena, "/levels/%d/efficiency",
			network_level(doc)), run->fabric->efficiency};
	if (narrow > 1)
		edits[n++] = (struct edit){"/peak_flops/cube/bfloat16",
			ap_jv_double(ap_jv_get(cube, "bfloat16")) * narrow};
	return n ? edited(p, doc, ap_arena_printf(arena, "%s %.17g %s %.17g", name, run->network_Bps,
		run->fabric ? run->fabric->word : "", narrow), edits) : file_of(p, name);
}

static const char *software_of(struct profiles *p, const struct run *run, bool is_neutral)
{
	const char *name = run->framework->software;

	return is_neutral ? edited(p, profile(p, ap_builtin_software, name), name, neutral)
		: file_of(p, name);
}

/* ---- predictions ---- */

static const char *first_error(const struct facts *f, const struct autopar *a)
{
	for (size_t i = 0; i < autopar_messages(a); i++)
		if (!strcmp(autopar_message(a, i, "level"), "error"))
			BECAUSE(f, "%s", autopar_message(a, i, "text"));
	return "no plan";
}

/* A network with latent attention, said as Megatron's arguments would say it. */
static struct ap_model *make_latent(struct ap_ctx *ctx, const struct run *run)
{
	const struct ap_model_params *p = &run->params;
	const struct latent *l = run->latent;
	const struct { const char *name; int64_t n; } counts[] = {{"num_layers", p->layers},
		{"hidden_size", p->hidden}, {"num_attention_heads", p->heads},
		{"ffn_hidden_size", run->dense_inner}, {"padded_vocab_size", p->vocabulary},
		{"seq_length", p->sequence}, {"kv_lora_rank", l->key}, {"qk_pos_emb_head_dim", l->turned},
		{"qk_head_dim", l->plain}, {"v_head_dim", l->value}, {"num_experts", p->experts},
		{"moe_router_topk", p->active}, {"moe_ffn_hidden_size", p->inner},
		{"moe_shared_expert_intermediate_size", l->shared * p->inner}, {"q_lora_rank", l->query},
		{"moe_expert_capacity_factor", (int64_t)p->capacity}};
	static const char *const on[] = {"multi_latent_attention", "swiglu", "disable_bias_linear",
		"untie_embeddings_and_output_weights"};
	const struct ap_launched_options asked = {.batch = p->batch, .dtype = p->dtype, .flash = p->flash,
		.loss = p->loss, .small = !p->flash, .name = p->name};
	int64_t dense = (l->dense * p->layers + l->layers - 1) / l->layers;
	struct ap_hf_net net;
	struct ap_json *doc;
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, ctx->arena);
	ap_jw_str_init(&w, &text, 0);
	ap_jw_obj(&w);
	for (size_t i = 0; i < AP_COUNT(counts); i++)
		if (counts[i].n)
			ap_jw_kint(&w, counts[i].name, counts[i].n);
	for (size_t i = 0; i < AP_COUNT(on); i++)
		ap_jw_kbool(&w, on[i], true);
	ap_jw_kstr(&w, "position_embedding_type", "rope");
	ap_jw_kstr(&w, "normalization", "RMSNorm");
	ap_jw_key(&w, "moe_layer_freq");
	ap_jw_arr(&w);
	for (int64_t i = 0; i < p->layers; i++)
		ap_jw_int(&w, i >= dense);
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	if (ap_json_parse(ctx, "arguments", text.s, text.len, 0, &doc) != AP_OK ||
		ap_launched_megatron(ctx, doc, &asked, &net) != AP_OK)
		die(EXIT_IO, p->name, ap_diag_text(ctx->diag, 0, NULL, NULL));
	return net.make(ctx->arena, net.dimensions);
}

static const char *network_text(struct ap_arena *arena, const struct run *run, size_t *len)
{
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create(0, NULL, NULL), .jobs = 1,
		.diag = ap_diag_create(arena, false)};
	struct ap_model *m = run->latent ? make_latent(&ctx, run)
		: ap_model_family_find(run->generator->kind)->make(arena, &run->params);
	struct ap_str s;

	for (int64_t i = 0; run->every_second && i < run->params.layers; i++)
		if (i % 2 == 0)
			ap_model_recompute(m,
				ap_arena_printf(arena, "%s.%d", run->generator->blocks, (int)i));
	ap_str_init(&s, arena);
	ap_model_write(m, ap_str_take, &s);
	ap_arena_destroy(ctx.scratch);
	*len = s.len;
	return s.s;
}

static bool wide_gradients(const struct facts *f, const struct run *run)
{
	enum sums sums = run->framework->sums;

	return sums == WIDE || (sums == WIDE_BF16 && run->precision->dtype == AP_BFLOAT16) ||
		holds(f->precision, "reduce-fp32") || holds(f->precision, "fp32 grad");
}

/* Do products run beside the collectives of their results, as the row or its framework's recipes have it? */
static bool overlaps_products(const struct facts *f, const struct run *run)
{
	return holds(f->overlap, "use-mc2") || holds(f->overlap, "tp-comm-overlap") ||
		holds(f->overlap, "AsyncTP") || begins(f->overlap, "TP/") ||
		(run->framework->beside && holds(f->overlap, "recipe"));
}

static const char *hybrid_of(struct ap_arena *arena, const struct run *run)
{
	const struct { const char *key; int64_t n; } degrees[] = {{"tp", run->tp}, {"pp", run->pp},
		{"vpp", run->vpp}, {"cp", run->cp}, {"ep", run->ep}};
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_str_addf(&s, "dp=%" PRId64 ",mbs=%" PRId64, run->dp, run->mbs);
	for (size_t i = 0; i < AP_COUNT(degrees); i++)
		if (degrees[i].n > 1)
			ap_str_addf(&s, ",%s=%" PRId64, degrees[i].key, degrees[i].n);
	if (run->tp > 1 && run->sp)
		ap_str_add(&s, ",sp=1");
	else if (run->tp > 1 && run->pp > 1 && run->scatters)
		ap_str_add(&s, ",pp_scatter=1");
	if (run->pp > 1 && run->params.heads && run->params.layers % (run->pp * run->vpp)) {
		ap_str_add(&s, ",layers=");
		for (int64_t part = 0; part < run->pp * run->vpp; part++)
			ap_str_addf(&s, part ? ",%" PRId64 : "%" PRId64, layers_of(run, part));
	}
	return s.s;
}

static const char *evaluate(const struct facts *f, struct autopar *a, const struct run *run, struct row *row)
{
	struct ap_ctx ctx = {.arena = f->arena, .scratch = ap_arena_create(0, NULL, NULL), .jobs = 1,
		.diag = ap_diag_create(f->arena, false)};
	const struct ap_jv *prediction;
	struct autopar_plan *plan;
	struct ap_json *doc = NULL;
	const char *text;
	size_t len;

	if (autopar_set(a, "recompute", run->recompute) != AUTOPAR_OK ||
		autopar_evaluate(a, &plan) != AUTOPAR_OK)
		return first_error(f, a);
	row->predicted_s = autopar_plan_step_time_s(plan);
	row->predicted_bytes = autopar_plan_memory_bytes(plan);
	if (autopar_plan_memory(plan, "summary", ".json", &text, &len) == AUTOPAR_OK &&
		ap_json_parse(&ctx, "summary", text, len, 0, &doc) == AP_OK) {
		prediction = ap_jv_get(ap_json_root(doc), "prediction");
		row->terms = (struct terms){ap_jv_double(ap_jv_get(prediction, "compute_s")),
			ap_jv_double(ap_jv_get(prediction, "exposed_communication_s")),
			ap_jv_double(ap_jv_get(prediction, "bubble_s")),
			ap_jv_double(ap_jv_get(prediction, "optimizer_s"))};
	}
	autopar_plan_destroy(plan);
	ap_arena_destroy(ctx.scratch);
	return doc ? NULL : "no summary";
}

static const char *text_of(const struct facts *f, int64_t n)
{
	return ap_arena_printf(f->arena, "%" PRId64, n);
}

static const char *scales_of(const struct run *run)
{
	return run->precision->scales ? run->precision->scales : run->framework->scales;
}

/* Settings of a run; what is not taken is named by the evaluation. */
static enum autopar_status set_all(struct autopar *a, const struct facts *f, const struct run *run,
	struct profiles *p, bool is_neutral)
{
	static const char *const levels[] = {NULL, "level1", "level2", "level3"};
	const struct { const char *key, *value; } settings[] = {
		{"jobs", "1"},
		{"hccl_rules", "false"},
		{"executor", run->framework->executor},
		{"software", software_of(p, run, is_neutral)},
		{"chip", chip_of(p, run)},
		{"device_num", text_of(f, run->devices)},
		{"devices_per_server", run->per_node ? text_of(f, run->per_node) : NULL},
		{"devices_per_pod", run->device->pod && run->devices > run->device->pod ?
			text_of(f, run->device->pod) : NULL},
		{"hybrid", hybrid_of(f->arena, run)},
		{"gradient_fp32_sync", wide_gradients(f, run) ? "true" : "false"},
		{"overlap_grad_reduce", run->framework->behind && !holds(f->overlap, "overlap-grad-reduce")
			? "false" : NULL},
		{"fp8_format", run->precision->bits == 8 ? "hybrid" : NULL},
		{"fp8_recipe", run->precision->bits == 8 ? scales_of(run) : NULL},
		{"tp_comm_overlap", overlaps_products(f, run) ? "true" : NULL},
		{"expert_imbalance", run->framework->balanced ? "1" : NULL},
		{"enable_parallel_optimizer", run->zero ? "true" : "false"},
		{"optimizer_level", run->zero > 1 ? levels[run->zero] : NULL},
	};
	enum autopar_status st = AUTOPAR_OK;

	for (size_t i = 0; i < AP_COUNT(settings) && st == AUTOPAR_OK; i++)
		if (settings[i].value)
			st = autopar_set(a, settings[i].key, settings[i].value);
	return st;
}

/* Evaluates a run as it is expressed. */
static const char *predict_run(const struct facts *f, const struct run *run, struct profiles *p,
	bool is_neutral, struct row *row)
{
	struct autopar *a = autopar_create();
	const char *why, *text;
	size_t len;

	if (!a)
		return "out of memory";
	text = network_text(f->arena, run, &len);
	if (set_all(a, f, run, p, is_neutral) != AUTOPAR_OK ||
		autopar_graph_memory(a, "network", text, len) != AUTOPAR_OK)
		why = first_error(f, a);
	else
		why = evaluate(f, a, run, row);
	autopar_destroy(a);
	return why;
}

/* Where nothing is said of micro-batches, they were tuned: of all powers of two that deal the batch the one
 * that is predicted to be the fastest and to fit counts. */
static const char *predict_tuned(const struct facts *f, struct run *run, struct profiles *p, bool is_neutral,
	struct row *row)
{
	double room = number(f->hw_mem_gib) * (1 << 30);
	struct row best = *row;
	const char *why = predict_run(f, run, p, is_neutral, &best);

	for (run->mbs = 2; !why && room > 0 && run->batch % (run->dp * run->mbs) == 0; run->mbs *= 2) {
		struct row next = *row;

		if (predict_run(f, run, p, is_neutral, &next) || (double)next.predicted_bytes > room)
			break;
		if (next.predicted_s < best.predicted_s)
			best = next;
	}
	*row = best;
	return why;
}

static void predict(struct row *row, struct profiles *p, bool is_neutral)
{
	struct ap_arena *arena = ap_arena_create(0, NULL, NULL);
	const struct facts f = {arena,
#define FIELD(name) row->field[COL_##name],
		FACTS(FIELD)
#undef FIELD
	};
	const char *why;
	struct run run;

	why = express(&f, &run);
	if (!why)
		why = *f.mbs || *f.grad_accum ? predict_run(&f, &run, p, is_neutral, row)
			: predict_tuned(&f, &run, p, is_neutral, row);
	if (why) {
		row->reason = ap_arena_strdup(p->ctx->arena, why);
		row->predicted_s = 0;
		row->predicted_bytes = 0;
	}
	ap_arena_destroy(arena);
}

/* ---- errors ---- */

struct errors { /* of a set of rows */
	const char *name;
	size_t rows, unexpressed;
	struct { double *v; size_t n, cap; } time, memory; /* predicted / measured - 1 */
};

/* Is the measurement one to be judged by: complete, and plausible? */
static bool is_judged(const struct row *r)
{
	const char *grade = r->field[COL_grade];

	return !*grade || *grade == 'A' || *grade == 'B';
}

static bool has_time(const struct row *r)
{
	return is_judged(r) && r->measured_s > 0 && r->predicted_s > 0;
}

static void add_row(struct ap_arena *arena, struct errors *e, const struct row *r)
{
	e->rows++;
	e->unexpressed += r->reason != NULL;
	if (has_time(r))
		AP_PUSH(arena, e->time, r->predicted_s / r->measured_s - 1);
	if (is_judged(r) && r->measured_bytes && r->predicted_bytes)
		AP_PUSH(arena, e->memory, (double)r->predicted_bytes / (double)r->measured_bytes - 1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread { /* of errors, in percent */
	double mean, median, bias; /* of amounts; of amounts; with their signs */
};

static struct spread spread_of(struct ap_arena *arena, const double *error, size_t n)
{
	double *amount = AP_NEW_N(arena, double, (n ? n : 1));
	struct spread s = {0};

	for (size_t i = 0; i < n; i++) {
		amount[i] = fabs(error[i]) * 100;
		s.mean += amount[i] / (double)n;
		s.bias += error[i] * 100 / (double)n;
	}
	qsort(amount, n, sizeof *amount, by_value);
	if (n)
		s.median = (amount[(n - 1) / 2] + amount[n / 2]) / 2;
	return s;
}

static const char *source_of(const struct row *r)
{
	return r->field[COL_source_id];
}

/* The software profile of a row's framework. */
static const char *profile_of(const struct row *r)
{
	const struct framework *f = framework_of(r->field[COL_framework]);

	return f ? f->software : "unknown";
}

/* The sets of all names, in the order in which they come, and the last of all rows. */
static size_t errors_by(struct ap_arena *arena, const struct table *t,
	const char *(*name_of)(const struct row *), struct errors **out)
{
	struct { struct errors *v; size_t n, cap; } sets = {0};
	struct errors all = {.name = "total"};

	for (size_t i = 0; i < t->n; i++) {
		const char *source = name_of(&t->v[i]);
		size_t k = 0;

		while (k < sets.n && strcmp(sets.v[k].name, source) != 0)
			k++;
		if (k == sets.n)
			AP_PUSH(arena, sets, (struct errors){.name = source});
		add_row(arena, &sets.v[k], &t->v[i]);
		add_row(arena, &all, &t->v[i]);
	}
	AP_PUSH(arena, sets, all);
	*out = sets.v;
	return sets.n;
}

enum { GROUP = 10 }; /* rows of a group at least */

struct group { /* strategies of one model on one machine */
	const char *key, *name;
	struct { const struct row **v; size_t n, cap; } rows;
};

/* Groups of at least GROUP rows that differ in nothing but the strategy. */
static size_t groups_of(struct ap_arena *arena, const struct table *t, struct group **out)
{
	static const enum column alike[] = {COL_arch, COL_layers, COL_hidden, COL_heads, COL_ffn, COL_vocab,
		COL_seq_len, COL_hw, COL_interconnect, COL_devices, COL_gbs, COL_precision};
	struct { struct group *v; size_t n, cap; } all = {0};
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->v[i];
		const char *key = r->field[COL_model];
		size_t k = 0;

		if (!has_time(r))
			continue;
		for (size_t c = 0; c < AP_COUNT(alike); c++)
			key = ap_arena_printf(arena, "%s|%s", key, r->field[alike[c]]);
		while (k < all.n && strcmp(all.v[k].key, key) != 0)
			k++;
		if (k == all.n)
			AP_PUSH(arena, all, ((struct group){.key = key, .name = ap_arena_printf(arena,
				"%s, %s devices, batch %s", r->field[COL_model], r->field[COL_devices],
				r->field[COL_gbs])}));
		AP_PUSH(arena, all.v[k].rows, r);
	}
	for (size_t k = 0; k < all.n; k++)
		if (all.v[k].rows.n >= GROUP)
			all.v[n++] = all.v[k];
	*out = all.v;
	return n;
}

/* Ranks from 1; of equal values the mean of theirs. O(n^2). */
static double *ranks(struct ap_arena *arena, const double *v, size_t n)
{
	double *rank = AP_NEW_N(arena, double, n);

	for (size_t i = 0; i < n; i++) {
		double below = 0, equal = 0;

		for (size_t k = 0; k < n; k++) {
			below += v[k] < v[i];
			equal += v[k] == v[i];
		}
		rank[i] = below + (equal + 1) / 2;
	}
	return rank;
}

/* Correlation of ranks; 0 where all are alike. */
static double spearman(struct ap_arena *arena, const double *x, const double *y, size_t n)
{
	const double *a = ranks(arena, x, n), *b = ranks(arena, y, n);
	double mean = ((double)n + 1) / 2, ab = 0, aa = 0, bb = 0;

	for (size_t i = 0; i < n; i++) {
		ab += (a[i] - mean) * (b[i] - mean);
		aa += (a[i] - mean) * (a[i] - mean);
		bb += (b[i] - mean) * (b[i] - mean);
	}
	return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

enum { SHOWN = 3 }; /* strategies that a user would try */

struct ranking {
	double correlation;
	/* Time of what is predicted best, and the least of the SHOWN best, / best time - 1, in percent. */
	double regret, of_shown;
};

/* The least time of the n rows that are predicted best; of equal ones the first are. O(rows * n). */
static double least_of_best(const struct group *g, size_t n)
{
	double least = INFINITY, last_s = 0;
	size_t last = g->rows.n;

	for (size_t k = 0; k < n && k < g->rows.n; k++) {
		size_t best = g->rows.n;

		for (size_t i = 0; i < g->rows.n; i++) {
			double s = g->rows.v[i]->predicted_s;
			bool met = last < g->rows.n && (s < last_s || (s <= last_s && i <= last));

			if (!met && (best == g->rows.n || s < g->rows.v[best]->predicted_s))
				best = i;
		}
		last = best;
		last_s = g->rows.v[best]->predicted_s;
		least = fmin(least, g->rows.v[best]->measured_s);
	}
	return least;
}

static struct ranking ranking_of(struct ap_arena *arena, const struct group *g)
{
	size_t n = g->rows.n;
	double *measured = AP_NEW_N(arena, double, n), *predicted = AP_NEW_N(arena, double, n), least;

	for (size_t i = 0; i < n; i++) {
		measured[i] = g->rows.v[i]->measured_s;
		predicted[i] = g->rows.v[i]->predicted_s;
	}
	least = least_of_best(g, n);
	return (struct ranking){spearman(arena, predicted, measured, n),
		(least_of_best(g, 1) / least - 1) * 100, (least_of_best(g, SHOWN) / least - 1) * 100};
}

/* ---- what is written ---- */

static void print_rows(const struct table *t)
{
	printf("%-24s %11s %11s %8s %9s %9s %9s %9s  %s\n", "row", "measured s", "predicted s", "error %",
		"compute", "exposed", "bubble", "optimizer", "GiB measured, predicted");
	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->v[i];
		double gib = (double)(1 << 30);

		printf("%-24s ", r->field[COL_id]);
		if (r->reason) {
			printf("cannot be expressed: %s\n", r->reason);
			continue;
		}
		if (r->measured_s > 0)
			printf("%11.4f %11.4f %+8.1f", r->measured_s, r->predicted_s,
				(r->predicted_s / r->measured_s - 1) * 100);
		else
			printf("%11s %11.4f %8s", "", r->predicted_s, "");
		printf(" %9.4f %9.4f %9.4f %9.4f ", r->terms.compute, r->terms.exposed, r->terms.bubble,
			r->terms.optimizer);
		if (r->measured_bytes)
			printf(" %.1f, %.1f", (double)r->measured_bytes / gib,
				(double)r->predicted_bytes / gib);
		printf("%s\n", is_judged(r) ? "" : "  not judged");
	}
}

/* Errors as a table of Markdown. */
static void write_sets(FILE *out, struct ap_arena *arena, const char *what, const struct errors *sets,
	size_t nset)
{
	enum { COLUMNS_OF_ERRORS = 10 };

	fprintf(out, "| %s | rows | not expressed | times | mean error %% | median %% | bias %% | "
		"memories | mean error %% | bias %% |\n|", what);
	for (int i = 0; i < COLUMNS_OF_ERRORS; i++)
		fputs(" --- |", out);
	putc('\n', out);
	for (size_t i = 0; i < nset; i++) {
		const struct errors *e = &sets[i];
		struct spread s = spread_of(arena, e->time.v, e->time.n);

		fprintf(out, "| %s | %zu | %zu | %zu |", e->name, e->rows, e->unexpressed, e->time.n);
		if (e->time.n)
			fprintf(out, " %.1f | %.1f | %+.1f | %zu |", s.mean, s.median, s.bias, e->memory.n);
		else
			fprintf(out, " | | | %zu |", e->memory.n);
		s = spread_of(arena, e->memory.v, e->memory.n);
		if (e->memory.n)
			fprintf(out, " %.1f | %+.1f |\n", s.mean, s.bias);
		else
			fprintf(out, " | |\n");
	}
}

/* Errors of sources and of software, and rankings of groups. */
static void write_errors(FILE *out, struct ap_arena *arena, const struct table *t)
{
	struct errors *sets;
	struct group *groups;
	struct ranking sum = {0};
	size_t nset = errors_by(arena, t, source_of, &sets), ngroup = groups_of(arena, t, &groups), nrow = 0;

	write_sets(out, arena, "source", sets, nset);
	nset = errors_by(arena, t, profile_of, &sets);
	putc('\n', out);
	write_sets(out, arena, "software", sets, nset - 1);
	if (ngroup)
		fprintf(out,
			"\n| strategies of | rows | rank correlation | regret %% | of the best of %d %% |\n"
			"| --- | --- | --- | --- | --- |\n", SHOWN);
	for (size_t i = 0; i < ngroup; i++) {
		struct ranking r = ranking_of(arena, &groups[i]);

		fprintf(out, "| %s | %zu | %.2f | %.1f | %.1f |\n", groups[i].name, groups[i].rows.n,
			r.correlation, r.regret, r.of_shown);
		nrow += groups[i].rows.n;
		sum = (struct ranking){sum.correlation + r.correlation, sum.regret + r.regret,
			sum.of_shown + r.of_shown};
	}
	if (ngroup)
		fprintf(out, "| mean | %zu | %.2f | %.1f | %.1f |\n", nrow, sum.correlation / (double)ngroup,
			sum.regret / (double)ngroup, sum.of_shown / (double)ngroup);
}

static void write_reasons(FILE *out, struct ap_arena *arena, const struct table *t)
{
	struct { const char **v; size_t n, cap; } reasons = {0};

	for (size_t i = 0; i < t->n; i++) {
		const char *why = t->v[i].reason;
		size_t k = 0, n = 0;

		while (why && k < reasons.n && strcmp(reasons.v[k], why) != 0)
			k++;
		if (!why || k < reasons.n)
			continue;
		AP_PUSH(arena, reasons, why);
		for (size_t j = i; j < t->n; j++)
			n += t->v[j].reason && !strcmp(t->v[j].reason, why);
		if (reasons.n == 1)
			fprintf(out, "\n| cannot be expressed because | rows |\n| --- | --- |\n");
		fprintf(out, "| %s | %zu |\n", why, n);
	}
}

static FILE *open_out(const char *path)
{
	FILE *out = fopen(path, "wb");

	if (!out)
		die(EXIT_IO, path, strerror(errno));
	return out;
}

static void close_out(FILE *out, const char *path)
{
	if (ferror(out) | fclose(out))
		die(EXIT_IO, path, "it cannot be written");
}

static void write_field(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

static void write_csv(const char *path, const struct table *t)
{
	FILE *out = open_out(path);

	fputs("id,measured_s,predicted_s,measured_bytes,predicted_bytes,source_id,reason\n", out);
	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->v[i];
		char buf[32];

		write_field(out, r->field[COL_id]);
		fprintf(out, ",%s,", r->measured_s > 0 ? ap_format_double(r->measured_s, buf) : "");
		fprintf(out, "%s,", r->predicted_s > 0 ? ap_format_double(r->predicted_s, buf) : "");
		if (r->measured_bytes)
			fprintf(out, "%" PRId64, r->measured_bytes);
		putc(',', out);
		if (r->predicted_bytes)
			fprintf(out, "%" PRId64, r->predicted_bytes);
		putc(',', out);
		write_field(out, r->field[COL_source_id]);
		putc(',', out);
		write_field(out, r->reason ? r->reason : "");
		putc('\n', out);
	}
	close_out(out, path);
}

static void write_markdown(const char *path, struct ap_arena *arena, const char *file, const char *svg,
	const struct table *t, bool is_neutral)
{
	FILE *out = open_out(path);

	fprintf(out, "# Predictions against published measurements\n\n"
		"Made by `fidelity %s`%s. Each row is a training run that\n"
		"somebody measured and published; graph, machine and strategy are made of what is said of\n"
		"it. An error is predicted / measured - 1: mean and median are of its amount, the bias is\n"
		"with its sign. Memory is that of the fullest device. Rows of grade C, D or M (incomplete,\n"
		"implausible, a formula) are left out. `data/SOURCES` says where rows come from. Where ten\n"
		"or more strategies of one model on one machine were measured, the regret is by how much\n"
		"the one that is predicted to be the fastest took longer than the one that was, and the\n"
		"fastest of the three that are predicted to be. Dashed\n"
		"lines in the picture are 25 %% off. `build/bench/fidelity FILE.csv` does the same for any\n"
		"file with these columns, and prints a line for each row.\n\n",
		ap_file_base(file), is_neutral ?
		" --neutral" : "");
	if (svg)
		fprintf(out, "![Predicted against measured step times](%s)\n\n", ap_file_base(svg));
	write_errors(out, arena, t);
	write_reasons(out, arena, t);
	close_out(out, path);
}

/* Predicted over measured seconds, both in powers of ten; the lines beside the diagonal are 25 % off. */
static void write_svg(const char *path, struct ap_arena *arena, const struct table *t)
{
	static const char *const colors[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
		"#bbbbbb", "#000000"};
	static const char *const marks[] = { /* a disc, a cross, a triangle */
		"<circle id=\"m0\" r=\"2.5\" fill=\"currentColor\" fill-opacity=\"0.7\"/>",
		"<path id=\"m1\" d=\"M-3 -3l6 6m-6 0l6 -6\" stroke=\"currentColor\" fill=\"none\"/>",
		"<path id=\"m2\" d=\"M0 -3.5l3 6h-6z\" stroke=\"currentColor\" fill=\"none\"/>",
	};
	enum { SIDE = 480, LEFT = 50, TOP = 20, LEGEND = LEFT + SIDE + 20 };
	static const double off[] = {0.75, 1, 1.25};
	struct errors *sets;
	size_t nset = errors_by(arena, t, source_of, &sets) - 1, shown = 0;
	double least = INFINITY, most = 0, first, decades, side = SIDE;
	FILE *out = open_out(path);

	for (size_t i = 0; i < t->n; i++)
		if (has_time(&t->v[i])) {
			least = fmin(least, fmin(t->v[i].measured_s, t->v[i].predicted_s));
			most = fmax(most, fmax(t->v[i].measured_s, t->v[i].predicted_s));
		}
	first = most > 0 ? floor(log10(least)) : 0;
	decades = most > 0 ? fmax(1, ceil(log10(most)) - first) : 1;
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n<defs>", LEGEND + 180,
		TOP + SIDE + 45);
	for (size_t i = 0; i < AP_COUNT(marks); i++)
		fputs(marks[i], out);
	fputs("</defs>\n", out);
#define X(s) (LEFT + (log10(s) - first) / decades * side)
#define USE "<use href=\"#m%zu\" x=\"%.1f\" y=\"%.1f\" color=\"%s\"/>\n"
#define Y(s) (TOP + side - (log10(s) - first) / decades * side)
	for (int d = 0; d <= (int)decades; d++) {
		double at = pow(10, first + d);

		fprintf(out, "<path d=\"M%.1f %dV%dM%d %.1fH%d\" stroke=\"#dddddd\"/>\n", X(at), TOP,
			TOP + SIDE, LEFT, Y(at), LEFT + SIDE);
		fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g s</text>\n", X(at),
			TOP + SIDE + 15, at);
		fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g s</text>\n", LEFT - 5,
			Y(at) + 4, at);
	}
	for (size_t i = 0; i < AP_COUNT(off); i++) {
		double from = pow(10, first), to = pow(10, first + decades);

		fprintf(out, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#888888\"%s/>\n", X(from),
			Y(from * off[i]), X(to), Y(to * off[i]),
			off[i] < 1 || off[i] > 1 ? " stroke-dasharray=\"3 3\"" : "");
	}
	for (size_t k = 0; k < nset; k++) {
		const char *color = colors[shown % AP_COUNT(colors)];
		size_t mark = shown / AP_COUNT(colors) % AP_COUNT(marks);

		if (!sets[k].time.n)
			continue;
		for (size_t i = 0; i < t->n; i++)
			if (has_time(&t->v[i]) && !strcmp(t->v[i].field[COL_source_id], sets[k].name))
				fprintf(out, USE, mark, X(t->v[i].measured_s), Y(t->v[i].predicted_s), color);
		fprintf(out, USE, mark, (double)LEGEND, TOP + 10 + 16.0 * (double)shown, color);
		fprintf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", LEGEND + 10, TOP + 14 + 16 * (int)shown,
			sets[k].name);
		shown++;
	}
#undef X
#undef Y
#undef USE
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">measured</text>\n"
		"<text transform=\"translate(12 %d) rotate(-90)\" text-anchor=\"middle\">predicted</text>\n"
		"</svg>\n",
		LEFT + SIDE / 2, TOP + SIDE + 35, TOP + SIDE / 2);
	close_out(out, path);
}

static _Noreturn void usage(void)
{
	fputs("usage: fidelity FILE.csv [--only SOURCE] [--neutral] [--profiles FOLDER] [--csv OUT] "
		"[--markdown OUT] [--svg OUT]\n", stderr);
	exit(EXIT_USAGE);
}

int main(int argc, char **argv)
{
	struct ap_arena *arena = ap_arena_create(0, NULL, NULL);
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create(0, NULL, NULL),
		.diag = ap_diag_create(arena, false), .jobs = 1};
	const char *file = NULL, *only = NULL, *csv = NULL, *markdown = NULL, *svg = NULL;
	struct profiles profiles = {.ctx = &ctx};
	bool is_neutral = false;
	struct table t;
	size_t n = 0;

	for (int i = 1; i < argc; i++) {
		const struct { const char *name; const char **value; } options[] = {{"--only", &only},
			{"--csv", &csv}, {"--profiles", &profiles.given}, {"--markdown", &markdown},
			{"--svg", &svg}};
		size_t k = 0;

		while (k < AP_COUNT(options) && strcmp(options[k].name, argv[i]) != 0)
			k++;
		if (k < AP_COUNT(options) && i + 1 < argc)
			*options[k].value = argv[++i];
		else if (!strcmp(argv[i], "--neutral"))
			is_neutral = true;
		else if (!file && *argv[i] != '-')
			file = argv[i];
		else
			usage();
	}
	if (!file)
		usage();
	t = read_table(&ctx, file);
	for (size_t i = 0; i < t.n; i++)
		if (!only || !strcmp(t.v[i].field[COL_source_id], only))
			t.v[n++] = t.v[i];
	t.n = n;
	for (size_t i = 0; i < t.n; i++) {
		struct row *r = &t.v[i];

		r->measured_s = measured_s(r);
		r->measured_bytes = (int64_t)number(r->field[COL_mem_bytes]);
		predict(r, &profiles, is_neutral);
	}
	remove_profiles(&profiles);
	print_rows(&t);
	putchar('\n');
	write_errors(stdout, arena, &t);
	write_reasons(stdout, arena, &t);
	if (csv)
		write_csv(csv, &t);
	if (svg)
		write_svg(svg, arena, &t);
	if (markdown)
		write_markdown(markdown, arena, file, svg, &t, is_neutral);
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(arena);
	return ferror(stdout) | fflush(stdout) ? EXIT_IO : EXIT_SUCCESS;
}
