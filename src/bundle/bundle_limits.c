/* SPDX-License-Identifier: Apache-2.0 */
/* Of README.txt: what of this plan its executor cannot be told, or takes otherwise. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/bundle_parts.h"
#include "cost/recompute.h"
#include "pipeline/schedule.h"
#include "pipeline/stages.h"
#include "shard/imposed.h"

enum { MOST_NAMES = 5 };

/* Each of the functions below says whether it holds here, and if so puts what it is about into out.
 */
struct place {
	struct ap_ctx *ctx;
	const struct ap_bundle *b;
	const struct ap_plan *p;
	const struct ap_bundle_way *way;
	struct ap_str out;
};

static bool reads_ckpt(const struct place *r)
{
	return r->way->file && !strcmp(r->way->file, AP_BUNDLE_CKPT);
}

static bool is_mode_chosen(struct place *r)
{
	if (!r->way->file)
		return false;
	ap_str_add(&r->out,
		"recursive_programming, MindSpore's default search_mode, reads none of these "
		"files.");
	return true;
}

static bool needs_out_strategy(struct place *r)
{
	struct ap_bundle_pins pins = ap_bundle_pins(r->ctx, r->b);
	uint32_t n = 0;

	for (ap_id i = 0; i < r->p->graph->nnode; i++)
		n += ap_placement_needs_out(&r->p->op[i].place, r->p->step);
	n -= pins.dealt;
	if (!n || !reads_ckpt(r))
		return false;
	ap_str_addf(&r->out,
		"%" PRIu32 " operator%s an out_strategy, which a strategy checkpoint cannot "
		"hold: say it by shard(in, out) in the script.",
		n, n == 1 ? " has" : "s have");
	return true;
}

static bool has_pins(struct place *r)
{
	struct ap_bundle_pins pins = ap_bundle_pins(r->ctx, r->b);

	if (!pins.said || !reads_ckpt(r))
		return false;
	ap_str_addf(&r->out,
		"%" PRIu32 " operator%s by shard(), which wins over the strategy checkpoint: the graph "
		"says so, and\n  apply_plan.py calls it as " AP_BUNDLE_SHARD " has it.",
		pins.said, pins.said == 1 ? " is cut" : "s are cut");
	return true;
}

static bool has_unsaid_pins(struct place *r)
{
	struct ap_bundle_pins pins = ap_bundle_pins(r->ctx, r->b);

	if (!pins.left || !reads_ckpt(r))
		return false;
	ap_str_addf(&r->out,
		"%" PRIu32 " operator%s by the graph to be cut by shard(), which the script itself must "
		"call:\n  " AP_BUNDLE_SHARD ", not_applicable, says how each is cut, and why it is left to "
		"you.",
		pins.left, pins.left == 1 ? " is said" : "s are said");
	return true;
}

static bool has_reshapes(struct place *r)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < r->p->graph->nnode; i++)
		n += !strcmp(r->p->graph->node[i].type, "Reshape");
	if (!n || !r->way->file)
		return false;
	ap_str_addf(&r->out,
		"%" PRIu32 " Reshape%s no strategy: each goes from the layout of what it reads "
		"to the one its user wants.",
		n, n == 1 ? " has" : "s have");
	return true;
}

static bool has_no_alltoall(struct place *r)
{
	if (r->p->step->alltoall || !r->way->of_class)
		return false;
	ap_str_add(&r->out,
		"The plan does without AlltoAll, which AutoParallel cannot be told: use "
		"set_context().");
	return true;
}

static bool has_new_scheduler(struct place *r)
{
	if (r->p->nstage == 1 || strcmp(r->p->step->pipe->scheduler->name, "zero_bubble_v") != 0)
		return false;
	ap_str_add(
		&r->out, "MindSpore 2.7 refuses the scheduler zero_bubble_v; newer ones have it.");
	return true;
}

static bool saves_whole(struct place *r)
{
	if (!r->p->step->optimizer_sharding || !r->p->step->saved_whole || !r->way->of_class)
		return false;
	ap_str_add(&r->out,
		"Parameters that are gathered before they are saved: AutoParallel cannot be told; "
		"use set_context().");
	return true;
}

static bool has_unsaid_settings(struct place *r)
{
	struct ap_str list;
	size_t n;

	ap_str_init(&list, r->ctx->arena);
	n = ap_bundle_unsaid(r->ctx, r->b, &list);
	if (!n)
		return false;
	ap_str_addf(&r->out, "AutoParallel has no method for %s: use set_context(), which sets %s.",
		list.s, n == 1 ? "it" : "them");
	return true;
}

static bool scales_gradients(struct place *r)
{
	if (!r->way->mode || !ap_bundle_differs(r->b, "scale_sense", "1"))
		return false;
	ap_str_addf(&r->out,
		"scale_sense %s is an argument of PipelineGradReducer(), which the script makes.",
		ap_bundle_setting(r->b, "scale_sense"));
	return true;
}

static bool has_loose_operators(struct place *r)
{
	struct ap_diag *names;
	const ap_id *op;
	uint32_t n;

	if (r->p->nstage == 1)
		return false;
	ap_stages_astray(r->ctx, r->p->graph, &n, &op);
	if (!n)
		return false;
	ap_str_addf(&r->out,
		"%" PRIu32 " operator%s in no cell of one stage. MindSpore puts %s into the latest "
		"stage of\n  what %s, which is not the planned one:",
		n, n == 1 ? " is" : "s are", n == 1 ? "it" : "them",
		n == 1 ? "it reads" : "they read");
	names = ap_diag_create(r->ctx->arena, false);
	for (uint32_t i = 0; i < n && i < MOST_NAMES; i++)
		ap_str_addf(&r->out, "\n  %s (stage %" PRId32 ")",
			ap_diag_path(names, r->p->graph->node[op[i]].name),
			r->p->graph->node[op[i]].stage);
	if (n > MOST_NAMES)
		ap_str_addf(&r->out, "\n  and %" PRIu32 " more", n - MOST_NAMES);
	return true;
}

static bool has_unsaid_marks(struct place *r)
{
	uint32_t n = r->way->mode ? ap_bundle_recompute_rest(r->ctx, r->b) : 0;

	if (!n)
		return false;
	ap_str_addf(&r->out,
		"%" PRIu32
		" operator%s cannot be marked by a call of one primitive: recompute.json lists %s as "
		"not_applicable,\n  and why. Mark %s in the network, or memory and time are not the "
		"planned ones.",
		n, n == 1 ? "" : "s", n == 1 ? "it" : "them", n == 1 ? "it" : "them");
	return true;
}

/* What cells can say beside recompute(), a primitive cannot. */
static bool has_plain_marks(struct place *r)
{
	struct ap_mark scratch = ap_arena_mark(r->ctx->scratch);
	const struct ap_graph *g = r->p->graph;
	struct ap_again *mark = AP_NEW_N(r->ctx->scratch, struct ap_again, g->nnode);
	uint32_t n = 0;

	ap_recompute_mark(r->ctx, g, r->p->step, mark);
	for (ap_id i = 0; i < g->nnode; i++)
		n += mark[i].group < g->nnode &&
		     (mark[i].keep_comm || mark[i].regather || mark[i].slice);
	ap_arena_release(r->ctx->scratch, scratch);
	if (!n || !r->way->mode)
		return false;
	ap_str_addf(&r->out,
		"%" PRIu32 " operator%s recomputed by a call of the primitive, which takes no "
		"mp_comm_recompute and the like.",
		n, n == 1 ? " is" : "s are");
	return true;
}

const char *ap_bundle_limits(struct ap_ctx *ctx, const struct ap_bundle *b)
{
	static bool (*const limits[])(struct place *) = {is_mode_chosen, needs_out_strategy,
		has_pins, has_unsaid_pins, has_reshapes, has_loose_operators, has_unsaid_marks,
		has_plain_marks, has_no_alltoall, saves_whole, has_unsaid_settings,
		scales_gradients, has_new_scheduler};
	struct place r = {.ctx = ctx, .b = b, .p = b->plan, .way = ap_bundle_way(b)};
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(limits); i++) {
		ap_str_init(&r.out, ctx->arena);
		if (limits[i](&r))
			ap_str_addf(&text, "- %s\n", r.out.s);
	}
	return text.s;
}
