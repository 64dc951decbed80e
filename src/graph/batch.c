/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which dimensions carry the batch. It starts at batch_dim of the inputs and follows the factors of
 * the bound rules: a factor carries it when it heads a dimension that does (the outermost of a
 * composed one: batch before sequence), and a dimension when the factor that heads it does. It also
 * goes back to what an operator combines with the batch: labels are of the batch, whether the file
 * says so or not. Parameters and constants never carry it.
 */
#include <inttypes.h>
#include <string.h>

#include "graph/load.h"

enum { MOST_PASSES = 8 }; /* there and back; one is enough but for the oddest graphs */

static uint32_t heads(const struct ap_operand *o, uint8_t dims)
{
	uint32_t mask = 0;

	for (uint8_t i = 0; i < o->rank; i++)
		if (dims >> i & 1 && o->dim[i].n > 0)
			mask |= UINT32_C(1) << o->dim[i].factor[0];
	return mask;
}

static uint32_t factors_with(const struct ap_bound *b, uint8_t flag)
{
	uint32_t mask = 0;

	for (uint8_t f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & flag)
			mask |= UINT32_C(1) << f;
	return mask;
}

/* Factors that the tensors' marks are on; mixed ones may be among them. */
static uint32_t marked_factors(const struct ap_load *l, const struct ap_raw_node *n)
{
	uint32_t mask = 0;

	for (uint16_t k = 0; k < n->n.bound.nin; k++)
		mask |= heads(&n->n.bound.in[k], l->tensors.v[n->in[k]].t.batch);
	for (uint16_t k = 0; k < n->n.bound.nout; k++)
		mask |= heads(&n->n.bound.out[k], l->tensors.v[n->out[k]].t.batch);
	return mask;
}

static uint32_t batch_factors(const struct ap_load *l, const struct ap_raw_node *n)
{
	return marked_factors(l, n) & ~factors_with(&n->n.bound, AP_FACTOR_MIXED);
}

static uint8_t headed_dims(const struct ap_operand *o, uint32_t factors)
{
	uint8_t mask = 0;

	for (uint8_t i = 0; i < o->rank; i++)
		if (o->dim[i].n > 0 && factors >> o->dim[i].factor[0] & 1)
			mask |= (uint8_t)(1 << i);
	return mask;
}

/* Is one of the factors inside a dimension that another one heads? */
static bool is_buried(const struct ap_operand *o, uint32_t factors)
{
	for (uint8_t i = 0; i < o->rank; i++)
		for (uint8_t k = 1; k < o->dim[i].n; k++)
			if (factors >> o->dim[i].factor[k] & 1 && !(factors >> o->dim[i].factor[0] & 1))
				return true;
	return false;
}

static bool mark_tensor(struct ap_tensor *t, const struct ap_operand *o, uint32_t factors)
{
	uint8_t mask = headed_dims(o, factors);

	if (t->kind == AP_TENSOR_PARAM || t->kind == AP_TENSOR_CONST || !(mask & ~t->batch))
		return false;
	t->batch |= mask;
	return true;
}

/* Spreads marks among the operator's operands and results; true when one was new. */
static bool mark_node(struct ap_load *l, struct ap_raw_node *n)
{
	struct ap_bound *b = &n->n.bound;
	uint32_t factors = batch_factors(l, n), mixed = marked_factors(l, n) & ~factors;
	bool changed = false;

	for (uint8_t f = 0; f < b->nfactor; f++)
		if (factors >> f & 1)
			b->factor[f].flags |= AP_FACTOR_BATCH;
		else if (mixed >> f & 1)
			b->factor[f].flags |= AP_FACTOR_FROZEN; /* its length is not the batch's */
	for (uint16_t k = 0; k < b->nin; k++)
		changed |= mark_tensor(&l->tensors.v[n->in[k]].t, &b->in[k], factors);
	for (uint16_t k = 0; k < b->nout; k++)
		changed |= mark_tensor(&l->tensors.v[n->out[k]].t, &b->out[k], factors);
	return changed;
}

static void say_mixed(struct ap_load *l, const struct ap_raw_node *n, const char *why,
	const char *tensor)
{
	ap_load_say(l, AP_CHECK_BATCH_MIXED, n->at, n->n.name,
		"%s%s%s; micro-batches would change the result", why, tensor ? " " : "",
		tensor ? ap_load_name(l, tensor) : "");
}

/* Where a micro-batch would not compute what the whole batch does. */
static void judge_node(struct ap_load *l, const struct ap_raw_node *n)
{
	const struct ap_bound *b = &n->n.bound;
	uint32_t factors = batch_factors(l, n);
	bool lost = false, inherited = false, buried = false;

	for (uint16_t k = 0; k < n->nin; k++) {
		const struct ap_tensor *t = &l->tensors.v[n->in[k]].t;
		const struct ap_operand *o = &b->in[k];

		inherited |= t->batch & (t->batch - 1);
		buried |= is_buried(o, factors);
		if (headed_dims(o, factors) & ~t->batch)
			say_mixed(l, n, "the batch meets a dimension of", t->name);
		for (uint8_t i = 0; i < o->rank; i++)
			lost |= t->batch >> i & 1 && o->dim[i].n == 0 && o->size[i] > 1;
	}
	lost |= marked_factors(l, n) & factors_with(b, AP_FACTOR_FROZEN);
	for (uint16_t k = 0; k < b->nout; k++)
		buried |= is_buried(&b->out[k], factors);
	for (uint16_t k = 0; k < b->nout; k++)
		if (ap_rule_is_inner(b, k, factors)) {
			say_mixed(l, n, "samples of the batch meet in a statistic", NULL);
			break;
		}
	if (lost)
		say_mixed(l, n, "the batch is in a dimension that stays whole", NULL);
	if (buried)
		say_mixed(l, n, "the batch is inside a dimension, not outermost in it", NULL);
	if (factors & (factors - 1) && !inherited)
		say_mixed(l, n, "two dimensions carry the batch", NULL);
}

void ap_load_mark_batch(struct ap_load *l)
{
	bool changed = l->batch > 0;

	for (int pass = 0; changed && pass < MOST_PASSES; pass++) {
		changed = false;
		for (size_t i = 0; i < l->nodes.n; i++)
			changed |= mark_node(l, &l->nodes.v[l->order[i]]);
		for (size_t i = l->nodes.n; changed && i-- > 0;)
			mark_node(l, &l->nodes.v[l->order[i]]);
	}
}

void ap_load_judge_batch(struct ap_load *l)
{
	for (size_t i = 0; l->params->micro_batches > 1 && i < l->nodes.n; i++)
		judge_node(l, &l->nodes.v[l->order[i]]);
}
