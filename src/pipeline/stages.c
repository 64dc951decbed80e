/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/stages.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/least.h"
#include "graph/cell.h"
#include "graph/family.h"
#include "hw/coll.h"
#include "pipeline/cut.h"
#include "pipeline/order.h"
#include "rule/op.h"

struct stages {
	struct ap_ctx *ctx;
	const struct ap_stages_request *rq;
	const struct ap_graph *g;
	int32_t npart;
	int32_t *stage, *segment; /* [nnode] given for the operator or its cells; -1: not given */
	int32_t *part; /* [nnode] the result */
};

struct order { /* of a graph's operators, each behind those whose results it uses */
	ap_id *node; /* [nnode] */
	uint32_t *at; /* [nnode] where in node a node is */
};

struct said { /* given for a cell; -1: not given */
	int32_t stage, segment;
};

struct saying {
	struct stages *s;
	struct ap_map *cells; /* all of the graph */
	struct ap_map *named; /* those given a stage or segment */
	struct said *said; /* by id in named */
};

/* AP_MEANING, reported for an operator (AP_NONE: for the graph). */
__attribute__((format(printf, 4, 5))) static enum ap_status fault(const struct stages *s, ap_id node,
	const char *check, const char *fmt, ...)
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
	if (!g->devices && ndevice % nstage != 0)
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
static const char *range_text(const struct stages *s, int32_t n)
{
	return n > 1 ? ap_arena_printf(s->ctx->arena, "0 to %" PRId32, n - 1) : "only 0";
}

/* "stage 4; --pipeline-stages 4 allows 0 to 3" */
static const char *no_stage(const struct stages *s, int64_t stage)
{
	return ap_arena_printf(s->ctx->arena, "stage %" PRId64 "; --pipeline-stages %" PRId32
		" allows %s", stage, s->rq->nstage, range_text(s, s->rq->nstage));
}

/* What is wrong with a stage and segment of the graph file; NULL: nothing. */
static const char *out_of_range(const struct stages *s, int32_t stage, int32_t segment)
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

static enum ap_status check_cell(const struct stages *s, uint32_t c)
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

/* From the operator itself, or else from the innermost cell that gives it. */
static enum ap_status take_node(struct saying *y, ap_id i)
{
	const struct ap_node *n = &y->s->g->node[i];
	int32_t *stage = &y->s->stage[i], *segment = &y->s->segment[i];
	const char *why = out_of_range(y->s, n->stage, n->segment);

	if (why)
		return fault(y->s, i, "stage-range", "the operator is in %s", why);
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

static enum ap_status take_all(struct stages *s, bool *any)
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

/* `most` keeps sums of quanta from overflowing. */
static int64_t quanta(double seconds, int64_t most)
{
	double n = seconds / AP_QUANTUM_S;

	return n < (double)most ? (int64_t)llround(n) : most;
}

/* The graph as if all of it were in a stage. */
static const struct ap_graph *in_stage(struct ap_ctx *ctx, const struct ap_graph *g, int32_t stage)
{
	struct ap_node *node;
	const struct ap_graph *placed = ap_graph_with_nodes(ctx, g, &node);

	for (ap_id i = 0; i < g->nnode; i++)
		node[i].stage = stage;
	return placed;
}

/* Weights of operators by id, or of these alone, on the devices of a stage. */
static int64_t *make_weights(struct stages *s, int32_t stage, const ap_id *node, uint32_t n)
{
	int64_t *weight = AP_NEW_N(s->ctx->scratch, int64_t, n);
	struct ap_step step = *s->rq->step;
	const double *least;

	step.pipe = NULL; /* what is held for how long does not change times */
	least = ap_plan_least_s(s->ctx, s->g->devices ? in_stage(s->ctx, s->g, stage) : s->g, s->rq->machine,
		&step);
	for (uint32_t i = 0; i < n; i++)
		weight[i] = quanta(least[node ? node[i] : i], AP_CUT_MOST / n);
	return weight;
}

struct passing {
	struct stages *s;
	const struct order *order;
	struct ap_map *passages; /* the distinct ones */
	ap_id *passage; /* [ntensor] AP_NONE: the tensor never crosses */
	struct rates { /* cost of each passage from one stage to another, and the sum over the passages
	                * in front of each operator */
		int64_t *cost, *crossing;
	} *rates; /* [nrates] distinct */
	uint32_t nrates;
};

struct passage { /* of a tensor over a boundary */
	int64_t bytes; /* per rank */
	uint8_t once, back, spare[6]; /* sent once a step; its gradient comes back */
};

/* Bytes per device of a micro-batch of the tensor, cut as far as its dimensions allow. */
static int64_t dealt_bytes(const struct stages *s, const struct ap_tensor *x)
{
	int64_t devices = s->rq->machine->ndev, bytes = ap_dtype_bytes(x->shape.dtype);

	for (int d = 0; d < x->shape.rank; d++) {
		int64_t extent = x->shape.dim[d], parts;

		if (x->batch >> d & 1)
			extent /= s->rq->step->micro_batches;
		parts = ap_gcd(extent, devices);
		devices /= parts;
		bytes *= extent / parts;
	}
	return bytes;
}

/* Where in the order the tensor is last used. */
static uint32_t last_use(const struct order *o, const struct ap_tensor *x)
{
	uint32_t last = 0;

	for (uint32_t u = 0; u < x->nuse; u++)
		last = o->at[x->use[u].node] > last ? o->at[x->use[u].node] : last;
	return last;
}

/* Where in the order it begins: at its producer, or else at its first user. */
static uint32_t origin(const struct order *o, const struct ap_tensor *x)
{
	uint32_t first = UINT32_MAX;

	if (x->kind == AP_TENSOR_ACT)
		return o->at[x->producer];
	for (uint32_t u = 0; u < x->nuse; u++)
		first = o->at[x->use[u].node] < first ? o->at[x->use[u].node] : first;
	return first;
}

/* Seconds to send what each device of the largest stage has from one stage to another. */
static double passage_s(const struct passing *x, int32_t from, int32_t to, double bytes)
{
	const struct ap_machine *m = x->s->rq->machine;
	struct ap_arena *scratch = x->s->ctx->scratch;
	uint32_t a = ap_machine_at(m, from)->ndev, b = ap_machine_at(m, to)->ndev, n = a > b ? a : b;
	struct ap_mark mark = ap_arena_mark(scratch);
	struct ap_sent *sent;
	double time_s;

	if (a == b)
		return ap_send_time_s(m, (uint32_t)from, (uint32_t)to, bytes * m->ndev / n);
	sent = AP_NEW_N(scratch, struct ap_sent, n);
	for (uint32_t i = 0; i < n; i++)
		sent[i] = (struct ap_sent){ap_machine_first(m, from) + (uint32_t)((uint64_t)i * a / n),
			ap_machine_first(m, to) + (uint32_t)((uint64_t)i * b / n), bytes * m->ndev / n};
	time_s = bytes > 0 ? ap_sends_time_s(scratch, m, sent, n) : 0;
	ap_arena_release(scratch, mark);
	return time_s;
}

/* Quanta per step of each passage, from stage to stage and back. */
static int64_t *price_passages(const struct passing *x, int32_t from, int32_t to)
{
	const struct ap_stages_request *rq = x->s->rq;
	size_t n = ap_map_size(x->passages);
	int64_t *out = AP_NEW_N(x->s->ctx->scratch, int64_t, n);

	for (size_t i = 0; i < n; i++) {
		const struct passage *p = (const void *)ap_map_key(x->passages, (ap_id)i, NULL);
		double time_s = passage_s(x, from, to, (double)p->bytes);

		if (p->back)
			time_s += passage_s(x, to, from, (double)p->bytes);
		out[i] = quanta(p->once ? time_s : time_s * (double)rq->step->micro_batches,
			AP_CUT_MOST / x->s->g->ntensor);
	}
	return out;
}

/* [nnode + 1] cost of the tensors with origin before a place in the order and last use at or behind it. */
static int64_t *add_up(const struct passing *x, const int64_t *cost)
{
	const struct ap_graph *g = x->s->g;
	int64_t *sum = AP_NEW_N(x->s->ctx->scratch, int64_t, g->nnode + 1);

	for (ap_id i = 0; i < g->ntensor; i++) {
		if (x->passage[i] == AP_NONE)
			continue;
		sum[origin(x->order, &g->tensor[i]) + 1] += cost[x->passage[i]];
		sum[last_use(x->order, &g->tensor[i]) + 1] -= cost[x->passage[i]];
	}
	for (ap_id i = 1; i <= g->nnode; i++)
		sum[i] += sum[i - 1];
	return sum;
}

/* Many pairs of stages are connected alike and share a row. */
static const int64_t *crossing_of(struct passing *x, int32_t from, int32_t to)
{
	struct rates r = {.cost = price_passages(x, from, to)};

	for (uint32_t i = 0; i < x->nrates; i++)
		if (memcmp(x->rates[i].cost, r.cost, ap_map_size(x->passages) * sizeof *r.cost) == 0)
			return x->rates[i].crossing;
	r.crossing = add_up(x, r.cost);
	x->rates[x->nrates++] = r;
	return r.crossing;
}

/* [part][place] cost of beginning the part with the operator at that place in the order. */
static const int64_t **make_crossings(struct stages *s, const struct order *o)
{
	const int64_t **out = AP_NEW_N(s->ctx->scratch, const int64_t *, s->npart);
	struct passing x = {.s = s, .order = o, .rates = AP_NEW_N(s->ctx->scratch, struct rates, s->npart)};
	int32_t from, to, segment;
	const struct ap_graph *g = s->g;

	x.passages = ap_map_create(s->ctx->scratch);
	x.passage = AP_NEW_N(s->ctx->scratch, ap_id, g->ntensor);
	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];
		struct passage key = {.once = t->kind == AP_TENSOR_PARAM, .back = t->needs_grad};

		x.passage[i] = AP_NONE;
		if (t->nuse == 0 || t->kind == AP_TENSOR_INPUT || t->kind == AP_TENSOR_CONST ||
			origin(o, t) == last_use(o, t))
			continue;
		key.bytes = dealt_bytes(s, t);
		x.passage[i] = ap_map_put(x.passages, &key, sizeof key, NULL);
	}
	ap_schedule_spot(s->rq->scheduler, s->rq->nstage, 0, &from, &segment);
	for (int32_t p = 1; p < s->npart; p++, from = to) {
		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, p, &to, &segment);
		out[p] = crossing_of(&x, from, to);
	}
	return out;
}

/* Seconds of a step of these parts: part_s[part] of work, of which a third is forward, and a border is one
 * send. */
static double pipe_s(struct stages *s, const struct ap_cut *cut, const uint32_t *first, const double *part_s)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	const struct ap_stages_request *rq = s->rq;
	const struct ap_pipe pipe = {rq->nstage, rq->nsegment, rq->scheduler, NULL};
	struct ap_pass_times *time = AP_NEW_N(s->ctx->scratch, struct ap_pass_times, cut->parts);
	double micro = (double)rq->step->micro_batches, send = AP_QUANTUM_S / 3 / micro;
	struct ap_ctx local = *s->ctx;
	struct ap_timeline line;

	for (uint32_t p = 0; p < cut->parts; p++) {
		struct ap_pass_times *t = &time[p];
		double third_s = part_s[p] / 3 / micro;

		t->forward_s = third_s * (rq->step->training ? 1 : 3);
		t->backward_s = third_s * (rq->scheduler->splits ? 1 : 2);
		t->weight_s = rq->scheduler->splits ? t->forward_s : 0;
		t->last_backward_s = rq->scheduler->splits ? t->weight_s : t->backward_s;
		if (p + 1 < cut->parts)
			t->send_s = t->send_back_s = (double)cut->crossing[p + 1][first[p + 1]] * send *
				(rq->step->training ? 1.5 : 3);
	}
	local.arena = s->ctx->scratch;
	ap_schedule_run(&local, &pipe, rq->step->micro_batches, rq->step->training, time, &line);
	ap_arena_release(s->ctx->scratch, mark);
	return line.end_s;
}

static double step_s(struct stages *s, const struct ap_cut *cut, const uint32_t *first)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	double *part_s = AP_NEW_N(s->ctx->scratch, double, cut->parts), end_s;

	for (uint32_t p = 0; p < cut->parts; p++) {
		int64_t weight = 0;

		for (uint32_t i = first[p]; i < first[p + 1]; i++)
			weight += cut->own ? cut->own[p][i] : cut->weight[i];
		part_s[p] = (double)weight * AP_QUANTUM_S;
	}
	end_s = pipe_s(s, cut, first, part_s);
	ap_arena_release(s->ctx->scratch, mark);
	return end_s;
}

static struct order order_by(struct stages *s, const struct ap_order *by, const int64_t *bytes)
{
	struct order o = {AP_NEW_N(s->ctx->scratch, ap_id, s->g->nnode),
		AP_NEW_N(s->ctx->scratch, uint32_t, s->g->nnode)};

	by->fill(s->ctx, s->g, bytes, o.node);
	for (uint32_t i = 0; i < s->g->nnode; i++)
		o.at[o.node[i]] = i;
	return o;
}

/* How much of the sends overlaps depends on the schedule, so cuts are compared by their step. Replaces
 * best if one is shorter than *least_s. */
static bool cut_best(struct stages *s, struct ap_cut *cut, double *least_s, uint32_t *best)
{
	static const int halves[] = {1, 2, 0};
	uint32_t *first = AP_NEW_N(s->ctx->scratch, uint32_t, cut->parts + 1);
	double before_s = *least_s;

	first[cut->parts] = cut->n;
	for (size_t k = 0; k < AP_COUNT(halves); k++) {
		double now_s;

		cut->halves = halves[k];
		ap_cut_even(s->ctx, cut, first);
		now_s = step_s(s, cut, first);
		if (now_s >= *least_s)
			continue;
		*least_s = now_s;
		memcpy(best, first, (cut->parts + 1) * sizeof *first);
	}
	return *least_s < before_s;
}

/* Weights of operators by id, along an order; NULL: they have none. */
static const int64_t *laid_out(struct stages *s, const struct order *o, const int64_t *weight, uint32_t n)
{
	int64_t *along = AP_NEW_N(s->ctx->scratch, int64_t, n);

	for (uint32_t i = 0; i < n && weight; i++)
		along[i] = weight[o->node[i]];
	return along;
}

/* The cut along an order, of the costs of operators by id in each part; NULL: they have none. */
static void lay_out(struct stages *s, const struct order *o, int64_t *const *weight, struct ap_cut *cut)
{
	const int64_t **own = AP_NEW_N(s->ctx->scratch, const int64_t *, cut->parts);
	bool *vital = AP_NEW_N(s->ctx->scratch, bool, cut->n);

	/* A stage that owns no parameter has an empty strategy checkpoint, which MindSpore
	 * refuses. */
	for (uint32_t i = 0; i < cut->n; i++) {
		const struct ap_node *n = &s->g->node[o->node[i]];

		vital[i] = n->param != AP_NONE && s->g->tensor[n->param].owner.node == o->node[i] &&
			ap_op_has_strategy(n->bound.row);
	}
	for (uint32_t p = 0; p < cut->parts; p++)
		own[p] = p > 0 && (!weight || weight[p] == weight[p - 1]) ? own[p - 1]
			: laid_out(s, o, weight ? weight[p] : NULL, cut->n);
	cut->weight = own[0];
	cut->own = s->g->devices ? own : NULL;
	cut->vital = vital;
	cut->crossing = make_crossings(s, o);
}

/* The first nstage parts are in different stages. */
static void want_parameters(const struct stages *s, struct ap_cut *cut)
{
	cut->wanting = (uint32_t)s->rq->nstage;
	if (!ap_cut_possible(cut))
		cut->wanting = 0;
}

/* [npart][nnode] parts of stages that are alike share a row. */
static int64_t **weights_of_parts(struct stages *s)
{
	int64_t **of_stage = AP_NEW_N(s->ctx->scratch, int64_t *, s->rq->nstage);
	int64_t **out = AP_NEW_N(s->ctx->scratch, int64_t *, s->npart);

	for (int32_t p = 0; p < s->npart; p++) {
		int32_t stage, segment, like;

		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, p, &stage, &segment);
		like = s->g->devices ? s->g->devices[stage].like : 0;
		if (!of_stage[like])
			of_stage[like] = make_weights(s, like, NULL, s->g->nnode);
		out[p] = of_stage[like];
	}
	return out;
}

/* The best of the cuts along several orders; of equals along the first. */
static void cut_all(struct stages *s)
{
	struct ap_cut cut = {.n = s->g->nnode, .parts = (uint32_t)s->npart};
	uint32_t *first = AP_NEW_N(s->ctx->scratch, uint32_t, cut.parts + 1);
	int64_t **weight = weights_of_parts(s), *bytes = AP_NEW_N(s->ctx->scratch, int64_t, s->g->ntensor);
	AP_VEC(struct order) seen = {0};
	double least_s = INFINITY;

	for (ap_id t = 0; t < s->g->ntensor; t++)
		bytes[t] = dealt_bytes(s, &s->g->tensor[t]);
	for (size_t k = 0; ap_order_at(k); k++) {
		struct order o = order_by(s, ap_order_at(k), bytes);
		bool again = false;

		for (size_t b = 0; b < seen.n; b++)
			again |= memcmp(seen.v[b].node, o.node, cut.n * sizeof *o.node) == 0;
		if (again)
			continue;
		lay_out(s, &o, weight, &cut);
		if (k == 0)
			want_parameters(s, &cut);
		AP_PUSH(s->ctx->scratch, seen, o);
		if (!ap_cut_possible(&cut) || !cut_best(s, &cut, &least_s, first))
			continue;
		for (uint32_t p = 0; p < cut.parts; p++)
			for (uint32_t i = first[p]; i < first[p + 1]; i++)
				s->part[o.node[i]] = (int32_t)p;
	}
}

/* Where each part begins, [npart + 1], in an order in which the operators that are said to be in a stage are
 * in consecutive parts; false if there is a part without one. *sent: what the parts' beginnings cost. */
static bool cut_between_said(const struct stages *s, const struct order *o, const struct ap_cut *cut,
	uint32_t *first, int64_t *sent)
{
	uint32_t behind = 0; /* the last that is said */
	int32_t part = 0;

	*sent = 0;
	for (uint32_t at = 0; at < cut->n; at++) {
		int32_t said = s->stage[o->node[at]], stage, segment;

		if (said < 0)
			continue;
		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, part, &stage, &segment);
		if (stage != said) {
			if (++part == s->npart)
				return false;
			ap_schedule_spot(s->rq->scheduler, s->rq->nstage, part, &stage, &segment);
			if (stage != said)
				return false;
			first[part] = behind;
			for (uint32_t i = behind + 1; i <= at; i++)
				if (cut->crossing[part][i] < cut->crossing[part][first[part]])
					first[part] = i;
			*sent += cut->crossing[part][first[part]];
		}
		behind = at + 1;
	}
	first[0] = 0;
	first[s->npart] = cut->n;
	return part == s->npart - 1;
}

/* The cut, along an order, that sends least of those in which operators are where they are said to be; false
 * if there is none. */
static bool cut_as_said(struct stages *s)
{
	struct ap_cut cut = {.n = s->g->nnode, .parts = (uint32_t)s->npart};
	uint32_t *first = AP_NEW_N(s->ctx->scratch, uint32_t, cut.parts + 1);
	int64_t *bytes = AP_NEW_N(s->ctx->scratch, int64_t, s->g->ntensor), least = INT64_MAX, sent;

	for (ap_id t = 0; t < s->g->ntensor; t++)
		bytes[t] = dealt_bytes(s, &s->g->tensor[t]);
	for (size_t k = 0; ap_order_at(k); k++) {
		struct order o = order_by(s, ap_order_at(k), bytes);

		lay_out(s, &o, NULL, &cut);
		if (!cut_between_said(s, &o, &cut, first, &sent) || sent >= least)
			continue;
		least = sent;
		for (uint32_t p = 0; p < cut.parts; p++)
			for (uint32_t i = first[p]; i < first[p + 1]; i++)
				s->part[o.node[i]] = (int32_t)p;
	}
	return least < INT64_MAX;
}

/* The cut within the memory. */

struct tight {
	struct stages s;
	const struct ap_stage_ways *given;
	struct order order;
	struct ap_cut cut;
	struct ap_cut_ways ways; /* along the order */
};

/* Each stage's memory is shared among its parts as even parts, in the leanest way, would need it. */
static void share_limits(struct tight *x, int64_t *in_flight, int64_t *limit)
{
	const struct ap_stages_request *rq = x->s.rq;
	const struct ap_pipe *pipe = rq->step->pipe;
	const struct ap_cut_way *lean = &x->ways.way[x->ways.nway - 1];
	double *need = AP_NEW_N(x->s.ctx->scratch, double, x->s.npart);
	double *sum = AP_NEW_N(x->s.ctx->scratch, double, rq->nstage), held = 0, each = 0;

	for (uint32_t i = 0; i < x->cut.n; i++) {
		held += (double)lean->held[i];
		each += (double)lean->each[i];
	}
	for (int32_t p = 0; p < x->s.npart; p++) {
		int32_t stage, segment;

		ap_schedule_spot(rq->scheduler, rq->nstage, p, &stage, &segment);
		in_flight[p] = pipe ? pipe->in_flight[stage * rq->nsegment + segment] : 1;
		need[p] = 1 + held + (double)in_flight[p] * each;
		sum[stage] += need[p];
	}
	for (int32_t p = 0; p < x->s.npart; p++) {
		int32_t stage, segment;

		ap_schedule_spot(rq->scheduler, rq->nstage, p, &stage, &segment);
		limit[p] = rq->nsegment == 1 ? x->given->limit_bytes
			: (int64_t)((double)x->given->limit_bytes * (need[p] / sum[stage]));
	}
	x->ways.in_flight = in_flight;
	x->ways.limit = limit;
}

/* Everything of a cut along x->order. On the scratch arena. */
static void tighten(struct tight *x)
{
	struct ap_arena *scratch = x->s.ctx->scratch;
	uint32_t n = x->s.g->nnode, parts = (uint32_t)x->s.npart;
	struct ap_cut_way *way = AP_NEW_N(scratch, struct ap_cut_way, x->given->n);

	for (uint32_t g = 0; g < x->given->n; g++) {
		const struct ap_cut_way *from = &x->given->way[g];
		double *time_s = AP_NEW_N(scratch, double, n);
		int64_t *held = AP_NEW_N(scratch, int64_t, n), *each = AP_NEW_N(scratch, int64_t, n);

		for (uint32_t i = 0; i < n; i++) {
			time_s[i] = from->time_s[x->order.node[i]];
			held[i] = from->held[x->order.node[i]];
			each[i] = from->each[x->order.node[i]];
		}
		way[g] = (struct ap_cut_way){time_s, held, each, from->once / x->s.rq->nsegment,
			from->border};
	}
	x->ways = (struct ap_cut_ways){.nway = x->given->n, .way = way, .crossing_s = AP_QUANTUM_S};
	x->cut = (struct ap_cut){.n = n, .parts = parts};
	lay_out(&x->s, &x->order, NULL, &x->cut);
	want_parameters(&x->s, &x->cut);
	share_limits(x, AP_NEW_N(scratch, int64_t, parts), AP_NEW_N(scratch, int64_t, parts));
}

/* The step of parts first[0..parts], each in the fastest mixture that fits; INFINITY if one does not. */
static double mixed_step_s(struct tight *x, const uint32_t *first)
{
	const struct ap_cut_ways *w = &x->ways;
	double *part_s = AP_NEW_N(x->s.ctx->scratch, double, x->cut.parts);

	for (uint32_t p = 0; p < x->cut.parts; p++) {
		double time_s[AP_CUT_WAYS], bytes[AP_CUT_WAYS];

		for (uint32_t g = 0; g < w->nway; g++) {
			int64_t held = w->way[g].once, each = p > 0 ? w->way[g].border : 0;

			time_s[g] = 0;
			for (uint32_t i = first[p]; i < first[p + 1]; i++) {
				time_s[g] += w->way[g].time_s[i];
				held += w->way[g].held[i];
				each += w->way[g].each[i];
			}
			bytes[g] = (double)held + (double)each * (double)w->in_flight[p];
		}
		part_s[p] = ap_cut_mix_s(w->nway, time_s, bytes, (double)w->limit[p]);
		if (part_s[p] > AP_CUT_MISFIT_S)
			return INFINITY;
	}
	return pipe_s(&x->s, &x->cut, first, part_s);
}

static struct tight open_tight(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_stage_ways *ways)
{
	return (struct tight){.given = ways, .s = {.ctx = ctx, .rq = rq, .g = rq->graph,
		.npart = rq->nstage * rq->nsegment}};
}

bool ap_stages_within(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_stage_ways *ways, const struct ap_spot **spot)
{
	static const int halves[] = {1, 2, 0};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_spot *out = AP_NEW_N(ctx->arena, struct ap_spot, rq->graph->nnode);
	struct tight x = open_tight(ctx, rq, ways);
	uint32_t *first = AP_NEW_N(ctx->scratch, uint32_t, x.s.npart + 1);
	double best_s = INFINITY;

	x.order = order_by(&x.s, ap_order_at(0), NULL);
	tighten(&x);
	first[x.s.npart] = x.cut.n;
	for (size_t k = 0; k < AP_COUNT(halves); k++) {
		double now_s;

		x.cut.halves = halves[k];
		if (!ap_cut_within(ctx, &x.cut, &x.ways, first))
			continue;
		now_s = mixed_step_s(&x, first);
		if (now_s >= best_s)
			continue;
		best_s = now_s;
		for (int32_t p = 0; p < x.s.npart; p++)
			for (uint32_t i = first[p]; i < first[p + 1]; i++) {
				struct ap_spot *to = &out[x.order.node[i]];

				to->part = p;
				ap_schedule_spot(rq->scheduler, rq->nstage, p, &to->stage, &to->segment);
			}
	}
	ap_arena_release(ctx->scratch, mark);
	*spot = out;
	return best_s < INFINITY;
}

double ap_stages_step_s(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_stage_ways *ways, const struct ap_spot *spot)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct tight x = open_tight(ctx, rq, ways);
	uint32_t *first = AP_NEW_N(ctx->scratch, uint32_t, x.s.npart + 1), *next;
	double end_s;

	x.order = (struct order){AP_NEW_N(ctx->scratch, ap_id, rq->graph->nnode),
		AP_NEW_N(ctx->scratch, uint32_t, rq->graph->nnode)};
	for (ap_id i = 0; i < rq->graph->nnode; i++)
		first[spot[i].part + 1]++;
	for (int32_t p = 0; p < x.s.npart; p++)
		first[p + 1] += first[p];
	next = ap_arena_memdup(ctx->scratch, first, (size_t)x.s.npart * sizeof *first);
	for (ap_id i = 0; i < rq->graph->nnode; i++) {
		x.order.at[i] = next[spot[i].part]++;
		x.order.node[x.order.at[i]] = i;
	}
	tighten(&x);
	end_s = mixed_step_s(&x, first);
	ap_arena_release(ctx->scratch, mark);
	return end_s;
}

enum { UNKNOWN = -1 };

struct spreading {
	struct stages *s;
	int32_t *least; /* [nnode] the earliest part that is not before the operator's inputs */
	ap_id *why; /* [nnode] the operator that was given that part; AP_NONE */
};

static bool is_said(const struct stages *s, ap_id i)
{
	return s->stage[i] >= 0 || s->segment[i] >= 0;
}

/* The first part from `least` on with the given stage and segment; npart if none. */
static int32_t first_said(const struct stages *s, ap_id i, int32_t least)
{
	int32_t part = least;

	for (; part < s->npart; part++) {
		int32_t stage, segment;

		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, part, &stage, &segment);
		if ((s->stage[i] < 0 || s->stage[i] == stage) &&
			(s->segment[i] < 0 || s->segment[i] == segment))
			break;
	}
	return part;
}

static const char *spot_text(const struct stages *s, int32_t stage, int32_t segment)
{
	if (stage < 0)
		return ap_arena_printf(s->ctx->arena, "segment %" PRId32, segment);
	if (s->rq->nsegment == 1 || segment < 0)
		return ap_arena_printf(s->ctx->arena, "stage %" PRId32, stage);
	return ap_arena_printf(s->ctx->arena, "segment %" PRId32 " of stage %" PRId32, segment, stage);
}

static enum ap_status say_backwards(const struct spreading *x, ap_id i)
{
	const struct stages *s = x->s;
	int32_t stage, segment;

	ap_schedule_spot(s->rq->scheduler, s->rq->nstage, x->least[i], &stage, &segment);
	return fault(s, i, "stage-order",
		"it is in %s, but needs what operator \"%s\" in %s makes; data flows from earlier parts of "
		"the pipeline to later ones", spot_text(s, s->stage[i], s->segment[i]),
		ap_diag_name(s->ctx->diag, s->g->node[x->why[i]].name), spot_text(s, stage, segment));
}

static enum ap_status place_said(struct spreading *x)
{
	struct stages *s = x->s;
	enum ap_status st = AP_OK;

	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_graph *g = s->g;

		x->why[i] = AP_NONE;
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			ap_id from = g->tensor[g->node[i].in[k]].producer;

			if (from == AP_NONE || x->why[from] == AP_NONE || x->least[from] < x->least[i])
				continue;
			if (x->why[i] != AP_NONE && x->least[from] == x->least[i])
				continue;
			x->least[i] = x->least[from];
			x->why[i] = x->why[from];
		}
		s->part[i] = UNKNOWN;
		if (!is_said(s, i))
			continue;
		s->part[i] = first_said(s, i, x->least[i]);
		if (s->part[i] == s->npart) {
			st = say_backwards(x, i);
			x->least[i] = 0; /* reported once, not for all that follow */
			x->why[i] = AP_NONE;
			continue;
		}
		x->least[i] = s->part[i];
		x->why[i] = i;
	}
	return st;
}

/* Operators without a part go with the earliest user of their results. */
static void follow_users(struct stages *s)
{
	for (ap_id i = s->g->nnode; i-- > 0;) {
		const struct ap_node *n = &s->g->node[i];
		int32_t least = UNKNOWN;

		if (s->part[i] != UNKNOWN)
			continue;
		for (uint16_t k = 0; k < n->bound.nout; k++) {
			const struct ap_tensor *t = &s->g->tensor[n->out[k]];

			for (uint32_t u = 0; u < t->nuse; u++) {
				int32_t part = s->part[t->use[u].node];

				if (part != UNKNOWN && (least == UNKNOWN || part < least))
					least = part;
			}
		}
		s->part[i] = least;
	}
}

/* Operators without a part go with the latest producer of their inputs. */
static void follow_producers(struct stages *s)
{
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_node *n = &s->g->node[i];
		bool known = s->part[i] != UNKNOWN;

		for (uint16_t k = 0; !known && k < n->bound.nin; k++) {
			ap_id from = s->g->tensor[n->in[k]].producer;

			if (from != AP_NONE && s->part[from] > s->part[i])
				s->part[i] = s->part[from];
		}
	}
}

/* Splits these operators, in order, between parts first_part and first_part + 1; n >= 2. */
static void halve(struct stages *s, const ap_id *node, uint32_t n, int32_t first_part)
{
	const int64_t *nothing = AP_NEW_N(s->ctx->scratch, int64_t, n), *sent[2] = {nothing, nothing};
	const struct ap_cut cut = {.n = n, .parts = 2, .weight = make_weights(s, s->rq->nstage - 1, node, n),
		.crossing = sent};
	uint32_t first[2];

	ap_cut_even(s->ctx, &cut, first);
	for (uint32_t i = 0; i < n; i++)
		s->part[node[i]] = first_part + (i >= first[1]);
}

static uint32_t *count_parts(const struct stages *s)
{
	uint32_t *n = AP_NEW_N(s->ctx->scratch, uint32_t, s->npart);

	for (ap_id i = 0; i < s->g->nnode; i++)
		n[s->part[i]]++;
	return n;
}

/* In a V, two consecutive parts are in the last stage: if only stages are given, its operators are
 * halved between them. */
static void share_turn(struct stages *s)
{
	int32_t turn = s->rq->nstage - 1;
	const uint32_t *n = count_parts(s);
	ap_id *node;
	uint32_t at = 0;

	if (!s->rq->scheduler->vee || s->npart < turn + 2 || n[turn + 1] > 0 || n[turn] < 2)
		return;
	node = AP_NEW_N(s->ctx->scratch, ap_id, n[turn]);
	for (ap_id i = 0; i < s->g->nnode; i++) {
		if (s->part[i] != turn)
			continue;
		if (s->segment[i] >= 0)
			return;
		node[at++] = i;
	}
	halve(s, node, at, turn);
}

/* Parts of all operators from those given for some. */
static enum ap_status spread_parts(struct stages *s)
{
	struct spreading x = {.s = s, .least = AP_NEW_N(s->ctx->scratch, int32_t, s->g->nnode),
		.why = AP_NEW_N(s->ctx->scratch, ap_id, s->g->nnode)};
	const uint32_t *n;
	enum ap_status st = AP_OK;

	AP_TRY(place_said(&x));
	follow_users(s);
	follow_producers(s);
	follow_users(s);
	follow_producers(s);
	for (ap_id i = 0; i < s->g->nnode; i++)
		if (s->part[i] == UNKNOWN)
			s->part[i] = 0; /* not connected to any given operator */
	share_turn(s);
	n = count_parts(s);
	for (int32_t p = 0; p < s->npart; p++) {
		int32_t stage, segment;

		if (n[p] > 0)
			continue;
		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, p, &stage, &segment);
		st = fault(s, AP_NONE, "stage-empty",
			"no operator is in %s, of %" PRId32 " stages%s", spot_text(s, stage, segment),
			s->rq->nstage, s->rq->nsegment > 1 ? " of several segments" : "");
	}
	return st;
}

/* Parts between layers. */

/* As many layers in each part; of what is left one more in each before the last, the next of them first. */
static int64_t *deal_layers(struct ap_ctx *ctx, uint32_t nlayer, int32_t npart)
{
	int64_t *count = AP_NEW_N(ctx->arena, int64_t, npart);
	int32_t more = (int32_t)(nlayer % (uint32_t)npart);

	for (int32_t k = 0; k < npart; k++)
		count[k] = nlayer / (uint32_t)npart + (k < npart - 1 && k >= npart - 1 - more);
	return count;
}

/* [segment * nstage + stage] as near to the devices of the stages as whole numbers are, at least one each. */
static int64_t *deal_by_devices(const struct stages *s, uint32_t n)
{
	int64_t *count = AP_NEW_N(s->ctx->arena, int64_t, s->npart), at = 0, sum = 0, all = 0;

	for (int32_t t = 0; t < s->rq->nstage; t++)
		all += s->g->devices[t].n * s->rq->nsegment;
	for (int32_t p = 0; p < s->npart; p++) {
		int64_t end, most = (int64_t)n - (s->npart - 1 - p);
		int32_t stage, segment;

		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, p, &stage, &segment);
		sum += s->g->devices[stage].n;
		end = (2 * (int64_t)n * sum + all) / (2 * all);
		end = end < at + 1 ? at + 1 : end;
		end = end > most ? most : end;
		count[segment * s->rq->nstage + stage] = end - at;
		at = end;
	}
	return count;
}

static const char *list_text(struct ap_ctx *ctx, const int64_t *v, uint32_t n)
{
	struct ap_str s, folded;

	ap_str_init(&s, ctx->scratch);
	for (uint32_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? "," : "", v[i]);
	ap_str_init(&folded, ctx->arena);
	ap_str_add_folded(&folded, s.s);
	return folded.s;
}

/* "4 stages", "12 parts, of 4 stages x 3 segments" */
static const char *parts_text(const struct stages *s)
{
	const struct ap_stages_request *rq = s->rq;

	return rq->nsegment == 1 ? ap_arena_printf(s->ctx->arena, "%" PRId32 " stages", rq->nstage)
		: ap_arena_printf(s->ctx->arena, "%" PRId32 " parts, of %" PRId32 " stages x %" PRId32
			" segments", s->npart, rq->nstage, rq->nsegment);
}

__attribute__((format(printf, 2, 3))) static enum ap_status refuse(const struct stages *s, const char *fmt,
	...)
{
	enum ap_status st;
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(s->ctx->diag, AP_ERROR, AP_USAGE, NULL, "hybrid", fmt, ap);
	va_end(ap);
	return st;
}

/* Segments that the layers do not divide into: which would do. */
static enum ap_status refuse_uneven(const struct stages *s, const struct ap_family_chain *chain)
{
	int32_t nstage = s->rq->nstage;
	const char *example = list_text(s->ctx, deal_layers(s->ctx, chain->n, s->npart),
		(uint32_t)s->npart);
	struct ap_str fits;

	ap_str_init(&fits, s->ctx->arena);
	for (int32_t v = 1; (int64_t)v * nstage <= chain->n; v++)
		if (chain->n % (uint32_t)(v * nstage) == 0)
			ap_str_addf(&fits, "%svpp=%" PRId32, fits.len ? ", " : "", v);
	return refuse(s, "--hybrid pp=%" PRId32 ",vpp=%" PRId32 ": the %" PRIu32
		" layers %s cannot be dealt evenly to %s; expected %s%slayers= with a number for each "
		"part, such as layers=%s", nstage, s->rq->nsegment, chain->n,
		ap_diag_name(s->ctx->diag, chain->names), parts_text(s), fits.len ? fits.s : "",
		fits.len ? ", or " : "", example);
}

/* Layers of each part, [segment * nstage + stage], of those that are given. */
static enum ap_status given_counts(const struct stages *s, const struct ap_family_chain *chain,
	int64_t **count)
{
	const struct ap_layer_cut *cut = &s->rq->layers;
	bool offset = cut->kind == AP_LAYERS_OFFSET, one = offset && cut->n == 1 && cut->count[0] == 0;
	const char *key = offset ? "offset" : "layers";
	const char *text = list_text(s->ctx, cut->count, cut->n);
	int64_t each = offset ? chain->n / (uint32_t)s->npart : 0, sum = 0;

	if (cut->n != (uint32_t)s->npart && !one)
		return refuse(s, "--hybrid %s=%s: a list of %" PRIu32 "; expected a number for each of %s%s",
			key, text, cut->n, parts_text(s), s->rq->nsegment == 1 ? ""
				: ": all stages of the first segment, then all of the next");
	*count = AP_NEW_N(s->ctx->arena, int64_t, s->npart);
	for (int32_t k = 0; k < s->npart; k++) {
		int32_t part = ap_schedule_part(s->rq->scheduler, s->rq->nstage, k % s->rq->nstage,
			k / s->rq->nstage);
		int64_t n = each + (one ? 0 : cut->count[k]);

		if (n < (part > 0 && part < s->npart - 1))
			return refuse(s, "--hybrid %s=%s: %" PRId64 " layers in %s; expected one at least "
				"in all parts but the first, with the embedding, and the last, with head "
				"and loss, and 0 there", key, text, n,
				spot_text(s, k % s->rq->nstage, k / s->rq->nstage));
		(*count)[k] = n;
		sum += n;
	}
	if (sum == chain->n)
		return AP_OK;
	return refuse(s, "--hybrid %s=%s: %s%" PRId64 " layers in all; the graph has %" PRIu32 ", %s", key,
		text, offset ? ap_arena_printf(s->ctx->arena, "%" PRId64 " in each part and these are ",
			each) : "", sum, chain->n, ap_diag_name(s->ctx->diag, chain->names));
}

/* Where an end of the pipeline has no layer, what comes before all layers, or after them, is said to be
 * there: nothing else draws it there. */
static void say_ends(struct stages *s, const int32_t *layer, bool first, bool last)
{
	const struct ap_graph *g = s->g;
	bool *after = AP_NEW_N(s->ctx->scratch, bool, g->nnode); /* needs what a layer makes */
	bool *before = AP_NEW_N(s->ctx->scratch, bool, g->nnode); /* a layer needs what it makes */

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			ap_id from = g->tensor[g->node[i].in[k]].producer;

			after[i] |= from != AP_NONE && (after[from] || layer[from] >= 0);
		}
	for (ap_id i = g->nnode; i-- > 0;)
		for (uint16_t o = 0; o < g->node[i].bound.nout; o++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].out[o]];

			for (uint32_t u = 0; u < t->nuse; u++)
				before[i] |= before[t->use[u].node] || layer[t->use[u].node] >= 0;
		}
	for (ap_id i = 0; i < g->nnode; i++)
		if (layer[i] < 0 && ((first && before[i] && !after[i]) || (last && after[i] && !before[i])))
			ap_schedule_spot(s->rq->scheduler, s->rq->nstage, after[i] ? s->npart - 1 : 0,
				&s->stage[i], &s->segment[i]);
}

static enum ap_status cut_layers(struct stages *s, const struct ap_family_chain *chain,
	struct ap_pipe_cut *how)
{
	int32_t *part_of = AP_NEW_N(s->ctx->scratch, int32_t, chain->n);
	int64_t *count = s->g->devices ? deal_by_devices(s, chain->n)
		: deal_layers(s->ctx, chain->n, s->npart);
	uint32_t at = 0;

	if (s->rq->layers.kind != AP_LAYERS_EVEN)
		AP_TRY(given_counts(s, chain, &count));
	else if (!s->g->devices && s->rq->nsegment > 1 && chain->n % (uint32_t)s->npart)
		return refuse_uneven(s, chain);
	how->by = AP_CUT_BY_LAYERS;
	how->layers = chain->names;
	how->count = count;
	for (int32_t part = 0; part < s->npart; part++) {
		int32_t stage, segment;
		uint32_t end;

		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, part, &stage, &segment);
		for (end = at + (uint32_t)count[segment * s->rq->nstage + stage]; at < end; at++)
			part_of[at] = part;
	}
	for (ap_id i = 0; i < s->g->nnode; i++)
		if (chain->layer[i] >= 0)
			ap_schedule_spot(s->rq->scheduler, s->rq->nstage, part_of[chain->layer[i]],
				&s->stage[i], &s->segment[i]);
	say_ends(s, chain->layer, part_of[0] > 0, part_of[chain->n - 1] < s->npart - 1);
	return spread_parts(s);
}

/* Where nothing is said of operators or cells. */
static enum ap_status cut_unsaid(struct stages *s, struct ap_pipe_cut *how)
{
	enum ap_layer_cut_kind kind = s->rq->layers.kind;
	struct ap_family_chain chain = {0};

	if (kind != AP_LAYERS_ANYHOW)
		ap_family_chain(s->ctx, s->g, &chain);
	if (chain.n >= (uint32_t)s->npart || (chain.n > 0 && kind > AP_LAYERS_EVEN))
		return cut_layers(s, &chain, how);
	if (kind > AP_LAYERS_EVEN)
		return refuse(s, "--hybrid %s=: the graph has no layers, which are cells numbered NAME.0, "
			"NAME.1, ..; expected no such key, for a cut by cost, or --stage-config",
			kind == AP_LAYERS_OFFSET ? "offset" : "layers");
	how->by = AP_CUT_BY_COST;
	if (kind != AP_LAYERS_ANYHOW)
		how->why = chain.n == 0 ? "the graph has no layers"
			: ap_arena_printf(s->ctx->arena, "the graph has %" PRIu32 " layer%s", chain.n,
				chain.n == 1 ? "" : "s");
	cut_all(s);
	return AP_OK;
}

static enum ap_status find_parts(struct stages *s, struct ap_pipe_cut *how)
{
	bool any = false;

	AP_TRY(take_all(s, &any));
	if (s->npart == 1)
		return AP_OK;
	if (!any && s->rq->known) {
		how->by = AP_CUT_BY_STRATEGY;
		memcpy(s->stage, s->rq->known, s->g->nnode * sizeof *s->stage);
		return cut_as_said(s) ? AP_OK : spread_parts(s);
	}
	if (!any)
		return cut_unsaid(s, how);
	how->by = s->rq->config ? AP_CUT_BY_CONFIG : AP_CUT_BY_GRAPH;
	if (s->rq->layers.kind > AP_LAYERS_EVEN)
		return refuse(s, "--hybrid %s= and %s contradict each other: both say what is in which stage",
			s->rq->layers.kind == AP_LAYERS_OFFSET ? "offset" : "layers",
			s->rq->config ? "--stage-config" : "stages in the graph file");
	return spread_parts(s);
}

enum ap_status ap_stages_make(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_spot **spot, struct ap_pipe_cut *how)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_graph *g = rq->graph;
	struct stages s = {.ctx = ctx, .rq = rq, .g = g, .npart = rq->nstage * rq->nsegment};
	struct ap_spot *out = AP_NEW_N(ctx->arena, struct ap_spot, g->nnode);
	struct ap_pipe_cut cut = {0};
	enum ap_status st;

	s.stage = AP_NEW_N(ctx->scratch, int32_t, g->nnode);
	s.segment = AP_NEW_N(ctx->scratch, int32_t, g->nnode);
	s.part = AP_NEW_N(ctx->scratch, int32_t, g->nnode);
	st = find_parts(&s, &cut);
	for (ap_id i = 0; st == AP_OK && i < g->nnode; i++) {
		out[i].part = s.part[i];
		if (s.npart > 1)
			ap_schedule_spot(rq->scheduler, rq->nstage, s.part[i], &out[i].stage,
				&out[i].segment);
	}
	ap_arena_release(ctx->scratch, mark);
	*spot = out;
	if (how)
		*how = cut;
	return st;
}

enum { NOT_YET = -1, SEVERAL = -2 };

struct cells {
	struct ap_map *names;
	int32_t *part; /* by id */
};

static int32_t stage_of(const struct ap_node *n)
{
	return n->stage;
}

static int32_t segment_of(const struct ap_node *n)
{
	return n->segment;
}

static void note_part(const struct ap_node *n, int32_t part, struct cells *c)
{
	for (ap_id id = ap_cell_find(c->names, n->cell); id != AP_NONE;
			id = ap_cell_around(c->names, ap_map_key(c->names, id, NULL)))
		c->part[id] = c->part[id] == NOT_YET || c->part[id] == part ? part : SEVERAL;
}

/* For each cell the part that all its operators are in, or SEVERAL; on the scratch arena. */
static void find_cells(struct ap_ctx *ctx, const struct ap_graph *staged,
	int32_t (*part_of)(const struct ap_node *n), struct cells *c)
{
	c->names = ap_map_create(ctx->scratch);
	for (ap_id i = 0; i < staged->nnode; i++)
		ap_cell_note(c->names, staged->node[i].cell);
	c->part = AP_NEW_N(ctx->scratch, int32_t, ap_map_size(c->names));
	for (size_t id = 0; id < ap_map_size(c->names); id++)
		c->part[id] = NOT_YET;
	for (ap_id i = 0; i < staged->nnode; i++)
		if (staged->node[i].peer < 0)
			note_part(&staged->node[i], part_of(&staged->node[i]), c);
}

static void write_parts(struct ap_ctx *ctx, const struct ap_graph *staged,
	int32_t (*part_of)(const struct ap_node *n), struct ap_str *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct cells c;
	struct ap_jw w;

	find_cells(ctx, staged, part_of, &c);
	ap_jw_str_init(&w, out, 2);
	ap_jw_obj(&w);
	for (ap_id id = 0; id < ap_map_size(c.names); id++) {
		const char *cell = ap_map_key(c.names, id, NULL);
		ap_id around = ap_cell_around(c.names, cell);

		if (c.part[id] >= 0 && (around == AP_NONE || c.part[around] == SEVERAL))
			ap_jw_kint(&w, cell, c.part[id]);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ap_arena_release(ctx->scratch, mark);
}

void ap_stages_write_config(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out)
{
	write_parts(ctx, staged, stage_of, out);
}

void ap_stages_write_segments(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out)
{
	write_parts(ctx, staged, segment_of, out);
}

/* Is the innermost cell of the operator all in one stage? */
static bool is_placed(const struct cells *c, const struct ap_node *n)
{
	ap_id cell = ap_cell_find(c->names, n->cell);

	return cell != AP_NONE && c->part[cell] >= 0;
}

/* The latest stage, by where[], that a node reads from; its own if it reads no result. */
static int32_t latest_read(const struct ap_graph *g, const int32_t *where, const struct ap_node *n)
{
	int32_t latest = NOT_YET;

	for (uint16_t x = 0; x < n->bound.nin; x++) {
		ap_id from = g->tensor[n->in[x]].producer;

		if (from != AP_NONE && where[from] > latest)
			latest = where[from];
	}
	return latest == NOT_YET ? n->stage : latest;
}

void ap_stages_astray(struct ap_ctx *ctx, const struct ap_graph *staged, uint32_t *n, const ap_id **out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	int32_t *where = AP_NEW_N(ctx->scratch, int32_t, staged->nnode);
	ap_id *astray = AP_NEW_N(ctx->arena, ap_id, staged->nnode);
	struct cells c;

	find_cells(ctx, staged, stage_of, &c);
	*n = 0;
	for (ap_id i = 0; i < staged->nnode; i++) {
		const struct ap_node *node = &staged->node[i];
		bool sent = node->peer >= 0; /* does not exist yet when MindSpore places operators */

		where[i] = !sent && is_placed(&c, node) ? node->stage : latest_read(staged, where, node);
		if (!sent && where[i] != node->stage)
			astray[(*n)++] = i;
	}
	*out = astray;
	ap_arena_release(ctx->scratch, mark);
}
