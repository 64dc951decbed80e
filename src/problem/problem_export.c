/* SPDX-License-Identifier: Apache-2.0 */
/* Exports the problem to other solvers: CPLEX LP and toulbar2's .wcsp. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"
#include "problem/problem.h"

struct out {
	ap_write_fn *write;
	void *user;
	int terms; /* on the current line of an LP */
	int scale; /* LP costs are multiplied by 2^scale */
};

__attribute__((format(printf, 2, 3))) static void put(struct out *o, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	o->write(o->user, line, (size_t)n);
}

static double entry(const struct ap_pmatrix *m, uint32_t r, uint32_t c)
{
	return m->cost[(size_t)r * m->cols + c];
}

static int64_t entry_memory(const struct ap_pmatrix *m, uint32_t r, uint32_t c)
{
	return m->memory ? m->memory[(size_t)r * m->cols + c] : 0;
}

/* ---- CPLEX LP ---- */

#define X_NAME "x_%" PRIu32 "_%" PRIu32
#define Y_NAME "y_%" PRIu32 "_%" PRIu32 "_%" PRIu32

/* LP readers limit the length of a line. */
static void next_term(struct out *o)
{
	if (o->terms++ % 8 == 7)
		put(o, "\n ");
}

__attribute__((format(printf, 3, 4))) static void put_term(struct out *o, double factor,
	const char *fmt, ...)
{
	char name[64], number[32];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	ap_format_double(fabs(factor), number);
	put(o, " %c %s %s", factor < 0 ? '-' : '+', number, name);
	next_term(o);
}

static bool matters(const struct ap_pmatrix *m)
{
	size_t cells = (size_t)m->rows * m->cols;
	for (size_t i = 0; i < cells; i++) {
		if (m->cost[i] != 0 || (m->memory && m->memory[i] != 0))
			return true;
	}
	return false;
}

static double max_cost(const double *cost, size_t n)
{
	double most = 0;
	for (size_t i = 0; i < n; i++) {
		if (cost[i] < INFINITY && fabs(cost[i]) > most)
			most = fabs(cost[i]);
	}
	return most;
}

/* Solvers treat reduced costs below about 1e-7 as zero. If all costs are below 1, they are scaled
 * by a power of two so that the largest is about a million. */
static int scale_of(const struct ap_problem *p)
{
	double most = 0;
	int exponent;
	for (uint32_t i = 0; i < p->n; i++)
		most = fmax(most, max_cost(p->node[i].cost, p->node[i].k));
	for (uint32_t i = 0; i < p->nmatrix; i++) {
		const struct ap_pmatrix *m = &p->matrix[i];
		most = fmax(most, max_cost(m->cost, (size_t)m->rows * m->cols));
	}
	frexp(most, &exponent);
	return most > 0 && most < 1 ? 20 - exponent : 0;
}

typedef void edge_fn(struct out *o, const struct ap_problem *p, uint32_t edge);

static void each_edge(struct out *o, const struct ap_problem *p, edge_fn *fn)
{
	for (uint32_t i = 0; i < p->nedge; i++) {
		if (matters(&p->matrix[p->edge[i].matrix]))
			fn(o, p, i);
	}
}

static void lp_edge_cost(struct out *o, const struct ap_problem *p, uint32_t edge)
{
	const struct ap_pmatrix *m = &p->matrix[p->edge[edge].matrix];
	for (uint32_t r = 0; r < m->rows; r++) {
		for (uint32_t c = 0; c < m->cols; c++) {
			double cost = entry(m, r, c);
			if (cost != 0 && cost < INFINITY)
				put_term(o, ldexp(cost, o->scale), Y_NAME, edge, r, c);
		}
	}
}

static void lp_objective(struct out *o, const struct ap_problem *p)
{
	if (o->scale)
		put(o, "\\ costs are multiplied by 2^%d\nMinimize\n cost_times_2_to_%d:", o->scale,
			o->scale);
	else
		put(o, "Minimize\n cost:");
	for (uint32_t i = 0; i < p->n; i++) {
		for (uint32_t c = 0; c < p->node[i].k; c++) {
			double cost = p->node[i].cost[c];
			put_term(o, cost < INFINITY ? ldexp(cost, o->scale) : 0, X_NAME, i, c);
		}
	}
	each_edge(o, p, lp_edge_cost);
	put(o, "\nSubject To\n");
}

static void lp_one_each(struct out *o, const struct ap_problem *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		o->terms = 0;
		put(o, " one_%" PRIu32 ":", i);
		for (uint32_t c = 0; c < p->node[i].k; c++)
			put_term(o, 1, X_NAME, i, c);
		put(o, " = 1\n");
	}
}

/* In row r, an edge's y sum to its first node's x of r; forbidden pairs have no y. */
static void lp_rows(struct out *o, const struct ap_problem *p, uint32_t edge)
{
	const struct ap_pedge *e = &p->edge[edge];
	const struct ap_pmatrix *m = &p->matrix[e->matrix];
	for (uint32_t r = 0; r < m->rows; r++) {
		o->terms = 0;
		put(o, " row_%" PRIu32 "_%" PRIu32 ":", edge, r);
		for (uint32_t c = 0; c < m->cols; c++) {
			if (entry(m, r, c) < INFINITY)
				put_term(o, 1, Y_NAME, edge, r, c);
		}
		put_term(o, -1, X_NAME, e->u, r);
		put(o, " = 0\n");
	}
}

static void lp_cols(struct out *o, const struct ap_problem *p, uint32_t edge)
{
	const struct ap_pedge *e = &p->edge[edge];
	const struct ap_pmatrix *m = &p->matrix[e->matrix];
	for (uint32_t c = 0; c < m->cols; c++) {
		o->terms = 0;
		put(o, " col_%" PRIu32 "_%" PRIu32 ":", edge, c);
		for (uint32_t r = 0; r < m->rows; r++) {
			if (entry(m, r, c) < INFINITY)
				put_term(o, 1, Y_NAME, edge, r, c);
		}
		put_term(o, -1, X_NAME, e->v, c);
		put(o, " = 0\n");
	}
}

static void lp_edge_memory(struct out *o, const struct ap_problem *p, uint32_t edge)
{
	const struct ap_pmatrix *m = &p->matrix[p->edge[edge].matrix];
	for (uint32_t r = 0; r < m->rows; r++) {
		for (uint32_t c = 0; c < m->cols; c++) {
			int64_t memory = entry_memory(m, r, c);
			if (memory != 0 && entry(m, r, c) < INFINITY)
				put_term(o, (double)memory, Y_NAME, edge, r, c);
		}
	}
}

static void lp_memory(struct out *o, const struct ap_problem *p)
{
	if (p->memory_limit == AP_NO_LIMIT)
		return;
	o->terms = 0;
	put(o, " memory:");
	for (uint32_t i = 0; i < p->n; i++) {
		for (uint32_t c = 0; c < p->node[i].k; c++) {
			int64_t memory = p->node[i].memory ? p->node[i].memory[c] : 0;
			put_term(o, (double)memory, X_NAME, i, c);
		}
	}
	each_edge(o, p, lp_edge_memory);
	put(o, " <= %" PRId64 "\n", p->memory_limit);
}

static void lp_forbidden(struct out *o, const struct ap_problem *p)
{
	put(o, "Bounds\n");
	for (uint32_t i = 0; i < p->n; i++) {
		for (uint32_t c = 0; c < p->node[i].k; c++) {
			if (p->node[i].cost[c] == INFINITY)
				put(o, " " X_NAME " = 0\n", i, c);
		}
	}
}

static void lp_binaries(struct out *o, const struct ap_problem *p)
{
	put(o, "Binary\n");
	for (uint32_t i = 0; i < p->n; i++) {
		for (uint32_t c = 0; c < p->node[i].k; c++) {
			if (p->node[i].cost[c] < INFINITY)
				put(o, " " X_NAME "\n", i, c);
		}
	}
	put(o, "End\n");
}

void ap_problem_write_lp(const struct ap_problem *problem, ap_write_fn *write, void *user)
{
	const struct ap_problem *p = problem->given ? problem->given : problem;
	struct out o = {write, user, 0, scale_of(p)};
	lp_objective(&o, p);
	lp_one_each(&o, p);
	each_edge(&o, p, lp_rows);
	each_edge(&o, p, lp_cols);
	lp_memory(&o, p);
	lp_forbidden(&o, p);
	lp_binaries(&o, p);
}

/* ---- toulbar2 ---- */

struct span { /* range of a function's finite costs, in quanta */
	int64_t low, high;
	size_t listed; /* tuples that need a line */
};

static int64_t quanta(double cost, double quantum)
{
	return (int64_t)(cost / quantum);
}

/* Costs of a function with negative ones are raised until the least is 0; `low` is the shift. */
static struct span span_of(const double *cost, size_t n, double quantum)
{
	struct span s = {0, 0, 0};
	for (size_t i = 0; i < n; i++) {
		if (cost[i] < INFINITY) {
			int64_t v = quanta(cost[i], quantum);
			s.low = v < s.low ? v : s.low;
			s.high = v > s.high ? v : s.high;
		}
	}
	for (size_t i = 0; i < n; i++)
		s.listed += cost[i] == INFINITY || quanta(cost[i], quantum) != s.low;
	return s;
}

static int64_t shifted(double cost, double quantum, const struct span *s, int64_t top)
{
	return cost == INFINITY ? top : quanta(cost, quantum) - s->low;
}

static struct span edge_span(const struct ap_problem *p, uint32_t edge)
{
	const struct ap_pmatrix *m = &p->matrix[p->edge[edge].matrix];
	return span_of(m->cost, (size_t)m->rows * m->cols, p->quantum);
}

static int64_t wcsp_header(struct out *o, const struct ap_problem *p)
{
	int64_t offset = 0, top = 1;
	uint64_t functions = 0;
	uint32_t widest = 0;
	for (uint32_t i = 0; i < p->n + p->nedge; i++) {
		struct span s = i < p->n ? span_of(p->node[i].cost, p->node[i].k, p->quantum)
					 : edge_span(p, i - p->n);
		offset += s.low;
		top += s.high - s.low;
		functions += s.listed > 0;
		if (i < p->n && p->node[i].k > widest)
			widest = p->node[i].k;
	}
	char number[32];
	put(o, "autopar:quantum=%s:offset=%" PRId64, ap_format_double(p->quantum, number), offset);
	put(o, " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRId64 "\n", p->n, widest, functions, top);
	for (uint32_t i = 0; i < p->n; i++)
		put(o, "%s%" PRIu32, i ? " " : "", p->node[i].k);
	put(o, "\n");
	return top;
}

void ap_problem_write_wcsp(const struct ap_problem *p, ap_write_fn *write, void *user)
{
	struct out o = {write, user, 0, 0};
	int64_t top = wcsp_header(&o, p);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct ap_pnode *a = &p->node[i];
		struct span s = span_of(a->cost, a->k, p->quantum);

		if (s.listed == 0)
			continue;
		put(&o, "1 %" PRIu32 " 0 %zu\n", i, s.listed);
		for (uint32_t c = 0; c < a->k; c++) {
			int64_t v = shifted(a->cost[c], p->quantum, &s, top);
			if (v != 0)
				put(&o, "%" PRIu32 " %" PRId64 "\n", c, v);
		}
	}
	for (uint32_t i = 0; i < p->nedge; i++) {
		const struct ap_pedge *e = &p->edge[i];
		const struct ap_pmatrix *m = &p->matrix[e->matrix];
		struct span s = edge_span(p, i);

		if (s.listed == 0)
			continue;
		put(&o, "2 %" PRIu32 " %" PRIu32 " 0 %zu\n", e->u, e->v, s.listed);
		for (uint32_t r = 0; r < m->rows; r++) {
			for (uint32_t c = 0; c < m->cols; c++) {
				int64_t v = shifted(entry(m, r, c), p->quantum, &s, top);
				if (v != 0)
					put(&o, "%" PRIu32 " %" PRIu32 " %" PRId64 "\n", r, c, v);
			}
		}
	}
}
