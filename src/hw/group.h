/* SPDX-License-Identifier: Apache-2.0 */
/* Axes over the ranks, and how the groups along them lie on the machine. */
#ifndef AP_HW_GROUP_H
#define AP_HW_GROUP_H

#include "hw/machine.h"

/* Adds an axis, keeping normal form. Axes given must be disjoint. */
void ap_axes_add(struct ap_axes *set, struct ap_axis axis);
int64_t ap_axes_size(const struct ap_axes *set); /* ranks of a group; 1 when empty */
bool ap_axes_equal(const struct ap_axes *a, const struct ap_axes *b);

/* Ranks of the group that `rank` is in, ascending; out holds ap_axes_size() entries. */
void ap_axes_group(const struct ap_axes *set, int64_t rank, int64_t *out);

/* O(axes levels) on a regular machine, else O(ndev levels). Kept in arena. */
void ap_group_make(struct ap_arena *arena, const struct ap_machine *m, const struct ap_axes *axes,
	struct ap_group *out);

#endif
