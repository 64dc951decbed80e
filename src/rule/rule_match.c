/* SPDX-License-Identifier: Apache-2.0 */
/* A row's text against an operator's shapes: which dimension is which factor, and how long. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "rule/bind.h"

/* What one dimension of a tensor is by its rule. */
struct place {
	const struct ap_term *term; /* FACTOR, FIXED or ANY; NULL: position pos of base */
	uint8_t pos;
	bool unit; /* [1]: length one, whatever base has */
};

static const struct ap_tensor_rule *operand_rule(const struct ap_binding *b, unsigned i)
{
	return &b->rule.in[ap_bind_slot(b, i)];
}

static bool has_kind(const struct ap_tensor_rule *t, enum ap_term_kind kind)
{
	for (uint8_t i = 0; i < t->nterm; i++)
		if (t->term[i].kind == kind)
			return true;
	return false;
}

/* Dimensions that stand for themselves, not for positions of base. */
static uint8_t own_terms(const struct ap_tensor_rule *t)
{
	uint8_t n = 0;

	for (uint8_t i = 0; i < t->nterm; i++)
		n = (uint8_t)(n + (t->term[i].kind == AP_TERM_FACTOR ||
			t->term[i].kind == AP_TERM_FIXED || t->term[i].kind == AP_TERM_ANY));
	return n;
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

/* Extents of base: the "*" parts of all operands, right-aligned and broadcast. */
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

static uint8_t terms_before_star(const struct ap_tensor_rule *t)
{
	uint8_t n = 0;

	while (t->term[n].kind != AP_TERM_STAR && t->term[n].kind != AP_TERM_AXIS)
		n++;
	return n;
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

static bool match_axes(struct ap_binding *b)
{
	b->named = b->base_frozen = 0;
	for (uint8_t i = 0; i < b->rule.naxis; i++)
		if (!ap_bind_axis(b, i, b->base_rank))
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
	return true;
}

static void add_place(struct place *p, uint8_t *n, struct place x)
{
	assert(*n < AP_MAX_RANK);
	p[(*n)++] = x;
}

/* "*" of an operand is its last positions of base, of a result those not named by an attribute;
 * beside "[..]" it is all of them. */
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

/* The dimensions of a tensor, in order. rank: of an operand; -1 for a result. */
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

/* Rank a result will have; above AP_MAX_RANK it cannot be. */
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

/* Operands that consist of named positions alone (scale of a norm) must have base's extents. */
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

/* Factors in order of first appearance; the positions of base together where "*" appears first. */
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

static bool add_all_factors(struct ap_binding *b)
{
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

static void compose(struct ap_dim *d, uint8_t factor)
{
	if (factor != AP_NO_FACTOR)
		d->factor[d->n++] = factor;
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

static void place_factors(const struct ap_binding *b, const struct place *p, struct ap_dim *d)
{
	if (!p->term && !p->unit)
		compose(d, b->base_factor[p->pos]);
	for (uint8_t i = 0; p->term && i < p->term->n; i++)
		compose(d, b->letter_factor[p->term->letter[i] - 'a']);
}

/* shape NULL: a result, whose extents follow from the rule. */
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

bool ap_bind_match(struct ap_binding *b)
{
	b->stage = AP_STAGE_RANK;
	if (!match_ranks(b) || !check_result_rank(b))
		return false;
	b->stage = AP_STAGE_AXIS;
	if (!match_axes(b))
		return false;
	b->stage = AP_STAGE_SIZE;
	if (!match_base(b) || !ap_bind_lengths(b))
		return false;
	for (unsigned i = 0; i < b->in->nin; i++)
		if (!match_named(b, i) || !match_fixed(b, i))
			return false;
	return add_all_factors(b);
}

void ap_bind_build(struct ap_binding *b)
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
