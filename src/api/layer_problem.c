/* SPDX-License-Identifier: Apache-2.0 */
#include "api/layer_problem.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "pipeline/schedule.h"

struct kind { /* all layers in one kind */
	struct ap_partition_row *row; /* [nlayer + AP_LAYERS_ENDS]; NULL: there is none */
	int64_t passed_bytes, context_bytes; /* as in struct ap_layer_rows */
	int64_t shared_bytes; /* of the last stage, of what it receives once a step; to sum its gradients: */
	double summed_s;
};

struct making {
	struct ap_ctx *ctx;
	const struct ap_decision_point *point;
	const struct ap_layer_fold *fold;
	uint32_t nlayer; /* that are kept */
};

struct degree { /* in all kinds of a point */
	uint32_t n; /* kinds */
	bool has_all; /* none was left out */
	struct kind kind[AP_MIX_KINDS];
	struct ap_partition_degree end; /* what is sent */
	struct ap_partition_border *behind; /* [nlayer + 1] of struct ap_layer_border; NULL: of one stage */
	struct ap_partition_shared shared;
};

/* Of a stage of several, the first part does not hold what its last layer passes on; of all others what they
 * receive stands for that. If what is in front of the layers holds less, the rest is taken from what is held
 * beside them: for as many micro-batches as a segment of the first stage holds at once, at most. Returns if
 * something is. */
static bool leave_border(const struct making *m, struct kind *k)
{
	struct ap_partition_row *first = &k->row[m->nlayer + AP_LAYERS_FIRST];
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

/* The last part holds what it shares with the first one, and sums its gradients, if that is in another
 * stage. */
static void hold_shared(const struct making *m, struct kind *k)
{
	int32_t last = (int32_t)(m->point->pp * m->point->vpp) - 1, stage, segment, first;

	ap_schedule_spot(ap_scheduler_at((size_t)m->point->scheduler), (int32_t)m->point->pp, 0, &first,
		&segment);
	ap_schedule_spot(ap_scheduler_at((size_t)m->point->scheduler), (int32_t)m->point->pp, last, &stage,
		&segment);
	if (stage == first)
		return;
	k->row[m->nlayer + AP_LAYERS_LAST].weights_bytes += k->shared_bytes;
	k->row[m->nlayer + AP_LAYERS_LAST].exchange_s += k->summed_s;
}

/* Does something run in front of the layers, and behind them? */
static bool has_ends(const struct making *m, const struct kind *k)
{
	return k->row[m->nlayer + AP_LAYERS_FIRST].forward_s > 0 &&
	       k->row[m->nlayer + AP_LAYERS_LAST].forward_s > 0;
}

/* Classes of layers with equal rows, and the runs of these. kind: [ndegree * nkind] */
static void make_runs(const struct making *m, const struct kind *kind, struct ap_partition *p)
{
	struct ap_map *seen = ap_map_create(m->ctx->scratch);
	uint32_t nkept = m->nlayer + AP_LAYERS_ENDS, nall = m->fold->nlayer + AP_LAYERS_ENDS, n = 0;
	size_t nrow = (size_t)p->ndegree * p->nkind;
	struct ap_partition_row *key = AP_NEW_N(m->ctx->scratch, struct ap_partition_row, nrow);
	struct ap_partition_class *cls = AP_NEW_N(m->ctx->arena, struct ap_partition_class, nkept);
	struct ap_partition_run *run = AP_NEW_N(m->ctx->arena, struct ap_partition_run, nall);
	int32_t *of = AP_NEW_N(m->ctx->scratch, int32_t, nkept); /* classes of rows; -1: not known yet */

	memset(of, 0xff, nkept * sizeof *of);
	for (uint32_t at = 0; at < nall; at++) {
		/* In the order of the network. */
		enum ap_partition_at where = at == 0 ? AP_AT_FIRST : at <= m->fold->nlayer ? AP_AT_BODY
			: AP_AT_LAST;
		uint32_t i = where == AP_AT_FIRST ? m->nlayer + AP_LAYERS_FIRST
			: where == AP_AT_LAST ? m->nlayer + AP_LAYERS_LAST : m->fold->by[at - 1], c;
		bool fresh;

		if (of[i] < 0)
			memset(key, 0, nrow * sizeof *key);
		for (size_t k = 0; k < nrow && of[i] < 0; k++) {
			bool first = k % p->nkind == 0, is_end = i >= m->nlayer;
			const struct ap_partition_row *row = kind[is_end ? k - k % p->nkind : k].row;

			if (row)
				memcpy(&key[k], &row[i], sizeof *key);
			key[k].absent = !row || (is_end && !first);
		}
		c = of[i] < 0 ? ap_map_put(seen, key, nrow * sizeof *key, &fresh) : (uint32_t)of[i];
		if (of[i] < 0 && fresh)
			cls[p->nclass++] = (struct ap_partition_class){
				ap_arena_printf(m->ctx->arena, "%" PRIu32, c),
				ap_arena_memdup(m->ctx->arena, key, nrow * sizeof *key)};
		of[i] = (int32_t)c;
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
	for (uint32_t i = 0; i < m->nlayer + AP_LAYERS_ENDS; i++) {
		const struct ap_partition_row *r = &kind[0].row[i];
		double pass_s = r->forward_s + r->backward_s + r->weight_s;
		int64_t weights = r->weights_bytes, kept = r->kept_bytes;

		for (uint32_t k = 1; i < m->nlayer && k < nkind; k++) {
			r = &kind[k].row[i];
			pass_s = fmin(pass_s, r->forward_s + r->backward_s + r->weight_s);
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

static bool is_no_more(const struct ap_partition_row *a, const struct ap_partition_row *b)
{
	return a->forward_s <= b->forward_s && a->backward_s <= b->backward_s && a->weight_s <= b->weight_s &&
		a->beside_s <= b->beside_s && a->exchange_s <= b->exchange_s && a->slowed_s <= b->slowed_s &&
		a->update_s <= b->update_s && a->kept_bytes <= b->kept_bytes &&
		a->late_bytes <= b->late_bytes && a->weights_bytes <= b->weights_bytes &&
		a->temporary_bytes <= b->temporary_bytes;
}

/*
 * Drops kinds that others are as good as, for every layer, in all times and bytes: for each plan with such a
 * kind there is one with the other that is no worse. Where layers differ, the other one has to be next to it,
 * so that the order of a part's kinds stays. The first kind is kept. Returns how many are left.
 */
static uint32_t drop_dominated(const struct making *m, struct kind *kind, const char **name, uint32_t n)
{
	bool alike = true;

	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 1; i < m->nlayer; i++)
			alike = alike && memcmp(&kind[k].row[i], &kind[k].row[0], sizeof *kind[k].row) == 0;
	for (uint32_t k = n; k-- > 1;) {
		bool dominated = false;

		for (uint32_t other = 0; other < n && !dominated; other++) {
			dominated = other != k && (alike || other + 1 == k || other == k + 1);
			for (uint32_t i = 0; i < m->nlayer && dominated; i++)
				dominated = is_no_more(&kind[other].row[i], &kind[k].row[i]);
		}
		if (!dominated)
			continue;
		n--;
		memmove(&kind[k], &kind[k + 1], (n - k) * sizeof *kind);
		memmove(&name[k], &name[k + 1], (n - k) * sizeof *name);
	}
	return n;
}

/* The rows of a point in all kinds of its mix, and their names, [AP_MIX_KINDS]. */
static enum ap_status take_rows(const struct making *m, const struct ap_layer_table *rows,
	const struct ap_decision_space *space, const struct ap_decision_point *point, const char **names,
	struct degree *out)
{
	const char *const *word = ap_decision_kinds(space, point);

	*out = (struct degree){.end = {.name = "", .send_s = INFINITY, .send_back_s = INFINITY,
		.left_s = INFINITY}, .shared = {INFINITY, INFINITY}, .has_all = true};
	for (int k = 0; k < AP_MIX_KINDS && word[k]; k++) {
		const struct ap_layer_rows *made = ap_layer_table_find(rows, point, k);
		uint32_t n = out->n;

		/* What a layer computes again for the next one, as norms behind a sum, joins the two. */
		out->has_all = out->has_all && made->row;
		if (!made->row && !made->why && n > 0)
			continue;
		if (!made->row)
			return ap_diag_add(m->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s",
				made->why ? made->why : "its layers are no runs of operators");
		/* A kind without effect, such as selective beside fused attention. */
		if (n > 0 && memcmp(made->row, out->kind[n - 1].row, m->nlayer * sizeof *made->row) == 0) {
			out->has_all = false;
			continue;
		}
		out->kind[n] = (struct kind){ap_arena_memdup(m->ctx->arena, made->row,
			(m->nlayer + AP_LAYERS_ENDS) * sizeof *made->row), made->passed_bytes,
			made->context_bytes, made->border.held_bytes,
			made->border.summed_s};
		names[out->n++] = word[k];
		out->end.send_s = fmin(out->end.send_s, made->border.send_s);
		out->end.send_back_s = fmin(out->end.send_back_s, made->border.send_back_s);
		for (uint32_t i = 0; i <= m->nlayer && made->border.behind; i++) {
			const struct ap_partition_border *b = &made->border.behind[i];

			if (!out->behind)
				out->behind = ap_arena_memdup(m->ctx->arena, made->border.behind,
					(m->nlayer + 1) * sizeof *out->behind);
			out->behind[i].send_s = fmin(out->behind[i].send_s, b->send_s);
			out->behind[i].send_back_s = fmin(out->behind[i].send_back_s, b->send_back_s);
		}
		out->end.left_s = fmin(out->end.left_s, made->left_s);
		out->shared.send_s = fmin(out->shared.send_s, made->border.once_s);
		out->shared.send_back_s = fmin(out->shared.send_back_s, made->border.once_back_s);
	}
	return AP_OK;
}

/* A problem of the point's stages and schedule, without rows. */
static struct ap_partition of_shape(const struct making *m, const struct ap_decision_space *space,
	int64_t limit_bytes, int64_t fixed_bytes)
{
	int64_t *capacity = AP_NEW_N(m->ctx->arena, int64_t, m->point->pp);
	int64_t *fixed = AP_NEW_N(m->ctx->arena, int64_t, m->point->pp);

	for (int64_t s = 0; s < m->point->pp; s++) {
		capacity[s] = limit_bytes;
		fixed[s] = fixed_bytes;
	}
	return (struct ap_partition){.nstage = (int32_t)m->point->pp, .nsegment = (int32_t)m->point->vpp,
		.nmicro = m->point->micro_batches,
		.scheduler = ap_scheduler_at((size_t)m->point->scheduler), .objective = AP_OBJECTIVE_STEP,
		.capacity_bytes = capacity, .fixed_bytes = fixed,
		.counts = space->uneven ? AP_COUNTS_FREE : AP_COUNTS_EQUAL, .least_layers = 1,
		.least_at_ends = 1, .kinds = space->mix[m->point->mix].rule};
}

static int64_t least_context(const struct degree *d)
{
	int64_t least = d->kind[0].context_bytes;

	for (uint32_t k = 1; k < d->n; k++)
		least = d->kind[k].context_bytes < least ? d->kind[k].context_bytes : least;
	return least;
}

/* What borders send in the order of the network's layers; NULL where it is the same wherever they are. */
static const struct ap_partition_border *list_borders(const struct making *m, const struct degree *d)
{
	uint32_t n = m->fold->nlayer;
	struct ap_partition_border *out = AP_NEW_N(m->ctx->arena, struct ap_partition_border, n + 1);
	bool any = false;

	for (uint32_t i = 0; i <= n && d->behind; i++) {
		out[i] = d->behind[i > 0 ? m->fold->by[i - 1] : m->nlayer];
		any |= out[i].send_s > d->end.send_s || out[i].send_back_s > d->end.send_back_s;
	}
	return any ? out : NULL;
}

enum ap_status ap_layer_problem_make(struct ap_ctx *ctx, const struct ap_layer_table *rows,
	const struct ap_decision_space *space, const struct ap_decision_point *point, int64_t limit_bytes,
	struct ap_layer_problem *out)
{
	struct ap_partition_degree *degree = AP_NEW(ctx->arena, struct ap_partition_degree);
	const struct ap_layer_fold *fold = ap_layer_table_fold(rows);
	const struct making m = {ctx, point, fold, fold->nkept};
	const char **names = AP_NEW_N(ctx->arena, const char *, AP_MIX_KINDS);
	bool taken = false;
	struct degree d;

	AP_TRY(take_rows(&m, rows, space, point, names, &d));
	for (uint32_t k = 0; k < d.n; k++) {
		taken |= leave_border(&m, &d.kind[k]);
		hold_shared(&m, &d.kind[k]);
	}
	*degree = d.end;
	*out = (struct ap_layer_problem){.p = of_shape(&m, space, limit_bytes, least_context(&d)),
		.context_bytes = taken ? 0 : least_context(&d)};
	out->p.pipe = ap_layer_table_pipe(rows, point);
	out->p.degree = degree;
	out->p.ndegree = 1;
	out->p.kind = names;
	out->p.shared = d.shared;
	out->p.border = list_borders(&m, &d);
	if (space->uneven && has_ends(&m, &d.kind[0]))
		out->p.least_at_ends = 0;
	out->p.nkind = drop_dominated(&m, d.kind, names, d.n);
	out->has_all_kinds = d.has_all && out->p.nkind == d.n;
	d.n = out->p.nkind;
	make_runs(&m, d.kind, &out->p);
	add_up(&m, d.kind, d.n, out);
	out->pass_s -= ap_layer_table_find(rows, point, 0)->summed_s;
	return AP_OK;
}

/* Is a degree as good as another one on as many devices, in every kind, layer and send? */
static bool is_no_worse(const struct making *m, const struct degree *a, const struct degree *b)
{
	bool is = a->end.devices == b->end.devices && a->n == b->n && a->end.send_s <= b->end.send_s &&
		a->end.send_back_s <= b->end.send_back_s && a->end.left_s <= b->end.left_s;

	for (uint32_t k = 0; k < b->n && is; k++)
		for (uint32_t i = 0; i < m->nlayer + AP_LAYERS_ENDS && is; i++)
			is = is_no_more(&a->kind[k].row[i], &b->kind[k].row[i]);
	return is;
}

uint32_t ap_layer_problem_share(struct ap_ctx *ctx, const struct ap_layer_table *rows,
	const struct ap_decision_space *space, const struct ap_decision_point *shape,
	const struct ap_decision_point *point, uint32_t n, int64_t limit_bytes, uint32_t *of,
	struct ap_partition *out)
{
	const struct ap_layer_fold *fold = ap_layer_table_fold(rows);
	const struct making m = {ctx, shape, fold, fold->nkept};
	struct degree *d = AP_NEW_N(ctx->arena, struct degree, n);
	struct ap_partition_degree *end = AP_NEW_N(ctx->arena, struct ap_partition_degree, n);
	const char **names = AP_NEW_N(ctx->arena, const char *, AP_MIX_KINDS);
	int64_t fixed = INT64_MAX;
	uint32_t kept = 0, nkind = 1;
	struct kind *kind;
	bool ends = true;

	for (uint32_t i = 0; i < n; i++) {
		struct ap_ctx quiet = ap_diag_apart(ctx);
		const struct making own = {&quiet, shape, fold, fold->nkept};
		bool worse = false;

		if (take_rows(&own, rows, space, &point[i], names, &d[kept]) != AP_OK)
			continue;
		for (uint32_t k = 0; k < d[kept].n; k++)
			leave_border(&m, &d[kept].kind[k]);
		fixed = least_context(&d[kept]) < fixed ? least_context(&d[kept]) : fixed;
		d[kept].end.devices = space->devices / point[i].pp;
		d[kept].end.receive_s = d[kept].end.send_s;
		d[kept].end.receive_back_s = d[kept].end.send_back_s;
		for (uint32_t k = 0; k < kept && !worse; k++)
			worse = is_no_worse(&m, &d[k], &d[kept]);
		ends = ends && has_ends(&m, &d[kept].kind[0]);
		of[kept] = i;
		kept += !worse;
	}
	if (kept == 0)
		return 0;
	for (uint32_t i = 0; i < kept; i++)
		nkind = d[i].n > nkind ? d[i].n : nkind;
	kind = AP_NEW_N(ctx->arena, struct kind, (size_t)kept * nkind);
	for (uint32_t i = 0; i < kept; i++) {
		end[i] = d[i].end;
		memcpy(&kind[(size_t)i * nkind], d[i].kind, d[i].n * sizeof *kind);
	}
	*out = of_shape(&m, space, limit_bytes, fixed);
	out->degree = end;
	out->ndegree = kept;
	out->degree_by_stage = true;
	out->devices = space->devices;
	out->kind = names;
	out->nkind = nkind;
	out->kinds = AP_KINDS_FREE; /* those of different degrees may have other names */
	if (space->uneven && ends)
		out->least_at_ends = 0;
	make_runs(&m, kind, out);
	return kept;
}

double ap_layer_problem_bound(struct ap_ctx *ctx, const struct ap_layer_problem *q, double enough,
	uint32_t times, uint64_t *work)
{
	return ap_partition_bound_to(ctx, &q->p, enough, times, work);
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
