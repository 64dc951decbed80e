/* SPDX-License-Identifier: Apache-2.0 */
#include "model/launched.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/decoder.h"
#include "model/hf_keys.h"
#include "model/mindformers.h"

static struct ap_model *make_decoder(struct ap_arena *arena, const void *dimensions)
{
	return ap_model_decoder(arena, dimensions);
}

/* Elements of the largest tensor, about: what a layer computes, scores, weights. */
static double largest(const struct ap_decoder *d)
{
	const struct ap_experts *e = &d->experts;
	double copies = (double)(e->active > 0 ? e->active : 1);
	double rows = (double)d->batch * (double)d->sequence * copies;
	double width = (double)d->hidden + (double)d->inner + (double)d->vocabulary + (double)d->positions +
		(double)e->inner + (double)e->shared_inner + (double)e->count +
		2 * ((double)d->heads + 2 * (double)d->kv_heads) * (double)d->head_size;

	return fmax(fmax(rows * width, rows * (double)d->heads * (double)d->sequence),
		width * width * (double)(e->count + 1));
}

/* What is the same of all launchers, once the dimensions are read. */
static enum ap_status finish(struct ap_hf_keys *r, struct ap_decoder *d, const struct ap_jv *heads,
	const struct ap_jv *sequence, struct ap_hf_net *out)
{
	AP_TRY(ap_diag_status(r->ctx->diag));
	if (d->heads % d->kv_heads)
		(void)AP_HF_FAULT(r, heads, "key-range", "%" PRId64 " heads in %" PRId64
			" groups that share keys: the groups must divide the heads", d->heads, d->kv_heads);
	if (d->rotary && d->head_size % 2)
		(void)AP_HF_FAULT(r, heads, "key-range",
			"heads of %" PRId64 " units: rotary positions need an even number", d->head_size);
	if (d->experts.active > d->experts.count)
		(void)AP_HF_FAULT(r, r->root, "key-range", "%" PRId64 " experts of a token, of %" PRId64
			" that there are", d->experts.active, d->experts.count);
	if (d->positions && d->sequence > d->positions)
		(void)AP_HF_FAULT(r, sequence, "key-range", "samples of %" PRId64 " tokens are longer than "
			"the %" PRId64 " positions that the model learns", d->sequence, d->positions);
	AP_TRY(ap_diag_status(r->ctx->diag));
	*out = (struct ap_hf_net){make_decoder, d, largest(d), d};
	if (out->largest > 1e17)
		return AP_HF_FAULT(r, r->root, "key-range",
			"these dimensions make a tensor of more than 10^17 elements");
	return AP_OK;
}

/* Layers behind the network that predict tokens behind the next; left out of networks that have no names for
 * them. */
static void further_tokens(struct ap_hf_keys *r, const struct ap_jv *v, struct ap_decoder *d)
{
	int64_t n = 0;

	if (v && (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(r->doc, v, &n) || n < 0 || n > 16))
		(void)AP_HF_FAULT(r, v, "key-type", "expected a number from 0 to 16");
	else if (d->names->further.layers)
		d->further = n;
	else if (n)
		(void)ap_json_report(r->ctx, r->doc, v, AP_WARNING, AP_OK, NULL, "model-known",
			"the main model is built: layers that predict tokens behind the next are left out");
}

/* ---- Megatron ---- */

#define MEGATRON_NAMES .top = "GPTModel", .body = "decoder-TransformerBlock", \
	.embedding_cell = "word_embeddings-VocabParallelEmbedding", \
	.embedding = "embedding.word_embeddings.weight", \
	.positions = "embedding.position_embeddings.weight", .block_class = "TransformerLayer", \
	.blocks_cell = "layers", .blocks = "decoder.layers", .attention = "self_attention", \
	.attention_class = "SelfAttention", .qkv = "linear_qkv", .output = "linear_proj", \
	.norm_class = "Norm", .norm1 = "input_layernorm", .norm2 = "pre_mlp_layernorm", \
	.feed_forward = "mlp", .feed_forward_class = "MLP", .down = "linear_fc2", \
	.experts_part = "mlp", .final_cell = "final_layernorm", .final_norm = "decoder.final_layernorm", \
	.head = "output_layer", .further = {.layers = "mtp.layers", .words = "enorm", .state = "hnorm", \
		.join = "eh_proj", .norm = "final_layernorm", .block = "transformer_layer"}

/* Each rank holds its columns of the gate beside those that it weights: two products say so. */
#define GATED .gate = "linear_fc1.gate", .up = "linear_fc1.up"
#define PLAIN .up = "linear_fc1"
#define NORMED .query_norm = "q_layernorm", .key_norm = "k_layernorm"
#define LATENT .query = "linear_q_proj", .query_down = "linear_q_down_proj", \
	.query_low_norm = "q_layernorm", .query_up = "linear_q_up_proj", \
	.key_down = "linear_kv_down_proj", .key_low_norm = "kv_layernorm", .key_up = "linear_kv_up_proj"

static const struct ap_decoder_names megatron_names[2][2] = { /* [gated][with norms of queries and keys] */
	{{MEGATRON_NAMES, PLAIN}, {MEGATRON_NAMES, PLAIN, NORMED}},
	{{MEGATRON_NAMES, GATED}, {MEGATRON_NAMES, GATED, NORMED}}},
	megatron_latent_names[2] = {{MEGATRON_NAMES, PLAIN, LATENT}, {MEGATRON_NAMES, GATED, LATENT}};

#define EXPERTS_NAMES .router = "router", .selection_bias = "router.expert_bias", .experts = "experts", \
	.down = "linear_fc2", .shared = "shared_experts", .shared_gate = "shared_experts.gate"

static const struct ap_experts_names megatron_experts[2] = {{EXPERTS_NAMES, PLAIN}, {EXPERTS_NAMES, GATED}};

/* Words that change the network, and that are not built. */
static const char *const megatron_others[] = {"hybrid_layer_pattern",
	"hybrid_override_pattern", "is_hybrid_model", "window_size", "decoder_num_layers",
	"heterogeneous_layers_config_path", "apply_residual_connection_post_layernorm",
	"experimental_attention_variant", "linear_attention_freq", "retro_add_retriever",
	"attention_output_gate", "moe_latent_size", "use_mcore_mamba", "post_norm", "noop_layers"};

/* The value of an argument; of several words behind an option, the first. NULL: not said. */
static const struct ap_jv *said(struct ap_hf_keys *r, const char *name)
{
	const struct ap_jv *v = ap_hf_member(r, name);

	return v && ap_jv_type(v) == AP_JARRAY && ap_jv_count(v) ? ap_jv_first(v) : v;
}

/* A whole number from 1 to most; otherwise (0: required) where it is not said. */
static int64_t count(struct ap_hf_keys *r, const char *name, int64_t most, int64_t otherwise)
{
	const struct ap_jv *v = said(r, name);
	int64_t n;

	if (!v && otherwise)
		return otherwise;
	if (v && ap_jv_type(v) == AP_JNUMBER && ap_jv_int(r->doc, v, &n) && n >= 1 && n <= most)
		return n;
	if (v)
		(void)AP_HF_FAULT(r, v, "key-range", "expected a number from 1 to %" PRId64 "%s", most,
			ap_jv_type(v) == AP_JSTRING && *ap_jv_str(v) == '$'
			? "; this variable is not assigned in the file" : "");
	else
		(void)AP_HF_FAULT(r, r->root, "key-missing",
			"%s is not said, which the network needs; or give GRAPH", name);
	return 1;
}

/* An option is on where it stands; a log says True or False. */
static bool on(struct ap_hf_keys *r, const char *name)
{
	const struct ap_jv *v = said(r, name);

	return v && (ap_jv_type(v) != AP_JBOOL || ap_jv_bool(v));
}

static bool off(struct ap_hf_keys *r, const char *name)
{
	const struct ap_jv *v = said(r, name);

	return v && ap_jv_type(v) == AP_JBOOL && !ap_jv_bool(v);
}

static bool says(struct ap_hf_keys *r, const char *name, const char *word)
{
	const struct ap_jv *v = said(r, name);

	return v && ap_jv_type(v) == AP_JSTRING && !strcmp(ap_jv_str(v), word);
}

static void refuse_others(struct ap_hf_keys *r)
{
	for (size_t i = 0; i < AP_COUNT(megatron_others); i++) {
		const struct ap_jv *v = said(r, megatron_others[i]);
		bool none = !v || (ap_jv_type(v) == AP_JBOOL && !ap_jv_bool(v)) ||
			(ap_jv_type(v) == AP_JNUMBER && ap_jv_double(v) == 0) ||
			(ap_jv_type(v) == AP_JSTRING && !*ap_jv_str(v)) ||
			(ap_jv_type(v) == AP_JARRAY && !ap_jv_count(v));

		if (!none)
			(void)AP_HF_FAULT(r, v, "model-known",
				"changes the network, and is not built; GRAPH may say it");
	}
}

/* Reads a sum of lists of 0 and 1, each repeated, as ([0]*3+[1]*58): does it have that many? */
static bool read_lists(const char *s, int64_t layers, bool *sparse)
{
	int64_t n = 0, times;

	for (s += *s == '('; *s == '['; s += *s == '+') {
		const char *list = s + 1, *end = strchr(s, ']');
		size_t digits = end && end[1] == '*' ? strspn(end + 2, "0123456789") : 0;

		if (!end || strspn(list, "01,") != (size_t)(end - list) ||
			(end[1] == '*' && (digits < 1 || digits > 4)))
			return false;
		times = digits ? strtol(end + 2, NULL, 10) : 1;
		s = end + 1 + (digits ? digits + 1 : 0);
		for (; times > 0; times--)
			for (const char *c = list; c < end; c++) {
				if (*c == ',')
					continue;
				if (n == layers)
					return false;
				sparse[n++] = *c == '1';
			}
	}
	return n == layers && (!*s || !strcmp(s, ")"));
}

/* Which layers have experts: each n-th from the first on, or a list of 0 and 1, as Python may write it. */
static const bool *sparse_layers(struct ap_hf_keys *r, int64_t layers)
{
	const struct ap_jv *v = ap_hf_member(r, "moe_layer_freq"), *e;
	bool *sparse = AP_NEW_N(r->ctx->arena, bool, (size_t)layers);
	int64_t n = 0;

	if (!v || ap_jv_type(v) == AP_JNUMBER) {
		int64_t step = count(r, "moe_layer_freq", AP_HF_LAYERS_MOST, 1);

		for (int64_t i = 0; i < layers; i++)
			sparse[i] = i % step == 0;
		return sparse;
	}
	if (ap_jv_type(v) == AP_JSTRING && read_lists(ap_jv_str(v), layers, sparse))
		return sparse;
	for (e = ap_jv_type(v) == AP_JARRAY ? ap_jv_first(v) : NULL; e && n < layers; e = ap_jv_next(e)) {
		if (ap_jv_type(e) != AP_JNUMBER || (ap_jv_double(e) != 0 && ap_jv_double(e) != 1))
			break;
		sparse[n++] = ap_jv_double(e) == 1;
	}
	if (n < layers || e)
		(void)AP_HF_FAULT(r, v, "key-range",
			"expected a number, or 0 or 1 for each of %" PRId64 " layers, as a log prints them "
			"or as ([0]*3+[1]*58)", layers);
	return sparse;
}

static void megatron_experts_of(struct ap_hf_keys *r, bool biases, struct ap_decoder *d)
{
	const struct ap_jv *room = said(r, "moe_expert_capacity_factor");
	struct ap_experts *e = &d->experts;

	if (!said(r, "num_experts"))
		return;
	*e = (struct ap_experts){.names = &megatron_experts[on(r, "swiglu")], .way = AP_EXPERTS_MOVED,
		.count = count(r, "num_experts", AP_HF_MOST, 0),
		.active = count(r, "moe_router_topk", AP_HF_MOST, 2),
		.inner = count(r, "moe_ffn_hidden_size", AP_HF_MOST, d->inner),
		.rescale = !on(r, "moe_router_pre_softmax"), .activation = d->activation,
		.score = says(r, "moe_router_score_function", "sigmoid")
			? AP_EXPERTS_SIGMOID : AP_EXPERTS_SOFTMAX,
		.selection_bias = on(r, "moe_router_enable_expert_bias")};
	if (said(r, "moe_shared_expert_intermediate_size")) {
		e->shared_inner = count(r, "moe_shared_expert_intermediate_size", AP_HF_MOST, 0);
		e->shared_gate = on(r, "moe_shared_expert_gate");
		e->shared_beside = on(r, "moe_shared_expert_overlap");
	}
	if (said(r, "moe_router_num_groups")) {
		e->groups = count(r, "moe_router_num_groups", e->count, 0);
		e->groups_active = count(r, "moe_router_group_topk", e->groups, 0);
	}
	if (room && ap_jv_type(room) == AP_JNUMBER)
		e->capacity = ap_jv_double(room);
	if (e->capacity < 0 || e->capacity > 1000)
		(void)AP_HF_FAULT(r, room, "key-range", "expected a number from 0 to 1000");
	if (e->groups && e->count % e->groups)
		(void)AP_HF_FAULT(r, said(r, "moe_router_num_groups"), "key-range",
			"%" PRId64 " groups do not divide %" PRId64 " experts", e->groups, e->count);
	if (biases)
		(void)AP_HF_FAULT(r, said(r, "num_experts"), "model-known",
			"experts with biases are not built; expected disable_bias_linear");
	d->sparse = sparse_layers(r, d->layers);
}

static int64_t padded_vocabulary(struct ap_hf_keys *r)
{
	int64_t n, step;

	if (said(r, "padded_vocab_size"))
		return count(r, "padded_vocab_size", AP_HF_MOST, 0);
	if (!said(r, "vocab_size")) {
		(void)AP_HF_FAULT(r, r->root, "key-missing", "neither padded_vocab_size nor vocab_size is "
			"said, which the network needs: the tokenizer's words are in no argument");
		return 1;
	}
	n = count(r, "vocab_size", AP_HF_MOST / 2, 0);
	step = count(r, "make_vocab_size_divisible_by", 1 << 14, 128) *
		count(r, "tensor_model_parallel_size", 1 << 14, 1);
	return (n + step - 1) / step * step;
}

/* Attention is flash's or one of its kind, unless an argument says otherwise. */
static bool megatron_flash(struct ap_hf_keys *r)
{
	if (on(r, "use_flash_attn"))
		return true;
	return !says(r, "attention_backend", "unfused") && !says(r, "attention_backend", "local") &&
		!says(r, "transformer_impl", "local");
}

/* Latent attention: the sizes of heads are words of its own. */
static void megatron_latent(struct ap_hf_keys *r, struct ap_decoder *d)
{
	if (!on(r, "multi_latent_attention"))
		return;
	d->latent.query = said(r, "q_lora_rank") ? count(r, "q_lora_rank", AP_HF_MOST, 0) : 0;
	d->latent.key = count(r, "kv_lora_rank", AP_HF_MOST, 32);
	d->latent.turned = count(r, "qk_pos_emb_head_dim", AP_HF_MOST, 64);
	d->head_size = count(r, "qk_head_dim", AP_HF_MOST, 128) + d->latent.turned;
	d->value_size = count(r, "v_head_dim", AP_HF_MOST, 128);
	d->kv_heads = d->heads;
	d->fused_qkv = d->qkv_bias = false;
	d->names = &megatron_latent_names[on(r, "swiglu")];
	if (!d->rotary)
		(void)AP_HF_FAULT(r, said(r, "multi_latent_attention"), "model-known",
			"latent attention has rotary positions; expected position_embedding_type rope");
	if (d->latent.turned % 2)
		(void)AP_HF_FAULT(r, said(r, "qk_pos_emb_head_dim"), "key-range",
			"rotary positions turn pairs of units; expected an even number");
}

static void megatron_block(struct ap_hf_keys *r, struct ap_decoder *d)
{
	bool rope = on(r, "use_rotary_position_embeddings") || says(r, "position_embedding_type", "rope");
	bool biases = !on(r, "disable_bias_linear") && !off(r, "add_bias_linear");
	const struct ap_jv *v;

	d->rotary = rope;
	if (!rope && !says(r, "position_embedding_type", "none")) {
		v = said(r, "position_embedding_type");
		if (v && !says(r, "position_embedding_type", "learned_absolute"))
			(void)AP_HF_FAULT(r, v, "model-known",
				"positions that are not built; expected learned_absolute, rope or none");
		d->positions = count(r, "max_position_embeddings", AP_HF_MOST, 0);
	}
	v = said(r, "normalization");
	d->norm = says(r, "normalization", "RMSNorm") ? AP_NORM_RMS : AP_NORM_LAYER;
	if (v && d->norm == AP_NORM_LAYER && !says(r, "normalization", "LayerNorm"))
		(void)AP_HF_FAULT(r, v, "model-known", "expected LayerNorm or RMSNorm");
	d->activation = on(r, "swiglu") ? AP_MODEL_SWIGLU : on(r, "squared_relu") ? AP_MODEL_SQUARED_RELU
		: AP_MODEL_GELU;
	d->qkv_bias = biases || on(r, "add_qkv_bias");
	d->output_bias = d->inner_bias = biases;
	d->names = &megatron_names[on(r, "swiglu")][on(r, "qk_layernorm")];
	megatron_experts_of(r, biases, d);
	megatron_latent(r, d);
}

enum ap_status ap_launched_megatron(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_launched_options *o, struct ap_hf_net *out)
{
	struct ap_hf_keys keys = {.ctx = ctx, .doc = doc, .root = ap_json_root(doc)}, *r = &keys;
	struct ap_decoder *d = AP_NEW(ctx->arena, struct ap_decoder);
	bool gated = on(r, "swiglu");

	*d = (struct ap_decoder){.name = o->name, .batch = o->batch, .loss = o->loss,
		.fused = true, .fused_qkv = true};
	refuse_others(r);
	d->layers = count(r, "num_layers", AP_HF_LAYERS_MOST, 0);
	d->hidden = count(r, "hidden_size", AP_HF_MOST, 0);
	d->heads = count(r, "num_attention_heads", AP_HF_MOST, 0);
	d->kv_heads = on(r, "group_query_attention") ? count(r, "num_query_groups", AP_HF_MOST, 1) : d->heads;
	if (!said(r, "kv_channels") && !on(r, "multi_latent_attention") && d->hidden % d->heads)
		(void)AP_HF_FAULT(r, said(r, "num_attention_heads"), "key-range",
			"%" PRId64 " heads do not divide hidden_size %" PRId64, d->heads, d->hidden);
	d->head_size = count(r, "kv_channels", AP_HF_MOST, d->hidden >= d->heads ? d->hidden / d->heads : 1);
	d->inner = count(r, "ffn_hidden_size", INT64_C(4) * AP_HF_MOST, !gated ? 4 * d->hidden
		: 8 * d->hidden / 3 < 64 ? 64 : 8 * d->hidden / 3 / 64 * 64);
	d->vocabulary = padded_vocabulary(r);
	d->tied = !on(r, "untie_embeddings_and_output_weights");
	megatron_block(r, d);
	further_tokens(r, said(r, "mtp_num_layers"), d);
	d->sequence = o->sequence ? o->sequence : count(r, "seq_length", AP_HF_MOST, 0);
	d->flash = o->flash || (!o->small && megatron_flash(r));
	d->dtype = o->dtype != AP_DTYPE_COUNT ? o->dtype : on(r, "bf16") ? AP_BFLOAT16
		: on(r, "fp16") ? AP_FLOAT16 : AP_FLOAT32;
	return finish(r, d, said(r, "num_attention_heads"), said(r, "seq_length"), out);
}

/* ---- MindFormers ---- */

static const struct ap_decoder_names mcore_latent_names = {MEGATRON_NAMES, GATED, .query = "linear_q",
	.query_down = "linear_qkv.query", .query_low_norm = "q_layernorm", .query_up = "linear_qb",
	.key_down = "linear_qkv.key", .key_low_norm = "k_layernorm", .key_up = "linear_kvb"};

/* Keys that change the network, and that are not built. */
static const char *const mindformers_others[] = {"pet_config", "vision_model", "llm_model",
	"sandwich_norm", "window_size", "sliding_window"};

static const struct kind { /* of network, by what the name of its class begins with */
	const char *begin;
	bool gpt; /* layer norms, biases, learned positions */
	bool qkv_bias, normed; /* where no key says it: biases, norms of queries and keys */
	bool latent;
} kinds[] = {
	{"Llama", false, false, false, false},
	{"Mixtral", false, false, false, false},
	{"Mistral", false, false, false, false},
	{"Yi", false, false, false, false},
	{"Qwen3", false, false, true, false},
	{"Qwen", false, true, false, false},
	{"Deepseek", false, false, false, true},
	{"GPT2", true, false, false, false},
};

static bool begins_with(const char *s, const char *begin)
{
	while (*begin && (*s | 0x20) == (*begin | 0x20)) {
		s++;
		begin++;
	}
	return !*begin;
}

/* The kind that model_config.type, model_type or arch.type names; without any it is Llama's. */
static const struct kind *find_kind(struct ap_hf_keys *r, const struct ap_jv *model)
{
	const struct ap_jv *arch = ap_jv_get(model, "arch"), *v = ap_hf_one_of(r, (ap_hf_keys_of){"type",
		"model_type"});

	if (!v && arch && ap_jv_type(arch) == AP_JOBJECT)
		v = ap_jv_get(arch, "type");
	if (!v)
		return kinds;
	for (size_t i = 0; ap_jv_type(v) == AP_JSTRING && i < AP_COUNT(kinds); i++)
		if (begins_with(ap_jv_str(v), kinds[i].begin))
			return &kinds[i];
	(void)AP_HF_FAULT(r, v, "model-known",
		"no network of this type is built of a MindFormers YAML; GRAPH may say it");
	return kinds;
}

/* Units of Llama's feed-forward part where no key says them: two thirds of 4 h, by a factor, in whole
 * multiples. */
static int64_t llama_inner(struct ap_hf_keys *r, int64_t hidden)
{
	const struct ap_jv *factor = ap_hf_member(r, "ffn_dim_multiplier");
	int64_t step = ap_hf_count(r, (ap_hf_keys_of){"multiple_of"}, AP_HF_MOST, 256), wide = 4 * hidden;

	if (factor && (ap_jv_type(factor) != AP_JNUMBER || ap_jv_double(factor) <= 0 ||
		ap_jv_double(factor) > 1000)) {
		(void)AP_HF_FAULT(r, factor, "key-range", "expected a number above 0, at most 1000");
		return 1;
	}
	wide = factor ? (int64_t)((ap_jv_double(factor) + 0.01) * (double)wide) : wide;
	wide = 2 * wide / 3;
	return (wide + step - 1) / step * step;
}

/* How a token finds its experts. */
static void mindformers_choice(struct ap_hf_keys *r, struct ap_experts *e)
{
	static ap_hf_keys_of groups = {"n_group", "n_groups", "moe_router_num_groups"},
		actives = {"topk_group", "moe_router_group_topk"};
	const struct ap_jv *score = ap_hf_one_of(r, (ap_hf_keys_of){"scoring_func",
		"moe_router_score_function"});
	const struct ap_jv *method = ap_hf_member(r, "topk_method");
	bool sigmoid = score && ap_jv_type(score) == AP_JSTRING && !strcmp(ap_jv_str(score), "sigmoid");

	e->score = ap_hf_flag(r, "use_gating_sigmoid", sigmoid) ? AP_EXPERTS_SIGMOID : AP_EXPERTS_SOFTMAX;
	e->rescale = ap_hf_flag(r, "norm_topk_prob", true);
	e->selection_bias = ap_hf_flag(r, "balance_via_topk_bias", ap_hf_flag(r,
		"moe_router_enable_expert_bias", method && ap_jv_type(method) == AP_JSTRING &&
		!strcmp(ap_jv_str(method), "noaux_tc")));
	if (!ap_hf_one_of(r, groups))
		return;
	e->groups = ap_hf_count(r, groups, AP_HF_MOST, 1);
	e->groups_active = ap_hf_count(r, actives, AP_HF_MOST, e->groups);
	if (e->count % e->groups)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, groups), "key-range",
			"%" PRId64 " groups do not divide %" PRId64 " experts", e->groups, e->count);
	else if (e->groups_active > e->groups || e->active > e->count / e->groups * e->groups_active)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, actives), "key-range", "%" PRId64
			" experts of a token do not fit into %" PRId64 " of %" PRId64 " groups", e->active,
			e->groups_active, e->groups);
	else if (e->groups == 1)
		e->groups = e->groups_active = 0;
}

static void mindformers_experts(struct ap_hf_keys *r, const struct ap_jv *section, bool legacy,
	struct ap_decoder *d)
{
	static ap_hf_keys_of counts = {"expert_num", "n_routed_experts", "num_experts", "num_moe_experts"},
		actives = {"num_experts_chosen", "num_experts_per_tok", "moe_router_topk"},
		widths = {"moe_intermediate_size", "moe_ffn_hidden_size"},
		dense = {"first_k_dense_replace"}, shared = {"moe_shared_expert_intermediate_size"},
		copies = {"shared_expert_num", "n_shared_experts"};
	struct ap_hf_keys apart = {.ctx = r->ctx, .doc = r->doc, .root = section};
	const struct ap_jv *room;
	struct ap_experts *e = &d->experts;
	bool *sparse;

	if (!ap_hf_one_of(r, counts) && section && ap_jv_type(section) == AP_JOBJECT)
		r = &apart;
	if (ap_hf_count(r, counts, AP_HF_MOST, 1) == 1)
		return;
	room = ap_hf_member(r, "capacity_factor");
	*e = (struct ap_experts){.names = !legacy ? &megatron_experts[1]
		: d->latent.key ? &ap_mindformers_deepseek_experts : &ap_mindformers_llama_experts,
		.way = AP_EXPERTS_GATHERED, .count = ap_hf_count(r, counts, AP_HF_MOST, 1),
		.active = ap_hf_count(r, actives, AP_HF_MOST, 1),
		.inner = ap_hf_count(r, widths, AP_HF_MOST, d->inner), .rescale = true,
		.activation = d->activation};
	e->shared_inner = ap_hf_one_of(r, shared) ? ap_hf_count(r, shared, AP_HF_MOST, 0)
		: ap_hf_one_of(r, copies) ? ap_hf_count(r, copies, 1 << 10, 0) * e->inner : 0;
	mindformers_choice(r, e);
	if (room && ap_jv_type(room) == AP_JNUMBER && ap_jv_double(room) > 0)
		e->capacity = ap_jv_double(room);
	if (e->capacity > 1000)
		(void)AP_HF_FAULT(r, room, "key-range", "expected at most 1000");
	if (!ap_hf_one_of(r, dense))
		return;
	sparse = AP_NEW_N(r->ctx->arena, bool, (size_t)d->layers);
	for (int64_t i = ap_hf_count(r, dense, AP_HF_LAYERS_MOST, 0); i < d->layers; i++)
		sparse[i] = true;
	d->sparse = sparse;
}

/* Does a key tell that attention is latent? */
static bool is_latent(struct ap_hf_keys *r, const struct kind *kind)
{
	return kind->latent || ap_hf_member(r, "kv_lora_rank") || ap_hf_member(r, "q_lora_rank") ||
		ap_hf_flag(r, "multi_latent_attention", false);
}

static void mindformers_latent(struct ap_hf_keys *r, bool legacy, struct ap_decoder *d)
{
	static ap_hf_keys_of plain = {"qk_nope_head_dim", "qk_head_dim"},
		turned = {"qk_rope_head_dim", "qk_pos_emb_head_dim"};

	d->latent.query = ap_hf_member(r, "q_lora_rank") ? ap_hf_count(r, (ap_hf_keys_of){"q_lora_rank"},
		AP_HF_MOST, 0) : 0;
	d->latent.key = ap_hf_count(r, (ap_hf_keys_of){"kv_lora_rank"}, AP_HF_MOST, 0);
	d->latent.turned = ap_hf_count(r, turned, AP_HF_MOST, 64);
	d->head_size = ap_hf_count(r, plain, AP_HF_MOST, 128) + d->latent.turned;
	d->value_size = ap_hf_count(r, (ap_hf_keys_of){"v_head_dim"}, AP_HF_MOST, 128);
	d->kv_heads = d->heads;
	d->names = legacy ? &ap_mindformers_deepseek : &mcore_latent_names;
	d->fused_qkv = false;
	if (d->qkv_bias)
		(void)AP_HF_FAULT(r, ap_hf_member(r, "kv_lora_rank"), "model-known",
			"latent attention with biases is not built");
	if (d->latent.turned % 2)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, turned), "key-range",
			"rotary positions turn pairs of units; expected an even number");
}

static void mindformers_block(struct ap_hf_keys *r, const struct kind *kind, bool legacy,
	struct ap_decoder *d)
{
	bool biases = kind->gpt || ap_hf_flag(r, "add_bias_linear", false);
	bool qkv = ap_hf_flag(r, "qkv_has_bias", ap_hf_flag(r, "add_qkv_bias", biases || kind->qkv_bias));
	bool normed = ap_hf_flag(r, "qk_layernorm", kind->normed);

	d->names = kind->gpt ? &ap_mindformers_gpt2 : legacy && !normed ? &ap_mindformers_llama
		: &megatron_names[1][normed];
	d->norm = kind->gpt ? AP_NORM_LAYER : AP_NORM_RMS;
	d->activation = ap_hf_activation(r, kind->gpt);
	d->qkv_bias = qkv;
	d->output_bias = ap_hf_flag(r, "attn_proj_has_bias", biases);
	d->inner_bias = biases;
	d->tied = ap_hf_flag(r, "tie_word_embeddings", kind->gpt);
	d->fused_qkv = ap_hf_flag(r, "qkv_concat", d->names->query == NULL) || !d->names->query;
	d->rotary = !kind->gpt;
	if (is_latent(r, kind))
		mindformers_latent(r, legacy, d);
	if (kind->gpt)
		d->positions = ap_hf_count(r, (ap_hf_keys_of){"max_position_embeddings", "seq_length"},
			AP_HF_MOST, 0);
}

enum ap_status ap_launched_mindformers(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_launched_options *o, struct ap_hf_net *out)
{
	static ap_hf_keys_of layers = {"num_layers", "num_hidden_layers"},
		heads = {"num_heads", "num_attention_heads"},
		kv_heads = {"n_kv_heads", "num_key_value_heads", "num_query_groups"},
		sizes = {"head_dim", "kv_channels"}, inner = {"intermediate_size", "ffn_hidden_size"},
		sequences = {"seq_length"};
	const struct ap_jv *top = ap_json_root(doc), *model = ap_jv_get(top, "model"), *v;
	const struct ap_jv *section = model && ap_jv_type(model) == AP_JOBJECT ? ap_jv_get(model,
		"model_config") : NULL, *route = ap_jv_get(top, "use_legacy");
	struct ap_hf_keys keys = {.ctx = ctx, .doc = doc, .root = section}, *r = &keys;
	bool legacy = !route || ap_jv_type(route) != AP_JBOOL || ap_jv_bool(route);
	struct ap_decoder *d = AP_NEW(ctx->arena, struct ap_decoder);
	const struct kind *kind;

	if (!section || ap_jv_type(section) != AP_JOBJECT)
		return ap_json_report(ctx, doc, top, AP_ERROR, AP_USAGE, NULL, NULL,
			"no section model.model_config says the network; expected GRAPH as well");
	*d = (struct ap_decoder){.name = o->name, .batch = o->batch, .loss = o->loss};
	kind = find_kind(r, model);
	for (size_t i = 0; i < AP_COUNT(mindformers_others); i++) {
		v = ap_hf_member(r, mindformers_others[i]);
		if (v && !(ap_jv_type(v) == AP_JBOOL && !ap_jv_bool(v)) && !(ap_jv_type(v) == AP_JNUMBER &&
			ap_jv_double(v) == 0))
			(void)AP_HF_FAULT(r, v, "model-known",
				"changes the network, and is not built; GRAPH may say it");
	}
	d->layers = ap_hf_count(r, layers, AP_HF_LAYERS_MOST, 0);
	d->hidden = ap_hf_count(r, ap_hf_hidden_keys, AP_HF_MOST, 0);
	d->heads = ap_hf_count(r, heads, AP_HF_MOST, 0);
	d->kv_heads = ap_hf_count(r, kv_heads, AP_HF_MOST, d->heads);
	d->vocabulary = ap_hf_count(r, ap_hf_vocabulary_keys, AP_HF_MOST, 0);
	if (!ap_hf_one_of(r, sizes) && !is_latent(r, kind) && d->hidden % d->heads)
		(void)AP_HF_FAULT(r, ap_hf_one_of(r, heads), "key-range",
			"%" PRId64 " heads do not divide hidden_size %" PRId64, d->heads, d->hidden);
	d->head_size = ap_hf_count(r, sizes, AP_HF_MOST, d->hidden >= d->heads ? d->hidden / d->heads : 1);
	d->inner = ap_hf_one_of(r, inner) ? ap_hf_count(r, inner, INT64_C(4) * AP_HF_MOST, 0)
		: kind->gpt ? d->hidden * ap_hf_count(r, (ap_hf_keys_of){"expand_ratio"}, 1 << 10, 4)
		: llama_inner(r, d->hidden);
	mindformers_block(r, kind, legacy, d);
	further_tokens(r, ap_hf_one_of(r, (ap_hf_keys_of){"mtp_depth", "num_nextn_predict_layers",
		"mtp_num_layers"}), d);
	mindformers_experts(r, ap_jv_get(top, "moe_config"), legacy && (d->names == &ap_mindformers_llama ||
		d->names == &ap_mindformers_deepseek), d);
	d->sequence = o->sequence ? o->sequence : ap_hf_count(r, sequences, AP_HF_MOST, 0);
	d->flash = o->flash || (!o->small && ap_hf_flag(r, "use_flash_attention", !legacy));
	v = ap_hf_member(r, "compute_dtype");
	d->dtype = o->dtype != AP_DTYPE_COUNT ? o->dtype : !v ? legacy ? AP_FLOAT16 : AP_BFLOAT16
		: ap_jv_type(v) == AP_JSTRING ? ap_dtype_find(ap_jv_str(v)) : AP_DTYPE_COUNT;
	if (d->dtype == AP_DTYPE_COUNT || !ap_dtype_is_float(d->dtype) || ap_dtype_is_float8(d->dtype)) {
		(void)AP_HF_FAULT(r, v, "key-range", "expected float16, bfloat16 or float32");
		d->dtype = AP_FLOAT16;
	}
	if (d->experts.count && d->inner_bias)
		(void)AP_HF_FAULT(r, ap_hf_member(r, "add_bias_linear"), "model-known",
			"experts with biases are not built; expected False");
	return finish(r, d, ap_hf_one_of(r, heads), ap_hf_one_of(r, sequences), out);
}
