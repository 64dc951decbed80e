/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/attend.h"

#include <string.h>

#include "base/arena.h"
#include "rule/attr.h"

/* Of a factor that keys and values have and nothing else but masks. */
static bool is_of_keys(const struct ap_bound *b, int f)
{
	return b->in[1].factors >> f & 1 && b->in[2].factors >> f & 1 && !(b->in[0].factors >> f & 1) &&
		b->factor[f].flags & AP_FACTOR_FROZEN;
}

/* Like the queries, in heads of the size that the values have. */
bool ap_rule_attend_is_result(const struct ap_bound *b, int o)
{
	uint32_t queries = b->in[0].factors, keys, values;

	if (b->nin < 3)
		return b->out[o].factors == queries;
	keys = b->in[1].factors;
	values = b->in[2].factors;
	return b->out[o].factors == ((queries & ~(keys & ~values)) | (values & ~keys));
}

static bool is_of_queries(const struct ap_bound *b, int f)
{
	bool result = false;

	for (int o = 0; o < b->nout; o++)
		result |= ap_rule_attend_is_result(b, o);
	return result && b->in[0].factors >> f & 1 &&
		!(b->factor[f].flags & (AP_FACTOR_FROZEN | AP_FACTOR_BATCH));
}

static bool are_heads(const struct ap_bound *b, int f)
{
	if (!is_of_queries(b, f))
		return false;
	for (int i = 1; i < b->nin; i++)
		if ((b->in[i].factors >> f & 1) != (i <= 2))
			return false;
	return true;
}

bool ap_rule_attends(const struct ap_bound *b, struct ap_attention *out)
{
	*out = (struct ap_attention){-1, -1, -1};
	if (b->row->unit != AP_OP_CUBE || b->nin < 3)
		return false;
	if (b->rounds || b->swaps) {
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
	for (int f = 0; f < b->nfactor && out->heads < 0; f++)
		if (are_heads(b, f))
			out->heads = f;
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

static double size_of(const struct ap_bound *b, char letter)
{
	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].letter == letter)
			return (double)b->factor[f].size;
	return 0;
}

/* The part of the keys that queries see, in the mean over a sequence: half on each side of a query, or
 * as many as the band has there; itself half to each side. */
static double seen(const struct ap_bound *b, const struct ap_attrs *attrs)
{
	double keys = size_of(b, 't');
	double before = (double)ap_attr_int(attrs, "pre_tokens", INT32_MAX) + 0.5;
	double behind = (double)ap_attr_int(attrs, "next_tokens", INT32_MAX) + 0.5;
	double both = (before < keys / 2 ? before : keys / 2) + (behind < keys / 2 ? behind : keys / 2);

	return both > 0 ? both / keys : 0;
}

double ap_rule_attend_work(const struct ap_bound *b, const struct ap_attrs *attrs)
{
	double work = 1, keys = size_of(b, 'd'), values = size_of(b, 'e');

	if (strcmp(b->row->legal, "grouped-heads") != 0 || b->row->unit != AP_OP_CUBE)
		return 1;
	if (strstr(b->row->when, "sparse_mode=4"))
		work *= seen(b, attrs);
	if (values > 0)
		work *= (keys + values) / (2 * keys * values);
	return work;
}

static void replace(struct ap_operand *o, uint8_t from, uint8_t to)
{
	for (int d = 0; d < o->rank; d++)
		for (int k = 0; k < o->dim[d].n; k++)
			if (o->dim[d].factor[k] == from)
				o->dim[d].factor[k] = to;
	o->factors = (o->factors & ~(UINT32_C(1) << from)) | UINT32_C(1) << to;
}

static struct ap_operand *begin(struct ap_ctx *ctx, struct ap_bound *b, const struct ap_attention *a)
{
	struct ap_operand *in = ap_arena_memdup(ctx->arena, b->in, b->nin * sizeof *in);

	for (int i = 1; i <= 2; i++)
		replace(&in[i], (uint8_t)a->keys, (uint8_t)a->queries);
	b->in = in;
	b->round = (uint8_t)a->queries;
	return in;
}

void ap_rule_attend_round(struct ap_ctx *ctx, struct ap_bound *b)
{
	struct ap_attention a;

	if (!ap_rule_attends(b, &a) || a.keys < 0)
		return;
	begin(ctx, b, &a);
	b->rounds = 1u << 1 | 1u << 2;
}

void ap_rule_attend_by_heads(struct ap_ctx *ctx, struct ap_bound *b)
{
	struct ap_attention a;
	struct ap_operand *in;

	if (!ap_rule_attends(b, &a) || a.keys < 0)
		return;
	in = begin(ctx, b, &a);
	for (int i = 3; i < b->nin; i++) /* masks are read whole */
		if (in[i].factors >> a.queries & 1)
			replace(&in[i], (uint8_t)a.queries, (uint8_t)a.keys);
	b->swaps = 1u << 0 | 1u << 1 | 1u << 2;
	b->heads = (uint8_t)a.heads;
	b->even = true;
}
