/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator rules. An operator is one row of ops.def: an einsum-like text from which everything else
 * is derived (legality, slices, FLOPs, communication, gradient exchange, dev_matrix, tensor_map,
 * memory). The notation is described in man autopar-rules(7):
 *
 *   mk,kn->mn   letters are factors, the same letter has the same length; "->" before the results
 *   x!          frozen, may not be cut          x@   looked-up: cut by masking, no part of the work
 *   *           all dimensions not otherwise named, right-aligned, numpy broadcasting
 *   [axis]      the dimensions that attribute `axis` names, where it names them; [axis!] frozen
 *   [perm]      after "->*": results are the operand's dimensions reordered by `perm`
 *   [axis=-1]   the same, -1 where the attribute is missing (without "=": all dimensions);
 *   [axis=1..]  from the dimension that the attribute names to the last; [axis.]: just one
 *   [1]         after "*": length one at the named dimensions
 *   8           a length of one digit, never cut         .  a dimension of any length, never cut
 *   x^          length one is allowed too (broadcast)    (ab)  composed, outer factor first
 *   h~r         windows of length r slide over the operand's dimension, h of them: the factor is
 *               h, r is no factor but a length; attributes say how they lie (struct ap_window).
 *               Of a result: windows of length r lie over it, one for each of h
 *   ?           operand that is never cut, any shape      ()  a scalar
 *   ;           optional operands follow; results that follow from those before it
 *   : ab=name   at the end: the product of factors a and b is the value of attribute `name`
 *   =name       rule made by the expander `name` from shapes and attributes (expand.h)
 *
 * A row is parsed once and bound to an operator's shapes and attributes: struct ap_bound.
 */
#ifndef AP_RULE_RULE_H
#define AP_RULE_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/dtype.h"

#define AP_MAX_RANK 8 /* of a tensor */
#define AP_MAX_FACTOR 16 /* of an operator */
#define AP_MAX_DIM_FACTOR 6 /* composed into one dimension */
#define AP_MAX_OPERAND (UINT16_MAX - 1) /* operands, and results, of an operator */

enum ap_op_unit {
	AP_OP_CUBE, /* matrix unit */
	AP_OP_VECTOR,
	AP_OP_MEMORY, /* moves bytes only */
	AP_OP_VIEW, /* neither computes nor moves: Reshape, Flatten, ExpandDims, Squeeze */
	AP_OP_LINK /* Send, Receive: no kernel either, but the result is another tensor */
};
enum ap_reduction { AP_REDUCE_SUM, AP_REDUCE_MEAN, AP_REDUCE_MAX, AP_REDUCE_MIN, AP_REDUCE_PROD };

/* A row of ops.def. Several rows may bear one name: the first whose `when` holds and whose rule
 * binds is taken. Strings are never NULL. */
struct ap_op_row {
	const char *name; /* MindSpore primitive, 2.x spelling */
	const char *rule;
	const char *when; /* conditions joined by " & ": attr, !attr, attr=v|w, attr?=v (or missing),
			   * attr? (missing, or an empty list), outputs=n, given=a|b (one of
			   * these operands is there), absent=a|b (none is); "" always */
	double flops; /* forward, per point of the iteration space (looked-up factors left out) */
	double backward; /* backward FLOPs / forward FLOPs when every differentiable operand needs one */
	enum ap_op_unit unit;
	const char *save; /* tensors kept for backward: operand letters a b c .., results o p q ..; "a*b":
			   * each only where the other has a gradient */
	const char *grad; /* operands that gradients flow into, letters; "*": every float operand */
	const char *types; /* element types, "operands:results"; letters in bind.c */
	const char *dev; /* dev_matrix order of factor letters where it is not first appearance */
	const char *left; /* repeats go left when one of these factors is cut; "" never; "*" always */
	enum ap_reduction reduce; /* over cut factors that a result lacks */
	const char *legal; /* named extra condition (legal.c), "" none */
	const char *strategy; /* what shard() takes, where it is not the operands: letters as in save,
			       * "-" an empty vector, joined by "," (OneHot: "o,-,-") */
	const char *doc; /* one line */
	const char *source; /* file of MindSpore the rule follows */
};

#define AP_OP_UNKNOWN "BatchParallel" /* whose rows an operator of unknown type may be bound to */
#define AP_OP_UNCUT "StandAlone" /* those of types that MindSpore never takes for batch parallel */

enum ap_attr_type {
	AP_ATTR_INT,
	AP_ATTR_FLOAT,
	AP_ATTR_BOOL,
	AP_ATTR_STRING,
	AP_ATTR_INTS, /* or one INT */
	AP_ATTR_PAIR, /* as declared: INTS, or two lists of as many; as a value: INTS, one behind
		       * the other */
	AP_ATTR_ANY /* whatever it is, the value is not kept */
};

struct ap_attr {
	const char *name;
	enum ap_attr_type type;
	int64_t i; /* INT, BOOL */
	double f; /* FLOAT, and INT as double */
	const char *s; /* STRING */
	const int64_t *list; /* INTS */
	uint32_t n; /* of list */
};
struct ap_attrs {
	uint32_t n;
	const struct ap_attr *v;
};

struct ap_attr_alias {
	const char *operators; /* types parted by blanks; "" all */
	const char *old, *now;
};

struct ap_attr_refusal {
	const char *allowed; /* the value that changes nothing; "" none */
	const char *reason; /* what another one does */
};

struct ap_shape {
	uint8_t rank;
	enum ap_dtype dtype;
	int64_t dim[AP_MAX_RANK];
};

enum {
	AP_FACTOR_FROZEN = 1,
	AP_FACTOR_LOOKUP = 2,
	AP_FACTOR_BATCH = 4,
	AP_FACTOR_MIXED = 8, /* several of the operand's elements enter one of the result's (windows,
			      * halves): it never carries the batch */
	AP_FACTOR_WHOLLY = 16, /* the executor cuts it by all devices of the stage */
	AP_FACTOR_EITHER = 32 /* or so, or not at all */
};

struct ap_factor {
	char letter; /* of the row; dimensions of * get upper-case letters A, B, .. from the left */
	uint8_t flags;
	int64_t size; /* of the whole step (all micro-batches) */
};

struct ap_dim {
	uint8_t n; /* factors composed into this dimension, outer first; 0: length one or never cut */
	uint8_t factor[AP_MAX_DIM_FACTOR];
};

struct ap_operand { /* operand or result */
	uint8_t rank;
	enum ap_dtype dtype;
	bool saved; /* kept for backward */
	bool differentiable; /* operand that a gradient flows into (operands only) */
	bool silent; /* result that brings no collective: no operand enters it (fixed extents), or
	              * it follows from other results */
	uint32_t factors; /* mask of all factors in dim[] */
	int64_t size[AP_MAX_RANK]; /* whole extents */
	struct ap_dim dim[AP_MAX_RANK];
};

#define AP_MAX_WINDOW 3
#define AP_NO_FACTOR UINT8_MAX

/* A dimension of an operand that windows slide over (convolution, pooling); transposed: that makes
 * windows in the result (gradient of a convolution), an element each. */
struct ap_window {
	uint8_t operand, dim;
	uint8_t factor; /* the number of windows; AP_NO_FACTOR where there is only one */
	bool inside; /* pad_mode valid: windows lie inside, a rest of the operand may be left out */
	bool transposed;
	int64_t size, count; /* lengths of the dimension and of the result's; the latter, transposed
	                      * the former, is the number of windows */
	int64_t kernel, stride; /* kernel: from first to last element, dilation applied */
	int64_t before, after; /* padding */
};

/* Elements of the neighbours that a part's windows reach into. */
struct ap_halo {
	int64_t before, after;
};

/* A rule bound to one operator. Immutable, plain data; in the run arena. */
struct ap_bound {
	const struct ap_op_row *row;
	uint8_t nfactor;
	struct ap_factor factor[AP_MAX_FACTOR];
	uint8_t ndev; /* factors in dev_matrix order (all of them, each once) */
	uint8_t dev[AP_MAX_FACTOR];
	uint32_t left; /* repeats go left when one of these factors is cut; UINT32_MAX: always */
	uint32_t dealt; /* factors whose partial sums are dealt along dimension 0 of result 0: named
	                 * last in it, though no part of its length, and not in its `factors` */
	int64_t dealt_rows; /* 0: they always are. Else only where the parts divide so many rows, those of
	                     * dimension 0 in a micro-batch, and no factor of dealt_beside is cut: they are
	                     * summed up elsewhere (ap_rule_dealt()) */
	uint32_t dealt_beside;
	double flops; /* row's flops, times the elements of a window */
	uint8_t nwindow;
	struct ap_window window[AP_MAX_WINDOW];
	uint16_t nin, nout;
	const struct ap_operand *in; /* [nin] */
	const struct ap_operand *out; /* [nout]: the declared ones, then those kept for backward */
	const char *const *name; /* [nin] the operands' names, for messages; NULL: not known */
};

#define AP_RANK_UNKNOWN UINT8_MAX /* rank of a shape that was not declared */

/* What binding needs to know of an operator. nout 0: not declared, take the row's first result. */
struct ap_bind_in {
	const char *type; /* canonical */
	const struct ap_attrs *attrs;
	uint16_t nin, nout;
	const struct ap_shape *in;
	const uint16_t *slot; /* [nin] operand of the row that in[i] is, ascending; NULL: in order */
	const struct ap_shape *declared; /* [nout]; rank AP_RANK_UNKNOWN and dtype AP_DTYPE_COUNT
					  * where not declared; NULL: none is */
};

/* Why binding failed: a named check and a text; operand -1: the operator as a whole. */
struct ap_bind_fault {
	const char *check;
	const char *text;
	int operand;
};

/* What a condition refuses: so many parts of a dimension. */
struct ap_legal_why {
	const struct ap_operand *tensor; /* of the bound's in or out */
	uint8_t dim;
	int64_t parts;
	const char *allowed; /* "with cut indices 1 is allowed" */
};

/*
 * Where MindSpore's batch strategy cuts an operator that has no strategy: mask[vector] has a bit for
 * each dimension of that vector which gets the number of parts, and may have one where the vector has
 * no such dimension: that is then no strategy.
 */
enum ap_batch { /* how many parts these are, of n devices: */
	AP_BATCH_COMMON, /* what divides n and all these dimensions; n where vectors and operands differ */
	AP_BATCH_WHOLLY, /* n, or 1 where n does not divide dimension 0 of operand 0 */
	AP_BATCH_SAMPLES, /* n, or 1 where n does not divide dimension 0 of operand 0 and of result 0 */
	AP_BATCH_DATA /* n, or 1 where the data comes whole to each device */
};

#endif
