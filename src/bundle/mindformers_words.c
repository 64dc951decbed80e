/* SPDX-License-Identifier: Apache-2.0 */
/* Comments of experts' words. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "bundle/mindformers_parts.h"

void ap_words_init(struct ap_words *w, struct ap_ctx *ctx, const struct ap_bundle *b)
{
	*w = (struct ap_words){.ctx = ctx, .b = b, .p = b->plan, .x = b->expert};
	ap_layers_find(ctx, b->plan, &w->layers);
	ap_str_init(&w->text, ctx->arena);
}

/* Names may hold whatever JSON can say, but a comment ends with its line. */
static void one_line(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
}

void ap_words_say(struct ap_words *w, const char *format, ...)
{
	size_t start;
	va_list ap;

	ap_str_add(&w->text, "# ");
	start = w->text.len;
	va_start(ap, format);
	ap_str_vaddf(&w->text, format, ap);
	va_end(ap);
	one_line(w->text.s + start);
	ap_str_addc(&w->text, '\n');
}

const char *ap_words_setting(const struct ap_words *w, const char *name)
{
	for (uint32_t i = 0; i < w->b->nsetting; i++)
		if (strcmp(w->b->setting[i].name, name) == 0)
			return w->b->setting[i].value;
	return "";
}

/* As --hybrid takes it. */
static void say_hybrid(struct ap_words *w)
{
	const struct ap_hybrid *h = &w->x->hybrid;
	static const char *const vocabulary[] = {[AP_VOCAB_AUTO] = "", [AP_VOCAB_CUT] = ",vocab_emb_dp=0",
		[AP_VOCAB_WHOLE] = ",vocab_emb_dp=1"};

	ap_words_say(w, "hybrid: dp=%" PRId64 ",tp=%" PRId64 ",cp=%" PRId64 ",ep=%" PRId64 ",pp=%" PRId64
		",vpp=%" PRId64 ",sp=%d,mbn=%" PRId64 "%s", h->dp, h->tp, h->cp, h->ep, h->pp, h->vpp,
		h->sp, h->micro_batches, vocabulary[h->vocab]);
}

static void say_cost(struct ap_words *w)
{
	const struct ap_expert *x = w->x;
	const struct ap_prediction *own = &w->p->prediction;
	char hybrid[32], plan[32], need[32], have[32];

	ap_words_say(w, "step time: %s s, the plan's %s s: a %s of %.2f %%",
		ap_format_double(x->step_time_s, hybrid), ap_format_double(own->step_time_s, plan),
		x->loss < 0 ? "gain" : "loss", fabs(x->loss) * 100);
	ap_words_say(w, "memory: %s of %s that a device has%s", ap_format_bytes(x->memory_bytes, need),
		ap_format_bytes(w->p->capacity_bytes, have), x->fits ? "" : "; it does not fit");
}

bool ap_words_head(struct ap_words *w, const char *framework)
{
	if (w->x->hybrid.dp == 0) {
		ap_words_say(w, "Nothing of this plan can be said to %s: %s", framework, w->x->why_not);
		return false;
	}
	if (w->x->same)
		ap_words_say(w, "All operators of the plan are cut as in this hybrid, which %s can be told",
			framework);
	else
		ap_words_say(w, "The hybrid that comes nearest to the plan, whose cuts %s cannot be told",
			framework);
	say_hybrid(w);
	if (!w->x->same)
		ap_words_say(w, "operators that the plan cuts otherwise: %" PRIu32 " of %" PRIu32,
			w->x->differ, w->p->graph->nnode);
	say_cost(w);
	return true;
}

static void say_stages(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->name)
		ap_words_say(w, "layers: %" PRIu32 ", the cells %s.N", l->n, l->name);
	if (l->nstage * l->nsegment == 1)
		return;
	if (!l->part)
		ap_words_say(w, "layers of the stages are left out: %s", l->why);
	if (l->nsplit)
		ap_words_say(w, "layers that run in several parts of the pipeline: %" PRIu32 ", the first "
			"is %" PRId64 "; here each is where most of its operators are", l->nsplit,
			l->first_split);
	if (l->noutside)
		ap_words_say(w, "operators of no layer that run neither in the first part of the pipeline "
			"nor in the last, which cannot be said: %" PRIu32 ", the first is %s",
			l->noutside, l->first_outside);
}

void ap_words_unsaid(struct ap_words *w)
{
	const struct ap_step *step = w->p->step;

	say_stages(w);
	if (step->optimizer_sharding && step->optimizer_level == 3)
		ap_words_say(w, "optimizer level3, which gathers weights anew for the backward pass, "
			"cannot be said");
	if (w->layers.nagain_outside)
		ap_words_say(w, "operators of no layer that are recomputed, which cannot be said: %" PRIu32,
			w->layers.nagain_outside);
}
