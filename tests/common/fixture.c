/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "cost/optimizer.h"
#include "graph/graph.h"
#include "shard/imposed.h"

static void fail_on_messages(struct fixture *f)
{
	struct ap_str text;

	if (ap_diag_status(f->ctx.diag) == AP_OK)
		return;
	ap_str_init(&text, f->ctx.arena);
	ap_diag_render(f->ctx.diag, AP_ERROR, 20, &text);
	ck_abort_msg("%s", text.s);
}

void fixture_open(struct fixture *f, int64_t ndev, int64_t per_server, const char *chip)
{
	const struct ap_topo *topo;
	const struct ap_chip *profile;
	static const struct ap_step step = AP_STEP_DEFAULT;

	memset(f, 0, sizeof *f);
	f->ctx.arena = ap_arena_create(0, NULL, NULL);
	f->ctx.scratch = ap_arena_create(0, NULL, NULL);
	f->said = ap_arena_create(0, NULL, NULL);
	f->ctx.diag = ap_diag_create(f->said, false);
	f->ctx.jobs = 1;
	f->step = step;
	f->step.optimizer = ap_optimizer_find("adam");
	ck_assert(ap_software_get(&f->ctx, "mindspore", &f->step.software) == AP_OK);
	ck_assert(ap_topo_make(&f->ctx, ndev, per_server, &topo) == AP_OK);
	ck_assert(ap_chip_get(&f->ctx, chip, &profile) == AP_OK);
	ck_assert(ap_machine_make(&f->ctx, topo, profile, &f->machine) == AP_OK);
	fail_on_messages(f);
}

void fixture_in_flight(struct fixture *f, int64_t n)
{
	f->in_flight = n;
	f->pipe = (struct ap_pipe){.nstage = 1, .nsegment = 1, .in_flight = &f->in_flight};
	f->step.pipe = &f->pipe;
}

void fixture_close(struct fixture *f)
{
	ap_arena_destroy(f->ctx.scratch);
	ap_arena_destroy(f->ctx.arena);
	ap_arena_destroy(f->said);
}

void fixture_graph(struct fixture *f, const char *text)
{
	char *json = ap_arena_strdup(f->ctx.arena, text);
	struct ap_graph_params params = {.inference = !f->step.training};
	struct ap_json *doc;

	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	if (ap_json_parse(&f->ctx, "graph.json", json, strlen(json), 0, &doc) == AP_OK)
		ap_graph_load(&f->ctx, doc, "", &params, &f->graph);
	fail_on_messages(f);
}

void fixture_impose(struct fixture *f)
{
	f->graph = ap_graph_imposed(&f->ctx, f->graph, f->machine->ndev, &f->step);
}

ap_id fixture_node(const struct fixture *f, const char *name)
{
	for (ap_id i = 0; i < f->graph->nnode; i++)
		if (strcmp(f->graph->node[i].name, name) == 0)
			return i;
	ck_abort_msg("no operator %s", name);
	return AP_NONE;
}

void fixture_counts(const struct fixture *f, ap_id node, const char *text,
	int32_t count[AP_MAX_FACTOR])
{
	const struct ap_bound *b = &f->graph->node[node].bound;

	for (int i = 0; i < AP_MAX_FACTOR; i++)
		count[i] = 1;
	for (const char *c = text; *c;) {
		int i = 0;

		while (i < b->nfactor && b->factor[i].letter != *c)
			i++;
		ck_assert_msg(i < b->nfactor && c[1] == '=', "no factor %c", *c);
		count[i] = (int32_t)strtol(c + 2, (char **)&c, 10);
		while (*c == ' ')
			c++;
	}
}
