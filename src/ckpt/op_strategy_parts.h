/* SPDX-License-Identifier: Apache-2.0 */
/* What writer, reader and matching of operator-strategy files share. Private to ckpt/op_strategy*.c. */
#ifndef AP_CKPT_OP_STRATEGY_PARTS_H
#define AP_CKPT_OP_STRATEGY_PARTS_H

#include "ckpt/op_strategy.h"

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
const char *ap_op_map_key(enum ap_op_map map); /* "parallel_strategy_item" */

/* Is it one of those of which MindSpore asks that each operator be in one? The others are of results. */
static inline bool ap_op_map_is_asked(enum ap_op_map map)
{
	return map == AP_OP_STRATEGY || map == AP_OP_LAYOUT || map == AP_OP_NESTED;
}

struct ap_op_template {
	const struct ap_json *doc;
	int64_t current_stage;
	const struct ap_jv *map[AP_OP_MAP_COUNT]; /* NULL: the file has no such map */
	const struct ap_map *ids; /* of the names in the maps that are asked: dense */
	uint32_t n; /* so many names */
	struct ap_op_name {
		const struct ap_jv *at[AP_OP_MAP_COUNT]; /* what each map says of it; NULL: nothing */
	} *name;
};

/* A name by its id. */
const char *ap_op_name_at(const struct ap_op_template *t, ap_id id);

/*
 * Who stands behind the names of a template. Scope and primitive have to be the same, but for
 * "recompute_". The numbers are given out when a name is first asked for, so that they differ between
 * runs: where as many operators of a scope and primitive are on both sides, they are taken in the order
 * of their numbers; elsewhere by the same number only.
 */
struct ap_op_match {
	const ap_id *node; /* [template's n] AP_NONE: no operator of the plan */
	const bool *found; /* [graph->nnode] operators that a name was found for */
	uint32_t renumbered; /* pairs whose numbers differ */
};
void ap_op_match_make(struct ap_ctx *ctx, const struct ap_op_template *t, const struct ap_graph *g,
	struct ap_op_match *out);

/* Does the template's value of such an operator stay: of Reshape, of which any will do? */
bool ap_op_is_kept(const struct ap_node *n);

/* Is this what hands the graph's inputs to the devices, as far as its value tells? */
bool ap_op_is_dataset(struct ap_ctx *ctx, const struct ap_op_template *t, ap_id id,
	const struct ap_plan *p);

/* Has a strategy no vectors, as one has that stands beside layouts? */
bool ap_op_says_nothing(const struct ap_jv *value);

/* The strategy vectors of an operator, or of what hands the inputs of the graph to the devices. */
struct ap_op_cuts {
	uint32_t n;
	const uint8_t *rank;
	const int32_t (*cut)[AP_MAX_RANK];
};

/* Both live in scratch. */
struct ap_op_cuts ap_op_cuts_of_node(struct ap_ctx *ctx, const struct ap_plan *p, ap_id node);
struct ap_op_cuts ap_op_cuts_of_inputs(struct ap_ctx *ctx, const struct ap_plan *p);

struct ap_op_said { /* what is taken over from a template */
	uint32_t nout; /* results that a map of results speaks of, from the first on */
	int64_t stage; /* of a strategy: as MindSpore has it, that of the rank that saves, mostly 0 for all */
};

/*
 * What the plan says of an operator, or of AP_NONE, the inputs, in the form of this map: vectors, or on the
 * operator's dev_matrix layouts of its operands or results. Layouts of the inputs are on one dev_matrix
 * wherever one can tell them all. Not of nested maps.
 */
void ap_op_write_value(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p, ap_id node,
	enum ap_op_map map, struct ap_op_said said);

/* The maps of a file whose names a template has. */
void ap_op_fill(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p,
	const struct ap_op_template *t);

/* Can no strategy say how the inputs arrive? One that does has its repeats on the left: ranks side by
 * side have different parts. */
bool ap_op_inputs_need_layouts(const struct ap_plan *p);

/* Does MindSpore ask for a strategy of this operator? */
bool ap_op_is_asked(const struct ap_node *n);

#define AP_OP_DATASET "_VirtualDataset"
#define AP_OP_RECOMPUTED "recompute_" /* before the scopes of cells that recompute() was called of */

/* The cells of which a plan calls it, in scratch; is a name of an operator in one? */
const struct ap_map *ap_op_recomputed(struct ap_ctx *ctx, const struct ap_plan *p);
bool ap_op_says_recomputed(const char *name);

/* The parts of a full name, "recompute_" left out: of "Default/fc1-Dense/MatMul-op12" all before "-op12",
 * "MatMul", and 12; -1 where there is no number. */
struct ap_op_spelling {
	const char *base, *prim;
	size_t nbase, nprim;
	int64_t number;
};
struct ap_op_spelling ap_op_spell(const char *name);
bool ap_op_prim_is(const char *name, const char *prim);

#endif
