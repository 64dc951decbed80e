/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"
#include "cost/cost.h"
#include "cost/kernel.h"

/* A local copy of so many bytes, read and written. */
static double copy_s(const struct ap_chip *chip, double bytes)
{
	struct ap_kernel k = {.unit = AP_OP_MEMORY, .dtype = AP_FLOAT32, .bytes = 2 * bytes};

	return ap_kernel_time_s(chip, &k);
}

/*
 * One step: SplitByAxis is a StridedSlice; ConcatByAxis an AllGather, beyond the first dimension
 * followed by Split and Concat; PermuteByAxis an AlltoAll with its reordering (formats 5.2). The
 * adjoint has the same copies, AllGather becomes ReduceScatter, a slice zero padding.
 */
static double step_s(struct ap_pricer *pr, const struct ap_reshard_step *s, double dtype_bytes,
	bool adjoint)
{
	const struct ap_chip *chip = ap_pricer_machine(pr)->chip;
	double before = (double)s->before * dtype_bytes, after = (double)s->after * dtype_bytes;

	switch (s->move) {
	case AP_MOVE_SLICE:
		return copy_s(chip, adjoint ? (before + after) / 2 : after);
	case AP_MOVE_GATHER:
		return ap_axis_time_s(pr, adjoint ? ap_coll_adjoint(AP_COLL_ALLGATHER) : AP_COLL_ALLGATHER,
			       &s->axis, after) +
			(s->first ? 0 : 2 * copy_s(chip, after));
	case AP_MOVE_ALLTOALL:
		return ap_axis_time_s(pr, AP_COLL_ALLTOALL, &s->axis, before) + copy_s(chip, before);
	}
	return 0;
}

static int64_t step_bytes(const struct ap_reshard_step *s, int dtype_bytes)
{
	switch (s->move) {
	case AP_MOVE_SLICE:
		return 0;
	case AP_MOVE_GATHER:
		return (s->after - s->before) * dtype_bytes;
	case AP_MOVE_ALLTOALL:
		return s->before / s->axis.size * (s->axis.size - 1) * dtype_bytes;
	}
	return 0;
}

static double steps_s(struct ap_pricer *pr, const struct ap_reshard_step *steps, int n,
	double dtype_bytes, bool adjoint)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += step_s(pr, &steps[i], dtype_bytes, adjoint);
	return sum;
}

static double backward_s(struct ap_pricer *pr, const struct ap_flow *f, const struct ap_layout *a,
	const struct ap_layout *b, const struct ap_reshard_step *steps, int n)
{
	struct ap_reshard_step back[AP_RESHARD_MAX];
	double bytes = ap_dtype_bytes(f->dtype);
	int m;

	if (!f->grad)
		return 0;
	if (ap_pricer_step(pr)->executor == AP_EXECUTOR_MINDSPORE)
		return steps_s(pr, steps, n, bytes, true);
	m = ap_reshard(b, a, f->size, ap_pricer_machine(pr)->ndev, back);
	return steps_s(pr, back, m, bytes, false);
}

void ap_move_cost_make(struct ap_pricer *pr, const struct ap_flow *f, const struct ap_layout *a,
	const struct ap_layout *b, struct ap_move_cost *out)
{
	const struct ap_step *step = ap_pricer_step(pr);
	struct ap_reshard_step steps[AP_RESHARD_MAX];
	int bytes = ap_dtype_bytes(f->dtype);
	int n = ap_reshard(a, b, f->size, ap_pricer_machine(pr)->ndev, steps);
	double times = (double)step->micro_batches;

	*out = (struct ap_move_cost){0};
	if (n == 0)
		return;
	out->forward_s = times * steps_s(pr, steps, n, bytes, false);
	out->backward_s = times * backward_s(pr, f, a, b, steps, n);
	for (int i = 0; i < n; i++)
		out->bytes += step_bytes(&steps[i], bytes);
	if (f->kept)
		out->kept_bytes = steps[n - 1].after * bytes * step->in_flight;
}

void ap_flow_make(const struct ap_graph *g, const struct ap_task *tasks, ap_id node, uint32_t operand,
	const struct ap_step *step, struct ap_flow *out)
{
	const struct ap_tensor *t = &g->tensor[g->node[node].in[operand]];
	const struct ap_task_operand *in = &tasks[node].in[operand];

	*out = (struct ap_flow){.rank = t->shape.rank, .dtype = t->shape.dtype, .grad = in->grad,
		.kept = in->kept};
	for (int d = 0; d < t->shape.rank; d++) {
		out->size[d] = t->shape.dim[d];
		if (t->batch >> d & 1)
			out->size[d] /= step->micro_batches;
	}
}

void ap_input_layout(const struct ap_shape *shape, uint8_t batch, int64_t ndev,
	const struct ap_step *step, struct ap_layout *out)
{
	int64_t extent, parts;

	*out = (struct ap_layout){.rank = shape->rank};
	for (int d = 0; d < shape->rank; d++)
		out->dim[d].cut = 1;
	for (int d = 0; d < shape->rank; d++) {
		if (step->full_batch || !(batch >> d & 1))
			continue;
		extent = shape->dim[d] / step->micro_batches;
		parts = ap_gcd(extent, ndev);
		if (parts > 1)
			out->dim[d] = (struct ap_cut_dim){(int32_t)parts, 1};
		return;
	}
}
