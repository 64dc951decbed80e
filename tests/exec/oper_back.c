/* SPDX-License-Identifier: Apache-2.0 */
/* Backward: adjoints of what the forward pass ran, as far as the planner has collectives for them. */
#include <string.h>

#include "base/arena.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "oper_parts.h"

static void run_back(struct ex_world *w, const struct ex_oper *o, const struct ap_comm *c, struct ex_shards *g)
{
	enum ap_dtype t = ex_sent_as(o, c, g->of[0].box.dtype);

	if (c->kind == AP_COLL_RING && c->dim < g->of[0].box.rank) {
		ex_check_bytes(w, c, 2 * ex_count(&g->of[0].box), t); /* beside what it is the gradient of */
		ex_reduce_scatter(w, &c->axes, c->dim, g);
		return;
	}
	if (c->kind == AP_COLL_ALLGATHER && g->of[0].box.rank > 0)
		ex_all_gather(w, &c->axes, 0, g);
	else if (c->kind == AP_COLL_ALLREDUCE)
		ex_all_reduce(w, &c->axes, AP_REDUCE_SUM, g);
	else if (c->kind == AP_COLL_ALLTOALL)
		ex_all_to_all(w, &c->axes, c->dim, c->concat, g);
	else if (c->kind != AP_COLL_SEND)
		ex_trouble(w, "%s of a gradient", ap_coll_name(c->kind));
	ex_check_bytes(w, c, ex_count(&g->of[0].box), t);
}

static void run_all_back(struct ex_world *w, const struct ex_oper *o, int result,
	struct ex_shards *g)
{
	for (uint32_t c = 0; c < o->ncomm; c++)
		if (ex_is_of_result(&o->comm[c], AP_PHASE_BACKWARD, result))
			run_back(w, o, &o->comm[c], g);
}

/* What a reduction does to a gradient on its own rank. */
static uint64_t locally(const struct ap_comm *c, uint64_t g, uint64_t own, uint64_t all)
{
	switch (c->reduce) {
	case AP_REDUCE_MEAN:
		return ex_mul(g, ex_inverse((uint64_t)ap_axes_size(&c->axes)));
	case AP_REDUCE_MAX:
	case AP_REDUCE_MIN:
		return own == all ? g : 0;
	case AP_REDUCE_PROD:
		return own ? ex_mul(g, ex_mul(all, ex_inverse(own))) : 0;
	case AP_REDUCE_SUM:
		break;
	}
	return g;
}

static void adjoin(const struct ex_run *r, int result, struct ex_shards *g)
{
	for (uint32_t i = 0; i < r->o->ncomm; i++) {
		const struct ap_comm *c = &r->o->comm[i];

		if (!ex_is_of_result(c, AP_PHASE_FORWARD, result) || c->kind != AP_COLL_ALLREDUCE)
			continue;
		for (int64_t d = 0; d < g->ndev; d++)
			for (int64_t e = 0; e < ex_count(&g->of[d].box); e++)
				g->of[d].v[e] = locally(c, g->of[d].v[e],
					r->made[result].of[d].v[e], r->reduced[result].of[d].v[e]);
	}
}

/* Gives a gradient to the numbers of a value; narrow: its copy in 8 bits. */
static void seed(struct ex_world *w, struct ex_tape *t, const struct ex_value *v,
	const struct ex_tensor *g, bool narrow)
{
	if (ex_count(&g->box) != ex_count(&v->box)) {
		ex_trouble(w, "a gradient of other extents than its result");
		return;
	}
	for (int64_t e = 0; e < ex_count(&v->box); e++)
		if (v->id[e])
			ex_tape_seed(t, v->id[e], narrow ? ex_copy_in_8_bits(g->v[e]) : g->v[e]);
}

static void seed_results(struct ex_world *w, struct ex_run *r, const struct ex_shards *dout,
	bool inner)
{
	for (int i = 0; i < r->o->nout; i++) {
		struct ex_shards g;

		if (!r->o->out_grad[i] || ex_is_inner(r, i) != inner)
			continue;
		g = dout[i];
		if (!inner) {
			run_all_back(w, r->o, i, &g);
			adjoin(r, i, &g);
		}
		for (int64_t d = 0; d < w->ndev; d++)
			seed(w, &r->rank[d].tape, &r->rank[d].out[i], &g.of[d], r->o->in_8_bits);
	}
}

static struct ex_tensor gradient_of(struct ex_world *w, const struct ex_tape *t,
	const struct ex_value *v)
{
	struct ex_tensor g = ex_tensor_new(w->ctx->scratch, &v->box);

	for (int64_t e = 0; e < ex_count(&v->box); e++)
		g.v[e] = ex_tape_grad(t, v->id[e]);
	return g;
}

/* Sweeps the last stage and adds what reached its statistics. */
static void sweep_stage(struct ex_world *w, struct ex_run *r, struct ex_shards *statistic)
{
	for (int64_t d = 0; d < w->ndev; d++) {
		struct ex_run_rank *k = &r->rank[d];

		ex_tape_back(&k->tape, k->staged, k->tape.n);
		for (int i = 0; i < r->o->nout; i++) {
			struct ex_tensor g;

			if (!ex_is_inner(r, i))
				continue;
			g = gradient_of(w, &k->tape, &k->leaf[i]);
			for (int64_t e = 0; e < ex_count(&g.box); e++)
				statistic[i].of[d].v[e] = ex_add(statistic[i].of[d].v[e], g.v[e]);
		}
		memset(k->tape.grad + k->staged, 0, (k->tape.n - k->staged) * sizeof *k->tape.grad);
	}
}

static void reduce_statistics(struct ex_world *w, struct ex_run *r, struct ex_shards *statistic)
{
	for (int i = 0; i < r->o->nout; i++)
		if (ex_is_inner(r, i))
			run_all_back(w, r->o, i, &statistic[i]);
}

/*
 * The second of two stages. Gradients of statistics that come from outside: with adjoint collectives
 * they are each rank's own and are summed like those of the stage; without, they are complete on each
 * rank and must not be.
 */
static void back_to_stage_0(struct ex_world *w, struct ex_run *r, const struct ex_shards *dout)
{
	struct ex_shards statistic[EX_MAX_OUT];
	bool complete = w->executor == AP_EXECUTOR_GENERIC;

	for (int i = 0; i < r->o->nout; i++)
		if (ex_is_inner(r, i))
			statistic[i] = ex_like(w->ctx->scratch, &r->reduced[i]);
	seed_results(w, r, dout, false);
	sweep_stage(w, r, statistic);
	if (complete)
		reduce_statistics(w, r, statistic);
	seed_results(w, r, dout, true);
	sweep_stage(w, r, statistic);
	if (!complete)
		reduce_statistics(w, r, statistic);
	for (int i = 0; i < r->o->nout; i++)
		for (int64_t d = 0; d < w->ndev && ex_is_inner(r, i); d++)
			seed(w, &r->rank[d].tape, &r->rank[d].part[i], &statistic[i].of[d], false);
}

/* Rows of neighbours go back to them, the last exchange first; without a collective they are lost. */
static void return_halos(struct ex_world *w, struct ex_run *r, int operand, struct ex_shards *g)
{
	const struct ex_oper *o = r->o;
	struct ex_box whole = ex_box_whole(&o->in_shape[operand]);

	for (uint32_t i = o->ncomm; i-- > 0;) {
		const struct ap_comm *c = &o->comm[i];
		int k = r->ngrown;

		if (c->phase != AP_PHASE_BACKWARD || c->kind != AP_COLL_NEIGHBOREXCHANGE ||
			c->operand != operand)
			continue;
		while (--k >= 0 && !ap_axes_equal(&r->grown[k].axes, &c->axes))
			;
		if (k < 0)
			ex_trouble(w, "a halo is returned that was not exchanged");
		else
			ex_check_bytes(w, c, ex_exchange_back(w, &c->axes, r->grown[k].dim,
				r->grown[k].before, r->grown[k].after, g), whole.dtype);
	}
	for (int64_t d = 0; d < w->ndev; d++) {
		struct ex_box own = ex_box_slice(&whole, &o->in[operand], d);
		struct ex_tensor slice = ex_tensor_new(w->ctx->scratch, &own);

		ex_cut_out(&g->of[d], &slice);
		g->of[d] = slice;
	}
}

static void operand_gradient(struct ex_world *w, struct ex_run *r, int operand,
	struct ex_shards *g)
{
	const struct ex_oper *o = r->o;

	*g = ex_shards_new(w->ctx->scratch, w->ndev);
	for (int64_t d = 0; d < w->ndev; d++)
		g->of[d] = gradient_of(w, &r->rank[d].tape, &r->rank[d].in[operand]);
	if (r->ngrown)
		return_halos(w, r, operand, g);
	for (uint32_t i = 0; i < o->ncomm; i++)
		if (o->comm[i].phase == AP_PHASE_BACKWARD && o->comm[i].operand == operand &&
			o->comm[i].kind != AP_COLL_NEIGHBOREXCHANGE)
			run_back(w, o, &o->comm[i], g);
}

static void no_gradient(struct ex_world *w, const struct ex_oper *o, int operand,
	struct ex_shards *g)
{
	struct ex_box whole = ex_box_whole(&o->in_shape[operand]);

	*g = ex_shards_new(w->ctx->scratch, w->ndev);
	for (int64_t d = 0; d < w->ndev; d++) {
		struct ex_box b = ex_box_slice(&whole, &o->in[operand], d);

		g->of[d] = ex_tensor_new(w->ctx->scratch, &b);
	}
}

void ex_backward(struct ex_world *w, struct ex_run *r, const struct ex_shards *dout,
	struct ex_shards *din)
{
	for (int64_t d = 0; d < w->ndev; d++)
		ex_tape_begin_back(&r->rank[d].tape);
	if (r->kernel->stages == 2)
		back_to_stage_0(w, r, dout);
	else
		seed_results(w, r, dout, false);
	for (int64_t d = 0; d < w->ndev; d++)
		ex_tape_back(&r->rank[d].tape, 1, r->rank[d].staged);
	for (int i = 0; i < r->o->nin; i++)
		if (r->o->in_grad[i])
			operand_gradient(w, r, i, &din[i]);
		else
			no_gradient(w, r->o, i, &din[i]);
}
