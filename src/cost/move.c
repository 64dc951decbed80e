/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of the steps of a redistribution. Private to this layer. */
#include "cost/move.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "cost/kernel.h"
#include "cost/expert_load.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "cost/comms.h"
#include "rule/attr.h"
#include "shard/reshard.h"
#include "shard/pieces.h"

struct steps_cost { /* for one micro-batch */
	double forward_s;
	double adjoint_s; /* of the steps that autodiff makes of them */
	int64_t bytes; /* sent or received by one rank, forward */
};

#define DIRECT_SLOTS 1024 /* power of two; a machine has at most a few hundred single axes */
#define FEW_STEPS 64 /* slots at first, a power of two: there are many pricers of small graphs */
#define MOST_STEPS 4096 /* power of two; moves by axes by sizes of a tensor's slices */

/* All that the price of a step depends on besides the elements; never 0. */
static uint64_t signature(const struct ap_reshard_step *s, int dtype_bytes)
{
	return (uint64_t)s->axis.stride << 40 | (uint64_t)s->axis.size << 16 |
		(uint64_t)dtype_bytes << 8 | (uint64_t)s->first << 4 | (uint64_t)s->move;
}

/* Cache entry: the last priced step of its slot. */
struct remembered {
	int64_t before; /* elements */
	uint64_t signature; /* 0 if empty */
	struct steps_cost cost;
};

struct ap_pricer {
	struct ap_arena *arena;
	const struct ap_machine *machine;
	const struct ap_step *step;
	struct ap_map *ids;
	AP_VEC(struct ap_group *) groups;
	const struct ap_group *direct[DIRECT_SLOTS]; /* single axes, by stride and size */
	struct remembered *priced; /* [slots] */
	uint32_t slots, filled;
	struct ap_pricer **block; /* [nstage] of unequal stages, made on first use */
};

struct ap_pricer *ap_pricer_create(struct ap_arena *arena, const struct ap_machine *m,
	const struct ap_step *step)
{
	struct ap_pricer *p = AP_NEW(arena, struct ap_pricer);

	p->arena = arena;
	p->machine = m;
	p->step = step;
	p->ids = ap_map_create(arena);
	p->slots = FEW_STEPS;
	p->priced = AP_NEW_N(arena, struct remembered, p->slots);
	return p;
}

const struct ap_machine *ap_pricer_machine(const struct ap_pricer *p)
{
	return p->machine;
}

struct ap_pricer *ap_pricer_at(struct ap_pricer *p, int32_t block)
{
	const struct ap_machine *m = p->machine;

	if (!m->part)
		return p;
	if (!p->block)
		p->block = AP_NEW_N(p->arena, struct ap_pricer *, m->nstage);
	if (!p->block[block])
		p->block[block] = ap_pricer_create(p->arena, ap_machine_at(m, block), p->step);
	return p->block[block];
}

const struct ap_step *ap_pricer_step(const struct ap_pricer *p)
{
	return p->step;
}

static const struct ap_group *interned(struct ap_pricer *p, const struct ap_axes *axes)
{
	bool fresh;
	ap_id id = ap_map_put(p->ids, axes->axis, (size_t)axes->n * sizeof *axes->axis, &fresh);

	if (fresh) {
		struct ap_group *g = AP_NEW(p->arena, struct ap_group);

		ap_group_make(p->arena, p->machine, axes, g);
		AP_PUSH(p->arena, p->groups, g);
	}
	return p->groups.v[id];
}

const struct ap_group *ap_pricer_group(struct ap_pricer *p, const struct ap_axes *axes)
{
	const struct ap_group **slot;

	if (axes->n != 1)
		return interned(p, axes);
	slot = &p->direct[((uint32_t)axes->axis[0].stride * 37u + (uint32_t)axes->axis[0].size) &
		(DIRECT_SLOTS - 1)];
	if (!*slot || !ap_axes_equal(&(*slot)->axes, axes))
		*slot = interned(p, axes);
	return *slot;
}

double ap_comm_time_s(struct ap_pricer *pr, const struct ap_comm *c, const char **algorithm)
{
	if (c->kind == AP_COLL_SEND) {
		if (algorithm)
			*algorithm = "point to point";
		return ap_send_time_s(pr->machine, (uint32_t)c->from_stage, (uint32_t)c->to_stage,
			(double)c->bytes);
	}
	pr = ap_pricer_at(pr, c->block);
	return ap_coll_time_s(pr->machine, c->kind, ap_pricer_group(pr, &c->axes),
		(double)c->bytes, algorithm);
}

static struct remembered *slot_of(struct remembered *priced, uint32_t slots, int64_t before, uint64_t sig)
{
	uint64_t h = (uint64_t)before * UINT64_C(0x9e3779b97f4a7c15) ^
		sig * UINT64_C(0xff51afd7ed558ccd);

	return &priced[(uint32_t)(h >> 40) & (slots - 1)];
}

/* The slot of a step, whatever it holds. */
static struct remembered *recall(struct ap_pricer *pr, int64_t before, uint64_t sig)
{
	if (pr->filled > pr->slots / 2 && pr->slots < MOST_STEPS) {
		struct remembered *wider = AP_NEW_N(pr->arena, struct remembered, 8 * pr->slots);

		for (uint32_t i = 0; i < pr->slots; i++) {
			const struct remembered *r = &pr->priced[i];

			if (r->signature != 0)
				*slot_of(wider, 8 * pr->slots, r->before, r->signature) = *r;
		}
		pr->priced = wider;
		pr->slots *= 8;
	}
	return slot_of(pr->priced, pr->slots, before, sig);
}

/* A local copy of so many bytes: read and written. */
static double copy_s(const struct ap_chip *chip, double bytes)
{
	struct ap_kernel k = {.unit = AP_OP_MEMORY, .dtype = AP_FLOAT32, .bytes = 2 * bytes};

	return ap_kernel_time_s(chip, &k);
}

static double coll_s(struct ap_pricer *pr, enum ap_coll c, struct ap_axis axis, double bytes)
{
	struct ap_axes axes = {.n = 1, .axis = {axis}};

	return ap_coll_time_s(ap_pricer_machine(pr), c, ap_pricer_group(pr, &axes), bytes, NULL);
}

/* Gradients are floats: a reduced two-byte type may travel as four. */
static double widened(struct ap_pricer *pr, int dtype_bytes)
{
	return ap_pricer_step(pr)->force_fp32 && dtype_bytes == 2 ? 2 : 1;
}

static double gather_s(struct ap_pricer *pr, const struct ap_reshard_step *s, int dtype_bytes,
	bool adjoint)
{
	enum ap_coll c = adjoint ? ap_coll_adjoint(AP_COLL_ALLGATHER) : AP_COLL_ALLGATHER;
	double after = (double)s->after * dtype_bytes;

	return coll_s(pr, c, s->axis, c == AP_COLL_REDUCESCATTER ? widened(pr, dtype_bytes) * after : after) +
		(s->first ? 0 : 2 * copy_s(ap_pricer_machine(pr)->chip, after));
}

static double reached(const void *of, int64_t parts)
{
	return ap_expert_parts(of, parts);
}

/* Tokens, each of which goes to each of its experts, or to each block of ranks that has any. */
static double exchange_s(struct ap_pricer *pr, const struct ap_reshard_step *s, double bytes,
	const struct ap_expert_choice *choice)
{
	struct ap_axes axes = {.n = 1, .axis = {s->axis}};
	struct ap_relay relay = {bytes / (double)choice->active, reached, choice};

	return ap_relay_time_s(ap_pricer_machine(pr), ap_pricer_group(pr, &axes), &relay) +
		copy_s(ap_pricer_machine(pr)->chip, bytes);
}

/* One step: SplitByAxis is a StridedSlice; ConcatByAxis an AllGather, followed by Split and Concat
 * unless along the first dimension; PermuteByAxis an AlltoAll with its reordering (formats 5.2).
 * The adjoint has the same copies, with ReduceScatter for AllGather and zero padding for a slice. */
static double step_s(struct ap_pricer *pr, const struct ap_reshard_step *s, int dtype_bytes,
	bool adjoint)
{
	const struct ap_chip *chip = ap_pricer_machine(pr)->chip;
	double before = (double)s->before * dtype_bytes, after = (double)s->after * dtype_bytes;

	switch (s->move) {
	case AP_MOVE_SLICE:
		return copy_s(chip, adjoint ? (before + after) / 2 : after);
	case AP_MOVE_GATHER:
		return gather_s(pr, s, dtype_bytes, adjoint);
	case AP_MOVE_ALLTOALL:
		return coll_s(pr, AP_COLL_ALLTOALL, s->axis, before) + copy_s(chip, before);
	case AP_MOVE_REDUCESCATTER: /* that gathered the other way */
		return coll_s(pr, AP_COLL_REDUCESCATTER, s->axis, widened(pr, dtype_bytes) * before) +
			(s->first ? 0 : 2 * copy_s(chip, before));
	case AP_MOVE_ALLREDUCE:
		return coll_s(pr, AP_COLL_ALLREDUCE, s->axis, widened(pr, dtype_bytes) * before);
	}
	return 0;
}

static int64_t step_bytes(const struct ap_reshard_step *s, int dtype_bytes)
{
	switch (s->move) {
	case AP_MOVE_GATHER:
		return (s->after - s->before) * dtype_bytes;
	case AP_MOVE_ALLTOALL:
		return s->before / s->axis.size * (s->axis.size - 1) * dtype_bytes;
	case AP_MOVE_SLICE:
	case AP_MOVE_REDUCESCATTER: /* only backward */
	case AP_MOVE_ALLREDUCE:
		break;
	}
	return 0;
}

static void step_cost_make(struct ap_pricer *pr, const struct ap_reshard_step *s, int dtype_bytes,
	struct steps_cost *out)
{
	out->forward_s = step_s(pr, s, dtype_bytes, false);
	out->adjoint_s = step_s(pr, s, dtype_bytes, true);
	out->bytes = step_bytes(s, dtype_bytes);
}

/* Sums over the steps in order; caches the cost of each, but of tokens that are dispatched. */
static void steps_cost_make(struct ap_pricer *pr, const struct ap_reshard_step *steps, int n,
	int dtype_bytes, const struct ap_expert_choice *choice, struct steps_cost *out)
{
	struct steps_cost sum = {0};

	for (int i = 0; i < n; i++) {
		const struct ap_reshard_step *s = &steps[i];
		uint64_t sig = signature(s, dtype_bytes);
		struct remembered *r;

		if (choice->active && s->move == AP_MOVE_ALLTOALL) {
			sum.forward_s += exchange_s(pr, s, (double)s->before * dtype_bytes, choice);
			sum.bytes += step_bytes(s, dtype_bytes);
			continue;
		}
		r = recall(pr, s->before, sig);
		if (r->before != s->before || r->signature != sig) {
			pr->filled += r->signature == 0;
			*r = (struct remembered){.before = s->before, .signature = sig};
			step_cost_make(pr, s, dtype_bytes, &r->cost);
		}
		sum.forward_s += r->cost.forward_s;
		sum.adjoint_s += r->cost.adjoint_s;
		sum.bytes += r->cost.bytes;
	}
	*out = sum;
}

static double back_s(struct ap_pricer *pr, const struct ap_reshard_end *a,
	const struct ap_reshard_end *b, int dtype_bytes, const struct ap_expert_choice *choice)
{
	struct ap_reshard_step steps[AP_RESHARD_MAX];
	struct steps_cost back;

	steps_cost_make(pr, steps,
		ap_reshard_back(b, a, ap_reshard_ways(ap_pricer_step(pr)), steps), dtype_bytes, choice,
		&back);
	return back.forward_s;
}

/* As in Megatron: if data was gathered for a consumer, only the producer's part is kept, and
 * gathered again for the backward pass, unless the software holds it. */
static bool gathers_again(const struct ap_flow *f, const struct ap_step *step,
	const struct ap_reshard_step *steps, int n)
{
	return f->kept && step->executor == AP_EXECUTOR_GENERIC && n > 0 &&
		!(step->software && step->software->gathers_held) && steps[n - 1].after > steps[0].before;
}

/* Bytes of an element on the way to its reader: what is gathered for products in 8 bits alone is brought into
 * them before. */
static int element_bytes(const struct ap_flow *f, const struct ap_reshard_step *steps, int n)
{
	bool gathers = false;

	for (int i = 0; i < n; i++) {
		if (steps[i].move == AP_MOVE_ALLTOALL)
			return ap_dtype_bytes(f->dtype);
		gathers |= steps[i].move == AP_MOVE_GATHER;
	}
	return f->float8 && gathers ? 1 : ap_dtype_bytes(f->dtype);
}

/* Between uneven experts the rank that has most of what they get sends or receives it. */
static double flow_load(const struct ap_flow *f, const struct ap_layout *a, const struct ap_layout *b)
{
	double most = 1;

	for (int d = 0; d < f->rank; d++)
		if (f->uneven >> d & 1)
			most = fmax(most, ap_expert_load(f->imbalance, f->size[d],
				a->dim[d].cut > b->dim[d].cut ? a->dim[d].cut : b->dim[d].cut));
	return most;
}

/* What two operators that are not one kernel, since something lies between them, take more: what flows is
 * written and read, and the second is started. */
static double apart_s(const struct ap_pricer *pr, const struct ap_flow *f, const struct ap_reshard_end *a,
	const struct ap_reshard_end *b, int dtype_bytes)
{
	double elements = (double)b->elements + (f->fused == AP_FUSED_READ ? 0 : (double)a->elements);
	struct ap_kernel k = {.unit = AP_OP_MEMORY, .dtype = f->dtype, .bytes = elements * dtype_bytes,
		.launch_s = pr->step->software->launch_s};

	return ap_kernel_time_s(pr->machine->chip, &k);
}

/* What is left to wait for of gathers for products that run beside them, and back: at least a part. */
static double waited_share(const struct ap_pricer *pr, const struct ap_flow *f,
	const struct ap_reshard_step *steps, int n)
{
	const struct ap_step *step = ap_pricer_step(pr);
	bool gathers = f->beside && step->software;
	double parts = 1;

	for (int i = 0; i < n; i++) {
		gathers &= steps[i].move == AP_MOVE_GATHER;
		parts *= steps[i].axis.size;
	}
	return gathers ? fmax(1 / parts, 1 - step->software->gather_overlap) : 1;
}

struct sending {
	struct ap_arena *arena;
	uint32_t from, to; /* first ranks of the stages */
	double element_bytes;
	AP_VEC(struct ap_sent) sent;
};

static void add_piece(void *user, const struct ap_piece *p)
{
	struct sending *x = user;

	AP_PUSH(x->arena, x->sent, ((struct ap_sent){x->from + (uint32_t)p->from, x->to + (uint32_t)p->to,
		(double)p->elements * x->element_bytes}));
}

/* Seconds to bring a tensor from its layout in one stage to its layout in another. */
static double pieces_s(struct ap_pricer *pr, const struct ap_flow *f, int32_t from_stage,
	const struct ap_layout *a, int32_t to_stage, const struct ap_layout *b, double element_bytes)
{
	struct ap_mark mark = ap_arena_mark(pr->arena);
	const struct ap_machine *m = pr->machine;
	struct sending x = {.arena = pr->arena, .from = ap_machine_first(m, from_stage),
		.to = ap_machine_first(m, to_stage), .element_bytes = element_bytes};
	double time_s;

	ap_pieces_each(pr->arena, &(struct ap_pieces_side){a, ap_machine_at(m, from_stage)->ndev},
		&(struct ap_pieces_side){b, ap_machine_at(m, to_stage)->ndev}, f->size, add_piece, &x);
	time_s = ap_sends_time_s(pr->arena, m, x.sent.v, x.sent.n);
	ap_arena_release(pr->arena, mark);
	return time_s;
}

/* What is sent to another number of devices, and its gradient back. */
static void sent_cost_make(struct ap_pricer *pr, const struct ap_flow *f, const struct ap_layout *a,
	const struct ap_layout *b, int64_t elements, struct ap_move_cost *out)
{
	const struct ap_step *step = pr->step;
	int bytes = ap_dtype_bytes(f->dtype), back = ap_dtype_is_float8(f->dtype) ? 2 : bytes;
	double times = f->once ? 1 : (double)step->micro_batches;

	if (f->once && step->executor == AP_EXECUTOR_GENERIC) /* the sum of all micro-batches */
		back = ap_dtype_bytes(ap_gradient_wire(f->dtype, step));
	out->element_bytes = bytes;
	out->bytes = elements * bytes;
	out->forward_s = times * pieces_s(pr, f, f->from_stage, a, f->to_stage, b, bytes);
	if (f->grad)
		out->backward_s = times * pieces_s(pr, f, f->to_stage, b, f->from_stage, a, back);
	out->objective_s = ap_quantise_s(out->forward_s + out->backward_s, step->quantum_s);
}

void ap_move_cost_between(struct ap_pricer *pr, const struct ap_flow *f,
	const struct ap_reshard_end *a, const struct ap_reshard_end *b, struct ap_move_cost *out)
{
	const struct ap_step *step = ap_pricer_step(pr);
	struct ap_reshard_step steps[AP_RESHARD_MAX];
	int n, bytes = ap_dtype_bytes(f->dtype);
	int sharers = f->sharers > 0 ? f->sharers : 1;
	int wide = ap_dtype_is_float8(f->dtype) ? 2 : bytes; /* of a gradient, which is summed */
	double times = f->once ? 1 : (double)step->micro_batches;
	struct steps_cost sum;
	double load, waited;

	*out = (struct ap_move_cost){0};
	if (f->sent) {
		sent_cost_make(pr, f, &a->layout, &b->layout, b->elements, out);
		return;
	}
	pr = ap_pricer_at(pr, f->block);
	n = ap_reshard_moves(a, b, ap_reshard_ways(step), steps);
	if (n == 0 && b->partial.n == 0)
		return;
	load = f->uneven ? flow_load(f, &a->layout, &b->layout) : 1;
	waited = waited_share(pr, f, steps, n);
	out->element_bytes = n > 0 ? element_bytes(f, steps, n) : 0;
	steps_cost_make(pr, steps, n, n > 0 ? out->element_bytes : bytes, &f->choice, &sum);
	out->forward_s = load * waited * times * sum.forward_s;
	if (f->grad)
		out->backward_s = load * waited * (f->returns ? 1 : times) *
			(step->executor == AP_EXECUTOR_MINDSPORE ? sum.adjoint_s
			: back_s(pr, a, b, wide, &f->choice));
	out->bytes = sum.bytes;
	if (f->again && n > 0)
		out->kept_bytes = steps[n - 1].after * bytes / f->sets;
	else if (f->kept && n > 0 && !gathers_again(f, step, steps, n))
		out->kept_bytes = steps[n - 1].after * bytes;
	if (load > 1)
		out->kept_bytes = (int64_t)(load * (double)out->kept_bytes);
	if (!f->shown || f->again)
		out->charged_bytes = out->kept_bytes - (f->share ? out->kept_bytes / f->share : 0);
	if (f->kept && (f->again || gathers_again(f, step, steps, n)))
		out->again_s = out->forward_s;
	out->backward_s += out->again_s;
	if (f->fused) {
		double apart = load * times * apart_s(pr, f, a, b, bytes);

		out->forward_s += n > 0 ? apart : 0;
		out->backward_s += f->grad ? apart : 0;
	}
	out->charged_bytes /= sharers;
	out->objective_s = ap_quantise_s((out->forward_s + out->backward_s) / sharers, step->quantum_s);
}

void ap_move_cost_make(struct ap_pricer *pr, const struct ap_flow *f, const struct ap_layout *a,
	const struct ap_layout *b, const struct ap_axes *partial, struct ap_move_cost *out)
{
	struct ap_reshard_end from, to;

	ap_reshard_end_make(a, f->size, ap_flow_devices(pr->machine, f, false), &from);
	ap_reshard_end_make(b, f->size, ap_flow_devices(pr->machine, f, true), &to);
	if (partial)
		to.partial = *partial;
	ap_move_cost_between(pr, f, &from, &to, out);
}

int64_t ap_flow_devices(const struct ap_machine *m, const struct ap_flow *f, bool consumer)
{
	return ap_machine_at(m, f->sent && !consumer ? f->from_stage : f->block)->ndev;
}

/* Whose experts an operand of a node brings tokens to, or what these made of them back. */
static void choose(const struct ap_graph *g, ap_id node, uint32_t operand, struct ap_expert_choice *out)
{
	ap_id from = g->tensor[g->node[node].in[operand]].producer;
	bool there = from != AP_NONE && (!strcmp(g->node[from].type, "MoeDispatch") ||
		!strcmp(g->node[from].type, "MoeWeights"));
	const struct ap_node *n = &g->node[there ? from : node];
	const struct ap_shape *chosen;
	int64_t groups = ap_attr_int(&n->attrs, "expert_groups", 0);
	int64_t active = ap_attr_int(&n->attrs, "expert_groups_active", 0);

	if (!there && (strcmp(n->type, "MoeCombine") != 0 || operand != 0))
		return;
	chosen = &g->tensor[n->in[1]].shape;
	*out = (struct ap_expert_choice){.experts = g->tensor[g->node[node].in[operand]].shape.dim[1],
		.active = chosen->dim[chosen->rank - 1]};
	if (active < 1 || groups <= active || groups > out->experts || out->experts % groups)
		return;
	out->groups = groups;
	out->groups_active = active;
}

void ap_flow_make(const struct ap_graph *g, const struct ap_task *tasks, ap_id node, uint32_t operand,
	const struct ap_step *step, struct ap_flow *out)
{
	const struct ap_tensor *t = &g->tensor[g->node[node].in[operand]];
	const struct ap_task_operand *in = &tasks[node].in[operand];

	memset(out, 0, sizeof *out);
	out->rank = t->shape.rank;
	out->dtype = t->shape.dtype;
	out->grad = in->grad;
	out->kept = in->kept && !in->cast;
	out->again = in->again;
	out->once = tasks[node].once;
	out->float8 = in->float8_only && step->executor == AP_EXECUTOR_GENERIC;
	out->returns = in->returns;
	out->beside = in->beside;
	out->fused = in->fused;
	out->uneven = t->uneven;
	out->imbalance = tasks[node].imbalance;
	out->shown = in->share > 0 && tasks[node].bound->row->unit == AP_OP_VIEW;
	out->share = in->share;
	out->sharers = in->sharers;
	out->sets = tasks[node].recompute_sets;
	out->in_flight = tasks[node].in_flight;
	out->block = tasks[node].block;
	if (tasks[node].received) {
		out->sent = true;
		out->from_stage = tasks[node].peer;
		out->to_stage = tasks[node].stage;
	}
	if (step->experts_relayed)
		choose(g, node, operand, &out->choice);
	for (int d = 0; d < t->shape.rank; d++) {
		out->size[d] = t->shape.dim[d];
		if (t->batch >> d & 1)
			out->size[d] /= step->micro_batches;
	}
}

void ap_input_layout(const struct ap_shape *shape, uint8_t batch, struct ap_arrival given,
	int64_t ndev, const struct ap_step *step, struct ap_layout *out)
{
	int64_t extent, parts;

	*out = (struct ap_layout){.rank = shape->rank};
	for (int d = 0; d < shape->rank; d++)
		out->dim[d].cut = 1;
	if (given.cut > 1)
		out->dim[given.dim] = (struct ap_cut_dim){given.cut, given.stride};
	for (int d = 0; d < shape->rank && given.cut == 0; d++) {
		if (step->full_batch || !(batch >> d & 1))
			continue;
		extent = shape->dim[d] / step->micro_batches;
		parts = ap_gcd(extent, ndev);
		if (parts > 1)
			out->dim[d] = (struct ap_cut_dim){(int32_t)parts, 1};
		return;
	}
}
