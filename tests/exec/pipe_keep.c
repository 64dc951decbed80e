/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank holds between a forward pass and its backward pass. */
#include <string.h>

#include "base/arena.h"
#include "cost/float8.h"
#include "oper_parts.h"
#include "pipe_parts.h"

int64_t ex_most_bytes(const struct ex_shards *s)
{
	int64_t most = 0;

	for (int64_t r = 0; r < s->ndev; r++) {
		int64_t n = ex_count(&s->of[r].box) * ap_dtype_bytes(s->of[r].box.dtype);

		most = n > most ? n : most;
	}
	return most;
}

void ex_note_peaks(struct ex_pipe_run *p, int32_t stage)
{
	const struct ex_peaks *now = &p->now[stage];
	struct ex_peaks *peak = &p->peak[stage];

	if (now->activations > peak->activations)
		peak->activations = now->activations;
	if (now->recompute > peak->recompute)
		peak->recompute = now->recompute;
}

/* ---- the forward pass ---- */

static const struct ap_comm *gathering(const struct ex_oper *o, int operand, enum ap_phase phase)
{
	for (uint32_t i = 0; i < o->ncomm; i++)
		if (o->comm[i].kind == AP_COLL_ALLGATHER && o->comm[i].operand == operand &&
			o->comm[i].phase == phase)
			return &o->comm[i];
	return NULL;
}

/* A rank has only its rows of a weight that is gathered for each use. */
static void gather_weight(struct ex_pipe_run *p, ap_id node, int i, enum ap_phase phase,
	struct ex_shards *s)
{
	const struct ap_task_operand *in = &p->task[node].in[i];
	const struct ex_program_param *param = ex_program_param_of(&p->l->program, p->g->node[node].in[i]);
	const struct ap_comm *c = gathering(&p->l->program.oper[node], in->twin, phase);
	struct ex_shards slices = *s;

	if (!in->regather || !param || param->shard.shards == 1)
		return;
	ex_keep_own_rows(p->w, &param->shard, s);
	if (!c) {
		ex_trouble(p->w, "\"%s\" is not gathered for %s", p->g->tensor[param->tensor].name,
			p->g->node[node].name);
		return;
	}
	ex_gather_parts(p->w, &c->axes, &param->shard, &slices, c,
		ex_sent_as(&p->l->program.oper[node], c, s->of[0].box.dtype), s);
}

struct ex_shards ex_pipe_operand(struct ex_pipe_run *p, int64_t b, ap_id node, int i, enum ap_phase phase)
{
	ap_id tensor = p->g->node[node].in[i];
	struct ex_shards s = {0};

	if (p->g->tensor[tensor].kind == AP_TENSOR_ACT && !p->batch[b].value[tensor].of) {
		ex_trouble(p->w, "%s lacks \"%s\"", p->g->node[node].name, p->g->tensor[tensor].name);
		return s;
	}
	s = ex_graph_operand(&p->batch[b], node, i);
	if (p->g->tensor[tensor].kind == AP_TENSOR_PARAM)
		gather_weight(p, node, i, phase, &s);
	return s;
}

/* ---- what is kept ---- */

/* Does it read a copy that was made for another operator? */
static bool shares(const struct ex_pipe_run *p, ap_id node, int i)
{
	const struct ex_program_move *m = ex_program_move_to(&p->l->program, node, (uint32_t)i);

	return m && m->shares != AP_NONE;
}

/* Megatron's way: a copy that is larger than the part it was gathered of is made anew, not held. */
static bool is_held(const struct ex_pipe_run *p, const struct ex_program_move *m)
{
	return p->w->executor == AP_EXECUTOR_MINDSPORE ||
		m->step[m->nstep - 1].after <= m->step[0].before;
}

static bool has_halo(const struct ex_oper *o, int operand)
{
	for (uint32_t i = 0; i < o->ncomm; i++)
		if (o->comm[i].kind == AP_COLL_NEIGHBOREXCHANGE && o->comm[i].phase == AP_PHASE_FORWARD &&
			o->comm[i].operand == operand)
			return true;
	return false;
}

static int64_t halo_bytes(const struct ex_pipe_run *p, const struct ex_run *run, int operand)
{
	int64_t most = 0;

	for (int64_t r = 0; r < p->w->ndev; r++) {
		const struct ex_box *b = &run->rank[r].in[operand].box;
		int64_t n = ex_count(b) * ap_dtype_bytes(b->dtype);

		most = n > most ? n : most;
	}
	return most;
}

/* Does the operator know its operand from a result that it saved? Then what it knows is held with
 * that. */
static bool knows_by_result(const struct ex_pipe_run *p, ap_id node)
{
	const struct ap_bound *b = &p->g->node[node].bound;

	for (int o = 0; p->task[node].backward && o < b->nout; o++)
		if (b->out[o].saved)
			return true;
	return false;
}

static void hold(struct ex_pipe_run *p, int64_t b, ap_id node, int64_t bytes)
{
	const struct ap_node *n = &p->g->node[node];

	p->now[n->stage].activations += bytes;
	if (!n->once)
		p->own[b][ex_part(p, n->stage, n->segment)] += bytes;
}

/* What is cast for the operator alone, in the type that it reads. */
static void keep_cast(struct ex_pipe_run *p, int64_t b, ap_id node, int i, const struct ex_shards *s)
{
	int64_t most = 0;

	p->held[b][node].in[i] = *s;
	for (int64_t r = 0; r < s->ndev; r++)
		most = ex_count(&s->of[r].box) > most ? ex_count(&s->of[r].box) : most;
	if (p->task[node].in[i].twin == i)
		hold(p, b, node, most * ap_dtype_bytes(p->g->node[node].bound.in[i].dtype));
}

/* Does a backward pass read the tensor in the layout in which it was made, itself or through a view? */
static bool is_read_in_place(const struct ex_pipe_run *p, ap_id tensor)
{
	const struct ap_tensor *t = &p->g->tensor[tensor];

	for (uint32_t u = 0; u < t->nuse; u++) {
		ap_id node = t->use[u].node;
		uint32_t i = t->use[u].operand;
		const struct ap_task_operand *in = &p->task[node].in[i];
		const struct ex_program_move *m = ex_program_copy_to(&p->l->program, node, i);

		if (!in->kept || in->cast || (m && !in->again && is_held(p, m)))
			continue;
		if (!ex_is_view(&p->g->node[node]) || is_read_in_place(p, p->g->node[node].out[0]))
			return true;
	}
	return false;
}

static void keep_operand(struct ex_pipe_run *p, int64_t b, ap_id node, int i, const struct ex_shards *s,
	const struct ex_run *run)
{
	const struct ap_task_operand *in = &p->task[node].in[i];
	const struct ex_program_move *m = ex_program_copy_to(&p->l->program, node, (uint32_t)i);
	struct ex_held *h = &p->held[b][node];

	if (in->cast && in->kept)
		keep_cast(p, b, node, i, s);
	if (in->kind == AP_TENSOR_PARAM || in->kind == AP_TENSOR_CONST || (in->cast && in->kept))
		return;
	if (!in->kept) {
		if (knows_by_result(p, node))
			h->in[i] = *s;
		return;
	}
	if (ex_is_view(&p->g->node[node]) && m && in->share > 0 &&
		!is_read_in_place(p, p->g->node[node].out[0]))
		return;
	if (in->kind == AP_TENSOR_INPUT || (m && !shares(p, node, i) && !in->again && is_held(p, m))) {
		h->in[i] = *s;
		hold(p, b, node, ex_most_bytes(s));
	}
	if (!in->again && has_halo(&p->l->program.oper[node], i))
		hold(p, b, node, halo_bytes(p, run, i));
}

/* As copies in 8 bits for products. */
static int64_t bytes_in_8_bits(const struct ex_pipe_run *p, const struct ex_shards *s)
{
	double each = ap_float8_bytes(p->l->program.step.float8);

	return (int64_t)((double)(ex_most_bytes(s) / ap_dtype_bytes(s->of[0].box.dtype)) * each);
}

static bool is_kept(const struct ex_pipe_run *p, ap_id node, int o)
{
	const struct ap_task_result *r = &p->task[node].out[o];

	if (r->lent)
		return is_read_in_place(p, p->g->node[node].out[o]);
	return r->kept || (r->needed && ex_keeps_results(p, node));
}

void ex_keep(struct ex_pipe_run *p, int64_t b, ap_id node, const struct ex_shards *in,
	const struct ex_run *run)
{
	const struct ap_node *n = &p->g->node[node];

	for (int i = 0; i < n->bound.nin; i++) {
		keep_operand(p, b, node, i, &in[i], run);
		if (p->task[node].in[i].float8_copy)
			hold(p, b, node, bytes_in_8_bits(p, &in[i]));
	}
	for (int o = 0; o < n->bound.nout; o++) {
		const struct ex_shards *s = &p->batch[b].value[n->out[o]];

		if (n->once || is_kept(p, node, o))
			hold(p, b, node, p->task[node].out[o].float8 ? bytes_in_8_bits(p, s) : ex_most_bytes(s));
	}
}

void ex_forget_rest(struct ex_pipe_run *p, int64_t b, int32_t stage, int32_t segment)
{
	for (ap_id i = 0; i < p->g->nnode; i++) {
		const struct ap_node *n = &p->g->node[i];

		for (int o = 0; ex_is_in(n, stage, segment) && o < n->bound.nout; o++)
			if (!is_kept(p, i, o))
				p->batch[b].value[n->out[o]].of = NULL;
	}
}

/* ---- the backward pass ---- */

struct ex_shards ex_noise(struct ex_pipe_run *p, ap_id node, int i)
{
	const struct ex_oper *o = &p->l->program.oper[node];
	struct ex_box whole = ex_box_whole(&o->in_shape[i]);
	struct ex_shards s = ex_shards_new(p->w->ctx->scratch, p->w->ndev);

	for (int64_t r = 0; r < s.ndev; r++) {
		struct ex_box b = ex_box_slice(&whole, &o->in[i], r);

		s.of[r] = ex_tensor_new(p->w->ctx->scratch, &b);
		for (int64_t k = 0; ap_dtype_is_float(b.dtype) && k < ex_count(&b); k++)
			s.of[r].v[k] = 1 + ex_next(&p->w->rng) % (EX_P - 1);
	}
	return s;
}

bool ex_recall_value(struct ex_pipe_run *p, int64_t b, ap_id tensor)
{
	const struct ap_tensor *t = &p->g->tensor[tensor];
	struct ex_shards in[EX_MAX_IN], out[EX_MAX_OUT];
	ap_id node = t->producer;
	const struct ex_oper *o = &p->l->program.oper[node];

	if (!p->batch[b].value[tensor].of && p->task[node].recomputed && !p->held[b][node].run)
		ex_compute_again(p, b, node);
	if (p->batch[b].value[tensor].of || !ex_is_view(&p->g->node[node]))
		return p->batch[b].value[tensor].of != NULL;
	for (int i = 0; i < o->nin; i++)
		in[i] = ex_recall(p, b, node, i);
	if (p->w->trouble)
		return false;
	ex_forward(p->w, o, in, out);
	p->batch[b].value[tensor] = out[t->result];
	return true;
}

struct ex_shards ex_recall(struct ex_pipe_run *p, int64_t b, ap_id node, int i)
{
	const struct ap_task_operand *in = &p->task[node].in[i];
	ap_id tensor = p->g->node[node].in[i];
	const struct ex_program_move *m = ex_program_copy_to(&p->l->program, node, (uint32_t)i);
	struct ex_held *h = &p->held[b][node];

	if (in->cast && in->kept && h->in[i].of)
		return h->in[i];
	if (in->kind == AP_TENSOR_CONST || (in->kind == AP_TENSOR_PARAM && (in->kept || !in->regather)))
		return ex_pipe_operand(p, b, node, i, AP_PHASE_RECOMPUTE);
	if (shares(p, node, i) && in->kept) {
		const struct ex_program_move *own = ex_program_move_to(&p->l->program, node, (uint32_t)i);

		own = &p->l->program.move[own->shares];
		return ex_recall(p, b, own->node, (int)own->operand);
	}
	if (!h->in[i].of && in->kept && in->again && m)
		ex_compute_again(p, b, node);
	if (h->in[i].of)
		return h->in[i];
	if (!in->kept)
		return ex_noise(p, node, i);
	if (in->kind != AP_TENSOR_ACT || (m && (in->again || is_held(p, m))) ||
		!ex_recall_value(p, b, tensor)) {
		ex_trouble(p->w, "%s: \"%s\" was forgotten", p->g->node[node].name,
			p->g->tensor[tensor].name);
		return ex_noise(p, node, i);
	}
	return ex_pipe_operand(p, b, node, i, AP_PHASE_RECOMPUTE);
}

/* The lowest node that reads a tensor's values in its backward pass, or AP_NONE. */
static ap_id last_reader(const struct ex_pipe_run *p, ap_id tensor)
{
	const struct ap_tensor *t = &p->g->tensor[tensor];
	ap_id last = AP_NONE;

	for (uint32_t u = 0; u < t->nuse; u++) {
		ap_id node = t->use[u].node, reader = node;

		if (!p->task[node].in[t->use[u].operand].kept)
			continue;
		if (ex_is_view(&p->g->node[node]))
			reader = last_reader(p, p->g->node[node].out[0]);
		last = reader < last ? reader : last;
	}
	if (t->producer != AP_NONE && p->task[t->producer].backward &&
		p->g->node[t->producer].bound.out[t->result].saved)
		last = t->producer;
	return last;
}

void ex_find_last_readers(struct ex_pipe_run *p)
{
	p->last = AP_NEW_N(p->w->ctx->scratch, ap_id, p->g->ntensor);
	for (ap_id t = 0; t < p->g->ntensor; t++)
		p->last[t] = last_reader(p, t);
}

/* The last node whose backward pass reads the copy for operand i, its own or another one's. */
static ap_id last_of_copy(const struct ex_pipe_run *p, ap_id node, int i)
{
	const struct ex_program *l = &p->l->program;
	const struct ex_program_move *own = ex_program_move_to(l, node, (uint32_t)i);
	ap_id last = ex_is_view(&p->g->node[node]) ? p->last[p->g->node[node].out[0]] : node;

	for (uint32_t m = 0; own && m < l->nmove; m++) {
		ap_id other = l->move[m].node, reader = other;

		if (l->move[m].shares != (uint32_t)(own - l->move))
			continue;
		if (ex_is_view(&p->g->node[other]))
			reader = p->last[p->g->node[other].out[0]];
		last = reader < last ? reader : last;
	}
	return last;
}

static void drop_of(struct ex_pipe_run *p, int64_t b, ap_id node, ap_id after)
{
	const struct ap_node *n = &p->g->node[node];
	struct ex_held *h = &p->held[b][node];

	for (int o = 0; o < n->bound.nout; o++) {
		struct ex_shards *s = &p->batch[b].value[n->out[o]];

		if (!p->here[b][n->out[o]] || p->last[n->out[o]] < after)
			continue;
		p->now[n->stage].recompute -= ex_most_bytes(s);
		p->here[b][n->out[o]] = false;
		if (!p->task[node].out[o].twice || !is_kept(p, node, o)) /* what the first run left stays */
			s->of = NULL;
	}
	for (int i = 0; i < n->bound.nin; i++) {
		if (!h->again[i] || last_of_copy(p, node, i) < after)
			continue;
		p->now[n->stage].recompute -= h->again[i];
		h->again[i] = 0;
		h->in[i].of = NULL;
	}
}

void ex_drop_again(struct ex_pipe_run *p, int64_t b, ap_id node)
{
	const struct ap_node *here = &p->g->node[node];

	for (ap_id i = 0; i < p->g->nnode; i++)
		if (ex_is_in(&p->g->node[i], here->stage, here->segment)) {
			drop_of(p, b, i, node);
			if (ex_is_view(&p->g->node[i]) && p->g->tensor[p->g->node[i].in[0]].kind == AP_TENSOR_ACT)
				p->batch[b].value[p->g->node[i].out[0]].of = NULL;
		}
}

void ex_forget(struct ex_pipe_run *p, int64_t b, int32_t stage, int32_t segment)
{
	int64_t *own = &p->own[b][ex_part(p, stage, segment)];

	p->now[stage].activations -= *own;
	*own = 0;
	for (ap_id i = 0; i < p->g->nnode; i++) {
		const struct ap_node *n = &p->g->node[i];

		if (!ex_is_in(n, stage, segment))
			continue;
		for (int o = 0; o < n->bound.nout; o++)
			p->batch[b].value[n->out[o]].of = p->batch[b].grad[n->out[o]].of = NULL;
		for (int k = 0; k < n->bound.nin; k++)
			p->held[b][i].in[k].of = NULL;
		p->held[b][i].run = NULL;
		p->held[b][i].dout = NULL;
	}
}
