/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/bind.h"

#include <inttypes.h>
#include <string.h>

/*
 * Lengths of factors: every dimension says that a product of factors has a value. Where the factors
 * of one product are part of another's, the rest of that one is known too: from n*g = 64,
 * n*g*d = 8192 and n*d = 1024 follow d = 128, n = 8, g = 8.
 */
struct product {
	uint32_t mask; /* letters */
	int64_t value;
	int operand, dim; /* where it is said; operand -1: by the attribute of equation dim */
};

struct products {
	unsigned n;
	struct product v[AP_MAX_RULE_OPERAND * AP_MAX_RANK + AP_MAX_RULE_EQUATION];
};

static uint32_t mask_of(const char *letter, uint8_t n)
{
	uint32_t mask = 0;

	for (uint8_t i = 0; i < n; i++)
		mask |= UINT32_C(1) << (letter[i] - 'a');
	return mask;
}

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

/* Divides the factors of x out of y. */
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

static void collect_operand(const struct ap_binding *b, unsigned i, struct products *p)
{
	const struct ap_tensor_rule *t = &b->rule.in[ap_bind_slot(b, i)];
	const struct ap_shape *s = &b->in->in[i];
	int spread = s->rank - t->nterm; /* what "*" stands for beyond one dimension */

	for (int k = 0, dim = 0; k < t->nterm && !t->whole; k++, dim++) {
		const struct ap_term *x = &t->term[k];

		if (x->kind == AP_TERM_STAR || x->kind == AP_TERM_AXIS) {
			dim += spread;
			continue;
		}
		if (x->kind != AP_TERM_FACTOR || x->window || (x->broadcast && s->dim[dim] == 1))
			continue;
		p->v[p->n++] = (struct product){mask_of(x->letter, x->n), s->dim[dim], (int)i, dim};
	}
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

bool ap_bind_lengths(struct ap_binding *b)
{
	struct products p = {0};

	memset(b->length, 0, sizeof b->length);
	for (unsigned i = 0; i < b->in->nin; i++)
		collect_operand(b, i, &p);
	for (uint8_t i = 0; i < b->rule.nequation; i++)
		if (!collect_equation(b, &b->rule.equation[i], &p))
			return false;
	return solve(b, &p) && ap_bind_windows(b) && check_known(b);
}
