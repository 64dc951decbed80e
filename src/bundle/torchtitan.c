/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/torchtitan.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "bundle/words.h"
#include "cost/float8.h"
#include "cost/optimizer.h"
#include "pipeline/schedule.h"

#define LEFT(w, ...) ap_words_unsaid(w, AP_UNSAID_LEFT, __VA_ARGS__)
#define STOPS(w, ...) ap_words_unsaid(w, AP_UNSAID_STOPS, __VA_ARGS__)

static void flag(struct ap_words *w, const char *name, int64_t value)
{
	ap_words_line(w, "\t--%s %" PRId64, name, value);
}

/* ---- the script ---- */

static void add_head(struct ap_words *w)
{
	ap_words_line(w, "#!/bin/bash");
	ap_words_comment(w, "Runs a plan in torchtitan, as of August 2026; on each server:");
	ap_words_comment(w, "    MASTER_ADDR=HOST NODE_RANK=K MODULE=M CONFIG=C bash torchtitan.sh [MORE "
		"FLAGS]");
	ap_words_comment(w, "C is a function of M that returns " AP_TORCHTITAN_PYTHON "'s apply() of a "
		"configuration.");
	ap_words_head(w);
	ap_words_line(w, "set -eu\n\n"
		": \"${MODULE:?set it to the module of the model, as llama3}\"\n"
		": \"${CONFIG:?set it to a function of MODULE that returns "
		"torchtitan_plan.apply(configuration)}\"\n"
		"FOLDER=$(cd \"$(dirname \"$0\")\" && pwd)\n"
		"export PYTHONPATH=\"$FOLDER${PYTHONPATH:+:$PYTHONPATH}\"\n"
		"export PYTORCH_ALLOC_CONF=${PYTORCH_ALLOC_CONF:-expandable_segments:True}\n\n"
		"ARGS=(");
}

/* Ranks that parameters are dealt to, and copies of them; what else FSDP2 does, it always does. */
static void add_sharding(struct ap_words *w)
{
	const struct ap_step *step = w->p->step;
	const struct ap_hybrid *h = w->h;
	bool dealt = step->optimizer_sharding;
	int64_t shard = dealt ? h->dp : 1;

	if (dealt && step->shard_size > 0 && h->cp == 1 && h->dp % step->shard_size == 0)
		shard = step->shard_size;
	else if (dealt && step->shard_size > 0)
		LEFT(w, "parameters dealt among %" PRId64 " ranks", step->shard_size);
	if (!dealt && h->cp > 1)
		LEFT(w, "whole parameters beside context parallelism: they are dealt among its ranks");
	flag(w, "parallelism.data_parallel_replicate_degree", h->dp / shard);
	flag(w, "parallelism.data_parallel_shard_degree", shard);
	if (dealt)
		ap_words_line(w, "\t--parallelism.fsdp_reshard_after_forward %s",
			step->optimizer_level == 3 ? "always" : "never");
	if (dealt && step->optimizer_level == 1 && !step->sums_whole)
		ap_words_unsaid(w, AP_UNSAID_OTHERWISE, "optimizer level1: FSDP2 deals gradients, too, which "
			"level2 plans");
	if (h->ep > 1 && shard * h->cp * h->tp % h->ep)
		STOPS(w, "experts dealt among %" PRId64 " ranks: they have to divide the %" PRId64
			" that parameters are dealt among", h->ep, shard * h->cp * h->tp);
}

static void add_degrees(struct ap_words *w)
{
	const struct ap_hybrid *h = w->h;

	flag(w, "parallelism.tensor_parallel_degree", h->tp);
	flag(w, "parallelism.context_parallel_degree", h->cp);
	flag(w, "parallelism.pipeline_parallel_degree", h->pp);
	add_sharding(w);
	if (w->layers.experts)
		flag(w, "parallelism.expert_parallel_degree", h->ep);
	if (h->ep > 1 && h->tp > 1 && ap_words_expert_tensor(w) > 1)
		LEFT(w, "experts that tensor parallelism cuts beside expert parallelism: etp=1 is what it "
		"has");
	if (h->cp_algo == AP_CP_RING)
		LEFT(w, "keys and values that go round: they are gathered");
	if (h->tp > 1 && h->vocab == AP_VOCAB_WHOLE)
		LEFT(w, "a table of words that tensor parallelism leaves whole: it is cut");
	if (w->p->step->product_overlap)
		ap_words_line(w, "\t--compile.enable\n\t--compile.enable_async_tensor_parallel");
}

static void add_batch(struct ap_words *w)
{
	const struct ap_hybrid *h = w->h;
	int64_t tokens = ap_words_tokens(w);

	if (!tokens || !w->p->graph->batch)
		STOPS(w, "samples that are no sequences of tokens");
	flag(w, "training.num_tokens_per_microbatch_per_dp_rank", h->mbs * tokens);
	flag(w, "training.num_tokens_per_train_step", h->mbs * h->dp * h->micro_batches * tokens);
	if (!w->p->step->training)
		STOPS(w, "a run without training");
}

static void add_pipeline(struct ap_words *w)
{
	static const struct {
		const char *name, *theirs;
	} schedules[] = {{"gpipe", "GPipe"}, {"1f1b", "1F1B"}, {"interleaved", "Interleaved1F1B"},
		{"zero_bubble_v", "ZBVZeroBubble"}};
	const struct ap_layers *l = &w->layers;
	const struct ap_pipe *pipe = w->p->step->pipe;
	const char *name = pipe ? pipe->scheduler->name : "";
	int64_t m = w->h->micro_batches;

	ap_words_stages(w);
	if (l->nstage * l->nsegment == 1)
		return;
	if (pipe && pipe->scheduler->beside)
		LEFT(w, "two passes as one, tokens of each under way beside the other");
	if (!strcmp(name, "interleaved") && l->nsegment == 1)
		name = "1f1b";
	for (size_t i = 0; i < AP_COUNT(schedules); i++)
		if (!strcmp(schedules[i].name, name))
			ap_words_line(w, "\t--parallelism.pipeline_parallel_schedule %s",
			schedules[i].theirs);
	flag(w, "parallelism.num_pp_microbatches", m);
	ap_words_line(w, "\t--training.disable_cuda_graphs");
	if (l->part && ap_layers_even(l, l->part)) {
		flag(w, "parallelism.pipeline_parallel_layers_per_stage", l->part[0]);
		flag(w, "parallelism.pipeline_parallel_first_stage_less_layers", 0);
		flag(w, "parallelism.pipeline_parallel_last_stage_less_layers", 0);
	}
	if (strcmp(name, "gpipe") != 0 && m < l->nstage)
		STOPS(w, "fewer micro-batches (%" PRId64 ") than pipeline stages", m);
	else if (l->nsegment > 1 && m % l->nstage)
		STOPS(w, "%" PRId64 " micro-batches in an interleaved pipeline of %" PRId32
			" stages, which do not divide them", m, l->nstage);
}

static void add_start(struct ap_words *w)
{
	ap_words_line(w, ")\n");
	ap_words_torchrun(w);
	ap_words_line(w, "-m torchtitan.train --module \"$MODULE\" --config \"$CONFIG\" \"${ARGS[@]}\" "
		"\"$@\"");
}

/* ---- Python ---- */

/* The modules of each part, in the order in which data flows, where they are uneven. */
static void write_modules(struct ap_words *w, struct ap_str *out)
{
	const struct ap_layers *l = &w->layers;
	int32_t parts = l->nstage * l->nsegment;
	int64_t layer = 0;

	ap_str_add(out, "MODULES = [\n");
	for (int32_t k = 0; k < parts; k++) {
		int64_t n = l->part[l->place[k]];

		ap_str_addf(out, "    [%s", k ? "" : "\"tok_embeddings\"");
		for (int64_t i = 0; i < n; i++)
			ap_str_addf(out, "%s\"layers.%" PRId64 "\"", k && !i ? "" : ", ", layer++);
		ap_str_addf(out, "%s],\n", k < parts - 1 ? "" : n ? ", \"norm\", \"lm_head\""
			: "\"norm\", \"lm_head\"");
	}
	ap_str_add(out, "]\n\n\n");
}

/* The class that recomputes as the plan does; "": nothing is. */
static const char *checkpointing(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->nagain_outside)
		LEFT(w, "operators of no layer that are recomputed: %" PRIu32, l->nagain_outside);
	if (l->ngathered > 0 && l->nfull < l->n)
		LEFT(w, "what is gathered behind norms and gathered again: it is kept");
	if (l->nfull == 0 && l->nagain == 0)
		return "";
	if (l->nfull == l->n && l->unit <= 1)
		return "FullAC";
	if (l->alike && l->what == (AP_RECOMPUTE_PRODUCTS | AP_RECOMPUTE_HALF))
		return "SelectiveAC";
	LEFT(w, "what is recomputed: it has FullAC, as full, and SelectiveAC, as products/2");
	return "";
}

static void write_converters(struct ap_words *w, struct ap_str *out)
{
	const struct ap_step *step = w->p->step;
	bool mx = step->float8 && !strcmp(step->float8->name, "mxfp8");
	const char *kind = mx ? "MXFP8" : "Float8";

	if (!step->float8)
		return;
	if (!mx && strcmp(step->float8->name, "tensorwise") != 0) {
		LEFT(w, "scales of 8 bits as %s finds them: it has tensorwise and mxfp8", step->float8->name);
		return;
	}
	ap_str_addf(out, "\n\ndef converters():\n"
		"    \"\"\"For model_registry(..., converters=converters()): products of layers in 8 "
		"bits.\"\"\"\n"
		"    from torchtitan.components.quantization import %sLinearConverter", kind);
	if (w->layers.experts)
		ap_str_addf(out, ", %sGroupedExpertsConverter", kind);
	ap_str_addf(out, "\n\n    return [\n        %sLinearConverter.Config(%sfilter_fqns=[\"lm_head\"%s], "
		"%smodel_compile_enabled=True),\n", kind, mx ? "" : "recipe_name=\"tensorwise\", ",
		w->layers.experts ? ", \"router.gate\"" : "",
		step->float8_params && !mx ? "enable_fsdp_float8_all_gather=True, " : "");
	if (w->layers.experts)
		ap_str_addf(out, "        %sGroupedExpertsConverter.Config(model_compile_enabled=True),\n",
		kind);
	ap_str_add(out, "    ]\n");
}

static const char *write_python(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	bool uneven = l->nstage * l->nsegment > 1 && l->part && !ap_layers_even(l, l->part);
	const char *class = checkpointing(w);
	struct ap_str s;

	ap_str_init(&s, w->ctx->arena);
	ap_str_add(&s, "\"\"\"What of a plan no flag of torchtitan says. A function of the module, which "
		"CONFIG "
		"names, calls it:\n\n"
		"    import torchtitan_plan\n\n"
		"    def planned():\n"
		"        return torchtitan_plan.apply(llama3_70b())\n"
		"\"\"\"\n\n");
	if (uneven)
		write_modules(w, &s);
	else
		ap_str_add(&s, "\n");
	ap_str_add(&s, "def apply(config):\n"
		"    \"\"\"The configuration with the plan's parts of the model and what it "
		"recomputes.\"\"\"\n");
	if (uneven)
		ap_str_add(&s, "    config.parallelism.module_fqns_per_model_part = MODULES\n");
	if (w->h->tp > 1)
		ap_str_addf(&s, "    config.parallelism.enable_sequence_parallel = %s\n",
			w->h->sp ? "True" : "False");
	if (*class)
		ap_str_addf(&s, "    from torchtitan.distributed.activation_checkpoint import %s\n\n"
			"    config.activation_checkpoint = %s.Config()\n", class, class);
	else
		ap_str_add(&s, "    config.activation_checkpoint = None\n");
	ap_str_add(&s, "    return config\n");
	write_converters(w, &s);
	return s.s;
}

void ap_torchtitan_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out)
{
	static void (*const parts[])(struct ap_words *) = {add_head, add_degrees, add_batch, add_pipeline,
		add_start};
	const char *name = b->plan->step->optimizer ? b->plan->step->optimizer->name : "adam";
	const char *python = NULL;
	struct ap_words w;

	if (ap_words_begin(ctx, b, "torchtitan", &w)) {
		for (size_t i = 0; i < AP_COUNT(parts); i++)
			parts[i](&w);
		if (strncmp(name, "adam", 4) != 0)
			LEFT(&w, "the optimizer %s: it has those of adam's kind", name);
		python = write_python(&w);
	}
	ap_words_end(&w, out);
	out->python = out->text ? python : NULL;
}
