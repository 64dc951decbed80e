/* SPDX-License-Identifier: Apache-2.0 */
/* Counts per factor <-> the vectors that shard() takes. */
#include "shard/strategy.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/arena.h"
#include "base/str.h"
#include "rule/batch.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/refusal.h"

uint32_t ap_space_to_strategy(const struct ap_placement *p, uint8_t rank[],
	int32_t cut[][AP_MAX_RANK], uint32_t cap)
{
	uint32_t n = ap_op_vectors(p->bound);

	for (uint32_t v = 0; v < n && v < cap; v++) {
		const struct ap_operand *t = ap_op_vector(p->bound, v);

		rank[v] = t ? t->rank : 0;
		if (t)
			ap_strategy_vector(p, t, cut[v]);
	}
	return n;
}

struct ap_strategy ap_strategy_of(struct ap_arena *a, const struct ap_placement *p)
{
	uint32_t n = ap_op_vectors(p->bound);
	uint8_t *rank = AP_NEW_N(a, uint8_t, n);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(a, n, sizeof *cut);

	ap_space_to_strategy(p, rank, cut, n);
	return (struct ap_strategy){n, rank, (const int32_t(*)[AP_MAX_RANK])cut};
}

struct reader {
	struct ap_ctx *ctx;
	const struct ap_bound *b;
	int64_t ndev;
	const struct ap_step *step;
	int32_t *count;
	uint32_t known; /* factors whose count was read */
	uint32_t vector; /* being read */
	int dim;
	const char **why;
};

static bool refuse(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(struct reader *r, const char *fmt, ...)
{
	struct ap_str s;
	va_list ap;

	ap_str_init(&s, r->ctx->arena);
	ap_str_addf(&s, "%s: ", ap_cut_place(r->ctx, r->b, ap_op_vector(r->b, r->vector), r->dim,
		r->step));
	va_start(ap, fmt);
	ap_str_vaddf(&s, fmt, ap);
	va_end(ap);
	*r->why = s.s;
	return false;
}

/* Elements of a dimension in one micro-batch. */
static int64_t dim_length(const struct reader *r, const struct ap_operand *t, int d)
{
	int64_t length = 1;

	if (!t->dim[d].n)
		return t->size[d];
	for (int i = 0; i < t->dim[d].n; i++)
		length *= ap_factor_extent(r->b, t->dim[d].factor[i], r->step);
	return length;
}

static bool is_power_of_two(int64_t v)
{
	return v > 0 && !(v & (v - 1));
}

static bool value_fits(struct reader *r, const struct ap_operand *t, int32_t parts)
{
	int64_t length = dim_length(r, t, r->dim);

	if (parts == 1)
		return true;
	if (parts < 1)
		return refuse(r, "%" PRId32 " parts; at least 1 is needed", parts);
	if (!t->dim[r->dim].n)
		return refuse(r, "%" PRId32 " parts; 1 is allowed", parts);
	if (length % parts)
		return refuse(r, "%" PRId32 " parts; %s", parts,
			ap_cut_allowed(r->ctx, length, r->ndev));
	if (is_power_of_two(r->ndev) && !is_power_of_two(parts))
		return refuse(r, "%" PRId32 " parts are no power of two, which %" PRId64
				 " devices need; %s",
			parts, r->ndev, ap_cut_allowed(r->ctx, length, r->ndev));
	return true;
}

/* The first dimension read that has factor f. */
static const char *first_place(struct reader *r, int f)
{
	for (uint32_t v = 0; v <= r->vector; v++) {
		const struct ap_operand *t = ap_op_vector(r->b, v);

		for (int d = 0; t && d < t->rank; d++)
			for (int i = 0; i < t->dim[d].n; i++)
				if (t->dim[d].factor[i] == f)
					return ap_cut_place(r->ctx, r->b, t, d, r->step);
	}
	return "";
}

static bool set_count(struct reader *r, int f, int32_t parts)
{
	if (r->known >> f & 1 && r->count[f] != parts)
		return refuse(r, "%" PRId32 " parts; %" PRId32 " are allowed, as many as of %s", parts,
			r->count[f], first_place(r, f));
	r->count[f] = parts;
	r->known |= 1u << f;
	return true;
}

/* The parts of a composed dimension go to its factors, outer first, each wholly before the next. */
static bool spread(struct reader *r, const struct ap_dim *dim, int32_t parts)
{
	int64_t rest = parts;

	for (int i = 0; i < dim->n; i++) {
		int64_t extent = ap_factor_extent(r->b, dim->factor[i], r->step);
		int64_t take = rest < extent ? rest : extent;

		if (extent % take || rest % take)
			return refuse(r, "%" PRId32 " parts would cut across its factor of %" PRId64,
				parts, r->b->factor[dim->factor[i]].size);
		if (!set_count(r, dim->factor[i], (int32_t)take))
			return false;
		rest /= take;
	}
	return true;
}

static bool read_vector(struct reader *r, int rank, const int32_t *cut)
{
	const struct ap_operand *t = ap_op_vector(r->b, r->vector);
	int want = t ? t->rank : 0;

	if (rank != want) {
		*r->why = ap_arena_printf(r->ctx->arena,
			"vector %" PRIu32 " has %d values; %s has %d dimensions", r->vector, rank,
			t ? ap_cut_tensor(r->ctx, r->b, t) : "what it stands for", want);
		return false;
	}
	for (r->dim = 0; r->dim < want; r->dim++)
		if (!value_fits(r, t, cut[r->dim]) || !spread(r, &t->dim[r->dim], cut[r->dim]))
			return false;
	return true;
}

bool ap_space_from_strategy(struct ap_ctx *ctx, const struct ap_bound *b, int64_t ndev,
	const struct ap_step *step, uint32_t n, const uint8_t *rank,
	const int32_t (*cut)[AP_MAX_RANK], int32_t count[AP_MAX_FACTOR], const char **why)
{
	struct reader r = {
		.ctx = ctx, .b = b, .ndev = ndev, .step = step, .count = count, .why = why};

	for (int f = 0; f < AP_MAX_FACTOR; f++)
		count[f] = 1;
	if (n != ap_op_vectors(b)) {
		*why = ap_arena_printf(ctx->arena, "%" PRIu32 " vectors; %s takes %" PRIu32, n,
			b->row->name, ap_op_vectors(b));
		return false;
	}
	for (; r.vector < n; r.vector++)
		if (!read_vector(&r, rank[r.vector], cut[r.vector]))
			return false;
	return ap_space_legal(ctx, b, count, ndev, step, why);
}
