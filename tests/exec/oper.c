/* SPDX-License-Identifier: Apache-2.0 */
/* Forward: an operator on all ranks. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "fault.h"
#include "oper_parts.h"

bool ex_stays_inside(const struct ex_oper *o, int result)
{
	bool some = false, own = false;

	for (uint32_t i = 0; i < o->ncomm; i++)
		if (o->comm[i].phase == AP_PHASE_FORWARD && o->comm[i].kind == AP_COLL_ALLTOALL &&
			o->comm[i].result >= 0) {
			some = true;
			own |= o->comm[i].result == result;
		}
	return some && !own;
}

static struct ap_arena *tapes_of(const struct ex_world *w)
{
	return w->tapes ? w->tapes : w->ctx->scratch;
}

static struct ex_value new_value(struct ex_world *w, const struct ex_box *b)
{
	return (struct ex_value){*b, AP_NEW_N(tapes_of(w), ex_id, ex_count(b))};
}

/* narrow: copies in 8 bits, whose gradients are those of the numbers. */
static struct ex_value on_tape(struct ex_world *w, struct ex_tape *t, const struct ex_tensor *x, bool narrow)
{
	struct ex_value v = new_value(w, &x->box);

	for (int64_t i = 0; i < ex_count(&x->box); i++)
		v.id[i] = ex_leaf(t, narrow ? ex_copy_in_8_bits(x->v[i]) : x->v[i]);
	return v;
}

/* The numbers of result i on all ranks, as the last stage made them. */
static struct ex_shards numbers(struct ex_world *w, const struct ex_run *r, int i)
{
	struct ex_shards s = ex_shards_new(w->ctx->scratch, w->ndev);

	for (int64_t d = 0; d < w->ndev; d++) {
		const struct ex_run_rank *k = &r->rank[d];

		s.of[d] = ex_tensor_new(w->ctx->scratch, &k->out[i].box);
		for (int64_t e = 0; e < ex_count(&s.of[d].box); e++)
			s.of[d].v[e] = ex_value_of(&k->tape, k->out[i].id[e]);
	}
	return s;
}

static void check_slices(struct ex_world *w, const struct ex_oper *o, const struct ex_shards *in)
{
	for (int i = 0; i < o->nin; i++) {
		struct ex_box whole = ex_box_whole(&o->in_shape[i]);

		for (int64_t d = 0; d < w->ndev; d++) {
			struct ex_box want = ex_box_slice(&whole, &o->in[i], d);
			const struct ex_box *b = &in[i].of[d].box;

			if (b->rank != want.rank || memcmp(b->size, want.size, sizeof b->size) != 0 ||
				memcmp(b->first, want.first, sizeof b->first) != 0)
				ex_trouble(w, "operand %d comes to rank %" PRId64
					" in another slice", i, d);
		}
	}
}

/* What the kernel sees of one rank; out: boxes of the results. */
static struct ex_job job_of(struct ex_world *w, struct ex_run *r, int64_t d)
{
	const struct ex_oper *o = r->o;

	return (struct ex_job){.tape = &r->rank[d].tape, .arena = w->ctx->scratch, .type = o->type,
		.attrs = o->attrs, .nin = o->nin, .nout = o->nout, .slot = o->slot,
		.in = r->rank[d].in, .out = r->rank[d].out, .share = 1};
}

/* The window of an operand's dimension that lies on just these ranks. */
static bool window_on(struct ex_world *w, struct ex_run *r, const struct ap_comm *c,
	struct ex_slide *slide, int *dim)
{
	const struct ap_layout *l = &r->o->in[c->operand];
	struct ex_job j = job_of(w, r, 0);

	for (int k = 0; k < AP_MAX_WINDOW && c->axes.n == 1; k++)
		if (ex_slide_of(&j, k, slide, dim) && l->dim[*dim].cut == c->axes.axis[0].size &&
			l->dim[*dim].stride == c->axes.axis[0].stride)
			return true;
	return false;
}

static void exchange(struct ex_world *w, struct ex_run *r, const struct ap_comm *c,
	struct ex_shards *in)
{
	struct ex_grown *g = &r->grown[r->ngrown];
	struct ex_slide slide;

	if (c->operand < 0 || c->operand >= r->o->nin || r->ngrown == AP_MAX_WINDOW ||
		!window_on(w, r, c, &slide, &g->dim)) {
		ex_trouble(w, "no window of operand %d lies on the ranks of the exchange",
			c->operand);
		return;
	}
	g->operand = c->operand;
	g->axes = c->axes;
	for (int64_t d = 0; d < w->ndev; d++) {
		int64_t parts = c->axes.axis[0].size, part = d / c->axes.axis[0].stride % parts;

		ex_halo(&slide, parts, part, &g->before[d], &g->after[d]);
		if (w->fault && w->fault->halo)
			w->faulted |= w->fault->halo(w, parts, part, &g->before[d],
				&g->after[d]);
	}
	ex_check_bytes(w, c, ex_exchange(w, &c->axes, g->dim, g->before, g->after, &in[g->operand]),
		r->o->in_shape[g->operand].dtype);
	r->ngrown++;
}

/* Keys and values go round: the kernel sees them whole. */
static void go_round(struct ex_world *w, struct ex_run *r, const struct ap_comm *c, struct ex_shards *in)
{
	struct ex_shards *s = &in[c->operand];

	if (c->operand < 0 || c->operand >= r->o->nin || c->dim >= s->of[0].box.rank) {
		ex_trouble(w, "operand %d cannot go round", c->operand);
		return;
	}
	ex_all_gather(w, &c->axes, c->dim, s);
	for (int64_t d = 0; d < w->ndev; d++)
		r->rank[d].in[c->operand].box = s->of[d].box;
	ex_check_bytes(w, c, ex_count(&s->of[0].box), s->of[0].box.dtype);
}

/* Parts of the sequence for parts of heads. */
static void swap(struct ex_world *w, struct ex_run *r, const struct ap_comm *c, struct ex_shards *in)
{
	struct ex_shards *s = &in[c->operand];

	ex_check_bytes(w, c, ex_count(&s->of[0].box), s->of[0].box.dtype);
	ex_all_to_all(w, &c->axes, c->dim, c->concat, s);
	for (int64_t d = 0; d < w->ndev; d++)
		r->rank[d].in[c->operand].box = s->of[d].box;
}

enum ap_dtype ex_sent_as(const struct ex_oper *o, const struct ap_comm *c, enum ap_dtype t)
{
	return o->narrow && o->narrow[c - o->comm] ? AP_FLOAT8_E4M3FN : t;
}

/* Operands on the tapes, first as they come, since windows are told from their boxes. */
static void take_operands(struct ex_world *w, struct ex_run *r, struct ex_shards *in)
{
	const struct ex_oper *o = r->o;

	for (int64_t d = 0; d < w->ndev; d++) {
		r->rank[d].in = AP_NEW_N(w->ctx->scratch, struct ex_value, o->nin);
		for (int i = 0; i < o->nin; i++)
			r->rank[d].in[i].box = in[i].of[d].box;
	}
	for (uint32_t i = 0; i < o->ncomm; i++)
		if (o->comm[i].phase == AP_PHASE_FORWARD &&
			o->comm[i].kind == AP_COLL_NEIGHBOREXCHANGE)
			exchange(w, r, &o->comm[i], in);
		else if (o->comm[i].phase == AP_PHASE_FORWARD && o->comm[i].kind == AP_COLL_RING)
			go_round(w, r, &o->comm[i], in);
		else if (o->comm[i].phase == AP_PHASE_FORWARD && o->comm[i].kind == AP_COLL_ALLTOALL &&
			o->comm[i].operand >= 0)
			swap(w, r, &o->comm[i], in);
	for (int64_t d = 0; d < w->ndev; d++) {
		ex_tape_init(&r->rank[d].tape, tapes_of(w));
		for (int i = 0; i < o->nin; i++) {
			struct ex_value *v = &r->rank[d].in[i];

			*v = on_tape(w, &r->rank[d].tape, &in[i].of[d], o->in_8_bits);
			if (w->fault && w->fault->box)
				w->faulted |= w->fault->box(w, o->type, o->slot[i], d, &v->box);
		}
	}
}

/* A result that is dealt after it was summed is computed in more rows. */
static int64_t dealt_to(const struct ex_oper *o, int result)
{
	for (uint32_t i = 0; i < o->ncomm; i++)
		if (ex_is_of_result(&o->comm[i], AP_PHASE_FORWARD, result) &&
			o->comm[i].kind == AP_COLL_REDUCESCATTER)
			return ap_axes_size(&o->comm[i].axes);
	return 1;
}

/* Where a result, of attention whose sequence was exchanged for heads, is computed. What only the way back reads
 * has heads and sequence where statistics have them. */
static void lay_out_swapped(const struct ex_oper *o, int result, int64_t rank, struct ex_box *b)
{
	for (uint32_t i = 0; i < o->ncomm; i++) {
		const struct ap_comm *c = &o->comm[i];
		bool own = c->result == result;
		int heads = own ? c->concat : 1, sequence = own ? c->dim : b->rank == 3 ? 0 : 2;
		int64_t n = ap_axes_size(&c->axes), part;

		if (c->phase != AP_PHASE_FORWARD || c->kind != AP_COLL_ALLTOALL || c->result < 0 || b->rank < 3 ||
			(!own && !ex_stays_inside(o, result)))
			continue;
		part = rank / c->axes.axis[0].stride % n;
		b->first[sequence] -= part * b->size[sequence];
		b->size[sequence] *= n;
		b->size[heads] /= n;
		b->first[heads] += part * b->size[heads];
		return;
	}
}

static void lay_out_results(struct ex_world *w, struct ex_run *r)
{
	const struct ex_oper *o = r->o;

	for (int64_t d = 0; d < w->ndev; d++) {
		r->rank[d].out = AP_NEW_N(w->ctx->scratch, struct ex_value, o->nout);
		for (int i = 0; i < o->nout; i++) {
			struct ex_box b = ex_box_whole(&o->out_shape[i]);
			int64_t dealt = dealt_to(o, i);

			b = ex_box_slice(&b, &o->out[i], d);
			if (b.rank > 0 && dealt > 1) {
				b.size[0] *= dealt;
				b.first[0] -= b.first[0] % b.size[0];
			}
			lay_out_swapped(o, i, d, &b);
			if (w->fault && w->fault->box)
				w->faulted |= w->fault->box(w, o->type, EX_MAX_IN + (unsigned)i, d,
					&b);
			r->rank[d].out[i] = new_value(w, &b);
		}
	}
}

/* Padding before the windows of the local boxes. */
static void pad(const struct ex_job *j, int64_t kernel_pad[AP_MAX_WINDOW])
{
	for (int k = 0; k < AP_MAX_WINDOW; k++) {
		struct ex_slide s;
		int64_t in, out;
		int dim;

		kernel_pad[k] = 0;
		if (!ex_slide_of(j, k, &s, &dim))
			continue;
		in = j->in[0].box.first[dim];
		out = j->out[0].box.first[dim];
		kernel_pad[k] = s.before + (s.transposed ? out - in * s.stride : in - out * s.stride);
	}
}

/* Ranks that a statistic is added up of. */
static int64_t share_of(const struct ex_run *r)
{
	for (int i = 0; i < r->o->nout; i++)
		for (uint32_t c = 0; ex_is_inner(r, i) && c < r->o->ncomm; c++)
			if (ex_is_of_result(&r->o->comm[c], AP_PHASE_FORWARD, i))
				return ap_axes_size(&r->o->comm[c].axes);
	return 1;
}

static void run_stage(struct ex_world *w, struct ex_run *r, int stage)
{
	for (int64_t d = 0; d < w->ndev; d++) {
		struct ex_job j = job_of(w, r, d);
		int64_t kernel_pad[AP_MAX_WINDOW];

		pad(&j, kernel_pad);
		j.kernel_pad = kernel_pad;
		j.share = share_of(r);
		j.stage = stage;
		if (!r->kernel->forward(&j))
			ex_trouble(w, "the operator cannot be carried out on the slices of rank %"
				PRId64, d);
		if (stage == 0)
			r->rank[d].staged = r->rank[d].tape.n;
	}
}

static void reduce(struct ex_world *w, const struct ap_comm *c, struct ex_shards *s)
{
	enum ap_dtype t = s->of[0].box.dtype;

	ex_check_bytes(w, c, ex_count(&s->of[0].box), t);
	if (c->kind == AP_COLL_SEND)
		return; /* rank by rank to another stage, which has the same ranks here */
	if (c->kind == AP_COLL_ALLREDUCE)
		ex_all_reduce(w, &c->axes, c->reduce, s);
	else if (c->kind == AP_COLL_REDUCESCATTER && s->of[0].box.rank > 0)
		ex_reduce_scatter(w, &c->axes, 0, s);
	else if (c->kind == AP_COLL_ALLTOALL)
		ex_all_to_all(w, &c->axes, c->dim, c->concat, s);
	else
		ex_trouble(w, "%s of result %d in the forward pass", ap_coll_name(c->kind), c->result);
	if (c->reduce != AP_REDUCE_MEAN)
		return;
	for (int64_t d = 0; d < s->ndev; d++)
		for (int64_t e = 0; e < ex_count(&s->of[d].box); e++)
			s->of[d].v[e] = ex_mul(s->of[d].v[e],
				ex_inverse((uint64_t)ap_axes_size(&c->axes)));
}

/* Result i after its collectives. */
static void collect(struct ex_world *w, struct ex_run *r, int i)
{
	r->made[i] = numbers(w, r, i);
	r->reduced[i] = r->made[i];
	for (uint32_t c = 0; c < r->o->ncomm; c++)
		if (ex_is_of_result(&r->o->comm[c], AP_PHASE_FORWARD, i))
			reduce(w, &r->o->comm[c], &r->reduced[i]);
}

/* Statistics are reduced and put back as new leaves; stage 1 works on copies of their ids. */
static void between_stages(struct ex_world *w, struct ex_run *r)
{
	const struct ex_oper *o = r->o;

	for (int i = 0; i < o->nout; i++)
		if (ex_is_inner(r, i))
			collect(w, r, i);
	for (int64_t d = 0; d < w->ndev; d++) {
		struct ex_run_rank *k = &r->rank[d];

		k->part = k->out;
		k->leaf = AP_NEW_N(w->ctx->scratch, struct ex_value, o->nout);
		k->out = AP_NEW_N(w->ctx->scratch, struct ex_value, o->nout);
		for (int i = 0; i < o->nout; i++) {
			k->leaf[i] = ex_is_inner(r, i) ? on_tape(w, &k->tape, &r->reduced[i].of[d], false)
				: k->part[i];
			k->out[i] = new_value(w, &k->leaf[i].box);
			memcpy(k->out[i].id, k->leaf[i].id,
				(size_t)ex_count(&k->leaf[i].box) * sizeof *k->leaf[i].id);
		}
	}
}

struct ex_run *ex_forward(struct ex_world *w, const struct ex_oper *o, const struct ex_shards *in,
	struct ex_shards *out)
{
	struct ex_run *r = AP_NEW(w->ctx->scratch, struct ex_run);
	struct ex_shards own[EX_MAX_IN];

	assert(o->nin <= EX_MAX_IN && o->nout <= EX_MAX_OUT && w->ndev <= EX_MAX_DEV);
	r->o = o;
	r->kernel = ex_kernel_find(o->type);
	assert(r->kernel);
	check_slices(w, o, in);
	memcpy(own, in, o->nin * sizeof *in);
	lay_out_results(w, r);
	take_operands(w, r, own);
	run_stage(w, r, 0);
	if (r->kernel->stages == 2) {
		between_stages(w, r);
		run_stage(w, r, 1);
	}
	for (int i = 0; i < o->nout; i++) {
		if (ex_is_inner(r, i))
			r->reduced[i] = numbers(w, r, i);
		else
			collect(w, r, i);
		out[i] = r->reduced[i];
	}
	return r;
}
