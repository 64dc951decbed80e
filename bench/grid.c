/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The named grid: a list of hybrids by hand, to judge what `plan` decides by. Each is priced as
 * `evaluate --hybrid` does, in one process; nothing of the decision's code is used.
 *
 *   grid GRAPH [--sample N] [--seed N] [--headroom PERCENT] [--jobs N] [--SETTING VALUE]...
 *
 * GRAPH is a file as for `plan`, settings are those of the program. The grid: tp that divides the devices of
 * a stage, at most 8; stages and segments that divide the layers, with segments only where the micro-batches
 * are a multiple of the stages; samples of a micro-batch from 1 to 8; sp where tp > 1; no, selective and
 * full recomputation; parameters dealt by levels 0, 1 and 3; experts dealt to up to 64. Of these, what the
 * executor can be told (executors). --sample: so many of those that fit, by chance, at most 20 tries each,
 * and then all that differ in two things at most from the fastest so far, until none of these is faster;
 * else all.
 *
 * Prints "combinations N priced N fit N usable BYTES", then "best STEP BYTES WORDS" of the fastest that fits,
 * where the words are what `evaluate` takes. Exit status: 0; 1 where an evaluation says otherwise, 2 for a
 * wrong call, 3 for inputs that are none.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/processors.h"
#include "api/request.h"
#include "api/settle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/par.h"
#include "base/vec.h"
#include "graph/family.h"
#include "plan/make.h"

enum { EXIT_OTHERWISE = 1, EXIT_USAGE = 2, EXIT_INPUT = 3 };
enum { MOST_TP = 8, MOST_MBS = 8, MOST_EP = 64, TRIES = 20 };

#define WHOLE 1
#define STATES (1 << 1)
#define GRADIENTS (1 << 2)
#define WEIGHTS (1 << 3)

static const struct executor {
	const char *name;
	unsigned levels; /* of dealt parameters, a bit each */
	const char *kinds[4]; /* of recomputation, NULL-terminated */
	bool sums; /* that they are dealt */
	bool experts_by_sequence; /* tp beside experts wants sums dealt */
	unsigned stage_levels; /* beside stages, which all run 1f1b, a bit each; 0: levels */
	bool experts_whole; /* experts are not dealt */
	bool fills; /* stages have as many micro-batches at least */
} executors[] = {
	/* Cells cannot be told to keep one of two products, which selective means. */
	{"mindspore", WHOLE | STATES | WEIGHTS, {"none", "full"}, .sums = true, .fills = true},
	{"mindspore-semi-auto", WHOLE | STATES | WEIGHTS, {"none", "full"}, .fills = true},
	{"mindspore-sharding-propagation", WHOLE | STATES | WEIGHTS, {"none", "full"}, .fills = true},
	{"mindformers", WHOLE | STATES | WEIGHTS, {"none", "full"}, .sums = true, .fills = true},
	{"mindspeed", WHOLE | STATES, {"none", "selective", "full"}, .sums = true,
		.experts_by_sequence = true},
	{"megatron", WHOLE | STATES | WEIGHTS, {"none", "selective", "full"}, .sums = true,
		.experts_by_sequence = true},
	{"torchtitan", GRADIENTS | WEIGHTS, {"none", "products/2", "full"}, .sums = true, .fills = true},
	{"deepspeed", WHOLE | STATES | GRADIENTS | WEIGHTS, {"none", "full"}, .stage_levels = WHOLE | STATES,
		.experts_whole = true},
	{"generic", WHOLE | STATES | WEIGHTS, {"none", "selective", "full"}, .sums = true},
};

struct combination {
	int64_t dp, tp, pp, vpp, ep, etp, mbs, micro_batches;
	int level;
	unsigned kind;
	bool sp;
};

struct result {
	double step_s; /* 0: it does not fit, or is none */
	int64_t bytes; /* 0: none */
};

struct grid {
	struct ap_ctx *ctx;
	struct ap_ctx *own; /* [jobs] */
	struct ap_settings set;
	struct ap_sources src;
	const struct executor *executor;
	int64_t devices, batch, layers, experts, usable_bytes;
	bool mixes; /* samples of a batch: there is one micro-batch */
	AP_VEC(struct combination) all;
	const uint32_t *at; /* [n] those that are priced now */
	struct result *result; /* [n] */
};

static _Noreturn void die(int status, const char *what)
{
	fprintf(stderr, "grid: %s\n", what);
	exit(status);
}

static void no_memory(void *user, size_t wanted)
{
	(void)user;
	(void)wanted;
	die(EXIT_INPUT, "out of memory");
}

static _Noreturn void say(const struct ap_diag *diag)
{
	struct ap_message m;

	for (size_t i = 0; ap_diag_at(diag, i, &m); i++)
		if (m.level == AP_ERROR)
			fprintf(stderr, "grid: %s\n", m.text);
	exit(EXIT_INPUT);
}

/* ---- the list ---- */

static void add_choices(struct grid *g, struct combination c)
{
	unsigned levels = c.pp > 1 && g->executor->stage_levels ? g->executor->stage_levels
		: g->executor->levels;

	for (c.level = 0; c.level <= 3; c.level++)
		for (c.kind = 0; g->executor->kinds[c.kind] && levels >> c.level & 1; c.kind++)
			AP_PUSH(g->ctx->arena, g->all, c);
}

static void add_experts(struct grid *g, struct combination c)
{
	int64_t most = g->executor->experts_whole ? 1 : MOST_EP;

	for (int64_t ep = 1; ep <= g->experts && ep <= most && ep <= c.dp * c.tp; ep++)
		for (int whole = 0; whole <= (ep > 1 && c.tp > 1) && g->experts % ep == 0; whole++) {
			c.ep = ep;
			c.etp = whole ? 1 : c.tp;
			add_choices(g, c);
		}
	c.ep = 1;
	c.etp = c.tp;
	if (!g->experts)
		add_choices(g, c);
}

static void add_degrees(struct grid *g, struct combination c)
{
	int64_t of_stage = g->devices / c.pp;

	for (c.tp = 1; c.tp <= MOST_TP && c.tp <= of_stage; c.tp++) {
		c.dp = of_stage / c.tp;
		if (of_stage % c.tp || g->batch % c.dp)
			continue;
		for (c.mbs = 1; c.mbs <= (g->mixes ? g->batch / c.dp : MOST_MBS); c.mbs++) {
			c.micro_batches = g->batch / c.dp / c.mbs;
			if (g->batch / c.dp % c.mbs || (c.vpp > 1 && c.micro_batches % c.pp) ||
				(g->mixes && c.micro_batches > 1) ||
				(g->executor->fills && c.pp > 1 && c.micro_batches < c.pp))
				continue;
			for (int sp = 0; sp <= (c.tp > 1 && g->executor->sums); sp++) {
				c.sp = sp;
				if (sp || !g->experts || c.tp == 1 || !g->executor->experts_by_sequence)
					add_experts(g, c);
			}
		}
	}
}

static void list(struct grid *g)
{
	int64_t layers = g->layers ? g->layers : 1;

	for (int64_t pp = 1; pp <= layers; pp++)
		for (int64_t v = 1; v <= (pp > 1 && !g->executor->stage_levels ? layers / pp : 1); v++)
			if (g->devices % pp == 0 && layers % (pp * v) == 0)
				add_degrees(g, (struct combination){.pp = pp, .vpp = v});
}

/* ---- prices ---- */

static void give(struct ap_ctx *ctx, struct ap_settings *o, enum ap_setting_id id, const char *text)
{
	const struct ap_setting_row *row = ap_setting_at(id);
	const char *why;

	ap_setting_unset(o, id);
	if (!ap_setting_give(ctx->arena, row, o, text, AP_FROM_OPTION,
		ap_option_spelling(ctx->arena, "--", row), &why))
		die(EXIT_INPUT, text);
}

static const char *hybrid_of(struct ap_ctx *ctx, const struct combination *c)
{
	return ap_arena_printf(ctx->arena, "dp=%" PRId64 ",tp=%" PRId64 ",ep=%" PRId64 ",etp=%" PRId64
		",pp=%" PRId64 ",vpp=%" PRId64 ",sp=%d,mbs=%" PRId64, c->dp, c->tp, c->ep,
		c->ep > 1 ? c->etp : c->tp, c->pp, c->vpp, c->sp, c->mbs);
}

static void settings_of(struct ap_ctx *ctx, const struct grid *g, const struct combination *c,
	struct ap_settings *out)
{
	*out = g->set;
	give(ctx, out, AP_SET_hybrid, hybrid_of(ctx, c));
	give(ctx, out, AP_SET_recompute, g->executor->kinds[c->kind]);
	give(ctx, out, AP_SET_enable_parallel_optimizer, c->level ? "true" : "false");
	if (c->level)
		give(ctx, out, AP_SET_optimizer_level, ap_arena_printf(ctx->arena, "level%d", c->level));
}

/* Makes the inputs of a combination; false: it is none. */
static bool make(struct ap_ctx *ctx, const struct grid *g, const struct combination *c, struct ap_inputs *in)
{
	struct ap_settings *o = AP_NEW(ctx->arena, struct ap_settings);

	settings_of(ctx, g, c, o);
	return ap_settings_settle(ctx, o, AP_FOR_evaluate) == AP_OK &&
		ap_inputs_make(ctx, o, &g->src, AP_FOR_evaluate, in) == AP_OK &&
		ap_inputs_give(ctx, o, &g->src, AP_FOR_evaluate, in) == AP_OK;
}

static void price(void *user, size_t i, int worker)
{
	struct grid *g = user;
	struct ap_ctx *own = &g->own[worker], ctx = *own;
	struct ap_mark mark = ap_arena_mark(own->arena), scratch = ap_arena_mark(own->scratch);
	struct ap_plan_maker *maker;
	struct ap_inputs in;
	struct ap_plan plan;

	ctx.diag = ap_diag_create(ctx.arena, false);
	g->result[i] = (struct result){0};
	if (make(&ctx, g, &g->all.v[g->at[i]], &in)) {
		maker = ap_plan_maker_create(&ctx, in.request.graph, in.machine, &in.step, g->usable_bytes);
		if (ap_plan_sketch_if_fits(maker, ctx.arena, in.counts, &plan))
			g->result[i].step_s = plan.prediction.step_time_s;
		g->result[i].bytes = plan.prediction.memory.total;
	}
	ap_arena_release(own->scratch, scratch);
	ap_arena_release(own->arena, mark);
}

/* The whole evaluation says the same; messages are told. */
static bool agrees(const struct grid *g, const struct combination *c, const struct result *r)
{
	struct ap_ctx ctx = *g->ctx;
	struct ap_inputs in;
	struct ap_plan plan;

	ctx.diag = ap_diag_create(ctx.arena, false);
	if (!make(&ctx, g, c, &in) || ap_inputs_plan(&ctx, &in, NULL, &plan, NULL) != AP_OK)
		say(ctx.diag);
	return !(plan.prediction.step_time_s < r->step_s || plan.prediction.step_time_s > r->step_s) &&
		plan.prediction.memory.total == r->bytes;
}

/* ---- the run ---- */

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Places of the list in an order by chance. */
static uint32_t *shuffled(struct ap_arena *arena, uint32_t n, uint64_t seed)
{
	uint32_t *at = AP_NEW_N(arena, uint32_t, n ? n : 1);

	for (uint32_t i = 0; i < n; i++)
		at[i] = i;
	for (uint32_t i = n; seed && i > 1; i--) {
		uint32_t k = (uint32_t)(next(&seed) % i), was = at[i - 1];

		at[i - 1] = at[k];
		at[k] = was;
	}
	return at;
}

struct tally {
	uint32_t priced, fit, best; /* best: AP_NONE, none fits */
	struct result least;
};

static void count(struct tally *t, uint32_t at, const struct result *r)
{
	t->priced += r->bytes > 0;
	t->fit += r->step_s > 0;
	if (r->step_s > 0 && (t->best == AP_NONE || r->step_s < t->least.step_s)) {
		t->best = at;
		t->least = *r;
	}
}

/* Do combinations differ in two things at most? dp and the micro-batches are what is left. */
static bool is_near(const struct combination *a, const struct combination *b)
{
	return (a->tp != b->tp) + (a->pp != b->pp) + (a->vpp != b->vpp) + (a->ep != b->ep) +
		((a->etp == a->tp) != (b->etp == b->tp)) + (a->mbs != b->mbs) + (a->sp != b->sp) +
		(a->level != b->level) + (a->kind != b->kind) <= 2;
}

/* Prices n of the places and counts them. */
static void price_all(struct grid *g, const uint32_t *at, uint32_t n, struct tally *t)
{
	g->at = at;
	ap_par_for(g->ctx->arena, g->ctx->jobs, n, price, g);
	for (uint32_t i = 0; i < n; i++)
		count(t, at[i], &g->result[i]);
}

/* Goes from the best to what lies near it, while that is better. Of `order` the first `done` are priced. */
static void descend(struct grid *g, uint32_t *order, uint32_t done, struct tally *t)
{
	for (uint32_t from = AP_NONE; t->best != from;) {
		uint32_t near = done;

		from = t->best;
		for (uint32_t i = done; i < g->all.n; i++) {
			uint32_t was = order[i];

			if (!is_near(&g->all.v[was], &g->all.v[from]))
				continue;
			order[i] = order[near];
			order[near++] = was;
		}
		price_all(g, order + done, near - done, t);
		done = near;
	}
}

static int run(struct grid *g, int64_t sample, uint64_t seed)
{
	uint32_t n = (uint32_t)g->all.n, done = 0;
	uint32_t *order = shuffled(g->ctx->arena, n, sample ? seed : 0);
	struct tally t = {.best = AP_NONE};
	const struct combination *c;

	g->result = AP_NEW_N(g->ctx->arena, struct result, n ? n : 1);
	while (done < n && (!sample || (t.fit < sample && done < sample * TRIES))) {
		uint32_t part = sample ? (uint32_t)sample - t.fit : n;

		part = part < n - done ? part : n - done;
		price_all(g, order + done, part, &t);
		done += part;
	}
	if (t.best != AP_NONE)
		descend(g, order, done, &t);
	printf("combinations %" PRIu32 " priced %" PRIu32 " fit %" PRIu32 " usable %" PRId64 "\n", n,
		t.priced, t.fit, g->usable_bytes);
	if (t.best == AP_NONE)
		return 0;
	c = &g->all.v[t.best];
	printf("best %.17g %" PRId64 " --hybrid %s --recompute %s", t.least.step_s, t.least.bytes,
		hybrid_of(g->ctx, c), g->executor->kinds[c->kind]);
	if (c->level)
		printf(" --enable-parallel-optimizer --optimizer-level level%d", c->level);
	putchar('\n');
	return agrees(g, c, &t.least) ? 0 : EXIT_OTHERWISE;
}

/* Experts with weights of their own in one product; 0: none. */
static int64_t experts_of(const struct ap_graph *g)
{
	int64_t most = 0;

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; strstr(g->node[i].type, "Mat") && k < g->node[i].bound.nin; k++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[k]];

			if (t->kind == AP_TENSOR_PARAM && t->shape.rank == 3 && t->shape.dim[0] > most)
				most = t->shape.dim[0];
		}
	return most;
}

static void open_inputs(struct grid *g, const char *path, double headroom)
{
	struct ap_ctx *ctx = g->ctx;
	const struct ap_named named = {.graph = {.path = path}};
	struct ap_family_chain chain;
	struct ap_settings one = g->set;
	struct ap_inputs in;

	if (ap_settings_settle(ctx, &one, AP_FOR_evaluate) != AP_OK ||
		ap_sources_read(ctx, &one, &named, &g->src) != AP_OK ||
		ap_inputs_make(ctx, &one, &g->src, AP_FOR_search, &in) != AP_OK)
		say(ctx->diag);
	for (size_t i = 0; i < AP_COUNT(executors); i++)
		if (!strcmp(executors[i].name, in.request.route->name))
			g->executor = &executors[i];
	if (!g->executor)
		die(EXIT_USAGE, "nothing is known of this executor");
	if (!in.graph->batch)
		die(EXIT_INPUT, "the graph has no batch");
	g->src.ready = in.loaded;
	ap_family_chain(ctx, in.graph, &chain);
	g->layers = chain.n;
	g->experts = experts_of(in.graph);
	g->batch = in.graph->batch;
	g->devices = in.topo->ndev;
	g->mixes = ap_sources_mix_batch(ctx, &one, &g->src);
	g->usable_bytes = (int64_t)((double)in.request.capacity_bytes * (1 - headroom / 100));
}

static void take(struct grid *g, const char *word, const char *text)
{
	char *key = ap_arena_strdup(g->ctx->arena, word + 2);
	const struct ap_setting_row *row;
	const char *why;

	for (char *c = key; *c; c++)
		if (*c == '-')
			*c = '_';
	row = ap_setting_of_key(key);
	if (!row || !ap_setting_give(g->ctx->arena, row, &g->set, text, AP_FROM_OPTION, word, &why))
		die(EXIT_USAGE, ap_arena_printf(g->ctx->arena, "%s %s", word, text));
}

int main(int argc, char **argv)
{
	struct ap_arena *arena = ap_arena_create(0, no_memory, NULL);
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create_like(arena), .jobs = ap_processors(),
		.diag = ap_diag_create(arena, false)};
	struct grid g = {.ctx = &ctx};
	int64_t sample = 0, seed = 1, jobs;
	double headroom = 5;
	int code;

	if (argc < 2 || argc % 2)
		die(EXIT_USAGE, "usage: grid GRAPH [--sample N] [--seed N] [--headroom PERCENT] [--jobs N] "
			"[--SETTING VALUE]...");
	ap_settings_init(&g.set);
	for (int i = 2; i < argc; i += 2) {
		const char *word = argv[i], *text = argv[i + 1];
		bool good = true;

		if (!strcmp(word, "--sample"))
			good = ap_parse_int(text, 1, 1 << 20, &sample);
		else if (!strcmp(word, "--seed"))
			good = ap_parse_int(text, 1, INT64_C(1) << 53, &seed);
		else if (!strcmp(word, "--headroom"))
			good = ap_parse_double(text, &headroom) && headroom >= 0 && headroom < 100;
		else if (!strcmp(word, "--jobs") && ap_parse_int(text, 1, 256, &jobs))
			ctx.jobs = (int)jobs;
		else if (strncmp(word, "--", 2) != 0)
			good = false;
		else
			take(&g, word, text);
		if (!good)
			die(EXIT_USAGE, ap_arena_printf(arena, "%s %s", word, text));
	}
	open_inputs(&g, argv[1], headroom);
	g.own = AP_NEW_N(arena, struct ap_ctx, ctx.jobs);
	for (int w = 0; w < ctx.jobs; w++) {
		g.own[w] = (struct ap_ctx){.arena = ap_arena_create_like(arena),
			.scratch = ap_arena_create_like(arena), .jobs = 1};
		ap_arena_own(arena, g.own[w].arena);
		ap_arena_own(arena, g.own[w].scratch);
	}
	list(&g);
	code = run(&g, sample, (uint64_t)seed);
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(arena);
	return code;
}
