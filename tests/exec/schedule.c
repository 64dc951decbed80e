/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a plan file: the last micro-batch and the optimizer step. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "program_read.h"

struct span {
	double start, end;
	uint32_t n; /* how often it was scheduled */
};

struct schedule {
	struct ex_reader r;
	const struct ex_program *p;
	struct span *forward, *backward, *optimizer; /* [nnode] */
	struct span **comm; /* [nnode][ncomm] */
	struct span *move, *move_back; /* [nmove] */
};

enum event { FORWARD, BACKWARD, COMM, MOVE, MOVE_BACK, OPTIMIZER };

static void must(struct schedule *s, bool holds, const char *what, ap_id node)
{
	s->r.about = s->p->graph->node[node].name;
	if (!holds)
		ex_read_fault(&s->r, "%s", what);
}

static void make_spans(struct schedule *s)
{
	uint32_t n = s->p->graph->nnode;
	struct ap_arena *a = s->r.ctx->arena;

	s->forward = AP_NEW_N(a, struct span, n);
	s->backward = AP_NEW_N(a, struct span, n);
	s->optimizer = AP_NEW_N(a, struct span, n);
	s->comm = AP_NEW_N(a, struct span *, n);
	for (ap_id i = 0; i < n; i++)
		s->comm[i] = AP_NEW_N(a, struct span, s->p->oper[i].ncomm);
	s->move = AP_NEW_N(a, struct span, s->p->nmove);
	s->move_back = AP_NEW_N(a, struct span, s->p->nmove);
}

/* Where an event is noted; NULL, with a fault, where there is no such thing. */
static struct span *span_of(struct schedule *s, const struct ap_jv *v, enum event e)
{
	bool move = e == MOVE || e == MOVE_BACK;
	int64_t i = ex_read_int(&s->r, v, move ? "redistribution" : "operator");
	int64_t most = move ? s->p->nmove : s->p->graph->nnode, sub;

	if (i < 0 || i >= most) {
		ex_read_fault(&s->r, "event of nothing: %" PRId64, i);
		return NULL;
	}
	switch (e) {
	case FORWARD:
		return &s->forward[i];
	case BACKWARD:
		return &s->backward[i];
	case OPTIMIZER:
		return &s->optimizer[i];
	case MOVE:
		return &s->move[i];
	case MOVE_BACK:
		return &s->move_back[i];
	case COMM:
		break;
	}
	sub = ex_read_int(&s->r, v, "communication");
	if (sub >= 0 && sub < s->p->oper[i].ncomm)
		return &s->comm[i][sub];
	ex_read_fault(&s->r, "event of no communication: %" PRId64, sub);
	return NULL;
}

/* Which of the machine's queues it takes: computation, communication that is waited for, gradients. */
static int stream_of(const struct schedule *s, const struct ap_jv *v, enum event e)
{
	const struct ex_oper *o;
	int64_t i = 0, sub = 0;

	if (e == MOVE || e == MOVE_BACK)
		return 1;
	if (e != COMM)
		return 0;
	ap_jv_int(s->r.doc, ap_jv_get(v, "operator"), &i);
	ap_jv_int(s->r.doc, ap_jv_get(v, "communication"), &sub);
	o = &s->p->oper[i];
	return o->comm[sub].phase == AP_PHASE_GRADIENT ? 2 : 1;
}

static void read_events(struct schedule *s, const struct ap_jv *list)
{
	static const char *const names[] = {"forward", "backward", "communication", "redistribution",
		"redistribution_back", "optimizer", NULL};
	double busy[3] = {0, 0, 0};

	for (const struct ap_jv *v = ex_first(list); v && !s->r.why; v = ap_jv_next(v)) {
		enum event e = (enum event)ex_read_word(&s->r, v, "event", names);
		double start = ex_read_number(&s->r, v, "start_s"), end = ex_read_number(&s->r, v, "end_s");
		struct span *x = span_of(s, v, e);
		int stream;

		if (s->r.why)
			return;
		stream = stream_of(s, v, e);
		if (start < busy[stream] || end < start)
			ex_read_fault(&s->r, "two events at once, or one that ends before it begins");
		busy[stream] = end;
		*x = (struct span){start, end, x->n + 1};
	}
}

/* Is the collective of operand i, or of any result where i is negative, in this phase? */
static bool is_of(const struct ap_comm *c, enum ap_phase phase, int i)
{
	return c->phase == phase && (i < 0 ? c->result >= 0 : c->operand == i);
}

/* When the last collective of a phase of the operand, or of results, is done; `from` without any. */
static double comms_end(const struct schedule *s, ap_id node, enum ap_phase phase, int operand,
	double from)
{
	const struct ex_oper *o = &s->p->oper[node];

	for (uint32_t i = 0; i < o->ncomm; i++)
		if (is_of(&o->comm[i], phase, operand) && s->comm[node][i].end > from)
			from = s->comm[node][i].end;
	return from;
}

static bool comms_start_after(const struct schedule *s, ap_id node, enum ap_phase phase, int operand,
	double from)
{
	const struct ex_oper *o = &s->p->oper[node];

	for (uint32_t i = 0; i < o->ncomm; i++)
		if (is_of(&o->comm[i], phase, operand) && s->comm[node][i].start < from)
			return false;
	return true;
}

static const struct span *span_of_move(const struct schedule *s, ap_id node, int operand, bool back)
{
	const struct ex_program_move *m = ex_program_move_to(s->p, node, (uint32_t)operand);

	if (!m)
		return NULL;
	return back ? &s->move_back[m - s->p->move] : &s->move[m - s->p->move];
}

static void check_forward(struct schedule *s, ap_id node)
{
	const struct ap_graph *g = s->p->graph;
	const struct ap_node *n = &g->node[node];
	double start = s->forward[node].start;

	must(s, s->forward[node].n == 1, "is not scheduled once", node);
	for (int i = 0; i < n->bound.nin; i++) {
		const struct ap_tensor *t = &g->tensor[n->in[i]];
		const struct ex_program_move *copy = ex_program_move_to(s->p, node, (uint32_t)i);
		const struct span *move = span_of_move(s, node, i, false);
		double ready = t->kind == AP_TENSOR_ACT ? comms_end(s, t->producer, AP_PHASE_FORWARD,
			-1, s->forward[t->producer].end) : 0;

		if (move && copy->shares != AP_NONE)
			move = &s->move[copy->shares];
		if (move && ex_program_copy_to(s->p, node, (uint32_t)i)) {
			must(s, move->n == 1, "a redistribution is not scheduled once", node);
			must(s, move->start >= ready || copy->shares != AP_NONE, "a redistribution before its "
				"tensor", node); /* a shared one is of what another view may have made before */
			ready = fmax(ready, move->end);
		}
		must(s, comms_start_after(s, node, AP_PHASE_FORWARD, i, ready),
			"a halo before its operand", node);
		ready = comms_end(s, node, AP_PHASE_FORWARD, i, ready);
		must(s, start >= ready, "runs before an operand is there", node);
	}
	must(s, comms_start_after(s, node, AP_PHASE_FORWARD, -1, s->forward[node].end),
		"a collective before its result", node);
}

/* When the gradient that one use sends is there. */
static double sent_back(struct schedule *s, const struct ap_use *use)
{
	const struct ex_program_move *m = ex_program_move_to(s->p, use->node, use->operand);
	const struct span *move = span_of_move(s, use->node, (int)use->operand, true);
	double ready = comms_end(s, use->node, AP_PHASE_BACKWARD, (int)use->operand,
		s->backward[use->node].end);

	must(s, comms_start_after(s, use->node, AP_PHASE_BACKWARD, (int)use->operand,
		s->backward[use->node].end), "a collective before its gradient", use->node);
	if (m && m->shares != AP_NONE) { /* it comes with that of another use of the tensor */
		must(s, s->move_back[m->shares].start >= ready, "a redistribution before a gradient that shares "
			"it", use->node);
		return ready;
	}
	if (!move)
		return ready;
	must(s, move->n == 1, "a gradient's redistribution is not scheduled once", use->node);
	must(s, move->start >= ready, "a gradient's redistribution before the gradient", use->node);
	return move->end;
}

static void check_backward(struct schedule *s, ap_id node)
{
	const struct ap_graph *g = s->p->graph;
	const struct ap_node *n = &g->node[node];
	bool has = s->p->task[node].backward;

	must(s, s->backward[node].n == has, "its backward pass is not scheduled once", node);
	for (int o = 0; has && o < n->bound.nout; o++) {
		const struct ap_tensor *t = &g->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			double ready = 0;

			if (s->p->task[t->use[u].node].in[t->use[u].operand].grad)
				ready = sent_back(s, &t->use[u]);
			must(s, comms_start_after(s, node, AP_PHASE_BACKWARD, -1, ready),
				"a collective before its gradient", node);
			must(s, s->backward[node].start >= ready, "runs back before its gradient", node);
		}
	}
	if (has)
		must(s, s->backward[node].start >= comms_end(s, node, AP_PHASE_BACKWARD, -1,
			s->forward[node].end), "runs back before its gradient is summed", node);
}

/* mindspore: one exchange after the last use, by the owner; generic: each use its own. */
static void check_gradient(struct schedule *s, ap_id node, int operand)
{
	const struct ap_tensor *t = &s->p->graph->tensor[s->p->graph->node[node].in[operand]];
	bool mirrored = s->p->step.executor == AP_EXECUTOR_MINDSPORE;

	for (uint32_t u = 0; u < t->nuse; u++) {
		bool grad = s->p->task[t->use[u].node].in[t->use[u].operand].grad;

		if (grad && (mirrored || t->use[u].node == node))
			must(s, comms_start_after(s, node, AP_PHASE_GRADIENT, operand,
				s->backward[t->use[u].node].end), "a gradient is exchanged before "
				"it is complete", node);
	}
}

static void check_comms(struct schedule *s, ap_id node)
{
	const struct ex_oper *o = &s->p->oper[node];

	for (uint32_t i = 0; i < o->ncomm; i++) {
		bool gathers = o->comm[i].phase == AP_PHASE_OPTIMIZER;

		must(s, s->comm[node][i].n == !gathers, "a collective is not scheduled once", node);
		if (o->comm[i].phase == AP_PHASE_GRADIENT)
			check_gradient(s, node, o->comm[i].operand);
	}
}

/* Updates come last, after every gradient. */
static void check_updates(struct schedule *s)
{
	double all = 0, first = 0;
	bool any = false;

	for (ap_id i = 0; i < s->p->graph->nnode; i++) {
		const struct span *u = &s->optimizer[i];
		double end = s->backward[i].end;

		for (uint32_t k = 0; k < s->p->oper[i].ncomm; k++)
			end = s->comm[i][k].end > end ? s->comm[i][k].end : end;
		all = end > all ? end : all;
		must(s, u->n <= 1, "is updated twice", i);
		first = u->n && (!any || u->start < first) ? u->start : first;
		any |= u->n > 0;
	}
	s->r.about = "the schedule";
	if (any && first < all)
		ex_read_fault(&s->r, "an update before the last gradient");
}

/* Moves whose tensor has no gradient do not come back. */
static void check_moves(struct schedule *s)
{
	const struct ap_graph *g = s->p->graph;

	for (uint32_t i = 0; i < s->p->nmove; i++) {
		const struct ex_program_move *m = &s->p->move[i];
		bool back = s->p->task[m->node].in[m->operand].grad &&
			g->tensor[g->node[m->node].in[m->operand]].kind == AP_TENSOR_ACT;

		back &= m->shares == AP_NONE;
		must(s, s->move[i].n == (m->nstep > 0) && s->move_back[i].n == back,
			"a redistribution is not scheduled there, and back, once", m->node);
	}
}

const char *ex_schedule_wrong(struct ap_ctx *ctx, const char *text, size_t len,
	const struct ex_program *p)
{
	struct schedule s = {.p = p};

	if (!ex_read_open(&s.r, ctx, text, len))
		return s.r.why;
	make_spans(&s);
	s.r.about = "the schedule";
	read_events(&s, ex_read(&s.r, ap_json_root(s.r.doc), "schedule", AP_JARRAY));
	for (ap_id i = 0; i < p->graph->nnode && !s.r.why; i++) {
		check_forward(&s, i);
		check_backward(&s, i);
		check_comms(&s, i);
	}
	check_moves(&s);
	check_updates(&s);
	return s.r.why;
}
