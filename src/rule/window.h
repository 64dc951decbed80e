/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over a dimension. */
#ifndef AP_RULE_WINDOW_H
#define AP_RULE_WINDOW_H

#include "rule/binding.h"
#include "rule/rule.h"

/* Sets windows from the attributes, and the lengths of kernel and result letters. */
bool ap_bind_windows(struct ap_binding *b);

/* Halo of part `part` of `parts`, which divides both lengths; without padding at the ends. Negative
 * if the windows do not reach the end of the part. Transposed: counts elements whose windows reach
 * into the part of the result. */
struct ap_halo ap_window_halo(const struct ap_window *w, int64_t parts, int64_t part);

#endif
