/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the parallel optimizer of an executor deals a parameter's slice to the ranks that hold it: its states,
 * and gradients and weights as the level says.
 */
#ifndef AP_SHARD_DEALING_H
#define AP_SHARD_DEALING_H

#include <stdint.h>

enum ap_dealing {
	AP_DEALING_ROWS, /* rows of dimension 0, evenly; where ranks do not divide them, each rank has
	                    all: MindSpore (formats 1.5) */
	AP_DEALING_PADDED_ROWS, /* ceil(rows / ranks) rows each, the last ranks fewer, or none; buffers
	                           are padded to that: torch's FSDP2 (_fsdp_param.py) */
	AP_DEALING_FLAT /* the slice row by row, ceil(elements / ranks) elements each, likewise padded:
	                   Megatron's distributed optimizer and Megatron-FSDP, DeepSpeed's ZeRO. They deal
	                   many parameters as one array, whose end they pad; a parameter by itself has less
	                   than an element a rank more */
};

/*
 * Elements of a part, padding included, when ranks >= 1 deal a slice [rank] of extents >= 1: rank i of them
 * has elements [i * part, (i + 1) * part) of the slice, row by row, as far as there are any. 0: it is left
 * whole, as one without dimensions always is. O(rank).
 */
int64_t ap_dealing_part(enum ap_dealing rule, int rank, const int64_t *slice, int64_t ranks);

/* The row along dimension 0 that part i begins with, where a row goes with its last element. 0 <= i <=
 * ranks; the number of rows where nothing is left. */
int64_t ap_dealing_first_row(int rank, const int64_t *slice, int64_t part, int64_t i);

#endif
