/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/bind.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"

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

const char *ap_shape_text(struct ap_arena *arena, const int64_t *dim, uint8_t rank)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_str_addc(&s, '[');
	for (uint8_t i = 0; i < rank; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? ", " : "", dim[i]);
	ap_str_addc(&s, ']');
	return s.s;
}

const char *ap_bind_shape(struct ap_binding *b, const int64_t *dim, uint8_t rank)
{
	return ap_shape_text(b->ctx->arena, dim, rank);
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

/* Number of letters of save/grad style text that name results: highest one, plus one. */
static uint16_t kept_results(const char *save)
{
	uint16_t n = 0;

	for (; *save; save++)
		if (*save >= 'o' && *save - 'o' + 1 > n)
			n = (uint16_t)(*save - 'o' + 1);
	return n;
}

/* Slots ascend: the required operands are there when the last of them stands in its place. */
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

/* All its extents stand in the rule: nothing is computed into it. */
static bool is_constant(const struct ap_tensor_rule *t)
{
	for (uint8_t i = 0; i < t->nterm; i++)
		if (t->term[i].kind != AP_TERM_FIXED)
			return false;
	return t->nterm > 0;
}

/* Is operand i ('a') or result i ('o') among the letters? Those that no letter is left for are not. */
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
	b->bound.flops = b->row->flops;
	b->stage = AP_STAGE_WHEN;
	if (!ap_bind_when(b))
		return false;
	b->stage = AP_STAGE_COUNT;
	if (b->rule.expander.len)
		ap_bind_expand_counts(b);
	if (!check_counts(b))
		return false;
	b->bin = AP_NEW_N(b->ctx->arena, struct ap_operand, b->in->nin);
	b->bout = AP_NEW_N(b->ctx->arena, struct ap_operand, b->nout);
	if (b->rule.expander.len) {
		b->stage = AP_STAGE_SIZE;
		if (!ap_bind_expand(b))
			return false;
	} else {
		if (!ap_bind_match(b))
			return false;
		ap_bind_build(b);
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

/* Attributes that would make it another operator. */
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
