/* SPDX-License-Identifier: Apache-2.0 */
/* Writes strategy checkpoints: as one file, or as a folder with one per pipeline stage. */
#ifndef AP_API_STAGE_FILES_H
#define AP_API_STAGE_FILES_H

#include "api/outputs.h"

/* Stages a file as JSON or protobuf, depending on its suffix. */
enum ap_status ap_ckpt_stage_file(struct ap_writing *to, const char *path, const struct ap_ckpt *c);

/* Called for each staged file, with its name in the folder and its sum. */
typedef void ap_ckpt_staged_fn(void *user, const char *name, const struct ap_file_sum *sum);

/*
 * Stages the files stage_0, stage_1, ... in a folder, made if missing; suffix: ".ckpt" or ".json".
 * prefix goes before their names in calls of staged and in lookups in older (files of earlier
 * runs). AP_USAGE if one is an input; warns if one replaces a file that no run wrote, unless older
 * is NULL.
 */
enum ap_status ap_ckpt_stage_files(struct ap_writing *to, const char *folder, const char *prefix,
	const char *suffix, uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older,
	ap_ckpt_staged_fn *staged, void *user);

/* ap_ckpt_stage_files() that also removes the folder's other files if they are in older; the rest
 * stays, with a warning if MindSpore would merge it. older NULL: earlier runs are unknown, and
 * files are overwritten silently. */
enum ap_status ap_ckpt_stage_folder(struct ap_writing *to, const char *folder, const char *suffix,
	uint32_t n, const struct ap_ckpt *stage, const struct ap_written *older);

/* Adds files that runs wrote into the folder of merged file path: the stage files that make up the
 * present file, in either form. */
void ap_ckpt_written(struct ap_ctx *ctx, const char *path, struct ap_written *out);

/* The folder of a merged file's stage files: "dir/a.stages" for "dir/a.ckpt". */
const char *ap_ckpt_folder(struct ap_arena *arena, const char *path);

#endif
