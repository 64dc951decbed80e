/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AP_TEST_GRAPH_FIXTURE_H
#define AP_TEST_GRAPH_FIXTURE_H

#include "base/ctx.h"
#include "graph/graph.h"

/* A two-layer perceptron with a mean-absolute-error loss; every optional key is used. */
#define FIXTURE_SCOPE "Default/network-WithLossCell/_backbone-Network/"
extern const char fixture_mlp[];

extern struct ap_ctx ctx; /* set up and torn down by the checked fixture */

void fixture_setup(void);
void fixture_teardown(void);

/* Loads JSON text; *g is NULL unless AP_OK. */
enum ap_status load_text(const char *json, const struct ap_graph_params *params,
	const struct ap_graph **g);

/* Loads or fails the test with the first message. */
const struct ap_graph *load_ok(const char *json);

/* Node and tensor by name; the test fails where there is none. */
const struct ap_node *node_of(const struct ap_graph *g, const char *name);
const struct ap_tensor *tensor_of(const struct ap_graph *g, const char *name);

/* Everything the sink holds, a message a line. */
const char *messages(void);

/* "[32,784]" */
const char *shape_of(const struct ap_graph *g, const char *tensor);

#endif
