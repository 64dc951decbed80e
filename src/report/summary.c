/* SPDX-License-Identifier: Apache-2.0 */
#include "report/summary.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/name_fold.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "plan/terms.h"
#include "planfile/plan_json.h"
#include "problem/problem.h"
#include "rule/op.h"

enum { TOP = 5 }; /* lines of a table */

typedef bool better_fn(const struct ap_plan *p, uint32_t a, uint32_t b);

/* Finds the best TOP of n items, best first, equal ones in plan order; returns how many. */
static uint32_t find_best(const struct ap_plan *p, uint32_t n, better_fn *better, uint32_t best[TOP])
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = found;

		while (at > 0 && better(p, i, best[at - 1]))
			at--;
		if (at == TOP)
			continue;
		found += found < TOP;
		for (uint32_t j = found - 1; j > at; j--)
			best[j] = best[j - 1];
		best[at] = i;
	}
	return found;
}

static bool takes_longer(const struct ap_plan *p, uint32_t a, uint32_t b)
{
	return ap_plan_op_time_s(&p->op[a].cost) > ap_plan_op_time_s(&p->op[b].cost);
}

static bool moves_longer(const struct ap_plan *p, uint32_t a, uint32_t b)
{
	return ap_plan_move_time_s(&p->move[a]) > ap_plan_move_time_s(&p->move[b]);
}

/* Operators, and redistributions, with the largest times above 0. */
static uint32_t top_operators(const struct ap_plan *p, uint32_t best[TOP])
{
	uint32_t n = find_best(p, p->graph->nnode, takes_longer, best);

	while (n > 0 && !(ap_plan_op_time_s(&p->op[best[n - 1]].cost) > 0))
		n--;
	return n;
}

static uint32_t top_moves(const struct ap_plan *p, uint32_t best[TOP])
{
	uint32_t n = find_best(p, p->nmove, moves_longer, best);

	while (n > 0 && !(ap_plan_move_time_s(&p->move[best[n - 1]]) > 0))
		n--;
	return n;
}

/* ---- text ---- */

/* Adds "12.3", rounded, whatever the locale. */
static void add_tenths(struct ap_str *out, double v)
{
	int64_t tenths = llrint(fmin(fabs(v), 1e15) * 10);

	ap_str_addf(out, "%s%" PRId64 ".%" PRId64, v < 0 && tenths ? "-" : "", tenths / 10, tenths % 10);
}

void ap_summary_percent(struct ap_str *out, double part, double whole)
{
	add_tenths(out, whole > 0 ? 100 * part / whole : 0);
	ap_str_add(out, " %");
}

/* Adds "1.03", "12.3" or "123": the digits that matter. */
static void add_ratio(struct ap_str *out, double v)
{
	int64_t hundredths = llrint(fmin(fabs(v), 1e15) * 100);

	if (hundredths >= 10000)
		ap_str_addf(out, "%" PRId64, (hundredths + 50) / 100);
	else if (hundredths >= 1000)
		add_tenths(out, v);
	else
		ap_str_addf(out, "%" PRId64 ".%02" PRId64, hundredths / 100, hundredths % 100);
}

/* Adds a line "name    text". */
static void line(struct ap_str *out, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void line(struct ap_str *out, const char *name, const char *fmt, ...)
{
	va_list ap;

	ap_str_addf(out, "%-18s", name);
	va_start(ap, fmt);
	ap_str_vaddf(out, fmt, ap);
	va_end(ap);
	ap_str_addc(out, '\n');
}

/* Adds text at the end of a column. */
static void add_right(struct ap_str *out, int width, const char *text)
{
	ap_str_addf(out, "  %*s", width, text);
}

/* Adds "12.3" at the end of a column. */
static void add_right_tenths(struct ap_str *out, int width, double v)
{
	struct ap_str text;

	ap_str_init(&text, out->arena);
	add_tenths(&text, v);
	add_right(out, width, text.s);
}

/* Adds a line of seconds, and their share of the step, 0: without one. */
static void line_share(struct ap_str *out, const char *name, double s, double step_s)
{
	char buf[32];

	ap_str_addf(out, "%-18s%10s", name, ap_format_seconds(s, buf));
	if (step_s > 0)
		add_right_tenths(out, 5, 100 * s / step_s);
	ap_str_add(out, step_s > 0 ? " %\n" : "\n");
}

/* Adds the step as a bar: what is computed, waited for and updated, in the order of the lines below it. */
static void add_bar(struct ap_str *out, const struct ap_prediction *t)
{
	enum { WIDTH = 50 };
	const struct {
		double s;
		char c;
	} part[] = {{t->compute_s, '#'}, {t->exposed_communication_s, '='}, {t->bubble_s, '.'},
		{t->optimizer_s, '+'}};
	double sum_s = 0;
	int at = 0;

	if (!(t->step_time_s > 0))
		return;
	ap_str_addf(out, "%-18s[", "");
	for (size_t i = 0; i < AP_COUNT(part); i++)
		for (sum_s += part[i].s; at < WIDTH && at + 0.5 <= WIDTH * sum_s / t->step_time_s; at++)
			ap_str_addc(out, part[i].c);
	ap_str_addf(out, "%*s] # compute, = exposed communication%s, + optimizer\n", WIDTH - at, "",
		t->bubble_s > 0 ? ", . bubble" : "");
}

struct work {
	const char *family;
	double s;
};

static int by_seconds(const void *a, const void *b)
{
	const struct work *x = a, *y = b;

	return x->s != y->s ? (x->s > y->s ? -1 : 1) : strcmp(x->family, y->family);
}

/* Adds how kernels' time is shared by families of operators that have a hundredth of it or more: "matrix
 * products 61.2 %, norms 9.0 %". */
static void add_work(struct ap_str *out, const struct ap_plan *p)
{
	enum { MOST = 16 };
	struct work work[MOST];
	double all_s = 0;
	int n = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++) {
		double s = p->op[i].cost.forward_s + p->op[i].cost.backward_s;
		const char *family = ap_op_family(p->graph->node[i].bound.row);
		int w = 0;

		while (w < n && work[w].family != family)
			w++;
		assert(w < MOST);
		if (w == n)
			work[n++] = (struct work){.family = family};
		work[w].s += s;
		all_s += s;
	}
	if (!(all_s > 0))
		return;
	qsort(work, (size_t)n, sizeof *work, by_seconds);
	ap_str_addf(out, "%-18s", "    of kernels");
	for (int w = 0; w < n && work[w].s >= all_s / 100; w++) {
		ap_str_addf(out, "%s%s ", w ? ", " : "", work[w].family);
		ap_summary_percent(out, work[w].s, all_s);
	}
	ap_str_addc(out, '\n');
}

/* How the stages were found. */
static void add_cut(struct ap_str *out, const struct ap_pipe *pipe)
{
	static const char *const by[] = {[AP_CUT_BY_COST] = "by cost",
		[AP_CUT_BY_MEMORY] = "by cost, within the memory of each stage",
		[AP_CUT_BY_LAYERS] = "between layers",
		[AP_CUT_BY_CONFIG] = "as --stage-config says", [AP_CUT_BY_GRAPH] = "as the graph file says",
		[AP_CUT_BY_STRATEGY] = "as the strategy file says",
		[AP_CUT_BY_KEPT] = "as in the plan that is kept"};
	const struct ap_pipe_cut *cut = pipe->cut;

	if (!cut)
		return;
	ap_str_addf(out, "%-18s%s", "stages cut", by[cut->by]);
	if (cut->why)
		ap_str_addf(out, ": %s", cut->why);
	for (int32_t c = 0; cut->by == AP_CUT_BY_LAYERS && c < pipe->nsegment; c++) {
		struct ap_str s;

		ap_str_init(&s, out->arena);
		for (int32_t k = 0; k < pipe->nstage; k++)
			ap_str_addf(&s, "%s%" PRId64, k ? "," : "", cut->count[c * pipe->nstage + k]);
		ap_str_add(out, c ? " | " : ": ");
		ap_str_add_folded(out, s.s);
	}
	if (cut->by == AP_CUT_BY_LAYERS)
		ap_str_addf(out, " of %s", cut->layers);
	ap_str_addc(out, '\n');
}

/* "4 devices", "2,2,4 devices" */
static void add_devices(struct ap_str *out, const struct ap_plan *p)
{
	struct ap_str list;

	if (!p->machine->part) {
		ap_str_addf(out, "%" PRIu32 " device%s", p->machine->ndev, p->machine->ndev == 1 ? "" : "s");
		return;
	}
	ap_str_init(&list, out->arena);
	for (uint32_t s = 0; s < p->nstage; s++)
		ap_str_addf(&list, "%s%" PRId64, s ? "," : "", p->stage[s].devices);
	ap_str_add_folded(out, list.s);
	ap_str_add(out, " devices");
}

/* Adds a line about the pipeline, if there is one. */
static void add_pipeline(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_pipe *pipe = p->step->pipe;

	if (p->nstage == 1)
		return;
	ap_str_addf(out, "%-18s%" PRIu32 " stages of ", "pipeline", p->nstage);
	add_devices(out, p);
	if (pipe->nsegment > 1)
		ap_str_addf(out, ", %" PRId32 " segments each", pipe->nsegment);
	ap_str_addf(out, ", %s, %" PRId64 " micro-batch%s, bubble ", ap_plan_scheduler(p),
		p->step->micro_batches, p->step->micro_batches == 1 ? "" : "es");
	ap_summary_percent(out, p->prediction.bubble_s, p->prediction.step_time_s);
	ap_str_addc(out, '\n');
	add_cut(out, pipe);
}

/* "full 13,5; none 7,15 of network.blocks.N", of each stage, segments parted by bars. */
static void add_recompute(struct ap_str *out, const struct ap_plan_recompute *r)
{
	if (!r)
		return;
	ap_str_addf(out, "%-18s", "recomputed");
	for (uint32_t k = 0; k < r->nkind; k++) {
		const int64_t *count = r->count + k * (uint32_t)(r->nstage * r->nsegment);

		ap_str_addf(out, "%s%s ", k ? "; " : "", r->kind[k]);
		for (int32_t p = 0; p < r->nstage * r->nsegment; p++)
			ap_str_addf(out, "%s%" PRId64, p == 0 ? "" : p % r->nstage ? "," : " | ", count[p]);
	}
	ap_str_addf(out, " of %s\n", r->layers);
}

static void add_certificate(struct ap_str *out, const struct ap_certificate *c)
{
	char buf[32];

	if (c && c->proven)
		line(out, "certificate", "%s finds the same optimum", c->engine);
	else if (c)
		line(out, "certificate", "none within the limit; %s proves a bound of %s", c->engine,
			ap_format_seconds(c->lower_bound, buf));
}

static void add_search(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_search_info *s = &p->search;
	char buf[32];

	ap_str_addf(out, "%-18s%10s", "objective", ap_format_seconds(s->objective_s, buf));
	if (s->status == AP_PLAN_GIVEN) {
		ap_str_add(out, " (given)\n");
		return;
	}
	if (s->lower_bound_s > 0) {
		ap_str_addf(out, ", bound %s, ", ap_format_seconds(s->lower_bound_s, buf));
		ap_summary_percent(out, s->gap, 1);
		ap_str_add(out, " above it");
	}
	ap_str_addf(out, " (%s, %s%s", s->mode, ap_plan_status_name(s->status),
		s->complete ? "" : ", incomplete");
	if (s->status == AP_PLAN_FEASIBLE && s->ended)
		ap_str_addf(out, ", ended by %s", s->ended);
	ap_str_add(out, ")\n");
	add_certificate(out, s->certificate);
}

/* How far the step may be from the shortest one, of plans with these settings. */
static void add_bound(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_search_info *s = &p->search;
	int64_t micro = p->step->micro_batches;
	char buf[32];

	if (s->status == AP_PLAN_GIVEN)
		return;
	if (s->step_status == AP_STEP_OPEN) {
		ap_str_addf(out, "%-18s%10s no bound of the step is known\n", "  bound", "open:");
		return;
	}
	ap_str_addf(out, "%-18s%10s, the step is ", "  bound", ap_format_seconds(s->step_bound_s, buf));
	ap_summary_percent(out, s->step_gap, 1);
	ap_str_addf(out, " above it%s, for %" PRId64 " micro-batch%s and %" PRIu32 " stage%s, as given\n",
		s->step_status == AP_STEP_PROVEN ? ", proven by this cost model" : "", micro,
		micro == 1 ? "" : "es", p->nstage, p->nstage == 1 ? "" : "s");
}

/* How far predictions were from what was measured, of the runs that are most like this one. */
static void add_measured(struct ap_str *out, const struct ap_plan *p)
{
	bool is_like;
	const struct ap_measured *m = ap_plan_measured(p, &is_like);

	if (!p->step->software)
		return;
	if (!m) {
		ap_str_addf(out, "%-18s%10s: no measured step of %s is known\n", "  error", "unknown",
			p->step->software->name);
		return;
	}
	if (!is_like)
		ap_str_addf(out,
			"%-18s%10s of such steps of %s, %s: none was measured; those nearest, %d of %s, "
			"%s, %s, were %d %% off in the mean\n",
			"  error", "unknown", p->machine->chip->name, p->step->software->name, m->times,
			m->chip, m->software, m->network, m->step_percent);
	else
		ap_str_addf(out, "%-18s%8d %% in the mean of %d measured step%s of %s, %s, %s\n",
			"  error", m->step_percent, m->times, m->times == 1 ? "" : "s", m->chip, m->software,
			m->network);
}

static void add_times(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_prediction *t = &p->prediction;
	char buf[32];

	ap_str_addf(out, "%-18s%10s", "step time", ap_format_seconds(t->step_time_s, buf));
	if (t->samples_per_s > 0) {
		ap_str_add(out, ", ");
		add_tenths(out, t->samples_per_s);
		ap_str_add(out, " samples/s");
	}
	ap_str_addc(out, '\n');
	add_bound(out, p);
	add_bar(out, t);
	line_share(out, "  compute", t->compute_s, t->step_time_s);
	add_work(out, p);
	line_share(out, "  communication", t->communication_s, 0);
	line_share(out, "    exposed", t->exposed_communication_s, t->step_time_s);
	if (t->bubble_s > 0)
		line_share(out, "  bubble", t->bubble_s, t->step_time_s);
	line_share(out, "  optimizer", t->optimizer_s, t->step_time_s);
	add_measured(out, p);
}

/* The stage whose devices hold the most. */
static uint32_t fullest(const struct ap_plan *p)
{
	uint32_t worst = 0;

	for (uint32_t s = 1; s < p->nstage; s++)
		if (p->stage[s].memory.total > p->stage[worst].memory.total)
			worst = s;
	return worst;
}

static void add_memory(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_memory *m = &p->prediction.memory;
	char used[32], usable[32];

	ap_str_addf(out, "%-18s%10s of %s usable on a device", "memory",
		ap_format_bytes(m->total, used), ap_format_bytes(p->capacity_bytes, usable));
	if (p->nstage > 1)
		ap_str_addf(out, " of stage %" PRIu32, fullest(p));
	ap_str_add(out, ", ");
	ap_summary_percent(out, (double)m->total, (double)p->capacity_bytes);
	ap_str_add(out, m->total > p->capacity_bytes ? ": DOES NOT FIT\n" : "\n");
	for (int i = 0; i < AP_MEMORY_KINDS; i++) {
		struct ap_memory_kind kind = ap_memory_kind(m, i);

		if (kind.bytes > 0)
			ap_str_addf(out, "  %-16s%10s\n", kind.label,
				ap_format_bytes(kind.bytes, used));
	}
}

static double differ_cost_s(const struct ap_plan *p, uint32_t i)
{
	return p->route->differ[i].operator_s + p->route->differ[i].moves_s;
}

static bool costs_more(const struct ap_plan *p, uint32_t a, uint32_t b)
{
	return differ_cost_s(p, a) > differ_cost_s(p, b);
}

static void add_signed_seconds(struct ap_str *out, double s)
{
	char buf[32];

	ap_str_addc(out, s < 0 ? '-' : '+');
	ap_str_add(out, ap_format_seconds(fabs(s), buf));
}

void ap_summary_route(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_plan_route *r = p->route;
	double loss_s;
	char buf[32];

	if (!r || !r->route->complete)
		return;
	loss_s = p->prediction.step_time_s - r->free_step_time_s;
	ap_str_addf(out, "%-18s%s decides %" PRIu32 " operator%s otherwise", "route", r->route->name,
		r->n, r->n == 1 ? "" : "s");
	if (r->n) {
		ap_str_add(out, ": step time ");
		add_signed_seconds(out, loss_s);
		ap_str_addf(out, " to the best of all, %s", ap_format_seconds(r->free_step_time_s, buf));
	}
	ap_str_addc(out, '\n');
}

void ap_summary_differs(struct ap_str *out, const struct ap_plan *p)
{
	struct ap_diag *names = ap_diag_create(out->arena, false);
	const struct ap_plan_route *r = p->route;
	uint32_t best[TOP], n;

	if (!r || !r->n)
		return;
	n = find_best(p, r->n, costs_more, best);
	ap_str_addf(out, "\noperators that %s decides otherwise, and what that costs:\n",
		r->route->name);
	for (uint32_t i = 0; i < n; i++) {
		const struct ap_node *node = &p->graph->node[r->differ[best[i]].node];
		struct ap_str cost;

		ap_str_init(&cost, out->arena);
		add_signed_seconds(&cost, differ_cost_s(p, best[i]));
		ap_str_addf(out, "%12s  %-18s %s\n", cost.s, node->type, ap_diag_name(names, node->name));
	}
	if (r->n > n)
		ap_str_addf(out, "%12s  %" PRIu32 " more, which --plan-out lists\n", "and", r->n - n);
}

/* Prefers applicable baselines, then those that fit, then short ones. */
static bool is_better(const struct ap_plan *p, uint32_t i, uint32_t j)
{
	const struct ap_baseline *a = &p->baseline[i], *b = &p->baseline[j];

	if (a->applicable != b->applicable || !a->applicable)
		return a->applicable && !b->applicable;
	if (a->fits != b->fits)
		return a->fits;
	return a->step_time_s < b->step_time_s;
}

/* Adds a line per baseline in plan order; if there are many, only the best. */
static void add_baselines(struct ap_str *out, const struct ap_plan *p)
{
	bool many = p->nbaseline > TOP;
	uint32_t best[TOP], n = find_best(p, p->nbaseline, is_better, best);

	for (uint32_t i = 0; i < n; i++) {
		const struct ap_baseline *b = &p->baseline[many ? best[i] : i];
		char buf[32];

		ap_str_addf(out, "%-17s ", b->name); /* separated even if the name is long */
		if (!b->applicable) {
			ap_str_addf(out, "%10s  %s\n", "-", b->why_not ? b->why_not : "");
			continue;
		}
		ap_str_addf(out, "%10s, ", ap_format_seconds(b->step_time_s, buf));
		if (p->prediction.step_time_s > 0) {
			add_ratio(out, b->step_time_s / p->prediction.step_time_s);
			ap_str_add(out, " times the plan's, ");
		}
		ap_str_addf(out, "%s%s", ap_format_bytes(b->memory_bytes, buf),
			b->fits ? "" : " (does not fit)");
		if (b->fits && ap_plan_bounds_baselines(p))
			ap_str_addf(out, ", %.1f %% above the bound",
				100 * (b->objective_s / p->search.lower_bound_s - 1));
		ap_str_addc(out, '\n');
	}
	if (many)
		ap_str_addf(out, "%-18s%10s %" PRIu32 " more, which --plan-out lists\n", "", "and",
			p->nbaseline - n);
}

/* Adds a table of pipeline stages. */
static void add_stages(struct ap_str *out, const struct ap_plan *p)
{
	if (p->nstage == 1)
		return;
	ap_str_add(out, "\nstages, times of one micro-batch, idle time of the step:\n");
	ap_str_addf(out, "%5s  %-13s%9s%11s%12s%12s%11s%11s%11s\n", "", "ranks", "operators",
		"in flight", "memory", "peak", "forward", "backward", "idle");
	for (uint32_t s = 0; s < p->nstage; s++) {
		const struct ap_plan_stage *stage = &p->stage[s];
		int64_t last = stage->first_rank + stage->devices - 1;
		double segments = p->step->pipe ? p->step->pipe->nsegment : 1;
		char ranks[48], buf[32];

		if (stage->devices == 1)
			snprintf(ranks, sizeof ranks, "%" PRId64, stage->first_rank);
		else
			snprintf(ranks, sizeof ranks, "%" PRId64 "-%" PRId64, stage->first_rank, last);
		snprintf(buf, sizeof buf, segments > 1 ? "%.2f" : "%.0f",
			(double)stage->in_flight / segments);
		ap_str_addf(out, "%5" PRIu32 "  %-13s%9" PRIu32 "%11s", s, ranks, stage->noperator, buf);
		ap_str_addf(out, "%12s", ap_format_bytes(stage->memory.total, buf));
		ap_str_addf(out, "%12s", ap_format_bytes(stage->peak_bytes, buf));
		ap_str_addf(out, "%11s", ap_format_seconds(stage->forward_s, buf));
		ap_str_addf(out, "%11s", ap_format_seconds(stage->backward_s, buf));
		ap_str_addf(out, "%11s\n", ap_format_seconds(stage->idle_s, buf));
	}
}

static const char *cut_text(struct ap_arena *a, const struct ap_layout *l)
{
	struct ap_str text;

	if (!l)
		return "";
	ap_str_init(&text, a);
	ap_str_addc(&text, '[');
	for (int d = 0; d < l->rank; d++)
		ap_str_addf(&text, "%s%" PRId32, d ? "," : "", l->dim[d].cut);
	ap_str_addc(&text, ']');
	return text.s;
}

struct folded { /* operators, or redistributions, that are alike but for numbers in their names */
	const struct ap_name_fold *fold;
	uint32_t first; /* of the plan */
	double time_s; /* of all, in a step */
};

static int by_time(const void *a, const void *b)
{
	const struct folded *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s > y->time_s ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Folds n items with these times, and sorts them, the longest first. Returns how many there are. */
static uint32_t fold(struct ap_ctx *ctx, uint32_t n, const struct ap_name_item *item, const double *time_s,
	struct folded **out)
{
	const struct ap_name_fold *f;
	uint32_t nfold = ap_name_folds(ctx, n, item, &f);
	struct folded *sorted = AP_NEW_N(ctx->scratch, struct folded, nfold);

	for (uint32_t i = 0; i < nfold; i++) {
		sorted[i] = (struct folded){.fold = &f[i], .first = f[i].item[0]};
		for (uint32_t j = 0; j < f[i].n; j++)
			sorted[i].time_s += time_s[f[i].item[j]];
	}
	if (nfold > 1)
		qsort(sorted, nfold, sizeof *sorted, by_time);
	*out = sorted;
	return nfold;
}

/* Adds "    456 ms   27.3 %  x 40    ": of how many, and their share of all. */
static void add_folded(struct ap_str *out, const struct folded *f, double all_s)
{
	char buf[32];

	ap_str_addf(out, "%10s", ap_format_seconds(f->time_s, buf));
	add_right_tenths(out, 4, 100 * f->time_s / all_s);
	snprintf(buf, sizeof buf, "x %" PRIu32, f->fold->n);
	ap_str_addf(out, " %%  %-6s  ", f->fold->n > 1 ? buf : "");
}

/* Adds tables with names last, as they vary in width, of what takes the most time of all that operators and
 * redistributions take. */
static void add_longest(struct ap_ctx *ctx, struct ap_str *out, const struct ap_plan *p,
	struct ap_diag *names)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t n = p->graph->nnode, most = n > p->nmove ? n : p->nmove, nfold;
	struct ap_name_item *item = AP_NEW_N(ctx->scratch, struct ap_name_item, most);
	double *time_s = AP_NEW_N(ctx->scratch, double, most), all_s = 0;
	struct folded *f;
	char buf[32];

	for (uint32_t i = 0; i < n; i++)
		all_s += ap_plan_op_time_s(&p->op[i].cost);
	for (uint32_t i = 0; i < p->nmove; i++)
		all_s += ap_plan_move_time_s(&p->move[i]);
	for (uint32_t i = 0; i < n; i++) {
		const struct ap_node *node = &p->graph->node[i];
		const struct ap_layout *lies = node->bound.nout ? &p->op[i].out[0] : NULL;

		time_s[i] = ap_plan_op_time_s(&p->op[i].cost);
		item[i] = (struct ap_name_item){
			.name = ap_arena_printf(ctx->scratch, "%s%s%s", node->cell, *node->cell ? "/" : "",
				ap_short_name(node->name)),
			.same = ap_arena_printf(ctx->scratch, "%-10s  %-20s  ",
				cut_text(ctx->scratch, lies), node->type)};
	}
	nfold = fold(ctx, n, item, time_s, &f);
	for (uint32_t i = 0; i < nfold && i < TOP && f[i].time_s > 0; i++) {
		if (i == 0)
			ap_str_add(out, "\nmost expensive operators, time per step and share of all:\n");
		add_folded(out, &f[i], all_s);
		ap_str_addf(out, "%s%s\n", item[f[i].first].same, ap_diag_name(names, f[i].fold->name));
	}
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];

		time_s[i] = ap_plan_move_time_s(m);
		item[i].name = p->graph->tensor[m->tensor].name;
		item[i].same = ap_arena_printf(ctx->scratch, "%-10s  -> %-10s  %10s  ",
			cut_text(ctx->scratch, &m->a), cut_text(ctx->scratch, &m->b),
			ap_format_bytes(m->cost.bytes, buf));
	}
	nfold = fold(ctx, p->nmove, item, time_s, &f);
	for (uint32_t i = 0; i < nfold && i < TOP && f[i].time_s > 0; i++) {
		if (i == 0)
			ap_str_add(out, "\nmost expensive redistributions, time per step and share of all, "
				"bytes of each:\n");
		add_folded(out, &f[i], all_s);
		ap_str_addf(out, "%s%s\n", item[f[i].first].same, ap_diag_name(names, f[i].fold->name));
	}
	ap_arena_release(ctx->scratch, mark);
}

static void add_tries(struct ap_str *out, const struct ap_tries *tries)
{
	char buf[32];

	if (tries->among)
		ap_str_addf(out, "\nthe fastest of %" PRIu32 " combination%s of settings, by their hybrids; "
			"of these the fastest plan is taken, step and memory:\n", tries->among,
			tries->among > 1 ? "s" : "");
	else
		ap_str_add(out, "\ncombinations of settings, of which the fastest is taken, step and "
			"memory:\n");
	for (size_t i = 0; i < tries->n; i++) {
		const struct ap_tried *t = &tries->v[i];

		if (t->why) {
			ap_str_addf(out, "%10s  %10s   %s: %s\n", "-", "-", t->label, t->why);
			continue;
		}
		ap_str_addf(out, "%10s  ", ap_format_seconds(t->step_time_s, buf));
		ap_str_addf(out, "%10s %c %s\n", ap_format_bytes(t->memory_bytes, buf), t->taken ? '*' : ' ',
			t->label);
	}
}

/* Adds a share, "+1.4 %", "-0.2 %". */
static void add_more(struct ap_str *out, double s, double of_s)
{
	ap_str_addc(out, s < of_s ? '-' : '+');
	ap_summary_percent(out, fabs(s - of_s), of_s);
}

/* Machines, and what training takes on them. */
static void add_machines(struct ap_str *out, const struct ap_plan_joint *j)
{
	bool days = false, cost = false;
	char buf[32];

	for (uint32_t i = 0; i < j->nmachine; i++) {
		days |= j->machine[i].days > 0;
		cost |= j->machine[i].cost > 0;
	}
	if (j->nmachine == 1 && !days)
		return;
	ap_str_addf(out, "\nmachines, * the one taken, + not beaten in both step and %s:\n",
		j->priced ? "cost" : "devices");
	ap_str_addf(out, "%8s  %-14s    %10s  %10s  %8s/s each%s%s  decided\n", "devices", "chip", "step",
		"memory", j->unit, days ? "      days  device hours" : "", cost ? "          cost" : "");
	for (uint32_t i = 0; i < j->nmachine; i++) {
		const struct ap_plan_machine *m = &j->machine[i];

		ap_str_addf(out, "%8" PRId64 "  %-14s", m->devices, m->chip);
		if (!m->decided) {
			ap_str_addf(out, "    no plan: %s\n", m->why);
			continue;
		}
		ap_str_addf(out, " %c%c", m->taken ? '*' : ' ', m->undominated ? '+' : ' ');
		ap_str_addf(out, " %10s", ap_format_seconds(m->step_s, buf));
		add_right(out, 10, ap_format_bytes(m->memory_bytes, buf));
		add_right_tenths(out, 15, m->rate);
		if (days) {
			add_right_tenths(out, 8, m->days);
			add_right_tenths(out, 12, m->days * 24 * (double)m->devices);
		}
		if (cost)
			add_right_tenths(out, 12, m->cost);
		ap_str_addf(out, "  %s", m->decided);
		if (m->table)
			ap_str_addf(out, ", %s", m->table);
		ap_str_addc(out, '\n');
	}
}

/* What cannot be told from the best, as predictions have errors. */
static void add_near(struct ap_str *out, const struct ap_plan_joint *j)
{
	if (!(j->step_error > 0))
		return;
	ap_str_addf(out, "%-18s", "within the error");
	if (j->near > 1)
		ap_str_addf(out, "%" PRIu32 " other priced plan%s", j->near - 1,
			j->near == 2 ? " takes" : "s take");
	else
		ap_str_add(out, "no other priced plan takes");
	ap_str_addf(out, " at most %.1f %% longer, the mean error of predicted steps", j->step_error);
	if (*j->common)
		ap_str_addf(out, "; all have %s", j->common);
	if (j->maybe)
		ap_str_addf(out, "; %" PRIu32 " more may, by their bounds", j->maybe);
	ap_str_addc(out, '\n');
}

/* How fast the plan is, and how full. */
static void add_speed(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_plan_joint *j = p->joint;
	double step_s = p->prediction.step_time_s, rate = 0;
	char buf[32];

	for (uint32_t i = 0; i < j->nmachine; i++)
		if (j->machine[i].taken)
			rate = j->machine[i].rate * j->machine[i].step_s / step_s;
	ap_str_addf(out, "%-18sstep %s, ", "speed", ap_format_seconds(step_s, buf));
	if (j->bound_s > 0) {
		ap_str_addf(out, "no %s below %s, gap ", j->least_hybrid_s > 0 ? "plan" : "combination",
			ap_format_seconds(j->bound_s, buf));
		ap_summary_percent(out, step_s - j->bound_s, step_s);
		ap_str_add(out, " of the step; ");
	}
	if (j->least_hybrid_s > 0)
		ap_str_addf(out, "no hybrid below %s; ", ap_format_seconds(j->least_hybrid_s, buf));
	add_tenths(out, rate);
	ap_str_addf(out, " %s/s on each device", j->unit);
	if (j->mfu > 0) {
		ap_str_add(out, ", MFU ");
		ap_summary_percent(out, j->mfu, 1);
		ap_str_addf(out, " in %s", j->peak);
	}
	ap_str_addc(out, '\n');
}

/* What the language of the executor costs. */
static void add_free(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_plan_free *f = &p->joint->free;
	double step_s = p->prediction.step_time_s;
	char buf[32];

	if (!f->executor)
		return;
	ap_str_addf(out, "%-18s", "free");
	if (f->step_s > 0) {
		ap_str_addf(out, "%s (", ap_format_seconds(f->step_s, buf));
		ap_summary_percent(out, step_s - f->step_s, step_s);
		ap_str_addf(out, " less): %s, which %s cannot be told", f->decided, f->executor);
	} else {
		ap_str_addf(out, "nothing that %s cannot be told was found to be faster", f->executor);
	}
	if (f->bound_s > 0)
		ap_str_addf(out, "; no plan at all is below %s", ap_format_seconds(f->bound_s, buf));
	ap_str_addc(out, '\n');
}

/* What stages of unequal numbers of devices would take. */
static void add_unequal(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_plan_unequal *u = &p->joint->unequal;
	double step_s = p->prediction.step_time_s;
	char buf[32];

	if (!u->asked)
		return;
	if (u->why) {
		line(out, "unequal stages", "nothing is known of them: %s", u->why);
		return;
	}
	ap_str_addf(out, "%-18s", "unequal stages");
	if (u->said) {
		ap_str_addf(out, "%s by their layers", ap_format_seconds(u->step_s, buf));
		if (u->equal_s > 0) {
			ap_str_addf(out, ", equal ones %s (", ap_format_seconds(u->equal_s, buf));
			ap_summary_percent(out, u->equal_s - u->step_s, u->equal_s);
			ap_str_add(out, " less)");
		}
		ap_str_addf(out, ": %s", u->said);
	} else {
		ap_str_add(out, "none were found to be faster");
	}
	if (u->plan)
		ap_str_addf(out, "%s %s%s%s", u->said ? "; the fastest priced whole" : ", but priced whole",
			ap_format_seconds(u->plan_s, buf), u->taken ? ", which is taken" : "",
			u->not_taken ? ap_arena_printf(out->arena, ", not taken: %s", u->not_taken)
			: u->taken ? "" : ", no faster");
	if (u->bound_s > 0) {
		ap_str_addf(out, "; with as many micro-batches, run as here, no hybrid in such stages is "
			"below %s, a gain of ", ap_format_seconds(u->bound_s, buf));
		ap_summary_percent(out, step_s - u->bound_s, step_s);
		ap_str_add(out, " at most");
	}
	ap_str_addc(out, '\n');
}

/* What was decided, among what, and what other decisions would cost. */
static void add_joint(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_plan_joint *j = p->joint;
	char usable[32];

	if (!j)
		return;
	line(out, "decided", "%s", j->decided);
	if (j->cuts_s > 0) {
		ap_str_addf(out, "%-18severy operator by itself, in the stages of a near hybrid: ", "cut");
		ap_summary_percent(out, fabs(j->step_s - j->cuts_s), j->step_s);
		ap_str_addf(out, " %s than the best hybrid\n", j->cuts_s > j->step_s ? "more" : "less");
	}
	if (*j->given)
		line(out, "given", "%s", j->given);
	add_speed(out, p);
	add_free(out, p);
	add_unequal(out, p);
	if (j->ranks)
		line(out, "ranks", "%s", j->ranks);
	ap_str_addf(out, "%-18s%" PRIu32 " combinations: plans of %" PRIu32 " are priced and fit (%" PRIu32
		" plans in all), %" PRIu32 " need too much memory, %" PRIu32 " are slower by a bound, "
		"%" PRIu32 " cannot be",
		"among", j->n, j->fit, j->evaluated, j->too_large, j->slower, j->refused);
	if (j->open)
		ap_str_addf(out, ", %" PRIu32 " %s", j->open,
			j->complete ? "are open" : "were not looked at");
	ap_str_addc(out, '\n');
	for (uint32_t i = 0; i < j->nrejected; i++)
		line(out, i ? "" : "rejected", "%s", j->rejected[i]);
	ap_str_addf(out, "%-18s%s", "memory to fill", ap_format_bytes(j->usable_bytes, usable));
	ap_str_addf(out, " of a device, headroom %g %%, %s", j->headroom,
		j->headroom_given ? "as asked" : j->memory_error > 0
		? "the mean error of predicted memory" : "as no memory was measured of this software");
	if (!j->headroom_given && j->memory_within > 0)
		ap_str_addf(out, " (nine of ten are within %.1f %%)", j->memory_within);
	ap_str_addf(out, "; %s are filled", ap_format_bytes(p->prediction.memory.total, usable));
	if (p->nstage > 1)
		ap_str_addf(out, " in stage %" PRIu32, fullest(p));
	if (j->headroom_given && j->memory_error > 0)
		ap_str_addf(out, "; predictions are %.1f %% off measured memory, in the mean",
			j->memory_error);
	if (j->headroom_given && j->memory_within > 0)
		ap_str_addf(out, ", nine of ten at most %.1f %%", j->memory_within);
	ap_str_addc(out, '\n');
	for (uint32_t i = 0; i < j->ninstead; i++) {
		const struct ap_plan_instead *o = &j->instead[i];

		ap_str_addf(out, "%-18s%s=%s instead of %s: ", i ? "" : "instead", o->name, o->value,
			o->taken);
		add_more(out, o->step_s, j->step_s);
		if (o->least_s < o->step_s)
			ap_str_add(out, ", of those priced");
		if (o->step_s - j->step_s < j->step_s * j->step_error / 100)
			ap_str_add(out, ", within the error");
		ap_str_addc(out, '\n');
	}
	add_near(out, j);
	add_machines(out, j);
	ap_str_add(out, "\nthe fastest:\n");
	for (uint32_t i = 0; i < j->ntop; i++) {
		char step[32], bytes[32];

		ap_str_addf(out, "%12s  %10s  %s\n", ap_format_seconds(j->top[i].step_s, step),
			ap_format_bytes(j->top[i].memory_bytes, bytes), j->top[i].decided);
	}
	if (j->settings)
		ap_str_addf(out, "settings that must go with the strategy checkpoint: %s, for --config\n",
			j->settings);
	if (j->bundles)
		ap_str_addf(out, "bundles of the fastest: %s\n", j->bundles);
	ap_str_addc(out, '\n');
}

/* Adds in a line what to make of it: how the plan compares to those that come to mind, or whether a given one
 * fits. */
static void add_verdict(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_search_info *s = &p->search;
	double step_s = p->prediction.step_time_s;
	bool fits = p->prediction.memory.total <= p->capacity_bytes;
	const struct ap_baseline *best = NULL;

	if (p->joint || !(step_s > 0))
		return;
	ap_str_addf(out, "%-18s", "verdict");
	if (s->status == AP_PLAN_GIVEN || !fits) {
		ap_str_add(out, fits ? "fits, with " : "does not fit: needs ");
		ap_summary_percent(out, (double)p->prediction.memory.total, (double)p->capacity_bytes);
		ap_str_add(out, fits ? " of the memory filled\n" : " of the memory\n");
		return;
	}
	/* A route completes the plan, and no baseline. */
	for (uint32_t i = 0; i < p->nbaseline && ap_plan_bounds_baselines(p); i++)
		if (p->baseline[i].applicable && p->baseline[i].fits &&
			(!best || p->baseline[i].step_time_s < best->step_time_s))
			best = &p->baseline[i];
	if (!ap_plan_bounds_baselines(p)) {
		ap_str_addf(out, "what %s makes of it", p->route->route->name);
	} else if (!best) {
		ap_str_add(out, "fits, as no plain hybrid does");
	} else if (best->step_time_s <= step_s) {
		ap_str_addf(out, "as fast as %s; nothing %s faster", best->name,
			s->step_status == AP_STEP_PROVEN ? "is" : "was found to be");
	} else {
		ap_summary_percent(out, best->step_time_s - step_s, best->step_time_s);
		ap_str_addf(out, " less time than %s, the best of the plans tried first", best->name);
	}
	if (s->step_status == AP_STEP_BOUNDED) {
		ap_str_add(out, "; at most ");
		ap_summary_percent(out, s->step_gap, 1);
		ap_str_add(out, " above the shortest step");
	} else if (s->step_status == AP_STEP_PROVEN && best && best->step_time_s > step_s) {
		ap_str_add(out, "; nothing is faster");
	}
	ap_str_addc(out, '\n');
}

/* By how much a rule makes the step longer; 0 if a plan without it is no faster. */
static double rule_cost(const struct ap_plan *p, const struct ap_plan_rule *r)
{
	double more = r->without_s > 0 ? p->prediction.step_time_s / r->without_s - 1 : 0;

	return more > 0 ? more : 0;
}

/* What became of the settings that an old plan had decided. */
static void add_kept_decision(struct ap_str *out, const struct ap_plan_kept *k)
{
	double more = k->old_step_s / k->best_step_s - 1;
	char step[32];

	line(out, k->left ? "not kept" : "kept", "the decision of %s, %s", k->file, k->decision);
	if (k->left)
		line(out, "", "%s; the best found takes %s", k->left,
			ap_format_seconds(k->best_step_s, step));
	else if (more > 0)
		line(out, "", "%.2f %% longer than the best found, %s of %s; up to %g %% is allowed",
			100 * more, ap_format_seconds(k->best_step_s, step), k->best_decision,
			100 * k->within);
	else
		line(out, "", "nothing faster was found");
	ap_str_addf(out, "%-18s%" PRIu32 " of %" PRIu32 " operators are cut otherwise", "", k->changes,
		k->of);
	if (k->best_changes != AP_NONE)
		ap_str_addf(out, ", and %" PRIu32 " by the fastest plan of these settings", k->best_changes);
	ap_str_addc(out, '\n');
}

/* What an old plan had to do with it. */
static void add_kept(struct ap_str *out, const struct ap_plan_kept *k, double step_s)
{
	char best[32], old[32], stages[32];

	if (!k)
		return;
	if (k->decision) {
		add_kept_decision(out, k);
		return;
	}
	line(out, "kept", "%" PRIu32 " of %" PRIu32 " operators of %s are cut otherwise, and %" PRIu32
		" by the best plan, of %s", k->changes, k->of, k->file, k->best_changes,
		ap_format_seconds(k->best_step_s, best));
	line(out, "", "the step is %.2f %% longer than that; up to %g %% is allowed",
		100 * fmax(step_s / k->best_step_s - 1, 0), 100 * k->within);
	if (k->moved)
		line(out, "", "%" PRIu32 " operators are in other stages; with the old ones %s%s", k->moved,
			isfinite(k->stages_step_s) ? "the fastest plan found takes "
				: "no plan was found that fits",
			isfinite(k->stages_step_s) ? ap_format_seconds(k->stages_step_s, stages) : "");
	if (k->changes == 0)
		return;
	if (k->least && k->least < k->changes)
		line(out, "", "with fewer than %" PRIu32
			" even the sum of costs is too large, in which what runs side by side counts twice",
			k->least);
	else if (k->least)
		line(out, "", "with fewer the sum of costs is too large");
	if (isfinite(k->old_step_s))
		line(out, "", "the old plan takes %s here", ap_format_seconds(k->old_step_s, old));
	else
		line(out, "", "the old plan is none here, or does not fit");
}

static void add_rules(struct ap_str *out, const struct ap_plan *p)
{
	if (p->nrule)
		ap_str_add(out, "\nrules, and by how much each makes the step longer:\n");
	for (uint32_t i = 0; i < p->nrule; i++) {
		const struct ap_plan_rule *r = &p->rule[i];

		if (r->without_s > 0)
			ap_str_addf(out, "%+9.2f %%  %s\n", 100 * rule_cost(p, r), r->text);
		else
			ap_str_addf(out, "%11s  %s\n", "not known", r->text);
	}
}

void ap_emit_summary(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_tries *tries, bool verbose,
	struct ap_str *out)
{
	const struct ap_machine *m = p->machine;
	struct ap_diag *names = ap_diag_create(out->arena, false);
	uint32_t pinned = ap_plan_pinned(p);

	add_joint(out, p);
	add_verdict(out, p);
	line(out, "graph", "%s: %" PRIu32 " operators, %" PRIu32 " parameters in use",
		ap_diag_name(names, p->graph->name), p->graph->nnode, p->nparam);
	line(out, "devices", "%" PRIu32 " x %s on %" PRIu32 " server%s", m->total, m->chip->name,
		m->topo->nserver, m->topo->nserver == 1 ? "" : "s");
	if (p->route && !*m->chip->hccl) /* on Ascend it goes without saying */
		line(out, "executor", "%s", p->route->route->name);
	add_pipeline(out, p);
	add_recompute(out, p->recompute);
	add_times(out, p);
	if (verbose)
		add_search(out, p);
	else
		add_certificate(out, p->search.certificate);
	add_memory(out, p);
	ap_summary_route(out, p);
	add_baselines(out, p);
	add_kept(out, p->kept, p->prediction.step_time_s);
	line(out, "checkpoint",
		"pins %" PRIu32 " operators; %" PRIu32 " it cannot pin (no trainable parameter)",
		pinned, p->graph->nnode - pinned);
	add_stages(out, p);
	add_longest(ctx, out, p, names);
	ap_summary_differs(out, p);
	add_rules(out, p);
	if (tries)
		add_tries(out, tries);
	if (p->hint)
		ap_str_addf(out, "\nplan: %s\n", p->hint);
}

/* ---- JSON ---- */

static void write_top(struct ap_plan_writer *pw)
{
	const struct ap_graph *g = pw->p->graph;
	uint32_t best[TOP], n = top_operators(pw->p, best);

	ap_jw_karr(&pw->w, "expensive_operators");
	for (uint32_t i = 0; i < n; i++) {
		ap_jw_obj_flat(&pw->w);
		ap_jw_kstr(&pw->w, "name", g->node[best[i]].name);
		ap_jw_kstr(&pw->w, "type", g->node[best[i]].type);
		ap_jw_knum(&pw->w, "time_s", ap_plan_op_time_s(&pw->p->op[best[i]].cost));
		ap_jw_end(&pw->w);
	}
	ap_jw_end(&pw->w);
	n = top_moves(pw->p, best);
	ap_jw_karr(&pw->w, "expensive_redistributions");
	for (uint32_t i = 0; i < n; i++) {
		const struct ap_plan_move *m = &pw->p->move[best[i]];

		ap_jw_obj_flat(&pw->w);
		ap_jw_kstr(&pw->w, "tensor", g->tensor[m->tensor].name);
		ap_jw_kstr(&pw->w, "to", g->node[m->to].name);
		ap_jw_kint(&pw->w, "bytes", m->cost.bytes);
		ap_jw_knum(&pw->w, "time_s", ap_plan_move_time_s(m));
		ap_jw_end(&pw->w);
	}
	ap_jw_end(&pw->w);
}

static void write_tries(struct ap_jw *w, const struct ap_tries *tries)
{
	ap_jw_karr(w, "combinations");
	for (size_t i = 0; i < tries->n; i++) {
		const struct ap_tried *t = &tries->v[i];

		ap_jw_obj_flat(w);
		ap_jw_kobj_flat(w, "settings");
		for (uint32_t s = 0; s < t->nsetting; s++)
			ap_jw_kraw(w, t->setting[s].name, t->setting[s].value);
		ap_jw_end(w);
		if (t->why) {
			ap_jw_kstr(w, "why_not", t->why);
		} else {
			ap_jw_knum(w, "step_time_s", t->step_time_s);
			ap_jw_kint(w, "memory_bytes", t->memory_bytes);
		}
		ap_jw_kbool(w, "taken", t->taken);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

void ap_emit_summary_json(const struct ap_plan *p, const struct ap_tries *tries, ap_write_fn *write,
	void *user)
{
	struct ap_plan_writer pw = {.p = p};
	uint32_t pinned = ap_plan_pinned(p);

	ap_jw_init(&pw.w, write, user, 1);
	ap_jw_obj(&pw.w);
	ap_jw_kstr(&pw.w, "schema", "autopar-summary/1");
	ap_jw_kstr(&pw.w, "graph", p->graph->name);
	ap_jw_kint(&pw.w, "operators", p->graph->nnode);
	ap_jw_kint(&pw.w, "operators_pinned", pinned);
	ap_jw_kint(&pw.w, "operators_not_pinned", p->graph->nnode - pinned);
	ap_plan_write_machine(&pw);
	ap_plan_write_search(&pw);
	ap_plan_write_prediction(&pw);
	ap_plan_write_pipeline(&pw);
	ap_plan_write_recompute(&pw);
	ap_plan_write_joint(&pw);
	ap_jw_karr(&pw.w, "stages");
	for (uint32_t s = 0; s < p->nstage; s++) {
		ap_jw_obj_flat(&pw.w);
		ap_plan_write_stage_figures(&pw, s);
		ap_jw_end(&pw.w);
	}
	ap_jw_end(&pw.w);
	if (p->route) {
		ap_jw_kobj(&pw.w, "route");
		ap_plan_write_route_figures(&pw);
		ap_jw_end(&pw.w);
	} else {
		ap_jw_kraw(&pw.w, "route", NULL);
	}
	ap_plan_write_baselines(&pw);
	write_top(&pw);
	if (p->kept) {
		ap_jw_kobj_flat(&pw.w, "kept");
		ap_jw_kstr(&pw.w, "file", p->kept->file);
		if (p->kept->decision) {
			ap_jw_kstr(&pw.w, "decision", p->kept->decision);
			ap_jw_kbool(&pw.w, "decision_kept", !p->kept->left);
			if (p->kept->left)
				ap_jw_kstr(&pw.w, "why_not", p->kept->left);
			ap_jw_kstr(&pw.w, "best_decision", p->kept->best_decision);
		}
		ap_jw_kint(&pw.w, "operators", p->kept->of);
		ap_jw_kint(&pw.w, "changed", p->kept->changes);
		if (!p->kept->decision)
			ap_jw_kint(&pw.w, "moved", p->kept->moved);
		ap_jw_kint(&pw.w, "least_changed", p->kept->least);
		ap_jw_knum(&pw.w, "within", p->kept->within);
		ap_jw_knum(&pw.w, "best_step_time_s", p->kept->best_step_s);
		if (p->kept->best_changes != AP_NONE)
			ap_jw_kint(&pw.w, "best_changed", p->kept->best_changes);
		ap_jw_knum(&pw.w, "old_step_time_s", p->kept->old_step_s);
		ap_jw_end(&pw.w);
	}
	if (p->nrule)
		ap_jw_karr(&pw.w, "rules");
	for (uint32_t i = 0; i < p->nrule; i++) {
		ap_jw_obj_flat(&pw.w);
		ap_jw_kstr(&pw.w, "rule", p->rule[i].text);
		ap_jw_knum(&pw.w, "without_step_time_s", p->rule[i].without_s > 0 ? p->rule[i].without_s
			: NAN);
		ap_jw_knum(&pw.w, "cost", p->rule[i].without_s > 0 ? rule_cost(p, &p->rule[i]) : NAN);
		ap_jw_end(&pw.w);
	}
	if (p->nrule)
		ap_jw_end(&pw.w);
	if (tries)
		write_tries(&pw.w, tries);
	ap_jw_end(&pw.w);
	ap_jw_finish(&pw.w);
}
