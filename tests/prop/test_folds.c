/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of a folded graph take what those that they stand for take in a plan of the whole graph. */
#include <math.h>

#include "base/map.h"
#include "expert_test.h"
#include "graph/family.h"
#include "graph/fold.h"
#include "model/hf.h"
#include "model/model.h"
#include "plan/block_costs.h"
#include "plan/blocks.h"
#include "random_pipe.h"
#include "shard/imposed.h"
#include "unit.h"

/* ck_assert for inner loops: Check notes every call of its own. */
#define HOLDS(x) \
	do { \
		if (!(x)) \
			ck_abort_msg("'%s' does not hold", #x); \
	} while (0)

#define SMALL "'hidden_size':64,'num_attention_heads':8,'intermediate_size':96,'vocab_size':96," \
	"'max_position_embeddings':4096,'rms_norm_eps':1e-5,'torch_dtype':'bfloat16','hidden_act':'silu',"
#define EXPERTS "'num_experts_per_tok':2,'moe_intermediate_size':32,"

/* Bundled models, and configurations of others, ' for "; how many layers stay of how many with keep = 2. */
static const struct net {
	const char *text;
	uint32_t nlayer, nkept;
} nets[] = {
	{"gpt3_1.3b", 24, 4},
	{"gpt3_13b_flash", 40, 4},
	{"gpt3_175b", 96, 4},
	{"llama2_7b", 32, 4},
	{"llama2_70b", 80, 4},
	{"mixtral_8x7b", 32, 4},
	{"bert_large", 24, 4},
	{"vit_l", 24, 4},
	{"resnet50", 16, 15},
	{"wide_deep", 0, 0},
	{"multiple_mix", 0, 0},
	{"{'model_type':'llama'," SMALL "'num_hidden_layers':12,'num_key_value_heads':4,"
		"'tie_word_embeddings':true}", 12, 4},
	{"{'model_type':'gemma2'," SMALL "'num_hidden_layers':9,'num_key_value_heads':4,'head_dim':16,"
		"'hidden_activation':'gelu_pytorch_tanh'}", 9, 4},
	/* every second layer has experts: 0, twice 1 and 2, 9, 10 */
	{"{'model_type':'qwen2_moe'," SMALL EXPERTS "'num_hidden_layers':11,'num_key_value_heads':4,"
		"'num_experts':8,'decoder_sparse_step':2,'shared_expert_intermediate_size':64}", 11, 7},
	/* the first three have none: 0, 1, 2, 3, 4, 5, 9 */
	{"{'model_type':'deepseek_v2'," SMALL EXPERTS "'num_hidden_layers':10,'num_key_value_heads':8,"
		"'first_k_dense_replace':3,'moe_layer_freq':1,'n_routed_experts':8,'n_shared_experts':1,"
		"'kv_lora_rank':16,'q_lora_rank':null,'qk_rope_head_dim':8,'qk_nope_head_dim':16,"
		"'v_head_dim':16,'topk_method':'greedy','scoring_func':'softmax','norm_topk_prob':false,"
		"'routed_scaling_factor':1.0}", 10, 7},
	{"{'model_type':'t5','d_model':64,'d_kv':8,'d_ff':96,'num_heads':8,'num_layers':7,"
		"'num_decoder_layers':8,'vocab_size':96,'relative_attention_num_buckets':32,"
		"'feed_forward_proj':'relu','torch_dtype':'bfloat16'}", 15, 8},
};

enum { BATCH = 64, SEQUENCE = 64 };

/* Text of a graph of a configuration. */
static const char *graph_of(struct fixture *f, const char *config)
{
	const struct ap_hf_options o = {.batch = BATCH, .sequence = SEQUENCE, .dtype = AP_DTYPE_COUNT,
		.name = "net"};
	char *json = ap_arena_strdup(f->ctx.arena, config);
	struct ap_hf_net net;
	struct ap_json *doc;
	struct ap_str s;

	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	ck_assert_int_eq(ap_json_parse(&f->ctx, "config", json, strlen(json), 0, &doc), AP_OK);
	ck_assert_msg(ap_hf_read(&f->ctx, doc, &o, &net) == AP_OK, "%s: %s", json, messages(&f->ctx));
	ap_str_init(&s, f->ctx.arena);
	ap_model_write(net.make(f->ctx.arena, net.dimensions), ap_str_take, &s);
	return s.s;
}

static void open_net(struct fixture *f, int64_t ndev, const struct net *net)
{
	fixture_open(f, ndev, 8, "a100-80");
	f->step.optimizer = ap_optimizer_find("adam_weight_decay");
	if (net->text[0] == '{')
		fixture_graph(f, graph_of(f, net->text));
	else
		expert_model(f, net->text);
}

/* ---- what a fold is ---- */

/* Layers are numbered as told, and stand for all that there were. */
static void check_told(struct fixture *f, const struct ap_graph *g, const struct ap_graph *h,
	const struct ap_layer_fold *fold)
{
	struct ap_family_chain all, kept;
	uint32_t n = 0;

	ap_family_chain(&f->ctx, g, &all);
	ap_family_chain(&f->ctx, h, &kept);
	ck_assert_uint_eq(all.n, fold->nlayer);
	ck_assert_uint_eq(kept.n, fold->nkept);
	for (uint32_t k = 0; k < kept.n; k++) {
		HOLDS(strcmp(kept.name[k], all.name[fold->of[k]]) == 0);
		HOLDS(fold->by[fold->of[k]] == k);
		HOLDS(k == 0 || fold->of[k] > fold->of[k - 1]);
		n += fold->count[k];
	}
	ck_assert_uint_eq(n, all.n);
	for (uint32_t l = 0; l < all.n; l++)
		HOLDS(fold->of[fold->by[l]] <= l && fold->count[fold->by[l]] > 0);
	ck_assert((h == g) == (fold->nkept == fold->nlayer));
}

static bool same_shape(const struct ap_tensor *x, const struct ap_tensor *y)
{
	return x->shape.rank == y->shape.rank && x->shape.dtype == y->shape.dtype && x->batch == y->batch &&
		memcmp(x->shape.dim, y->shape.dim, x->shape.rank * sizeof *x->shape.dim) == 0;
}

static bool same_tensor(const struct ap_graph *a, ap_id t, const struct ap_graph *b, ap_id u)
{
	const struct ap_tensor *x = &a->tensor[t], *y = &b->tensor[u];

	return strcmp(x->name, y->name) == 0 && x->kind == y->kind && x->needs_grad == y->needs_grad &&
		x->result == y->result && same_shape(x, y);
}

/* The operator is the same; it may read of another layer. */
static void check_node(const struct ap_graph *h, ap_id node, const struct ap_graph *g, ap_id old)
{
	const struct ap_node *n = &h->node[node], *o = &g->node[old];

	HOLDS(strcmp(n->type, o->type) == 0 && strcmp(n->cell, o->cell) == 0);
	HOLDS(n->backward == o->backward && n->recompute == o->recompute);
	HOLDS(n->bound.row == o->bound.row && n->bound.nin == o->bound.nin && n->bound.nout == o->bound.nout);
	HOLDS((n->param == AP_NONE) == (o->param == AP_NONE));
	HOLDS(n->param == AP_NONE || same_tensor(h, n->param, g, o->param));
	HOLDS((n->in_cell == AP_NONE) == (o->in_cell == AP_NONE));
	HOLDS(n->in_cell == AP_NONE || !strcmp(h->cell[n->in_cell].name, g->cell[o->in_cell].name));
	for (uint16_t k = 0; k < n->bound.nin; k++) {
		const struct ap_tensor *t = &h->tensor[n->in[k]];

		HOLDS(t->producer == AP_NONE || t->producer < node);
		HOLDS(t->kind == AP_TENSOR_ACT || same_tensor(h, n->in[k], g, o->in[k]));
		HOLDS(same_shape(t, &g->tensor[o->in[k]]));
	}
	for (uint16_t k = 0; k < n->bound.nout; k++) {
		HOLDS(same_tensor(h, n->out[k], g, o->out[k]));
		HOLDS(h->tensor[n->out[k]].producer == node);
	}
}

/* Each operator is one of the whole graph, and the graph is as complete as if it had been loaded. */
static void check_graph(struct fixture *f, const struct ap_graph *g, const struct ap_graph *h)
{
	struct ap_map *names = ap_map_create(f->ctx.arena);
	uint32_t uses = 0, slots = 0;
	ap_id before = AP_NONE;

	for (ap_id i = 0; i < g->nnode; i++)
		HOLDS(ap_map_put_str(names, g->node[i].name, NULL) == i);
	for (ap_id i = 0; i < h->nnode; i++) {
		ap_id old = ap_map_get_str(names, h->node[i].name);

		HOLDS(old != AP_NONE && (before == AP_NONE || old > before));
		check_node(h, i, g, old);
		slots += h->node[i].bound.nin;
		before = old;
	}
	for (ap_id t = 0; t < h->ntensor; t++) {
		const struct ap_tensor *x = &h->tensor[t];

		uses += x->nuse;
		for (uint32_t u = 0; u < x->nuse; u++)
			HOLDS(h->node[x->use[u].node].in[x->use[u].operand] == t);
		HOLDS(x->nuse == 0 ? x->owner.node == AP_NONE
			: h->node[x->owner.node].in[x->owner.operand] == t);
	}
	ck_assert_uint_eq(uses, slots);
	ck_assert_uint_eq(h->noutput, g->noutput);
	ck_assert((h->loss == AP_NONE) == (g->loss == AP_NONE));
	for (uint32_t i = 0; i < h->noutput; i++)
		HOLDS(same_tensor(h, h->output[i], g, g->output[i]));
	for (uint32_t i = 0; i < h->ninput; i++)
		HOLDS(h->tensor[h->input[i]].kind == AP_TENSOR_INPUT);
}

static const struct ap_graph *check_fold(struct fixture *f, const struct ap_graph *g, uint32_t keep,
	struct ap_layer_fold *fold)
{
	struct ap_layer_fold again;
	const struct ap_graph *h = ap_graph_fold(&f->ctx, g, keep, fold);

	check_told(f, g, h, fold);
	check_graph(f, g, h);
	ck_assert_ptr_eq(ap_graph_fold(&f->ctx, h, keep, &again), h);
	for (uint32_t k = 0; k < again.nlayer; k++)
		HOLDS(again.count[k] == 1 && again.of[k] == k && again.by[k] == k);
	return h;
}

START_LOOP_TEST(layers_that_stay, AP_COUNT(nets))
{
	struct ap_layer_fold fold;
	struct fixture f;

	open_net(&f, 1, &nets[_i]);
	for (uint32_t keep = 1; keep < 5; keep++) {
		const struct ap_graph *h = check_fold(&f, f.graph, keep, &fold);

		ck_assert_uint_eq(fold.nlayer, nets[_i].nlayer);
		if (keep == 2)
			ck_assert_msg(fold.nkept == nets[_i].nkept, "%s: %u", nets[_i].text, fold.nkept);
		ck_assert(h->parameters <= f.graph->parameters);
	}
	ck_assert_ptr_eq(ap_graph_fold(&f.ctx, f.graph, fold.nlayer + 1, &fold), f.graph);
	fixture_close(&f);
}
END_TEST

/* ---- what layers take ---- */

struct priced {
	const struct ap_plan *p;
	const struct ap_block_cost *cost;
};

static void check_same(const char *what, const char *which, double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * want))
		ck_abort_msg("%s: %s takes %.17g, in the whole graph %.17g", what, which, got, want);
}

static void check_bytes(const char *what, const char *which, int64_t got, int64_t want)
{
	if (got != want)
		ck_abort_msg("%s: %" PRId64 " bytes %s, in the whole graph %" PRId64, what, got, which, want);
}

static void check_block(const char *what, const struct ap_block_cost *got, const struct ap_block_cost *want)
{
	check_same(what, "forward", got->forward_s, want->forward_s);
	check_same(what, "backward", got->backward_s, want->backward_s);
	check_same(what, "weight", got->weight_s, want->weight_s);
	check_same(what, "left", got->left_s, want->left_s);
	check_same(what, "collectives", got->collectives_s, want->collectives_s);
	check_same(what, "update", got->update_s, want->update_s);
	check_bytes(what, "kept", got->kept_bytes, want->kept_bytes);
	check_bytes(what, "late", got->late_bytes, want->late_bytes);
	check_bytes(what, "once", got->once_bytes, want->once_bytes);
	check_bytes(what, "again", got->again_bytes, want->again_bytes);
	check_bytes(what, "temporary", got->temporary_bytes, want->temporary_bytes);
	check_bytes(what, "static", got->static_bytes, want->static_bytes);
	check_bytes(what, "shared", got->shared_bytes, want->shared_bytes);
	HOLDS(got->nlayer == want->nlayer && got->noperator == want->noperator);
}

/* The block of a layer, or the first that belongs to none from this one on. */
static const struct ap_block_cost *block_of(const struct priced *x, int32_t layer, uint32_t *from)
{
	if (layer < 0) {
		while (*from < x->p->blocks->n && x->cost[*from].layer >= 0)
			++*from;
		return *from < x->p->blocks->n ? &x->cost[(*from)++] : NULL;
	}
	for (uint32_t b = 0; b < x->p->blocks->n; b++)
		if (x->cost[b].layer == layer)
			return &x->cost[b];
	return NULL;
}

/* Each block of the whole plan is one of the folded plan's. */
static void check_blocks(const char *what, const struct priced *whole, const struct priced *small,
	const struct ap_layer_fold *fold)
{
	const struct ap_memory *m = &whole->p->stage[0].memory;
	int64_t kept = 0, fixed = 0, temporary = 0;
	uint32_t nth = 0;

	for (uint32_t b = 0; b < whole->p->blocks->n; b++) {
		int32_t layer = whole->cost[b].layer;
		int32_t by = layer < 0 ? -1 : (int32_t)fold->by[layer];
		const struct ap_block_cost *c = block_of(small, by, &nth);
		char place[250];

		snprintf(place, sizeof place, "%s: layer %d", what, layer);
		ck_assert_msg(c != NULL, "%s", place);
		check_block(place, c, &whole->cost[b]);
	}
	ck_assert_ptr_null(block_of(small, -1, &nth));
	for (uint32_t b = 0; b < small->p->blocks->n; b++) {
		const struct ap_block_cost *c = &small->cost[b];
		int64_t n = c->layer < 0 ? 1 : fold->count[c->layer];

		kept += n * (c->kept_bytes + c->once_bytes);
		fixed += n * c->static_bytes;
		temporary = c->temporary_bytes > temporary ? c->temporary_bytes : temporary;
	}
	ck_assert_int_eq(kept, m->activations);
	ck_assert_int_eq(temporary, m->temporary);
	fixed -= m->weights + m->gathered + m->gradients + m->optimizer;
	ck_assert_msg(fixed <= 0, "%s: %" PRId64 " more", what, fixed); /* constants that several read are
			apart */
}

/* Is each layer a block, recomputed together with no other one? */
static bool are_apart(const struct priced *x)
{
	for (uint32_t b = 0; b < x->p->blocks->n; b++)
		if (x->cost[b].nlayer > 1)
			return false;
	return true;
}

/* Do layers that stand for others take what those of the repetition before them take? */
static bool are_steady(const struct priced *x, const struct ap_layer_fold *fold)
{
	for (uint32_t k = 0; k < fold->nkept; k++) {
		const struct ap_block_cost *c = block_of(x, (int32_t)k, NULL), *before;

		if (fold->before[k] == AP_NONE)
			continue;
		before = block_of(x, (int32_t)fold->before[k], NULL);
		if (c->class != before->class)
			return false;
	}
	return true;
}

/* False where the graph does not take the hybrid. */
static bool price(struct fixture *f, const struct ap_graph *g, const struct ap_hybrid *h, struct priced *out)
{
	struct ap_plan *p = AP_NEW(f->ctx.arena, struct ap_plan);
	const int32_t *const *counts;
	const char *why = "";

	g = ap_graph_imposed(&f->ctx, g, f->machine->ndev, &f->step);
	g = ap_hybrid_deal(&f->ctx, g, f->machine->ndev, &f->step, h, &why);
	counts = g ? ap_hybrid_counts(&f->ctx, g, f->machine->ndev, &f->step, h, &why) : NULL;
	if (!counts)
		return false;
	ap_plan_sketch(ap_plan_maker_create(&f->ctx, g, f->machine, &f->step, INT64_C(1) << 60), counts, p);
	*out = (struct priced){p, ap_block_costs_make(&f->ctx, p)};
	return true;
}

static int64_t power(uint64_t *random, int most)
{
	return INT64_C(1) << random_below(random, (uint64_t)most + 1);
}

static void random_step(uint64_t *random, struct ap_step *step)
{
	step->executor = random_below(random, 2) ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	step->micro_batches = power(random, 2);
	step->recompute = (const unsigned[]){0, AP_RECOMPUTE_SELECTIVE, AP_RECOMPUTE_FULL,
		(unsigned)random_below(random, AP_RECOMPUTE_FULL)}[random_below(random, 4)];
	step->optimizer_level = (int)random_below(random, 4);
	step->optimizer_sharding = step->optimizer_level > 0;
	step->optimizer_level += !step->optimizer_level;
	step->shard_threshold_bytes = 0;
	step->recompute_keeps_comm = random_below(random, 3) == 0;
	step->recompute_slices = random_below(random, 3) == 0;
}

/* Degrees on so many devices. */
static struct ap_hybrid random_hybrid(uint64_t *random, int64_t ndev)
{
	struct ap_hybrid h = {.pp = 1, .vpp = 1, .cp = 1, .ep = 1};
	int64_t left = ndev;

	h.tp = power(random, 3);
	h.tp = h.tp > left ? left : h.tp;
	left /= h.tp;
	if (random_below(random, 4) == 0 && left > 1)
		h.cp = 2;
	h.dp = left / h.cp;
	if (random_below(random, 2))
		h.ep = h.dp;
	h.sp = random_below(random, 2);
	return h;
}

static const char *words_of(struct fixture *f, const char *net, uint64_t seed, const struct ap_hybrid *h,
	uint32_t keep)
{
	const struct ap_step *step = &f->step;

	return ap_arena_printf(f->ctx.arena, "%.40s, seed %" PRIu64 ": %d devices, dp=%d tp=%d cp=%d ep=%d "
		"sp=%d, %d micro-batches, keep %u, executor %d, recompute %u, level %d", net, seed,
		(int)f->machine->ndev, (int)h->dp, (int)h->tp, (int)h->cp, (int)h->ep, h->sp,
		(int)h->micro_batches, keep, (int)step->executor, step->recompute,
		step->optimizer_sharding ? step->optimizer_level : 0);
}

/* Compares plans of the fixture's graph with those of its fold; false where there are none, or the fold does
 * not claim to tell. Drawn layers may be cut in turns. */
static bool check_plans(struct fixture *f, const char *net, bool drawn, uint64_t seed, uint64_t random)
{
	uint32_t keep = 1 + (uint32_t)random_below(&random, 3);
	struct ap_layer_fold fold;
	struct priced whole, small;
	const struct ap_graph *g;
	struct ap_hybrid h;
	const char *what;
	bool sure;

	random_step(&random, &f->step);
	h = random_hybrid(&random, f->machine->ndev);
	ck_assert_int_eq(ap_hybrid_fill(&f->ctx, f->machine->ndev, &h), AP_OK);
	h.micro_batches = f->step.micro_batches;
	what = words_of(f, net, seed, &h, keep);
	g = ap_graph_fold(&f->ctx, f->graph, keep, &fold);
	if (f->graph->batch % (h.dp * h.micro_batches) != 0 || !price(f, f->graph, &h, &whole))
		return false;
	ck_assert_msg(price(f, g, &h, &small), "%s", what);
	ck_assert_msg(are_apart(&whole) == are_apart(&small), "%s", what);
	sure = !drawn && f->step.optimizer_level < 2;
	if (!are_apart(&whole) || (!sure && (keep < 2 || !are_steady(&small, &fold))))
		return false;
	check_blocks(what, &whole, &small, &fold);
	return true;
}

static uint64_t cases(uint64_t usual)
{
	const char *text = getenv("AP_CASES");

	return text ? strtoull(text, NULL, 0) : usual;
}

START_LOOP_TEST(layers_take_what_they_stand_for, AP_COUNT(nets))
{
	uint64_t seed = random_seed() + (uint64_t)_i, n = cases(40), told = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t random = seed * 1000 + i;
		int64_t ndev = power(&random, 5);
		struct fixture f;

		open_net(&f, ndev, &nets[_i]);
		told += check_plans(&f, nets[_i].text, false, seed * 1000 + i, random);
		fixture_close(&f);
	}
	printf("%" PRIu64 " of %" PRIu64 " cases could have failed\n", told, n);
	ck_assert(n < 40 || told > n / 4);
}
END_TEST

/* ---- random graphs ---- */

enum { KINDS = 3, MOST_STEPS = 5, MOST_LAYERS = 30 };

/* What an operator of a layer does with what came before it in the layer. */
enum step { RELU, PRODUCT, SHARED_PRODUCT, BIAS, MASKED, RESIDUAL, TABLE, STEPS };

struct drawing {
	uint64_t *random;
	struct ap_str ops, params;
	int nkind[KINDS];
	enum step kind[KINDS][MOST_STEPS];
};

static void draw_op(struct drawing *d, int layer, int at, enum step step, const char *with)
{
	static const char *const type[STEPS] = {"ReLU", "MatMul", "MatMul", "Add", "Add", "Add", "Add"};
	char from[32];

	snprintf(from, sizeof from, at ? "t%d_%d" : layer ? "y%d" : "x0", at ? layer : layer - 1, at - 1);
	ap_str_addf(&d->ops, "{'name':'op%d_%d','type':'%s','cell':'net.%d.inner','inputs':['%s'", layer, at,
		type[step], layer, from);
	if (*with)
		ap_str_addf(&d->ops, ",'%s'", with);
	ap_str_addf(&d->ops, "],'outputs':[{'name':'t%d_%d'}]},", layer, at);
}

/* A layer: y = its last result + a weight of its own, so that it has one. */
static void draw_layer(struct drawing *d, int layer, int kind)
{
	char own[32], before[32];
	int at = 0;

	snprintf(before, sizeof before, layer ? "y%d" : "x0", layer - 1);
	for (; at < d->nkind[kind]; at++) {
		enum step step = d->kind[kind][at];

		snprintf(own, sizeof own, "w%d_%d", layer, at);
		if (step == PRODUCT || step == BIAS)
			ap_str_addf(&d->params, "{'name':'%s','shape':[%s32],'dtype':'float32'},", own,
				step == PRODUCT ? "32," : "");
		draw_op(d, layer, at, step, step == RELU ? "" : step == PRODUCT || step == BIAS ? own
			: step == SHARED_PRODUCT ? "all" : step == MASKED ? "mask" : step == TABLE ? "table"
			: before);
	}
	ap_str_addf(&d->params, "{'name':'b%d','shape':[32],'dtype':'float32'},", layer);
	ap_str_addf(&d->ops, "{'name':'out%d','type':'Add','cell':'net.%d.inner','inputs':['t%d_%d','b%d'],"
		"'outputs':[{'name':'y%d'}]},", layer, layer, layer, at - 1, layer, layer);
}

/* A network of layers in patterns, of which some read what is outside or far before, and are read there. */
static const char *draw_layers(struct ap_ctx *ctx, uint64_t *random)
{
	struct drawing d = {.random = random};
	int nlayer = 3 + (int)random_below(random, MOST_LAYERS - 3), head = (int)random_below(random, 3);
	int period = 1 + (int)random_below(random, 4), far = (int)random_below(random, (uint64_t)nlayer);
	int pattern[4];

	ap_str_init(&d.ops, ctx->arena);
	ap_str_init(&d.params, ctx->arena);
	for (int k = 0; k < KINDS; k++) {
		d.nkind[k] = 1 + (int)random_below(random, MOST_STEPS - 1);
		for (int i = 0; i < d.nkind[k]; i++)
			d.kind[k][i] = (enum step)random_below(random, STEPS);
	}
	for (int i = 0; i < period; i++)
		pattern[i] = (int)random_below(random, KINDS);
	for (int l = 0; l < nlayer; l++)
		draw_layer(&d, l, l < head ? (int)random_below(random, KINDS) : pattern[l % period]);
	ap_str_addf(&d.ops, "{'name':'far','type':'Add','cell':'head','inputs':['y%d','y%d'],"
		"'outputs':[{'name':'z'}]},", nlayer - 1, random_below(random, 2) ? far : nlayer - 1);
	return ap_arena_printf(ctx->arena, "{'schema':'autopar-graph/1','name':'drawn',"
		"'inputs':[{'name':'x','shape':[64,32],'dtype':'float32','batch_dim':0}],"
		"'constants':[{'name':'mask','shape':[32],'dtype':'float32'}],"
		"'parameters':[%s{'name':'all','shape':[32,32],'dtype':'float32'},"
		"{'name':'words','shape':[32],'dtype':'float32'}],'operators':["
		"{'name':'first','type':'Add','inputs':['x','words'],'outputs':[{'name':'x0'}]},"
		"{'name':'lookup','type':'ReLU','inputs':['x0'],'outputs':[{'name':'table'}]},%s"
		"{'name':'loss','type':'ReduceMean','cell':'head','inputs':['z'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}", d.params.s, d.ops.s);
}

START_TEST(of_drawn_layers)
{
	uint64_t seed = random_seed(), n = cases(300), told = 0, folded = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t random = seed + i * 7919;
		struct ap_layer_fold fold;
		struct fixture f;

		fixture_open(&f, power(&random, 4), 8, "a100-80");
		f.ctx.diag = ap_diag_create(f.said, false);
		fixture_graph(&f, draw_layers(&f.ctx, &random));
		folded += check_fold(&f, f.graph, 1 + (uint32_t)random_below(&random, 3), &fold) != f.graph;
		told += check_plans(&f, "drawn", true, i, random);
		fixture_close(&f);
	}
	printf("%" PRIu64 " of %" PRIu64 " cases were folded, %" PRIu64 " priced\n", folded, n, told);
	ck_assert(n < 100 || (folded > n / 3 && told > n / 10));
}
END_TEST

static void random_folds(struct trial *t)
{
	struct ap_layer_fold fold;

	random_layers(t);
	random_recompute(t);
	t->telling = true;
	check_fold(&t->f, t->f.graph, 1 + (uint32_t)random_below(&t->random, 3), &fold);
}

START_TEST(of_random_graphs)
{
	trial_each(99, 20, 4, random_folds);
}
END_TEST
