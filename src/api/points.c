/* SPDX-License-Identifier: Apache-2.0 */
#include "api/points.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "api/settle.h"
#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/bundle_marks.h"
#include "cost/float8.h"
#include "cost/recompute.h"
#include "graph/again.h"
#include "graph/family.h"
#include "pipeline/schedule.h"
#include "route/route.h"

enum { LEAST_TOKENS = 4096 }; /* of a rank, unless a number of parts of the sequence is asked for */

/* What a setting may be; n 0: it is not given, or auto. */
static struct ap_choices choices(struct ap_ctx *ctx, const struct ap_settings *set, enum ap_setting_id id,
	int64_t value)
{
	if (!ap_setting_given(set, id))
		return (struct ap_choices){.any = true};
	if (set->among[id])
		return *set->among[id];
	return (struct ap_choices){.n = 1, .v = ap_arena_memdup(ctx->arena, &value, sizeof value)};
}

/* Rows of schedulers.def; --pipeline-interleave says which of them. */
static struct ap_choices schedulers(struct ap_ctx *ctx, const struct ap_settings *set)
{
	static const int64_t plain[] = {AP_SCHEDULER_1F1B}, interleaved[] = {AP_SCHEDULER_INTERLEAVED};

	if (ap_setting_given(set, AP_SET_pipeline_interleave) &&
		(!ap_setting_given(set, AP_SET_pipeline_scheduler) || set->pipeline_interleave))
		return (struct ap_choices){.n = 1, .v = set->pipeline_interleave ? interleaved : plain};
	return choices(ctx, set, AP_SET_pipeline_scheduler, set->pipeline_scheduler);
}

/* Levels of what is dealt; n 0: those of the executor. */
static struct ap_choices levels(struct ap_ctx *ctx, const struct ap_settings *set)
{
	static const int64_t all[] = {0, 1, 2, 3};
	struct ap_choices c = choices(ctx, set, AP_SET_optimizer_level, set->optimizer_level);
	int64_t *v = AP_NEW_N(ctx->arena, int64_t, c.n);

	if (!ap_setting_given(set, AP_SET_optimizer_level) &&
		ap_setting_given(set, AP_SET_enable_parallel_optimizer))
		return set->enable_parallel_optimizer ? (struct ap_choices){.n = 3, .v = all + 1}
			: (struct ap_choices){.n = 1, .v = all};
	for (size_t i = 0; i < c.n; i++)
		v[i] = ap_setting_level((int)c.v[i]);
	c.n = ap_choices_sort(v, c.n);
	c.v = v;
	return c;
}

/* Leaves those of the given levels that the executor can be told. AP_USAGE, reported: there are none.
 * Parameters that shall not be dealt stay whole whatever it says. */
static enum ap_status say_levels(struct ap_ctx *ctx, const struct ap_settings *set,
	struct ap_decision_space *s)
{
	static const char *const words[] = {"none", "level1", "level2", "level3"};
	enum ap_setting_id by = ap_setting_given(set, AP_SET_optimizer_level) ? AP_SET_optimizer_level
		: AP_SET_enable_parallel_optimizer;
	int64_t *v = AP_NEW_N(ctx->arena, int64_t, s->level.n);
	struct ap_str expected;
	size_t n = 0;

	if (s->level.n == 0 || (by == AP_SET_enable_parallel_optimizer && !set->enable_parallel_optimizer))
		return AP_OK;
	for (size_t i = 0; i < s->level.n; i++)
		if (s->language->levels >> s->level.v[i] & 1)
			v[n++] = s->level.v[i];
	s->level.v = v;
	s->level.n = n;
	if (n > 0)
		return AP_OK;
	ap_str_init(&expected, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(words); i++)
		if (s->language->levels >> i & 1)
			ap_str_addf(&expected, "%s%s", expected.len ? ", " : "", words[i]);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "plan",
		"%s: %s cannot be told to deal parameters like that; expected %s",
		ap_setting_said(ctx, set, by), s->language->route, expected.s);
}

/* Ranks that a parameter is dealt to; -1: all. */
static struct ap_choices shards(struct ap_ctx *ctx, const struct ap_settings *set)
{
	return choices(ctx, set, AP_SET_optimizer_weight_shard_size, set->optimizer_weight_shard_size);
}

/* Devices of blocks of links, those of all devices left out. */
static const int64_t *blocks(struct ap_ctx *ctx, const struct ap_machine *m, size_t *n)
{
	int64_t *v = AP_NEW_N(ctx->arena, int64_t, m->nlevel);

	for (int l = 0; l < m->nlevel; l++)
		if (m->nblock[l] > 1)
			v[(*n)++] = m->ranks[l];
	return v;
}

/* Experts of the graph: the most for each of which a product has a weight of its own; 0: none. */
static int64_t experts_of(const struct ap_graph *g)
{
	int64_t most = 0;

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; strstr(g->node[i].type, "Mat") && k < g->node[i].bound.nin; k++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[k]];

			if (t->kind == AP_TENSOR_PARAM && t->shape.rank == 3 && t->shape.dim[0] > most)
				most = t->shape.dim[0];
		}
	return most;
}

/* Tokens of a sample: the longest dimension of indices beside the batch; 0: none. */
int64_t ap_points_sequence(const struct ap_graph *g)
{
	int64_t most = 0;

	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];

		if (t->kind != AP_TENSOR_INPUT || !(t->shape.dtype == AP_INT32 || t->shape.dtype == AP_INT64))
			continue;
		for (int d = 0; d < t->shape.rank; d++)
			if (!(t->batch >> d & 1) && t->shape.dim[d] > most)
				most = t->shape.dim[d];
	}
	return most;
}

/* What words of --recompute mean; false: they are no such words. */
static bool read_words(const char *words, unsigned *what)
{
	const char *bad;
	size_t len;

	return ap_again_read(words, strlen(words), what, &bad, &len);
}

/* Can calls of cells and primitives mark all of this? */
static bool is_sayable(struct ap_ctx *ctx, const struct ap_inputs *in, unsigned what)
{
	struct ap_step step = in->step;
	const struct ap_plan plan = {.graph = in->graph, .step = &step};
	const struct ap_bundle bundle = {.plan = &plan};

	step.recompute = what;
	return in->request.route->executor != AP_EXECUTOR_MINDSPORE ||
		(ap_bundle_recompute_rest(ctx, &bundle) == 0 && ap_bundle_gather_rest(ctx, &bundle) == 0);
}

const char *ap_points_layers(struct ap_ctx *ctx, const char *hybrid)
{
	static const char *const keys[] = {"layers=", "num_layer_list=", "offset="};
	const char *at = NULL, *end;

	for (size_t i = 0; i < AP_COUNT(keys) && !at; i++)
		at = strstr(hybrid, keys[i]);
	assert(at);
	end = strchr(at + strcspn(at, "=") + 1, '=');
	while (end && end > at && *end != ',')
		end--;
	return end ? ap_arena_printf(ctx->arena, "%.*s", (int)(end - at), at) : at;
}

/* Keys of --hybrid that no point decides, with the first of their values, each behind a comma. */
static const char *undecided_keys(struct ap_ctx *ctx, const struct ap_hybrid_space *h)
{
	static const enum ap_hybrid_key undecided[] = {AP_HYBRID_VOCAB, AP_HYBRID_CP_ALGO,
		AP_HYBRID_PP_SCATTER};
	struct ap_hybrid_space only = {.one.layers.kind = AP_LAYERS_EVEN};
	const char *text;

	for (size_t i = 0; i < AP_COUNT(undecided); i++) {
		only.given[undecided[i]] = h->given[undecided[i]] && !h->key[undecided[i]].any;
		only.key[undecided[i]] = h->key[undecided[i]];
	}
	text = ap_hybrid_space_at(ctx->arena, &only, 0);
	return *text ? ap_arena_printf(ctx->arena, ",%s", text) : "";
}

/* Is all that one kind means meant by the other? Full means all. */
static bool is_within(unsigned one, unsigned other)
{
	return (other & AP_RECOMPUTE_FULL) || !(one & ~other);
}

/* Adds a mix of the given words that, with word `first`, make a chain, each with all that the ones before it
 * mean: what[n]; met: those that are in a mix. */
static void mix_chain(const char *const *kind, const unsigned *what, size_t n, size_t first, bool *met,
	struct ap_recompute_mix *to)
{
	size_t at[AP_MIX_KINDS] = {first}, len = 1;

	for (size_t m = 0; m < n && len < AP_MIX_KINDS; m++) {
		size_t place = 0, k = 0;

		while (k < len && what[at[k]] != what[m] &&
			(is_within(what[at[k]], what[m]) || is_within(what[m], what[at[k]])))
			k++;
		if (k < len)
			continue;
		while (place < len && is_within(what[at[place]], what[m]))
			place++;
		memmove(&at[place + 1], &at[place], (len++ - place) * sizeof *at);
		at[place] = m;
	}
	*to = (struct ap_recompute_mix){.rule = AP_KINDS_LIST};
	for (size_t k = 0; k < len; k++) {
		to->kind[0][k] = to->kind[1][k] = kind[at[k]];
		met[at[k]] = true;
	}
}

/* Of the kinds of a list the first one and the last two: weights are mostly of what the last one alone
 * computes again. */
static void pick_few(struct ap_recompute_mix *mix)
{
	for (int sums = 0; sums < 2; sums++) {
		const char **kind = mix->kind[sums];
		size_t n = 0;

		while (n < AP_MIX_KINDS && kind[n])
			n++;
		for (size_t k = 0, to = 0; k < n; k++)
			if (k == 0 || k + 2 >= n)
				mix->few[sums][to++] = kind[k];
	}
}

/* The mixes that given kinds leave: of a language with lists, those of words of which each has all that
 * the ones before it mean; else those of the language with these kinds alone; and one of each text that is
 * in none of these. */
static void mix_given(struct ap_ctx *ctx, const char *const *kind, size_t n, struct ap_decision_space *s)
{
	const struct ap_recompute_mix *said = s->language->mix;
	struct ap_recompute_mix *mix = AP_NEW_N(ctx->arena, struct ap_recompute_mix, n + AP_MIXES);
	const char **word = AP_NEW_N(ctx->scratch, const char *, n);
	unsigned *what = AP_NEW_N(ctx->scratch, unsigned, n);
	bool *met = AP_NEW_N(ctx->scratch, bool, n);
	size_t nword = 0;

	for (size_t m = 0; m < n && said[0].rule == AP_KINDS_LIST; m++)
		if (read_words(kind[m], &what[nword]))
			word[nword++] = kind[m];
	for (size_t m = 0; m < nword; m++)
		if (!met[m])
			mix_chain(word, what, nword, m, met, &mix[s->nmix++]);
	for (size_t i = 0; i < AP_MIXES && said[i].kind[0][0] && said[0].rule != AP_KINDS_LIST; i++) {
		struct ap_recompute_mix *to = &mix[s->nmix];
		size_t k = 0;

		for (size_t j = 0; j < AP_MIX_KINDS && said[i].kind[0][j]; j++)
			for (size_t m = 0; m < n; m++)
				if (strcmp(said[i].kind[0][j], kind[m]) == 0) {
					to->kind[0][k] = to->kind[1][k] = said[i].kind[0][j];
					k++;
					met[m] = true;
				}
		to->rule = said[i].rule;
		s->nmix += k > 0;
	}
	for (size_t m = 0; m < n; m++) {
		bool listed = said[0].rule == AP_KINDS_LIST && read_words(kind[m], &what[0]);

		if (listed || (said[0].rule != AP_KINDS_LIST && met[m]))
			continue;
		s->by_layer = s->by_layer && !strpbrk(kind[m], ":,");
		mix[s->nmix++] = (struct ap_recompute_mix){.kind = {{kind[m]}, {kind[m]}},
			.rule = AP_KINDS_UNIFORM};
	}
	for (size_t m = 0; m < s->nmix; m++)
		pick_few(&mix[m]);
	s->mix = mix;
}

/* Operators that words mark, or whose operands are gathered again by them. */
static uint32_t count_marked(struct ap_ctx *ctx, const struct ap_inputs *in, unsigned what)
{
	struct ap_again *mark = AP_NEW_N(ctx->scratch, struct ap_again, in->graph->nnode);
	struct ap_step step = in->step;
	uint32_t n = 0;

	step.recompute = what;
	ap_recompute_mark(ctx, in->graph, &step, mark);
	for (ap_id i = 0; i < in->graph->nnode; i++)
		n += mark[i].group != AP_NONE || mark[i].gathers != AP_NONE;
	return n;
}

/* Sets of modules that differ in this graph, of words that mark something; returns how many. */
static size_t find_modules(struct ap_ctx *ctx, const struct ap_inputs *in,
	const struct ap_executor_language *language, const char *set[AP_MODULES])
{
	/* Where scales are delayed, Megatron refuses what products in 8 bits read. */
	unsigned refused = in->step.float8 && in->step.float8->delayed
		? AP_RECOMPUTE_NORM | AP_RECOMPUTE_ACTIVATION | AP_RECOMPUTE_MOE_ACT : 0;
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	unsigned met[AP_MODULES];
	size_t nset = 0;

	for (size_t i = 0; i < AP_MODULES && language->modules[i]; i++) {
		unsigned what, has = 0;
		bool good = read_words(language->modules[i], &what), fresh;

		assert(good);
		(void)good;
		for (unsigned bit = 1; bit <= what; bit <<= 1)
			if ((what & bit & ~refused) &&
				count_marked(ctx, in, has | bit) > count_marked(ctx, in, has))
				has |= bit;
		fresh = has != 0;
		for (size_t k = 0; k < nset; k++)
			fresh = fresh && met[k] != has;
		if (!fresh)
			continue;
		met[nset] = has;
		set[nset++] = ap_again_text(ctx->arena, has);
	}
	ap_arena_release(ctx->scratch, mark);
	return nset;
}

/* The kinds of a list without words that mark nothing beside those before them, or cannot be said; without
 * kinds that mean no more than the one before. */
static void find_listed(struct ap_ctx *ctx, const struct ap_inputs *in, bool free, const char *const *said,
	const char **to)
{
	unsigned have = 0;
	size_t n = 0;

	for (size_t k = 0; k < AP_MIX_KINDS && said[k]; k++) {
		unsigned what, before = have;
		bool good = read_words(said[k], &what);

		assert(good);
		(void)good;
		for (unsigned bit = 1; bit <= what; bit <<= 1)
			if ((what & bit & ~have) &&
				count_marked(ctx, in, have | bit) > count_marked(ctx, in, have) &&
				(free || is_sayable(ctx, in, (bit & AP_RECOMPUTE_FULL ? 0 : have) | bit)))
				have = bit & AP_RECOMPUTE_FULL ? bit : have | bit;
		if (n == 0 || have != before)
			to[n++] = ap_again_text(ctx->arena, have);
	}
}

/* What the executor can be told that layers of this graph recompute; free: whatever the graph marks. */
static void find_mixes(struct ap_ctx *ctx, const struct ap_inputs *in, bool free, struct ap_decision_space *s)
{
	const struct ap_recompute_mix *said = s->language->mix;
	struct ap_recompute_mix *mix = AP_NEW_N(ctx->arena, struct ap_recompute_mix, AP_MIXES + AP_MODULES);
	const char *set[AP_MODULES];
	size_t nset = find_modules(ctx, in, s->language, set);

	for (size_t i = 0; i < AP_MIXES && said[i].kind[0][0]; i++, s->nmix++) {
		mix[s->nmix] = said[i];
		for (int sums = 0; sums < 2 && said[i].rule == AP_KINDS_LIST; sums++) {
			memset(mix[s->nmix].kind[sums], 0, sizeof mix[s->nmix].kind[sums]);
			find_listed(ctx, in, free, said[i].kind[sums], mix[s->nmix].kind[sums]);
		}
	}
	for (size_t i = 0; i < nset; i++)
		mix[s->nmix++] = (struct ap_recompute_mix){.kind = {{set[i]}, {set[i]}},
			.rule = AP_KINDS_UNIFORM};
	for (size_t m = 0; m < s->nmix; m++)
		pick_few(&mix[m]);
	s->mix = mix;
}

enum ap_status ap_points_space(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_inputs *in, bool free, struct ap_decision_space *s)
{
	struct ap_choices *keys[AP_HYBRID_KEYS] = {[AP_HYBRID_DP] = &s->dp, [AP_HYBRID_TP] = &s->tp,
		[AP_HYBRID_CP] = &s->cp, [AP_HYBRID_EP] = &s->ep, [AP_HYBRID_ETP] = &s->etp,
		[AP_HYBRID_SP] = &s->sp, [AP_HYBRID_MBS] = &s->mbs};
	const struct ap_choices kinds = choices(ctx, set, AP_SET_recompute, 0);
	struct ap_family_chain chain;
	struct ap_hybrid_space h = {.one.layers.kind = AP_LAYERS_EVEN};

	ap_family_chain(ctx, in->graph, &chain);
	*s = (struct ap_decision_space){.language = ap_executor_language_of(in->request.route->name),
		.by_layer = true,
		.devices = in->topo->ndev, .batch = in->graph->batch, .layers = chain.n,
		.experts = experts_of(in->graph), .most_tp = in->chip->server_devices,
		.most_cp = ap_points_sequence(in->graph) / LEAST_TOKENS,
		.pp = choices(ctx, set, AP_SET_pipeline_stages, set->pipeline_stages),
		.vpp = choices(ctx, set, AP_SET_pipeline_segments, set->pipeline_segments),
		.micro_batches = choices(ctx, set, AP_SET_micro_batches, set->micro_batches),
		.scheduler = schedulers(ctx, set),
		.level = levels(ctx, set), .shard = shards(ctx, set),
		.regathers = choices(ctx, set, AP_SET_parallel_optimizer_comm_recompute,
			set->parallel_optimizer_comm_recompute)};
	s->block = blocks(ctx, in->machine, &s->nblock);
	if (free)
		s->language = ap_executor_language_free(ctx, s->language);
	AP_TRY(say_levels(ctx, set, s));
	s->mix = s->language->mix;
	if (s->most_cp < 1)
		s->most_cp = 1;
	if (set->hybrid)
		AP_TRY(ap_hybrid_space_parse(ctx, set->hybrid, &h));
	for (int k = 0; k < AP_HYBRID_KEYS; k++)
		if (keys[k] && h.given[k] && !h.key[k].any) {
			*keys[k] = h.key[k];
			if (k == AP_HYBRID_TP || k == AP_HYBRID_CP)
				*(k == AP_HYBRID_TP ? &s->most_tp : &s->most_cp) = s->devices;
		}
	if (!ap_setting_given(set, AP_SET_micro_batches) && !h.given[AP_HYBRID_MBS] &&
		ap_sources_mix_batch(ctx, set, src)) {
		static const int64_t whole[] = {1};

		s->micro_batches = (struct ap_choices){.n = 1, .v = whole};
	}
	s->parts = h.one.layers.kind == AP_LAYERS_EVEN ? NULL : ap_points_layers(ctx, set->hybrid);
	s->rest = undecided_keys(ctx, &h);
	if (kinds.word)
		mix_given(ctx, kinds.word, kinds.n, s);
	else if (kinds.n)
		mix_given(ctx, &set->recompute, 1, s);
	else
		find_mixes(ctx, in, free, s);
	s->by_layer = s->by_layer && !s->parts && chain.n > 0 && !set->stage_config &&
		!set->overlap_moe_expert_parallel_comm;
	s->uneven = s->language->uneven;
	return AP_OK;
}

void ap_points_give(struct ap_ctx *ctx, struct ap_settings *o, enum ap_setting_id id, const char *text)
{
	const struct ap_setting_row *row = ap_setting_at(id);
	const char *why;
	bool good;

	ap_setting_unset(o, id);
	good = ap_setting_give(ctx->arena, row, o, text, AP_FROM_OPTION,
		ap_option_spelling(ctx->arena, "--", row), &why);
	assert(good);
	(void)good;
}

#define NUMBER(ctx, n) ap_arena_printf((ctx)->arena, "%" PRId64, (int64_t)(n))

const char *ap_points_recompute(const struct ap_decision_space *s, const struct ap_decision_point *p)
{
	return p->recompute ? p->recompute : ap_decision_kinds(s, p)[p->kind < 0 ? 0 : p->kind];
}

void ap_points_settings(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_decision_space *s, const struct ap_decision_point *p, struct ap_settings *out)
{
	struct ap_str h;

	*out = *set;
	ap_setting_unset(out, AP_SET_pipeline_interleave); /* the scheduler says it */
	ap_points_give(ctx, out, AP_SET_pipeline_stages, NUMBER(ctx, p->pp));
	ap_points_give(ctx, out, AP_SET_pipeline_segments, NUMBER(ctx, p->vpp));
	ap_points_give(ctx, out, AP_SET_pipeline_scheduler, ap_scheduler_at((size_t)p->scheduler)->name);
	ap_points_give(ctx, out, AP_SET_micro_batches, NUMBER(ctx, p->micro_batches));
	ap_points_give(ctx, out, AP_SET_recompute, ap_points_recompute(s, p));
	ap_points_give(ctx, out, AP_SET_enable_parallel_optimizer, p->level ? "true" : "false");
	if (p->level)
		ap_points_give(ctx, out, AP_SET_optimizer_level,
			ap_arena_printf(ctx->arena, "level%d", p->level));
	ap_setting_unset(out, AP_SET_parallel_optimizer_comm_recompute);
	if (p->regathers)
		ap_points_give(ctx, out, AP_SET_parallel_optimizer_comm_recompute, "true");
	ap_setting_unset(out, AP_SET_optimizer_weight_shard_size);
	if (p->shard)
		ap_points_give(ctx, out, AP_SET_optimizer_weight_shard_size, NUMBER(ctx, p->shard));
	ap_str_init(&h, ctx->arena);
	ap_setting_unset(out, AP_SET_stage_devices);
	if (p->devices)
		ap_points_give(ctx, out, AP_SET_stage_devices, p->devices);
	else
		ap_str_addf(&h, "dp=%" PRId64 ",", p->dp);
	ap_str_addf(&h, "tp=%" PRId64, p->tp);
	if (p->cp > 1)
		ap_str_addf(&h, ",cp=%" PRId64, p->cp);
	if (p->ep > 1)
		ap_str_addf(&h, ",ep=%" PRId64, p->ep);
	if (p->ep > 1 && p->etp != p->tp)
		ap_str_addf(&h, ",etp=%" PRId64, p->etp);
	if (p->pp > 1)
		ap_str_addf(&h, ",pp=%" PRId64, p->pp);
	if (p->vpp > 1)
		ap_str_addf(&h, ",vpp=%" PRId64, p->vpp);
	if (p->sp)
		ap_str_add(&h, ",sp=1");
	if (p->mbs && !p->devices)
		ap_str_addf(&h, ",mbs=%" PRId64, p->mbs);
	ap_str_add(&h, s->rest);
	if (p->pp > 1 && (p->layers || s->parts))
		ap_str_addf(&h, ",%s", p->layers ? p->layers : s->parts);
	ap_points_give(ctx, out, AP_SET_hybrid, h.s);
}

struct ap_settings ap_points_undecided(struct ap_ctx *ctx, const struct ap_settings *set)
{
	struct ap_settings o = *set;

	ap_setting_unset(&o, AP_SET_hybrid);
	ap_setting_unset(&o, AP_SET_pipeline_interleave);
	ap_setting_unset(&o, AP_SET_optimizer_level);
	ap_setting_unset(&o, AP_SET_optimizer_weight_shard_size);
	ap_setting_unset(&o, AP_SET_parallel_optimizer_comm_recompute);
	ap_points_give(ctx, &o, AP_SET_pipeline_stages, "1");
	ap_points_give(ctx, &o, AP_SET_pipeline_segments, "1");
	ap_points_give(ctx, &o, AP_SET_pipeline_scheduler, "1f1b");
	ap_points_give(ctx, &o, AP_SET_micro_batches, "1");
	ap_points_give(ctx, &o, AP_SET_recompute, "none");
	ap_points_give(ctx, &o, AP_SET_enable_parallel_optimizer, "false");
	return o;
}

static const enum ap_setting_id decided[] = {AP_SET_pipeline_stages, AP_SET_pipeline_segments,
	AP_SET_pipeline_scheduler, AP_SET_micro_batches, AP_SET_recompute, AP_SET_enable_parallel_optimizer,
	AP_SET_optimizer_level, AP_SET_optimizer_weight_shard_size, AP_SET_parallel_optimizer_comm_recompute,
	AP_SET_hybrid};

bool ap_points_decide(enum ap_setting_id id)
{
	for (size_t i = 0; i < AP_COUNT(decided); i++)
		if (decided[i] == id)
			return true;
	return false;
}

bool ap_points_turn(const struct ap_settings *set)
{
	return set->among[AP_SET_pipeline_scheduler] && !ap_setting_given(set, AP_SET_pipeline_segments);
}

/* Hybrids stand for what is searched, or for the strategies that are given. */
static void stand_for(struct ap_ctx *ctx, struct ap_settings *o)
{
	bool whole = o->parallel_mode == AP_MODE_DATA_PARALLEL || o->parallel_mode == AP_MODE_HYBRID_PARALLEL;

	ap_setting_unset(o, AP_SET_strategy_ckpt_load_file);
	ap_setting_unset(o, AP_SET_search_mode);
	ap_setting_unset(o, AP_SET_parallel_mode);
	if (whole)
		ap_points_give(ctx, o, AP_SET_hybrid, "tp=1,cp=1,ep=1");
}

/* What a single hybrid takes for keys that it does not name. */
static void narrow_hybrid(struct ap_ctx *ctx, const struct ap_hybrid_space *h, struct ap_settings *o)
{
	static const struct {
		enum ap_hybrid_key key;
		const char *usual;
	} keys[] = {{AP_HYBRID_TP, "tp=1"}, {AP_HYBRID_CP, "cp=1"}, {AP_HYBRID_EP, "ep=1"},
		{AP_HYBRID_SP, "sp=0"}};

	for (size_t i = 0; i < AP_COUNT(keys); i++)
		if (!h->given[keys[i].key])
			o->hybrid = ap_arena_printf(ctx->arena, "%s,%s", o->hybrid, keys[i].usual);
}

enum ap_status ap_points_narrow(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_settings *out)
{
	struct ap_hybrid_space h = {.any = false};
	bool turns = set->among[AP_SET_pipeline_segments] != NULL;

	*out = *set;
	if (set->hybrid)
		AP_TRY(ap_hybrid_space_parse(ctx, set->hybrid, &h));
	if (set->hybrid && !h.any)
		narrow_hybrid(ctx, &h, out);
	if (!set->hybrid)
		stand_for(ctx, out);
	for (size_t i = 0; i < AP_COUNT(decided); i++) {
		enum ap_setting_id id = decided[i];
		bool open = h.any ? id != AP_SET_recompute && id != AP_SET_enable_parallel_optimizer
			: (id == AP_SET_pipeline_segments && ap_points_turn(set)) ||
			(id == AP_SET_micro_batches && h.given[AP_HYBRID_MBS]);

		if (ap_setting_given(set, id) || open || id == AP_SET_hybrid ||
			id == AP_SET_optimizer_level || (id == AP_SET_enable_parallel_optimizer &&
			ap_setting_given(set, AP_SET_optimizer_level)))
			continue;
		ap_points_give(ctx, out, id, id == AP_SET_pipeline_scheduler && turns ? "1f1b,interleaved"
			: ap_setting_text(ctx->arena, ap_setting_at(id), set));
	}
	if (!ap_setting_given(set, AP_SET_headroom))
		out->headroom = 0;
	return AP_OK;
}

void ap_points_answer(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision_space *s,
	const struct ap_decision_point *p, struct ap_settings *out)
{
	struct ap_settings full;

	ap_points_settings(ctx, set, s, p, &full);
	*out = *set;
	for (size_t i = 0; i < AP_COUNT(decided); i++) {
		enum ap_setting_id id = decided[i];
		bool beside = id == AP_SET_pipeline_segments && ap_points_turn(set);

		if (set->among[id] && strchr(set->name[id], ' '))
			ap_setting_unset(out, id); /* the hybrid gives it */
		else if (id == AP_SET_optimizer_level && set->among[id] && !p->level)
			ap_points_give(ctx, out, id, "none");
		else if (set->among[id] || beside)
			ap_points_give(ctx, out, id, ap_setting_text(ctx->arena, ap_setting_at(id), &full));
	}
	if (set->among[AP_SET_optimizer_level] && !ap_setting_given(set, AP_SET_enable_parallel_optimizer))
		out->enable_parallel_optimizer = p->level > 0;
}

const char *ap_points_words(struct ap_ctx *ctx, const struct ap_decision_space *space,
	const struct ap_decision_point *p)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	if (p->devices) {
		ap_str_add(&s, "devices=");
		ap_str_add_folded(&s, p->devices);
	} else {
		ap_str_addf(&s, "dp=%" PRId64, p->dp);
	}
	ap_str_addf(&s, " tp=%" PRId64, p->tp);
	if (p->cp > 1)
		ap_str_addf(&s, " cp=%" PRId64, p->cp);
	if (p->ep > 1)
		ap_str_addf(&s, " ep=%" PRId64, p->ep);
	if (p->ep > 1 && p->etp != p->tp)
		ap_str_addf(&s, " etp=%" PRId64, p->etp);
	ap_str_addf(&s, " pp=%" PRId64, p->pp);
	if (p->vpp > 1)
		ap_str_addf(&s, " v=%" PRId64, p->vpp);
	if (p->sp)
		ap_str_add(&s, " sp=1");
	if (p->mbs && !p->devices)
		ap_str_addf(&s, " mbs=%" PRId64, p->mbs);
	ap_str_addf(&s, " micro-batches=%" PRId64, p->micro_batches);
	if (p->pp > 1)
		ap_str_addf(&s, " %s", ap_scheduler_at((size_t)p->scheduler)->name);
	if (p->pp > 1 && p->layers) {
		const char *list = strchr(p->layers, '=') + 1;

		ap_str_addf(&s, " %.*s", (int)(list - p->layers), p->layers);
		ap_str_add_folded(&s, list);
	}
	ap_str_addf(&s, " recompute=%s", ap_points_recompute(space, p));
	if (p->level)
		ap_str_addf(&s, " level%d", p->level);
	if (p->regathers)
		ap_str_add(&s, " gathers=again");
	if (p->shard)
		ap_str_addf(&s, " shard=%" PRId64, p->shard);
	return s.s;
}
