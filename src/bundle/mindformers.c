/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/mindformers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "bundle/mindformers_parts.h"
#include "pipeline/schedule.h"

#define GIB (INT64_C(1) << 30)
#define AGGREGATION 4 /* gradient_aggregation_group of MindFormers, where it does not matter */

static const char *yes(bool b)
{
	return b ? "True" : "False";
}

static void __attribute__((format(printf, 2, 3))) line(struct ap_words *w, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	ap_str_vaddf(&w->text, format, ap);
	va_end(ap);
	ap_str_addc(&w->text, '\n');
}

static void list(struct ap_words *w, const int64_t *v, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		ap_str_addf(&w->text, "%s%" PRId64, i ? ", " : "[", v[i]);
	ap_str_addc(&w->text, ']');
}

/* A number for each stage, or for each stage of each segment. */
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

/* Micro-batches are those of the pipeline, or accumulated. */
static bool has_pipeline(const struct ap_words *w)
{
	return w->x->hybrid.pp > 1;
}

/* Copies of MicroBatchInterleaved, where the samples can be dealt to them. */
static int64_t copies(const struct ap_words *w)
{
	int64_t n = strtoll(ap_words_setting(w, "interleave_num"), NULL, 10);

	return n > 1 && w->x->hybrid.mbs % n == 0 ? n : 1;
}

/* Groups of layers whose gradients are exchanged as one: as many as the plan has buckets. */
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
	const struct ap_hybrid *h = &w->x->hybrid;

	if (has_pipeline(w) && h->micro_batches < h->pp)
		ap_words_say(w, "MindFormers refuses fewer micro-batches than stages, which the plan has");
	line(w, "parallel_config:");
	line(w, "  data_parallel: %" PRId64, h->dp);
	line(w, "  model_parallel: %" PRId64, h->tp);
	line(w, "  context_parallel: %" PRId64, h->cp);
	if (h->cp > 1)
		line(w, "  context_parallel_algo: colossalai_cp");
	line(w, "  expert_parallel: %" PRId64, h->ep);
	line(w, "  pipeline_stage: %" PRId64, h->pp);
	line(w, "  micro_batch_num: %" PRId64, has_pipeline(w) ? h->micro_batches : 1);
	line(w, "  use_seq_parallel: %s", yes(h->sp));
	line(w, "  vocab_emb_dp: %s", yes(h->vocab != AP_VOCAB_CUT));
	line(w, "  gradient_aggregation_group: %" PRId64, aggregation(w));
}

/* How an input arrives: the batch dealt to the dp parts, or as the user says. */
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
		int64_t cut = said.cut ? (said.dim == d ? said.cut : 1) : batch ? w->x->hybrid.dp : 1;

		ap_str_addf(&w->text, "%s%" PRId64, d ? ", " : "", cut);
	}
	ap_str_addc(&w->text, ']');
}

static void dataset(struct ap_words *w)
{
	bool whole = w->p->step->full_batch && !w->p->step->arrival;

	line(w, "  full_batch: %s", yes(whole));
	if (whole)
		return;
	ap_str_add(&w->text, "  dataset_strategy: [");
	for (uint32_t i = 0; i < w->p->graph->ninput; i++) {
		ap_str_add(&w->text, i ? ", " : "");
		input_strategy(w, i);
	}
	line(w, "]");
}

static void optimizer(struct ap_words *w)
{
	const struct ap_step *step = w->p->step;

	line(w, "  enable_parallel_optimizer: %s", yes(step->optimizer_sharding));
	line(w, "  parallel_optimizer_config:");
	line(w, "    gradient_accumulation_shard: %s",
		yes(step->optimizer_sharding && step->optimizer_level >= 2));
	line(w, "    parallel_optimizer_threshold: %" PRId64, step->shard_threshold_bytes >> 10);
	if (step->shard_size > 0) /* -1, all, is what it is without */
		line(w, "    optimizer_weight_shard_size: %" PRId64, step->shard_size);
}

/* MindSpore's name of a scheduler: interleaved is 1f1b with segments. */
static const char *scheduler(const struct ap_words *w)
{
	const struct ap_pipe *pipe = w->p->step->pipe;
	const char *name = pipe && pipe->scheduler ? pipe->scheduler->name : "1f1b";

	return strcmp(name, "interleaved") == 0 ? "1f1b" : name;
}

static void parallel(struct ap_words *w)
{
	bool plain = w->x->hybrid.vpp == 1 && strcmp(scheduler(w), "1f1b") == 0;

	line(w, "parallel:");
	line(w, "  parallel_mode: 1");
	line(w, "  gradients_mean: %s", yes(w->p->step->gradients_mean));
	line(w, "  enable_alltoall: %s", yes(w->p->step->alltoall));
	dataset(w);
	optimizer(w);
	if (has_pipeline(w)) {
		line(w, "  pipeline_config:");
		line(w, "    pipeline_interleave: %s", yes(!plain));
		line(w, "    pipeline_scheduler: \"%s\"", scheduler(w));
	}
	line(w, "  strategy_ckpt_config:");
	line(w, "    save_file: \"./strategy_that_ran.ckpt\"");
	line(w, "    only_trainable_params: %s", yes(!w->b->frozen));
}

static bool is_zero(const int64_t *v, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		if (v[i])
			return false;
	return true;
}

/* Layers of each part, less what they are where they are dealt evenly. */
static void offset(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	int32_t n = l->nstage * l->nsegment;
	int64_t *v;

	if (!l->part)
		return;
	v = AP_NEW_N(w->ctx->arena, int64_t, n);
	for (int32_t i = 0; i < n; i++)
		v[i] = l->part[i] - l->n / (uint32_t)n;
	ap_str_add(&w->text, "    offset: ");
	if (is_zero(v, n))
		ap_str_addc(&w->text, '0');
	else
		per_part(w, v);
	ap_str_addc(&w->text, '\n');
}

static void model_config(struct ap_words *w)
{
	line(w, "model:");
	line(w, "  model_config:");
	offset(w);
	line(w, "    pp_interleave_num: %" PRId64, w->x->hybrid.vpp);
}

/* A regular expression of a name in a layer, as a YAML string. */
static void pattern(struct ap_words *w, const char *name)
{
	struct ap_str s;
	struct ap_jw jw;

	ap_str_init(&s, w->ctx->arena);
	for (; *name; name++) {
		if (strchr(".^$*+?()[]{}|\\", *name))
			ap_str_addc(&s, '\\');
		ap_str_addc(&s, *name);
	}
	ap_jw_str_init(&jw, &w->text, 0);
	ap_jw_str(&jw, s.s);
}

static bool is_everywhere(const struct ap_layers *l, const int64_t *part)
{
	int64_t sum = 0;

	for (int32_t i = 0; i < l->nstage * l->nsegment; i++)
		sum += part[i];
	return sum == l->n;
}

static void select_operator(struct ap_words *w, const struct ap_layer_again *a, bool everywhere)
{
	if (a->shared) {
		ap_words_say(w, "  left out: %s, a name that others have as well, which are not recomputed",
			a->name);
		return;
	}
	ap_str_add(&w->text, everywhere ? "    - " : "    ");
	pattern(w, a->name);
	if (!everywhere) {
		ap_str_add(&w->text, ": ");
		per_part(w, a->part);
	}
	ap_str_addc(&w->text, '\n');
}

static void selected(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	bool any = false, everywhere = true;

	for (uint32_t i = 0; i < l->nagain; i++) {
		any |= !l->again[i].shared;
		everywhere &= is_everywhere(l, l->again[i].part);
	}
	if (l->nagain > 0)
		ap_words_say(w, "  select_recompute: cells and types of this graph; MindFormers' may have "
			"other names");
	line(w, any ? "  select_recompute:" : "  select_recompute: False");
	for (uint32_t i = 0; i < l->nagain; i++)
		select_operator(w, &l->again[i], everywhere);
}

static void recompute_config(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->mixed)
		ap_words_say(w, "what is recomputed has different arguments in the plan; here those of the "
			"first");
	if (l->nfull > 0 && l->nfull < l->n && !l->full_first)
		ap_words_say(w, "MindFormers recomputes the first layers of a stage, the plan others");
	line(w, "recompute_config:");
	if (l->nfull == 0 || l->nfull == l->n) {
		line(w, "  recompute: %s", yes(l->nfull > 0));
	} else {
		ap_str_add(&w->text, "  recompute: ");
		per_part(w, l->full);
		ap_str_addc(&w->text, '\n');
	}
	selected(w);
	line(w, "  select_comm_recompute: False");
	line(w, "  parallel_optimizer_comm_recompute: %s", yes(l->regather));
	line(w, "  mp_comm_recompute: %s", yes(!l->keep_comm));
	line(w, "  recompute_slice_activation: %s", yes(l->slice));
}

static void runner_config(struct ap_words *w)
{
	const struct ap_hybrid *h = &w->x->hybrid;

	line(w, "micro_batch_interleave_num: %" PRId64, copies(w));
	if (w->p->graph->batch == 0) {
		ap_words_say(w, "runner_config.batch_size: the graph has no batch");
		return;
	}
	line(w, "runner_config:");
	line(w, "  batch_size: %" PRId64, h->mbs / copies(w));
	line(w, "  gradient_accumulation_steps: %" PRId64, has_pipeline(w) ? 1 : h->micro_batches);
}

static void context(struct ap_words *w)
{
	int64_t bytes = w->p->capacity_bytes, hundredths = bytes / (GIB / 100);

	line(w, "context:");
	if (bytes >= GIB)
		line(w, "  max_device_memory: \"%" PRId64 "GB\"", bytes / GIB);
	else
		line(w, "  max_device_memory: \"0.%02" PRId64 "GB\"", hundredths < 99 ? hundredths : 99);
}

void ap_mindformers_write(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_words w;

	ap_words_init(&w, ctx, b);
	if (ap_words_head(&w, "MindFormers")) {
		ap_words_unsaid(&w);
		line(&w, "use_parallel: True");
		parallel_config(&w);
		runner_config(&w);
		parallel(&w);
		model_config(&w);
		recompute_config(&w);
		context(&w);
	}
	write(user, w.text.s, w.text.len);
}
