/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hf_keys.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"

ap_hf_keys_of ap_hf_hidden_keys = {"hidden_size", "n_embd", "n_embed", "d_model"};
ap_hf_keys_of ap_hf_layer_keys = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
ap_hf_keys_of ap_hf_head_keys = {"num_attention_heads", "n_head", "n_heads", "num_heads"};
ap_hf_keys_of ap_hf_kv_head_keys = {"num_key_value_heads", "num_kv_heads", "n_head_kv",
	"multi_query_group_num"};
ap_hf_keys_of ap_hf_head_size_keys = {"head_dim", "kv_channels", "d_kv"};
ap_hf_keys_of ap_hf_inner_keys = {"intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size"};
ap_hf_keys_of ap_hf_vocabulary_keys = {"vocab_size", "padded_vocab_size"};
ap_hf_keys_of ap_hf_position_keys = {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
	"n_ctx"};
ap_hf_keys_of ap_hf_expert_keys = {"num_local_experts", "num_experts", "n_routed_experts"};
ap_hf_keys_of ap_hf_active_keys = {"num_experts_per_tok", "experts_per_token"};
ap_hf_keys_of ap_hf_activation_keys = {"hidden_activation", "hidden_act", "activation_function",
	"activation"};

/* ---- values ---- */

const struct ap_jv *ap_hf_member(struct ap_hf_keys *r, const char *key)
{
	const struct ap_jv *v = ap_jv_get(r->root, key);

	AP_PUSH(r->ctx->arena, r->asked, key);
	return v && ap_jv_type(v) != AP_JNULL ? v : NULL;
}

const struct ap_jv *ap_hf_one_of(struct ap_hf_keys *r, const char *const *keys)
{
	const struct ap_jv *found = NULL;
	int64_t a, b;

	for (; *keys; keys++) {
		const struct ap_jv *v = ap_hf_member(r, *keys);

		if (v && found && ap_jv_int(r->doc, v, &a) && ap_jv_int(r->doc, found, &b) && a != b)
			(void)AP_HF_FAULT(r, v, "key-conflict", "contradicts \"%s\", which is %" PRId64,
				ap_jv_key(found), b);
		found = found ? found : v;
	}
	return found;
}

/* The keys beside the first, for a message. */
static const char *other_names(struct ap_hf_keys *r, const char *const *keys)
{
	struct ap_str s;

	ap_str_init(&s, r->ctx->arena);
	for (size_t i = 1; keys[i]; i++)
		ap_str_addf(&s, "%s\"%s\"%s", i == 1 ? " (or " : ", ", keys[i], keys[i + 1] ? "" : ")");
	return s.s;
}

int64_t ap_hf_count(struct ap_hf_keys *r, const char *const *keys, int64_t most, int64_t otherwise)
{
	const struct ap_jv *found = ap_hf_one_of(r, keys);
	int64_t n, first = 0;

	if (!found && !otherwise)
		(void)AP_HF_FAULT(r, r->root, "key-missing",
			"no key \"%s\"%s, or null; expected an integer from 1 to %" PRId64, keys[0],
			other_names(r, keys), most);
	for (; found && *keys; keys++) {
		const struct ap_jv *v = ap_hf_member(r, *keys);

		if (!v)
			continue;
		if (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(r->doc, v, &n))
			(void)AP_HF_FAULT(r, v, "key-type", "expected an integer from 1 to %" PRId64, most);
		else if (n < 1 || n > most)
			(void)AP_HF_FAULT(r, v, "key-range",
				"expected an integer from 1 to %" PRId64 ", got %" PRId64, most, n);
		else
			first = first ? first : n;
	}
	return first ? first : found || !otherwise ? 1 : otherwise;
}

bool ap_hf_flag(struct ap_hf_keys *r, const char *key, bool otherwise)
{
	const struct ap_jv *v = ap_hf_member(r, key);

	if (v && ap_jv_type(v) != AP_JBOOL)
		(void)AP_HF_FAULT(r, v, "key-type", "expected true or false");
	return v && ap_jv_type(v) == AP_JBOOL ? ap_jv_bool(v) : otherwise;
}

const char *ap_hf_word(struct ap_hf_keys *r, const char *key, const char *const *words, int otherwise)
{
	const struct ap_jv *v = ap_hf_member(r, key);
	struct ap_str all;

	if (!v)
		return words[otherwise];
	ap_str_init(&all, r->ctx->arena);
	for (const char *const *w = words; *w; w++) {
		if (ap_jv_type(v) == AP_JSTRING && !strcmp(ap_jv_str(v), *w))
			return *w;
		ap_str_addf(&all, "%s\"%s\"", w == words ? "" : w[1] ? ", " : " or ", *w);
	}
	(void)AP_HF_FAULT(r, v, "key-range", "expected %s", all.s);
	return words[0];
}

void ap_hf_want(struct ap_hf_keys *r, const char *key, bool value, const char *otherwise)
{
	const struct ap_jv *v = ap_hf_member(r, key);

	if (ap_hf_flag(r, key, value) != value)
		(void)AP_HF_FAULT(r, v, "model-known", "%s is not built; expected %s", otherwise,
			value ? "true"
			: "false");
}

enum ap_status ap_hf_sequence(struct ap_hf_keys *r, const struct ap_hf_options *o, int64_t otherwise,
	bool learned, int64_t *out)
{
	int64_t limit = ap_hf_count(r, ap_hf_position_keys, INT64_C(1) << 40, otherwise);

	*out = o->sequence ? o->sequence : limit;
	AP_TRY(ap_diag_status(r->ctx->diag));
	if (!o->sequence && limit > AP_HF_SEQUENCE_MOST)
		return ap_json_report(r->ctx, r->doc, ap_hf_one_of(r, ap_hf_position_keys), AP_ERROR,
			AP_USAGE, NULL,
			NULL,
			"the model takes up to %" PRId64
			" tokens; --sequence has to say how many a sample has", limit);
	if (!o->sequence)
		return ap_json_report(r->ctx, r->doc, ap_hf_one_of(r, ap_hf_position_keys), AP_NOTE, AP_OK,
			NULL, NULL,
			"--sequence is not given: a sample has the %" PRId64
			" tokens that the model takes at most",
			limit);
	if (o->sequence > limit && learned)
		return ap_json_report(r->ctx, r->doc, ap_hf_one_of(r, ap_hf_position_keys), AP_ERROR,
			AP_USAGE, NULL,
			NULL, "--sequence %" PRId64 " is more than the %" PRId64
			" positions that the model learns",
			o->sequence, limit);
	if (o->sequence > limit)
		return ap_json_report(r->ctx, r->doc, ap_hf_one_of(r, ap_hf_position_keys), AP_WARNING,
			AP_OK, NULL, NULL,
			"--sequence %" PRId64 " is more than the %" PRId64 " tokens that the model takes",
			o->sequence,
			limit);
	return AP_OK;
}

enum ap_model_activation ap_hf_activation(struct ap_hf_keys *r, bool plain)
{
	const struct ap_jv *v = ap_hf_one_of(r, ap_hf_activation_keys), *other;
	const char *name = !v ? plain ? "gelu" : "silu" : ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : "";

	for (const char *const *key = ap_hf_activation_keys; *key; key++) {
		other = ap_hf_member(r, *key);
		if (other && other != v && ap_jv_type(other) != AP_JSTRING)
			(void)AP_HF_FAULT(r, other, "key-type", "expected the name of an activation");
	}
	if (!strncmp(name, "gelu", 4))
		return plain ? AP_MODEL_GELU : AP_MODEL_GEGLU;
	if (plain && !strcmp(name, "relu"))
		return AP_MODEL_RELU;
	if (plain || (strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0))
		(void)AP_HF_FAULT(r, v, "key-range", plain ? "expected \"gelu\" or \"relu\""
			: "expected \"silu\" or \"gelu\"");
	return plain ? AP_MODEL_GELU : AP_MODEL_SWIGLU;
}

/* What asks for the products that a configuration's weights were made for. */
static const char *in_8_bits(const struct ap_jv *quantized)
{
	const struct ap_jv *method = ap_jv_get(quantized, "quant_method");

	if (!method || ap_jv_type(method) != AP_JSTRING || strcmp(ap_jv_str(method), "fp8") != 0)
		return "";
	return ap_jv_get(quantized, "weight_block_size")
		? ", and --fp8-format e4m3 --fp8-recipe blockwise for products in 8 bits"
		: ", and --fp8-format e4m3 --fp8-recipe tensorwise for products in 8 bits";
}

enum ap_status ap_hf_no_masks(struct ap_hf_keys *r)
{
	return ap_json_report(r->ctx, r->doc, NULL, AP_ERROR, AP_USAGE, NULL, NULL,
		"--masked-positions: the model predicts no masked words, as BertForMaskedLM and "
		"BertForPreTraining do");
}

enum ap_status ap_hf_dtype(struct ap_hf_keys *r, const struct ap_hf_options *o, enum ap_dtype *out)
{
	const struct ap_jv *v = ap_hf_one_of(r, (ap_hf_keys_of){"torch_dtype", "dtype"});
	const struct ap_jv *quantized = ap_hf_member(r, "quantization_config");
	enum ap_dtype t = v && ap_jv_type(v) == AP_JSTRING ? ap_dtype_find(ap_jv_str(v)) : AP_DTYPE_COUNT;

	*out = o->dtype;
	if (o->dtype != AP_DTYPE_COUNT)
		return AP_OK;
	if (quantized)
		return AP_HF_FAULT(r, quantized, "model-known",
			"quantized weights are not trained; give --dtype for the type "
			"of weights and activations%s", in_8_bits(quantized));
	*out = v ? t : AP_BFLOAT16;
	if (v && (t == AP_DTYPE_COUNT || !ap_dtype_is_float(t) || ap_dtype_is_float8(t)))
		return AP_HF_FAULT(r, v, "key-range", "expected \"float16\", \"bfloat16\" or \"float32\"");
	return v ? AP_OK : ap_json_report(r->ctx, r->doc, r->root, AP_NOTE, AP_OK, NULL, NULL,
		"no torch_dtype: weights and activations are taken as bfloat16; --dtype says otherwise");
}

/* ---- keys that nobody asked for ---- */

enum form { ANY, FLAG, NUMBER, WORD, OBJECT }; /* NUMBER: not negative */

struct idle {
	const char *key;
	enum form form;
};

/* Keys that change no shape, and keys that end so. */
static const struct idle whole[] = {
	{"architectures", ANY}, {"auto_map", ANY}, {"bos_token_id", ANY},
	{"cache_implementation", ANY}, {"chunk_size_feed_forward", NUMBER},
	{"decoder_start_token_id", ANY}, {"initializer_factor", NUMBER},
	{"initializer_range", NUMBER}, {"is_decoder", FLAG}, {"is_encoder_decoder", FLAG},
	{"layer_norm_eps", NUMBER}, {"layer_norm_epsilon", NUMBER}, {"max_length", ANY},
	{"max_window_layers", NUMBER}, {"num_beam_groups", ANY}, {"num_beams", ANY},
	{"num_return_sequences", ANY}, {"original_max_position_embeddings", NUMBER},
	{"output_router_logits", FLAG}, {"partial_rotary_factor", NUMBER},
	{"pretraining_tp", NUMBER}, {"problem_type", ANY}, {"rms_norm_eps", NUMBER},
	{"rope_parameters", OBJECT}, {"rope_scaling", OBJECT}, {"rope_theta", NUMBER},
	{"rotary_pct", NUMBER}, {"router_aux_loss_coef", NUMBER}, {"router_jitter_noise", NUMBER},
	{"routed_scaling_factor", NUMBER}, {"norm_topk_prob", FLAG}, {"task_specific_params", ANY},
	{"top_k", ANY}, {"top_p", ANY}, {"torchscript", FLAG}, {"transformers_version", WORD},
	{"use_cache", FLAG}, {"tokenizer_class", ANY}, {"min_length", ANY},
	{"no_repeat_ngram_size", ANY}, {"encoder_no_repeat_ngram_size", ANY},
	{"num_labels", NUMBER}, {"id2label", ANY}, {"label2id", ANY}, {"quantization_config", ANY},
	{"model_max_length", ANY}, {"num_logits_to_keep", ANY}, {"z_loss_weight", NUMBER},
	{"gradient_checkpointing", FLAG}, {"attn_implementation", ANY}, {"use_flash_attn", FLAG},
	{"apply_residual_connection_post_layernorm", FLAG}, {"attention_softmax_in_fp32", FLAG},
	{"bias_dropout_fusion", FLAG}, {"masked_softmax_fusion", FLAG}, {"offset_alibi", ANY},
	{"skip_bias_add", FLAG}, {"skip_bias_add_qkv", FLAG}, {"init_config", OBJECT},
	{"init_device", WORD}, {"layerdrop", NUMBER}, {"hidden_dropout", NUMBER},
	{"norm_type", WORD}, {"attention_probs_dropout_prob", NUMBER}, {"scale_attn_weights", FLAG},
	{"scale_attn_by_inverse_layer_idx", FLAG}, {"reorder_and_upcast_attn", FLAG},
	{"query_pre_attn_scalar", NUMBER}, {"attn_logit_softcapping", NUMBER},
	{"final_logit_softcapping", NUMBER}, {"sliding_window_size", NUMBER},
	{"sliding_window_pattern", NUMBER}, {"layernorm_epsilon", NUMBER},
	{"apply_query_key_layer_scaling", FLAG}, {"fp32_residual_connection", FLAG},
	{"original_rope", FLAG}},
	ends[] = {{"_token_id", ANY}, {"_dropout", NUMBER}, {"_pdrop", NUMBER}, {"_dropout_prob", NUMBER},
	{"_eps", NUMBER}, {"_epsilon", NUMBER}, {"_theta", NUMBER}, {"_index", ANY}, {"_std", NUMBER}};

/* The row of a key that changes no shape; NULL if it is none. A private one has no row of its own. */
static const struct idle *idle_of(const char *key)
{
	static const struct idle private = {"", ANY};
	size_t len = strlen(key);

	if (*key == '_')
		return &private;
	for (size_t i = 0; i < AP_COUNT(whole); i++)
		if (!strcmp(whole[i].key, key))
			return &whole[i];
	for (size_t i = 0; i < AP_COUNT(ends); i++)
		if (len > strlen(ends[i].key) && !strcmp(key + len - strlen(ends[i].key), ends[i].key))
			return &ends[i];
	return NULL;
}

static void check_form(struct ap_hf_keys *r, const struct ap_jv *v, enum form form)
{
	enum ap_jtype is = ap_jv_type(v);

	if (is == AP_JNULL)
		return;
	if (form == FLAG && is != AP_JBOOL)
		(void)AP_HF_FAULT(r, v, "key-type", "expected true or false");
	else if (form == NUMBER && (is != AP_JNUMBER || ap_jv_double(v) < 0))
		(void)AP_HF_FAULT(r, v, is == AP_JNUMBER ? "key-range" : "key-type",
			"expected a number from 0");
	else if (form == WORD && is != AP_JSTRING)
		(void)AP_HF_FAULT(r, v, "key-type", "expected a text");
	else if (form == OBJECT && is != AP_JOBJECT)
		(void)AP_HF_FAULT(r, v, "key-type", "expected an object");
}

/* Does a key that nobody knows look like one that changes shapes or operators? */
static bool is_shape(const char *key)
{
	static const char *const parts[] = {"_size", "_dim", "_rank", "head", "layer", "num_", "expert",
		"pattern", "config", "bias", "norm", "index_", "compress", "hybrid", "linear", "block",
		"mtp", "moe", "lora", "hidden", "attention", "attn", "ssm", "mamba", "conv", "vision",
		"adapter", "sparse"};

	for (size_t i = 0; i < AP_COUNT(parts); i++)
		if (strstr(key, parts[i]))
			return true;
	return !strncmp(key, "n_", 2);
}

static bool was_asked(const struct ap_hf_keys *r, const char *key)
{
	for (size_t i = 0; i < r->asked.n; i++)
		if (!strcmp(r->asked.v[i], key))
			return true;
	return false;
}

/* Says this value that a thing is absent? */
static bool is_off(const struct ap_json *doc, const struct ap_jv *v)
{
	int64_t n;

	switch (ap_jv_type(v)) {
	case AP_JNULL:
		return true;
	case AP_JBOOL:
		return !ap_jv_bool(v);
	case AP_JNUMBER:
		return ap_jv_int(doc, v, &n) && n == 0;
	case AP_JARRAY:
	case AP_JOBJECT:
		return !ap_jv_count(v);
	default:
		return false;
	}
}

void ap_hf_check_rest(struct ap_hf_keys *r)
{
	for (const struct ap_jv *v = ap_jv_first(r->root); v; v = ap_jv_next(v)) {
		const char *key = ap_jv_key(v);
		const struct idle *idle = idle_of(key);

		if (idle)
			check_form(r, v, idle->form);
		else if (!was_asked(r, key) && is_shape(key) && !is_off(r->doc, v))
			(void)AP_HF_FAULT(r, v, "key-known",
				"the key \"%s\" is not understood for %s, and may change shapes",
				ap_diag_name(r->ctx->diag, key), ap_diag_name(r->ctx->diag, r->type));
	}
}
