/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and softmax: all that is normalised is on the rank, but for the batch of BatchNorm. */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

/* The next element of those that differ in the dimensions of mask; false, and back, after the last. */
static bool next_in(const struct ex_box *b, uint32_t mask, int64_t *at)
{
	for (int d = b->rank; d-- > 0;) {
		if (!(mask >> d & 1))
			continue;
		if (++at[d] < b->size[d])
			return true;
		at[d] = 0;
	}
	return false;
}

static int64_t count_in(const struct ex_box *b, uint32_t mask)
{
	int64_t n = 1;

	for (int d = 0; d < b->rank; d++)
		n *= mask >> d & 1 ? b->size[d] : 1;
	return n;
}

static uint32_t from_dim(int first, int rank)
{
	return (UINT32_C(1) << rank) - (UINT32_C(1) << first);
}

/* Elements of operand 0 that are normalised together, those of `mask` beginning at `at`. */
struct group {
	const struct ex_job *j;
	uint32_t mask;
	int64_t at[AP_MAX_RANK];
};

typedef void group_fn(struct group *g);

static bool each_group(const struct ex_job *j, uint32_t mask, group_fn *fill)
{
	struct group g = {.j = j, .mask = mask};

	do
		fill(&g);
	while (next_in(&j->in[0].box, ~mask, g.at));
	return true;
}

/* Sum of the elements' curves, of themselves without a name; "" their squares. */
static ex_id sum_of(struct group *g, const char *curve)
{
	const struct ex_value *x = &g->j->in[0];
	ex_id sum = 0;

	do {
		ex_id v = ex_get(x, g->at);

		if (!curve)
			sum = ex_plus(g->j->tape, sum, v);
		else if (*curve)
			sum = ex_plus(g->j->tape, sum, ex_fn1(g->j->tape, curve, v));
		else
			sum = ex_mad(g->j->tape, sum, v, v);
	} while (next_in(&x->box, g->mask, g->at));
	return sum;
}

static ex_id mean_of(struct group *g, const char *curve)
{
	uint64_t n = (uint64_t)count_in(&g->j->in[0].box, g->mask);

	return ex_scale(g->j->tape, sum_of(g, curve), ex_inverse(n));
}

static void soften(struct group *g)
{
	struct ex_tape *t = g->j->tape;
	bool logarithm = ex_begins(g->j, "Log");
	ex_id sum = sum_of(g, "exp"), log = logarithm ? ex_fn1(t, "log", sum) : 0;

	do {
		ex_id v = ex_get(&g->j->in[0], g->at);

		ex_put(&g->j->out[0], g->at, logarithm ? ex_minus(t, v, log)
			: ex_over(t, ex_fn1(t, "exp", v), sum));
	} while (next_in(&g->j->in[0].box, g->mask, g->at));
}

static void shorten(struct group *g)
{
	ex_id norm = ex_fn1(g->j->tape, "rsqrt", sum_of(g, ""));

	do
		ex_put(&g->j->out[0], g->at, ex_times(g->j->tape, ex_get(&g->j->in[0], g->at), norm));
	while (next_in(&g->j->in[0].box, g->mask, g->at));
}

static bool same_extents(const struct ex_box *a, const struct ex_box *b)
{
	return a->rank == b->rank && memcmp(a->size, b->size, a->rank * sizeof *a->size) == 0;
}

static bool softmax(const struct ex_job *j)
{
	uint32_t mask;

	if (!same_extents(&j->in[0].box, &j->out[0].box))
		return false;
	if (!ap_attr_get(j->attrs, "axis"))
		mask = UINT32_C(1) << (j->in[0].box.rank - 1);
	else if (!ex_axes(j, "axis", j->in[0].box.rank, true, &mask))
		return false;
	return each_group(j, mask, soften);
}

static bool l2_normalize(const struct ex_job *j)
{
	uint32_t mask = 1;

	return same_extents(&j->in[0].box, &j->out[0].box) &&
		(!ap_attr_get(j->attrs, "axis") ||
			ex_axes(j, "axis", j->in[0].box.rank, true, &mask)) &&
		each_group(j, mask, shorten);
}

/* Element of a statistic, whose normalised dimensions have length one. */
static void put_statistic(const struct group *g, unsigned r, ex_id v)
{
	if (r < g->j->nout)
		ex_put(&g->j->out[r], g->at, v);
}

/* y = (x - mean) norm gamma + beta, the statistics behind it; RmsNorm has no mean and no beta. */
static void scale(struct group *g)
{
	struct ex_tape *t = g->j->tape;
	const struct ex_value *x = &g->j->in[0], *beta = g->j->nin > 2 ? &g->j->in[2] : NULL;
	bool root = ex_begins(g->j, "Rms"), inverse = ex_ends(g->j, "V3");
	ex_id mean = root ? 0 : mean_of(g, NULL), square = mean_of(g, "");
	ex_id var = ex_minus(t, square, ex_times(t, mean, mean)), norm = ex_fn1(t, "rsqrt", var);

	put_statistic(g, 1, root ? norm : mean);
	put_statistic(g, 2, inverse ? norm : var);
	do {
		ex_id v = ex_times(t, ex_minus(t, ex_get(x, g->at), mean), norm);

		v = ex_times(t, v, ex_get_broadcast(&g->j->in[1], g->at, x->box.rank));
		if (beta)
			v = ex_plus(t, v, ex_get_broadcast(beta, g->at, x->box.rank));
		ex_put(&g->j->out[0], g->at, v);
	} while (next_in(&x->box, g->mask, g->at));
}

/* Do gamma and beta have the extents of the last dimensions, and statistics those of the first? */
static bool scales_fit(const struct ex_job *j, uint32_t mask)
{
	const struct ex_box *x = &j->in[0].box;

	for (unsigned i = 1; i < j->nin; i++)
		for (int d = 0, n = j->in[i].box.rank; d < n; d++)
			if (n > x->rank || j->in[i].box.size[d] != x->size[x->rank - n + d])
				return false;
	for (unsigned r = 1; r < j->nout; r++)
		for (int d = 0; d < x->rank; d++)
			if (j->out[r].box.size[d] != (mask >> d & 1 ? 1 : x->size[d]))
				return false;
	return same_extents(x, &j->out[0].box);
}

static bool layer_norm(const struct ex_job *j)
{
	int rank = j->in[0].box.rank, axis = ex_axis(j, "begin_norm_axis", 1, rank);
	uint32_t mask = from_dim(axis, rank);

	return axis >= 0 && scales_fit(j, mask) && each_group(j, mask, scale);
}

static bool rms_norm(const struct ex_job *j)
{
	int rank = j->in[0].box.rank;
	uint32_t mask = from_dim(rank - j->in[1].box.rank, rank);

	return scales_fit(j, mask) && each_group(j, mask, scale);
}

/* Group k of the channels of batch element n; without scales they are ones and zeroes. */
static void scale_group(const struct ex_job *j, int64_t n, int64_t k, int64_t groups)
{
	struct ex_tape *t = j->tape;
	const struct ex_value *gamma = ex_in(j, 1), *beta = ex_in(j, 2);
	int64_t batch = ex_count(&j->in[0].box) / j->in[0].box.size[0], many = batch / groups;
	int64_t inner = batch / j->in[0].box.size[1], first = n * batch + k * many;
	const ex_id *x = j->in[0].id;
	ex_id mean = 0, var = 0, norm;

	for (int64_t i = first; i < first + many; i++) {
		mean = ex_plus(t, mean, x[i]);
		var = ex_mad(t, var, x[i], x[i]);
	}
	mean = ex_scale(t, mean, ex_inverse((uint64_t)many));
	var = ex_minus(t, ex_scale(t, var, ex_inverse((uint64_t)many)), ex_times(t, mean, mean));
	norm = ex_fn1(t, "rsqrt", var);
	for (int64_t i = first; i < first + many; i++) {
		int64_t c = i % batch / inner;
		ex_id v = ex_times(t, ex_minus(t, x[i], mean), norm);

		v = gamma ? ex_times(t, v, gamma->id[c]) : v;
		j->out[0].id[i] = beta ? ex_plus(t, v, beta->id[c]) : v;
	}
	for (unsigned r = 1; r < j->nout; r++)
		j->out[r].id[n * groups + k] = r == 1 ? mean : norm;
}

static bool group_norm(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;
	int64_t groups = ap_attr_int(j->attrs, "num_groups", 1);

	if (!same_extents(x, &j->out[0].box) || x->size[1] % groups != 0)
		return false;
	for (unsigned i = 1; i < j->nin; i++)
		if (j->in[i].box.size[0] != x->size[1])
			return false;
	for (unsigned r = 1; r < j->nout; r++)
		if (j->out[r].box.size[0] != x->size[0] || j->out[r].box.size[1] != groups)
			return false;
	for (int64_t n = 0; n < x->size[0]; n++)
		for (int64_t k = 0; k < groups; k++)
			scale_group(j, n, k, groups);
	return true;
}

/* Of a part: the statistics' summands, by the number of elements of all parts. */
static void gather_statistics(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;
	uint64_t n = (uint64_t)(ex_count(x) / x->size[1] * j->share);
	int64_t at[AP_MAX_RANK] = {0};

	do {
		ex_id v = ex_get(&j->in[0], at);

		if (j->nout > 1)
			j->out[1].id[at[1]] = ex_plus(j->tape, j->out[1].id[at[1]], v);
		if (j->nout > 2)
			j->out[2].id[at[1]] = ex_mad(j->tape, j->out[2].id[at[1]], v, v);
	} while (ex_step(x, at));
	for (unsigned r = 1; r < j->nout && r < 3; r++)
		for (int64_t c = 0; c < x->size[1]; c++)
			j->out[r].id[c] = ex_scale(j->tape, j->out[r].id[c], ex_inverse(n));
}

/* Results 3 and 4 are kept for the backward pass: nothing flows back through them. */
static void apply_statistics(const struct ex_job *j, const ex_id *mean, const ex_id *var)
{
	struct ex_tape *t = j->tape;
	int64_t at[AP_MAX_RANK] = {0};

	do {
		int64_t c = at[1];
		ex_id v = ex_minus(t, ex_get(&j->in[0], at), mean[c]);

		v = ex_times(t, v, ex_fn1(t, "rsqrt", var[c]));
		ex_put(&j->out[0], at, ex_mad(t, j->in[2].id[c], v, j->in[1].id[c]));
	} while (ex_step(&j->in[0].box, at));
	for (unsigned r = 3; r < j->nout; r++)
		for (int64_t c = 0; c < j->out[r].box.size[0]; c++)
			j->out[r].id[c] = ex_leaf(t, ex_value_of(t, (r == 3 ? mean : var)[c]));
}

static bool channels_fit(const struct ex_job *j)
{
	int64_t c = j->in[0].box.size[1];

	for (unsigned i = 1; i < j->nin; i++)
		if (j->in[i].box.size[0] != c)
			return false;
	for (unsigned r = 1; r < j->nout; r++)
		if (j->out[r].box.size[0] != c)
			return false;
	return same_extents(&j->in[0].box, &j->out[0].box);
}

/* Running statistics are made into results as they are. */
static bool batch_norm_by_given(const struct ex_job *j)
{
	if (j->stage == 0)
		return true;
	for (unsigned r = 1; r < j->nout && r < 3; r++)
		for (int64_t c = 0; c < j->out[r].box.size[0]; c++)
			j->out[r].id[c] = ex_leaf(j->tape, ex_value_of(j->tape, j->in[r + 2].id[c]));
	apply_statistics(j, j->in[3].id, j->in[4].id);
	return true;
}

static bool batch_norm(const struct ex_job *j)
{
	struct ex_tape *t = j->tape;

	if (!channels_fit(j))
		return false;
	if (!ap_attr_bool(j->attrs, "is_training", false))
		return batch_norm_by_given(j);
	if (j->nout < 3)
		return false;
	if (j->stage == 0) {
		gather_statistics(j);
		return true;
	}
	for (int64_t c = 0; c < j->out[2].box.size[0]; c++)
		j->out[2].id[c] = ex_minus(t, j->out[2].id[c],
			ex_times(t, j->out[1].id[c], j->out[1].id[c]));
	apply_statistics(j, j->out[1].id, j->out[2].id);
	return true;
}

#define LINES(name) {.type = name, .forward = softmax, .make = ex_make_softmax}
#define LAYER(name) {.type = name, .forward = layer_norm, .make = ex_make_layer_norm}

const struct ex_kernel ex_kernels_norm[] = {
	LINES("Softmax"), LINES("LogSoftmax"), LAYER("LayerNorm"), LAYER("LayerNormV3"),
	{.type = "L2Normalize", .forward = l2_normalize, .make = ex_make_l2_normalize},
	{.type = "RmsNorm", .forward = rms_norm, .make = ex_make_rms_norm},
	{.type = "GroupNorm", .forward = group_norm, .make = ex_make_group_norm},
	{.type = "BatchNorm", .forward = batch_norm, .make = ex_make_batch_norm, .stages = 2,
		.inner = 1 << 1 | 1 << 2, .no_grad = 1 << 3 | 1 << 4},
	{0}
};
