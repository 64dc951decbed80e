/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/diag.h"
#include "cost/recompute.h"

struct naming {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	const struct ap_again *mark;
	enum ap_status st;
};

static void note(struct naming *k, const char *text)
{
	const struct ap_where where = {.file = k->g->file};
	enum ap_status st =
		ap_diag_add(k->ctx->diag, AP_NOTE, AP_OK, &where, "recompute-nothing", "%s", text);

	k->st = k->st == AP_OK ? st : k->st;
}

/* A cell of which nothing is marked, and why. */
static void note_cell(struct naming *k, ap_id cell, uint32_t members)
{
	const char *name = ap_diag_name(k->ctx->diag, k->g->cell[cell].name);

	note(k, ap_arena_printf(k->ctx->arena, members == 1
		? "nothing of cell \"%s\" is recomputed: its only operator is its output, which is kept; "
		  "recompute of the operator itself would do"
		: "nothing of cell \"%s\" is recomputed: what its operators make leaves it, and is kept",
		name));
}

static void note_cells(struct naming *k)
{
	uint32_t *members = AP_NEW_N(k->ctx->scratch, uint32_t, k->g->ncell);
	uint32_t *marked = AP_NEW_N(k->ctx->scratch, uint32_t, k->g->ncell);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		ap_id c = k->g->node[i].recompute_cell;

		if (c == AP_NONE)
			continue;
		members[c]++;
		marked[c] += k->mark[i].group != AP_NONE;
	}
	for (ap_id c = 0; c < k->g->ncell; c++)
		if (k->g->cell[c].recompute == 1 && marked[c] == 0)
			note_cell(k, c, members[c]);
}

/* Does the step's setting mark anything that nobody else does? */
static bool adds_marks(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const struct ap_again *mark)
{
	struct ap_again *without = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	struct ap_step other = *step;
	bool adds = false;

	other.recompute = AP_RECOMPUTE_NONE;
	ap_recompute_mark(ctx, g, &other, without);
	for (ap_id i = 0; i < g->nnode; i++)
		adds |= without[i].group != mark[i].group;
	return adds;
}

enum ap_status ap_recompute_notes(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_step *step)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct ap_again *mark = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	struct naming k = {ctx, g, mark, AP_OK};

	if (!step->training)
		return AP_OK;
	ap_recompute_mark(ctx, g, step, mark);
	note_cells(&k);
	if (step->recompute != AP_RECOMPUTE_NONE && !adds_marks(ctx, g, step, mark))
		note(&k, step->recompute == AP_RECOMPUTE_FULL
			? "full recompute adds nothing: there are no repeated layers, which are cells "
			  "NAME.0, NAME.1, .. of which two have the same operators"
			: "selective recompute adds nothing: there is no attention made of two products "
			  "of activations; fused attention recomputes its scores itself");
	ap_arena_release(ctx->scratch, scratch);
	return k.st;
}
