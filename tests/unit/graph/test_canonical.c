/* SPDX-License-Identifier: Apache-2.0 */
/* The order of operators, whatever that of the file. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph_fixture.h"
#include "harness.h"

#define HEAD \
	"{\"schema\":\"autopar-graph/1\",\"name\":\"order\"," \
	"\"inputs\":[{\"name\":\"x\",\"shape\":[8,4],\"dtype\":\"float32\",\"batch_dim\":0}]," \
	"\"parameters\":[{\"name\":\"v\",\"shape\":[4],\"dtype\":\"float32\"}," \
	"{\"name\":\"w\",\"shape\":[4],\"dtype\":\"float32\"}],\"operators\":["
#define TAIL "],\"outputs\":[\"l\"]}"
#define OP(name, type, in, out, more) \
	"{\"name\":\"" name "\",\"type\":\"" type "\",\"inputs\":[" in "],\"outputs\":[{\"name\":\"" out "\"}]" more "}"

#define STEM OP("stem", "Mul", "\"x\",\"w\"", "s", "")
#define LEFT OP("left", "ReLU", "\"s\"", "a", "")
#define LEFT_2 OP("left2", "Mul", "\"a\",\"v\"", "b", "")
#define RIGHT OP("right", "GeLU", "\"s\"", "c", "")
#define JOIN OP("join", "Add", "\"b\",\"c\"", "d", "")
#define LOSS OP("loss", "ReduceMean", "\"d\"", "l", "")

static const char *const files[] = {
	HEAD STEM "," LEFT "," LEFT_2 "," RIGHT "," JOIN "," LOSS TAIL,
	HEAD RIGHT "," LOSS "," STEM "," LEFT_2 "," LEFT "," JOIN TAIL,
	HEAD LOSS "," JOIN "," LEFT_2 "," RIGHT "," LEFT "," STEM TAIL,
};

static const char *order_of(const struct ap_graph *g)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (ap_id i = 0; i < g->nnode; i++)
		ap_str_addf(&s, "%s%s", i ? " " : "", g->node[i].name);
	return s.s;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(depth_first_from_the_outputs, AP_COUNT(files))
{
	const struct ap_graph *g = load_ok(files[_i]);

	ck_assert_str_eq(order_of(g), "stem left left2 right join loss");
	/* parameters as they are first read */
	ck_assert_str_eq(g->tensor[1].name, "w");
	ck_assert_str_eq(g->tensor[2].name, "v");
}
END_TEST

/* A mask that two read, met at the second operand of the first reader: in front. One that a single operator reads,
 * or that is made of a parameter, stays where it is read. */
START_TEST(what_several_read_is_in_front)
{
#define MASKED(flows, second) HEAD STEM "," OP("turn", "ReLU", flows, "m", "") "," \
	OP("first", "Add", "\"s\",\"m\"", "b", "") "," OP("second", "Add", "\"b\"," second, "d", "") "," LOSS TAIL
	static const struct {
		const char *file, *order;
	} rows[] = {
		{MASKED("\"x\"", "\"m\""), "turn stem first second loss"},
		{MASKED("\"x\"", "\"s\""), "stem turn first second loss"},
		{MASKED("\"v\"", "\"m\""), "stem turn first second loss"},
		{MASKED("\"s\"", "\"m\""), "stem turn first second loss"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		ck_assert_str_eq(order_of(load_ok(rows[i].file)), rows[i].order);
}
END_TEST

START_TEST(behind_what_is_said)
{
	const struct ap_graph *g = load_ok(HEAD STEM "," LEFT ","
		OP("left2", "Mul", "\"a\",\"v\"", "b", ",\"after\":[\"c\"]") "," RIGHT "," JOIN "," LOSS TAIL);

	ck_assert_str_eq(order_of(g), "stem left right left2 join loss");
}
END_TEST

START_TEST(behind_itself)
{
	const struct ap_graph *g;

	ck_assert_int_eq(load_text(HEAD OP("stem", "Mul", "\"x\",\"w\"", "s", ",\"after\":[\"l\"]") "," LEFT ","
		LEFT_2 "," RIGHT "," JOIN "," LOSS TAIL, &(struct ap_graph_params){.micro_batches = 1}, &g), AP_MEANING);
	ck_assert_ptr_nonnull(strstr(messages(), "[edge-cycle]"));
}
END_TEST

START_TEST(behind_nothing_known)
{
	const struct ap_graph *g;

	ck_assert_int_eq(load_text(HEAD STEM "," OP("left", "ReLU", "\"s\"", "a", ",\"after\":[\"nowhere\"]") ","
		LEFT_2 "," RIGHT "," JOIN "," LOSS TAIL, &(struct ap_graph_params){.micro_batches = 1}, &g), AP_MEANING);
	ck_assert_ptr_nonnull(strstr(messages(), "no tensor \"nowhere\""));
}
END_TEST

/* Two chains that no output reaches, of one tensor; a third of the input alone. */
#define APART OP("p", "ReLU", "\"x\"", "t1", "")
#define DEEP OP("q", "ReLU", "\"a\"", "t2", "")
#define DEEPER OP("r", "Sigmoid", "\"t2\"", "t3", "")
#define OTHER OP("o", "Tanh", "\"a\"", "t4", "")

START_TEST(what_no_output_reaches)
{
	static const char *const texts[] = {
		HEAD APART "," DEEPER "," DEEP "," OTHER "," STEM "," LEFT "," LEFT_2 "," RIGHT "," JOIN "," LOSS TAIL,
		HEAD STEM "," LEFT "," LEFT_2 "," RIGHT "," JOIN "," LOSS "," OTHER "," DEEP "," DEEPER "," APART TAIL,
	};

	for (size_t i = 0; i < AP_COUNT(texts); i++)
		ck_assert_str_eq(order_of(load_ok(texts[i])), "p stem left o q r left2 right join loss");
}
END_TEST
