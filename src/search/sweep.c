/* SPDX-License-Identifier: Apache-2.0 */
#include "search/sweep.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/wide.h"

enum { MOST_SWEEPS = 2000, LANES = 8, MANY = 32, FEW = 4, GRAINS = 8, EXACT_BITS = 51 };
enum { ROW = 32 }; /* cells that take as long as what is done once for a row or column */

static size_t cells(const struct ap_pmatrix *m)
{
	return (size_t)m->rows * m->cols;
}

static bool is_exact(const struct ap_sweep *s, double v)
{
	return fabs(v) < s->exact;
}

static double largest(const double *v, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i] < INFINITY && fabs(v[i]) > most)
			most = fabs(v[i]);
	return most;
}

double ap_sweep_grain(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	double *most = AP_NEW_N(ctx->scratch, double, p->nmatrix);
	double total = 0, grain = p->quantum;

	for (uint32_t m = 0; m < p->nmatrix; m++)
		most[m] = largest(p->matrix[m].cost, cells(&p->matrix[m]));
	for (uint32_t i = 0; i < p->n; i++)
		total += largest(p->node[i].cost, p->node[i].k);
	for (uint32_t e = 0; e < p->nedge; e++)
		total += most[p->edge[e].matrix];
	for (int i = 0; i < GRAINS && total < ldexp(grain, EXACT_BITS); i++)
		grain /= 2;
	ap_arena_release(ctx->scratch, mark);
	return grain;
}

static bool is_negative(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] < 0)
			return true;
	return false;
}

static bool any_negative(const struct ap_problem *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (is_negative(p->node[i].cost, p->node[i].k))
			return true;
	for (uint32_t m = 0; m < p->nmatrix; m++)
		if (is_negative(p->matrix[m].cost, cells(&p->matrix[m])))
			return true;
	return false;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* The least v[i] - less[i]. */
AP_WIDE static double least_difference(const double *v, const double *less, size_t n)
{
	double lane[LANES], least = INFINITY;
	size_t i = 0;

	if (n >= 2 * MANY) {
		double many[MANY]; /* so many that compilers make vectors of them */

		for (size_t j = 0; j < MANY; j++)
			many[j] = v[j] - less[j];
		for (i = MANY; i + MANY <= n; i += MANY)
			for (size_t j = 0; j < MANY; j++) {
				double d = v[i + j] - less[i + j];

				many[j] = d < many[j] ? d : many[j];
			}
		for (size_t j = 0; j < MANY; j++)
			least = smaller(many[j], least);
	}
	for (size_t j = 0; j < LANES; j++)
		lane[j] = INFINITY;
	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			lane[j] = smaller(v[i + j] - less[i + j], lane[j]);
	for (; i < n; i++)
		least = smaller(v[i] - less[i], least);
	for (size_t j = 0; j < LANES; j++)
		least = smaller(lane[j], least);
	return least;
}

/* Lowers least[c] to the least of n rows' cells, each minus what is less for its row. */
AP_WIDE static void lower_columns(size_t cols, int n, const double *const rows[FEW], const double less[FEW],
	double *restrict least)
{
	if (n == FEW) {
		const double *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
		double la = less[0], lb = less[1], lc = less[2], ld = less[3];

		for (size_t x = 0; x < cols; x++) {
			double s = a[x] - la, t = b[x] - lb, u = c[x] - lc, v = d[x] - ld;

			s = t < s ? t : s;
			u = v < u ? v : u;
			s = u < s ? u : s;
			least[x] = s < least[x] ? s : least[x];
		}
		return;
	}
	for (int k = 0; k < n; k++)
		for (size_t x = 0; x < cols; x++)
			least[x] = smaller(rows[k][x] - less[k], least[x]);
}

static int side_of(const struct ap_sweep *s, uint32_t e, uint32_t i)
{
	return s->p->edge[e].v == i;
}

static bool is_ahead(const struct ap_sweep *s, uint32_t e, uint32_t i, bool forth)
{
	const struct ap_pedge *x = &s->p->edge[e];

	return ((x->u == i ? x->v : x->u) > i) == forth;
}

static void take(struct ap_sweep *s, uint32_t e, uint32_t i)
{
	int side = side_of(s, e, i);
	double *own = s->taken[side][e];
	const struct ap_pmatrix *m = &s->p->matrix[s->p->edge[e].matrix];
	const double *other = s->taken[!side][e], *row = m->cost;
	size_t cols = m->cols;
	double *least = s->least;
	const double *rows[FEW];
	double less[FEW];
	int n = 0;

	/* The least of each row (side 0) or column (side 1) of an edge, minus what the other end
	 * took. Candidates that are out count on neither side. */
	for (uint32_t r = 0; side == 0 && r < m->rows; r++, row += cols)
		if (s->cost[i][r] < INFINITY)
			least[r] = least_difference(row, other, cols);
	for (size_t c = 0; side == 1 && c < cols; c++)
		least[c] = INFINITY;
	for (uint32_t r = 0; side == 1 && r < m->rows; r++, row += cols) {
		if (other[r] > -INFINITY) {
			rows[n] = row;
			less[n++] = other[r];
		}
		if (n == FEW || (n > 0 && r + 1 == m->rows)) {
			lower_columns(cols, n, rows, less, least);
			n = 0;
		}
	}
	for (uint32_t c = 0; c < s->p->node[i].k; c++) {
		if (s->cost[i][c] == INFINITY)
			continue;
		s->cost[i][c] += s->least[c] - own[c];
		own[c] = s->least[c] < INFINITY ? s->least[c] : -INFINITY;
		s->alive &= s->cost[i][c] == INFINITY ||
			(is_exact(s, 4 * own[c]) && is_exact(s, 4 * s->cost[i][c]));
	}
}

/* Moves the least cost of a node into the constant. */
static void lower(struct ap_sweep *s, uint32_t i)
{
	double *cost = s->cost[i], least = INFINITY;
	uint32_t k = s->p->node[i].k;

	for (uint32_t c = 0; c < k; c++)
		least = smaller(cost[c], least);
	s->alive &= least < INFINITY && is_exact(s, 4 * (s->constant + least));
	if (least == INFINITY)
		s->constant = INFINITY;
	if (!s->alive)
		return;
	s->constant += least;
	s->moved[i] += least;
	for (uint32_t c = 0; c < k; c++)
		cost[c] -= least;
}

/* Makes all costs at least 0: only then is the constant a bound. False: numbers get too large. */
static bool lift(struct ap_sweep *s)
{
	for (uint32_t e = 0; e < s->p->nedge && s->alive; e++) {
		take(s, e, s->p->edge[e].u);
		take(s, e, s->p->edge[e].v);
	}
	for (uint32_t i = 0; i < s->p->n && s->alive; i++)
		lower(s, i);
	return s->alive || s->constant == INFINITY;
}

static void visit(struct ap_sweep *s, uint32_t i, bool forth)
{
	uint32_t ahead = 0;
	double g, parts;

	for (ap_id j = s->at.first[i]; j < s->at.first[i + 1]; j++) {
		if (is_ahead(s, s->at.edge[j], i, forth))
			ahead++;
		else if (s->alive)
			take(s, s->at.edge[j], i);
	}
	if (s->alive) {
		const double *cost = s->cost[i];

		/* lower(), and drops candidates above `most`. */
		lower(s, i);
		for (uint32_t c = 0; c < s->p->node[i].k && s->alive; c++)
			if (!s->out[i][c] && (cost[c] == INFINITY ||
				s->constant + cost[c] > s->most)) {
				s->cost[i][c] = INFINITY;
				s->out[i][c] = true;
				s->left--;
				for (ap_id j = s->at.first[i]; j < s->at.first[i + 1]; j++)
					s->taken[side_of(s, s->at.edge[j], i)][s->at.edge[j]][c] =
						-INFINITY;
			}
	}
	if (!s->alive || !ahead)
		return;
	/* Gives each edge ahead an equal share of the least costs, in whole grains; the remainder
	 * stays. */
	g = s->grain;
	parts = s->shares[i];
	for (uint32_t c = 0; c < s->p->node[i].k; c++) {
		double share = floor(s->cost[i][c] / (parts * g)) * g;

		if (s->cost[i][c] == INFINITY)
			continue;
		if (share * parts > s->cost[i][c])
			share -= g;
		s->least[c] = share;
		s->cost[i][c] -= share * ahead;
	}
	for (ap_id j = s->at.first[i]; j < s->at.first[i + 1]; j++)
		if (is_ahead(s, s->at.edge[j], i, forth)) {
			uint32_t e = s->at.edge[j];
			double *own = s->taken[side_of(s, e, i)][e];

			for (uint32_t c = 0; c < s->p->node[i].k; c++)
				if (s->cost[i][c] < INFINITY)
					own[c] -= s->least[c];
		}
}

void ap_sweep_once(struct ap_sweep *s)
{
	for (uint32_t i = 0; i < s->p->n && s->alive && !ap_ctx_stopped(s->ctx); i++)
		visit(s, i, true);
	for (uint32_t i = s->p->n; i-- > 0 && s->alive && !ap_ctx_stopped(s->ctx);)
		visit(s, i, false);
}

static void open_edges(struct ap_ctx *ctx, struct ap_sweep *s)
{
	const struct ap_problem *p = s->p;

	for (int side = 0; side < 2; side++) {
		s->taken[side] = AP_NEW_N(ctx->scratch, double *, p->nedge);
		for (uint32_t e = 0; e < p->nedge; e++)
			s->taken[side][e] = AP_NEW_N(ctx->scratch, double,
				p->node[side ? p->edge[e].v : p->edge[e].u].k);
	}
}

bool ap_sweep_open(struct ap_ctx *ctx, const struct ap_sweep_job *job, struct ap_sweep *s)
{
	struct ap_arena *arena = ctx->scratch;
	const struct ap_problem *p = job->p;
	uint32_t most = 0;

	*s = (struct ap_sweep){.ctx = ctx, .p = p, .at = ap_incident_make(ctx, p), .grain = job->grain,
		.exact = ldexp(job->grain, 53), .most = job->most,
		.cost = AP_NEW_N(arena, double *, p->n), .out = AP_NEW_N(arena, bool *, p->n),
		.shares = AP_NEW_N(arena, uint32_t, p->n), .moved = AP_NEW_N(arena, double, p->n),
		.constant = job->constant, .alive = true};
	open_edges(ctx, s);
	for (uint32_t i = 0; i < p->n; i++) {
		bool in_place = job->in_place;
		const struct ap_pnode *node = &s->p->node[i];
		uint32_t degree = s->at.first[i + 1] - s->at.first[i], forth = 0;

		for (ap_id j = s->at.first[i]; j < s->at.first[i + 1]; j++)
			forth += is_ahead(s, s->at.edge[j], i, true);
		s->shares[i] = forth > degree - forth ? forth : degree - forth;
		s->cost[i] = in_place ? (double *)node->cost
			: ap_arena_memdup(ctx->scratch, node->cost, node->k * sizeof(double));
		s->out[i] = AP_NEW_N(ctx->scratch, bool, node->k);
		s->left += node->k;
		most = p->node[i].k > most ? p->node[i].k : most;
	}
	s->least = AP_NEW_N(arena, double, most);
	return !any_negative(p) || (!job->in_place && lift(s));
}

double ap_sweep_price(const struct ap_problem *p)
{
	double sum = 0;

	for (uint32_t e = 0; e < p->nedge; e++)
		sum += 2 * (double)cells(&p->matrix[p->edge[e].matrix]);
	return sum;
}

double ap_sweep_whole_price(const struct ap_problem *p)
{
	double sum = ap_sweep_price(p);

	for (uint32_t e = 0; e < p->nedge; e++)
		sum += ROW * ((double)p->node[p->edge[e].u].k + p->node[p->edge[e].v].k);
	return sum;
}

/* Is the rise of the bound less than 1/parts of the missing difference? */
static bool is_little(const struct ap_sweep *s, double rise, int parts)
{
	double missing = s->most < INFINITY ? s->most - s->constant : fabs(s->constant);

	return rise * parts <= missing;
}

void ap_sweep_run(struct ap_sweep *s, const struct ap_sweep_effort *effort, uint64_t *work)
{
	double price = ap_sweep_whole_price(s->p);
	int idle = 0;

	for (int i = 0; i < MOST_SWEEPS && idle < effort->patience; i++) {
		double before = s->constant;

		if (!s->alive || s->left < effort->enough || ap_ctx_stopped(s->ctx) ||
			(effort->most_work && *work >= effort->most_work))
			return;
		ap_sweep_once(s);
		*work += (uint64_t)price;
		idle = is_little(s, s->constant - before, effort->part) ? idle + 1 : 0;
	}
}

uint32_t ap_sweep_pick(const struct ap_sweep *s, uint32_t *pick)
{
	uint32_t dearest = 0;
	double most = -1;

	for (uint32_t i = 0; i < s->p->n; i++) {
		double least = INFINITY;

		for (uint32_t c = 0; c < s->p->node[i].k; c++) {
			double cost;
			double sum = s->cost[i][c];

			/* Cost of candidate c of node i and of its edges from behind, given the
			 * picks there. */
			for (ap_id j = s->at.first[i]; j < s->at.first[i + 1]; j++) {
				uint32_t e = s->at.edge[j];
				const struct ap_pedge *x = &s->p->edge[e];
				const struct ap_pmatrix *m = &s->p->matrix[x->matrix];
				uint32_t row = x->u == i ? c : pick[x->u], col = x->v == i ? c : pick[x->v];

				if (!is_ahead(s, e, i, true))
					sum += m->cost[(size_t)row * m->cols + col] -
						(s->taken[0][e][row] + s->taken[1][e][col]);
			}
			cost = sum;
			pick[i] = cost < least ? c : pick[i];
			least = smaller(cost, least);
		}
		if (least > most) {
			most = least;
			dearest = i;
		}
	}
	return dearest;
}
