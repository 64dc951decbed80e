/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of sums: missing ones, others, over other ranks, of other tensors. */
#include "faults.h"

#define HOOK(name) static bool name(struct ex_world *w, const struct ex_oper *o, struct ex_comms *c)

static struct ap_comm *forward_sum(struct ex_comms *c)
{
	return ex_nth_comm(c, AP_PHASE_FORWARD, AP_COLL_ALLREDUCE, EX_OF_RESULT, 0);
}

HOOK(no_forward)
{
	(void)w, (void)o;
	return ex_drop_comm(c, forward_sum(c));
}

HOOK(no_adjoint)
{
	(void)w, (void)o;
	return ex_drop_comm(c, ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLREDUCE, EX_OF_RESULT, 0));
}

HOOK(no_operand_sum)
{
	(void)w, (void)o;
	return ex_drop_comm(c, ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLREDUCE, EX_OF_OPERAND, 0));
}

HOOK(over_all_ranks)
{
	struct ap_axes all = {1, {{1, (int32_t)w->ndev}}};

	(void)o;
	return ex_regroup_comm(forward_sum(c), &all);
}

HOOK(over_another_axis)
{
	(void)o;
	return ex_move_comm(w, forward_sum(c));
}

HOOK(operand_sum_over_another_axis)
{
	(void)o;
	return ex_move_comm(w, ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLREDUCE, EX_OF_OPERAND, 0));
}

HOOK(adjoint_over_another_axis)
{
	(void)o;
	return ex_move_comm(w, ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLREDUCE, EX_OF_RESULT, 0));
}

HOOK(forward_twice)
{
	(void)w, (void)o;
	return ex_double_comm(c, forward_sum(c));
}

HOOK(adjoint_twice)
{
	(void)w, (void)o;
	return ex_double_comm(c, ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLREDUCE, EX_OF_RESULT, 0));
}

/* An adjoint where the convention has none, or the other way round. */
HOOK(adjoint_in_generic)
{
	struct ap_comm *f = forward_sum(c), *b;

	if (w->executor != AP_EXECUTOR_GENERIC || !f || !o->out_grad[f->result] ||
		ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLREDUCE, EX_OF_RESULT, 0) || c->n == EX_MAX_COMM)
		return false;
	b = &c->v[c->n++];
	*b = *f;
	b->phase = AP_PHASE_BACKWARD;
	b->reduce = AP_REDUCE_SUM;
	return true;
}

static bool instead(struct ex_comms *c, enum ap_reduction from, enum ap_reduction to)
{
	struct ap_comm *f = forward_sum(c);

	if (!f || f->reduce != from)
		return false;
	f->reduce = to;
	return true;
}

HOOK(sum_for_mean)
{
	(void)w, (void)o;
	return instead(c, AP_REDUCE_MEAN, AP_REDUCE_SUM);
}

HOOK(mean_for_sum)
{
	(void)w, (void)o;
	return instead(c, AP_REDUCE_SUM, AP_REDUCE_MEAN);
}

HOOK(max_for_min)
{
	(void)w, (void)o;
	return instead(c, AP_REDUCE_MIN, AP_REDUCE_MAX);
}

HOOK(min_for_max)
{
	(void)w, (void)o;
	return instead(c, AP_REDUCE_MAX, AP_REDUCE_MIN);
}

HOOK(sum_for_product)
{
	(void)w, (void)o;
	return instead(c, AP_REDUCE_PROD, AP_REDUCE_SUM);
}

HOOK(all_reduce_for_scatter)
{
	(void)w, (void)o;
	return ex_change_comm(ex_nth_comm(c, AP_PHASE_FORWARD, AP_COLL_REDUCESCATTER, EX_OF_RESULT, 0),
		AP_COLL_ALLREDUCE);
}

HOOK(all_gather_for_reduce)
{
	(void)w, (void)o;
	return ex_change_comm(forward_sum(c), AP_COLL_ALLGATHER);
}

HOOK(scatter_for_reduce)
{
	(void)w, (void)o;
	return ex_change_comm(forward_sum(c), AP_COLL_REDUCESCATTER);
}

HOOK(no_gather_back)
{
	(void)w, (void)o;
	return ex_drop_comm(c, ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLGATHER, EX_OF_RESULT, 0));
}

HOOK(sum_of_another_operand)
{
	(void)w;
	return ex_misname_comm(o, ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLREDUCE, EX_OF_OPERAND, 0));
}

HOOK(sum_of_another_result)
{
	struct ap_comm *f = forward_sum(c);

	(void)w;
	if (!f || o->nout < 2)
		return false;
	f->result = (f->result + 1) % o->nout;
	return true;
}

HOOK(half_the_bytes)
{
	(void)w, (void)o;
	for (uint32_t i = 0; i < c->n; i++)
		c->v[i].bytes /= 2;
	return c->n > 0;
}

/* The sum of the gradient as if it were one of the forward pass. */
HOOK(in_another_phase)
{
	struct ap_comm *b = ex_nth_comm(c, AP_PHASE_BACKWARD, AP_COLL_ALLREDUCE, EX_OF_OPERAND, 0);

	(void)w, (void)o;
	if (b)
		b->phase = AP_PHASE_FORWARD;
	return b;
}

const struct ex_fault ex_faults_comm[] = {
	{"no-forward", "the AllReduce of a result is missing",
		"MatMul BatchMatMul ReduceSum ReduceMax ReduceProd L2Loss Gather Conv2D",
		.comms = no_forward},
	{"no-statistic", "the AllReduce of a statistic is missing", "BatchNorm", .comms = no_forward},
	{"no-adjoint", "the AllReduce of a gradient, adjoint to that of the result, is missing",
		"MatMul ReduceSum Conv2D", .comms = no_adjoint},
	{"no-statistic-adjoint", "the AllReduce of a statistic's gradient is missing", "BatchNorm",
		.comms = no_adjoint},
	{"no-operand-sum", "the AllReduce of an operand's gradient is missing", "MatMul BiasAdd",
		.comms = no_operand_sum},
	{"over-all-ranks", "an AllReduce over more ranks than a result is partial on",
		"MatMul ReduceSum", .comms = over_all_ranks},
	{"over-another-axis", "an AllReduce over other ranks, as many", "MatMul ReduceSum Conv2D",
		.comms = over_another_axis},
	{"operand-sum-over-another-axis", "the sum of an operand's gradient over other ranks, as many",
		"MatMul BatchMatMul", .comms = operand_sum_over_another_axis},
	{"adjoint-over-another-axis", "an adjoint over other ranks than its collective", "MatMul",
		.comms = adjoint_over_another_axis},
	{"forward-twice", "an AllReduce twice", "MatMul ReduceSum ReduceProd",
		.comms = forward_twice},
	{"adjoint-twice", "an adjoint twice", "MatMul ReduceSum", .comms = adjoint_twice},
	{"adjoint-in-generic", "the adjoint of a sum, where gradients are whole", "MatMul ReduceSum",
		.comms = adjoint_in_generic},
	{"sum-for-mean", "the sum of means", "ReduceMean MeanExt", .comms = sum_for_mean},
	{"mean-for-sum", "the mean of sums", "ReduceSum MatMul", .comms = mean_for_sum},
	{"max-for-min", "the largest of the least", "ReduceMin ReduceAll", .comms = max_for_min},
	{"min-for-max", "the least of the largest", "ReduceMax ReduceAny", .comms = min_for_max},
	{"sum-for-product", "the sum of products", "ReduceProd", .comms = sum_for_product},
	{"all-reduce-for-scatter", "an AllReduce where a ReduceScatter is due", "MatMul Gather",
		.comms = all_reduce_for_scatter},
	{"scatter-for-reduce", "a ReduceScatter where an AllReduce is due", "MatMul ReduceSum",
		.comms = scatter_for_reduce},
	{"all-gather-for-reduce", "an AllGather where an AllReduce is due", "MatMul",
		.comms = all_gather_for_reduce},
	{"no-gather-back", "the gradient of a dealt result is not gathered", "MatMul Gather",
		.comms = no_gather_back},
	{"sum-of-another-operand", "the gradient of another operand is summed", "MatMul BiasAdd",
		.comms = sum_of_another_operand},
	{"sum-of-another-result", "another result is summed", "SquareSumAll BatchNorm",
		.comms = sum_of_another_result},
	{"in-another-phase", "a sum of the backward pass in the forward pass", "MatMul",
		.comms = in_another_phase},
	{"half-the-bytes", "half of the bytes are charged", "MatMul ReduceSum Conv2D LayerNorm",
		.comms = half_the_bytes},
	{0},
};
