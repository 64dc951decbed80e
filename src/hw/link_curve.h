/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured times of collectives by size: what nccl-tests and hccl_test print, or a CSV, and a chip whose
 * links are as they say. Several outputs may stand one after the other in a file.  Read are the tables of
 * the two programs, and, for what these do not say, the command line in front of them ("all_gather_perf",
 * "mpirun -n 16 all_reduce_test -p 8") and the list of devices. The CSV has the columns ranks, bytes and
 * time_us, time_s or busbw_GBps, and may have collective (all_reduce, ...; else that) and servers.
 */
#ifndef AP_HW_LINK_CURVE_H
#define AP_HW_LINK_CURVE_H

#include "hw/machine.h"

struct ap_link_point {
	double bytes; /* of the whole buffer, as ap_coll_time_s() counts */
	double time_s;
};

struct ap_link_curve { /* of one collective on one group */
	enum ap_coll coll;
	int64_t ranks, servers; /* servers 0: not said */
	int64_t line; /* where it begins */
	struct { struct ap_link_point *v; size_t n, cap; } points;
};

struct ap_link_curves {
	const char *file;
	struct { struct ap_link_curve *v; size_t n, cap; } all;
};

/* Reads curves. AP_MEANING, with the place, where there is none, or a collective or its ranks cannot be told.
 * In the run arena. O(len). */
enum ap_status ap_link_curves_read(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	struct ap_link_curves *out);

/*
 * The chip with the curves, of two sizes or more, which replace those that it has of the same groups, and for
 * what was not measured with latency_s and efficiency of the levels that the curves cross, and
 * fixed_s.collective, such that the sum of relative errors of all points is least (base/fit.h). What no curve
 * shows stays as it is; each number that moves has its source in the new profile. A group lies on as many
 * servers as its curve says, else on as few as hold it. A note says how well the curves are met. AP_MEANING
 * for groups that the chip's machine cannot have. In the run arena.
 */
enum ap_status ap_link_curves_chip(struct ap_ctx *ctx, const struct ap_link_curves *curves,
	const struct ap_chip *chip, const struct ap_chip **out);

#endif
