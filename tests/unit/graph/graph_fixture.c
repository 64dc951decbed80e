/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_fixture.h"

#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

struct ap_ctx ctx;

void fixture_setup(void)
{
	ctx = (struct ap_ctx){.jobs = 1};
	ctx.arena = ap_arena_create(0, NULL, NULL);
	ctx.scratch = ap_arena_create(0, NULL, NULL);
	ctx.diag = ap_diag_create(ctx.arena, false);
}

void fixture_teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

enum ap_status load_text(const char *json, const struct ap_graph_params *params,
	const struct ap_graph **g)
{
	static const struct ap_graph_params plain;
	struct ap_json *doc;

	*g = NULL;
	AP_TRY(ap_json_parse(&ctx, "g.json", json, strlen(json), 0, &doc));
	return ap_graph_load(&ctx, doc, "00", params ? params : &plain, g);
}

const char *messages(void)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_diag_render(ctx.diag, AP_NOTE, 100, &s);
	return s.s;
}

const struct ap_graph *load_ok(const char *json)
{
	const struct ap_graph *g;

	ck_assert_msg(load_text(json, NULL, &g) == AP_OK, "%s", messages());
	return g;
}

const struct ap_node *node_of(const struct ap_graph *g, const char *name)
{
	for (uint32_t i = 0; i < g->nnode; i++)
		if (strcmp(g->node[i].name, name) == 0)
			return &g->node[i];
	ck_abort_msg("no operator %s", name);
	return NULL;
}

const struct ap_tensor *tensor_of(const struct ap_graph *g, const char *name)
{
	for (uint32_t i = 0; i < g->ntensor; i++)
		if (strcmp(g->tensor[i].name, name) == 0)
			return &g->tensor[i];
	ck_abort_msg("no tensor %s", name);
	return NULL;
}

const char *shape_of(const struct ap_graph *g, const char *tensor)
{
	const struct ap_shape *s = &tensor_of(g, tensor)->shape;
	struct ap_str text;

	ap_str_init(&text, ctx.arena);
	ap_str_addc(&text, '[');
	for (uint8_t i = 0; i < s->rank; i++)
		ap_str_addf(&text, "%s%" PRId64, i ? "," : "", s->dim[i]);
	ap_str_addc(&text, ']');
	return text.s;
}
