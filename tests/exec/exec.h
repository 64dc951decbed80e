/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual-rank executor: operators and whole plans carried out on small tensors, one heap per
 * rank, in arithmetic where equality is exact. Sharded must equal unsharded, bit for bit.
 *
 * Values are integers modulo the prime p = 2^61 - 1. Division is multiplication by the inverse; every
 * non-linear function is one fixed polynomial (ex_fn_*), whose derivative is the formal one. Order
 * (maximum, sort, comparison) is that of the representatives 0..p-1, which is as exact and as
 * associative; where ties matter, values are drawn from 0..7 (EX_DRAW_SMALL).
 *
 * The meaning of an operator is a kernel, written from its definition by name; the rule, which is
 * what is tested, is never asked for meaning. A kernel records what it computes on a tape, and the
 * vector-Jacobian product is the tape read backwards: it cannot disagree with the kernel.
 *
 * What runs on the ranks is what the planner says: layouts, groups, kinds, order and reductions of
 * collectives come from struct ex_oper and struct ex_program, which are filled from the rule
 * (ap_comms_derive), from a plan, or from the files that were written.
 */
#ifndef AP_TEST_EXEC_EXEC_H
#define AP_TEST_EXEC_EXEC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cost/cost.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "shard/layout.h"
#include "shard/reshard.h"
#include "shard/space.h"

#define EX_MAX_DEV 64
#define EX_MAX_IN 24 /* operands of one sample or operator */
#define EX_MAX_OUT 16
#define EX_MAX_COMM 64

/* ---- field.c: integers modulo p ------------------------------------------------------------- */

#define EX_P ((UINT64_C(1) << 61) - 1)

/* x below 2^63 to 0..p-1. */
static inline uint64_t ex_fold(uint64_t x)
{
	x = (x & EX_P) + (x >> 61);
	return x >= EX_P ? x - EX_P : x;
}

static inline uint64_t ex_add(uint64_t a, uint64_t b)
{
	return ex_fold(a + b);
}

static inline uint64_t ex_sub(uint64_t a, uint64_t b)
{
	return ex_fold(a + EX_P - b);
}

static inline uint64_t ex_mul(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	__extension__ unsigned __int128 all = (unsigned __int128)a * b;

	return ex_fold(((uint64_t)all & EX_P) + (uint64_t)(all >> 61));
#else
	/* In halves of 31 bits: 2^62 is 2, and m 2^31 is (m >> 30) + (m mod 2^30) 2^31. */
	const uint64_t low = (UINT64_C(1) << 31) - 1, mid30 = (UINT64_C(1) << 30) - 1;
	uint64_t a1 = a >> 31, a0 = a & low, b1 = b >> 31, b0 = b & low;
	uint64_t mid = a1 * b0 + a0 * b1;

	return ex_fold(ex_fold(2 * a1 * b1) + (mid >> 30) + ex_fold((mid & mid30) << 31) +
		ex_fold(a0 * b0));
#endif
}

uint64_t ex_pow(uint64_t a, uint64_t n);
uint64_t ex_inverse(uint64_t a); /* a != 0, which is asserted */
uint64_t ex_of_int(int64_t v); /* negative: p - |v| */
int64_t ex_to_int(uint64_t v); /* the representative nearest to 0 */
uint64_t ex_hash(uint64_t seed, uint64_t i); /* a number below p; fixed for ever */
uint64_t ex_hash_text(const char *s);

/* Random numbers, the same everywhere (xorshift64*); AP_SEED, printed by ex_seed(). */
#define EX_USUAL_SEED 20240229
uint64_t ex_seed(const char *test);
uint64_t ex_next(uint64_t *state);
uint32_t ex_below(uint64_t *state, uint32_t n);
uint64_t ex_cases(uint64_t otherwise); /* AP_CASES */

/* ---- box.c: tensors, whole and in slices ---------------------------------------------------- */

struct ex_box { /* where a slice lies in its tensor */
	uint8_t rank;
	enum ap_dtype dtype;
	int64_t size[AP_MAX_RANK];
	int64_t first[AP_MAX_RANK]; /* may be negative or reach too far where padding is meant */
	int64_t whole[AP_MAX_RANK];
};

struct ex_tensor {
	struct ex_box box;
	uint64_t *v; /* row-major, below p */
};

struct ex_shards { /* one tensor on all ranks */
	int64_t ndev;
	struct ex_tensor *of; /* [ndev] */
};

/* In the header, as what follows: inner loops call them for each element. */
static inline int64_t ex_count(const struct ex_box *b)
{
	int64_t n = 1;

	for (int d = 0; d < b->rank; d++)
		n *= b->size[d];
	return n;
}

/* Flat index in the slice. */
static inline int64_t ex_at(const struct ex_box *b, const int64_t *at)
{
	int64_t i = 0;

	for (int d = 0; d < b->rank; d++)
		i = i * b->size[d] + at[d];
	return i;
}

/* Next index in row-major order; false, and all zeroes, after the last. */
static inline bool ex_step(const struct ex_box *b, int64_t *at)
{
	for (int d = b->rank; d-- > 0;) {
		if (++at[d] < b->size[d])
			return true;
		at[d] = 0;
	}
	return false;
}

struct ex_box ex_box_whole(const struct ap_shape *s);
/* Slice of rank r under l, worked out from cut and stride. */
struct ex_box ex_box_slice(const struct ex_box *whole, const struct ap_layout *l, int64_t rank);
struct ex_tensor ex_tensor_new(struct ap_arena *a, const struct ex_box *b); /* zeroes */
void ex_cut_out(const struct ex_tensor *from, struct ex_tensor *slice); /* elements that both have */
void ex_add_overlap(const struct ex_tensor *from, struct ex_tensor *sum); /* the same, added */
struct ex_shards ex_shards_new(struct ap_arena *a, int64_t ndev); /* without boxes and values yet */
struct ex_shards ex_cut(struct ap_arena *a, const struct ex_tensor *whole, const struct ap_layout *l,
	int64_t ndev);
struct ex_shards ex_like(struct ap_arena *a, const struct ex_shards *s); /* zeroes, same boxes */
void ex_accumulate(struct ex_shards *sum, const struct ex_shards *x);

/* Layout as dev_matrix and tensor_map say it: naxes[d] axis numbers from the right per dimension,
 * outermost first (several: a list in the plan file). False where the axes are not one run. */
bool ex_layout_of_map(int ndev_axes, const int64_t *dev_matrix, uint8_t rank, const uint8_t *naxes,
	const int64_t (*axes)[AP_MAX_DIM_FACTOR], struct ap_layout *out);

/* A random split of whole over ranks: the sum over the holders of each slice is the slice. */
struct ex_shards ex_deal_partial(struct ap_arena *a, const struct ex_tensor *whole,
	const struct ap_layout *l, int64_t ndev, uint64_t *rng);

/* Likewise over the ranks of a group only: groups that hold the same slice have the same split. */
struct ex_shards ex_deal_over(struct ap_arena *a, const struct ex_tensor *whole,
	const struct ap_layout *l, const struct ap_axes *axes, int64_t ndev, uint64_t *rng);

enum ex_holds { /* how a sharded tensor must relate to the whole */
	EX_EVERY, /* each rank has its slice */
	EX_SUM /* the holders of a slice have parts of it that add up (gradients, mindspore) */
};
/* NULL, or what differs, in words ("rank 3, element [1, 0]: 17, want 21"). */
const char *ex_differs(struct ap_ctx *ctx, const struct ex_shards *got, const struct ex_tensor *want,
	const struct ap_layout *l, enum ex_holds holds);

/* ---- tape.c: what a kernel computed --------------------------------------------------------- */

typedef uint32_t ex_id; /* a number on the tape; 0 is the constant 0 */

struct ex_node { /* its gradient goes to up[0] times d[0], up[1] times d[1], up[2] as it is */
	uint64_t v, d[2];
	ex_id up[3];
};

struct ex_tape {
	struct ap_arena *arena;
	struct ex_node *node;
	uint64_t *grad; /* [n] after ex_tape_begin_back() */
	uint32_t n, cap;
	uint64_t divisor, inverse; /* of the last division: many in a row have one divisor */
};

void ex_tape_init(struct ex_tape *t, struct ap_arena *a);
void ex_tape_grow(struct ex_tape *t);

static inline ex_id ex_push(struct ex_tape *t, struct ex_node n)
{
	if (t->n == t->cap)
		ex_tape_grow(t);
	t->node[t->n] = n;
	return t->n++;
}

static inline ex_id ex_leaf(struct ex_tape *t, uint64_t v)
{
	return ex_push(t, (struct ex_node){.v = v});
}

/* sum + a b */
static inline ex_id ex_mad(struct ex_tape *t, ex_id sum, ex_id a, ex_id b)
{
	uint64_t x = t->node[a].v, y = t->node[b].v;

	return ex_push(t, (struct ex_node){ex_add(t->node[sum].v, ex_mul(x, y)), {y, x}, {a, b, sum}});
}

static inline uint64_t ex_value_of(const struct ex_tape *t, ex_id a)
{
	return t->node[a].v;
}

/* Adds a gradient. */
static inline void ex_tape_seed(struct ex_tape *t, ex_id a, uint64_t g)
{
	t->grad[a] = ex_add(t->grad[a], g);
}

ex_id ex_plus(struct ex_tape *t, ex_id a, ex_id b);
ex_id ex_minus(struct ex_tape *t, ex_id a, ex_id b);
ex_id ex_times(struct ex_tape *t, ex_id a, ex_id b);
ex_id ex_scale(struct ex_tape *t, ex_id a, uint64_t c);
ex_id ex_over(struct ex_tape *t, ex_id a, ex_id b); /* b != 0 mod p; 0 gives 0 */
ex_id ex_fn1(struct ex_tape *t, const char *name, ex_id a); /* the fixed cubic of that name */
ex_id ex_fn2(struct ex_tape *t, const char *name, ex_id a, ex_id b); /* degree 2 in each of two */
bool ex_less(const struct ex_tape *t, ex_id a, ex_id b); /* by representative */

void ex_tape_begin_back(struct ex_tape *t);
void ex_tape_back(struct ex_tape *t, uint32_t from, uint32_t to); /* sweeps nodes to-1 .. from */
uint64_t ex_tape_grad(const struct ex_tape *t, ex_id a);

/* ---- world.c: what all executions share ----------------------------------------------------- */

struct ex_fault;

struct ex_world {
	struct ap_ctx *ctx; /* values live in ctx->scratch */
	struct ap_arena *tapes; /* tapes live here, to be released when they were read; NULL: in ctx->scratch */
	int64_t ndev;
	enum ap_executor executor;
	bool gradient_fp32_sync; /* of the step: 16-bit gradients travel as float32 */
	const struct ex_fault *fault; /* NULL: none; asked at the hooks */
	bool faulted; /* the fault found something to break */
	uint64_t rng;
	uint64_t ncollective, bytes; /* executed, of all ranks */
	const char *trouble; /* first thing that cannot be executed, NULL none: counts as a difference */
};

/* Notes trouble; the execution goes on with zeroes. */
void ex_trouble(struct ex_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The ranks of rank's group, ascending, as the fault leaves them; returns their number. */
int64_t ex_group(struct ex_world *w, const struct ap_axes *axes, int64_t rank,
	int64_t ranks[EX_MAX_DEV]);
/* Has the buffer of a collective the bytes that the planner charges for? Trouble where it has not. */
void ex_check_bytes(struct ex_world *w, const struct ap_comm *c, int64_t elements, enum ap_dtype t);

/* ---- coll.c: collectives over exactly the groups that are said ------------------------------- */

/* In place, in the order of ranks in the group. MEAN: a sum, scaled by the caller. */
void ex_all_reduce(struct ex_world *w, const struct ap_axes *axes, enum ap_reduction how,
	struct ex_shards *s);
/* Slices of a group put together along dim, first to last rank; and its adjoint. */
void ex_all_gather(struct ex_world *w, const struct ap_axes *axes, int dim, struct ex_shards *s);
/* Part i of dim goes to member i; what comes is put together along concat. */
void ex_all_to_all(struct ex_world *w, const struct ap_axes *axes, int dim, int concat, struct ex_shards *s);
void ex_reduce_scatter(struct ex_world *w, const struct ap_axes *axes, int dim, struct ex_shards *s);
/* Ranks get before/after[rank] >= 0 rows along dim from the neighbours in their group; boxes grow. The
 * adjoint adds the rows to where they came from; boxes shrink. Returns the most rows' elements that a
 * rank sends or receives. */
int64_t ex_exchange(struct ex_world *w, const struct ap_axes *axes, int dim, const int64_t *before,
	const int64_t *after, struct ex_shards *s);
int64_t ex_exchange_back(struct ex_world *w, const struct ap_axes *axes, int dim,
	const int64_t *before, const int64_t *after, struct ex_shards *s);

/* steps.c: a redistribution to layout b; returns the elements that a rank gets from others (not those of
 * sums). Steps whose numbers of elements are not those of the slices are trouble. */
int64_t ex_move(struct ex_world *w, const struct ap_reshard_step *steps, int n,
	const struct ap_layout *b, struct ex_shards *s);
/* The adjoint of steps that came from layout a: parts that add up become parts that add up. */
void ex_move_back(struct ex_world *w, const struct ap_reshard_step *steps, int n,
	const struct ap_layout *a, struct ex_shards *g);

#endif
