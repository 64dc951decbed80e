/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "graph/kernel_times.h"
#include "graph_fixture.h"
#include "harness.h"

TEST_FIXTURE(fixture_setup, fixture_teardown)

/* Two products, [8,4] x [4,6] and [8,6] x [6,2], and what is between. */
static const char net[] =
	"{\"schema\": \"autopar-graph/1\", \"name\": \"net\", \"inputs\": ["
	"{\"name\": \"x\", \"shape\": [8,4], \"dtype\": \"float32\", \"batch_dim\": 0}],"
	"\"parameters\": [{\"name\": \"w\", \"shape\": [4,6], \"dtype\": \"float32\"},"
	"{\"name\": \"u\", \"shape\": [6,2], \"dtype\": \"float32\"}],"
	"\"operators\": ["
	"{\"name\": \"Default/a/MatMul-op1\", \"type\": \"MatMul\", \"inputs\": [\"x\", \"w\"],"
	"\"outputs\": [{\"name\": \"h\"}]},"
	"{\"name\": \"Default/a/ReLU-op2\", \"type\": \"ReLU\", \"inputs\": [\"h\"],"
	"\"outputs\": [{\"name\": \"r\"}]},"
	"{\"name\": \"Default/b/MatMul-op3\", \"type\": \"MatMul\", \"inputs\": [\"r\", \"u\"],"
	"\"outputs\": [{\"name\": \"y\"}]},"
	"{\"name\": \"Default/end\", \"type\": \"ReduceSum\", \"inputs\": [\"y\"],"
	"\"outputs\": [{\"name\": \"loss\"}]}], \"outputs\": [\"loss\"]}";

static enum ap_status apply(const char *text, const struct ap_graph **out)
{
	return ap_kernel_times_apply(&ctx, "k.csv", text, strlen(text), load_ok(net), out);
}

static void check(const struct ap_graph *g, const char *name, double forward_s, double backward_s, double share)
{
	const struct ap_node *n = node_of(g, name);

	ck_assert_msg(n->measured, "%s", name);
	ck_assert_double_eq_tol(n->measured_forward_s, forward_s, 1e-15);
	ck_assert_double_eq_tol(n->measured_backward_s, backward_s, 1e-15);
	ck_assert_double_eq_tol(n->measured_share, share, 1e-12);
}

#define HEADER "Op Name,OP Type,Task Duration(us),Input Shapes,Output Shapes\n"

/* Half of the batch, all columns; kernels alike count with their mean; gradients by their scope. */
START_TEST(profile)
{
	const struct ap_graph *g;

	ck_assert_int_eq(apply(HEADER
		"Default/a/MatMul-op1,MatMulV2,10,\"\"\"4,4;4,6\"\"\",\"\"\"4,6\"\"\"\n"
		"Default/a/MatMul-op1,MatMulV2,12,\"\"\"4,4;4,6\"\"\",\"\"\"4,6\"\"\"\n"
		"Gradients/Default/a/gradMatMul-expand/MatMul-op7,MatMulV2,9,\"4,6\",\"4,6\"\n"
		"Gradients/Default/a/gradMatMul-expand/MatMul-op8,MatMulV2,11,\"4,6\",\"4,6\"\n"
		"Gradients/Default/a/gradMatMul-expand/MatMul-op7,MatMulV2,9,\"4,6\",\"4,6\"\n"
		"Gradients/Default/a/gradMatMul-expand/MatMul-op8,MatMulV2,11,\"4,6\",\"4,6\"\n"
		"Default/b/MatMul-op3,MatMulV2,8,\"8,3;3,2\",\"8,2\"\n"
		"Default/a/ReLU-op2,ReluV9,3,\"8,6\",\"8,6\"\n"
		"Default/a/ReLU-op2,ReLU,2,\"8,3\",\"8,3\"\n"
		"Default/a/ReLU-op2,ReLU,1,\"2,3\",\"2,3\"\n"
		"hcom_allReduce_,N/A,5,N/A,N/A\n", &g), AP_OK);
	check(g, "Default/a/MatMul-op1", 11e-6, 20e-6, 0.5);
	check(g, "Default/b/MatMul-op3", 8e-6, 16e-6, 0.5); /* along what is summed; backward unknown: twice */
	check(g, "Default/a/ReLU-op2", 3e-6, 3e-6, 1);
	ck_assert(!node_of(g, "Default/end")->measured);
	ck_assert_ptr_nonnull(strstr(messages(), "3 of 4 operators have measured times, from 5 kernels; none is "
		"known of ReduceSum"));
}
END_TEST

START_TEST(table)
{
	const struct ap_graph *g;

	ck_assert_int_eq(apply("name,type,input_shapes,forward_ms,backward_ms,share\n"
		"Default/b/MatMul-op3,,,0.5,1.5,\n"
		",MatMul,\"8,4;4,6\",2,5,0.25\n"
		"Default/gone,ReLU,\"8,6\",7,7,\n"
		",Softmax,\"8,6\",7,7,\n", &g), AP_OK);
	check(g, "Default/b/MatMul-op3", 0.5e-3, 1.5e-3, 1);
	check(g, "Default/a/MatMul-op1", 2e-3, 5e-3, 0.25);
	ck_assert(!node_of(g, "Default/a/ReLU-op2")->measured);
	ck_assert_ptr_nonnull(strstr(messages(), "kernels that are of no operator of"));
	ck_assert_ptr_nonnull(strstr(messages(), "Default/gone, Softmax"));
}
END_TEST

START_TEST(faults)
{
	static const struct { const char *text, *message; } cases[] = {
		{"", "k.csv:1: is no table of kernels"},
		{"a,b\n1,2\n", "k.csv:1: is no table of kernels"},
		{HEADER, "k.csv: holds no kernel with a time"},
		{"type,forward_us\nMatMul,x\n", "k.csv:2: expected a number, not below 0, under forward_us"},
		{"type,forward_us\nMatMul,-1\n", "k.csv:2: expected a number, not below 0, under forward_us"},
		{"type,forward_us,share\nMatMul,1,2\n", "k.csv:2: a share is above 0 and at most 1"},
		{"type,forward_s\nMatMul,1e9\n", "k.csv:2: no kernel takes so long"},
		{"type,forward_us\nMatMul\nMatMul,1\n", "k.csv:2: has not as many fields as the first line"},
		{"type,forward_us\n\"MatMul,1\n", "k.csv:2: a field begins with a quote"},
	};
	const struct ap_graph *g;

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		ck_assert_int_ne(apply(cases[i].text, &g), AP_OK);
		ck_assert_msg(strstr(messages(), cases[i].message) != NULL, "%s in %s", cases[i].message,
			messages());
	}
}
END_TEST
