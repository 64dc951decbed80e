/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of Megatron-LM. */
#include <inttypes.h>
#include <string.h>

#include "bundle/mindformers_parts.h"
#include "pipeline/schedule.h"

static void __attribute__((format(printf, 2, 3))) argument(struct ap_words *w, const char *format, ...)
{
	va_list ap;

	ap_str_add(&w->text, "--");
	va_start(ap, format);
	ap_str_vaddf(&w->text, format, ap);
	va_end(ap);
	ap_str_addc(&w->text, '\n');
}

static void degrees(struct ap_words *w)
{
	const struct ap_hybrid *h = &w->x->hybrid;

	argument(w, "tensor-model-parallel-size %" PRId64, h->tp);
	argument(w, "pipeline-model-parallel-size %" PRId64, h->pp);
	argument(w, "context-parallel-size %" PRId64, h->cp);
	if (h->cp > 1)
		argument(w, "cp-comm-type all_gather");
	if (h->ep > 1) {
		argument(w, "expert-model-parallel-size %" PRId64, h->ep);
		argument(w, "expert-tensor-parallel-size %" PRId64, h->tp);
	}
	if (h->sp)
		argument(w, "sequence-parallel");
	if (h->tp > 1 && h->vocab != AP_VOCAB_CUT)
		ap_words_say(w, "Megatron cuts the table of words, which this hybrid leaves whole");
}

static void batch(struct ap_words *w)
{
	const struct ap_hybrid *h = &w->x->hybrid;

	if (w->p->graph->batch == 0) {
		ap_words_say(w, "--global-batch-size: the graph has no batch");
		return;
	}
	argument(w, "micro-batch-size %" PRId64, h->mbs);
	argument(w, "global-batch-size %" PRId64, h->mbs * h->dp * h->micro_batches);
}

static void optimizer(struct ap_words *w)
{
	const struct ap_step *step = w->p->step;
	bool dealt = step->optimizer_sharding, exchanged = w->x->hybrid.dp * w->x->hybrid.cp > 1;

	if (!step->training)
		return;
	if (dealt)
		argument(w, "use-distributed-optimizer");
	if (exchanged)
		argument(w, "overlap-grad-reduce");
	if (dealt && exchanged && strcmp(ap_words_setting(w, "computation_allgather_overlap"), "true") == 0)
		argument(w, "overlap-param-gather");
}

/* Layers as Megatron draws them: E the table of words, t a layer, L the loss; parts by the data's order. */
static void layout(struct ap_words *w)
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

/* Do all parts but the first and the last have as many layers as the others? */
static bool has_even_middle(const struct ap_layers *l)
{
	for (int32_t i = 2; i < l->nstage - 1; i++)
		if (l->part[i] != l->part[1])
			return false;
	return l->nsegment == 1;
}

static void ends(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	bool two = l->nstage == 2;

	if (two || l->part[0] != l->part[1])
		argument(w, "decoder-first-pipeline-num-layers %" PRId64, l->part[0]);
	if (!two && l->part[l->nstage - 1] != l->part[1])
		argument(w, "decoder-last-pipeline-num-layers %" PRId64, l->part[l->nstage - 1]);
}

static void pipeline(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	const struct ap_pipe *pipe = w->p->step->pipe;

	if (l->nstage * l->nsegment == 1)
		return;
	if (pipe->scheduler->vee || strcmp(pipe->scheduler->name, "gpipe") == 0)
		ap_words_say(w, "Megatron runs 1f1b, not %s", pipe->scheduler->name);
	if (l->nsegment > 1)
		argument(w, "num-virtual-stages-per-pipeline-rank %" PRId32, l->nsegment);
	if (!l->part || ap_layers_even(l, l->part))
		return;
	if (has_even_middle(l))
		ends(w);
	else
		layout(w);
}

/* The first layers of each part, where these are as many in each. */
static void full(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	bool all = l->nfull == l->n;

	if (!all && (!l->full_first || !ap_layers_even(l, l->full))) {
		ap_words_say(w, "layers are recomputed, in some stages more; Megatron has one number");
		return;
	}
	argument(w, "recompute-granularity full");
	argument(w, "recompute-method %s", all ? "uniform" : "block");
	argument(w, "recompute-num-layers %" PRId64, all ? 1 : l->full[0]);
	if (l->slice && !w->x->hybrid.sp && w->x->hybrid.tp > 1)
		argument(w, "distribute-saved-activations");
}

static void recompute(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->nfull > 0)
		full(w);
	else if (l->nagain > 0 && w->p->step->recompute == AP_RECOMPUTE_SELECTIVE)
		argument(w, "recompute-granularity selective");
	else if (l->nagain > 0)
		ap_words_say(w, "kinds of operators that are recomputed by themselves, which cannot be "
			"said: %" PRIu32, l->nagain);
}

void ap_megatron_write(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_words w;

	ap_words_init(&w, ctx, b);
	if (ap_words_head(&w, "Megatron")) {
		ap_words_unsaid(&w);
		degrees(&w);
		batch(&w);
		pipeline(&w);
		optimizer(&w);
		recompute(&w);
	}
	write(user, w.text.s, w.text.len);
}
