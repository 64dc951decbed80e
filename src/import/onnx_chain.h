/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of operators that are one operator: norms, activations, attention, as exporters take them apart. */
#ifndef AP_IMPORT_ONNX_CHAIN_H
#define AP_IMPORT_ONNX_CHAIN_H

#include "import/onnx_val.h"

/* Puts one operator in the place of each chain; a chain of which another operator reads a step stays.
 * Counts by type go to the sink as a note. flash: also attention, as FlashAttentionScore. O(operators *
 * rows). */
void ap_onnx_join_chains(struct ap_onnx_walk *w, bool flash);

#endif
