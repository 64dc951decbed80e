/* SPDX-License-Identifier: Apache-2.0 */
/* Two layouts over one device matrix and one shape (formats 5.1); a part of reshard.c. */
#ifndef AP_SHARD_RESHARD_UNIFY_H
#define AP_SHARD_RESHARD_UNIFY_H

#include "shard/reshard.h"

#define AP_MAX_LOG 20 /* a machine has at most 2^20 ranks */
#define AP_MAX_CHAIN (AP_MAX_LOG + 1) /* numbers up to 2^20, each dividing the next */
#define AP_MAX_SUBS 40 /* each cut by an axis of at least two ranks in one of the layouts */

/* A dimension of the unified shape. Left out is what never moves: tensor dimensions that lie alike
 * in both layouts, and of the others the innermost part, which neither cuts. */
struct ap_sub {
	int32_t size;
	uint32_t in, out; /* the axis that cuts it in the first and in the second layout, as a bit; 0 not
	                     cut. Both have one device matrix, so an axis has one bit */
	uint32_t dim; /* of the tensor, that it is a part of */
};
struct ap_unified {
	int n; /* outermost first within a tensor dimension, dimensions ascending */
	struct ap_sub sub[AP_MAX_SUBS];
	uint32_t in, out; /* all axes of the sub-dimensions */
	const int32_t *stride; /* of axes, by number of their bit */
	int32_t own_stride[AP_MAX_CHAIN]; /* where stride may point to */
};

/* False where the layouts are not expandable: boundaries that do not divide one another. */
bool ap_reshard_unify(const struct ap_reshard_end *a, const struct ap_reshard_end *b,
	struct ap_unified *out);

#endif
