/* SPDX-License-Identifier: Apache-2.0 */
/* Axes over ranks, and the layout of their groups on the machine. */
#ifndef AP_HW_GROUP_H
#define AP_HW_GROUP_H

#include "hw/machine.h"

/* Adds an axis, disjoint from the others, keeping normal form. */
void ap_axes_add(struct ap_axes *set, struct ap_axis axis);
int64_t ap_axes_size(const struct ap_axes *set); /* ranks per group; 1 if empty */
bool ap_axes_equal(const struct ap_axes *a, const struct ap_axes *b);

/* The axes of `all` without those of `part`. */
void ap_axes_without(const struct ap_axes *all, const struct ap_axes *part, struct ap_axes *out);

/* Can ranks be numbered so that the axes of both are digits of the number? */
bool ap_axes_compatible(const struct ap_axes *a, const struct ap_axes *b);

/* Ranks of the group of `rank`, ascending; out holds ap_axes_size() entries. */
void ap_axes_group(const struct ap_axes *set, int64_t rank, int64_t *out);

/* Finds the shapes of groups. O(axes levels) on a regular machine, else O(ndev levels). In
 * arena. */
void ap_group_make(struct ap_arena *arena, const struct ap_machine *m, const struct ap_axes *axes,
	struct ap_group *out);

#endif
