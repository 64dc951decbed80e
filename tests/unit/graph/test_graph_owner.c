/* SPDX-License-Identifier: Apache-2.0 */
/* Which user of a shared tensor stands for all: the same one however the file is ordered. */
#include <string.h>

#include "base/vec.h"
#include "graph_fixture.h"
#include "harness.h"

#define HEAD \
	"{\"schema\":\"autopar-graph/1\",\"name\":\"owner\"," \
	"\"inputs\":[{\"name\":\"x\",\"shape\":[8,4],\"dtype\":\"float32\",\"batch_dim\":0}]," \
	"\"parameters\":[{\"name\":\"w\",\"shape\":[4],\"dtype\":\"float32\"}," \
	"{\"name\":\"unused\",\"shape\":[4],\"dtype\":\"float32\"}]," \
	"\"constants\":[{\"name\":\"c\",\"shape\":[4],\"dtype\":\"float32\"}],\"operators\":["
#define TAIL "],\"outputs\":[\"l\",\"side\"]}"

/* The side branch reads w first, but gives it no gradient; c is read by three, two at the inputs. */
#define SIDE "{\"name\":\"aside\",\"type\":\"Add\",\"inputs\":[\"w\",\"c\"],\"outputs\":[{\"name\":\"side\"}]}"
#define LATE "{\"name\":\"a\",\"type\":\"Add\",\"inputs\":[\"y\",\"c\"],\"outputs\":[{\"name\":\"z\"}]}"
#define LAST "{\"name\":\"n\",\"type\":\"Mul\",\"inputs\":[\"z\",\"w\"],\"outputs\":[{\"name\":\"v\"}]}"
#define NEAR "{\"name\":\"b\",\"type\":\"Mul\",\"inputs\":[\"x\",\"w\"],\"outputs\":[{\"name\":\"y0\"}]}"
#define ELSE "{\"name\":\"aa\",\"type\":\"Mul\",\"inputs\":[\"y0\",\"c\"],\"outputs\":[{\"name\":\"y\"}]}"
#define LOSS "{\"name\":\"loss\",\"type\":\"ReduceMean\",\"inputs\":[\"v\"],\"outputs\":[{\"name\":\"l\"}]}"

static const char *const files[] = {
	HEAD SIDE "," NEAR "," ELSE "," LATE "," LAST "," LOSS TAIL,
	HEAD LOSS "," LAST "," LATE "," ELSE "," NEAR "," SIDE TAIL,
	HEAD LAST "," SIDE "," LATE "," LOSS "," NEAR "," ELSE TAIL,
};

static const char *owner_of(const struct ap_graph *g, const char *tensor, uint32_t *operand)
{
	const struct ap_tensor *t = tensor_of(g, tensor);

	*operand = t->owner.operand;
	return t->owner.node == AP_NONE ? "" : g->node[t->owner.node].name;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(whatever_the_order, AP_COUNT(files))
{
	const struct ap_graph *g = load_ok(files[_i]);
	uint32_t operand;

	ck_assert_str_eq(owner_of(g, "w", &operand), "b");
	ck_assert_uint_eq(operand, 1);
	ck_assert_str_eq(owner_of(g, "c", &operand), "aside");
	ck_assert_uint_eq(operand, 1);
	ck_assert_str_eq(owner_of(g, "unused", &operand), "");
}
END_TEST

/* Two at the same depth: the first that runs. One that reads it twice: its first operand. */
START_TEST(ties)
{
	const struct ap_graph *g = load_ok(HEAD
		"{\"name\":\"q\",\"type\":\"Mul\",\"inputs\":[\"w\",\"x\"],\"outputs\":[{\"name\":\"v\"}]},"
		"{\"name\":\"p\",\"type\":\"Mul\",\"inputs\":[\"w\",\"w\"],\"outputs\":[{\"name\":\"u\"}]},"
		"{\"name\":\"s\",\"type\":\"Add\",\"inputs\":[\"u\",\"v\"],\"outputs\":[{\"name\":\"side\"}]},"
		"{\"name\":\"loss\",\"type\":\"ReduceMean\",\"inputs\":[\"side\"],"
		"\"outputs\":[{\"name\":\"l\"}]}" TAIL);
	uint32_t operand;

	ck_assert_str_eq(owner_of(g, "w", &operand), "p");
	ck_assert_uint_eq(operand, 0);
}
END_TEST
