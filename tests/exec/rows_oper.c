/* SPDX-License-Identifier: Apache-2.0 */
/* A random operator: bound, with its truth, as a task, and cut as the planner says. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "fault.h"
#include "cost/comms.h"
#include "rule/attr.h"
#include "rule/bind.h"
#include "rule/deal.h"
#include "shard/imposed.h"
#include "shard/layout.h"

enum { MOST_ELEMENTS = 4096 };

static uint64_t draw(uint64_t *rng, enum ex_draw how, int64_t limit)
{
	switch (how) {
	case EX_DRAW_SMALL:
		return ex_below(rng, 8);
	case EX_DRAW_BOOL:
		return ex_below(rng, 2);
	case EX_DRAW_INDEX:
		assert(limit > 0);
		return ex_below(rng, (uint32_t)limit);
	case EX_DRAW_FIELD:
	case EX_DRAW_DISTINCT:
		break;
	}
	return 1 + ex_hash(ex_next(rng), 0) % (EX_P - 1);
}

static void shuffle(uint64_t *rng, struct ex_tensor *t)
{
	for (int64_t i = 0; i < ex_count(&t->box); i++) {
		int64_t k = ex_below(rng, (uint32_t)i + 1);

		t->v[i] = t->v[k];
		t->v[k] = (uint64_t)i + 1;
	}
}

static struct ex_tensor draw_operand(struct ap_arena *a, const struct ex_sample *s, int i,
	uint64_t *rng)
{
	struct ex_box b = ex_box_whole(&s->in[i]);
	struct ex_tensor t = ex_tensor_new(a, &b);
	enum ex_draw how = s->draw[i];

	if (s->ties && (how == EX_DRAW_FIELD || how == EX_DRAW_DISTINCT))
		how = EX_DRAW_SMALL;
	if (how == EX_DRAW_DISTINCT)
		shuffle(rng, &t);
	else
		for (int64_t k = 0; k < ex_count(&b); k++)
			t.v[k] = draw(rng, how, s->limit[i]);
	return t;
}

/* The first result always, others mostly; never those that are not compared. */
static void draw_gradients(struct ap_arena *a, struct ex_case *c, uint64_t *rng)
{
	for (int i = 0; i < c->bound.nout; i++) {
		struct ex_box b = ex_box_whole(&c->out_shape[i]);
		bool some = i == 0 || ex_below(rng, 4) > 0;

		c->truth.dout[i] = ex_tensor_new(a, &b);
		c->truth.out_grad[i] = some && ap_dtype_is_float(b.dtype) &&
			!(c->kernel->opaque >> i & 1);
		for (int64_t k = 0; c->truth.out_grad[i] && k < ex_count(&b); k++)
			c->truth.dout[i].v[k] = ex_hash(ex_next(rng), 0);
	}
}

static const struct ap_layout *uncut(struct ap_arena *a, int n)
{
	struct ap_layout *l = AP_NEW_N(a, struct ap_layout, n ? n : 1);

	for (int i = 0; i < n; i++) {
		l[i].rank = AP_MAX_RANK;
		for (int d = 0; d < AP_MAX_RANK; d++)
			l[i].dim[d].cut = 1;
	}
	return l;
}

static struct ex_oper oper_of(const struct ex_case *c)
{
	return (struct ex_oper){
		.type = c->sample->type, .attrs = &c->sample->attrs, .nin = c->bound.nin,
		.nout = c->bound.nout, .slot = c->sample->slot, .in_shape = c->sample->in,
		.out_shape = c->out_shape, .in_grad = c->in_grad, .out_grad = c->truth.out_grad,
		.in_differentiable = c->in_differentiable,
	};
}

/* On one rank. What is made lives in the arena of the run. */
static void find_truth(struct ex_world *w, struct ex_case *c)
{
	struct ap_ctx kept = *w->ctx;
	struct ex_world one = {.ctx = &kept, .ndev = 1, .executor = w->executor};
	struct ex_oper o = oper_of(c);
	struct ex_shards in[EX_MAX_IN], out[EX_MAX_OUT], din[EX_MAX_IN], dout[EX_MAX_OUT];
	struct ex_run *run;

	kept.scratch = w->ctx->arena;
	o.in = uncut(kept.arena, o.nin);
	o.out = uncut(kept.arena, o.nout);
	for (int i = 0; i < o.nin; i++) {
		c->truth.in[i] = draw_operand(kept.arena, c->sample, i, &w->rng);
		if (ex_count(&c->truth.in[i].box) > MOST_ELEMENTS)
			ex_trouble(w, "operand %d of more than %d elements", i, MOST_ELEMENTS);
		in[i] = (struct ex_shards){1, &c->truth.in[i]};
	}
	draw_gradients(kept.arena, c, &w->rng);
	for (int i = 0; i < o.nout; i++)
		dout[i] = (struct ex_shards){1, &c->truth.dout[i]};
	run = ex_forward(&one, &o, in, out);
	ex_backward(&one, run, dout, din);
	for (int i = 0; i < o.nout; i++)
		c->truth.out[i] = out[i].of[0];
	for (int i = 0; i < o.nin; i++)
		c->truth.din[i] = din[i].of[0];
	if (one.trouble)
		ex_trouble(w, "on one rank: %s", one.trouble);
}

/* Has the row the gradients of the definition? */
static void check_gradients(struct ex_world *w, struct ex_case *c)
{
	const char *flag = c->kernel->no_grad_if;
	bool none = flag && ap_attr_bool(&c->sample->attrs, flag, false);

	for (int i = 0; i < c->bound.nin; i++) {
		bool defined = ap_dtype_is_float(c->sample->in[i].dtype) &&
			!(c->kernel->no_grad >> c->sample->slot[i] & 1) && !none;

		c->in_differentiable[i] = c->bound.in[i].differentiable;
		c->in_grad[i] = c->in_differentiable[i];
		if (c->in_differentiable[i] != defined)
			ex_trouble(w, "operand %d has %s gradient by the row, %s by the definition", i,
				defined ? "no" : "a", defined ? "one" : "none");
	}
}

static void break_rule(struct ex_world *w, struct ex_case *c)
{
	struct ap_op_row *row;

	if (!w->fault || !w->fault->bound)
		return;
	row = ap_arena_memdup(w->ctx->arena, c->bound.row, sizeof *row);
	c->bound.row = row;
	w->faulted |= w->fault->bound(w, &c->bound, row);
}

bool ex_case_make(struct ex_world *w, const struct ex_sample *s, struct ex_case *out)
{
	struct ap_bind_in in = {.type = s->type, .attrs = &s->attrs, .nin = s->nin, .nout = s->nout,
		.in = s->in, .slot = s->slot, .declared = s->nout ? s->declared : NULL};
	struct ap_bind_fault fault;

	memset(out, 0, sizeof *out);
	out->sample = s;
	out->kernel = ex_kernel_find(s->type);
	if (ap_rule_bind(w->ctx, &in, &out->bound, &fault) != AP_OK) {
		ex_trouble(w, "%s: %s", fault.check, fault.text);
		return false;
	}
	assert(out->bound.nin == s->nin && out->bound.nout <= EX_MAX_OUT);
	for (int i = 0; i < out->bound.nout; i++) {
		const struct ap_operand *o = &out->bound.out[i];

		out->out_shape[i] = (struct ap_shape){.rank = o->rank, .dtype = o->dtype};
		memcpy(out->out_shape[i].dim, o->size, sizeof o->size);
	}
	ex_sample_load(w, s, &out->bound);
	break_rule(w, out);
	check_gradients(w, out);
	find_truth(w, out);
	return !w->trouble;
}

bool ex_case_deal(struct ex_world *w, struct ex_case *c)
{
	static const struct ap_step step = AP_STEP_DEFAULT;

	if (!c->bound.dealt && ap_bound_deal(w->ctx, &c->bound, &step))
		return true;
	if (ap_rule_deal_factor(&c->bound) < 0)
		return false;
	ap_rule_deal_always(w->ctx, &c->bound);
	return true;
}

void ex_case_draw(struct ex_world *w, enum ex_tasks tasks, struct ex_case *c)
{
	static const int64_t sizes[] = {-1, 2, 4};
	bool any = false;

	c->step = (struct ap_step)AP_STEP_DEFAULT;
	c->step.executor = w->executor;
	c->step.optimizer_sharding = tasks == EX_SHARDED;
	c->step.shard_size = sizes[ex_below(&w->rng, 3)];
	if (w->executor == AP_EXECUTOR_GENERIC)
		c->step.dealing = (enum ap_dealing)ex_below(&w->rng, AP_DEALING_FLAT + 1);
	c->step.gradient_fp32_sync = ex_below(&w->rng, 2);
	w->gradient_fp32_sync = c->step.gradient_fp32_sync;
	for (int i = 0; i < c->bound.nin; i++) {
		bool grad = c->in_differentiable[i];
		bool param = grad && tasks != EX_ACTIVATIONS && ex_below(&w->rng, 3) > 0;

		c->in_grad[i] = grad && (param || ex_below(&w->rng, 8) > 0);
		any |= c->in_grad[i];
		c->in[i] = (struct ap_task_operand){
			.kind = param ? AP_TENSOR_PARAM : AP_TENSOR_ACT, .grad = c->in_grad[i],
			.owner = param, .trainable = param, .shardable = param, .twin = (uint8_t)i};
	}
	for (int i = 0; i < c->bound.nout; i++)
		c->out[i] = (struct ap_task_result){.grad = any && c->truth.out_grad[i]};
	c->task = (struct ap_task){.bound = &c->bound, .backward = any, .in = c->in, .out = c->out,
		.cross_batch = ap_attr_bool(&c->sample->attrs, "cross_batch", false)};
}

/* The axes that cut a dimension, by the numbers that are written: one, or a list. */
static uint8_t axes_of_dim(const struct ap_placement *p, const struct ap_dev_matrix *dev,
	const struct ap_dim *dim, int64_t axes[AP_MAX_DIM_FACTOR])
{
	uint8_t n = 0;

	for (int i = 0; i < dim->n; i++) {
		struct ap_operand alone = {.rank = 1, .dim = {{1, {dim->factor[i]}}}};
		int32_t map[AP_MAX_RANK];

		if (p->count[dim->factor[i]] > 1 && ap_tensor_map(p, &alone, dev, map))
			axes[n++] = map[0];
	}
	return n;
}

/* Does dev with its maps say what the layout says? */
static bool agrees(const struct ap_placement *p, const struct ap_dev_matrix *dev,
	const struct ap_operand *t, const struct ap_layout *l)
{
	int64_t matrix[AP_MAX_FACTOR + 1], axes[AP_MAX_RANK][AP_MAX_DIM_FACTOR] = {{0}};
	uint8_t n[AP_MAX_RANK] = {0};
	struct ap_layout read;
	int32_t map[AP_MAX_RANK];
	bool single = ap_tensor_map(p, t, dev, map);

	for (int i = 0; i < dev->n; i++)
		matrix[i] = dev->axis[i];
	for (int d = 0; d < t->rank; d++)
		if (single && map[d] >= 0) {
			n[d] = 1;
			axes[d][0] = map[d];
		} else if (!single) {
			n[d] = axes_of_dim(p, dev, &t->dim[d], axes[d]);
		}
	return ex_layout_of_map(dev->n, matrix, t->rank, n, (const int64_t(*)[AP_MAX_DIM_FACTOR])axes,
		       &read) && ap_layout_equal(&read, l);
}

static void lay_out(struct ex_world *w, const struct ap_placement *p, const char *what,
	const struct ap_operand *t, int n, struct ap_layout *out)
{
	struct ap_dev_matrix raw, standard;

	ap_dev_matrix_raw(p, &raw);
	ap_dev_matrix_standard(p, &standard);
	for (int i = 0; i < n; i++)
		if (!ap_layout_make(p, &t[i], &out[i]))
			ex_trouble(w, "%s %d has no layout", what, i);
		else if (!agrees(p, &raw, &t[i], &out[i]) || !agrees(p, &standard, &t[i], &out[i]))
			ex_trouble(w, "%s %d: dev_matrix and tensor_map are not its layout", what, i);
}

static void take(void *user, const struct ap_comm *c)
{
	struct ex_comms *list = user;

	assert(list->n < EX_MAX_COMM);
	list->v[list->n++] = *c;
}

struct ex_oper ex_oper_of_counts(struct ex_world *w, const struct ex_case *c, const int32_t *count,
	struct ap_placement *p)
{
	struct ex_oper o = oper_of(c);
	struct ex_comms *comms = AP_NEW(w->ctx->scratch, struct ex_comms);
	struct ap_layout *in = AP_NEW_N(w->ctx->scratch, struct ap_layout, o.nin + 1);
	struct ap_layout *out = AP_NEW_N(w->ctx->scratch, struct ap_layout, o.nout + 1);

	ap_placement_make(&c->bound, count, w->ndev, p);
	if (w->fault && w->fault->place)
		w->faulted |= w->fault->place(w, p);
	lay_out(w, p, "operand", c->bound.in, o.nin, in);
	lay_out(w, p, "result", c->bound.out, o.nout, out);
	ap_comms_derive(&c->task, p, &c->step, take, comms);
	for (int i = 0; i < o.nin; i++) {
		struct ap_comm sum = {.phase = AP_PHASE_BACKWARD, .kind = AP_COLL_ALLREDUCE, .operand = i,
			.result = -1, .bytes = ap_stored_bytes(&c->task, i, p, &c->step)};

		ap_gradient_partial(&c->task, i, p, &c->step, &sum.axes);
		if (sum.axes.n > 0)
			take(comms, &sum);
	}
	o.in = in;
	o.out = out;
	o.comm = comms->v;
	if (w->fault && w->fault->layout)
		w->faulted |= w->fault->layout(w, &o, in, out);
	o.ncomm = comms->n;
	if (w->fault && w->fault->comms)
		w->faulted |= w->fault->comms(w, &o, comms);
	o.ncomm = comms->n;
	if (!ex_is_placed(&o, w->ndev))
		ex_trouble(w, "it does not lie where MindSpore places it");
	return o;
}
