/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that have no finer meaning here than what their results depend on: on all elements of
 * the operands, on those of the same line of the batch, or on the place in the whole.
 */
#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

static int64_t lines(const struct ex_box *b)
{
	return b->rank ? b->size[0] : 1;
}

static int64_t common(int64_t a, int64_t b)
{
	return b == 0 ? a : common(b, a % b);
}

/* Into how many parts dimension 0 of everything falls. */
static int64_t common_lines(const struct ex_job *j)
{
	int64_t n = 0;

	for (unsigned i = 0; i < j->nin; i++)
		n = common(n, lines(&j->in[i].box));
	for (unsigned r = 0; r < j->nout; r++)
		n = common(n, lines(&j->out[r].box));
	return n;
}

/* A sum of all elements of part `part` of n of the operands, each with a weight of its own. */
static ex_id digest(const struct ex_job *j, int64_t n, int64_t part)
{
	uint64_t seed = ex_hash_text(j->type);
	ex_id sum = 0;

	for (unsigned i = 0; i < j->nin; i++) {
		int64_t size = ex_count(&j->in[i].box) / n;

		for (int64_t k = 0; k < size; k++)
			sum = ex_plus(j->tape, sum, ex_scale(j->tape, j->in[i].id[part * size + k],
				ex_hash(seed + i, (uint64_t)k)));
	}
	return sum;
}

/* A number that an element of a result makes of it; without a gradient where it is no real one. */
static ex_id made_of(const struct ex_job *j, ex_id sum, unsigned r, int64_t k)
{
	enum ap_dtype t = j->out[r].box.dtype;
	ex_id v = ex_fn1(j->tape, j->type, ex_scale(j->tape, sum, ex_hash(r, (uint64_t)k)));

	return ap_dtype_is_float(t) ? v
		: ex_leaf(j->tape, ex_value_of(j->tape, v) % (t == AP_BOOL ? 2 : 8));
}

/* Each of n parts of the results is made of the same part of the operands. */
static bool make_parts(const struct ex_job *j, int64_t n)
{
	for (int64_t part = 0; part < n; part++) {
		ex_id sum = digest(j, n, part);

		for (unsigned r = 0; r < j->nout; r++) {
			int64_t size = ex_count(&j->out[r].box) / n;

			for (int64_t k = 0; k < size; k++)
				j->out[r].id[part * size + k] = made_of(j, sum, r, k);
		}
	}
	return true;
}

static bool as_whole(const struct ex_job *j)
{
	return make_parts(j, 1);
}

static bool by_line(const struct ex_job *j)
{
	bool alone = ap_attr_bool(j->attrs, "stand_alone", false);

	return make_parts(j, alone ? 1 : common_lines(j));
}

static bool by_matrix(const struct ex_job *j)
{
	return make_parts(j, j->in[0].box.rank > 2 ? common_lines(j) : 1);
}

const struct ex_kernel ex_kernels_whole[] = {
	{.type = "BatchParallel", .forward = by_line, .make = ex_make_batches},
	{.type = "StandAlone", .forward = as_whole, .make = ex_make_batches},
	{.type = "LstsqV2", .forward = by_matrix, .make = ex_make_matrices},
	{.type = "Unique", .forward = as_whole, .make = ex_make_unique, .no_grad = 1},
	{.type = "RandomChoiceWithMask", .forward = as_whole, .make = ex_make_choice, .no_grad = 1},
	{.type = "UniformCandidateSampler", .forward = as_whole, .make = ex_make_sampler,
		.no_grad = 1},
	{.type = "Gamma", .forward = as_whole, .make = ex_make_gamma, .no_grad = 7},
	{0}
};
