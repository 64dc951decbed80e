/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/deepspeed.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "bundle/words.h"
#include "cost/layer_parts.h"

#define LEFT(w, ...) ap_words_unsaid(w, AP_UNSAID_LEFT, __VA_ARGS__)
#define STOPS(w, ...) ap_words_unsaid(w, AP_UNSAID_STOPS, __VA_ARGS__)

/* What is said in the network's code alone, or nowhere. */
static void find_unsaid(struct ap_words *w)
{
	const struct ap_step *step = w->p->step;
	const struct ap_layers *l = &w->layers;
	const struct ap_hybrid *h = w->h;

	if (h->pp > 1)
		STOPS(w, "pipeline stages: the network's code makes them (PipelineModule)");
	if (h->cp > 1)
		STOPS(w, "context parallelism: the network's code makes it");
	if (h->ep > 1)
		STOPS(w, "experts dealt to devices: the network's code makes them (ep_size)");
	if (!step->training)
		STOPS(w, "a run without training");
	if (!w->p->graph->batch)
		STOPS(w, "a step without samples: the graph has no batch");
	if (h->tp > 1 && h->sp)
		LEFT(w, "sequence parallelism: autotp sums up what it cuts");
	if (l->nfull || l->nagain || l->nagain_outside)
		LEFT(w, "what is recomputed: the network's code says it");
	if (step->float8)
		LEFT(w, "products in 8 bits");
	if (step->optimizer_sharding && step->shard_size > 0 && step->shard_size != h->dp)
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
	ap_jw_kobj_flat(&j, "zero_optimization");
	ap_jw_kint(&j, "stage", step->optimizer_sharding ? step->optimizer_level : 0);
	ap_jw_kbool(&j, "overlap_comm", !step->exchange_behind);
	ap_jw_end(&j);
	if (h->tp > 1) {
		ap_jw_kobj_flat(&j, "tensor_parallel");
		ap_jw_kint(&j, "autotp_size", h->tp);
		ap_jw_end(&j);
	}
	add_flag(&j, "bf16", "enabled", type == AP_BFLOAT16);
	add_flag(&j, "fp16", "enabled", type == AP_FLOAT16);
	ap_jw_end(&j);
	ap_jw_finish(&j);
}

void ap_deepspeed_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out)
{
	struct ap_words w;

	if (ap_words_begin(ctx, b, "DeepSpeed", &w)) {
		find_unsaid(&w);
		write_json(&w);
	}
	ap_words_end(&w, out);
}
