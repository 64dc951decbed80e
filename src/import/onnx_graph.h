/* SPDX-License-Identifier: Apache-2.0 */
/* What a walk over a model of ONNX found becomes a graph that is trained. */
#ifndef AP_IMPORT_ONNX_GRAPH_H
#define AP_IMPORT_ONNX_GRAPH_H

#include "import/onnx_val.h"

/* Puts a loss behind the first output, unless that is a scalar; it is then the walk's only output. */
enum ap_status ap_onnx_add_loss(struct ap_onnx_walk *w);

/* The graph of the operators that are left, with names and cells. AP_MEANING if nothing is left. */
enum ap_status ap_onnx_graph_make(struct ap_onnx_walk *w, struct ap_import *out);

#endif
