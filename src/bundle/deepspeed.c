/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/deepspeed.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "bundle/words.h"
#include "cost/comms.h"
#include "cost/layer_parts.h"
#include "graph/family.h"
#include "pipeline/schedule.h"

#define LEFT(w, ...) ap_words_unsaid(w, AP_UNSAID_LEFT, __VA_ARGS__)
#define STOPS(w, ...) ap_words_unsaid(w, AP_UNSAID_STOPS, __VA_ARGS__)

static int level_of(const struct ap_words *w)
{
	return w->p->step->optimizer_sharding ? w->p->step->optimizer_level : 0;
}

/* Ranks that MiCS deals a parameter to; 0: all that hold the same. */
static int64_t shard_of(const struct ap_words *w)
{
	int64_t ranks = w->p->step->shard_size, all = w->h->dp * w->h->cp;

	return level_of(w) == 3 && w->h->cp == 1 && ranks > 0 && ranks < all && all % ranks == 0 ? ranks : 0;
}

static void find_unsaid_of_stages(struct ap_words *w)
{
	const struct ap_pipe *pipe = w->p->step->pipe;
	const struct ap_layers *l = &w->layers;

	ap_words_stages(w);
	if (l->nsegment > 1)
		STOPS(w, "several segments of a stage: it runs 1f1b");
	else if (strcmp(pipe->scheduler->name, "gpipe") == 0)
		LEFT(w, "the schedule gpipe: it runs 1f1b");
	if (level_of(w) > 1)
		STOPS(w, "optimizer level%d beside pipeline stages: they take ZeRO 0 or 1", level_of(w));
	if (l->part && !ap_layers_even(l, l->part))
		LEFT(w, "stages with different numbers of layers: they are dealt evenly");
}

/* What of stages, sequences and recomputation its Python cannot say either. */
static void find_unsaid_of_own(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	const struct ap_hybrid *h = w->h;

	if (h->pp > 1)
		find_unsaid_of_stages(w);
	if (h->cp > 1 && (h->tp > 1 || h->pp > 1))
		STOPS(w, "context parallelism beside tensor parallelism or stages");
	if (h->cp > 1 && h->cp_algo != AP_CP_USUAL && h->cp_algo != AP_CP_ALL_TO_ALL)
		LEFT(w, "keys and values that are gathered or go round: heads are exchanged");
	if (l->nagain_outside)
		LEFT(w, "operators of no layer that are recomputed: %" PRIu32, l->nagain_outside);
	if ((l->nfull > 0 && (l->nfull < l->n || l->unit > 1)) || (l->nfull == 0 && l->nagain > 0))
		LEFT(w, "what is recomputed: all layers are, each by itself, or none");
}

/* What is said in the network's code alone, or nowhere. */
static void find_unsaid(struct ap_words *w, bool own)
{
	const struct ap_step *step = w->p->step;
	const struct ap_layers *l = &w->layers;
	const struct ap_hybrid *h = w->h;

	if (own)
		find_unsaid_of_own(w);
	if (h->pp > 1 && !own)
		STOPS(w, "pipeline stages: the network's code makes them (PipelineModule)");
	if (h->cp > 1 && !own)
		STOPS(w, "context parallelism: the network's code makes it");
	if (h->ep > 1)
		STOPS(w, "experts dealt to devices: the network's code makes them (ep_size)");
	if (!step->training)
		STOPS(w, "a run without training");
	if (!w->p->graph->batch)
		STOPS(w, "a step without samples: the graph has no batch");
	if (h->tp > 1 && h->sp)
		LEFT(w, "sequence parallelism: autotp sums up what it cuts");
	if (!own && (l->nfull || l->nagain || l->nagain_outside))
		LEFT(w, "what is recomputed: the network's code says it");
	if (step->float8)
		LEFT(w, "products in 8 bits");
	if (level_of(w) && step->shard_size > 0 && step->shard_size < h->dp * h->cp && !shard_of(w))
		LEFT(w, "parameters dealt among %" PRId64 " ranks: they are dealt among all",
			step->shard_size);
}

/* The type of the first product's weight. */
static enum ap_dtype type_of(struct ap_words *w)
{
	const struct ap_graph *g = w->p->graph;
	struct ap_mark scratch = ap_arena_mark(w->ctx->scratch);
	const bool *data = ap_layer_data(w->ctx, g);
	enum ap_dtype type = AP_FLOAT32;
	bool found = false;

	for (ap_id i = 0; i < g->nnode && !found; i++) {
		const struct ap_node *n = &g->node[i];

		for (uint16_t k = 0; ap_layer_has_weight(g, data, n) && k < n->bound.nin && !found; k++) {
			found = n->in[k] != AP_NONE && data[n->in[k]];
			type = found ? g->tensor[n->in[k]].shape.dtype : type;
		}
	}
	ap_arena_release(w->ctx->scratch, scratch);
	return type;
}

static void add_flag(struct ap_jw *j, const char *section, const char *key, bool on)
{
	ap_jw_kobj_flat(j, section);
	ap_jw_kbool(j, key, on);
	ap_jw_end(j);
}

/* Elements of the parameters of the largest layer, or of the largest operator of no layer, as tensor
 * parallelism cuts them. */
static int64_t largest_elements(struct ap_words *w)
{
	struct ap_mark scratch = ap_arena_mark(w->ctx->scratch);
	const struct ap_graph *g = w->p->graph;
	struct ap_family family;
	int64_t *layer, most = 0;

	ap_family_find(w->ctx, g, &family);
	layer = AP_NEW_N(w->ctx->scratch, int64_t, family.n);
	for (ap_id i = 0; i < g->nnode; i++) {
		int64_t outside = 0, *sum = family.member[i] >= 0 ? &layer[family.member[i]] : &outside;

		for (uint16_t k = 0; k < g->node[i].bound.nin; k++)
			if (w->p->task[i].in[k].kind == AP_TENSOR_PARAM && w->p->task[i].in[k].owner)
				*sum += ap_local_elements(&g->node[i].bound.in[k], w->p->task[i].in[k].batch,
					&w->p->op[i].place, w->p->step);
		most = *sum > most ? *sum : most;
	}
	ap_arena_release(w->ctx->scratch, scratch);
	return most;
}

/* Weights that ZeRO 3 gathers: as planned, those of a layer beside those of the next, and again for the
 * backward pass. */
static void write_gathers(struct ap_words *w, struct ap_jw *j, enum ap_dtype type)
{
	int64_t most = largest_elements(w), bytes = ap_dtype_bytes(type);

	ap_jw_kint(j, "stage3_prefetch_bucket_size", most);
	ap_jw_kint(j, "stage3_max_live_parameters", 2 * most);
	ap_jw_kint(j, "stage3_max_reuse_distance", 0);
	ap_jw_kint(j, "stage3_param_persistence_threshold", w->p->step->shard_threshold_bytes / bytes);
	if (shard_of(w))
		ap_jw_kint(j, "mics_shard_size", shard_of(w));
}

static void write_json(struct ap_words *w)
{
	const struct ap_step *step = w->p->step;
	const struct ap_hybrid *h = w->h;
	enum ap_dtype type = type_of(w);
	struct ap_jw j;

	ap_jw_str_init(&j, &w->text, 2);
	ap_jw_obj(&j);
	ap_jw_kint(&j, "train_batch_size", h->mbs * h->dp * h->micro_batches);
	ap_jw_kint(&j, "train_micro_batch_size_per_gpu", h->mbs);
	ap_jw_kint(&j, "gradient_accumulation_steps", h->micro_batches);
	ap_jw_kobj(&j, "zero_optimization");
	ap_jw_kint(&j, "stage", level_of(w));
	ap_jw_kbool(&j, "overlap_comm", !step->exchange_behind);
	if (level_of(w) == 3)
		write_gathers(w, &j, type);
	ap_jw_end(&j);
	if (h->tp > 1 && h->pp == 1) {
		ap_jw_kobj_flat(&j, "tensor_parallel");
		ap_jw_kint(&j, "autotp_size", h->tp);
		ap_jw_end(&j);
	}
	if (h->cp > 1) {
		ap_jw_kint(&j, "data_parallel_size", h->dp);
		ap_jw_kint(&j, "sequence_parallel_size", h->cp);
	}
	add_flag(&j, "bf16", "enabled", type == AP_BFLOAT16);
	add_flag(&j, "fp16", "enabled", type == AP_FLOAT16);
	ap_jw_end(&j);
	ap_jw_finish(&j);
}

static void write_script(struct ap_words *w)
{
	ap_words_line(w, "#!/bin/bash");
	ap_words_comment(w, "Runs a plan in DeepSpeed, as of August 2026; on each server:");
	ap_words_comment(w, "    MASTER_ADDR=HOST NODE_RANK=K SCRIPT=TRAIN.py bash deepspeed.sh [MORE "
		"ARGUMENTS]");
	ap_words_comment(w, "TRAIN.py takes DeepSpeed's arguments (deepspeed.add_config_arguments()), and "
		"calls " AP_DEEPSPEED_PYTHON ".");
	ap_words_head(w);
	ap_words_line(w, "set -eu\n\n"
		": \"${SCRIPT:?set it to the training script, which takes --deepspeed_config}\"\n"
		"FOLDER=$(cd \"$(dirname \"$0\")\" && pwd)\n"
		"export PYTHONPATH=\"$FOLDER${PYTHONPATH:+:$PYTHONPATH}\"\n");
	ap_words_torchrun(w);
	ap_words_line(w, "\"$SCRIPT\" --deepspeed --deepspeed_config \"$FOLDER/" AP_DEEPSPEED_FILE "\" "
		"\"$@\"");
}

/* ---- Python ---- */

static void write_stages(const struct ap_words *w, struct ap_str *out)
{
	const struct ap_hybrid *h = w->h;

	ap_str_addf(out, "\n\ndef pipeline(layers, layer_class, **options):\n"
		"    \"\"\"PipelineModule of specifications of layers, of which each stage has as many of "
		"layer_class.\n\n"
		"%s    \"\"\"\n"
		"    from deepspeed.pipe import PipelineModule\n"
		"    from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology\n\n"
		"    return PipelineModule(layers=layers, partition_method=\"type:\" + layer_class,\n"
		"                          topology=PipeModelDataParallelTopology(num_pp=%" PRId64
		", num_mp=%" PRId64 ", num_dp=%" PRId64 "),\n"
		"                          activation_checkpoint_interval=%d, **options)\n",
		h->tp > 1 ? "    Products of a layer are cut among the topology's model parallel ranks, as "
		"its mpu() tells them.\n" : "", h->pp, h->tp, h->dp, w->layers.nfull > 0);
}

static void write_model(const struct ap_words *w, struct ap_str *out)
{
	ap_str_addf(out, "\n\ndef prepare(model):\n"
		"    \"\"\"The model, of transformers or with its methods, which recomputes as "
		"planned.\"\"\"\n"
		"    model.gradient_checkpointing_%s()\n"
		"    return model\n", w->layers.nfull > 0 ? "enable" : "disable");
}

static void write_sequences(const struct ap_words *w, struct ap_str *out)
{
	if (w->h->cp > 1)
		ap_str_addf(out, "\n\ndef sequences(model_name_or_path, **options):\n"
			"    \"\"\"What deepspeed.initialize() takes as mpu: attention of that model, of "
			"which a rank has a part of\n"
			"    the heads, and all else of it a part of the sequence (Ulysses).\n"
			"    \"\"\"\n"
			"    from deepspeed.runtime.sequence_parallel.ulysses_sp import "
			"UlyssesSPAttentionHF\n\n"
			"    return UlyssesSPAttentionHF.register_with_transformers(\n"
			"        model_name_or_path=model_name_or_path, sequence_parallel_size=%" PRId64
			",\n"
			"        micro_batch_size=%" PRId64 ", **options)\n", w->h->cp, w->h->mbs);
}

/* Parameters are dealt as they are made. */
static void write_dealing(const struct ap_words *w, struct ap_str *out)
{
	if (level_of(w) == 3)
		ap_str_addf(out, "\n\ndef init(**options):\n"
			"    \"\"\"The context in which the model is made, its parameters dealt from the "
			"start.\"\"\"\n"
			"    import os\n\n"
			"    from deepspeed import zero\n\n"
			"    config = os.path.join(os.path.dirname(os.path.abspath(__file__)), "
			"\"" AP_DEEPSPEED_FILE "\")\n"
			"    return zero.%s(config_dict_or_path=config, **options)\n",
			shard_of(w) ? "MiCS_Init" : "Init");
}

static const char *write_python(const struct ap_words *w)
{
	struct ap_str s;

	ap_str_init(&s, w->ctx->arena);
	ap_str_add(&s, "\"\"\"What of a plan " AP_DEEPSPEED_FILE " does not say: the training script calls "
		"it before deepspeed.initialize().\"\"\"\n");
	(w->h->pp > 1 ? write_stages : write_model)(w, &s);
	write_sequences(w, &s);
	write_dealing(w, &s);
	return s.s;
}

void ap_deepspeed_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out)
{
	bool own = ap_bundle_language(b) == AP_LANGUAGE_DEEPSPEED;
	const char *json = NULL, *python = NULL;
	struct ap_words w;

	if (ap_words_begin(ctx, b, "DeepSpeed", &w)) {
		find_unsaid(&w, own);
		write_json(&w);
		json = w.text.s;
		ap_str_init(&w.text, ctx->arena);
		if (own)
			write_script(&w);
		python = own ? write_python(&w) : NULL;
	}
	ap_words_end(&w, out);
	if (!out->text)
		return;
	out->script = own ? w.text.s : NULL;
	out->python = python;
	out->text = json;
}
