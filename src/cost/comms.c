/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of what one rank holds in one micro-batch. Shared by the files of this layer. */
#include "cost/comms.h"

#include <string.h>

#include "cost/opcost.h"
#include "hw/chip.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "rule/attend.h"
#include "rule/legal.h"
#include "rule/window.h"

/* Distance from the first to the last rank in the group of rank 0. */
static int64_t span_of(const struct ap_axes *axes)
{
	int64_t last = 0;

	for (int i = 0; i < axes->n; i++)
		last += (int64_t)(axes->axis[i].size - 1) * axes->axis[i].stride;
	return last;
}

/* The first `size` ranks of a group, innermost axes first: groups are cut into such chunks. Returns
 * false if size does not follow the axes' extents. */
static bool chunk_of(const struct ap_axes *axes, int64_t size, struct ap_axes *out)
{
	*out = (struct ap_axes){0};
	for (int i = axes->n; i-- > 0 && size > 1;) {
		int64_t take = ap_gcd(size, axes->axis[i].size);

		if (take != size && take != axes->axis[i].size)
			return false;
		if (take > 1)
			ap_axes_add(out, (struct ap_axis){axes->axis[i].stride, (int32_t)take});
		size /= take;
	}
	return size == 1;
}

/* Extents of a rank's slice of a parameter. */
static void slice_of(const struct ap_operand *o, const struct ap_placement *p, int64_t slice[AP_MAX_RANK])
{
	for (int d = 0; d < o->rank; d++) {
		slice[d] = o->size[d];
		for (int i = 0; i < o->dim[d].n; i++)
			slice[d] /= ap_placement_parts(p, o, o->dim[d].factor[i]);
	}
}

void ap_opt_shard_make(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step, struct ap_opt_shard *out)
{
	const struct ap_operand *o = &t->bound->in[operand];
	int64_t n, slice[AP_MAX_RANK], part;

	*out = (struct ap_opt_shard){.shards = 1, .part = ap_local_elements(o, 0, p, step)};
	ap_placement_replicas(p, o, &out->replicas);
	n = ap_axes_size(&out->replicas);
	if (!step->training || !step->optimizer_sharding || !t->in[operand].shardable || n == 1 ||
		o->rank == 0)
		return;
	if (step->shard_size > 0 && step->shard_size < n) {
		if (n % step->shard_size != 0 ||
			!chunk_of(&out->replicas, step->shard_size, &out->group))
			return;
		out->weight_size = (int32_t)step->shard_size;
	} else {
		out->group = out->replicas;
		out->weight_size = step->shard_size > 0 ? (int32_t)n : -1;
	}
	slice_of(o, p, slice);
	n = ap_axes_size(&out->group);
	part = ap_dealing_part(step->dealing, o->rank, slice, n);
	if (!part) {
		out->weight_size = 0;
		return;
	}
	out->shards = n;
	out->part = part;
	out->by_rows = slice[0] % n == 0;
	out->weight_step = (int32_t)(span_of(&out->replicas) / (ap_axes_size(&out->replicas) - 1));
	/* in one graph, gradients that nothing is added to are scattered where they arise */
	out->gradient = (step->optimizer_level >= 2 || (step->executor == AP_EXECUTOR_MINDSPORE &&
		step->micro_batches == 1)) && !step->sums_whole;
	out->regather = t->in[operand].regather;
	out->weight = out->regather || step->executor == AP_EXECUTOR_MINDSPORE;
}

/* Elements along a dimension that the part with the largest halo receives and sends. */
struct width {
	int64_t received, sent;
};

/* Halos change evenly from part to part, so the widest is at one of the ends. */
static struct width widest(const struct ap_window *w, int64_t parts)
{
	const int64_t ends[] = {0, 1, parts - 2, parts - 1};
	struct width most = {0, 0};

	for (int i = 0; i < 4; i++) {
		int64_t part = ends[i], sent = 0;
		struct ap_halo h = ap_window_halo(w, parts, part);

		if (part > 0)
			sent += ap_window_halo(w, parts, part - 1).after;
		if (part < parts - 1)
			sent += ap_window_halo(w, parts, part + 1).before;
		if (h.before + h.after > most.received)
			most.received = h.before + h.after;
		if (sent > most.sent)
			most.sent = sent;
	}
	return most;
}

int ap_halo_exchanges(const struct ap_task *t, const struct ap_placement *p,
	const struct ap_step *step, struct ap_exchange out[AP_MAX_WINDOW], int64_t *copy_bytes)
{
	const struct ap_bound *b = t->bound;
	int64_t bytes = 0;
	int n = 0;

	for (int i = 0; i < b->nwindow; i++) {
		const struct ap_window *w = &b->window[i];
		int64_t parts = w->factor == AP_NO_FACTOR ? 1 : p->count[w->factor];
		struct width width;

		if (parts == 1)
			continue;
		width = widest(w, parts);
		if (width.received == 0)
			continue;
		if (n == 0)
			bytes = ap_local_bytes(&b->in[w->operand], t->in[w->operand].batch, p, step);
		bytes /= w->size / parts;
		out[n++] = (struct ap_exchange){w->operand, w->factor, bytes *
			(width.sent > width.received ? width.sent : width.received)};
		bytes *= w->size / parts + width.received;
	}
	*copy_bytes = bytes;
	return n;
}

/* Mask of factors cut into more than one part. */
static uint32_t cut_mask(const struct ap_placement *p)
{
	uint32_t mask = 0;

	for (int f = 0; f < p->bound->nfactor; f++)
		if (p->count[f] > 1)
			mask |= 1u << f;
	return mask;
}

int64_t ap_local_elements(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step)
{
	int64_t n = 1;

	for (int d = 0; d < o->rank; d++) {
		int64_t extent = o->size[d];

		if (batch >> d & 1)
			extent /= step->micro_batches;
		for (int i = 0; i < o->dim[d].n; i++)
			extent /= ap_placement_parts(p, o, o->dim[d].factor[i]);
		n *= extent;
	}
	return n;
}

int64_t ap_slice_parts(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step, struct ap_axes *replicas)
{
	int64_t parts, extent;

	ap_placement_replicas(p, o, replicas);
	parts = ap_axes_size(replicas);
	if (o->rank == 0)
		return 1;
	extent = o->size[0] / (batch & 1 ? step->micro_batches : 1);
	for (int i = 0; i < o->dim[0].n; i++)
		extent /= ap_placement_parts(p, o, o->dim[0].factor[i]);
	return extent % parts == 0 ? parts : 1;
}

int64_t ap_local_bytes(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step)
{
	return ap_local_elements(o, batch, p, step) * ap_dtype_bytes(o->dtype);
}

int64_t ap_stored_bytes(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step)
{
	return ap_local_elements(&t->bound->in[operand], t->in[operand].batch, p, step) *
		ap_dtype_bytes(ap_task_stored(t, operand));
}

int64_t ap_computed_bytes(const struct ap_bound *b, int result, uint8_t batch,
	const struct ap_placement *p, const struct ap_step *step)
{
	int64_t bytes = ap_local_bytes(&b->out[result], batch, p, step);

	for (int f = 0; result == 0 && f < b->nfactor; f++)
		if (p->dealt >> f & 1)
			bytes *= p->count[f];
	return bytes;
}

double ap_local_extent(const struct ap_bound *b, int f, const struct ap_placement *p,
	const struct ap_step *step)
{
	int64_t extent = b->factor[f].size;

	if (b->factor[f].flags & AP_FACTOR_BATCH)
		extent /= step->micro_batches;
	return (double)(extent / p->count[f]);
}

enum ap_dtype ap_gradient_wire(enum ap_dtype t, const struct ap_step *step)
{
	if (ap_dtype_is_narrow(t) && (step->gradient_fp32_sync || step->force_fp32))
		return AP_FLOAT32;
	return ap_dtype_is_float8(t) ? AP_BFLOAT16 : t;
}

/* Bytes on the wire for `bytes` of a type in a collective that may reduce them. */
static int64_t reduced_bytes(enum ap_coll kind, enum ap_dtype t, int64_t bytes, const struct ap_step *step)
{
	bool reduces = kind == AP_COLL_ALLREDUCE || kind == AP_COLL_REDUCESCATTER;

	if (!reduces || !ap_dtype_is_narrow(t))
		return bytes;
	return step->force_fp32 ? 4 / ap_dtype_bytes(t) * bytes : ap_dtype_is_float8(t) ? 2 * bytes : bytes;
}

/* Gradients that are summed up and travel in their own type are held in it. */
int ap_gradient_held_bytes(enum ap_dtype t, const struct ap_step *step)
{
	int narrow = ap_dtype_is_float8(t) ? 2 : ap_dtype_bytes(t);

	return ap_dtype_is_narrow(t) && step->software && step->gradient_fp32_sync
		? step->software->gradient_bytes : narrow;
}

int ap_weight_bytes(const struct ap_task *t, int operand, const struct ap_step *step)
{
	return t->float8 && step->float8_params ? 1 : ap_dtype_bytes(ap_task_stored(t, operand));
}

bool ap_comm_in_8_bits(const struct ap_task *t, const struct ap_comm *c, const struct ap_step *step)
{
	if (!t->float8 || (c->kind != AP_COLL_ALLGATHER && c->kind != AP_COLL_BROADCAST))
		return false;
	if (c->result >= 0)
		return c->phase == AP_PHASE_BACKWARD;
	return step->float8_params && t->in[c->operand].kind == AP_TENSOR_PARAM;
}

const struct ap_fusion *ap_comm_fusion(const struct ap_step *step, enum ap_coll kind)
{
	static const struct ap_fusion none = {.mode = AP_FUSION_OFF};

	switch (kind) {
	case AP_COLL_ALLREDUCE:
		return &step->allreduce;
	case AP_COLL_REDUCESCATTER:
		return &step->reducescatter;
	case AP_COLL_ALLGATHER:
		return &step->allgather;
	default:
		return &none;
	}
}

struct deriving {
	const struct ap_task *t;
	const struct ap_placement *p;
	const struct ap_step *step;
	void (*take)(void *user, const struct ap_comm *c);
	void *user;
};

static bool runs_forward(enum ap_phase phase)
{
	return phase == AP_PHASE_FORWARD || phase == AP_PHASE_RECOMPUTE;
}

static void tell(struct deriving *d, const struct ap_comm *c)
{
	struct ap_comm own = *c;

	own.block = d->t->block;
	d->take(d->user, &own);
}

static void add(struct deriving *d, enum ap_phase phase, enum ap_coll kind,
	const struct ap_axes *axes, int64_t bytes, int operand, int result)
{
	const struct ap_comm c = {
		.phase = phase, .kind = kind, .axes = *axes, .bytes = bytes, .operand = operand,
		.result = result,
		.reduce = runs_forward(phase) ? d->t->bound->row->reduce : AP_REDUCE_SUM,
		.uneven = operand >= 0 ? d->t->in[operand].uneven : d->t->out[result].uneven,
	};

	tell(d, &c);
}

static void add_gradient(struct deriving *d, enum ap_coll kind, const struct ap_axes *axes,
	int64_t bytes, int operand, bool each)
{
	const struct ap_comm c = {.phase = AP_PHASE_GRADIENT, .kind = kind, .axes = *axes,
		.bytes = bytes, .operand = operand, .result = -1, .reduce = AP_REDUCE_SUM, .each = each};

	tell(d, &c);
}

/* Adds an AllReduce of the part that the rank updates. */
static void add_part(struct deriving *d, const struct ap_axes *axes, int64_t bytes, int operand)
{
	const struct ap_comm c = {.phase = AP_PHASE_GRADIENT, .kind = AP_COLL_ALLREDUCE, .axes = *axes,
		.bytes = bytes, .operand = operand, .result = -1, .reduce = AP_REDUCE_SUM, .part = true};

	tell(d, &c);
}

/* Axes of cut factors that a tensor lacks: its values, or its gradient, are partial over them. */
static bool lacking(const struct deriving *d, const struct ap_operand *o, struct ap_axes *axes)
{
	ap_placement_axes(d->p, cut_mask(d->p) & ~o->factors, false, axes);
	return axes->n > 0;
}

/* Is result o a statistic that another result is computed from, once the batch is cut? */
static bool is_statistic(const struct ap_bound *b, int o)
{
	uint32_t free = 0;

	for (int f = 0; f < b->nfactor; f++)
		if (!(b->factor[f].flags & AP_FACTOR_FROZEN))
			free |= 1u << f;
	return ap_rule_is_inner(b, (unsigned)o, free);
}

/* Axes over which result o is partial. MindSpore sums statistics over all ranks that share the
 * channels, repeated work included, and divides by their number. */
static bool partial(const struct deriving *d, int o, struct ap_axes *axes)
{
	const struct ap_bound *b = d->t->bound;
	bool repeats = d->step->executor == AP_EXECUTOR_MINDSPORE && is_statistic(b, o);

	ap_placement_axes(d->p, cut_mask(d->p) & ~b->out[o].factors, repeats, axes);
	return axes->n > 0;
}

/* Exchanges a gradient that is partial over some axes, so that each rank gets the sum of the part
 * that it updates: dealt if all ranks that share the update take part in the sum; else whole for
 * those that do, and in parts for the others. Whole for all if the ranks that share the update, a
 * chunk of some size of the holders, lie across the axes. */
static void exchange(struct deriving *d, int i, const struct ap_opt_shard *s,
	const struct ap_axes *partial, int element_bytes)
{
	int64_t bytes = ap_local_elements(&d->t->bound->in[i], 0, d->p, d->step) * element_bytes;
	int64_t part_bytes = s->part * element_bytes;
	bool each = s->gradient && d->step->micro_batches > 1;
	struct ap_axes inside, outside;

	if (!ap_axes_compatible(partial, &s->group)) {
		add_gradient(d, AP_COLL_ALLREDUCE, partial, bytes, i, each);
		return;
	}
	ap_axes_without(partial, &s->group, &outside);
	ap_axes_without(partial, &outside, &inside);
	if (inside.n > 0 && ap_axes_size(&inside) == s->shards)
		add_gradient(d, AP_COLL_REDUCESCATTER, &inside, s->shards * part_bytes, i, each);
	else if (inside.n > 0)
		add_gradient(d, AP_COLL_ALLREDUCE, &inside, bytes, i, each);
	if (outside.n > 0 && s->shards > 1)
		add_part(d, &outside, part_bytes, i);
	else if (outside.n > 0)
		add_gradient(d, AP_COLL_ALLREDUCE, &outside, bytes, i, false);
}

/* Does a gradient flow back through the sum of result o? Either it is asked for, and adjoints of
 * collectives are taken or the sums were dealt (the operands' gradients need all of it), or it
 * comes, inside the operator, from a result computed from o. */
static bool comes_back(const struct deriving *d, int o)
{
	const struct ap_bound *b = d->t->bound;
	bool inner = is_statistic(b, o);
	bool dealt = o == 0 && d->p->dealt;
	bool back = d->t->out[o].grad && (dealt || d->step->executor == AP_EXECUTOR_MINDSPORE);

	for (int r = 0; inner && r < b->nout; r++)
		back |= d->t->out[r].grad;
	return back;
}

/* Does each device have a part of the first dimension, all others being whole? */
static bool is_data_parallel(const struct ap_placement *p, const struct ap_operand *o)
{
	const struct ap_dim *first = &o->dim[0];
	int64_t parts = 1;

	for (uint8_t k = 0; o->rank > 0 && k < first->n; k++)
		parts *= p->count[first->factor[k]];
	return parts == p->ndev;
}

/* Does each device continue with the reduction of its own part? */
static bool stays_in_parts(const struct deriving *d)
{
	const struct ap_bound *b = d->t->bound;

	return d->t->cross_batch &&
		(b->row->reduce != AP_REDUCE_MEAN || is_data_parallel(d->p, &b->in[0]));
}

static void results(struct deriving *d)
{
	const struct ap_bound *b = d->t->bound;
	struct ap_axes axes;

	if (stays_in_parts(d))
		return;
	for (int o = 0; o < b->nout; o++) {
		bool dealt = o == 0 && d->p->dealt;
		enum ap_coll kind = dealt ? AP_COLL_REDUCESCATTER : AP_COLL_ALLREDUCE;
		int64_t bytes = ap_computed_bytes(b, o, d->t->out[o].batch, d->p, d->step);
		int64_t sent = reduced_bytes(kind, b->out[o].dtype, bytes, d->step);

		if (b->out[o].silent || !partial(d, o, &axes))
			continue;
		add(d, AP_PHASE_FORWARD, kind, &axes, sent, -1, o);
		if (d->t->recomputed && !d->t->keep_comm)
			add(d, AP_PHASE_RECOMPUTE, kind, &axes, sent, -1, o);
		if (!comes_back(d, o))
			continue;
		if (d->t->float8 && ap_coll_adjoint(kind) == AP_COLL_ALLGATHER) /* a gradient for products */
			bytes /= ap_dtype_bytes(b->out[o].dtype);
		add(d, AP_PHASE_BACKWARD, ap_coll_adjoint(kind), &axes,
			reduced_bytes(ap_coll_adjoint(kind), b->out[o].dtype, bytes, d->step), -1, o);
	}
}

void ap_gradient_partial(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step, struct ap_axes *out)
{
	const struct ap_task_operand *in = &t->in[operand];
	const struct deriving d = {.t = t, .p = p, .step = step};
	struct ap_axes axes;

	*out = (struct ap_axes){0};
	if (step->executor != AP_EXECUTOR_GENERIC || !in->grad || in->kind != AP_TENSOR_ACT || in->returns)
		return;
	lacking(&d, &t->bound->in[operand], &axes);
	for (out->n = 0; out->n < axes.n; out->n++)
		out->axis[out->n] = axes.axis[out->n];
}

/* Of weights that another stage sent. */
static void returned_gradients(struct deriving *d)
{
	const struct ap_bound *b = d->t->bound;
	struct ap_axes axes;

	for (int i = 0; i < b->nin; i++)
		if (d->t->in[i].returns && lacking(d, &b->in[i], &axes))
			add_gradient(d, AP_COLL_ALLREDUCE, &axes,
				ap_local_elements(&b->in[i], 0, d->p, d->step) *
				ap_dtype_bytes(ap_gradient_wire(ap_task_stored(d->t, i), d->step)), i, false);
}

/* Returns the weight after the update. */
static void return_weight(struct deriving *d, int i, const struct ap_opt_shard *s)
{
	int64_t bytes = s->shards * s->part * ap_weight_bytes(d->t, i, d->step);

	if (s->shards > 1 && !s->regather)
		add(d, AP_PHASE_OPTIMIZER, AP_COLL_ALLGATHER, &s->group, bytes, i, -1);
	if (d->step->deal_whole > 0 && s->replicas.n > 0)
		add(d, AP_PHASE_OPTIMIZER, AP_COLL_BROADCAST, &s->replicas, bytes, i, -1);
}

/* mindspore: gradients of all uses are summed, then mirrored over all holders. generic: the
 * gradient of a use is partial over the axes that cut the use but not the parameter; uses may
 * differ in these, so each gradient is exchanged before they are summed. */
static void parameter(struct deriving *d, int i)
{
	const struct ap_operand *o = &d->t->bound->in[i];
	bool mirrored = d->step->executor == AP_EXECUTOR_MINDSPORE, owner = d->t->in[i].owner;
	struct ap_opt_shard shard;
	struct ap_axes axes;

	if (d->t->in[i].alone || (mirrored && !owner))
		return;
	if (mirrored)
		ap_placement_replicas(d->p, o, &axes);
	else
		lacking(d, o, &axes);
	ap_opt_shard_make(d->t, i, d->p, d->step, &shard);
	exchange(d, i, &shard, &axes, ap_dtype_bytes(ap_gradient_wire(ap_task_stored(d->t, i), d->step)));
	if (owner)
		return_weight(d, i, &shard);
}

/* Sends a result to the stage that waits for it; its gradient comes back. */
static void sends(struct deriving *d)
{
	const struct ap_task *t = d->t;
	struct ap_comm c = {.kind = AP_COLL_SEND, .operand = -1, .reduce = AP_REDUCE_SUM};

	if (t->peer < 0 || t->across || strcmp(t->bound->row->name, "Send") != 0)
		return;
	c.bytes = ap_local_bytes(&t->bound->out[0], t->out[0].batch, d->p, d->step);
	c.phase = AP_PHASE_FORWARD;
	c.from_stage = t->stage;
	c.to_stage = t->peer;
	tell(d, &c);
	if (!t->out[0].grad)
		return;
	if (t->once && d->step->executor == AP_EXECUTOR_GENERIC) /* the sum of all micro-batches */
		c.bytes = ap_local_elements(&t->bound->out[0], t->out[0].batch, d->p, d->step) *
			ap_dtype_bytes(ap_gradient_wire(t->bound->out[0].dtype, d->step));
	c.phase = AP_PHASE_BACKWARD;
	c.from_stage = t->peer;
	c.to_stage = t->stage;
	tell(d, &c);
}

static uint8_t dim_of(const struct ap_operand *o, int f)
{
	uint8_t d = 0;

	while (d + 1 < o->rank && !(o->dim[d].n > 0 && o->dim[d].factor[0] == f))
		d++;
	return d;
}

/* Keys and values that go round; for the backward pass once more, with their gradients. */
static void rounds(struct deriving *d)
{
	const struct ap_bound *b = d->t->bound;
	struct ap_axes axes;

	if (!b->rounds || d->p->count[b->round] == 1)
		return;
	ap_placement_axes(d->p, 1u << b->round, false, &axes);
	for (int i = 0; i < b->nin; i++) {
		struct ap_comm c = {.kind = AP_COLL_RING, .axes = axes, .operand = i, .result = -1,
			.reduce = AP_REDUCE_SUM, .dim = dim_of(&b->in[i], b->round)};

		if (!ap_rule_holds(b->rounds, i))
			continue;
		c.bytes = ap_local_bytes(&b->in[i], d->t->in[i].batch, d->p, d->step) *
			d->p->count[b->round];
		c.phase = AP_PHASE_FORWARD;
		tell(d, &c);
		c.phase = AP_PHASE_RECOMPUTE;
		if (d->t->recomputed)
			tell(d, &c);
		c.phase = AP_PHASE_BACKWARD;
		c.bytes *= d->t->in[i].grad ? 2 : 1;
		if (d->t->backward)
			tell(d, &c);
	}
}

/* Parts of a sequence for parts of heads, and back, of an operand or (operand -1) a result. */
static void swap(struct deriving *d, const struct ap_axes *axes, int operand, int result)
{
	const struct ap_bound *b = d->t->bound;
	const struct ap_operand *o = operand < 0 ? &b->out[result] : &b->in[operand];
	uint8_t sequence = dim_of(o, b->round), heads = dim_of(o, b->heads);
	bool grad = operand < 0 ? d->t->out[result].grad : d->t->in[operand].grad;
	struct ap_comm c = {.kind = AP_COLL_ALLTOALL, .axes = *axes, .operand = operand, .result = result,
		.reduce = AP_REDUCE_SUM, .dim = operand < 0 ? sequence : heads,
		.concat = operand < 0 ? heads : sequence};

	c.bytes = ap_local_bytes(o, operand < 0 ? d->t->out[result].batch : d->t->in[operand].batch, d->p,
		d->step);
	tell(d, &c);
	c.phase = AP_PHASE_RECOMPUTE;
	if (d->t->recomputed)
		tell(d, &c);
	c.phase = AP_PHASE_BACKWARD;
	c.dim = operand < 0 ? heads : sequence;
	c.concat = operand < 0 ? sequence : heads;
	if (grad)
		tell(d, &c);
}

/* Queries, keys, values and what is made of them; what only the way back reads stays in parts of heads. */
static void swaps(struct deriving *d)
{
	const struct ap_bound *b = d->t->bound;
	struct ap_axes axes;

	if (!b->swaps || d->p->count[b->round] == 1)
		return;
	ap_placement_axes(d->p, 1u << b->round, false, &axes);
	for (int i = 0; i < b->nin; i++)
		if (ap_rule_holds(b->swaps, i))
			swap(d, &axes, i, -1);
	for (int o = 0; o < b->nout; o++)
		if (ap_rule_attend_is_result(b, o))
			swap(d, &axes, -1, o);
}

void ap_comms_derive(const struct ap_task *t, const struct ap_placement *p,
	const struct ap_step *step, void (*take)(void *user, const struct ap_comm *c), void *user)
{
	struct deriving d = {.t = t, .p = p, .step = step, .take = take, .user = user};
	struct ap_exchange exchange[AP_MAX_WINDOW];
	int64_t copy_bytes;
	int n;

	/* a weight gathered for each use, not kept */
	for (int i = 0; i < d.t->bound->nin; i++) {
		const struct ap_task_operand *in = &d.t->in[i];
		struct ap_opt_shard s;
		int64_t bytes;

		if (!in->regather || in->twin != i)
			continue;
		if (in->kind == AP_TENSOR_ACT) {
			const struct ap_operand *o = &d.t->bound->in[i];
			uint8_t batch = d.t->in[i].batch;
			struct ap_axes replicas;

			/* gathers what was held in parts for this */
			if (ap_slice_parts(o, batch, d.p, d.step, &replicas) > 1)
				add(&d, AP_PHASE_RECOMPUTE, AP_COLL_ALLGATHER, &replicas,
					ap_local_bytes(o, batch, d.p, d.step), i, -1);
			continue;
		}
		ap_opt_shard_make(d.t, i, d.p, d.step, &s);
		if (s.shards == 1)
			continue;
		bytes = s.shards * s.part * ap_weight_bytes(d.t, i, d.step);
		add(&d, AP_PHASE_FORWARD, AP_COLL_ALLGATHER, &s.group, bytes, i, -1);
		if (in->kept && !in->cast && !in->stays)
			add(&d, AP_PHASE_RECOMPUTE, AP_COLL_ALLGATHER, &s.group, bytes, i, -1);
	}
	/* halos: before the operator, and back after its gradient */
	n = ap_halo_exchanges(d.t, d.p, d.step, exchange, &copy_bytes);
	for (int i = 0; i < n; i++) {
		const struct ap_exchange *e = &exchange[i];
		struct ap_axes axes;

		ap_placement_axes(d.p, 1u << e->factor, false, &axes);
		add(&d, AP_PHASE_FORWARD, AP_COLL_NEIGHBOREXCHANGE, &axes, e->bytes, e->operand, -1);
		if (d.t->in[e->operand].again)
			add(&d, AP_PHASE_RECOMPUTE, AP_COLL_NEIGHBOREXCHANGE, &axes, e->bytes,
				e->operand, -1);
		if (d.t->in[e->operand].grad)
			add(&d, AP_PHASE_BACKWARD, ap_coll_adjoint(AP_COLL_NEIGHBOREXCHANGE), &axes,
				e->bytes, e->operand, -1);
	}
	rounds(&d);
	swaps(&d);
	results(&d);
	sends(&d);
	returned_gradients(&d);
	for (int i = 0; i < t->bound->nin; i++)
		if (t->in[i].trainable && t->in[i].grad)
			parameter(&d, i);
}
