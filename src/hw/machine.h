/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as the cost model sees it: ranks in nested blocks joined by link levels, and a mesh of
 * prime axes over the ranks. Made from a topology and a chip; immutable.
 */
#ifndef AP_HW_MACHINE_H
#define AP_HW_MACHINE_H

#include "hw/chip.h"
#include "hw/topo.h"

#define AP_MAX_AXES 24 /* prime factors of 2^20 and spare */

/*
 * A communication axis over ranks in row-major order: coordinate = rank / stride % size. A set of
 * axes names for each rank the group of ranks that differ from it only in these coordinates.
 * Normal form: strides descending, disjoint, adjacent axes merged ({8,2},{4,2} -> {4,4}), sizes > 1.
 */
struct ap_axis {
	int32_t stride, size;
};
struct ap_axes {
	int n;
	struct ap_axis axis[AP_MAX_AXES];
};

struct ap_prime_axis {
	int32_t size, stride; /* outermost first */
	int level; /* innermost link level that the axis stays inside of */
};

struct ap_machine {
	const struct ap_chip *chip;
	const struct ap_topo *topo;
	uint32_t ndev; /* devices of one pipeline stage: what dev_matrix is about */
	uint32_t nstage; /* stage s has ranks [s * ndev, (s + 1) * ndev) */
	uint32_t total; /* nstage * ndev */
	int nlevel; /* link levels really in use, inner to outer */
	struct ap_link_level level[AP_MAX_LEVELS];
	const uint32_t *block[AP_MAX_LEVELS]; /* [total] block of a rank at this level, numbered by
	                                         lowest rank */
	uint32_t nblock[AP_MAX_LEVELS];
	uint32_t ranks[AP_MAX_LEVELS]; /* most ranks that a block of this level holds */
	bool regular; /* every block at each level holds the same number of consecutive ranks, and every
	               * stage lies on the blocks alike */
	int naxis;
	struct ap_prime_axis axis[AP_MAX_AXES];
};

/* Joins topology and chip. Levels whose blocks hold one rank each, or that no block leaves, drop out.
 * Devices of a server fall into a chip's inner blocks by device_id / span. Clusters are a level of
 * their own, also where the chip names no link between them. O(ndev levels). */
enum ap_status ap_machine_make(struct ap_ctx *ctx, const struct ap_topo *topo,
	const struct ap_chip *chip, const struct ap_machine **out);

/* The same machine, its ranks dealt to nstage stages of equal size, which must divide them. Groups of
 * axes are then those of every stage; where the stages lie differently, the slowest decides. */
void ap_machine_staged(struct ap_ctx *ctx, const struct ap_machine *m, uint32_t nstage,
	const struct ap_machine **out);

/*
 * How the groups of an axes set lie on the machine. Unaligned groups differ from one another: all
 * distinct shapes are kept and the slowest decides.
 */
struct ap_group_shape {
	uint32_t fan[AP_MAX_LEVELS]; /* largest number of a level's sub-blocks (ranks at level 0) that a
	                                group has members in, inside one block of that level; >= 1 */
	uint32_t few[AP_MAX_LEVELS]; /* the smallest such number above 1; 1 where no block has one */
	uint32_t members[AP_MAX_LEVELS]; /* fewest members in one of the level's sub-blocks that has any
	                                    (1 at level 0): the ports or cards that carry the group's
	                                    traffic across the level */
};
struct ap_group {
	struct ap_axes axes;
	int64_t size;
	int nshape;
	const struct ap_group_shape *shape;
};

/* Collectives, a row each in coll.def: name, volume and steps, adjoint. */
enum ap_coll {
#define COLL(id, ...) AP_COLL_##id,
#include "hw/coll.def"
#undef COLL
	AP_COLL_COUNT
};

#endif
