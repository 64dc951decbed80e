/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the exchange of parameters' gradients, of their update and of halos. */
#include "faults.h"
#include "hw/group.h"

#define HOOK(name) static bool name(struct ex_world *w, const struct ex_oper *o, struct ex_comms *c)

/* All ranks that hold the same slice. */
static void holders(const struct ap_layout *l, int64_t ndev, struct ap_axes *out)
{
	int64_t end = ndev;

	*out = (struct ap_axes){0};
	while (end > 1) {
		int64_t stride = 1, top = 1;

		for (int d = 0; d < l->rank; d++) {
			int64_t e = (int64_t)l->dim[d].stride * l->dim[d].cut;

			if (l->dim[d].cut > 1 && e <= end && e > top) {
				top = e;
				stride = l->dim[d].stride;
			}
		}
		ap_axes_add(out, (struct ap_axis){(int32_t)top, (int32_t)(end / top)});
		end = stride;
	}
}

HOOK(no_gradient)
{
	(void)w, (void)o;
	return ex_drop_comm(c, ex_first_comm(c, AP_PHASE_GRADIENT));
}

/* The innermost axis loses a factor of two or all. */
HOOK(half_gradient)
{
	struct ap_comm *g = ex_first_comm(c, AP_PHASE_GRADIENT);
	struct ap_axis *last;

	(void)w, (void)o;
	if (!g || g->kind != AP_COLL_ALLREDUCE)
		return false;
	last = &g->axes.axis[g->axes.n - 1];
	if (last->size % 2 == 0 && last->size > 2)
		last->size /= 2;
	else
		g->axes.n--;
	return g->axes.n > 0 || ex_drop_comm(c, g);
}

HOOK(gradient_without_repeats)
{
	struct ap_comm *g = ex_first_comm(c, AP_PHASE_GRADIENT);
	struct ap_axes axes;

	if (w->executor != AP_EXECUTOR_MINDSPORE || !g)
		return false;
	ex_lacking(o, g->operand, &axes);
	return axes.n ? ex_regroup_comm(g, &axes) : ex_drop_comm(c, g);
}

HOOK(gradient_of_all_holders)
{
	struct ap_comm *g = ex_first_comm(c, AP_PHASE_GRADIENT);
	struct ap_axes axes;

	if (w->executor != AP_EXECUTOR_GENERIC || !g)
		return false;
	holders(&o->in[g->operand], w->ndev, &axes);
	return ex_regroup_comm(g, &axes);
}

HOOK(gradient_over_another_axis)
{
	(void)o;
	return ex_move_comm(w, ex_first_comm(c, AP_PHASE_GRADIENT));
}

HOOK(gradient_twice)
{
	struct ap_comm *g = ex_first_comm(c, AP_PHASE_GRADIENT);

	(void)w, (void)o;
	return g && g->kind == AP_COLL_ALLREDUCE && ex_double_comm(c, g);
}

static struct ap_comm *halo(struct ex_comms *c, enum ap_phase phase, int n)
{
	return ex_nth_comm(c, phase, AP_COLL_NEIGHBOREXCHANGE, EX_OF_OPERAND, n);
}

/* Rows come, columns do not: the corners are missing, too. */
HOOK(rows_without_columns)
{
	(void)w, (void)o;
	ex_drop_comm(c, halo(c, AP_PHASE_BACKWARD, 1));
	return ex_drop_comm(c, halo(c, AP_PHASE_FORWARD, 1));
}

bool ex_fault_no_halo(struct ex_world *w, const struct ex_oper *o, struct ex_comms *c)
{
	bool any = false;

	(void)w, (void)o;
	while (ex_drop_comm(c, halo(c, AP_PHASE_FORWARD, 0)))
		any = true;
	while (ex_drop_comm(c, halo(c, AP_PHASE_BACKWARD, 0)))
		;
	return any;
}

HOOK(no_halo_back)
{
	(void)w, (void)o;
	return ex_drop_comm(c, halo(c, AP_PHASE_BACKWARD, 0));
}

/* Both ways: what the first brings no longer holds what the second brought. */
HOOK(halos_in_other_order)
{
	struct ap_comm *first = halo(c, AP_PHASE_FORWARD, 0), *second = halo(c, AP_PHASE_FORWARD, 1);
	struct ap_comm kept;

	(void)w, (void)o;
	if (!second)
		return false;
	kept = *first;
	*first = *second;
	*second = kept;
	return true;
}

HOOK(halos_back_in_other_order)
{
	struct ap_comm *first = halo(c, AP_PHASE_BACKWARD, 0);
	struct ap_comm *second = halo(c, AP_PHASE_BACKWARD, 1), kept;

	(void)w, (void)o;
	if (!second)
		return false;
	kept = *first;
	*first = *second;
	*second = kept;
	return true;
}

HOOK(no_weight_gather)
{
	(void)w, (void)o;
	return ex_drop_comm(c, ex_first_comm(c, AP_PHASE_OPTIMIZER));
}

/* Ranks that do not share the update keep parts of the sum to themselves. */
HOOK(no_rest_of_gradient)
{
	struct ap_comm *a = ex_first_comm(c, AP_PHASE_GRADIENT), *b = a ? a + 1 : NULL;

	(void)w, (void)o;
	if (!a || b == &c->v[c->n] || b->phase != AP_PHASE_GRADIENT || b->operand != a->operand)
		return false;
	return ex_drop_comm(c, b);
}

HOOK(gradient_of_another_operand)
{
	(void)w;
	return ex_misname_comm(o, ex_first_comm(c, AP_PHASE_GRADIENT));
}

HOOK(halo_of_another_operand)
{
	(void)w;
	return ex_misname_comm(o, halo(c, AP_PHASE_FORWARD, 0));
}

const struct ex_fault ex_faults_gradient[] = {
	{"no-gradient", "a parameter's gradient is not exchanged", "MatMul BiasAdd LayerNorm Gather",
		.comms = no_gradient},
	{"half-gradient", "it is exchanged between half of the ranks", "MatMul BiasAdd LayerNorm",
		.comms = half_gradient},
	{"gradient-without-repeats", "it is not exchanged between repeats", "MatMul Mul Gather",
		.comms = gradient_without_repeats},
	{"gradient-of-all-holders", "whole gradients of repeats are added up", "MatMul BiasAdd",
		.comms = gradient_of_all_holders},
	{"gradient-over-another-axis", "the gradient is exchanged over other ranks, as many",
		"MatMul BiasAdd", .comms = gradient_over_another_axis},
	{"gradient-twice", "a gradient is exchanged twice", "MatMul BiasAdd",
		.comms = gradient_twice},
	{"rows-without-columns", "rows of the neighbours come, columns do not", "Conv2D",
		.comms = rows_without_columns},
	{"no-halo", "nothing comes of the neighbours", "Conv2D", .comms = ex_fault_no_halo},
	{"no-halo-back", "gradients of a halo do not go back", "Conv2D", .comms = no_halo_back},
	{"halos-in-other-order", "columns are charged before rows", "Conv2D",
		.comms = halos_in_other_order},
	{"halos-back-in-other-order", "gradients of a halo go back in the wrong order", "Conv2D",
		.comms = halos_back_in_other_order},
	{"no-weight-gather", "updated rows of a weight are not gathered", "MatMul Gather",
		.comms = no_weight_gather},
	{"no-rest-of-gradient", "ranks that do not share an update do not add their parts",
		"MatMul BiasAdd Gather", .comms = no_rest_of_gradient},
	{"gradient-of-another-operand", "the gradient of another parameter is exchanged", "MatMul",
		.comms = gradient_of_another_operand},
	{"halo-of-another-operand", "the neighbours' rows of another operand", "Conv2D",
		.comms = halo_of_another_operand},
	{0},
};
