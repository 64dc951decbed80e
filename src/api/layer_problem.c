/* SPDX-License-Identifier: Apache-2.0 */
#include "api/layer_problem.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/points.h"
#include "api/settle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "cost/comms.h"
#include "pipeline/schedule.h"
#include "plan/block_costs.h"
#include "plan/blocks.h"
#include "plan/make.h"

enum { FIRST, LAST, ENDS }; /* what is around the layers, as rows behind those of the layers */

struct kind { /* all layers in one kind */
	struct ap_partition_row *row; /* [nlayer + ENDS] */
	int64_t passed_bytes; /* most that a layer passes on to others, of a micro-batch */
	int64_t context_bytes;
};

struct making {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	struct ap_sources src;
	const struct ap_decision_space *space;
	const struct ap_decision_point *point;
	const struct ap_layer_fold *fold;
	uint32_t nlayer; /* that are kept */
};

/* Adds a block to a row. */
static void add_block(const struct ap_step *step, const struct ap_block_cost *c, struct ap_partition_row *r)
{
	int64_t temporary = c->again_bytes + c->temporary_bytes;

	r->forward_s += c->forward_s;
	r->backward_s += c->backward_s + c->weight_s;
	r->update_s += c->update_s + c->least_gather_s + (step->exchange_behind ? c->least_exchange_s : 0);
	r->kept_bytes += c->kept_bytes;
	r->weights_bytes += c->static_bytes + c->once_bytes;
	if (temporary > r->temporary_bytes)
		r->temporary_bytes = temporary;
}

/* Bytes of a micro-batch that each block's operators pass on to others; the most of a layer's. */
static int64_t passed_on(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_graph *g = p->graph;
	int64_t *bytes = AP_NEW_N(ctx->scratch, int64_t, p->blocks->n), most = 0;
	bool *met = AP_NEW_N(ctx->scratch, bool, g->ntensor);

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			ap_id t = g->node[i].in[k], from = g->tensor[t].producer;
			const struct ap_node *n = &g->node[from == AP_NONE ? 0 : from];

			if (from == AP_NONE || met[t] || p->blocks->of[from] == p->blocks->of[i])
				continue;
			met[t] = true;
			for (uint16_t o = 0; o < n->bound.nout; o++)
				if (n->out[o] == t)
					bytes[p->blocks->of[from]] += ap_local_bytes(&n->bound.out[o],
						p->task[from].out[o].batch, &p->op[from].place, p->step);
		}
	for (uint32_t b = 0; b < p->blocks->n; b++)
		if (p->blocks->layer[b] >= 0 && bytes[b] > most)
			most = bytes[b];
	return most;
}

/* The settings with which the network runs in one stage, all layers in one kind. */
static void settle(const struct making *m, const char *word, struct ap_settings *out)
{
	struct ap_decision_point one = *m->point;

	one.pp = one.vpp = 1;
	one.layers = NULL;
	one.recompute = word;
	for (one.scheduler = 0; ap_scheduler_at((size_t)one.scheduler) != ap_scheduler_find("1f1b");
		one.scheduler++)
		;
	ap_points_settings(m->ctx, m->set, m->space, &one, out);
	ap_settings_check(m->ctx, out);
}

/* Makes the rows of a kind. AP_LIMIT without a report if layers are no blocks of their own. */
static enum ap_status make_kind(const struct making *m, const char *word, struct kind *out)
{
	struct ap_ctx *ctx = m->ctx;
	const struct ap_block_cost *cost;
	struct ap_settings o;
	struct ap_inputs in;
	struct ap_plan plan;
	int32_t next = 0;

	settle(m, word, &o);
	AP_TRY(ap_diag_status(ctx->diag));
	AP_TRY(ap_inputs_make(ctx, &o, &m->src, AP_FOR_evaluate, &in));
	AP_TRY(ap_inputs_give(ctx, &o, &m->src, AP_FOR_evaluate, &in));
	ap_plan_sketch(ap_plan_maker_create(ctx, in.request.graph, in.machine, &in.step, AP_NO_LIMIT),
		in.counts, &plan);
	if (plan.blocks->nlayer != m->nlayer)
		return AP_LIMIT;
	cost = ap_block_costs_make(ctx, &plan);
	out->row = AP_NEW_N(ctx->arena, struct ap_partition_row, m->nlayer + ENDS);
	for (uint32_t b = 0; b < plan.blocks->n; b++) {
		int32_t layer = cost[b].layer;

		if (layer >= 0 && (layer != next || cost[b].nlayer != 1))
			return AP_LIMIT;
		next += layer >= 0;
		/* What lies between layers is with the next one. */
		layer = layer >= 0 ? layer : next == 0 ? (int32_t)m->nlayer + FIRST
			: next == (int32_t)m->nlayer ? (int32_t)m->nlayer + LAST : next;
		add_block(&in.step, &cost[b], &out->row[layer]);
	}
	out->passed_bytes = passed_on(ctx, &plan);
	out->context_bytes = plan.prediction.memory.context + plan.prediction.memory.buffers;
	return next == (int32_t)m->nlayer ? AP_OK : AP_LIMIT;
}

/* Of a stage of several, the first part does not hold what its last layer passes on; of all others what they
 * receive stands for that. If what is in front of the layers holds less, the rest is taken from what is held
 * beside them: for as many micro-batches as a segment of the first stage holds at once, at most. Returns if
 * something is. */
static bool leave_border(const struct making *m, struct kind *k)
{
	struct ap_partition_row *first = &k->row[m->nlayer + FIRST];
	int64_t rest = k->passed_bytes - first->kept_bytes;
	double in_flight = fmin((double)m->point->micro_batches, 2 * (double)m->point->pp);

	if (m->point->pp * m->point->vpp == 1)
		return false;
	if (ap_scheduler_at((size_t)m->point->scheduler) == ap_scheduler_find("gpipe"))
		in_flight = (double)m->point->micro_batches;
	first->kept_bytes = rest > 0 ? 0 : -rest;
	if (rest > 0)
		k->context_bytes = (int64_t)fmax(0, (double)k->context_bytes - (double)rest * in_flight);
	return rest > 0;
}

/* Classes of layers with equal rows, and the runs of these. */
static void make_runs(const struct making *m, const struct kind *kind, uint32_t nkind, struct ap_partition *p)
{
	struct ap_map *seen = ap_map_create(m->ctx->scratch);
	struct ap_partition_row *key = AP_NEW_N(m->ctx->scratch, struct ap_partition_row, nkind);
	struct ap_partition_class *cls = AP_NEW_N(m->ctx->arena, struct ap_partition_class, m->nlayer + ENDS);
	struct ap_partition_run *run =
		AP_NEW_N(m->ctx->arena, struct ap_partition_run, m->fold->nlayer + ENDS);
	uint32_t n = 0;

	for (uint32_t at = 0; at < m->fold->nlayer + ENDS; at++) {
		/* In the order of the network. */
		enum ap_partition_at where = at == 0 ? AP_AT_FIRST : at <= m->fold->nlayer ? AP_AT_BODY
			: AP_AT_LAST;
		uint32_t i = where == AP_AT_FIRST ? m->nlayer + FIRST : where == AP_AT_LAST ? m->nlayer + LAST
			: m->fold->by[at - 1], c;
		bool fresh;

		memset(key, 0, nkind * sizeof *key);
		for (uint32_t k = 0; k < nkind; k++)
			memcpy(&key[k], &kind[i < m->nlayer ? k : 0].row[i], sizeof *key);
		for (uint32_t k = 1; i >= m->nlayer && k < nkind; k++)
			key[k].absent = true;
		c = ap_map_put(seen, key, nkind * sizeof *key, &fresh);
		if (fresh)
			cls[p->nclass++] = (struct ap_partition_class){
				ap_arena_printf(m->ctx->arena, "%" PRIu32, c),
				ap_arena_memdup(m->ctx->arena, key, nkind * sizeof *key)};
		if (n > 0 && run[n - 1].cls == c && run[n - 1].at == where)
			run[n - 1].count++;
		else
			run[n++] = (struct ap_partition_run){c, 1, where};
	}
	p->cls = cls;
	p->run = run;
	p->nrun = n;
}

/* What all layers take at least. */
static void add_up(const struct making *m, const struct kind *kind, uint32_t nkind,
	struct ap_layer_problem *out)
{
	out->least_s = INFINITY;
	for (uint32_t i = 0; i < m->nlayer + ENDS; i++) {
		const struct ap_partition_row *r = &kind[0].row[i];
		double pass_s = r->forward_s + r->backward_s;
		int64_t weights = r->weights_bytes, kept = r->kept_bytes;

		for (uint32_t k = 1; i < m->nlayer && k < nkind; k++) {
			r = &kind[k].row[i];
			pass_s = fmin(pass_s, r->forward_s + r->backward_s);
			weights = r->weights_bytes < weights ? r->weights_bytes : weights;
			kept = r->kept_bytes < kept ? r->kept_bytes : kept;
		}
		if (i >= m->nlayer) {
			out->pass_s += pass_s;
			continue;
		}
		out->pass_s += pass_s * m->fold->count[i];
		out->least_s = fmin(out->least_s, pass_s);
		out->static_bytes += (double)weights * m->fold->count[i];
		out->kept_bytes += (double)kept * m->fold->count[i];
	}
}

enum ap_status ap_layer_problem_make(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_layer_fold *fold, const struct ap_decision_space *space,
	const struct ap_decision_point *point, int64_t limit_bytes, struct ap_layer_problem *out)
{
	static const struct ap_partition_degree degree = {"", 0, 0};
	const struct ap_recompute_mix *mix = &space->mix[point->mix];
	struct making m = {.ctx = ctx, .set = set, .src = *src, .space = space, .point = point,
		.fold = fold, .nlayer = fold->nkept};
	struct kind kind[AP_MIX_KINDS];
	const char **names = AP_NEW_N(ctx->arena, const char *, AP_MIX_KINDS);
	int64_t *capacity = AP_NEW_N(ctx->arena, int64_t, point->pp);
	int64_t *fixed = AP_NEW_N(ctx->arena, int64_t, point->pp);
	uint32_t n = 0;
	bool taken = false;

	m.src.apart = (uint32_t)point->pp;
	*out = (struct ap_layer_problem){.p = {.nstage = (int32_t)point->pp, .nsegment = (int32_t)point->vpp,
		.nmicro = point->micro_batches, .scheduler = ap_scheduler_at((size_t)point->scheduler),
		.objective = AP_OBJECTIVE_STEP, .ndegree = 1, .degree = &degree, .kind = names,
		.capacity_bytes = capacity, .fixed_bytes = fixed,
		.counts = space->uneven ? AP_COUNTS_FREE : AP_COUNTS_EQUAL, .least_layers = 1,
		.kinds = mix->rule}};
	for (uint32_t k = 0; k < AP_MIX_KINDS && mix->kind[k]; k++) {
		enum ap_status st = make_kind(&m, mix->kind[k], &kind[n]);

		if (st != AP_OK)
			return st;
		/* A kind without effect, such as selective beside fused attention. */
		if (n > 0 && memcmp(kind[n].row, kind[n - 1].row, m.nlayer * sizeof *kind[n].row) == 0)
			continue;
		names[n++] = mix->kind[k];
	}
	for (uint32_t k = 0; k < n; k++)
		taken |= leave_border(&m, &kind[k]);
	out->p.nkind = n;
	for (int64_t s = 0; s < point->pp; s++) {
		capacity[s] = limit_bytes;
		fixed[s] = kind[0].context_bytes;
		for (uint32_t k = 1; k < n; k++)
			fixed[s] = kind[k].context_bytes < fixed[s] ? kind[k].context_bytes : fixed[s];
	}
	out->context_bytes = taken ? 0 : fixed[0];
	make_runs(&m, kind, n, &out->p);
	add_up(&m, kind, n, out);
	return AP_OK;
}

double ap_layer_problem_bound(struct ap_ctx *ctx, const struct ap_layer_problem *q, double enough)
{
	const struct ap_partition *p = &q->p;
	struct ap_partition none = *p;
	double more_s = INFINITY, least_s, bound_s;

	if (p->kinds != AP_KINDS_UNIFORM || p->nkind != 2)
		return ap_partition_bound_to(ctx, p, enough);
	for (uint32_t r = 0; r < p->nrun; r++) {
		const struct ap_partition_row *row = p->cls[p->run[r].cls].row;

		if (p->run[r].at == AP_AT_BODY)
			more_s = fmin(more_s, row[1].forward_s + row[1].backward_s - row[0].forward_s -
				row[0].backward_s);
	}
	/* The mean stage runs all micro-batches, in which a layer of each of its parts recomputes. */
	least_s = (q->pass_s / (double)p->nstage + fmax(0, more_s) * (double)p->nsegment) * (double)p->nmicro;
	none.nkind = 1; /* rows of the first kind come first */
	bound_s = ap_partition_bound_to(ctx, &none, enough);
	if (bound_s <= least_s)
		return bound_s;
	if (least_s < enough)
		least_s = fmax(least_s, ap_partition_bound_to(ctx, p, enough));
	return fmin(bound_s, least_s);
}

/* Layers of each part of which the kind is at least k: [segment * nstage + stage]. */
static void say_kind(struct ap_str *s, const struct ap_layer_problem *q, const struct ap_partition_plan *plan,
	uint32_t k)
{
	const struct ap_partition *p = &q->p;
	int64_t body = 0;

	while (p->run[0].at == AP_AT_FIRST && body < p->run[0].count)
		body++;
	ap_str_addf(s, "%s%s:", s->len ? "," : "", p->kind[k]);
	if (plan->number) {
		int64_t n = 0;

		while (k < p->nkind)
			n += plan->number[k++];
		ap_str_addf(s, "%" PRId64, n);
		return;
	}
	for (int32_t segment = 0; segment < p->nsegment; segment++)
		for (int32_t stage = 0; stage < p->nstage; stage++) {
			int32_t part = ap_schedule_part(p->scheduler, p->nstage, stage, segment);
			int64_t n = 0;

			for (int64_t i = plan->first[part]; i < plan->first[part + 1]; i++)
				n += plan->kind[body + i] >= k;
			ap_str_addf(s, "%s%" PRId64, stage ? "," : segment ? "/" : "", n);
		}
}

void ap_layer_problem_say(struct ap_ctx *ctx, const struct ap_layer_problem *q,
	const struct ap_partition_plan *plan, struct ap_decision_point *point)
{
	const struct ap_partition *p = &q->p;
	int64_t parts = (int64_t)p->nstage * p->nsegment, layers = plan->first[parts];
	bool even = true;
	int64_t *nkind = AP_NEW_N(ctx->scratch, int64_t, p->nkind);
	int64_t body = 0;
	struct ap_str s;

	for (int64_t q2 = 0; q2 < parts; q2++)
		even = even && (plan->first[q2 + 1] - plan->first[q2]) * parts == layers;
	if (!even) {
		ap_str_init(&s, ctx->arena);
		ap_str_add(&s, "layers=");
		for (int32_t segment = 0; segment < p->nsegment; segment++)
			for (int32_t stage = 0; stage < p->nstage; stage++) {
				int32_t part = ap_schedule_part(p->scheduler, p->nstage, stage, segment);

				ap_str_addf(&s, "%s%" PRId64, stage || segment ? "," : "",
					plan->first[part + 1] - plan->first[part]);
			}
		point->layers = s.s;
	}
	while (p->run[0].at == AP_AT_FIRST && body < p->run[0].count)
		body++;
	for (int64_t i = 0; i < layers; i++)
		nkind[plan->kind[body + i]]++;
	for (uint32_t k = 0; k < p->nkind; k++)
		if (nkind[k] == layers) {
			point->recompute = p->kind[k];
			return;
		}
	ap_str_init(&s, ctx->arena);
	/* A list begins with the last kind; each kind counts from the first layer of a part on. */
	for (uint32_t k = p->nkind; k-- > 1;)
		if (nkind[k])
			say_kind(&s, q, plan, k);
	point->recompute = s.s;
}
