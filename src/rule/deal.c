/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/deal.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

static const struct row {
	const char *name;
	char letter;
	bool any; /* also in rules with "*" */
	bool usual;
} table[] = {
#define DEAL(name, factor, any, usual) {#name, factor, any, usual},
#include "rule/ops.def"
};

static const struct row *row_of(const struct ap_op_row *row)
{
	for (size_t i = 0; i < AP_COUNT(table); i++)
		if (strcmp(table[i].name, row->name) == 0 &&
			(table[i].any || !strchr(row->rule, '*')))
			return &table[i];
	return NULL;
}

char ap_op_deal_letter(const struct ap_op_row *row)
{
	const struct row *r = row_of(row);

	return r ? r->letter : 0;
}

bool ap_op_deals_usually(const struct ap_op_row *row)
{
	const struct row *r = row_of(row);

	return r && r->usual;
}

int ap_rule_deal_factor(const struct ap_bound *b)
{
	char letter = ap_op_deal_letter(b->row);

	for (uint8_t f = 0; letter && f < b->nfactor; f++)
		if (b->factor[f].letter == letter && b->out[0].rank > 0 &&
			(b->out[0].dim[0].n == 1 || b->dealt_rows > 0 || b->deal_asked))
			return f;
	return -1;
}

uint32_t ap_rule_dealt(const struct ap_bound *b, const int32_t *count)
{
	uint32_t dealt = b->dealt;

	for (int f = 0; f < b->nfactor && b->deal_asked; f++)
		if (ap_rule_asks(b, count, f))
			return dealt;
	if (b->deal_asked && b->dealt_rows == 0)
		return 0;
	for (int f = 0; f < b->nfactor && b->dealt && b->dealt_rows > 0; f++)
		if ((b->dealt_beside >> f & 1 && count[f] > 1) ||
			(b->dealt >> f & 1 && b->dealt_rows % count[f] != 0))
			dealt = 0;
	return dealt;
}

static void deal(struct ap_ctx *ctx, struct ap_bound *b, int f)
{
	struct ap_operand *out = ap_arena_memdup(ctx->arena, b->out, b->nout * sizeof *out);

	out[0].dim[0].factor[out[0].dim[0].n++] = (uint8_t)f;
	b->out = out;
	b->dealt = UINT32_C(1) << f;
}

void ap_rule_deal(struct ap_ctx *ctx, struct ap_bound *b)
{
	deal(ctx, b, ap_rule_deal_factor(b));
}

void ap_rule_deal_usually(struct ap_ctx *ctx, struct ap_bound *b, int64_t rows)
{
	int f = ap_rule_deal_factor(b);
	uint32_t beside = 0;

	for (uint16_t i = 0; i < b->nin; i++)
		if (!(b->in[i].factors >> f & 1))
			beside |= b->in[i].factors;
	if (!(beside >> b->out[0].dim[0].factor[0] & 1))
		return;
	deal(ctx, b, f);
	b->dealt_rows = rows;
	b->dealt_beside = beside;
}

void ap_rule_deal_always(struct ap_ctx *ctx, struct ap_bound *b)
{
	if (!b->dealt)
		ap_rule_deal(ctx, b);
	b->dealt_rows = 0;
	b->dealt_beside = 0;
	b->deal_asked = false;
}

bool ap_rule_same_but_dealt(const struct ap_bound *a, const struct ap_bound *b)
{
	bool same = a->nfactor == b->nfactor && a->left == b->left && a->rounds == b->rounds &&
		a->swaps == b->swaps && a->round == b->round && a->heads == b->heads && a->even == b->even;

	for (int f = 0; f < a->nfactor && same; f++)
		same = a->dev[f] == b->dev[f] && a->factor[f].size == b->factor[f].size;
	return same;
}

bool ap_rule_deal_if_asked(struct ap_ctx *ctx, struct ap_bound *b)
{
	if (ap_rule_deal_factor(b) < 0)
		return false;
	if (!b->dealt)
		ap_rule_deal(ctx, b);
	b->deal_asked = true;
	return true;
}
