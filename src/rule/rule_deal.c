/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "rule/rule.h"

static const struct {
	const char *name;
	char letter;
	bool any; /* of a rule with "*", too */
} rows[] = {
#define DEAL(name, factor, any) {#name, factor, any},
#include "rule/ops.def"
};

char ap_op_deal_letter(const struct ap_op_row *row)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, row->name) == 0 &&
			(rows[i].any || !strchr(row->rule, '*')))
			return rows[i].letter;
	return 0;
}

int ap_rule_deal_factor(const struct ap_bound *b)
{
	char letter = ap_op_deal_letter(b->row);

	for (uint8_t f = 0; letter && f < b->nfactor; f++)
		if (b->factor[f].letter == letter && b->out[0].rank > 0 && b->out[0].dim[0].n == 1)
			return f;
	return -1;
}

void ap_rule_deal(struct ap_ctx *ctx, struct ap_bound *b)
{
	struct ap_operand *out = ap_arena_memdup(ctx->arena, b->out, b->nout * sizeof *out);
	int f = ap_rule_deal_factor(b);

	out[0].dim[0].factor[out[0].dim[0].n++] = (uint8_t)f;
	b->out = out;
	b->dealt = UINT32_C(1) << f;
}
