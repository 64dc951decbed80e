/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy checkpoints written as files: one, or a folder of one for each pipeline stage. */
#ifndef AP_API_STAGE_FILES_H
#define AP_API_STAGE_FILES_H

#include "api/outputs.h"

/* Stages one file: JSON where its name says so, else protobuf. */
enum ap_status ap_ckpt_stage_file(struct ap_writing *to, const char *path, const struct ap_ckpt *c);

/* Told of each file that is staged, by its name in the folder and what it holds. */
typedef void ap_ckpt_staged_fn(void *user, const char *name, const struct ap_file_sum *sum);

/*
 * Stages the files stage_0, stage_1, ... of a folder, which is made where it is missing; suffix: ".ckpt" or
 * ".json". prefix is put before their names where these are told, and looked up in older, what runs before
 * wrote. AP_USAGE where one of them is an input; a warning where one takes the place of what no run wrote,
 * unless older is NULL.
 */
enum ap_status ap_ckpt_stage_files(struct ap_writing *to, const char *folder, const char *prefix,
	const char *suffix, uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older,
	ap_ckpt_staged_fn *staged, void *user);

/* The same, and what else is in the folder goes, where it is among older; else it stays, with a warning where
 * MindSpore would merge it. older NULL: nothing is known of runs before, and whoever named the folder has it
 * written over. */
enum ap_status ap_ckpt_stage_folder(struct ap_writing *to, const char *folder, const char *suffix,
	uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older);

/* Adds what runs wrote into the folder of the merged file path: the stage files that make up the file which
 * has the name now, in either form. */
void ap_ckpt_written(struct ap_ctx *ctx, const char *path, struct ap_written *out);

/* The folder of the stage files of a merged file: "dir/a.stages" of "dir/a.ckpt". */
const char *ap_ckpt_folder(struct ap_arena *arena, const char *path);

#endif
