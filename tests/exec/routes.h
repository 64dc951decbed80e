/* SPDX-License-Identifier: Apache-2.0 */
/* Small graphs under the plans of a route (route/route.h). */
#ifndef AP_TEST_EXEC_ROUTES_H
#define AP_TEST_EXEC_ROUTES_H

#include "game.h"

struct ex_routed { /* how it went */
	uint32_t completed, refused; /* picks drawn at random */
	uint32_t found, none; /* searches */
	uint32_t reread; /* plans that were found, and are again what is read back */
	uint32_t differ; /* operators that plans which were found have otherwise than the free optimum */
};

/* Of counts, what a checkpoint holds of them, under the strategies of the graph itself. In ctx's arena;
 * NULL: nothing. */
const int32_t *const *ex_route_held(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const int32_t *const *counts);

/* Completes what is held. AP_OK: *why is NULL or what is wrong with the rows; AP_INFEASIBLE: refused, *why
 * NULL, or that it is not said at which operator. The message goes nowhere. */
enum ap_status ex_route_complete(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_graph *g, const struct ap_machine *m, const struct ap_step *step,
	const int32_t *const *held, const int32_t *const **counts, const char **why);

/* A game that has begun, of a route: so many picks at random, and a search by an engine where one is named.
 * False where something differs. */
bool ex_route_play(struct ex_game *g, uint32_t picks, const char *mode, struct ex_routed *out);

#endif
