/* SPDX-License-Identifier: Apache-2.0 */
#include "hybrid/hybrid_parse.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/choices.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/topo.h"

#define OPTION "--hybrid"

enum key_kind { NUMBER, FLAG, ALGORITHM, LAYERS, OFFSET };

static const struct key {
	const char *name, *aliases;
	enum key_kind kind;
	enum ap_hybrid_key key; /* AP_HYBRID_KEYS: none that may have several values */
} keys[] = {
	{"dp", "data_parallel", NUMBER, AP_HYBRID_DP},
	{"tp", "model_parallel mp tensor_parallel", NUMBER, AP_HYBRID_TP},
	{"pp", "pipeline_stage pipeline_stages pipeline_parallel", NUMBER, AP_HYBRID_PP},
	{"cp", "context_parallel", NUMBER, AP_HYBRID_CP},
	{"ep", "expert_parallel", NUMBER, AP_HYBRID_EP},
	{"etp", "expert_tensor_parallel", NUMBER, AP_HYBRID_ETP},
	{"vpp", "pp_interleave_num", NUMBER, AP_HYBRID_VPP},
	{"sp", "use_seq_parallel sequence_parallel", FLAG, AP_HYBRID_SP},
	{"mbs", "batch_size micro_batch_size", NUMBER, AP_HYBRID_MBS},
	{"mbn", "micro_batch_num micro_batches", NUMBER, AP_HYBRID_MICRO_BATCHES},
	{"vocab_emb_dp", "", FLAG, AP_HYBRID_VOCAB},
	{"layers", "num_layer_list", LAYERS, AP_HYBRID_KEYS},
	{"offset", "", OFFSET, AP_HYBRID_KEYS},
	{"cp_algo", "context_parallel_algo cp_comm_type", ALGORITHM, AP_HYBRID_CP_ALGO},
	{"pp_scatter", "scatter_gather_tensors_in_pipeline", FLAG, AP_HYBRID_PP_SCATTER},
};

enum { KEYS = AP_COUNT(keys) };

struct reading {
	struct ap_ctx *ctx;
	struct ap_hybrid_space *out;
	const char *given[KEYS]; /* the name used for the key; NULL: not yet given */
};

static enum ap_status say(struct ap_ctx *ctx, const char *text)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s", text);
}

#define SAY(ctx, ...) say(ctx, ap_arena_printf((ctx)->arena, __VA_ARGS__))

enum { MOST_WORD = 64 }; /* of a key's other names, with its end */

/* Copies the next word of a list; false at its end. */
static bool next_word(const char **list, char word[MOST_WORD])
{
	size_t n = strcspn(*list, " ");

	if (n == 0)
		return false;
	assert(n < MOST_WORD);
	memcpy(word, *list, n);
	word[n] = '\0';
	*list += n + ((*list)[n] == ' ');
	return true;
}

/* Edit distance of a name from the nearest name of a key. */
static int distance(const struct key *k, const char *name, int most)
{
	const char *aliases = k->aliases;
	int best = ap_str_distance(name, k->name, most);
	char word[MOST_WORD];

	while (next_word(&aliases, word)) {
		int d = ap_str_distance(name, word, most);

		best = d < best ? d : best;
	}
	return best;
}

static int find(const char *name)
{
	for (int i = 0; i < KEYS; i++)
		if (distance(&keys[i], name, 0) == 0)
			return i;
	return -1;
}

static const char *all_keys(struct ap_ctx *ctx)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (int i = 0; i < KEYS; i++)
		ap_str_addf(&s, i ? ", %s" : "%s", keys[i].name);
	return s.s;
}

static enum ap_status unknown(struct ap_ctx *ctx, const char *name)
{
	int most = strlen(name) < 4 ? 1 : 3, best = -1;

	for (int i = 0; i < KEYS; i++) {
		int d = distance(&keys[i], name, most);

		if (d <= most && (best < 0 || d < distance(&keys[best], name, most)))
			best = i;
	}
	if (best < 0)
		return SAY(ctx, OPTION ": \"%s\" is no key; %s are", ap_diag_name(ctx->diag, name),
			all_keys(ctx));
	return SAY(ctx, OPTION ": \"%s\" is no key; did you mean %s? Keys are %s",
		ap_diag_name(ctx->diag, name), keys[best].name, all_keys(ctx));
}

static const struct {
	const char *name, *aliases;
} algorithms[AP_CP_ALGOS] = {
	[AP_CP_ALL_GATHER] = {"all-gather", "allgather all_gather colossalai_cp kvallgather_cp_algo"},
	[AP_CP_RING] = {"ring", "p2p megatron_cp_algo"},
	[AP_CP_ALL_TO_ALL] = {"all-to-all", "alltoall a2a ulysses ulysses_cp ulysses_cp_algo"},
};

const char *ap_cp_algo_name(enum ap_cp_algo a)
{
	return algorithms[a].name;
}

void ap_hybrid_put(struct ap_hybrid *h, enum ap_hybrid_key key, int64_t value)
{
	static const size_t number[] = {
		[AP_HYBRID_DP] = offsetof(struct ap_hybrid, dp),
		[AP_HYBRID_TP] = offsetof(struct ap_hybrid, tp),
		[AP_HYBRID_PP] = offsetof(struct ap_hybrid, pp),
		[AP_HYBRID_CP] = offsetof(struct ap_hybrid, cp),
		[AP_HYBRID_EP] = offsetof(struct ap_hybrid, ep),
		[AP_HYBRID_ETP] = offsetof(struct ap_hybrid, etp),
		[AP_HYBRID_VPP] = offsetof(struct ap_hybrid, vpp),
		[AP_HYBRID_MBS] = offsetof(struct ap_hybrid, mbs),
		[AP_HYBRID_MICRO_BATCHES] = offsetof(struct ap_hybrid, micro_batches),
	};

	if (key == AP_HYBRID_SP)
		h->sp = value;
	else if (key == AP_HYBRID_PP_SCATTER)
		h->pp_scatter = value;
	else if (key == AP_HYBRID_VOCAB)
		h->vocab = value ? AP_VOCAB_WHOLE : AP_VOCAB_CUT;
	else if (key == AP_HYBRID_CP_ALGO)
		h->cp_algo = (enum ap_cp_algo)value;
	else
		*(int64_t *)(void *)((char *)h + number[key]) = value;
}

static bool read_flag(const char *word, int64_t *value)
{
	static const char *const words[] = {"0", "1", "false", "true", "False", "True"};

	for (size_t i = 0; i < AP_COUNT(words); i++)
		if (strcmp(word, words[i]) == 0) {
			*value = i % 2;
			return true;
		}
	return false;
}

static bool read_algorithm(const char *word, int64_t *value)
{
	for (int a = AP_CP_ALL_GATHER; a < AP_CP_ALGOS; a++) {
		const char *aliases = algorithms[a].aliases;
		bool is = strcmp(word, algorithms[a].name) == 0;
		char other[MOST_WORD];

		while (next_word(&aliases, other))
			is |= strcmp(word, other) == 0;
		if (is) {
			*value = a;
			return true;
		}
	}
	return false;
}

/* Words of a flag or an algorithm; value may be changed. */
static bool read_words(struct ap_arena *arena, enum key_kind kind, char *value, struct ap_choices *out)
{
	int64_t *v = AP_NEW_N(arena, int64_t, strlen(value) + 1);
	bool more;

	do {
		char *end = value + strcspn(value, ",");

		more = *end;
		*end = '\0';
		if (!(kind == FLAG ? read_flag : read_algorithm)(value, &v[out->n++]))
			return false;
		value = end + 1;
	} while (more);
	out->n = ap_choices_sort(v, out->n);
	out->v = v;
	return true;
}

static enum ap_status set_values(struct reading *r, const struct key *k, const char *value)
{
	static const char *const expected[] = {[FLAG] = "0 or 1 is expected",
		[ALGORITHM] = "all-gather, ring or all-to-all is expected"};
	struct ap_choices *c = &r->out->key[k->key];
	const char *why = NULL;
	bool ok = false;

	if (k->kind == NUMBER)
		ok = ap_choices_read(r->ctx->arena, value, 1, AP_MAX_DEVICES, AP_RANGE_EVERY, c, &why);
	else if (!(c->any = strcmp(value, "auto") == 0))
		ok = read_words(r->ctx->arena, k->kind, ap_arena_strdup(r->ctx->arena, value), c);
	if (!ok && !c->any)
		return SAY(r->ctx, OPTION ": %s=%s; %s", k->name, ap_diag_name(r->ctx->diag, value), why ? why
			: k->kind == NUMBER
			? ap_arena_printf(r->ctx->arena, "a number from 1 to %d is expected", AP_MAX_DEVICES)
			: expected[k->kind]);
	r->out->given[k->key] = true;
	if (!c->any)
		ap_hybrid_put(&r->out->one, k->key, c->v[0]);
	return AP_OK;
}

/* Does what follows an item belong to it, as the next of several values? */
static bool goes_on(const struct key *k, const char *rest)
{
	size_t len = strcspn(rest, "=,");

	return len && rest[len] != '=' && (k->kind == ALGORITHM || strchr("0123456789", *rest) ||
		(k->kind == FLAG && (*rest == 't' || *rest == 'f' || *rest == 'T' || *rest == 'F')));
}

/* A number of a list, or several equal ones, "1*126". Returns how many; 0: it is no such item. */
static int64_t read_run(struct ap_arena *arena, const char *item, int64_t least, int64_t *n)
{
	const char *star = strchr(item, '*');
	int64_t times = 1;

	if (star && !ap_parse_int(star + 1, 1, AP_MAX_DEVICES, &times))
		return 0;
	return ap_parse_int(star ? ap_arena_strndup(arena, item, (size_t)(star - item)) : item, least,
		AP_MAX_DEVICES, n) ? times : 0;
}

/* "7,8,8,7", of layers or, with numbers below 0 as well, of an offset; *rest: what follows the first. */
static enum ap_status set_list(struct reading *r, const struct key *k, const char *value, char **rest)
{
	struct ap_layer_cut *cut = &r->out->one.layers;
	int64_t n, least = k->kind == OFFSET ? -AP_MAX_DEVICES : 0, times;
	AP_VEC(int64_t) all = {0};

	if (cut->kind != AP_LAYERS_EVEN)
		return SAY(r->ctx, OPTION ": layers and offset contradict each other: both say how many "
			"layers a stage has");
	cut->kind = k->kind == OFFSET ? AP_LAYERS_OFFSET : AP_LAYERS_COUNTED;
	if (k->kind == LAYERS && strcmp(value, "cost") == 0) {
		cut->kind = AP_LAYERS_ANYHOW;
		return AP_OK;
	}
	for (;;) {
		times = read_run(r->ctx->arena, value, least, &n);
		if (times == 0 || times > AP_MAX_DEVICES - (int64_t)all.n)
			return SAY(r->ctx, OPTION ": %s=%s; %s is expected", k->name,
				ap_diag_name(r->ctx->diag, value), k->kind == OFFSET
				? "a number for each stage, as 0,1,0,-1,"
				: "cost, or a number for each stage, as 7,8*6,7,");
		while (times-- > 0)
			AP_PUSH(r->ctx->arena, all, n);
		if (!*rest || strcspn(*rest, "=") < strcspn(*rest, ","))
			break;
		value = *rest;
		*rest += strcspn(*rest, ",");
		*rest = **rest ? *rest + 1 : NULL;
		if (*rest)
			(*rest)[-1] = '\0';
	}
	cut->n = (uint32_t)all.n;
	cut->count = all.v;
	return AP_OK;
}

/* *rest: what follows the item; a list takes of it. */
static enum ap_status read_item(struct reading *r, char *item, char **rest)
{
	char *value = strchr(item, '=');
	int i;

	if (!value)
		return SAY(r->ctx, OPTION ": \"%s\"; a list of KEY=NUMBER is expected, as dp=8,tp=4",
			ap_diag_name(r->ctx->diag, item));
	*value++ = '\0';
	i = find(item);
	if (i < 0)
		return unknown(r->ctx, item);
	if (r->given[i])
		return SAY(r->ctx, OPTION ": %s is given twice%s", r->given[i], strcmp(r->given[i], item)
			== 0 ? "" : ap_arena_printf(r->ctx->arena, ", the second time as %s", item));
	r->given[i] = item;
	if (keys[i].kind == LAYERS || keys[i].kind == OFFSET)
		return set_list(r, &keys[i], value, rest);
	while (*rest && goes_on(&keys[i], *rest)) {
		(*rest)[-1] = ',';
		*rest += strcspn(*rest, ",");
		*rest = **rest ? *rest + 1 : NULL;
		if (*rest)
			(*rest)[-1] = '\0';
	}
	return set_values(r, &keys[i], value);
}

enum ap_status ap_hybrid_space_parse(struct ap_ctx *ctx, const char *text, struct ap_hybrid_space *out)
{
	struct reading r = {.ctx = ctx, .out = out};
	char *item = ap_arena_strdup(ctx->arena, text), *end;

	*out = (struct ap_hybrid_space){.one.layers.kind = AP_LAYERS_EVEN, .any = strcmp(text, "auto") == 0};
	while (item && !out->any) {
		end = item + strcspn(item, ",");
		if (*end)
			*end++ = '\0';
		else
			end = NULL;
		AP_TRY(read_item(&r, item, &end));
		item = end;
	}
	return AP_OK;
}

bool ap_hybrid_space_single(const struct ap_hybrid_space *space)
{
	for (int k = 0; k < AP_HYBRID_KEYS; k++)
		if (space->given[k] && space->key[k].n != 1)
			return false;
	return !space->any;
}

size_t ap_hybrid_space_count(const struct ap_hybrid_space *space)
{
	size_t n = !space->any;

	for (int k = 0; k < AP_HYBRID_KEYS; k++) {
		if (!space->given[k])
			continue;
		if (space->key[k].any)
			return 0;
		n = n * space->key[k].n <= AP_CHOICES_MOST ? n * space->key[k].n : AP_CHOICES_MOST + 1;
	}
	return n;
}

static void add_layers(struct ap_str *s, const struct ap_layer_cut *cut)
{
	if (cut->kind == AP_LAYERS_EVEN)
		return;
	ap_str_addf(s, "%s%s=%s", s->len ? "," : "", cut->kind == AP_LAYERS_OFFSET ? "offset" : "layers",
		cut->kind == AP_LAYERS_ANYHOW ? "cost" : "");
	for (uint32_t i = 0; i < cut->n; i++)
		ap_str_addf(s, "%s%" PRId64, i ? "," : "", cut->count[i]);
}

const char *ap_hybrid_space_at(struct ap_arena *arena, const struct ap_hybrid_space *space, size_t i)
{
	int64_t value[AP_HYBRID_KEYS];
	struct ap_str s;

	for (int k = AP_HYBRID_KEYS - 1; k >= 0; k--)
		if (space->given[k]) {
			value[k] = space->key[k].v[i % space->key[k].n];
			i /= space->key[k].n;
		}
	ap_str_init(&s, arena);
	for (int k = 0; k < KEYS; k++) {
		enum ap_hybrid_key key = keys[k].key;

		if (key == AP_HYBRID_KEYS || !space->given[key])
			continue;
		ap_str_addf(&s, "%s%s=", s.len ? "," : "", keys[k].name);
		if (key == AP_HYBRID_CP_ALGO)
			ap_str_add(&s, ap_cp_algo_name((enum ap_cp_algo)value[key]));
		else
			ap_str_addf(&s, "%" PRId64, value[key]);
	}
	add_layers(&s, &space->one.layers);
	return s.s;
}

enum ap_status ap_hybrid_parse(struct ap_ctx *ctx, const char *text, struct ap_hybrid *out)
{
	struct ap_hybrid_space space;

	AP_TRY(ap_hybrid_space_parse(ctx, text, &space));
	*out = space.one;
	if (!ap_hybrid_space_single(&space))
		return SAY(ctx, OPTION " %s: one value of each key is expected",
			ap_diag_name(ctx->diag, text));
	return AP_OK;
}

static int64_t or_one(int64_t n)
{
	return n ? n : 1;
}

int64_t ap_hybrid_expert_stride(const struct ap_hybrid *h)
{
	int64_t inner = h->cp * h->tp;

	if (h->etp == 1 && h->tp > 1)
		return inner * h->dp % h->ep == 0 && h->ep % inner == 0;
	if (h->cp * h->dp % h->ep == 0 && h->ep % h->cp == 0)
		return h->tp;
	return h->dp % h->ep == 0 ? inner : 0;
}

static enum ap_status refuse_experts(struct ap_ctx *ctx, const struct ap_hybrid *h)
{
	const char *whole = ap_arena_printf(ctx->arena, "a divisor of dp x cp x tp=%" PRId64
		" that cp x tp=%" PRId64 " divides", h->dp * h->cp * h->tp, h->cp * h->tp);

	if (h->etp == 1)
		return SAY(ctx, OPTION ": ep=%" PRId64 " with etp=1; %s is expected", h->ep, whole);
	return SAY(ctx, OPTION ": ep=%" PRId64 "; a divisor of dp=%" PRId64 " is expected%s%s%s", h->ep,
		h->dp, h->cp == 1 ? "" : ap_arena_printf(ctx->arena, ", or a divisor of dp x cp=%" PRId64
			" that cp=%" PRId64 " divides", h->dp * h->cp, h->cp),
		h->etp || h->tp == 1 ? "" : ", or, for whole experts, ",
		h->etp || h->tp == 1 ? "" : whole);
}

static enum ap_status check_parts(struct ap_ctx *ctx, const struct ap_hybrid *h)
{
	if (h->etp > 1 && h->etp != h->tp)
		return SAY(ctx, OPTION ": etp=%" PRId64 "; 1, for whole experts, or tp=%" PRId64
			" is expected", h->etp, h->tp);
	if (ap_hybrid_expert_stride(h) == 0)
		return refuse_experts(ctx, h);
	if (h->vpp > 1 && h->pp == 1)
		return SAY(ctx, OPTION ": vpp=%" PRId64 " without a pipeline; pp above 1 is expected",
			h->vpp);
	if (h->pp == 1 && h->layers.kind > AP_LAYERS_EVEN)
		return SAY(ctx, OPTION ": %s without a pipeline; pp above 1 is expected",
			h->layers.kind == AP_LAYERS_OFFSET ? "offset" : "layers");
	return AP_OK;
}

enum ap_status ap_hybrid_fill(struct ap_ctx *ctx, int64_t devices, struct ap_hybrid *h)
{
	int64_t model;

	h->tp = or_one(h->tp);
	h->cp = or_one(h->cp);
	h->pp = or_one(h->pp);
	h->ep = or_one(h->ep);
	h->vpp = or_one(h->vpp);
	if (!ap_product((const int64_t[]){h->tp, h->cp, h->pp}, 3, &model) || devices % model)
		return SAY(ctx, OPTION ": tp=%" PRId64 " x cp=%" PRId64 " x pp=%" PRId64
			" does not divide the %" PRId64 " devices", h->tp, h->cp, h->pp, devices);
	if (h->dp && h->dp != devices / model)
		return SAY(ctx, OPTION ": dp=%" PRId64 " x tp=%" PRId64 " x cp=%" PRId64 " x pp=%" PRId64
			" is not the number of devices, %" PRId64 "; dp=%" PRId64 " is what they leave",
			h->dp, h->tp, h->cp, h->pp, devices, devices / model);
	h->dp = devices / model;
	if (!h->etp && ap_hybrid_expert_stride(h) == 0) { /* whole experts, where only they can be dealt so */
		h->etp = 1;
		h->etp = ap_hybrid_expert_stride(h) == 1;
	}
	return check_parts(ctx, h);
}

enum ap_status ap_hybrid_step(struct ap_ctx *ctx, const struct ap_hybrid *h, int64_t batch,
	int64_t *micro_batches)
{
	enum { MICRO_BATCHES_MOST = 1 << 20 };
	int64_t n = h->micro_batches ? h->micro_batches : *micro_batches;

	if (h->mbs) {
		if (batch == 0 || batch % h->dp || batch / h->dp % h->mbs)
			return SAY(ctx, OPTION ": dp=%" PRId64 " x mbs=%" PRId64
				" does not divide the batch of %" PRId64, h->dp, h->mbs, batch);
		n = batch / h->dp / h->mbs;
		if (n > MICRO_BATCHES_MOST)
			return SAY(ctx, OPTION ": dp=%" PRId64 " x mbs=%" PRId64 " makes %" PRId64
				" micro-batches of the batch of %" PRId64 "; at most %d are planned", h->dp,
				h->mbs, n, batch, MICRO_BATCHES_MOST);
	}
	if (h->micro_batches && n != h->micro_batches)
		return SAY(ctx, OPTION ": mbn=%" PRId64 ", but a batch of %" PRId64 " is %" PRId64
			" micro-batches of dp=%" PRId64 " x mbs=%" PRId64, h->micro_batches, batch, n,
			h->dp, h->mbs);
	*micro_batches = n;
	return AP_OK;
}

const char *ap_hybrid_degrees(struct ap_ctx *ctx, const struct ap_hybrid *h)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	ap_str_addf(&s, "dp=%" PRId64 ",tp=%" PRId64, h->dp, h->tp);
	if (h->cp > 1)
		ap_str_addf(&s, ",cp=%" PRId64, h->cp);
	if (h->ep > 1)
		ap_str_addf(&s, ",ep=%" PRId64, h->ep);
	if (h->sp)
		ap_str_addf(&s, ",sp=1");
	return s.s;
}
