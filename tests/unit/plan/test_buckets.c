/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of the gradient exchange: who goes with whom, when, and what it brings. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "harness.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "fixture.h"

enum { LAYERS = 6, WIDTH = 256, BATCH = 64 };

#define WEIGHT_BYTES (WIDTH * WIDTH * 4)

struct net {
	struct fixture f;
	const char *attr[LAYERS]; /* of each weight, "" or ",'comm_fusion':2" */
	const char *cell; /* attributes of every operator */
	struct ap_plan plan;
};

static const char *net_text(const struct net *n)
{
	struct ap_str t;

	ap_str_init(&t, n->f.ctx.arena);
	ap_str_addf(&t, "{'schema':'autopar-graph/1','name':'net','inputs':[{'name':'x0',"
		"'shape':[%d,%d],'dtype':'float32','batch_dim':0}],'parameters':[", BATCH, WIDTH);
	for (int i = 0; i < LAYERS; i++)
		ap_str_addf(&t, "%s{'name':'w%d','shape':[%d,%d],'dtype':'float32'%s}", i ? "," : "", i,
			WIDTH, WIDTH, n->attr[i] ? n->attr[i] : "");
	ap_str_addf(&t, "],'operators':[");
	for (int i = 0; i < LAYERS; i++)
		ap_str_addf(&t, "{'name':'op%d','type':'MatMul','inputs':['x%d','w%d'],"
			"'outputs':[{'name':'x%d'}]%s},", i, i, i, i + 1, n->cell ? n->cell : "");
	ap_str_addf(&t, "{'name':'loss','type':'ReduceMean','inputs':['x%d'],'outputs':[{'name':'l'}]}"
		"],'outputs':['l']}", LAYERS);
	return t.s;
}

static void net_open(struct net *n, const char *chip)
{
	fixture_open(&n->f, 4, 4, chip);
	n->f.step.optimizer = ap_optimizer_find("adam");
}

/* Every operator cut by the batch. */
static void net_plan(struct net *n)
{
	const int32_t **counts;

	fixture_graph(&n->f, net_text(n));
	counts = AP_NEW_N(n->f.ctx.arena, const int32_t *, n->f.graph->nnode);
	for (ap_id i = 0; i < n->f.graph->nnode; i++) {
		int32_t *count = AP_NEW_N(n->f.ctx.arena, int32_t, AP_MAX_FACTOR);

		fixture_counts(&n->f, i, i < LAYERS ? "m=4" : "A=4", count);
		counts[i] = count;
	}
	ap_plan_make(&n->f.ctx, n->f.graph, n->f.machine, &n->f.step, counts, INT64_C(1) << 40,
		&n->plan);
}

/* "w5 w4|w3": parameters of the buckets. */
static const char *buckets(const struct net *n)
{
	struct ap_str t;

	ap_str_init(&t, n->f.ctx.arena);
	for (uint32_t b = 0; b < n->plan.nbucket; b++)
		for (uint32_t i = 0; i < n->plan.bucket[b].n; i++)
			ap_str_addf(&t, "%s%s", i ? " " : b ? "|" : "",
				n->f.graph->tensor[n->plan.bucket[b].tensor[i]].name);
	return t.s;
}

/* Times of the plan's exchange: what it takes, what it is charged by the objective before any is taken for
 * hidden, and what of all communication is hidden. */
struct figures {
	double exchange_s, charged_s, hidden_s;
};

static struct figures figures(const struct net *n)
{
	struct figures x = {.hidden_s = n->plan.prediction.communication_s -
			n->plan.prediction.exposed_communication_s};

	for (uint32_t b = 0; b < n->plan.nbucket; b++)
		x.exchange_s += n->plan.bucket[b].time_s;
	for (ap_id i = 0; i < n->f.graph->nnode; i++)
		x.charged_s += n->plan.op[i].cost.gradient_s - n->plan.op[i].cost.bucketed_s;
	return x;
}

static struct figures fused(const char *chip, enum ap_fusion_mode mode, int64_t bytes, const char *wanted)
{
	struct net n = {0};
	struct figures x;

	net_open(&n, chip);
	n.f.step.allreduce = (struct ap_fusion){.mode = mode, .bytes = bytes};
	net_plan(&n);
	ck_assert_str_eq(buckets(&n), wanted);
	x = figures(&n);
	fixture_close(&n.f);
	return x;
}

static void near(double got, double want)
{
	ck_assert_msg(fabs(got - want) <= 1e-12 * want, "got %.17g, want %.17g", got, want);
}

/* Full buckets are charged what they take, none a latency of its own; nothing is charged more than alone. */
START_TEST(charged)
{
	const char *alone = "w5|w4|w3|w2|w1|w0", *pairs = "w5 w4|w3 w2|w1 w0";
	struct figures many = fused("a100-80", AP_FUSION_OFF, 0, alone);
	struct figures two = fused("a100-80", AP_FUSION_SIZE, 2 * WEIGHT_BYTES, pairs);
	struct figures one = fused("a100-80", AP_FUSION_SIZE, AP_FUSION_BYTES, "w5 w4 w3 w2 w1 w0");
	struct figures no_two = fused("a100-80", AP_FUSION_SIZE, 2 * WEIGHT_BYTES - 4, alone);
	struct figures no_one = fused("a100-80", AP_FUSION_SIZE, WEIGHT_BYTES - 4, alone);

	near(many.charged_s, many.exchange_s);
	near(two.charged_s, two.exchange_s);
	near(one.charged_s, one.exchange_s);
	near(no_one.charged_s, no_one.exchange_s);
	ck_assert_double_lt(no_two.charged_s, no_two.exchange_s);
	ck_assert_double_gt(no_two.charged_s, two.exchange_s);
}
END_TEST

/* The fewer buckets, the less latency, and the less is done while there is still something to compute. */
START_TEST(size)
{
	const char *alone = "w5|w4|w3|w2|w1|w0", *pairs = "w5 w4|w3 w2|w1 w0";
	struct figures many = fused("a100-80", AP_FUSION_OFF, 0, alone);
	struct figures two = fused("a100-80", AP_FUSION_SIZE, 2 * WEIGHT_BYTES, pairs);
	struct figures one = fused("a100-80", AP_FUSION_SIZE, AP_FUSION_BYTES, "w5 w4 w3 w2 w1 w0");

	fused("a100-80", AP_FUSION_SIZE, 2 * WEIGHT_BYTES - 1, alone);
	fused("a100-80", AP_FUSION_SIZE, 3 * WEIGHT_BYTES - 1, pairs);
	ck_assert_double_lt(one.exchange_s, two.exchange_s);
	ck_assert_double_lt(two.exchange_s, many.exchange_s);
	/* One bucket begins when all is computed: all of it is waited for. */
	ck_assert_double_eq_tol(one.hidden_s, 0, 1e-12);
	ck_assert_double_gt(two.hidden_s, 1e-9);
	ck_assert_double_gt(many.hidden_s, two.hidden_s);
}
END_TEST

START_TEST(positions)
{
	static const int64_t at[] = {1, 4};
	struct net n = {0};

	net_open(&n, "ascend910a");
	n.f.step.allreduce = (struct ap_fusion){.mode = AP_FUSION_INDEX, .nindex = 2, .index = at};
	net_plan(&n);
	ck_assert_str_eq(buckets(&n), "w5|w4 w3 w2|w1 w0");
	fixture_close(&n.f);
}
END_TEST

static size_t told(const struct net *n, const char *part)
{
	enum ap_level level;
	const char *check, *text;
	size_t found = 0;

	for (size_t i = 0; (text = ap_diag_text(n->f.ctx.diag, i, &level, &check)); i++)
		found += check && strcmp(check, "fusion") == 0 && strstr(text, part);
	return found;
}

/* Equal numbers go together; 0 goes alone. */
START_TEST(numbers)
{
	static const char *const attr[LAYERS] = {"", ",'comm_fusion':2", "", ",'comm_fusion':0",
		",'comm_fusion':2", ",'comm_fusion':1"};
	struct net n = {0}, gpu = {0};

	memcpy(n.attr, attr, sizeof attr);
	memcpy(gpu.attr, attr, sizeof attr);
	net_open(&n, "ascend910a");
	net_plan(&n);
	ck_assert_str_eq(buckets(&n), "w3|w4 w1|w5 w2 w0");
	ck_assert_uint_eq(told(&n, ""), 0);
	net_open(&gpu, "a100-80");
	net_plan(&gpu);
	ck_assert_str_eq(buckets(&gpu), "w5 w4 w3 w2 w1 w0");
	ck_assert_uint_eq(told(&gpu, "without effect"), 1);
	fixture_close(&n.f);
	fixture_close(&gpu.f);
}
END_TEST

/* The operator's number stands for that of its parameter. */
START_TEST(numbers_of_operators)
{
	struct net n = {.cell = ",'fusion':0", .attr = {[2] = ",'comm_fusion':3", [4] = ",'comm_fusion':3"}};

	net_open(&n, "ascend910a");
	net_plan(&n);
	ck_assert_str_eq(buckets(&n), "w5|w3|w4 w2|w1|w0");
	fixture_close(&n.f);
}
END_TEST

/* Weights that are dealt are gathered in buckets of their own, after the update. */
START_TEST(dealt_weights)
{
	struct net n = {0};
	double gathered_s, alone_s = 0, update_s = 0;

	net_open(&n, "ascend910a");
	n.f.step.optimizer_sharding = true;
	n.f.step.shard_threshold_bytes = 0;
	n.f.step.reducescatter.bytes = 3 * WEIGHT_BYTES;
	net_plan(&n);
	ck_assert_str_eq(buckets(&n), "w5 w4 w3|w2 w1 w0|w0 w1 w2 w3 w4 w5");
	ck_assert_int_eq(n.plan.bucket[0].kind, AP_COLL_REDUCESCATTER);
	ck_assert_int_eq(n.plan.bucket[2].kind, AP_COLL_ALLGATHER);
	ck_assert_int_eq(n.plan.bucket[2].bytes, LAYERS * WEIGHT_BYTES);
	gathered_s = n.plan.bucket[2].time_s;
	for (ap_id i = 0; i < LAYERS; i++)
		for (uint32_t c = 0; c < n.plan.op[i].ncomm; c++)
			if (n.plan.op[i].comm[c].comm.phase == AP_PHASE_OPTIMIZER) {
				alone_s += n.plan.op[i].comm[c].time_s;
				update_s += n.plan.op[i].cost.optimizer_s -
					n.plan.op[i].comm[c].time_s;
			}
	ck_assert_double_lt(gathered_s, alone_s);
	ck_assert_double_eq_tol(n.plan.prediction.optimizer_s, update_s + gathered_s, 1e-12);
	fixture_close(&n.f);
}
END_TEST

/* w is read by a product in float32 and by one in float16. */
#define MIXED \
	"{'schema':'autopar-graph/1','name':'mixed'," \
	"'inputs':[{'name':'x','shape':[64,64],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[64,64],'dtype':'float32','comm_fusion':1}," \
	"{'name':'v','shape':[64,64],'dtype':'float32'},{'name':'u','shape':[64,64],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'one','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'h'}]}," \
	"{'name':'two','type':'MatMul','inputs':['h','v'],'outputs':[{'name':'i'}]}," \
	"{'name':'three','type':'MatMul','inputs':['i','u'],'outputs':[{'name':'j'}]}," \
	"{'name':'half','type':'Cast','inputs':['w'],'attrs':{'dst_type':'float16'}," \
	"'outputs':[{'name':'k'}]}," \
	"{'name':'part','type':'ReduceMean','inputs':['k'],'outputs':[{'name':'m'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['j'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l','m']}"

START_TEST(users_of_different_types)
{
	struct net n = {0};
	const int32_t **counts;

	net_open(&n, "ascend910a");
	fixture_graph(&n.f, MIXED);
	counts = AP_NEW_N(n.f.ctx.arena, const int32_t *, n.f.graph->nnode);
	for (ap_id i = 0; i < n.f.graph->nnode; i++) {
		int32_t *count = AP_NEW_N(n.f.ctx.arena, int32_t, AP_MAX_FACTOR);

		for (int f = 0; f < AP_MAX_FACTOR; f++)
			count[f] = 1;
		counts[i] = count;
	}
	ap_plan_make(&n.f.ctx, n.f.graph, n.f.machine, &n.f.step, counts, INT64_C(1) << 40, &n.plan);
	ck_assert_str_eq(buckets(&n), "u v|w");
	ck_assert_uint_eq(told(&n, "parameter \"w\""), 1);
	fixture_close(&n.f);
}
END_TEST
