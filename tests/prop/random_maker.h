/* SPDX-License-Identifier: Apache-2.0 */
/* A random graph under way, for the files that make its operators. */
#ifndef RANDOM_MAKER_H
#define RANDOM_MAKER_H

#include "random_graph.h"
#include "unit.h"

enum { MAX_TENSORS = 128, MAX_OPS = 24, RANK = 4 };

#define NONE UINT32_MAX

struct tensor {
	char type; /* f: float32, h: float16, i: int32 */
	bool parameter; /* or constant */
	int rank;
	int64_t dim[RANK];
	uint32_t uses;
};

struct maker {
	struct ap_ctx *ctx;
	uint64_t *seed;
	int64_t batch, wide;
	uint32_t base; /* tensors before it are of another part */
	uint32_t ntensor, nop;
	struct tensor tensor[MAX_TENSORS];
	const char *op[MAX_OPS];
	struct ap_str inputs, parameters, constants;
};

uint32_t maker_below(struct maker *m, uint64_t n);
bool maker_one_in(struct maker *m, uint32_t n);
int64_t maker_small_length(struct maker *m);

uint32_t maker_add_tensor(struct maker *m, char type, int rank, const int64_t *dim);
uint32_t maker_add_like(struct maker *m, uint32_t x);
uint32_t maker_add_input(struct maker *m, char type, int rank, const int64_t *dim);

/* Results are ids from `first` on; some with their shape, which is then checked when loaded. */
bool maker_add_op(struct maker *m, const char *type, const char *attrs, const uint32_t *in, int nin,
	uint32_t first);

/* A tensor of this part, the young ones more likely; NONE when none was met. */
uint32_t maker_pick(struct maker *m, bool real, int lo, int hi);

/* A tensor of this shape, 0 standing for any length: one that is there, or a new parameter. */
uint32_t maker_operand(struct maker *m, char type, int rank, const int64_t *dim);

/* Operators of images and what goes with them; false where no operand was found. */
bool random_conv(struct maker *m);
bool random_pool(struct maker *m);
bool random_batch_norm(struct maker *m);
bool random_rms_norm(struct maker *m);
bool random_sparse_loss(struct maker *m);

/* Movements. */
bool random_concat(struct maker *m);
bool random_joined(struct maker *m);
bool random_split(struct maker *m);
bool random_slice(struct maker *m);
bool random_new_dim(struct maker *m);
bool random_repeat(struct maker *m);
bool random_choice(struct maker *m);

#endif
