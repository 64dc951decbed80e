/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/megatron.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "bundle/words.h"
#include "cost/float8.h"
#include "cost/optimizer.h"
#include "pipeline/schedule.h"

struct script {
	struct ap_words w;
	bool ascend; /* MindSpeed's words */
	bool fsdp; /* Megatron-FSDP deals more than states */
	int64_t *layers; /* [part] of the decoder, without those behind it; NULL: one part, or not known */
};

/* ---- arguments, a line each ---- */

static void arg(struct script *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void arg(struct script *s, const char *format, ...)
{
	va_list ap;

	ap_str_addc(&s->w.text, '\t');
	va_start(ap, format);
	ap_str_vaddf(&s->w.text, format, ap);
	va_end(ap);
	ap_str_addc(&s->w.text, '\n');
}

#define UNSAID(s, kind, ...) ap_words_unsaid(&(s)->w, AP_UNSAID_##kind, __VA_ARGS__)

static bool is_beside(const struct script *s)
{
	const struct ap_pipe *pipe = s->w.p->step->pipe;

	return pipe && pipe->scheduler && pipe->scheduler->beside;
}

static void add_context(struct script *s)
{
	static const struct {
		const char *megatron, *mindspeed;
		int64_t parts; /* of a rank, that a sequence is cut into */
	} exchange[AP_CP_ALGOS] = {
		[AP_CP_USUAL] = {"all_gather", "kvallgather_cp_algo", 2},
		[AP_CP_ALL_GATHER] = {"all_gather", "kvallgather_cp_algo", 2},
		[AP_CP_RING] = {"p2p", "megatron_cp_algo", 2},
		[AP_CP_ALL_TO_ALL] = {"a2a", "ulysses_cp_algo", 1},
	};
	const struct ap_hybrid *h = s->w.h;
	int64_t tokens = ap_words_tokens(&s->w), parts = s->ascend ? exchange[h->cp_algo].parts : 2;

	arg(s, "--context-parallel-size %" PRId64, h->cp);
	if (h->cp == 1)
		return;
	if (s->ascend)
		arg(s, "--context-parallel-algo %s", exchange[h->cp_algo].mindspeed);
	else
		arg(s, "--cp-comm-type %s", exchange[h->cp_algo].megatron);
	if (tokens % (parts * h->cp))
		UNSAID(s, STOPS, "sequences of %" PRId64 " tokens: they have to divide into %" PRId64
			" parts for each of %" PRId64 " ranks", tokens, parts, h->cp);
}

static void add_experts(struct script *s)
{
	const struct ap_hybrid *h = s->w.h;

	if (!s->w.layers.experts)
		return;
	if (h->ep > 1)
		arg(s, "--expert-model-parallel-size %" PRId64 "\n\t--expert-tensor-parallel-size %" PRId64,
			h->ep, ap_words_expert_tensor(&s->w));
	if (h->ep > 1 && s->w.p->step->experts_relayed && s->ascend)
		UNSAID(s, LEFT, "tokens that go once to each server with experts of them");
	if (h->ep > 1 && s->w.p->step->experts_relayed && !s->ascend)
		arg(s, "--moe-token-dispatcher-type flex\n\t--moe-enable-deepep");
	else
		arg(s, "--moe-token-dispatcher-type alltoall");
	arg(s, "--moe-grouped-gemm");
	if (h->ep > 1 && h->cp > 1 && h->ep % h->cp && ap_words_expert_tensor(&s->w) == h->tp)
		UNSAID(s, LEFT, "experts dealt to data parallel ranks alone: it deals them to those of "
			"context parallelism first");
}

static void add_degrees(struct script *s)
{
	const struct ap_hybrid *h = s->w.h;

	arg(s, "--tensor-model-parallel-size %" PRId64 "\n\t--pipeline-model-parallel-size %" PRId64, h->tp,
		h->pp);
	add_context(s);
	add_experts(s);
	if (h->tp > 1 && (h->sp || s->w.layers.experts))
		arg(s, "--sequence-parallel");
	if (h->tp > 1 && !h->sp && s->w.layers.experts)
		UNSAID(s, OTHERWISE, "experts beside tensor parallelism without sequence parallelism: its "
			"first step would stop, so the script says --sequence-parallel, and sp=1 plans that");
	if (h->tp > 1 && h->vocab == AP_VOCAB_WHOLE)
		UNSAID(s, LEFT, "a table of words that tensor parallelism leaves whole: it is cut");
}

static void add_batch(struct script *s)
{
	const struct ap_hybrid *h = s->w.h;

	if (s->w.p->graph->batch == 0)
		UNSAID(s, STOPS, "a step without samples: the graph has no batch");
	arg(s, "--micro-batch-size %" PRId64 "\n\t--global-batch-size %" PRId64, h->mbs,
		h->mbs * h->dp * h->micro_batches);
}

/* ---- pipelines ---- */

/* Do only the first and the last stage differ, and the segments of a stage not at all? */
static bool only_ends_differ(const struct ap_layers *l, const int64_t *part)
{
	int32_t last = l->nstage - 1;

	for (int32_t k = 0; k < l->nstage * l->nsegment; k++) {
		int32_t stage = k % l->nstage;

		if (part[k] != part[stage] || part[stage] == 0 ||
			(stage > 0 && stage < last && part[stage] != part[1]))
			return false;
	}
	return true;
}

/* Layers in Megatron's notation: E embedding, t a layer, m one behind the others, L the loss; stages of a
 * chunk, then those of the next. */
static void add_layout(struct script *s)
{
	const struct ap_layers *l = &s->w.layers;
	int32_t n = l->nstage * l->nsegment;

	ap_str_add(&s->w.text, "\t--pipeline-model-parallel-layout 'E");
	for (int32_t i = 0; i < n; i++) {
		ap_str_add(&s->w.text, i ? "|" : "");
		if (s->layers[i] > 0)
			ap_str_addf(&s->w.text, s->layers[i] > 1 ? "t*%" PRId64 : "t", s->layers[i]);
	}
	for (int64_t i = 0; s->w.b->network && i < s->w.b->network->further; i++)
		ap_str_addc(&s->w.text, 'm');
	ap_str_add(&s->w.text, "L'\n");
}

/* MindSpeed's numbers of layers: of each stage, or of each chunk of it. */
static void add_layer_lists(struct script *s, int64_t each)
{
	const struct ap_layers *l = &s->w.layers;

	if (l->nsegment > 1)
		arg(s, "--num-layers-per-virtual-pipeline-stage %" PRId64, each);
	ap_str_add(&s->w.text, l->nsegment > 1 ? "\t--pipeline-num-transformer-layers '[" :
		"\t--num-layer-list ");
	for (int32_t stage = 0; stage < l->nstage; stage++) {
		ap_str_add(&s->w.text, l->nsegment > 1 ? stage ? ",[" : "[" : stage ? "," : "");
		for (int32_t k = 0; k < l->nsegment; k++)
			ap_str_addf(&s->w.text, "%s%" PRId64, k ? "," : "",
				s->layers[k * l->nstage + stage]);
		ap_str_add(&s->w.text, l->nsegment > 1 ? "]" : "");
	}
	ap_str_add(&s->w.text, l->nsegment > 1 ? "]'\n" : "\n");
}

static void add_layers(struct script *s)
{
	const struct ap_layers *l = &s->w.layers;
	int32_t last = l->nstage - 1, parts = l->nstage * l->nsegment;
	bool even = ap_layers_even(l, s->layers), bare = s->layers[0] == 0 || s->layers[parts - 1] == 0;
	int64_t all = 0;

	for (int32_t k = 0; k < parts; k++)
		all += s->layers[k];
	if (even && l->nsegment > 1 && s->ascend) {
		arg(s, "--num-layers-per-virtual-pipeline-stage %" PRId64, all / parts);
	} else if (even && l->nsegment > 1) {
		arg(s, "--num-virtual-stages-per-pipeline-rank %" PRId32, l->nsegment);
	} else if (even) {
		return;
	} else if (s->ascend && !bare && (l->nsegment == 1 || all % parts == 0)) {
		add_layer_lists(s, all / parts);
	} else if (s->ascend || !only_ends_differ(l, s->layers)) {
		add_layout(s);
	} else {
		if (l->nsegment > 1)
			arg(s, "--num-virtual-stages-per-pipeline-rank %" PRId32, l->nsegment);
		if (last == 1 || s->layers[0] != s->layers[1])
			arg(s, "--decoder-first-pipeline-num-layers %" PRId64, s->layers[0] * l->nsegment);
		if (last > 1 && s->layers[last] != s->layers[1])
			arg(s, "--decoder-last-pipeline-num-layers %" PRId64, s->layers[last] * l->nsegment);
	}
}

static void add_pipeline(struct script *s)
{
	const struct ap_layers *l = &s->w.layers;
	const struct ap_pipe *pipe = s->w.p->step->pipe;
	const int64_t *part = ap_words_parts(&s->w);
	int32_t parts = l->nstage * l->nsegment;
	int64_t further = s->w.b->network ? s->w.b->network->further : 0;

	ap_words_stages(&s->w);
	if (parts == 1)
		return;
	if (pipe->scheduler->vee)
		UNSAID(s, STOPS, "the schedule %s: it runs 1f1b, interleaved or not", pipe->scheduler->name);
	else if (!strcmp(pipe->scheduler->name, "gpipe"))
		UNSAID(s, LEFT, "the schedule gpipe: it runs 1f1b");
	if (l->nsegment > 1 && s->w.h->micro_batches % l->nstage)
		UNSAID(s, STOPS, "%" PRId64 " micro-batches in an interleaved pipeline of %" PRId32
			" stages, which do not divide them", s->w.h->micro_batches, l->nstage);
	if (l->nsegment > 1 && l->nstage == 1)
		UNSAID(s, STOPS, "chunks of layers without pipeline stages");
	if (!part)
		return;
	if (!s->w.b->network)
		arg(s, "--num-layers %" PRIu32, l->n);
	s->layers = AP_NEW_N(s->w.ctx->arena, int64_t, parts);
	memcpy(s->layers, part, (size_t)parts * sizeof *part);
	/* the family may count them on from the decoder's own */
	if (further && l->n == s->w.b->network->layers + further && part[parts - 1] >= further)
		s->layers[parts - 1] -= further;
	add_layers(s);
}

/* ---- optimizer, precision, overlap ---- */

static void add_fsdp(struct script *s)
{
	const struct ap_step *step = s->w.p->step;
	const char *optimizer = step->optimizer ? step->optimizer->name : "";

	if (s->ascend) {
		UNSAID(s, LEFT, "optimizer level%d, which deals %s: with core 0.12 states are dealt alone",
			step->optimizer_level, step->optimizer_level == 3 ? "gradients and weights" :
			"gradients");
		return;
	}
	arg(s, "--use-megatron-fsdp\n\t--data-parallel-sharding-strategy %s\n\t--ckpt-format fsdp_dtensor",
		step->optimizer_level == 3 ? "optim_grads_params" : "optim_grads");
	if (strncmp(optimizer, "adam", 4) != 0 && strcmp(optimizer, "momentum") != 0 &&
		strcmp(optimizer, "sgd") != 0)
		UNSAID(s, STOPS, "optimizer level%d of %s: Megatron-FSDP takes sgd and adam",
			step->optimizer_level, optimizer);
}

static void add_optimizer(struct script *s)
{
	const struct ap_step *step = s->w.p->step;
	const char *name = step->optimizer ? step->optimizer->name : "adam";
	int64_t all = s->w.h->dp * s->w.h->cp; /* ranks that hold the same */

	if (!strcmp(name, "momentum"))
		arg(s, "--optimizer sgd");
	else if (!strcmp(name, "sgd"))
		arg(s, "--optimizer sgd\n\t--sgd-momentum 0");
	else if (strncmp(name, "adam", 4) != 0)
		UNSAID(s, LEFT, "the optimizer %s: it has adam and sgd", name);
	if (!step->training)
		UNSAID(s, STOPS, "a run without training");
	if (step->optimizer_sharding)
		arg(s, "--use-distributed-optimizer");
	if (step->optimizer_sharding && step->optimizer_level > 1)
		add_fsdp(s);
	if (!step->optimizer_sharding || step->shard_size <= 0 || step->shard_size == all)
		return;
	if (s->ascend || step->optimizer_level > 1 || all % step->shard_size || s->w.h->ep > 1)
		UNSAID(s, LEFT, "parameters dealt among %" PRId64 " ranks: they are dealt among all that "
			"hold the same", step->shard_size);
	else
		arg(s, "--num-distributed-optimizer-instances %" PRId64, all / step->shard_size);
}

/* A forward and a backward pass run as one, tokens of each under way beside the other. */
static void add_passes_as_one(struct script *s)
{
	const struct ap_layers *l = &s->w.layers;
	const unsigned experts = AP_RECOMPUTE_FULL | AP_RECOMPUTE_MOE;

	arg(s, s->ascend ? "--moe-fb-overlap" : "--overlap-moe-expert-parallel-comm");
	if (s->w.h->ep == 1)
		UNSAID(s, STOPS, "two passes as one without expert parallelism");
	if (l->nstage > 1 && l->nsegment == 1)
		UNSAID(s, STOPS, "two passes as one in a pipeline that is not interleaved");
	if (!s->ascend && (l->nfull > 0 || (l->what & experts)))
		UNSAID(s, STOPS, "two passes as one where experts are recomputed");
	if (s->ascend && ap_words_expert_tensor(&s->w) > 1)
		UNSAID(s, STOPS, "two passes as one beside experts that tensor parallelism cuts");
}

static void add_overlap(struct script *s)
{
	const struct ap_step *step = s->w.p->step;

	if (step->product_overlap && !(s->w.h->tp > 1 && s->w.h->sp))
		UNSAID(s, LEFT, "products beside their collectives: that needs sequence parallelism");
	else if (step->product_overlap)
		arg(s, s->ascend ? "--use-ascend-mc2" : "--tp-comm-overlap");
	if (is_beside(s))
		add_passes_as_one(s);
	if (step->exchange_behind)
		return;
	arg(s, "--overlap-grad-reduce");
	if (step->optimizer_sharding && s->w.b->asked.speed_up[AP_SPEED_UP_computation_allgather_overlap])
		arg(s, "--overlap-param-gather");
}

static void add_float8(struct script *s)
{
	const struct ap_step *step = s->w.p->step;

	if (!step->float8)
		return;
	if (s->ascend) {
		UNSAID(s, LEFT, "products in 8 bits");
		return;
	}
	arg(s, "--fp8-format %s\n\t--fp8-recipe %s", step->float8_hybrid ? "hybrid" : "e4m3",
		step->float8->name);
	if (step->float8_params)
		arg(s, "--fp8-param-gather");
}

/* ---- what is computed again ---- */

/* Whole layers: the first ones of each part, equally many or all of it. */
static void add_full(struct script *s)
{
	const struct ap_layers *l = &s->w.layers;
	bool all = l->nfull == l->n, even = l->part != NULL;
	int64_t most = 0;

	for (int32_t k = 0; k < l->nstage * l->nsegment; k++)
		most = l->full[k] > most ? l->full[k] : most;
	for (int32_t k = 0; l->part && k < l->nstage * l->nsegment; k++)
		even &= l->full[k] == most || (l->full[k] == l->part[k] && most > l->part[k]);
	if (!all && (!l->full_first || !even)) {
		UNSAID(s, LEFT, "layers that are recomputed, %s: it has one number for all stages",
			l->full_first ? "more in some stages than in others" : "others than a stage's first");
		return;
	}
	if (l->nagain > 0)
		UNSAID(s, LEFT, "parts of layers that are recomputed beside whole ones: it has one "
			"granularity");
	arg(s, "--recompute-granularity full\n\t--recompute-method %s\n\t--recompute-num-layers %" PRId64,
		all ? "uniform" : "block", !all ? most : l->unit > 1 ? l->unit : 1);
	if (!l->slice)
		return;
	if (s->w.h->tp > 1 && !s->w.h->sp)
		arg(s, "--distribute-saved-activations");
	else if (s->w.h->tp > 1)
		UNSAID(s, LEFT, "inputs of recomputed layers held in parts, which sequence parallelism has "
			"cut already");
}

/* The words for what each layer recomputes; what is left has none. MindSpeed has some of its own. */
static unsigned find_modules(struct script *s, struct ap_str *modules)
{
	static const struct {
		unsigned what;
		const char *word;
	} words[] = {{AP_RECOMPUTE_SELECTIVE, " core_attn"}, {AP_RECOMPUTE_NORM, " layernorm"},
		{AP_RECOMPUTE_MLP, " mlp"}, {AP_RECOMPUTE_MOE, " moe"},
		{AP_RECOMPUTE_SHARED, " shared_experts"}, {AP_RECOMPUTE_MOE_ACT, " moe_act"},
		{AP_RECOMPUTE_LATENT, " mla_up_proj"}};
	/* it gathers again anyway */
	unsigned left = s->w.layers.what & ~(unsigned)AP_RECOMPUTE_COMMUNICATION;

	if (!s->w.layers.latent) /* Megatron refuses the word then */
		left &= ~(unsigned)AP_RECOMPUTE_LATENT;
	if (s->ascend)
		left &= ~(unsigned)(AP_RECOMPUTE_NORM | AP_RECOMPUTE_ACTIVATION);
	else if (s->w.layers.experts && (left & AP_RECOMPUTE_ACTIVATION))
		left = (left & ~(unsigned)AP_RECOMPUTE_ACTIVATION) | AP_RECOMPUTE_MOE_ACT;
	for (size_t i = 0; i < AP_COUNT(words); i++) {
		if (!(left & words[i].what))
			continue;
		ap_str_add(modules, words[i].word);
		left &= ~words[i].what;
	}
	return left;
}

static void add_parts_of_layers(struct script *s)
{
	const struct ap_layers *l = &s->w.layers;
	struct ap_str modules;
	unsigned left;

	ap_str_init(&modules, s->w.ctx->arena);
	left = find_modules(s, &modules);
	if (left) {
		UNSAID(s, LEFT, "what layers recompute: there are no words for %s",
			ap_again_text(s->w.ctx->arena, left));
		return;
	}
	if (modules.len)
		arg(s, "--recompute-granularity selective\n\t--recompute-modules%s", modules.s);
	if (s->ascend && (l->what & AP_RECOMPUTE_NORM))
		arg(s, "--recompute-norm");
	if (s->ascend && (l->what & AP_RECOMPUTE_ACTIVATION))
		arg(s, "--recompute-activation-function");
	if (s->w.p->step->float8 && s->w.p->step->float8->delayed &&
		(l->what & (AP_RECOMPUTE_NORM | AP_RECOMPUTE_MOE_ACT)))
		UNSAID(s, STOPS, "norms or activations of experts recomputed with delayed scales");
}

static void add_recompute(struct script *s)
{
	const struct ap_layers *l = &s->w.layers;

	if (l->nagain_outside)
		UNSAID(s, LEFT, "operators of no layer that are recomputed: %" PRIu32, l->nagain_outside);
	if (l->nfull > 0)
		add_full(s);
	else if (l->nagain > 0 && l->alike && l->what)
		add_parts_of_layers(s);
	else if (l->nagain > 0)
		UNSAID(s, LEFT, s->w.p->recompute ? "layers that recompute different parts: it has one list "
			"of modules for all" : "kinds of operators that are recomputed by themselves");
}

/* ---- the script ---- */

static void add_head(struct script *s)
{
	struct ap_words *w = &s->w;

	ap_words_line(w, "#!/bin/bash");
	if (s->ascend)
		ap_words_comment(w, "Runs a plan in MindSpeed-LLM, as of 2026 on Megatron core 0.12.1; on "
			"each server:");
	else
		ap_words_comment(w, "Runs a plan in Megatron-LM, core 0.14 or newer; on each server:");
	ap_words_comment(w, "    MASTER_ADDR=HOST NODE_RANK=K bash %s [MORE ARGUMENTS]",
		s->ascend ? "mindspeed.sh" : "megatron.sh");
	ap_words_comment(w, "in the folder of pretrain_gpt.py, or with its path as PRETRAIN.");
	ap_words_head(w);
	ap_words_line(w, "set -eu\n");
}

/* Does the script's caller have to say more of the network? */
static bool demands_network(const struct ap_bundle *b)
{
	return !b->network || b->network->missing;
}

/* The arguments of the script's caller, MODEL_ARGS and TRAIN_ARGS, are words between blanks. */
static void add_environment(struct script *s)
{
	struct ap_words *w = &s->w;

	if (s->fsdp || is_beside(s))
		ap_words_comment(w, "Collectives run beside the rest only on streams of their own.");
	else
		ap_words_comment(w, "Kernels start in the order in which they are queued: collectives "
			"beside products.");
	ap_words_line(w, "export CUDA_DEVICE_MAX_CONNECTIONS=%d", s->fsdp || is_beside(s) ? 32 : 1);
	if (s->ascend)
		ap_words_line(w, "export HCCL_CONNECT_TIMEOUT=${HCCL_CONNECT_TIMEOUT:-1800}\n"
			"export HCCL_EXEC_TIMEOUT=${HCCL_EXEC_TIMEOUT:-1800}");
	if (demands_network(w->b)) {
		ap_str_addc(&w->text, '\n');
		ap_words_comment(w, "The graph does not tell %s: MODEL_ARGS has such arguments.",
			w->b->network ? w->b->network->missing : "hidden-size and the like");
		ap_words_line(w, ": \"${MODEL_ARGS:?set it to the arguments of the network}\"\n"
			"read -r -d '' -a MODEL <<<\"$MODEL_ARGS\" || true");
	}
	ap_str_addc(&w->text, '\n');
	ap_words_comment(w, "Data, learning rate, length: these only try the plan out.");
	ap_words_line(w, "TRAIN_ARGS=${TRAIN_ARGS:-\"--mock-data --tokenizer-type NullTokenizer "
		"--train-iters 10 --lr 1e-4\"}\n"
		"read -r -d '' -a TRAIN <<<\"$TRAIN_ARGS\" || true\n");
}

static void add_network(struct script *s)
{
	const struct ap_bundle_network *network = s->w.b->network;

	if (network)
		ap_words_comment(&s->w, "%sWhat changes no size of the network, as rotary-base, keeps its "
			"default: TRAIN_ARGS may say it.", network->read ?
			"The network is read out of the graph. " : "");
	ap_words_line(&s->w, "ARGS=(");
	for (uint32_t i = 0; network && i < network->n; i++)
		arg(s, "%s", network->word[i]);
	if (demands_network(s->w.b)) /* the last one counts */
		arg(s, "\"${MODEL[@]}\"");
	arg(s, "\"${TRAIN[@]}\"");
	if (s->ascend)
		arg(s, "--use-mcore-models\n\t--transformer-impl local\n\t--optimization-level 2%s",
			ap_words_has(&s->w, "FlashAttentionScore") ? "\n\t--use-flash-attn" : "");
}

static void add_start(struct script *s)
{
	ap_words_line(&s->w, ")\n");
	ap_words_torchrun(&s->w);
	ap_words_line(&s->w, "\"${PRETRAIN:-pretrain_gpt.py}\" \"${ARGS[@]}\" \"$@\"");
}

static void say_script(struct ap_ctx *ctx, const struct ap_bundle *b, bool ascend, struct ap_said *out)
{
	static void (*const parts[])(struct script *) = {add_head, add_environment, add_network, add_degrees,
		add_batch, add_pipeline, add_optimizer, add_overlap, add_float8, add_recompute, add_start};
	const struct ap_step *step = b->plan->step;
	struct script s = {.ascend = ascend,
		.fsdp = !ascend && step->optimizer_sharding && step->optimizer_level > 1};

	if (ap_words_begin(ctx, b, ascend ? "MindSpeed" : "Megatron-LM", &s.w))
		for (size_t i = 0; i < AP_COUNT(parts); i++)
			parts[i](&s);
	ap_words_end(&s.w, out);
}

void ap_megatron_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out)
{
	say_script(ctx, b, false, out);
}

void ap_mindspeed_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out)
{
	say_script(ctx, b, true, out);
}
