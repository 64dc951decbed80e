/* SPDX-License-Identifier: Apache-2.0 */
/* --bundle DIR: the folder of files that an executor needs, staged with all other outputs. */
#ifndef AP_API_BUNDLE_H
#define AP_API_BUNDLE_H

#include "api/outputs.h"
#include "bundle/bundle.h"

/* Before any work: AP_USAGE where DIR is no folder, or holds something and no bundle; AP_IO where it cannot
 * be written to. AP_USAGE for a template without a bundle. */
enum ap_status ap_bundle_check(struct ap_writing *to);

/*
 * Before the search: makes the folder, where there is none, and locks it until the outputs are committed or
 * discarded; clears what killed runs left, and finds out what runs before wrote. AP_IO where another run has
 * it; AP_USAGE where a file of a bundle would take the place of one that no run wrote.
 */
enum ap_status ap_bundle_begin(struct ap_writing *to);

/* Paths of what it writes, NULL after the last; NULL without a bundle. */
const char *const *ap_bundle_paths(struct ap_writing *to);

/* Reads the template of the operator strategies; *out is NULL where none is given. */
enum ap_status ap_bundle_template(struct ap_ctx *ctx, const struct ap_settings *set,
	 const struct ap_op_template **out);

/*
 * Stages the files of a plan in the folder that was begun, and has those go that runs before wrote and this
 * one does not. A warning names each file that stays though it is none of the bundle, for others wrote or
 * changed it, and each that was changed and is replaced. AP_MEANING where the template is not of this plan's
 * operators.
 */
enum ap_status ap_bundle_stage(struct ap_writing *to, const struct ap_plan *plan,
	const struct ap_op_template *op_template);

/* Is the folder meant as a bundle, whole or not? */
bool ap_bundle_is(struct ap_ctx *ctx, const char *dir);

/* Holds the files of a bundle against its manifest. AP_MEANING where that is missing, where a file is missing
 * or is another, and for files that it does not list; each with its name. */
enum ap_status ap_bundle_verify(struct ap_ctx *ctx, const struct ap_settings *set, const char *dir,
	 struct ap_bundle_manifest *out);

#endif
