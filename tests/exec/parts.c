/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions with cross_batch: each device keeps the reduction of its own part. */
#include <string.h>

#include "rule/attr.h"
#include "oper.h"

static bool is_mean(const char *type)
{
	return strcmp(type, "ReduceMean") == 0 || strcmp(type, "MeanExt") == 0;
}

static bool is_reduction(const char *type)
{
	return strncmp(type, "Reduce", 6) == 0 || strcmp(type, "SumExt") == 0 || is_mean(type);
}

/* Are the parts those of the batch alone, one for each device? */
static bool is_data_parallel(const struct ap_layout *l, int64_t ndev)
{
	for (int d = 1; d < l->rank; d++)
		if (l->dim[d].cut > 1)
			return false;
	return l->rank > 0 && l->dim[0].cut == ndev;
}

bool ex_stays_in_parts(const struct ex_oper *o, int64_t ndev)
{
	return is_reduction(o->type) && ap_attr_bool(o->attrs, "cross_batch", false) &&
		(!is_mean(o->type) || is_data_parallel(&o->in[0], ndev));
}

static struct ap_shape shape_of(const struct ex_tensor *t)
{
	struct ap_shape s = {.rank = t->box.rank, .dtype = t->box.dtype};

	memcpy(s.dim, t->box.size, sizeof s.dim);
	return s;
}

/* The same numbers as a tensor of their own. */
static struct ex_shards alone(struct ex_world *w, const struct ex_tensor *slice)
{
	struct ex_shards s = ex_shards_new(w->ctx->scratch, 1);
	struct ap_shape shape = shape_of(slice);

	s.of[0].box = ex_box_whole(&shape);
	s.of[0].v = slice->v;
	return s;
}

static bool same(const struct ex_tensor *a, const struct ex_tensor *b)
{
	return ex_count(&a->box) == ex_count(&b->box) &&
		memcmp(a->v, b->v, (size_t)ex_count(&a->box) * sizeof *a->v) == 0;
}

/* Rank d's part by itself: its result and its gradient are those that the rank has. */
static const char *run_part(struct ex_world *w, const struct ex_oper *o, int64_t d,
	const struct ex_shards *in, const struct ex_shards *out, const struct ex_shards *dout,
	const struct ex_shards *din)
{
	struct ex_world one = {.ctx = w->ctx, .ndev = 1, .executor = w->executor};
	struct ap_shape in_shape = shape_of(&in->of[d]), out_shape = shape_of(&out->of[d]);
	struct ap_layout in_layout = {.rank = in_shape.rank}, out_layout = {.rank = out_shape.rank};
	struct ex_shards x = alone(w, &in->of[d]), g = alone(w, &dout->of[d]), y, dx;
	struct ex_oper own = *o;
	struct ex_run *run;

	for (int k = 0; k < AP_MAX_RANK; k++)
		in_layout.dim[k].cut = out_layout.dim[k].cut = 1;
	own.in_shape = &in_shape;
	own.out_shape = &out_shape;
	own.in = &in_layout;
	own.out = &out_layout;
	own.ncomm = 0;
	run = ex_forward(&one, &own, &x, &y);
	if (one.trouble || !same(&y.of[0], &out->of[d]))
		return "a result is not that of the device's own part";
	if (!din)
		return NULL;
	ex_backward(&one, run, &g, &dx);
	return same(&dx.of[0], &din->of[d]) ? NULL :
		"a gradient is not that of the device's own part";
}

const char *ex_run_parts(struct ex_world *w, const struct ex_oper *o, const struct ex_shards *in,
	const struct ex_tensor *dout, bool back)
{
	struct ex_shards out, grad = ex_cut(w->ctx->scratch, dout, &o->out[0], w->ndev), din;
	struct ex_run *run = ex_forward(w, o, in, &out);
	const char *why = NULL;

	if (back)
		ex_backward(w, run, &grad, &din);
	for (int64_t d = 0; d < w->ndev && !why && !w->trouble; d++)
		why = run_part(w, o, d, in, &out, &grad, back ? &din : NULL);
	return w->trouble ? w->trouble : why;
}
