/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators by a pattern of shells. It is held against an operator's name, its cell and the last part of its
 * name ("backbone.layer1/MatMul-op0"), its cell alone, and the names of its parameters; of each also against
 * what begins behind a dot or a slash, so that "layers.*" are all operators of cells "model.layers.0", ...
 */
#ifndef AP_GRAPH_GLOB_H
#define AP_GRAPH_GLOB_H

#include <stdbool.h>

#include "graph/graph.h"

/* Marks the operators that a pattern, or a name as it is, means: [nnode]. An operator of exactly that name is
 * the only one. Returns their number. O(operators * length of names). */
uint32_t ap_glob_operators(const struct ap_graph *g, const char *pattern, bool *out);

/* The names that are near a pattern that means nothing, for a message: "; near: A, B", "" if there are none.
 * In the run arena. */
const char *ap_glob_near(struct ap_ctx *ctx, const struct ap_graph *g, const char *pattern);

#endif
