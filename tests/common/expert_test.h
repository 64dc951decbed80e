/* SPDX-License-Identifier: Apache-2.0 */
/* Bundled models with a hybrid, in a pipeline: what the tests of experts' words share. */
#ifndef AP_TEST_EXPERT_TEST_H
#define AP_TEST_EXPERT_TEST_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "cost/optimizer.h"
#include "drive/expert.h"
#include "fixture.h"
#include "pipeline/schedule.h"
#include "pipeline/stages.h"
#include "plan/make.h"
#include "plan/plan.h"

struct expert_case {
	const char *model; /* bundled */
	int64_t devices, micro_batches; /* all of them; 0: one */
	struct ap_hybrid hybrid; /* numbers that are not given: 1, dp what is left */
	const char *scheduler; /* NULL: 1f1b, or interleaved where vpp is above 1 */
	const char *config; /* stages of cells; NULL: cut by cost */
	void (*tune)(struct fixture *f); /* the step; NULL */
};

static inline void expert_model(struct fixture *f, const char *name)
{
	char path[512], *text;
	size_t len;

	snprintf(path, sizeof path, "%s/models/%s.json", AP_SOURCE_ROOT, name);
	ck_assert_int_eq(ap_file_read(&f->ctx, path, AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	fixture_graph(f, text);
}

/* Deals machine and graph to the stages. */
static inline void expert_stages(struct fixture *f, const struct expert_case *c, const struct ap_hybrid *h)
{
	const char *name = c->scheduler ? c->scheduler : h->vpp > 1 ? "interleaved" : "1f1b";
	struct ap_stages_request rq = {.graph = f->graph, .step = &f->step, .nstage = (int32_t)h->pp,
		.nsegment = (int32_t)h->vpp, .scheduler = ap_scheduler_find(name), .layers = h->layers};
	const struct ap_spot *spot;
	struct ap_json *doc;

	if (h->pp > 1)
		ap_machine_staged(&f->ctx, f->machine, (uint32_t)h->pp, &f->machine);
	ap_schedule_pipe(&f->ctx, rq.scheduler, rq.nstage, rq.nsegment, f->step.micro_batches, &f->pipe);
	f->step.pipe = &f->pipe;
	rq.machine = f->machine;
	if (c->config) {
		ck_assert_int_eq(ap_json_parse(&f->ctx, "stages", c->config, strlen(c->config), 0, &doc),
			AP_OK);
		rq.doc = doc;
		rq.config = ap_json_root(doc);
	}
	ck_assert_int_eq(ap_stages_make(&f->ctx, &rq, &spot, NULL), AP_OK);
	if (h->pp * h->vpp > 1)
		ap_graph_staged(&f->ctx, f->graph, spot, &f->graph);
}

/* Graph, machine and step of a case, without a plan; *h its hybrid, filled. */
static inline void expert_open(struct fixture *f, const struct expert_case *c, struct ap_hybrid *h)
{
	fixture_open(f, c->devices, 8, "a100-80");
	expert_model(f, c->model);
	f->step.optimizer = ap_optimizer_find("adam_weight_decay");
	f->step.micro_batches = c->micro_batches ? c->micro_batches : 1;
	if (c->tune)
		c->tune(f);
	*h = c->hybrid;
	ck_assert_int_eq(ap_hybrid_fill(&f->ctx, c->devices, h), AP_OK);
	h->micro_batches = f->step.micro_batches;
	h->mbs = f->graph->batch / (h->dp * h->micro_batches);
	expert_stages(f, c, h);
}

/* And the plan of the hybrid. */
static inline void expert_plan(struct fixture *f, const struct expert_case *c, struct ap_hybrid *h,
	struct ap_plan *p)
{
	const char *why = "";
	const int32_t *const *counts;

	expert_open(f, c, h);
	f->graph = ap_hybrid_deal(&f->ctx, f->graph, f->machine->ndev, &f->step, h, &why);
	ck_assert_msg(f->graph != NULL, "%s", why);
	counts = ap_hybrid_counts(&f->ctx, f->graph, f->machine->ndev, &f->step, h, &why);
	ck_assert_msg(counts != NULL, "%s", why);
	ap_plan_make(&f->ctx, f->graph, f->machine, &f->step, counts, INT64_C(1) << 50, p);
}

#endif
