/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that need no file of the user: graphs made from the dimensions of a family, and the bundled
 * models, found by their names. */
#ifndef AP_API_MODEL_H
#define AP_API_MODEL_H

#include "api/launch.h"
#include "api/outputs.h"

/* Writes the graph of a family of networks, whose dimensions are settings, to set->graph_out or standard
 * output. AP_USAGE for an unknown family, a setting that it does not read, or dimensions that make no
 * network. */
enum ap_status ap_model_graph(struct ap_writing *to, const char *family);

/* Stages a graph's text; where that goes to a file and it is to be told, also for standard output what the
 * graph has and computes, if it can be loaded. AP_USAGE if --json asks for that beside the graph. */
enum ap_status ap_model_put(struct ap_writing *to, const struct ap_input *made, bool told);

/* The graph of a model's configuration, under the settings that describe a sample: the text of
 * autopar-graph/1, whose name is that of the file, config.json, as config.graph.json. */
enum ap_status ap_model_of_config(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_json *doc, struct ap_input *out);

/* The graph of the network that the file of a launch describes, under the same settings: of run.sh as
 * run.sh.graph.json. AP_USAGE if it describes none. */
enum ap_status ap_model_of_launch(struct ap_ctx *ctx, const struct ap_settings *set,
	enum ap_launch_language language, const struct ap_input *in, struct ap_input *out);

/* Elements of the parameters of that network; 0 if the file describes none that is built. Issues no
 * messages. */
int64_t ap_model_launch_parameters(struct ap_ctx *ctx, const struct ap_settings *set,
	enum ap_launch_language language, const struct ap_input *in);

/* AP_USAGE if settings are given that only describe samples of a model's configuration. path: what is read
 * instead, an operator graph or a dump (what). */
enum ap_status ap_model_no_config(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const char *what);

/* Name of family i, and in a line what it makes; NULL past the end. */
const char *ap_model_name_at(size_t i, const char **help);

/* Does the family read the setting? *standard: its value where it is not given, in the arena; NULL if a rule
 * gives that. */
bool ap_model_reads(struct ap_arena *arena, const char *family, enum ap_setting_id id,
	const char **standard);

/* The folder of the bundled models: what AUTOPAR_PLAN_MODELS names; that of the source, for a program that
 * lies where it was built; or that of the installation. Owned by the arena. */
const char *ap_models_folder(struct ap_arena *arena);

struct ap_model_names {
	const char **v; /* sorted */
	size_t n, cap;
};

/* The names of the bundled models: files of the folder, without .json. AP_IO. */
enum ap_status ap_models_find(struct ap_ctx *ctx, struct ap_model_names *out);

/* The file of a graph: path itself if there is such a file, or if it has a slash or ends in .json; else the
 * bundled model of that name. AP_IO, with names that are near, if there is neither. */
enum ap_status ap_model_file(struct ap_ctx *ctx, const char *path, const char **file);

#endif
