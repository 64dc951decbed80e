/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a row's text to an operator's shapes: which dimension is which factor, and its length. */
#include "rule/bind.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "rule/attend.h"
#include "rule/attr.h"
#include "rule/binding.h"
#include "rule/notation.h"
#include "rule/op.h"
#include "rule/window.h"

/* The highest result letter in a text like save or grad, as a count. */
static uint16_t kept_results(const char *save)
{
	uint16_t n = 0;

	for (; *save; save++)
		if (*save >= 'o' && *save - 'o' + 1 > n)
			n = (uint16_t)(*save - 'o' + 1);
	return n;
}

/* Slots ascend, so no required operand is missing if the last one is in its place. */
static bool required_given(const struct ap_binding *b)
{
	unsigned n = b->rule.nrequired;

	return n == 0 || (b->in->nin >= n && ap_bind_slot(b, n - 1) == n - 1);
}

static bool check_counts(struct ap_binding *b)
{
	const struct ap_rule *r = &b->rule;
	uint16_t said = b->in->nout ? b->in->nout : 1, kept = kept_results(b->row->save);

	for (unsigned i = 0; i < b->in->nin; i++)
		if (ap_bind_slot(b, i) >= r->nin)
			return ap_bind_fail(b, "operator-inputs", -1,
				"%s takes at most %d operands; operand %u is too much",
				b->row->name, r->nin, ap_bind_slot(b, i));
	if (!required_given(b))
		return ap_bind_fail(b, "operator-inputs", -1,
			"%s needs %d operands; %u are given", b->row->name, r->nrequired,
			b->in->nin);
	if (said > r->nout)
		return ap_bind_fail(b, "operator-outputs", -1,
			"%s has %d results; %d are declared", b->row->name, r->nout, said);
	b->nout = said > kept ? said : kept;
	return true;
}

/* Are all extents fixed by the rule? Then the result depends on no operand. */
static bool is_constant(const struct ap_tensor_rule *t)
{
	for (uint8_t i = 0; i < t->nterm; i++)
		if (t->term[i].kind != AP_TERM_FIXED)
			return false;
	return t->nterm > 0;
}

/* Is operand i ('a') or result i ('o') in the list? Not if there is no letter left for it. */
static bool has_letter(const char *list, char first, unsigned i)
{
	unsigned letters = first == 'a' ? 'o' - 'a' : 'z' - 'o' + 1;

	return i < letters && strchr(list, first + (int)i);
}

static void mark_tensors(struct ap_binding *b)
{
	const struct ap_op_row *row = b->row;

	for (unsigned i = 0; i < b->in->nin; i++) {
		struct ap_operand *o = &b->bin[i];
		unsigned slot = ap_bind_slot(b, i);
		bool wanted = *row->grad == '*' || has_letter(row->grad, 'a', slot);

		o->dtype = b->in->in[i].dtype;
		o->saved = has_letter(row->save, 'a', slot);
		o->differentiable = wanted && ap_dtype_is_float(o->dtype);
	}
	for (unsigned i = 0; i < b->nout; i++) {
		b->bout[i].saved = has_letter(row->save, 'o', i);
		if (!b->rule.expander.len)
			b->bout[i].silent = i >= b->rule.nmade || is_constant(&b->rule.out[i]);
	}
	for (unsigned t = 0; t < b->in->nin + (unsigned)b->nout; t++) {
		struct ap_operand *o = t < b->in->nin ? &b->bin[t] : &b->bout[t - b->in->nin];

		for (uint8_t i = 0; i < o->rank; i++)
			for (uint8_t k = 0; k < o->dim[i].n; k++)
				o->factors |= UINT32_C(1) << o->dim[i].factor[k];
		if (o == b->bout)
			o->factors &= ~b->bound.dealt;
	}
}

static bool of_letter(const struct ap_factor *f, char letter)
{
	return letter == '*' ? f->letter >= 'A' && f->letter <= 'Z' : f->letter == letter;
}

struct condition { /* attr, !attr, attr=v|w, attr?=v, attr?, outputs=n, given=a|b, absent=a|b */
	char name[32];
	bool negated, or_missing;
	const char *values; /* NULL for attr, !attr or attr? */
	size_t len; /* length of values */
};

static struct condition read_condition(const char *text, size_t len)
{
	const char *eq = memchr(text, '=', len);
	struct condition c = {.negated = *text == '!', .values = eq ? eq + 1 : NULL};
	size_t n = eq ? (size_t)(eq - text) : len;

	c.or_missing = text[n - 1] == '?';
	c.len = eq ? len - n - 1 : 0;
	snprintf(c.name, sizeof c.name, "%.*s", (int)(n - c.negated - c.or_missing),
		text + c.negated);
	return c;
}

/* Is value a word of list? Words are separated by '|'. */
static bool listed(const char *list, size_t len, const char *value)
{
	const char *end = list + len;
	size_t n = strlen(value);

	for (const char *p = list; p < end;) {
		const char *bar = memchr(p, '|', (size_t)(end - p));
		size_t w = (size_t)((bar ? bar : end) - p);

		if (w == n && memcmp(p, value, n) == 0)
			return true;
		p += w + 1;
	}
	return false;
}

static bool is_set(const struct ap_attrs *attrs, const char *name)
{
	const struct ap_attr *a = ap_attr_get(attrs, name);

	return a && (a->type == AP_ATTR_BOOL || a->type == AP_ATTR_INT ? a->i != 0 : true);
}

/* Is one of the listed operands present? */
static bool is_given(const struct ap_bind_in *in, const struct condition *c)
{
	for (uint16_t i = 0; i < in->nin; i++) {
		unsigned slot = in->slot ? in->slot[i] : i;
		const char letter[] = {(char)('a' + slot % 26), '\0'};

		if (slot < 26 && listed(c->values, c->len, letter))
			return true;
	}
	return false;
}

static bool is_unnamed(const struct ap_attrs *attrs, const char *name)
{
	const struct ap_attr *a = ap_attr_get(attrs, name);

	return !a || (a->type == AP_ATTR_INTS && a->n == 0);
}

/* The attribute's value as a word of a condition; "0" if it is missing. */
static const char *value_of(const struct ap_attrs *attrs, const char *name, char buf[32])
{
	const char *s = ap_attr_str(attrs, name, NULL);
	const struct ap_attr *a = ap_attr_get(attrs, name);

	if (s)
		return s;
	if (a && a->type == AP_ATTR_INTS && a->n != 1)
		return "a list";
	snprintf(buf, 32, "%" PRId64, ap_attr_int(attrs, name, 0));
	return buf;
}

static bool is_outputs(const struct condition *c)
{
	return strcmp(c->name, "outputs") == 0;
}

static const char *value_for(const struct ap_bind_in *in, const struct condition *c, char buf[32])
{
	if (!is_outputs(c))
		return value_of(in->attrs, c->name, buf);
	snprintf(buf, 32, "%d", in->nout ? in->nout : 1);
	return buf;
}

static bool holds(const struct ap_bind_in *in, const struct condition *c)
{
	char buf[32];

	if (!c->values && c->or_missing)
		return is_unnamed(in->attrs, c->name);
	if (!c->values)
		return is_set(in->attrs, c->name) != c->negated;
	if (strcmp(c->name, "given") == 0 || strcmp(c->name, "absent") == 0)
		return is_given(in, c) == (*c->name == 'g');
	if (c->or_missing && !ap_attr_get(in->attrs, c->name))
		return true;
	return listed(c->values, c->len, value_for(in, c, buf));
}

/* "a|b" as "a or b". */
static const char *alternatives(struct ap_binding *b, const struct condition *c)
{
	struct ap_str s;

	ap_str_init(&s, b->ctx->arena);
	for (size_t i = 0; i < c->len; i++) {
		if (c->values[i] == '|')
			ap_str_add(&s, " or ");
		else
			ap_str_addc(&s, c->values[i]);
	}
	return s.s;
}

static bool refuse(struct ap_binding *b, const struct condition *c)
{
	char buf[32];

	if (strcmp(c->name, "given") == 0 || strcmp(c->name, "absent") == 0)
		return ap_bind_fail(b, "operator-inputs", -1, "operand %s must be %s",
			alternatives(b, c), *c->name == 'g' ? "given" : "left out");
	if (is_outputs(c))
		return ap_bind_fail(b, "operator-outputs", -1,
			"%s results are declared; %s is expected", value_for(b->in, c, buf),
			alternatives(b, c));
	if (!c->values)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %s must %sbe set", c->name,
			c->negated || c->or_missing ? "not " : "");
	return ap_bind_fail(b, "operator-attr", -1, "attribute %s is %s; %s is expected", c->name,
		value_for(b->in, c, buf), alternatives(b, c));
}

/* Do the row's conditions hold? */
static bool bind_when(struct ap_binding *b)
{
	const char *p = b->row->when;

	while (*p) {
		const char *amp = strstr(p, " & ");
		size_t len = amp ? (size_t)(amp - p) : strlen(p);
		struct condition c = read_condition(p, len);

		if (!holds(b->in, &c))
			return refuse(b, &c);
		b->passed++;
		p += len + (amp ? 3 : 0);
	}
	return true;
}

/* Lengths of factors: each dimension states the value of a product of factors. If the factors of
 * one product are among another's, the other one is divided by it: from n*g = 64, n*g*d = 8192 and
 * n*d = 1024 follow d = 128, n = 8, g = 8. */
struct product {
	uint32_t mask; /* of letters */
	int64_t value;
	int operand, dim; /* its origin; operand -1: the attribute of equation dim */
};

struct products {
	unsigned n;
	struct product v[AP_MAX_RULE_OPERAND * AP_MAX_RANK + AP_MAX_RULE_EQUATION];
};

static bool disagree_with(struct ap_binding *b, const struct ap_name *attr, const struct product *y)
{
	if (y->operand < 0)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %.*s is %" PRId64
			"; what goes with the other attributes is expected", (int)attr->len, attr->s,
			ap_bind_attr(b, *attr)->i);
	return ap_bind_fail(b, "operator-shape", y->operand, "dimension %d of operand %d is %" PRId64
		"; what goes with attribute %.*s of %" PRId64 " is expected", y->dim, y->operand,
		b->in->in[y->operand].dim[y->dim], (int)attr->len, attr->s,
		ap_bind_attr(b, *attr)->i);
}

static bool disagree(struct ap_binding *b, const struct product *x, const struct product *y)
{
	if (y->operand < 0 && x->operand >= 0)
		return disagree(b, y, x);
	if (x->operand < 0)
		return disagree_with(b, &b->rule.equation[x->dim].attr, y);
	return ap_bind_fail(b, "operator-shape", y->operand,
		"dimension %d of operand %d is %" PRId64 ", dimension %d of operand %d is %" PRId64
		"; equal lengths of what they share are expected", y->dim, y->operand,
		b->in->in[y->operand].dim[y->dim], x->dim, x->operand,
		b->in->in[x->operand].dim[x->dim]);
}

/* Divides y by the factors of x. */
static bool reduce(struct ap_binding *b, const struct product *x, struct product *y, bool *changed)
{
	if (x == y || !x->mask || (x->mask & ~y->mask))
		return true;
	if (y->value % x->value || (x->mask == y->mask && x->value != y->value))
		return disagree(b, x, y);
	y->mask &= ~x->mask;
	y->value /= x->value;
	*changed = true;
	return true;
}

static bool solve(struct ap_binding *b, struct products *p)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (unsigned i = 0; i < p->n; i++)
			for (unsigned k = 0; k < p->n; k++)
				if (!reduce(b, &p->v[i], &p->v[k], &changed))
					return false;
	}
	for (unsigned i = 0; i < p->n; i++)
		for (int l = 0; l < AP_LETTERS; l++)
			if (p->v[i].mask == UINT32_C(1) << l)
				b->length[l] = p->v[i].value;
	return true;
}

static uint32_t mask_of(const char *letter, uint8_t n)
{
	uint32_t mask = 0;

	for (uint8_t i = 0; i < n; i++)
		mask |= UINT32_C(1) << (letter[i] - 'a');
	return mask;
}

/* Extents of base: the "*" parts of all operands, aligned right and broadcast. */
static bool broadcast(struct ap_binding *b, unsigned i, uint8_t first, uint8_t n)
{
	const struct ap_shape *s = &b->in->in[i];

	for (uint8_t k = 0; k < n; k++) {
		int64_t *have = &b->base[b->base_rank - n + k], want = s->dim[first + k];

		if (*have != 1 && want != 1 && *have != want)
			return ap_bind_fail(b, "operator-shape", (int)i,
				"dimension %d of operand %u is %" PRId64 ", another operand has "
				"%" PRId64 " there; equal lengths or 1 are expected", first + k, i,
				want, *have);
		*have = *have > want ? *have : want;
	}
	return true;
}

static bool collect_equation(struct ap_binding *b, const struct ap_equation *e, struct products *p)
{
	const struct ap_attr *attr = ap_bind_attr(b, e->attr);

	if (!attr)
		return true;
	if (attr->i < 1)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %.*s must be at least 1",
			(int)e->attr.len, e->attr.s);
	p->v[p->n++] = (struct product){mask_of(e->letter, e->n), attr->i, -1,
		(int)(e - b->rule.equation)};
	return true;
}

static bool check_known(struct ap_binding *b)
{
	const struct ap_rule *r = &b->rule;
	uint32_t needed = 0;

	for (unsigned t = 0; t < b->in->nin + (unsigned)b->nout; t++) {
		const struct ap_tensor_rule *x = t < b->in->nin
			? &r->in[ap_bind_slot(b, t)] : &r->out[t - b->in->nin];

		for (uint8_t i = 0; i < x->nterm; i++)
			if (!x->term[i].broadcast || t >= b->in->nin)
				needed |= mask_of(x->term[i].letter, x->term[i].n);
	}
	for (int l = 0; l < AP_LETTERS; l++) {
		if (!(needed >> l & 1) || b->length[l])
			continue;
		for (uint8_t e = 0; e < r->nequation; e++)
			if (!ap_bind_attr(b, r->equation[e].attr))
				return ap_bind_fail(b, "operator-attr", -1,
					"attribute %.*s is missing",
					(int)r->equation[e].attr.len, r->equation[e].attr.s);
		return ap_bind_fail(b, "operator-shape", -1,
			"the length of factor %c cannot be told", 'a' + l);
	}
	return true;
}

/* Computes lengths of letters from operand shapes and attributes. */
static bool lengths(struct ap_binding *b)
{
	struct products p = {0};

	memset(b->length, 0, sizeof b->length);
	for (unsigned i = 0; i < b->in->nin; i++) {
		const struct ap_tensor_rule *t = &b->rule.in[ap_bind_slot(b, i)];
		const struct ap_shape *s = &b->in->in[i];
		int spread = s->rank - t->nterm; /* dimensions of "*", minus one */

		for (int k = 0, dim = 0; k < t->nterm && !t->whole; k++, dim++) {
			const struct ap_term *x = &t->term[k];

			if (x->kind == AP_TERM_STAR || x->kind == AP_TERM_AXIS) {
				dim += spread;
				continue;
			}
			if (x->kind != AP_TERM_FACTOR || x->window || (x->broadcast && s->dim[dim] == 1))
				continue;
			p.v[p.n++] = (struct product){mask_of(x->letter, x->n), s->dim[dim], (int)i, dim};
		}
	}
	for (uint8_t i = 0; i < b->rule.nequation; i++)
		if (!collect_equation(b, &b->rule.equation[i], &p))
			return false;
	return solve(b, &p) && ap_bind_windows(b) && check_known(b);
}

static const struct ap_tensor_rule *operand_rule(const struct ap_binding *b, unsigned i)
{
	return &b->rule.in[ap_bind_slot(b, i)];
}

/* Number of dimensions that are not positions of base. */
static uint8_t own_terms(const struct ap_tensor_rule *t)
{
	uint8_t n = 0;

	for (uint8_t i = 0; i < t->nterm; i++)
		n = (uint8_t)(n + (t->term[i].kind == AP_TERM_FACTOR ||
			t->term[i].kind == AP_TERM_FIXED || t->term[i].kind == AP_TERM_ANY));
	return n;
}

static bool has_kind(const struct ap_tensor_rule *t, enum ap_term_kind kind)
{
	for (uint8_t i = 0; i < t->nterm; i++)
		if (t->term[i].kind == kind)
			return true;
	return false;
}

static bool check_rank(struct ap_binding *b, unsigned i)
{
	const struct ap_tensor_rule *t = operand_rule(b, i);
	uint8_t own = own_terms(t), rank = b->in->in[i].rank;
	bool open = t->star || has_kind(t, AP_TERM_AXIS);

	if (t->whole || (open ? rank >= own : rank == own))
		return true;
	return ap_bind_fail(b, "operator-rank", (int)i,
		"operand %u has shape %s; %s needs %s%d dimensions there", i,
		ap_bind_shape(b, b->in->in[i].dim, rank), b->row->name, open ? "at least " : "",
		own);
}

static bool match_ranks(struct ap_binding *b)
{
	b->base_rank = 0;
	for (uint8_t i = 0; i < AP_MAX_RANK; i++)
		b->base[i] = 1;
	for (unsigned i = 0; i < b->in->nin; i++) {
		const struct ap_tensor_rule *t = operand_rule(b, i);
		int n = b->in->in[i].rank - own_terms(t);

		if (!check_rank(b, i))
			return false;
		if (t->star && n > b->base_rank)
			b->base_rank = (uint8_t)n;
	}
	return true;
}

static uint8_t terms_before_star(const struct ap_tensor_rule *t)
{
	uint8_t n = 0;

	while (t->term[n].kind != AP_TERM_STAR && t->term[n].kind != AP_TERM_AXIS)
		n++;
	return n;
}

static bool match_base(struct ap_binding *b)
{
	for (unsigned i = 0; i < b->in->nin; i++) {
		const struct ap_tensor_rule *t = operand_rule(b, i);
		uint8_t n = (uint8_t)(b->in->in[i].rank - own_terms(t));

		if (t->star && !broadcast(b, i, terms_before_star(t), n))
			return false;
	}
	return true;
}

/* Adds dimension v (negative: from the end) of rank. */
static bool add(struct ap_binding *b, struct ap_name attr, struct ap_positions *p, int64_t v,
	uint8_t rank)
{
	uint8_t at;

	if (v < -(int64_t)rank || v >= rank)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %.*s is %" PRId64 "; with %d dimensions %d..%d is allowed",
			(int)attr.len, attr.s, v, rank, -rank, rank - 1);
	at = (uint8_t)(v < 0 ? v + rank : v);
	if (p->mask >> at & 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %.*s names dimension %d twice; once is allowed",
			(int)attr.len, attr.s, at);
	p->mask |= UINT32_C(1) << at;
	p->v[p->n++] = at;
	return true;
}

static bool add_list(struct ap_binding *b, const struct ap_axis_rule *a, struct ap_positions *p,
	const struct ap_attr *attr, uint8_t rank)
{
	uint32_t n = attr->type == AP_ATTR_INTS ? attr->n : 1;
	const int64_t *v = attr->type == AP_ATTR_INTS ? attr->list : &attr->i;

	if (n > rank)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %.*s has %" PRIu32 " values; at most %d are expected",
			(int)a->attr.len, a->attr.s, n, rank);
	for (uint32_t i = 0; i < n; i++)
		if (!add(b, a->attr, p, v[i], rank))
			return false;
	return true;
}

static bool add_rest(struct ap_binding *b, const struct ap_axis_rule *a, struct ap_positions *p,
	uint8_t rank)
{
	for (uint8_t i = 0; i < rank; i++)
		if (!(p->mask >> i & 1) && !add(b, a->attr, p, i, rank))
			return false;
	return true;
}

/* Adds the dimensions after the named one. */
static bool extend(struct ap_binding *b, const struct ap_axis_rule *a, struct ap_positions *p,
	uint8_t rank)
{
	uint8_t first = p->v[0];

	for (uint8_t i = (uint8_t)(first + 1); i < rank; i++)
		if (!add(b, a->attr, p, i, rank))
			return false;
	return true;
}

/* Sets the positions that axis rule i names, out of rank. */
static bool bind_axis(struct ap_binding *b, uint8_t i, uint8_t rank)
{
	const struct ap_axis_rule *a = &b->rule.axis[i];
	const struct ap_attr *attr = ap_bind_attr(b, a->attr);
	struct ap_positions *p = &b->axis[i];
	bool all = !attr || (attr->type == AP_ATTR_INTS && attr->n == 0);

	memset(p, 0, sizeof *p);
	if (attr && !all && !add_list(b, a, p, attr, rank))
		return false;
	if (a->reorder)
		return p->n == rank || ap_bind_fail(b, "operator-attr", -1,
			"attribute %.*s must name each of the %d dimensions once", (int)a->attr.len,
				a->attr.s, rank);
	if (all && a->has_default && !add(b, a->attr, p, a->otherwise, rank))
		return false;
	if ((a->single || a->to_end) && p->n != 1)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %.*s must be one number",
			(int)a->attr.len, a->attr.s);
	if (a->single)
		return true;
	if (a->to_end)
		return extend(b, a, p, rank);
	return !all || a->has_default || add_rest(b, a, p, rank);
}

/* Checks that no result has more than AP_MAX_RANK dimensions. */
static bool check_result_rank(struct ap_binding *b)
{
	for (unsigned i = 0; i < b->nout; i++) {
		const struct ap_tensor_rule *t = &b->rule.out[i];

		if (own_terms(t) + (t->star ? b->base_rank : 0) > AP_MAX_RANK)
			return ap_bind_fail(b, "operator-rank", -1,
				"result %u would have more than %d dimensions", i, AP_MAX_RANK);
	}
	return true;
}

/* What a dimension of a tensor is by its rule. */
struct place {
	const struct ap_term *term; /* FACTOR, FIXED or ANY; NULL for position pos of base */
	uint8_t pos;
	bool unit; /* [1]: length one instead of base's */
};

static void add_place(struct place *p, uint8_t *n, struct place x)
{
	assert(*n < AP_MAX_RANK);
	p[(*n)++] = x;
}

/* "*" of an operand is its last positions of base; of a result, those not named by an attribute, or
 * beside "[..]" all of them. */
static void star_places(const struct ap_binding *b, const struct ap_tensor_rule *t, int rank,
	struct place *p, uint8_t *n)
{
	bool unit = has_kind(t, AP_TERM_UNIT), axis = has_kind(t, AP_TERM_AXIS);
	int first = rank < 0 ? 0 : b->base_rank - (rank - own_terms(t));

	for (int i = first; i < b->base_rank; i++) {
		bool named = b->named >> i & 1;

		if (rank >= 0 || unit || axis || !named)
			add_place(p, n, (struct place){NULL, (uint8_t)i, unit && named});
	}
}

static void axis_places(const struct ap_binding *b, uint8_t axis, bool ordered, struct place *p,
	uint8_t *n)
{
	const struct ap_positions *a = &b->axis[axis];

	for (uint8_t i = 0; ordered && i < a->n; i++)
		add_place(p, n, (struct place){NULL, a->v[i], false});
	for (uint8_t i = 0; !ordered && i < b->base_rank; i++)
		if (a->mask >> i & 1)
			add_place(p, n, (struct place){NULL, i, false});
}

/* The places of a tensor's dimensions in order. rank: of an operand; -1 for a result. */
static uint8_t places(const struct ap_binding *b, const struct ap_tensor_rule *t, int rank,
	struct place p[AP_MAX_RANK])
{
	uint8_t n = 0;

	for (uint8_t i = 0; i < t->nterm; i++) {
		const struct ap_term *x = &t->term[i];
		bool reorder = x->kind == AP_TERM_AXIS && b->rule.axis[x->axis].reorder;

		if (x->kind == AP_TERM_STAR) {
			if (i + 1 < t->nterm && t->term[i + 1].kind == AP_TERM_AXIS &&
				b->rule.axis[t->term[i + 1].axis].reorder)
				continue;
			star_places(b, t, rank, p, &n);
		} else if (x->kind == AP_TERM_AXIS) {
			if (!t->star || reorder)
				axis_places(b, x->axis, reorder, p, &n);
		} else if (x->kind != AP_TERM_UNIT) {
			add_place(p, &n, (struct place){x, 0, false});
		}
	}
	return n;
}

/* An operand with named positions only (scale of a norm) must have base's extents. */
static bool match_named(struct ap_binding *b, unsigned i)
{
	const struct ap_tensor_rule *t = operand_rule(b, i);
	const struct ap_shape *s = &b->in->in[i];
	struct place p[AP_MAX_RANK];
	uint8_t n;

	if (t->whole || t->star || !has_kind(t, AP_TERM_AXIS))
		return true;
	n = places(b, t, s->rank, p);
	if (n != s->rank)
		return ap_bind_fail(b, "operator-rank", (int)i,
			"operand %u has shape %s; %d dimensions are expected", i,
			ap_bind_shape(b, s->dim, s->rank), n);
	for (uint8_t k = 0; k < n; k++)
		if (!p[k].term && s->dim[k] != b->base[p[k].pos])
			return ap_bind_fail(b, "operator-shape", (int)i,
				"dimension %d of operand %u is %" PRId64 "; %" PRId64
				" is expected", k, i, s->dim[k], b->base[p[k].pos]);
	return true;
}

static bool match_fixed(struct ap_binding *b, unsigned i)
{
	const struct ap_tensor_rule *t = operand_rule(b, i);
	const struct ap_shape *s = &b->in->in[i];
	struct place p[AP_MAX_RANK];
	uint8_t n = t->whole ? 0 : places(b, t, s->rank, p);

	for (uint8_t k = 0; k < n; k++)
		if (p[k].term && p[k].term->kind == AP_TERM_FIXED && s->dim[k] != p[k].term->length)
			return ap_bind_fail(b, "operator-shape", (int)i,
				"dimension %d of operand %u is %" PRId64 "; %" PRId64
				" is expected", k, i, s->dim[k], p[k].term->length);
	return true;
}

static bool add_base_factors(struct ap_binding *b)
{
	for (uint8_t i = 0; i < b->base_rank; i++) {
		uint8_t frozen = b->base_frozen >> i & 1 ? AP_FACTOR_FROZEN : 0;

		if (b->base[i] > 1 && b->base_factor[i] == AP_NO_FACTOR &&
			!ap_bind_factor(b, (char)('A' + i), frozen, b->base[i], &b->base_factor[i]))
			return false;
	}
	return true;
}

static bool add_letter_factor(struct ap_binding *b, char letter)
{
	int l = letter - 'a';
	uint8_t flags = 0;

	if (b->rule.frozen >> l & 1)
		flags |= AP_FACTOR_FROZEN;
	if (b->rule.lookup >> l & 1)
		flags |= AP_FACTOR_LOOKUP;
	if (b->length[l] <= 1 || b->letter_factor[l] != AP_NO_FACTOR || b->rule.window >> l & 1)
		return true;
	return ap_bind_factor(b, letter, flags, b->length[l], &b->letter_factor[l]);
}

/* Adds factors in order of first appearance; those of base together, at the first "*". */
static bool add_factors(struct ap_binding *b, const struct ap_tensor_rule *t)
{
	for (uint8_t i = 0; i < t->nterm; i++) {
		const struct ap_term *x = &t->term[i];

		if (x->kind == AP_TERM_STAR && !add_base_factors(b))
			return false;
		for (uint8_t k = 0; k < x->n; k++)
			if (!add_letter_factor(b, x->letter[k]))
				return false;
	}
	return true;
}

/* Matches operands with the row's text: base, lengths, factors. */
static bool match(struct ap_binding *b)
{
	b->stage = AP_STAGE_RANK;
	if (!match_ranks(b) || !check_result_rank(b))
		return false;
	b->stage = AP_STAGE_AXIS;
	b->named = b->base_frozen = 0;
	for (uint8_t i = 0; i < b->rule.naxis; i++)
		if (!bind_axis(b, i, b->base_rank))
			return false;
	for (unsigned i = 0; i < b->in->nin; i++) {
		const struct ap_tensor_rule *t = operand_rule(b, i);

		for (uint8_t k = 0; k < t->nterm && t->star; k++)
			if (t->term[k].kind == AP_TERM_AXIS)
				b->named |= b->axis[t->term[k].axis].mask;
	}
	for (uint8_t i = 0; i < b->rule.naxis; i++)
		if (b->rule.axis[i].frozen)
			b->base_frozen |= b->axis[i].mask;
	b->stage = AP_STAGE_SIZE;
	if (!match_base(b) || !lengths(b))
		return false;
	for (unsigned i = 0; i < b->in->nin; i++)
		if (!match_named(b, i) || !match_fixed(b, i))
			return false;
	memset(b->base_factor, AP_NO_FACTOR, sizeof b->base_factor);
	memset(b->letter_factor, AP_NO_FACTOR, sizeof b->letter_factor);
	for (unsigned i = 0; i < b->in->nin; i++)
		if (!add_factors(b, operand_rule(b, i)))
			return false;
	for (unsigned i = 0; i < b->nout; i++)
		if (!add_factors(b, &b->rule.out[i]))
			return false;
	return true;
}

static int64_t place_size(const struct ap_binding *b, const struct place *p)
{
	int64_t size = 1;

	if (!p->term)
		return p->unit ? 1 : b->base[p->pos];
	if (p->term->kind == AP_TERM_FIXED)
		return p->term->length;
	for (uint8_t w = 0; p->term->window && w < b->bound.nwindow; w++)
		if (b->window_letter[w] == p->term->letter[0])
			return b->bound.window[w].count;
	for (uint8_t i = 0; i < p->term->n; i++)
		size *= b->length[p->term->letter[i] - 'a'];
	return size;
}

static void compose(struct ap_dim *d, uint8_t factor)
{
	if (factor != AP_NO_FACTOR)
		d->factor[d->n++] = factor;
}

static void place_factors(const struct ap_binding *b, const struct place *p, struct ap_dim *d)
{
	if (!p->term && !p->unit)
		compose(d, b->base_factor[p->pos]);
	for (uint8_t i = 0; p->term && i < p->term->n; i++)
		compose(d, b->letter_factor[p->term->letter[i] - 'a']);
}

/* shape is NULL for a result, whose extents follow from the rule. */
static void build_tensor(struct ap_binding *b, const struct ap_tensor_rule *t,
	const struct ap_shape *shape, struct ap_operand *o)
{
	struct place p[AP_MAX_RANK];
	uint8_t n = t->whole ? 0 : places(b, t, shape ? shape->rank : -1, p);

	o->rank = shape ? shape->rank : n;
	if (shape)
		memcpy(o->size, shape->dim, sizeof o->size);
	for (uint8_t i = 0; i < n; i++) {
		if (!shape)
			o->size[i] = place_size(b, &p[i]);
		if (o->size[i] > 1)
			place_factors(b, &p[i], &o->dim[i]);
	}
}

/* Builds the dimensions of operands and results after matching. */
static void build(struct ap_binding *b)
{
	for (unsigned i = 0; i < b->in->nin; i++)
		build_tensor(b, operand_rule(b, i), &b->in->in[i], &b->bin[i]);
	for (unsigned i = 0; i < b->nout; i++)
		build_tensor(b, &b->rule.out[i], NULL, &b->bout[i]);
	for (uint8_t w = 0; w < b->bound.nwindow; w++) {
		uint8_t f = b->letter_factor[b->window_letter[w] - 'a'];

		b->bound.window[w].factor = f;
		if (f != AP_NO_FACTOR)
			b->bound.factor[f].flags |= AP_FACTOR_MIXED;
	}
}

/*
 * Element types of a row, "operands:results", one letter each:
 *   operands: T one type for all T, R the same and real, f real, z real or complex, i integer,
 *             8 int8, b bool, x any; real types are the floating ones
 *   results:  T, R that type, b bool, 8 int8, f real (float32 unless declared),
 *             i integer (int32 unless attribute output_type or the declaration differs),
 *             m any (uint8 unless declared), C as attribute dst_type names,
 *             D as attribute dtype or output_type names, T's if there is none,
 *             c complex, r real, each as wide as operand 0, = that of the operand of that number
 * The last letter also holds for all that follow.
 */
static char code_at(const char *codes, unsigned i)
{
	unsigned n = (unsigned)strcspn(codes, ":");

	return codes[i < n ? i : n - 1];
}

static bool is_integer(enum ap_dtype t)
{
	return !ap_dtype_is_float(t) && t != AP_BOOL;
}

static bool is_real(enum ap_dtype t)
{
	return ap_dtype_is_float(t) && !ap_dtype_is_complex(t);
}

static bool type_fault(struct ap_binding *b, unsigned i, const char *wanted)
{
	return ap_bind_fail(b, "operator-dtype", (int)i, "operand %u is %s; %s is expected", i,
		ap_dtype_name(b->in->in[i].dtype), wanted);
}

static bool check_operand(struct ap_binding *b, unsigned i, enum ap_dtype *common)
{
	enum ap_dtype t = b->in->in[i].dtype;
	char code = code_at(b->row->types, ap_bind_slot(b, i));

	if ((code == 'f' || code == 'R') && !is_real(t))
		return type_fault(b, i, "a floating type");
	if (code == 'z' && !ap_dtype_is_float(t))
		return type_fault(b, i, "a floating or complex type");
	if (code == 'i' && !is_integer(t))
		return type_fault(b, i, "an integer type");
	if (code == '8' && t != AP_INT8)
		return type_fault(b, i, "int8");
	if (code == 'b' && t != AP_BOOL)
		return type_fault(b, i, "bool");
	if (code != 'T' && code != 'R')
		return true;
	if (*common != AP_DTYPE_COUNT && *common != t)
		return type_fault(b, i, ap_dtype_name(*common));
	*common = t;
	return true;
}

/* The type that an attribute names; reports a fault and returns false if it is unknown. */
static bool named_type(struct ap_binding *b, const char *attr, const char *name, enum ap_dtype *t)
{
	*t = ap_dtype_find(name);
	return *t != AP_DTYPE_COUNT || ap_bind_fail(b, "operator-attr", -1,
		"attribute %s is \"%s\"; a known element type is expected", attr, name);
}

static bool cast_type(struct ap_binding *b, enum ap_dtype *t)
{
	const char *name = ap_attr_str(b->in->attrs, "dst_type", NULL);

	if (!name)
		return ap_bind_fail(b, "operator-attr", -1, "attribute dst_type is missing");
	return named_type(b, "dst_type", name, t);
}

/* The type in dtype or output_type; AP_DTYPE_COUNT if neither is given. */
static bool wanted_type(struct ap_binding *b, enum ap_dtype *t)
{
	static const char *const attrs[] = {"dtype", "output_type"};

	*t = AP_DTYPE_COUNT;
	for (size_t i = 0; i < AP_COUNT(attrs); i++) {
		const char *name = ap_attr_str(b->in->attrs, attrs[i], NULL);

		if (name)
			return named_type(b, attrs[i], name, t);
	}
	return true;
}

static enum ap_dtype declared_type(const struct ap_binding *b, unsigned i)
{
	return b->in->declared && i < b->in->nout ? b->in->declared[i].dtype : AP_DTYPE_COUNT;
}

static enum ap_dtype real_type(const struct ap_binding *b, unsigned i)
{
	enum ap_dtype said = declared_type(b, i);

	return said != AP_DTYPE_COUNT && ap_dtype_is_float(said) ? said : AP_FLOAT32;
}

static bool integer_type(struct ap_binding *b, unsigned i, enum ap_dtype *t)
{
	enum ap_dtype said = declared_type(b, i);

	if (!wanted_type(b, t))
		return false;
	if (*t != AP_DTYPE_COUNT)
		return is_integer(*t) || ap_bind_fail(b, "operator-attr", -1,
			"attribute output_type is %s; an integer type is expected",
			ap_dtype_name(*t));
	*t = said != AP_DTYPE_COUNT && is_integer(said) ? said : AP_INT32;
	return true;
}

static bool is_double(const struct ap_binding *b)
{
	enum ap_dtype t = b->in->nin ? b->in->in[0].dtype : AP_FLOAT32;

	return t == AP_FLOAT64 || t == AP_COMPLEX128;
}

static bool set_result(struct ap_binding *b, unsigned i, char code, enum ap_dtype common)
{
	enum ap_dtype said = declared_type(b, i), *t = &b->bout[i].dtype, wanted;

	switch (code) {
	case 'C':
		return cast_type(b, t);
	case 'i':
		return integer_type(b, i, t);
	case 'b':
		*t = AP_BOOL;
		return true;
	case '8':
		*t = AP_INT8;
		return true;
	case 'm':
		*t = said != AP_DTYPE_COUNT ? said : AP_UINT8;
		return true;
	case '=':
		if (i >= b->in->nin)
			return set_result(b, i, 'm', common);
		*t = b->in->in[i].dtype;
		return true;
	case 'c':
		*t = is_double(b) ? AP_COMPLEX128 : AP_COMPLEX64;
		return true;
	case 'r':
		*t = is_double(b) ? AP_FLOAT64 : AP_FLOAT32;
		return true;
	default:
		if (code == 'D' && !wanted_type(b, &wanted))
			return false;
		/* products of 8 bits add up in more, and give at least 16 */
		if (code == 'T' && b->row->unit == AP_OP_CUBE && common != AP_DTYPE_COUNT &&
			ap_dtype_is_float8(common)) {
			*t = said != AP_DTYPE_COUNT && is_real(said) ? said : AP_BFLOAT16;
			return true;
		}
		*t = code == 'D' && wanted != AP_DTYPE_COUNT ? wanted :
			code == 'f' || common == AP_DTYPE_COUNT ? real_type(b, i) : common;
		return true;
	}
}

/* Checks operand types, sets result types. */
static bool bind_types(struct ap_binding *b)
{
	const char *results = strchr(b->row->types, ':') + 1;
	enum ap_dtype common = AP_DTYPE_COUNT;

	for (unsigned i = 0; i < b->in->nin; i++)
		if (!check_operand(b, i, &common))
			return false;
	for (unsigned i = 0; i < b->nout; i++)
		if (!set_result(b, i, code_at(results, i), common))
			return false;
	return true;
}

static const struct expander {
	struct ap_expander e;
	bool (*expand)(struct ap_binding *b);
} expanders[] = {
#define EXPANDER(name, least, most, results, gaps, attrs, lacks, says) \
	{{#name, least, most, results, gaps, attrs, lacks, says}, ap_expand_##name},
#include "rule/expanders.def"
};

static const struct expander *find(struct ap_name name)
{
	size_t i = 0;

	while (strlen(expanders[i].e.name) != name.len ||
		memcmp(expanders[i].e.name, name.s, name.len) != 0) {
		i++;
		assert(i < AP_COUNT(expanders));
	}
	return &expanders[i];
}

/* Refuses gaps in a list of operands, unless the expander allows them. */
static void expand_counts(struct ap_binding *b)
{
	const struct ap_expander *e = &find(b->rule.expander)->e;
	unsigned last = b->in->nin ? ap_bind_slot(b, b->in->nin - 1u) + 1 : 0;

	b->rule.nin = e->most;
	b->rule.nout = e->results;
	b->rule.nrequired = !e->gaps && last > e->least && last <= e->most ? (uint16_t)last : e->least;
}

static bool try_row(struct ap_binding *b)
{
	size_t at;
	const char *wrong = ap_rule_parse(b->row->rule, &b->rule, &at);
	struct ap_bound *o;

	assert(!wrong);
	(void)wrong;
	b->bound.flops = b->row->flops;
	b->stage = AP_STAGE_WHEN;
	if (!bind_when(b))
		return false;
	b->stage = AP_STAGE_COUNT;
	if (b->rule.expander.len)
		expand_counts(b);
	if (!check_counts(b))
		return false;
	b->bin = AP_NEW_N(b->ctx->arena, struct ap_operand, b->in->nin);
	b->bout = AP_NEW_N(b->ctx->arena, struct ap_operand, b->nout);
	if (b->rule.expander.len) {
		b->stage = AP_STAGE_SIZE;
		/* dimensions for an expander's rule */
		for (unsigned i = 0; i < b->in->nin; i++) {
			b->bin[i].rank = b->in->in[i].rank;
			memcpy(b->bin[i].size, b->in->in[i].dim, sizeof b->bin[i].size);
		}
		if (!(find(b->rule.expander)->expand(b)))
			return false;
	} else {
		if (!match(b))
			return false;
		build(b);
	}
	b->stage = AP_STAGE_TYPE;
	if (!bind_types(b))
		return false;
	mark_tensors(b);
	/* axes of dev_matrix: the row's order, or that of first appearance */
	o = &b->bound;
	for (const char *p = b->row->dev; *p; p++)
		for (uint8_t f = 0; f < o->nfactor; f++)
			if (of_letter(&o->factor[f], *p))
				o->dev[o->ndev++] = f;
	for (uint8_t f = 0; f < o->nfactor && !*b->row->dev; f++)
		o->dev[o->ndev++] = f;
	assert(o->ndev == o->nfactor);
	o->row = b->row;
	o->flops *= ap_rule_attend_work(o, b->in->attrs);
	if (*b->row->left == '*')
		o->left = UINT32_MAX;
	for (const char *p = b->row->left; *p && *p != '*'; p++)
		for (uint8_t f = 0; f < o->nfactor; f++)
			if (of_letter(&o->factor[f], *p))
				o->left |= UINT32_C(1) << f;
	return true;
}

static void finish(const struct ap_binding *b, struct ap_bound *out)
{
	*out = b->bound;
	out->nin = b->in->nin;
	out->nout = b->nout;
	out->in = b->bin;
	out->out = b->bout;
}

static bool further(const struct ap_binding *x, const struct ap_binding *y)
{
	return x->stage != y->stage ? x->stage > y->stage : x->passed > y->passed;
}

static const char *value_text(struct ap_ctx *ctx, const struct ap_attr *a)
{
	switch (a->type) {
	case AP_ATTR_STRING:
		return a->s;
	case AP_ATTR_FLOAT:
		return ap_arena_printf(ctx->arena, "%g", a->f);
	case AP_ATTR_BOOL:
		return a->i ? "true" : "false";
	case AP_ATTR_INT:
		return ap_arena_printf(ctx->arena, "%" PRId64, a->i);
	default:
		return "set";
	}
}

/* Refuses attributes that would make it a different operator. */
static bool attrs_are_planned(struct ap_ctx *ctx, const struct ap_bind_in *in,
	struct ap_bind_fault *fault)
{
	for (uint32_t i = 0; i < in->attrs->n; i++) {
		const struct ap_attr *a = &in->attrs->v[i];
		struct ap_attr_refusal why;

		if (!ap_attr_refused(in->type, a, &why))
			continue;
		if (a->type == AP_ATTR_BOOL)
			why.allowed = "false";
		*fault = (struct ap_bind_fault){"operator-attr",
			ap_arena_printf(ctx->arena,
				"attribute %s is %s: %s, which is not planned with%s%s%s", a->name,
				value_text(ctx, a), why.reason, *why.allowed ? "; " : "",
				why.allowed, *why.allowed ? " is allowed" : ""), -1};
		return false;
	}
	return true;
}

enum ap_status ap_rule_bind(struct ap_ctx *ctx, const struct ap_bind_in *in, struct ap_bound *out,
	struct ap_bind_fault *fault)
{
	struct ap_binding best = {.stage = AP_STAGE_WHEN};

	*fault = (struct ap_bind_fault){"operator-known", "the type is unknown", -1};
	if (!attrs_are_planned(ctx, in, fault))
		return AP_MEANING;
	for (const struct ap_op_row *r = NULL; (r = ap_op_next(r, in->type)) != NULL;) {
		struct ap_binding b = {.ctx = ctx, .row = r, .in = in};

		if (try_row(&b)) {
			finish(&b, out);
			return AP_OK;
		}
		if (!best.row || further(&b, &best))
			best = b;
		*fault = best.fault;
	}
	return AP_MEANING;
}

const struct ap_expander *ap_expander_find(struct ap_name name)
{
	return &find(name)->e;
}

static void add_factor(struct ap_str *s, const struct ap_factor *f)
{
	ap_str_addc(s, f->letter);
	if (f->flags & AP_FACTOR_FROZEN)
		ap_str_addc(s, '!');
	if (f->flags & AP_FACTOR_LOOKUP)
		ap_str_addc(s, '@');
}

/* Kernel length of the windows over a dimension of an operand or result; 0 if there are none. */
static int64_t window_of(const struct ap_bound *b, bool result, uint16_t tensor, uint8_t dim)
{
	for (uint8_t w = 0; w < b->nwindow; w++)
		if (b->window[w].operand == tensor && b->window[w].dim == dim &&
			b->window[w].transposed == result)
			return b->window[w].kernel;
	return 0;
}

static void add_dim(struct ap_str *s, const struct ap_bound *b, const struct ap_dim *d,
	int64_t size)
{
	if (d->n == 0)
		ap_str_addf(s, "%" PRId64, size);
	if (d->n > 1)
		ap_str_addc(s, '(');
	for (uint8_t i = 0; i < d->n; i++) {
		if (i > 0)
			ap_str_addc(s, ' ');
		add_factor(s, &b->factor[d->factor[i]]);
	}
	if (d->n > 1)
		ap_str_addc(s, ')');
}

static void add_tensors(struct ap_str *s, const struct ap_bound *b, const struct ap_operand *o,
	uint16_t n)
{
	for (uint16_t t = 0; t < n; t++) {
		ap_str_add(s, t ? ", [" : "[");
		for (uint8_t i = 0; i < o[t].rank; i++) {
			if (i > 0)
				ap_str_addc(s, ' ');
			add_dim(s, b, &o[t].dim[i], o[t].size[i]);
			if (window_of(b, o == b->out, t, i))
				ap_str_addf(s, "~%" PRId64, window_of(b, o == b->out, t, i));
		}
		ap_str_addc(s, ']');
	}
}

const char *ap_rule_text(struct ap_ctx *ctx, const struct ap_bound *b)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	add_tensors(&s, b, b->in, b->nin);
	ap_str_add(&s, " -> ");
	add_tensors(&s, b, b->out, b->nout);
	for (uint8_t f = 0; f < b->nfactor; f++)
		ap_str_addf(&s, "%s%c=%" PRId64, f ? " " : "; ", b->factor[f].letter,
			b->factor[f].size);
	return s.s;
}
