/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/mindformers.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/words.h"
#include "cost/layer_parts.h"
#include "graph/family.h"
#include "pipeline/schedule.h"

#define GIB (INT64_C(1) << 30)
#define AGGREGATION 4 /* gradient_aggregation_group if it does not matter */

static const char *yes(bool b)
{
	return b ? "True" : "False";
}

static void list(struct ap_words *w, const int64_t *v, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		ap_str_addf(&w->text, "%s%" PRId64, i ? ", " : "[", v[i]);
	ap_str_addc(&w->text, ']');
}

/* Writes a number per stage, or per segment and stage. */
static void per_part(struct ap_words *w, const int64_t *v)
{
	const struct ap_layers *l = &w->layers;

	if (l->nsegment == 1) {
		list(w, v, l->nstage);
		return;
	}
	for (int32_t s = 0; s < l->nsegment; s++) {
		ap_str_add(&w->text, s ? ", " : "[");
		list(w, v + s * l->nstage, l->nstage);
	}
	ap_str_addc(&w->text, ']');
}

static bool has_pipeline(const struct ap_words *w)
{
	return w->h->pp > 1;
}

/* Copies of MicroBatchInterleaved; 1 if they do not divide the samples. */
static int64_t copies(const struct ap_words *w)
{
	int64_t n = w->b->asked.interleave_num;

	return n > 1 && w->h->mbs % n == 0 ? n : 1;
}

/* Groups of layers with one gradient exchange: as many as the plan has buckets. */
static int64_t aggregation(const struct ap_words *w)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < w->p->nbucket; i++)
		n += w->p->bucket[i].kind != AP_COLL_ALLGATHER;
	if (n == 0 || w->layers.n == 0 || has_pipeline(w))
		return AGGREGATION;
	return n < w->layers.n ? n : w->layers.n;
}

static void parallel_config(struct ap_words *w)
{
	const struct ap_hybrid *h = w->h;

	ap_words_line(w, "use_parallel: True");
	if (has_pipeline(w) && h->micro_batches < h->pp)
		ap_words_unsaid(w, AP_UNSAID_STOPS, "fewer micro-batches (%" PRId64 ") than pipeline stages",
			h->micro_batches);
	ap_words_line(w, "parallel_config:\n  data_parallel: %" PRId64 "\n  model_parallel: %" PRId64
		"\n  context_parallel: %" PRId64, h->dp, h->tp, h->cp);
	if (h->cp_algo == AP_CP_RING)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "keys and values that go round: they are gathered");
	if (h->cp > 1)
		ap_words_line(w, "  context_parallel_algo: %s", h->cp_algo == AP_CP_ALL_TO_ALL ? "ulysses_cp"
			: "colossalai_cp");
	ap_words_line(w, "  expert_parallel: %" PRId64 "\n  pipeline_stage: %" PRId64 "\n  micro_batch_num: "
		"%" PRId64
		"\n  use_seq_parallel: %s\n  vocab_emb_dp: %s\n  gradient_aggregation_group: %" PRId64, h->ep,
		h->pp, has_pipeline(w) ? h->micro_batches : 1, yes(h->sp && h->tp > 1),
		yes(h->vocab != AP_VOCAB_CUT),
		aggregation(w));
}

/* How an input arrives: its batch cut by dp, or as the user gives it. */
static void input_strategy(struct ap_words *w, uint32_t input)
{
	const struct ap_tensor *t = &w->p->graph->tensor[w->p->graph->input[input]];
	const struct ap_step *step = w->p->step;
	struct ap_arrival said = {0};

	if (step->arrival && input < step->narrival)
		said = step->arrival[input];
	ap_str_addc(&w->text, '[');
	for (int d = 0; d < t->shape.rank; d++) {
		bool batch = t->batch >> d & 1;
		int64_t cut = said.cut ? (said.dim == d ? said.cut : 1) : batch ? w->h->dp : 1;

		ap_str_addf(&w->text, "%s%" PRId64, d ? ", " : "", cut);
	}
	ap_str_addc(&w->text, ']');
}

/* Are all inputs tokens, [samples, tokens], cut by data parallelism? */
static bool reads_tokens(const struct ap_words *w)
{
	const struct ap_arrival *arrival = w->p->step->arrival;
	const struct ap_graph *g = w->p->graph;

	for (uint32_t i = 0; i < g->ninput; i++)
		if (g->tensor[g->input[i]].shape.rank != 2 || !(g->tensor[g->input[i]].batch & 1) ||
			(arrival && (arrival[i].dim != 0 || arrival[i].cut != w->h->dp)))
			return false;
	return g->ninput > 0 && ap_words_tokens(w) > 0;
}

/* A row for each of the dataset's input_columns: Megatron's, which MindFormers reads, has four. */
static void dataset(struct ap_words *w)
{
	enum { COLUMNS = 4 };
	bool whole = w->p->step->full_batch && !w->p->step->arrival;
	uint32_t rows = w->p->graph->ninput;

	ap_words_line(w, "  full_batch: %s", yes(whole));
	if (whole)
		return;
	if (reads_tokens(w) && rows < COLUMNS)
		rows = COLUMNS;
	ap_str_add(&w->text, "  dataset_strategy: [");
	for (uint32_t i = 0; i < rows; i++) {
		ap_str_add(&w->text, i ? ", " : "");
		input_strategy(w, i < w->p->graph->ninput ? i : 0);
	}
	ap_words_line(w, "]");
}

/* MindSpore's scheduler name: interleaved is 1f1b with segments. */
static const char *scheduler(const struct ap_words *w)
{
	const struct ap_pipe *pipe = w->p->step->pipe;
	const char *name = pipe && pipe->scheduler ? pipe->scheduler->name : "1f1b";

	return strcmp(name, "interleaved") == 0 ? "1f1b" : name;
}

static void parallel(struct ap_words *w)
{
	bool plain = w->h->vpp == 1 && strcmp(scheduler(w), "1f1b") == 0;
	const struct ap_step *step = w->p->step;

	ap_words_line(w, "parallel:\n  parallel_mode: 1\n  gradients_mean: %s\n  enable_alltoall: %s",
		yes(step->gradients_mean), yes(step->alltoall));
	dataset(w);
	ap_words_line(w, "  enable_parallel_optimizer: %s\n  parallel_optimizer_config:\n"
		"    gradient_accumulation_shard: %s\n    parallel_optimizer_threshold: %" PRId64,
		yes(step->optimizer_sharding), yes(step->optimizer_sharding && step->optimizer_level == 2),
		step->shard_threshold_bytes >> 10);
	/* MindSpore refuses the older name of level2 beside it */
	if (step->optimizer_sharding && step->optimizer_level == 3)
		ap_words_line(w, "    optimizer_level: \"level3\"");
	if (step->shard_size > 0) /* -1, all, is the default */
		ap_words_line(w, "    optimizer_weight_shard_size: %" PRId64, step->shard_size);
	if (has_pipeline(w))
		ap_words_line(w, "  pipeline_config:\n    pipeline_interleave: %s\n    pipeline_scheduler: "
		"\"%s\"",
			yes(!plain), scheduler(w));
	ap_words_line(w, "  strategy_ckpt_config:\n    save_file: \"./strategy_that_ran.ckpt\"\n"
		"    only_trainable_params: %s", yes(!w->b->frozen));
}

static void model_config(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	int32_t n = l->nstage * l->nsegment;
	int64_t *offset = AP_NEW_N(w->ctx->arena, int64_t, n); /* from an even split of the layers */
	bool even = true;

	ap_words_stages(w);
	ap_words_line(w, "model:\n  model_config:");
	for (int32_t i = 0; l->part && i < n; i++) {
		offset[i] = l->part[i] - l->n / (uint32_t)n;
		even = even && !offset[i];
		if (i > 0 && i < n - 1 && !l->part[i])
			ap_words_unsaid(w, AP_UNSAID_STOPS, "a part of the pipeline without a layer, other "
				"than the first and the last of the list");
	}
	if (l->part) {
		ap_str_add(&w->text, "    offset: ");
		if (even)
			ap_str_addc(&w->text, '0');
		else
			per_part(w, offset);
		ap_str_addc(&w->text, '\n');
	}
	ap_words_line(w, "    pp_interleave_num: %" PRId64, w->h->vpp);
	if (w->h->cp > 1)
		ap_words_line(w, "    use_flash_attention: True");
	if (w->h->cp > 1 && !ap_words_has(w, "FlashAttentionScore"))
		ap_words_unsaid(w, AP_UNSAID_OTHERWISE, "attention in small operators beside context "
			"parallelism: the file says use_flash_attention");
}

/* The number of experts of a layer: the first extent of their weights. */
static int64_t count_experts(struct ap_words *w)
{
	const struct ap_graph *g = w->p->graph;
	struct ap_mark scratch = ap_arena_mark(w->ctx->scratch);
	struct ap_family family;
	struct ap_layer_parts parts;
	int64_t n = 0;

	ap_family_find(w->ctx, g, &family);
	ap_layer_parts(w->ctx, g, family.member, ap_layer_data(w->ctx, g), &parts);
	for (ap_id i = 0; i < g->nnode && !n; i++)
		for (uint16_t k = 0; parts.part[i] == AP_PART_EXPERTS && k < g->node[i].bound.nin; k++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[k]];

			if (t->kind == AP_TENSOR_PARAM && t->shape.rank == 3)
				n = t->shape.dim[0];
		}
	ap_arena_release(w->ctx->scratch, scratch);
	return n;
}

static void moe_config(struct ap_words *w)
{
	int64_t n = w->layers.experts ? count_experts(w) : 0;

	if (n)
		ap_words_line(w, "moe_config:\n  expert_num: %" PRId64, n);
	if (w->h->ep > 1 && w->h->tp > 1 && ap_words_expert_tensor(w) == 1)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "experts that tensor parallelism leaves whole (etp=1)");
}

/* Counts of layers as MindFormers' lists have them: from a part's first layer on, full ones among them. */
static void per_part_from_first(struct ap_words *w, const int64_t *part)
{
	int32_t n = w->layers.nstage * w->layers.nsegment;
	int64_t *count = AP_NEW_N(w->ctx->scratch, int64_t, n);

	for (int32_t k = 0; k < n; k++)
		count[k] = part[k] > 0 ? part[k] + w->layers.full[k] : 0;
	per_part(w, count);
}

/* What is gathered of norms' results: MindFormers' usual pattern is that of norms. */
static void gathered(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->ngathered > 0 && !l->gathered_first)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "layers whose norms' results are gathered again, others "
			"than a stage's first (select_comm_recompute)");
	if (l->ngathered == 0 || l->ngathered + l->nfull == l->n) {
		ap_words_line(w, "  select_comm_recompute: %s", yes(l->ngathered > 0));
		return;
	}
	ap_str_add(&w->text, "  select_comm_recompute: ");
	per_part_from_first(w, l->gathered);
	ap_str_addc(&w->text, '\n');
}

static void selected(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	bool any = false, everywhere = true;

	for (uint32_t i = 0; i < l->nagain; i++) {
		int64_t sum = 0;

		for (int32_t k = 0; k < l->nstage * l->nsegment; k++)
			sum += l->again[i].part[k];
		any |= !l->again[i].shared;
		everywhere &= sum + l->nfull == l->n;
		if (!l->again[i].first)
			ap_words_unsaid(w, AP_UNSAID_LEFT, "layers that recompute %s, others than a stage's "
				"first (select_recompute)", l->again[i].name);
	}
	if (l->nagain > 0)
		ap_words_comment(w, "  select_recompute: cells and types of this graph; MindFormers' may "
			"have other names");
	ap_words_line(w, any ? "  select_recompute:" : "  select_recompute: False");
	for (uint32_t i = 0; i < l->nagain; i++) {
		const struct ap_layer_again *a = &l->again[i];
		struct ap_str pattern; /* regular expression for the name in a layer, as a YAML string */
		struct ap_jw jw;

		if (a->shared) {
			ap_words_unsaid(w, AP_UNSAID_LEFT, "%s, recomputed: others have that name, too, "
				"which are not (select_recompute)", a->name);
			continue;
		}
		ap_str_init(&pattern, w->ctx->arena);
		for (const char *c = a->name; *c; c++) {
			if (strchr(".^$*+?()[]{}|\\", *c))
				ap_str_addc(&pattern, '\\');
			ap_str_addc(&pattern, *c);
		}
		ap_str_add(&w->text, everywhere ? "    - " : "    ");
		ap_jw_str_init(&jw, &w->text, 0);
		ap_jw_str(&jw, pattern.s);
		if (!everywhere) {
			ap_str_add(&w->text, ": ");
			per_part_from_first(w, a->part);
		}
		ap_str_addc(&w->text, '\n');
	}
}

static void recompute_config(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->mixed)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "different arguments of what is recomputed: the first are "
			"said");
	if (l->nfull > 0 && l->nfull < l->n && !l->full_first)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "layers that are recomputed, others than a stage's first");
	if (l->nfull > 0 && l->unit > 1)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "%" PRId64 " layers recomputed as one: each is by itself",
			l->unit);
	if (l->nagain_outside)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "operators of no layer that are recomputed: %" PRIu32,
			l->nagain_outside);
	ap_words_line(w, "recompute_config:");
	if (l->nfull == 0 || l->nfull == l->n) {
		ap_words_line(w, "  recompute: %s", yes(l->nfull > 0));
	} else {
		ap_str_add(&w->text, "  recompute: ");
		per_part(w, l->full);
		ap_str_addc(&w->text, '\n');
	}
	selected(w);
	gathered(w);
	ap_words_line(w, "  parallel_optimizer_comm_recompute: %s\n"
		"  mp_comm_recompute: %s\n  recompute_slice_activation: %s", yes(l->regather),
		yes(!l->keep_comm), yes(l->slice));
}

static void runner_config(struct ap_words *w)
{
	const struct ap_hybrid *h = w->h;

	if (copies(w) > 1) /* the other route refuses copies */
		ap_words_line(w, "use_legacy: True");
	ap_words_line(w, "micro_batch_interleave_num: %" PRId64, copies(w));
	if (w->p->graph->batch == 0) {
		ap_words_unsaid(w, AP_UNSAID_STOPS, "a step without samples: the graph has no batch");
		return;
	}
	ap_words_line(w, "runner_config:\n  batch_size: %" PRId64 "\n  gradient_accumulation_steps: %" PRId64,
		h->mbs / copies(w), has_pipeline(w) ? 1 : h->micro_batches);
}

static void context(struct ap_words *w)
{
	int64_t bytes = w->p->capacity_bytes, hundredths = bytes / (GIB / 100);

	ap_words_line(w, "context:");
	if (bytes >= GIB)
		ap_words_line(w, "  max_device_memory: \"%" PRId64 "GB\"", bytes / GIB);
	else
		ap_words_line(w, "  max_device_memory: \"0.%02" PRId64 "GB\"", hundredths < 99 ? hundredths
		: 99);
}

void ap_mindformers_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out)
{
	static void (*const parts[])(struct ap_words *) = {ap_words_head, parallel_config, runner_config,
		parallel, model_config, moe_config, recompute_config, context};
	struct ap_words w;

	if (ap_words_begin(ctx, b, "MindFormers", &w)) {
		if (b->plan->step->float8)
			ap_words_unsaid(&w, AP_UNSAID_LEFT, "products in 8 bits");
		if (w.h->tp > 1 && w.h->vocab == AP_VOCAB_WHOLE)
			ap_words_unsaid(&w, AP_UNSAID_LEFT, "a table of words that tensor parallelism leaves "
				"whole: vocab_emb_dp is turned off");
		for (size_t i = 0; i < AP_COUNT(parts); i++)
			parts[i](&w);
	}
	ap_words_end(&w, out);
}
