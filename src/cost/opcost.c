/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of an operator: what it keeps, brings back and works with. */
#include "cost/opcost.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "cost/float8.h"
#include "cost/kernel.h"
#include "cost/expert_load.h"
#include "cost/move.h"
#include "cost/task.h"
#include "hw/group.h"
#include "rule/attend.h"
#include "shard/layout.h"

/* Tells a term, if anybody asks for it. */
static void told(const struct ap_opcost *x, const char *what, const struct ap_kernel *k, double bytes,
	double s)
{
	struct ap_op_term term = {x->of, what, x->times, s, k, bytes};

	if (x->tell && x->of != AP_TERM_NONE && s > 0)
		x->tell(x->user, &term);
}

static double timed_s(const struct ap_opcost *x, const char *what, const struct ap_kernel *k)
{
	struct ap_kernel_parts parts;

	ap_kernel_parts(x->chip, k, &parts);
	if (x->launch_s)
		*x->launch_s += x->times * parts.launch_s;
	told(x, what, k, 0, parts.s);
	return parts.s;
}

/* The backward pass reads the copy with the halo. */
static void halo_memory(struct ap_opcost *x, double *forward, double *backward)
{
	const struct ap_task_operand *in = &x->t->in[x->halo_operand];

	if (in->again)
		x->c->recompute_bytes += x->halo_bytes;
	else if (in->kept)
		x->c->activation_bytes += x->halo_bytes;
	else
		*forward += (double)x->halo_bytes;
	if (in->grad)
		*backward += (double)x->halo_bytes;
}

/* Counts the copy that a cast makes, and its gradient before the cast back. */
static void cast(struct ap_opcost *x, int i, double *forward, double *backward)
{
	double bytes = ap_opcost_in(x, i);

	if (x->t->in[i].kept)
		x->c->activation_bytes += (int64_t)bytes;
	else
		*forward += bytes;
	if (x->t->in[i].grad)
		*backward += bytes;
}

/* For a dealt parameter: the weight gathered for this use, and the gradient before it is dealt. */
static void passing(const struct ap_opcost *x, int i, double *forward, double *backward)
{
	const struct ap_task_operand *in = &x->t->in[i];
	double elements = (double)ap_local_elements(&x->b->in[i], 0, x->p, x->step), gathered;
	enum ap_dtype t = ap_task_stored(x->t, i);
	struct ap_opt_shard s;

	if (!in->shardable || !in->grad || in->twin != i)
		return;
	ap_opt_shard_make(x->t, i, x->p, x->step, &s);
	gathered = (double)(s.shards * s.part * ap_weight_bytes(x->t, i, x->step));
	if (s.regather && !in->stays) {
		*forward += gathered;
		*backward += in->kept && !in->cast ? gathered : 0;
	}
	if (s.gradient)
		*backward += elements * ap_gradient_held_bytes(t, x->step);
}

/* May the copy that the operator uses not be held? That depends on the producer; if each device has
 * a part of its own, nothing was gathered. */
static bool may_gather_again(const struct ap_opcost *x, int i)
{
	const struct ap_task_operand *in = &x->t->in[i];
	int64_t parts = 1;

	for (int f = 0; f < x->b->nfactor; f++)
		if (x->b->in[i].factors >> f & 1)
			parts *= x->p->count[f];
	return x->step->executor == AP_EXECUTOR_GENERIC && in->kind == AP_TENSOR_ACT && in->kept &&
		!in->again && !in->cast && parts < x->p->ndev;
}

static int64_t held_bytes(const struct ap_opcost *x, int o)
{
	int64_t bytes = (int64_t)ap_opcost_out(x, o);
	struct ap_axes replicas;

	if (x->t->out[o].float8)
		bytes = (int64_t)((double)bytes / ap_dtype_bytes(x->b->out[o].dtype) *
			ap_float8_bytes(x->step->float8));
	if (!x->t->out[o].sliced)
		return bytes;
	return bytes / ap_slice_parts(&x->b->out[o], x->t->out[o].batch, x->p, x->step, &replicas);
}

/* A parameter owned by another stage and received once: it lives for the whole step, like the sum
 * of its gradients. */
static bool is_received_weight(const struct ap_task *t)
{
	return t->once && strcmp(t->bound->row->name, "Receive") == 0;
}

/* Bytes of the whole operand if it is held in parts, while its reader runs again and back. */
static int64_t whole_bytes(const struct ap_opcost *x, int i)
{
	const struct ap_task_operand *in = &x->t->in[i];
	struct ap_axes replicas;

	if (in->kind != AP_TENSOR_ACT || !in->regather ||
		ap_slice_parts(&x->b->in[i], in->batch, x->p, x->step, &replicas) == 1)
		return 0;
	return (int64_t)ap_opcost_in(x, i);
}

static double elements_of(const struct ap_opcost *x, int i)
{
	return (double)ap_local_elements(&x->b->in[i], x->t->in[i].batch, x->p, x->step) *
		(x->t->in[i].uneven ? x->c->load : 1);
}

static void results(struct ap_opcost *x, double *forward, double *backward)
{
	for (int o = 0; o < x->b->nout; o++) {
		const struct ap_task_result *out = &x->t->out[o];

		if (out->kept || (out->needed && x->keeps_results))
			x->c->activation_bytes += held_bytes(x, o);
		else
			*forward += ap_opcost_out(x, o);
		if (out->lent)
			x->c->lent_bytes += held_bytes(x, o);
		if ((out->again || out->twice) && !x->keeps_results)
			x->c->recompute_bytes += (int64_t)ap_opcost_out(x, o);
		if (out->grad)
			*backward += ap_opcost_out(x, o);
		if (out->grad && x->t->waits)
			x->c->late_bytes += (int64_t)ap_opcost_out(x, o);
		if (o == 0 && x->p->dealt) { /* the whole, beside its dealt part */
			*forward += ap_opcost_computed(x, o);
			*backward += out->grad ? ap_opcost_computed(x, o) : 0;
		}
	}
}

static void operand(struct ap_opcost *x, int i, double *forward, double *backward)
{
	const struct ap_task_operand *in = &x->t->in[i];
	double bytes = ap_opcost_stored(x, i);

	passing(x, i, forward, backward);
	/* one to work on, one that comes */
	if (ap_rule_holds(x->b->rounds, i) && x->p->count[x->b->round] > 1) {
		*forward += 2 * bytes;
		*backward += (in->grad ? 4 : 2) * bytes;
	}
	/* as it comes, and as it is worked on */
	if (ap_rule_holds(x->b->swaps, i) && x->p->count[x->b->round] > 1) {
		*forward += bytes;
		*backward += in->grad ? bytes : 0;
	}
	if (in->share > 0 && x->b->row->unit != AP_OP_VIEW)
		x->c->read_bytes += (int64_t)ap_opcost_in(x, i) / in->share;
	x->c->recompute_bytes += whole_bytes(x, i);
	if (in->kind == AP_TENSOR_INPUT && in->kept)
		x->c->activation_bytes += (int64_t)bytes;
	if (in->float8_copy)
		x->c->activation_bytes += (int64_t)(elements_of(x, i) * ap_float8_bytes(x->step->float8));
	if ((in->kind == AP_TENSOR_ACT || in->kind == AP_TENSOR_INPUT) && (!in->kept || in->cast))
		*forward += bytes;
	if (may_gather_again(x, i)) {
		*forward += bytes;
		*backward += bytes;
	}
	if (in->kind == AP_TENSOR_ACT && in->grad)
		*backward += bytes;
}

static bool works(const struct ap_bound *b)
{
	return b->row->unit != AP_OP_VIEW && b->row->unit != AP_OP_LINK;
}

static double extent_of(const struct ap_opcost *x, uint32_t mask)
{
	double n = 1;

	for (int f = 0; f < x->b->nfactor; f++)
		if (mask >> f & 1)
			n *= ap_local_extent(x->b, f, x->p, x->step);
	return n;
}

static uint32_t lookup_mask(const struct ap_bound *b)
{
	uint32_t mask = 0;

	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & AP_FACTOR_LOOKUP)
			mask |= 1u << f;
	return mask;
}

/* Points of the iteration space on one rank; looked-up factors cause no work. */
static double points_of(const struct ap_opcost *x)
{
	return extent_of(x, ((1u << x->b->nfactor) - 1) & ~lookup_mask(x->b));
}

/* A lookup reads only the rows it takes from a table; matrices that rows are dealt to, whole. */
static bool is_looked_up(const struct ap_opcost *x, int i)
{
	return x->b->row->unit == AP_OP_MEMORY && (x->b->in[i].factors & lookup_mask(x->b)) != 0;
}

/* The type of the first floating operand. */
static enum ap_dtype type_of(const struct ap_bound *b)
{
	for (int i = 0; i < b->nin; i++)
		if (ap_dtype_is_float(b->in[i].dtype))
			return b->in[i].dtype;
	return b->nin > 0 ? b->in[0].dtype : AP_FLOAT32;
}

static enum ap_dtype arithmetic(const struct ap_opcost *x)
{
	return x->t->float8 ? AP_FLOAT8_E4M3FN : type_of(x->b);
}

/* In 8 bits, what a product reads has so many times fewer bytes. */
static double narrowing(const struct ap_opcost *x)
{
	return x->t->float8 ? ap_dtype_bytes(x->b->in[0].dtype) : 1;
}

/* Two operands contracted into one result; batch, m, n, k follow from where factors occur. */
static bool is_gemm(const struct ap_bound *b)
{
	return b->row->unit == AP_OP_CUBE && b->nin == 2;
}

/* The work of the rank that has most of it / the mean: with a causal mask the last of c parts of the
 * queries sees all keys, and its own half: (2 c - 1) / c, unless parts are dealt in pairs, one from the
 * front and one from the end. */
static double unevenness(const struct ap_opcost *x)
{
	int f = ap_rule_causal_factor(x->b);
	double parts = f < 0 || x->b->even ? 1 : x->p->count[f];

	return (2 * parts - 1) / parts;
}

/* Likewise of experts with uneven numbers of tokens. */
static double load(const struct ap_task *t, const struct ap_placement *p)
{
	const struct ap_bound *b = t->bound;
	double most = 1;

	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & AP_FACTOR_UNEVEN)
			most = fmax(most, ap_expert_load(t->imbalance, b->factor[f].size, p->count[f]));
	return most;
}

/* Zeros of what is no attention, and where nothing is known. */
static struct ap_attention_rate attention_rate(const struct ap_opcost *x)
{
	struct ap_attention factors;

	if (!x->step->software || !ap_rule_attends(x->b, &factors))
		return (struct ap_attention_rate){0};
	return ap_chip_attention(x->chip, x->step->software->attention);
}

/* What attention computes, with what its kernel computes in vain, which the rate's half stands for. 1 for
 * other operators. */
static double attended(const struct ap_opcost *x)
{
	struct ap_attention a;
	double half = attention_rate(x).half;

	if (!(half > 0) || !ap_rule_attends(x->b, &a))
		return 1;
	if (a.keys >= 0)
		return 1 + half / extent_of(x, 1u << a.keys);
	/* keys that go round are seen in parts, those of exchanged heads all at once */
	return 1 + half / (x->b->swaps ? (double)x->b->factor[a.queries].size
		: extent_of(x, 1u << a.queries));
}

static double launch_s(const struct ap_opcost *x)
{
	return x->step->software ? x->step->software->launch_s : 0;
}

/* Has a product of a batch of activations rows, of k or of n elements, that are no multiple of what the
 * matrix unit loads? Its operands and its result have such rows, and those of its gradients' products. */
static bool is_unaligned(const struct ap_opcost *x, const struct ap_kernel *k)
{
	double bytes = ap_dtype_bytes(type_of(x->b)), row = x->chip->row_bytes;

	return row > 0 && k->b > 1 && k->starts <= 1 &&
		(fmod(k->n * bytes, row) > 0 || fmod(k->k * bytes, row) > 0);
}

static struct ap_kernel kernel_of(const struct ap_opcost *x)
{
	struct ap_kernel k = {.unit = x->b->row->unit, .dtype = arithmetic(x), .launch_s = launch_s(x),
		.slowdown = x->step->software ? x->step->software->product_slowdown : 1,
		.joined = x->t->joins, .efficiency = attention_rate(x).forward};

	k.flops = x->b->flops * points_of(x) * unevenness(x) * x->c->load * attended(x);
	if (is_gemm(x->b)) {
		uint32_t a = x->b->in[0].factors, w = x->b->in[1].factors, o = x->b->out[0].factors;

		k.gemm = true;
		k.part = x->t->part;
		k.b = extent_of(x, a & w & o);
		k.starts = x->t->in[1].kind == AP_TENSOR_PARAM ? k.b : 1;
		k.m = extent_of(x, a & o & ~w) * x->c->load;
		k.n = extent_of(x, w & o & ~a);
		k.k = extent_of(x, (a | w) & ~o) * (x->b->flops / x->b->row->flops); /* with the window */
		k.unaligned = is_unaligned(x, &k);
	}
	return k;
}

/* Assembling the operand with its halo, or taking its gradient apart. */
static double halo_copy_s(const struct ap_opcost *x)
{
	struct ap_kernel k = {.unit = AP_OP_MEMORY, .dtype = type_of(x->b),
		.bytes = 2 * (double)x->halo_bytes};

	return timed_s(x, "copy with halos", &k);
}

/* Bytes of an operand that the kernel reads. */
static double seen(const struct ap_opcost *x, int i)
{
	return ap_opcost_in(x, i) * (ap_rule_holds(x->b->rounds, i) ? x->p->count[x->b->round] : 1);
}

/* Does the operand stay within the kernel that computes this operator and its producer? */
static bool is_within(const struct ap_opcost *x, int i)
{
	return x->t->in[i].fused == AP_FUSED_READ || x->t->in[i].fused == AP_FUSED_WHOLE;
}

/*
 * How often the forward pass of a loss reads or writes its logits, of which no cache holds a row. As one
 * kernel three times, for the maximum and two sums (FlashAttention's csrc/xentropy; Transformer Engine's
 * cross entropy reads twice and writes the gradient). As Megatron's core/tensor_parallel/cross_entropy.py,
 * behind the maximum, seven times: less it, exponentials, their sum, shares. And as often as the software
 * passes over them for its metrics.
 */
static double passes_of(const struct ap_opcost *x, int i)
{
	const struct ap_software *how = x->step->software;
	bool sums = !strcmp(x->b->row->name, "CrossEntropySums");

	if (i > 0 || (!sums && strcmp(x->b->row->name, "SparseSoftmaxCrossEntropyWithLogits") != 0))
		return 1;
	return (sums && !(how && how->chains >> AP_CHAIN_LOSS & 1) ? 7 : 3) + (how ? how->metric_passes : 0);
}

/* What of an operand an operator reads, and of its gradient writes: of the first one of a product that the
 * software makes of several, its share. */
static double part_of(const struct ap_opcost *x, int i)
{
	return i == 0 && x->t->part > 0 ? x->t->part : 1;
}

static double forward_s(const struct ap_opcost *x)
{
	struct ap_kernel k = kernel_of(x);
	double bytes = 0, results = 0;

	if (x->t->strided)
		return 0;
	for (int o = 0; o < x->b->nout; o++)
		results += x->t->out[o].fused ? 0 : ap_opcost_computed(x, o);
	for (int i = 0; i < x->b->nin; i++)
		bytes += is_looked_up(x, i) ? results : is_within(x, i) ? 0
			: passes_of(x, i) * part_of(x, i) * seen(x, i);
	k.bytes = bytes / narrowing(x) + results;
	return timed_s(x, "kernel", &k) + (x->halo_bytes > 0 ? halo_copy_s(x) : 0);
}

/* Of the product that makes the gradient of operand i of the other operand and the result's gradient. */
static double product_bytes(const struct ap_opcost *x, int i)
{
	return (part_of(x, 1 - i) * ap_opcost_in(x, 1 - i) + ap_opcost_computed(x, 0)) / narrowing(x) +
		part_of(x, i) * ap_opcost_in(x, i);
}

/* The type of products with a gradient. */
static enum ap_dtype arithmetic_back(const struct ap_opcost *x)
{
	return x->t->float8 ? ap_float8_of_gradients(x->step) : arithmetic(x);
}

/* Of a product's first operand: dA = dC B' (m x k over n). */
static double operand_gradient_s(const struct ap_opcost *x)
{
	struct ap_kernel k = kernel_of(x), d = k;

	d.dtype = arithmetic_back(x);
	d.bytes = product_bytes(x, 0);
	d.n = k.k;
	d.k = k.n;
	d.along_k = true;
	return timed_s(x, "gradient of the first operand", &d);
}

/* Gradients of a product: that of the first operand, and dB = A' dC (k x n over m). */
static double gemm_backward_s(const struct ap_opcost *x)
{
	struct ap_kernel k = kernel_of(x), d = k;
	double time_s = x->t->in[0].grad ? operand_gradient_s(x) : 0;

	d.dtype = arithmetic_back(x);
	d.bytes = product_bytes(x, 1);
	d.m = k.k;
	d.k = k.m;
	return time_s + (x->t->in[1].grad ? timed_s(x, "gradient of the second operand", &d) : 0);
}

static double gradients_part(const struct ap_opcost *x)
{
	int wanted = 0, possible = 0;

	for (int i = 0; i < x->b->nin; i++) {
		wanted += x->t->in[i].grad;
		possible += x->b->in[i].differentiable;
	}
	return possible > 0 ? (double)wanted / possible : 0;
}

static double backward_s(const struct ap_opcost *x)
{
	struct ap_kernel k;
	double copy_s;
	double bytes = 0;

	if (!x->t->backward || x->t->strided)
		return 0;
	copy_s = x->halo_bytes > 0 && x->t->in[x->halo_operand].grad ? halo_copy_s(x) : 0;
	if (is_gemm(x->b))
		return gemm_backward_s(x) + copy_s;
	k = kernel_of(x);
	k.flops *= x->b->row->backward * gradients_part(x);
	k.efficiency = attention_rate(x).backward;
	/* reads gradients of results and saved data, writes gradients of operands */
	for (int o = 0; o < x->b->nout; o++)
		bytes += ap_opcost_computed(x, o) *
			((x->t->out[o].grad && !x->t->out[o].fused) + x->b->out[o].saved);
	for (int i = 0; i < x->b->nin; i++)
		bytes += seen(x, i) *
			((x->t->in[i].grad && !is_within(x, i)) + x->b->in[i].saved);
	k.bytes = bytes;
	return timed_s(x, "gradient", &k) + copy_s;
}

/* Casts an operand from its stored type to the type that is read, or its gradient back. */
static double cast_s(const struct ap_opcost *x, int i)
{
	double elements = (double)ap_local_elements(&x->b->in[i], x->t->in[i].batch, x->p, x->step);
	struct ap_kernel k = {.unit = AP_OP_VECTOR, .dtype = x->t->in[i].stored, .flops = elements,
		.launch_s = launch_s(x),
		.bytes = ap_opcost_stored(x, i) + ap_opcost_in(x, i)};

	return timed_s(x, "cast", &k);
}

/* Copies elements of 16 bits into 8, by rows and, if asked for, by columns as well: what each expert has by
 * itself, as Transformer Engine's GroupedLinear does it. */
static double copy_in_8_bits_s(const struct ap_opcost *x, double elements, int copies)
{
	const struct ap_float8_recipe *recipe = x->step->float8;
	struct ap_kernel k = {.unit = AP_OP_MEMORY, .dtype = AP_FLOAT8_E4M3FN, .launch_s = launch_s(x),
		.starts = fmax(1, kernel_of(x).starts) * recipe->kernels,
		.bytes = elements * (recipe->reads * 2 + copies * ap_float8_bytes(recipe))};

	return timed_s(x, "copy into 8 bits", &k);
}

/* Copies that the backward pass reads: the first operand by columns for the weight's gradient, the weight for
 * the operand's. */
static int copies_of(const struct ap_opcost *x, int i)
{
	return x->t->backward && x->t->in[1 - i].grad ? 2 : 1;
}

/* Of a micro-batch: the activation, whose copy several products may read. */
static double copies_forward_s(const struct ap_opcost *x)
{
	struct ap_opcost part = *x;

	if (!x->t->float8)
		return 0;
	part.times /= x->t->in[0].float8_readers; /* which counts for the host, too */
	return copy_in_8_bits_s(&part, elements_of(x, 0), copies_of(x, 0)) / x->t->in[0].float8_readers;
}

/* And the result's gradient: by rows for the operand's gradient, by columns for the weight's. */
static double copies_backward_s(const struct ap_opcost *x)
{
	double elements = ap_opcost_computed(x, 0) / ap_dtype_bytes(x->b->out[0].dtype);

	return x->t->float8 && x->t->backward
		? copy_in_8_bits_s(x, elements, x->t->in[0].grad + x->t->in[1].grad) : 0;
}

/* The weight is copied once a step, or for each use if it is gathered for each. If it is stored in 8 bits,
 * the optimizer writes it so; what is left is the copy by columns. */
static double copies_of_weight_s(struct ap_opcost *x)
{
	const struct ap_task_operand *in = &x->t->in[1];
	double elements = elements_of(x, 1), times = in->regather ? (double)x->step->micro_batches : 1;
	struct ap_kernel by_columns = {.unit = AP_OP_MEMORY, .dtype = AP_FLOAT8_E4M3FN,
		.bytes = 2 * elements * ap_float8_bytes(x->step->float8)};

	x->of = AP_TERM_FORWARD;
	x->launch_s = &x->c->forward_launch_s;
	x->times = times;
	if (!x->step->float8_params)
		return times * copy_in_8_bits_s(x, elements, copies_of(x, 1));
	return copies_of(x, 1) > 1 ? times * timed_s(x, "copy of the weight by columns", &by_columns) : 0;
}

/* Bytes of that: the kernel that makes them reads the sum at its end, or one of its own reads both and writes
 * the sum. */
static double sum_bytes(const struct ap_step *step, const struct ap_bound *b, const struct ap_task *t,
	const struct ap_placement *p, int i)
{
	const struct ap_task_operand *in = &t->in[i];
	enum ap_dtype stored = ap_task_stored(t, i);
	int one = ap_dtype_bytes(stored), sum;
	struct ap_opt_shard s;

	if (!step->software || step->software->gradient_sum == AP_SUM_UNKNOWN ||
		t->measured || in->kind != AP_TENSOR_PARAM || !in->grad || in->twin != i)
		return 0;
	sum = step->gradient_fp32_sync ? ap_dtype_bytes(ap_gradient_wire(stored, step)) : one;
	ap_opt_shard_make(t, i, p, step, &s);
	return (double)(s.gradient ? s.part : ap_local_elements(&b->in[i], 0, p, step)) *
		(step->software->gradient_sum == AP_SUM_FUSED ? sum : one + 2 * sum);
}

double ap_op_sum_s(const struct ap_chip *chip, const struct ap_step *step, const struct ap_bound *b,
	const struct ap_task *t, const struct ap_placement *p, int i)
{
	return sum_bytes(step, b, t, p, i) / (chip->memory_Bps * chip->memory_efficiency);
}

static double sum_s(const struct ap_opcost *x)
{
	double bytes = 0, time_s;

	for (int i = 0; i < x->b->nin; i++)
		bytes += sum_bytes(x->step, x->b, x->t, x->p, i);
	time_s = bytes / (x->chip->memory_Bps * x->chip->memory_efficiency);
	if (bytes > 0)
		told(x, "sum of gradients", NULL, bytes, time_s);
	return time_s;
}

/* Times that the user measured on one device replace ours, scaled by the share of the work here. */
static void kernels(struct ap_opcost *x)
{
	double times = x->t->once ? 1 : (double)x->step->micro_batches, share = x->c->load;

	x->of = AP_TERM_FORWARD;
	x->times = times;
	if (!x->t->measured) {
		x->launch_s = &x->c->forward_launch_s;
		x->c->forward_s = times * (forward_s(x) + copies_forward_s(x));
		x->of = AP_TERM_BACKWARD;
		x->launch_s = &x->c->backward_launch_s;
		x->c->backward_s = times * (backward_s(x) + copies_backward_s(x) + sum_s(x));
		x->of = AP_TERM_NONE;
		x->launch_s = NULL;
		return;
	}
	for (int f = 0; f < x->b->nfactor; f++)
		share /= x->p->count[f];
	x->c->forward_s = x->t->measured_forward_s * share;
	x->c->backward_s = x->t->backward ? x->t->measured_backward_s * share : 0;
	x->times = 1;
	told(x, "as measured", NULL, 0, x->c->forward_s);
	x->of = AP_TERM_BACKWARD;
	told(x, "as measured", NULL, 0, x->c->backward_s);
	x->of = AP_TERM_NONE;
}

/* After the collectives are known. The copy with a halo is assembled again for the kernel, or for
 * the backward pass alone. */
static void run_again(struct ap_opcost *x)
{
	double times = x->t->once ? 1 : (double)x->step->micro_batches;

	if (x->t->recomputed && !x->keeps_results) {
		x->c->recompute_s = x->c->forward_s;
		x->c->recompute_launch_s = x->c->forward_launch_s;
	} else if (x->halo_bytes > 0 && x->t->in[x->halo_operand].again && !x->t->measured)
		x->c->recompute_s = times * halo_copy_s(x);
	x->c->backward_s += x->c->recompute_s;
	x->c->backward_launch_s += x->c->recompute_launch_s;
	x->of = AP_TERM_BACKWARD;
	x->times = 1;
	told(x, "computed again", NULL, 0, x->c->recompute_s);
	x->of = AP_TERM_NONE;
}

/* Of c parts the first is there; while each but the last is worked on, the next one comes. Where products
 * run beside the collectives of their results, the last part goes when all is worked on, and back, the first
 * comes before: the gradient of the operand is worked on beside. */
static void cover(struct ap_opcost *x)
{
	double times = x->t->once ? 1 : (double)x->step->micro_batches, parts, n = 0;

	if (x->step->product_overlap && is_gemm(x->b) && !x->t->measured) {
		x->c->covered_s = x->c->forward_s / times;
		x->c->covered_back_s = x->t->in[0].grad ? operand_gradient_s(x) : 0;
		return;
	}
	for (int i = 0; i < x->b->nin; i++)
		n += ap_rule_holds(x->b->rounds, i);
	if (n == 0)
		return;
	parts = x->p->count[x->b->round];
	x->c->covered_s = x->c->forward_s / times * (parts - 1) / parts / n;
	x->c->covered_back_s = x->c->backward_s / times * (parts - 1) / parts / n;
}

double ap_op_comm_time_s(struct ap_pricer *pr, const struct ap_op_cost *cost, const struct ap_comm *c,
	const char **algorithm)
{
	double s = ap_comm_time_s(pr, c, algorithm) * (c->uneven ? cost->load : 1);
	double covered_s = c->phase == AP_PHASE_BACKWARD ? cost->covered_back_s : cost->covered_s, parts;

	if (c->kind == AP_COLL_RING)
		return fmax(0, s - covered_s);
	if (c->result < 0 || c->phase == AP_PHASE_GRADIENT || c->phase == AP_PHASE_OPTIMIZER ||
		covered_s <= 0)
		return s;
	parts = (double)ap_axes_size(&c->axes);
	return fmax(s / parts, s - covered_s * (parts - 1) / parts);
}

/*
 * Seconds that a collective saves by the latency that it shares with others of its bucket: of one as full as
 * settings and network allow, it takes its part by bytes, and never more than alone.
 */
static double bucketed_s(struct ap_opcost *x, const struct ap_comm *c, double alone_s)
{
	const struct ap_fusion *f = ap_comm_fusion(x->step, c->kind);
	const struct ap_task_operand *in;
	struct ap_comm full = *c;

	if (f->mode == AP_FUSION_OFF || x->step->exchange_alone)
		return 0;
	in = &x->t->in[c->operand];
	if (in->unfused && x->chip->hccl[0])
		return 0;
	full.bytes = c->phase == AP_PHASE_GRADIENT ? in->gradients_bytes : in->weights_bytes;
	if (f->mode == AP_FUSION_INDEX)
		full.bytes /= f->nindex + 1;
	else if (full.bytes > f->bytes)
		full.bytes = f->bytes;
	if (full.bytes <= c->bytes)
		return 0;
	return fmax(0, alone_s - (double)c->bytes / (double)full.bytes * ap_comm_time_s(x->pr, &full, NULL));
}

static void communicate(void *user, const struct ap_comm *comm)
{
	struct ap_opcost *x = user;
	double s = ap_op_comm_time_s(x->pr, x->c, comm, NULL);
	double times = x->t->once ? 1 : (double)x->step->micro_batches;

	switch (comm->phase) {
	case AP_PHASE_FORWARD:
		x->c->forward_comm_s += times * s;
		x->keeps_results |= x->t->recomputed && x->t->keep_comm && comm->result >= 0;
		break;
	case AP_PHASE_RECOMPUTE:
	case AP_PHASE_BACKWARD:
		x->c->backward_comm_s += times * s;
		break;
	case AP_PHASE_GRADIENT:
		if (comm->each) {
			x->c->gradient_each_s += times * s;
			x->c->bucketed_each_s += times * bucketed_s(x, comm, s);
		} else {
			x->c->gradient_s += s;
			x->c->bucketed_s += bucketed_s(x, comm, s);
		}
		break;
	case AP_PHASE_OPTIMIZER:
		x->c->optimizer_s += s;
		x->c->bucketed_gather_s += bucketed_s(x, comm, s);
		break;
	}
}

static bool has_copy(enum ap_dtype t, const struct ap_step *step)
{
	return ap_dtype_is_narrow(t) && step->software;
}

static int master_bytes(enum ap_dtype t, const struct ap_step *step)
{
	return has_copy(t, step) ? step->software->master_bytes : 0;
}

/* The update is in float32: it takes a copy of gradients that are held in fewer bits. */
static int gradient_copy_bytes(enum ap_dtype t, const struct ap_step *step)
{
	return has_copy(t, step) && ap_gradient_held_bytes(t, step) < ap_dtype_bytes(AP_FLOAT32)
		? step->software->gradient_copy_bytes : 0;
}

/* Turns a sum into a mean. */
static void divide(struct ap_opcost *x, double elements, enum ap_dtype t)
{
	struct ap_kernel k = {.unit = AP_OP_VECTOR, .dtype = t, .flops = elements,
		.bytes = 2 * elements * ap_gradient_held_bytes(t, x->step)};

	x->c->optimizer_s += timed_s(x, "mean of gradients", &k);
}

/* The update reads and writes weight, master copy and states once, and reads the gradient. */
static void update(struct ap_opcost *x, double elements, enum ap_dtype t, int state_bytes)
{
	double each = ap_gradient_held_bytes(t, x->step) +
		2 * (ap_dtype_bytes(t) + master_bytes(t, x->step) + state_bytes);
	struct ap_kernel k = {.unit = AP_OP_MEMORY, .dtype = t, .bytes = elements * each};

	x->c->optimizer_s += timed_s(x, "update", &k);
}

static void update_all(struct ap_opcost *x, int i, const struct ap_opt_shard *s)
{
	const struct ap_optimizer *opt = x->step->optimizer;
	enum ap_dtype t = ap_task_stored(x->t, i);
	int states = opt ? opt->nstate * opt->state_bytes : 0;

	if (x->step->gradients_mean && s->replicas.n > 0 && !x->t->in[i].alone)
		divide(x, (double)s->part, t);
	if (!x->t->in[i].updated)
		return;
	x->c->optimizer_bytes += s->part *
		(states + master_bytes(t, x->step) + gradient_copy_bytes(t, x->step));
	if (opt)
		update(x, (double)s->part, t, states);
}

/* Copies in 8 bits beside the weight, which live through the step. */
static int64_t copies_of_weight_bytes(const struct ap_opcost *x, int i, int64_t elements)
{
	int copies = copies_of(x, i) - (x->step->float8_params ? 1 : 0);

	return (int64_t)((double)(elements * copies) * ap_float8_bytes(x->step->float8));
}

static void parameter(struct ap_opcost *x, int i)
{
	const struct ap_operand *o = &x->b->in[i];
	int64_t elements = ap_local_elements(o, 0, x->p, x->step);
	struct ap_opt_shard shard;
	enum ap_dtype t;
	int weight_bytes = ap_weight_bytes(x->t, i, x->step);

	if (!x->t->in[i].trainable || !x->t->in[i].grad) {
		x->c->weight_bytes += elements * weight_bytes;
		if (x->t->float8)
			x->c->gathered_bytes += copies_of_weight_bytes(x, i, elements);
		return;
	}
	ap_opt_shard_make(x->t, i, x->p, x->step, &shard);
	/* Weights, and what exists whole only while an operator runs. */
	t = ap_task_stored(x->t, i);
	if (x->t->float8 && !shard.regather)
		x->c->gathered_bytes += copies_of_weight_bytes(x, i, elements);
	x->c->weight_bytes += (shard.weight ? shard.part : elements) * weight_bytes;
	if (shard.weight && (!shard.regather || x->t->in[i].stays))
		x->c->gathered_bytes += shard.shards * shard.part * weight_bytes;
	x->c->gradient_bytes += (shard.gradient ? shard.part : elements) * ap_gradient_held_bytes(t, x->step);
	update_all(x, i, &shard);
}

static void input(struct ap_opcost *x, int i)
{
	const struct ap_operand *o = &x->b->in[i];
	struct ap_shape shape = {.rank = o->rank, .dtype = o->dtype};
	struct ap_flow flow = {.rank = o->rank, .dtype = o->dtype, .block = x->t->block};
	struct ap_layout from, to;
	struct ap_move_cost cost;

	for (int d = 0; d < o->rank; d++) {
		shape.dim[d] = o->size[d];
		flow.size[d] = o->size[d];
		if (x->t->in[i].batch >> d & 1)
			flow.size[d] /= x->step->micro_batches;
	}
	ap_input_layout(&shape, x->t->in[i].batch, x->t->in[i].arrival, x->p->ndev, x->step, &from);
	if (!ap_layout_make(x->p, o, &to))
		return;
	ap_move_cost_make(x->pr, &flow, &from, &to, NULL, &cost);
	x->c->input_s += cost.forward_s;
}

static void make_cost(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	ap_op_term_fn *tell, void *user, struct ap_op_cost *out)
{
	struct ap_opcost x = {.tell = tell, .user = user, .pr = pr, .chip = ap_pricer_machine(pr)->chip,
		.step = ap_pricer_step(pr), .t = t, .b = t->bound, .p = p, .c = out};
	double forward = 0, backward = 0;

	struct ap_exchange exchange[AP_MAX_WINDOW];

	*out = (struct ap_op_cost){.load = load(t, p)};
	if (ap_halo_exchanges(t, p, x.step, exchange, &x.halo_bytes) > 0)
		x.halo_operand = exchange[0].operand;
	kernels(&x);
	cover(&x);
	ap_comms_derive(x.t, x.p, x.step, communicate, &x);
	run_again(&x);
	if (t->float8 && !t->measured)
		x.c->forward_s += copies_of_weight_s(&x);
	x.of = AP_TERM_NONE;
	/* casts: outside the operator's own kernel, so neither measured nor run again with it */
	for (int i = 0; i < x.b->nin; i++) {
		double time_s;

		if (!ap_opcost_casts(&x, i))
			continue;
		x.times = (double)x.step->micro_batches;
		x.of = AP_TERM_FORWARD;
		x.launch_s = &x.c->forward_launch_s;
		time_s = x.times * cast_s(&x, i);
		x.c->forward_s += time_s;
		x.of = AP_TERM_BACKWARD;
		x.launch_s = &x.c->backward_launch_s;
		x.c->backward_s += x.t->in[i].grad ? x.times * cast_s(&x, i) : 0;
	}
	x.of = AP_TERM_OPTIMIZER;
	x.launch_s = NULL;
	x.times = 1;
	for (int i = 0; i < x.b->nin; i++) {
		if (t->in[i].kind == AP_TENSOR_PARAM && t->in[i].owner)
			parameter(&x, i);
		if (t->in[i].kind == AP_TENSOR_INPUT)
			input(&x, i);
		if (t->in[i].kind == AP_TENSOR_CONST && t->in[i].owner)
			out->weight_bytes += (int64_t)ap_opcost_in(&x, i);
	}
	/* Memory, after the collectives are known. */
	if (is_received_weight(x.t)) {
		const struct ap_operand *o = &x.b->out[0];

		if (!x.t->out[0].kept)
			x.c->activation_bytes += (int64_t)ap_opcost_out(&x, 0);
		if (x.t->out[0].grad)
			x.c->gradient_bytes += ap_local_elements(o, 0, x.p, x.step) *
				ap_gradient_held_bytes(o->dtype, x.step);
	}
	if (x.halo_bytes > 0)
		halo_memory(&x, &forward, &backward);
	results(&x, &forward, &backward);
	for (int i = 0; i < x.b->nin; i++)
		operand(&x, i, &forward, &backward);
	if (!works(x.b))
		forward = backward = 0;
	for (int i = 0; i < x.b->nin; i++)
		if (ap_opcost_casts(&x, i))
			cast(&x, i, &forward, &backward);
	x.c->temporary_bytes = (int64_t)fmax(forward, backward);
}

void ap_op_cost_make(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	struct ap_op_cost *out)
{
	make_cost(pr, t, p, NULL, NULL, out);
}

void ap_op_cost_terms(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	ap_op_term_fn *tell, void *user)
{
	struct ap_op_cost cost;

	make_cost(pr, t, p, tell, user, &cost);
}

/* Of each exchange after a micro-batch, the same part is hidden. */
static double hidden_part(const struct ap_step *step)
{
	return step->software && !step->exchange_behind ? 1 - step->software->gradient_exposed : 0;
}

/* The part of the gradient exchange in the additive objective: it can hide only behind the backward
 * pass of the last micro-batch, 1 - (1 - gradient_exposed) / micro_batches. */
static double ap_gradient_exposed(const struct ap_step *step)
{
	return 1 - hidden_part(step) / (double)step->micro_batches;
}

double ap_op_cost_kernels_s(const struct ap_op_cost *c)
{
	return fmax(c->forward_s, c->forward_launch_s) + fmax(c->backward_s, c->backward_launch_s);
}

double ap_op_cost_total_s(const struct ap_op_cost *c, const struct ap_step *step)
{
	return ap_quantise_s(ap_op_cost_kernels_s(c) + c->forward_comm_s + c->backward_comm_s +
		c->input_s + c->optimizer_s - c->bucketed_gather_s +
		ap_gradient_exposed(step) * (c->gradient_s - c->bucketed_s) +
		(1 - hidden_part(step)) * (c->gradient_each_s - c->bucketed_each_s), step->quantum_s);
}

double ap_op_cost_hidden_s(const struct ap_op_cost *c, const struct ap_step *step)
{
	return ap_quantise_s((1 - ap_gradient_exposed(step)) * (c->gradient_s - c->bucketed_s) +
		hidden_part(step) * (c->gradient_each_s - c->bucketed_each_s), step->quantum_s);
}

double ap_op_cost_bucketed_s(const struct ap_op_cost *c, const struct ap_step *step)
{
	return ap_quantise_s(c->bucketed_gather_s + ap_gradient_exposed(step) * c->bucketed_s +
		(1 - hidden_part(step)) * c->bucketed_each_s, step->quantum_s);
}

int64_t ap_op_cost_memory_bytes(const struct ap_op_cost *c, const struct ap_task *t)
{
	int64_t again = t->recompute_sets > 0 ? c->recompute_bytes / t->recompute_sets : 0;

	return c->weight_bytes + c->gathered_bytes + c->gradient_bytes + c->optimizer_bytes +
		(c->activation_bytes - c->lent_bytes + c->read_bytes) * t->in_flight +
		c->late_bytes * t->late + again;
}
