/* SPDX-License-Identifier: Apache-2.0 */
#include "model/megatron.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

struct list {
	struct ap_arena *arena;
	const char **v;
	size_t n, cap;
};

static void add(struct list *l, const char *word)
{
	AP_PUSH(l->arena, *l, word);
}

static void number(struct list *l, const char *name, int64_t value)
{
	add(l, ap_arena_printf(l->arena, "--%s %" PRId64, name, value));
}

static void flag(struct list *l, const char *word, bool on)
{
	if (on)
		add(l, word);
}

static bool has_window(const struct ap_decoder *d)
{
	for (int64_t i = 0; d->window && i < d->layers; i++)
		if (d->window[i])
			return true;
	return false;
}

/* Is there something about it that no argument says? */
static bool is_foreign(const struct ap_decoder *d)
{
	const struct ap_decoder_names *n = d->names;
	bool latent = d->latent.key > 0;

	return d->parallel || d->head_bias || has_window(d) || d->norm == AP_NORM_LAYER_PLAIN ||
		(!d->rotary && !d->positions) || n->embedding_norm || n->sinks || n->post1 || n->post2 ||
		d->activation == AP_MODEL_RELU || d->activation == AP_MODEL_GEGLU ||
		d->output_bias != d->inner_bias || (d->inner_bias && !latent && !d->qkv_bias) ||
		(latent ? !d->rotary || d->inner_bias : d->value_size && d->value_size != d->head_size) ||
		(n->query_norm == NULL) != (n->key_norm == NULL) || (d->experts.count && (d->inner_bias ||
		d->experts.bias || d->experts.activation != d->activation)) ||
		(d->experts.score == AP_EXPERTS_SIGMOID && !d->experts.rescale) ||
		(d->dtype != AP_BFLOAT16 && d->dtype != AP_FLOAT16 && d->dtype != AP_FLOAT32);
}

static void add_attention(struct list *l, const struct ap_decoder *d)
{
	number(l, "num-attention-heads", d->heads);
	if (d->latent.key) {
		add(l, "--multi-latent-attention");
		if (d->latent.query)
			number(l, "q-lora-rank", d->latent.query);
		number(l, "kv-lora-rank", d->latent.key);
		number(l, "qk-head-dim", d->head_size - d->latent.turned);
		number(l, "qk-pos-emb-head-dim", d->latent.turned);
		number(l, "v-head-dim", d->value_size ? d->value_size : d->head_size);
		flag(l, "--qk-layernorm", d->names->key_low_norm);
	} else {
		if (d->kv_heads != d->heads)
			add(l, ap_arena_printf(l->arena,
			"--group-query-attention --num-query-groups %" PRId64,
				d->kv_heads));
		if (d->head_size * d->heads != d->hidden)
			number(l, "kv-channels", d->head_size);
		flag(l, "--add-qkv-bias", d->qkv_bias && !d->inner_bias);
		flag(l, "--qk-layernorm", d->names->query_norm);
	}
	flag(l, "--attention-backend unfused", !d->flash);
	number(l, "seq-length", d->sequence);
	number(l, "max-position-embeddings", d->positions ? d->positions : d->sequence);
	add(l, d->rotary ? "--position-embedding-type rope" : "--position-embedding-type learned_absolute");
}

/* Layers with experts as sums of lists: '([0]*3+[1]*58)'. */
static void add_sparse(struct list *l, const struct ap_decoder *d)
{
	struct ap_str s;
	bool all = true;

	ap_str_init(&s, l->arena);
	ap_str_add(&s, "--moe-layer-freq '(");
	for (int64_t i = 0, run; d->sparse && i < d->layers; i += run) {
		for (run = 1; i + run < d->layers && d->sparse[i + run] == d->sparse[i]; run++)
			;
		ap_str_addf(&s, "%s[%d]*%" PRId64, i ? "+" : "", d->sparse[i], run);
		all &= d->sparse[i];
	}
	ap_str_add(&s, ")'");
	flag(l, s.s, !all);
}

static void add_experts(struct list *l, const struct ap_decoder *d)
{
	const struct ap_experts *e = &d->experts;
	char buf[32];

	if (!e->count)
		return;
	number(l, "num-experts", e->count);
	number(l, "moe-router-topk", e->active);
	number(l, "moe-ffn-hidden-size", e->inner);
	add_sparse(l, d);
	if (e->shared_inner)
		number(l, "moe-shared-expert-intermediate-size", e->shared_inner);
	flag(l, "--moe-shared-expert-gate", e->shared_inner && e->shared_gate);
	flag(l, "--moe-shared-expert-overlap", e->shared_inner && e->shared_beside);
	flag(l, "--moe-router-score-function sigmoid", e->score == AP_EXPERTS_SIGMOID);
	flag(l, "--moe-router-pre-softmax", !e->rescale);
	flag(l, "--moe-router-enable-expert-bias", e->selection_bias);
	if (e->groups) {
		number(l, "moe-router-num-groups", e->groups);
		number(l, "moe-router-group-topk", e->groups_active);
	}
	if (e->capacity > 0)
		add(l, ap_arena_printf(l->arena, "--moe-expert-capacity-factor %s "
			"--moe-pad-expert-input-to-capacity", ap_format_double(e->capacity, buf)));
}

/* A tokenizer adds one word; what is then padded is the vocabulary itself, where tp divides that. */
static void add_vocabulary(struct list *l, int64_t vocabulary, int64_t tp)
{
	int64_t step = 128;

	while (step > 1 && vocabulary % (step * tp))
		step /= 2;
	number(l, "make-vocab-size-divisible-by", step);
	number(l, "vocab-size", step * tp > 1 && vocabulary % (step * tp) == 0 ? vocabulary - 1 : vocabulary);
}

struct ap_megatron_words ap_megatron_of_decoder(struct ap_arena *arena, const struct ap_decoder *d,
	int64_t tp)
{
	struct list l = {.arena = arena};

	if (is_foreign(d))
		return (struct ap_megatron_words){0};
	number(&l, "num-layers", d->layers);
	if (d->further)
		number(&l, "mtp-num-layers", d->further);
	number(&l, "hidden-size", d->hidden);
	number(&l, "ffn-hidden-size", d->inner);
	flag(&l, "--swiglu", d->activation == AP_MODEL_SWIGLU);
	flag(&l, "--squared-relu", d->activation == AP_MODEL_SQUARED_RELU);
	add(&l, d->norm == AP_NORM_LAYER ? "--normalization LayerNorm" : "--normalization RMSNorm");
	flag(&l, "--disable-bias-linear", !d->inner_bias);
	flag(&l, "--untie-embeddings-and-output-weights", !d->tied);
	flag(&l, "--bf16", d->dtype == AP_BFLOAT16);
	flag(&l, "--fp16", d->dtype == AP_FLOAT16);
	add_attention(&l, d);
	add_experts(&l, d);
	add_vocabulary(&l, d->vocabulary, tp);
	return (struct ap_megatron_words){l.v, (uint32_t)l.n};
}

struct ap_megatron_words ap_megatron_of_sizes(struct ap_arena *arena, const struct ap_decoder *d, int64_t tp)
{
	const struct {
		const char *name;
		int64_t value;
	} sizes[] = {{"num-layers", d->layers}, {"hidden-size", d->hidden}, {"ffn-hidden-size", d->inner},
		{"num-attention-heads", d->heads}, {"seq-length", d->sequence},
		{"max-position-embeddings", d->positions ? d->positions : d->sequence},
		{"kv-channels", d->head_size * d->heads == d->hidden ? 0 : d->head_size},
		{"num-experts", d->experts.count}, {"moe-router-topk", d->experts.active},
		{"moe-ffn-hidden-size", d->experts.inner}};
	struct list l = {.arena = arena};

	for (size_t i = 0; i < AP_COUNT(sizes); i++)
		if (sizes[i].value)
			number(&l, sizes[i].name, sizes[i].value);
	if (d->kv_heads != d->heads)
		add(&l, ap_arena_printf(arena, "--group-query-attention --num-query-groups %" PRId64,
			d->kv_heads));
	if (d->vocabulary)
		add_vocabulary(&l, d->vocabulary, tp);
	return (struct ap_megatron_words){l.v, (uint32_t)l.n};
}
