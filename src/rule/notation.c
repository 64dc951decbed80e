/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/notation.h"

#include <string.h>

struct cursor {
	const char *p;
	const char *wrong, *at; /* the first mistake and its place; NULL if there is none */
	struct ap_rule *r;
};

static bool fail(struct cursor *c, const char *wrong)
{
	if (!c->wrong) {
		c->wrong = wrong;
		c->at = c->p;
	}
	return false;
}

static bool is_letter(char ch)
{
	return ch >= 'a' && ch <= 'z';
}

static bool is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

static bool is_word(char ch)
{
	return is_letter(ch) || is_digit(ch) || ch == '_';
}

static bool accept(struct cursor *c, char ch)
{
	if (*c->p != ch)
		return false;
	c->p++;
	return true;
}

static void skip_blanks(struct cursor *c)
{
	while (*c->p == ' ')
		c->p++;
}

static struct ap_name word(struct cursor *c)
{
	struct ap_name w = {c->p, 0};

	if (!is_letter(*c->p))
		fail(c, "a name must follow");
	while (is_word(*c->p))
		c->p++;
	w.len = (size_t)(c->p - w.s);
	return w;
}

static int64_t number(struct cursor *c)
{
	int64_t v = 0;

	if (!is_digit(*c->p))
		fail(c, "a number must follow");
	while (is_digit(*c->p) && v < 1000000)
		v = v * 10 + (*c->p++ - '0');
	return v;
}

static bool letter(struct cursor *c, struct ap_term *t)
{
	uint32_t bit;

	if (!is_letter(*c->p))
		return fail(c, "a factor letter must follow");
	if (t->n == AP_MAX_DIM_FACTOR)
		return fail(c, "too many factors in one dimension");
	bit = UINT32_C(1) << (*c->p - 'a');
	t->letter[t->n++] = *c->p++;
	if (accept(c, '!'))
		c->r->frozen |= bit;
	if (accept(c, '@'))
		c->r->lookup |= bit;
	return true;
}

static bool factors(struct cursor *c, struct ap_term *t)
{
	t->kind = AP_TERM_FACTOR;
	if (!accept(c, '('))
		return letter(c, t);
	while (*c->p != ')')
		if (!letter(c, t))
			return false;
	c->p++;
	return t->n >= 2 || fail(c, "a composed dimension needs two factors");
}

static bool same_name(struct ap_name a, struct ap_name b)
{
	return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

/* "name", "name=-1", "name.", "name=1.." or with "!", before the closing bracket. */
static bool axis(struct cursor *c, struct ap_term *t, bool result)
{
	struct ap_axis_rule a = {.attr = word(c), .reorder = result};
	uint8_t i = 0;

	if (accept(c, '=')) {
		bool minus = accept(c, '-');

		a.has_default = true;
		a.otherwise = minus ? -number(c) : number(c);
	}
	if (accept(c, '.')) {
		a.to_end = accept(c, '.');
		a.single = !a.to_end;
	}
	a.frozen = accept(c, '!');
	if (!accept(c, ']'))
		return fail(c, "\"]\" must follow");
	while (i < c->r->naxis && !same_name(c->r->axis[i].attr, a.attr))
		i++;
	if (i == AP_MAX_RULE_AXIS)
		return fail(c, "too many attributes in brackets");
	if (i == c->r->naxis)
		c->r->axis[c->r->naxis++] = a;
	t->kind = AP_TERM_AXIS;
	t->axis = i;
	return true;
}

/* The letter after "~". */
static bool window(struct cursor *c, struct ap_term *t)
{
	if (t->n != 1)
		return fail(c, "windows slide over one factor");
	if (!is_letter(*c->p))
		return fail(c, "a letter must follow");
	t->window = *c->p++;
	c->r->window |= UINT32_C(1) << (t->window - 'a');
	return true;
}

static bool term(struct cursor *c, struct ap_tensor_rule *t, struct ap_term *x, bool result)
{
	if (accept(c, '*')) {
		x->kind = AP_TERM_STAR;
		if (t->star)
			return fail(c, "\"*\" stands twice in one tensor");
		t->star = true;
	} else if (accept(c, '[')) {
		if (*c->p != '1')
			return axis(c, x, result);
		c->p++;
		x->kind = AP_TERM_UNIT;
		return accept(c, ']') || fail(c, "\"]\" must follow");
	} else if (accept(c, '.')) {
		x->kind = AP_TERM_ANY;
	} else if (is_digit(*c->p)) {
		x->kind = AP_TERM_FIXED;
		x->length = *c->p++ - '0';
	} else if (factors(c, x)) {
		x->broadcast = accept(c, '^');
		if (accept(c, '~'))
			return window(c, x);
	}
	return !c->wrong;
}

static bool ends_tensor(char ch)
{
	return ch == '\0' || ch == ',' || ch == ';' || ch == '-' || ch == ' ';
}

static bool tensor(struct cursor *c, struct ap_tensor_rule *t, bool result)
{
	if (accept(c, '?')) {
		t->whole = true;
		return !result || fail(c, "a result cannot be \"?\"");
	}
	if (c->p[0] == '(' && c->p[1] == ')') {
		c->p += 2;
		return true;
	}
	while (!ends_tensor(*c->p)) {
		if (t->nterm == AP_MAX_RANK)
			return fail(c, "too many dimensions");
		if (!term(c, t, &t->term[t->nterm], result))
			return false;
		t->nterm++;
	}
	return t->nterm > 0 || fail(c, "an operand or result is empty");
}

static bool operands(struct cursor *c)
{
	struct ap_rule *r = c->r;
	bool optional = false;

	do {
		if (r->nin == AP_MAX_RULE_OPERAND)
			return fail(c, "too many operands");
		if (!tensor(c, &r->in[r->nin++], false))
			return false;
		r->nrequired = (uint8_t)(r->nrequired + !optional);
		if (*c->p == ';' && optional)
			return fail(c, "\";\" stands twice");
		optional |= *c->p == ';';
	} while (accept(c, ',') || accept(c, ';'));
	return true;
}

static bool results(struct cursor *c)
{
	struct ap_rule *r = c->r;
	bool follows = false;

	if (!accept(c, '-') || !accept(c, '>'))
		return fail(c, "\"->\" must follow");
	do {
		if (r->nout == AP_MAX_RULE_RESULT)
			return fail(c, "too many results");
		if (!tensor(c, &r->out[r->nout++], true))
			return false;
		r->nmade = (uint8_t)(r->nmade + !follows);
		if (*c->p == ';' && follows)
			return fail(c, "\";\" stands twice");
		follows |= *c->p == ';';
	} while (accept(c, ',') || accept(c, ';'));
	return true;
}

static bool equations(struct cursor *c)
{
	struct ap_rule *r = c->r;

	skip_blanks(c);
	if (!accept(c, ':'))
		return true;
	do {
		struct ap_equation *e = &r->equation[r->nequation];
		struct ap_term t = {0};

		skip_blanks(c);
		if (r->nequation == AP_MAX_RULE_EQUATION)
			return fail(c, "too many equations");
		while (*c->p != '=')
			if (!letter(c, &t))
				return false;
		c->p++;
		r->nequation++;
		e->n = t.n;
		memcpy(e->letter, t.letter, sizeof e->letter);
		e->attr = word(c);
	} while (accept(c, ','));
	return !c->wrong;
}

static uint32_t letters_of(const struct ap_tensor_rule *t)
{
	uint32_t mask = 0;

	for (uint8_t i = 0; i < t->nterm; i++)
		for (uint8_t k = 0; k < t->term[i].n; k++)
			mask |= UINT32_C(1) << (t->term[i].letter[k] - 'a');
	return mask;
}

/* Checks that all letters of results get a length, from an operand or an equation. */
static bool results_are_known(struct cursor *c)
{
	const struct ap_rule *r = c->r;
	uint32_t known = 0;
	bool star = false;

	for (uint8_t i = 0; i < r->nin; i++) {
		known |= letters_of(&r->in[i]);
		star |= r->in[i].star;
	}
	for (uint8_t i = 0; i < r->nequation; i++)
		for (uint8_t k = 0; k < r->equation[i].n; k++)
			known |= UINT32_C(1) << (r->equation[i].letter[k] - 'a');
	for (uint8_t i = 0; i < r->nout; i++) {
		if (letters_of(&r->out[i]) & ~known)
			return fail(c, "a result has a factor that no operand has");
		if (r->out[i].star && !star)
			return fail(c, "a result has \"*\" and no operand has");
	}
	return true;
}

const char *ap_rule_parse(const char *text, struct ap_rule *r, size_t *at)
{
	struct cursor c = {.p = text, .r = r};

	memset(r, 0, sizeof *r);
	if (accept(&c, '='))
		r->expander = word(&c);
	else if (operands(&c) && results(&c) && equations(&c))
		results_are_known(&c);
	if (!c.wrong && *c.p)
		fail(&c, "nothing more may follow");
	*at = (size_t)((c.wrong ? c.at : c.p) - text);
	return c.wrong;
}
