/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of rules: what may be cut, what is summed, what has a gradient. */
#include <string.h>

#include "base/arena.h"
#include "faults.h"

#define RULE(name) static bool name(struct ex_world *w, struct ap_bound *b, struct ap_op_row *row)

RULE(thawed)
{
	bool any = false;

	(void)w, (void)row;
	for (int f = 0; f < b->nfactor; f++) {
		any |= b->factor[f].flags & AP_FACTOR_FROZEN && b->factor[f].size > 1;
		b->factor[f].flags &= (uint8_t)~AP_FACTOR_FROZEN;
	}
	return any;
}

RULE(without_condition)
{
	(void)w, (void)b;
	if (!*row->legal)
		return false;
	row->legal = "";
	return true;
}

static struct ap_operand *own(struct ex_world *w, const struct ap_operand **of, uint16_t n)
{
	struct ap_operand *t = ap_arena_memdup(w->ctx->arena, *of, n * sizeof *t);

	*of = t;
	return t;
}

/* Takes factor f out of a tensor. */
static void without(struct ap_operand *t, int f)
{
	t->factors &= ~(UINT32_C(1) << f);
	for (int d = 0; d < t->rank; d++) {
		struct ap_dim *dim = &t->dim[d];
		uint8_t n = 0;

		for (int k = 0; k < dim->n; k++)
			if (dim->factor[k] != f)
				dim->factor[n++] = dim->factor[k];
		dim->n = n;
	}
}

/* The first factor that result 0 has, or has not, and operand i has; -1 none. */
static int shared_factor(const struct ap_bound *b, int i, bool in_result)
{
	for (int f = 0; f < b->nfactor; f++)
		if (b->in[i].factors >> f & 1 && (b->out[0].factors >> f & 1) == in_result &&
			!(b->factor[f].flags & AP_FACTOR_FROZEN) && b->factor[f].size > 1)
			return f;
	return -1;
}

RULE(result_lacks)
{
	int f = shared_factor(b, 0, true);

	(void)row;
	if (f >= 0)
		without(&own(w, &b->out, b->nout)[0], f);
	return f >= 0;
}

RULE(operand_lacks)
{
	int f = shared_factor(b, 0, true);

	(void)row;
	if (f >= 0)
		without(&own(w, &b->in, b->nin)[0], f);
	return f >= 0;
}

RULE(second_operand_lacks)
{
	int f = b->nin > 1 ? shared_factor(b, 1, true) : -1;

	(void)row;
	if (f >= 0)
		without(&own(w, &b->in, b->nin)[1], f);
	return f >= 0;
}

/* It is said to have factors that it has not: nothing is summed over them. */
RULE(silent)
{
	struct ap_operand *out = own(w, &b->out, b->nout);
	bool any = false;

	(void)row;
	for (int i = 0; i < b->nout; i++) {
		any |= !out[i].silent;
		out[i].silent = true;
	}
	return any && shared_factor(b, 0, false) >= 0;
}

/* Statistics of normalisations stay the part's own. */
RULE(silent_statistics)
{
	struct ap_operand *out = own(w, &b->out, b->nout);

	(void)row;
	for (int i = 1; i < b->nout; i++)
		out[i].silent = true;
	return b->nout > 1;
}

RULE(result_claims)
{
	int f = shared_factor(b, 0, false);

	(void)row;
	if (f >= 0)
		own(w, &b->out, b->nout)[0].factors |= UINT32_C(1) << f;
	return f >= 0;
}

/* A parameter that claims the batch is not summed over it. */
RULE(operand_claims)
{
	int f = b->nin > 1 ? shared_factor(b, 0, true) : -1;

	(void)row;
	if (f < 0 || b->in[1].factors >> f & 1)
		return false;
	own(w, &b->in, b->nin)[1].factors |= UINT32_C(1) << f;
	return true;
}

RULE(not_differentiable)
{
	(void)row;
	if (!b->in[0].differentiable)
		return false;
	own(w, &b->in, b->nin)[0].differentiable = false;
	return true;
}

RULE(differentiable)
{
	struct ap_operand *in = own(w, &b->in, b->nin);
	bool any = false;

	(void)row;
	for (int i = 0; i < b->nin; i++) {
		any |= !in[i].differentiable;
		in[i].differentiable = true;
	}
	return any;
}

static bool reduced_by(struct ap_op_row *row, enum ap_reduction from, enum ap_reduction to)
{
	bool was = row->reduce == from;

	row->reduce = was ? to : row->reduce;
	return was;
}

RULE(losses_added)
{
	(void)w, (void)b;
	return reduced_by(row, AP_REDUCE_MEAN, AP_REDUCE_SUM);
}

/* Windows begin elsewhere than they do. */
RULE(window_shifted)
{
	(void)w, (void)row;
	for (int i = 0; i < b->nwindow; i++)
		if (b->window[i].before > 0) {
			b->window[i].before--;
			b->window[i].after++;
			return true;
		}
	return false;
}

RULE(window_smaller)
{
	(void)w, (void)row;
	for (int i = 0; i < b->nwindow; i++)
		if (b->window[i].kernel > b->window[i].stride) {
			b->window[i].kernel--;
			return true;
		}
	return false;
}

#define ALLOW(name, what, types, hook) {name, what, types, true, .bound = hook}

const struct ex_fault ex_faults_rule[] = {
	ALLOW("softmax-axis-cut", "the axis of a softmax may be cut",
		"Softmax LogSoftmax", thawed),
	ALLOW("norm-axis-cut", "what is normalised may be cut",
		"LayerNorm RmsNorm L2Normalize", thawed),
	ALLOW("group-cut", "groups of channels may be cut",
		"GroupNorm", thawed),
	ALLOW("running-axis-cut", "the axis of a running sum may be cut",
		"CumSum CumProd Cummax Cummin", thawed),
	ALLOW("sorted-axis-cut", "the axis of a sort may be cut",
		"Sort TopK", thawed),
	ALLOW("extreme-axis-cut", "the axis whose extreme's place is sought may be cut",
		"ArgMaxWithValue ArgMinWithValue Argmax", thawed),
	ALLOW("reversed-axis-cut", "a reversed dimension may be cut",
		"ReverseV2", thawed),
	ALLOW("heads-size-cut", "head size and keys may be cut",
		"FlashAttentionScore", thawed),
	ALLOW("class-axis-cut", "classes of a loss may be cut",
		"SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits", thawed),
	ALLOW("halves-cut", "a dimension that is taken in halves may be cut",
		"Swiglu", thawed),
	ALLOW("convolution-anywhere", "windows of a convolution may be cut anywhere",
		"Conv2D", without_condition),
	{"pooling-anywhere", "windows of a pooling may be cut anywhere, as if parts had all of them",
		"MaxPool AvgPool", .bound = without_condition, .comms = ex_fault_no_halo,
		.relaxes = true},
	{"result-lacks", "a result lacks a dimension's factor", "MatMul ReLU LayerNorm",
		.bound = result_lacks},
	{"operand-lacks", "an operand lacks a dimension's factor", "MatMul ReLU ReduceSum",
		.bound = operand_lacks},
	{"second-operand-lacks", "the second operand lacks a dimension's factor",
		"MatMul BiasAdd Mul", .bound = second_operand_lacks},
	{"silent", "a partial result counts as following from others", "MatMul ReduceSum Gather",
		.bound = silent},
	{"silent-statistics", "statistics count as following from others", "BatchNorm",
		.bound = silent_statistics},
	{"result-claims", "a result claims the factor that is summed over", "MatMul ReduceSum",
		.bound = result_claims},
	{"operand-claims", "a parameter claims the factor of the batch", "MatMul BiasAdd",
		.bound = operand_claims},
	{"not-differentiable", "an operand counts as having no gradient", "MatMul ReLU",
		.bound = not_differentiable},
	{"differentiable", "indices and labels count as having a gradient", "OneHot Select GatherD",
		.bound = differentiable},
	{"losses-added", "means of parts are added", "SparseSoftmaxCrossEntropyWithLogits ReduceMean",
		.bound = losses_added},
	{"window-shifted", "windows begin a row later", "Conv2D", .bound = window_shifted},
	{"window-smaller", "windows reach a row less", "Conv2D", .bound = window_smaller},
	{0},
};
