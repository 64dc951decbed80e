/* SPDX-License-Identifier: Apache-2.0 */
#include "rule_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "rule/attr.h"
#include "rule/bind.h"

struct ap_ctx ctx;

void fixture_setup(void)
{
	ctx.arena = ap_arena_create(0, NULL, NULL);
	ctx.scratch = ap_arena_create(0, NULL, NULL);
	ctx.diag = ap_diag_create(ctx.arena, false);
	ctx.jobs = 1;
}

void fixture_teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

static int64_t read_int(const char **p)
{
	char *end;
	int64_t v = strtoll(*p, &end, 10);

	ck_assert_ptr_ne(end, *p);
	*p = end;
	return v;
}

static const char *read_word(const char **p, const char *stop)
{
	size_t n = strcspn(*p, stop);
	const char *w = ap_arena_strndup(ctx.arena, *p, n);

	*p += n;
	return w;
}

static struct ap_shape read_shape(const char **p)
{
	struct ap_shape s = {.dtype = ap_dtype_find(read_word(p, "[ "))};

	ck_assert_int_ne(s.dtype, AP_DTYPE_COUNT);
	ck_assert_int_eq(*(*p)++, '[');
	while (**p != ']') {
		s.dim[s.rank++] = read_int(p);
		if (**p == ',')
			(*p)++;
	}
	(*p)++;
	return s;
}

static uint16_t read_shapes(const char *p, struct ap_shape *v, uint16_t *slot)
{
	uint16_t n = 0;

	for (uint8_t at = 0; *p; at++) {
		if (*p == '-') {
			p++;
		} else if (*p == '?') {
			p++;
			v[n++] = (struct ap_shape){AP_RANK_UNKNOWN, AP_DTYPE_COUNT, {0}};
		} else {
			slot[n] = at;
			v[n++] = read_shape(&p);
		}
		while (*p == ' ')
			p++;
	}
	return n;
}

static void read_value(const char **p, struct ap_attr *a)
{
	int64_t *list = AP_NEW_N(ctx.arena, int64_t, 32);

	if (a->type == AP_ATTR_STRING) {
		a->s = read_word(p, " ");
	} else if (a->type == AP_ATTR_BOOL) {
		a->i = strcmp(read_word(p, " "), "true") == 0;
	} else if (a->type == AP_ATTR_FLOAT) {
		a->f = strtod(read_word(p, " "), NULL);
	} else if (a->type == AP_ATTR_INT) {
		a->i = read_int(p);
	} else {
		a->list = list;
		while (**p && **p != ' ') {
			list[a->n++] = read_int(p);
			if (**p == ',')
				(*p)++;
		}
	}
}

static uint32_t read_attrs(const char *type, const char *p, struct ap_attr *v)
{
	uint32_t n = 0;

	while (*p) {
		struct ap_attr *a = &v[n++];
		enum ap_attr_type kind;

		*a = (struct ap_attr){.name = ap_attr_find(type, read_word(&p, "="), &kind)};
		ck_assert_ptr_nonnull(a->name);
		a->type = kind;
		p++;
		read_value(&p, a);
		while (*p == ' ')
			p++;
	}
	return n;
}

enum ap_status bind_text(const char *type, const char *shapes, const char *attrs,
	const char *declared, struct ap_bound *b, struct ap_bind_fault *fault)
{
	struct ap_shape in[16], out[16];
	uint16_t slot[16], ignored[16];
	struct ap_attr v[8];
	struct ap_attrs a = {read_attrs(type, attrs, v), v};
	uint16_t nin = read_shapes(shapes, in, slot), nout = read_shapes(declared, out, ignored);
	struct ap_bind_in want = {type, &a, nin, nout, in, slot, out};

	return ap_rule_bind(&ctx, &want, b, fault);
}

struct ap_bound bind_ok(const char *type, const char *shapes, const char *attrs,
	const char *declared)
{
	struct ap_bind_fault fault;
	struct ap_bound b;
	enum ap_status st = bind_text(type, shapes, attrs, declared, &b, &fault);

	ck_assert_msg(st == AP_OK, "%s %s: %s", type, shapes, st == AP_OK ? "" : fault.text);
	return b;
}

struct ap_bind_fault bind_bad(const char *type, const char *shapes, const char *attrs,
	const char *declared)
{
	struct ap_bind_fault fault;
	struct ap_bound b;

	ck_assert_int_eq(bind_text(type, shapes, attrs, declared, &b, &fault), AP_MEANING);
	return fault;
}
