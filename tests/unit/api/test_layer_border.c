/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over borders at least, told by a plan of one stage, against what plans of several stages send. */
#include <inttypes.h>
#include <math.h>

#include "api/layer_border.h"
#include "expert_test.h"
#include "plan/blocks.h"
#include "plan/whole_step.h"
#include "unit.h"

struct sent { /* the least of a plan */
	double there_s, back_s, once_s, once_back_s;
};

static void look_at(struct ap_ctx *ctx, const struct ap_plan *p, struct sent *out)
{
	struct ap_whole_step w;

	*out = (struct sent){INFINITY, INFINITY, 0, 0};
	ap_whole_step_make(ctx, p, false, &w);
	ck_assert_uint_gt(w.timeline->nsend, 0);
	for (uint32_t i = 0; i < w.timeline->nsend; i++) {
		const struct ap_send_time *s = &w.timeline->send[i];
		double *least = s->from_part < s->to_part ? &out->there_s : &out->back_s;

		*least = fmin(*least, s->end_s - s->start_s);
	}
	for (size_t i = 0; i < w.sends.n; i++)
		*(w.sends.v[i].from < w.sends.v[i].to ? &out->once_s : &out->once_back_s) +=
			w.sends.v[i].end_s - w.sends.v[i].start_s;
}

/* Sends of plans of one segment by what the last layer in front of a border leaves: no less, and as long over the
 * fastest link, that of stage `fast`. */
static void compare(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_layer_border *border,
	uint32_t fast)
{
	uint32_t count[16] = {0}, seen = 0; /* layers in front of the end of each stage */
	struct ap_whole_step w;

	for (ap_id i = 0; i < p->graph->nnode; i++) {
		uint32_t before = (uint32_t)(p->blocks->layer[p->blocks->of[i]] + 1);

		for (uint32_t s = (uint32_t)p->graph->node[i].stage; s < p->machine->nstage; s++)
			count[s] = before > count[s] ? before : count[s];
	}
	ap_whole_step_make(ctx, p, false, &w);
	for (uint32_t i = 0; i < w.timeline->nsend; i++) {
		const struct ap_send_time *s = &w.timeline->send[i];
		bool there = s->from_part < s->to_part;
		uint32_t part = (uint32_t)(there ? s->from_part : s->to_part);
		const struct ap_partition_border *b = &border->behind[count[part] ? count[part] - 1
			: p->blocks->nlayer];
		double took_s = s->end_s - s->start_s, least_s = there ? b->send_s : b->send_back_s;

		ck_assert_msg(took_s >= least_s * (1 - 1e-9), "part %" PRIu32 ": %.17g, at least %.17g", part,
			took_s, least_s);
		ck_assert_msg(part != fast || took_s <= least_s * (1 + 1e-9), "%.17g, at least %.17g, behind %" PRIu32,
			took_s, least_s, count[part]);
		seen += part == fast;
	}
	ck_assert_uint_gt(seen, 0);
}

/* Of the same network in one stage, on the devices of a stage. */
static void tell(const struct expert_case *c, const struct ap_machine *staged, bool scattered,
	struct ap_partition_border *behind, struct ap_layer_border *out)
{
	struct expert_case one = *c;
	uint32_t *row_of, next = 0;
	struct ap_hybrid h;
	struct fixture f;
	struct ap_plan p;

	one.devices /= c->hybrid.pp;
	one.hybrid.pp = one.hybrid.vpp = 1;
	expert_plan(&f, &one, &h, &p);
	row_of = AP_NEW_N(f.ctx.arena, uint32_t, p.blocks->n);
	for (uint32_t b = 0; b < p.blocks->n; b++) {
		row_of[b] = p.blocks->layer[b] >= 0 ? next++ : next == 0 ? p.blocks->nlayer
			: next == p.blocks->nlayer ? next + 1 : next;
		ck_assert(p.blocks->layer[b] < 0 || p.blocks->layer[b] == (int32_t)row_of[b]);
	}
	ap_layer_border_make(&f.ctx, &p, row_of, p.blocks->nlayer, staged, scattered, behind, out);
	fixture_close(&f);
}

static void as_mindspore(struct fixture *f)
{
	f->step.executor = AP_EXECUTOR_MINDSPORE;
}

static void as_generic(struct fixture *f)
{
	f->step.executor = AP_EXECUTOR_GENERIC;
}

/* Stages of half a server, of one, of two; a table of words that the head shares, and none. */
static const struct expert_case cases[] = {
	{"gpt3_1.3b", 16, 2, {.dp = 2, .tp = 2, .pp = 4}, NULL, NULL, as_generic},
	{"gpt3_1.3b", 16, 2, {.dp = 2, .tp = 2, .pp = 4, .sp = true}, NULL, NULL, as_generic},
	{"gpt3_1.3b", 16, 4, {.dp = 8, .pp = 2, .vpp = 3}, NULL, NULL, as_mindspore},
	{"gpt3_1.3b", 32, 2, {.dp = 4, .tp = 4, .pp = 2}, NULL, NULL, as_mindspore},
	{"llama2_7b", 16, 4, {.dp = 2, .tp = 2, .pp = 4, .vpp = 2, .sp = true}, NULL, NULL, as_generic},
	{"llama2_7b", 16, 4, {.dp = 2, .tp = 4, .pp = 2, .pp_scatter = true}, NULL, NULL, as_generic},
};

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(a, b);
}

START_LOOP_TEST(it_is_the_least_that_plans_send, AP_COUNT(cases))
{
	const struct expert_case *c = &cases[_i];
	bool scattered = c->hybrid.sp || c->hybrid.pp_scatter;
	struct ap_partition_border behind[64];
	struct ap_layer_border least, other;
	struct sent sent;
	struct ap_hybrid h;
	struct fixture f;
	struct ap_plan p;

	expert_plan(&f, c, &h, &p);
	look_at(&f.ctx, &p, &sent);
	tell(c, f.machine, scattered, behind, &least);
	ck_assert_msg(near(least.send_s, sent.there_s), "%.17g, sent %.17g", least.send_s, sent.there_s);
	ck_assert_msg(near(least.send_back_s, sent.back_s), "%.17g, sent %.17g", least.send_back_s, sent.back_s);
	ck_assert_msg(near(least.once_s, sent.once_s), "%.17g, sent %.17g", least.once_s, sent.once_s);
	ck_assert((least.once_s > 0) == (strncmp(c->model, "gpt3", 4) == 0));
	/* What comes back is exchanged, where there are others to exchange it with. */
	ck_assert(least.once_back_s >= sent.once_back_s * (1 - 1e-9));
	ck_assert((least.once_back_s > sent.once_back_s * (1 + 1e-9)) == (least.once_s > 0));
	for (uint32_t i = 0; i <= p.blocks->nlayer; i++)
		ck_assert(behind[i].send_s >= least.send_s && behind[i].send_back_s >= least.send_back_s);
	tell(c, f.machine, true, behind, &other); /* parts of it are never more */
	ck_assert(other.send_s <= least.send_s * (1 + 1e-12));
	ck_assert((other.send_s < least.send_s * (1 - 1e-9)) == (h.tp > 1 && !scattered));
	fixture_close(&f);
}
END_TEST

/* Of layers that leave less and less. */
static const struct expert_case narrowing[] = {
	{"resnet50", 16, 2, {.dp = 4, .pp = 4}, NULL, NULL, as_generic},
	{"resnet50_imagenet", 16, 2, {.dp = 8, .pp = 2}, NULL, NULL, as_generic},
};

START_LOOP_TEST(each_border_sends_what_its_layer_leaves, AP_COUNT(narrowing))
{
	const struct expert_case *c = &narrowing[_i];
	struct ap_partition_border behind[64];
	struct ap_layer_border border;
	struct ap_hybrid h;
	struct fixture f;
	struct ap_plan p;

	expert_plan(&f, c, &h, &p);
	tell(c, f.machine, false, behind, &border);
	compare(&f.ctx, &p, &border, 0);
	ck_assert(behind[0].send_s > border.send_s * (1 + 1e-9));
	fixture_close(&f);
}
END_TEST
