/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "pipe_parts.h"

static void make_batches(struct ex_pipe_run *p, const struct ex_graph_truth *truth)
{
	struct ap_arena *a = p->w->ctx->scratch;
	int64_t n = truth->nbatch;
	int32_t npart = p->l->nstage * p->l->nsegment;

	p->batch = AP_NEW_N(a, struct ex_graph_run, n);
	p->held = AP_NEW_N(a, struct ex_held *, n);
	p->done = AP_NEW_N(a, uint8_t *, n);
	p->here = AP_NEW_N(a, bool *, n);
	p->own = AP_NEW_N(a, int64_t *, n);
	for (int64_t b = 0; b < n; b++) {
		p->batch[b] = (struct ex_graph_run){.w = p->w, .p = &p->l->program, .truth = truth,
			.batch = b, .value = AP_NEW_N(a, struct ex_shards, p->g->ntensor),
			.grad = AP_NEW_N(a, struct ex_shards, p->g->ntensor),
			.use_grad = AP_NEW_N(a, struct ex_shards *, p->g->nnode)};
		p->held[b] = AP_NEW_N(a, struct ex_held, p->g->nnode);
		p->done[b] = AP_NEW_N(a, uint8_t, npart);
		p->here[b] = AP_NEW_N(a, bool, p->g->ntensor);
		p->own[b] = AP_NEW_N(a, int64_t, npart);
		for (ap_id i = 0; i < p->g->nnode; i++) {
			uint16_t nin = p->g->node[i].bound.nin;

			p->batch[b].use_grad[i] = AP_NEW_N(a, struct ex_shards, nin);
			p->held[b][i].in = AP_NEW_N(a, struct ex_shards, nin);
			p->held[b][i].again = AP_NEW_N(a, int64_t, nin);
		}
	}
}

static void begin(struct ex_pipe_run *p, const struct ex_graph_truth *truth, struct ex_peaks *peaks)
{
	struct ap_arena *a = p->w->ctx->scratch;

	p->g = p->l->program.graph;
	p->task = p->l->program.task;
	p->w->ndev = p->l->program.ndev;
	p->w->executor = p->l->program.step.executor;
	p->w->gradient_fp32_sync = p->l->program.step.gradient_fp32_sync;
	p->flying = AP_NEW_N(a, int64_t, p->l->nstage * p->l->nsegment);
	p->now = AP_NEW_N(a, struct ex_peaks, p->l->nstage);
	p->peak = peaks;
	memset(peaks, 0, (size_t)p->l->nstage * sizeof *peaks);
	p->total = AP_NEW_N(a, struct ex_shards *, p->g->nnode);
	for (ap_id i = 0; i < p->g->nnode; i++)
		p->total[i] = AP_NEW_N(a, struct ex_shards, p->g->node[i].bound.nin);
	make_batches(p, truth);
	ex_find_last_readers(p);
	ex_graph_check_moves(&p->batch[0]);
}

/* ---- whose turn it is ---- */

/* Has all come that the slot needs of other parts? */
static bool is_ready(const struct ex_pipe_run *p, const struct ex_slot *s)
{
	if (p->done[s->micro][ex_part(p, s->stage, s->segment)] != (1 << s->pass) - 1)
		return false;
	for (ap_id i = 0; i < p->g->nnode; i++) {
		const struct ap_node *n = &p->g->node[i];

		if (n->peer < 0 || !ex_is_in(n, s->stage, s->segment))
			continue;
		if (s->pass == AP_PASS_FORWARD && strcmp(n->type, "Receive") == 0 &&
			!ex_has_come(p, n->in[0], false, s->micro, s->stage))
			return false;
		if (s->pass == AP_PASS_BACKWARD && strcmp(n->type, "Send") == 0 && p->task[i].backward &&
			!ex_has_come(p, n->out[0], true, s->micro, s->stage))
			return false;
	}
	return true;
}

/* The stage whose next slot is the first by the plan's times; of several one that can run. */
static int32_t first_by_time(struct ex_pipe_run *p, const uint32_t *at)
{
	const struct ex_pipeline *l = p->l;
	int32_t first = -1;
	bool ready = false;

	for (int32_t s = 0; s < l->nstage; s++) {
		const struct ex_slot *x = &l->slot[at[s]], *y = first < 0 ? NULL : &l->slot[at[first]];

		if (at[s] == l->first[s + 1] || (y && x->start_s > y->start_s) ||
			(y && x->start_s >= y->start_s && ready))
			continue;
		first = s;
		p->clock_s = x->start_s;
		ready = is_ready(p, x);
	}
	if (first >= 0)
		p->clock_s = l->slot[at[first]].start_s;
	return first;
}

/* One of the stages whose next slot can run; -1: none can. */
static int32_t any_ready(struct ex_pipe_run *p, const uint32_t *at)
{
	uint32_t n = 0;
	int32_t stage = -1;

	p->clock_s = INFINITY;
	for (int32_t s = 0; s < p->l->nstage; s++)
		if (at[s] < p->l->first[s + 1] && is_ready(p, &p->l->slot[at[s]]) &&
			ex_below(&p->w->rng, ++n) == 0)
			stage = s;
	return stage;
}

static void collect_trouble(struct ex_pipe_run *p, int64_t b, const struct ex_slot *s)
{
	const char *why = p->batch[b].why;

	if (why && !p->w->trouble)
		p->w->trouble = why;
	if (p->w->trouble && s)
		p->w->trouble = ap_arena_printf(p->w->ctx->arena, "%s pass of stage %d, segment %d, "
			"micro-batch %d: %s", (const char *[]){"forward", "backward", "weight"}[s->pass],
			s->stage, s->segment, s->micro, p->w->trouble);
}

static void run_slots(struct ex_pipe_run *p, enum ex_pace pace)
{
	uint32_t *at = ap_arena_memdup(p->w->ctx->scratch, p->l->first, (size_t)p->l->nstage * sizeof *at);
	uint32_t left = p->l->first[p->l->nstage];

	while (left > 0 && !p->w->trouble) {
		int32_t stage = pace == EX_BY_TIME ? first_by_time(p, at) : any_ready(p, at);
		const struct ex_slot *s;

		if (stage < 0) {
			ex_trouble(p->w, "every stage waits for another");
			return;
		}
		s = &p->l->slot[at[stage]++];
		p->end_s = pace == EX_BY_TIME ? s->end_s : 0;
		ex_run_slot(p, s);
		collect_trouble(p, s->micro, s);
		left--;
	}
	p->clock_s = INFINITY;
}

/* ---- the whole step ---- */

static void check_done(struct ex_pipe_run *p)
{
	bool splits = p->l->program.step.pipe->scheduler->splits;
	int all = !p->l->program.step.training ? 1 : splits ? 7 : 3;

	for (int64_t b = 0; b < p->batch[0].truth->nbatch; b++)
		for (int32_t k = 0; k < p->l->nstage * p->l->nsegment; k++)
			if (p->done[b][k] != all)
				ex_trouble(p->w, "micro-batch %" PRId64 " did not go through all passes of part "
					"%d", b, k);
}

/* Are gradients of a single micro-batch scattered where they arise? Here they wait for the exchange. */
static bool scatters_at_once(const struct ex_pipe_run *p)
{
	return p->l->program.step.micro_batches == 1 &&
		(p->l->program.step.optimizer_level >= 2 || p->w->executor == AP_EXECUTOR_MINDSPORE);
}

static void check_peaks(struct ex_pipe_run *p)
{
	for (int32_t s = 0; s < p->l->nstage; s++) {
		const struct ex_peaks *k = &p->peak[s];
		const struct ap_memory *m = &p->l->memory[s];

		if (k->activations > m->activations)
			ex_trouble(p->w, "stage %d holds %" PRId64 " bytes of activations, %" PRId64 " are said", s,
				k->activations, m->activations);
		if (k->recompute > m->recompute)
			ex_trouble(p->w, "stage %d holds %" PRId64 " recomputed bytes, %" PRId64 " are said", s,
				k->recompute, m->recompute);
		if (k->weights > m->weights)
			ex_trouble(p->w, "stage %d holds %" PRId64 " bytes of weights, %" PRId64 " are said", s,
				k->weights, m->weights);
		if (k->gradients > m->gradients && !scatters_at_once(p))
			ex_trouble(p->w, "stage %d holds %" PRId64 " bytes of gradients, %" PRId64 " are said", s,
				k->gradients, m->gradients);
	}
}

const char *ex_pipeline_run(struct ex_world *w, const struct ex_pipeline *l,
	const struct ex_graph_truth *truth, enum ex_pace pace, struct ex_peaks *peaks)
{
	struct ex_pipe_run p = {.w = w, .l = l};

	w->tapes = ap_arena_create_like(w->ctx->scratch);
	begin(&p, truth, peaks);
	ex_send_weights(&p);
	collect_trouble(&p, 0, NULL);
	run_slots(&p, pace);
	if (!w->trouble && l->program.step.training)
		ex_take_buckets(&p);
	if (!w->trouble && l->program.step.training)
		ex_return_weights(&p);
	if (!w->trouble)
		ex_check_mail(&p);
	if (!w->trouble)
		check_done(&p);
	if (!w->trouble)
		ex_note_parameters(&p);
	if (!w->trouble && l->program.step.training)
		ex_finish(&p);
	collect_trouble(&p, 0, NULL);
	if (!w->trouble)
		check_peaks(&p);
	ap_arena_destroy(w->tapes);
	w->tapes = NULL;
	return w->trouble;
}
