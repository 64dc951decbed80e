/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one optimizer step looks like, apart from graph and machine: given, not searched. A
 * parameter of every rule and cost function; AP_STEP_DEFAULT is neutral.
 */
#ifndef AP_SHARD_STEP_H
#define AP_SHARD_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "graph/again.h"
#include "shard/dealing.h"

struct ap_software;
struct ap_optimizer;
struct ap_float8_recipe; /* cost/float8.h */

enum ap_executor { /* who runs the plan: whose gradient convention holds */
	AP_EXECUTOR_MINDSPORE, /* gradients of replicated activations stay partial; a parameter is
	                          mirrored over all ranks that hold the same slice */
	AP_EXECUTOR_GENERIC /* Megatron's mathematics: gradients are summed where they arise */
};

struct ap_recompute_first { /* what the first layers of each part of a pipeline compute again */
	unsigned what; /* enum ap_recompute, bits */
	int32_t nrow, ncol; /* of count: 1 x 1, for every part; 1 x stages, where segments take a stage's
	                       layers in turns; segments x stages */
	const int64_t *count; /* [row * ncol + column] */
};

struct ap_scheduler; /* pipeline/schedule.h */

/*
 * What a stage holds in the course of a step, by segment. Segments are not full at the same time, so
 * the most that a stage needs is the largest of these sums, and not the sum of each segment's most.
 * Any one instant is a bound of it from below, whatever the segments' sizes are.
 */
struct ap_instants { /* of one stage; none of them holds as much of every segment as another one */
	uint32_t n; /* at least 1 */
	const int64_t *held; /* [n][nsegment] micro-batches that have gone forward and not yet back (for
	                        the weights too, where that is apart) */
	const int64_t *late; /* [n][nsegment] those of them that only wait for their pass for weights;
	                        NULL: the scheduler has no such pass */
};

enum ap_cp_algo { /* how attention gets what other ranks of its cp group have */
	AP_CP_USUAL, /* as the executor does unless told */
	AP_CP_ALL_GATHER, /* keys and values are gathered before it */
	AP_CP_RING, /* they go round while it works */
	AP_CP_ALL_TO_ALL, /* it works on whole sequences of fewer heads */
	AP_CP_ALGOS
};

struct ap_layer_cut { /* where a pipeline's stages are to be cut */
	enum ap_layer_cut_kind {
		AP_LAYERS_ANYHOW, /* by cost, also inside layers */
		AP_LAYERS_EVEN, /* the same number in each part; by cost if layers are too few */
		AP_LAYERS_COUNTED, /* count[part] of them */
		AP_LAYERS_OFFSET /* layers / parts, and count[part] more */
	} kind;
	uint32_t n; /* as many as parts; a single 0 is an offset for all */
	const int64_t *count; /* [n] by segment, then stage */
};

struct ap_pipe_cut { /* how a graph was cut into the parts of a pipeline */
	enum ap_pipe_cut_by {
		AP_CUT_BY_COST,
		AP_CUT_BY_MEMORY, /* by cost within the memory of each stage */
		AP_CUT_BY_LAYERS,
		AP_CUT_BY_CONFIG, /* --stage-config */
		AP_CUT_BY_GRAPH, /* the graph file */
		AP_CUT_BY_STRATEGY, /* the stages of a strategy file's operators */
		AP_CUT_BY_KEPT /* the stages of the plan that --keep names */
	} by;
	const char *layers; /* by layers: their cells, "network.blocks.N" */
	const int64_t *count; /* then, [segment * nstage + stage] layers of each part */
	const char *why; /* by cost although layers were asked for: "the graph has no layers"; else NULL */
};

/* The pipeline that a step runs in. A part is a segment (model chunk) of a stage. */
struct ap_pipe {
	int32_t nstage, nsegment; /* >= 1 */
	const struct ap_scheduler *scheduler;
	const int64_t *in_flight; /* [stage * nsegment + segment] micro-batches whose activations the
	                             part holds, at one instant of each stage: what a search charges */
	const int64_t *late; /* likewise, that have run back and wait for their pass for weights; NULL:
	                        there is none */
	const struct ap_instants *instants; /* [nstage] what a plan is charged; NULL: in_flight alone */
	const struct ap_pipe_cut *cut; /* NULL: not known */
};

struct ap_fusion { /* how the collectives of one kind are put together */
	enum ap_fusion_mode {
		AP_FUSION_OFF, /* each on its own */
		AP_FUSION_SIZE, /* buckets of up to bytes */
		AP_FUSION_INDEX /* cut before these positions, in the order in which gradients are ready */
	} mode;
	int64_t bytes;
	uint32_t nindex;
	const int64_t *index; /* ascending, above 0 */
};

/* How an input of the graph arrives: one dimension cut, rank r has part r / stride % cut. */
struct ap_arrival {
	int32_t dim, cut, stride; /* cut 1: whole; 0: as the step says of all inputs */
};

struct ap_step {
	int64_t micro_batches; /* >= 1; the batch runs in so many parts, gradients are kept */
	const struct ap_pipe *pipe; /* NULL: one stage, one micro-batch in flight */
	bool training; /* false: --run-phase inference */
	enum ap_executor executor;
	bool full_batch; /* inputs arrive whole on every rank, else cut by the batch */
	const struct ap_arrival *arrival; /* [narrival] of each input, in the graph's order; NULL: as
	                                     full_batch says */
	uint32_t narrival;
	bool optimizer_sharding; /* --enable-parallel-optimizer */
	enum ap_dealing dealing; /* then: how, by the executor */
	int64_t shard_threshold_bytes; /* smaller parameters stay whole */
	int64_t shard_size; /* ranks an optimizer shard is dealt to; -1: all that hold the slice */
	int optimizer_level; /* 1: weights and states are dealt; 2: gradients too; 3: weights are gathered
	                        anew for each use */
	bool gathers_each; /* at level 2 weights are gathered for each micro-batch, and kept until its
	                      backward pass; else once a step */
	bool sums_whole; /* gradients stay whole until the last micro-batch, whatever the level */
	int64_t deal_whole; /* data_parallel's own: devices that whole parameters are dealt to, one after the
	                       other, each of which updates and broadcasts its own; 0: not */
	bool layerwise; /* hybrid_parallel: parameters with the flag layerwise_parallel are their ranks'
	                   own, their gradients are not exchanged */
	bool gradient_fp32_sync; /* 16-bit gradients travel as float32 */
	bool force_fp32; /* so does all else that is reduced */
	bool exchange_alone; /* the objective charges each exchange its own latency, as if without buckets */
	bool exchange_behind; /* gradients are exchanged behind all passes, not beside the backward ones */
	bool product_overlap; /* a product's work and the collective of its result run in parts beside each
	                         other (generic) */
	const struct ap_float8_recipe *float8; /* of products of layers, which run in 8 bits (generic); NULL:
	                                          they do not */
	bool float8_hybrid; /* gradients in e5m2, else all in e4m3 */
	bool float8_params; /* weights of these products are stored, and gathered, in 8 bits */
	bool experts_relayed; /* a token goes once to each server that has any of its experts */
	double expert_imbalance; /* of experts without a capacity, at least 1; 0: as the graph says */
	bool gradients_mean; /* summed gradients are divided by the size of their group */
	bool alltoall; /* redistribution may use AlltoAll, else AllGather and Split */
	unsigned recompute; /* enum ap_recompute, bits: of all layers, beside the graph's flags */
	uint32_t nrecompute_first;
	const struct ap_recompute_first *recompute_first; /* [nrecompute_first] and of some */
	int64_t recompute_unit; /* that many layers run again as one; 0: each on its own */
	bool recompute_keeps_comm; /* for all that is recomputed, beside what cells say: what its forward */
	bool recompute_regathers; /* communication gives is held; its dealt weights are gathered anew; what */
	bool recompute_slices; /* it reads is held in parts */
	bool recompute_whole; /* torch checkpointing: what is recomputed runs again from its first operator
	                         to its last; else only what the backward pass needs */
	bool fully_use; /* what is searched is cut for all devices of a stage or for none */
	int64_t slice_align; /* the last two dimensions of a product's operands are, on each device,
	                        multiples of it, where the operator is cut and searched; 0: any */
	bool follow; /* an operator by element lies as those that read its result */
	bool saved_whole; /* parameters are gathered before they are saved: the strategy checkpoint does not
	                     tell how the optimizer deals them */
	struct ap_fusion allreduce, allgather, reducescatter;
	double quantum_s; /* costs are multiples of it: ap_cost_quantum_s() */
	const struct ap_optimizer *optimizer; /* NULL: none (inference) */
	const struct ap_software *software;
};

#define AP_FUSION_BYTES (INT64_C(64) << 20) /* MindSpore's default bucket */

#define AP_STEP_DEFAULT \
	{ \
		.micro_batches = 1, .training = true, .executor = AP_EXECUTOR_MINDSPORE, \
		.shard_threshold_bytes = 64 << 10, .shard_size = -1, .optimizer_level = 1, \
		.gradient_fp32_sync = true, .alltoall = true, .quantum_s = AP_QUANTUM_S, \
		.allreduce = {.mode = AP_FUSION_SIZE, .bytes = AP_FUSION_BYTES}, \
		.allgather = {.mode = AP_FUSION_SIZE, .bytes = AP_FUSION_BYTES}, \
		.reducescatter = {.mode = AP_FUSION_SIZE, .bytes = AP_FUSION_BYTES} \
	}

/* Micro-batches of a node of this stage and segment whose activations a search charges. */
static inline int64_t ap_step_in_flight(const struct ap_step *step, int32_t stage, int32_t segment)
{
	return step->pipe ? step->pipe->in_flight[stage * step->pipe->nsegment + segment] : 1;
}

/* Those that wait for their pass for weights. */
static inline int64_t ap_step_late(const struct ap_step *step, int32_t stage, int32_t segment)
{
	return step->pipe && step->pipe->late ? step->pipe->late[stage * step->pipe->nsegment + segment]
		: 0;
}

#endif
