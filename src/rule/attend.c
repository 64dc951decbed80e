/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/attend.h"

#include <string.h>

#include "base/arena.h"

/* Of a factor that keys and values have and nothing else but masks. */
static bool is_of_keys(const struct ap_bound *b, int f)
{
	return b->in[1].factors >> f & 1 && b->in[2].factors >> f & 1 && !(b->in[0].factors >> f & 1) &&
		b->factor[f].flags & AP_FACTOR_FROZEN;
}

static bool is_of_queries(const struct ap_bound *b, int f)
{
	bool result = false;

	for (int o = 0; o < b->nout; o++)
		result |= b->out[o].factors == b->in[0].factors;
	return result && b->in[0].factors >> f & 1 &&
		!(b->factor[f].flags & (AP_FACTOR_FROZEN | AP_FACTOR_BATCH));
}

bool ap_rule_attends(const struct ap_bound *b, struct ap_attention *out)
{
	*out = (struct ap_attention){-1, -1};
	if (b->row->unit != AP_OP_CUBE || b->nin < 3)
		return false;
	if (b->rounds) {
		out->queries = b->round;
		return true;
	}
	for (int f = 0; f < b->nfactor && out->keys < 0; f++)
		if (is_of_keys(b, f))
			out->keys = f;
	for (int f = 0; f < b->nfactor && out->keys >= 0 && out->queries < 0; f++)
		if (is_of_queries(b, f) && !(b->in[1].factors >> f & 1) &&
			b->factor[f].size == b->factor[out->keys].size)
			out->queries = f;
	return out->queries >= 0;
}

int ap_rule_causal_factor(const struct ap_bound *b)
{
	if (!strstr(b->row->when, "sparse_mode=2|3"))
		return -1;
	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].letter == 's')
			return f;
	return -1;
}

static void replace(struct ap_operand *o, uint8_t from, uint8_t to)
{
	for (int d = 0; d < o->rank; d++)
		for (int k = 0; k < o->dim[d].n; k++)
			if (o->dim[d].factor[k] == from)
				o->dim[d].factor[k] = to;
	o->factors = (o->factors & ~(UINT32_C(1) << from)) | UINT32_C(1) << to;
}

void ap_rule_attend_round(struct ap_ctx *ctx, struct ap_bound *b)
{
	struct ap_operand *in = ap_arena_memdup(ctx->arena, b->in, b->nin * sizeof *in);
	struct ap_attention a;

	if (b->rounds || !ap_rule_attends(b, &a))
		return;
	b->in = in;
	for (int i = 1; i <= 2; i++) {
		replace(&in[i], (uint8_t)a.keys, (uint8_t)a.queries);
		b->rounds |= UINT32_C(1) << i;
	}
	b->round = (uint8_t)a.queries;
}
