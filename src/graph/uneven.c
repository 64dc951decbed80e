/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/uneven.h"

#include <math.h>
#include <string.h>

#include "rule/attr.h"

enum { EXPERTS = 1 }; /* the dimension of what MoeDispatch and MoeWeights give */

static struct ap_tensor *tensor(struct ap_load *l, ap_id id)
{
	return &l->tensors.v[id].t;
}

static void mark(struct ap_tensor *t, int dim, double imbalance)
{
	t->uneven |= (uint8_t)(1 << dim);
	t->imbalance = fmax(t->imbalance, imbalance);
}

/* From the operands of an operator to its results. A dimension is uneven as a whole, so none that is made of
 * several factors is. */
static void carry(struct ap_load *l, struct ap_raw_node *n)
{
	struct ap_bound *b = &n->n.bound;
	double imbalance = 0;
	uint32_t factors = 0;

	for (uint16_t i = 0; i < b->nin; i++) {
		const struct ap_tensor *t = tensor(l, n->in[i]);

		for (int d = 0; d < t->shape.rank; d++)
			if (t->uneven >> d & 1 && b->in[i].dim[d].n == 1) {
				factors |= UINT32_C(1) << b->in[i].dim[d].factor[0];
				imbalance = fmax(imbalance, t->imbalance);
			}
	}
	for (int f = 0; f < b->nfactor; f++)
		if (factors >> f & 1)
			b->factor[f].flags |= AP_FACTOR_UNEVEN;
	for (uint16_t o = 0; o < b->nout; o++)
		for (int d = 0; d < b->out[o].rank; d++)
			if (b->out[o].dim[d].n == 1 && factors >> b->out[o].dim[d].factor[0] & 1)
				mark(tensor(l, n->out[o]), d, imbalance);
}

void ap_load_mark_uneven(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		struct ap_raw_node *n = &l->nodes.v[l->order[i]];
		bool deals = !strcmp(n->n.type, "MoeDispatch") || !strcmp(n->n.type, "MoeWeights");
		const struct ap_attr *a = deals ? ap_attr_get(&n->n.attrs, "imbalance") : NULL;

		carry(l, n);
		if (a && !(a->f >= 1))
			ap_load_say(l, AP_CHECK_OPERATOR_ATTR, n->at, n->n.name,
				"imbalance of %g; expected at least 1: the tokens of the expert with most of "
				"them / the mean", a->f);
		else if (a)
			mark(tensor(l, n->out[0]), EXPERTS, a->f);
	}
}
