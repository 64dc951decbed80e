/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a file, a bundle or a folder of stage files, and reports every fault. */
#ifndef AP_API_CHECK_H
#define AP_API_CHECK_H

#include "api/compare.h"

struct ap_checked { /* the kind and content of a checked file */
	const char *kind; /* "a plan"; NULL if the file has faults */
	const char *what; /* a description, "14 operators" */
};

/* Reads a file of any known kind and reports all its faults. Conditions are judged on every
 * faultless plan; *nplan counts those plans. */
void ap_check_file(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_fail_if *conditions, uint32_t *nplan, struct ap_checked *out);

#endif
