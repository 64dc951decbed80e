/* SPDX-License-Identifier: Apache-2.0 */
/* A plan of two pipeline stages on eight devices, for the tests of the writers. */
#ifndef AP_TEST_PIPE_TEST_H
#define AP_TEST_PIPE_TEST_H

#include "emit_test.h"
#include "fixture.h"
#include "graph/staged.h"
#include "pipeline/schedule.h"
#include "plan/make.h"
#include "plan/plan.h"

#define PIPE_NET \
	"{'schema':'autopar-graph/1','name':'pipe'," \
	"'inputs':[{'name':'x','shape':[64,32],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'fc1.weight','shape':[32,16],'dtype':'float32'}," \
	"{'name':'fc1.bias','shape':[16],'dtype':'float32'}," \
	"{'name':'fc2.weight','shape':[16,8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'up','type':'MatMul','inputs':['x','fc1.weight'],'outputs':[{'name':'h'}]}," \
	"{'name':'bias','type':'BiasAdd','inputs':['h','fc1.bias'],'outputs':[{'name':'i'}]}," \
	"{'name':'down','type':'MatMul','inputs':['i','fc2.weight'],'outputs':[{'name':'y'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

static inline const int32_t *pipe_counts(struct fixture *f, ap_id node, const char *text)
{
	int32_t *count = AP_NEW_N(f->ctx.arena, int32_t, AP_MAX_FACTOR);

	fixture_counts(f, node, text, count);
	return count;
}

/* A graph with down and loss in stage 1, the others in stage 0. */
static inline void pipe_graph(struct fixture *f, const char *net)
{
	struct ap_spot *spot;

	fixture_graph(f, net);
	spot = AP_NEW_N(f->ctx.arena, struct ap_spot, f->graph->nnode);
	spot[fixture_node(f, "down")] = spot[fixture_node(f, "loss")] = (struct ap_spot){1, 0, 1};
	ap_graph_staged(&f->ctx, f->graph, spot, &f->graph);
}

/* momentum, four micro-batches, of which two are in flight in the first stage; up is cut 2 x 2, down
 * by the batch. */
static inline void open_pipe_of(struct fixture *f, const char *net, struct ap_plan *out)
{
	static const int64_t in_flight[] = {2, 1};
	const int32_t **counts;

	fixture_open(f, 8, 8, "ascend910a");
	ap_machine_staged(&f->ctx, f->machine, 2, &f->machine);
	f->pipe = (struct ap_pipe){.nstage = 2, .nsegment = 1,
		.scheduler = ap_scheduler_find("1f1b"), .in_flight = in_flight};
	f->step.pipe = &f->pipe;
	f->step.micro_batches = 4;
	f->step.optimizer = ap_optimizer_find("momentum");
	pipe_graph(f, net);
	counts = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);
	for (ap_id i = 0; i < f->graph->nnode; i++)
		counts[i] = pipe_counts(f, i, "");
	counts[fixture_node(f, "up")] = pipe_counts(f, fixture_node(f, "up"), "m=2 n=2");
	counts[fixture_node(f, "down")] = pipe_counts(f, fixture_node(f, "down"), "m=4");
	ap_plan_make(&f->ctx, f->graph, f->machine, &f->step, counts, INT64_C(1) << 34, out);
}

static inline void open_pipe(struct fixture *f, struct ap_plan *out)
{
	open_pipe_of(f, PIPE_NET, out);
}

#endif
