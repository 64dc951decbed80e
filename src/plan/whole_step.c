/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/whole_step.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "plan/buckets.h"
#include "plan/terms.h"

static enum ap_pass finishing(const struct ap_whole_step *w)
{
	return w->maker.splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
}

/* Passes over micro-batches but the last one, if `last` is not asked for. */
static void make_runs(struct ap_whole_step *w, bool last)
{
	for (int32_t i = w->x.npart; i-- > 0;) {
		struct ap_pass_run *run = w->part[i].run;

		ap_pass_make(&w->maker, i, AP_PASS_FORWARD, AP_PASS_USUAL, &run[AP_PASS_FORWARD]);
		ap_pass_make(&w->maker, i, AP_PASS_BACKWARD, AP_PASS_USUAL, &run[AP_PASS_BACKWARD]);
		if (w->maker.splits)
			ap_pass_make(&w->maker, i, AP_PASS_WEIGHT, AP_PASS_USUAL, &run[AP_PASS_WEIGHT]);
		if (last && w->x.pipe && w->x.pipe->scheduler->beside) {
			ap_pass_make(&w->maker, i, AP_PASS_FORWARD, AP_PASS_BESIDE,
				&run[AP_RUN_FORWARD_BESIDE]);
			ap_pass_make(&w->maker, i, AP_PASS_BACKWARD, AP_PASS_BESIDE,
				&run[AP_RUN_BACKWARD_BESIDE]);
		}
		if (last)
			ap_pass_make(&w->maker, i, finishing(w), AP_PASS_LAST, &run[AP_RUN_LAST]);
		assert(run[AP_PASS_FORWARD].net_bytes + run[AP_PASS_BACKWARD].net_bytes +
			run[AP_PASS_WEIGHT].net_bytes == 0 || !w->x.p->step->training);
	}
}

/* The Receive of what a Send sends. */
static ap_id receiving(const struct ap_plan *p, ap_id node)
{
	return p->graph->tensor[p->graph->node[node].out[0]].use[0].node;
}

/* Seconds for which a node sends to another stage, once. */
static double sent_s(const struct ap_whole_step *w, ap_id node, enum ap_phase phase)
{
	const struct ap_plan *p = w->x.p;
	double sum = 0;

	for (uint32_t c = 0; c < p->op[node].ncomm; c++)
		if (p->op[node].comm[c].comm.kind == AP_COLL_SEND &&
			p->op[node].comm[c].comm.phase == phase)
			sum += p->op[node].comm[c].time_s;
	if (p->task[node].across && !p->task[node].received) {
		const struct ap_move_cost *cost = &p->move[w->x.first_move[receiving(p, node)]].cost;

		sum += (phase == AP_PHASE_FORWARD ? cost->forward_s : cost->backward_s) /
			(p->task[node].once ? 1 : (double)p->step->micro_batches);
	}
	return sum;
}

/* The part that receives what this node sends. */
static int32_t receiver(const struct ap_whole_step *w, ap_id node)
{
	return w->x.part_of[receiving(w->x.p, node)];
}

/* Does the node send to another stage, once a step or (once false) with every micro-batch? */
static bool sends(const struct ap_whole_step *w, ap_id node, bool once)
{
	return w->x.p->task[node].once == once && sent_s(w, node, AP_PHASE_FORWARD) > 0;
}

int32_t ap_whole_step_hop(const struct ap_whole_step *w, ap_id node)
{
	const int32_t *stage = w->x.stage;
	int32_t part = w->x.part_of[node], to = receiver(w, node);

	while (part + 1 < to && stage[part] == stage[part + 1])
		part++;
	return part;
}

static void time_passes(const struct ap_whole_step *w, struct ap_pass_times *time)
{
	for (int32_t i = 0; i < w->x.npart; i++) {
		const struct ap_pass_run *run = w->part[i].run;

		time[i] = (struct ap_pass_times){.forward_s = run[AP_PASS_FORWARD].span_s,
			.backward_s = run[AP_PASS_BACKWARD].span_s,
			.weight_s = run[AP_PASS_WEIGHT].span_s,
			.last_backward_s = run[AP_RUN_LAST].span_s,
			.forward_beside = {run[AP_RUN_FORWARD_BESIDE].span_s,
				run[AP_RUN_FORWARD_BESIDE].communication_s},
			.backward_beside = {run[AP_RUN_BACKWARD_BESIDE].span_s,
				run[AP_RUN_BACKWARD_BESIDE].communication_s}};
	}
	for (ap_id i = 0; i < w->x.p->graph->nnode; i++)
		if (sends(w, i, false)) {
			int32_t hop = ap_whole_step_hop(w, i);

			time[hop].send_s += sent_s(w, i, AP_PHASE_FORWARD);
			time[hop].send_back_s += sent_s(w, i, AP_PHASE_BACKWARD);
		}
}

/* Without a scheduler: micro-batches in sequence, each forward and back. */
static void one_by_one(struct ap_whole_step *w, const struct ap_pass_times *t, struct ap_timeline *out)
{
	int64_t nmicro = w->x.p->step->micro_batches;
	uint32_t passes = w->x.p->step->training ? 2 : 1, *first = AP_NEW_N(w->maker.ctx->arena, uint32_t, 2);
	struct ap_slot_time *slot = AP_NEW_N(w->maker.ctx->arena, struct ap_slot_time, passes * nmicro);
	uint32_t n = 0;

	for (int32_t micro = 0; micro < nmicro; micro++)
		for (uint32_t pass = 0; pass < passes; pass++) {
			double takes = pass == AP_PASS_FORWARD ? t->forward_s
				: micro + 1 < nmicro ? t->backward_s : t->last_backward_s;

			slot[n++] = (struct ap_slot_time){{.pass = (uint8_t)pass, .micro = micro}, out->end_s,
				out->end_s + takes};
			out->end_s += takes;
		}
	first[1] = n;
	out->nstage = 1;
	out->first = first;
	out->slot = slot;
}

static void lay_out(struct ap_whole_step *w)
{
	const struct ap_step *step = w->x.p->step;
	struct ap_pass_times *time = AP_NEW_N(w->maker.ctx->scratch, struct ap_pass_times, w->x.npart);

	w->timeline = AP_NEW(w->maker.ctx->arena, struct ap_timeline);
	time_passes(w, time);
	if (w->x.pipe)
		ap_schedule_run(w->maker.ctx, w->x.pipe, step->micro_batches, step->training, time,
			w->timeline);
	else
		one_by_one(w, time, w->timeline);
}

static int32_t part_of_slot(const struct ap_parts *x, int32_t stage, const struct ap_schedule_slot *slot)
{
	return x->pipe ? ap_schedule_part(x->pipe->scheduler, x->nstage, stage, slot->segment) : 0;
}

static double *link_between(const struct ap_whole_step *w, double *link, int32_t from, int32_t to)
{
	return &link[w->x.stage[from] * w->x.nstage + w->x.stage[to]];
}

static void send_once(struct ap_whole_step *w, double *link, ap_id node, int32_t from, int32_t to,
	double time_s, double ready)
{
	double *busy = link_between(w, link, from, to);
	struct ap_whole_step_send s = {.from = from, .to = to, .tensor = w->x.p->graph->node[node].in[0],
		.start_s = fmax(*busy, ready)};

	s.end_s = *busy = s.start_s + time_s;
	AP_PUSH(w->maker.ctx->scratch, w->sends, s);
}

static double first_start(const struct ap_whole_step *w, int32_t part)
{
	const struct ap_timeline *t = w->timeline;
	int32_t stage = w->x.stage[part];

	for (uint32_t i = t->first[stage]; i < t->first[stage + 1]; i++)
		if (part_of_slot(&w->x, stage, &t->slot[i].slot) == part)
			return t->slot[i].start_s;
	return 0;
}

/* Raises *late so that *late + start is not before end. */
static void put_off(double *late, double start, double end)
{
	*late = fmax(*late, end - start);
	while (*late + start < end)
		*late = nextafter(*late, INFINITY);
}

/* Sends parameters at the start of the step, before their users' passes and all other sends. */
static void send_parameters(struct ap_whole_step *w, double *link)
{
	const struct ap_timeline *t = w->timeline;
	double *late = &w->late_s;

	for (ap_id i = 0; i < w->x.p->graph->nnode; i++)
		if (sends(w, i, true))
			send_once(w, link, i, w->x.part_of[i], receiver(w, i),
				sent_s(w, i, AP_PHASE_FORWARD), 0);
	for (size_t i = 0; i < w->sends.n; i++)
		put_off(late, first_start(w, w->sends.v[i].to), w->sends.v[i].end_s);
	for (uint32_t i = 0; i < t->nsend; i++)
		put_off(late, t->send[i].start_s,
			*link_between(w, link, t->send[i].from_part, t->send[i].to_part));
}

/* Gradients are sent after all other sends on the links. */
static void free_links(struct ap_whole_step *w)
{
	const struct ap_timeline *t = w->timeline;
	int32_t n = w->x.nstage * w->x.nstage;

	for (int32_t i = 0; i < n; i++)
		w->link[i] = fmax(0, w->link[i] - w->late_s);
	for (uint32_t i = 0; i < t->nsend; i++) {
		double *busy = link_between(w, w->link, t->send[i].from_part, t->send[i].to_part);

		*busy = fmax(*busy, t->send[i].end_s);
	}
}

/* Does the gradient of what the node sends once come back? */
static bool comes_back(const struct ap_whole_step *w, ap_id node)
{
	return sends(w, node, true) && sent_s(w, node, AP_PHASE_BACKWARD) > 0;
}

/* What the node sends once, where it is received. */
static const struct ap_tensor *received(const struct ap_whole_step *w, ap_id node)
{
	const struct ap_graph *g = w->x.p->graph;
	const struct ap_tensor *sent = &g->tensor[g->node[node].out[0]];

	return &g->tensor[g->node[sent->use[0].node].out[0]];
}

/* Is the gradient exchanged between those who used it, before it is sent? */
static bool is_exchanged(const struct ap_whole_step *w, const struct ap_tensor *t)
{
	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct ap_plan_op *op = &w->x.p->op[t->use[u].node];

		for (uint32_t c = 0; c < op->ncomm; c++)
			if (op->comm[c].comm.phase == AP_PHASE_GRADIENT &&
				op->comm[c].comm.operand == (int)t->use[u].operand)
				return true;
	}
	return false;
}

/* Seconds to bring it from the layouts of its users into that in which it is sent. */
static double move_back_s(const struct ap_whole_step *w, const struct ap_tensor *t)
{
	const struct ap_plan *p = w->x.p;
	double sum = 0;

	for (uint32_t u = 0; u < t->nuse; u++) {
		ap_id node = t->use[u].node;

		for (uint32_t m = w->x.first_move[node]; m < w->x.first_move[node + 1]; m++)
			if (p->move[m].operand == t->use[u].operand &&
				p->task[node].in[t->use[u].operand].returns)
				sum += p->move[m].cost.backward_s - p->move[m].cost.again_s;
	}
	return sum;
}

/* Sends it when the part that used it is done, and its exchange there. */
static void send_gradient(struct ap_whole_step *w, ap_id node)
{
	const struct ap_tensor *t = received(w, node);
	int32_t part = receiver(w, node);
	double back_s = move_back_s(w, t), ready = w->timeline->slot[w->part[part].last_slot].end_s;
	const struct ap_whole_step_send *s;

	ready = fmax(ready, w->returned_s[t - w->x.p->graph->tensor]) + back_s;
	w->stage[w->x.stage[part]].communication_s += back_s;
	send_once(w, w->link, node, part, w->x.part_of[node], sent_s(w, node, AP_PHASE_BACKWARD),
		ready);
	s = &w->sends.v[w->sends.n - 1];
	w->wait_s[s->tensor] = fmax(w->wait_s[s->tensor], s->end_s);
	w->sent[node] = true;
}

/* Of a tensor that the bucket has: it waits for gradients from other stages. */
static void send_awaited(struct ap_whole_step *w, const struct ap_tensor *t)
{
	for (uint32_t u = 0; u < t->nuse; u++)
		if (comes_back(w, t->use[u].node) && !w->sent[t->use[u].node])
			send_gradient(w, t->use[u].node);
}

static void send_unexchanged(struct ap_whole_step *w)
{
	for (ap_id i = 0; i < w->x.p->graph->nnode; i++)
		if (comes_back(w, i) && !is_exchanged(w, received(w, i)))
			send_gradient(w, i);
}

static void send_rest(struct ap_whole_step *w)
{
	for (ap_id i = 0; i < w->x.p->graph->nnode; i++)
		if (comes_back(w, i) && !w->sent[i])
			send_gradient(w, i);
}

double ap_whole_step_ready_s(const struct ap_whole_step *w, uint32_t bucket, const double *last_start_s,
	double end_s, double origin_s)
{
	const struct ap_pass_maker *m = &w->maker;
	const struct ap_plan *p = w->x.p;
	double at = p->step->exchange_behind ? end_s : 0;

	for (uint32_t i = m->bucket_first[bucket]; i < m->bucket_first[bucket + 1]; i++) {
		uint32_t g = m->bucket_gradient[i];
		const struct ap_gradient *gradient = &w->x.gradient[g];
		ap_id tensor = ap_plan_comm_tensor(p->graph, gradient->node,
			&ap_gradient_comm(p, gradient)->comm);
		int32_t part = m->gradient_part[g];

		at = fmax(at, w->wait_s[tensor] - origin_s);
		if (part < 0)
			at = fmax(at, end_s);
		else if (!gradient->chained)
			at = fmax(at, last_start_s[part] + m->gradient_ready[g]);
	}
	return at;
}

static void exchange(struct ap_whole_step *w)
{
	/* Buckets that no pass completes come last. */
	for (size_t i = 0; i < w->maker.launched.n; i++)
		AP_PUSH(w->maker.ctx->scratch, w->exchange, w->maker.launched.v[i]);
	for (uint32_t b = 0; b < w->buckets.n; b++)
		if (w->maker.bucket_left[b] > 0)
			AP_PUSH(w->maker.ctx->scratch, w->exchange, b);
	for (size_t i = 0; i < w->exchange.n; i++) {
		uint32_t b = w->exchange.v[i];
		const struct ap_bucket *bucket = &w->buckets.v[b];
		struct ap_whole_step_stage *s = &w->stage[bucket->stage];

		for (uint32_t k = 0; k < bucket->n; k++)
			send_awaited(w, &w->x.p->graph->tensor[bucket->tensor[k]]);
		w->bucket_start_s[b] = fmax(s->update_s,
			ap_whole_step_ready_s(w, b, w->last_start_s, s->last_s, 0));
		s->update_s = w->bucket_start_s[b] + bucket->time_s;
		s->communication_s += bucket->time_s;
		for (uint32_t k = 0; k < bucket->n; k++)
			w->returned_s[bucket->tensor[k]] = fmax(w->returned_s[bucket->tensor[k]],
				s->update_s);
	}
	send_rest(w);
	for (int32_t s = 0; s < w->x.nstage; s++)
		w->stage[s].update_s = fmax(w->stage[s].update_s, w->stage[s].last_s);
}

/* A gradient from another stage delays the update even if no bucket exchanges it. */
static void wait_for_gradients(struct ap_whole_step *w)
{
	for (size_t i = 0; i < w->sends.n; i++) {
		const struct ap_whole_step_send *send = &w->sends.v[i];
		struct ap_whole_step_stage *s = &w->stage[w->x.stage[send->to]];

		if (send->to > send->from || send->end_s <= s->update_s)
			continue;
		s->idle_s += send->end_s - s->update_s;
		s->update_s = send->end_s;
	}
}

static int64_t static_bytes(const struct ap_memory *m)
{
	return m->weights + m->gathered + m->gradients + m->optimizer + m->context + m->buffers;
}

static void run_stage(struct ap_whole_step *w, int32_t stage)
{
	const struct ap_timeline *t = w->timeline;
	struct ap_whole_step_stage *s = &w->stage[stage];
	int64_t held = 0, most = 0;

	for (uint32_t i = t->first[stage]; i < t->first[stage + 1]; i++) {
		int32_t part;
		const struct ap_pass_run *run = ap_whole_step_slot(w, stage, i, &part);

		s->idle_s += t->slot[i].start_s - s->last_s;
		s->last_s = t->slot[i].end_s;
		s->compute_s += run->compute_s;
		s->communication_s += run->communication_s;
		most = held + run->most_bytes > most ? held + run->most_bytes : most;
		held += run->net_bytes;
	}
	s->first_s = t->first[stage] < t->first[stage + 1] ? t->slot[t->first[stage]].start_s : 0;
	s->fixed_bytes = static_bytes(&w->x.p->stage[stage].memory) + w->live.fixed[stage];
	s->peak_bytes = s->fixed_bytes + most;
}

static void add_segments(const struct ap_whole_step *w)
{
	for (int32_t i = 0; i < w->x.npart; i++) {
		struct ap_whole_step_stage *s = &w->stage[w->x.stage[i]];

		s->forward_s += w->part[i].run[AP_PASS_FORWARD].span_s;
		s->backward_s += w->part[i].run[AP_PASS_BACKWARD].span_s +
			w->part[i].run[AP_PASS_WEIGHT].span_s;
	}
}

double ap_whole_step_update_s(const struct ap_plan *p, ap_id node)
{
	double work = p->op[node].cost.optimizer_s;

	for (uint32_t c = 0; c < p->op[node].ncomm; c++)
		if (p->op[node].comm[c].comm.phase == AP_PHASE_OPTIMIZER)
			work -= p->op[node].comm[c].time_s;
	return fmax(0, work);
}

bool ap_whole_step_gathers(const struct ap_plan *p, const struct ap_bucket *b)
{
	return p->op[b->part->node].comm[b->part->comm].comm.phase == AP_PHASE_OPTIMIZER;
}

/* Updates in sequence, then gathers weights. */
static void update(struct ap_whole_step *w)
{
	for (int32_t s = 0; s < w->x.nstage; s++)
		w->stage[s].end_s = w->stage[s].update_s;
	for (ap_id i = 0; i < w->x.p->graph->nnode; i++)
		w->stage[w->x.stage[w->x.part_of[i]]].end_s += ap_whole_step_update_s(w->x.p, i);
	for (uint32_t b = 0; b < w->buckets.n; b++) {
		struct ap_whole_step_stage *s = &w->stage[w->buckets.v[b].stage];

		if (!ap_whole_step_gathers(w->x.p, &w->buckets.v[b]))
			continue;
		w->bucket_start_s[b] = s->end_s;
		s->end_s += w->buckets.v[b].time_s;
	}
	for (int32_t s = 0; s < w->x.nstage; s++)
		w->end_s = fmax(w->end_s, w->stage[s].end_s);
	for (int32_t s = 0; s < w->x.nstage; s++)
		w->stage[s].idle_s += w->late_s + (w->end_s - w->stage[s].end_s);
}

const struct ap_pass_run *ap_whole_step_slot(const struct ap_whole_step *w, int32_t stage, uint32_t i,
	int32_t *part)
{
	const struct ap_schedule_slot *slot = &w->timeline->slot[i].slot;

	*part = part_of_slot(&w->x, stage, slot);
	if (w->part[*part].last_slot == i)
		return &w->part[*part].run[AP_RUN_LAST];
	if (slot->beside)
		return &w->part[*part].run[slot->pass == AP_PASS_FORWARD ? AP_RUN_FORWARD_BESIDE
			: AP_RUN_BACKWARD_BESIDE];
	return &w->part[*part].run[slot->pass];
}

static void begin(struct ap_ctx *ctx, const struct ap_plan *p, bool record, struct ap_whole_step *w)
{
	bool splits;

	*w = (struct ap_whole_step){0};
	ap_parts_make(ctx, p, &w->x);
	splits = w->x.pipe && w->x.pipe->scheduler->splits;
	ap_live_make(ctx, &w->x, splits, &w->live);
	ap_buckets_make(ctx, &w->x, &w->buckets);
	ap_pass_maker_init(ctx, &w->x, &w->live, &w->buckets, splits, record, &w->maker);
	w->part = AP_NEW_N(ctx->scratch, struct ap_whole_step_part, w->x.npart);
}

void ap_whole_step_passes(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_whole_step *w)
{
	begin(ctx, p, false, w);
	make_runs(w, false);
}

void ap_whole_step_make(struct ap_ctx *ctx, const struct ap_plan *p, bool record, struct ap_whole_step *w)
{
	begin(ctx, p, record, w);
	w->stage = AP_NEW_N(ctx->scratch, struct ap_whole_step_stage, w->x.nstage);
	w->bucket_start_s = AP_NEW_N(ctx->scratch, double, w->buckets.n);
	make_runs(w, true);
	lay_out(w);
	for (int32_t i = 0; i < w->x.npart; i++)
		w->part[i].last_slot = AP_NONE;
	for (int32_t s = 0; s < w->timeline->nstage; s++)
		for (uint32_t i = w->timeline->first[s]; i < w->timeline->first[s + 1]; i++) {
			const struct ap_schedule_slot *slot = &w->timeline->slot[i].slot;

			if (slot->pass == finishing(w))
				w->part[part_of_slot(&w->x, s, slot)].last_slot = i;
		}
	w->wait_s = AP_NEW_N(ctx->scratch, double, p->graph->ntensor);
	w->returned_s = AP_NEW_N(ctx->scratch, double, p->graph->ntensor);
	w->sent = AP_NEW_N(ctx->scratch, bool, p->graph->nnode);
	w->link = AP_NEW_N(ctx->scratch, double, w->x.nstage * w->x.nstage);
	send_parameters(w, w->link);
	for (int32_t s = 0; s < w->x.nstage; s++)
		run_stage(w, s);
	free_links(w);
	send_unexchanged(w);
	add_segments(w);
	w->last_start_s = AP_NEW_N(ctx->scratch, double, w->x.npart);
	for (int32_t i = 0; i < w->x.npart; i++)
		if (w->part[i].last_slot != AP_NONE)
			w->last_start_s[i] = w->timeline->slot[w->part[i].last_slot].start_s;
	exchange(w);
	wait_for_gradients(w);
	update(w);
}
