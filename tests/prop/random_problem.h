/* SPDX-License-Identifier: Apache-2.0 */
/* Random cost tables of every shape, for holding the engines against each other. */
#ifndef RANDOM_PROBLEM_H
#define RANDOM_PROBLEM_H

#include "problem/problem.h"

/*
 * A problem of at most max_n nodes with 1 to 4 candidates: trees, series-parallel, rings, stars,
 * triangles, dense and sparse, in parts, with parallel edges; costs with many ties or without,
 * negative ones, forbidden nodes and pairs; matrices shared between edges, equal layers; in half of
 * them memory of nodes and edges and a limit that some picks keep to and some do not. In the arena
 * of ctx.
 */
const struct ap_problem *random_problem(struct ap_ctx *ctx, uint64_t *seed, uint32_t max_n);

/* The problem as JSON, for a message. */
const char *problem_text(struct ap_ctx *ctx, const struct ap_problem *p);

#endif
