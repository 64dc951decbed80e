/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the table, in parts. Private to this layer.
 *
 *   kind   distinct operator: candidates, layouts of its tensors, costs   (table_kind.c)
 *   bond   distinct edge between two kinds: cost of each pair of layouts   (table_bond.c, table_flow.c)
 *   class  distinct (kind, bonds around it): candidates left after pruning (table_prune.c)
 *   then nodes, edges and matrices of the problem                          (table.c)
 */
#ifndef AP_TABLE_TABLE_PARTS_H
#define AP_TABLE_TABLE_PARTS_H

#include "base/vec.h"
#include "table/joint.h"
#include "table/table.h"

struct ap_map;

struct ap_slot { /* an operand or result of a kind: layouts by candidate */
	uint32_t nlayout;
	const struct ap_layout *layout; /* [nlayout] distinct */
	const uint32_t *of; /* [k] layout of candidate */
};

struct ap_kind {
	const struct ap_task *task;
	uint32_t k;
	struct ap_space space;
	struct ap_slot *in, *out; /* [nin], [nout] */
	struct ap_slot strategy; /* .of: id of the strategy vectors; .layout is NULL */
	double *cost; /* [k] INFINITY: a parameter read twice would lie in two layouts */
	double *hidden; /* [k] see struct ap_table_class */
	int64_t *memory, *temporary; /* [k] */
};

struct ap_bond { /* between two kinds; row: layouts of u's slot, column: of v's */
	enum ap_bond_type type;
	uint32_t kind_u, kind_v;
	struct ap_flow flow;
	struct ap_slot u, v;
	double *cost; /* [u.nlayout * v.nlayout], quantised */
	int64_t *kept; /* the same, bytes of kept copies; NULL: all 0 */
};

struct ap_tie { /* an edge of the problem, before matrices */
	ap_id u, v; /* nodes */
	ap_id bond;
};

struct ap_making {
	struct ap_ctx *ctx;
	const struct ap_table_params *params;
	const struct ap_graph *g;
	const struct ap_machine *m;
	const struct ap_step *step;
	const struct ap_task *task;
	struct ap_worker {
		struct ap_arena *arena; /* scratch of this worker */
		struct ap_pricer *pricer;
	} *worker; /* [jobs] */
	uint32_t *kind_of; /* [nnode] */
	AP_VEC(struct ap_kind) kinds;
	AP_VEC(struct ap_bond) bonds;
	AP_VEC(struct ap_tie) links;
	const uint32_t *only; /* [nnode] candidate of the kind that a node is left; AP_NONE: all of
			       * them; NULL: for all nodes */
	uint64_t work; /* that pricing took */
	uint32_t *class_of; /* [nnode] */
	struct ap_class_list {
		struct ap_class {
			uint32_t kind;
			uint32_t k;
			const uint32_t *candidate; /* [k] index into the kind's candidates, ascending */
		} *v;
		size_t n, cap;
	} classes;
};

#define AP_PRICE_WORK 512 /* inner steps of a search that take as long as pricing a pair */
#define AP_CANDIDATE_WORK 8192 /* likewise a candidate, with its layouts */

#define AP_MAX_STRATEGY 32 /* vectors in one strategy */

/* The pricer of a worker, made when it is first asked for. */
struct ap_pricer *ap_worker_pricer(const struct ap_making *mk, int worker);

/* Threads that are worth starting for so many prices. */
int ap_making_jobs(const struct ap_making *mk, size_t work);

/* Placement of candidate c of a kind. */
void ap_kind_placement(const struct ap_making *mk, const struct ap_kind *kd, uint32_t c,
	struct ap_placement *out);

/* Strategy vectors of candidate c of a kind, unused entries zero; returns their number. */
uint32_t ap_kind_strategy(const struct ap_making *mk, const struct ap_kind *kd, uint32_t c,
	int32_t cut[AP_MAX_STRATEGY][AP_MAX_RANK]);

/* Unfinished when told to stop. */
void ap_table_kinds(struct ap_making *mk);
enum ap_status ap_table_bonds(struct ap_making *mk);
void ap_table_flows(const struct ap_making *mk); /* cost and kept of bonds along which tensors flow */
void ap_table_classes(struct ap_making *mk);

/* Fills nway and next. */
void ap_table_next(const struct ap_making *mk, struct ap_table_class *c);

#endif
