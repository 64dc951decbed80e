/* SPDX-License-Identifier: Apache-2.0 */
/* Between numbers of different widths: steps, which have no gradient, and what stands for them. */
#include "kern_parts.h"
#include "make_parts.h"

/* A level of the two numbers' surface. */
static ex_id level(const struct ex_job *j, const char *name, ex_id a, ex_id b)
{
	return ex_leaf(j->tape, ex_value_of(j->tape, ex_fn2(j->tape, name, a, b)));
}

/* By scale and offset of the last dimension, as far as they are given. */
static ex_id by_scale_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id v = ex_operand(j, 0, at);

	(void)r;
	v = level(j, j->type, v, 0);
	for (unsigned i = 1; i < j->nin; i++)
		v = level(j, j->slot[i] == 1 ? "scale" : "offset", v, ex_operand(j, i, at));
	return v;
}

EX_EACH(by_scale)

/* A row by its own scale, which is the second result. */
static bool dynamic(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;
	int64_t n = x->size[x->rank - 1];

	if (j->nin > 1 && j->in[1].box.size[0] != n)
		return false;
	for (int64_t row = 0; row < ex_count(x) / n; row++) {
		ex_id sum = 0;

		for (int64_t i = 0; i < n; i++)
			sum = level(j, "largest", sum, j->in[0].id[row * n + i]);
		for (int64_t i = 0; i < n; i++) {
			ex_id v = j->in[0].id[row * n + i];

			v = j->nin > 1 ? level(j, "smooth", v, j->in[1].id[i]) : v;
			j->out[0].id[row * n + i] = level(j, "quant", v, sum);
		}
		if (j->nout > 1)
			j->out[1].id[row] = sum;
	}
	return true;
}

static int channel_axis(const struct ex_job *j)
{
	return ex_axis(j, "channel_axis", 1, j->in[0].box.rank);
}

/* x between two numbers, of each channel or of all. */
static bool fake(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;
	int64_t at[AP_MAX_RANK] = {0}, n = j->in[1].box.size[0];
	bool channels = ex_ends(j, "Channel");
	int axis = channels ? channel_axis(j) : 0;

	if (j->in[2].box.size[0] != n || n != (channels ? x->size[axis] : 1))
		return false;
	do {
		int64_t c = channels ? at[axis] : 0;
		ex_id range = level(j, "range", j->in[1].id[c], j->in[2].id[c]);

		ex_put(&j->out[0], at, ex_fn2(j->tape, "fake", ex_get(&j->in[0], at), range));
	} while (ex_step(x, at));
	return true;
}

/* Each of the two numbers, by all elements of its channel. */
static bool range(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;
	bool channels = ex_ends(j, "Channel");
	int axis = channels ? channel_axis(j) : 0;

	for (unsigned r = 0; r < j->nout; r++)
		if (j->in[r + 1].box.size[0] != (channels ? x->size[axis] : 1) ||
			j->out[r].box.size[0] != j->in[r + 1].box.size[0])
			return false;
	for (unsigned r = 0; r < j->nout; r++)
		for (int64_t c = 0; c < j->out[r].box.size[0]; c++) {
			int64_t at[AP_MAX_RANK] = {0};
			ex_id v = j->in[r + 1].id[c];

			do
				if (!channels || at[axis] == c)
					v = level(j, r ? "largest" : "least", v, ex_get(&j->in[0], at));
			while (ex_step(x, at));
			j->out[r].id[c] = v;
		}
	return true;
}

#define BY_SCALE(name) \
	{.type = name, .forward = by_scale, .make = ex_make_by_scale, .no_grad = 7}
#define FAKE(name) {.type = name, .forward = fake, .make = ex_make_range, .no_grad = 6}
#define RANGE(name) {.type = name, .forward = range, .make = ex_make_range, .no_grad = 7}

const struct ex_kernel ex_kernels_quant[] = {
	BY_SCALE("Quant"), BY_SCALE("QuantV2"), BY_SCALE("AntiQuant"), BY_SCALE("Dequant"),
	{.type = "DynamicQuantExt", .forward = dynamic, .make = ex_make_dynamic, .no_grad = 3},
	FAKE("FakeQuantPerLayer"), FAKE("FakeQuantPerChannel"), RANGE("MinMaxUpdatePerLayer"),
	RANGE("MinMaxUpdatePerChannel"),
	{0}
};
