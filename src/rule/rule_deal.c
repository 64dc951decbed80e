/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "rule/rule.h"

static const struct {
	const char *name;
	char letter;
} rows[] = {
#define DEAL(name, factor) {#name, factor},
#include "rule/ops.def"
};

int ap_rule_deal_factor(const struct ap_bound *b)
{
	size_t i = 0;

	while (i < sizeof rows / sizeof *rows && strcmp(rows[i].name, b->row->name) != 0)
		i++;
	for (uint8_t f = 0; i < sizeof rows / sizeof *rows && f < b->nfactor; f++)
		if (b->factor[f].letter == rows[i].letter && b->out[0].rank > 0 &&
			b->out[0].dim[0].n == 1)
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
