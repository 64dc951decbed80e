/* SPDX-License-Identifier: Apache-2.0 */
/* What MindSpore says an operator costs (formats 6.1). */
#include "cost/ms_cost.h"

#include <string.h>

#include "shard/space.h"

struct op {
	const struct ap_placement *p;
	const struct ap_bound *b;
	const struct ap_step *step;
	bool cross_batch;
};

static double slice_elements(const struct op *o, const struct ap_operand *t)
{
	double elements = 1;

	for (int d = 0; d < t->rank; d++) {
		elements *= (double)t->size[d];
		for (int i = 0; i < t->dim[d].n; i++) {
			int f = t->dim[d].factor[i];

			elements = elements / (double)o->b->factor[f].size *
				(double)ap_factor_extent(o->b, f, o->step) / ap_placement_parts(o->p, t, f);
		}
	}
	return elements;
}

static double slice_bytes(const struct op *o, const struct ap_operand *t)
{
	return slice_elements(o, t) * ap_dtype_bytes(t->dtype);
}

static double operand_bytes(const struct op *o)
{
	double bytes = 0;

	for (unsigned i = 0; i < o->b->nin; i++)
		bytes += slice_bytes(o, &o->b->in[i]);
	return bytes;
}

static double result_bytes(const struct op *o)
{
	return slice_bytes(o, &o->b->out[0]);
}

/* Is one of these factors cut? */
static bool is_cut(const struct op *o, uint32_t factors)
{
	for (int f = 0; f < o->b->nfactor; f++)
		if (factors >> f & 1 && o->p->count[f] > 1)
			return true;
	return false;
}

static bool is_dim_cut(const struct op *o, const struct ap_operand *t, int d)
{
	for (int i = 0; d >= 0 && d < t->rank && i < t->dim[d].n; i++)
		if (ap_placement_parts(o->p, t, t->dim[d].factor[i]) > 1)
			return true;
	return false;
}

static bool is_type(const struct ap_bound *b, const char *const *names)
{
	while (*names && strcmp(*names, b->row->name) != 0)
		names++;
	return *names != NULL;
}

/* Factors that are summed over. */
static uint32_t summed(const struct ap_bound *b)
{
	return b->in[0].factors & ~b->out[0].factors;
}

static bool is_product(const struct ap_bound *b)
{
	return b->row->unit == AP_OP_CUBE && b->nwindow == 0 && b->nin >= 2;
}

static void product(const struct op *o, struct ap_ms_cost *out)
{
	out->computation = slice_bytes(o, &o->b->in[0]) + slice_bytes(o, &o->b->in[1]);
	if (is_cut(o, summed(o->b)))
		out->computation += result_bytes(o);
	if (is_dim_cut(o, &o->b->in[0], o->b->in[0].rank - 1))
		out->communication = result_bytes(o);
}

static bool is_reduction(const struct ap_bound *b)
{
	return b->nin == 1 && summed(b) && b->row->unit == AP_OP_VECTOR && b->nwindow == 0;
}

/* Is the first dimension cut, and nothing else? */
static bool is_data_parallel(const struct op *o)
{
	const struct ap_operand *x = &o->b->in[0];

	for (int d = 1; d < x->rank; d++)
		if (is_dim_cut(o, x, d))
			return false;
	return is_dim_cut(o, x, 0);
}

static void reduction(const struct op *o, struct ap_ms_cost *out)
{
	out->computation = operand_bytes(o);
	if (!is_cut(o, summed(o->b)))
		return;
	out->computation += result_bytes(o) * (o->b->row->reduce == AP_REDUCE_MEAN ? 2 : 1);
	if (!o->cross_batch || !is_data_parallel(o))
		out->communication = result_bytes(o);
}

static void batch_norm(const struct op *o, struct ap_ms_cost *out)
{
	out->computation = operand_bytes(o);
	if (is_dim_cut(o, &o->b->in[0], 1))
		out->communication = slice_bytes(o, &o->b->in[0]);
}

static void segment(const struct op *o, struct ap_ms_cost *out)
{
	out->computation = operand_bytes(o) + result_bytes(o);
	for (int d = 0; o->b->nin > 1 && d < o->b->in[1].rank; d++)
		if (is_dim_cut(o, &o->b->in[0], d))
			out->communication = result_bytes(o);
}

static uint32_t looked_up(const struct ap_bound *b)
{
	uint32_t mask = 0;

	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & AP_FACTOR_LOOKUP)
			mask |= UINT32_C(1) << f;
	return mask & b->in[0].factors;
}

static void gather(const struct op *o, struct ap_ms_cost *out)
{
	const struct ap_operand *table = &o->b->in[0], *indices = &o->b->in[1];
	double rows = slice_elements(o, indices);

	out->computation = slice_bytes(o, table) + slice_bytes(o, indices);
	if (!is_cut(o, looked_up(o->b)))
		return;
	out->computation = 3 * slice_bytes(o, table) + 7 * slice_bytes(o, indices);
	out->communication = ap_dtype_bytes(o->b->out[0].dtype) *
		(table->rank == 2 ? slice_elements(o, &o->b->out[0]) : rows);
}

static void of_type(const struct op *o, struct ap_ms_cost *out)
{
	static const char *const batch_norms[] = {"BatchNorm", "SyncBatchNorm", NULL};
	static const char *const by_result[] = {"Softmax", "LogSoftmax", "Tile", NULL};
	static const char *const by_first[] = {"OneHot", NULL}, *const dropouts[] = {"Dropout", NULL};
	const struct ap_bound *b = o->b;

	if (is_product(b))
		product(o, out);
	else if (is_type(b, batch_norms))
		batch_norm(o, out);
	else if (strncmp(b->row->name, "UnsortedSegment", 15) == 0)
		segment(o, out);
	else if (b->nin == 2 && looked_up(b))
		gather(o, out);
	else if (is_type(b, by_result))
		out->computation = result_bytes(o);
	else if (is_type(b, dropouts))
		out->computation = 1.125 * operand_bytes(o);
	else if (is_type(b, by_first))
		out->computation = slice_bytes(o, &b->in[0]);
	else if (is_reduction(b))
		reduction(o, out);
	else
		out->computation = operand_bytes(o);
}

/* Does the first vector of the strategy begin with all devices? */
static bool is_preferred(const struct ap_placement *p)
{
	uint8_t rank[1] = {0};
	int32_t cut[1][AP_MAX_RANK] = {{0}};

	return ap_space_to_strategy(p, rank, cut, 1) > 0 && rank[0] > 0 && cut[0][0] == p->ndev;
}

void ap_ms_operator_cost(const struct ap_placement *p, const struct ap_step *step, bool cross_batch,
	struct ap_ms_cost *out)
{
	struct op o = {p, p->bound, step, cross_batch};

	*out = (struct ap_ms_cost){0};
	if (p->bound->nin == 0)
		return;
	of_type(&o, out);
	if (is_preferred(p)) {
		out->computation -= out->computation > 1;
		out->communication -= out->communication > 1;
	}
	out->communication = ap_ms_refine(out->communication);
}
