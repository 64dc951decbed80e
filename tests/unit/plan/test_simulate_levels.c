/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated step at each level of optimizer sharding: what is exchanged, and how often. */
#include <math.h>

#include "fixture.h"
#include "harness.h"
#include "plan/make.h"
#include "plan/plan.h"

enum { DEVICES = 8, MICRO = 4 };

/* Only the second weight's operator reads it in the backward pass. */
#define GRAPH \
	"{'schema':'autopar-graph/1','name':'two'," \
	"'inputs':[{'name':'x','shape':[512,1024],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'u','shape':[1024,1024],'dtype':'float32'}," \
	"{'name':'w','shape':[1024,1024],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'first','type':'MatMul','inputs':['x','u'],'outputs':[{'name':'y'}]}," \
	"{'name':'second','type':'MatMul','inputs':['y','w'],'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceSum','inputs':['z'],'attrs':{'axis':[0,1]}," \
	"'outputs':[{'name':'l'}]}],'outputs':['l']}"

static double time_of(const struct ap_plan *p, ap_id node, enum ap_phase phase)
{
	for (uint32_t i = 0; i < p->op[node].ncomm; i++)
		if (p->op[node].comm[i].comm.phase == phase)
			return p->op[node].comm[i].time_s;
	return 0;
}

struct step {
	struct fixture f;
	struct ap_plan p;
	double scatter_s, gather_s; /* of one weight */
	double rest_s; /* all else on the links */
};

static void simulate(struct step *s, int level)
{
	static const int32_t rows[AP_MAX_FACTOR] = {DEVICES, 1, 1, 1};
	const int32_t *counts[3];

	fixture_open(&s->f, DEVICES, DEVICES, "a100-80");
	s->f.step.micro_batches = MICRO;
	s->f.step.optimizer_sharding = true;
	s->f.step.optimizer_level = level;
	s->f.step.allreduce.mode = s->f.step.allgather.mode = s->f.step.reducescatter.mode = AP_FUSION_OFF;
	fixture_graph(&s->f, GRAPH);
	for (ap_id i = 0; i < s->f.graph->nnode; i++)
		counts[i] = rows;
	ap_plan_make(&s->f.ctx, s->f.graph, s->f.machine, &s->f.step, counts, (int64_t)1 << 60, &s->p);
	s->scatter_s = time_of(&s->p, 0, AP_PHASE_GRADIENT);
	s->gather_s = time_of(&s->p, 0, level < 3 ? AP_PHASE_OPTIMIZER : AP_PHASE_FORWARD);
	s->rest_s = MICRO * (time_of(&s->p, 2, AP_PHASE_FORWARD) + time_of(&s->p, 2, AP_PHASE_BACKWARD));
	ck_assert(s->scatter_s > 0 && s->gather_s > 0);
}

static void near(double got, double want)
{
	ck_assert_msg(fabs(got / want - 1) < 1e-9, "%g s, %g wanted", got, want);
}

START_TEST(what_is_exchanged)
{
	struct step s;

	/* Gathering once a step counts as part of the update. */
	simulate(&s, 1);
	near(s.p.prediction.communication_s - s.rest_s, 2 * s.scatter_s);
	fixture_close(&s.f);
	simulate(&s, 2);
	near(s.p.prediction.communication_s - s.rest_s, 2 * MICRO * s.scatter_s);
	fixture_close(&s.f);
	/* forward twice, backward once */
	simulate(&s, 3);
	near(s.p.prediction.communication_s - s.rest_s, MICRO * (2 * s.scatter_s + 3 * s.gather_s));
	fixture_close(&s.f);
}
END_TEST

/* Each level has less memory than the one before, and none is faster. */
START_TEST(memory_for_time)
{
	struct ap_prediction last = {0};

	for (int level = 1; level <= 3; level++) {
		struct step s;

		simulate(&s, level);
		if (level > 1) {
			ck_assert_int_lt(s.p.prediction.memory.total, last.memory.total);
			ck_assert_double_ge(s.p.prediction.step_time_s, last.step_time_s);
		}
		last = s.p.prediction;
		fixture_close(&s.f);
	}
}
END_TEST
