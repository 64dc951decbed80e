/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the upper layers share: a context, graphs and machines from short texts. */
#ifndef AP_TESTS_FIXTURE_H
#define AP_TESTS_FIXTURE_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "shard/layout.h"
#include "shard/step.h"

/* Two products, one after the other; x0 = x + b0 so that gradients reach the first product's input. */
#define FIXTURE_PAIR \
	"{'schema':'autopar-graph/1','name':'pair'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'b0','shape':[8],'dtype':'float32'}," \
	"{'name':'w1','shape':[8,32],'dtype':'float32'}," \
	"{'name':'w2','shape':[32,8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b0'],'outputs':[{'name':'x0'}]}," \
	"{'name':'up','type':'MatMul','inputs':['x0','w1'],'outputs':[{'name':'h'}]}," \
	"{'name':'down','type':'MatMul','inputs':['h','w2'],'outputs':[{'name':'y'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct fixture {
	struct ap_ctx ctx;
	struct ap_arena *said; /* messages: they outlive what is released of ctx's arena */
	struct ap_step step;
	struct ap_pipe pipe; /* of one stage, where fixture_in_flight() was called */
	int64_t in_flight;
	const struct ap_machine *machine;
	const struct ap_graph *graph;
};

/* A context, a machine of ndev devices (per_server each, chip by name), the default step with the
 * software profile "mindspore", optimizer adam. Fails the test when anything is reported. */
void fixture_open(struct fixture *f, int64_t ndev, int64_t per_server, const char *chip);
void fixture_close(struct fixture *f);

/* So many micro-batches are in flight. */
void fixture_in_flight(struct fixture *f, int64_t n);

/* Loads a graph from JSON text in which ' stands for ". Fails the test on any error. */
void fixture_graph(struct fixture *f, const char *text);

/* The step is what it will be: the graph's rules become those that its executor leaves. */
void fixture_impose(struct fixture *f);

/* Node index by name; fails the test when there is none. */
ap_id fixture_node(const struct fixture *f, const char *name);

/* Counts of node from "m=2 n=4" by factor letter, the rest 1. Static per call site: copied by the
 * caller where it must live on. */
void fixture_counts(const struct fixture *f, ap_id node, const char *text,
	int32_t count[AP_MAX_FACTOR]);

#endif
