/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of a part over a micro-batch. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "pipe_parts.h"

static bool is_send(const struct ap_node *n)
{
	return n->peer >= 0 && strcmp(n->type, "Send") == 0;
}

static bool is_receive(const struct ap_node *n)
{
	return n->peer >= 0 && strcmp(n->type, "Receive") == 0;
}

static int64_t mail_of(const struct ap_node *n, int64_t b)
{
	return n->once ? EX_ONCE : b;
}

/* ---- forward ---- */

static void compare_results(struct ex_pipe_run *p, int64_t b, ap_id node, const struct ex_shards *out)
{
	const struct ex_oper *o = &p->l->program.oper[node];
	const struct ex_kernel *k = ex_kernel_find(o->type);

	for (int i = 0; i < o->nout; i++) {
		ap_id tensor = p->g->node[node].out[i];

		if (!(k->opaque >> i & 1) && !ex_stays_inside(o, i))
			ex_graph_compare(&p->batch[b], "result", tensor, &out[i],
				&p->batch[b].truth->batch[b].value[tensor], &o->out[i], EX_EVERY);
	}
}

static void forward(struct ex_pipe_run *p, int64_t b, ap_id node)
{
	const struct ap_node *n = &p->g->node[node];
	const struct ex_oper *o = &p->l->program.oper[node];
	struct ex_shards in[EX_MAX_IN], out[EX_MAX_OUT], *value = p->batch[b].value;
	struct ap_mark mark = ap_arena_mark(p->w->tapes);
	struct ex_run *run;

	if (is_receive(n) && !value[n->in[0]].of &&
		!ex_take(p, n->in[0], false, mail_of(n, b), n->stage, &value[n->in[0]]))
		return;
	for (int i = 0; i < o->nin; i++)
		in[i] = ex_pipe_operand(p, b, node, i, AP_PHASE_FORWARD);
	if (p->w->trouble)
		return;
	run = ex_forward(p->w, o, in, out);
	compare_results(p, b, node, out);
	for (int i = 0; i < o->nout; i++)
		value[n->out[i]] = out[i];
	if (is_send(n)) {
		ex_post(p, node, false, mail_of(n, b), &out[0]);
		value[n->out[0]].of = NULL;
	} else {
		ex_keep(p, b, node, in, run);
	}
	if (is_receive(n))
		value[n->in[0]].of = NULL;
	if (n->once)
		p->held[b][node].run = run;
	else
		ap_arena_release(p->w->tapes, mark);
}

static void forward_pass(struct ex_pipe_run *p, const struct ex_slot *s)
{
	for (ap_id i = 0; i < p->g->nnode && !p->w->trouble; i++)
		if (ex_is_in(&p->g->node[i], s->stage, s->segment))
			forward(p, s->micro, i);
	ex_forget_rest(p, s->micro, s->stage, s->segment);
	ex_note_peaks(p, s->stage);
}

/* ---- backward ---- */

static struct ex_shards zeroes(struct ex_pipe_run *p, const struct ap_shape *shape,
	const struct ap_layout *l)
{
	struct ex_box whole = ex_box_whole(shape);
	struct ex_shards s = ex_shards_new(p->w->ctx->scratch, p->w->ndev);

	for (int64_t r = 0; r < s.ndev; r++) {
		struct ex_box b = ex_box_slice(&whole, l, r);

		s.of[r] = ex_tensor_new(p->w->ctx->scratch, &b);
	}
	return s;
}

/* Gradients of a node's results; false where one has not come. */
static bool gradients(struct ex_pipe_run *p, int64_t b, ap_id node, struct ex_shards *dout)
{
	const struct ap_node *n = &p->g->node[node];
	const struct ex_oper *o = &p->l->program.oper[node];
	struct ex_graph_run *r = &p->batch[b];

	for (int i = 0; i < o->nout; i++) {
		struct ex_shards *g = &r->grad[n->out[i]];

		if (is_send(n) && !ex_take(p, n->out[i], true, mail_of(n, b), n->stage, g))
			return false;
		if (!g->of)
			*g = zeroes(p, &o->out_shape[i], &o->out[i]);
		dout[i] = *g;
		if (!n->once)
			ex_graph_compare_gradient(r, node, i, g);
	}
	return true;
}

static bool is_weight(const struct ex_pipe_run *p, ap_id tensor)
{
	return p->g->tensor[tensor].kind == AP_TENSOR_PARAM || ex_came_once(p, tensor);
}

/* Do the gradients of its weights wait for a pass of their own? Those of a product do, and where nothing
 * else has one; not where the backward pass reads what is computed again and then gone. */
static bool waits(const struct ex_pipe_run *p, ap_id node)
{
	const struct ap_bound *b = &p->g->node[node].bound;
	bool weights = false, others = false;

	if (!p->l->program.step.pipe->scheduler->splits || p->g->node[node].once)
		return false;
	for (int i = 0; i < b->nin; i++) {
		ap_id tensor = p->g->node[node].in[i];

		if (ex_comes_again(p, node, i))
			return false;
		weights |= p->task[node].in[i].grad && is_weight(p, tensor);
		others |= p->task[node].in[i].grad && !is_weight(p, tensor);
	}
	return weights && (!others || b->row->unit == AP_OP_CUBE);
}

/* The operator's own work once more, from what is left of its operands: what its gradients need. Its tapes
 * may be released to *mark. */
static struct ex_run *remember(struct ex_pipe_run *p, int64_t b, ap_id node, struct ap_mark *mark)
{
	struct ex_shards in[EX_MAX_IN], out[EX_MAX_OUT];

	for (int i = 0; i < p->l->program.oper[node].nin; i++)
		in[i] = ex_is_view(&p->g->node[node]) ? ex_noise(p, node, i) : ex_recall(p, b, node, i);
	*mark = ap_arena_mark(p->w->tapes);
	return p->w->trouble ? NULL : ex_forward(p->w, &p->l->program.oper[node], in, out);
}

static void hand_on(struct ex_pipe_run *p, int64_t b, ap_id node, bool weights, bool others,
	struct ex_shards *din)
{
	const struct ap_node *n = &p->g->node[node];
	struct ex_graph_run *r = &p->batch[b];

	for (int i = 0; i < n->bound.nin; i++) {
		ap_id tensor = n->in[i];

		if (!p->task[node].in[i].grad || !(is_weight(p, tensor) ? weights : others))
			continue;
		if (p->g->tensor[tensor].kind == AP_TENSOR_PARAM) {
			ex_graph_add(r, &r->use_grad[node][i], &din[i]);
			continue;
		}
		if (p->task[node].in[i].returns) {
			ex_graph_add(r, &p->total[node][i], &din[i]);
			continue;
		}
		if (!(is_receive(n) && p->task[node].across) && !ex_graph_send_back(r, node, i, &din[i]))
			continue;
		if (is_receive(n))
			ex_post(p, p->g->tensor[tensor].producer, true, mail_of(n, b), &din[i]);
		else
			ex_graph_add(r, ex_came_once(p, tensor) ? &p->batch[0].grad[tensor]
				: &r->grad[tensor], &din[i]);
	}
}

static void backward(struct ex_pipe_run *p, int64_t b, ap_id node)
{
	const struct ap_node *n = &p->g->node[node];
	struct ex_shards dout[EX_MAX_OUT], din[EX_MAX_IN];
	struct ex_held *h = &p->held[b][node];
	struct ap_mark mark = {0};
	bool anew;

	if (!gradients(p, b, node, dout))
		return;
	if (p->task[node].recomputed && !h->run)
		ex_compute_again(p, b, node);
	anew = !h->run;
	if (anew)
		h->run = remember(p, b, node, &mark);
	if (!h->run)
		return;
	ex_backward(p->w, h->run, dout, din);
	h->run = NULL;
	if (anew)
		ap_arena_release(p->w->tapes, mark);
	if (waits(p, node))
		h->dout = ap_arena_memdup(p->w->ctx->scratch, dout, n->bound.nout * sizeof *dout);
	hand_on(p, b, node, !waits(p, node), true, din);
	ex_drop_again(p, b, node);
}

static void backward_pass(struct ex_pipe_run *p, const struct ex_slot *s)
{
	for (uint32_t i = 0; i < p->g->noutput; i++) {
		ap_id from = p->g->tensor[p->g->output[i]].producer;

		if (from != AP_NONE && ex_is_in(&p->g->node[from], s->stage, s->segment))
			ex_graph_start_gradient(&p->batch[s->micro], p->g->output[i]);
	}
	for (ap_id i = p->g->nnode; i-- > 0 && !p->w->trouble;)
		if (p->task[i].backward && ex_is_in(&p->g->node[i], s->stage, s->segment))
			backward(p, s->micro, i);
}

static void weight_pass(struct ex_pipe_run *p, const struct ex_slot *s)
{
	for (ap_id i = p->g->nnode; i-- > 0 && !p->w->trouble;) {
		struct ex_held *h = &p->held[s->micro][i];
		struct ex_shards din[EX_MAX_IN];
		struct ap_mark mark;
		struct ex_run *run;

		if (!ex_is_in(&p->g->node[i], s->stage, s->segment) || !h->dout)
			continue;
		run = remember(p, s->micro, i, &mark);
		if (!run)
			return;
		ex_backward(p->w, run, h->dout, din);
		ap_arena_release(p->w->tapes, mark);
		hand_on(p, s->micro, i, true, false, din);
	}
}

/* ---- slots ---- */

/* Once each, in their order. */
static bool is_due(struct ex_pipe_run *p, const struct ex_slot *s)
{
	uint8_t *done = &p->done[s->micro][ex_part(p, s->stage, s->segment)];

	if (*done != (1 << s->pass) - 1) {
		ex_trouble(p->w, "stage %d, segment %d: a pass of kind %d over micro-batch %d after %s",
			s->stage, s->segment, (int)s->pass, s->micro,
			*done >> s->pass & 1 ? "itself" : "too few others");
		return false;
	}
	*done |= (uint8_t)(1 << s->pass);
	return true;
}

/* Does the stage hold as much of every segment at instant i? */
static bool is_foreseen(const struct ex_pipe_run *p, int32_t stage, uint32_t i)
{
	const struct ap_instants *x = &p->l->program.step.pipe->instants[stage];

	for (int32_t v = 0; v < p->l->nsegment; v++)
		if (p->flying[ex_part(p, stage, v)] > x->held[(size_t)i * (size_t)p->l->nsegment + (size_t)v])
			return false;
	return true;
}

static void check_flying(struct ex_pipe_run *p, const struct ex_slot *s)
{
	const struct ap_instants *x = &p->l->program.step.pipe->instants[s->stage];
	int64_t passes = 0;
	bool foreseen = false;

	p->flying[ex_part(p, s->stage, s->segment)]++;
	for (int32_t v = 0; v < p->l->nsegment; v++)
		passes += p->flying[ex_part(p, s->stage, v)];
	for (uint32_t i = 0; i < x->n && !foreseen; i++)
		foreseen = is_foreseen(p, s->stage, i);
	if (!foreseen || passes > p->l->most[s->stage])
		ex_trouble(p->w, "stage %d holds %" PRId64 " passes after one of segment %d", s->stage, passes,
			s->segment);
}

void ex_run_slot(struct ex_pipe_run *p, const struct ex_slot *s)
{
	bool splits = p->l->program.step.pipe->scheduler->splits;
	bool last = s->pass == (splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD);

	if (!is_due(p, s))
		return;
	p->w->ndev = ex_devices(&p->l->program, s->stage);
	switch (s->pass) {
	case AP_PASS_FORWARD:
		check_flying(p, s);
		forward_pass(p, s);
		last = !p->l->program.step.training;
		break;
	case AP_PASS_BACKWARD:
		backward_pass(p, s);
		break;
	case AP_PASS_WEIGHT:
		weight_pass(p, s);
		break;
	}
	if (!last || p->w->trouble)
		return;
	ex_deal_gradients(p, s->micro, s->stage, s->segment);
	ex_forget(p, s->micro, s->stage, s->segment);
	p->flying[ex_part(p, s->stage, s->segment)]--;
}

/* ---- once a step ---- */

void ex_send_weights(struct ex_pipe_run *p)
{
	for (ap_id i = 0; i < p->g->nnode && !p->w->trouble; i++) {
		const struct ap_node *n = &p->g->node[i];

		if (!n->once)
			continue;
		p->w->ndev = ex_devices(&p->l->program, n->stage);
		if (p->l->stale && is_receive(n))
			p->batch[0].value[n->in[0]] = zeroes(p, p->l->program.oper[i].in_shape,
				p->l->program.oper[p->g->tensor[n->in[0]].producer].out);
		if (!p->l->stale || is_receive(n))
			forward(p, 0, i);
		for (int64_t b = 1; b < p->batch[0].truth->nbatch; b++)
			p->batch[b].value[n->out[0]] = p->batch[0].value[n->out[0]];
		ex_note_peaks(p, n->stage);
	}
}

/* What the users of a weight added up over all micro-batches is exchanged, and brought back. */
static void gather_gradients(struct ex_pipe_run *p, ap_id tensor)
{
	const struct ap_tensor *t = &p->g->tensor[tensor];
	const struct ap_opt_shard whole = {.shards = 1};

	for (uint32_t u = 0; u < t->nuse; u++) {
		ap_id node = t->use[u].node;
		int i = (int)t->use[u].operand;
		struct ex_shards *own = &p->total[node][i];

		if (!p->task[node].in[i].returns || !own->of)
			continue;
		ex_exchange_gradient_when(p->w, &p->bucketed[node], i, &whole, EX_AT_ONCE, own);
		(void)ex_graph_send_back(&p->batch[0], node, i, own);
		ex_graph_add(&p->batch[0], &p->batch[0].grad[tensor], own);
	}
}

void ex_return_weights(struct ex_pipe_run *p)
{
	for (ap_id i = p->g->nnode; i-- > 0 && !p->w->trouble;)
		if (p->g->node[i].once && p->task[i].backward) {
			struct ex_shards dout[EX_MAX_OUT], din[EX_MAX_IN];

			p->w->ndev = ex_devices(&p->l->program, p->g->node[i].stage);
			gather_gradients(p, p->g->node[i].out[0]);
			if (!gradients(p, 0, i, dout))
				return;
			ex_backward(p->w, p->held[0][i].run, dout, din);
			hand_on(p, 0, i, true, true, din);
			ex_deal_returned(p, i);
		}
}
