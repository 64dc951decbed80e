/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands write: checked before any work, staged together, put in place together. */
#ifndef AP_CLI_OUTPUTS_H
#define AP_CLI_OUTPUTS_H

#include "base/file.h"
#include "draw/draw.h"
#include "problem/problem.h"

struct ap_op_template;
struct ap_run;

/*
 * Before any work: AP_USAGE for an output that is a folder, an input, or named twice, and for
 * protobuf on a terminal; AP_IO where its folder cannot be written to. further: an output that is
 * an argument, or NULL.
 */
enum ap_status ap_out_check(struct ap_run *run, const char *further);

/* AP_USAGE when path is standard output and that is a terminal. */
enum ap_status ap_out_check_binary(struct ap_run *run, const char *path);

/* AP_USAGE where path is a file that the run reads: for outputs whose names the options do not tell. */
enum ap_status ap_out_check_input(struct ap_run *run, const char *path);

/* AP_USAGE, AP_IO where a checkpoint of so many pipeline stages cannot be written as the options say: to
 * standard output, or beside a folder of stage files that is none. Before any work, where the number is
 * known. */
enum ap_status ap_out_check_stages(struct ap_run *run, uint32_t nstage);

/* Makes a folder for outputs where there is none. */
enum ap_status ap_out_folder(struct ap_run *run, const char *path);

/* Is this the name of a strategy checkpoint in JSON? As MindSpore decides. */
bool ap_out_is_json(const char *path);

/* Stages one output and returns where to write it. */
enum ap_status ap_out_open(struct ap_run *run, const char *path, struct ap_output_sink *out);

/* Text for standard output, staged with the files so that it appears only if they do. */
enum ap_status ap_out_text(struct ap_run *run, const char *text, size_t len);

/* Stages a picture: DOT, or what the suffix of path says. */
enum ap_status ap_out_picture(struct ap_run *run, const char *path, const struct ap_picture *pic);

/* Writes summary and files of a finished plan, all or none. problem: the table, needed for
 * --problem-out only; op_template: for --bundle, NULL without one. AP_STOPPED: all but the picture,
 * which was still to be drawn when we were told to stop. */
enum ap_status ap_out_plan(struct ap_run *run, const struct ap_plan *plan,
	const struct ap_problem *problem, const struct ap_op_template *op_template);

/* Puts everything in place, unless an error was reported. */
enum ap_status ap_out_commit(struct ap_run *run);

#endif
