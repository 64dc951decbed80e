/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a plan: why it is as it is, and what else it could be. */
#ifndef AP_API_EXPLAIN_H
#define AP_API_EXPLAIN_H

#include "api/outputs.h"

struct ap_planning;

/*
 * Writes onto text, in the form that the settings name, what the plan in file path, or in a bundle, is
 * made of, and what its alternatives are. name: an operator or a pattern of operators (graph/glob.h), a
 * tensor, "stage:N", the name of a collective or of a setting; NULL: the plan as a whole. The graph is
 * that of --graph, else the file that the plan names, beside it or here, or the bundled model, if that
 * is the same; likewise the rank table, for which table (NULL: none) stands in. AP_USAGE if there is no
 * graph, or nothing of that name.
 */
enum ap_status ap_explain(struct ap_writing *to, const char *path, const char *name, const char *table,
	struct ap_str *text);

/* The same of a plan that was made in this run, or in this context of the library. */
enum ap_status ap_explain_made(struct ap_writing *to, const struct ap_planning *made, const char *name,
	struct ap_str *text);

#endif
