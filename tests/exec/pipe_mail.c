/* SPDX-License-Identifier: Apache-2.0 */
/* Between stages: rank r of one to rank r of the other, or, of a stage with another number of ranks, piece by
 * piece. */
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
	return ex_first_rank(&p->l->program, stage);
}

/* The way to the Receive of what a Send sends; NULL: rank by rank. */
static const struct ex_program_move *way_of(const struct ex_pipe_run *p, ap_id tensor)
{
	const struct ap_tensor *t = &p->g->tensor[tensor];

	return t->producer != AP_NONE && p->task[t->producer].across && t->nuse > 0
		? ex_program_move_to(&p->l->program, t->use[0].node, 0) : NULL;
}

static void post_pieces(struct ex_pipe_run *p, ap_id send, const struct ex_program_move *m, bool back,
	int64_t micro, const struct ex_shards *s)
{
	const struct ap_node *n = &p->g->node[send];
	uint32_t npiece = back ? m->nback_piece : m->npiece;

	for (uint32_t i = 0; i < npiece; i++) {
		const struct ap_piece *x = back ? &m->back_piece[i] : &m->piece[i];
		struct ex_letter l = {.to = first_rank(p, back ? n->stage : n->peer) + x->to, .micro = micro,
			.tensor = n->out[0], .back = back, .at_s = p->end_s};
		const struct ex_box *from = x->from < s->ndev ? &s->of[x->from].box : NULL;
		struct ex_box box;

		if (!from) {
			ex_trouble(p->w, "%s: rank %" PRId64 " sends, and is none", n->name, x->from);
			return;
		}
		box = *from;
		for (int d = 0; d < box.rank; d++) {
			box.first[d] = x->start[d];
			box.size[d] = x->extent[d];
			if (x->start[d] < from->first[d] ||
				x->start[d] + x->extent[d] > from->first[d] + from->size[d])
				ex_trouble(p->w, "%s: rank %" PRId64 " sends what it has not", n->name, x->from);
		}
		l.slice = ex_tensor_new(p->w->ctx->scratch, &box);
		ex_cut_out(&s->of[x->from], &l.slice);
		if (p->w->fault && p->w->fault->letter)
			p->w->faulted |= p->w->fault->letter(p->w, &l.to);
		AP_PUSH(p->w->ctx->scratch, p->mail, l);
	}
	p->w->ncollective++;
}

void ex_post(struct ex_pipe_run *p, ap_id send, bool back, int64_t micro, const struct ex_shards *s)
{
	const struct ap_comm *c = comm_of(p, send, back);
	const struct ap_node *n = &p->g->node[send];
	int32_t from = back ? n->peer : n->stage;
	const struct ex_program_move *way = way_of(p, n->out[0]);

	if (way) {
		post_pieces(p, send, way, back, micro, s);
		return;
	}
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
	const struct ex_program_move *way = way_of(p, tensor);
	uint32_t n = 0;

	for (size_t i = 0; way && i < p->mail.n; i++) {
		const struct ex_letter *l = &p->mail.v[i];

		n += !l->taken && l->tensor == tensor && l->back == back && l->micro == micro &&
			l->at_s <= p->clock_s;
	}
	if (way)
		return n == (back ? way->nback_piece : way->npiece);
	for (int64_t r = 0; r < ex_devices(&p->l->program, stage); r++)
		if (!find(p, tensor, back, micro, first_rank(p, stage) + r))
			return false;
	return true;
}

/* Puts the pieces that came to each rank together: all of its slice, each element once. */
static bool take_pieces(struct ex_pipe_run *p, const struct ex_program_move *m, ap_id tensor, bool back,
	int64_t micro, int32_t stage, struct ex_shards *out)
{
	struct ex_box whole = ex_box_whole(&p->l->program.oper[m->node].in_shape[m->operand]);
	int64_t elements = 0, ndev = ex_devices(&p->l->program, stage);

	*out = ex_shards_new(p->w->ctx->scratch, ndev);
	for (int64_t r = 0; r < ndev; r++) {
		struct ex_box box = ex_box_slice(&whole, back ? &m->a : &m->b, r);
		int64_t got = 0;

		out->of[r] = ex_tensor_new(p->w->ctx->scratch, &box);
		elements = ex_count(&box);
		for (struct ex_letter *l; (l = find(p, tensor, back, micro, first_rank(p, stage) + r));) {
			l->taken = true;
			got += ex_count(&l->slice.box);
			ex_cut_out(&l->slice, &out->of[r]);
		}
		if (got != elements) {
			ex_trouble(p->w, "rank %" PRId64 " gets %" PRId64 " of %" PRId64 " elements of \"%s\"",
				first_rank(p, stage) + r, got, elements, p->g->tensor[tensor].name);
			return false;
		}
	}
	if (!back && elements * m->element_bytes != m->bytes)
		ex_trouble(p->w, "\"%s\": %" PRId64 " bytes are charged, %" PRId64 " come",
			p->g->tensor[tensor].name, m->bytes, elements * m->element_bytes);
	return true;
}

bool ex_take(struct ex_pipe_run *p, ap_id tensor, bool back, int64_t micro, int32_t stage,
	struct ex_shards *out)
{
	const struct ex_program_move *way = way_of(p, tensor);

	if (way)
		return take_pieces(p, way, tensor, back, micro, stage, out);
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
