/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a file to its other form, a dump or a model's configuration to an operator graph, a plan or
 * graph to a picture. */
#ifndef AP_API_CONVERT_H
#define AP_API_CONVERT_H

#include "api/outputs.h"

/* Converts a strategy checkpoint (or stage files, merged) to the form that the suffix of into
 * selects, or to stage files if into is a folder; a rank table to version 1.0. */
enum ap_status ap_convert(struct ap_writing *to, size_t n, const char *const *from, const char *into);

/* Writes the operator graph of a model of ONNX, of a MindSpore dump, or of a model's configuration, to
 * set->graph_out, or to standard output. */
enum ap_status ap_import_file(struct ap_writing *to, const char *path);

/* Draws a plan or a graph into set->dot_out, and writes a plan as a page to set->report; set->against:
 * an older plan. */
enum ap_status ap_render(struct ap_writing *to, const char *path);

#endif
