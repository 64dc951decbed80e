/* SPDX-License-Identifier: Apache-2.0 */
/* What writer, reader and matching of operator-strategy files share. Private to emit/op_strategy*.c. */
#ifndef AP_EMIT_OP_STRATEGY_PARTS_H
#define AP_EMIT_OP_STRATEGY_PARTS_H

#include "emit/op_strategy.h"

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
	const struct ap_jv *map[AP_OP_MAP_COUNT]; /* NULL: the file has no such map */
	const struct ap_map *names; /* of the maps that are asked: their ids are dense */
	uint32_t n; /* so many names */
	const struct ap_jv *const *at; /* [n] what is said first of a name */
	int64_t current_stage;
};

/* Who stands behind the names of a template. */
struct ap_op_match {
	const ap_id *node; /* [template's n] AP_NONE: no operator of the plan */
	const bool *found; /* [graph->nnode] operators that a name was found for */
	uint32_t renumbered; /* found by their place among those of one scope and type */
};
void ap_op_match_make(struct ap_ctx *ctx, const struct ap_op_template *t, const struct ap_graph *g,
	struct ap_op_match *out);

/* The strategy vectors of an operator, or of what hands the inputs of the graph to the devices. */
struct ap_op_cuts {
	uint32_t n;
	const uint8_t *rank;
	const int32_t (*cut)[AP_MAX_RANK];
};

/* Both live in scratch. */
struct ap_op_cuts ap_op_cuts_of_node(struct ap_ctx *ctx, const struct ap_plan *p, ap_id node);
struct ap_op_cuts ap_op_cuts_of_inputs(struct ap_ctx *ctx, const struct ap_plan *p);

/* {"parallel_strategy": .., "stage": ..} */
void ap_op_write_strategy(struct ap_jw *w, const struct ap_op_cuts *c, int64_t stage);

/* {"0": {..}, ..}: layouts of an operator's operands or results, [n], on its dev_matrix; those of the
 * graph's inputs, on one dev_matrix wherever one can tell them all. */
void ap_op_write_layouts(struct ap_jw *w, const struct ap_placement *place, const struct ap_layout *layout,
	uint32_t n);
void ap_op_write_input_layouts(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p);

/* Can no strategy say how the inputs arrive? One that does has its repeats on the left: ranks side by
 * side have different parts. */
bool ap_op_inputs_need_layouts(const struct ap_plan *p);

/* Does MindSpore ask for a strategy of this operator? */
bool ap_op_is_asked(const struct ap_node *n);

#define AP_OP_DATASET "_VirtualDataset"

/* The primitive of a full name, "MatMul" of ".../fc1-Dense/MatMul-op12", and what is before its number;
 * *number -1 where there is none. Of a name without "-op" all of it is scope. */
struct ap_op_spelling {
	const char *scope; /* without "recompute_" at its beginning */
	size_t nscope; /* with the primitive */
	const char *prim;
	size_t nprim;
	int64_t number;
};
struct ap_op_spelling ap_op_spell(const char *name);
bool ap_op_prim_is(const char *name, const char *prim);

#endif
