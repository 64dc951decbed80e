/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/refusal.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"

const char *ap_cut_tensor(struct ap_ctx *ctx, const struct ap_bound *b, const struct ap_operand *t)
{
	if (t >= b->out && t < b->out + b->nout)
		return ap_arena_printf(ctx->arena, "result %td", t - b->out);
	if (b->name)
		return ap_arena_printf(ctx->arena, "input %td (\"%s\")", t - b->in,
			ap_diag_name(ctx->diag, b->name[t - b->in]));
	return ap_arena_printf(ctx->arena, "input %td", t - b->in);
}

const char *ap_cut_place(struct ap_ctx *ctx, const struct ap_bound *b, const struct ap_operand *t,
	int dim, const struct ap_step *step)
{
	const struct ap_dim *d = &t->dim[dim];
	bool batch = false;
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	ap_str_addf(&s, "%s, dimension %d of length %" PRId64, ap_cut_tensor(ctx, b, t), dim,
		t->size[dim]);
	for (int i = 0; i < d->n; i++) {
		if (d->n > 1)
			ap_str_addf(&s, "%s%" PRId64, i ? " x " : " = ",
				b->factor[d->factor[i]].size);
		batch |= b->factor[d->factor[i]].flags & AP_FACTOR_BATCH;
	}
	if (batch && step->micro_batches > 1)
		ap_str_addf(&s, " (%" PRId64 " in a micro-batch)",
			t->size[dim] / step->micro_batches);
	return s.s;
}

static int rate(const struct ap_operand *t, int dim, int f)
{
	for (int i = 0; i < t->dim[dim].n; i++)
		if (t->dim[dim].factor[i] == f)
			return t->dim[dim].n == 1 ? 2 : 1;
	return 0;
}

const struct ap_operand *ap_cut_along(const struct ap_bound *b, int f, int *dim)
{
	const struct ap_operand *found = NULL;
	int best = 0;

	for (unsigned t = 0; t < b->nin + (unsigned)b->nout; t++) {
		const struct ap_operand *o = t < b->nin ? &b->in[t] : &b->out[t - b->nin];

		if (t == b->nin && found)
			break;
		for (int d = 0; d < o->rank; d++) {
			if (rate(o, d, f) <= best)
				continue;
			best = rate(o, d, f);
			found = o;
			*dim = d;
		}
	}
	return found;
}

const char *ap_cut_allowed(struct ap_ctx *ctx, int64_t length, int64_t ndev)
{
	int64_t list[256];
	size_t n = ap_divisors(ap_gcd(length, ndev), list, 256);
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (size_t i = 0; i < n && i < 256; i++)
		ap_str_addf(&s, i ? ", %" PRId64 : "%" PRId64, list[i]);
	ap_str_add(&s, n == 1 ? " is allowed" : " are allowed");
	return s.s;
}
