/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AP_TEST_IMPORT_FIXTURE_H
#define AP_TEST_IMPORT_FIXTURE_H

#include "base/ctx.h"
#include "graph/graph.h"
#include "import/import.h"

/*
 * A dump of a small network, whole: 14 lines of parameters, an entry that takes the gradient of @f in line
 * FIXTURE_F_LINE - 10, @f with a dense layer and a loss, which calls @act.
 */
extern const char fixture_dump[];

extern struct ap_ctx ctx; /* set up and torn down by the checked fixture */

void fixture_setup(void);
void fixture_teardown(void);

/* A copy of text with the first `from` replaced by `to`; the test fails where there is none. */
const char *edited(const char *text, const char *from, const char *to);

/* Imports as "NAME.ir" and gives the JSON; "" unless *st is AP_OK. params NULL: the defaults. */
const char *imported(const char *text, const struct ap_import_params *params, enum ap_status *st);

/* The same, or the test fails with the first message. */
const char *imported_ok(const char *text);

/* The graph of it, checked. */
const struct ap_graph *graph_of(const char *json);

/* The node of a type, the k-th; the test fails where there is none. */
const struct ap_node *node_of_type(const struct ap_graph *g, const char *type, uint32_t k);

/* Text of a file of tests/dumps or models, in the arena. */
char *file_text(const char *path, size_t *len);

/* Everything the sink holds, a message a line. */
const char *messages(void);

/* Does the JSON hold this text? Fails the test where it does not, and shows it. */
void holds(const char *json, const char *text);

#endif
