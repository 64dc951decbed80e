/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy checkpoints as files: one, or a folder of one for each pipeline stage. */
#ifndef AP_CLI_STAGE_FILES_H
#define AP_CLI_STAGE_FILES_H

#include "base/file.h"
#include "ckpt/ckpt.h"

struct ap_run;
struct ap_written;

/* Reads a strategy checkpoint: a file, or the stage files of a folder, merged. Of a folder all files
 * that end in .ckpt, or all in .json, are read, as MindSpore's merge does. */
enum ap_status ap_ckpt_load(struct ap_run *run, const char *path, struct ap_ckpt *out);

/* Stages one file: JSON where its name says so, else protobuf. */
enum ap_status ap_ckpt_stage_file(struct ap_run *run, const char *path, const struct ap_ckpt *c);

/* Told of each file that is staged, by its name in the folder and what it holds. */
typedef void ap_ckpt_staged_fn(void *user, const char *name, const struct ap_file_sum *sum);

/*
 * Stages the files stage_0, stage_1, ... of a folder, which is made where it is missing; suffix: ".ckpt" or
 * ".json". prefix is put before their names where these are told, and looked up in older, what runs before
 * wrote. AP_USAGE where one of them is an input; a warning where one takes the place of what no run wrote,
 * unless older is NULL.
 */
enum ap_status ap_ckpt_stage_files(struct ap_run *run, const char *folder, const char *prefix,
	const char *suffix, uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older,
	ap_ckpt_staged_fn *staged, void *user);

/* What is in the folder and not among written goes, where it is among older; else it stays, with a warning
 * where MindSpore would merge it. */
enum ap_status ap_ckpt_clear_folder(struct ap_run *run, const char *folder, const char *prefix,
	const struct ap_written *older, const struct ap_written *written);

/* Both. older: NULL: nothing is known of runs before, and whoever named the folder has it written over. */
enum ap_status ap_ckpt_stage_folder(struct ap_run *run, const char *folder, const char *suffix,
	uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older);

/* Adds what runs wrote into the folder of the merged file path: the stage files that make up the file which
 * has the name now, in either form. */
void ap_ckpt_written(struct ap_run *run, const char *path, struct ap_written *out);

/* The folder of the stage files of a merged file: "dir/a.stages" of "dir/a.ckpt". */
const char *ap_ckpt_folder(struct ap_run *run, const char *path);

#endif
