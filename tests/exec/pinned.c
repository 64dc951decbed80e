/* SPDX-License-Identifier: Apache-2.0 */
#include "pinned.h"

#include "oper.h"
#include "unit.h"

static struct ap_ctx ctx;

static int64_t read_int(const char **p)
{
	char *rest;
	int64_t v = strtoll(*p, &rest, 10);

	ck_assert_ptr_ne(rest, *p);
	*p = rest;
	return v;
}

/* "[2,3]" to a list. */
static uint32_t read_list(const char **p, int64_t *v)
{
	uint32_t n = 0;

	ck_assert_int_eq(**p, '[');
	for (++*p; **p != ']'; *p += **p == ',')
		v[n++] = read_int(p);
	++*p;
	return n;
}

static uint64_t read_sum(const char **p);

/* The curve of that name, or its slope: "rsqrt(2)", "rsqrt'(2)". */
static uint64_t read_curve(const char **p)
{
	size_t n = strcspn(*p, "('");
	const char *name = ap_arena_strndup(ctx.arena, *p, n);
	struct ex_tape t;
	bool slope;
	ex_id x, y;

	ex_tape_init(&t, ctx.arena);
	*p += n;
	slope = **p == '\'';
	*p += slope ? 2 : 1;
	x = ex_leaf(&t, read_sum(p));
	++*p;
	y = ex_fn1(&t, name, x);
	ex_tape_begin_back(&t);
	ex_tape_seed(&t, y, 1);
	ex_tape_back(&t, 1, t.n);
	return slope ? ex_tape_grad(&t, x) : ex_value_of(&t, y);
}

static uint64_t read_factor(const char **p)
{
	uint64_t v;

	if (**p >= 'a' && **p <= 'z')
		return read_curve(p);
	if (**p != '(')
		return ex_of_int(read_int(p));
	++*p;
	v = read_sum(p);
	++*p;
	return v;
}

static uint64_t read_product(const char **p)
{
	uint64_t v = read_factor(p);

	while (**p == '*' || **p == '/') {
		bool over = *(*p)++ == '/';
		uint64_t by = read_factor(p);

		v = ex_mul(v, over ? ex_inverse(by) : by);
	}
	return v;
}

static uint64_t read_sum(const char **p)
{
	uint64_t v;

	*p += strspn(*p, " ");
	v = read_product(p);
	while (**p == '+' || **p == '-') {
		bool minus = *(*p)++ == '-';
		uint64_t by = read_product(p);

		v = minus ? ex_sub(v, by) : ex_add(v, by);
	}
	return v;
}

/* slot: operands of the definition that they are; NULL where none is left out. */
static uint16_t read_tensors(const char *p, struct ex_tensor *t, uint16_t *slot)
{
	uint16_t n = 0;
	uint8_t place = 0;

	for (; *p; p += strspn(p, "; "), place++) {
		struct ap_shape s = {.dtype = AP_FLOAT32};

		if (*p == '-' && slot) {
			p++;
			continue;
		}
		if (slot)
			slot[n] = place;
		s.rank = (uint8_t)read_list(&p, s.dim);
		t[n] = (struct ex_tensor){.box = ex_box_whole(&s)};
		t[n] = ex_tensor_new(ctx.arena, &t[n].box);
		for (int64_t k = 0; k < ex_count(&t[n].box); k++)
			t[n].v[k] = read_sum(&p);
		n++;
	}
	return n;
}

/* "name=number", "name=[list]" or "name=word", joined by blanks. */
static void read_attrs(const char *p, struct ex_sample *s)
{
	for (; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, "=");
		const char *name = ap_arena_strndup(ctx.arena, p, n);
		int64_t v[2 * AP_MAX_RANK];

		p += n + 1;
		n = strcspn(p, " ");
		if (*p == '[') {
			uint32_t count = read_list(&p, v);

			ex_add_list(s, name, count, v);
		} else if (strspn(p, "-0123456789") == n) {
			ex_add_int(s, name, read_int(&p));
		} else {
			ex_add_text(s, name, ap_arena_strndup(ctx.arena, p, n));
			p += n;
		}
	}
}

static struct ex_value on_tape(struct ex_tape *tape, const struct ex_tensor *t)
{
	struct ex_value v = {t->box, AP_NEW_N(ctx.arena, ex_id, ex_count(&t->box))};

	for (int64_t k = 0; k < ex_count(&t->box); k++)
		v.id[k] = ex_leaf(tape, t->v[k]);
	return v;
}

static void check(const struct ex_pinned *c, const char *what, unsigned i, int64_t k, uint64_t got,
	uint64_t want)
{
	if (got != want)
		ck_abort_msg("%s %s of %s: %s %u, element %d: %lld, want %lld", c->type, c->attrs,
			c->in, what, i, (int)k, (long long)ex_to_int(got),
			(long long)ex_to_int(want));
}

static void pad(const struct ex_job *j, int64_t before[AP_MAX_WINDOW])
{
	struct ex_slide s;
	int dim;

	for (int k = 0; k < AP_MAX_WINDOW; k++)
		before[k] = ex_slide_of(j, k, &s, &dim) ? s.before : 0;
}

static void run(const struct ex_kernel *k, struct ex_job *j)
{
	int64_t before[AP_MAX_WINDOW];

	pad(j, before);
	j->kernel_pad = before;
	for (j->stage = 0; j->stage < (k->stages == 2 ? 2 : 1); j->stage++)
		ck_assert_msg(k->forward(j), "%s", k->type);
}

static void try_case(const struct ex_pinned *c)
{
	const struct ex_kernel *k = ex_kernel_find(c->type);
	struct ex_tensor x[EX_MAX_IN], y[EX_MAX_OUT], dx[EX_MAX_IN];
	struct ex_value in[EX_MAX_IN], out[EX_MAX_OUT];
	struct ex_tape tape;
	struct ex_sample s;
	struct ex_job j = {.tape = &tape, .arena = ctx.arena, .type = c->type, .attrs = &s.attrs,
		.slot = s.slot, .in = in, .out = out, .share = 1};
	uint16_t n;

	ck_assert_msg(k, "%s", c->type);
	ex_sample_begin(&s, c->type, 1);
	read_attrs(c->attrs, &s);
	ex_tape_init(&tape, ctx.arena);
	j.nin = read_tensors(c->in, x, s.slot);
	for (uint8_t i = 0; i < j.nin; i++)
		in[i] = on_tape(&tape, &x[i]);
	j.nout = read_tensors(c->out, y, NULL);
	for (int i = 0; i < j.nout; i++)
		out[i] = (struct ex_value){y[i].box,
			AP_NEW_N(ctx.arena, ex_id, ex_count(&y[i].box))};
	run(k, &j);
	ex_tape_begin_back(&tape);
	for (unsigned i = 0; i < j.nout; i++)
		for (int64_t e = 0; e < ex_count(&y[i].box); e++) {
			check(c, "result", i, e, ex_value_of(&tape, out[i].id[e]), y[i].v[e]);
			ex_tape_seed(&tape, out[i].id[e], (uint64_t)e + 1);
		}
	ex_tape_back(&tape, 1, tape.n);
	n = read_tensors(c->grad, dx, NULL);
	for (unsigned i = 0; i < n; i++)
		for (int64_t e = 0; e < ex_count(&dx[i].box); e++)
			check(c, "gradient", i, e, ex_tape_grad(&tape, in[i].id[e]), dx[i].v[e]);
}

void ex_pinned_check(const struct ex_pinned *c)
{
	ctx = ctx_create(false);
	try_case(c);
	ctx_destroy(&ctx);
}
