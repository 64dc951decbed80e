/* SPDX-License-Identifier: Apache-2.0 */
/* A request for a search: a plain value that any caller can fill. */
#ifndef AP_DRIVE_REQUEST_H
#define AP_DRIVE_REQUEST_H

#include "graph/graph.h"
#include "hw/machine.h"
#include "route/route.h"
#include "search/engine.h"
#include "shard/step.h"

#define AP_DEFAULT_WORK (UINT64_C(1) << 35) /* of a search, where the user gives no limit */

/* The request's graph cut into stages in another way. */
struct ap_other_cut {
	const struct ap_graph *graph;
	const struct ap_step *step; /* the request's, with this cut's pipe */
};

struct ap_stages_request; /* pipeline/stages.h */

/* The graph cut into stages as an old plan has them. */
struct ap_kept_cut {
	const struct ap_graph *graph;
	const struct ap_step *step; /* the request's, with this cut's pipe */
	const int32_t *const *counts; /* of the old plan, [graph->nnode], as ap_request.keep */
};

struct ap_request {
	const struct ap_graph *graph;
	const struct ap_machine *machine;
	const struct ap_step *step;
	int64_t capacity_bytes; /* usable memory of a device (--memory, else the chip's) */
	const char *search_mode; /* "auto" or the name of an engine */
	struct ap_budget budget;
	double step_gap; /* a step so near its bound is called proven, and not improved */
	const struct ap_route *route; /* NULL: row 0 of ap_route_at() */
	const struct ap_other_cut *other; /* competes with graph before anything is searched; NULL: none */
	const struct ap_stages_request *cutting; /* what graph was cut by cost from, to cut it anew
	                                          * where memory binds; NULL: it was not */
	bool hybrids; /* the executor can be told of them, and they compete */
	bool deals; /* it can be told of dealt sums, and they are searched */
	bool baselines_only; /* nothing is searched beyond baselines, of which the best is taken */
	bool prune; /* normally true */
	bool certify; /* a second engine must confirm the answer (drive/certify.h) */
	const int32_t *const *given; /* counts fixed beside the graph's pins, [node][factor]; it and its
	                              * rows may be NULL */
	const int32_t *const *keep; /* counts of an old plan to change little of, [node][factor]; rows NULL:
	                             * it has no such operator; NULL: there is none */
	const struct ap_kept_cut *keep_cut; /* its stages, where graph was cut by cost; NULL: they are
	                                     * others in number, or cannot be here */
	const char *keep_file; /* of that plan */
	double keep_within; /* of the best step, of 1 */
	double keep_best_s; /* a step that is known from elsewhere, and counts as the best if it is less;
	                     * 0: none */
	uint32_t nsetting; /* echoed in the plan */
	const struct ap_setting *setting;
};

#endif
