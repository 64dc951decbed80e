/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds and bytes against figures worked out by hand from the profile's numbers. */
#include <math.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cost/comms.h"
#include "cost/cost.h"
#include "cost/kernel.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "hw/group.h"
#include "rule/attend.h"
#include "shard/layout.h"
#include "fixture.h"
#include "harness.h"

#define GRAPH \
	"{'schema':'autopar-graph/1','name':'pair'," \
	"'inputs':[{'name':'x','shape':[4096,1024],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'b0','shape':[1024],'dtype':'float16'}," \
	"{'name':'w','shape':[1024,2048],'dtype':'float16'}," \
	"{'name':'v','shape':[2048,1024],'dtype':'float16'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b0'],'outputs':[{'name':'x0'}]}," \
	"{'name':'up','type':'MatMul','inputs':['x0','w'],'outputs':[{'name':'h'}]}," \
	"{'name':'act','type':'ReLU','inputs':['h'],'outputs':[{'name':'r'}]}," \
	"{'name':'down','type':'MatMul','inputs':['r','v'],'outputs':[{'name':'y'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* Figures of the a100-80 profile: 5 us a kernel, 30 us a collective, 312 TF * 0.87 with half extents
 * 144, 144, 112, 2039 GB/s * 0.75, NVLink 300 GB/s * 0.76 with 3.4 us a hop. */
#define FORWARD 2.7439568498741635e-05 /* 5 us + 2 (2048+144)(1024+144)(1024+112) / 259.23 TF */
#define BACKWARD 5.5174424832153665e-05 /* the same for (2048, 1024, 1024) and (1024, 1024, 2048) */
#define GRADIENT 5.51960701754386e-05 /* 30 us + 2 (3.4 us + 4 MiB / 2 / 228 GB/s) */
#define OPTIMIZER 2.4199037436651953e-05 /* 5 us + 2^20 * 28 B / 1529.25 GB/s */
#define GATHER0 9.53882105263158e-05 /* 30 us + 3 * 3.4 us + 3/4 * 16 MiB / 228 GB/s */
#define GATHER1 0.00014927172466723456 /* and two copies of 16 MiB */
#define SLICE 1.0485439267614845e-05 /* 5 us + 2 * 4 MiB / 1529.25 GB/s */
#define PAD 1.871359816903711e-05 /* 5 us + (16 + 4) MiB / 1529.25 GB/s */
#define ALLTOALL 6.448249189919379e-05 /* 30 us + 3 (3.4 us + 1 MiB / 228 GB/s), and a copy of 4 MiB */

static void near(double got, double want)
{
	ck_assert_msg(fabs(got - want) <= 1e-12 * fabs(want), "got %.17g, want %.17g", got, want);
}

static void price(struct fixture *f, const char *name, const char *cut, struct ap_op_cost *c)
{
	struct ap_pricer *pr = ap_pricer_create(f->ctx.arena, f->machine, &f->step);
	ap_id node = fixture_node(f, name);
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement p;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, cut, count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	ap_op_cost_make(pr, &tasks[node], &p, c);
}

START_TEST(product)
{
	struct fixture f;
	struct ap_op_cost c;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, GRAPH);
	price(&f, "up", "m=2 n=2", &c);
	near(c.forward_s, FORWARD);
	near(c.backward_s, BACKWARD);
	near(c.gradient_s, GRADIENT);
	near(c.optimizer_s, OPTIMIZER);
	ck_assert_double_eq(c.forward_comm_s, 0);
	ck_assert_double_eq(c.backward_comm_s, 0);
	ck_assert_int_eq(c.weight_bytes, 2097152);
	ck_assert_int_eq(c.gradient_bytes, 4194304);
	ck_assert_int_eq(c.optimizer_bytes, 10485760);
	/* h is not kept (ReLU keeps its own result); gradients of x0 and h: 4 MiB + 4 MiB. */
	ck_assert_int_eq(c.activation_bytes, 0);
	ck_assert_int_eq(c.temporary_bytes, 8388608);
	fixture_close(&f);
}
END_TEST

/* The 2^20 elements of a rank are added to the sum, whose type is that of the exchange: it is read, or both are
 * and it is written, at 1529.25 GB/s, in each micro-batch. */
START_TEST(gradients_are_added_up)
{
	static const struct {
		const char *software;
		bool fp32;
		double bytes;
	} rows[] = {{"generic", true, 0}, {"megatron", true, 4}, {"megatron", false, 2}, {"mindspeed", true, 10},
		{"mindspeed", false, 6}};
	const struct ap_software *software;
	struct ap_software at_once;
	struct fixture f;
	struct ap_op_cost c;

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		fixture_open(&f, 4, 4, "a100-80");
		ck_assert(ap_software_get(&f.ctx, rows[i].software, &software) == AP_OK);
		at_once = *software; /* its sums, but not its host */
		at_once.launch_s = 0;
		f.step.software = &at_once;
		f.step.gradient_fp32_sync = rows[i].fp32;
		fixture_graph(&f, GRAPH);
		price(&f, "up", "m=2 n=2", &c);
		near(c.backward_s, BACKWARD + rows[i].bytes * 1048576 / 1529.25e9);
		price(&f, "act", "A=2 B=2", &c); /* no weights */
		near(c.backward_s, 5e-6 + 12582912 / 1529.25e9);
		fixture_close(&f);
	}
}
END_TEST

/* A product over 4 ranks beside its collective: of that there is at least a quarter left, and what three quarters of
 * the kernel do not cover. */
START_TEST(products_run_beside_their_collectives)
{
	struct fixture f;
	struct ap_op_cost apart, beside;

	for (int devices = 2; devices <= 4; devices += 2) {
		double parts = devices;

		fixture_open(&f, devices, devices, "a100-80");
		f.step.executor = AP_EXECUTOR_GENERIC;
		fixture_graph(&f, GRAPH);
		price(&f, "down", devices == 2 ? "k=2" : "k=4", &apart);
		f.step.product_overlap = true;
		price(&f, "down", devices == 2 ? "k=2" : "k=4", &beside);
		ck_assert_double_gt(apart.forward_comm_s, apart.forward_s);
		near(beside.forward_comm_s, apart.forward_comm_s - apart.forward_s * (parts - 1) / parts);
		ck_assert_double_eq(beside.forward_s, apart.forward_s);
		ck_assert_double_eq(beside.backward_comm_s, apart.backward_comm_s);
		price(&f, "loss", "A=2 B=1", &beside); /* no product */
		f.step.product_overlap = false;
		price(&f, "loss", "A=2 B=1", &apart);
		ck_assert_double_gt(apart.forward_comm_s, 0);
		ck_assert_double_eq(beside.forward_comm_s, apart.forward_comm_s);
		fixture_close(&f);
	}
}
END_TEST

/* What a search charges. */
static int64_t charged(struct fixture *f, const char *name, const struct ap_op_cost *c)
{
	const struct ap_task *tasks;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	return ap_op_cost_memory_bytes(c, &tasks[fixture_node(f, name)]);
}

START_TEST(kept_once)
{
	struct fixture f;
	struct ap_op_cost c;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, GRAPH);
	/* x0 is needed for the gradient of w: charged to Add, its producer. */
	price(&f, "add", "A=4", &c);
	ck_assert_int_eq(c.activation_bytes, 1024 * 1024 * 2);
	/* ReLU keeps its result; the product that follows keeps the same tensor: once. */
	price(&f, "act", "A=4", &c);
	ck_assert_int_eq(c.activation_bytes, 1024 * 2048 * 2);
	price(&f, "loss", "A=4", &c);
	ck_assert_int_eq(c.activation_bytes, 0);
	fixture_in_flight(&f, 3);
	price(&f, "act", "A=4", &c);
	ck_assert_int_eq(c.activation_bytes, 1024 * 2048 * 2);
	ck_assert_int_eq(charged(&f, "act", &c), 3 * 1024 * 2048 * 2);
	fixture_in_flight(&f, 1);
	f.step.micro_batches = 4;
	price(&f, "act", "A=4", &c);
	ck_assert_int_eq(c.activation_bytes, 1024 * 2048 * 2 / 4);
	fixture_close(&f);
}
END_TEST

START_TEST(inference)
{
	struct fixture f;
	struct ap_op_cost c;

	fixture_open(&f, 4, 4, "a100-80");
	f.step.training = false;
	f.step.optimizer = NULL;
	fixture_graph(&f, GRAPH);
	price(&f, "up", "m=2 n=2", &c);
	near(c.forward_s, FORWARD);
	ck_assert_double_eq(c.backward_s + c.gradient_s + c.optimizer_s, 0);
	ck_assert_int_eq(c.gradient_bytes + c.optimizer_bytes + c.activation_bytes, 0);
	fixture_close(&f);
}
END_TEST

static void move(struct fixture *f, bool grad, enum ap_executor executor, int32_t a0, int32_t a1,
	int32_t b0, int32_t b1, struct ap_move_cost *c)
{
	struct ap_flow flow = {.rank = 2, .dtype = AP_FLOAT16, .grad = grad, .kept = true, .in_flight = 1,
		.size = {4096, 2048}};
	struct ap_layout a = {.rank = 2, .dim = {{a0, a0 > 1}, {a1, a1 > 1}}};
	struct ap_layout b = {.rank = 2, .dim = {{b0, b0 > 1}, {b1, b1 > 1}}};

	f->step.executor = executor;
	ap_move_cost_make(ap_pricer_create(f->ctx.arena, f->machine, &f->step), &flow, &a, &b, NULL, c);
}

START_TEST(redistribution)
{
	static const struct ap_software holding = {.gathers_held = 1};
	struct fixture f;
	struct ap_move_cost c;

	fixture_open(&f, 4, 4, "a100-80");
	move(&f, true, AP_EXECUTOR_MINDSPORE, 4, 1, 4, 1, &c);
	ck_assert_double_eq(c.forward_s + c.backward_s, 0);
	ck_assert_int_eq(c.kept_bytes, 0);
	/* AllGather, its adjoint a ReduceScatter of the same volume. */
	move(&f, true, AP_EXECUTOR_MINDSPORE, 4, 1, 1, 1, &c);
	near(c.forward_s, GATHER0);
	near(c.backward_s, GATHER0);
	ck_assert_int_eq(c.bytes, 3 * 4096 * 2048 * 2 / 4);
	ck_assert_int_eq(c.kept_bytes, 4096 * 2048 * 2);
	/* Beyond the first dimension: Split and Concat follow. */
	move(&f, false, AP_EXECUTOR_MINDSPORE, 1, 4, 1, 1, &c);
	near(c.forward_s, GATHER1);
	ck_assert_double_eq(c.backward_s, 0);
	/* The generic convention holds the part, and gathers it again, unless the software holds the whole. */
	move(&f, true, AP_EXECUTOR_GENERIC, 4, 1, 1, 1, &c);
	near(c.again_s, GATHER0);
	ck_assert_int_eq(c.kept_bytes, 0);
	f.step.software = &holding;
	move(&f, true, AP_EXECUTOR_GENERIC, 4, 1, 1, 1, &c);
	ck_assert_double_eq(c.again_s, 0);
	ck_assert_int_eq(c.kept_bytes, 4096 * 2048 * 2);
	f.step.software = NULL;
	/* A slice is local; its adjoint pads with zeros, in the generic convention it gathers. */
	move(&f, true, AP_EXECUTOR_MINDSPORE, 1, 1, 4, 1, &c);
	near(c.forward_s, SLICE);
	near(c.backward_s, PAD);
	ck_assert_int_eq(c.bytes, 0);
	move(&f, true, AP_EXECUTOR_GENERIC, 1, 1, 4, 1, &c);
	near(c.forward_s, SLICE);
	near(c.backward_s, GATHER0);
	move(&f, true, AP_EXECUTOR_MINDSPORE, 4, 1, 1, 4, &c);
	near(c.forward_s, ALLTOALL);
	near(c.backward_s, ALLTOALL);
	fixture_close(&f);
}
END_TEST

/* The kernel law: halves at the half extents, memory-bound when thin. */
START_TEST(kernels)
{
	struct fixture f;
	struct ap_kernel k = {.unit = AP_OP_CUBE, .dtype = AP_FLOAT16, .gemm = true, .b = 1,
		.m = 144, .n = 1e6, .k = 1e6};
	double slow, ideal;

	fixture_open(&f, 1, 1, "a100-80");
	slow = ap_kernel_time_s(f.machine->chip, &k) - 5e-6;
	ideal = 2 * 144e12 / (312e12 * 0.87 * 0.955);
	ck_assert(slow / ideal > 2 && slow / ideal < 2.001);
	k = (struct ap_kernel){.unit = AP_OP_VECTOR, .dtype = AP_FLOAT16, .flops = 1, .bytes = 2039e6};
	near(ap_kernel_time_s(f.machine->chip, &k), 5e-6 + 1e-3 / 0.75);
	k.unit = AP_OP_VIEW;
	ck_assert_double_eq(ap_kernel_time_s(f.machine->chip, &k), 0);
	fixture_close(&f);
}
END_TEST

/* The host starts a kernel every 40 us: a shorter one takes that, a longer one what it takes; a view is none. */
START_TEST(kernels_that_wait_for_the_host)
{
	struct fixture f;
	struct ap_kernel k = {.unit = AP_OP_VECTOR, .dtype = AP_FLOAT16, .launch_s = 40e-6};

	fixture_open(&f, 1, 1, "a100-80");
	near(ap_kernel_time_s(f.machine->chip, &k), 40e-6);
	k.bytes = 2039e6;
	near(ap_kernel_time_s(f.machine->chip, &k), 5e-6 + 1e-3 / 0.75);
	k.unit = AP_OP_VIEW;
	ck_assert_double_eq(ap_kernel_time_s(f.machine->chip, &k), 0);
	fixture_close(&f);
}
END_TEST

/* Scores of two heads of 108 units have rows of 216 bytes, which the matrix unit does not load; of 112 it does.
 * Experts have matrices of their own: each is a kernel, which the host starts, and has any number of rows. */
#define BATCHED(kind, units) \
	"{'schema':'autopar-graph/1','name':'batched'," \
	"'inputs':[{'name':'x','shape':[2,256," units "],'dtype':'float16','batch_dim':1}" kind "]," \
	"'operators':[{'name':'mm','type':'BatchMatMul','inputs':['x','w'],'outputs':[{'name':'y'}]," \
	"'attrs':{'transpose_b':true}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}],'outputs':['l']}"
#define KEYS(units) ",{'name':'w','shape':[2,256," units "],'dtype':'float16'}"
#define EXPERTS(units) "],'parameters':[{'name':'w','shape':[2,256," units "],'dtype':'float16'}"

START_TEST(batches_of_products)
{
	static const struct { const char *graph; double fixed, flops, rate; } rows[] = {
		{BATCHED(KEYS("112"), "112"), 1, 2 * 2 * 400. * 400 * 224, 312e12 * 0.87 * 0.955},
		{BATCHED(KEYS("108"), "108"), 1, 2 * 2 * 400. * 400 * 108, 19.5e12 * 0.95},
		{BATCHED(EXPERTS("112"), "112"), 2, 2 * 2 * 400. * 400 * 224, 312e12 * 0.87 * 0.955},
		{BATCHED(EXPERTS("108"), "108"), 2, 2 * 2 * 400. * 400 * 220, 312e12 * 0.87 * 0.955},
	};
	struct ap_software software = {.product_slowdown = 1};
	struct fixture f;
	struct ap_op_cost c;

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		fixture_open(&f, 1, 1, "a100-80");
		software.launch_s = 0;
		f.step.software = &software;
		fixture_graph(&f, rows[i].graph);
		price(&f, "mm", "", &c);
		near(c.forward_s, rows[i].fixed * 5e-6 + rows[i].flops / rows[i].rate);
		software.launch_s = 1e-3;
		price(&f, "mm", "", &c);
		near(c.forward_s, rows[i].fixed * 5e-6 + rows[i].flops / rows[i].rate);
		near(c.forward_launch_s, rows[i].fixed * 1e-3);
		fixture_close(&f);
	}
}
END_TEST

/* A V100's matrix unit has no float32: such products have no half extents; those of float16 do. */
START_TEST(products_on_the_vector_unit)
{
	struct fixture f;
	struct ap_kernel k = {.unit = AP_OP_CUBE, .dtype = AP_FLOAT32, .gemm = true, .b = 2,
		.m = 1000, .n = 64, .k = 576, .slowdown = 1.25};
	const double flops = 2 * 2 * 1000. * 64 * 576;

	fixture_open(&f, 1, 1, "v100-32");
	near(ap_kernel_time_s(f.machine->chip, &k), 5e-6 + 1.25 * flops / (15.7e12 * 0.8));
	k.dtype = AP_FLOAT16;
	k.slowdown = 0;
	near(ap_kernel_time_s(f.machine->chip, &k),
		5e-6 + 2 * 2 * (1000. + 144) * (64 + 144) * (576 + 112) / (125e12 * 0.8));
	fixture_close(&f);
}
END_TEST

#define ATTENTION \
	"{'schema':'autopar-graph/1','name':'attention'," \
	"'inputs':[{'name':'x','shape':[4,2048,512],'dtype':'float16','batch_dim':0}," \
	"{'name':'mask','shape':[2048,2048],'dtype':'uint8'}]," \
	"'parameters':[{'name':'b','shape':[512],'dtype':'float16'}]," \
	"'operators':[{'name':'add','type':'Add','inputs':['x','b'],'outputs':[{'name':'q'}]}," \
	"{'name':'fa','type':'FlashAttentionScore','inputs':['q','q','q',null,null,null,'mask']," \
	"'outputs':[{'name':'y','shape':[4,2048,512],'dtype':'float16'}]," \
	"'attrs':{'head_num':8,'sparse_mode':3}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* 8 heads of 64 over 2048 places, causal: 2 FLOPs a point, at the rates of the software's kernel. */
START_TEST(attention_has_rates_of_its_own)
{
	struct ap_software software = {.attention = AP_ATTENTION_FLASH_1, .product_slowdown = 2};
	const double flops = 2 * 4. * 2048 * 2048 * 8 * 64;
	struct fixture f;
	struct ap_op_cost c;

	fixture_open(&f, 1, 1, "a100-80");
	fixture_graph(&f, ATTENTION);
	f.step.software = &software;
	price(&f, "fa", "", &c);
	near(c.forward_s, 5e-6 + flops / (312e12 * 0.36));
	near(c.backward_s, 5e-6 + 2.5 * flops / (312e12 * 0.295));
	software.attention = AP_ATTENTION_FLASH_3; /* of which an A100 has none: the one before */
	price(&f, "fa", "", &c);
	near(c.forward_s, 5e-6 + flops / (312e12 * 0.54));
	software.attention = AP_ATTENTION_UNKNOWN; /* as a large product */
	price(&f, "fa", "", &c);
	near(c.forward_s, 5e-6 + flops / (312e12 * 0.87));
	fixture_close(&f);
}
END_TEST

/* The fewer keys, the more is computed in vain: an H200's kernels take half as long again over 2048 keys as they would
 * at the rate of long sequences. */
START_TEST(attention_of_short_sequences_is_slower)
{
	struct ap_software software = {.attention = AP_ATTENTION_FLASH_3, .product_slowdown = 1};
	const double flops = 2 * 4. * 2048 * 2048 * 8 * 64;
	struct fixture f;
	struct ap_op_cost c;

	fixture_open(&f, 1, 1, "h200-141");
	fixture_graph(&f, ATTENTION);
	f.step.software = &software;
	price(&f, "fa", "", &c);
	near(c.forward_s, 6e-6 + (1 + 1020. / 2048) * flops / (989e12 * 0.73));
	near(c.backward_s, 6e-6 + (1 + 1020. / 2048) * 2.5 * flops / (989e12 * 0.61));
	fixture_close(&f);
}
END_TEST

/* Of queries in four parts each sees all keys; where keys go round, a part at once; where heads are exchanged for the
 * sequence, all again. Kernels of one rate for all lengths are the yardstick. */
START_TEST(keys_are_those_that_a_rank_sees_at_once)
{
	static void (*const algorithm[])(struct ap_ctx *ctx, struct ap_bound *b) = {NULL, ap_rule_attend_round,
		ap_rule_attend_by_heads};
	static const double keys[] = {2048, 512, 2048};

	for (size_t i = 0; i < AP_COUNT(keys); i++) {
		struct ap_software software = {.attention = AP_ATTENTION_FLASH_1, .product_slowdown = 1};
		struct fixture f;
		struct ap_op_cost even, c;

		fixture_open(&f, 4, 4, "h200-141");
		fixture_graph(&f, ATTENTION);
		if (algorithm[i])
			algorithm[i](&f.ctx, (struct ap_bound *)&f.graph->node[fixture_node(&f, "fa")].bound);
		f.step.software = &software;
		price(&f, "fa", "s=4", &even);
		software.attention = AP_ATTENTION_FLASH_3;
		price(&f, "fa", "s=4", &c);
		near((c.forward_s - 6e-6) / (even.forward_s - 6e-6), (1 + 1020 / keys[i]) * 0.2 / 0.73);
		near((c.backward_s - 6e-6) / (even.backward_s - 6e-6), (1 + 1020 / keys[i]) * 0.165 / 0.61);
		fixture_close(&f);
	}
}
END_TEST

/* 4096 tokens, 50000 words: three passes over the logits, and those of what the software measures of them; back,
 * where nothing is measured, the kept ones are read and a gradient is written. */
START_TEST(a_loss_and_metrics_pass_over_the_logits)
{
	struct ap_software software = {.product_slowdown = 1};
	const double logits = 2. * 4096 * 50000;
	struct fixture f;
	struct ap_op_cost none, some;

	fixture_open(&f, 1, 1, "a100-80");
	fixture_graph(&f, "{'schema':'autopar-graph/1','name':'loss',"
		"'inputs':[{'name':'x','shape':[4096,50000],'dtype':'float16','batch_dim':0},"
		"{'name':'label','shape':[4096],'dtype':'int32','batch_dim':0}],"
		"'parameters':[{'name':'b','shape':[50000],'dtype':'float16'}],'operators':["
		"{'name':'in','type':'Add','inputs':['x','b'],'outputs':[{'name':'scores'}]},"
		"{'name':'ce','type':'SparseSoftmaxCrossEntropyWithLogits','inputs':['scores','label'],"
		"'outputs':[{'name':'l'}]}],'outputs':['l']}");
	f.step.software = &software;
	price(&f, "ce", "", &none);
	ck_assert(none.forward_s > 5e-6 + 3 * logits / (2.039e12 * 0.75));
	ck_assert(none.forward_s < 5e-6 + 3.01 * logits / (2.039e12 * 0.75));
	software.metric_passes = 8;
	price(&f, "ce", "", &some);
	near(some.forward_s, none.forward_s + 8 * logits / (2.039e12 * 0.75));
	near(some.backward_s, none.backward_s);
	fixture_close(&f);
}
END_TEST

/* 8-bit operands have a peak and an efficiency of their own: of the H100 1979 TF, of which 0.71 are reached. */
START_TEST(products_in_8_bits)
{
	struct fixture f;
	struct ap_kernel k = {.unit = AP_OP_CUBE, .dtype = AP_FLOAT8_E4M3FN, .gemm = true, .b = 1,
		.m = 4096, .n = 8192, .k = 8192};

	fixture_open(&f, 1, 1, "h100-80");
	near(ap_kernel_time_s(f.machine->chip, &k), 6e-6 + 2 * 4096. * 8192 * (8192 + 230) / (1979e12 * 0.71 * 0.86));
	k.dtype = AP_FLOAT8_E5M2;
	near(ap_kernel_time_s(f.machine->chip, &k), 6e-6 + 2 * 4096. * 8192 * (8192 + 230) / (1979e12 * 0.71 * 0.86));
	k.dtype = AP_BFLOAT16;
	near(ap_kernel_time_s(f.machine->chip, &k), 6e-6 + 2 * 4096. * 8192 * (8192 + 230) / (989e12 * 0.8 * 0.86));
	fixture_close(&f);
}
END_TEST

/* Nothing is summed in 8 bits: gradients of such parameters travel in 16 or 32, and are held as the software
 * holds those of 16 bits that are summed so. */
START_TEST(gradients_of_8_bits)
{
	const struct ap_software software = {.gradient_bytes = 4};
	struct ap_step step = AP_STEP_DEFAULT;

	ck_assert_int_eq(ap_dtype_bytes(ap_gradient_wire(AP_FLOAT8_E4M3FN, &step)), 4);
	ck_assert_int_eq(ap_gradient_held_bytes(AP_FLOAT8_E4M3FN, &step), 2);
	step.gradient_fp32_sync = false;
	step.software = &software;
	ck_assert_int_eq(ap_dtype_bytes(ap_gradient_wire(AP_FLOAT8_E5M2, &step)), 2);
	ck_assert_int_eq(ap_dtype_bytes(ap_gradient_wire(AP_INT8, &step)), 1);
	ck_assert_int_eq(ap_gradient_held_bytes(AP_FLOAT8_E5M2, &step), 2);
	step.gradient_fp32_sync = true;
	ck_assert_int_eq(ap_gradient_held_bytes(AP_FLOAT8_E5M2, &step), 4);
	step.gradient_fp32_sync = false;
	step.force_fp32 = true;
	ck_assert_int_eq(ap_dtype_bytes(ap_gradient_wire(AP_FLOAT8_E5M2, &step)), 4);
}
END_TEST

static void shard_of(struct fixture *f, const char *cut, int64_t size, struct ap_opt_shard *s)
{
	ap_id node = fixture_node(f, "up");
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement p;

	f->step.optimizer_sharding = true;
	f->step.shard_size = size;
	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, cut, count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	ap_opt_shard_make(&tasks[node], 1, &p, &f->step, s);
}

/* Bytes of the exchange of a gradient and of the weight's gathers, phase by phase. */
struct sent {
	int64_t reduced, scattered, gathered_once, gathered_for_use;
};

static void add_sent(void *user, const struct ap_comm *c)
{
	struct sent *s = user;

	if (c->kind == AP_COLL_ALLREDUCE)
		s->reduced += c->bytes;
	if (c->kind == AP_COLL_REDUCESCATTER)
		s->scattered += c->bytes;
	if (c->kind == AP_COLL_ALLGATHER)
		*(c->phase == AP_PHASE_OPTIMIZER ? &s->gathered_once : &s->gathered_for_use) += c->bytes;
}

static struct sent sent(struct fixture *f, const char *cut)
{
	ap_id node = fixture_node(f, "up");
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement p;
	struct sent s = {0};

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, cut, count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	ap_comms_derive(&tasks[node], &p, &f->step, add_sent, &s);
	return s;
}

/* Three replicas of a weight of 1024 x 2048, whose rows they do not divide: MindSpore leaves it whole, FSDP2
 * deals 342, 342 and 340 rows, a flat array is dealt in 699,050 and two thirds of its elements. */
START_TEST(rows_that_do_not_divide)
{
	static const int64_t part_of[] = {1024 * 2048, 342 * 2048, 699051};
	struct ap_opt_shard s;
	struct ap_op_cost whole, dealt;
	struct fixture f;
	struct sent b;

	fixture_open(&f, 3, 3, "a100-80");
	fixture_graph(&f, GRAPH);
	f.step.executor = AP_EXECUTOR_GENERIC;
	price(&f, "up", "m=3", &whole);
	for (enum ap_dealing rule = AP_DEALING_ROWS; rule <= AP_DEALING_FLAT; rule++)
		for (int level = 1; level <= 3; level++) {
			int64_t part = part_of[rule], n = rule == AP_DEALING_ROWS ? 1 : 3;

			f.step.dealing = rule;
			f.step.optimizer_level = level;
			shard_of(&f, "m=3", -1, &s);
			ck_assert_int_eq(s.shards, n);
			ck_assert_int_eq(s.part, part);
			ck_assert(!s.by_rows);
			b = sent(&f, "m=3");
			price(&f, "up", "m=3", &dealt);
			/* states and the float32 copy of float16 */
			ck_assert_int_eq(dealt.optimizer_bytes, whole.optimizer_bytes / (1024 * 2048) * part);
			ck_assert_int_eq(dealt.weight_bytes, 2 * (n > 1 && level == 3 ? part : 1024 * 2048));
			ck_assert_int_eq(dealt.gradient_bytes,
				whole.gradient_bytes / (1024 * 2048) * (n > 1 && level >= 2 ? part : 1024 * 2048));
			/* gradients as float32, the weight once, or before both passes */
			ck_assert_int_eq(b.reduced, n > 1 ? 0 : 4 * 1024 * 2048);
			ck_assert_int_eq(b.scattered, n > 1 ? 4 * 3 * part : 0);
			ck_assert_int_eq(b.gathered_once, n > 1 && level < 3 ? 2 * 3 * part : 0);
			ck_assert_int_eq(b.gathered_for_use, n > 1 && level == 3 ? 2 * 2 * 3 * part : 0);
			ck_assert_int_eq(dealt.gathered_bytes, 0);
			if (n > 1)
				ck_assert(dealt.optimizer_s < whole.optimizer_s + 1e-3 && dealt.gradient_s > 0);
		}
	f.step.executor = AP_EXECUTOR_MINDSPORE;
	f.step.dealing = AP_DEALING_ROWS;
	shard_of(&f, "m=3", -1, &s);
	ck_assert_int_eq(s.shards, 1);
	ck_assert_int_eq(s.weight_size, 0);
	fixture_close(&f);
}
END_TEST

/* Formats 1.5: G = [0,8,16,24] with size 2 gives [0,8], [16,24]; step 8. */
START_TEST(optimizer_shards)
{
	struct fixture f;
	struct ap_opt_shard s;
	int64_t ranks[4];

	fixture_open(&f, 32, 8, "a100-80");
	fixture_graph(&f, GRAPH);
	shard_of(&f, "m=4 n=8", -1, &s);
	ck_assert_int_eq(s.shards, 4);
	ck_assert_int_eq(s.weight_step, 8);
	ck_assert_int_eq(s.weight_size, -1);
	shard_of(&f, "m=4 n=8", 2, &s);
	ck_assert_int_eq(s.shards, 2);
	ck_assert_int_eq(s.weight_step, 8);
	ck_assert_int_eq(s.weight_size, 2);
	ap_axes_group(&s.group, 0, ranks);
	ck_assert(ranks[0] == 0 && ranks[1] == 8);
	ap_axes_group(&s.group, 16, ranks);
	ck_assert(ranks[0] == 16 && ranks[1] == 24);
	shard_of(&f, "m=4 n=8", 8, &s);
	ck_assert_int_eq(s.weight_size, 4);
	for (enum ap_dealing rule = AP_DEALING_ROWS; rule <= AP_DEALING_FLAT; rule++) {
		f.step.dealing = rule;
		shard_of(&f, "m=4 n=8", -1, &s);
		ck_assert(s.by_rows);
		ck_assert_int_eq(s.part, 1024 * 256 / 4);
	}
	shard_of(&f, "n=32", -1, &s);
	ck_assert_int_eq(s.shards, 1);
	ck_assert_int_eq(s.weight_step + s.weight_size, 0);
	fixture_close(&f);
}
END_TEST
