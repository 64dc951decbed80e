/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/make.h"
#include "routes.h"

#include <string.h>

#include "base/arena.h"
#include "cost/pins.h"
#include "drive/drive.h"
#include "plan/plan.h"
#include "rule/op.h"

const int32_t *const *ex_route_held(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const int32_t *const *counts)
{
	const int32_t **rows = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	const int32_t *const *held = NULL;

	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].param != AP_NONE && ap_op_has_strategy(g->node[i].bound.row))
			rows[i] = counts[i];
	ap_pins_make(ctx, g, ndev, step, rows, &held);
	return held;
}

static bool same_row(const struct ap_graph *g, ap_id i, const int32_t *a, const int32_t *b)
{
	return memcmp(a, b, g->node[i].bound.nfactor * sizeof *a) == 0;
}

static const char *rows_wrong(struct ap_ctx *ctx, const struct ap_graph *g,
	const int32_t *const *held, const int32_t *const *counts)
{
	for (ap_id i = 0; i < g->nnode; i++) {
		if (!counts[i])
			return ap_arena_printf(ctx->arena, "%s is not decided", g->node[i].name);
		if (held && held[i] && !same_row(g, i, held[i], counts[i]))
			return ap_arena_printf(ctx->arena, "%s is not as it was held", g->node[i].name);
	}
	return NULL;
}

static bool names_an_operator(struct ap_ctx *ctx)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	ap_diag_render(ctx->diag, AP_ERROR, 1, &s);
	return strstr(s.s, "(operator \"") != NULL;
}

static struct ap_ctx quiet(const struct ap_ctx *ctx)
{
	struct ap_ctx other = *ctx;

	other.diag = ap_diag_create(ctx->arena, false);
	return other;
}

enum ap_status ex_route_complete(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_graph *g, const struct ap_machine *m, const struct ap_step *step,
	const int32_t *const *held, const int32_t *const **counts, const char **why)
{
	struct ap_ctx local = quiet(ctx);
	enum ap_status st = route->complete(&local, g, m, step, held, counts);

	*why = NULL;
	if (st == AP_OK)
		*why = rows_wrong(ctx, g, held, *counts);
	else if (!names_an_operator(&local))
		*why = "it is not said at which operator the route stops";
	return st;
}

static bool complain(struct ex_game *g, const struct ap_plan *p, const char *why)
{
	ex_game_complain(g, p, why);
	return false;
}

static const int32_t *const *held_of(struct ex_game *g, const int32_t *const *counts)
{
	return ex_route_held(&g->f.ctx, g->f.graph, g->f.machine->ndev, &g->f.step, counts);
}

static enum ap_status complete(struct ex_game *g, const int32_t *const *held,
	const int32_t *const **counts, const char **why)
{
	return ex_route_complete(&g->f.ctx, g->route, g->f.graph, g->f.machine, &g->f.step, held, counts, why);
}

/* NULL, or the operator that a plan has otherwise than the counts. */
static const char *plan_differs(struct ex_game *g, const struct ap_plan *p, const int32_t *const *counts)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (!same_row(p->graph, i, p->op[i].place.count, counts[i]))
			return ap_arena_printf(g->f.ctx.arena, "the route completes %s otherwise",
				p->graph->node[i].name);
	return NULL;
}

/* Evaluation must say of what is held what the route says. */
static bool try_held(struct ex_game *g, const int32_t *const *held, struct ex_routed *out)
{
	struct ap_request rq = ex_game_request(g, "auto");
	struct ap_ctx local = quiet(&g->f.ctx);
	const int32_t *const *counts;
	const char *why;
	struct ap_plan p;
	enum ap_status st = complete(g, held, &counts, &why);

	if (why || (st != AP_OK && st != AP_INFEASIBLE))
		return complain(g, NULL, why ? why : "the route can neither complete nor refuse");
	if (ap_drive_evaluate(st == AP_OK ? &g->f.ctx : &local, &rq, held, &p) != st)
		return complain(g, NULL, "evaluation ends otherwise than the route");
	out->completed += st == AP_OK;
	out->refused += st != AP_OK;
	if (st != AP_OK)
		return true;
	why = plan_differs(g, &p, counts);
	return why ? complain(g, &p, why) : ex_game_plan(g, "completed at random", &p);
}

static bool try_picks(struct ex_game *g, uint32_t picks, struct ex_routed *out)
{
	g->how = "completed at random";
	for (uint32_t i = 0; i < picks; i++) {
		struct ap_mark mark = ap_arena_mark(g->f.ctx.arena);
		const int32_t *const *counts = ex_choice_draw(&g->f.ctx, g->choice, &g->w.rng);

		if (counts && !try_held(g, held_of(g, counts), out))
			return false;
		ap_arena_release(g->f.ctx.arena, mark);
	}
	return true;
}

/* What is found must be what the route makes of its checkpoint. */
static bool try_found(struct ex_game *g, const struct ap_plan *p, const char *mode, struct ex_routed *out)
{
	const int32_t *const *counts;
	const char *why;
	enum ap_status st = complete(g, held_of(g, ap_plan_counts(&g->f.ctx, p)), &counts, &why);

	out->found++;
	if (why || st != AP_OK)
		return complain(g, p, why ? why : "the route stops at the plan that was found for it");
	if (!p->route || p->route->route != g->route)
		return complain(g, p, "the plan that was found for the route is not of it");
	out->differ += p->route->n;
	why = plan_differs(g, p, counts);
	return why ? complain(g, p, why) : ex_game_plan(g, mode, p);
}

/* That nothing is found is only right where no pick can be run. */
static bool try_search(struct ex_game *g, const char *mode, bool must, struct ex_routed *out)
{
	struct ap_request rq = ex_game_request(g, mode);
	struct ap_ctx local = quiet(&g->f.ctx);
	struct ap_plan p;
	enum ap_status st = ap_drive_search(&local, &rq, &p, NULL);

	g->how = mode;
	if (st == AP_OK)
		return try_found(g, &p, mode, out);
	out->none++;
	if (must || (st != AP_INFEASIBLE && st != AP_LIMIT)) {
		g->f.ctx.diag = local.diag;
		return complain(g, NULL, "no plan of the route is found");
	}
	return true;
}

bool ex_route_play(struct ex_game *g, uint32_t picks, const char *mode, struct ex_routed *out)
{
	uint32_t before = out->completed;

	return try_picks(g, picks, out) &&
		(!mode || try_search(g, mode, out->completed > before, out));
}
