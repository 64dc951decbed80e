/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a search engine on a problem file. */
#ifndef AP_API_SOLVE_H
#define AP_API_SOLVE_H

#include "api/outputs.h"

/* Solves the problem of a file by the engine that the settings name, and writes what they ask for; the
 * solution goes to standard output, or is *rest, where a file takes that or there is no choice. AP_LIMIT
 * without a message where there was no time to find one. */
enum ap_status ap_solve(struct ap_writing *to, const char *path, const char **rest);

#endif
