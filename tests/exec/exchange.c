/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of parameters: exchanged between those who hold a slice, and the update. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "oper.h"

/* Which of the rows' parts is updated on rank r: by its place in the group of the shard. */
static int64_t place_of(struct ex_world *w, const struct ap_opt_shard *shard, int64_t r)
{
	int64_t group[EX_MAX_DEV], n = ex_group(w, &shard->group, r, group), own = 0;

	while (own < n - 1 && group[own] != r)
		own++;
	return own;
}

/* Parts that are not rows: a slice row by row, with zeroes behind it that make them equally long. */
static struct ex_tensor row_by_row(struct ex_world *w, const struct ap_opt_shard *shard, const struct ex_tensor *slice)
{
	const struct ex_box b = {.rank = 1, .dtype = slice->box.dtype, .size = {shard->shards * shard->part},
		.whole = {shard->shards * shard->part}};
	struct ex_tensor flat = ex_tensor_new(w->ctx->scratch, &b);
	int64_t n = ex_count(&slice->box);

	if (n > b.size[0])
		ex_trouble(w, "%" PRId64 " parts of %" PRId64 " elements do not make up %" PRId64,
			shard->shards, shard->part, n);
	else
		memcpy(flat.v, slice->v, (size_t)n * sizeof *flat.v);
	return flat;
}

static bool is_flat(const struct ap_opt_shard *shard)
{
	return shard->shards > 1 && !shard->by_rows;
}

static struct ex_tensor own_rows(struct ex_world *w, const struct ap_opt_shard *shard,
	const struct ex_tensor *of, int64_t r)
{
	struct ex_tensor part, flat = is_flat(shard) ? row_by_row(w, shard, of) : *of, *slice = &flat;
	struct ex_box b = slice->box;

	if (shard->shards > 1 && b.rank > 0) {
		b.size[0] /= shard->shards;
		b.first[0] += place_of(w, shard, r) * b.size[0];
	}
	part = ex_tensor_new(w->ctx->scratch, &b);
	ex_cut_out(slice, &part);
	return part;
}

void ex_gather_parts(struct ex_world *w, const struct ap_axes *axes, const struct ap_opt_shard *shard,
	const struct ex_shards *slices, const struct ap_comm *c, enum ap_dtype sent, struct ex_shards *parts)
{
	ex_all_gather(w, axes, 0, parts);
	if (c)
		ex_check_bytes(w, c, ex_count(&parts->of[0].box), sent);
	for (int64_t r = 0; is_flat(shard) && r < w->ndev; r++) {
		struct ex_tensor whole = ex_tensor_new(w->ctx->scratch, &slices->of[r].box);
		int64_t n = ex_count(&whole.box);

		if (n > ex_count(&parts->of[r].box)) {
			ex_trouble(w, "rank %" PRId64 " gathers too few elements", r);
			return;
		}
		memcpy(whole.v, parts->of[r].v, (size_t)n * sizeof *whole.v);
		parts->of[r] = whole;
	}
}

static bool have_same_rows(struct ex_world *w, const struct ap_axes *axes,
	const struct ap_opt_shard *shard)
{
	for (int64_t r = 0; r < w->ndev; r++) {
		int64_t group[EX_MAX_DEV], n = ex_group(w, axes, r, group);

		for (int64_t k = 0; k < n; k++)
			if (place_of(w, shard, group[k]) != place_of(w, shard, r))
				return false;
	}
	return true;
}

void ex_keep_own_rows(struct ex_world *w, const struct ap_opt_shard *shard, struct ex_shards *grad)
{
	struct ex_shards own = ex_shards_new(w->ctx->scratch, w->ndev);

	for (int64_t r = 0; r < w->ndev; r++)
		own.of[r] = own_rows(w, shard, &grad->of[r], r);
	*grad = own;
}

/* Runs a collective; are rows taken out of a whole gradient before it, or by it? An AllReduce of these
 * alone is one between ranks that update the same. */
static bool exchange_once(struct ex_world *w, const struct ap_comm *c, enum ap_dtype t,
	const struct ap_opt_shard *shard, bool whole, struct ex_shards *grad)
{
	if (c->part && !have_same_rows(w, &c->axes, shard))
		ex_trouble(w, "parts of a gradient are summed that are not the same");
	if (whole && c->part) {
		ex_keep_own_rows(w, shard, grad);
		whole = false;
	}
	if (c->kind == AP_COLL_REDUCESCATTER && is_flat(shard)) {
		struct ex_shards flat = ex_shards_new(w->ctx->scratch, w->ndev);

		for (int64_t r = 0; r < w->ndev; r++)
			flat.of[r] = row_by_row(w, shard, &grad->of[r]);
		*grad = flat;
	}
	ex_check_bytes(w, c, ex_count(&grad->of[0].box), t);
	if (c->kind == AP_COLL_ALLREDUCE) {
		ex_all_reduce(w, &c->axes, AP_REDUCE_SUM, grad);
	} else if (c->kind == AP_COLL_REDUCESCATTER && grad->of[0].box.rank > 0) {
		ex_reduce_scatter(w, &c->axes, 0, grad);
		whole = false;
	} else {
		ex_trouble(w, "%s of a parameter's gradient", ap_coll_name(c->kind));
	}
	return whole;
}

void ex_exchange_gradient_when(struct ex_world *w, const struct ex_oper *o, int operand,
	const struct ap_opt_shard *shard, enum ex_when when, struct ex_shards *grad)
{
	bool whole = shard->shards > 1 && when != EX_AT_THE_END;

	for (uint32_t i = 0; i < o->ncomm; i++) {
		const struct ap_comm *c = &o->comm[i];

		if (c->phase == AP_PHASE_GRADIENT && c->operand == operand &&
			(when == EX_AT_ONCE || c->each == (when == EX_EACH_TIME)))
			whole = exchange_once(w, c, o->in_shape[operand].dtype, shard, whole, grad);
	}
	if (whole)
		ex_keep_own_rows(w, shard, grad);
}

void ex_exchange_gradient(struct ex_world *w, const struct ex_oper *o, int operand,
	const struct ap_opt_shard *shard, struct ex_shards *grad)
{
	ex_exchange_gradient_when(w, o, operand, shard, EX_AT_ONCE, grad);
}

void ex_update(struct ex_world *w, const struct ex_oper *o, int operand,
	const struct ap_opt_shard *shard, const struct ex_shards *grad, struct ex_shards *weight)
{
	struct ex_shards part = ex_shards_new(w->ctx->scratch, w->ndev);

	for (int64_t r = 0; r < w->ndev; r++) {
		const struct ex_tensor *g = &grad->of[r];

		part.of[r] = own_rows(w, shard, &weight->of[r], r);
		if (ex_count(&g->box) != ex_count(&part.of[r].box)) {
			ex_trouble(w, "rank %" PRId64 " has a gradient of %" PRId64
				" elements and updates %" PRId64, r, ex_count(&g->box),
				ex_count(&part.of[r].box));
			return;
		}
		for (int64_t i = 0; i < ex_count(&g->box); i++)
			part.of[r].v[i] = ex_sub(part.of[r].v[i], ex_mul(3, g->v[i]));
	}
	for (uint32_t i = 0; i < o->ncomm; i++) {
		const struct ap_comm *c = &o->comm[i];

		if (c->phase != AP_PHASE_OPTIMIZER || c->operand != operand)
			continue;
		if (c->kind != AP_COLL_ALLGATHER || part.of[0].box.rank == 0) {
			ex_trouble(w, "%s of an updated weight", ap_coll_name(c->kind));
			continue;
		}
		ex_gather_parts(w, &c->axes, shard, weight, c, ex_sent_as(o, c, part.of[0].box.dtype), &part);
	}
	*weight = part;
}

struct bounds { /* where runs of ranks begin and end, ascending */
	int n;
	int64_t at[2 * AP_MAX_RANK * (EX_MAX_IN + EX_MAX_OUT) + 1];
};

static void note(struct bounds *b, int64_t v)
{
	int i = b->n;

	while (i > 0 && b->at[i - 1] > v)
		i--;
	if (i > 0 && b->at[i - 1] == v)
		return;
	for (int k = b->n++; k > i; k--)
		b->at[k] = b->at[k - 1];
	b->at[i] = v;
}

static void note_layout(struct bounds *b, const struct ap_layout *l)
{
	for (int d = 0; d < l->rank; d++)
		if (l->dim[d].cut > 1) {
			note(b, l->dim[d].stride);
			note(b, (int64_t)l->dim[d].stride * l->dim[d].cut);
		}
}

/* Is a dimension cut over the ranks between two neighbouring bounds? */
static bool covers(const struct ap_layout *l, int64_t from)
{
	for (int d = 0; d < l->rank; d++)
		if (l->dim[d].cut > 1 && l->dim[d].stride <= from &&
			from < (int64_t)l->dim[d].stride * l->dim[d].cut)
			return true;
	return false;
}

void ex_lacking(const struct ex_oper *o, int operand, struct ap_axes *out)
{
	struct bounds b = {0};

	*out = (struct ap_axes){0};
	for (int i = 0; i < o->nin; i++)
		note_layout(&b, &o->in[i]);
	for (int i = 0; i < o->nout; i++)
		note_layout(&b, &o->out[i]);
	for (int k = 0; k + 1 < b.n; k++) {
		bool any = false;

		for (int i = 0; i < o->nin; i++)
			any |= covers(&o->in[i], b.at[k]);
		for (int i = 0; i < o->nout; i++)
			any |= covers(&o->out[i], b.at[k]);
		if (any && !covers(&o->in[operand], b.at[k]))
			ap_axes_add(out, (struct ap_axis){(int32_t)b.at[k],
				(int32_t)(b.at[k + 1] / b.at[k])});
	}
}
