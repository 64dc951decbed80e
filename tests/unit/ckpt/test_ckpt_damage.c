/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints of which one number or one name is changed, each in turn: with the graph every change is
 * found, but of the values that mean nothing there.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_match.h"
#include "fixture.h"
#include "harness.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "shard/space.h"

/* Of a model; fewer for programs with sanitizers. */
static uint32_t most_changes(void)
{
	return getenv("AP_QUICK") ? 400 : 1500;
}

/* What the file means nothing by: how often strategies were saved, and an attribute of the operator. */
static bool means_nothing(const char *key)
{
	return strcmp(key, "current_stage") == 0 || strcmp(key, "field") == 0;
}

struct damage {
	struct fixture f;
	const char *text;
	int64_t tried, nothing, alike;
};

static bool passes(struct damage *d, const char *text, size_t len)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL),
		.scratch = ap_arena_create(0, NULL, NULL), .jobs = 1};
	const int32_t *const *counts;
	struct ap_ckpt c;
	bool ok;

	ctx.diag = ap_diag_create(ctx.arena, false);
	ok = ap_ckpt_read(&ctx, "a.json", text, len, true, &c) == AP_OK &&
		ap_ckpt_counts(&ctx, &c, d->f.graph, d->f.machine->ndev, &d->f.step, &counts) == AP_OK;
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
	return ok;
}

/* The text with [from, to) replaced. */
static void change(struct damage *d, size_t from, size_t to, const char *by, const char *key)
{
	struct ap_mark mark = ap_arena_mark(d->f.ctx.arena);
	struct ap_str s;

	ap_str_init(&s, d->f.ctx.arena);
	ap_str_addn(&s, d->text, from);
	ap_str_add(&s, by);
	ap_str_add(&s, d->text + to);
	/* An operand that is no parameter has no layout there: ranks that repeat one part may hold two as well. */
	if (means_nothing(key))
		d->nothing++;
	else if (strcmp(key, "parallel_strategy") == 0 && passes(d, s.s, s.len))
		d->alike++;
	else
		ck_assert_msg(!passes(d, s.s, s.len), "\"%s\": %.*s may be %s: ..%.*s..", key, (int)(to - from),
			d->text + from, by, 60, d->text + (from > 60 ? from - 60 : 0));
	d->tried++;
	ap_arena_release(d->f.ctx.arena, mark);
}

/* Every number one more, one less and doubled; every last letter of a name another. */
static void change_all(struct damage *d, uint32_t every)
{
	char key[128] = "", by[32];
	uint32_t n = 0;

	for (size_t i = 0; d->text[i]; i++) {
		size_t from = i;

		if (d->text[i] == '"') {
			for (i++; d->text[i] != '"'; i++)
				;
			snprintf(key, sizeof key, "%.*s", (int)(i - from - 1), d->text + from + 1);
			if (strchr(key, '.') && n++ % every == 0) {
				by[0] = d->text[i - 1] == 'x' ? 'y' : 'x';
				by[1] = '\0';
				change(d, i - 1, i, by, "name");
			}
		} else if (isdigit((unsigned char)d->text[i]) || d->text[i] == '-') {
			int64_t v = strtoll(d->text + i, NULL, 10);
			const int64_t other[] = {v + 1, v - 1, 2 * v};

			while (d->text[i + 1] && isdigit((unsigned char)d->text[i + 1]))
				i++;
			for (int k = 0; k < 3 && n % every == 0; k++) {
				snprintf(by, sizeof by, "%" PRId64, other[k]);
				if (other[k] != v)
					change(d, from, i + 1, by, key);
			}
			n++;
		}
	}
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

/* Any candidate of an operator, whole for those that share a parameter. */
static const int32_t **draw(struct fixture *f, uint64_t *random)
{
	const int32_t **counts = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);
	int32_t *ones = AP_NEW_N(f->ctx.arena, int32_t, AP_MAX_FACTOR);

	for (int i = 0; i < AP_MAX_FACTOR; i++)
		ones[i] = 1;
	for (ap_id i = 0; i < f->graph->nnode; i++) {
		struct ap_space space;

		ap_space_make(&f->ctx, &f->graph->node[i].bound, f->machine->ndev, &f->step, &space);
		counts[i] = &space.count[next_random(random) % space.n * space.nfactor];
	}
	for (ap_id i = 0; i < f->graph->ntensor; i++)
		for (uint32_t u = 0; f->graph->tensor[i].nuse > 1 && u < f->graph->tensor[i].nuse; u++)
			if (f->graph->tensor[i].kind == AP_TENSOR_PARAM)
				counts[f->graph->tensor[i].use[u].node] = ones;
	return counts;
}

static const struct {
	const char *model;
	bool sharded;
} rows[] = {{"multiple_mix", false}, {"multiple_mix", true}, {"gpt3_1.3b", true}, {"bert_large", false}, {"vit_l", true}};

START_LOOP_TEST(changes_are_found, AP_COUNT(rows))
{
	const char *seed = getenv("AP_SEED");
	uint64_t random = seed ? strtoull(seed, NULL, 10) + 1 : 7;
	struct damage d = {0};
	struct ap_plan plan;
	struct ap_ckpt c;
	struct ap_str s;
	uint32_t values = 0;
	char *text;
	size_t len;

	fixture_open(&d.f, 8, 8, "ascend910b3");
	d.f.step.optimizer_sharding = rows[_i].sharded;
	d.f.step.shard_threshold_bytes = 0;
	ck_assert_int_eq(ap_file_read(&d.f.ctx, ap_arena_printf(d.f.ctx.arena, AP_SOURCE_ROOT "/models/%s.json",
		rows[_i].model), AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	fixture_graph(&d.f, text);
	ap_plan_make(&d.f.ctx, d.f.graph, d.f.machine, &d.f.step, draw(&d.f, &random), INT64_C(1) << 34, &plan);
	ap_ckpt_of_plan(&d.f.ctx, &plan, false, &c);
	ap_str_init(&s, d.f.ctx.arena);
	ap_ckpt_write_json(&c, ap_str_take, &s);
	d.text = s.s;
	ck_assert(passes(&d, s.s, s.len));
	for (size_t i = 0; i < s.len; i++)
		values += s.s[i] == ',' || s.s[i] == ':';
	change_all(&d, 1 + 3 * values / most_changes());
	printf("%s: %" PRId64 " changes, %" PRId64 " of values without meaning, %" PRId64 " strategies of the same "
		"layouts\n", rows[_i].model, d.tried, d.nothing, d.alike);
	ck_assert_int_le(100 * d.alike, d.tried);
	fixture_close(&d.f);
}
END_TEST
