/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/mindformers.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/layers.h"
#include "cost/float8.h"
#include "pipeline/schedule.h"

struct words {
	struct ap_ctx *ctx;
	const struct ap_bundle *b;
	const struct ap_plan *p;
	const struct ap_expert *x;
	struct ap_layers layers;
	struct ap_str text;
};

/* ---- comments ---- */

static void __attribute__((format(printf, 2, 3))) say(struct words *w, const char *format, ...)
{
	size_t start;
	va_list ap;

	ap_str_add(&w->text, "# ");
	start = w->text.len;
	va_start(ap, format);
	ap_str_vaddf(&w->text, format, ap);
	va_end(ap);
	/* names may hold any character, but a comment ends with its line */
	for (char *s = w->text.s + start; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
	ap_str_addc(&w->text, '\n');
}

/* How --hybrid says the layers of the plan's stages; "" where --stage-config or the graph says them, too. */
static const char *layers_key(const struct words *w)
{
	const struct ap_layers *l = &w->layers;
	const struct ap_pipe_cut *cut = w->p->step->pipe ? w->p->step->pipe->cut : NULL;
	struct ap_str s;

	if (!cut || l->nstage == 1 || cut->by > AP_CUT_BY_LAYERS)
		return "";
	if (cut->by < AP_CUT_BY_LAYERS)
		return ",layers=cost";
	ap_str_init(&s, w->ctx->arena);
	for (int32_t k = 0; k < l->nstage * l->nsegment; k++)
		ap_str_addf(&s, "%s%" PRId64, k ? "," : ",layers=", cut->count[k]);
	return s.s;
}

static bool say_head(struct words *w, const char *framework)
{
	const struct ap_hybrid *h = &w->x->hybrid;
	static const char *const vocabulary[] = {[AP_VOCAB_AUTO] = "", [AP_VOCAB_CUT] = ",vocab_emb_dp=0",
		[AP_VOCAB_WHOLE] = ",vocab_emb_dp=1"};
	const struct ap_expert *x = w->x;
	const struct ap_prediction *own = &w->p->prediction;
	char hybrid[32], plan[32], need[32], have[32];

	if (w->x->hybrid.dp == 0) {
		say(w, "Nothing of this plan can be said to %s: %s", framework, w->x->why_not);
		return false;
	}
	if (w->x->same)
		say(w, "All operators of the plan are cut as in this hybrid, which %s can be told",
			framework);
	else
		say(w, "The hybrid that comes nearest to the plan, whose cuts %s cannot be told",
			framework);
	say(w, "hybrid: dp=%" PRId64 ",tp=%" PRId64 ",cp=%" PRId64 ",ep=%" PRId64 ",pp=%" PRId64
		",vpp=%" PRId64 ",sp=%d,mbn=%" PRId64 "%s%s%s%s", h->dp, h->tp, h->cp, h->ep, h->pp, h->vpp,
		h->sp, h->micro_batches, h->cp_algo == AP_CP_USUAL ? "" : ",cp_algo=", h->cp_algo ==
		AP_CP_USUAL ? "" : ap_cp_algo_name(h->cp_algo), vocabulary[h->vocab], layers_key(w));
	if (!w->x->same)
		say(w, "operators that the plan cuts otherwise: %" PRIu32 " of %" PRIu32,
			w->x->differ, w->p->graph->nnode);
	say(w, "step time: %s s, the plan's %s s: a %s of %.2f %%",
		ap_format_double(x->step_time_s, hybrid), ap_format_double(own->step_time_s, plan),
		x->loss < 0 ? "gain" : "loss", fabs(x->loss) * 100);
	say(w, "memory: %s of %s that a device has%s", ap_format_bytes(x->memory_bytes, need),
		ap_format_bytes(w->p->capacity_bytes, have), x->fits ? "" : "; it does not fit");
	return true;
}

static void say_stages(struct words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->name)
		say(w, "layers: %" PRIu32 ", the cells %s.N", l->n, l->name);
	if (l->nstage * l->nsegment == 1)
		return;
	if (!l->part)
		say(w, "layers of the stages are left out: %s", l->why);
	if (l->nsplit)
		say(w, "layers that run in several parts of the pipeline: %" PRIu32 ", the first "
			"is %" PRId64 "; here each is where most of its operators are", l->nsplit,
			l->first_split);
	if (l->noutside)
		say(w, "operators of no layer that run neither in the first part of the pipeline "
			"nor in the last, which cannot be said: %" PRIu32 ", the first is %s",
			l->noutside, l->first_outside);
}

static void say_unsaid(struct words *w)
{
	const struct ap_step *step = w->p->step;

	say_stages(w);
	if (step->optimizer_sharding && step->optimizer_level == 3)
		say(w, "optimizer level3, which gathers weights anew for the backward pass, "
			"cannot be said");
	if (w->layers.nagain_outside)
		say(w, "operators of no layer that are recomputed, which cannot be said: %" PRIu32,
			w->layers.nagain_outside);
}

/* ---- MindFormers, YAML ---- */

static void say_float8(struct words *w)
{
	if (w->p->step->float8)
		say(w, "products in 8 bits cannot be said");
}

#define GIB (INT64_C(1) << 30)
#define AGGREGATION 4 /* gradient_aggregation_group if it does not matter */

static const char *yes(bool b)
{
	return b ? "True" : "False";
}

static void __attribute__((format(printf, 2, 3))) line(struct words *w, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	ap_str_vaddf(&w->text, format, ap);
	va_end(ap);
	ap_str_addc(&w->text, '\n');
}

static void list(struct words *w, const int64_t *v, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		ap_str_addf(&w->text, "%s%" PRId64, i ? ", " : "[", v[i]);
	ap_str_addc(&w->text, ']');
}

/* Writes a number per stage, or per segment and stage. */
static void per_part(struct words *w, const int64_t *v)
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

static bool has_pipeline(const struct words *w)
{
	return w->x->hybrid.pp > 1;
}

/* Copies of MicroBatchInterleaved; 1 if they do not divide the samples. */
static int64_t copies(const struct words *w)
{
	int64_t n = w->b->asked.interleave_num;

	return n > 1 && w->x->hybrid.mbs % n == 0 ? n : 1;
}

/* Groups of layers with one gradient exchange: as many as the plan has buckets. */
static int64_t aggregation(const struct words *w)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < w->p->nbucket; i++)
		n += w->p->bucket[i].kind != AP_COLL_ALLGATHER;
	if (n == 0 || w->layers.n == 0 || has_pipeline(w))
		return AGGREGATION;
	return n < w->layers.n ? n : w->layers.n;
}

static void parallel_config(struct words *w)
{
	const struct ap_hybrid *h = &w->x->hybrid;

	line(w, "use_parallel: True");
	if (has_pipeline(w) && h->micro_batches < h->pp)
		say(w, "MindFormers refuses fewer micro-batches than stages, which the plan has");
	line(w, "parallel_config:\n  data_parallel: %" PRId64 "\n  model_parallel: %" PRId64
		"\n  context_parallel: %" PRId64, h->dp, h->tp, h->cp);
	if (h->cp_algo == AP_CP_RING)
		say(w, "keys and values go round in the plan; MindFormers gathers them");
	if (h->cp > 1)
		line(w, "  context_parallel_algo: %s", h->cp_algo == AP_CP_ALL_TO_ALL ? "ulysses_cp"
			: "colossalai_cp");
	line(w, "  expert_parallel: %" PRId64 "\n  pipeline_stage: %" PRId64 "\n  micro_batch_num: %" PRId64
		"\n  use_seq_parallel: %s\n  vocab_emb_dp: %s\n  gradient_aggregation_group: %" PRId64, h->ep,
		h->pp, has_pipeline(w) ? h->micro_batches : 1, yes(h->sp), yes(h->vocab != AP_VOCAB_CUT),
		aggregation(w));
}

/* How an input arrives: its batch cut by dp, or as the user gives it. */
static void input_strategy(struct words *w, uint32_t input)
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

static void dataset(struct words *w)
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

/* MindSpore's scheduler name: interleaved is 1f1b with segments. */
static const char *scheduler(const struct words *w)
{
	const struct ap_pipe *pipe = w->p->step->pipe;
	const char *name = pipe && pipe->scheduler ? pipe->scheduler->name : "1f1b";

	return strcmp(name, "interleaved") == 0 ? "1f1b" : name;
}

static void parallel(struct words *w)
{
	bool plain = w->x->hybrid.vpp == 1 && strcmp(scheduler(w), "1f1b") == 0;
	const struct ap_step *step = w->p->step;

	line(w, "parallel:\n  parallel_mode: 1\n  gradients_mean: %s\n  enable_alltoall: %s",
		yes(step->gradients_mean), yes(step->alltoall));
	dataset(w);
	line(w, "  enable_parallel_optimizer: %s\n  parallel_optimizer_config:\n"
		"    gradient_accumulation_shard: %s\n    parallel_optimizer_threshold: %" PRId64,
		yes(step->optimizer_sharding), yes(step->optimizer_sharding && step->optimizer_level >= 2),
		step->shard_threshold_bytes >> 10);
	if (step->shard_size > 0) /* -1, all, is the default */
		line(w, "    optimizer_weight_shard_size: %" PRId64, step->shard_size);
	if (has_pipeline(w))
		line(w, "  pipeline_config:\n    pipeline_interleave: %s\n    pipeline_scheduler: \"%s\"",
			yes(!plain), scheduler(w));
	line(w, "  strategy_ckpt_config:\n    save_file: \"./strategy_that_ran.ckpt\"\n"
		"    only_trainable_params: %s", yes(!w->b->frozen));
}

static void model_config(struct words *w)
{
	const struct ap_layers *l = &w->layers;
	int32_t n = l->nstage * l->nsegment;
	int64_t *offset = AP_NEW_N(w->ctx->arena, int64_t, n); /* from an even split of the layers */
	bool even = true;

	line(w, "model:\n  model_config:");
	for (int32_t i = 0; l->part && i < n; i++) {
		offset[i] = l->part[i] - l->n / (uint32_t)n;
		even = even && !offset[i];
	}
	if (l->part) {
		ap_str_add(&w->text, "    offset: ");
		if (even)
			ap_str_addc(&w->text, '0');
		else
			per_part(w, offset);
		ap_str_addc(&w->text, '\n');
	}
	line(w, "    pp_interleave_num: %" PRId64, w->x->hybrid.vpp);
}

/* Counts of layers as MindFormers' lists have them: from a part's first layer on, full ones among them. */
static void per_part_from_first(struct words *w, const int64_t *part)
{
	int32_t n = w->layers.nstage * w->layers.nsegment;
	int64_t *count = AP_NEW_N(w->ctx->scratch, int64_t, n);

	for (int32_t k = 0; k < n; k++)
		count[k] = part[k] > 0 ? part[k] + w->layers.full[k] : 0;
	per_part(w, count);
}

/* What is gathered of norms' results: MindFormers' usual pattern is that of norms. */
static void gathered(struct words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->ngathered > 0 && !l->gathered_first)
		say(w, "  select_comm_recompute: MindFormers takes the first layers of a stage, the plan "
			"others");
	if (l->ngathered == 0 || l->ngathered + l->nfull == l->n) {
		line(w, "  select_comm_recompute: %s", yes(l->ngathered > 0));
		return;
	}
	ap_str_add(&w->text, "  select_comm_recompute: ");
	per_part_from_first(w, l->gathered);
	ap_str_addc(&w->text, '\n');
}

static void selected(struct words *w)
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
			say(w, "  select_recompute of %s: MindFormers takes the first layers of a stage, the "
				"plan others", l->again[i].name);
	}
	if (l->nagain > 0)
		say(w, "  select_recompute: cells and types of this graph; MindFormers' may have "
			"other names");
	line(w, any ? "  select_recompute:" : "  select_recompute: False");
	for (uint32_t i = 0; i < l->nagain; i++) {
		const struct ap_layer_again *a = &l->again[i];
		struct ap_str pattern; /* regular expression for the name in a layer, as a YAML string */
		struct ap_jw jw;

		if (a->shared) {
			say(w, "  left out: %s, a name that others have as well, which are not recomputed",
				a->name);
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

static void recompute_config(struct words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->mixed)
		say(w, "what is recomputed has different arguments in the plan; here those of the "
			"first");
	if (l->nfull > 0 && l->nfull < l->n && !l->full_first)
		say(w, "MindFormers recomputes the first layers of a stage, the plan others");
	if (l->nfull > 0 && l->unit > 1)
		say(w, "MindFormers recomputes layers one by one, the plan %" PRId64 " as one", l->unit);
	line(w, "recompute_config:");
	if (l->nfull == 0 || l->nfull == l->n) {
		line(w, "  recompute: %s", yes(l->nfull > 0));
	} else {
		ap_str_add(&w->text, "  recompute: ");
		per_part(w, l->full);
		ap_str_addc(&w->text, '\n');
	}
	selected(w);
	gathered(w);
	line(w, "  parallel_optimizer_comm_recompute: %s\n"
		"  mp_comm_recompute: %s\n  recompute_slice_activation: %s", yes(l->regather),
		yes(!l->keep_comm), yes(l->slice));
}

static void runner_config(struct words *w)
{
	const struct ap_hybrid *h = &w->x->hybrid;

	line(w, "micro_batch_interleave_num: %" PRId64, copies(w));
	if (w->p->graph->batch == 0) {
		say(w, "runner_config.batch_size: the graph has no batch");
		return;
	}
	line(w, "runner_config:\n  batch_size: %" PRId64 "\n  gradient_accumulation_steps: %" PRId64,
		h->mbs / copies(w), has_pipeline(w) ? 1 : h->micro_batches);
}

static void context(struct words *w)
{
	int64_t bytes = w->p->capacity_bytes, hundredths = bytes / (GIB / 100);

	line(w, "context:");
	if (bytes >= GIB)
		line(w, "  max_device_memory: \"%" PRId64 "GB\"", bytes / GIB);
	else
		line(w, "  max_device_memory: \"0.%02" PRId64 "GB\"", hundredths < 99 ? hundredths : 99);
}

/* ---- Megatron-LM, arguments ---- */

static void megatron_degrees(struct words *w)
{
	static const struct {
		const char *megatron, *mindspeed;
	} exchange[AP_CP_ALGOS] = {
		[AP_CP_USUAL] = {"all_gather", "kvallgather_cp_algo"},
		[AP_CP_ALL_GATHER] = {"all_gather", "kvallgather_cp_algo"},
		[AP_CP_RING] = {"p2p", "megatron_cp_algo"},
		[AP_CP_ALL_TO_ALL] = {"a2a", "ulysses_cp_algo"},
	};
	const struct ap_hybrid *h = &w->x->hybrid;

	line(w, "--tensor-model-parallel-size %" PRId64 "\n--pipeline-model-parallel-size %" PRId64
		"\n--context-parallel-size %" PRId64, h->tp, h->pp, h->cp);
	if (h->cp > 1) {
		line(w, "--cp-comm-type %s", exchange[h->cp_algo].megatron);
		say(w, "MindSpeed, instead: --context-parallel-algo %s", exchange[h->cp_algo].mindspeed);
	}
	if (h->ep > 1)
		line(w, "--expert-model-parallel-size %" PRId64 "\n--expert-tensor-parallel-size %" PRId64,
			h->ep, h->tp);
	if (h->ep > 1 && w->p->step->experts_relayed)
		line(w, "--moe-token-dispatcher-type flex\n--moe-enable-deepep");
	if (h->sp)
		line(w, "--sequence-parallel");
	if (h->tp > 1 && h->vocab != AP_VOCAB_CUT)
		say(w, "Megatron cuts the table of words, which this hybrid leaves whole");
}

static void megatron_batch(struct words *w)
{
	const struct ap_hybrid *h = &w->x->hybrid;

	if (w->p->graph->batch == 0) {
		say(w, "--global-batch-size: the graph has no batch");
		return;
	}
	line(w, "--micro-batch-size %" PRId64 "\n--global-batch-size %" PRId64, h->mbs,
		h->mbs * h->dp * h->micro_batches);
}

static void megatron_optimizer(struct words *w)
{
	const struct ap_step *step = w->p->step;
	bool dealt = step->optimizer_sharding, exchanged = w->x->hybrid.dp * w->x->hybrid.cp > 1;

	if (step->product_overlap)
		line(w, "--tp-comm-overlap");
	if (w->p->step->pipe && w->p->step->pipe->scheduler && w->p->step->pipe->scheduler->beside)
		line(w, "--overlap-moe-expert-parallel-comm");
	if (step->float8)
		line(w, "--fp8-format %s\n--fp8-recipe %s", step->float8_hybrid ? "hybrid" : "e4m3",
			step->float8->name);
	if (step->float8_params)
		line(w, "--fp8-param-gather");
	if (!step->training)
		return;
	if (dealt)
		line(w, "--use-distributed-optimizer");
	if (exchanged && !step->exchange_behind)
		line(w, "--overlap-grad-reduce");
	if (dealt && exchanged && !step->exchange_behind &&
		w->b->asked.speed_up[AP_SPEED_UP_computation_allgather_overlap])
		line(w, "--overlap-param-gather");
}

/* Layers in Megatron's notation: E embedding, t a layer, L the loss; parts in data order. */
static void megatron_layout(struct words *w)
{
	const struct ap_layers *l = &w->layers;
	int32_t n = l->nstage * l->nsegment;

	ap_str_add(&w->text, "--pipeline-model-parallel-layout E");
	for (int32_t i = 0; i < n; i++) {
		ap_str_add(&w->text, i ? "|" : "");
		for (int64_t k = 0; k < l->part[i]; k++)
			ap_str_addc(&w->text, 't');
	}
	ap_str_add(&w->text, "L\n");
}

static void megatron_pipeline(struct words *w)
{
	const struct ap_layers *l = &w->layers;
	const struct ap_pipe *pipe = w->p->step->pipe;
	bool even = l->nsegment == 1; /* except the first and the last stage */
	int32_t last = l->nstage - 1;

	if (l->nstage * l->nsegment == 1)
		return;
	if (pipe->scheduler->vee || strcmp(pipe->scheduler->name, "gpipe") == 0)
		say(w, "Megatron runs 1f1b, not %s", pipe->scheduler->name);
	if (l->nsegment > 1)
		line(w, "--num-virtual-stages-per-pipeline-rank %" PRId32, l->nsegment);
	if (!l->part || ap_layers_even(l, l->part))
		return;
	for (int32_t i = 2; i < last; i++)
		even = even && l->part[i] == l->part[1];
	if (!even) {
		megatron_layout(w);
		return;
	}
	if (last == 1 || l->part[0] != l->part[1])
		line(w, "--decoder-first-pipeline-num-layers %" PRId64, l->part[0]);
	if (last > 1 && l->part[last] != l->part[1])
		line(w, "--decoder-last-pipeline-num-layers %" PRId64, l->part[last]);
}

/* Recomputed layers: the first ones of each part, equally many or all of it. */
static void megatron_full(struct words *w)
{
	const struct ap_layers *l = &w->layers;
	bool all = l->nfull == l->n, even = l->part != NULL;
	int64_t most = 0;

	for (int32_t k = 0; k < l->nstage * l->nsegment; k++)
		most = l->full[k] > most ? l->full[k] : most;
	for (int32_t k = 0; l->part && k < l->nstage * l->nsegment; k++)
		even &= l->full[k] == most || (l->full[k] == l->part[k] && most > l->part[k]);
	if (!all && (!l->full_first || !even)) {
		say(w, "layers are recomputed, in some stages more; Megatron has one number");
		return;
	}
	if (l->nagain > 0)
		say(w, "beside full layers others are recomputed in part; Megatron has one granularity");
	line(w, "--recompute-granularity full\n--recompute-method %s\n--recompute-num-layers %" PRId64,
		all ? "uniform" : "block", !all ? most : l->unit > 1 ? l->unit : 1);
	if (l->slice && !w->x->hybrid.sp && w->x->hybrid.tp > 1)
		line(w, "--distribute-saved-activations");
}

/* Megatron's words for what each layer recomputes; "" if it has none for some of that. */
static const char *megatron_modules(struct words *w)
{
	static const struct {
		unsigned what;
		const char *word;
	} modules[] = {{AP_RECOMPUTE_SELECTIVE, " core_attn"}, {AP_RECOMPUTE_NORM, " layernorm"},
		{AP_RECOMPUTE_MLP, " mlp"}, {AP_RECOMPUTE_MOE, " moe"},
		{AP_RECOMPUTE_SHARED, " shared_experts"}, {AP_RECOMPUTE_MOE_ACT, " moe_act"}};
	unsigned left = w->layers.what & ~(unsigned)AP_RECOMPUTE_COMMUNICATION; /* it gathers again anyway */
	struct ap_str s;

	if (w->layers.experts && (left & AP_RECOMPUTE_ACTIVATION))
		left = (left & ~(unsigned)AP_RECOMPUTE_ACTIVATION) | AP_RECOMPUTE_MOE_ACT;
	ap_str_init(&s, w->ctx->arena);
	for (size_t i = 0; i < AP_COUNT(modules); i++) {
		if (!(left & modules[i].what))
			continue;
		ap_str_add(&s, modules[i].word);
		left &= ~modules[i].what;
	}
	return left ? "" : s.s;
}

static void megatron_recompute(struct words *w)
{
	const struct ap_layers *l = &w->layers;
	const char *modules = l->alike ? megatron_modules(w) : "";

	if (l->nfull > 0) {
		megatron_full(w);
	} else if (l->nagain > 0 && *modules) {
		line(w, "--recompute-granularity selective");
		if (strcmp(modules, " core_attn") != 0) /* its default */
			line(w, "--recompute-modules%s", modules);
	} else if (l->nagain > 0 && !l->alike && w->p->recompute) {
		say(w, "layers recompute different parts; Megatron has one list of modules for all");
	} else if (l->nagain > 0) {
		say(w, "kinds of operators that are recomputed by themselves, which cannot be "
			"said: %" PRIu32, l->nagain);
	}
}

/* ---- the files of both frameworks ---- */

typedef void part_fn(struct words *w);

/* parts: ended by NULL. */
static void write_words(struct ap_ctx *ctx, const struct ap_bundle *b, const char *framework,
	part_fn *const *parts, ap_write_fn *write, void *user)
{
	struct words w = {.ctx = ctx, .b = b, .p = b->plan, .x = b->expert};

	ap_layers_find(ctx, b->plan, &w.layers);
	ap_str_init(&w.text, ctx->arena);
	if (say_head(&w, framework))
		for (; *parts; parts++)
			(*parts)(&w);
	write(user, w.text.s, w.text.len);
}

void ap_mindformers_write(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	static part_fn *const parts[] = {say_unsaid, say_float8, parallel_config, runner_config, parallel,
		model_config, recompute_config, context, NULL};

	write_words(ctx, b, "MindFormers", parts, write, user);
}

void ap_megatron_write(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	static part_fn *const parts[] = {say_unsaid, megatron_degrees, megatron_batch, megatron_pipeline,
		megatron_optimizer, megatron_recompute, NULL};

	write_words(ctx, b, "Megatron", parts, write, user);
}
