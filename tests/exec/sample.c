/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "kernel.h"

void ex_sample_begin(struct ex_sample *s, const char *type, uint64_t seed)
{
	*s = (struct ex_sample){.rng = seed ? seed : 1, .type = type};
	for (int i = 0; i < EX_MAX_OUT; i++)
		s->declared[i] = (struct ap_shape){.rank = AP_RANK_UNKNOWN, .dtype = AP_DTYPE_COUNT};
}

int64_t ex_length(struct ex_sample *s)
{
	static const int64_t lengths[] = {2, 3, 4, 4, 6, 6, 8, 12, 12, 24};

	return lengths[ex_below(&s->rng, AP_COUNT(lengths))];
}

unsigned ex_add_in(struct ex_sample *s, const char *dtype, uint8_t rank, const int64_t *size)
{
	unsigned i = s->nin++;
	struct ap_shape *shape = &s->in[i];

	assert(i < EX_MAX_IN && rank <= AP_MAX_RANK);
	shape->rank = rank;
	shape->dtype = ap_dtype_find(dtype);
	assert(shape->dtype != AP_DTYPE_COUNT);
	if (rank)
		memcpy(shape->dim, size, rank * sizeof *size);
	s->slot[i] = s->next_slot++;
	return i;
}

void ex_skip_in(struct ex_sample *s)
{
	s->next_slot++;
}

static struct ap_attr *add(struct ex_sample *s, const char *name, enum ap_attr_type type)
{
	struct ap_attr *a = &s->attr[s->attrs.n++];

	assert(s->attrs.n <= AP_COUNT(s->attr));
	*a = (struct ap_attr){.name = name, .type = type};
	s->attrs.v = s->attr;
	return a;
}

void ex_add_int(struct ex_sample *s, const char *name, int64_t v)
{
	struct ap_attr *a = add(s, name, AP_ATTR_INT);

	a->i = v;
	a->f = (double)v;
}

void ex_add_bool(struct ex_sample *s, const char *name, bool v)
{
	add(s, name, AP_ATTR_BOOL)->i = v;
}

void ex_add_float(struct ex_sample *s, const char *name, double v)
{
	add(s, name, AP_ATTR_FLOAT)->f = v;
}

void ex_add_text(struct ex_sample *s, const char *name, const char *v)
{
	add(s, name, AP_ATTR_STRING)->s = v;
}

void ex_add_list(struct ex_sample *s, const char *name, uint32_t n, const int64_t *v)
{
	struct ap_attr *a = add(s, name, AP_ATTR_INTS);
	int64_t *own = s->list[a - s->attr];

	assert(n <= 2 * AP_MAX_RANK);
	if (n)
		memcpy(own, v, n * sizeof *v);
	a->list = own;
	a->n = n;
}

static void add_attr_text(struct ap_str *text, const struct ap_attr *a)
{
	ap_str_addf(text, " %s=", a->name);
	switch (a->type) {
	case AP_ATTR_STRING:
		ap_str_add(text, a->s);
		break;
	case AP_ATTR_FLOAT:
		ap_str_addf(text, "%g", a->f);
		break;
	case AP_ATTR_INTS:
		for (uint32_t i = 0; i < a->n; i++)
			ap_str_addf(text, "%s%" PRId64, i ? "," : "[", a->list[i]);
		ap_str_add(text, a->n ? "]" : "[]");
		break;
	case AP_ATTR_INT:
	case AP_ATTR_BOOL:
		ap_str_addf(text, "%" PRId64, a->i);
		break;
	case AP_ATTR_PAIR:
	case AP_ATTR_ANY:
		break;
	}
}

const char *ex_sample_text(struct ap_ctx *ctx, const struct ex_sample *s)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_str_add(&text, s->type);
	for (int i = 0; i < s->nin; i++) {
		ap_str_addf(&text, " %u:%s[", s->slot[i], ap_dtype_name(s->in[i].dtype));
		for (int d = 0; d < s->in[i].rank; d++)
			ap_str_addf(&text, "%s%" PRId64, d ? "," : "", s->in[i].dim[d]);
		ap_str_addc(&text, ']');
	}
	for (uint32_t i = 0; i < s->attrs.n; i++)
		add_attr_text(&text, &s->attrs.v[i]);
	if (s->nout)
		ap_str_addf(&text, " results=%u", s->nout);
	if (s->ties)
		ap_str_add(&text, " ties");
	return text.s;
}
