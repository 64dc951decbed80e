/* SPDX-License-Identifier: Apache-2.0 */
/* --bundle DIR: the folder of files that an executor needs, staged with all other outputs. */
#ifndef AP_CLI_BUNDLE_H
#define AP_CLI_BUNDLE_H

#include "base/ctx.h"

struct ap_op_template;
struct ap_plan;
struct ap_run;

/* Before any work: AP_USAGE where DIR is no folder, or one of its files is there but DIR holds no bundle;
 * AP_IO where it cannot be written to. AP_USAGE for a template without a bundle. */
enum ap_status ap_bundle_check(struct ap_run *run);

/* Path i of what it writes, for the checks of outputs; NULL past the end, and without a bundle. */
const char *ap_bundle_path(struct ap_run *run, size_t i);

/* Reads the template of the operator strategies; *out is NULL where none is given. */
enum ap_status ap_bundle_template(struct ap_run *run, const struct ap_op_template **out);

/* Stages the files of a plan, and has those go that an older bundle had and this one has not. AP_MEANING
 * where the template is not of this plan's operators. */
enum ap_status ap_bundle_stage(struct ap_run *run, const struct ap_plan *plan,
	const struct ap_op_template *op_template);

#endif
