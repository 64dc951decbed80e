/* SPDX-License-Identifier: Apache-2.0 */
/* What a link level gives to one rank. Shared by the files of this layer. */
#ifndef AP_HW_LINK_H
#define AP_HW_LINK_H

#include "hw/machine.h"

/* What a rank that talks to `members` - 1 others can send across the level, while `sharers` ranks of
 * its block do the same. */
double ap_link_rank_Bps(const struct ap_link_level *level, uint32_t members, uint32_t sharers);

#endif
