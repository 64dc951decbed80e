/* SPDX-License-Identifier: Apache-2.0 */
/* From settings and files to a plan, in steps: sources are read once; with settings they make the
 * inputs of a plan; these are searched or evaluated. No step changes what it is given, so the same
 * sources can be tried under other settings. */
#ifndef AP_API_REQUEST_H
#define AP_API_REQUEST_H

#include "api/files.h"
#include "drive/drive.h"
#include "hw/machine.h"
#include "hw/server.h"
#include "hybrid/hybrid.h"
#include "pipeline/stages.h"

/* Files as the caller names them: a text, or (text NULL) a file that is read when needed; path
 * NULL: none. The graph is required. */
struct ap_named {
	struct ap_input graph, table;
	struct ap_input strategy; /* checkpoint to search around, or to evaluate */
};

/* What was read from the files. */
struct ap_sources {
	struct ap_json *graph;
	const char *sha256; /* of the graph */
	const char *source, *source_sha256; /* what it was made of; NULL: nothing */
	const struct ap_decoder *decoder; /* the network that it was made from; NULL: not known */
	const struct ap_topo *table; /* of a rank table or a list of hosts; NULL if there is none */
	const char *table_path;
	const struct ap_server *server; /* as its tools describe each server; NULL: not said */
	const char *server_path;
	struct ap_json *stage_config; /* NULL if there is none */
	struct ap_input strategy;
	const struct ap_graph *ready; /* made of graph before, under the same batch and phase; NULL: no */
	const struct ap_machine *machine; /* made of the table before, whole; NULL: no */
	uint32_t apart; /* the graph runs in one stage of so many, without the others; 0: in all */
	const struct ap_machine *stage; /* what ap_machine_stage() makes of that, made before; NULL: no */
	const struct ap_software *software; /* what ap_input_software() gives, found before; NULL: no */
	bool sketches; /* inputs are for sketches, of which times and bytes are compared: costs have the usual
			quantum, and nobody is told what is without effect */
};
enum ap_status ap_sources_read(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_named *named, struct ap_sources *out);

/* The same graph on the machine of another file. */
enum ap_status ap_sources_table(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_sources *io);

/* Devices of the machine, as settings or files say; 0: neither does. */
int64_t ap_sources_devices(const struct ap_settings *set, const struct ap_sources *src);

/* Do samples of the batch meet in a statistic, so that micro-batches would change what the graph computes? */
bool ap_sources_mix_batch(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src);

/* Graph, machine and step of a plan. Must not be copied: the request points into it. */
struct ap_inputs {
	const struct ap_graph *loaded; /* as the file has it */
	const struct ap_graph *graph; /* with stages, if there is a pipeline */
	const struct ap_topo *topo;
	const struct ap_chip *chip;
	const struct ap_machine *machine;
	struct ap_step step;
	struct ap_hybrid hybrid; /* dp is 0 if not asked for */
	struct ap_step other_step;
	struct ap_other_cut other; /* between layers, where the graph is cut by cost; graph NULL: none */
	struct ap_stages_request cutting; /* of request, where the graph is cut by cost */
	struct ap_kept_cut kept_cut; /* the stages of --keep's plan; graph NULL: none */
	struct ap_request request; /* ready for the driver */
	const int32_t *const *counts; /* [node][factor] if nothing is searched, else NULL */
};

/* Makes inputs from sources and settings (use: AP_FOR_search, AP_FOR_evaluate). */
enum ap_status ap_inputs_make(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, unsigned use, struct ap_inputs *out);

/*
 * Sets the given counts. For a search: in->counts if the settings leave nothing to it, and
 * request.given from the checkpoint to search around. For an evaluation: in->counts from its
 * checkpoint, completed as the mode says. For --hybrid, graph and request become those with dealt
 * sums. AP_USAGE and others if the counts are no strategy.
 */
enum ap_status ap_inputs_give(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, unsigned use, struct ap_inputs *in);

/* Takes the other cut of in, which it has. */
void ap_inputs_recut(struct ap_inputs *in);

/* Places the operators of in->cutting.graph as a search did, or a file says. False if parts do not ascend
 * along the edges: nothing is changed then. */
bool ap_inputs_place(struct ap_ctx *ctx, const struct ap_spot *spot, enum ap_pipe_cut_by by,
	struct ap_inputs *in);

/* Lets a search deal sums where the executor can be told. */
void ap_inputs_open_sums(struct ap_ctx *ctx, struct ap_inputs *in);

/* Deals the sums of in's graph as a plan's search.hybrid says: "dp=8,tp=4,sp=1", degrees inside a stage. */
enum ap_status ap_inputs_deal(struct ap_ctx *ctx, const char *degrees, struct ap_inputs *in);

/* Makes the plan from in->counts, whether it fits or not, or by a search if there are none. found,
 * problem: as for ap_drive_find(); may be NULL. */
enum ap_status ap_inputs_plan(struct ap_ctx *ctx, const struct ap_inputs *in, struct ap_found *found,
	struct ap_plan *out, const struct ap_problem **problem);

/* Do the settings leave anything to search? */
bool ap_settings_search(const struct ap_settings *set);

/* The setting that gives all counts if nothing is searched, as spelled: "--hybrid tp=8". */
const char *ap_settings_giver(struct ap_ctx *ctx, const struct ap_settings *set);

/* Reads a graph alone, under --batch and --run-phase. */
enum ap_status ap_input_graph(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_graph **out);

/* The chip named by the settings, the rank table or the server, with links as files say. */
enum ap_status ap_input_chip(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_chip **out);

/* The software profile that the settings name, or that of the executor, of the year that they name
 * ("@2022"). */
enum ap_status ap_input_software(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_software **out);

/* Makes the step from the settings, for graph g read from src->graph. */
enum ap_status ap_input_step(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_graph *g, struct ap_step *out);

#endif
