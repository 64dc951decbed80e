/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"
#include "hybrid/hybrid_parts.h"
#include "shard/space.h"

static const struct hybrid_sink nowhere = {HYBRID_GATHERED, 1, AP_NONE, 0, 0};

/* Where results' dimensions that factor f heads end: the best of them. */
static struct hybrid_sink after(const struct hybrid *s, const struct ap_node *n, int f)
{
	struct hybrid_sink best = nowhere;

	for (int r = 0; r < n->bound.nout; r++) {
		const struct ap_operand *o = &n->bound.out[r];

		for (int d = 0; d < o->rank; d++)
			if (o->dim[d].n > 0 && o->dim[d].factor[0] == f &&
				s->tensor[n->out[r]].sink[d].end > best.end)
				best = s->tensor[n->out[r]].sink[d];
	}
	return best;
}

static bool in_results(const struct ap_bound *b, int f)
{
	for (int r = 0; r < b->nout; r++)
		if (b->out[r].factors >> f & 1)
			return true;
	return false;
}

static enum hybrid_end reduced(const struct hybrid_node *h, const struct ap_bound *b, int f)
{
	if (h->role == HYBRID_PRODUCT)
		return h->summed >> f & 1 ? HYBRID_PAIRED : HYBRID_GATHERED;
	return b->row->unit == AP_OP_CUBE ? HYBRID_GATHERED : HYBRID_SUMMED;
}

/* Parts of a dimension that is put apart, as query, key and value of one product are: it is gathered
 * before, and each piece may be cut again. */
static struct hybrid_sink of_pieces(const struct hybrid *s, const struct ap_node *n, uint16_t operand,
	uint8_t dim)
{
	struct hybrid_sink best = nowhere;

	for (int r = 0; r < n->bound.nout; r++) {
		const struct hybrid_sink *sink = &s->tensor[n->out[r]].sink[dim];

		if (ap_hybrid_is_piece(&n->bound, operand, r, dim) && sink->end == HYBRID_PAIRED &&
			sink->most > best.most)
			best = *sink;
	}
	return best;
}

bool ap_hybrid_is_piece(const struct ap_bound *b, int operand, int result, int dim)
{
	const struct ap_operand *in = &b->in[operand], *out = &b->out[result];

	return in->rank == out->rank && dim < in->rank && out->size[dim] > 1 &&
		out->size[dim] < in->size[dim];
}

static struct hybrid_sink of_dim(const struct hybrid *s, ap_id node, uint16_t operand, uint8_t dim)
{
	const struct ap_node *n = &s->g->node[node];
	const struct ap_bound *b = &n->bound;
	const struct ap_dim *d = &b->in[operand].dim[dim];
	struct hybrid_sink sink = nowhere;
	int32_t fits;
	int f;

	f = d->n > 0 ? d->factor[0] : -1;
	if (f < 0 || b->factor[f].flags & AP_FACTOR_FROZEN)
		return of_pieces(s, n, operand, dim);
	if (b->factor[f].flags & AP_FACTOR_BATCH)
		return nowhere;
	if (in_results(b, f)) {
		sink = after(s, n, f);
	} else {
		sink.end = reduced(&s->node[node], b, f);
		sink.most = s->tp;
	}
	fits = (int32_t)ap_gcd(sink.most, ap_factor_extent(b, f, s->step));
	if (fits < sink.most) {
		sink.most = fits;
		sink.node = node;
		sink.operand = operand;
		sink.dim = dim;
	}
	return sink;
}

/* Another use: both have to do with the cut. */
static void meet(struct hybrid_sink *a, const struct hybrid_sink *b)
{
	enum hybrid_end end = a->end > b->end ? a->end : b->end;

	if (a->end == HYBRID_GATHERED || b->end == HYBRID_GATHERED) {
		*a = nowhere;
		return;
	}
	if (b->most < a->most)
		*a = *b;
	a->end = end;
}

static void use(struct hybrid *s, ap_id node, uint16_t operand)
{
	struct hybrid_tensor *t = &s->tensor[s->g->node[node].in[operand]];
	const struct ap_operand *o = &s->g->node[node].bound.in[operand];

	for (uint8_t d = 0; d < o->rank; d++) {
		struct hybrid_sink sink = of_dim(s, node, operand, d);

		if (t->used)
			meet(&t->sink[d], &sink);
		else
			t->sink[d] = sink;
	}
	t->used = true;
}

/* Results of a network that is not trained may stay cut. */
static void outputs(struct hybrid *s)
{
	for (uint32_t i = 0; i < s->g->noutput && !s->step->training; i++)
		for (int d = 0; d < AP_MAX_RANK; d++)
			s->tensor[s->g->output[i]].sink[d] =
				(struct hybrid_sink){HYBRID_SUMMED, s->tp, AP_NONE, 0, 0};
}

void ap_hybrid_sinks(struct hybrid *s)
{
	outputs(s);
	for (ap_id i = s->g->nnode; i-- > 0;) {
		const struct ap_node *n = &s->g->node[i];
		bool after_it = s->node[i].role == HYBRID_PRODUCT;

		for (int r = 0; r < n->bound.nout; r++)
			after_it |= s->tensor[n->out[r]].product_after;
		for (uint16_t k = 0; k < n->bound.nin; k++) {
			s->tensor[n->in[k]].product_after |= after_it;
			if (n->backward || !s->step->training)
				use(s, i, k);
		}
	}
}

int32_t ap_hybrid_columns(const struct hybrid *s, ap_id node, int *factor, const struct hybrid_sink **sink)
{
	const struct ap_node *n = &s->g->node[node];
	const struct ap_operand *o = &n->bound.out[0];
	const struct hybrid_tensor *t = &s->tensor[n->out[0]];
	bool head = !t->product_after && s->step->training;

	*sink = NULL;
	for (int d = 0; d < o->rank; d++) {
		int f = o->dim[d].n > 0 ? o->dim[d].factor[0] : -1;
		int64_t extent;

		if (f < 0 || !(s->node[node].columns >> f & 1))
			continue;
		*factor = f;
		*sink = &t->sink[d];
		extent = ap_factor_extent(&n->bound, f, s->step);
		if (t->sink[d].end == HYBRID_PAIRED)
			return (int32_t)ap_gcd(t->sink[d].most, extent);
		if (t->sink[d].end == HYBRID_SUMMED || head)
			return extent % s->tp == 0 &&
				(head || t->sink[d].most == s->tp) ? s->tp : 1;
		return 1;
	}
	return 1;
}
