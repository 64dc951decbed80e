/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a canonical hybrid (hybrid.h), as given to --hybrid. */
#ifndef AP_HYBRID_HYBRID_PARSE_H
#define AP_HYBRID_HYBRID_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/choices.h"
#include "base/ctx.h"
#include "shard/step.h"

enum ap_hybrid_vocab {
	AP_VOCAB_AUTO, /* cut if the entries divide */
	AP_VOCAB_CUT,
	AP_VOCAB_WHOLE
};

struct ap_hybrid { /* 0: not given */
	int64_t dp, tp, pp, cp, ep, vpp;
	int64_t etp; /* parts of an expert: tp, or 1; 0: tp */
	int64_t mbs; /* samples of a micro-batch per dp rank */
	int64_t micro_batches;
	bool sp;
	bool pp_scatter; /* what a stage sends is dealt to its tp ranks, and gathered behind */
	enum ap_hybrid_vocab vocab;
	enum ap_cp_algo cp_algo;
	bool cp_usual; /* cp_algo was not given: it is the executor's, and yields where it cannot be */
	bool cp_even; /* a causal sequence is dealt in pairs of parts, from the front and the end */
	struct ap_layer_cut layers; /* of the stages; AP_LAYERS_EVEN where nothing is said */
};

enum ap_hybrid_key { /* keys that may have several values */
	AP_HYBRID_DP,
	AP_HYBRID_TP,
	AP_HYBRID_PP,
	AP_HYBRID_CP,
	AP_HYBRID_EP,
	AP_HYBRID_ETP,
	AP_HYBRID_VPP,
	AP_HYBRID_SP, /* 0, 1 */
	AP_HYBRID_MBS,
	AP_HYBRID_MICRO_BATCHES,
	AP_HYBRID_VOCAB, /* 1: AP_VOCAB_WHOLE, 0: AP_VOCAB_CUT */
	AP_HYBRID_CP_ALGO, /* enum ap_cp_algo */
	AP_HYBRID_PP_SCATTER, /* 0, 1 */
	AP_HYBRID_KEYS
};

struct ap_hybrid_space { /* the hybrids that a text means */
	struct ap_hybrid one; /* with the first value of each key; what is auto is as if not given */
	bool any; /* "auto": nothing is given */
	bool given[AP_HYBRID_KEYS];
	struct ap_choices key[AP_HYBRID_KEYS]; /* what a given key may be */
};

/* Reads "dp=8,tp=4,layers=7,8,8,7": each key at most once, with a number above 0; flags take 0, 1, true or
 * false; layers and offset take all numbers up to the next key, equal ones also as "8*2", or layers "cost".
 * The others may have several values, "tp=1,2,4..8,sp=0,1", or auto; a range means every number in it.
 * AP_USAGE with a message. */
enum ap_status ap_hybrid_space_parse(struct ap_ctx *ctx, const char *text, struct ap_hybrid_space *out);

/* Is every given key one value? */
bool ap_hybrid_space_single(const struct ap_hybrid_space *space);

/* The number of hybrids, where there are more than AP_CHOICES_MOST that and one; 0: some key is auto. */
size_t ap_hybrid_space_count(const struct ap_hybrid_space *space);

/* Hybrid i of a space, below its count, as text; the values of the last key change first. */
const char *ap_hybrid_space_at(struct ap_arena *arena, const struct ap_hybrid_space *space, size_t i);

/* Sets a key of a hybrid to a value of it. */
void ap_hybrid_put(struct ap_hybrid *h, enum ap_hybrid_key key, int64_t value);

/* ap_hybrid_space_parse() of a text that must be a single hybrid. */
enum ap_status ap_hybrid_parse(struct ap_ctx *ctx, const char *text, struct ap_hybrid *out);

/* "all-gather", "ring", "all-to-all"; NULL of AP_CP_USUAL. */
const char *ap_cp_algo_name(enum ap_cp_algo a);

/* The degrees of a filled hybrid inside a stage, as --hybrid takes them: "dp=8,tp=4,sp=1". */
const char *ap_hybrid_degrees(struct ap_ctx *ctx, const struct ap_hybrid *h);

/* Stride of the ep ranks among which experts are dealt, of a hybrid with all degrees; 0: they cannot be.
 * The ranks of a stage are dp x cp x tp, tp innermost. Experts are cut by tp (etp = tp) and dealt among
 * those of cp and inner ones of dp, or, if cp does not divide ep, of dp alone; with etp = 1 they are whole,
 * and dealt among those of tp, cp and dp. */
int64_t ap_hybrid_expert_stride(const struct ap_hybrid *h);

/* Sets tp, cp, pp, ep and vpp that are not given to 1, and dp to the devices left. AP_USAGE if
 * dp * tp * cp * pp is not the number of devices, ep does not divide dp, or vpp, layers or
 * offset is given without pp. */
enum ap_status ap_hybrid_fill(struct ap_ctx *ctx, int64_t devices, struct ap_hybrid *h);

/* Sets *micro_batches to batch / (dp * mbs), or to the number given; leaves it if h gives neither.
 * AP_USAGE if the division has a remainder, or the two disagree. h is filled. */
enum ap_status ap_hybrid_step(struct ap_ctx *ctx, const struct ap_hybrid *h, int64_t batch,
	int64_t *micro_batches);

#endif
