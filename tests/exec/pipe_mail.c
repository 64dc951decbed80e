/* SPDX-License-Identifier: Apache-2.0 */
/* Between stages: rank r of one to rank r of the other. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/vec.h"
#include "fault.h"
#include "pipe_parts.h"

static const struct ap_comm *comm_of(const struct ex_pipe_run *p, ap_id send, bool back)
{
	const struct ex_oper *o = &p->l->program.oper[send];

	for (uint32_t i = 0; i < o->ncomm; i++)
		if (o->comm[i].kind == AP_COLL_SEND &&
			o->comm[i].phase == (back ? AP_PHASE_BACKWARD : AP_PHASE_FORWARD))
			return &o->comm[i];
	return NULL;
}

static int64_t first_rank(const struct ex_pipe_run *p, int32_t stage)
{
	return (int64_t)stage * p->w->ndev;
}

void ex_post(struct ex_pipe_run *p, ap_id send, bool back, int64_t micro, const struct ex_shards *s)
{
	const struct ap_comm *c = comm_of(p, send, back);
	const struct ap_node *n = &p->g->node[send];
	int32_t from = back ? n->peer : n->stage;

	if (!c || c->from_stage != from) {
		ex_trouble(p->w, "%s: nothing is sent from stage %d", n->name, from);
		return;
	}
	for (int64_t r = 0; r < s->ndev; r++) {
		struct ex_letter l = {.to = first_rank(p, c->to_stage) + r, .micro = micro,
			.tensor = n->out[0], .back = back, .at_s = p->end_s,
			.slice = s->of[r]};

		if (p->w->fault && p->w->fault->letter)
			p->w->faulted |= p->w->fault->letter(p->w, &l.to);
		AP_PUSH(p->w->ctx->scratch, p->mail, l);
	}
	p->w->ncollective++;
}

static struct ex_letter *find(const struct ex_pipe_run *p, ap_id tensor, bool back, int64_t micro, int64_t to)
{
	for (size_t i = 0; i < p->mail.n; i++) {
		struct ex_letter *l = &p->mail.v[i];

		if (!l->taken && l->tensor == tensor && l->back == back && l->micro == micro && l->to == to &&
			l->at_s <= p->clock_s)
			return l;
	}
	return NULL;
}

bool ex_has_come(const struct ex_pipe_run *p, ap_id tensor, bool back, int64_t micro, int32_t stage)
{
	for (int64_t r = 0; r < p->w->ndev; r++)
		if (!find(p, tensor, back, micro, first_rank(p, stage) + r))
			return false;
	return true;
}

bool ex_take(struct ex_pipe_run *p, ap_id tensor, bool back, int64_t micro, int32_t stage,
	struct ex_shards *out)
{
	*out = ex_shards_new(p->w->ctx->scratch, p->w->ndev);
	for (int64_t r = 0; r < p->w->ndev; r++) {
		struct ex_letter *l = find(p, tensor, back, micro, first_rank(p, stage) + r);

		if (!l) {
			ex_trouble(p->w, "rank %" PRId64 " waits for %s \"%s\"", first_rank(p, stage) + r,
				back ? "the gradient of" : "", p->g->tensor[tensor].name);
			return false;
		}
		l->taken = true;
		out->of[r] = l->slice;
	}
	return true;
}

void ex_check_mail(struct ex_pipe_run *p)
{
	for (size_t i = 0; i < p->mail.n; i++)
		if (!p->mail.v[i].taken)
			ex_trouble(p->w, "rank %" PRId64 " got \"%s\" and did not wait for it", p->mail.v[i].to,
				p->g->tensor[p->mail.v[i].tensor].name);
}
