/* SPDX-License-Identifier: Apache-2.0 */
/* Which counts of parts a space may take. */
#ifndef AP_SHARD_LEGAL_H
#define AP_SHARD_LEGAL_H

#include "shard/space.h"

/* Are these counts legal? The same rules, for one vector, written independently of the
 * enumeration; on false *why is one line of text (in ctx's arena; why may be NULL). */
bool ap_space_legal(struct ap_ctx *ctx, const struct ap_bound *b, const int32_t *count,
	int64_t ndev, const struct ap_step *step, const char **why);

#endif
