/* SPDX-License-Identifier: Apache-2.0 */
/* Llama's decoder, for models of similar structure. */
#ifndef AP_TOOLS_MODEL_LLAMA_H
#define AP_TOOLS_MODEL_LLAMA_H

#include "tools/model_block.h"
#include "tools/models.h"

struct llama {
	struct model *m;
	const struct model_params *p;
	struct model_attention attention;
	ap_id cos, sin; /* [1,1,S,D] */
};

struct ap_shape llama_rows(const struct llama *l); /* [B*S,H] */
struct ap_shape llama_tokens(const struct llama *l); /* [B,S,H] */

/* The feed-forward part of a block; scope and param are prefixes. x and the result: rows. */
typedef ap_id llama_part_fn(const struct llama *l, const char *scope, const char *param, ap_id x);

struct model *llama_with(struct ap_arena *arena, const struct model_params *p,
	llama_part_fn *feed_forward);

#endif
