/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated step: order of events, streams that do one thing at a time, and sums. */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cost/opcost.h"
#include "harness.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "fixture.h"

#define GRAPH \
	"{'schema':'autopar-graph/1','name':'mlp'," \
	"'inputs':[{'name':'x','shape':[64,512],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'b0','shape':[512],'dtype':'float16'}," \
	"{'name':'w1','shape':[512,2048],'dtype':'float16'}," \
	"{'name':'w2','shape':[2048,512],'dtype':'float16'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b0'],'outputs':[{'name':'x0'}]}," \
	"{'name':'up','type':'MatMul','inputs':['x0','w1'],'outputs':[{'name':'h'}]}," \
	"{'name':'act','type':'ReLU','inputs':['h'],'outputs':[{'name':'r'}]}," \
	"{'name':'down','type':'MatMul','inputs':['r','w2'],'outputs':[{'name':'y'}]}," \
	"{'name':'skip','type':'Add','inputs':['y','x0'],'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

enum { NODES = 6 };

static void plan_of(struct fixture *f, const char *const cut[NODES], struct ap_plan *p)
{
	static const char *const names[NODES] = {"add", "up", "act", "down", "skip", "loss"};
	const int32_t **counts = AP_NEW_N(f->ctx.arena, const int32_t *, NODES);

	for (int i = 0; i < NODES; i++) {
		int32_t *count = AP_NEW_N(f->ctx.arena, int32_t, AP_MAX_FACTOR);
		ap_id node = fixture_node(f, names[i]);

		fixture_counts(f, node, cut[i], count);
		counts[node] = count;
	}
	ap_plan_make(&f->ctx, f->graph, f->machine, &f->step, counts, INT64_C(1) << 40, p);
}

static const char *const whole[NODES] = {"", "", "", "", "", ""};
static const char *const batch[NODES] = {"A=4", "m=4", "A=4", "m=4", "A=4", "A=4"};
static const char *const tensor[NODES] = {"", "n=4", "B=4", "k=4", "", ""};
static const char *const mixed[NODES] = {"A=4", "n=4", "A=4", "k=4", "B=4", "A=2 B=2"};

static double kernels_s(const struct ap_plan *p)
{
	double sum = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		sum += p->op[i].cost.forward_s + p->op[i].cost.backward_s;
	return sum;
}

START_TEST(one_device)
{
	struct fixture f;
	struct ap_plan p;

	fixture_open(&f, 1, 1, "a100-80");
	fixture_graph(&f, GRAPH);
	for (int64_t micro = 1; micro <= 4; micro *= 4) {
		f.step.micro_batches = micro;
		plan_of(&f, whole, &p);
		ck_assert_double_eq(p.prediction.communication_s, 0);
		ck_assert_double_eq_tol(p.prediction.compute_s, kernels_s(&p), 1e-12);
		ck_assert_double_eq_tol(p.prediction.step_time_s,
			kernels_s(&p) + p.prediction.optimizer_s, 1e-12);
		ck_assert_double_le(p.prediction.exposed_communication_s, 1e-12);
		ck_assert_double_eq_tol(p.prediction.samples_per_s,
			64 / p.prediction.step_time_s, 1e-6);
	}
	fixture_close(&f);
}
END_TEST

/* What a pass takes if the host starts a kernel every launch_s, in the order in which they run: a kernel begins
 * when the host has started it and the one before it is done. */
static double queue_s(const struct ap_plan *p, bool back, double launch_s)
{
	double host = 0, end = 0;

	for (ap_id k = 0; k < NODES; k++) {
		const struct ap_op_cost *c = &p->op[back ? NODES - 1 - k : k].cost;

		host += back ? c->backward_launch_s : c->forward_launch_s;
		end = fmax(end, host) + (back ? c->backward_s : c->forward_s);
	}
	ck_assert_double_eq_tol(host, (back ? 8 : 6) * launch_s, 1e-15); /* two products have two gradients */
	return end;
}

/* A host that is slow lets the device wait for all it starts, but not for each kernel that is shorter: while
 * it has run ahead, it is not waited for. */
START_TEST(a_host_that_starts_kernels)
{
	static const double launch_s[] = {0, 6e-6, 8e-6, 1e-3};
	struct fixture f;
	struct ap_plan p;

	fixture_open(&f, 1, 1, "a100-80");
	fixture_graph(&f, GRAPH);
	for (size_t i = 0; i < AP_COUNT(launch_s); i++) {
		struct ap_software software = *f.step.software;
		double step_s, alone_s = 0, longest_s[2] = {0};

		software.launch_s = launch_s[i];
		f.step.software = &software;
		plan_of(&f, whole, &p);
		step_s = queue_s(&p, false, launch_s[i]) + queue_s(&p, true, launch_s[i]);
		ck_assert_double_eq_tol(p.prediction.compute_s, step_s, 1e-12);
		ck_assert_double_eq_tol(p.prediction.step_time_s, step_s + p.prediction.optimizer_s, 1e-12);
		for (ap_id k = 0; k < NODES; k++) {
			alone_s += ap_op_cost_kernels_s(&p.op[k].cost);
			longest_s[0] = fmax(longest_s[0], p.op[k].cost.forward_s);
			longest_s[1] = fmax(longest_s[1], p.op[k].cost.backward_s);
		}
		ck_assert_double_ge(step_s, fmax(kernels_s(&p), 14 * launch_s[i]) - 1e-12);
		ck_assert_double_le(step_s, alone_s + longest_s[0] + longest_s[1] + 1e-12);
		if (i == 0)
			ck_assert_double_eq_tol(step_s, kernels_s(&p), 1e-12);
	}
	fixture_close(&f);
}
END_TEST

/* One event after another on a stream, and each operator only once its operands are there. */
static void check_events(const struct ap_plan *p)
{
	double *forward_end = calloc(NODES, sizeof *forward_end);
	double *backward_start = calloc(NODES, sizeof *backward_start);
	double *backward_end = calloc(NODES, sizeof *backward_end);
	double compute = 0;
	int seen[2] = {0};

	for (uint32_t i = 0; i < p->nevent; i++) {
		const struct ap_event *e = &p->event[i];

		ck_assert_double_ge(e->end_s, e->start_s);
		if (e->kind != AP_EVENT_FORWARD && e->kind != AP_EVENT_BACKWARD)
			continue;
		ck_assert_double_ge(e->start_s, compute);
		compute = e->end_s;
		seen[e->kind == AP_EVENT_BACKWARD]++;
		if (e->kind == AP_EVENT_FORWARD) {
			forward_end[e->index] = e->end_s;
		} else {
			backward_start[e->index] = e->start_s;
			backward_end[e->index] = e->end_s;
		}
	}
	ck_assert_int_eq(seen[0], NODES);
	ck_assert_int_eq(seen[1], NODES);
	for (ap_id i = 0; i < NODES; i++) {
		for (uint16_t k = 0; k < p->graph->node[i].bound.nin; k++) {
			const struct ap_tensor *t = &p->graph->tensor[p->graph->node[i].in[k]];

			if (t->kind != AP_TENSOR_ACT)
				continue;
			ck_assert_double_ge(forward_end[i], forward_end[t->producer]);
			ck_assert_double_ge(backward_start[t->producer], backward_end[i]);
		}
	}
	for (uint32_t i = 0; i < p->nevent; i++) {
		const struct ap_event *e = &p->event[i];

		if (e->kind == AP_EVENT_COMM &&
			p->op[e->index].comm[e->sub].comm.phase == AP_PHASE_GRADIENT)
			ck_assert_double_ge(e->start_s, backward_end[e->index]);
		if (e->kind == AP_EVENT_OPTIMIZER)
			ck_assert_double_ge(e->start_s, compute);
	}
	free(forward_end);
	free(backward_start);
	free(backward_end);
}

START_TEST(events)
{
	const char *const *const cuts[] = {batch, tensor, mixed};

	for (int c = 0; c < 3; c++) {
		for (int e = 0; e < 2; e++) {
			struct fixture f;
			struct ap_plan p;

			fixture_open(&f, 4, 2, "a100-80");
			f.step.executor = e ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
			fixture_graph(&f, GRAPH);
			plan_of(&f, cuts[c], &p);
			check_events(&p);
			/* Between everything hidden and nothing hidden. */
			ck_assert_double_ge(p.prediction.step_time_s,
				kernels_s(&p) + p.prediction.optimizer_s - 1e-12);
			ck_assert_double_le(p.prediction.step_time_s,
				p.prediction.compute_s + p.prediction.communication_s +
					p.prediction.optimizer_s + 1e-12);
			fixture_close(&f);
		}
	}
}
END_TEST

/* The last operator in the backward pass has nothing to hide its gradient's exchange behind. */
START_TEST(exchange_is_exposed_at_the_end)
{
	struct fixture f;
	struct ap_plan p;
	double last;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, GRAPH);
	plan_of(&f, batch, &p);
	last = p.op[fixture_node(&f, "add")].cost.gradient_s;
	ck_assert_double_gt(last, 0);
	ck_assert_double_ge(p.prediction.exposed_communication_s, last);
	ck_assert_double_ge(p.prediction.compute_s, kernels_s(&p)); /* slower beside the exchange */
	ck_assert_double_le(p.prediction.compute_s,
		kernels_s(&p) * f.step.software->overlap_slowdown + 1e-12);
	fixture_close(&f);
}
END_TEST

/* n micro-batches: n - 1 alike, then one with the exchange. */
START_TEST(micro_batches)
{
	struct fixture f;
	struct ap_plan one, four;
	const struct ap_plan_op *down;
	double exchange, per_turn, moved;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, GRAPH);
	plan_of(&f, tensor, &one);
	f.step.micro_batches = 4;
	plan_of(&f, tensor, &four);
	down = &four.op[fixture_node(&f, "down")];
	/* No gradient is exchanged but that of b0: four equal turns but for this. */
	exchange = four.op[fixture_node(&f, "add")].cost.gradient_s;
	ck_assert_double_gt(four.prediction.step_time_s, one.prediction.step_time_s);
	ck_assert_double_eq_tol(four.prediction.compute_s, kernels_s(&four), 1e-12);
	/* Each turn has the AllReduce of the row-cut product and its adjoint; then what moves. */
	per_turn = down->comm[0].time_s + down->comm[1].time_s;
	moved = 0;
	for (uint32_t i = 0; i < four.nmove; i++)
		moved += four.move[i].cost.forward_s + four.move[i].cost.backward_s;
	ck_assert_int_eq(down->ncomm, 2);
	ck_assert_double_eq_tol(four.prediction.communication_s,
		4 * per_turn + moved + exchange, 1e-12);
	fixture_close(&f);
}
END_TEST

/* Beside the backward pass the exchange of one gradient hides; behind all passes, none does. */
START_TEST(exchange_behind_the_passes)
{
	for (int m = 1; m <= 4; m *= 4) {
		struct fixture f;
		struct ap_plan beside, behind;
		double gradients = 0;

		fixture_open(&f, 4, 4, "a100-80");
		fixture_graph(&f, GRAPH);
		f.step.micro_batches = m;
		f.step.allreduce.mode = AP_FUSION_OFF;
		plan_of(&f, batch, &beside);
		f.step.exchange_behind = true;
		plan_of(&f, batch, &behind);
		for (ap_id i = 0; i < f.graph->nnode; i++)
			gradients += behind.op[i].cost.gradient_s;
		ck_assert_double_gt(gradients, 0);
		ck_assert_double_eq_tol(behind.prediction.compute_s, kernels_s(&behind), 1e-12);
		ck_assert_double_ge(behind.prediction.exposed_communication_s, gradients * (1 - 1e-9));
		ck_assert_double_lt(beside.prediction.exposed_communication_s,
			behind.prediction.exposed_communication_s);
		for (uint32_t i = 0; i < behind.nevent; i++)
			for (uint32_t k = 0; k < behind.nevent; k++)
				if (behind.event[i].kind == AP_EVENT_BACKWARD &&
					behind.event[k].kind == AP_EVENT_COMM &&
					behind.op[behind.event[k].index].comm[behind.event[k].sub].comm.phase ==
						AP_PHASE_GRADIENT)
					ck_assert_double_ge(behind.event[k].start_s, behind.event[i].end_s - 1e-12);
		fixture_close(&f);
	}
}
END_TEST

/* The product's gradient of w is there before that of the operator that made `scaled` from it. */
#define SHARED \
	"{'schema':'autopar-graph/1','name':'shared'," \
	"'inputs':[{'name':'x','shape':[64,512],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[512,512],'dtype':'float16'}," \
	"{'name':'b','shape':[512],'dtype':'float16'}]," \
	"'operators':[" \
	"{'name':'bend','type':'ReLU','inputs':['b'],'outputs':[{'name':'bent'}]}," \
	"{'name':'scale','type':'Mul','inputs':['w','bent'],'outputs':[{'name':'scaled'}]}," \
	"{'name':'lift','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'h'}]}," \
	"{'name':'down','type':'MatMul','inputs':['scaled','h'],'outputs':[{'name':'y'}]," \
	"'attrs':{'transpose_b':true}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

START_TEST(a_shared_gradient_goes_out_after_its_last_use)
{
	struct fixture f;
	struct ap_plan p;
	const int32_t *counts[5];
	int32_t ones[AP_MAX_FACTOR];
	double start = -1, end = -1;
	ap_id scale, lift;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, SHARED);
	scale = fixture_node(&f, "scale");
	lift = fixture_node(&f, "lift");
	for (int i = 0; i < AP_MAX_FACTOR; i++)
		ones[i] = 1;
	for (int i = 0; i < 5; i++)
		counts[i] = ones;
	ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts, INT64_C(1) << 40, &p);
	ck_assert_uint_eq(f.graph->tensor[f.graph->node[lift].in[1]].owner.node, lift);
	ck_assert_uint_lt(scale, lift);
	for (uint32_t i = 0; i < p.nevent; i++) {
		const struct ap_event *e = &p.event[i];

		if (e->kind == AP_EVENT_BACKWARD && e->index == scale)
			end = e->end_s;
		if (e->kind == AP_EVENT_COMM && e->index == lift)
			start = e->start_s;
	}
	ck_assert_double_gt(end, 0);
	ck_assert_double_ge(start, end);
	fixture_close(&f);
}
END_TEST
