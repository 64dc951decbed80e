/* SPDX-License-Identifier: Apache-2.0 */
/* What an optimizer keeps of a parameter and what it exchanges, at each level of sharding. */
#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/comms.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/optimizer.h"
#include "cost/task.h"
#include "hw/coll.h"
#include "shard/layout.h"
#include "fixture.h"
#include "harness.h"

enum { DEVICES = 8, ELEMENTS = 1024 * 1024 };

#define PRODUCT(type) \
	"{'schema':'autopar-graph/1','name':'product'," \
	"'inputs':[{'name':'x','shape':[512,1024],'dtype':'" type "','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[1024,1024],'dtype':'" type "','layerwise_parallel':true}," \
	"{'name':'s','shape':[1024,10],'dtype':'" type "'}]," \
	"'operators':[" \
	"{'name':'big','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'y'}]}," \
	"{'name':'small','type':'MatMul','inputs':['y','s'],'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct heard { /* collectives, in words */
	struct ap_str s;
};

static void hear(void *user, const struct ap_comm *c)
{
	static const char *const phases[] = {"forward", "backward", "gradient", "optimizer", "recompute"};
	struct heard *h = user;

	ap_str_addf(&h->s, "%s%s %s %lld%s", h->s.len ? "; " : "", phases[c->phase],
		ap_coll_name(c->kind), (long long)c->bytes, c->each ? " each" : "");
}

struct priced {
	struct fixture f;
	struct ap_op_cost c;
	const char *comms;
};

static void open_product(struct priced *p, const char *graph, const char *software)
{
	fixture_open(&p->f, DEVICES, DEVICES, "a100-80");
	ck_assert(ap_software_get(&p->f.ctx, software, &p->f.step.software) == AP_OK);
	fixture_graph(&p->f, graph);
}

/* Every device has a part of the batch and all of the weights. */
static void price(struct priced *p, const char *name)
{
	struct fixture *f = &p->f;
	struct ap_pricer *pr = ap_pricer_create(f->ctx.arena, f->machine, &f->step);
	ap_id node = fixture_node(f, name);
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement place;
	struct heard h;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, "m=8", count);
	ap_placement_make(&f->graph->node[node].bound, count, DEVICES, &place);
	ap_op_cost_make(pr, &tasks[node], &place, &p->c);
	ap_str_init(&h.s, f->ctx.arena);
	ap_comms_derive(&tasks[node], &place, &f->step, hear, &h);
	p->comms = h.s.s;
}

static int64_t states(const struct ap_op_cost *c)
{
	return c->weight_bytes + c->gathered_bytes + c->gradient_bytes + c->optimizer_bytes;
}

/* Bytes of a parameter: whole + dealt / devices. */
static void keeps(enum ap_executor executor, const char *graph, const char *software, int level,
	int64_t whole, int64_t dealt)
{
	struct priced p;

	open_product(&p, graph, software);
	p.f.step.executor = executor;
	p.f.step.optimizer_sharding = level > 0;
	p.f.step.optimizer_level = level;
	price(&p, "big");
	ck_assert_int_eq(states(&p.c), whole * ELEMENTS + dealt * ELEMENTS / DEVICES);
	fixture_close(&p.f);
}

START_TEST(bytes_of_states)
{
	const enum ap_executor g = AP_EXECUTOR_GENERIC, m = AP_EXECUTOR_MINDSPORE;

	for (int i = 0; i < 2; i++) {
		keeps(i ? g : m, PRODUCT("float16"), "mindspore", 0, 16, 0);
		keeps(i ? g : m, PRODUCT("bfloat16"), "generic", 0, 18, 0);
		keeps(i ? g : m, PRODUCT("float32"), "mindspore", 0, 16, 0);
	}
	keeps(g, PRODUCT("float16"), "mindspore", 1, 6, 10);
	keeps(g, PRODUCT("bfloat16"), "generic", 1, 6, 12);
	keeps(g, PRODUCT("float32"), "generic", 1, 8, 8);
	keeps(g, PRODUCT("float16"), "mindspore", 2, 2, 14);
	keeps(g, PRODUCT("bfloat16"), "generic", 2, 2, 16);
	keeps(g, PRODUCT("float32"), "generic", 2, 4, 12);
	keeps(g, PRODUCT("float16"), "mindspore", 3, 0, 16);
	keeps(g, PRODUCT("bfloat16"), "generic", 3, 0, 18);
	keeps(g, PRODUCT("float32"), "generic", 3, 0, 16);
	/* The weight is dealt, and gathered for the whole of the step; gradients that nothing is added to are
	 * scattered where they arise, at each level. */
	keeps(m, PRODUCT("float16"), "mindspore", 1, 2, 16);
	keeps(m, PRODUCT("float16"), "mindspore", 2, 2, 16);
	keeps(m, PRODUCT("float16"), "mindspore", 3, 0, 16);
	keeps(m, PRODUCT("float32"), "mindspore", 1, 4, 16);
}
END_TEST

/* A float16 parameter whose gradients are summed in its type: 2 + 2, and 16 bytes in float32, the gradient's copy
 * among them, which MindSpore's optimizers do not hold. Sums of two micro-batches are whole at level 1. */
START_TEST(narrow_sums)
{
	static const struct {
		const char *software;
		bool wide;
		int64_t whole, dealt;
	} rows[] = {{"megatron", false, 4, 16}, {"megatron", true, 6, 12}, {"mindspore", false, 4, 10},
		{"mindspore", true, 6, 10}};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct priced p;

		open_product(&p, PRODUCT("float16"), rows[i].software);
		p.f.step.executor = AP_EXECUTOR_GENERIC;
		p.f.step.optimizer_sharding = true;
		p.f.step.gradient_fp32_sync = rows[i].wide;
		price(&p, "big");
		ck_assert_int_eq(states(&p.c),
			rows[i].whole * ELEMENTS + rows[i].dealt * ELEMENTS / DEVICES);
		fixture_close(&p.f);
	}
	for (int n = 1; n <= 2; n++) {
		struct priced p;

		open_product(&p, PRODUCT("float16"), "mindspore");
		p.f.step.optimizer_sharding = true;
		p.f.step.micro_batches = n;
		price(&p, "big");
		ck_assert_int_eq(p.c.gradient_bytes, 4 * ELEMENTS / (n == 1 ? DEVICES : 1));
		fixture_close(&p.f);
	}
}
END_TEST

START_TEST(exchanges)
{
	struct priced p;
	double scatter_s, gather_s;

	open_product(&p, PRODUCT("float32"), "mindspore");
	p.f.step.optimizer_sharding = true;
	price(&p, "big");
	ck_assert_str_eq(p.comms, "gradient ReduceScatter 4194304; optimizer AllGather 4194304");
	scatter_s = p.c.gradient_s;
	p.f.step.micro_batches = 4;
	price(&p, "big");
	ck_assert_str_eq(p.comms, "gradient ReduceScatter 4194304; optimizer AllGather 4194304");
	p.f.step.optimizer_level = 2;
	price(&p, "big");
	ck_assert_str_eq(p.comms, "gradient ReduceScatter 4194304 each; optimizer AllGather 4194304");
	ck_assert_double_eq(p.c.gradient_each_s, 4 * scatter_s);
	ck_assert_double_eq(p.c.gradient_s, 0);
	p.f.step.optimizer_level = 3;
	price(&p, "small"); /* below the threshold */
	ck_assert_double_eq(p.c.forward_comm_s, 0);
	ck_assert_str_eq(p.comms, "gradient AllReduce 40960");
	p.f.step.shard_threshold_bytes = 0;
	price(&p, "small");
	ck_assert_str_eq(p.comms, "forward AllGather 40960; recompute AllGather 40960; "
		"gradient ReduceScatter 40960 each");
	gather_s = p.c.forward_comm_s / 4;
	ck_assert_double_gt(gather_s, 0);
	ck_assert_double_eq(p.c.backward_comm_s, 4 * gather_s);
	/* x is an input: nothing backward needs w */
	price(&p, "big");
	ck_assert_str_eq(p.comms, "forward AllGather 4194304; gradient ReduceScatter 4194304 each");
	ck_assert_int_ge(p.c.temporary_bytes, 4194304);
	fixture_close(&p.f);
}
END_TEST

/* FSDP2: a weight that each micro-batch gathers and keeps; in a pipeline, gradients that stay whole. */
START_TEST(exchanges_as_fsdp2)
{
	struct priced p;
	int64_t temporary;

	open_product(&p, PRODUCT("float32"), "generic");
	p.f.step.executor = AP_EXECUTOR_GENERIC;
	p.f.step.optimizer_sharding = true;
	p.f.step.shard_threshold_bytes = 0;
	p.f.step.micro_batches = 4;
	p.f.step.optimizer_level = 3;
	price(&p, "small");
	ck_assert_str_eq(p.comms, "forward AllGather 40960; recompute AllGather 40960; "
		"gradient ReduceScatter 40960 each");
	ck_assert_int_eq(p.c.gathered_bytes, 0);
	temporary = p.c.temporary_bytes;
	p.f.step.gathers_each = true;
	price(&p, "small");
	ck_assert_str_eq(p.comms, "forward AllGather 40960; recompute AllGather 40960; "
		"gradient ReduceScatter 40960 each");
	p.f.step.optimizer_level = 2;
	price(&p, "small");
	ck_assert_str_eq(p.comms, "forward AllGather 40960; gradient ReduceScatter 40960 each");
	ck_assert_int_eq(p.c.gathered_bytes, 40960);
	ck_assert_int_eq(p.c.weight_bytes, 40960 / DEVICES);
	ck_assert_int_eq(p.c.gradient_bytes, 40960 / DEVICES);
	ck_assert_int_eq(p.c.temporary_bytes, temporary - 40960);
	p.f.step.gathers_each = false;
	p.f.step.sums_whole = true;
	price(&p, "small");
	ck_assert_str_eq(p.comms, "gradient ReduceScatter 40960; optimizer AllGather 40960");
	ck_assert_int_eq(p.c.gradient_bytes, 40960);
	p.f.step.optimizer_level = 3;
	price(&p, "small");
	ck_assert_str_eq(p.comms, "forward AllGather 40960; recompute AllGather 40960; "
		"gradient ReduceScatter 40960");
	ck_assert_int_eq(p.c.gradient_bytes, 40960);
	fixture_close(&p.f);
}
END_TEST

/* What shows of it: all but three quarters of the last micro-batch's, or of each one's. */
START_TEST(what_shows_of_an_exchange)
{
	const struct ap_op_cost once = {.gradient_s = 1}, each = {.gradient_each_s = 1};
	struct fixture f;

	fixture_open(&f, 1, 1, "a100-80");
	f.step.micro_batches = 3;
	ck_assert_double_eq(ap_op_cost_total_s(&once, &f.step), 0.75);
	ck_assert_double_eq(ap_op_cost_hidden_s(&once, &f.step), 0.25);
	ck_assert_double_eq(ap_op_cost_total_s(&each, &f.step), 0.25);
	ck_assert_double_eq(ap_op_cost_hidden_s(&each, &f.step), 0.75);
	fixture_close(&f);
}
END_TEST

START_TEST(mean_is_a_division)
{
	struct priced p;
	double sum_s;

	open_product(&p, PRODUCT("float32"), "mindspore");
	price(&p, "big");
	sum_s = p.c.optimizer_s;
	p.f.step.gradients_mean = true;
	price(&p, "big");
	/* 5 us + 8 MiB / 1529.25 GB/s */
	ck_assert_double_eq_tol(p.c.optimizer_s - sum_s, 5e-6 + 8388608 / 1529.25e9, 1e-15);
	fixture_close(&p.f);
}
END_TEST

START_TEST(layerwise_parameters_are_alone)
{
	struct priced p;

	open_product(&p, PRODUCT("float32"), "mindspore");
	p.f.step.layerwise = true;
	p.f.step.gradients_mean = true;
	p.f.step.optimizer_sharding = true;
	price(&p, "big");
	ck_assert_str_eq(p.comms, "");
	ck_assert_int_eq(states(&p.c), 16 * ELEMENTS);
	price(&p, "small");
	ck_assert_str_ne(p.comms, "");
	fixture_close(&p.f);
}
END_TEST

/* Three parameters of 16, 4 and 16 elements on two devices: the first has two of them. */
#define THREE \
	"{'schema':'autopar-graph/1','name':'three'," \
	"'inputs':[{'name':'x','shape':[16,4],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'a','shape':[4,4],'dtype':'float32'}," \
	"{'name':'b','shape':[4],'dtype':'float32'},{'name':'c','shape':[4,4],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'first','type':'MatMul','inputs':['x','a'],'outputs':[{'name':'y'}]}," \
	"{'name':'bias','type':'BiasAdd','inputs':['y','b'],'outputs':[{'name':'z'}]}," \
	"{'name':'last','type':'MatMul','inputs':['z','c'],'outputs':[{'name':'o'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['o'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

START_TEST(whole_parameters_are_dealt)
{
	const struct ap_optimizer *lamb = ap_optimizer_find("lamb");
	const bool *in;
	struct priced p;
	ap_id a;

	open_product(&p, THREE, "mindspore");
	p.f.step.optimizer = lamb;
	ck_assert_ptr_null(ap_dealt_refuses(&p.f.ctx, p.f.graph, 2, lamb));
	ck_assert_ptr_nonnull(ap_dealt_refuses(&p.f.ctx, p.f.graph, 2, ap_optimizer_find("adam")));
	ck_assert_str_eq(ap_dealt_refuses(&p.f.ctx, p.f.graph, 3, lamb), "to deal whole parameters to 3 "
		"devices takes more than 3 of them, the graph trains 3");
	ck_assert_ptr_null(ap_dealt_params(&p.f.ctx, p.f.graph, &p.f.step));
	p.f.step.deal_whole = 2;
	in = ap_dealt_params(&p.f.ctx, p.f.graph, &p.f.step);
	a = p.f.graph->node[fixture_node(&p.f, "first")].in[1];
	ck_assert(in[a] && in[p.f.graph->node[fixture_node(&p.f, "last")].in[1]]);
	ck_assert(!in[p.f.graph->node[fixture_node(&p.f, "bias")].in[1]]);
	price(&p, "first");
	ck_assert_str_eq(p.comms, "gradient AllReduce 64; optimizer Broadcast 64");
	ck_assert_int_eq(p.c.optimizer_bytes, 16 * 8);
	ck_assert_int_eq(p.c.gradient_bytes, 16 * 4);
	fixture_close(&p.f);
}
END_TEST

/* The other device's parameter costs this one its broadcast only. */
START_TEST(what_another_device_updates)
{
	struct fixture f;
	const struct ap_task *tasks;
	const struct ap_task_operand *b;

	fixture_open(&f, DEVICES, DEVICES, "a100-80");
	f.step.deal_whole = 2;
	fixture_graph(&f, THREE);
	ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
	b = &tasks[fixture_node(&f, "bias")].in[1];
	ck_assert(b->trainable && !b->updated);
	ck_assert(tasks[fixture_node(&f, "last")].in[1].updated);
	fixture_close(&f);
}
END_TEST
