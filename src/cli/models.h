/* SPDX-License-Identifier: Apache-2.0 */
/* The bundled models: operator graphs that are installed with the program. */
#ifndef AP_CLI_MODELS_H
#define AP_CLI_MODELS_H

#include <stdbool.h>

struct ap_jw;
struct ap_run;
struct ap_str;

/* A line for each model of the folder, by name, or all about the one called name; objects onto w, where that
 * is given. False where there is none of that name, or the folder or a file in it cannot be read, which is
 * then reported. */
bool ap_models_list(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w);

#endif
