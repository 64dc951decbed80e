/* SPDX-License-Identifier: Apache-2.0 */
/* What settings mean together: defaults that depend on others, contradictions, listings. */
#ifndef AP_CLI_SETTINGS_H
#define AP_CLI_SETTINGS_H

#include "cli/options.h"
#include "graph/graph.h"
#include "shard/step.h"

/* Reports settings that contradict each other (AP_USAGE, both named), then gives those that are not
 * given the value that follows from others. */
enum ap_status ap_settings_settle(struct ap_ctx *ctx, struct ap_cli *cli);

/* Notes of settings that are not at their defaults and change what whoever runs the plan does, but not
 * the plan; a warning of what MindSpore would refuse. */
enum ap_status ap_settings_note(struct ap_ctx *ctx, const struct ap_cli *cli);

/* Holds the settings against a machine of ndev devices. AP_USAGE. */
enum ap_status ap_settings_fit_devices(struct ap_ctx *ctx, const struct ap_options *o, int64_t ndev);

/* The plain assignments of settings to fields of a step. */
void ap_settings_step(struct ap_arena *arena, const struct ap_options *o, struct ap_step *step);

/* Those that need the graph and the number of devices, all stages together: how inputs arrive, and how
 * data_parallel deals parameters. AP_USAGE where they do not fit. */
enum ap_status ap_settings_step_on(struct ap_ctx *ctx, const struct ap_options *o,
	const struct ap_graph *g, int64_t ndev, struct ap_step *step);

/* For standard output, or objects of the array that w has open. False: none has this name (NULL: all). */
bool ap_settings_text(struct ap_arena *arena, const char *name, struct ap_str *out);
bool ap_settings_json(struct ap_jw *w, struct ap_arena *arena, const char *name);
void ap_print_config(const struct ap_cli *cli, struct ap_str *out);

/* For settings*.c: "--x 3", a setting as the user spelled it, else its key and the default. */
const char *ap_settings_said(struct ap_ctx *ctx, const struct ap_options *o, enum ap_opt_id id);

/* For settings*.c: "A 1 and B 2 contradict each other: why". */
enum ap_status ap_settings_contradict(struct ap_ctx *ctx, const struct ap_options *o,
	enum ap_opt_id a, enum ap_opt_id b, const char *why);

/* For settings*.c: notes of settings that are given, but count only beside some other one. */
enum ap_status ap_settings_note_needs(struct ap_ctx *ctx, const struct ap_options *o);

/* For settings*.c: all contradictions that the settings alone show. */
void ap_settings_check(struct ap_ctx *ctx, const struct ap_options *o);

#endif
