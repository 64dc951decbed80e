/* SPDX-License-Identifier: Apache-2.0 */
#include "report/summary.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "plan/terms.h"
#include "planfile/plan_json.h"
#include "problem/problem.h"
#include "report/summary_parts.h"

enum { TOP = 5 };

/* The indices with the largest times, falling; of equal times the first index. */
struct top {
	int n;
	uint32_t index[TOP];
	double time_s[TOP];
};

static void top_add(struct top *t, uint32_t index, double time_s)
{
	int at = t->n;

	while (at > 0 && t->time_s[at - 1] < time_s)
		at--;
	if (at == TOP || time_s <= 0)
		return;
	if (t->n < TOP)
		t->n++;
	for (int i = t->n - 1; i > at; i--) {
		t->index[i] = t->index[i - 1];
		t->time_s[i] = t->time_s[i - 1];
	}
	t->index[at] = index;
	t->time_s[at] = time_s;
}

static void top_operators(const struct ap_plan *p, struct top *t)
{
	*t = (struct top){0};
	for (ap_id i = 0; i < p->graph->nnode; i++)
		top_add(t, i, ap_plan_op_time_s(&p->op[i].cost));
}

static void top_moves(const struct ap_plan *p, struct top *t)
{
	*t = (struct top){0};
	for (uint32_t i = 0; i < p->nmove; i++)
		top_add(t, i, ap_plan_move_time_s(&p->move[i]));
}

/* A line "name    text" of the summary. */
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

static void line_seconds(struct ap_str *out, const char *name, double s)
{
	char buf[32];

	line(out, name, "%10s", ap_format_seconds(s, buf));
}

static void add_certificate(struct ap_str *out, const struct ap_search_info *s)
{
	const struct ap_certificate *c = s->certificate;
	char buf[32];

	ap_str_addf(out, "%-18s", "certificate");
	if (c->proven)
		ap_str_addf(out, "%s finds the same optimum\n", c->engine);
	else
		ap_str_addf(out, "none within the limit; %s proves a bound of %s\n", c->engine,
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
	ap_str_addf(out, ", bound %s, gap ", ap_format_seconds(s->lower_bound_s, buf));
	ap_summary_percent(out, s->gap, 1);
	ap_str_addf(out, " (%s, %s%s)\n", s->mode, ap_plan_status_name(s->status),
		s->complete ? "" : ", incomplete");
	if (s->certificate)
		add_certificate(out, s);
}

static void add_times(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_prediction *t = &p->prediction;
	char buf[32];

	ap_str_addf(out, "%-18s%10s", "step time", ap_format_seconds(t->step_time_s, buf));
	if (t->samples_per_s > 0) {
		ap_str_add(out, ", ");
		ap_summary_tenths(out, t->samples_per_s);
		ap_str_add(out, " samples/s");
	}
	ap_str_addc(out, '\n');
	line_seconds(out, "  compute", t->compute_s);
	line_seconds(out, "  communication", t->communication_s);
	line_seconds(out, "    exposed", t->exposed_communication_s);
	if (t->bubble_s > 0)
		line_seconds(out, "  bubble", t->bubble_s);
	line_seconds(out, "  optimizer", t->optimizer_s);
}

static void add_memory(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_memory *m = &p->prediction.memory;
	char used[32], usable[32];

	ap_str_addf(out, "%-18s%10s of %s usable on a device", "memory",
		ap_format_bytes(m->total, used), ap_format_bytes(p->capacity_bytes, usable));
	if (p->nstage > 1)
		ap_str_addf(out, " of stage %" PRIu32, ap_summary_worst_stage(p));
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

static void add_cut(struct ap_str *out, const struct ap_layout *l)
{
	ap_str_addc(out, '[');
	for (int d = 0; d < l->rank; d++)
		ap_str_addf(out, "%s%" PRId32, d ? "," : "", l->dim[d].cut);
	ap_str_addc(out, ']');
}

static const char *cut_text(struct ap_arena *a, const struct ap_layout *l)
{
	struct ap_str text;

	ap_str_init(&text, a);
	add_cut(&text, l);
	return text.s;
}

/* The names come last in a line: they are of any width. */
static void add_operators(struct ap_str *out, const struct ap_plan *p, struct ap_diag *names)
{
	struct top t;
	char buf[32];

	top_operators(p, &t);
	if (t.n)
		ap_str_add(out, "\nmost expensive operators, time per step:\n");
	for (int i = 0; i < t.n; i++) {
		const struct ap_node *n = &p->graph->node[t.index[i]];
		const struct ap_plan_op *op = &p->op[t.index[i]];

		ap_str_addf(out, "%10s  ", ap_format_seconds(t.time_s[i], buf));
		ap_str_addf(out, "%-10s  %-20s  ",
			n->bound.nout ? cut_text(out->arena, &op->out[0]) : "", n->type);
		if (*n->cell)
			ap_str_addf(out, "%s/", ap_diag_name(names, n->cell));
		ap_str_addf(out, "%s\n", ap_diag_name(names, ap_short_name(n->name)));
	}
}

static void add_moves(struct ap_str *out, const struct ap_plan *p, struct ap_diag *names)
{
	struct top t;
	char buf[32];

	top_moves(p, &t);
	if (t.n)
		ap_str_add(out, "\nmost expensive redistributions, time per step:\n");
	for (int i = 0; i < t.n; i++) {
		const struct ap_plan_move *m = &p->move[t.index[i]];

		ap_str_addf(out, "%10s  %-10s  ", ap_format_seconds(t.time_s[i], buf),
			cut_text(out->arena, &m->a));
		ap_str_addf(out, "-> %-10s  %10s  %s\n", cut_text(out->arena, &m->b),
			ap_format_bytes(m->cost.bytes, buf),
			ap_diag_name(names, p->graph->tensor[m->tensor].name));
	}
}

void ap_emit_summary(const struct ap_plan *p, struct ap_str *out)
{
	const struct ap_machine *m = p->machine;
	struct ap_diag *names = ap_diag_create(out->arena, false);
	uint32_t pinned = ap_plan_pinned(p);

	line(out, "graph", "%s: %" PRIu32 " operators, %" PRIu32 " parameters in use",
		ap_diag_name(names, p->graph->name), p->graph->nnode, p->nparam);
	line(out, "devices", "%" PRIu32 " x %s on %" PRIu32 " server%s", m->total, m->chip->name,
		m->topo->nserver, m->topo->nserver == 1 ? "" : "s");
	ap_summary_pipeline(out, p);
	add_search(out, p);
	add_times(out, p);
	add_memory(out, p);
	ap_summary_route(out, p);
	ap_summary_baselines(out, p);
	line(out, "checkpoint",
		"pins %" PRIu32 " operators; %" PRIu32 " it cannot pin (no trainable parameter)",
		pinned, p->graph->nnode - pinned);
	ap_summary_stages(out, p);
	add_operators(out, p, names);
	add_moves(out, p, names);
	ap_summary_differs(out, p);
}

static void write_top(struct ap_plan_writer *pw)
{
	const struct ap_graph *g = pw->p->graph;
	struct top t;

	top_operators(pw->p, &t);
	ap_jw_key(&pw->w, "expensive_operators");
	ap_jw_arr(&pw->w);
	for (int i = 0; i < t.n; i++) {
		ap_jw_obj_flat(&pw->w);
		ap_jw_kstr(&pw->w, "name", g->node[t.index[i]].name);
		ap_jw_kstr(&pw->w, "type", g->node[t.index[i]].type);
		ap_jw_knum(&pw->w, "time_s", t.time_s[i]);
		ap_jw_end(&pw->w);
	}
	ap_jw_end(&pw->w);
	top_moves(pw->p, &t);
	ap_jw_key(&pw->w, "expensive_redistributions");
	ap_jw_arr(&pw->w);
	for (int i = 0; i < t.n; i++) {
		const struct ap_plan_move *m = &pw->p->move[t.index[i]];

		ap_jw_obj_flat(&pw->w);
		ap_jw_kstr(&pw->w, "tensor", g->tensor[m->tensor].name);
		ap_jw_kstr(&pw->w, "to", g->node[m->to].name);
		ap_jw_kint(&pw->w, "bytes", m->cost.bytes);
		ap_jw_knum(&pw->w, "time_s", t.time_s[i]);
		ap_jw_end(&pw->w);
	}
	ap_jw_end(&pw->w);
}

static void write_stages(struct ap_plan_writer *pw)
{
	ap_jw_key(&pw->w, "stages");
	ap_jw_arr(&pw->w);
	for (uint32_t s = 0; s < pw->p->nstage; s++) {
		ap_jw_obj_flat(&pw->w);
		ap_plan_write_stage_figures(pw, s);
		ap_jw_end(&pw->w);
	}
	ap_jw_end(&pw->w);
}

static void write_route(struct ap_plan_writer *pw)
{
	ap_jw_key(&pw->w, "route");
	if (!pw->p->route) {
		ap_jw_null(&pw->w);
		return;
	}
	ap_jw_obj(&pw->w);
	ap_plan_write_route_figures(pw);
	ap_jw_end(&pw->w);
}

void ap_emit_summary_json(const struct ap_plan *p, ap_write_fn *write, void *user)
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
	write_stages(&pw);
	write_route(&pw);
	ap_plan_write_baselines(&pw);
	write_top(&pw);
	ap_jw_end(&pw.w);
	ap_jw_finish(&pw.w);
}
