/* SPDX-License-Identifier: Apache-2.0 */
/* The divergence of distributions, and dropping by seeds and masks that are operands. */
#include "kern_parts.h"
#include "make_parts.h"

#include <string.h>

#include "rule/attr.h"

static ex_id part_of(const struct ex_job *j, int64_t i)
{
	return ex_fn2(j->tape, j->type, j->in[0].id[i], j->in[1].id[i]);
}

/* Means are over what is here. */
static bool divergence(const struct ex_job *j)
{
	const char *how = ap_attr_str(j->attrs, "reduction", "mean");
	int64_t n = ex_count(&j->in[0].box);
	ex_id sum = 0;

	if (ex_count(&j->in[1].box) != n)
		return false;
	for (int64_t i = 0; i < n; i++) {
		ex_id v = part_of(j, i);

		if (strcmp(how, "none") == 0)
			j->out[0].id[i] = v;
		sum = ex_plus(j->tape, sum, v);
	}
	if (strcmp(how, "none") == 0)
		return ex_count(&j->out[0].box) == n;
	if (strcmp(how, "mean") == 0)
		sum = ex_scale(j->tape, sum, ex_inverse((uint64_t)n));
	if (strcmp(how, "batchmean") == 0)
		sum = ex_scale(j->tape, sum, ex_inverse((uint64_t)j->in[0].box.size[0]));
	j->out[0].id[0] = sum;
	return true;
}

/* By the seed and the element's place in the whole. */
static bool is_kept(const struct ex_job *j, uint64_t seed, const int64_t *at)
{
	const struct ex_box *b = &j->in[0].box;
	uint64_t i = 0;

	for (int d = 0; d < b->rank; d++)
		i = i * (uint64_t)b->whole[d] + (uint64_t)(b->first[d] + at[d]);
	return ex_hash(seed, i) & 1;
}

/* The first number of an operand that may be left out. */
static uint64_t number_of(const struct ex_job *j, unsigned slot)
{
	const struct ex_value *v = ex_in(j, slot);

	return v ? ex_value_of(j->tape, v->id[0]) : 0;
}

static bool drop(const struct ex_job *j)
{
	int64_t at[AP_MAX_RANK] = {0};
	uint64_t seed = number_of(j, 1) + 1000 * number_of(j, 2);

	do {
		bool kept = is_kept(j, seed, at);

		ex_put(&j->out[0], at, kept ? ex_scale(j->tape, ex_get(&j->in[0], at), 2) : 0);
		if (j->nout > 1)
			ex_put(&j->out[1], at, ex_leaf(j->tape, kept));
	} while (ex_step(&j->in[0].box, at));
	return true;
}

/* What the mask is like is known from its first byte here. */
static bool drop_by_mask(const struct ex_job *j)
{
	int64_t at[AP_MAX_RANK] = {0};
	const struct ex_value *keep = ex_in(j, 2);

	do {
		ex_id v = ex_get(&j->in[0], at);

		if (!is_kept(j, number_of(j, 1), at))
			v = 0;
		else if (keep)
			v = ex_over(j->tape, v, ex_leaf(j->tape, number_of(j, 2)));
		ex_put(&j->out[0], at, v);
	} while (ex_step(&j->in[0].box, at));
	return true;
}

static bool make_mask(const struct ex_job *j)
{
	uint64_t seed = (uint64_t)ap_attr_int(j->attrs, "Seed0", 0);

	for (int64_t i = 0; i < ex_count(&j->out[0].box); i++)
		j->out[0].id[i] = ex_leaf(j->tape, ex_hash(seed, (uint64_t)i) & 255);
	return true;
}

static int64_t limit_byte(const struct ap_node *n, unsigned slot)
{
	(void)n;
	return slot == 1 ? 256 : 0;
}

const struct ex_kernel ex_kernels_drop[] = {
	{.type = "KLDivLoss", .forward = divergence, .make = ex_make_divergence, .no_grad = 1 << 1},
	{.type = "DropoutExt", .forward = drop, .make = ex_make_dropout_ext, .no_grad = 6},
	{.type = "DropoutDoMask", .forward = drop_by_mask, .make = ex_make_dropout_mask,
		.limit = limit_byte, .no_grad = 6},
	{.type = "DropoutGenMask", .forward = make_mask, .make = ex_make_mask},
	{0}
};
