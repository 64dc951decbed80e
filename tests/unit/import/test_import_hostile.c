/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever the text is, it ends with a graph that can be loaded or with a message. AP_SEED and AP_CASES
 * repeat or extend the replay.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "import/write.h"
#include "harness.h"
#include "import_fixture.h"

static enum ap_status status_of(const char *text, size_t len, const struct ap_import_params *params)
{
	const struct ap_import *g;

	return ap_import_ir(&ctx, "net.ir", text, len, params, &g);
}

static void anew(void)
{
	fixture_teardown();
	fixture_setup();
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

/* A dump that is cut is told as such, or read as far as it goes. */
START_TEST(cut_anywhere)
{
	const struct ap_import_params whole = {.micro_batches = 1}, piece = {.micro_batches = 1, .partial = true};
	size_t n = strlen(fixture_dump), pieces = 0;

	for (size_t len = 0; len + 2 < n; len++) {
		anew();
		ck_assert_msg(status_of(fixture_dump, len, &whole) == AP_SYNTAX, "cut at %zu: %s", len, messages());
		ck_assert_msg(strstr(messages(), "net.ir:") != NULL, "cut at %zu: %s", len, messages());
		anew();
		pieces += status_of(fixture_dump, len, &piece) == AP_OK;
	}
	ck_assert_uint_gt(pieces, 100);
}
END_TEST

static uint64_t draw(uint64_t *state, uint64_t n)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * UINT64_C(2685821657736338717) >> 11) % n;
}

/* Bytes replaced, removed, doubled; lines and words that matter ap_str_take in. */
static size_t mutate(uint64_t *state, char *text, size_t len, size_t cap)
{
	static const char *const words[] = {"%0", "%1(x) = ", "@2_net", "call ", "(", ")", "{", "}", "\n", ",",
		"<Tensor[Float32], (16, 8)>", "PrimFunc_", "I64(0)", "-1", "\"", "Tensor(shape=[", "$(@2_net:w)",
		"[", "]", "primitive_attrs: {", ": ", "Return(%0)\n", "}\n", "J(@2_net)", "99999999999999999999",
		"<null>", "(((((((("};
	const char *word = words[draw(state, AP_COUNT(words))];
	size_t at = (size_t)draw(state, len), n = 1 + (size_t)draw(state, 40), w = strlen(word);

	switch (draw(state, 4)) {
	case 0:
		n = n < len - at ? n : len - at;
		memmove(text + at, text + at + n, len - at - n);
		return len - n;
	case 1:
		if (at + n > len || len + n > cap)
			return len;
		memmove(text + at + n, text + at, len - at);
		return len + n;
	case 2:
		memcpy(text + at, word, w < len - at ? w : len - at);
		return len;
	default:
		if (len + w > cap)
			return len;
		memmove(text + at + w, text + at, len - at);
		memcpy(text + at, word, w);
		return len + w;
	}
}

/* What is written can be read: it is JSON, and if the graph is refused, then with a message. */
static void check_outcome(const char *text, size_t len, const struct ap_import_params *params)
{
	const struct ap_graph_params plain = {.unknown_batch_parallel = true};
	const struct ap_import *g;
	const struct ap_graph *loaded;
	struct ap_json *doc;
	struct ap_str s;
	enum ap_status st = ap_import_ir(&ctx, "net.ir", text, len, params, &g);

	if (st != AP_OK) {
		ck_assert_msg(ap_diag_count(ctx.diag, AP_ERROR) > 0 && ap_diag_status(ctx.diag) == st,
			"%d without a message for\n%.*s", st, (int)len, text);
		return;
	}
	ap_str_init(&s, ctx.arena);
	ap_import_write(&ctx, g, ap_str_take, &s);
	ck_assert_msg(ap_json_parse(&ctx, "g.json", s.s, s.len, 0, &doc) == AP_OK, "%s", messages());
	if (ap_graph_load(&ctx, doc, "00", &plain, &loaded) != AP_OK)
		ck_assert_uint_gt(ap_diag_count(ctx.diag, AP_ERROR), 0);
}

START_TEST(mutations)
{
	const char *seed = getenv("AP_SEED"), *cases = getenv("AP_CASES");
	uint64_t state = seed ? strtoull(seed, NULL, 0) : 20240229;
	size_t n = strlen(fixture_dump), most = cases ? strtoul(cases, NULL, 0) : 2000;

	printf("AP_SEED=%" PRIu64 "\n", state);
	for (size_t i = 0; i < most; i++) {
		static char text[8192];
		const struct ap_import_params params = {.micro_batches = 1 + (int64_t)draw(&state, 2),
			.partial = draw(&state, 2), .searched = draw(&state, 2),
			.unknown_batch_parallel = draw(&state, 2)};
		size_t len = n;

		anew();
		memcpy(text, fixture_dump, n);
		for (uint64_t k = 1 + draw(&state, 4); k && len; k--)
			len = mutate(&state, text, len, sizeof text);
		check_outcome(text, len, &params);
	}
}
END_TEST

/* 100,000 operators in a row. */
static const char *long_dump(uint32_t n)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "# IR entry: @net\n# Total params: 1\n%para1_x: <Tensor[Float32], (16, 8)>\n\n"
		"subgraph @net() {\n  %0(y) = PrimFunc_Exp(%para1_x)\n"
		"      : (<Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16, 8)>)\n");
	for (uint32_t i = 1; i < n; i++)
		ap_str_addf(&s, "  %%%" PRIu32 "(y) = PrimFunc_ReLU(%%%" PRIu32 ")\n"
			"      : (<Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16, 8)>)\n"
			"      # Scope: (Default/network-Net/layers-CellList/%" PRIu32 "-Layer)\n", i, i - 1, i / 9);
	ap_str_addf(&s, "  Return(%%%" PRIu32 ")\n      : (<Tensor[Float32], (16, 8)>)\n}\n", n - 1);
	return s.s;
}

START_TEST(many_operators)
{
	const char *text = long_dump(100000);
	const struct ap_import_params params = {.micro_batches = 1};
	clock_t begin = clock();

	ck_assert_msg(status_of(text, strlen(text), &params) == AP_OK, "%s", messages());
	ck_assert_msg((double)(clock() - begin) / CLOCKS_PER_SEC < 10, "took too long");
}
END_TEST

/* A line is read once, however long it is. */
START_TEST(long_line)
{
	const struct ap_import_params params = {.micro_batches = 1};
	struct ap_str s;
	clock_t begin;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "# IR entry: @net\n# Total params: 1\n%para1_x: <Tensor[Float32], (4)>\n\nsubgraph @net() {\n"
		"  %0(a) = PrimFunc_Exp(%para1_x");
	for (int i = 0; i < 200000; i++)
		ap_str_add(&s, ", %para1_x");
	ap_str_add(&s, ")\n  Return(%0)\n}\n");
	begin = clock();
	ck_assert_int_eq(status_of(s.s, s.len, &params), AP_MEANING);
	ck_assert_msg((double)(clock() - begin) / CLOCKS_PER_SEC < 3, "took too long");
}
END_TEST

/* Sub-graphs that call the next one twice: 2^40 operators are a limit, not a wait. */
START_TEST(doubling_calls)
{
	const struct ap_import_params params = {.micro_batches = 1};
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "# IR entry: @f0\n# Total params: 1\n%para1_x: <Tensor[Float32], (2)>\n\n");
	for (int i = 0; i < 40; i++)
		ap_str_addf(&s, "subgraph @f%d(%s) {\n  %%0(a) = call @f%d(%s)\n  %%1(b) = call @f%d(%%0)\n"
			"  Return(%%1)\n}\n", i, i ? "%para9_y" : "", i + 1, i ? "%para9_y" : "%para1_x", i + 1);
	ap_str_add(&s, "subgraph @f40(%para9_y) {\n  %0(a) = PrimFunc_Exp(%para9_y)\n"
		"      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)\n  Return(%0)\n}\n");
	ck_assert_int_eq(status_of(s.s, s.len, &params), AP_LIMIT);
	holds(messages(), "net.ir:181: the dump takes more than 64 MB where every call is replaced");
}
END_TEST

#define ROW "<Tensor[Float32], (2)>"

static void begin_dump(struct ap_str *s)
{
	ap_str_init(s, ctx.arena);
	ap_str_add(s, "# IR entry: @net\n# Total params: 1\n%para1_x: " ROW "\n\n");
}

static void add_exp(struct ap_str *s, uint32_t id, const char *of, const char *scope)
{
	ap_str_addf(s, "  %%%" PRIu32 "(a) = PrimFunc_Exp(%s)\n      : (" ROW ") -> (" ROW ")\n"
		"      # Scope: (%s)\n", id, of, scope);
}

static const char *repeated(const char *text, size_t n)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	while (n--)
		ap_str_add(&s, text);
	return s.s;
}

/* A scope of 60,000 letters in a sub-graph that is called 2^15 times. */
static void make_long_scope(struct ap_str *s)
{
	for (int i = 0; i < 15; i++)
		ap_str_addf(s, "subgraph @%s%d(%s) {\n  %%0(a) = call @f%d(%s)\n  %%1(b) = call @f%d(%%0)\n"
			"  Return(%%1)\n}\n", i ? "f" : "net", i, i ? "%para9_y" : "%para1_x", i + 1,
			i ? "%para9_y" : "%para1_x", i + 1);
	ap_str_add(s, "subgraph @f15(%para9_y) {\n");
	add_exp(s, 0, "%para9_y", repeated("b", 60000));
	ap_str_add(s, "  Return(%0)\n}\n");
}

/* Sub-graphs without operators are nothing, and called 2^40 times. */
static void make_empty_calls(struct ap_str *s)
{
	for (int i = 0; i < 40; i++)
		ap_str_addf(s, "subgraph @%s%d(%s) {\n  %%0(a) = call @f%d(%s)\n  %%1(b) = call @f%d(%%0)\n"
			"  Return(%%1)\n}\n", i ? "f" : "net", i, i ? "%para9_y" : "%para1_x", i + 1,
			i ? "%para9_y" : "%para1_x", i + 1);
	ap_str_add(s, "subgraph @f40(%para9_y) {\n  Return(%para9_y)\n}\n");
}

static void make_tuples(struct ap_str *s, const char *first)
{
	ap_str_add(s, "subgraph @net0(%para1_x) {\n");
	add_exp(s, 0, "%para1_x", "Default");
	ap_str_addf(s, "  %%1(a) = MakeTuple(%s, %s)\n", first, first);
	for (int i = 2; i < 60; i++)
		ap_str_addf(s, "  %%%d(a) = MakeTuple(%%%d, %%%d)\n", i, i - 1, i - 1);
	ap_str_add(s, "  Return(%59)\n}\n");
}

static void make_tensor_tuples(struct ap_str *s)
{
	make_tuples(s, "%0");
}

static void make_constants(struct ap_str *s)
{
	make_tuples(s, "I64(1)");
}

static void make_deep_tuple(struct ap_str *s)
{
	ap_str_add(s, "subgraph @net0(%para1_x) {\n");
	add_exp(s, 0, "%para1_x", "Default");
	for (int i = 1; i < 100000; i++)
		ap_str_addf(s, "  %%%d(a) = MakeTuple(%%%d)\n", i, i - 1);
	ap_str_add(s, "  Return(%99999)\n}\n");
}

static void make_bound_arguments(struct ap_str *s)
{
	ap_str_add(s, "subgraph @net0(%para1_x) {\n  %0(a) = Partial(@f, %para1_x)\n");
	for (int i = 1; i < 30000; i++)
		ap_str_addf(s, "  %%%d(a) = Partial(%%%d, %%para1_x)\n", i, i - 1);
	add_exp(s, 30000, "%para1_x", "Default");
	ap_str_add(s, "  Return(%30000)\n}\nsubgraph @f(%para9_y) {\n  Return(%para9_y)\n}\n");
}

/* What 20,000 others read has a name of 60,000 letters. */
static void make_read_often(struct ap_str *s)
{
	ap_str_add(s, "subgraph @net0(%para1_x) {\n");
	add_exp(s, 0, "%para1_x", ap_arena_printf(ctx.arena, "Default/net-N/%s-B", repeated("b", 60000)));
	for (uint32_t i = 1; i < 20000; i++)
		add_exp(s, i, "%0", "Default");
	ap_str_add(s, "  Return(%19999)\n}\n");
}

static void make_deep_scope(struct ap_str *s)
{
	ap_str_add(s, "subgraph @net0(%para1_x) {\n");
	add_exp(s, 0, "%para1_x", ap_arena_printf(ctx.arena, "recompute_Default/net-N/%s", repeated("a-A/", 30000)));
	ap_str_add(s, "  Return(%0)\n}\n");
}

/* Each is the element of the one before, which is not there. */
static void make_names_of_names(struct ap_str *s)
{
	ap_str_add(s, "subgraph @net0(%para1_x) {\n");
	for (int i = 0; i < 20000; i++)
		ap_str_addf(s, "  %%%d(a) = TupleGetItem(%%%s, I64(0))\n      : (" ROW ", <Int64>) -> (" ROW ")\n", i,
			i ? ap_arena_printf(ctx.arena, "%d", i - 1) : "para1_x");
	add_exp(s, 20000, "%19999", "Default");
	ap_str_add(s, "  Return(%20000)\n}\n");
}

static const struct {
	void (*make)(struct ap_str *s);
	const char *says;
	bool partial;
} inflating[] = {
	{make_long_scope, ": the dump takes more than ", false},
	{make_empty_calls, ": the dump takes more than ", false},
	{make_tensor_tuples, ": a tuple of more than 1048576 parts", false},
	{make_constants, ": a tuple of more than 1048576 parts", false},
	{make_deep_tuple, ": tuples are nested deeper than 64", false},
	{make_bound_arguments, ": the dump takes more than ", false},
	{make_read_often, ": the graph takes more than ", false},
	{make_deep_scope, ": Exp: 30002 cells, one in the other", false},
	{make_names_of_names, ": the dump takes more than ", true},
};

/* Text that stands for much more of it is refused before memory is: with what it takes, and its line. */
START_LOOP_TEST(inflating_text, AP_COUNT(inflating))
{
	const struct ap_import_params params = {.micro_batches = 1, .partial = inflating[_i].partial};
	struct ap_str s;
	size_t before;

	begin_dump(&s);
	inflating[_i].make(&s);
	s.s = (char *)edited(s.s, "@net\n", "@net0\n");
	before = ap_arena_bytes(ctx.arena);
	ck_assert_int_eq(status_of(s.s, strlen(s.s), &params), AP_LIMIT);
	holds(messages(), inflating[_i].says);
	holds(messages(), "net.ir:");
	ck_assert_uint_lt(ap_arena_bytes(ctx.arena) - before, 640u << 20);
}
END_TEST

/* Names that many want are numbered, in one go. */
START_TEST(one_name_for_many)
{
	const struct ap_import_params params = {.micro_batches = 1};
	struct ap_str s;
	size_t before;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "# IR entry: @net\n# Total params: 5000\n");
	for (int i = 1; i <= 5000; i++)
		ap_str_addf(&s, "%%para%d_x: " ROW "\n", i);
	ap_str_add(&s, "\nsubgraph @net(%para1_x");
	for (int i = 2; i <= 5000; i++)
		ap_str_addf(&s, ", %%para%d_x", i);
	ap_str_add(&s, ") {\n");
	for (uint32_t i = 0; i < 5000; i++)
		add_exp(&s, i, ap_arena_printf(ctx.arena, "%%para%u_x", i + 1), "Default");
	ap_str_add(&s, "  Return(%4999)\n}\n");
	before = ap_arena_bytes(ctx.arena);
	ck_assert_msg(status_of(s.s, s.len, &params) == AP_OK, "%s", messages());
	ck_assert_uint_lt(ap_arena_bytes(ctx.arena) - before, 32u << 20);
}
END_TEST

/* Nesting is a limit, too. */
START_TEST(deep_lists)
{
	const struct ap_import_params params = {.micro_batches = 1};
	char deep[20001];
	const char *text;

	memset(deep, '(', sizeof deep - 1);
	deep[sizeof deep - 1] = '\0';
	text = edited(fixture_dump, "(I64(0), I64(1))", deep);
	ck_assert_int_eq(status_of(text, strlen(text), &params), AP_LIMIT);
	text = edited(fixture_dump, "<Tuple[Int64*2]", edited(deep, "((", "<Tuple[Tuple[Tuple["));
	ck_assert_int_ne(status_of(text, strlen(text), &params), AP_OK);
}
END_TEST
