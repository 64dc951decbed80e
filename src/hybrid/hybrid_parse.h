/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a canonical hybrid (hybrid.h), as --hybrid says them. */
#ifndef AP_HYBRID_HYBRID_PARSE_H
#define AP_HYBRID_HYBRID_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"

enum ap_hybrid_vocab {
	AP_VOCAB_AUTO, /* cut where the entries divide */
	AP_VOCAB_CUT,
	AP_VOCAB_WHOLE
};

struct ap_hybrid { /* numbers that are not given are 0 */
	int64_t dp, tp, pp, cp, ep, vpp;
	int64_t mbs; /* samples of one micro-batch on each of dp parts */
	int64_t micro_batches;
	bool sp;
	enum ap_hybrid_vocab vocab;
};

/* Reads "dp=8,tp=4": keys as in ap_hybrid_key_at(), each once, with numbers above 0, or 0, 1, true,
 * false for the yes-or-no ones. AP_USAGE with a message. */
enum ap_status ap_hybrid_parse(struct ap_ctx *ctx, const char *text, struct ap_hybrid *out);

/* Numbers that are not given become 1, and dp what the devices leave. AP_USAGE where
 * dp * tp * cp * pp is not their number, where ep does not divide dp, or where vpp is given without
 * pp. */
enum ap_status ap_hybrid_fill(struct ap_ctx *ctx, int64_t devices, struct ap_hybrid *h);

/* Micro-batches of a step: batch / (dp * mbs), or as given; as they are (*micro_batches) where h
 * says nothing of them. AP_USAGE where that is no number, or contradicts. h is filled. */
enum ap_status ap_hybrid_step(struct ap_ctx *ctx, const struct ap_hybrid *h, int64_t batch,
	int64_t *micro_batches);

#endif
