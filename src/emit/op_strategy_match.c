/* SPDX-License-Identifier: Apache-2.0 */
/* Names of operators, and who stands behind those of a template. */
#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "emit/op_strategy_parts.h"

#define RECOMPUTED "recompute_"

struct ap_op_spelling ap_op_spell(const char *name)
{
	struct ap_op_spelling s = {.number = -1};
	const char *end, *digits;

	if (!strncmp(name, RECOMPUTED, strlen(RECOMPUTED)))
		name += strlen(RECOMPUTED);
	end = digits = name + strlen(name);
	while (digits > name && isdigit((unsigned char)digits[-1]))
		digits--;
	if (digits < end && end - digits < 10 && digits - name > 3 && !strncmp(digits - 3, "-op", 3)) {
		s.number = 0;
		for (const char *d = digits; d < end; d++)
			s.number = 10 * s.number + (*d - '0');
		end = digits - 3;
	}
	s.scope = name;
	s.nscope = (size_t)(end - name);
	for (s.prim = end; s.prim > name && s.prim[-1] != '/'; s.prim--)
		;
	s.nprim = (size_t)(end - s.prim);
	return s;
}
