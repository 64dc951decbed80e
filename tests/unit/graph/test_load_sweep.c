/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are odd, changed in one place, large, or written in another order. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "rule/bind.h"
#include "graph_fixture.h"
#include "harness.h"

/* End of the value that starts at p: a string, a container with all in it, or a bare word. */
static const char *value_end(const char *p)
{
	int depth = 0;

	do {
		if (*p == '"') {
			for (p++; *p != '"'; p++)
				p += *p == '\\';
		} else if (*p == '[' || *p == '{') {
			depth++;
		} else if (*p == ']' || *p == '}') {
			depth--;
		} else if (depth == 0) {
			return p + strcspn(p, ",]} \n");
		}
		p++;
	} while (depth > 0);
	return p;
}

static bool starts_value(const char *p)
{
	return strchr("\"[{-0123456789tfn", *p) != NULL;
}

/* The next value or key at or after p; *is_key tells which. NULL at the end. */
static const char *next_value(const char *p, bool *is_key)
{
	const char *end;

	while (*p && !starts_value(p))
		p++;
	if (!*p)
		return NULL;
	end = value_end(p);
	*is_key = *p == '"' && end[strspn(end, " ")] == ':';
	return p;
}

/* Where to go on: into containers, past everything else. */
static const char *after(const char *p)
{
	return *p == '[' || *p == '{' ? p + 1 : value_end(p);
}

static enum ap_status load_changed(const char *at, const char *instead)
{
	const struct ap_graph *g;
	const char *end = value_end(at);

	return load_text(ap_arena_printf(ctx.arena, "%.*s%s%s", (int)(at - fixture_mlp),
		fixture_mlp, instead, end), NULL, &g);
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(every_value_may_be_something_else, 11)
{
	static const char *const values[] = {"null", "true", "7", "-1", "0.5", "\"zzz\"", "\"\"",
		"[]", "{}", "[[]]", "9223372036854775807"};
	bool is_key;
	int n = 0;

	for (const char *p = fixture_mlp; (p = next_value(p, &is_key)); p = after(p)) {
		enum ap_status st;

		if (is_key)
			continue;
		st = load_changed(p, values[_i]);
		ck_assert_msg(st == AP_OK || st == AP_MEANING, "%.40s", p);
		ck_assert_int_eq(st == AP_OK, ap_diag_count(ctx.diag, AP_ERROR) == 0);
		fixture_teardown();
		fixture_setup();
		n++;
	}
	ck_assert_int_eq(n, 140);
}
END_TEST

START_TEST(every_misspelt_key_is_told)
{
	const char *check = NULL;
	bool is_key;
	int n = 0;

	for (const char *p = fixture_mlp; (p = next_value(p, &is_key)); p = after(p)) {
		enum ap_level level;
		bool told = false;

		if (!is_key)
			continue;
		load_changed(p, "\"zzz\"");
		for (size_t i = 0; ap_diag_text(ctx.diag, i, &level, &check); i++)
			told |= check && (strcmp(check, "key-unknown") == 0 ||
				strcmp(check, "attr-unknown") == 0);
		ck_assert_msg(told, "%.40s", p);
		fixture_teardown();
		fixture_setup();
		n++;
	}
	ck_assert_int_eq(n, 86);
}
END_TEST

/* Text of a graph: x -> chain of n operators, in the given order of the file. */
static const char *chain_text(uint32_t n, bool reversed, bool fan)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "{\"schema\": \"autopar-graph/1\", \"inputs\": [{\"name\": \"t0\","
		"\"shape\": [4,8], \"dtype\": \"float16\", \"batch_dim\": 0}], \"operators\": [");
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = reversed ? n - 1 - k : k;

		ap_str_addf(&s, "%s{\"name\": \"n%u\", \"type\": \"Add\", \"inputs\": "
			"[\"t%u\", \"t0\"], \"outputs\": [{\"name\": \"t%u\"}]}", k ? ",\n" : "", i,
			fan ? 0 : i, i + 1);
	}
	ap_str_add(&s, "], \"outputs\": [");
	for (uint32_t i = fan ? 1 : n; i <= n; i++)
		ap_str_addf(&s, "%s\"t%u\"", i > (fan ? 1 : n) ? "," : "", i);
	ap_str_add(&s, "]}");
	return s.s;
}

struct job {
	const char *text;
	enum ap_status st;
	const struct ap_graph *g;
};

static void *load_in_thread(void *arg)
{
	struct job *j = arg;

	j->st = load_text(j->text, NULL, &j->g);
	return NULL;
}

static const struct ap_graph *load_on_small_stack(const char *text)
{
	struct job j = {.text = text};
	pthread_attr_t attr;
	pthread_t t;

	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, 256 << 10), 0);
	ck_assert_int_eq(pthread_create(&t, &attr, load_in_thread, &j), 0);
	pthread_join(t, NULL);
	pthread_attr_destroy(&attr);
	ck_assert_msg(j.st == AP_OK, "%.300s", messages());
	return j.g;
}

START_TEST(long_chains_need_no_stack)
{
	const struct ap_graph *g = load_on_small_stack(chain_text(100000, true, false));

	ck_assert_uint_eq(g->nnode, 100000);
	for (uint32_t i = 0; i < g->nnode; i += 999) {
		char name[16];

		snprintf(name, sizeof name, "n%u", i);
		ck_assert_str_eq(g->node[i].name, name);
	}
	ck_assert_uint_eq(tensor_of(g, "t0")->nuse, 100001);
	ck_assert_int_eq(tensor_of(g, "t100000")->batch, 1);
}
END_TEST

START_TEST(one_tensor_may_have_very_many_consumers)
{
	const struct ap_graph *g = load_on_small_stack(chain_text(100000, false, true));

	ck_assert_uint_eq(tensor_of(g, "t0")->nuse, 200000);
	ck_assert_uint_eq(g->noutput, 100000);
}
END_TEST

START_TEST(long_cycles_are_told_short)
{
	const struct ap_graph *g;
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "{\"schema\": \"autopar-graph/1\", \"operators\": [");
	for (int i = 0; i < 1000; i++)
		ap_str_addf(&s, "%s{\"name\": \"n%d\", \"type\": \"ReLU\", \"inputs\": [\"t%d\"],"
			"\"outputs\": [{\"name\": \"t%d\"}]}", i ? "," : "", i, i,
			(i + 1) % 1000);
	ap_str_add(&s, "], \"outputs\": [\"t0\"]}");
	ck_assert_int_eq(load_text(s.s, NULL, &g), AP_MEANING);
	ck_assert_ptr_nonnull(strstr(messages(), "cycle: n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 "
		"-> n7 -> n8 -> n9 -> ... (1000 operators) [edge-cycle]"));
}
END_TEST

/* Of several cycles the shortest is told, though it is not the first in the file. */
START_TEST(the_shortest_cycle_is_told)
{
	const struct ap_graph *g;

	ck_assert_int_eq(load_text("{\"schema\": \"autopar-graph/1\", \"operators\": ["
		"{\"name\": \"a\", \"type\": \"Add\", \"inputs\": [\"ct\", \"dt\"],"
		" \"outputs\": [{\"name\": \"at\"}]},"
		"{\"name\": \"b\", \"type\": \"ReLU\", \"inputs\": [\"at\"],"
		" \"outputs\": [{\"name\": \"bt\"}]},"
		"{\"name\": \"c\", \"type\": \"ReLU\", \"inputs\": [\"bt\"],"
		" \"outputs\": [{\"name\": \"ct\"}]},"
		"{\"name\": \"d\", \"type\": \"ReLU\", \"inputs\": [\"et\"],"
		" \"outputs\": [{\"name\": \"dt\"}]},"
		"{\"name\": \"e\", \"type\": \"ReLU\", \"inputs\": [\"dt\"],"
		" \"outputs\": [{\"name\": \"et\"}]}], \"outputs\": [\"ct\"]}", NULL, &g),
		AP_MEANING);
	ck_assert_ptr_nonnull(strstr(messages(), "(operator \"d\"): cycle: d -> e -> d ["));
}
END_TEST

static void assert_same_operator(const struct ap_graph *a, const struct ap_graph *b,
	const struct ap_node *x, const struct ap_node *y)
{
	ck_assert_str_eq(ap_rule_text(&ctx, &x->bound), ap_rule_text(&ctx, &y->bound));
	ck_assert_int_eq(x->backward, y->backward);
	for (uint16_t k = 0; k < x->bound.nin; k++) {
		const struct ap_tensor *s = &a->tensor[x->in[k]], *t = &b->tensor[y->in[k]];

		ck_assert_str_eq(s->name, t->name);
		ck_assert_int_eq(s->batch, t->batch);
		ck_assert_int_eq(s->needs_grad, t->needs_grad);
		ck_assert_uint_eq(s->nuse, t->nuse);
	}
}

static void assert_same_graph(const struct ap_graph *a, const struct ap_graph *b)
{
	ck_assert_uint_eq(a->nnode, b->nnode);
	for (uint32_t i = 0; i < a->nnode; i++)
		assert_same_operator(a, b, &a->node[i], node_of(b, a->node[i].name));
}

START_TEST(order_of_operators_in_the_file_does_not_matter)
{
	assert_same_graph(load_ok(chain_text(50, false, false)),
		load_ok(chain_text(50, true, false)));
	assert_same_graph(load_ok(chain_text(50, false, true)),
		load_ok(chain_text(50, true, true)));
}
END_TEST

/* Names reach the graph byte for byte. */
static const char *const odd_names[][2] = { /* in JSON, raw */
	{"a\\\"b\\\\", "a\"b\\"},
	{"\\\\N\\\\G\\\"];evil[", "\\N\\G\"];evil["},
	{"line\\nfeed\\ttab", "line\nfeed\ttab"},
	{"\\u001b[31m", "\x1b[31m"},
	{"%s%n", "%s%n"},
	{"../../etc/passwd", "../../etc/passwd"},
	{"$(touch P);rm", "$(touch P);rm"},
	{"<TABLE>&quot;", "<TABLE>&quot;"},
	{"\\u202eabc", "\xe2\x80\xae" "abc"},
	{"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
};

START_LOOP_TEST(odd_names_are_kept, AP_COUNT(odd_names))
{
	const char *name = odd_names[_i][0], *raw = odd_names[_i][1];
	const struct ap_graph *g = load_ok(ap_arena_printf(ctx.arena,
		"{\"schema\": \"autopar-graph/1\", \"inputs\": [{\"name\": \"x\","
		"\"shape\": [2.0, 8e0], \"dtype\": \"float16\"}], \"operators\": [{\"name\": \"%s\","
		"\"type\": \"ReduceSum\", \"inputs\": [\"x\"], \"outputs\": [{\"name\": \"%s\"}]}],"
		"\"outputs\": [\"%s\"]}", name, name, name));

	ck_assert_str_eq(g->node[0].name, raw);
	ck_assert_str_eq(g->tensor[g->output[0]].name, raw);
	ck_assert_str_eq(shape_of(g, "x"), "[2,8]");
}
END_TEST

START_TEST(odd_names_are_told_safely)
{
	const struct ap_graph *g;

	ck_assert_int_eq(load_text("{\"schema\": \"autopar-graph/1\", \"operators\": [{\"name\":"
		"\"\\u001b[31m\", \"type\": \"ReLU\", \"inputs\": [\"\\u202eab\\u0007\"],"
		"\"outputs\": [{\"name\": \"s\"}]}], \"outputs\": [\"s\"]}", NULL, &g), AP_MEANING);
	ck_assert_ptr_null(strpbrk(messages(), "\x1b\x07\xe2"));
	ck_assert_ptr_nonnull(strstr(messages(), "no tensor \"\\u202eab"));
}
END_TEST

START_TEST(long_names_and_keys)
{
	char *name = ap_arena_alloc(ctx.arena, 70001, 1);
	const struct ap_graph *g;

	memset(name, 'n', 70000);
	g = load_ok(ap_arena_printf(ctx.arena, "{\"schema\": \"autopar-graph/1\", \"%.5000s\": 1,"
		"\"\": 2, \"inputs\": [{\"name\": \"x\", \"shape\": [2], \"dtype\": \"float16\"}],"
		"\"operators\": [{\"name\": \"%s\", \"type\": \"ReduceSum\", \"inputs\": [\"x\"],"
		"\"outputs\": [{\"name\": \"s\"}]}], \"outputs\": [\"s\"]}", name, name));
	ck_assert_uint_eq(strlen(g->node[0].name), 70000);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 2);
	ck_assert_uint_lt(strlen(messages()), 1000);
}
END_TEST

START_TEST(very_large_products_do_not_wrap)
{
	const struct ap_graph *g = load_ok("{\"schema\": \"autopar-graph/1\", \"inputs\": ["
		"{\"name\": \"a\", \"shape\": [2097152,2097152], \"dtype\": \"float32\"},"
		"{\"name\": \"b\", \"shape\": [2097152,2097152], \"dtype\": \"float32\"}],"
		"\"operators\": [{\"name\": \"m\", \"type\": \"MatMul\", \"inputs\": [\"a\",\"b\"],"
		"\"outputs\": [{\"name\": \"c\"}]}, {\"name\": \"s\", \"type\": \"ReduceSum\","
		"\"inputs\": [\"c\"], \"outputs\": [{\"name\": \"l\"}]}], \"outputs\": [\"l\"]}");

	ck_assert_int_eq(ap_tensor_bytes(tensor_of(g, "c")), INT64_C(1) << 44);
}
END_TEST

START_TEST(cells_come_from_scope_names)
{
	static const char *const cells[][2] = {
		{"Default/network-WithLossCell/_backbone-Network/layer1-Dense/MatMul-op0",
			"_backbone.layer1"},
		{"Default/MatMul-op0", ""},
		{"MatMul-op0", ""},
		{"Default/network-Net/MatMul-op0", ""},
		{"Default/network-Net/0-Block/attn-Attention/q-Dense/MatMul-op0", "0.attn.q"},
		{"block0/mlp/MatMul", "block0.mlp"},
		{"Default/network-_VirtualDatasetCell/_backbone-WithLossCell/_backbone-Net/l-Dense/MatMul-op0",
			"_backbone.l"},
		{"Default/network-TrainOneStepCell/network-_VirtualDatasetCell/_backbone-PipelineCell/"
			"network-Net/l-Dense/MatMul-op0", "l"},
		{"Default/network-PipelineCells/l-Dense/MatMul-op0", "l"},
		{"Default/network-Net/l-PipelineCell/MatMul-op0", "l"},
		{"Default/network-_VirtualDatasetCell/MatMul-op0", ""},
	};

	for (size_t i = 0; i < AP_COUNT(cells); i++) {
		const struct ap_graph *g = load_ok(ap_arena_printf(ctx.arena,
			"{\"schema\": \"autopar-graph/1\", "
			"\"inputs\": [{\"name\": \"x\", \"shape\": [2], \"dtype\": \"float16\"}], "
			"\"operators\": [{\"name\": \"%s\", \"type\": \"ReduceSum\", \"inputs\": "
			"[\"x\"], \"outputs\": [{\"name\": \"s\"}]}], \"outputs\": [\"s\"]}",
			cells[i][0]));

		ck_assert_str_eq(g->node[0].cell, cells[i][1]);
	}
}
END_TEST
