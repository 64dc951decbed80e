/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a search engine on a problem file. */
#ifndef AP_API_SOLVE_H
#define AP_API_SOLVE_H

#include "api/outputs.h"

/* Solves a problem file with the engine of the settings and writes the outputs. The solution goes
 * to standard output, or to *rest if a file takes that or there is no choice. AP_LIMIT without a
 * message if time ran out before a choice was found. */
enum ap_status ap_solve(struct ap_writing *to, const char *path, const char **rest);

#endif
