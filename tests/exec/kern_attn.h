/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of any layout: what training and inference have in common. */
#ifndef AP_TEST_EXEC_KERN_ATTN_H
#define AP_TEST_EXEC_KERN_ATTN_H

#include "kern_parts.h"

/* A tensor of heads: a letter per dimension, B batch, S or T sequence, N head, D of a head, H both. */
struct ex_heads {
	const struct ex_value *t;
	const char *layout;
	int64_t depth;
};

/* Heads of an operand, which may be of another rank than the layout has: false then. */
bool ex_heads_of(const struct ex_value *t, const char *layout, int64_t depth, struct ex_heads *out);
/* Local length along a letter; 1 where the layout has none. N of composed heads is divided out. */
int64_t ex_heads_size(const struct ex_heads *h, char letter);
int64_t ex_heads_first(const struct ex_heads *h, char letter);
/* Index of an element in the tensor. */
void ex_heads_at(const struct ex_heads *h, int64_t b, int64_t s, int64_t n, int64_t d, int64_t *at);

struct ex_attention {
	const struct ex_job *j;
	struct ex_heads q, k, v, out;
	uint64_t scale; /* of the scores, a number of the field */
	/* What is added to the score of query i and key t, 0 nothing; false: masked. NULL: neither. */
	bool (*sees)(const struct ex_attention *a, int64_t b, int64_t n, int64_t i, int64_t t,
		ex_id *shift);
	/* The probability after dropout. NULL: as it is. */
	ex_id (*keeps)(const struct ex_attention *a, int64_t b, int64_t n, int64_t i, int64_t t, ex_id p);
	/* Told the largest score and the sum of a query. NULL: nobody asks. */
	void (*sums)(const struct ex_attention *a, int64_t b, int64_t n, int64_t i, ex_id most, ex_id sum);
};

/* Fills out. False where the heads of queries are not a multiple of those of keys. */
bool ex_attend(const struct ex_attention *a);

/* Is key t in reach of query i by sparse_mode and the tokens before and behind, both counted in
 * sequences of these lengths? masked: an operand masks as well. */
bool ex_in_reach(const struct ex_job *j, int64_t queries, int64_t keys, int64_t i, int64_t t,
	bool masked);

/* An attribute as a number of the field; exact where it is a fraction of 1024. */
uint64_t ex_fraction(const struct ex_job *j, const char *name, double otherwise);

#endif
