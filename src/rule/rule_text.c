/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/rule.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/str.h"

static void add_factor(struct ap_str *s, const struct ap_factor *f)
{
	ap_str_addc(s, f->letter);
	if (f->flags & AP_FACTOR_FROZEN)
		ap_str_addc(s, '!');
	if (f->flags & AP_FACTOR_LOOKUP)
		ap_str_addc(s, '@');
}

/* Length of the windows over a dimension of an operand, or of the result, 0 none. */
static int64_t window_of(const struct ap_bound *b, bool result, uint16_t tensor, uint8_t dim)
{
	for (uint8_t w = 0; w < b->nwindow; w++)
		if (b->window[w].operand == tensor && b->window[w].dim == dim &&
			b->window[w].transposed == result)
			return b->window[w].kernel;
	return 0;
}

static void add_dim(struct ap_str *s, const struct ap_bound *b, const struct ap_dim *d,
	int64_t size)
{
	if (d->n == 0)
		ap_str_addf(s, "%" PRId64, size);
	if (d->n > 1)
		ap_str_addc(s, '(');
	for (uint8_t i = 0; i < d->n; i++) {
		if (i > 0)
			ap_str_addc(s, ' ');
		add_factor(s, &b->factor[d->factor[i]]);
	}
	if (d->n > 1)
		ap_str_addc(s, ')');
}

static void add_tensors(struct ap_str *s, const struct ap_bound *b, const struct ap_operand *o,
	uint16_t n)
{
	for (uint16_t t = 0; t < n; t++) {
		ap_str_add(s, t ? ", [" : "[");
		for (uint8_t i = 0; i < o[t].rank; i++) {
			if (i > 0)
				ap_str_addc(s, ' ');
			add_dim(s, b, &o[t].dim[i], o[t].size[i]);
			if (window_of(b, o == b->out, t, i))
				ap_str_addf(s, "~%" PRId64, window_of(b, o == b->out, t, i));
		}
		ap_str_addc(s, ']');
	}
}

const char *ap_rule_text(struct ap_ctx *ctx, const struct ap_bound *b)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	add_tensors(&s, b, b->in, b->nin);
	ap_str_add(&s, " -> ");
	add_tensors(&s, b, b->out, b->nout);
	for (uint8_t f = 0; f < b->nfactor; f++)
		ap_str_addf(&s, "%s%c=%" PRId64, f ? " " : "; ", b->factor[f].letter,
			b->factor[f].size);
	return s.s;
}
