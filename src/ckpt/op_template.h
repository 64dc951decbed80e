/* SPDX-License-Identifier: Apache-2.0 */
/* The template of an operator-strategy file: one saved by MindSpore, with the names that it will
 * look for. Read and checked as far as possible without a plan; names are matched with a graph's
 * operators. */
#ifndef AP_CKPT_OP_TEMPLATE_H
#define AP_CKPT_OP_TEMPLATE_H

#include "plan/plan.h"

/* Maps of a file from operator names to values, in writing order: sorted by key, as in MindSpore's
 * files. */
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

/* Must each operator be in this map or another such one? The others are of results. */
static inline bool ap_op_map_is_asked(enum ap_op_map map)
{
	return map == AP_OP_STRATEGY || map == AP_OP_LAYOUT || map == AP_OP_NESTED;
}

struct ap_op_template {
	const struct ap_json *doc;
	int64_t current_stage;
	const struct ap_jv *map[AP_OP_MAP_COUNT]; /* NULL: missing in the file */
	const struct ap_map *ids; /* ids of names in required maps: dense */
	uint32_t n; /* names */
	struct ap_op_name {
		const struct ap_jv *at[AP_OP_MAP_COUNT]; /* value in each map, or NULL */
	} *name;
};

/* Reads a template. Returns AP_SYNTAX, or AP_MEANING after reporting faults of all operators. */
enum ap_status ap_op_template_read(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_op_template **out);

/* A name by its id. */
const char *ap_op_name_at(const struct ap_op_template *t, ap_id id);

/* Matches names of a template with operators of a graph. Scope and primitive must be equal,
 * ignoring "recompute_". MindSpore assigns numbers when a name is first requested, so they differ
 * between runs: if a scope and primitive has equally many operators on both sides, they are paired
 * in order of numbers; else only by equal number. */
struct ap_op_match {
	ap_id *node; /* [t->n] AP_NONE: no operator of the graph */
	bool *found; /* [graph->nnode] operators with a name */
	uint32_t renumbered; /* pairs whose numbers differ */
};
void ap_op_match_make(struct ap_ctx *ctx, const struct ap_op_template *t, const struct ap_graph *g,
	struct ap_op_match *out);

#define AP_OP_DATASET "_VirtualDataset"
#define AP_OP_RECOMPUTED "recompute_" /* prefix of scopes of cells that called recompute() */

/* Is the name that of an operator in a recomputed cell? */
bool ap_op_says_recomputed(const char *name);

/* Is prim the primitive of a full name ("MatMul" of "Default/fc1-Dense/MatMul-op12")? */
bool ap_op_prim_is(const char *name, const char *prim);

#endif
