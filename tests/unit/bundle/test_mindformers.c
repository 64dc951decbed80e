/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in MindFormers' YAML, and in the scripts for Megatron, MindSpeed and torchtitan. */
#include "expert_test.h"
#include "base/vec.h"
#include "bundle/deepspeed.h"
#include "bundle/layers.h"
#include "bundle/megatron.h"
#include "bundle/mindformers.h"
#include "bundle/torchtitan.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "shard/recompute_parse.h"
#include "emit_test.h"

struct words_case {
	struct expert_case c;
	int64_t part[8]; /* layers of each part of the pipeline, in the order of the data; 0: cut by cost */
	const char *yaml[16], *megatron[12]; /* what is in it */
	const char *not_yaml[4], *not_megatron[6];
};

/* Stages of the cells PREFIX.N, so many for each part. */
static const char *config_of(struct ap_ctx *ctx, const char *prefix, const int64_t *part, int64_t nstage)
{
	struct ap_str s = new_str(ctx);
	int layer = 0;

	for (int k = 0; k < 8; k++)
		for (int64_t i = 0; i < part[k]; i++, layer++)
			ap_str_addf(&s, "%s\"%s.%d\": %d", layer ? ", " : "{", prefix, layer,
			k % (int)nstage);
	ap_str_addc(&s, '}');
	return s.s;
}

static void recompute_all(struct fixture *f)
{
	f->step.recompute = AP_RECOMPUTE_FULL;
	f->step.recompute_regathers = true;
}

static void recompute_core(struct fixture *f)
{
	f->step.recompute = AP_RECOMPUTE_SELECTIVE;
	f->step.recompute_keeps_comm = true;
}

static void recompute_lists(struct fixture *f)
{
	ck_assert(ap_recompute_parse(&f->ctx, "", "full:2,1,activation:4,3,communication:6,0", &f->step) ==
		AP_OK);
}

static void recompute_block(struct fixture *f)
{
	ck_assert(ap_recompute_parse(&f->ctx, "", "full:6", &f->step) == AP_OK);
}

static void recompute_modules(struct fixture *f)
{
	ck_assert(ap_recompute_parse(&f->ctx, "", "core_attn+mlp,layernorm", &f->step) == AP_OK);
}

static void recompute_parts_of_some(struct fixture *f)
{
	ck_assert(ap_recompute_parse(&f->ctx, "", "mlp:2", &f->step) == AP_OK);
}

static void recompute_units(struct fixture *f)
{
	ck_assert(ap_recompute_parse(&f->ctx, "", "uniform:3", &f->step) == AP_OK);
}

static void deal_optimizer(struct fixture *f)
{
	f->step.optimizer_sharding = true;
	f->step.optimizer_level = 2;
	f->step.shard_threshold_bytes = 128 << 10;
	f->step.shard_size = 2;
	f->step.full_batch = true;
	f->step.gradients_mean = true;
	f->step.alltoall = false;
}

/* Marks operators of these layers whose names hold this. */
static void mark(struct fixture *f, const int *layer, const char *in)
{
	struct ap_graph *g = ap_arena_memdup(f->ctx.arena, f->graph, sizeof *g);
	struct ap_node *node = ap_arena_memdup(f->ctx.arena, g->node, g->nnode * sizeof *node);
	char part[32];

	for (; *layer >= 0; layer++) {
		snprintf(part, sizeof part, "/%d-", *layer);
		for (ap_id i = 0; i < g->nnode; i++)
			if (strstr(node[i].name, part) && strstr(node[i].name, in))
				node[i].recompute = 1;
	}
	g->node = node;
	f->graph = g;
}

static void mark_first(struct fixture *f)
{
	mark(f, (const int[]){0, 1, 12, 13, -1}, "");
}

static void mark_more(struct fixture *f)
{
	mark(f, (const int[]){0, 1, 12, -1}, "");
}

static void mark_later(struct fixture *f)
{
	mark(f, (const int[]){1, 12, -1}, "");
}

static void mark_softmax(struct fixture *f)
{
	mark(f, (const int[]){3, 4, 5, 20, -1}, "/softmax-");
}

static void infer(struct fixture *f)
{
	f->step.training = false;
	f->step.recompute = AP_RECOMPUTE_FULL;
}

static const struct words_case cases[] = {
	{.c = {.model = "multiple_mix", .devices = 8, .hybrid = {.tp = 8}},
		.yaml = {"  model_parallel: 8\n"}, .megatron = {"--tensor-model-parallel-size 8\n",
			": \"${MODEL_ARGS:?"},
		.not_megatron = {"table of words"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 4, .hybrid = {.tp = 4, .sp = true}},
		.yaml = {"use_parallel: True\n", "  data_parallel: 4\n", "  model_parallel: 4\n",
			"  context_parallel: 1\n", "  expert_parallel: 1\n", "  pipeline_stage: 1\n",
			"  micro_batch_num: 1\n", "  use_seq_parallel: True\n", "  vocab_emb_dp: False\n",
			"  batch_size: 4\n", "  gradient_accumulation_steps: 4\n",
			"  full_batch: False\n  dataset_strategy: [[4, 1], [4, 1], [4, 1], [4, 1]]\n",
			"    offset: 0\n",
			"# layers: 24, the cells network.backbone.blocks.N\n",
			"  max_device_memory: \"1048576GB\"\n",
			"# hybrid: dp=4,tp=4,cp=1,ep=1,pp=1,vpp=1,sp=1,mbn=4,vocab_emb_dp=0\n"},
		.not_yaml = {"pipeline_config", "context_parallel_algo", "optimizer_weight_shard_size"},
		.megatron = {"--tensor-model-parallel-size 4\n", "--pipeline-model-parallel-size 1\n",
			"--context-parallel-size 1\n", "--sequence-parallel\n", "--micro-batch-size 4\n",
			"--global-batch-size 64\n", "--overlap-grad-reduce\n"},
		.not_megatron = {"--use-distributed-optimizer", "--recompute", "--expert", "stages",
		"layers "}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = recompute_all,
		.hybrid = {.tp = 2, .pp = 2}}, .part = {12, 12},
		.yaml = {"  data_parallel: 4\n", "  pipeline_stage: 2\n", "  micro_batch_num: 8\n",
			"  batch_size: 2\n", "  gradient_accumulation_steps: 1\n", "    offset: 0\n",
			"    pp_interleave_num: 1\n", "    pipeline_interleave: False\n",
			"    pipeline_scheduler: \"1f1b\"\n", "  recompute: True\n",
			"  select_recompute: False\n",
			"  parallel_optimizer_comm_recompute: True\n", "  mp_comm_recompute: True\n"},
		.not_yaml = {"several parts", "of no layer"},
		.megatron = {"--pipeline-model-parallel-size 2\n", "--recompute-granularity full\n",
			"--recompute-method uniform\n", "--recompute-num-layers 1\n"},
		.not_megatron = {"--decoder", "layout", "virtual"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = recompute_core,
		.hybrid = {.tp = 2, .pp = 4}}, .part = {5, 7, 7, 5},
		.yaml = {"    offset: [-1, 1, 1, -1]\n", "  recompute: False\n",
			"! attention.batchmatmul, recomputed: others have that name, too",
			"    - \"attention\\\\.softmax\\\\.softmax\"\n", "  mp_comm_recompute: False\n"},
		.megatron = {"--decoder-first-pipeline-num-layers 5\n",
		"--decoder-last-pipeline-num-layers 5\n",
			"--recompute-granularity selective\n"},
		.not_megatron = {"layout", "uniform"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = recompute_lists,
		.hybrid = {.tp = 2, .pp = 2}}, .part = {12, 12},
		.yaml = {"  recompute: [2, 1]\n", "    \"output\\\\.activation\\\\.gelu\": [4, 3]\n",
			"  select_comm_recompute: [6, 0]\n"},
		.megatron = {"! layers that are recomputed, more in some stages than in others: it has one "
		"number"},
		.not_megatron = {"--recompute"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = recompute_block,
		.hybrid = {.tp = 2, .pp = 4}}, .part = {5, 7, 7, 5},
		.yaml = {"  recompute: [5, 6, 6, 5]\n"},
		.megatron = {"--recompute-granularity full\n--recompute-method block\n"
			"--recompute-num-layers 6\n"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = recompute_modules,
		.hybrid = {.tp = 2, .pp = 2}}, .part = {12, 12},
		.yaml = {"  recompute: False\n", "    - \"layernorm1\\\\.layernorm\"\n"},
		.megatron = {"--recompute-granularity selective\n"
			"--recompute-modules core_attn layernorm mlp\n"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = recompute_parts_of_some,
		.hybrid = {.tp = 2, .pp = 2}}, .part = {12, 12},
		.yaml = {"    \"output\\\\.activation\\\\.gelu\": [2, 2]\n"},
		.megatron = {"! layers that recompute different parts: it has one list of modules for all\n"},
		.not_megatron = {"--recompute"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = recompute_units,
		.hybrid = {.tp = 2, .pp = 2}}, .part = {12, 12},
		.yaml = {"  recompute: True\n", "! 3 layers recomputed as one: each is by itself\n"},
		.megatron = {"--recompute-method uniform\n--recompute-num-layers 3\n"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = deal_optimizer,
		.hybrid = {.tp = 2, .pp = 4}}, .part = {6, 7, 5, 6},
		.yaml = {"    offset: [0, 1, -1, 0]\n", "  enable_parallel_optimizer: True\n",
			"    gradient_accumulation_shard: True\n", "    parallel_optimizer_threshold: 128\n",
			"    optimizer_weight_shard_size: 2\n", "  full_batch: True\n",
			"  gradients_mean: True\n",
			"  enable_alltoall: False\n"},
		.not_yaml = {"dataset_strategy"},
		.megatron = {"--pipeline-model-parallel-layout 'Et*6|t*7|t*5|t*6L'\n",
			"--use-distributed-optimizer\n--use-megatron-fsdp\n--data-parallel-sharding-strategy "
			"optim_grads\n--ckpt-format fsdp_dtensor\n",
			"export CUDA_DEVICE_MAX_CONNECTIONS=32\n",
			"--num-layers 24\n"},
		.not_megatron = {"--decoder"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8,
		.hybrid = {.tp = 4, .pp = 2, .vpp = 2, .sp = true}}, .part = {5, 6, 6, 7},
		.yaml = {"    offset: [[-1, 0], [0, 1]]\n", "    pp_interleave_num: 2\n",
			"    pipeline_interleave: True\n", "    pipeline_scheduler: \"1f1b\"\n"},
		.megatron = {"--pipeline-model-parallel-layout 'Et*5|t*6|t*6|t*7L'\n",
			"export CUDA_DEVICE_MAX_CONNECTIONS=1\n"},
		.not_megatron = {"virtual"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .scheduler = "zero_bubble_v",
		.hybrid = {.tp = 2, .pp = 2, .vpp = 2, .layers = {AP_LAYERS_COUNTED, 4,
			(const int64_t[]){5, 7, 8, 4}}}},
		.yaml = {"    offset: [[-1, 1], [2, -2]]\n", "    pipeline_interleave: True\n",
			"    pipeline_scheduler: \"zero_bubble_v\"\n"},
		.megatron = {"! the schedule zero_bubble_v: it runs 1f1b, interleaved or not\n"}},
	{.c = {.model = "llama2_7b", .devices = 32, .micro_batches = 256,
		.hybrid = {.tp = 4, .cp = 2, .pp = 2, .vocab = AP_VOCAB_WHOLE}}, .part = {17, 15},
		.yaml = {"  context_parallel: 2\n", "  context_parallel_algo: colossalai_cp\n",
			"  vocab_emb_dp: True\n", "    offset: [1, -1]\n", "    use_flash_attention: True\n",
			"  batch_size: 1\n",
			"cells model.layers.N\n", ",vocab_emb_dp=1\n"},
		.megatron = {"--context-parallel-size 2\n", "--cp-comm-type all_gather\n",
			"--decoder-first-pipeline-num-layers 17\n",
			"! a table of words that tensor parallelism leaves whole"},
		.not_megatron = {"--decoder-last"}},
	{.c = {.model = "mixtral_8x7b", .devices = 32, .tune = infer, .hybrid = {.tp = 2, .ep = 8}},
		.yaml = {"  expert_parallel: 8\n", "  recompute: False\n", "moe_config:\n  expert_num: 8\n"},
		.megatron = {"! a run without training\n"}},
	{.c = {.model = "mixtral_8x7b", .devices = 32, .hybrid = {.tp = 2, .ep = 8}},
		.megatron = {"--expert-model-parallel-size 8\n", "--expert-tensor-parallel-size 2\n",
			"--sequence-parallel\n", "! experts beside tensor parallelism without sequence "
			"parallelism"},
		.not_megatron = {"--recompute"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = mark_first,
		.hybrid = {.tp = 2, .pp = 2}}, .part = {12, 12},
		.yaml = {"  recompute: [2, 2]\n", "  select_recompute: False\n"},
		.not_yaml = {"others than a stage"},
		.megatron = {"--recompute-granularity full\n", "--recompute-method block\n",
			"--recompute-num-layers 2\n"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = mark_more,
		.hybrid = {.tp = 2, .pp = 2, .vpp = 2}}, .part = {6, 6, 6, 6},
		.yaml = {"  recompute: [[2, 0], [1, 0]]\n"},
		.megatron = {"! layers that are recomputed, more in some stages than in others: it has one "
		"number"},
		.not_megatron = {"--recompute"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = mark_later,
		.hybrid = {.tp = 2, .pp = 2}}, .part = {12, 12},
		.yaml = {"  recompute: [1, 1]\n", "! layers that are recomputed, others than a stage's "
		"first"},
		.not_megatron = {"--recompute"}},
	{.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .tune = mark_softmax,
		.hybrid = {.tp = 2, .pp = 2}}, .part = {12, 12},
		.yaml = {"  recompute: False\n",
			"  select_recompute:\n    \"attention\\\\.softmax\\\\.softmax\": [3, 1]\n"},
		.not_yaml = {"others have that name"},
		.megatron = {"! kinds of operators that are recomputed by themselves"}},
	{.c = {.model = "multiple_mix", .devices = 8, .hybrid = {.tp = 2}},
		.yaml = {"  model_parallel: 2\n", "  model_config:\n    pp_interleave_num: 1\n"},
		.not_yaml = {"offset:", "layers:"}},
};

static const char *prefix_of(const char *model)
{
	return strcmp(model, "gpt3_1.3b") == 0 ? "network.backbone.blocks" : "model.layers";
}

static void open_case(struct fixture *f, const struct words_case *w, struct ap_plan *p,
	struct ap_expert *x)
{
	struct ap_ctx own = new_ctx(); /* the case's is made later */
	struct expert_case c = w->c;
	struct ap_hybrid h;

	if (w->part[0])
		c.config = config_of(&own, prefix_of(c.model), w->part, c.hybrid.pp);
	expert_plan(f, &c, &h, p);
	ap_expert_find(&f->ctx, p, NULL, x);
	free_ctx(&own);
}

static void holds(const char *text, const char *const *in, size_t nin, const char *const *not_in,
	size_t nnot)
{
	for (size_t i = 0; i < nin && in[i]; i++)
		ck_assert_msg(strstr(text, in[i]) != NULL, "no %s in\n%s", in[i], text);
	for (size_t i = 0; i < nnot && not_in[i]; i++)
		ck_assert_msg(!strstr(text, not_in[i]), "%s in\n%s", not_in[i], text);
}

typedef void say_fn(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out);

/* The text without tabs, and what cannot be said, a line each. */
static const char *told(struct ap_ctx *ctx, const struct ap_bundle *b, say_fn *say)
{
	struct ap_str s = new_str(ctx);
	struct ap_said said;

	say(ctx, b, &said);
	for (const char *c = said.text ? said.text : ""; *c; c++)
		if (*c != '\t')
			ap_str_addc(&s, *c);
	for (uint32_t i = 0; i < said.nunsaid; i++)
		ap_str_addf(&s, "! %s\n", said.unsaid[i].what);
	return s.s;
}

START_LOOP_TEST(hybrids_are_said, AP_COUNT(cases))
{
	const struct words_case *w = &cases[_i];
	struct fixture f;
	struct ap_plan p;
	struct ap_expert x;
	struct ap_said yaml;

	open_case(&f, w, &p, &x);
	ck_assert(x.same);
	ap_mindformers_say(&f.ctx, &(struct ap_bundle){.plan = &p, .expert = &x}, &yaml);
	ck_assert((w->yaml[0] && w->yaml[0][0] == '!') == !yaml.text);
	holds(told(&f.ctx, &(struct ap_bundle){.plan = &p, .expert = &x}, ap_mindformers_say), w->yaml, 16,
		w->not_yaml, 4);
	holds(yaml.text ? yaml.text : "# All operators of the plan are cut as in this hybrid, a loss of 0.00 "
		"%\n",
		(const char *const[]){"# All operators of the plan are cut as in this hybrid",
		"a loss of 0.00 %\n"}, 2,
		(const char *const[]){"\t"}, 1);
	holds(told(&f.ctx, &(struct ap_bundle){.plan = &p, .expert = &x}, ap_megatron_say), w->megatron, 12,
		w->not_megatron, 6);
	fixture_close(&f);
}
END_TEST

/* Layers that are cut by cost, anywhere: what is said adds up, and what is not exact is told. */
START_TEST(split_layers_are_told)
{
	const struct expert_case c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8,
		.hybrid = {.tp = 1, .pp = 16}};
	struct fixture f;
	struct ap_hybrid h;
	struct ap_plan p;
	struct ap_expert x;
	struct ap_layers l;
	int64_t sum = 0;

	expert_plan(&f, &c, &h, &p);
	ap_expert_find(&f.ctx, &p, NULL, &x);
	ap_layers_find(&f.ctx, &p, &l);
	ck_assert_int_eq(l.n, 24);
	ck_assert_ptr_nonnull(l.part);
	for (int k = 0; k < 16; k++)
		sum += l.part[k];
	ck_assert_int_eq(sum, 24);
	ck_assert_int_gt(l.nsplit, 0);
	ck_assert_ptr_nonnull(strstr(told(&f.ctx, &(struct ap_bundle){.plan = &p, .expert = &x},
		ap_mindformers_say), "! layers that run in several parts of the pipeline: "));
	fixture_close(&f);
}
END_TEST

/* A plan that no hybrid is: the loss is that of the nearest, against the plan's time. */
START_TEST(nearest_is_said)
{
	const struct expert_case c = {.model = "multiple_mix", .devices = 8, .hybrid = {.tp = 2}};
	struct fixture f;
	struct ap_hybrid h;
	struct ap_plan p, q;
	struct ap_expert x;
	struct ap_said yaml;
	const int32_t **counts;
	int32_t whole[AP_MAX_FACTOR];
	char line[160];

	expert_plan(&f, &c, &h, &p);
	counts = AP_NEW_N(f.ctx.arena, const int32_t *, p.graph->nnode);
	for (int k = 0; k < AP_MAX_FACTOR; k++)
		whole[k] = 1;
	for (ap_id i = 0; i < p.graph->nnode; i++)
		counts[i] = whole;
	ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts, INT64_C(1) << 34, &q);
	ap_expert_find(&f.ctx, &q, NULL, &x);
	ck_assert(!x.same);
	ck_assert_int_gt(x.differ, 0);
	ck_assert_int_eq(x.hybrid.dp * x.hybrid.tp, 8);
	ck_assert(x.loss == x.step_time_s / q.prediction.step_time_s - 1);
	ap_mindformers_say(&f.ctx, &(struct ap_bundle){.plan = &q, .expert = &x}, &yaml);
	snprintf(line, sizeof line, "# operators that the plan cuts otherwise: %u of 14\n", x.differ);
	ck_assert_ptr_nonnull(strstr(yaml.text, line));
	ck_assert(x.loss > 0);
	snprintf(line, sizeof line, ": a loss of %.2f %%\n", x.loss * 100);
	ck_assert_ptr_nonnull(strstr(yaml.text, line));
	x.loss = -0.0125;
	ap_mindformers_say(&f.ctx, &(struct ap_bundle){.plan = &q, .expert = &x}, &yaml);
	ck_assert_ptr_nonnull(strstr(yaml.text, ": a gain of 1.25 %\n"));
	fixture_close(&f);
}
END_TEST

/* Settings that no plan depends on. */
START_TEST(settings_are_said)
{
	const struct expert_case c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8,
		.tune = deal_optimizer, .hybrid = {.tp = 4}};
	struct fixture f;
	struct ap_hybrid h;
	struct ap_plan p;
	struct ap_expert x;
	struct ap_bundle b = {.plan = &p, .expert = &x, .frozen = true,
		.asked = {.interleave_num = 2,
			.speed_up = {[AP_SPEED_UP_computation_allgather_overlap] = true}}};

	expert_plan(&f, &c, &h, &p);
	ap_expert_find(&f.ctx, &p, NULL, &x);
	holds(told(&f.ctx, &b, ap_mindformers_say), (const char *const[]){"use_legacy: True\n"
		"micro_batch_interleave_num: 2\n", "  batch_size: 1\n",
		"    only_trainable_params: False\n"}, 3, NULL, 0);
	holds(told(&f.ctx, &b, ap_megatron_say), (const char *const[]){"--overlap-param-gather\n",
		"--micro-batch-size 2\n", "! parameters dealt among 2 ranks"}, 3, NULL, 0);
	fixture_close(&f);
}
END_TEST

/* No text where there is no hybrid. */
START_TEST(nothing_is_said)
{
	const struct expert_case c = {.model = "multiple_mix", .devices = 8, .hybrid = {.tp = 2}};
	const struct ap_expert x = {.why_not = "no\nreason"};
	struct fixture f;
	struct ap_hybrid h;
	struct ap_plan p;
	say_fn *const say[] = {ap_mindformers_say, ap_megatron_say, ap_mindspeed_say, ap_torchtitan_say,
		ap_deepspeed_say};

	expert_plan(&f, &c, &h, &p);
	for (size_t i = 0; i < AP_COUNT(say); i++)
		ck_assert_str_eq(told(&f.ctx, &(struct ap_bundle){.plan = &p, .expert = &x}, say[i]),
			"! no?reason\n");
	fixture_close(&f);
}
END_TEST

/* MindSpeed's and torchtitan's own words for uneven stages. */
START_TEST(own_words)
{
	static const struct words_case stages = {.c = {.model = "gpt3_1.3b", .devices = 16,
		.micro_batches = 8,
		.tune = recompute_all, .hybrid = {.tp = 2, .pp = 4}}, .part = {5, 7, 7, 5}},
		chunks = {.c = {.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8,
			.hybrid = {.tp = 4, .pp = 2, .vpp = 2, .sp = true}}, .part = {5, 6, 6, 7}};
	struct ap_bundle b = {0};
	struct fixture f;
	struct ap_plan p;
	struct ap_expert x;
	struct ap_said said;

	open_case(&f, &stages, &p, &x);
	b = (struct ap_bundle){.plan = &p, .expert = &x};
	holds(told(&f.ctx, &b, ap_mindspeed_say), (const char *const[]){"--num-layer-list 5,7,7,5\n",
		"--optimization-level 2\n", "export HCCL_CONNECT_TIMEOUT="}, 3,
		(const char *const[]){"layout", "virtual", "--decoder", "! "}, 4);
	ap_torchtitan_say(&f.ctx, &b, &said);
	holds(said.text, (const char *const[]){"--parallelism.pipeline_parallel_schedule 1F1B\n",
		"--parallelism.num_pp_microbatches 8\n", "--training.disable_cuda_graphs\n",
		"--training.num_tokens_per_microbatch_per_dp_rank 8192\n",
		"--training.num_tokens_per_train_step 131072\n",
		"--parallelism.data_parallel_replicate_degree 2\n"}, 6,
		(const char *const[]){"layers_per_stage"}, 1);
	holds(said.python, (const char *const[]){"    [\"tok_embeddings\", \"layers.0\", ",
		"    [\"layers.5\", ", "\"layers.23\", \"norm\", \"lm_head\"],\n", "FullAC.Config()\n",
		"enable_sequence_parallel = False\n"}, 5, NULL, 0);
	fixture_close(&f);
	open_case(&f, &chunks, &p, &x);
	b = (struct ap_bundle){.plan = &p, .expert = &x};
	holds(told(&f.ctx, &b, ap_mindspeed_say), (const char *const[]){"--num-layers 24\n"
		"--num-layers-per-virtual-pipeline-stage 6\n--pipeline-num-transformer-layers "
		"'[[5,6],[6,7]]'\n"},
		1, (const char *const[]){"layout", "num-layer-list"}, 2);
	fixture_close(&f);
}
END_TEST
