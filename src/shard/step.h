/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one optimizer step looks like, apart from graph and machine: given, not searched. A
 * parameter of every rule and cost function; AP_STEP_DEFAULT is neutral.
 */
#ifndef AP_SHARD_STEP_H
#define AP_SHARD_STEP_H

#include <stdbool.h>
#include <stdint.h>

struct ap_software;
struct ap_optimizer;

enum ap_executor { /* who runs the plan: whose gradient convention holds */
	AP_EXECUTOR_MINDSPORE, /* gradients of replicated activations stay partial; a parameter is
	                          mirrored over all ranks that hold the same slice */
	AP_EXECUTOR_GENERIC /* Megatron's mathematics: gradients are summed where they arise */
};

struct ap_step {
	int64_t micro_batches; /* >= 1; the batch runs in so many parts, gradients are kept */
	int64_t in_flight; /* micro-batches whose activations are held at once, >= 1 */
	bool training; /* false: --run-phase inference */
	enum ap_executor executor;
	bool full_batch; /* inputs arrive whole on every rank, else cut by the batch */
	bool optimizer_sharding; /* --enable-parallel-optimizer */
	int64_t shard_threshold_bytes; /* smaller parameters stay whole */
	int64_t shard_size; /* ranks an optimizer shard is dealt to; -1: all that hold the slice */
	bool gradient_fp32_sync; /* 16-bit gradients travel as float32 */
	const struct ap_optimizer *optimizer; /* NULL: none (inference) */
	const struct ap_software *software;
};

#define AP_STEP_DEFAULT \
	{ \
		.micro_batches = 1, .in_flight = 1, .training = true, \
		.executor = AP_EXECUTOR_MINDSPORE, .shard_threshold_bytes = 64 << 10, \
		.shard_size = -1, .gradient_fp32_sync = true \
	}

#endif
