/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on shapes and small constants alone is computed: Shape, and chains of Gather, Concat, Slice,
 * Cast and arithmetic behind it, as torch writes them. */
#ifndef AP_IMPORT_ONNX_FOLD_H
#define AP_IMPORT_ONNX_FOLD_H

#include "import/onnx_val.h"

/* Computes the results of the node at work. False if that cannot be done, and nothing has happened. Constants
 * have at most AP_ONNX_MOST_VALUES elements, or one number for all. O(elements * rank). */
bool ap_onnx_fold(struct ap_onnx_walk *w);

#endif
