/* SPDX-License-Identifier: Apache-2.0 */
/* A program on all ranks: forward, operator by operator. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "shard/layout.h"
#include "graph_parts.h"

bool ex_graph_failed(struct ex_graph_run *r)
{
	if (!r->why)
		r->why = r->w->trouble;
	return r->why != NULL;
}

void ex_graph_compare(struct ex_graph_run *r, const char *what, ap_id tensor, const struct ex_shards *got,
	const struct ex_tensor *want, const struct ap_layout *l, enum ex_holds holds)
{
	const char *name = r->p->graph->tensor[tensor].name, *how = r->w->trouble;

	if (!how)
		how = ex_differs(r->w->ctx, got, want, l, holds);
	if (!how || r->why)
		return;
	r->why = r->batch == r->truth->nbatch
		? ap_arena_printf(r->w->ctx->arena, "%s of \"%s\": %s", what, name, how)
		: ap_arena_printf(r->w->ctx->arena, "%s of \"%s\", micro-batch %" PRId64 ": %s", what,
			name, r->batch, how);
}

/* What the step says of this input; NULL: of all. */
static const struct ap_arrival *said_of(const struct ex_program *p, ap_id tensor)
{
	for (uint32_t i = 0; i < p->step.narrival; i++)
		if (p->graph->input[i] == tensor)
			return &p->step.arrival[i];
	return NULL;
}

/* Inputs come as the step says, whole, or with their batch cut between as many ranks as divide it, repeats
 * outside. */
static struct ap_layout arrival(const struct ex_program *p, ap_id tensor, const struct ap_shape *shape, int64_t ndev)
{
	const struct ap_tensor *t = &p->graph->tensor[tensor];
	const struct ap_arrival *said = said_of(p, tensor);
	struct ap_layout l = {.rank = shape->rank};
	bool cut = said || p->step.full_batch;

	for (int d = 0; d < l.rank; d++) {
		int64_t parts = ap_gcd(shape->dim[d], ndev);

		l.dim[d].cut = 1;
		if (said && said->cut > 1 && said->dim == d)
			l.dim[d] = (struct ap_cut_dim){said->cut, said->stride};
		if (cut || !(t->batch >> d & 1) || parts == 1)
			continue;
		l.dim[d] = (struct ap_cut_dim){(int32_t)parts, 1};
		cut = true;
	}
	return l;
}

/* The layout in which an operand's tensor is there before it is redistributed. */
static struct ap_layout there(struct ex_graph_run *r, ap_id node, int i)
{
	const struct ex_program *p = r->p;
	ap_id tensor = p->graph->node[node].in[i];
	const struct ap_tensor *t = &p->graph->tensor[tensor];
	const struct ex_program_param *param;

	switch (t->kind) {
	case AP_TENSOR_ACT:
		return p->oper[t->producer].out[t->result];
	case AP_TENSOR_INPUT:
		return arrival(p, tensor, &p->oper[node].in_shape[i], ex_devices(p, p->graph->node[node].stage));
	case AP_TENSOR_PARAM:
		param = ex_program_param_of(p, tensor);
		if (param)
			return param->layout;
		ex_trouble(r->w, "parameter \"%s\" is not listed", t->name);
		break;
	case AP_TENSOR_CONST:
		break;
	}
	return p->oper[node].in[i];
}

/* Do two tensors hold the same: are they one, or made of one by the same views, cut alike? */
static bool hold_the_same(const struct ex_program *p, ap_id a, ap_id b)
{
	const struct ap_graph *g = p->graph;

	for (; a != b; a = g->node[g->tensor[a].producer].in[0], b = g->node[g->tensor[b].producer].in[0]) {
		const struct ap_tensor *x = &g->tensor[a], *y = &g->tensor[b];
		const struct ap_node *n, *m;
		bool same = x->producer != AP_NONE && y->producer != AP_NONE && x->shape.rank == y->shape.rank;

		for (int d = 0; same && d < x->shape.rank; d++)
			same = x->shape.dim[d] == y->shape.dim[d];
		if (!same)
			return false;
		n = &g->node[x->producer];
		m = &g->node[y->producer];
		if (n->bound.row->unit != AP_OP_VIEW || strcmp(n->type, m->type) != 0 || n->bound.nin != 1 || n->stage != m->stage ||
			n->segment != m->segment ||
			!ap_layout_equal(&p->oper[x->producer].in[0], &p->oper[y->producer].in[0]) ||
			!ap_layout_equal(&p->oper[x->producer].out[0], &p->oper[y->producer].out[0]))
			return false;
	}
	return true;
}

/* The redistribution whose copy another one reads: of the same tensor between the same layouts, for an
 * operator that runs before. */
static const struct ex_program_move *shared_by(struct ex_graph_run *r, const struct ex_program_move *m,
	ap_id tensor)
{
	const struct ex_program_move *own = &r->p->move[m->shares];
	const struct ap_node *n = &r->p->graph->node[m->node];
	const struct ap_node *of = &r->p->graph->node[own->node];

	if (own >= m || own->shares != AP_NONE || !hold_the_same(r->p, of->in[own->operand], tensor) ||
		own->node >= m->node || !ap_layout_equal(&own->a, &m->a) || !ap_layout_equal(&own->b, &m->b) ||
		of->stage != n->stage || of->segment != n->segment || m->nstep || m->nback || m->bytes)
		ex_trouble(r->w, "%s shares a copy that is not there", n->name);
	return own;
}

struct ex_shards ex_graph_operand(struct ex_graph_run *r, ap_id node, int i)
{
	const struct ap_graph *g = r->p->graph;
	ap_id tensor = g->node[node].in[i];
	const struct ap_layout *want = &r->p->oper[node].in[i];
	const struct ex_program_move *m = ex_program_move_to(r->p, node, (uint32_t)i);
	struct ap_layout is = there(r, node, i);
	struct ex_shards s = r->value[tensor];
	uint64_t ncollective = r->w->ncollective;
	bool shared = m && m->shares != AP_NONE;
	int64_t got;

	if (g->tensor[tensor].kind != AP_TENSOR_ACT)
		s = ex_cut(r->w->ctx->scratch, &r->truth->batch[r->batch].value[tensor], &is, r->w->ndev);
	if (!m && ap_layout_equal(&is, want))
		return s;
	if (m && m->sent && ap_layout_equal(&m->a, &is) && ap_layout_equal(&m->b, want))
		return s; /* put together when it came */
	if (!m || !ap_layout_equal(&m->a, &is) || !ap_layout_equal(&m->b, want)) {
		ex_trouble(r->w, "\"%s\" comes to %s in another layout than it wants%s",
			g->tensor[tensor].name, g->node[node].name,
			m ? ", and is redistributed between others" : "");
		return ex_cut(r->w->ctx->scratch, &r->truth->batch[r->batch].value[tensor], want,
			r->w->ndev);
	}
	if (shared) {
		m = shared_by(r, m, tensor);
		s = r->value[g->node[m->node].in[m->operand]];
	}
	got = ex_move(r->w, m->step, m->nstep, want, &s) * m->element_bytes;
	if (shared) /* the copy is there already */
		r->w->ncollective = ncollective;
	if (got != m->bytes)
		ex_trouble(r->w, "\"%s\" to %s: %" PRId64 " bytes are charged, %" PRId64 " are sent",
			g->tensor[tensor].name, g->node[node].name, m->bytes, got);
	return s;
}

static void forward(struct ex_graph_run *r, ap_id node)
{
	const struct ap_node *n = &r->p->graph->node[node];
	const struct ex_oper *o = &r->p->oper[node];
	const struct ex_kernel *k = ex_kernel_find(n->type);
	struct ex_shards in[EX_MAX_IN], out[EX_MAX_OUT];

	for (int i = 0; i < o->nin; i++)
		in[i] = ex_graph_operand(r, node, i);
	r->run[node] = ex_forward(r->w, o, in, out);
	for (int i = 0; i < o->nout; i++) {
		r->value[n->out[i]] = out[i];
		if (!(k->opaque >> i & 1) && !ex_stays_inside(o, i))
			ex_graph_compare(r, "result", n->out[i], &out[i],
				&r->truth->batch[r->batch].value[n->out[i]], &o->out[i], EX_EVERY);
	}
	if (r->w->trouble && !r->why)
		r->why = ap_arena_printf(r->w->ctx->arena, "%s: %s", n->name, r->w->trouble);
}

static void run_batch(struct ex_graph_run *r)
{
	const struct ap_graph *g = r->p->graph;

	r->run = AP_NEW_N(r->w->ctx->scratch, struct ex_run *, g->nnode);
	r->value = AP_NEW_N(r->w->ctx->scratch, struct ex_shards, g->ntensor);
	r->grad = AP_NEW_N(r->w->ctx->scratch, struct ex_shards, g->ntensor);
	r->waiting = NULL;
	r->mixed = NULL;
	for (ap_id i = 0; i < g->nnode && !ex_graph_failed(r); i++)
		forward(r, i);
	if (r->p->step.training && !ex_graph_failed(r))
		ex_graph_backward(r);
}

void ex_graph_check_moves(struct ex_graph_run *r)
{
	const struct ap_graph *g = r->p->graph;

	for (uint32_t i = 0; i < r->p->nmove; i++) {
		const struct ex_program_move *m = &r->p->move[i];
		const struct ap_tensor *t = &g->tensor[g->node[m->node].in[m->operand]];

		if (t->kind != AP_TENSOR_ACT && t->kind != AP_TENSOR_INPUT)
			ex_trouble(r->w, "\"%s\" is redistributed", t->name);
		if (ex_program_move_to(r->p, m->node, m->operand) != m)
			ex_trouble(r->w, "\"%s\" is redistributed twice for %s", t->name,
				g->node[m->node].name);
	}
}

const char *ex_program_run(struct ex_world *w, const struct ex_program *p,
	const struct ex_graph_truth *truth)
{
	struct ex_graph_run r = {.w = w, .p = p, .truth = truth};
	const struct ap_graph *g = p->graph;

	w->ndev = p->ndev;
	w->executor = p->step.executor;
	w->gradient_fp32_sync = p->step.gradient_fp32_sync;
	r.use_grad = AP_NEW_N(w->ctx->scratch, struct ex_shards *, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++)
		r.use_grad[i] = AP_NEW_N(w->ctx->scratch, struct ex_shards, g->node[i].bound.nin);
	ex_graph_check_moves(&r);
	for (r.batch = 0; r.batch < truth->nbatch && !ex_graph_failed(&r); r.batch++)
		run_batch(&r);
	if (p->step.training && !ex_graph_failed(&r))
		ex_graph_update(&r);
	ex_graph_failed(&r);
	return r.why;
}
