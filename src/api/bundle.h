/* SPDX-License-Identifier: Apache-2.0 */
/* --bundle DIR: the folder of files for an executor, staged with all other outputs. */
#ifndef AP_API_BUNDLE_H
#define AP_API_BUNDLE_H

#include "api/outputs.h"
#include "bundle/bundle.h"

struct ap_made; /* api/planning.h */

/* Checks DIR before any work. AP_USAGE if it is no folder, or is not empty and no bundle, or if a
 * template is given without a bundle; AP_IO if it is not writable. */
enum ap_status ap_bundle_check(struct ap_writing *to);

/* Before the search: makes the folder if missing and locks it until the outputs are committed or
 * discarded, removes leftovers of killed runs, and finds out what earlier runs wrote. AP_IO if
 * another run holds the lock; AP_USAGE if a file of the bundle would replace one that no run
 * wrote. */
enum ap_status ap_bundle_begin(struct ap_writing *to);

/* Paths of the bundle's files, NULL-terminated; NULL without a bundle. */
const char *const *ap_bundle_paths(struct ap_writing *to);

/* Reads the template of operator strategies; *out is NULL if none is given. */
enum ap_status ap_bundle_template(struct ap_ctx *ctx, const struct ap_settings *set,
	 const struct ap_op_template **out);

/*
 * Stages the bundle's files in the folder of ap_bundle_begin(), and removes files that earlier runs
 * wrote and this one does not. Warns about each file that stays because others wrote or changed it,
 * and about each changed file that is replaced. AP_MEANING if the template does not match this
 * plan's operators; AP_USAGE if the executor cannot be told of a plan that was not searched for.
 */
enum ap_status ap_bundle_stage(struct ap_writing *to, const struct ap_made *made);

/* Is the folder meant as a bundle, complete or not? */
bool ap_bundle_is(struct ap_ctx *ctx, const char *dir);

/* Checks the files of a bundle against its manifest. AP_MEANING, with the file's name, if the
 * manifest or a file is missing, or a file is changed or unlisted. */
enum ap_status ap_bundle_verify(struct ap_ctx *ctx, const struct ap_settings *set, const char *dir,
	 struct ap_bundle_manifest *out);

#endif
