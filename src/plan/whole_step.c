/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/whole_step.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "plan/buckets.h"
#include "plan/terms.h"

struct walking {
	struct ap_ctx *ctx;
	struct ap_plan *p;
	struct ap_walk *w;
	bool splits;
};

static enum ap_pass finishing(const struct walking *k)
{
	return k->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
}

static void make_runs(struct walking *k)
{
	struct ap_walk *w = k->w;

	for (int32_t i = w->x.npart; i-- > 0;) {
		struct ap_slot_run *run = w->part[i].run;

		ap_slot_make(&k->w->maker, i, AP_PASS_FORWARD, false, &run[AP_PASS_FORWARD]);
		ap_slot_make(&k->w->maker, i, AP_PASS_BACKWARD, false, &run[AP_PASS_BACKWARD]);
		if (k->splits)
			ap_slot_make(&k->w->maker, i, AP_PASS_WEIGHT, false, &run[AP_PASS_WEIGHT]);
		ap_slot_make(&k->w->maker, i, finishing(k), true, &run[AP_RUN_LAST]);
		assert(run[AP_PASS_FORWARD].net_bytes + run[AP_PASS_BACKWARD].net_bytes +
			run[AP_PASS_WEIGHT].net_bytes == 0 || !k->p->step->training);
	}
}

static double sent_s(const struct ap_plan *p, ap_id node, enum ap_phase phase)
{
	double sum = 0;

	for (uint32_t c = 0; c < p->op[node].ncomm; c++)
		if (p->op[node].comm[c].comm.kind == AP_COLL_SEND &&
			p->op[node].comm[c].comm.phase == phase)
			sum += p->op[node].comm[c].time_s;
	return sum;
}

/* The part that receives what this node sends. */
static int32_t receiver(const struct walking *k, ap_id node)
{
	const struct ap_tensor *t = &k->p->graph->tensor[k->p->graph->node[node].out[0]];

	return k->w->x.part_of[t->use[0].node];
}

static bool sends_each_time(const struct walking *k, ap_id node)
{
	return !k->p->task[node].once && sent_s(k->p, node, AP_PHASE_FORWARD) > 0;
}

static bool sends_once(const struct walking *k, ap_id node)
{
	return k->p->task[node].once && sent_s(k->p, node, AP_PHASE_FORWARD) > 0;
}

/* The part whose results what the node sends goes with: on its way the last before the first link. */
static int32_t hop_of(const struct walking *k, ap_id node)
{
	const int32_t *stage = k->w->x.stage;
	int32_t part = k->w->x.part_of[node], to = receiver(k, node);

	while (part + 1 < to && stage[part] == stage[part + 1])
		part++;
	return part;
}

static void time_passes(const struct walking *k, struct ap_pass_times *time)
{
	const struct ap_walk *w = k->w;

	for (int32_t i = 0; i < w->x.npart; i++) {
		const struct ap_slot_run *run = w->part[i].run;

		time[i] = (struct ap_pass_times){.forward_s = run[AP_PASS_FORWARD].span_s,
			.backward_s = run[AP_PASS_BACKWARD].span_s,
			.weight_s = run[AP_PASS_WEIGHT].span_s,
			.last_backward_s = run[AP_RUN_LAST].span_s};
	}
	for (ap_id i = 0; i < k->p->graph->nnode; i++)
		if (sends_each_time(k, i)) {
			int32_t hop = hop_of(k, i);

			time[hop].send_s += sent_s(k->p, i, AP_PHASE_FORWARD);
			time[hop].send_back_s += sent_s(k->p, i, AP_PHASE_BACKWARD);
		}
}

/* Without a scheduler: each micro-batch forward and back, one after the other. */
static void one_by_one(struct walking *k, const struct ap_pass_times *t, struct ap_timeline *out)
{
	int64_t nmicro = k->p->step->micro_batches;
	uint32_t passes = k->p->step->training ? 2 : 1, *first = AP_NEW_N(k->ctx->arena, uint32_t, 2);
	struct ap_slot_time *slot = AP_NEW_N(k->ctx->arena, struct ap_slot_time, passes * nmicro);
	uint32_t n = 0;

	for (int32_t micro = 0; micro < nmicro; micro++)
		for (uint32_t pass = 0; pass < passes; pass++) {
			double takes = pass == AP_PASS_FORWARD ? t->forward_s
				: micro + 1 < nmicro ? t->backward_s : t->last_backward_s;

			slot[n++] = (struct ap_slot_time){{(uint8_t)pass, 0, micro}, out->end_s,
				out->end_s + takes};
			out->end_s += takes;
		}
	first[1] = n;
	out->nstage = 1;
	out->first = first;
	out->slot = slot;
}

static void lay_out(struct walking *k)
{
	const struct ap_step *step = k->p->step;
	struct ap_pass_times *time = AP_NEW_N(k->ctx->scratch, struct ap_pass_times, k->w->x.npart);

	k->w->timeline = AP_NEW(k->ctx->arena, struct ap_timeline);
	time_passes(k, time);
	if (k->w->x.pipe)
		ap_schedule_run(k->ctx, k->w->x.pipe, step->micro_batches, step->training, time,
			k->w->timeline);
	else
		one_by_one(k, time, k->w->timeline);
}

static int32_t part_of_slot(const struct ap_plan_index *x, int32_t stage, const struct ap_schedule_slot *slot)
{
	return x->pipe ? ap_schedule_part(x->pipe->scheduler, x->nstage, stage, slot->segment) : 0;
}

static void find_last_slots(struct walking *k)
{
	const struct ap_timeline *t = k->w->timeline;

	for (int32_t i = 0; i < k->w->x.npart; i++)
		k->w->part[i].last_slot = AP_NONE;
	for (int32_t s = 0; s < t->nstage; s++)
		for (uint32_t i = t->first[s]; i < t->first[s + 1]; i++)
			if (t->slot[i].slot.pass == finishing(k))
				k->w->part[part_of_slot(&k->w->x, s, &t->slot[i].slot)].last_slot = i;
}

static double *link_between(const struct walking *k, double *link, int32_t from, int32_t to)
{
	return &link[k->w->x.stage[from] * k->w->x.nstage + k->w->x.stage[to]];
}

static void send_once(struct walking *k, double *link, ap_id node, int32_t from, int32_t to,
	double time_s, double ready)
{
	double *busy = link_between(k, link, from, to);
	struct ap_walk_send s = {.from = from, .to = to, .tensor = k->p->graph->node[node].in[0],
		.start_s = fmax(*busy, ready)};

	s.end_s = *busy = s.start_s + time_s;
	AP_PUSH(k->ctx->scratch, k->w->sends, s);
}

static double first_start(const struct walking *k, int32_t part)
{
	const struct ap_timeline *t = k->w->timeline;
	int32_t stage = k->w->x.stage[part];

	for (uint32_t i = t->first[stage]; i < t->first[stage + 1]; i++)
		if (part_of_slot(&k->w->x, stage, &t->slot[i].slot) == part)
			return t->slot[i].start_s;
	return 0;
}

/* The passes start so late that what starts at `start` does not before `end`. */
static void put_off(double *late, double start, double end)
{
	*late = fmax(*late, end - start);
	while (*late + start < end)
		*late = nextafter(*late, INFINITY);
}

/* Parameters at the start of the step: before the part that uses them, and all else on their links. */
static void send_parameters(struct walking *k, double *link)
{
	const struct ap_timeline *t = k->w->timeline;
	double *late = &k->w->late_s;

	for (ap_id i = 0; i < k->p->graph->nnode; i++)
		if (sends_once(k, i))
			send_once(k, link, i, k->w->x.part_of[i], receiver(k, i),
				sent_s(k->p, i, AP_PHASE_FORWARD), 0);
	for (size_t i = 0; i < k->w->sends.n; i++)
		put_off(late, first_start(k, k->w->sends.v[i].to), k->w->sends.v[i].end_s);
	for (uint32_t i = 0; i < t->nsend; i++)
		put_off(late, t->send[i].start_s,
			*link_between(k, link, t->send[i].from_part, t->send[i].to_part));
}

/* Their gradients when the part that used them is done, and all else on their links. */
static void send_gradients(struct walking *k, double *link)
{
	const struct ap_timeline *t = k->w->timeline;
	int32_t n = k->w->x.nstage * k->w->x.nstage;

	for (int32_t i = 0; i < n; i++)
		link[i] = fmax(0, link[i] - k->w->late_s);

	for (uint32_t i = 0; i < t->nsend; i++) {
		double *busy = link_between(k, link, t->send[i].from_part, t->send[i].to_part);

		*busy = fmax(*busy, t->send[i].end_s);
	}
	for (ap_id i = 0; i < k->p->graph->nnode; i++) {
		const struct ap_walk_send *s;
		uint32_t last;

		if (!sends_once(k, i) || sent_s(k->p, i, AP_PHASE_BACKWARD) <= 0)
			continue;
		last = k->w->part[receiver(k, i)].last_slot;
		send_once(k, link, i, receiver(k, i), k->w->x.part_of[i],
			sent_s(k->p, i, AP_PHASE_BACKWARD), k->w->timeline->slot[last].end_s);
		s = &k->w->sends.v[k->w->sends.n - 1];
		k->w->wait_s[s->tensor] = fmax(k->w->wait_s[s->tensor], s->end_s);
	}
}

double ap_walk_ready_s(const struct ap_walk *w, uint32_t bucket, const double *last_start_s, double end_s,
	double origin_s)
{
	const struct ap_slot_maker *m = &w->maker;
	const struct ap_plan *p = w->x.p;
	double at = 0;

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

/* Buckets that no pass completes come last. */
static void list_exchange(struct walking *k)
{
	for (size_t i = 0; i < k->w->maker.launched.n; i++)
		AP_PUSH(k->ctx->scratch, k->w->exchange, k->w->maker.launched.v[i]);
	for (uint32_t b = 0; b < k->p->nbucket; b++)
		if (k->w->maker.bucket_left[b] > 0)
			AP_PUSH(k->ctx->scratch, k->w->exchange, b);
}

static void exchange(struct walking *k)
{
	struct ap_walk *w = k->w;

	list_exchange(k);
	for (size_t i = 0; i < w->exchange.n; i++) {
		uint32_t b = w->exchange.v[i];
		const struct ap_bucket *bucket = &k->p->bucket[b];
		struct ap_walk_stage *s = &w->stage[bucket->stage];

		w->bucket_start_s[b] = fmax(s->update_s,
			ap_walk_ready_s(w, b, w->last_start_s, s->last_s, 0));
		s->update_s = w->bucket_start_s[b] + bucket->time_s;
		s->communication_s += bucket->time_s;
	}
	for (int32_t s = 0; s < w->x.nstage; s++)
		w->stage[s].update_s = fmax(w->stage[s].update_s, w->stage[s].last_s);
}

/* A gradient that comes from another stage may be exchanged by none. */
static void wait_for_gradients(struct ap_walk *w)
{
	for (size_t i = 0; i < w->sends.n; i++) {
		const struct ap_walk_send *send = &w->sends.v[i];
		struct ap_walk_stage *s = &w->stage[w->x.stage[send->to]];

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

static void run_stage(struct walking *k, int32_t stage)
{
	const struct ap_timeline *t = k->w->timeline;
	struct ap_walk_stage *s = &k->w->stage[stage];
	int64_t held = 0, most = 0;

	for (uint32_t i = t->first[stage]; i < t->first[stage + 1]; i++) {
		int32_t part;
		const struct ap_slot_run *run = ap_walk_slot(k->w, stage, i, &part);

		s->idle_s += t->slot[i].start_s - s->last_s;
		s->last_s = t->slot[i].end_s;
		s->compute_s += run->compute_s;
		s->communication_s += run->communication_s;
		most = held + run->most_bytes > most ? held + run->most_bytes : most;
		held += run->net_bytes;
	}
	s->first_s = t->first[stage] < t->first[stage + 1] ? t->slot[t->first[stage]].start_s : 0;
	s->fixed_bytes = static_bytes(&k->p->stage[stage].memory) + k->w->live.fixed[stage];
	s->peak_bytes = s->fixed_bytes + most;
}

static void add_segments(const struct ap_walk *w)
{
	for (int32_t i = 0; i < w->x.npart; i++) {
		struct ap_walk_stage *s = &w->stage[w->x.stage[i]];

		s->forward_s += w->part[i].run[AP_PASS_FORWARD].span_s;
		s->backward_s += w->part[i].run[AP_PASS_BACKWARD].span_s +
			w->part[i].run[AP_PASS_WEIGHT].span_s;
	}
}

double ap_walk_update_s(const struct ap_plan *p, ap_id node)
{
	double work = p->op[node].cost.optimizer_s;

	for (uint32_t c = 0; c < p->op[node].ncomm; c++)
		if (p->op[node].comm[c].comm.phase == AP_PHASE_OPTIMIZER)
			work -= p->op[node].comm[c].time_s;
	return fmax(0, work);
}

bool ap_walk_gathers(const struct ap_plan *p, const struct ap_bucket *b)
{
	return p->op[b->part->node].comm[b->part->comm].comm.phase == AP_PHASE_OPTIMIZER;
}

/* Updates one after the other, then the gathering of weights. */
static void update(struct walking *k)
{
	struct ap_walk *w = k->w;

	for (int32_t s = 0; s < w->x.nstage; s++)
		w->stage[s].end_s = w->stage[s].update_s;
	for (ap_id i = 0; i < k->p->graph->nnode; i++)
		w->stage[w->x.stage[w->x.part_of[i]]].end_s += ap_walk_update_s(k->p, i);
	for (uint32_t b = 0; b < k->p->nbucket; b++) {
		struct ap_walk_stage *s = &w->stage[k->p->bucket[b].stage];

		if (!ap_walk_gathers(k->p, &k->p->bucket[b]))
			continue;
		w->bucket_start_s[b] = s->end_s;
		s->end_s += k->p->bucket[b].time_s;
	}
	for (int32_t s = 0; s < w->x.nstage; s++)
		w->end_s = fmax(w->end_s, w->stage[s].end_s);
	for (int32_t s = 0; s < w->x.nstage; s++)
		w->stage[s].idle_s += w->late_s + (w->end_s - w->stage[s].end_s);
}

const struct ap_slot_run *ap_walk_slot(const struct ap_walk *w, int32_t stage, uint32_t i,
	int32_t *part)
{
	const struct ap_schedule_slot *slot = &w->timeline->slot[i].slot;

	*part = part_of_slot(&w->x, stage, slot);
	if (w->part[*part].last_slot == i)
		return &w->part[*part].run[AP_RUN_LAST];
	return &w->part[*part].run[slot->pass];
}

void ap_walk_make(struct ap_ctx *ctx, struct ap_plan *p, bool record, struct ap_walk *w)
{
	struct walking k = {.ctx = ctx, .p = p, .w = w};
	const uint32_t *bucket_of;
	double *link;

	*w = (struct ap_walk){0};
	ap_plan_index_make(ctx, p, &w->x);
	k.splits = w->x.pipe && w->x.pipe->scheduler->splits;
	ap_live_make(ctx, &w->x, k.splits, &w->live);
	ap_buckets_make(ctx, p, &w->x, &bucket_of);
	ap_slot_maker_init(ctx, &w->x, &w->live, bucket_of, k.splits, record, &w->maker);
	w->part = AP_NEW_N(ctx->scratch, struct ap_walk_part, w->x.npart);
	w->stage = AP_NEW_N(ctx->scratch, struct ap_walk_stage, w->x.nstage);
	w->bucket_start_s = AP_NEW_N(ctx->scratch, double, p->nbucket);
	make_runs(&k);
	lay_out(&k);
	find_last_slots(&k);
	w->wait_s = AP_NEW_N(ctx->scratch, double, p->graph->ntensor);
	link = AP_NEW_N(ctx->scratch, double, w->x.nstage * w->x.nstage);
	send_parameters(&k, link);
	send_gradients(&k, link);
	for (int32_t s = 0; s < w->x.nstage; s++)
		run_stage(&k, s);
	add_segments(w);
	w->last_start_s = AP_NEW_N(ctx->scratch, double, w->x.npart);
	for (int32_t i = 0; i < w->x.npart; i++)
		if (w->part[i].last_slot != AP_NONE)
			w->last_start_s[i] = w->timeline->slot[w->part[i].last_slot].start_s;
	exchange(&k);
	wait_for_gradients(w);
	update(&k);
}
