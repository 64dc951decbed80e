/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a graph on one rank. */
#include <inttypes.h>

#include "base/arena.h"
#include "program.h"

struct truth { /* in the making, on one rank */
	struct ex_world w;
	struct ap_ctx ctx; /* what is made lives as long as the run */
	struct ex_program p; /* only what it begins with */
	uint64_t seed;
	const struct ex_graph_truth *whole; /* whose inputs are taken apart; NULL: they are drawn */
	struct ex_graph_truth *out;
	struct ex_run **run; /* [nnode] of the micro-batch */
};

const char *ex_graph_lacks(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (!ex_kernel_find(g->node[i].type))
			return g->node[i].type;
	return NULL;
}

/* Values that all users of an integer tensor can bear; 0: any. Operators that only move it on pass the
 * limit of their users on. */
static int64_t limit_of(const struct ap_graph *g, ap_id tensor)
{
	const struct ap_tensor *t = &g->tensor[tensor];
	int64_t least = 0;

	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct ap_node *n = &g->node[t->use[u].node];
		const struct ex_kernel *k = ex_kernel_find(n->type);
		int64_t limit = k->limit ? k->limit(n, t->use[u].operand) : 0;

		for (int o = 0; !limit && o < n->bound.nout; o++)
			if (!ap_dtype_is_float(g->tensor[n->out[o]].shape.dtype))
				limit = limit_of(g, n->out[o]);
		if (limit && (!least || limit < least))
			least = limit;
	}
	return least;
}

static struct ex_tensor draw(struct truth *t, ap_id tensor, const struct ap_shape *shape, uint64_t turn)
{
	const struct ap_tensor *x = &t->p.graph->tensor[tensor];
	uint64_t seed = ex_hash(t->seed ^ ex_hash_text(x->name), turn);
	struct ex_box b = ex_box_whole(shape);
	struct ex_tensor v = ex_tensor_new(t->ctx.arena, &b);
	int64_t limit = ap_dtype_is_float(b.dtype) ? 0 : limit_of(t->p.graph, tensor);

	if (b.dtype == AP_BOOL)
		limit = 2;
	for (int64_t i = 0; i < ex_count(&b); i++) {
		uint64_t h = ex_hash(seed, (uint64_t)i);

		v.v[i] = limit ? h % (uint64_t)limit : 1 + h % (EX_P - 1);
	}
	return v;
}

struct ex_tensor ex_micro_part(struct ap_arena *a, const struct ap_tensor *t, const struct ex_tensor *whole,
	int64_t parts, int64_t b)
{
	int64_t at[AP_MAX_RANK] = {0}, from[AP_MAX_RANK];
	struct ex_box box = whole->box;
	struct ex_tensor part;

	for (int d = 0; d < box.rank; d++)
		if (t->batch >> d & 1)
			box.size[d] = box.whole[d] = box.size[d] / parts;
	part = ex_tensor_new(a, &box);
	do {
		for (int d = 0; d < box.rank; d++) {
			int64_t run = t->batch >> d & 1 ? box.size[d] / t->batch_outer[d] : 0;

			from[d] = run ? (at[d] / run * parts + b) * run + at[d] % run : at[d];
		}
		part.v[ex_at(&box, at)] = whole->v[ex_at(&whole->box, from)];
	} while (ex_step(&box, at));
	return part;
}

/* An operand's values in a micro-batch; parameters and constants are those of the first. */
static struct ex_tensor source(struct truth *t, ap_id tensor, const struct ap_shape *shape, int64_t batch)
{
	const struct ap_tensor *x = &t->p.graph->tensor[tensor];

	if (x->kind != AP_TENSOR_INPUT && batch > 0)
		return t->out->batch[0].value[tensor];
	if (!t->whole)
		return draw(t, tensor, shape, (uint64_t)batch);
	return x->batch ? ex_micro_part(t->ctx.arena, x, &t->whole->batch[0].value[tensor],
		t->out->nbatch, batch) : t->whole->batch[0].value[tensor];
}

/* Operands that no operator makes. */
static void draw_sources(struct truth *t, int64_t batch)
{
	const struct ap_graph *g = t->p.graph;
	struct ex_values *v = &t->out->batch[batch];

	for (ap_id i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i].bound.nin; k++) {
			ap_id tensor = g->node[i].in[k];
			enum ap_tensor_kind kind = g->tensor[tensor].kind;

			if (kind == AP_TENSOR_ACT || v->value[tensor].v)
				continue;
			v->value[tensor] = source(t, tensor, &t->p.oper[i].in_shape[k], batch);
		}
}

static void run_forward(struct truth *t, ap_id node, struct ex_values *v)
{
	const struct ap_node *n = &t->p.graph->node[node];
	const struct ex_oper *o = &t->p.oper[node];
	struct ex_shards in[EX_MAX_IN], out[EX_MAX_OUT];

	for (int i = 0; i < o->nin; i++)
		in[i] = (struct ex_shards){1, &v->value[n->in[i]]};
	t->run[node] = ex_forward(&t->w, o, in, out);
	for (int i = 0; i < o->nout; i++)
		v->value[n->out[i]] = out[i].of[0];
}

static void add_to(struct truth *t, struct ex_tensor *sum, const struct ex_tensor *x)
{
	if (!sum->v)
		*sum = ex_tensor_new(t->ctx.arena, &x->box);
	for (int64_t i = 0; i < ex_count(&x->box); i++)
		sum->v[i] = ex_add(sum->v[i], x->v[i]);
}

static void run_backward(struct truth *t, ap_id node, struct ex_values *v)
{
	const struct ap_graph *g = t->p.graph;
	const struct ap_node *n = &g->node[node];
	const struct ex_oper *o = &t->p.oper[node];
	struct ex_shards din[EX_MAX_IN], dout[EX_MAX_OUT];

	if (!t->p.task[node].backward)
		return;
	for (int i = 0; i < o->nout; i++) {
		struct ex_tensor *x = &v->grad[n->out[i]];

		if (!x->v)
			*x = ex_tensor_new(t->ctx.arena, &v->value[n->out[i]].box);
		dout[i] = (struct ex_shards){1, x};
	}
	ex_backward(&t->w, t->run[node], dout, din);
	for (int i = 0; i < o->nin; i++)
		if (o->in_grad[i])
			add_to(t, g->tensor[n->in[i]].kind == AP_TENSOR_PARAM
				? &t->out->param_grad[n->in[i]] : &v->grad[n->in[i]], &din[i].of[0]);
}

static void start_gradients(struct truth *t, struct ex_values *v, int64_t batch)
{
	const struct ap_graph *g = t->p.graph;

	for (uint32_t i = 0; i < g->noutput; i++) {
		ap_id out = g->output[i];
		const struct ap_tensor *x = &g->tensor[out];
		struct ex_tensor dy;

		if (!x->needs_grad || x->kind != AP_TENSOR_ACT || (g->loss != AP_NONE && out != g->loss))
			continue;
		dy = ex_tensor_new(t->ctx.arena, &v->value[out].box);
		for (int64_t k = 0; k < ex_count(&dy.box); k++)
			dy.v[k] = g->loss == out ? 1 : ex_hash(t->seed ^ ex_hash_text(x->name),
				UINT64_C(1) << 40 | (uint64_t)batch << 32 | (uint64_t)k);
		v->start[out] = dy;
		add_to(t, &v->grad[out], &dy);
	}
}

static void run_batch(struct truth *t, int64_t batch)
{
	const struct ap_graph *g = t->p.graph;
	struct ex_values *v = &t->out->batch[batch];

	v->value = AP_NEW_N(t->ctx.arena, struct ex_tensor, g->ntensor);
	v->grad = AP_NEW_N(t->ctx.arena, struct ex_tensor, g->ntensor);
	v->start = AP_NEW_N(t->ctx.arena, struct ex_tensor, g->ntensor);
	draw_sources(t, batch);
	for (ap_id i = 0; i < g->nnode; i++)
		run_forward(t, i, v);
	if (!t->p.step.training)
		return;
	start_gradients(t, v, batch);
	for (ap_id i = g->nnode; i-- > 0;)
		run_backward(t, i, v);
}

static void update(struct truth *t)
{
	const struct ap_graph *g = t->p.graph;

	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ex_tensor *w = &t->out->batch[0].value[i], *d = &t->out->param_grad[i];

		if (!d->v || !g->tensor[i].trainable)
			continue;
		t->out->new_param[i] = ex_tensor_new(t->ctx.arena, &w->box);
		for (int64_t k = 0; k < ex_count(&w->box); k++)
			t->out->new_param[i].v[k] = ex_sub(w->v[k], ex_mul(3, d->v[k]));
	}
}

static void uncut(struct truth *t, ap_id node)
{
	struct ex_oper *o = &t->p.oper[node];
	struct ap_layout *l = AP_NEW_N(t->ctx.arena, struct ap_layout, o->nin + o->nout);

	for (int i = 0; i < o->nin + o->nout; i++) {
		l[i].rank = i < o->nin ? o->in_shape[i].rank : o->out_shape[i - o->nin].rank;
		for (int d = 0; d < l[i].rank; d++)
			l[i].dim[d].cut = 1;
	}
	o->in = l;
	o->out = l + o->nin;
}

bool ex_graph_truth_of_parts(struct ex_world *w, const struct ap_graph *g, const struct ap_step *step,
	uint64_t seed, const struct ex_graph_truth *whole, struct ex_graph_truth *out)
{
	struct truth t = {.ctx = *w->ctx, .seed = seed, .whole = whole, .out = out};

	t.ctx.scratch = w->ctx->arena;
	t.w = (struct ex_world){.ctx = &t.ctx, .ndev = 1, .executor = step->executor};
	ex_program_begin(w->ctx, g, step, 1, &t.p);
	t.run = AP_NEW_N(t.ctx.arena, struct ex_run *, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++)
		uncut(&t, i);
	*out = (struct ex_graph_truth){.graph = g, .nbatch = step->micro_batches,
		.batch = AP_NEW_N(t.ctx.arena, struct ex_values, step->micro_batches),
		.param_grad = AP_NEW_N(t.ctx.arena, struct ex_tensor, g->ntensor),
		.new_param = AP_NEW_N(t.ctx.arena, struct ex_tensor, g->ntensor)};
	for (int64_t b = 0; b < out->nbatch; b++)
		run_batch(&t, b);
	update(&t);
	if (t.w.trouble)
		ex_trouble(w, "on one rank: %s", t.w.trouble);
	return !t.w.trouble;
}

bool ex_graph_truth_make(struct ex_world *w, const struct ap_graph *g, const struct ap_step *step,
	uint64_t seed, struct ex_graph_truth *out)
{
	return ex_graph_truth_of_parts(w, g, step, seed, NULL, out);
}
