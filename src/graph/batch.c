/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the dimensions that carry the batch, and its place in them. Starts at batch_dim of the
 * inputs and follows the factors of the bound rules: from a dimension to the factor that contains
 * the place, and from a factor to all its dimensions; through views in element order. Also goes
 * back to what an operator combines with the batch: labels are of the batch, even if the file does
 * not mark them. Parameters and constants never carry it. */
#include "graph/batch.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "rule/legal.h"

enum { MOST_PASSES = 8 }; /* there and back; one suffices for all but the oddest graphs */

/* The batch in an operator's factors. */
struct carried {
	int64_t outer[AP_MAX_FACTOR]; /* place of the batch in a factor, as in ap_tensor; 0: none */
	uint32_t factors;             /* mask of factors with the batch, possibly mixed ones */
	bool clash;                   /* a factor has it at two places */
};

static bool is_view(const struct ap_raw_node *n)
{
	return n->n.bound.row->unit == AP_OP_VIEW && n->n.bound.nin == 1 && n->n.bound.nout == 1;
}

static struct ap_tensor *operand(struct ap_load *l, const struct ap_raw_node *n, int k)
{
	return &l->tensors.v[n->in[k]].t;
}

static struct ap_tensor *result(struct ap_load *l, const struct ap_raw_node *n, int k)
{
	return &l->tensors.v[n->out[k]].t;
}

static bool mark(struct ap_tensor *t, uint8_t dim, int64_t outer)
{
	if (t->kind == AP_TENSOR_PARAM || t->kind == AP_TENSOR_CONST || t->batch >> dim & 1)
		return false;
	t->batch |= (uint8_t)(1 << dim);
	t->batch_outer[dim] = outer;
	return true;
}

/* Is place `outer` within a part of this length, after `before` parts? If so, *inside: the place in
 * the part, 0 if it is between elements. A part of one element holds no place unless the batch has
 * one sample. */
static bool is_within(const struct ap_load *l, int64_t outer, int64_t before, int64_t length,
	int64_t *inside)
{
	if (outer >= before * length && !(l->batch == 1 && length == 1 && outer == before))
		return false;
	*inside = outer % before == 0 && length % (outer / before) == 0 ? outer / before : 0;
	return true;
}

/* The factor of a dimension that contains a place, and the place in it; -1 if none does. */
static int factor_at(const struct ap_load *l, const struct ap_bound *b, const struct ap_dim *dim,
	int64_t outer, int64_t *inside)
{
	int64_t before = 1;

	for (uint8_t k = 0; k < dim->n; k++) {
		int f = dim->factor[k];

		if (is_within(l, outer, before, b->factor[f].size, inside))
			return *inside > 0 ? f : -1;
		before *= b->factor[f].size;
	}
	return -1;
}

static void carry(const struct ap_load *l, const struct ap_bound *b, const struct ap_operand *o,
	const struct ap_tensor *t, struct carried *c)
{
	for (uint8_t d = 0; d < o->rank; d++) {
		int64_t inside;
		int f = t->batch >> d & 1
			? factor_at(l, b, &o->dim[d], t->batch_outer[d], &inside) : -1;

		if (f < 0)
			continue;
		c->clash |= c->factors >> f & 1 && c->outer[f] != inside;
		if (!(c->factors >> f & 1))
			c->outer[f] = inside;
		c->factors |= UINT32_C(1) << f;
	}
}

/* Collects the batch marks of an operator's tensors in its factors. */
static struct carried carried_by(struct ap_load *l, const struct ap_raw_node *n)
{
	const struct ap_bound *b = &n->n.bound;
	struct carried c = {.factors = 0};

	for (uint16_t k = 0; k < b->nin; k++)
		carry(l, b, &b->in[k], operand(l, n, k), &c);
	for (uint16_t k = 0; k < b->nout; k++)
		carry(l, b, &b->out[k], result(l, n, k), &c);
	return c;
}

static uint32_t factors_with(const struct ap_bound *b, uint8_t flag)
{
	uint32_t mask = 0;

	for (uint8_t f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & flag)
			mask |= UINT32_C(1) << f;
	return mask;
}

/* Place of the batch in a dimension, from its factors; 0 if none. *n: number of factors that carry
 * it. */
static int64_t place_in(const struct ap_bound *b, const struct ap_dim *dim, const struct carried *c,
	uint32_t factors, int *n)
{
	int64_t before = 1, place = 0;

	*n = 0;
	for (uint8_t k = 0; k < dim->n; k++) {
		int f = dim->factor[k];

		if (factors >> f & 1 && (*n)++ == 0)
			place = before * c->outer[f];
		before *= b->dealt >> f & 1 ? 1 : b->factor[f].size;
	}
	return place;
}

static bool mark_tensor(struct ap_tensor *t, const struct ap_bound *b, const struct ap_operand *o,
	const struct carried *c, uint32_t factors)
{
	bool changed = false;
	int n;

	for (uint8_t d = 0; d < o->rank; d++) {
		int64_t place = place_in(b, &o->dim[d], c, factors, &n);

		changed |= place > 0 && mark(t, d, place);
	}
	return changed;
}

/* The dimension of t that contains a place among all elements; -1 if none does. */
static int dim_at(const struct ap_load *l, const struct ap_operand *t, int64_t outer, int64_t *inside)
{
	int64_t before = 1;

	for (int d = 0; d < t->rank; d++) {
		if (is_within(l, outer, before, t->size[d], inside))
			return *inside > 0 ? d : -1;
		before *= t->size[d];
	}
	return -1;
}

/* Place of dimension d's batch among all elements of t. */
static int64_t flat_place(const struct ap_tensor *t, const struct ap_operand *o, uint8_t d)
{
	int64_t place = t->batch_outer[d];

	for (uint8_t i = 0; i < d; i++)
		place *= o->size[i];
	return place;
}

static bool mark_through(const struct ap_load *l, const struct ap_tensor *from,
	const struct ap_operand *a, struct ap_tensor *to, const struct ap_operand *b)
{
	bool changed = false;
	int64_t inside;

	for (uint8_t d = 0; d < a->rank; d++) {
		int at = from->batch >> d & 1 ? dim_at(l, b, flat_place(from, a, d), &inside) : -1;

		changed |= at >= 0 && mark(to, (uint8_t)at, inside);
	}
	return changed;
}

/* Spreads marks among operands and results of an operator; true if one is new. */
static bool mark_node(struct ap_load *l, struct ap_raw_node *n)
{
	struct ap_bound *b = &n->n.bound;
	bool changed = false;
	struct carried c;
	uint32_t factors;

	if (is_view(n)) {
		struct ap_tensor *in = operand(l, n, 0), *out = result(l, n, 0);

		changed = mark_through(l, in, &b->in[0], out, &b->out[0]);
		changed |= mark_through(l, out, &b->out[0], in, &b->in[0]);
	}
	c = carried_by(l, n);
	factors = c.factors & ~factors_with(b, AP_FACTOR_MIXED);
	for (uint8_t f = 0; f < b->nfactor; f++)
		if (factors >> f & 1)
			b->factor[f].flags |= AP_FACTOR_BATCH;
		else if (c.factors >> f & 1)
			b->factor[f].flags |= AP_FACTOR_FROZEN; /* its length does not scale with
					the batch */
	for (uint16_t k = 0; k < b->nin; k++)
		changed |= mark_tensor(operand(l, n, k), b, &b->in[k], &c, factors);
	for (uint16_t k = 0; k < b->nout; k++)
		changed |= mark_tensor(result(l, n, k), b, &b->out[k], &c, factors);
	return changed;
}

static void say_mixed(struct ap_load *l, const struct ap_raw_node *n, const char *why,
	const char *tensor)
{
	ap_load_say(l, AP_CHECK_BATCH_MIXED, n->at, n->n.name,
		"%s%s%s; micro-batches would change the result", why, tensor ? " " : "",
		tensor ? ap_load_name(l, tensor) : "");
}

/* Is the batch in a dimension of t that is in no factor? */
static bool is_lost(const struct ap_load *l, const struct ap_bound *b, const struct ap_operand *o,
	const struct ap_tensor *t)
{
	int64_t inside;

	for (uint8_t d = 0; d < o->rank; d++)
		if (t->batch >> d & 1 && o->size[d] > 1 &&
			factor_at(l, b, &o->dim[d], t->batch_outer[d], &inside) < 0)
			return true;
	return false;
}

/* Does a dimension of t carry the batch by its factors but not by its mark, or twice? */
static bool is_at_odds(const struct ap_bound *b, const struct ap_operand *o, const struct ap_tensor *t,
	const struct carried *c, uint32_t factors)
{
	for (uint8_t d = 0; d < o->rank; d++) {
		int n;
		int64_t place = place_in(b, &o->dim[d], c, factors, &n);

		if (place > 0 && (n > 1 || !(t->batch >> d & 1)))
			return true;
	}
	return false;
}

/* Reports if micro-batches would not compute the same as the whole batch. */
static void judge_node(struct ap_load *l, const struct ap_raw_node *n)
{
	const struct ap_bound *b = &n->n.bound;
	struct carried c = carried_by(l, n);
	uint32_t factors = c.factors & ~factors_with(b, AP_FACTOR_MIXED);
	bool lost = (c.factors & factors_with(b, AP_FACTOR_FROZEN)) != 0, inherited = false;

	for (uint16_t k = 0; k < n->nin; k++) {
		const struct ap_tensor *t = operand(l, n, k);

		inherited |= t->batch & (t->batch - 1);
		if (is_at_odds(b, &b->in[k], t, &c, factors))
			say_mixed(l, n, "the batch meets a dimension of", t->name);
		lost |= !is_view(n) && is_lost(l, b, &b->in[k], t);
	}
	if (lost)
		say_mixed(l, n, "the batch is in a dimension that stays whole", NULL);
	if (factors & (factors - 1) && !inherited)
		say_mixed(l, n, "two dimensions carry the batch", NULL);
	if (c.clash)
		say_mixed(l, n, "the batch lies in another order in one of its tensors", NULL);
	for (uint16_t k = 0; k < b->nout; k++)
		if (ap_rule_is_inner(b, k, factors)) {
			say_mixed(l, n, "samples of the batch meet in a statistic", NULL);
			return;
		}
}

static bool say_undivided(struct ap_load *l, const struct ap_raw_node *n, int64_t length)
{
	ap_load_say(l, AP_CHECK_BATCH_PARTS, n->at, n->n.name,
		"%" PRId64 " micro-batches do not divide the length of %" PRId64
		" that carries the batch", l->params->micro_batches, length);
	return false;
}

/* Does every batch dimension split into whole elements per micro-batch? */
static bool divides_tensor(struct ap_load *l, const struct ap_raw_node *n, const struct ap_tensor *t)
{
	for (uint8_t d = 0; d < t->shape.rank; d++)
		if (t->batch >> d & 1 &&
			t->shape.dim[d] / t->batch_outer[d] % l->params->micro_batches)
			return say_undivided(l, n, t->shape.dim[d] / t->batch_outer[d]);
	return true;
}

/* Is a view's result of a micro-batch in one dimension? */
static bool divides_view(struct ap_load *l, const struct ap_raw_node *n)
{
	const struct ap_operand *a = &n->n.bound.in[0], *b = &n->n.bound.out[0];
	const struct ap_tensor *in = operand(l, n, 0);
	int64_t inside;

	for (uint8_t d = 0; d < a->rank; d++)
		if (in->batch >> d & 1 && a->size[d] > 1 &&
			dim_at(l, b, flat_place(in, a, d), &inside) < 0) {
			ap_load_say(l, AP_CHECK_BATCH_PARTS, n->at, n->n.name,
				"the samples of a micro-batch are in no one dimension of the result");
			return false;
		}
	return true;
}

/* Can the operator run on a micro-batch? The first that cannot is reported, not its successors. */
static bool divides_node(struct ap_load *l, const struct ap_raw_node *n)
{
	const struct ap_bound *b = &n->n.bound;
	struct carried c = carried_by(l, n);
	uint32_t factors = c.factors & ~factors_with(b, AP_FACTOR_MIXED);

	for (uint16_t k = 0; k < n->n.bound.nout; k++)
		if (!divides_tensor(l, n, result(l, n, k)))
			return false;
	for (uint8_t f = 0; f < b->nfactor; f++)
		if (factors >> f & 1 && b->factor[f].size / c.outer[f] % l->params->micro_batches)
			return say_undivided(l, n, b->factor[f].size / c.outer[f]);
	return !is_view(n) || divides_view(l, n);
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
	int64_t parts = l->params->micro_batches;
	bool divides = l->batch > 0 && parts > 0 && l->batch % parts == 0;
	bool *of_all = AP_NEW_N(l->ctx->scratch, bool, l->tensors.n);

	for (size_t i = 0; parts > 1 && i < l->nodes.n; i++) {
		const struct ap_raw_node *n;
		bool sample = false, all = false;

		judge_node(l, &l->nodes.v[l->order[i]]);
		/* find where results of all samples are combined with samples; of_all: tensors
		 * without the batch that were made from it */
		n = &l->nodes.v[l->order[i]];
		for (uint16_t k = 0; k < n->n.bound.nin; k++) {
			sample |= operand(l, n, k)->batch != 0;
			all |= of_all[n->in[k]];
		}
		for (uint16_t k = 0; k < n->n.bound.nout; k++)
			of_all[n->out[k]] = (sample || all) && !result(l, n, k)->batch;
		if (sample && all)
			say_mixed(l, n, "samples meet what was made of all of them", NULL);
	}
	for (size_t i = 0; parts > 1 && i < l->nodes.n && divides; i++)
		divides = divides_node(l, &l->nodes.v[l->order[i]]);
}
