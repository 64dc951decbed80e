/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int factor_of(const struct ap_bound *b, char letter)
{
	int f = 0;

	while (b->factor[f].letter != letter) {
		f++;
		assert(f < b->nfactor);
	}
	return f;
}

static void read_lengths(struct ap_bound *b, const char *text)
{
	while (*text) {
		struct ap_factor *factor = &b->factor[b->nfactor];
		char *end;

		factor->letter = *text;
		factor->size = strtoll(text + 1, &end, 10);
		for (text = end; *text == '!' || *text == '*'; text++)
			factor->flags |= *text == '!' ? AP_FACTOR_FROZEN : AP_FACTOR_BATCH;
		b->dev[b->nfactor] = b->nfactor;
		b->nfactor++;
		text += *text == ' ';
	}
	b->ndev = b->nfactor;
}

static void add_factor(const struct ap_bound *b, struct ap_operand *t, int d, char letter)
{
	struct ap_dim *dim = &t->dim[d];
	int f = factor_of(b, letter);

	dim->factor[dim->n++] = (uint8_t)f;
	t->size[d] *= b->factor[f].size;
	t->factors |= 1u << f;
}

/* One operand; returns what follows it. */
static const char *read_operand(const struct ap_bound *b, struct ap_operand *t, const char *text)
{
	while (*text && *text != ',' && *text != '-') {
		int d = t->rank++;

		t->size[d] = 1;
		if (*text == '(')
			while (*++text != ')')
				add_factor(b, t, d, *text);
		else if (*text != '1')
			add_factor(b, t, d, *text);
		text++;
	}
	return text;
}

void make_bound(struct made *m, const char *rule, const char *lengths, const char *left)
{
	struct ap_operand *t = m->t;

	memset(m, 0, sizeof *m);
	m->row = (struct ap_op_row){.name = "Made", .rule = rule, .when = "", .save = "",
		.grad = "", .types = "", .dev = "", .left = left, .legal = "", .strategy = "",
		.doc = "", .source = ""};
	m->b.row = &m->row;
	read_lengths(&m->b, lengths);
	m->b.in = t;
	for (;; t++, rule++) {
		rule = read_operand(&m->b, t, rule);
		m->b.nin = (uint16_t)(m->b.nin + (m->b.out == NULL));
		m->b.nout = (uint16_t)(m->b.nout + (m->b.out != NULL));
		if (!*rule)
			break;
		if (*rule == '-') {
			m->b.out = t + 1;
			rule++;
		}
	}
	if (*left == '*')
		m->b.left = UINT32_MAX;
	else
		for (; *left; left++)
			m->b.left |= 1u << factor_of(&m->b, *left);
}

void check_list(const char *what, const int32_t *got, int n, const char *want)
{
	char text[256] = "";
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, i ? " %d" : "%d", got[i]);
	if (strcmp(text, want) != 0)
		ck_abort_msg("%s: got [%s], want [%s]", what, text, want);
}

uint64_t random_seed(const char *test)
{
	const char *given = getenv("AP_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 20240607;

	printf("%s: AP_SEED=%" PRIu64 "\n", test, seed);
	return seed;
}

uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}
