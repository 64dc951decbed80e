/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of the cost model: ranks in nested blocks joined by link levels, and a mesh of prime
 * axes over the ranks. Made from a topology and a chip; immutable. */
#ifndef AP_HW_MACHINE_H
#define AP_HW_MACHINE_H

#include "hw/chip.h"
#include "hw/topo.h"

#define AP_MAX_AXES 24 /* prime factors of 2^20 and spare */

/* A communication axis over ranks in row-major order: coordinate = rank / stride % size. Groups of
 * a set of axes consist of ranks that differ only in these coordinates. Normal form: strides
 * descending, disjoint, adjacent axes merged ({8,2},{4,2} -> {4,4}), sizes > 1. */
struct ap_axis {
	int32_t stride, size;
};
struct ap_axes {
	int n;
	struct ap_axis axis[AP_MAX_AXES];
};

struct ap_prime_axis {
	int32_t size, stride; /* outermost first */
	int level; /* innermost link level that contains each group of the axis */
};

struct ap_machine {
	const struct ap_chip *chip;
	const struct ap_topo *topo;
	uint32_t ndev; /* devices per pipeline stage, arranged by dev_matrix; of the largest one */
	uint32_t nstage; /* stage s has ranks [s * ndev, (s + 1) * ndev), if they are equal */
	uint32_t total; /* of all stages; more of ap_machine_stage() */
	const struct ap_machine_part {
		uint32_t first; /* rank */
		uint32_t like; /* the first stage with as many devices, that lie as these */
		const struct ap_machine *machine; /* of it: one for all stages that lie alike */
	} *part; /* [nstage] of stages with unequal numbers of devices; NULL: they are equal */
	int nlevel; /* link levels in use, inner to outer */
	struct ap_link_level level[AP_MAX_LEVELS];
	const uint32_t *block[AP_MAX_LEVELS]; /* [total] block of a rank, numbered by lowest rank */
	uint32_t nblock[AP_MAX_LEVELS];
	uint32_t ranks[AP_MAX_LEVELS]; /* most ranks in a block */
	bool regular; /* all blocks of a level hold equally many consecutive ranks, and all
			stages lie on blocks alike */
	int naxis;
	struct ap_prime_axis axis[AP_MAX_AXES];
};

/* Combines topology and chip. Drops levels whose blocks hold one rank each or are no larger than
 * inner ones. A server's devices are in inner blocks by device_id / span. Clusters are a level even
 * if the chip has no link between them. O(ndev levels). */
enum ap_status ap_machine_make(struct ap_ctx *ctx, const struct ap_topo *topo,
	const struct ap_chip *chip, const struct ap_machine **out);

/* The same machine split into nstage stages of equal size; nstage must divide its ranks. Groups of
 * axes then exist in every stage; if stages lie differently, the slowest decides. */
void ap_machine_staged(struct ap_ctx *ctx, const struct ap_machine *m, uint32_t nstage,
	const struct ap_machine **out);

/* The same machine split into nstage stages with devices[stage] ranks each, one behind the other; they
 * add up to its ranks. Groups of a stage are priced by the links of its own ranks, which it shares with
 * the stages beside it. What ap_machine_staged() makes, if all are equal. O(ranks levels). */
void ap_machine_divided(struct ap_ctx *ctx, const struct ap_machine *m, uint32_t nstage,
	const uint32_t *devices, const struct ap_machine **out);

/* Another machine with as many ranks, split into stages as `like` is. */
void ap_machine_split_as(struct ap_ctx *ctx, const struct ap_machine *m, const struct ap_machine *like,
	const struct ap_machine **out);

/* The machine on whose devices a stage runs: m itself where stages are equal. */
static inline const struct ap_machine *ap_machine_at(const struct ap_machine *m, int32_t stage)
{
	return m->part ? m->part[stage].machine : m;
}

/* The first rank of a stage. */
static inline uint32_t ap_machine_first(const struct ap_machine *m, int32_t stage)
{
	return m->part ? m->part[stage].first : (uint32_t)stage * m->ndev;
}

/* One of nstage stages as a machine of its own, on whose devices a network runs that has no pipeline.
 * Groups cost what they do in the pipeline: the slowest stage decides. */
void ap_machine_stage(struct ap_ctx *ctx, const struct ap_machine *m, uint32_t nstage,
	const struct ap_machine **out);

/* Layout of groups on the machine. Unaligned groups differ: all distinct shapes are kept, and the
 * slowest decides. */
struct ap_group_shape {
	uint32_t fan[AP_MAX_LEVELS]; /* most sub-blocks (ranks at level 0) of one block of the
			level that hold members of a group; >= 1 */
	uint32_t few[AP_MAX_LEVELS]; /* the smallest such number above 1; 1 if there is none */
	uint32_t members[AP_MAX_LEVELS]; /* fewest members in a sub-block that has any (1 at
			level 0): ports or cards that carry the group's traffic */
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
