/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over a model of ONNX: its nodes become operators of a graph one by one, with the shapes of what they
 * make. What depends on constants and shapes alone is computed and is no part of the graph.
 */
#ifndef AP_IMPORT_ONNX_WALK_H
#define AP_IMPORT_ONNX_WALK_H

#include "import/onnx_val.h"

/* Walks over all nodes. What is at fault is told, of all nodes. */
enum ap_status ap_onnx_walk(struct ap_onnx_walk *w);

#endif
