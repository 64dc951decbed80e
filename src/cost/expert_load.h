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

struct ap_expert_choice { /* of a token */
	int64_t experts, active; /* that it chooses, of how many */
	int64_t groups, groups_active; /* all of them in so many of the groups; groups 0: anywhere */
};

/*
 * In how many of n equal parts of the experts a token has at least one of its own, on average, where all
 * choices are as likely. Of the N experts of the a groups that it may choose in, E / n are in a part, or
 * fewer. Chosen without replacement, none of k experts is in a part that has x of N with probability
 *
 *   C(N - x, k) / C(N, k) = prod_(i < k) (1 - x / (N - i))
 *
 * A part of w = groups / n groups has x = j E / groups of them, with j of the a groups in it:
 * C(w, j) C(groups - w, a - j) / C(groups, a). A part of a group has x = E / n, if its group is one of the a.
 * Where neither divides the other, groups say nothing.
 */
double ap_expert_parts(const struct ap_expert_choice *c, int64_t parts);

#endif
