/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated step of random plans, with and without a pipeline, from its trace. */
#include <math.h>

#include "base/arena.h"
#include "pipeline/schedule.h"
#include "plan/block_costs.h"
#include "plan/blocks.h"
#include "plan/plan.h"
#include "plan/whole_step.h"
#include "plan/simulate.h"
#include "random_pipe.h"
#include "unit.h"

struct span {
	uint32_t n;
	double start, end;
};

/* What a trace said, and what was busy until when. */
struct watch {
	struct trial *t;
	const struct ap_plan *p;
	int64_t nmicro;
	double latest; /* start of the event before */
	double *free_s; /* [nstage][3] streams */
	double *link_s; /* [nstage * nstage] */
	struct span *forward, *backward, *weight; /* [nnode * nmicro] */
	struct span *bucket; /* [nbucket] */
	struct span *update; /* [nnode] */
	struct span *arrived; /* [to part * nmicro], forward, then backward */
	double *busy_s; /* [nstage] computing */
	double *passes_s; /* [nstage] end of all but buckets and updates */
	double end_s;
	int64_t *bytes, *most_bytes; /* [nstage] */
	double *sampled_s; /* [nstage] */
};

static struct span *span_of(struct watch *w, const struct ap_trace_event *e)
{
	int64_t of = (int64_t)e->index * w->nmicro + e->micro;

	switch (e->kind) {
	case AP_EVENT_FORWARD:
		return &w->forward[of];
	case AP_EVENT_BACKWARD:
		return &w->backward[of];
	case AP_EVENT_WEIGHT:
		return &w->weight[of];
	case AP_EVENT_BUCKET:
		return &w->bucket[e->index];
	case AP_EVENT_OPTIMIZER:
		return &w->update[e->index];
	case AP_EVENT_SEND:
		return e->micro < 0 ? NULL
			: &w->arrived[((int64_t)2 * e->sub + (e->sub < e->index)) * w->nmicro + e->micro];
	default:
		return NULL;
	}
}

static void take_event(void *user, const struct ap_trace_event *e)
{
	struct watch *w = user;
	struct trial *t = w->t;
	bool link = e->stream == AP_STREAM_LINK;
	double *busy = link ? &w->link_s[e->stage * (int32_t)w->p->nstage + e->peer]
		: &w->free_s[e->stage * 3 + (int32_t)e->stream];
	struct span *s = span_of(w, e);

	REQUIRE(t, e->start_s >= w->latest, "%.17g after %.17g", e->start_s, w->latest);
	REQUIRE(t, e->start_s >= *busy && e->end_s >= e->start_s, "two at once on stream %d of %d: "
		"%.17g before %.17g", (int)e->stream, e->stage, e->start_s, *busy);
	w->latest = e->start_s;
	*busy = e->end_s;
	w->end_s = fmax(w->end_s, e->end_s);
	if (s)
		*s = (struct span){s->n + 1, e->start_s, e->end_s};
	if (e->stream == AP_STREAM_COMPUTE)
		w->busy_s[e->stage] += e->end_s - e->start_s;
	if (e->micro >= 0 && !link)
		w->passes_s[e->stage] = fmax(w->passes_s[e->stage], e->end_s);
}

static void take_memory(void *user, const struct ap_trace_memory *m)
{
	struct watch *w = user;

	REQUIRE(w->t, m->at_s >= w->sampled_s[m->stage] && m->at_s >= w->latest, "an early sample");
	w->sampled_s[m->stage] = w->latest = m->at_s;
	w->bytes[m->stage] = m->bytes;
	if (m->bytes > w->most_bytes[m->stage])
		w->most_bytes[m->stage] = m->bytes;
}

static void watch(struct trial *t, const struct ap_plan *p, struct watch *w)
{
	static const struct ap_trace_take take = {take_event, take_memory};
	struct ap_arena *a = t->f.ctx.arena;
	size_t cells = p->graph->nnode * (size_t)p->step->micro_batches;
	uint32_t n = p->nstage, nsegment = p->step->pipe ? (uint32_t)p->step->pipe->nsegment : 1;

	*w = (struct watch){.t = t, .p = p, .nmicro = p->step->micro_batches,
		.free_s = AP_NEW_N(a, double, 3 * n), .link_s = AP_NEW_N(a, double, n * n),
		.forward = AP_NEW_N(a, struct span, cells), .backward = AP_NEW_N(a, struct span, cells),
		.weight = AP_NEW_N(a, struct span, cells), .bucket = AP_NEW_N(a, struct span, p->nbucket),
		.update = AP_NEW_N(a, struct span, p->graph->nnode),
		.arrived = AP_NEW_N(a, struct span, 2 * n * nsegment * (size_t)p->step->micro_batches),
		.busy_s = AP_NEW_N(a, double, n), .passes_s = AP_NEW_N(a, double, n),
		.bytes = AP_NEW_N(a, int64_t, n), .most_bytes = AP_NEW_N(a, int64_t, n),
		.sampled_s = AP_NEW_N(a, double, n)};
	ap_simulate_each(&t->f.ctx, p, &take, w);
}

static int32_t part_of(const struct ap_plan *p, ap_id node)
{
	const struct ap_pipe *pipe = p->step->pipe;

	return !pipe || !pipe->scheduler ? 0 : ap_schedule_part(pipe->scheduler, pipe->nstage,
		p->graph->node[node].stage, p->graph->node[node].segment);
}

/* When what is made elsewhere is there for a node: sent there, or, where that takes no time, as soon as
 * it is made. */
static double arrival(const struct watch *w, ap_id to, int64_t micro, bool back, double made)
{
	const struct span *s = &w->arrived[(2 * part_of(w->p, to) + back) * w->nmicro + micro];

	return s->n ? fmax(s->end, made) : made;
}

static void check_forward(struct watch *w, ap_id node, int64_t micro)
{
	const struct ap_node *n = &w->p->graph->node[node];
	const struct span *s = &w->forward[(int64_t)node * w->nmicro + micro];

	REQUIRE(w->t, s->n == 1, "%s runs %u times", n->name, s->n);
	for (uint32_t i = 0; i < n->bound.nin; i++) {
		const struct ap_tensor *t = &w->p->graph->tensor[n->in[i]];
		double made;

		if (t->kind != AP_TENSOR_ACT || w->p->task[t->producer].once)
			continue;
		made = w->forward[(int64_t)t->producer * w->nmicro + micro].end;
		if (part_of(w->p, t->producer) != part_of(w->p, node))
			made = arrival(w, node, micro, false, made);
		REQUIRE(w->t, s->start >= made, "%s runs before %s is there", n->name, t->name);
	}
}

static void check_backward(struct watch *w, ap_id node, int64_t micro)
{
	const struct ap_node *n = &w->p->graph->node[node];
	const struct span *b = &w->backward[(int64_t)node * w->nmicro + micro];
	const struct span *late = &w->weight[(int64_t)node * w->nmicro + micro];

	REQUIRE(w->t, b->n + late->n >= w->p->task[node].backward && b->n <= 1 && late->n <= 1,
		"%s runs back %u and %u times", n->name, b->n, late->n);
	if (b->n)
		REQUIRE(w->t, b->start >= w->forward[(int64_t)node * w->nmicro + micro].end,
			"%s runs back before it ran", n->name);
	if (b->n && late->n)
		REQUIRE(w->t, late->start >= b->end, "%s has its weights first", n->name);
	for (uint32_t o = 0; b->n && o < n->bound.nout; o++) {
		const struct ap_tensor *t = &w->p->graph->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			ap_id user = t->use[u].node;
			double made = w->backward[(int64_t)user * w->nmicro + micro].end;

			if (!w->p->task[user].in[t->use[u].operand].grad)
				continue;
			if (part_of(w->p, user) != part_of(w->p, node))
				made = arrival(w, node, micro, true, made);
			REQUIRE(w->t, b->start >= made, "%s runs back before %s", n->name,
				w->p->graph->node[user].name);
		}
	}
}

/* A gradient goes out after all users of its parameter, or its own one, have run back. */
static void check_bucket(struct watch *w, uint32_t b)
{
	const struct ap_bucket *bucket = &w->p->bucket[b];
	bool mirrored = w->p->step->executor == AP_EXECUTOR_MINDSPORE;

	REQUIRE(w->t, w->bucket[b].n == 1, "bucket %u", b);
	for (uint32_t i = 0; i < bucket->n; i++) {
		const struct ap_tensor *t = &w->p->graph->tensor[bucket->tensor[i]];

		for (uint32_t u = 0; u < t->nuse; u++)
			for (int64_t m = 0; m < w->nmicro; m++) {
				ap_id node = t->use[u].node;
				int64_t at = (int64_t)node * w->nmicro + m;
				double made = fmax(w->backward[at].end, w->weight[at].end);

				if (!w->p->task[node].in[t->use[u].operand].grad)
					continue;
				if (mirrored || node == bucket->part[i].node)
					REQUIRE(w->t, w->bucket[b].start >= made,
						"%s goes out early", t->name);
			}
	}
}

static void check_ends(struct watch *w)
{
	const struct ap_prediction *x = &w->p->prediction;

	for (uint32_t b = 0; b < w->p->nbucket; b++) {
		const struct ap_bucket *bucket = &w->p->bucket[b];
		const struct ap_bucket_part *part = bucket->part;
		bool late = w->p->op[part->node].comm[part->comm].comm.phase == AP_PHASE_OPTIMIZER;

		for (ap_id i = 0; i < w->p->graph->nnode; i++) {
			if (w->p->graph->node[i].stage != bucket->stage || !w->update[i].n)
				continue;
			if (late)
				REQUIRE(w->t, w->bucket[b].start >= w->update[i].end, "gathered early");
			else
				REQUIRE(w->t, w->update[i].start >= w->bucket[b].end, "updated early");
		}
		if (!late)
			check_bucket(w, b);
	}
	REQUIRE(w->t, x->step_time_s == w->end_s, "%.17g and %.17g", x->step_time_s, w->end_s);
	REQUIRE(w->t, fabs(x->step_time_s - x->compute_s - x->exposed_communication_s - x->bubble_s -
		x->optimizer_s) <= 1e-12 * x->step_time_s, "parts of the step");
}

enum { MOST_SEGMENTS = 4 };

/* What a pass of each segment of a stage leaves, bytes; of what runs once, of the step. */
static int64_t kept_of(const struct ap_plan *p, uint32_t s, int64_t *each, int64_t *late)
{
	int64_t once = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_node *n = &p->graph->node[i];
		int32_t v = n->segment > 0 ? n->segment : 0;

		if (p->nstage > 1 && n->stage != (int32_t)s)
			continue;
		*(n->once ? &once : &each[v]) += p->op[i].cost.activation_bytes;
		late[v] += p->op[i].cost.late_bytes;
	}
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];
		const struct ap_node *n = &p->graph->node[m->to];

		if ((p->nstage > 1 && n->stage != (int32_t)s) || m->from == AP_NONE ||
			p->task[m->to].in[m->operand].again)
			continue;
		*(n->once ? &once : &each[n->segment > 0 ? n->segment : 0]) += m->cost.kept_bytes;
	}
	return once;
}

/* The most that passes have left at once, pass by pass. */
static int64_t most_kept(const struct ap_plan *p, uint32_t s)
{
	int64_t each[MOST_SEGMENTS] = {0}, late[MOST_SEGMENTS] = {0};
	int64_t now = kept_of(p, s, each, late), most = 0;
	const struct ap_timeline *t = p->timeline;
	bool splits = p->step->pipe->scheduler->splits;

	for (uint32_t i = t->first[s]; i < t->first[s + 1]; i++) {
		const struct ap_schedule_slot *x = &t->slot[i].slot;
		bool last = x->pass == (splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD);

		now += x->pass == AP_PASS_FORWARD ? each[x->segment] : 0;
		now += splits && x->pass == AP_PASS_BACKWARD ? late[x->segment] : 0;
		most = now > most ? now : most;
		now -= last ? each[x->segment] + late[x->segment] : 0;
	}
	return most;
}

static void check_stages(struct watch *w)
{
	for (uint32_t s = 0; s < w->p->nstage; s++) {
		const struct ap_plan_stage *stage = &w->p->stage[s];

		if (w->p->step->training && w->p->step->pipe && w->p->step->pipe->instants)
			REQUIRE(w->t, stage->memory.activations == most_kept(w->p, s), "%" PRId64 " of %" PRId64,
				stage->memory.activations, most_kept(w->p, s));
		REQUIRE(w->t, stage->peak_bytes <= stage->memory.total, "stage %u: %" PRId64 " of %" PRId64,
			s, stage->peak_bytes, stage->memory.total);
		REQUIRE(w->t, w->most_bytes[s] == stage->peak_bytes, "%" PRId64 " and %" PRId64,
			w->most_bytes[s], stage->peak_bytes);
		REQUIRE(w->t, w->bytes[s] >= stage->memory.weights + stage->memory.optimizer &&
			w->bytes[s] <= stage->peak_bytes, "left: %" PRId64, w->bytes[s]);
		REQUIRE(w->t, w->busy_s[s] <= w->p->prediction.step_time_s * (1 + 1e-12), "busy");
		REQUIRE(w->t, stage->idle_s >= 0, "idle");
		for (ap_id i = 0; i < w->p->graph->nnode; i++)
			if (w->update[i].n && (w->p->nstage == 1 || w->p->graph->node[i].stage == (int)s))
				REQUIRE(w->t, w->update[i].start >= w->passes_s[s], "updated early");
	}
}

static void check(struct trial *t)
{
	const int32_t *const *counts = trial_counts(t);
	struct ap_plan p;
	struct watch w;

	if (!counts)
		return;
	random_fusion(t);
	t->telling = true;
	trial_plan(t, counts, &p);
	watch(t, &p, &w);
	for (ap_id i = 0; i < p.graph->nnode; i++)
		for (int64_t m = 0; m < w.nmicro && !p.task[i].once; m++) {
			check_forward(&w, i, m);
			check_backward(&w, i, m);
		}
	check_ends(&w);
	check_stages(&w);
}

static void one_stage(struct trial *t)
{
	random_layers(t);
	check(t);
}

static void pipelines(struct trial *t)
{
	random_layers(t);
	if (random_pipe(t))
		check(t);
}

static void unequal(struct trial *t)
{
	random_layers(t);
	random_recompute(t);
	if (random_pipe_unequal(t))
		check(t);
}

static void recomputed(struct trial *t)
{
	random_layers(t);
	random_recompute(t);
	if (random_below(&t->random, 3) == 0 || random_pipe(t))
		check(t);
}

/* A pass takes what its blocks take one after the other, and their kernels run within them. */
static void check_pass(struct trial *t, const struct ap_plan *p, const struct ap_pass_run *run)
{
	double start = 0, end = 0;
	int64_t net = 0, most = 0;
	size_t at = 0;

	for (size_t i = 0; i < run->blocks.n; i++) {
		const struct ap_pass_block *b = &run->blocks.v[i];

		REQUIRE(t, i == 0 || b->block != run->blocks.v[i - 1].block, "a block ends twice");
		REQUIRE(t, b->span_s >= b->own_s && (b->span_s <= b->own_s || i + 1 == run->blocks.n),
			"block %u takes %.17g, of its own %.17g", b->block, b->span_s, b->own_s);
		start = end;
		end += b->span_s;
		for (; at < run->events.n; at++) {
			const struct ap_pass_event *e = &run->events.v[at];
			bool kernel = e->stream == AP_STREAM_COMPUTE;
			ap_id node = e->kind == AP_EVENT_MOVE || e->kind == AP_EVENT_MOVE_BACK
				? p->move[e->index].to : e->index;

			if (e->kind != AP_EVENT_AGAIN && e->kind != AP_EVENT_COMM && e->kind != AP_EVENT_MOVE &&
				p->blocks->of[node] != b->block)
				break;
			if (e->start_s >= end && kernel && e->end_s > e->start_s)
				break; /* of a recomputed operator: which block wants it, its time tells */
			REQUIRE(t, !kernel || (e->start_s >= start && e->end_s <= end),
				"%s: %.17g to %.17g in a block from %.17g to %.17g", p->graph->node[node].name,
				e->start_s, e->end_s, start, end);
		}
		most = net + b->most_bytes > most ? net + b->most_bytes : most;
		net += b->net_bytes;
	}
	REQUIRE(t, at == run->events.n, "%s runs in no block", p->graph->node[run->events.v[at].index].name);
	REQUIRE(t, end == run->span_s, "%.17g in blocks, %.17g in all", end, run->span_s);
	REQUIRE(t, most == run->most_bytes, "%" PRId64 " in blocks, %" PRId64 " in all", most, run->most_bytes);
	REQUIRE(t, net >= run->net_bytes, "%" PRId64 " in blocks, %" PRId64 " in all", net, run->net_bytes);
}

/* What the blocks of a stage take is what the stage takes. */
static void check_costs(struct trial *t, const struct ap_plan *p, const struct ap_whole_step *w)
{
	const struct ap_block_cost *cost = ap_block_costs_make(&t->f.ctx, p);

	for (uint32_t s = 0; s < p->nstage; s++) {
		const struct ap_plan_stage *stage = &p->stage[s];
		const struct ap_memory *m = &stage->memory;
		int64_t kept = 0, fixed = 0, shared = 0, again = 0, temporary = 0;
		double forward_s = 0, backward_s = 0, exchange_s[2] = {0};

		for (uint32_t b = 0; b < p->blocks->n; b++) {
			const struct ap_block_cost *c = &cost[b];
			int32_t v = w->x.segment[c->part];

			if (w->x.stage[c->part] != (int32_t)s)
				continue;
			forward_s += c->forward_s;
			backward_s += c->backward_s + c->weight_s;
			kept += c->once_bytes + stage->held[v] * c->kept_bytes +
				(stage->late ? stage->late[v] * c->late_bytes : 0);
			fixed += c->static_bytes;
			shared += c->shared_bytes;
			again += c->again_bytes;
			exchange_s[0] += c->least_exchange_s + c->least_gather_s;
			exchange_s[1] += c->exchange_s + c->gather_s;
			temporary = c->temporary_bytes > temporary ? c->temporary_bytes : temporary;
		}
		REQUIRE(t, fabs(forward_s - stage->forward_s) <= 1e-12 * forward_s, "stage %u: forward %.17g, "
			"its blocks %.17g", s, stage->forward_s, forward_s);
		REQUIRE(t, backward_s <= stage->backward_s * (1 + 1e-12), "stage %u: backward %.17g, its "
			"blocks %.17g", s, stage->backward_s, backward_s);
		REQUIRE(t, exchange_s[0] <= exchange_s[1] * (1 + 1e-12), "stage %u: exchanges take %.17g, at least "
			"%.17g", s, exchange_s[1], exchange_s[0]);
		REQUIRE(t, kept == m->activations, "stage %u: %" PRId64 " kept, its blocks %" PRId64, s,
			m->activations, kept);
		REQUIRE(t, temporary == m->temporary, "stage %u: %" PRId64 ", its blocks %" PRId64, s,
			m->temporary, temporary);
		REQUIRE(t, again >= m->recompute, "stage %u: %" PRId64 " again, its blocks %" PRId64, s,
			m->recompute, again);
		fixed -= m->weights + m->gathered + m->gradients + m->optimizer;
		REQUIRE(t, fixed <= 0 && fixed + shared >= 0, "stage %u: %" PRId64 " more, shared %" PRId64, s,
			fixed, shared);
	}
	for (int32_t part = 0; part < w->x.npart && p->step->training; part++) {
		double last_s = 0, span_s = w->part[part].run[AP_RUN_LAST].span_s;

		for (uint32_t b = 0; b < p->blocks->n; b++)
			REQUIRE(t, cost[b].least_left_s <= cost[b].left_s * (1 + 1e-12), "block %u leaves %.17g, at "
				"least %.17g", b, cost[b].left_s, cost[b].least_left_s);
		for (uint32_t b = 0; b < p->blocks->n; b++)
			last_s += cost[b].part == part ? cost[b].last_s - (w->maker.splits ? cost[b].backward_s : 0) : 0;
		REQUIRE(t, last_s <= span_s * (1 + 1e-12), "part %d: its last pass takes %.17g, its blocks "
			"at least %.17g", (int)part, span_s, last_s);
	}
}

static void blocks_add_up(struct trial *t)
{
	const int32_t *const *counts;
	struct ap_whole_step w;
	struct ap_plan p;

	random_layers(t);
	random_recompute(t);
	random_fusion(t);
	if (t->seed % 3 > 0)
		(void)(t->seed % 7 ? random_pipe(t) : random_pipe_unequal(t));
	counts = trial_counts(t);
	if (!counts)
		return;
	trial_plan(t, counts, &p);
	ap_whole_step_make(&t->f.ctx, &p, true, &w);
	t->telling = p.blocks->n > (uint32_t)w.x.npart;
	for (int32_t part = 0; part < w.x.npart; part++)
		for (int run = 0; run < AP_RUN_COUNT; run++)
			check_pass(t, &p, &w.part[part].run[run]);
	check_costs(t, &p, &w);
}

START_TEST(of_blocks)
{
	trial_each(1000, 24, 16, blocks_add_up);
}
END_TEST

START_TEST(of_one_stage)
{
	trial_each(200, 20, 16, one_stage);
}
END_TEST

START_TEST(of_pipelines)
{
	trial_each(400, 24, 16, pipelines);
}
END_TEST

START_TEST(of_unequal_stages)
{
	trial_each(400, 24, 16, unequal);
}
END_TEST

START_TEST(of_what_is_recomputed)
{
	trial_each(400, 24, 16, recomputed);
}
END_TEST

static void beside(struct trial *t)
{
	trial_experts(t);
	if (random_pipe_beside(t))
		check(t);
}

START_TEST(of_passes_beside_each_other)
{
	trial_each(100, 4, 16, beside);
}
END_TEST
