/* SPDX-License-Identifier: Apache-2.0 */
/* A forward pass while it is taken apart; shared by the files flat*.c. */
#ifndef AP_IMPORT_FLAT_PARTS_H
#define AP_IMPORT_FLAT_PARTS_H

#include <stdarg.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "import/flat.h"

enum flat_role {
	FLAT_OPERATOR,
	FLAT_PASS,
	FLAT_DROP,
	FLAT_GET,
	FLAT_TUPLE,
	FLAT_SHAPE,
	FLAT_BIND,
	FLAT_CHOOSE,
	FLAT_GRAD,
	FLAT_SLICED,
	FLAT_EARLY
};

struct ap_flat_frame { /* a call of a sub-graph */
	const struct ap_ir_func *func;
	const struct ap_flat_frame *around; /* where its free variables are; NULL: the entry's parameters */
	const struct ap_flat_value *arg; /* [nparam] */
	struct ap_flat_value *node; /* [nodes.n] what they give */
};

struct flat {
	struct ap_ctx *ctx;
	const struct ap_ir *ir;
	const struct ap_import_params *params;
	struct ap_flat *flat;
	struct ap_map *funcs, *roles; /* ids of the dump's sub-graphs; rows of plumbing.def */
	struct ap_map *param_names; /* names of parameters of the entry, whose ids are those of tensors */
	struct ap_map *places; /* names of parameters of sub-graphs */
	uint32_t *place; /* by id of places: its number among the sub-graph's */
	struct ap_map *labels; /* "3/label", 3 being the sub-graph; NULL: not asked for yet */
	AP_VEC(const struct ap_ir_node *) labelled; /* by id of labels; NULL: there are several */
	struct ap_map *assumed;
	AP_VEC(struct ap_flat_value) assumptions; /* by id of assumed */
	const struct ap_ir_node *grad, *grad_call; /* J of the forward graph, and its call; NULL none */
	const bool **wanted; /* by sub-graph: nodes that lead to that call; NULL all */
	bool done; /* it was called */
	bool ended; /* a piece: at what of it is not understood */
	struct ap_flat_value result; /* what it gave */
	bool *running; /* by sub-graph */
	size_t made, most; /* bytes of the dump as if every call were written out; see ap_flat_charge() */
	unsigned depth;
};

/* Reports a fault at a line; returns st. A piece ends there, with a warning, if anything came before. */
enum ap_status ap_flat_fault(struct flat *e, int64_t line, enum ap_status st, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* flat.c: reports a node without its line of types. */
enum ap_status ap_flat_no_types(struct flat *e, const struct ap_ir_node *n);

/* flat_forward.c: checks that the dump is whole; names of sub-graphs, parameters as tensors. */
enum ap_status ap_flat_prepare(struct flat *e);

/* flat_forward.c: finds the forward graph and runs through it, to e->result. */
enum ap_status ap_flat_forward(struct flat *e);

/* The tensor of an entry's parameter, nothing where it is a monad. */
struct ap_flat_value ap_flat_param(const struct flat *e, ap_id param);

enum flat_role ap_flat_role(const struct flat *e, const char *prim);

/* flat_value.c: what an operand of node n stands for. type: as the node's types say; NULL not told. */
enum ap_status ap_flat_resolve(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out);

/*
 * Counts what grows beyond the text: sub-graphs at each of their calls, arguments bound once more, names
 * made of names. AP_LIMIT, at the line, where it is more than a multiple of the dump: all that follows
 * takes memory and time in proportion to it.
 */
enum ap_status ap_flat_charge(struct flat *e, int64_t line, size_t bytes);

/* Numbers and tensors in a value, tuples counted. */
uint32_t ap_flat_size(const struct ap_flat_value *v);

/* flat_value.c: a tuple of these, a constant where they are. AP_LIMIT where it is too large or deep. */
enum ap_status ap_flat_tuple(struct flat *e, int64_t line, uint32_t n,
	const struct ap_flat_value *part, struct ap_flat_value *out);

/* flat_value.c: a tensor for what a partial dump does not say. */
enum ap_status ap_flat_assume(struct flat *e, int64_t line, const char *name,
	const struct ap_ir_type *type, struct ap_flat_value *out);

/* flat.c: the operators of a sub-graph in place of its call. */
enum ap_status ap_flat_call(struct flat *e, int64_t line, ap_id func,
	const struct ap_flat_frame *around, uint32_t n, const struct ap_flat_value *arg,
	struct ap_flat_value *out);

#endif
