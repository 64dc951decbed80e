/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/again.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

static const struct word {
	const char *text;
	unsigned what;
} words[] = {
	{"none", AP_RECOMPUTE_NONE},
	{"selective", AP_RECOMPUTE_SELECTIVE},
	{"communication", AP_RECOMPUTE_COMMUNICATION},
	{"both", AP_RECOMPUTE_SELECTIVE | AP_RECOMPUTE_COMMUNICATION},
	{"full", AP_RECOMPUTE_FULL},
	{"layernorm", AP_RECOMPUTE_NORM},
	{"mlp", AP_RECOMPUTE_MLP},
	{"moe", AP_RECOMPUTE_MOE},
	{"shared_experts", AP_RECOMPUTE_SHARED},
	{"activation", AP_RECOMPUTE_ACTIVATION},
	{"moe_act", AP_RECOMPUTE_MOE_ACT},
	{"mla_up_proj", AP_RECOMPUTE_LATENT},
	{"products", AP_RECOMPUTE_PRODUCTS},
	{"products/2", AP_RECOMPUTE_PRODUCTS | AP_RECOMPUTE_HALF},
	{"core_attn", AP_RECOMPUTE_SELECTIVE},
	{"attention", AP_RECOMPUTE_SELECTIVE},
};

const char *ap_again_word(size_t i, unsigned *what)
{
	if (i >= AP_COUNT(words))
		return NULL;
	*what = words[i].what;
	return words[i].text;
}

static const struct word *find(const char *text, size_t len)
{
	for (size_t i = 0; i < AP_COUNT(words); i++)
		if (strlen(words[i].text) == len && memcmp(words[i].text, text, len) == 0)
			return &words[i];
	return NULL;
}

bool ap_again_read(const char *text, size_t len, unsigned *what, const char **bad, size_t *bad_len)
{
	const char *end = text + len;

	*what = 0;
	for (;;) {
		const char *plus = memchr(text, '+', (size_t)(end - text));
		size_t n = (size_t)((plus ? plus : end) - text);
		const struct word *w = find(text, n);

		if (!w) {
			*bad = text;
			*bad_len = n;
			return false;
		}
		*what |= w->what;
		if (!plus)
			return true;
		text = plus + 1;
	}
}

const char *ap_again_text(struct ap_arena *arena, unsigned what)
{
	static const unsigned both = AP_RECOMPUTE_SELECTIVE | AP_RECOMPUTE_COMMUNICATION;
	unsigned left = what;
	struct ap_str s;

	ap_str_init(&s, arena);
	for (size_t i = 0; i < AP_COUNT(words); i++) {
		unsigned bits = words[i].what;

		if (bits == what)
			return words[i].text;
		if (!bits || (bits & ~left) || bits == both ||
			(bits == AP_RECOMPUTE_PRODUCTS && (left & AP_RECOMPUTE_HALF)))
			continue;
		ap_str_addf(&s, "%s%s", s.len ? "+" : "", words[i].text);
		left &= ~bits;
	}
	return s.s;
}
