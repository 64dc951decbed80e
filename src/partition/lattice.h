/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of a pipeline as walks: part q goes from layer a to layer b in one of its options. Every path
 * through the schedule (partition/replay.h) is a cost of walks, and bounds the objective from below; the
 * lattice keeps some of them, and finds walks for which all of them are short enough.
 *
 * Where segments share a stage's memory, an option is one that fits if the others hold as little as possible:
 * the bounds allow for more than there is, walks are checked where they are whole.
 */
#ifndef AP_PARTITION_LATTICE_H
#define AP_PARTITION_LATTICE_H

#include "partition/options.h"

enum {
	AP_COST_SEND = AP_TIMES, /* by the part, to the next one: the end of it that is the part's */
	AP_COST_SEND_BACK, /* and to the one before */
	AP_COST_RECEIVE, /* to the part, from the one before */
	AP_COST_RECEIVE_BACK, /* and from the next one */
	AP_COST_SHARE, /* of the passes over all micro-batches, by the devices of the part's stage in all of
	                  them: these shares add up to a step at most */
	AP_COST_DEVICES, /* of its stage, in the first segment */
	AP_COSTS
};

struct ap_lattice_option {
	int64_t cost[AP_COSTS]; /* ticks; devices */
	uint32_t degree;
	int32_t part;
	const struct ap_part_choice *choice;
};

struct ap_lattice_edge {
	int32_t a, b;
	uint32_t option;
};

struct ap_lattice_walk { /* a plan, whole */
	int32_t *first; /* [npart + 1] */
	uint32_t *option; /* [npart] */
};

struct ap_lattice;

/* Of the degrees from `from` to `to` - 1, which are one unless they may differ by stage. */
struct ap_lattice *ap_lattice_create(struct ap_ctx *ctx, const struct ap_partition *p, struct ap_options *c,
	struct ap_replay *replay, uint32_t from, uint32_t to);

/* The options of part q for layers a to b - 1: ids *first .. *first + n - 1; returns n. */
uint32_t ap_lattice_options(struct ap_lattice *l, int32_t q, int64_t a, int64_t b, uint32_t *first);
const struct ap_lattice_option *ap_lattice_option(const struct ap_lattice *l, uint32_t id);

/* The objective of a plan with these options, [npart]. */
int64_t ap_lattice_value(struct ap_lattice *l, const uint32_t *option);

/* By how many bytes they are too much for a stage; very many if its segments differ in degree.
 * AP_NONE: an option that holds as little as any can. */
int64_t ap_lattice_excess(struct ap_lattice *l, const uint32_t *option, int32_t stage);

/* The least largest part, and a walk of it into *out; -1: there is no walk. */
int64_t ap_lattice_even(struct ap_lattice *l, struct ap_lattice_walk *out);

/* A bound by all layers in their quickest kinds, shared out evenly. O(layers * degrees). */
int64_t ap_lattice_floor(const struct ap_lattice *l);

/* Lays down all edges with which a plan may take at most `most`. Returns false if no walk is left. */
bool ap_lattice_open(struct ap_lattice *l, int64_t most);

/* A bound of all walks: by paths of a plan with these options, and others that it finds, with some work.
 * most + 1: no walk takes as little as `most`. */
int64_t ap_lattice_bound(struct ap_lattice *l, const uint32_t *option, int64_t most, uint64_t work);

enum ap_lattice_answer { AP_WALK_FOUND, AP_WALK_NONE, AP_WALK_UNKNOWN };

/* Is there a walk that takes at most `most`? Into *out and *value. Not known if the work ends. After
 * ap_lattice_bound(). */
enum ap_lattice_answer ap_lattice_seek(struct ap_lattice *l, int64_t most, uint64_t work,
	struct ap_lattice_walk *out, int64_t *value);

uint64_t ap_lattice_work(const struct ap_lattice *l); /* so far */
bool ap_lattice_is_cut(const struct ap_lattice *l); /* options or edges are missing: only
                                                        ap_lattice_floor() is a bound */

#endif
