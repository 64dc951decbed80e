/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator keeps, brings back and works with. */
#include <math.h>
#include <string.h>

#include "cost/local.h"
#include "cost/opcost.h"

/* The copy with the halo is what the backward pass reads. */
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

/* Of a dealt parameter: the weight gathered for this use, the gradient before it is dealt. */
static void passing(const struct ap_opcost *x, int i, double *forward, double *backward)
{
	const struct ap_task_operand *in = &x->t->in[i];
	double elements = (double)ap_local_elements(&x->b->in[i], 0, x->p, x->step);
	enum ap_dtype t = ap_task_stored(x->t, i);
	struct ap_opt_shard s;

	if (!in->shardable || !in->grad || in->twin != i)
		return;
	ap_opt_shard_make(x->t, i, x->p, x->step, &s);
	if (s.regather) {
		*forward += elements * ap_dtype_bytes(t);
		*backward += in->kept && !in->cast ? elements * ap_dtype_bytes(t) : 0;
	}
	if (s.gradient)
		*backward += elements * ap_gradient_held_bytes(t, x->step);
}

/* Is the copy that the operator uses perhaps none that is held? That depends on the producer; where each
 * device has a part of its own, none was gathered. */
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

	if (!x->t->out[o].sliced)
		return bytes;
	return bytes / ap_slice_parts(&x->b->out[o], x->t->out[o].batch, x->p, x->step, &replicas);
}

/* A parameter that another stage owns and sends once: it is there for the whole step, and so is the sum
 * of its gradients. */
static bool is_received_weight(const struct ap_task *t)
{
	return t->once && strcmp(t->bound->row->name, "Receive") == 0;
}

static void received_weight(struct ap_opcost *x)
{
	const struct ap_operand *o = &x->b->out[0];

	if (!x->t->out[0].kept)
		x->c->activation_bytes += (int64_t)ap_opcost_out(x, 0);
	if (x->t->out[0].grad)
		x->c->gradient_bytes += ap_local_elements(o, 0, x->p, x->step) *
			ap_gradient_held_bytes(o->dtype, x->step);
}

/* The whole of an operand that is held in parts, while what reads it runs again and back. */
static int64_t whole_bytes(const struct ap_opcost *x, int i)
{
	const struct ap_task_operand *in = &x->t->in[i];
	struct ap_axes replicas;

	if (in->kind != AP_TENSOR_ACT || !in->regather ||
		ap_slice_parts(&x->b->in[i], in->batch, x->p, x->step, &replicas) == 1)
		return 0;
	return (int64_t)ap_opcost_in(x, i);
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
		if (out->again && !x->keeps_results)
			x->c->recompute_bytes += (int64_t)ap_opcost_out(x, o);
		if (out->grad)
			*backward += ap_opcost_out(x, o);
		if (out->grad && x->t->waits)
			x->c->late_bytes += (int64_t)ap_opcost_out(x, o);
		if (o == 0 && x->p->dealt) { /* beside what is dealt, the whole of it */
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
	if (in->share > 0 && x->b->row->unit != AP_OP_VIEW)
		x->c->read_bytes += (int64_t)ap_opcost_in(x, i) / in->share;
	x->c->recompute_bytes += whole_bytes(x, i);
	if (in->kind == AP_TENSOR_INPUT && in->kept)
		x->c->activation_bytes += (int64_t)bytes;
	if ((in->kind == AP_TENSOR_ACT || in->kind == AP_TENSOR_INPUT) && (!in->kept || in->cast))
		*forward += bytes;
	if (may_gather_again(x, i)) {
		*forward += bytes;
		*backward += bytes;
	}
	if (in->kind == AP_TENSOR_ACT && in->grad)
		*backward += bytes;
}

/* The copy that a cast leaves, and its gradient before it is cast back. */
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

static bool works(const struct ap_bound *b)
{
	return b->row->unit != AP_OP_VIEW && b->row->unit != AP_OP_LINK;
}

void ap_opcost_memory(struct ap_opcost *x)
{
	double forward = 0, backward = 0;

	if (is_received_weight(x->t))
		received_weight(x);
	if (x->halo_bytes > 0)
		halo_memory(x, &forward, &backward);
	results(x, &forward, &backward);
	for (int i = 0; i < x->b->nin; i++)
		operand(x, i, &forward, &backward);
	if (!works(x->b))
		forward = backward = 0;
	for (int i = 0; i < x->b->nin; i++)
		if (ap_opcost_casts(x, i))
			cast(x, i, &forward, &backward);
	x->c->temporary_bytes = (int64_t)fmax(forward, backward);
}
