/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From settings and files to a plan. Whoever plans does it in these steps: sources are read once; under some
 * settings they make the inputs of a plan; these are searched or evaluated. Nothing here is changed by it, so
 * that the same sources can be tried under other settings.
 */
#ifndef AP_API_REQUEST_H
#define AP_API_REQUEST_H

#include "api/files.h"
#include "drive/drive.h"
#include "hw/machine.h"
#include "hybrid/hybrid.h"

/* What a caller has of files: a text, or the name of a file that is read when it is needed (text NULL);
 * path NULL: none. A graph there has to be. */
struct ap_named {
	struct ap_input graph, table;
	struct ap_input strategy; /* checkpoint to search around or to evaluate */
};

/* What was read. */
struct ap_sources {
	struct ap_json *graph;
	const char *sha256; /* of the graph */
	const struct ap_topo *table; /* NULL: no rank table */
	const char *table_path;
	struct ap_json *stage_config; /* NULL: none */
	struct ap_input strategy;
};
enum ap_status ap_sources_read(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_named *named, struct ap_sources *out);

/* Graph, machine and step of a plan. Not to be copied: the request points into it. */
struct ap_inputs {
	const struct ap_graph *graph; /* staged, where there is a pipeline */
	const struct ap_topo *topo;
	const struct ap_chip *chip;
	const struct ap_machine *machine;
	struct ap_step step;
	struct ap_hybrid hybrid; /* filled; dp 0: none is asked for */
	struct ap_request request; /* ready for the driver */
	const int32_t *const *counts; /* of what is not searched, [node][factor]; NULL: it is */
};

/* Fits sources and settings together, for a search or an evaluation (use: AP_FOR_search, AP_FOR_evaluate). */
enum ap_status ap_inputs_make(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, unsigned use, struct ap_inputs *out);

/*
 * What is given instead of being left to the search. A search: in->counts where the settings leave nothing to
 * it, request.given of the checkpoint that is searched around. An evaluation: in->counts of its checkpoint,
 * completed as the mode says. Of a hybrid graph and request become those whose sums are dealt. What is told
 * ends with AP_USAGE and others: it is no strategy.
 */
enum ap_status ap_inputs_give(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, unsigned use, struct ap_inputs *in);

/* The plan: of in->counts, where there are any, whether it fits the memory or not; else searched. found and
 * problem as of ap_drive_find(), both may be NULL. */
enum ap_status ap_inputs_plan(struct ap_ctx *ctx, const struct ap_inputs *in, struct ap_found *found,
	struct ap_plan *out, const struct ap_problem **problem);

/* Do the settings leave anything to search? */
bool ap_settings_search(const struct ap_settings *set);

/* What gives all counts where nothing is searched, as the user said it: "--hybrid tp=8". */
const char *ap_settings_giver(struct ap_ctx *ctx, const struct ap_settings *set);

/* An operator graph alone, as --batch and --run-phase want it. */
enum ap_status ap_input_graph(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_graph **out);

/* The chip that the settings or the rank table name. */
enum ap_status ap_input_chip(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_chip **out);

/* The step that the settings describe, of a graph and the file that it is from. */
enum ap_status ap_input_step(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_json *doc,
	const struct ap_graph *g, struct ap_step *out);

#endif
