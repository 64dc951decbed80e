/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The template of an operator-strategy file: one that MindSpore saved, whose names MindSpore will ask
 * for. Read and checked as far as that needs no plan, and its names matched with a graph's operators.
 */
#ifndef AP_CKPT_OP_TEMPLATE_H
#define AP_CKPT_OP_TEMPLATE_H

#include "plan/plan.h"

/* The maps of a file, names of operators to what is said of them, in the order in which they are written:
 * that of their keys, as in MindSpore's own files. */
enum ap_op_map {
	AP_OP_LAYOUT,
	AP_OP_NESTED, /* layouts of tuples of tensors */
	AP_OP_OUT_LAYOUT,
	AP_OP_OUT_NESTED,
	AP_OP_OUT_STRATEGY,
	AP_OP_STRATEGY,
	AP_OP_MAP_COUNT
};
extern const char *const ap_op_map_key[AP_OP_MAP_COUNT]; /* "parallel_strategy_item" */

/* Does MindSpore ask that each operator be in this map or another such one? The others are of results. */
static inline bool ap_op_map_is_asked(enum ap_op_map map)
{
	return map == AP_OP_STRATEGY || map == AP_OP_LAYOUT || map == AP_OP_NESTED;
}

struct ap_op_template {
	const struct ap_json *doc;
	int64_t current_stage;
	const struct ap_jv *map[AP_OP_MAP_COUNT]; /* NULL: the file has no such map */
	const struct ap_map *ids; /* of the names in the maps that are asked: dense */
	uint32_t n; /* names */
	struct ap_op_name {
		const struct ap_jv *at[AP_OP_MAP_COUNT]; /* what each map says of it; NULL: nothing */
	} *name;
};

/* Reads one. AP_SYNTAX, AP_MEANING after messages on the faults of all operators. */
enum ap_status ap_op_template_read(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_op_template **out);

/* A name by its id. */
const char *ap_op_name_at(const struct ap_op_template *t, ap_id id);

/*
 * Which operators of a graph the names of a template mean. Scope and primitive have to be the same, but
 * for "recompute_". MindSpore gives the numbers out when a name is first asked for, so they differ between
 * runs: where a scope and primitive has as many operators on both sides, they are taken in the order
 * of their numbers; elsewhere by the same number only.
 */
struct ap_op_match {
	ap_id *node; /* [template's n] AP_NONE: no operator of the plan */
	bool *found; /* [graph->nnode] operators that a name was found for */
	uint32_t renumbered; /* pairs whose numbers differ */
};
void ap_op_match_make(struct ap_ctx *ctx, const struct ap_op_template *t, const struct ap_graph *g,
	struct ap_op_match *out);

#define AP_OP_DATASET "_VirtualDataset"
#define AP_OP_RECOMPUTED "recompute_" /* before the scopes of cells that recompute() was called of */

/* Is the name that of an operator in a cell that is recomputed? */
bool ap_op_says_recomputed(const char *name);

/* Is "MatMul" the primitive of a full name, "Default/fc1-Dense/MatMul-op12"? */
bool ap_op_prim_is(const char *name, const char *prim);

#endif
