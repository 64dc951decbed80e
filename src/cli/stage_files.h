/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy checkpoints as files: one, or a folder of one for each pipeline stage. */
#ifndef AP_CLI_STAGE_FILES_H
#define AP_CLI_STAGE_FILES_H

#include "emit/ckpt.h"

struct ap_run;

/* Reads a strategy checkpoint: a file, or the stage files of a folder, merged. Of a folder all files
 * that end in .ckpt, or all in .json, are read, as MindSpore's merge does. */
enum ap_status ap_ckpt_load(struct ap_run *run, const char *path, struct ap_ckpt *out);

/* Stages one file: JSON where its name says so, else protobuf. */
enum ap_status ap_ckpt_stage_file(struct ap_run *run, const char *path, const struct ap_ckpt *c);

/*
 * Stages the files stage_0, stage_1, ... of a folder, which is made where it is missing; suffix: ".ckpt"
 * or ".json". Files of stages of an earlier run that would be taken for some of these go, in either
 * form. AP_USAGE where one of them is an input; a warning where the folder holds other checkpoints, for
 * MindSpore would merge these, too.
 */
enum ap_status ap_ckpt_stage_folder(struct ap_run *run, const char *folder, const char *suffix,
	uint32_t n, const struct ap_ckpt *stage);

/* The folder of the stage files of a merged file: "dir/a.stages" of "dir/a.ckpt". */
const char *ap_ckpt_folder(struct ap_run *run, const char *path);

#endif
