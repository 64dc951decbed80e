/* SPDX-License-Identifier: Apache-2.0 */
/* What is not kept is computed again, set by set. */
#include "base/arena.h"
#include "pipe_parts.h"

bool ex_keeps_results(const struct ex_pipe_run *p, ap_id node)
{
	const struct ex_oper *o = &p->l->program.oper[node];

	for (uint32_t i = 0; p->task[node].recomputed && p->task[node].keep_comm && i < o->ncomm; i++)
		if (o->comm[i].phase == AP_PHASE_FORWARD && o->comm[i].result >= 0)
			return true;
	return false;
}

/* Is what a view shows, or the tensor itself, computed or redistributed again? */
static bool is_again(const struct ex_pipe_run *p, ap_id tensor)
{
	const struct ap_tensor *t = &p->g->tensor[tensor];

	if (t->producer == AP_NONE)
		return false;
	if (ex_is_view(&p->g->node[t->producer]))
		return p->task[t->producer].in[0].again || is_again(p, p->g->node[t->producer].in[0]);
	return p->task[t->producer].out[t->result].again;
}

bool ex_comes_again(const struct ex_pipe_run *p, ap_id node, int i)
{
	const struct ap_task_operand *in = &p->task[node].in[i];

	return in->kept && (in->again || is_again(p, p->g->node[node].in[i]));
}

/* Does it give an operand its halo, of which the copy is held? */
static bool is_held_halo(const struct ex_pipe_run *p, ap_id node, const struct ap_comm *c)
{
	return c->kind == AP_COLL_NEIGHBOREXCHANGE && c->phase == AP_PHASE_FORWARD &&
		!p->task[node].in[c->operand].again;
}

/* The operator with the collectives that it has for running again. */
static const struct ex_oper *second_time(struct ex_pipe_run *p, ap_id node)
{
	const struct ex_oper *o = &p->l->program.oper[node];
	struct ex_oper *again = ap_arena_memdup(p->w->ctx->scratch, o, sizeof *o);
	struct ap_comm *comm = AP_NEW_N(p->w->ctx->scratch, struct ap_comm, o->ncomm);
	bool *narrow = AP_NEW_N(p->w->ctx->scratch, bool, o->ncomm);

	again->comm = comm;
	again->narrow = narrow;
	again->ncomm = 0;
	for (uint32_t i = 0; i < o->ncomm; i++) {
		bool round = o->comm[i].kind == AP_COLL_RING || o->comm[i].kind == AP_COLL_ALLTOALL;

		if (round ? o->comm[i].phase == AP_PHASE_RECOMPUTE : o->comm[i].phase == AP_PHASE_FORWARD &&
			!is_held_halo(p, node, &o->comm[i]))
			continue;
		comm[again->ncomm] = o->comm[i];
		narrow[again->ncomm] = o->narrow && o->narrow[i];
		if (o->comm[i].phase == AP_PHASE_RECOMPUTE)
			comm[again->ncomm].phase = AP_PHASE_FORWARD;
		again->ncomm++;
	}
	return again;
}

/* Operands that are brought into the operator's layout again. */
static void bring_again(struct ex_pipe_run *p, int64_t b, ap_id node)
{
	const struct ap_node *n = &p->g->node[node];
	struct ex_held *h = &p->held[b][node];

	for (int i = 0; i < n->bound.nin; i++) {
		const struct ap_task_operand *in = &p->task[node].in[i];

		const struct ex_program_move *m = ex_program_move_to(&p->l->program, node, (uint32_t)i);

		if (in->kind != AP_TENSOR_ACT || !in->kept || !in->again || h->in[i].of || !m || m->nstep == 0)
			continue;
		if (!ex_recall_value(p, b, n->in[i])) {
			ex_trouble(p->w, "%s: \"%s\" cannot be brought again", n->name,
				p->g->tensor[n->in[i]].name);
			continue;
		}
		h->in[i] = ex_pipe_operand(p, b, node, i, AP_PHASE_RECOMPUTE);
		h->again[i] = ex_most_bytes(&h->in[i]);
		p->now[n->stage].recompute += h->again[i];
	}
}

static void run_again(struct ex_pipe_run *p, int64_t b, ap_id node)
{
	const struct ap_node *n = &p->g->node[node];
	struct ex_shards in[EX_MAX_IN], out[EX_MAX_OUT];

	for (int i = 0; i < n->bound.nin; i++)
		in[i] = ex_recall(p, b, node, i);
	if (p->w->trouble)
		return;
	p->held[b][node].run = ex_forward(p->w, second_time(p, node), in, out);
	for (int o = 0; o < n->bound.nout; o++) {
		if (p->task[node].out[o].twice) { /* others read what the first run left */
			p->held[b][node].twice = true;
			if (!p->task[node].backward)
				continue;
			if (!p->batch[b].value[n->out[o]].of)
				p->batch[b].value[n->out[o]] = out[o];
			p->here[b][n->out[o]] = true;
			p->now[n->stage].recompute += ex_most_bytes(&out[o]);
			continue;
		}
		p->batch[b].value[n->out[o]] = out[o];
		p->here[b][n->out[o]] = p->task[node].out[o].again;
		if (p->task[node].out[o].again)
			p->now[n->stage].recompute += ex_most_bytes(&out[o]);
	}
}

/* What only the set itself reads goes when it has run. */
static void drop_inner(struct ex_pipe_run *p, int64_t b, ap_id node)
{
	const struct ap_node *n = &p->g->node[node];

	for (int o = 0; o < n->bound.nout; o++)
		if (!p->here[b][n->out[o]] && p->held[b][node].run && !p->task[node].out[o].twice)
			p->batch[b].value[n->out[o]].of = NULL;
}

void ex_compute_again(struct ex_pipe_run *p, int64_t b, ap_id node)
{
	const struct ap_node *of = &p->g->node[node];
	uint32_t set = p->task[node].recompute_set;

	if (set == AP_NONE)
		return;
	for (ap_id i = 0; i < p->g->nnode && !p->w->trouble; i++) {
		if (p->task[i].recompute_set != set || !ex_is_in(&p->g->node[i], of->stage, of->segment))
			continue;
		bring_again(p, b, i);
		if (p->task[i].recomputed && !ex_keeps_results(p, i) && !p->held[b][i].run &&
			!p->held[b][i].twice)
			run_again(p, b, i);
	}
	for (ap_id i = 0; i < p->g->nnode; i++)
		if (p->task[i].recompute_set == set && ex_is_in(&p->g->node[i], of->stage, of->segment))
			drop_inner(p, b, i);
	ex_note_peaks(p, of->stage);
}
