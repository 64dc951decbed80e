/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/make.h"
#include "trial.h"

#include <stdarg.h>

#include "cost/optimizer.h"
#include "graph/graph.h"
#include "hw/builtin.h"
#include "hw/chip.h"
#include "model/cells.h"
#include "model/experts.h"
#include "plan/plan.h"
#include "shard/imposed.h"
#include "shard/layout.h"
#include "shard/space.h"
#include "shard/strategy.h"
#include "unit.h"

#define CHOOSE(t, ...) choose((t), (const int64_t[]){__VA_ARGS__}, \
	sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))

static int64_t choose(struct trial *t, const int64_t *of, size_t n)
{
	return of[random_below(&t->random, n)];
}

static bool one_in(struct trial *t, uint64_t n)
{
	return random_below(&t->random, n) == 0;
}

/* Seeds of neighbouring cases must not give like streams (splitmix64). */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9E3779B97F4A7C15);
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	x ^= x >> 31;
	return x ? x : 1;
}

void trial_fail(const struct trial *t, const char *fmt, ...)
{
	struct ap_str s;
	va_list ap;

	ap_str_init(&s, t->f.ctx.arena);
	va_start(ap, fmt);
	ap_str_vaddf(&s, fmt, ap);
	va_end(ap);
	ap_str_addf(&s, "\nAP_SEED=%" PRIu64 " AP_CASES=1: %s\n", t->seed, t->machine);
	ap_diag_render(t->f.ctx.diag, AP_ERROR, 5, &s);
	fputs(t->text.text, stderr); /* a message has a limit */
	ck_abort_msg("%s", s.s);
	abort();
}

static const struct ap_optimizer *random_optimizer(struct trial *t)
{
	size_t n = 0;

	while (ap_optimizer_at(n))
		n++;
	return ap_optimizer_at(random_below(&t->random, n));
}

/* Each built-in software in turn; no draw, so that cases stay. */
static void take_software(struct trial *t)
{
	size_t n = 0;

	while (ap_builtin_software[n].name)
		n++;
	ck_assert(ap_software_get(&t->f.ctx, ap_builtin_software[t->seed / 5 % n].name, &t->f.step.software) ==
		AP_OK);
}

static void random_step(struct trial *t)
{
	struct ap_step *s = &t->f.step;

	s->executor = one_in(t, 2) ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	s->exchange_behind = one_in(t, 4);
	s->full_batch = one_in(t, 3);
	s->optimizer_sharding = one_in(t, 2);
	s->shard_threshold_bytes = CHOOSE(t, 0, 512, 65536);
	s->shard_size = CHOOSE(t, -1, -1, 2, 4);
	s->optimizer_level = (int)CHOOSE(t, 1, 1, 2, 3);
	s->gradient_fp32_sync = one_in(t, 2);
	s->gradients_mean = one_in(t, 4);
	s->training = !one_in(t, 10);
	s->optimizer = s->training ? random_optimizer(t) : NULL;
	s->dealing = s->executor == AP_EXECUTOR_GENERIC ? (enum ap_dealing)(t->seed / 7 % 3) : AP_DEALING_ROWS;
	s->product_overlap = s->executor == AP_EXECUTOR_GENERIC && s->shard_size < 0; /* no draw: cases stay */
}

/* Micro-batches where everything that carries the batch is even. */
static void random_micro_batches(struct trial *t)
{
	const struct ap_graph *g = t->f.graph;

	for (ap_id i = 0; i < g->nnode; i++)
		for (int f = 0; f < g->node[i].bound.nfactor; f++) {
			const struct ap_factor *factor = &g->node[i].bound.factor[f];

			if (factor->flags & AP_FACTOR_BATCH && factor->size % 2)
				return;
		}
	t->f.step.micro_batches = CHOOSE(t, 1, 2);
	fixture_in_flight(&t->f, CHOOSE(t, 1, t->f.step.micro_batches));
}

static void make_spaces(struct trial *t)
{
	const struct ap_graph *g = t->f.graph;

	t->space = AP_NEW_N(t->f.ctx.arena, struct ap_space, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++)
		ap_space_make(&t->f.ctx, &g->node[i].bound, t->f.machine->ndev, &t->f.step,
			&t->space[i]);
}

void trial_executor(struct trial *t, enum ap_executor executor)
{
	t->f.step.executor = executor;
	make_spaces(t);
}

static void describe(struct trial *t, int64_t ndev, int64_t per_server, const char *chip)
{
	const struct ap_step *s = &t->f.step;

	t->machine = ap_arena_printf(t->f.ctx.arena, "%" PRId64 " x %s, %" PRId64 " a server, %s, "
		"%s, %" PRId64 " micro-batches, %" PRId64 " in flight, %s batch, %s, shards %s of %" PRId64
		" from %" PRId64 " bytes at level %d, gradients %s, %s the passes%s", ndev, chip, per_server,
		s->executor == AP_EXECUTOR_GENERIC ? "generic" : "mindspore",
		s->training ? s->optimizer->name : "inference", s->micro_batches, ap_step_in_flight(s, 0, 0),
		s->full_batch ? "full" : "cut", s->software->name, s->optimizer_sharding ? "on" : "off", s->shard_size,
		s->shard_threshold_bytes, s->optimizer_level,
		s->gradient_fp32_sync ? "in float32" : "as they are",
		s->exchange_behind ? "behind" : "beside",
		s->product_overlap ? ", products beside their collectives" : "");
}

void trial_experts(struct trial *t)
{
	static const struct ap_experts_names names = {.router = "gate", .experts = "experts",
		.gate = "gate_proj", .up = "up_proj", .down = "down_proj", .shared = "shared"};
	int64_t h = CHOOSE(t, 8, 64, 512);
	struct ap_experts e = {.names = &names, .count = CHOOSE(t, 2, 4, 8), .active = CHOOSE(t, 1, 2),
		.inner = CHOOSE(t, 8, 64), .shared_inner = CHOOSE(t, 0, 0, 16), .rescale = one_in(t, 2),
		.capacity = (double)CHOOSE(t, 0, 1), .activation = AP_MODEL_SWIGLU};
	struct ap_shape tokens = AP_MODEL_SHAPE(AP_FLOAT16, CHOOSE(t, 8, 16), CHOOSE(t, 8, 64), h);
	struct ap_model *m = ap_model_create(t->f.ctx.arena, "experts", "adam");
	int64_t layers = CHOOSE(t, 1, 2);
	struct ap_str text;
	ap_id x;

	if (one_in(t, 2))
		ap_model_fuse(m);
	x = ap_model_input(m, "x", tokens);
	x = ap_model_reshape(m, "top", x, AP_MODEL_SHAPE(AP_FLOAT16, tokens.dim[0] * tokens.dim[1], h), "rows");
	for (int64_t i = 0; i < layers; i++) {
		const char *name = ap_arena_printf(t->f.ctx.arena, "layers.%" PRId64, i);

		ap_model_prefix(m, ap_arena_printf(t->f.ctx.arena, "%s.", name));
		x = ap_model_experts(m, &e, ap_arena_printf(t->f.ctx.arena, "top/%s/mlp-MoE", name), name, x,
			tokens);
	}
	ap_model_reduce(m, "top", "ReduceSum", x, 2, false, "loss");
	ap_str_init(&text, t->f.ctx.arena);
	ap_model_write(m, ap_str_take, &text);
	t->text = (struct random_graph){.text = text.s, .batch = tokens.dim[0]};
	t->f.step.executor = AP_EXECUTOR_GENERIC;
	t->f.step.micro_batches = 1;
	t->f.step.pipe = NULL;
	fixture_graph(&t->f, text.s);
	trial_impose(t);
	make_spaces(t);
}

void trial_impose(struct trial *t)
{
	fixture_impose(&t->f);
	if (mix(t->seed + 1) % 2)
		t->f.graph = ap_graph_deal_if_asked(&t->f.ctx, t->f.graph);
}

void trial_open(struct trial *t, uint64_t seed, uint32_t most, int64_t devices)
{
	static const char *const chips[] = {"ascend910a", "ascend910b3", "a100-80"};
	int64_t ndev, per_server;
	const char *chip;

	*t = (struct trial){.seed = seed, .random = mix(seed), .machine = "not yet known"};
	do
		ndev = CHOOSE(t, 1, 2, 4, 4, 6, 8, 8, 12, 16);
	while (ndev > devices);
	per_server = CHOOSE(t, 2, 4, 8);
	chip = chips[random_below(&t->random, 3)];
	fixture_open(&t->f, ndev, per_server, chip);
	random_graph(&t->f.ctx, &t->random, most, &t->text);
	random_step(t);
	take_software(t);
	if (getenv("AP_TRACE")) {
		describe(t, ndev, per_server, chip);
		fprintf(stderr, "AP_SEED=%" PRIu64 ": %s\n%s", seed, t->machine, t->text.text);
	}
	fixture_graph(&t->f, t->text.text);
	random_micro_batches(t);
	trial_impose(t);
	describe(t, ndev, per_server, chip);
	make_spaces(t);
	t->taken_bytes = t->f.step.software->context_bytes;
	if (ndev > 1)
		t->taken_bytes += t->f.step.software->comm_buffer_bytes;
}

/* Ascending parts along the topological order, none empty. */
static const struct ap_spot *random_spots(struct trial *t, uint32_t nstage, uint32_t nsegment)
{
	uint32_t left = t->f.graph->nnode, parts = nstage * nsegment, part = 0;
	struct ap_spot *spot = AP_NEW_N(t->f.ctx.arena, struct ap_spot, left);

	for (ap_id i = 0; i < t->f.graph->nnode; i++, left--) {
		bool must = left == parts - part - 1;

		if (i > 0 && part + 1 < parts && (must || one_in(t, left / (parts - part) + 1)))
			part++;
		spot[i] = (struct ap_spot){(int32_t)(part % nstage),
			(int32_t)(part / nstage), (int32_t)part};
	}
	return spot;
}

bool trial_staged(struct trial *t, uint32_t nstage, uint32_t nsegment)
{
	const struct ap_scheduler *s = ap_scheduler_find(nsegment > 1 ? "interleaved" : "1f1b");
	int64_t ndev = t->f.machine->ndev;

	if (t->f.graph->nnode < nstage * nsegment)
		return false;
	if (t->f.step.micro_batches < nstage && nsegment > 1)
		return false;
	if (t->seed / 3 % 4 == 1 && t->f.step.micro_batches >= nstage) /* no draw: cases stay */
		s = ap_scheduler_beside(s);
	ap_topo_make(&t->f.ctx, ndev * nstage, ndev > 1 ? ndev / 2 : 1, &t->topo);
	ap_machine_make(&t->f.ctx, t->topo, t->f.machine->chip, &t->f.machine);
	ap_machine_staged(&t->f.ctx, t->f.machine, nstage, &t->f.machine);
	ap_graph_staged(&t->f.ctx, t->f.graph, random_spots(t, nstage, nsegment), &t->f.graph);
	ap_schedule_pipe(&t->f.ctx, s, (int32_t)nstage, (int32_t)nsegment, t->f.step.micro_batches,
		&t->f.pipe);
	t->f.step.pipe = &t->f.pipe;
	t->taken_bytes = t->f.step.software->context_bytes + t->f.step.software->comm_buffer_bytes;
	make_spaces(t);
	return true;
}

void trial_close(struct trial *t)
{
	fixture_close(&t->f);
}

enum ap_status trial_search(struct trial *t, int64_t capacity_bytes, const char *mode, int short_cuts,
	struct ap_plan *out)
{
	struct ap_request rq = {.graph = t->f.graph, .machine = t->f.machine, .step = &t->f.step,
		.capacity_bytes = capacity_bytes, .search_mode = mode, .prune = short_cuts & PRUNED,
		.budget.no_fold = !(short_cuts & FOLDED)};
	enum ap_status st = ap_drive_search(&t->f.ctx, &rq, out, NULL);

	REQUIRE(t, st == AP_OK || st == AP_INFEASIBLE, "%s", ap_status_text(st));
	t->f.ctx.diag = ap_diag_create(t->f.ctx.arena, false); /* infeasible is no fault here */
	return st;
}

/* Do the users of one parameter among these operands hold it alike? */
static bool same_parameters(const struct trial *t, ap_id i, const struct ap_placement *pi, ap_id j,
	const struct ap_placement *pj)
{
	const struct ap_node *a = &t->f.graph->node[i], *b = &t->f.graph->node[j];

	for (uint32_t x = 0; x < a->bound.nin; x++)
		for (uint32_t y = 0; y < b->bound.nin; y++) {
			struct ap_layout lx = {0}, ly = {0};

			if (a->in[x] != b->in[y] ||
				t->f.graph->tensor[a->in[x]].kind != AP_TENSOR_PARAM)
				continue;
			ap_layout_make(pi, &a->bound.in[x], &lx);
			ap_layout_make(pj, &b->bound.in[y], &ly);
			if (!ap_layout_equal(&lx, &ly))
				return false;
		}
	return true;
}

/* Operators that share a checkpoint key share their strategy. */
static bool same_strategy(struct trial *t, ap_id i, const struct ap_placement *pi, ap_id j,
	const struct ap_placement *pj)
{
	const char *a = ap_node_key(&t->f.ctx, t->f.graph, i);
	const char *b = ap_node_key(&t->f.ctx, t->f.graph, j);
	uint8_t rank[2][16] = {{0}};
	int32_t cut[2][16][AP_MAX_RANK] = {{{0}}};
	uint32_t n;

	if (!a || !b || strcmp(a, b) != 0)
		return true;
	n = ap_space_to_strategy(pi, rank[0], cut[0], 16);
	return n == ap_space_to_strategy(pj, rank[1], cut[1], 16) &&
		memcmp(cut[0], cut[1], sizeof cut[0]) == 0;
}

/* Does candidate c of node i agree with what nodes before it chose? */
static bool agrees(struct trial *t, const int32_t *const *counts, ap_id i, const int32_t *count)
{
	const struct ap_graph *g = t->f.graph;
	struct ap_placement own, other;

	ap_placement_make(&g->node[i].bound, count, ap_graph_devices(g, i, t->f.machine->ndev), &own);
	if (!same_parameters(t, i, &own, i, &own))
		return false;
	for (ap_id j = 0; j < i; j++) {
		ap_placement_make(&g->node[j].bound, counts[j], ap_graph_devices(g, j, t->f.machine->ndev),
			&other);
		if (!same_parameters(t, i, &own, j, &other) || !same_strategy(t, i, &own, j, &other))
			return false;
	}
	return true;
}

const int32_t *const *trial_counts(struct trial *t)
{
	const int32_t **counts = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);

	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		const struct ap_space *s = &t->space[i];
		const int32_t **fit = AP_NEW_N(t->f.ctx.scratch, const int32_t *, s->n);
		uint32_t n = 0;

		for (uint32_t c = 0; c < s->n; c++) {
			const int32_t *count = s->count + (size_t)c * s->nfactor;

			if (agrees(t, counts, i, count))
				fit[n++] = count;
		}
		if (n == 0)
			return NULL;
		counts[i] = fit[random_below(&t->random, n)];
	}
	return counts;
}

void trial_plan(struct trial *t, const int32_t *const *counts, struct ap_plan *out)
{
	ap_plan_make(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, counts, NO_MEMORY_LIMIT, out);
}

int64_t trial_capacity(struct trial *t, const struct ap_plan *p)
{
	int64_t need = p->prediction.memory.total - t->taken_bytes;

	return t->taken_bytes + (int64_t)random_below(&t->random, (uint64_t)need + 1);
}

void trial_each(uint64_t cases, uint32_t most, int64_t devices, void (*property)(struct trial *t))
{
	const char *text = getenv("AP_CASES");
	uint64_t seed = random_seed(), n = text ? strtoull(text, NULL, 0) : cases, telling = 0;

	for (uint64_t i = 0; i < n; i++) {
		struct trial t;

		trial_open(&t, seed + i, most, devices);
		property(&t);
		telling += t.telling;
		trial_close(&t);
	}
	printf("%" PRIu64 " of %" PRIu64 " cases could have failed\n", telling, n);
	ck_assert(n < 100 || telling > n / 10);
}
