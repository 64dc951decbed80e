/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator rules. An operator is one row of ops.def: an einsum-like text from which everything else
 * is derived (legality, slices, FLOPs, communication, gradient exchange, dev_matrix, tensor_map,
 * memory). The notation is described in man autopar-rules(7):
 *
 *   mk,kn->mn   letters are factors, the same letter has the same length; "->" before the results
 *   x!          frozen, may not be cut          x@   looked-up: cut by masking, no part of the work
 *   *           all dimensions not otherwise named, right-aligned, numpy broadcasting
 *   [axis]      the dimensions that attribute `axis` names, in their places; [axis!] frozen
 *   [perm]      after "->*": results are the operand's dimensions reordered by `perm`
 *   [axis=-1]   the same, -1 if the attribute is missing (without "=": all dimensions);
 *   [axis=1..]  from the dimension that the attribute names to the last; [axis.]: just one
 *   [1]         after "*": length one at the named dimensions
 *   8           a length of one digit, never cut         .  a dimension of any length, never cut
 *   x^          length one is allowed too (broadcast)    (ab)  composed, outer factor first
 *   h~r         windows of length r slide over the operand's dimension, h of them: the factor is
 *               h, r is no factor but a length; attributes give the details (struct ap_window).
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
#define AP_MAX_DIM_FACTOR 6 /* in one dimension */
#define AP_MAX_OPERAND (UINT16_MAX - 1) /* limit of operands, and of results */

enum ap_op_unit {
	AP_OP_CUBE, /* matrix unit */
	AP_OP_VECTOR,
	AP_OP_MEMORY, /* only moves bytes */
	AP_OP_VIEW, /* no work: Reshape, Flatten, ExpandDims, Squeeze */
	AP_OP_LINK /* Send, Receive: no kernel, but a new tensor */
};
enum ap_reduction { AP_REDUCE_SUM, AP_REDUCE_MEAN, AP_REDUCE_MAX, AP_REDUCE_MIN, AP_REDUCE_PROD };

/* A row of ops.def. Of several rows with one name, the first whose `when` holds and whose rule
 * binds is used. Strings are never NULL. */
struct ap_op_row {
	const char *name; /* MindSpore primitive, 2.x spelling */
	const char *rule;
	const char *when; /* conditions joined by " & ": attr, !attr, attr=v|w, attr?=v (or
	                     missing), attr? (missing, or an empty list), outputs=n, given=a|b (one
	                     of these operands is present), absent=a|b (none is); "": always */
	double flops; /* forward, per point of the iteration space (without looked-up factors) */
	double backward; /* backward / forward FLOPs if all differentiable operands have
	                    gradients */
	enum ap_op_unit unit;
	const char *save; /* tensors kept for backward: letters a b c .. for operands, o p q .. for
	                     results; "a*b": each only if the other has a gradient */
	const char *grad; /* letters of operands with gradients; "*": every float operand */
	const char *types; /* element types, "operands:results"; letters in bind.c */
	const char *dev; /* order of factors in dev_matrix, if not of first appearance */
	const char *left; /* repeats go left if one of these is cut; "": never, "*": always */
	enum ap_reduction reduce; /* over cut factors that a result lacks */
	const char *legal; /* name of an extra condition (legal.c), "" if none */
	const char *strategy; /* what shard() takes if not the operands: letters as in save, "-" for
	                         an empty vector, separated by "," (OneHot: "o,-,-") */
	const char *doc; /* one line */
	const char *source; /* MindSpore's source file for the rule */
};

#define AP_OP_UNKNOWN "BatchParallel" /* its rows serve operators of unknown type */
#define AP_OP_UNCUT "StandAlone" /* for types that MindSpore never treats as batch parallel */

enum ap_attr_type {
	AP_ATTR_INT,
	AP_ATTR_FLOAT,
	AP_ATTR_BOOL,
	AP_ATTR_STRING,
	AP_ATTR_INTS, /* or one INT */
	AP_ATTR_PAIR, /* declared: INTS, or two lists of equal length; as a value: INTS,
	                 concatenated */
	AP_ATTR_ANY /* not looked at, value not kept */
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
	const char *operators; /* types separated by blanks; "" for all */
	const char *old, *now;
};

struct ap_attr_refusal {
	const char *allowed; /* the value without effect; "" if none */
	const char *reason; /* the effect of other values */
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
	AP_FACTOR_MIXED = 8, /* several operand elements enter one result element (windows, halves):
	                        it never carries the batch */
	AP_FACTOR_WHOLLY = 16, /* the executor cuts it over all devices of the stage */
	AP_FACTOR_EITHER = 32, /* by all devices, or not at all */
	AP_FACTOR_UNEVEN = 64, /* its parts have uneven work: see cost/expert_load.h */
	AP_FACTOR_BARRED = 128 /* the user forbids to cut it, and nothing else follows from that */
};

struct ap_factor {
	char letter; /* of the row; dimensions of * get A, B, .. from the left */
	uint8_t flags;
	int64_t size; /* for the whole step (all micro-batches) */
};

struct ap_dim {
	uint8_t n; /* factors in this dimension, outermost first; 0: length one or never cut */
	uint8_t factor[AP_MAX_DIM_FACTOR];
};

struct ap_operand { /* an operand or result */
	uint8_t rank;
	enum ap_dtype dtype;
	bool saved; /* kept for backward */
	bool differentiable; /* an operand that gets a gradient */
	bool silent; /* a result without collectives: it depends on no operand (fixed extents), or
	                follows from other results */
	uint32_t factors; /* mask of all factors in dim[] */
	int64_t size[AP_MAX_RANK]; /* whole extents */
	struct ap_dim dim[AP_MAX_RANK];
};

#define AP_MAX_WINDOW 3
#define AP_NO_FACTOR UINT8_MAX

/* A dimension of an operand that windows slide over (convolution, pooling); transposed: each
 * element makes a window in the result (gradient of a convolution). */
struct ap_window {
	uint8_t operand, dim;
	uint8_t factor; /* over windows; AP_NO_FACTOR if there is only one */
	bool inside; /* pad_mode valid: windows lie inside; a rest of the operand may be unused */
	bool transposed;
	int64_t size, count; /* lengths of the operand's and the result's dimension; the number of
	                        windows is count, transposed size */
	int64_t kernel, stride; /* kernel: from first to last element, including dilation */
	int64_t before, after; /* padding */
};

/* Numbers of elements that a part's windows reach into its neighbours. */
struct ap_halo {
	int64_t before, after;
};

/* A rule bound to an operator. Immutable plain data in the run arena. */
struct ap_bound {
	const struct ap_op_row *row;
	uint8_t nfactor;
	struct ap_factor factor[AP_MAX_FACTOR];
	uint8_t ndev; /* all factors in dev_matrix order */
	uint8_t dev[AP_MAX_FACTOR];
	uint32_t left; /* repeats go left if one of these factors is cut; UINT32_MAX: always */
	uint32_t dealt; /* factors whose partial sums are dealt along dimension 0 of result 0:
	                   listed last in it, but neither part of its length nor of its `factors` */
	int64_t dealt_rows; /* 0: always dealt. Else dealt only if the parts divide this many rows
	                       (dimension 0 in a micro-batch) and no factor of dealt_beside is cut;
	                       otherwise summed up (ap_rule_dealt()) */
	uint32_t dealt_beside;
	bool deal_asked; /* or dealt where the counts ask for it, by a negative count of such a factor: else
	                    as dealt_rows says, and summed up if that is 0 */
	uint32_t rounds; /* operands whose slices go round among the ranks that factor `round` is cut
	                    over, while the operator works: it sees them whole */
	uint32_t swaps; /* operands of which the parts that `round` makes are exchanged for parts of factor
	                   `heads` while the operator works (AlltoAll), and back of results like operand 0 */
	uint8_t round, heads;
	bool even; /* parts of a causally masked sequence are dealt so that each is as much work */
	double flops; /* the row's flops times the elements of a window */
	uint8_t nwindow;
	struct ap_window window[AP_MAX_WINDOW];
	uint16_t nin, nout;
	const struct ap_operand *in; /* [nin] */
	const struct ap_operand *out; /* [nout] declared results, then those kept for backward */
	const char *const *name; /* [nin] operands' names for messages; NULL if unknown */
};

/* Parts of a factor of which a vector of counts holds `count`. */
static inline int32_t ap_rule_parts(int32_t count)
{
	return count < 0 ? -count : count;
}

/* Is bit i of a mask of operands set? Operators may have more of them than a mask has bits. */
static inline bool ap_rule_holds(uint32_t mask, int i)
{
	return i < 32 && mask >> i & 1;
}

#define AP_RANK_UNKNOWN UINT8_MAX /* rank of an undeclared shape */

/* An operator as input to binding. nout 0: undeclared, take the row's first result. */
struct ap_bind_in {
	const char *type; /* canonical */
	const struct ap_attrs *attrs;
	uint16_t nin, nout;
	const struct ap_shape *in;
	const uint16_t *slot; /* [nin] the row's operand for in[i], ascending; NULL: in order */
	const struct ap_shape *declared; /* [nout] rank AP_RANK_UNKNOWN and dtype AP_DTYPE_COUNT if
	                                    undeclared; NULL: none is declared */
};

/* Why binding failed: name of a check, and a text; operand -1: the operator as a whole. */
struct ap_bind_fault {
	const char *check;
	const char *text;
	int operand;
};

/* What a legality condition refuses: this number of parts of a dimension. */
struct ap_legal_why {
	const struct ap_operand *tensor; /* in the bound rule's in or out */
	uint8_t dim;
	int64_t parts;
	const char *allowed; /* "with cut indices 1 is allowed" */
};

/* Where MindSpore's batch strategy cuts an operator without a strategy: mask[vector] has a bit for
 * each dimension of that vector to be cut. A bit for a dimension that the vector lacks means that
 * there is no valid strategy. */
enum ap_batch { /* number of parts on n devices: */
	AP_BATCH_COMMON, /* gcd of n and these dimensions; n if vectors and operands differ */
	AP_BATCH_WHOLLY, /* n, or 1 if n does not divide dimension 0 of operand 0 */
	AP_BATCH_SAMPLES, /* n, or 1 if n does not divide dimension 0 of operand 0 and result 0 */
	AP_BATCH_DATA /* n, or 1 if every device gets all data */
};

#endif
