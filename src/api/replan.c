/* SPDX-License-Identifier: Apache-2.0 */
#include "api/replan.h"

#include <string.h>

#include "api/against.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "diff/diff_write.h"

enum { MOST_SETTINGS = 12 /* that are tried one by one */ };

/* What is taken from the new plan. */
struct mix {
	bool graph, machine, settings;
	const char *only; /* a setting; NULL: none */
};

struct replanning {
	struct ap_ctx *ctx;
	const struct ap_settings *asked;
	const struct ap_replan_side *side[2]; /* old, new */
	const char *graph[2], *table[2]; /* files */
	bool same_graph;
	AP_VEC(struct ap_diff_alone) rows;
};

static const struct ap_jv *member(const struct ap_replan_side *s, const char *section, const char *key)
{
	const struct ap_jv *v = ap_jv_get(ap_json_root(s->doc), section);

	return v && key ? ap_jv_get(v, key) : v;
}

static const char *hash_of(const struct ap_replan_side *s, const char *role)
{
	const struct ap_jv *v = member(s, "inputs", role);

	return v && ap_jv_type(v) == AP_JOBJECT ? ap_jv_str(ap_jv_get(v, "sha256")) : NULL;
}

/* Does the mix take a value from the new plan? */
static bool takes_new(const struct replanning *r, const struct mix *mix, const char *section, const char *key)
{
	const char *cause = ap_diff_cause(section, key);

	if (mix->only && !strcmp(key, mix->only)) /* a profile is named by settings and by inputs */
		return true;
	if (!strcmp(section, "settings") && !strcmp(key, "batch") && !r->same_graph)
		return mix->graph;
	return !strcmp(cause, "graph") ? mix->graph
		: !strcmp(cause, "machine") ? mix->machine : mix->settings;
}

static void add_members(const struct replanning *r, const struct mix *mix, const char *section,
	struct ap_jw *w)
{
	ap_jw_kobj(w, section);
	for (int new = 0; new < 2; new++) {
		const struct ap_jv *list = member(r->side[new], section, NULL);

		for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
			if (takes_new(r, mix, section, ap_jv_key(v)) != (bool)new)
				continue;
			ap_jw_key(w, ap_jv_key(v));
			ap_jw_value(w, r->side[new]->doc, v);
		}
	}
	ap_jw_end(w);
}

/* A plan file, as far as its run can be repeated by it. */
static enum ap_status mix_plans(const struct replanning *r, const struct mix *mix, struct ap_json **doc)
{
	const struct ap_replan_side *searched = r->side[mix->settings], *machine = r->side[mix->machine];
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, r->ctx->arena);
	ap_jw_str_init(&w, &text, 0);
	ap_jw_obj(&w);
	ap_jw_key(&w, "tool");
	ap_jw_value(&w, searched->doc, member(searched, "tool", NULL));
	add_members(r, mix, "settings", &w);
	add_members(r, mix, "inputs", &w);
	ap_jw_key(&w, "machine");
	ap_jw_value(&w, machine->doc, member(machine, "machine", NULL));
	ap_jw_key(&w, "search");
	ap_jw_value(&w, searched->doc, member(searched, "search", NULL));
	ap_jw_karr(&w, "operators"); /* those whose cut was given to the search */
	for (const struct ap_jv *v = ap_jv_first(member(searched, "operators", NULL)); v; v = ap_jv_next(v)) {
		const struct ap_jv *given = ap_jv_get(v, "given");

		if (!given || ap_jv_type(given) != AP_JBOOL || !ap_jv_bool(given))
			continue;
		ap_jw_obj_flat(&w);
		ap_jw_kstr(&w, "name", ap_jv_str(ap_jv_get(v, "name")));
		ap_jw_kbool(&w, "given", true);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	return ap_json_parse(r->ctx, ap_json_file(searched->doc), text.s, text.len, 0, doc);
}

static enum ap_status try(struct replanning *r, const struct mix *mix, const char *what)
{
	const struct ap_named named = {{.path = r->graph[mix->graph]}, {.path = r->table[mix->machine]},
		{0}};
	struct ap_diff_alone row = {.what = what};
	struct ap_json *doc;

	AP_TRY(mix_plans(r, mix, &doc));
	AP_TRY(ap_against_repeat(r->ctx, r->asked, doc, r->side[mix->settings]->plan, &named, &row.step_s,
		&row.why));
	AP_PUSH(r->ctx->arena, r->rows, row);
	return AP_OK;
}

static enum ap_status usage(struct ap_ctx *ctx, const char *text)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s", text);
}

static enum ap_status name_files(struct replanning *r)
{
	const struct ap_settings *set = r->asked;
	const char *was = hash_of(r->side[0], "graph"), *is = hash_of(r->side[1], "graph");

	r->same_graph = was && is && !strcmp(was, is);
	r->graph[1] = set->graph;
	r->graph[0] = set->old_graph ? set->old_graph : r->same_graph ? set->graph : NULL;
	if (!r->graph[1])
		return usage(r->ctx, "--old-graph needs --graph FILE, the new plan's graph");
	if (!r->graph[0])
		return usage(r->ctx, "the plans are of two graphs; expected --old-graph FILE as well");
	was = hash_of(r->side[0], "rank_table");
	is = hash_of(r->side[1], "rank_table");
	r->table[1] = is ? set->rank_table : NULL;
	r->table[0] = !was ? NULL : set->old_rank_table ? set->old_rank_table
		: is && !strcmp(was, is) ? set->rank_table : NULL;
	return AP_OK;
}

enum ap_status ap_replan(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_replan_side *old,
	const struct ap_replan_side *new, struct ap_diff *d)
{
	struct replanning r = {.ctx = ctx, .asked = set, .side = {old, new}};
	bool graph = false, machine = false;
	uint32_t nsetting = 0;

	if (!set->graph && !set->old_graph) {
		if (set->rank_table || set->old_rank_table)
			return usage(ctx, "a rank table needs --graph FILE beside it");
		if (ap_setting_given(set, AP_SET_chip) || ap_setting_given(set, AP_SET_software))
			return usage(ctx, "a profile needs --graph FILE beside it");
		return AP_OK;
	}
	if (!old->doc || !new->doc)
		return usage(ctx,
			"--graph compares plans; a strategy checkpoint does not tell what it was made from");
	AP_TRY(name_files(&r));
	for (uint32_t i = 0; i < d->nfigure; i++) {
		const struct ap_diff_figure *f = &d->figure[i];
		const char *cause = f->changed ? ap_diff_cause(f->section, f->key) : NULL;

		graph |= cause && !strcmp(cause, "graph");
		machine |= cause && !strcmp(cause, "machine");
		nsetting += cause && !strcmp(cause, "settings") && !strcmp(f->section, "settings");
	}
	ap_ctx_phase(ctx, "planning");
	AP_TRY(try(&r, &(struct mix){0}, "nothing, by this version"));
	if (graph)
		AP_TRY(try(&r, &(struct mix){.graph = true}, "graph"));
	if (machine)
		AP_TRY(try(&r, &(struct mix){.machine = true}, "machine"));
	if (nsetting)
		AP_TRY(try(&r, &(struct mix){.settings = true}, "settings"));
	for (uint32_t i = 0; i < d->nfigure && nsetting > 1 && nsetting <= MOST_SETTINGS; i++) {
		const struct ap_diff_figure *f = &d->figure[i];

		if (f->changed && f->is && !strcmp(f->section, "settings") &&
			!strcmp(ap_diff_cause(f->section, f->key), "settings"))
			AP_TRY(try(&r, &(struct mix){.only = f->key},
				ap_arena_printf(ctx->arena, "settings: %s", ap_diff_label(ctx, f->key))));
	}
	if (graph + machine + (nsetting > 0) > 1)
		AP_TRY(try(&r, &(struct mix){.graph = true, .machine = true, .settings = true}, "all of it"));
	d->nalone = (uint32_t)r.rows.n;
	d->alone = r.rows.v;
	return AP_OK;
}
