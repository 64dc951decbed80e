/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operators of every type with one thing wrong: operands of other rank or extents, attributes
 * out of range or of another type, strategies that nothing can be cut by. Each is refused with a
 * message that names the operator, the input, the dimension, its length and what is allowed; or it is
 * none, and can be carried out by the operator's definition.
 *
 * A piece of work is a type: test_bad_rows=TYPE. With AP_LOUD all that is said.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/vec.h"
#include "cost/pins.h"
#include "graph/graph.h"
#include "rule/bind.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/strategy.h"
#include "harness.h"
#include "oper.h"

enum { SAMPLES = 2, MOST_IN = 4096, MOST_OUT = 20000, NDEV = 4 };

/* What a refusal must speak of, beside the operator. */
enum {
	AN_INPUT = 1, /* or the attribute that it does not go with */
	A_DIMENSION = 2,
	A_NUMBER = 4,
	ALLOWED = 8,
	THE_ATTRIBUTE = 16 /* that was changed */
};

struct bad { /* work on a type */
	struct ap_ctx ctx; /* of one wrong operator */
	struct ex_sample good;
	const char *attr; /* that was changed */
	bool loud;
	uint32_t tried, refused, legal, wrong;
};

/* Loads it, on NDEV devices where it has a strategy; what was said of it first, NULL: nothing. */
static const char *refusal(struct bad *b, const struct ex_sample *s, const struct ap_pin *pin)
{
	const struct ap_graph_params params = {0};
	struct ap_step step = AP_STEP_DEFAULT;
	const int32_t *const *fixed;
	const struct ap_graph *g;
	struct ap_str text, said;
	struct ap_json *doc;

	b->ctx.diag = ap_diag_create(b->ctx.arena, false);
	ap_str_init(&text, b->ctx.arena);
	ex_sample_write(&b->ctx, s, pin, &text);
	if (ap_json_parse(&b->ctx, "bad.json", text.s, text.len, 0, &doc) == AP_OK &&
		ap_graph_load(&b->ctx, doc, "", &params, &g) == AP_OK &&
		(!pin || ap_pins_make(&b->ctx, g, NDEV, &step, NULL, &fixed) == AP_OK))
		return NULL;
	ap_str_init(&said, b->ctx.arena);
	ap_diag_render(b->ctx.diag, AP_ERROR, 1, &said);
	return said.s;
}

static bool has_any(const char *said, const char *const *words)
{
	for (; *words; words++)
		if (strstr(said, *words))
			return true;
	return false;
}

/* NULL, or what the message fails to say. */
static const char *lacks(const struct bad *b, const char *said, unsigned must)
{
	static const char *const allowed[] = {"allowed", "expected", "need", "must", "takes", "has ",
		"have ", "divisors", "at most", "at least", "can be", "inferred",
		NULL};
	static const char *const inputs[] = {"(\"x", "input ", "operand ", "result", "attribute",
		"vector", NULL};
	static const char *const dims[] = {"dimension", "[", "attribute", NULL};

	if (!strstr(said, "(operator \"op\")"))
		return "the operator";
	said = strstr(said, "(operator \"op\")") + strlen("(operator \"op\")");
	if (must & AN_INPUT && !has_any(said, inputs))
		return "the input";
	if (must & A_DIMENSION && !has_any(said, dims))
		return "the dimension";
	if (must & A_NUMBER && !strpbrk(said, "0123456789"))
		return "a number";
	if (must & ALLOWED && !has_any(said, allowed))
		return "what is allowed";
	if (must & THE_ATTRIBUTE && !strstr(said, b->attr))
		return "the attribute";
	return NULL;
}

static void complain(struct bad *b, const struct ex_sample *s, const char *what, const char *why,
	const char *said)
{
	b->wrong++;
	printf("%s: %s: %s\n  %s\n", s->type, what, why, ex_sample_text(&b->ctx, s));
	if (said)
		printf("  %s", said);
}

/* Is it small enough to be carried out? */
static bool is_small(const struct ex_sample *s, const struct ap_bound *b)
{
	int64_t n = 0;

	for (int i = 0; i < s->nin; i++) {
		struct ex_box box = ex_box_whole(&s->in[i]);

		if (ex_count(&box) > MOST_IN)
			return false;
	}
	for (int i = 0; i < b->nout; i++) {
		int64_t elements = 1;

		for (int d = 0; d < b->out[i].rank; d++)
			elements *= b->out[i].size[d];
		n += elements;
	}
	return n <= MOST_OUT;
}

/* Is it a row for whatever comes, which nothing can be wrong for? */
static bool knows_nothing(const struct ap_op_row *row)
{
	return strcmp(row->rule, "=batch") == 0 || strcmp(row->rule, "=whole") == 0;
}

/* Nothing was said against it: can it be carried out? */
static void must_run(struct bad *b, struct ex_sample *s, const char *what)
{
	struct ap_bind_in in = {.type = s->type, .attrs = &s->attrs, .nin = s->nin, .nout = s->nout,
		.in = s->in, .slot = s->slot, .declared = s->nout ? s->declared : NULL};
	struct ex_world w = {.ctx = &b->ctx, .ndev = 1, .rng = s->rng};
	struct ex_case *c = AP_NEW(b->ctx.arena, struct ex_case);
	struct ap_bind_fault fault;
	struct ap_bound bound;

	b->legal++;
	for (int i = 0; i < s->nin; i++)
		s->limit[i] = 1; /* in every dimension there is an index 0 */
	if (ap_rule_bind(&b->ctx, &in, &bound, &fault) == AP_OK && is_small(s, &bound) &&
		!knows_nothing(bound.row) && !ex_case_make(&w, s, c))
		complain(b, s, what, w.trouble, NULL);
}

/* Is something said, and all that must be? */
static bool judge(struct bad *b, const struct ex_sample *s, const char *what, const char *said,
	unsigned must)
{
	const char *lack = said ? lacks(b, said, must) : NULL;

	b->tried++;
	b->refused += said != NULL;
	if (said && b->loud)
		printf("%s: %s", what, said);
	if (lack)
		complain(b, s, what, ap_arena_printf(b->ctx.arena, "the message lacks %s", lack), said);
	return said;
}

static void try(struct bad *b, struct ex_sample *s, const char *what, unsigned must)
{
	struct ap_mark mark = ap_arena_mark(b->ctx.arena);

	if (!judge(b, s, what, refusal(b, s, NULL), must))
		must_run(b, s, what);
	ap_arena_release(b->ctx.arena, mark);
}

/* ---- operands ---- */

static void try_ranks(struct bad *b, int i)
{
	struct ex_sample s = b->good;
	struct ap_shape *shape = &s.in[i];

	if (shape->rank > 0) {
		shape->rank--;
		shape->dim[shape->rank] = 0;
		try(b, &s, "a dimension less", AN_INPUT | A_NUMBER | ALLOWED);
	}
	s = b->good;
	if (shape->rank < AP_MAX_RANK) {
		memmove(shape->dim + 1, shape->dim, shape->rank * sizeof *shape->dim);
		shape->dim[0] = 2;
		shape->rank++;
		try(b, &s, "a dimension more", AN_INPUT | A_NUMBER | ALLOWED);
	}
}

static void try_lengths(struct bad *b, int i)
{
	for (int d = 0; d < b->good.in[i].rank; d++) {
		struct ex_sample s = b->good;

		s.in[i].dim[d]++;
		try(b, &s, "a length plus one", AN_INPUT | A_DIMENSION | A_NUMBER | ALLOWED);
	}
}

static void try_types(struct bad *b, int i)
{
	struct ex_sample s = b->good;

	s.in[i].dtype = s.in[i].dtype == AP_BOOL ? AP_COMPLEX64 : AP_BOOL;
	try(b, &s, "another element type", AN_INPUT | ALLOWED);
}

/* ---- attributes ---- */

/* A sample with a value of its own for attribute i. */
static struct ap_attr *changed(struct bad *b, struct ex_sample *s, uint32_t i)
{
	*s = b->good;
	s->attrs.v = s->attr;
	b->attr = s->attr[i].name;
	if (s->attr[i].type == AP_ATTR_INTS) {
		memcpy(s->list[i], b->good.attr[i].list, s->attr[i].n * sizeof *s->attr[i].list);
		s->attr[i].list = s->list[i];
	}
	return &s->attr[i];
}

static void try_number(struct bad *b, uint32_t i)
{
	static const int64_t values[] = {-97, -1, 0, 97};

	for (size_t k = 0; k < AP_COUNT(values); k++) {
		struct ex_sample s;
		struct ap_attr *a = changed(b, &s, i);

		a->i = values[k];
		a->f = (double)values[k];
		try(b, &s, "a number out of range", AN_INPUT | ALLOWED);
	}
}

static void try_list(struct bad *b, uint32_t i)
{
	static const int64_t values[] = {-97, 0, 97};
	struct ex_sample s;
	struct ap_attr *a = changed(b, &s, i);

	for (uint32_t e = 0; e < a->n; e++)
		for (size_t k = 0; k < AP_COUNT(values); k++) {
			a = changed(b, &s, i);
			s.list[i][e] = values[k];
			try(b, &s, "an element out of range", AN_INPUT | ALLOWED);
		}
	a = changed(b, &s, i);
	s.list[i][a->n++] = 1;
	try(b, &s, "an element more", ALLOWED);
	a = changed(b, &s, i);
	if (a->n) {
		a->n--;
		try(b, &s, "an element less", ALLOWED);
	}
}

static void try_attr(struct bad *b, uint32_t i)
{
	enum ap_attr_type type = b->good.attr[i].type;
	bool data = strncmp(b->good.attr[i].name, "actual_seq_", strlen("actual_seq_")) == 0;
	struct ex_sample s;
	struct ap_attr *a = changed(b, &s, i);

	a->type = type == AP_ATTR_STRING ? AP_ATTR_INT : AP_ATTR_STRING;
	a->s = "nonsense";
	try(b, &s, "an attribute of another type", THE_ATTRIBUTE | ALLOWED);
	if (type == AP_ATTR_STRING) {
		changed(b, &s, i)->s = "nonsense";
		try(b, &s, "an unknown word", THE_ATTRIBUTE | ALLOWED);
	} else if (type == AP_ATTR_INT) {
		try_number(b, i);
	} else if (type == AP_ATTR_INTS && !data) { /* as values of operands are */
		try_list(b, i);
	}
}

/* ---- strategies ---- */

struct vectors {
	struct ap_pin pin;
	uint8_t rank[2 * EX_MAX_IN];
	int32_t cut[2 * EX_MAX_IN][AP_MAX_RANK];
};

static void try_pin(struct bad *b, const struct vectors *v, const char *what, unsigned must)
{
	struct ap_mark mark = ap_arena_mark(b->ctx.arena);
	struct ap_pin pin = {v->pin.n, ap_arena_alloc(b->ctx.arena, v->pin.n + 1, sizeof *pin.v)};

	for (uint32_t i = 0; i < pin.n; i++) {
		pin.v[i].rank = v->rank[i];
		memcpy(pin.v[i].cut, v->cut[i], sizeof v->cut[i]);
	}
	if (!judge(b, &b->good, what, refusal(b, &b->good, &pin), must))
		complain(b, &b->good, what, "it is taken", NULL);
	ap_arena_release(b->ctx.arena, mark);
}

static void try_value(struct bad *b, const struct vectors *good, uint32_t k, int d, int32_t parts,
	const char *what)
{
	struct vectors v = *good;

	v.cut[k][d] = parts;
	try_pin(b, &v, what, AN_INPUT | A_DIMENSION | A_NUMBER | ALLOWED);
}

static void try_vector(struct bad *b, const struct vectors *good, uint32_t k)
{
	struct vectors v = *good;

	v.cut[k][v.rank[k]++] = 1;
	try_pin(b, &v, "a number more", AN_INPUT | A_NUMBER | ALLOWED);
	v = *good;
	if (v.rank[k] == 0)
		return;
	v.rank[k]--;
	try_pin(b, &v, "a number less", AN_INPUT | A_NUMBER | ALLOWED);
	for (int d = 0; d < good->rank[k]; d++) {
		try_value(b, good, k, d, 0, "no parts");
		try_value(b, good, k, d, -2, "less than no parts");
		try_value(b, good, k, d, 7, "parts that do not divide"); /* no length is 7 n */
		try_value(b, good, k, d, 64, "more parts than devices");
	}
}

static void try_strategies(struct bad *b)
{
	struct ex_world w = {.ctx = &b->ctx, .ndev = 1, .rng = 1};
	struct ex_case *c = AP_NEW(b->ctx.arena, struct ex_case);
	int32_t count[AP_MAX_FACTOR];
	struct vectors v = {0};
	struct ap_placement p;

	if (!ex_case_make(&w, &b->good, c) || !ap_op_has_strategy(c->bound.row))
		return;
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		count[f] = 1;
	ap_placement_make(&c->bound, count, NDEV, &p);
	v.pin.n = ap_space_to_strategy(&p, v.rank, v.cut, 2 * EX_MAX_IN);
	for (uint32_t k = 0; k < v.pin.n; k++)
		try_vector(b, &v, k);
	v.pin.n++;
	try_pin(b, &v, "a vector more", A_NUMBER | ALLOWED);
	v.pin.n = v.pin.n > 2 ? v.pin.n - 2 : 0;
	if (v.pin.n)
		try_pin(b, &v, "a vector less", A_NUMBER | ALLOWED);
}

static void run_type(struct bad *b, const struct ex_kernel *k, uint64_t seed)
{
	for (uint64_t n = 0; n < SAMPLES; n++) {
		ex_sample_begin(&b->good, k->type, 1 + ex_hash(seed ^ ex_hash_text(k->type), n) / 2);
		k->make(&b->good);
		for (int i = 0; i < b->good.nin; i++) {
			try_ranks(b, i);
			try_lengths(b, i);
			try_types(b, i);
		}
		for (uint32_t i = 0; i < b->good.attrs.n; i++)
			try_attr(b, i);
		try_strategies(b);
	}
}

START_TEST(what_is_wrong_is_refused)
{
	uint64_t seed = ex_seed("test_bad_rows");
	uint32_t tried = 0, refused = 0, legal = 0, wrong = 0;
	const struct ex_kernel *k;

	for (size_t i = 0; (k = ex_kernel_at(i)); i++) {
		struct ap_arena *arena = ap_arena_create(0, NULL, NULL);
		struct ap_arena *scratch = ap_arena_create(0, NULL, NULL);
		struct bad b = {.ctx = {.arena = arena, .scratch = scratch, .jobs = 1}, .loud = getenv("AP_LOUD")};

		if (!ap_op_unsupported(k->type) && test_asked(i, k->type))
			run_type(&b, k, seed);
		tried += b.tried;
		refused += b.refused;
		legal += b.legal;
		wrong += b.wrong;
		ap_arena_destroy(scratch);
		ap_arena_destroy(arena);
	}
	printf("%" PRIu32 " wrong operators: %" PRIu32 " refused, %" PRIu32 " legal, %" PRIu32
		" not as they should be\n", tried, refused, legal, wrong);
	ck_assert_uint_gt(tried, 0);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST
