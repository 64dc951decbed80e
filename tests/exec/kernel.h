/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of operators, and random ones. See exec.h. */
#ifndef AP_TEST_EXEC_KERNEL_H
#define AP_TEST_EXEC_KERNEL_H

#include "exec.h"

/* ---- kernels.c, job.c, kern_*.c: the meaning of operators ------------------------------------------ */

struct ex_value { /* a tensor on the tape */
	struct ex_box box;
	ex_id *id; /* row-major */
};

/*
 * One operator on one rank: local operands in, extents of the local results given, attributes those
 * of the whole. What MindSpore rewrites for a rank (shape of a Reshape, end of a slice, multiples,
 * offset of a look-up, mask of attention) follows from the boxes: first, size and whole. Nothing
 * else of the whole may be used, and a dimension whose whole is needed is used as it is here: a wrong
 * cut must give a wrong result.
 */
struct ex_job {
	struct ex_tape *tape;
	struct ap_arena *arena;
	const char *type;
	const struct ap_attrs *attrs;
	uint16_t nin, nout;
	const uint16_t *slot; /* [nin] operand of the definition that in[i] is */
	const struct ex_value *in;
	struct ex_value *out;
	const int64_t *kernel_pad; /* [AP_MAX_WINDOW], of windows, padding before the local box: window i
	                            * of the local result begins at local row i * stride - kernel_pad
	                            * (transposed: row i of the local operand lands there in the local
	                            * result); rows outside the box are padding */
	int64_t share; /* ranks whose parts a statistic of stage 0 is added up of, as the planner's
	                * collective says; 1 where it has none, and unsharded */
	int stage; /* 0, or 1 when the results of stage 0 are reduced and back in out[] */
};

/* False: these extents make no sense for the operator (a broken rule): a difference. */
typedef bool ex_kernel_fn(const struct ex_job *j);

/* Operand of the definition, NULL where it was left out. */
const struct ex_value *ex_in(const struct ex_job *j, unsigned slot);
static inline ex_id ex_get(const struct ex_value *t, const int64_t *at)
{
	return t->id[ex_at(&t->box, at)];
}

static inline void ex_put(struct ex_value *t, const int64_t *at, ex_id v)
{
	t->id[ex_at(&t->box, at)] = v;
}

/* at, right-aligned to a tensor of lower rank whose dimensions of length one repeat. */
static inline ex_id ex_get_broadcast(const struct ex_value *t, const int64_t *at, int rank)
{
	int64_t i = 0;

	for (int d = 0; d < t->box.rank; d++)
		i = i * t->box.size[d] + (t->box.size[d] == 1 ? 0 : at[rank - t->box.rank + d]);
	return t->id[i];
}

/* Does it repeat to exactly these extents? */
bool ex_broadcasts(const struct ex_value *t, const struct ex_box *to);
/* The dimension that an attribute (INT, or the first of INTS) names; -1 where there is no such. */
int ex_axis(const struct ex_job *j, const char *name, int64_t otherwise, int rank);
/* The dimensions that it names, a bit each; false where one does not exist. */
bool ex_axes(const struct ex_job *j, const char *name, int rank, bool none_is_all, uint32_t *mask);

enum ex_draw { /* values of an operand */
	EX_DRAW_FIELD, /* 1..p-1 */
	EX_DRAW_SMALL, /* 0..7: ties occur; gradients are then not compared */
	EX_DRAW_DISTINCT, /* a permutation of 1..n: no ties */
	EX_DRAW_BOOL,
	EX_DRAW_INDEX /* 0..limit-1 */
};

struct ex_sample;
typedef void ex_make_fn(struct ex_sample *s);

/* Values 0..limit-1 that operand `slot` may hold in a graph; 0: anything. */
typedef int64_t ex_limit_fn(const struct ap_node *n, unsigned slot);

struct ex_kernel { /* a row per operator type */
	const char *type;
	ex_kernel_fn *forward;
	ex_make_fn *make; /* draws shapes, attributes and what operands hold */
	ex_limit_fn *limit; /* of integer operands; NULL: none */
	int stages; /* 2: results named in `inner` are statistics that stage 1 needs */
	uint32_t inner; /* mask of results */
	uint32_t no_grad; /* mask of operand slots without a gradient by definition */
	const char *no_grad_if; /* attribute that, set, leaves no operand a gradient; NULL: none */
	uint32_t opaque; /* mask of results whose values are not compared (softmax_out) */
	bool ordered; /* the result depends on order: drawn with and without ties */
};

/* All rows of all families, in the order of the files. NULL past the end. */
const struct ex_kernel *ex_kernel_at(size_t i);
const struct ex_kernel *ex_kernel_find(const char *type);

/* The rows of kern_elem.c, kern_product.c, ..; each ends with a row without a type. */
extern const struct ex_kernel ex_kernels_elem[], ex_kernels_binary[], ex_kernels_product[],
	ex_kernels_dot[],
	ex_kernels_reduce[], ex_kernels_running[],
	ex_kernels_norm[], ex_kernels_window[], ex_kernels_move[], ex_kernels_slice[],
	ex_kernels_index[], ex_kernels_scatter[], ex_kernels_choose[], ex_kernels_attn[],
	ex_kernels_infer[], ex_kernels_moe[], ex_kernels_loss[], ex_kernels_spectrum[], ex_kernels_resize[],
	ex_kernels_quant[], ex_kernels_misc[], ex_kernels_whole[],
	ex_kernels_fill[];
extern const struct ex_kernel ex_kernels_gather[], ex_kernels_drop[], ex_kernels_boxes[], ex_kernels_cache[];

/* ---- sample.c, make_*.c: random operators --------------------------------------------------- */

struct ex_sample {
	uint64_t rng;
	const char *type;
	uint16_t nin, nout; /* nout 0: the row's own */
	uint8_t next_slot;
	struct ap_shape in[EX_MAX_IN];
	uint16_t slot[EX_MAX_IN]; /* ascending */
	enum ex_draw draw[EX_MAX_IN];
	int64_t limit[EX_MAX_IN]; /* of INDEX */
	struct ap_shape declared[EX_MAX_OUT]; /* rank AP_RANK_UNKNOWN: not declared */
	struct ap_attrs attrs;
	struct ap_attr attr[24];
	int64_t list[24][2 * AP_MAX_RANK];
	bool ties;
};

void ex_sample_begin(struct ex_sample *s, const char *type, uint64_t seed);
/* Lengths that 2, 3, 4, 6 and 12 divide often. */
int64_t ex_length(struct ex_sample *s);
/* The next operand; returns its index in in[], draw[] and limit[]. */
unsigned ex_add_in(struct ex_sample *s, const char *dtype, uint8_t rank, const int64_t *size);
void ex_skip_in(struct ex_sample *s); /* the next slot is left out: a missing optional operand */
void ex_add_int(struct ex_sample *s, const char *name, int64_t v);
void ex_add_bool(struct ex_sample *s, const char *name, bool v);
void ex_add_float(struct ex_sample *s, const char *name, double v);
void ex_add_text(struct ex_sample *s, const char *name, const char *v);
void ex_add_list(struct ex_sample *s, const char *name, uint32_t n, const int64_t *v);
const char *ex_sample_text(struct ap_ctx *ctx, const struct ex_sample *s); /* to repeat it by */

#endif
