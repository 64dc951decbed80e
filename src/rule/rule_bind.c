/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/bind.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"

/* What one dimension of a tensor is by its rule. */
struct place {
	const struct ap_term *term; /* FACTOR, FIXED or ANY; NULL: position pos of base */
	uint8_t pos;
	bool unit; /* [1]: length one, whatever base has */
};

bool ap_bind_fail(struct ap_binding *b, const char *check, int operand, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	b->fault.check = check;
	b->fault.text = ap_arena_strdup(b->ctx->arena, text);
	b->fault.operand = operand;
	return false;
}

unsigned ap_bind_slot(const struct ap_binding *b, unsigned i)
{
	return b->in->slot ? b->in->slot[i] : i;
}

const struct ap_shape *ap_bind_declared(const struct ap_binding *b, unsigned i)
{
	const struct ap_shape *s = b->in->declared;

	return s && i < b->in->nout && s[i].rank != AP_RANK_UNKNOWN ? &s[i] : NULL;
}

const char *ap_bind_shape(struct ap_binding *b, const int64_t *dim, uint8_t rank)
{
	struct ap_str s;

	ap_str_init(&s, b->ctx->arena);
	ap_str_addc(&s, '[');
	for (uint8_t i = 0; i < rank; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? ", " : "", dim[i]);
	ap_str_addc(&s, ']');
	return s.s;
}

bool ap_bind_factor(struct ap_binding *b, char letter, uint8_t flags, int64_t size, uint8_t *id)
{
	struct ap_bound *o = &b->bound;

	if (o->nfactor == AP_MAX_FACTOR)
		return ap_bind_fail(b, "operator-rank", -1,
			"more than %d different dimensions in one operator", AP_MAX_FACTOR);
	*id = o->nfactor;
	o->factor[o->nfactor++] = (struct ap_factor){letter, flags, size};
	return true;
}

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

/* Number of letters of save/grad style text that name results: highest one, plus one. */
static uint16_t kept_results(const char *save)
{
	uint16_t n = 0;

	for (; *save; save++)
		if (*save >= 'o' && *save - 'o' + 1 > n)
			n = (uint16_t)(*save - 'o' + 1);
	return n;
}

static bool check_counts(struct ap_binding *b)
{
	const struct ap_rule *r = &b->rule;
	uint32_t given = 0, required = (UINT32_C(1) << r->nrequired) - 1;
	uint16_t said = b->in->nout ? b->in->nout : 1, kept = kept_results(b->row->save);

	for (unsigned i = 0; i < b->in->nin; i++) {
		if (ap_bind_slot(b, i) >= r->nin)
			return ap_bind_fail(b, "operator-inputs", -1,
				"%s takes at most %d operands; operand %u is too much",
				b->row->name, r->nin, ap_bind_slot(b, i));
		given |= UINT32_C(1) << ap_bind_slot(b, i);
	}
	if (required & ~given)
		return ap_bind_fail(b, "operator-inputs", -1,
			"%s needs %d operands; %u are given", b->row->name, r->nrequired,
			b->in->nin);
	if (said > r->nout)
		return ap_bind_fail(b, "operator-outputs", -1,
			"%s has %d results; %d are declared", b->row->name, r->nout, said);
	b->nout = said > kept ? said : kept;
	return true;
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
	if (b->length[l] <= 1 || b->letter_factor[l] != AP_NO_FACTOR)
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

static bool match(struct ap_binding *b)
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
		if (!match_named(b, i))
			return false;
	return add_all_factors(b);
}

static void build(struct ap_binding *b)
{
	for (unsigned i = 0; i < b->in->nin; i++)
		build_tensor(b, operand_rule(b, i), &b->in->in[i], &b->bin[i]);
	for (unsigned i = 0; i < b->nout; i++)
		build_tensor(b, &b->rule.out[i], NULL, &b->bout[i]);
}

static void mark_tensors(struct ap_binding *b)
{
	const struct ap_op_row *row = b->row;

	for (unsigned i = 0; i < b->in->nin; i++) {
		struct ap_operand *o = &b->bin[i];
		char letter = (char)('a' + ap_bind_slot(b, i));
		bool wanted = *row->grad == '*' || strchr(row->grad, letter);

		o->dtype = b->in->in[i].dtype;
		o->saved = strchr(row->save, letter);
		o->differentiable = wanted && ap_dtype_is_float(o->dtype);
	}
	for (unsigned i = 0; i < b->nout; i++)
		b->bout[i].saved = strchr(row->save, (int)('o' + i));
	for (unsigned t = 0; t < b->in->nin + (unsigned)b->nout; t++) {
		struct ap_operand *o = t < b->in->nin ? &b->bin[t] : &b->bout[t - b->in->nin];

		for (uint8_t i = 0; i < o->rank; i++)
			for (uint8_t k = 0; k < o->dim[i].n; k++)
				o->factors |= UINT32_C(1) << o->dim[i].factor[k];
	}
}

static bool of_letter(const struct ap_factor *f, char letter)
{
	return letter == '*' ? f->letter >= 'A' && f->letter <= 'Z' : f->letter == letter;
}

/* Axes of dev_matrix: the row's order, or that of first appearance. */
static void order_axes(struct ap_binding *b)
{
	struct ap_bound *o = &b->bound;

	for (const char *p = b->row->dev; *p; p++)
		for (uint8_t f = 0; f < o->nfactor; f++)
			if (of_letter(&o->factor[f], *p))
				o->dev[o->ndev++] = f;
	for (uint8_t f = 0; f < o->nfactor && !*b->row->dev; f++)
		o->dev[o->ndev++] = f;
	assert(o->ndev == o->nfactor);
	if (*b->row->left == '*')
		o->left = UINT32_MAX;
	for (const char *p = b->row->left; *p && *p != '*'; p++)
		for (uint8_t f = 0; f < o->nfactor; f++)
			if (of_letter(&o->factor[f], *p))
				o->left |= UINT32_C(1) << f;
}

static bool try_row(struct ap_binding *b)
{
	size_t at;
	const char *wrong = ap_rule_parse(b->row->rule, &b->rule, &at);

	assert(!wrong);
	(void)wrong;
	b->stage = AP_STAGE_WHEN;
	if (!ap_bind_when(b))
		return false;
	b->stage = AP_STAGE_COUNT;
	if (b->rule.expander.len)
		b->rule.nin = b->rule.nrequired = b->rule.nout = 1;
	if (!check_counts(b))
		return false;
	b->bin = AP_NEW_N(b->ctx->arena, struct ap_operand, b->in->nin);
	b->bout = AP_NEW_N(b->ctx->arena, struct ap_operand, b->nout);
	if (b->rule.expander.len) {
		b->stage = AP_STAGE_SIZE;
		if (!ap_bind_expand(b))
			return false;
	} else {
		if (!match(b))
			return false;
		build(b);
	}
	b->stage = AP_STAGE_TYPE;
	if (!ap_bind_types(b))
		return false;
	mark_tensors(b);
	order_axes(b);
	return true;
}

static void finish(const struct ap_binding *b, struct ap_bound *out)
{
	*out = b->bound;
	out->row = b->row;
	out->flops = b->row->flops;
	out->nin = b->in->nin;
	out->nout = b->nout;
	out->in = b->bin;
	out->out = b->bout;
}

static bool further(const struct ap_binding *x, const struct ap_binding *y)
{
	return x->stage != y->stage ? x->stage > y->stage : x->passed > y->passed;
}

enum ap_status ap_rule_bind(struct ap_ctx *ctx, const struct ap_bind_in *in, struct ap_bound *out,
	struct ap_bind_fault *fault)
{
	struct ap_binding best = {.stage = AP_STAGE_WHEN};

	*fault = (struct ap_bind_fault){"operator-known", "the type is unknown", -1};
	for (size_t i = 0; ap_op_at(i); i++) {
		struct ap_binding b = {.ctx = ctx, .row = ap_op_at(i), .in = in};

		if (strcmp(b.row->name, in->type) != 0)
			continue;
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
