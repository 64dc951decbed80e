/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a layer is computed again for the backward pass: a set of words, a bit each.
 *
 *   selective      (core_attn, attention) the core of attention: of two successive products of
 *                  activations, without a weight between them, the first and all between
 *   communication  nothing is computed again, but what is gathered behind a norm is gathered again
 *   both           selective+communication
 *   full           all of the layer but what leaves it
 *   layernorm      norms that have a weight
 *   mlp            the dense feed-forward part
 *   moe            the feed-forward part that chooses experts: router, dispatch, experts
 *   shared_experts the feed-forward part beside chosen experts
 *   activation     between products with weights of a feed-forward part, what goes element by element
 *   moe_act        the same of experts
 *   mla_up_proj    what makes queries, keys and values of attention from norms within it
 *   products       all but the results of products with weights and of fused attention
 *   products/2     the same, but every second product with a weight runs again, too
 *
 * Words of one layer are joined by '+'. Which operators are meant, the graph says: cost/layer_parts.h.
 */
#ifndef AP_GRAPH_AGAIN_H
#define AP_GRAPH_AGAIN_H

#include <stdbool.h>
#include <stddef.h>

struct ap_arena;

enum ap_recompute {
	AP_RECOMPUTE_NONE = 0,
	AP_RECOMPUTE_SELECTIVE = 1 << 0,
	AP_RECOMPUTE_COMMUNICATION = 1 << 1,
	AP_RECOMPUTE_NORM = 1 << 2,
	AP_RECOMPUTE_MLP = 1 << 3,
	AP_RECOMPUTE_MOE = 1 << 4,
	AP_RECOMPUTE_SHARED = 1 << 5,
	AP_RECOMPUTE_ACTIVATION = 1 << 6,
	AP_RECOMPUTE_MOE_ACT = 1 << 7,
	AP_RECOMPUTE_PRODUCTS = 1 << 8,
	AP_RECOMPUTE_HALF = 1 << 9, /* with PRODUCTS */
	AP_RECOMPUTE_LATENT = 1 << 10,
	AP_RECOMPUTE_FULL = 1 << 11
};

/* Word i and what it means, the usual word of a bit first; NULL past the end. */
const char *ap_again_word(size_t i, unsigned *what);

/* Reads "mlp+layernorm", of that many bytes. False: *bad is the first word that is none. */
bool ap_again_read(const char *text, size_t len, unsigned *what, const char **bad, size_t *bad_len);

/* "none", "both", "selective+mlp"; words in the order of the table. In arena. */
const char *ap_again_text(struct ap_arena *arena, unsigned what);

#endif
