/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/problem.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"

static size_t cell(const struct ap_problem *p, const struct ap_pedge *e, const uint32_t *pick)
{
	return (size_t)pick[e->u] * p->matrix[e->matrix].cols + pick[e->v];
}

const char *ap_ended_name(enum ap_ended ended)
{
	static const char *const name[] = {[AP_ENDED_ENGINE] = "engine", [AP_ENDED_PROVEN] = "proven",
		[AP_ENDED_GAP] = "gap", [AP_ENDED_WORK] = "work-limit",
		[AP_ENDED_MEMORY] = "planner-memory", [AP_ENDED_STOPPED] = "stopped"};

	return name[ended];
}

bool ap_choice_any(const struct ap_choice *c)
{
	return c->outcome == AP_OUT_OPTIMAL || c->outcome == AP_OUT_FEASIBLE;
}

double ap_problem_cost(const struct ap_problem *p, const uint32_t *pick)
{
	double sum = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		assert(pick[i] < p->node[i].k);
		sum += p->node[i].cost[pick[i]];
	}
	for (uint32_t i = 0; i < p->nedge; i++) {
		const struct ap_pedge *e = &p->edge[i];
		sum += p->matrix[e->matrix].cost[cell(p, e, pick)];
	}
	return sum;
}

int64_t ap_problem_memory(const struct ap_problem *p, const uint32_t *pick)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		if (p->node[i].memory)
			sum += p->node[i].memory[pick[i]];
	}
	for (uint32_t i = 0; i < p->nedge; i++) {
		const struct ap_pedge *e = &p->edge[i];
		if (p->matrix[e->matrix].memory)
			sum += p->matrix[e->matrix].memory[cell(p, e, pick)];
	}
	return sum;
}

bool ap_pick_less(const uint32_t *a, const uint32_t *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (a[i] != b[i])
			return a[i] < b[i];
	}
	return false;
}

struct bytes { /* a buffer of precomputed size */
	unsigned char *p;
	size_t n;
};

static void put_u64(struct bytes *b, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		b->p[b->n++] = (unsigned char)(v >> 8 * i);
}

static void put_doubles(struct bytes *b, const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double x = v[i] + 0.0; /* turns -0 into 0 */
		uint64_t u;
		memcpy(&u, &x, sizeof u);
		put_u64(b, u);
	}
}

static void put_ints(struct bytes *b, const int64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_u64(b, v ? (uint64_t)v[i] : 0);
}

static size_t hashed_bytes(const struct ap_problem *p)
{
	size_t words = 4 + 3 * (size_t)p->nedge;
	for (uint32_t i = 0; i < p->n; i++)
		words += 1 + 2 * (size_t)p->node[i].k;
	for (uint32_t i = 0; i < p->nmatrix; i++)
		words += 2 + 2 * (size_t)p->matrix[i].rows * p->matrix[i].cols;
	return 8 * words;
}

void ap_problem_hash(struct ap_ctx *ctx, const struct ap_problem *p, char hex[AP_SHA256_HEX + 1])
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	size_t size = hashed_bytes(p);
	struct bytes b = {ap_arena_alloc_raw(ctx->scratch, size, 1), 0};
	put_u64(&b, (uint64_t)p->memory_limit);
	put_u64(&b, p->n);
	for (uint32_t i = 0; i < p->n; i++) {
		put_u64(&b, p->node[i].k);
		put_doubles(&b, p->node[i].cost, p->node[i].k);
		put_ints(&b, p->node[i].memory, p->node[i].k);
	}
	put_u64(&b, p->nmatrix);
	for (uint32_t i = 0; i < p->nmatrix; i++) {
		const struct ap_pmatrix *m = &p->matrix[i];
		size_t cells = (size_t)m->rows * m->cols;
		put_u64(&b, m->rows);
		put_u64(&b, m->cols);
		put_doubles(&b, m->cost, cells);
		put_ints(&b, m->memory, cells);
	}
	put_u64(&b, p->nedge);
	for (uint32_t i = 0; i < p->nedge; i++) {
		put_u64(&b, p->edge[i].u);
		put_u64(&b, p->edge[i].v);
		put_u64(&b, p->edge[i].matrix);
	}
	assert(b.n == size);
	ap_sha256_hex(b.p, b.n, hex);
	ap_arena_release(ctx->scratch, mark);
}

static double least(const double *v, size_t n)
{
	double low = INFINITY;
	for (size_t i = 0; i < n; i++)
		low = v[i] < low ? v[i] : low;
	return low;
}

double ap_bound_plain(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	double *low = AP_NEW_N(ctx->scratch, double, p->nmatrix), sum = 0;
	for (uint32_t i = 0; i < p->nmatrix; i++)
		low[i] = least(p->matrix[i].cost, (size_t)p->matrix[i].rows * p->matrix[i].cols);
	for (uint32_t i = 0; i < p->n; i++)
		sum += least(p->node[i].cost, p->node[i].k);
	for (uint32_t i = 0; i < p->nedge; i++)
		sum += low[p->edge[i].matrix];
	ap_arena_release(ctx->scratch, mark);
	return sum;
}

void ap_choice_none(struct ap_ctx *ctx, const struct ap_problem *p, const char *engine,
	struct ap_choice *out)
{
	*out = (struct ap_choice){
		.outcome = AP_OUT_LIMIT,
		.engine = engine,
		.cost = INFINITY,
		.lower_bound = ap_bound_plain(ctx, p),
		.least_memory = -1,
	};
}

void ap_choice_found(const struct ap_problem *p, uint32_t *pick, double bound,
	struct ap_choice *out)
{
	out->pick = pick;
	out->cost = ap_problem_cost(p, pick);
	out->memory = ap_problem_memory(p, pick);
	out->lower_bound = bound < out->cost ? bound : out->cost;
	out->outcome = bound < out->cost ? AP_OUT_FEASIBLE : AP_OUT_OPTIMAL;
}

struct ap_incident ap_incident_make(struct ap_ctx *ctx, const struct ap_problem *p)
{
	ap_id *first = AP_NEW_N(ctx->scratch, ap_id, (size_t)p->n + 2);
	ap_id *edge = AP_NEW_N(ctx->scratch, ap_id, 2 * (size_t)p->nedge);
	for (uint32_t i = 0; i < p->nedge; i++) {
		first[p->edge[i].u + 2]++;
		first[p->edge[i].v + 2]++;
	}
	for (uint32_t v = 0; v < p->n; v++)
		first[v + 2] += first[v + 1];
	for (uint32_t i = 0; i < p->nedge; i++) { /* moves first[v + 1] to the end of v's list */
		edge[first[p->edge[i].u + 1]++] = i;
		edge[first[p->edge[i].v + 1]++] = i;
	}
	return (struct ap_incident){first, edge};
}
