/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that follow from their places in the whole, and what is read in; systems of equations. */
#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

/* Number i of those that are given: an operand, or an attribute. */
static uint64_t given(const struct ex_job *j, unsigned i, const char *name, int64_t otherwise)
{
	const struct ex_value *v = ex_in(j, i);
	const struct ap_attr *a = ap_attr_get(j->attrs, name);

	return v ? ex_value_of(j->tape, v->id[0]) : ex_of_int(a ? (int64_t)a->f : otherwise);
}

/* Place of an element of result 0 in the whole. */
static uint64_t place_of(const struct ex_box *b, const int64_t *at)
{
	int64_t place = 0;

	for (int d = 0; d < b->rank; d++)
		place = place * b->whole[d] + b->first[d] + at[d];
	return (uint64_t)place;
}

/* start + place step; where an end is given, and how many there are, the step is what leads there. */
static bool line(const struct ex_job *j)
{
	const struct ex_box *b = &j->out[0].box;
	bool to_end = ex_begins(j, "Lin");
	uint64_t start = given(j, 0, "start", 0), end = given(j, 1, "end", 1);
	uint64_t step = to_end ? ex_sub(end, start) : given(j, 2, "step", 1);
	int64_t at[AP_MAX_RANK] = {0};

	if (to_end && b->whole[0] > 1)
		step = ex_mul(step, ex_inverse((uint64_t)b->whole[0] - 1));
	do
		ex_put(&j->out[0], at, ex_leaf(j->tape,
			ex_add(start, ex_mul(place_of(b, at), step))));
	while (ex_step(b, at));
	return b->rank == 1;
}

/* The last operand, everywhere. */
static bool constant(const struct ex_job *j)
{
	for (int64_t k = 0; k < ex_count(&j->out[0].box); k++)
		j->out[0].id[k] = j->in[j->nin - 1].id[0];
	return ex_count(&j->in[j->nin - 1].box) == 1;
}

/* Operands as they are; without operands numbers by place. */
static bool read_in(const struct ex_job *j)
{
	for (unsigned r = 0; r < j->nout; r++) {
		struct ex_value *out = &j->out[r];
		int64_t at[AP_MAX_RANK] = {0};

		if (j->nin && ex_count(&j->in[r].box) != ex_count(&out->box))
			return false;
		do
			ex_put(out, at, j->nin ? ex_get(&j->in[r], at)
				: ex_leaf(j->tape, ex_hash(r, place_of(&out->box, at)) % 2));
		while (ex_step(&out->box, at));
	}
	return true;
}

/* Row i of x in a x = b, when rows before it, or behind it where a is an upper triangle, are known;
 * a, b and x are those of one batch, b and x with k columns. */
static void solve_row(const struct ex_job *j, const ex_id *a, const ex_id *b, ex_id *x, int64_t n,
	int64_t i, int64_t k)
{
	bool lower = ap_attr_bool(j->attrs, "lower", false);
	bool unit = ap_attr_bool(j->attrs, "unit_diagonal", false);

	for (int64_t c = 0; c < k; c++) {
		ex_id rest = b[i * k + c];

		for (int64_t m = lower ? 0 : i + 1; m < (lower ? i : n); m++)
			rest = ex_minus(j->tape, rest, ex_times(j->tape, a[i * n + m], x[m * k + c]));
		x[i * k + c] = unit ? rest : ex_over(j->tape, rest, a[i * n + i]);
	}
}

/* Matrices in the last two dimensions; b has vectors where it has a dimension less. */
static bool solve(const struct ex_job *j)
{
	const struct ex_value *a = &j->in[0], *b = &j->in[1];
	int rank = a->box.rank;
	int64_t n = a->box.size[rank - 1];
	int64_t k = b->box.rank < rank ? 1 : b->box.size[rank - 1];
	int64_t batch = ex_count(&a->box) / (n * n);

	if (a->box.size[rank - 2] != n || ex_count(&b->box) != batch * n * k ||
		ex_count(&j->out[0].box) != batch * n * k)
		return false;
	for (int64_t m = 0; m < batch; m++)
		for (int64_t i = 0; i < n; i++)
			solve_row(j, a->id + m * n * n, b->id + m * n * k, j->out[0].id + m * n * k, n,
				ap_attr_bool(j->attrs, "lower", false) ? i : n - 1 - i, k);
	return true;
}

/* Is each box inside of what the three numbers say? */
static bool check_boxes(const struct ex_job *j)
{
	const struct ex_value *box = &j->in[0], *limit = &j->in[1];
	int64_t n = ex_count(&j->out[0].box);

	if (box->box.size[0] != n || box->box.size[1] != 4 || limit->box.size[0] != 3)
		return false;
	for (int64_t i = 0; i < n; i++) {
		bool inside = true;

		for (int64_t k = 0; k < 4; k++)
			inside &= !ex_less(j->tape, limit->id[k % 2], box->id[4 * i + k]);
		j->out[0].id[i] = ex_leaf(j->tape, inside);
	}
	return true;
}

#define LINE(name) {.type = name, .forward = line, .make = ex_make_line, .no_grad = 7}

const struct ex_kernel ex_kernels_fill[] = {
	LINE("Arange"), LINE("Range"), LINE("LinSpace"), LINE("LinSpaceExt"),
	{.type = "FillV2", .forward = constant, .make = ex_make_constant, .no_grad = 3},
	{.type = "VirtualDataset", .forward = read_in, .make = ex_make_dataset,
		.no_grad = UINT32_MAX},
	{.type = "GetNext", .forward = read_in, .make = ex_make_dataset},
	{.type = "SolveTriangular", .forward = solve, .make = ex_make_systems},
	{.type = "CheckValid", .forward = check_boxes, .make = ex_make_valid, .no_grad = 3},
	{0}
};
