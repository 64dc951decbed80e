/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "bundle/bundle_way.h"
#include "graph/work.h"

void ap_words_line(struct ap_words *w, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	ap_str_vaddf(&w->text, format, ap);
	va_end(ap);
	ap_str_addc(&w->text, '\n');
}

void ap_words_comment(struct ap_words *w, const char *format, ...)
{
	size_t start;
	va_list ap;

	ap_str_add(&w->text, "# ");
	start = w->text.len;
	va_start(ap, format);
	ap_str_vaddf(&w->text, format, ap);
	va_end(ap);
	for (char *s = w->text.s + start; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
	ap_str_addc(&w->text, '\n');
}

void ap_words_unsaid(struct ap_words *w, enum ap_unsaid_kind kind, const char *format, ...)
{
	struct ap_str text;
	va_list ap;

	ap_str_init(&text, w->ctx->arena);
	va_start(ap, format);
	ap_str_vaddf(&text, format, ap);
	va_end(ap);
	for (char *s = text.s; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
	w->stops |= kind == AP_UNSAID_STOPS;
	AP_PUSH(w->ctx->arena, w->unsaid, ((struct ap_unsaid){kind, text.s}));
}

bool ap_words_begin(struct ap_ctx *ctx, const struct ap_bundle *b, const char *framework, struct ap_words *w)
{
	*w = (struct ap_words){.ctx = ctx, .b = b, .p = b->plan, .x = b->expert, .h = &b->expert->hybrid,
		.framework = framework};
	ap_str_init(&w->text, ctx->arena);
	if (w->h->dp == 0) {
		ap_words_unsaid(w, AP_UNSAID_STOPS, "%s", w->x->why_not);
		return false;
	}
	ap_layers_find(ctx, b->plan, &w->layers);
	return true;
}

void ap_words_end(struct ap_words *w, struct ap_said *out)
{
	*out = (struct ap_said){.framework = w->framework, .text = w->stops ? NULL : w->text.s,
		.nunsaid = (uint32_t)w->unsaid.n, .unsaid = w->unsaid.v};
}

/* How --hybrid says the layers of the plan's stages; "" where --stage-config or the graph says them, too. */
static const char *layers_key(const struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;
	const struct ap_pipe_cut *cut = w->p->step->pipe ? w->p->step->pipe->cut : NULL;
	struct ap_str s, folded;

	if (!cut || l->nstage == 1 || cut->by > AP_CUT_BY_LAYERS)
		return "";
	if (cut->by < AP_CUT_BY_LAYERS)
		return ",layers=cost";
	ap_str_init(&s, w->ctx->scratch);
	for (int32_t k = 0; k < l->nstage * l->nsegment; k++)
		ap_str_addf(&s, "%s%" PRId64, k ? "," : "", cut->count[k]);
	ap_str_init(&folded, w->ctx->arena);
	ap_str_add(&folded, ",layers=");
	ap_str_add_folded(&folded, s.s);
	return folded.s;
}

void ap_words_head(struct ap_words *w)
{
	static const char *const vocabulary[] = {[AP_VOCAB_AUTO] = "", [AP_VOCAB_CUT] = ",vocab_emb_dp=0",
		[AP_VOCAB_WHOLE] = ",vocab_emb_dp=1"};
	const struct ap_prediction *own = &w->p->prediction;
	const struct ap_expert *x = w->x;
	const struct ap_hybrid *h = w->h;
	char hybrid[32], plan[32], need[32], have[32];

	if (x->same)
		ap_words_comment(w, "All operators of the plan are cut as in this hybrid, which %s can be "
		"told",
			w->framework);
	else
		ap_words_comment(w, "The hybrid that comes nearest to the plan, whose cuts %s cannot be told",
			w->framework);
	ap_words_comment(w, "hybrid: dp=%" PRId64 ",tp=%" PRId64 ",cp=%" PRId64 ",ep=%" PRId64 ",pp=%" PRId64
		",vpp=%" PRId64 ",sp=%d,mbn=%" PRId64 "%s%s%s%s%s", h->dp, h->tp, h->cp, h->ep, h->pp, h->vpp,
		h->sp, h->micro_batches, h->ep > 1 && h->tp > 1 && h->etp == 1 ? ",etp=1" : "",
		h->cp_algo == AP_CP_USUAL ? "" : ",cp_algo=", h->cp_algo ==
		AP_CP_USUAL ? "" : ap_cp_algo_name(h->cp_algo), vocabulary[h->vocab], layers_key(w));
	if (!x->same)
		ap_words_comment(w, "operators that the plan cuts otherwise: %" PRIu32 " of %" PRIu32,
			x->differ, w->p->graph->nnode);
	ap_words_comment(w, "step time: %s s, the plan's %s s: a %s of %.2f %%",
		ap_format_double(x->step_time_s, hybrid), ap_format_double(own->step_time_s, plan),
		x->loss < 0 ? "gain" : "loss", fabs(x->loss) * 100);
	ap_words_comment(w, "memory: %s of %s that a device has%s", ap_format_bytes(x->memory_bytes, need),
		ap_format_bytes(w->p->capacity_bytes, have), x->fits ? "" : "; it does not fit");
	if (w->layers.name)
		ap_words_comment(w, "layers: %" PRIu32 ", the cells %s.N", w->layers.n, w->layers.name);
}

void ap_words_stages(struct ap_words *w)
{
	const struct ap_layers *l = &w->layers;

	if (l->nstage * l->nsegment == 1)
		return;
	if (!l->part)
		ap_words_unsaid(w, AP_UNSAID_STOPS, "stages whose layers are not known: %s", l->why);
	if (l->nsplit)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "layers that run in several parts of the pipeline: "
		"%" PRIu32
			", the first is %" PRId64 "; each is said to be where most of its operators are",
			l->nsplit, l->first_split);
	if (l->noutside)
		ap_words_unsaid(w, AP_UNSAID_LEFT, "operators of no layer that run neither in the first part "
			"of the pipeline nor in the last: %" PRIu32 ", the first is %s", l->noutside,
			l->first_outside);
}

const int64_t *ap_words_parts(const struct ap_words *w)
{
	return w->layers.nstage * w->layers.nsegment > 1 ? w->layers.part : NULL;
}

bool ap_words_has(const struct ap_words *w, const char *type)
{
	for (ap_id i = 0; i < w->p->graph->nnode; i++)
		if (!strcmp(w->p->graph->node[i].type, type))
			return true;
	return false;
}

int64_t ap_words_tokens(const struct ap_words *w)
{
	return ap_graph_work(w->p->graph).tokens;
}

void ap_words_torchrun(struct ap_words *w)
{
	const struct ap_topo *topo = w->p->machine->topo;
	int64_t devices = ap_bundle_devices(w->b), each = devices / (topo->nserver ? topo->nserver : 1);
	bool alike = each * topo->nserver == devices;

	for (uint32_t i = 0; i < topo->nserver; i++)
		alike &= topo->first[i] == i * each;
	ap_str_addf(&w->text, "exec torchrun --nnodes %" PRIu32 " --nproc-per-node ", topo->nserver);
	if (alike)
		ap_str_addf(&w->text, "%" PRId64, each);
	else
		ap_str_add(&w->text, "\"${NPROC_PER_NODE:?set it to the devices of this server}\"");
	ap_str_add(&w->text, " \\\n\t--node-rank \"${NODE_RANK:-0}\" --master-addr "
		"\"${MASTER_ADDR:-localhost}\" \\\n\t--master-port \"${MASTER_PORT:-6000}\" \\\n\t");
}

int64_t ap_words_expert_tensor(const struct ap_words *w)
{
	return w->h->etp ? w->h->etp : w->h->tp;
}
