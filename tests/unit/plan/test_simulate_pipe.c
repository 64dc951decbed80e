/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated step of a pipeline: a chain of products, one in each part, whose times are given. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "fixture.h"
#include "graph/staged.h"
#include "harness.h"
#include "hw/coll.h"
#include "pipeline/schedule.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/simulate.h"

enum { BATCH = 480, WIDTH = 64 };

struct chain {
	struct fixture f;
	struct ap_pipe pipe;
	struct ap_machine machine; /* links that take no time, unless `slow` */
	struct ap_chip chip;
	struct ap_plan plan;
};

struct shape {
	const char *scheduler;
	int32_t nstage, nsegment;
	int64_t micro;
	double forward_s, backward_s; /* of a part, the whole batch */
	bool slow; /* links as they are */
	bool shared; /* the first and the last part have one weight */
	int32_t dp; /* devices a stage, which share the batch of the products; 0: one */
};

static const char *chain_text(struct ap_arena *arena, int n, const struct shape *s)
{
	struct ap_str t;

	ap_str_init(&t, arena);
	ap_str_addf(&t, "{'schema':'autopar-graph/1','name':'chain','inputs':[{'name':'x0',"
		"'shape':[%d,%d],'dtype':'float32','batch_dim':0}],'parameters':[", BATCH, WIDTH);
	for (int i = 0; i < n; i++)
		if (!s->shared || i + 1 < n)
			ap_str_addf(&t, "%s{'name':'w%d','shape':[%d,%d],'dtype':'float32'}",
				i ? "," : "", i, WIDTH, WIDTH);
	ap_str_addf(&t, "],'operators':[");
	for (int i = 0; i < n; i++)
		ap_str_addf(&t, "{'name':'op%d','type':'MatMul','inputs':['x%d','w%d'],"
			"'time_s':{'forward':%.17g,'backward':%.17g,'share':1},"
			"'outputs':[{'name':'x%d'}]},", i, i, s->shared && i + 1 == n ? 0 : i,
			s->forward_s, s->backward_s, i + 1);
	ap_str_addf(&t, "{'name':'loss','type':'ReduceMean','inputs':['x%d'],"
		"'time_s':{'forward':0,'backward':0,'share':1},'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}", n);
	return t.s;
}

static void stage_chain(struct chain *c)
{
	int32_t npart = c->pipe.nstage * c->pipe.nsegment;
	struct ap_spot *spot = AP_NEW_N(c->f.ctx.arena, struct ap_spot, c->f.graph->nnode);

	for (ap_id i = 0; i < c->f.graph->nnode; i++) {
		spot[i].part = (int32_t)i < npart ? (int32_t)i : npart - 1;
		ap_schedule_spot(c->pipe.scheduler, c->pipe.nstage, spot[i].part, &spot[i].stage,
			&spot[i].segment);
	}
	ap_graph_staged(&c->f.ctx, c->f.graph, spot, &c->f.graph);
}

static void quick_links(struct chain *c)
{
	c->chip = *c->f.machine->chip;
	c->machine = *c->f.machine;
	c->chip.collective_fixed_s = 0;
	c->machine.chip = &c->chip;
	for (int l = 0; l < c->machine.nlevel; l++) {
		c->machine.level[l].latency_s = 0;
		c->machine.level[l].bandwidth_Bps = 1e30;
	}
	c->f.machine = &c->machine;
}

static void chain_open(struct chain *c, const struct shape *s)
{
	const int32_t **counts;
	int32_t *ones, *halves;

	fixture_open(&c->f, s->nstage * (s->dp ? s->dp : 1), 8, "a100-80");
	if (s->dp)
		c->f.step.executor = AP_EXECUTOR_GENERIC;
	ap_schedule_pipe(&c->f.ctx, ap_scheduler_find(s->scheduler), s->nstage, s->nsegment, s->micro,
		&c->pipe);
	ap_machine_staged(&c->f.ctx, c->f.machine, (uint32_t)s->nstage, &c->f.machine);
	if (!s->slow)
		quick_links(c);
	c->f.step.pipe = &c->pipe;
	c->f.step.micro_batches = s->micro;
	fixture_graph(&c->f, chain_text(c->f.ctx.arena, s->nstage * s->nsegment, s));
	stage_chain(c);
	counts = AP_NEW_N(c->f.ctx.arena, const int32_t *, c->f.graph->nnode);
	ones = AP_NEW_N(c->f.ctx.arena, int32_t, AP_MAX_FACTOR);
	for (int i = 0; i < AP_MAX_FACTOR; i++)
		ones[i] = 1;
	halves = AP_NEW_N(c->f.ctx.arena, int32_t, AP_MAX_FACTOR);
	fixture_counts(&c->f, fixture_node(&c->f, "op0"), s->dp ? "m=2" : "", halves);
	for (ap_id i = 0; i < c->f.graph->nnode; i++)
		counts[i] = strcmp(c->f.graph->node[i].type, "MatMul") == 0 ? halves : ones;
	ap_plan_make(&c->f.ctx, c->f.graph, c->f.machine, &c->f.step, counts, INT64_C(1) << 40,
		&c->plan);
}

static void close_to(const struct shape *s, double is, double wanted)
{
	ck_assert_msg(fabs(is - wanted) <= 1e-9 * wanted, "%s, %d stages, %d segments, %d micro-batches: "
		"%.17g s, expected %.17g", s->scheduler, (int)s->nstage, (int)s->nsegment, (int)s->micro,
		is, wanted);
}

static double passes_s(const struct chain *c)
{
	return c->plan.prediction.step_time_s - c->plan.prediction.optimizer_s;
}

START_TEST(equal_stages_fill_and_drain_once)
{
	static const char *const names[] = {"gpipe", "1f1b"};
	static const int micro[] = {1, 2, 5, 8, 12};

	for (int i = 0; i < 2; i++)
		for (int32_t n = 1; n <= 8; n++)
			for (int k = 0; k < 5; k++) {
				double m = micro[k];
				struct shape s = {names[i], n, 1, micro[k], .forward_s = 3e-3 * m,
					.backward_s = 7.1e-3 * m};
				struct chain c;

				chain_open(&c, &s);
				close_to(&s, passes_s(&c), (m + n - 1) * (3e-3 + 7.1e-3));
				for (int32_t x = 0; x < n; x++) {
					ck_assert_double_eq_tol(c.plan.stage[x].forward_s, 3e-3, 1e-12);
					ck_assert_double_eq_tol(c.plan.stage[x].backward_s, 7.1e-3,
						1e-12);
				}
				close_to(&s, c.plan.prediction.bubble_s + 1,
					(n - 1) * (3e-3 + 7.1e-3) + 1);
				close_to(&s, c.plan.prediction.compute_s, m * (3e-3 + 7.1e-3));
				fixture_close(&c.f);
			}
}
END_TEST

START_TEST(segments_fill_in_smaller_steps)
{
	for (int32_t n = 2; n <= 4; n++)
		for (int32_t v = 1; v <= 3; v++)
			for (int32_t rounds = 1; rounds <= 3; rounds++) {
				double m = n * rounds, f = 3e-3, b = 5e-3;
				struct shape s = {"interleaved", n, v, n * rounds,
					.forward_s = f / v * m, .backward_s = b / v * m};
				struct chain c;

				chain_open(&c, &s);
				close_to(&s, passes_s(&c), (m + (double)(n - 1) / v) * (f + b));
				fixture_close(&c.f);
			}
}
END_TEST

/* f = b = w: a product's backward kernel is half gradient of the weight. The first part of all has no
 * gradient of its input to find. */
START_TEST(weights_fill_the_gaps)
{
	for (int32_t n = 2; n <= 4; n++) {
		struct shape s = {"zero_bubble_v", n, 2, 2 * n, .forward_s = 1e-3 * 2 * n,
			.backward_s = 2e-3 * 2 * n};
		struct shape whole = s;
		struct chain c, other;

		whole.scheduler = "interleaved";
		chain_open(&c, &s);
		chain_open(&other, &whole);
		ck_assert_double_lt(passes_s(&c), passes_s(&other));
		close_to(&s, c.plan.prediction.compute_s, 2 * 3e-3 * 2 * n);
		fixture_close(&c.f);
		fixture_close(&other.f);
	}
}
END_TEST

/* Sends take time: between them and the passes of two stages nothing is hidden with one micro-batch. */
START_TEST(sends_are_waited_for)
{
	struct shape s = {"1f1b", 2, 1, 1, .forward_s = 1e-3, .backward_s = 2e-3, .slow = true};
	struct chain c;
	double send_s;

	chain_open(&c, &s);
	send_s = ap_send_time_s(c.f.machine, 0, 1, BATCH * WIDTH * 4);
	ck_assert_double_gt(send_s, 0);
	close_to(&s, passes_s(&c), 2 * (1e-3 + 2e-3) + 2 * send_s);
	ck_assert_uint_eq(c.plan.timeline->nsend, 2);
	close_to(&s, c.plan.prediction.bubble_s, 3e-3 + 2 * send_s);
	fixture_close(&c.f);
}
END_TEST

struct seen {
	uint32_t n;
	struct ap_trace_event parameter[2];
	uint32_t nbucket;
	struct ap_trace_event bucket[4]; /* of the second stage */
	double update_s; /* start of the first stage's */
};

static void see(void *user, const struct ap_trace_event *e)
{
	struct seen *s = user;

	if (e->kind == AP_EVENT_SEND && e->micro < 0)
		s->parameter[s->n++] = *e;
	if (e->kind == AP_EVENT_BUCKET && e->stage == 1)
		s->bucket[s->nbucket++] = *e;
	if (e->kind == AP_EVENT_OPTIMIZER && e->stage == 0 && s->update_s == 0)
		s->update_s = e->start_s;
}

/* One weight for the first and the last part: there at the start, its gradient back at the end. */
START_TEST(a_shared_weight_travels_once)
{
	struct shape s = {"gpipe", 2, 1, 4, .forward_s = 4e-6, .backward_s = 8e-6, .slow = true,
		.shared = true};
	struct ap_trace_take take = {see, NULL};
	struct seen seen = {0};
	struct chain c;
	const struct ap_timeline *t;

	chain_open(&c, &s);
	ap_simulate_each(&c.f.ctx, &c.plan, &take, &seen);
	t = c.plan.timeline;
	ck_assert_uint_eq(seen.n, 2);
	ck_assert_double_eq(seen.parameter[0].start_s, 0);
	ck_assert_double_ge(t->slot[t->first[1]].start_s, seen.parameter[0].end_s);
	ck_assert_double_gt(t->slot[0].start_s, 0); /* put off: the weight takes longer than a pass */
	ck_assert_int_eq(seen.parameter[1].stage, 1);
	ck_assert_double_ge(seen.parameter[1].start_s, t->slot[t->first[2] - 1].end_s);
	ck_assert_double_ge(seen.update_s, seen.parameter[1].end_s);
	fixture_close(&c.f);
}
END_TEST

/* generic: those who used the weight add its gradient up over all micro-batches; then they exchange it, and
 * what they have goes back. Both once, however many micro-batches there are. */
START_TEST(a_shared_weight_is_exchanged_once)
{
	for (int64_t micro = 2; micro <= 8; micro *= 2) {
		struct shape s = {"1f1b", 2, 1, micro, .forward_s = 4e-6, .backward_s = 8e-6, .slow = true,
			.shared = true, .dp = 2};
		struct ap_trace_take take = {see, NULL};
		struct seen seen = {0};
		const struct ap_plan_op *op;
		const struct ap_timeline *t;
		double busy = 0;
		struct chain c;

		chain_open(&c, &s);
		op = &c.plan.op[fixture_node(&c.f, "op1")];
		ck_assert_uint_eq(op->ncomm, 1);
		ck_assert_int_eq(op->comm[0].comm.phase, AP_PHASE_GRADIENT);
		ck_assert_int_eq(op->comm[0].comm.kind, AP_COLL_ALLREDUCE);
		ck_assert_int_eq(op->comm[0].comm.bytes, WIDTH * WIDTH * 4);
		ck_assert_double_eq(op->cost.gradient_s, op->comm[0].time_s);
		ck_assert_double_eq(op->cost.backward_comm_s, 0);
		ap_simulate_each(&c.f.ctx, &c.plan, &take, &seen);
		t = c.plan.timeline;
		ck_assert_uint_eq(seen.n, 2);
		ck_assert_uint_eq(seen.nbucket, 1);
		ck_assert_double_eq_tol(seen.bucket[0].end_s - seen.bucket[0].start_s, op->comm[0].time_s,
			1e-15);
		ck_assert_double_ge(seen.bucket[0].end_s, t->slot[t->first[2] - 1].end_s);
		for (uint32_t i = 0; i < t->nsend; i++) /* on the same link */
			busy = t->send[i].from_part == 1 ? fmax(busy, t->send[i].end_s) : busy;
		ck_assert_double_eq(seen.parameter[1].start_s, fmax(busy, seen.bucket[0].end_s));
		ck_assert_double_ge(seen.update_s, seen.parameter[1].end_s);
		fixture_close(&c.f);
	}
}
END_TEST

/* Kept: the operand of each product, for the gradient of its weight. gpipe holds that of all
 * micro-batches, 1f1b of as many as there are stages to come. */
START_TEST(memory_in_flight)
{
	const int64_t one = BATCH / 8 * WIDTH * 4;
	struct shape s = {"gpipe", 4, 1, 8, .forward_s = 1e-3, .backward_s = 2e-3};
	struct chain c, d;

	chain_open(&c, &s);
	s.scheduler = "1f1b";
	chain_open(&d, &s);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_le(c.plan.stage[i].peak_bytes, c.plan.stage[i].memory.total);
		ck_assert_int_le(d.plan.stage[i].peak_bytes, d.plan.stage[i].memory.total);
	}
	for (int i = 1; i < 3; i++)
		ck_assert_int_eq(c.plan.stage[i].peak_bytes - d.plan.stage[i].peak_bytes,
			(8 - (4 - i)) * one);
	fixture_close(&c.f);
	fixture_close(&d.f);
}
END_TEST

/* Segments of a stage are not full at the same time: with 8 stages of 12 the first one holds 103 passes
 * of a segment, 8.58 micro-batches, where each segment's most would make 144. */
START_TEST(segments_are_not_full_at_once)
{
	const int64_t one = BATCH / 48 * WIDTH * 4;
	struct shape s = {"interleaved", 8, 12, 48, .forward_s = 1e-3, .backward_s = 2e-3};
	struct chain c;

	chain_open(&c, &s);
	for (int i = 0; i < 8; i++) {
		const struct ap_plan_stage *stage = &c.plan.stage[i];
		int64_t passes = 0;

		for (int v = 0; v < 12; v++)
			passes += stage->held[v];
		ck_assert_int_eq(stage->in_flight, 103 - 2 * i);
		ck_assert_int_eq(passes, stage->in_flight);
		ck_assert_int_eq(stage->memory.activations, passes * one);
		ck_assert_int_le(stage->peak_bytes, stage->memory.total);
	}
	fixture_close(&c.f);
}
END_TEST

/* Of each product a pass for weights reads its operand and the gradient of its result. */
START_TEST(gradients_wait_for_the_pass_for_weights)
{
	const int64_t one = BATCH / 8 * WIDTH * 4;
	struct shape s = {"zero_bubble_v", 2, 2, 8, .forward_s = 1e-3, .backward_s = 2e-3};
	struct chain c;

	chain_open(&c, &s);
	for (int i = 0; i < 2; i++) {
		const struct ap_plan_stage *stage = &c.plan.stage[i];
		const struct ap_instants *x = &c.pipe.instants[i];
		int64_t most = 0;

		for (uint32_t k = 0; k < x->n; k++) {
			int64_t now = x->held[2 * k] + x->held[2 * k + 1] + x->late[2 * k] + x->late[2 * k + 1];

			most = now > most ? now : most;
		}
		ck_assert_int_eq(stage->memory.activations, most * one);
		ck_assert_int_eq(stage->held[0] + stage->late[0] + stage->held[1] + stage->late[1], most);
		ck_assert_int_le(stage->peak_bytes, stage->memory.total);
	}
	/* The first stage is fullest when the first micro-batch has run back in its second segment: four
	 * operands, and a gradient beside them. */
	ck_assert_int_ge(c.plan.stage[0].peak_bytes, c.plan.stage[0].memory.total -
		c.plan.stage[0].memory.activations - c.plan.stage[0].memory.temporary + 5 * one);
	fixture_close(&c.f);
}
END_TEST

/* b is read by an operator that finds its gradient in the backward pass and by one that does so in the
 * pass for weights. */
#define TWO_READERS \
	"{'schema':'autopar-graph/1','name':'readers'," \
	"'inputs':[{'name':'x','shape':[16,64],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[64,64],'dtype':'float32'}," \
	"{'name':'b','shape':[64],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'product','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'y'}]}," \
	"{'name':'add','type':'BiasAdd','inputs':['y','b'],'outputs':[{'name':'z'}]}," \
	"{'name':'part','type':'StridedSlice','inputs':['b'],'attrs':{'begin':[0],'end':[64]," \
	"'shrink_axis_mask':0},'outputs':[{'name':'p'}]}," \
	"{'name':'mul','type':'Mul','inputs':['z','p'],'outputs':[{'name':'u'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['u'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct waiting {
	ap_id part, b;
	const struct ap_plan *plan;
	double weight_s, sent_s; /* the end of the last pass of part, the start of the exchange */
};

static void see_exchange(void *user, const struct ap_trace_event *e)
{
	struct waiting *w = user;

	if (e->kind == AP_EVENT_WEIGHT && e->index == w->part)
		w->weight_s = e->end_s;
	if (e->kind == AP_EVENT_BUCKET && w->plan->bucket[e->index].tensor[0] == w->b)
		w->sent_s = e->start_s;
}

START_TEST(a_gradient_waits_for_the_pass_for_weights)
{
	struct fixture f;
	struct ap_pipe pipe;
	struct waiting w = {0};
	struct ap_trace_take take = {see_exchange, NULL};
	struct ap_spot spot[] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 1, 1}, {0, 1, 1}};
	struct ap_plan plan;
	const int32_t *counts[16];
	int32_t ones[AP_MAX_FACTOR];

	fixture_open(&f, 2, 2, "a100-80");
	ap_schedule_pipe(&f.ctx, ap_scheduler_find("zero_bubble_v"), 1, 2, 4, &pipe);
	f.step.pipe = &pipe;
	f.step.micro_batches = 4;
	f.step.allreduce.mode = AP_FUSION_OFF;
	fixture_graph(&f, TWO_READERS);
	ap_graph_staged(&f.ctx, f.graph, spot, &f.graph);
	for (int i = 0; i < AP_MAX_FACTOR; i++)
		ones[i] = 1;
	for (ap_id i = 0; i < f.graph->nnode; i++)
		counts[i] = ones;
	ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts, INT64_C(1) << 40, &plan);
	w.plan = &plan;
	w.part = fixture_node(&f, "part");
	w.b = f.graph->node[w.part].in[0];
	ap_simulate_each(&f.ctx, &plan, &take, &w);
	ck_assert_double_gt(w.weight_s, 0);
	ck_assert_double_ge(w.sent_s, w.weight_s);
	fixture_close(&f);
}
END_TEST
