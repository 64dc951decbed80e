/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders in the arguments of Megatron-LM: the way back from launched.h. */
#ifndef AP_MODEL_MEGATRON_H
#define AP_MODEL_MEGATRON_H

#include "model/decoder.h"

struct ap_megatron_words {
	const char *const *word; /* "--num-layers 32": an argument with its values, quoted for a shell */
	uint32_t n; /* 0: Megatron has no words for this network */
};

/* The arguments of a decoder that runs with tensor parallelism tp, by which its vocabulary is padded. Read
 * back, they make a network of the same dimensions. In arena. */
struct ap_megatron_words ap_megatron_of_decoder(struct ap_arena *arena, const struct ap_decoder *d,
	int64_t tp);

/* Its sizes alone, those that are not 0, of a network of which the rest is not known. In arena. */
struct ap_megatron_words ap_megatron_of_sizes(struct ap_arena *arena, const struct ap_decoder *d, int64_t tp);

#endif
