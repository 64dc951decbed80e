/* SPDX-License-Identifier: Apache-2.0 */
/* Two layouts over one device matrix and one shape (formats 5.1); a part of reshard.c. */
#ifndef AP_SHARD_RESHARD_UNIFY_H
#define AP_SHARD_RESHARD_UNIFY_H

#include "shard/layout.h"

#define AP_MAX_CHAIN 21 /* numbers up to 2^20, each dividing the next */
#define AP_MAX_SUBS 40 /* each cut by an axis of at least two ranks in one of the layouts */

/* A dimension of the unified shape. Left out is what never moves: tensor dimensions that lie alike
 * in both layouts, and of the others the innermost part, which neither cuts. */
struct ap_sub {
	int32_t size;
	int32_t in, out; /* stride of the axis that cuts it, in the running and in the final
	                    layout; 0 not cut. It names the axis, as both have one device matrix */
	uint8_t dim; /* of the tensor, that it is a part of */
	bool first; /* of the unified shape */
};
struct ap_unified {
	int n; /* outermost first within a tensor dimension, dimensions ascending */
	struct ap_sub sub[AP_MAX_SUBS];
};

/* False where the layouts are not expandable: boundaries that do not divide one another. */
bool ap_reshard_unify(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	struct ap_unified *out);

#endif
