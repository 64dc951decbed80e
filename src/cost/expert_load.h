/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much more the busiest rank has to do than the mean where experts get uneven numbers of tokens.
 *
 * The imbalance is that of experts: tokens of the one with most of them / the mean, 1 + v. A rank of p has
 * E / p of E experts, dealt whatever their loads are: the mean of so many out of E without replacement
 * spreads sqrt((p - 1) / (E - 1)) as much as one of them. So the rank has
 *
 *   1 + v sqrt((p - 1) / (E - 1))
 *
 * of the mean: 1 + v where it has one expert, 1 where it has them all, whose tokens do not depend on the
 * router; and never more than all tokens, p.
 */
#ifndef AP_COST_EXPERT_LOAD_H
#define AP_COST_EXPERT_LOAD_H

#include <stdint.h>

/* imbalance: at least 1, or less for none; parts: of the experts. */
double ap_expert_load(double imbalance, int64_t experts, int64_t parts);

#endif
