/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of table/lazy.h, for its own files. */
#ifndef AP_TABLE_LAZY_PARTS_H
#define AP_TABLE_LAZY_PARTS_H

#include "base/vec.h"
#include "table/lazy.h"

#define AP_LAZY_MOVES (1 << 15)
#define AP_LAZY_PRIMES 8 /* different ones that divide a number up to 2^20 */

struct ap_map;

struct ap_lazy_known { /* a list that was asked for */
	bool known;
	struct ap_lazy_list list;
};

struct ap_lazy_entry {
	struct ap_lazy_state pub;
	uint32_t *layout; /* [nin + nout] ids */
	uint32_t strategy; /* id, AP_NONE: not yet asked for */
	struct ap_lazy_known further[AP_LAZY_PRIMES], beside;
};

struct ap_lazy_class {
	const struct ap_task *task;
	const int32_t *fixed;
	struct ap_map *counts; /* that were asked for */
	AP_VEC(uint32_t) state_of; /* state of counts, AP_NONE: no candidate */
	AP_VEC(struct ap_lazy_entry *) states;
};

struct ap_lazy_bond {
	enum ap_bond_type type;
	uint32_t cls_u, cls_v;
	uint32_t slot_u, slot_v; /* index into the states' layouts */
	uint32_t flow; /* id, of one copy in flight */
	int64_t copies; /* that are kept */
};

struct ap_lazy_remembered {
	uint32_t flow, a, b; /* a and b differ where it is in use */
	struct ap_lazy_move move;
};

struct ap_lazy {
	struct ap_ctx ctx; /* whose arena and scratch are the run's */
	struct ap_arena *arena; /* own */
	const struct ap_machine *m;
	const struct ap_step *step;
	struct ap_pricer *pricer;
	int nprime;
	int32_t prime[AP_LAZY_PRIMES]; /* of the number of devices, ascending */
	uint32_t *class_of;
	AP_VEC(struct ap_lazy_class) classes;
	AP_VEC(struct ap_lazy_link) links;
	AP_VEC(struct ap_lazy_bond) bonds;
	struct ap_map *flows, *layouts, *strategies; /* by content */
	struct ap_lazy_remembered *moves; /* [AP_LAZY_MOVES] the last that was asked for, by hash */
	struct ap_map *matches;
	AP_VEC(struct ap_lazy_list) match;
};

/* Id of the state's strategy vectors. */
uint32_t ap_lazy_strategy(struct ap_lazy *l, uint32_t cls, uint32_t state);

#endif
