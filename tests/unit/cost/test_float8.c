/* SPDX-License-Identifier: Apache-2.0 */
/* Products in 8 bits: which, and what they take in time and memory. */
#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "cost/cost.h"
#include "cost/float8.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "fixture.h"
#include "harness.h"

/* Two layers of two products; odd has an extent that 16 does not divide, head is in no layer. The products a
 * and b of a layer read one activation; relu's result is read by c alone, and ReLU itself keeps its result. */
#define LAYER(n, x, y) \
	"{'name':'a" n "','type':'MatMul','inputs':['" x "','wa" n "'],'outputs':[{'name':'ya" n "'}]," \
	"'cell':'net." n "'}," \
	"{'name':'b" n "','type':'MatMul','inputs':['" x "','wb" n "'],'outputs':[{'name':'yb" n "'}]," \
	"'cell':'net." n "'}," \
	"{'name':'sum" n "','type':'Add','inputs':['ya" n "','yb" n "'],'outputs':[{'name':'s" n "'}]," \
	"'cell':'net." n "'}," \
	"{'name':'c" n "','type':'MatMul','inputs':['s" n "','wc" n "'],'outputs':[{'name':'" y "'}]," \
	"'cell':'net." n "'},"
#define WEIGHT(name, k, n) ",{'name':'" name "','shape':[" k "," n "],'dtype':'bfloat16'}"
#define GRAPH \
	"{'schema':'autopar-graph/1','name':'net'," \
	"'inputs':[{'name':'x','shape':[4096,1024],'dtype':'bfloat16','batch_dim':0}]," \
	"'parameters':[{'name':'bias','shape':[1024],'dtype':'bfloat16'}" \
	WEIGHT("wa0", "1024", "2048") WEIGHT("wb0", "1024", "2048") WEIGHT("wc0", "2048", "1024") \
	WEIGHT("wa1", "1024", "2048") WEIGHT("wb1", "1024", "2048") WEIGHT("wc1", "2048", "1000") \
	WEIGHT("wh", "1000", "512") "],'operators':[" \
	"{'name':'in','type':'BiasAdd','inputs':['x','bias'],'outputs':[{'name':'x0'}],'cell':'first'}," \
	LAYER("0", "x0", "x1") LAYER("1", "x1", "x2") \
	"{'name':'head','type':'MatMul','inputs':['x2','wh'],'outputs':[{'name':'y'}],'cell':'last'}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}],'outputs':['l']}"

/* Figures of the h100-80 profile: 6 us a product, 5 us a copy, 3.35 TB/s * 0.75; products of 989 TF * 0.8 in 16
 * bits and 1979 TF * 0.71 in 8, 0.86 of each in a long run, where 230 more of the contracted extent would
 * halve the rate. */
#define MEMORY 2.5125e12
#define PRODUCT(m, n, k) (6e-6 + 2. * (m) * (n) * ((k) + 230) / (1979e12 * 0.71 * 0.86))
#define COPY(bytes) (5e-6 + (bytes) / MEMORY)

static void open_as(struct fixture *f, const char *recipe)
{
	size_t i = 0;

	fixture_open(f, 4, 4, "h100-80");
	f->step.executor = AP_EXECUTOR_GENERIC;
	while (recipe && strcmp(ap_float8_recipe_at(i)->name, recipe) != 0)
		i++;
	f->step.float8 = recipe ? ap_float8_recipe_at(i) : NULL;
	f->step.float8_hybrid = true;
	fixture_graph(f, GRAPH);
}

static void price(struct fixture *f, const char *name, struct ap_op_cost *c)
{
	struct ap_pricer *pr = ap_pricer_create(f->ctx.arena, f->machine, &f->step);
	ap_id node = fixture_node(f, name);
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement p;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, "", count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	ap_op_cost_make(pr, &tasks[node], &p, c);
}

static void near(double got, double want)
{
	ck_assert_msg(fabs(got - want) <= 1e-12 * fabs(want), "got %.17g, want %.17g", got, want);
}

START_TEST(products_of_layers_run_in_8_bits)
{
	static const struct {
		const char *name;
		bool is;
	} rows[] = {{"a0", true}, {"b0", true}, {"c0", true}, {"sum0", false}, {"a1", true}, {"c1", false},
		{"head", false}, {"in", false}};
	struct fixture f;
	const bool *narrow;

	open_as(&f, "delayed");
	narrow = ap_float8_products(&f.ctx, f.graph, &f.step);
	for (size_t i = 0; i < AP_COUNT(rows); i++)
		ck_assert_msg(narrow[fixture_node(&f, rows[i].name)] == rows[i].is, "%s", rows[i].name);
	f.step.float8 = NULL;
	ck_assert_ptr_null(ap_float8_products(&f.ctx, f.graph, &f.step));
	fixture_close(&f);
}
END_TEST

/* a0 of 4096 x 1024 by 1024 x 2048: the product in 8 bits, half of the copies that b0 reads, too (4096 x 1024
 * read and written twice), and the weight's, once a step; back, the copies of the gradient of 4096 x 2048,
 * and both products. */
START_TEST(time_of_a_product)
{
	static const struct {
		const char *recipe;
		double reads, kernels, copy; /* passes over 16 bits; bytes of an element of a copy */
	} rows[] = {{"delayed", 1, 1, 1}, {"tensorwise", 2, 3, 1}, {"blockwise", 1, 1, 1 + 4. / 128},
		{"mxfp8", 1, 1, 1 + 1. / 32}};
	struct fixture f;
	struct ap_op_cost c;

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		for (int64_t parts = 1; parts <= 2; parts++) {
			double each = 2 * rows[i].reads + 2 * rows[i].copy, more = 5e-6 * (rows[i].kernels - 1);
			double rows_of = 4096. / (double)parts;

			open_as(&f, rows[i].recipe);
			f.step.software = NULL;
			f.step.micro_batches = parts;
			price(&f, "a0", &c);
			near(c.forward_s, (double)parts * (PRODUCT(rows_of, 2048, 1024) +
				(COPY(each * rows_of * 1024) + more) / 2) + COPY(each * 1024 * 2048) + more);
			near(c.backward_s, (double)parts * (PRODUCT(rows_of, 1024, 2048) +
				PRODUCT(1024, 2048, rows_of) + COPY(each * rows_of * 2048) + more));
			fixture_close(&f);
		}
}
END_TEST

/* Eight experts of 512 rows of 1024 units each: a product, and a copy of what it reads, for each, which the host
 * starts one after the other; the weight's copies are made once a step. Large tensors take longer than that. */
START_TEST(experts_are_copied_one_by_one)
{
	static const struct {
		const char *recipe;
		double reads, kernels;
	} rows[] = {{"delayed", 1, 1}, {"tensorwise", 2, 3}};
	static const struct ap_software software = {.launch_s = 40e-6, .product_slowdown = 1};
	struct fixture f;
	struct ap_op_cost c;

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		double copies = 8. * rows[i].kernels, flops = 2. * 8 * 512 * 2048 * (1024 + 230);
		double product = 8 * 6e-6 + flops / (1979e12 * 0.71 * 0.86);
		double input = 8. * 512 * 1024 * (2 * rows[i].reads + 2) / MEMORY + copies * 5e-6;
		double weight = 8. * 1024 * 2048 * (2 * rows[i].reads + 2) / MEMORY + 8 * rows[i].kernels * 5e-6;

		open_as(&f, rows[i].recipe);
		f.step.software = &software;
		fixture_graph(&f, "{'schema':'autopar-graph/1','name':'net',"
			"'inputs':[{'name':'x','shape':[8,512,1024],'dtype':'bfloat16','batch_dim':1}],"
			"'parameters':[{'name':'w','shape':[8,1024,2048],'dtype':'bfloat16'},"
			"{'name':'bias','shape':[1024],'dtype':'bfloat16'}],'operators':["
			"{'name':'in','type':'Add','inputs':['x','bias'],'outputs':[{'name':'x0'}],'cell':'net.0'},"
			"{'name':'experts','type':'BatchMatMul','inputs':['x0','w'],'outputs':[{'name':'y'}],"
			"'cell':'net.0'},"
			"{'name':'next','type':'ReLU','inputs':['y'],'outputs':[{'name':'z'}],'cell':'net.1'},"
			"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}],'outputs':['l']}");
		price(&f, "experts", &c);
		near(c.forward_s, product + input + weight);
		near(c.forward_launch_s, (8 + 2 * copies) * software.launch_s); /* both copies */
		fixture_close(&f);
	}
}
END_TEST

/* x0 and s0 are kept in 8 bits, since products alone read them; so is x1, which is c0's result. Weights have
 * two copies; with weights in 8 bits, one beside themselves. */
START_TEST(memory_of_a_product)
{
	struct fixture f;
	struct ap_op_cost c;
	int64_t weight = 2048 * 1024;

	open_as(&f, NULL);
	price(&f, "sum0", &c);
	ck_assert_int_eq(c.activation_bytes, 2 * 4096 * 2048);
	price(&f, "a0", &c);
	ck_assert_int_eq(c.weight_bytes, 2 * weight);
	ck_assert_int_eq(c.gathered_bytes, 0);
	fixture_close(&f);
	open_as(&f, "delayed");
	price(&f, "sum0", &c);
	ck_assert_int_eq(c.activation_bytes, 4096 * 2048);
	price(&f, "in", &c);
	ck_assert_int_eq(c.activation_bytes, 4096 * 1024);
	price(&f, "a0", &c);
	ck_assert_int_eq(c.weight_bytes, 2 * weight);
	ck_assert_int_eq(c.gathered_bytes, 2 * weight);
	/* s1 is read by c1, which is in 16 bits */
	price(&f, "sum1", &c);
	ck_assert_int_eq(c.activation_bytes, 2 * 4096 * 2048);
	f.step.float8_params = true;
	price(&f, "a0", &c);
	ck_assert_int_eq(c.weight_bytes, weight);
	ck_assert_int_eq(c.gathered_bytes, weight);
	price(&f, "c1", &c);
	ck_assert_int_eq(c.weight_bytes, 2 * 2048 * 1000);
	fixture_close(&f);
	open_as(&f, "mxfp8");
	price(&f, "sum0", &c);
	ck_assert_int_eq(c.activation_bytes, 4096 * 2048 / 32 * 33);
	price(&f, "a0", &c);
	ck_assert_int_eq(c.gathered_bytes, 2 * weight / 32 * 33);
	fixture_close(&f);
}
END_TEST

static struct ap_move_cost move(struct fixture *f, enum ap_dtype dtype, bool narrow, int32_t rows, int32_t to)
{
	const struct ap_flow flow = {.rank = 2, .dtype = dtype, .grad = true, .float8 = narrow, .in_flight = 1,
		.size = {4096, 2048}};
	const struct ap_layout a = {.rank = 2, .dim = {{rows, rows > 1}, {1, 0}}};
	const struct ap_layout b = {.rank = 2, .dim = {{1, 0}, {to, to > 1}}};
	struct ap_move_cost c;

	ap_move_cost_make(ap_pricer_create(f->ctx.arena, f->machine, &f->step), &flow, &a, &b, NULL, &c);
	return c;
}

/* What is gathered for such products is sent in 8 bits and comes back in 16; AlltoAll and slices do not change. */
START_TEST(what_is_gathered_is_sent_in_8_bits)
{
	struct fixture f;
	struct ap_move_cost wide, narrow, bytes;

	open_as(&f, "delayed");
	wide = move(&f, AP_BFLOAT16, false, 4, 1);
	narrow = move(&f, AP_BFLOAT16, true, 4, 1);
	bytes = move(&f, AP_INT8, false, 4, 1);
	ck_assert_int_eq(wide.bytes, 3 * 4096 * 2048 * 2 / 4);
	ck_assert_int_eq(narrow.bytes, 3 * 4096 * 2048 / 4);
	ck_assert_int_eq(narrow.element_bytes, 1);
	near(narrow.forward_s, bytes.forward_s);
	near(narrow.backward_s, wide.backward_s);
	ck_assert(narrow.forward_s < wide.forward_s);
	for (int32_t rows = 1; rows <= 4; rows += 3) {
		wide = move(&f, AP_BFLOAT16, false, rows, 4);
		narrow = move(&f, AP_BFLOAT16, true, rows, 4);
		near(narrow.forward_s, wide.forward_s);
		near(narrow.backward_s, wide.backward_s);
		ck_assert_int_eq(narrow.element_bytes, 2);
	}
	fixture_close(&f);
}
END_TEST

/* x0 and s0 are read by such products alone, s1 by c1, which is none; a sum is none either. */
START_TEST(what_only_products_in_8_bits_read)
{
	static const struct {
		const char *name;
		int operand;
		bool only;
	} rows[] = {{"a0", 0, true}, {"b0", 0, true}, {"c0", 0, true}, {"a0", 1, false}, {"sum0", 0, false},
		{"c1", 0, false}, {"head", 0, false}};
	struct fixture f;
	const struct ap_task *tasks;

	open_as(&f, "delayed");
	ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		ap_id node = fixture_node(&f, rows[i].name);
		struct ap_flow flow;

		ck_assert_msg(tasks[node].in[rows[i].operand].float8_only == rows[i].only, "%s", rows[i].name);
		ap_flow_make(f.graph, tasks, node, (uint32_t)rows[i].operand, &f.step, &flow);
		ck_assert_msg(flow.float8 == rows[i].only, "%s", rows[i].name);
	}
	fixture_close(&f);
}
END_TEST
