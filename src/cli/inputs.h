/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands read, shared between them. */
#ifndef AP_CLI_INPUTS_H
#define AP_CLI_INPUTS_H

#include "drive/drive.h"
#include "hw/machine.h"
#include "hybrid/hybrid.h"

struct ap_run;

/* A file read in whole; "-" is standard input, which can be read once. */
struct ap_input {
	const char *path;
	char *text;
	size_t len;
};
enum ap_status ap_input_read(struct ap_run *run, const char *path, struct ap_input *out);

/* SHA-256 of what was read, in hexadecimal, in the run arena. */
const char *ap_input_sha256(struct ap_run *run, const struct ap_input *in);

/* The document in it; flags as of ap_json_parse(). */
enum ap_status ap_input_json(struct ap_run *run, const struct ap_input *in, unsigned flags,
	struct ap_json **out);

/* An operator graph as --batch and --run-phase want it. */
enum ap_status ap_input_graph(struct ap_run *run, const char *path, const struct ap_graph **out);

/* Graph, machine and step of `search` and `evaluate`. */
struct ap_inputs {
	const struct ap_graph *graph; /* staged, where there is a pipeline */
	const struct ap_topo *topo;
	const struct ap_chip *chip;
	const struct ap_machine *machine;
	struct ap_step step;
	struct ap_hybrid hybrid; /* filled; dp 0: none is asked for */
	struct ap_request request; /* ready for the driver */
};

/* What the arguments name, read once: inputs can be made of it under other settings again. */
struct ap_sources {
	struct ap_json *graph;
	const char *sha256; /* of the graph */
	const struct ap_topo *table; /* NULL: no rank table */
	struct ap_json *stage_config; /* NULL: none */
};
enum ap_status ap_sources_read(struct ap_run *run, struct ap_sources *out);

/* The chip that the settings or the rank table name. */
enum ap_status ap_input_chip(struct ap_run *run, const struct ap_sources *src,
	const struct ap_chip **out);

/* Fits sources and settings together. */
enum ap_status ap_inputs_make(struct ap_run *run, const struct ap_sources *src, struct ap_inputs *out);

/* Both. */
enum ap_status ap_inputs_load(struct ap_run *run, struct ap_inputs *out);

/* The step that the settings describe, of a graph and the file that it is from. */
enum ap_status ap_input_step(struct ap_run *run, const struct ap_json *doc, const struct ap_graph *g,
	struct ap_step *out);

/* Counts per operator of a strategy checkpoint, for inputs that were loaded. whole: it must name every
 * operator with a parameter and no other. */
enum ap_status ap_input_strategy(struct ap_run *run, const struct ap_inputs *in, const char *path,
	bool whole, const int32_t *const **counts);

#endif
