/* SPDX-License-Identifier: Apache-2.0 */
/* Where MindSpore's batch strategy cuts operators, in words. */
#include <string.h>

#include "rule/describe.h"

static void show_named(struct ap_str *out, const char *p)
{
	const char *comma = "";

	for (; *p >= 'a' && *p <= 'n'; p += p[1] == '/' ? 3 : 1) {
		if (p[1] == '/')
			ap_str_addf(out, "%s%c of operand %d", comma, p[2], *p - 'a');
		else
			ap_str_addf(out, "%sdimension 0 of operand %d", comma, *p - 'a');
		comma = ", ";
	}
	if (!*comma)
		ap_str_add(out, "nothing");
}

static void show_where(struct ap_str *out, const char *notation)
{
	switch (*notation) {
	case '*':
		ap_str_add(out, "dimension 0 of every operand");
		break;
	case '~':
		ap_str_add(out, "dimension 0 of operands that are not of length 1 there, in line at the "
			"right");
		break;
	case '#':
		ap_str_add(out, "dimension 0 of the operands of most dimensions; of two the first alone");
		break;
	default:
		show_named(out, notation);
	}
}

void ap_op_describe_batch(const struct ap_op_row *row, struct ap_str *out)
{
	const char *notation = ap_op_batch_notation(row);

	ap_describe_label(out, "semi_auto");
	if (!ap_op_has_strategy(row) || ap_op_follows(row)) {
		ap_str_add(out, "lies as its neighbours");
		return;
	}
	ap_str_add(out, "cuts ");
	show_where(out, notation ? notation : "a");
	if (!notation)
		return;
	if (strchr(notation, '&'))
		ap_str_add(out, ", and what is cut along with it");
	if (strchr(notation, '?'))
		ap_str_add(out, ", or nothing where that stays whole");
	if (strchr(notation, '='))
		ap_str_add(out, ", by all devices or not at all");
	if (strchr(notation, '!'))
		ap_str_add(out, ", as the data comes");
}
