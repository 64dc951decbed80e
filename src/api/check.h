/* SPDX-License-Identifier: Apache-2.0 */
/* One file, a bundle or the stage files of a folder, read for whatever is wrong with it. */
#ifndef AP_API_CHECK_H
#define AP_API_CHECK_H

#include "api/compare.h"

struct ap_checked { /* what a file is */
	const char *kind; /* "a plan"; NULL: something is wrong with it */
	const char *what; /* about it, "14 operators" */
};

/* Reads a file of any kind that is known, and adds messages of all that is wrong with it. Conditions are
 * judged on every plan in which nothing is; *nplan counts these. */
void ap_check_file(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_fail_if *conditions, uint32_t *nplan, struct ap_checked *out);

#endif
