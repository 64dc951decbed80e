/* SPDX-License-Identifier: Apache-2.0 */
/* What a row says: its device, framework, network and strategy, as a run that can be evaluated. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "model/families.h"
#include "rows.h"

struct facts {
	struct ap_arena *arena;
#define FIELD(name) const char *name;
	FACTS(FIELD) REMARKS(FIELD)
#undef FIELD
};

/* Type of exchanged gradients: WIDE: float32. */
enum sums { AS_PARAMETER, WIDE_BF16, WIDE };

struct fabric { /* what the column interconnect names that carries less than others */
	const char *word;
	double efficiency; /* share of the bandwidth of its links */
};

struct device { /* names of the column hw */
	const char *word;
	int64_t gib; /* of a part with less memory; 0: any */
	const char *chip;
	double fp4; /* peak of matrix products in 4 bits / that of bfloat16; 0: there is none */
	int64_t pod; /* devices of a super pod that large runs take, so that groups lie within it; 0 */
};

/* What the column framework begins with, or else holds; the longer ones first. */
struct framework {
	const char *name;
	const char *executor;
	const char *software; /* its profile */
	unsigned loss; /* enum ap_model_loss */
	enum sums sums;
	int64_t vocab_multiple; /* entries of a tp part's words are padded to; 0: not at all */
	bool fused; /* kernels, see model/families.h */
	double dropout; /* of GPT, by default */
	double capacity; /* of experts; 0: they take what is sent to them */
	const char *precision; /* of rows that do not state theirs: what its scripts set; NULL: unknown */
	bool scatters; /* what a pipeline's stage sends is dealt to the tp ranks; else where a row says so */
	const char *scales; /* of operands in 8 bits, where a row does not say; NULL: as Megatron, delayed */
	const char *dispatcher; /* of tokens: its recipes take DeepEP, on GB200 HybridEP, which sends alike
	                           (megatron/bridge/training/flex_dispatcher_backend.py); NULL: a call */
	const char *calls; /* networks whose recipes leave tokens to a call all the same: none sets
	                      moe_flex_dispatcher_backend (scripts/performance/configs/gpt_oss of
	                      Megatron-Bridge); NULL: none */
	bool balanced; /* its published runs force the router's load to balance */
	bool behind; /* gradients are exchanged behind all passes, unless overlap-grad-reduce is given; the
	                recipes of NeMo and Megatron-Bridge give it, as they give */
	bool beside; /* products beside the collectives of their results: tp_comm_overlap */
	bool narrow; /* dealt weights of products in 8 bits are held and gathered in them: fp8_param_gather of
	                their precisions (megatron/bridge/training/mixed_precision.py) */
	bool by_cost; /* layers are dealt to stages by the weights of their products and the head's, as
	                 nanotron/models/base.py does; else in equal numbers */
	bool cuts_loss; /* by the vocabulary where tp cuts the head, as loss_parallel of DTensor does */
};

struct precision { /* parts of the column precision, the first that is found counts */
	const char *word;
	enum ap_dtype dtype;
	int bits; /* of the operands of matrix products, where they are fewer; 0 */
	const char *scales; /* of 8 bits; NULL: as the framework's */
};

struct generator { /* which network a row is; the first that goes with it */
	const char *arch;
	const char *model; /* what its name begins with */
	const char *ffn_types; /* "": any */
	bool heads_alike; /* as many heads of keys as of queries */
	const char *kind; /* of model/families.h */
	const char *blocks; /* the cells of its layers are BLOCKS.N */
};

/* What networks with latent attention have that no column says, by their hidden units. */
struct latent {
	int64_t hidden;
	int64_t query, key, turned, plain, value; /* units: compressed queries (0: they are not), keys and
	                                             values; of a head, with positions, without, of values */
	int64_t shared; /* experts of every token */
	int64_t dense, layers; /* leading layers without experts, and all; one that is cut has its share */
};

struct run { /* a row as it is evaluated */
	const struct device *device;
	const struct framework *framework;
	const struct precision *precision;
	const struct generator *generator;
	struct ap_model_params params;
	const struct latent *latent; /* NULL: attention is not latent */
	int64_t dense_inner; /* units of the feed-forward part of a layer without experts */
	int64_t devices, per_node, dp, tp, pp, vpp, cp, ep, mbs, batch, zero;
	bool sp, scatters;
	double network_Bps; /* of a device; 0: as in the profile */
	const struct fabric *fabric; /* NULL: as in the profile */
	const char *recompute; /* as --recompute has it */
	bool every_second; /* layer is recomputed as a whole, by flags of the graph */
};

/* The facts of a row; arena holds what is made of them. */
struct facts facts_of(struct ap_arena *arena, const struct row *row);

/* Makes a run of facts. Returns NULL, or why that cannot be done. */
const char *express(const struct facts *f, struct run *run);

/* The framework that a column names; NULL: it is not known. */
const struct framework *framework_of(const char *name);

/* The chip that columns name; NULL: it is not known. */
const struct device *device_of(const struct facts *f);

/* Layers of a part, segment by segment of the stages: as its framework deals them; equal numbers, or, where
 * these do not divide, such that the first and the last have one less, for embedding and head. */
int64_t layers_of(const struct run *run, int64_t part);

/* Words of a text, in capitals or not: is it there and no part of a longer one; does the text begin with it;
 * is it anywhere? */
bool has_word(const char *text, const char *word);
bool begins(const char *text, const char *with);
bool holds(const char *text, const char *part);

#endif
