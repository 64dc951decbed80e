/* SPDX-License-Identifier: Apache-2.0 */
/* Words for cuts that are refused; all in ctx's arena. */
#ifndef AP_SHARD_REFUSAL_H
#define AP_SHARD_REFUSAL_H

#include "base/ctx.h"
#include "rule/rule.h"
#include "shard/step.h"

/* "input 1 ("w")", "result 0": a tensor of b. */
const char *ap_cut_tensor(struct ap_ctx *ctx, const struct ap_bound *b, const struct ap_operand *t);

/* "input 1 ("w"), dimension 0 of length 64", with what it is composed of ("= 2 x 32"), and what a
 * micro-batch has of it where that is less. */
const char *ap_cut_place(struct ap_ctx *ctx, const struct ap_bound *b, const struct ap_operand *t,
	int dim, const struct ap_step *step);

/* A dimension that factor f cuts: of an operand, preferably one without other factors. */
const struct ap_operand *ap_cut_along(const struct ap_bound *b, int f, int *dim);

/* "1, 2, 4 are allowed": the parts of a length, on ndev devices. */
const char *ap_cut_allowed(struct ap_ctx *ctx, int64_t length, int64_t ndev);

#endif
