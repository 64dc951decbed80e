/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Micro-batches are parts of the batch: on one rank, what an operator makes of one is the part, at the place
 * that the graph says, of what it makes of the whole; and the gradients of parameters add up.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "graph/graph.h"
#include "fixture.h"
#include "harness.h"
#include "program.h"
#include "random_graph.h"

enum { OPERATORS = 10, MOST_ELEMENTS = 6000 };

struct halves { /* the same step in one part and in several */
	struct fixture f;
	struct ex_world w;
	int64_t parts;
	struct ex_graph_truth whole, micro;
	uint64_t compared, alone; /* tensors of the batch; those that hold for all samples */
};

/* The graph, told of so many micro-batches; false where it is said that they change the result. */
static bool load(struct halves *h, const char *text)
{
	char *json = ap_arena_strdup(h->f.ctx.arena, text);
	const struct ap_graph_params params = {.micro_batches = h->parts};
	struct ap_json *doc;
	const char *check;
	enum ap_level level;

	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	ck_assert_int_eq(ap_json_parse(&h->f.ctx, "graph.json", json, strlen(json), 0, &doc), AP_OK);
	if (ap_graph_load(&h->f.ctx, doc, "", &params, &h->f.graph) != AP_OK)
		return false;
	for (size_t i = 0; ap_diag_text(h->f.ctx.diag, i, &level, &check); i++)
		if (check && strcmp(check, "batch-mixed") == 0)
			return false;
	return h->f.graph->batch % h->parts == 0;
}

static void must_equal(const struct ap_tensor *t, const struct ex_tensor *a, const struct ex_tensor *b,
	const char *what)
{
	ck_assert_int_eq(ex_count(&a->box), ex_count(&b->box));
	for (int64_t i = 0; i < ex_count(&a->box); i++)
		ck_assert_msg(a->v[i] == b->v[i], "%s of \"%s\" at %" PRId64, what, t->name, i);
}

/* Is the value of a result not compared? */
static bool is_opaque(const struct ap_graph *g, const struct ap_tensor *t)
{
	const struct ex_kernel *k = t->kind == AP_TENSOR_ACT ? ex_kernel_find(g->node[t->producer].type)
		: NULL;

	return k && (k->opaque >> t->result & 1);
}

/* Does a tensor without the batch come from one that has it (a sum over the samples)? */
static bool is_of_all(const struct ap_graph *g, const struct ap_tensor *t)
{
	const struct ap_node *n;

	if (t->kind != AP_TENSOR_ACT)
		return t->kind == AP_TENSOR_INPUT;
	n = &g->node[t->producer];
	for (int i = 0; i < n->bound.nin; i++)
		if (g->tensor[n->in[i]].batch || is_of_all(g, &g->tensor[n->in[i]]))
			return true;
	return false;
}

static void compare_values(struct halves *h)
{
	const struct ap_graph *g = h->f.graph;

	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];
		bool all = !t->batch && is_of_all(g, t);

		for (int64_t b = 0; b < h->parts && !all && !is_opaque(g, t); b++) {
			const struct ex_tensor *got = &h->micro.batch[b].value[i];
			struct ex_tensor want = h->whole.batch[0].value[i];

			if (!want.v)
				continue;
			if (t->batch)
				want = ex_micro_part(h->f.ctx.arena, t, &want, h->parts, b);
			must_equal(t, got, &want, "value");
			h->compared += t->batch != 0;
			h->alone += !t->batch;
		}
	}
}

/* A mean over the batch is that of the micro-batches' means; a sum is their sum. */
static void compare_gradients(const struct halves *h)
{
	const struct ap_graph *g = h->f.graph;
	uint64_t part = ex_inverse((uint64_t)h->parts);
	bool sum = true, mean = true;

	if (g->loss == AP_NONE)
		return;
	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ex_tensor *a = &h->whole.param_grad[i], *b = &h->micro.param_grad[i];

		for (int64_t k = 0; a->v && k < ex_count(&a->box); k++) {
			sum &= a->v[k] == b->v[k];
			mean &= a->v[k] == ex_mul(part, b->v[k]);
		}
	}
	ck_assert_msg(sum || mean, "gradients of %s in %" PRId64 " parts", g->name, h->parts);
}

/* False where the graph does not go in so many parts. */
static bool try_parts(const struct ex_graph_sample *sample, int64_t parts, uint64_t seed)
{
	struct halves h = {.parts = parts};
	struct ap_step step;
	bool good;

	fixture_open(&h.f, 2, 4, "ascend910b");
	h.w = (struct ex_world){.ctx = &h.f.ctx, .ndev = 1};
	good = load(&h, sample->text) && !ex_graph_lacks(h.f.graph);
	if (good) {
		step = h.f.step;
		ck_assert(ex_graph_truth_make(&h.w, h.f.graph, &step, seed, &h.whole));
		step.micro_batches = parts;
		ck_assert(ex_graph_truth_of_parts(&h.w, h.f.graph, &step, seed, &h.whole, &h.micro));
		compare_values(&h);
		compare_gradients(&h);
		printf("%s in %" PRId64 " parts: %" PRIu64 " tensors of the batch, %" PRIu64 " others\n",
			sample->name, parts, h.compared, h.alone);
		ck_assert_uint_gt(h.compared, 0);
	}
	fixture_close(&h.f);
	return good;
}

START_TEST(parts_are_parts_of_the_whole)
{
	uint64_t seed = ex_seed("parts_are_parts_of_the_whole");
	const struct ex_graph_sample *s;
	int tried[5] = {0};

	for (size_t i = 0; (s = ex_graph_at(i)); i++)
		for (int64_t parts = 2; parts <= 4; parts++)
			tried[parts] += try_parts(s, parts, seed);
	ck_assert_int_ge(tried[2], 15);
	ck_assert_int_ge(tried[3], 10);
	ck_assert_int_ge(tried[4], 10);
}
END_TEST

START_TEST(all_of_an_inner_batch_is_tried)
{
	const struct ex_graph_sample *s;

	for (size_t i = 0; (s = ex_graph_batch_at(i)); i++)
		for (int64_t parts = 2; parts <= 6; parts++)
			if (parts != 5)
				ck_assert(try_parts(s, parts, 1 + (uint64_t)parts));
}
END_TEST

/* Small enough, no operand left out before another one, and nothing that is drawn anew for each run. */
static bool is_fit(const struct ap_graph *g, const char *text)
{
	for (ap_id t = 0; t < g->ntensor; t++)
		if (ap_tensor_bytes(&g->tensor[t]) > MOST_ELEMENTS * ap_dtype_bytes(g->tensor[t].shape.dtype))
			return false;
	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].bound.flops > 40 * MOST_ELEMENTS || strstr(g->node[i].type, "Drop"))
			return false;
	return !ex_graph_lacks(g) && !strstr(text, "null");
}

/* False where the graph is not tried. */
static bool try_random(uint64_t seed)
{
	struct halves h = {.parts = 2 + (int64_t)(seed % 3)};
	uint64_t state = 1 + ex_hash(seed, 0) / 2;
	struct random_graph text;
	struct ap_step step;
	bool good;

	fixture_open(&h.f, 2, 4, "ascend910b");
	h.w = (struct ex_world){.ctx = &h.f.ctx, .ndev = 1};
	random_graph(&h.f.ctx, &state, OPERATORS, &text);
	step = h.f.step;
	step.training = false;
	good = load(&h, text.text) && is_fit(h.f.graph, text.text) &&
		ex_graph_truth_make(&h.w, h.f.graph, &step, seed, &h.whole);
	step.micro_batches = h.parts;
	if (good) {
		printf("AP_SEED=%" PRIu64 " AP_CASES=1 in %" PRId64 " parts: %s\n", seed, h.parts,
			text.text);
		fflush(stdout);
		ck_assert(ex_graph_truth_of_parts(&h.w, h.f.graph, &step, seed, &h.whole, &h.micro));
		compare_values(&h);
	}
	fixture_close(&h.f);
	return good && h.compared > 0;
}

START_TEST(random_parts_are_parts_of_the_whole)
{
	uint64_t seed = ex_seed("random_parts_are_parts_of_the_whole"), n = ex_cases(600), tried = 0;

	for (uint64_t i = 0; i < n; i++)
		tried += try_random(seed + i);
	printf("%" PRIu64 " of %" PRIu64 " graphs\n", tried, n);
	ck_assert(n < 100 || tried > n / 30);
}
END_TEST
