/* SPDX-License-Identifier: Apache-2.0 */
#include "planfile/dimension.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "plan/terms.h"
#include "rule/op.h"

/* After the qualitative palettes of Paul Tol ("Colour schemes", 2021): bright, and light for the fills. */
const struct ap_dimension_look ap_dimension_look[AP_DIMENSION_COUNT] = {
	[AP_DIMENSION_BATCH] = {"batch", "#cfe2f3", "#2a6fb0", "samples"},
	[AP_DIMENSION_SEQUENCE] = {"sequence", "#c9ece1", "#12795c", "tokens of a sample"},
	[AP_DIMENSION_HEADS] = {"heads", "#fbdcae", "#a15c00", "heads of attention"},
	[AP_DIMENSION_HIDDEN] = {"hidden", "#f6cfe3", "#a8346f", "features or channels"},
	[AP_DIMENSION_VOCABULARY] = {"vocabulary", "#ddd3f0", "#6a4aa3",
		"rows of tables, columns of logits"},
	[AP_DIMENSION_EXPERT] = {"expert", "#f3ecb0", "#7a6a00", "experts of a mixture"},
	[AP_DIMENSION_OTHER] = {"other", "#dfe1e0", "#5b6166", "any other dimension"},
};

static bool has(const char *text, const char *word) /* in lower case */
{
	size_t len = strlen(word);

	for (; *text; text++) {
		size_t i = 0;

		while (i < len && tolower((unsigned char)text[i]) == word[i])
			i++;
		if (i == len)
			return true;
	}
	return false;
}

static int64_t size_of(const struct ap_saved_op *op, char letter)
{
	for (uint32_t i = 0; i < op->nfactor; i++)
		if (op->factor[i].letter == letter)
			return op->factor[i].size;
	return 0;
}

void ap_dimensions_factors(struct ap_arena *arena, const struct ap_placement *p, struct ap_saved_op *op)
{
	struct ap_saved_factor *factor = AP_NEW_N(arena, struct ap_saved_factor, AP_MAX_FACTOR);

	op->nfactor = (uint32_t)p->bound->nfactor;
	op->factor = factor;
	for (uint32_t i = 0; i < op->nfactor; i++) {
		const struct ap_factor *f = &p->bound->factor[i];

		factor[i] = (struct ap_saved_factor){.letter = f->letter, .size = f->size,
			.parts = p->count[i], .stride = p->stride[i], .batch = f->flags & AP_FACTOR_BATCH};
	}
}

void ap_dimensions_learn(struct ap_dimensions *d, const struct ap_saved_op *op)
{
	const struct ap_saved_factor *f = op->factor;

	if (!strcmp(op->type, "FlashAttentionScore") || !strcmp(op->type, "PromptFlashAttention"))
		d->sequence = size_of(op, 's');
	else if (!strcmp(op->type, "Softmax") && op->nfactor == 4 && !d->sequence && f[2].size == f[3].size)
		d->sequence = f[3].size;
	else if (!strcmp(op->type, "Gather") && size_of(op, 'v') > d->vocabulary)
		d->vocabulary = size_of(op, 'v');
	else if (!strcmp(op->type, "TopK") && op->nfactor && !f[op->nfactor - 1].batch)
		d->experts = f[op->nfactor - 1].size;
	else if (!strncmp(op->type, "Conv2D", 6) || !strncmp(op->type, "Conv3D", 6))
		d->images = true;
}

/* What a factor that carries no batch stands for. i: its place among the factors. */
static enum ap_dimension meaning(const struct ap_dimensions *d, const struct ap_saved_op *op, uint32_t i)
{
	const struct ap_saved_factor *f = &op->factor[i];
	bool attends = has(op->cell, "att") || has(op->type, "attention"), last = i + 1 == op->nfactor;
	bool by_element = f->letter >= 'A' && f->letter <= 'Z';

	if (!strcmp(op->type, "FlashAttentionScore") || !strcmp(op->type, "PromptFlashAttention"))
		return strchr("ng", f->letter)    ? AP_DIMENSION_HEADS
			: strchr("st", f->letter) ? AP_DIMENSION_SEQUENCE
						  : AP_DIMENSION_HIDDEN;
	if (d->images)
		return i == 1 || strchr("cdkn", f->letter) ? AP_DIMENSION_HIDDEN : AP_DIMENSION_OTHER;
	if (f->size == d->vocabulary && f->size != d->sequence)
		return AP_DIMENSION_VOCABULARY;
	if (!strcmp(op->type, "Gather") && f->letter == 'v')
		return f->size == d->sequence ? AP_DIMENSION_SEQUENCE : AP_DIMENSION_VOCABULARY;
	if (!by_element && strchr("mkn", f->letter) && op->nfactor <= 3)
		return AP_DIMENSION_HIDDEN; /* of a product of matrices */
	if (f->size == d->sequence && (by_element ? i > 0 && (!last || (attends && i == 3)) : attends))
		return AP_DIMENSION_SEQUENCE;
	if (by_element && attends && i > 0 && op->nfactor >= 3 && f->size < d->sequence &&
		(!last || op->nfactor == 3))
		return AP_DIMENSION_HEADS;
	if (by_element && d->experts && f->size == d->experts && i > 0)
		return AP_DIMENSION_EXPERT;
	if (!strcmp(op->type, "OneHot") && f->letter == 'd' && f->size == d->experts)
		return AP_DIMENSION_EXPERT;
	return last || !by_element ? AP_DIMENSION_HIDDEN : AP_DIMENSION_OTHER;
}

void ap_dimensions_parts(
	const struct ap_dimensions *d, const struct ap_saved_op *op, int64_t parts[AP_DIMENSION_COUNT])
{
	int64_t samples = d->micro_batches > 0 ? d->batch / d->micro_batches : d->batch;

	for (int i = 0; i < AP_DIMENSION_COUNT; i++)
		parts[i] = 1;
	for (uint32_t i = 0; i < op->nfactor; i++) {
		const struct ap_saved_factor *f = &op->factor[i];

		if (f->parts <= 1)
			continue;
		if (!f->batch) {
			parts[meaning(d, op, i)] *= f->parts;
			continue;
		}
		/* rows of samples and tokens: the samples are the outer part of them */
		if (d->sequence > 0 && samples > 0 && f->size > d->batch) {
			int64_t outer = ap_gcd(f->parts, samples);

			parts[AP_DIMENSION_BATCH] *= outer;
			parts[AP_DIMENSION_SEQUENCE] *= f->parts / outer;
		} else {
			parts[AP_DIMENSION_BATCH] *= f->parts;
		}
	}
}

void ap_dimensions_of_saved(const struct ap_saved *plan, struct ap_dimensions *out)
{
	const struct ap_saved_fact *batch = ap_saved_fact(plan, "graph", "batch");
	const struct ap_saved_fact *micro = ap_saved_fact(plan, "pipeline", "micro_batches");

	if (!micro) /* only pipelines have it beside the settings */
		micro = ap_saved_fact(plan, "settings", "micro_batches");
	*out = (struct ap_dimensions){.batch = batch ? batch->integer : 0,
		.micro_batches = micro && micro->integer > 0 ? micro->integer : 1};
	for (uint32_t i = 0; i < plan->nop; i++)
		ap_dimensions_learn(out, &plan->op[i]);
}

void ap_dimensions_add(struct ap_str *out, const int64_t parts[AP_DIMENSION_COUNT])
{
	bool any = false;

	for (int i = 0; i < AP_DIMENSION_COUNT; i++) {
		if (parts[i] <= 1)
			continue;
		ap_str_addf(out, "%s%s %" PRId64, any ? ", " : "", ap_dimension_look[i].name, parts[i]);
		any = true;
	}
	if (!any)
		ap_str_add(out, "not cut");
}

void ap_dimensions_vote(struct ap_dimension_votes *votes, const char *type,
	const int64_t parts[AP_DIMENSION_COUNT], double time_s)
{
	const struct ap_op_row *row = ap_op_next(NULL, type);

	if (!row || row->unit != AP_OP_CUBE)
		return;
	votes->all_s += time_s;
	for (int d = 0; d < AP_DIMENSION_COUNT; d++) {
		int i = 0;

		while (i < votes->n[d] && votes->v[d][i].parts != parts[d])
			i++;
		if (parts[d] <= 1 || i == AP_DIMENSION_VOTES)
			continue;
		if (i == votes->n[d])
			votes->v[d][votes->n[d]++].parts = parts[d];
		votes->v[d][i].time_s += time_s;
	}
}

void ap_dimensions_elect(const struct ap_dimension_votes *votes, int64_t parts[AP_DIMENSION_COUNT])
{
	for (int d = 0; d < AP_DIMENSION_COUNT; d++) {
		double most_s = votes->all_s / 50; /* less is next to nothing */

		parts[d] = 1;
		for (int i = 0; i < votes->n[d]; i++)
			if (votes->v[d][i].time_s > most_s) {
				most_s = votes->v[d][i].time_s;
				parts[d] = votes->v[d][i].parts;
			}
	}
}

void ap_dimensions_message(struct ap_str *out, const int64_t parts[AP_DIMENSION_COUNT], int64_t devices,
	int64_t stages, int64_t micro_batches)
{
	size_t start = out->len;

	for (int d = 0; d < AP_DIMENSION_COUNT; d++)
		if (parts[d] > 1)
			ap_str_addf(out, "%s%s over %" PRId64, out->len > start ? ", " : "",
				ap_dimension_look[d].name, parts[d]);
	if (out->len == start)
		ap_str_add(out, devices > 1 ? "nothing is cut" : "one device");
	if (stages > 1)
		ap_str_addf(out, ", %" PRId64 " pipeline stages", stages);
	if (micro_batches > 1)
		ap_str_addf(out, ", %" PRId64 " micro-batches", micro_batches);
}

void ap_dimensions_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_str *out)
{
	struct ap_dimensions d = {.batch = p->graph->batch, .micro_batches = p->step->micro_batches};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_saved_op *op = AP_NEW_N(ctx->scratch, struct ap_saved_op, p->graph->nnode);
	struct ap_dimension_votes votes = {0};
	int64_t parts[AP_DIMENSION_COUNT];

	for (ap_id i = 0; i < p->graph->nnode; i++) {
		op[i] = (struct ap_saved_op){.type = p->graph->node[i].type, .cell = p->graph->node[i].cell};
		ap_dimensions_factors(ctx->scratch, &p->op[i].place, &op[i]);
		ap_dimensions_learn(&d, &op[i]);
	}
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		ap_dimensions_parts(&d, &op[i], parts);
		ap_dimensions_vote(&votes, op[i].type, parts, ap_plan_op_time_s(&p->op[i].cost));
	}
	ap_dimensions_elect(&votes, parts);
	ap_arena_release(ctx->scratch, mark);
	ap_dimensions_message(out, parts, p->machine->total, p->nstage, p->step->micro_batches);
}
