/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/stages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "graph/cell.h"
#include "pipeline/stages_parts.h"

struct said { /* of a cell; -1 nothing */
	int32_t stage, segment;
};

struct saying {
	struct ap_stages *s;
	struct ap_map *cells; /* all that the graph has */
	struct ap_map *named; /* those of which something is said */
	struct said *said; /* by id in named */
};

enum ap_status ap_stages_fault(const struct ap_stages *s, ap_id node, const char *check,
	const char *fmt, ...)
{
	const struct ap_where where = {.file = s->g->file,
		.oper = node == AP_NONE ? NULL : s->g->node[node].name};
	enum ap_status st;
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(s->ctx->diag, AP_ERROR, AP_MEANING, &where, check, fmt, ap);
	va_end(ap);
	return st;
}

enum ap_status ap_stages_check(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndevice,
	int32_t nstage, int32_t nsegment)
{
	const struct ap_where where = {.file = g->file};

	if (nstage > ndevice)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--pipeline-stages %" PRId32 ": there are %" PRId64 " devices; a stage needs one at "
			"least", nstage, ndevice);
	if (ndevice % nstage != 0)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--pipeline-stages %" PRId32 " does not divide the %" PRId64 " devices", nstage,
			ndevice);
	if ((int64_t)nstage * nsegment > g->nnode)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &where, "stage-empty",
			"%" PRId32 " stages%s need an operator each; the graph has %" PRIu32, nstage,
			nsegment > 1 ? ap_arena_printf(ctx->arena, " of %" PRId32 " segments", nsegment)
				: "", g->nnode);
	return AP_OK;
}

/* "0 to 3", "only 0". */
static const char *range_text(const struct ap_stages *s, int32_t n)
{
	return n > 1 ? ap_arena_printf(s->ctx->arena, "0 to %" PRId32, n - 1) : "only 0";
}

/* "stage 4; --pipeline-stages 4 allows 0 to 3" */
static const char *no_stage(const struct ap_stages *s, int64_t stage)
{
	return ap_arena_printf(s->ctx->arena, "stage %" PRId64 "; --pipeline-stages %" PRId32
		" allows %s", stage, s->rq->nstage, range_text(s, s->rq->nstage));
}

/* Of what the graph says; NULL: all is well. */
static const char *out_of_range(const struct ap_stages *s, int32_t stage, int32_t segment)
{
	if (stage >= s->rq->nstage)
		return no_stage(s, stage);
	if (segment >= s->rq->nsegment)
		return ap_arena_printf(s->ctx->arena, "segment %" PRId32 "; %" PRId32
			" segment%s in a stage allow%s %s", segment, s->rq->nsegment,
			s->rq->nsegment > 1 ? "s" : "", s->rq->nsegment > 1 ? "" : "s",
			range_text(s, s->rq->nsegment));
	return NULL;
}

static struct said *said_of(struct saying *y, const char *cell)
{
	bool fresh;
	ap_id id = ap_map_put_str(y->named, cell, &fresh);

	if (fresh)
		y->said[id] = (struct said){-1, -1};
	return &y->said[id];
}

static enum ap_status check_cell(const struct ap_stages *s, uint32_t c)
{
	const struct ap_cell *cell = &s->g->cell[c];
	const char *why = out_of_range(s, cell->stage, cell->segment);
	struct ap_where where = {.file = s->g->file};

	if (!why)
		return AP_OK;
	where.pointer = ap_arena_printf(s->ctx->arena, "/cells/%" PRIu32, c);
	return ap_diag_add(s->ctx->diag, AP_ERROR, AP_MEANING, &where, "stage-range",
		"cell \"%s\" is in %s", ap_diag_name(s->ctx->diag, cell->name), why);
}

static enum ap_status take_graph_cells(struct saying *y)
{
	enum ap_status st = AP_OK;

	for (uint32_t c = 0; c < y->s->g->ncell; c++) {
		const struct ap_cell *cell = &y->s->g->cell[c];
		enum ap_status one = check_cell(y->s, c);

		st = st == AP_OK ? one : st;
		if (cell->stage >= 0 || cell->segment >= 0)
			*said_of(y, cell->name) = (struct said){cell->stage, cell->segment};
	}
	return st;
}

static enum ap_status take_entry(struct saying *y, const struct ap_jv *v)
{
	const struct ap_stages_request *rq = y->s->rq;
	const char *cell = ap_jv_key(v), *name = ap_diag_name(y->s->ctx->diag, cell);
	int64_t stage;

	if (ap_map_get_str(y->cells, cell) == AP_NONE)
		return ap_json_report(y->s->ctx, rq->doc, v, AP_ERROR, AP_MEANING, NULL, "stage-cell",
			"no operator is in a cell \"%s\"%s", name,
			ap_cell_meant(y->s->ctx, y->cells, cell));
	if (!ap_jv_int(rq->doc, v, &stage))
		return ap_json_report(y->s->ctx, rq->doc, v, AP_ERROR, AP_MEANING, NULL, "key-type",
			"expected the stage of cell \"%s\", an integer", name);
	if (stage < 0 || stage >= rq->nstage)
		return ap_json_report(y->s->ctx, rq->doc, v, AP_ERROR, AP_MEANING, NULL, "stage-range",
			"cell \"%s\" is in %s", name, no_stage(y->s, stage));
	said_of(y, cell)->stage = (int32_t)stage;
	return AP_OK;
}

static enum ap_status take_config(struct saying *y)
{
	const struct ap_stages_request *rq = y->s->rq;
	enum ap_status st = AP_OK;

	if (!rq->config)
		return AP_OK;
	if (ap_jv_type(rq->config) != AP_JOBJECT)
		return ap_json_report(y->s->ctx, rq->doc, rq->config, AP_ERROR, AP_MEANING, NULL, "key-type",
			"expected an object of cells and their stages");
	for (const struct ap_jv *v = ap_jv_first(rq->config); v; v = ap_jv_next(v)) {
		enum ap_status one = take_entry(y, v);

		st = st == AP_OK ? one : st;
	}
	return st;
}

/* From the operator itself, or from the innermost cell that says it. */
static enum ap_status take_node(struct saying *y, ap_id i)
{
	const struct ap_node *n = &y->s->g->node[i];
	int32_t *stage = &y->s->stage[i], *segment = &y->s->segment[i];
	const char *why = out_of_range(y->s, n->stage, n->segment);

	if (why)
		return ap_stages_fault(y->s, i, "stage-range", "the operator is in %s", why);
	*stage = n->stage;
	*segment = n->segment;
	for (ap_id c = ap_cell_find(y->named, n->cell); c != AP_NONE;
			c = ap_cell_around(y->named, ap_map_key(y->named, c, NULL))) {
		if (*stage < 0)
			*stage = y->said[c].stage;
		if (*segment < 0)
			*segment = y->said[c].segment;
	}
	return AP_OK;
}

static enum ap_status take_all(struct ap_stages *s, bool *any)
{
	size_t most = s->g->ncell + (s->rq->config ? ap_jv_count(s->rq->config) : 0);
	struct saying y = {.s = s, .cells = ap_map_create(s->ctx->arena),
		.named = ap_map_create(s->ctx->arena),
		.said = AP_NEW_N(s->ctx->scratch, struct said, most)};
	enum ap_status st;

	for (ap_id i = 0; i < s->g->nnode; i++)
		ap_cell_note(y.cells, s->g->node[i].cell);
	st = s->npart > 1 ? take_graph_cells(&y) : AP_OK;
	AP_TRY(take_config(&y));
	AP_TRY(st);
	for (ap_id i = 0; s->npart > 1 && i < s->g->nnode; i++) {
		enum ap_status one = take_node(&y, i);

		st = st == AP_OK ? one : st;
		*any |= s->stage[i] >= 0 || s->segment[i] >= 0;
	}
	return st;
}

static enum ap_status find_parts(struct ap_stages *s)
{
	bool any = false;

	AP_TRY(take_all(s, &any));
	if (s->npart > 1 && any)
		return ap_stages_spread(s);
	if (s->npart > 1)
		ap_stages_cut(s);
	return AP_OK;
}

enum ap_status ap_stages_make(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_spot **spot)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_graph *g = rq->graph;
	struct ap_stages s = {.ctx = ctx, .rq = rq, .g = g, .npart = rq->nstage * rq->nsegment};
	struct ap_spot *out = AP_NEW_N(ctx->arena, struct ap_spot, g->nnode);
	enum ap_status st;

	s.stage = AP_NEW_N(ctx->scratch, int32_t, g->nnode);
	s.segment = AP_NEW_N(ctx->scratch, int32_t, g->nnode);
	s.part = AP_NEW_N(ctx->scratch, int32_t, g->nnode);
	st = find_parts(&s);
	for (ap_id i = 0; st == AP_OK && i < g->nnode; i++) {
		out[i].part = s.part[i];
		if (s.npart > 1)
			ap_schedule_spot(rq->scheduler, rq->nstage, s.part[i], &out[i].stage,
				&out[i].segment);
	}
	ap_arena_release(ctx->scratch, mark);
	*spot = out;
	return st;
}
