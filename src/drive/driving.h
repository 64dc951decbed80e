/* SPDX-License-Identifier: Apache-2.0 */
/* A search on its way. Private to drive*.c. */
#ifndef AP_DRIVE_DRIVING_H
#define AP_DRIVE_DRIVING_H

#include "drive/choose.h"
#include "drive/recursive.h"
#include "drive/rival.h"

#define AP_RECURSION "recursive_programming"

struct driving {
	struct ap_ctx *ctx;
	const struct ap_request *rq;
	const int32_t *const *pinned; /* by the graph and the request; NULL: nothing is */
	const int32_t *const *fixed; /* those, and what the route fixes */
	const struct ap_plan *free; /* where a route decides: what is best where it does not */
	bool recursion_only;
	struct ap_recursive recursion;
	struct ap_hints hints;
	struct ap_chosen chosen; /* by the engine; table NULL: it did not run */
	struct ap_rivals rivals;
	const struct ap_plan *best; /* of those, taken as what its checkpoint stands for */
	struct ap_plan *out;
	bool finished; /* that is, and verified */
	bool refused; /* memory ran out in a part of the search */
	double lower_bound_s;
	uint64_t work;
	uint64_t steps; /* all that it took, in inner steps of a search */
};

/*
 * Parts of a search: each adds plans to d->rivals, or nothing; they come in this order. AP_INFEASIBLE, with a
 * message, from one that has proven that nothing fits.
 */
enum ap_status ap_find_by_recursion(struct driving *d); /* kept in d->recursion: the engine starts from it */
enum ap_status ap_find_by_engine(struct driving *d);
enum ap_status ap_find_data_parallel(struct driving *d); /* within d->fixed */
enum ap_status ap_find_grids(struct driving *d);
enum ap_status ap_find_recursion(struct driving *d); /* its plan */
enum ap_status ap_find_proof(struct driving *d); /* what is not exact proves nothing: an exact engine */
enum ap_status ap_find_lean(struct driving *d); /* where nothing fits and nothing is proven */

/* Where the search has none. */
enum ap_status ap_find_bound(struct driving *d);

const char *ap_driving_mode(const struct driving *d);

/*
 * Runs a part. Where memory runs out in it, what was found before stays, d->refused is set, and the status is
 * AP_OK.
 */
enum ap_status ap_driving_part(struct driving *d, enum ap_status (*part)(struct driving *));

#endif
