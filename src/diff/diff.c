/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/diff.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "diff/diff_parts.h"

struct figures {
	struct ap_diff_figure *v;
	size_t n, cap;
};

/* How a result came about; a new version that plans the same is no difference. */
static bool is_noted(const struct ap_saved_fact *f)
{
	return !strcmp(f->section, "tool") ||
		(!strcmp(f->section, "search") && !strcmp(f->key, "work"));
}

/* Facts by section, key and, of those that come several times, which time: ids are indices. */
static const struct ap_map *index_facts(struct ap_ctx *ctx, const struct ap_saved *s)
{
	struct ap_map *m = ap_map_create(ctx->scratch), *times = ap_map_create(ctx->scratch);
	uint32_t *seen = AP_NEW_N(ctx->scratch, uint32_t, s->nfact);
	struct ap_str key;

	ap_str_init(&key, ctx->scratch);
	for (uint32_t i = 0; i < s->nfact; i++) {
		uint32_t time;

		key.len = 0;
		ap_str_add(&key, s->fact[i].section);
		ap_str_addc(&key, '\0');
		ap_str_add(&key, s->fact[i].key);
		time = seen[ap_map_put(times, key.s, key.len, NULL)]++;
		ap_str_addn(&key, (const char *)&time, sizeof time);
		ap_map_put(m, key.s, key.len, NULL);
	}
	return m;
}

static void set_was(struct ap_diff_figure *f, const struct ap_saved_fact *fact)
{
	f->was = fact->json;
	f->was_number = fact->is_number ? fact->number : NAN;
}

static void set_is(struct ap_diff_figure *f, const struct ap_saved_fact *fact)
{
	f->is = fact->json;
	f->is_number = fact->is_number ? fact->number : NAN;
}

static struct ap_diff_figure new_figure(const struct ap_saved_fact *fact)
{
	return (struct ap_diff_figure){.section = fact->section, .key = fact->key,
		.was_number = NAN, .is_number = NAN, .noted = is_noted(fact)};
}

static void add_section(struct ap_diff_task *t, const char *section, const ap_id *partner,
	const bool *known, struct figures *out)
{
	const struct ap_saved *was = t->was, *is = t->is;

	for (uint32_t i = 0; i < was->nfact; i++) {
		struct ap_diff_figure f = new_figure(&was->fact[i]);

		if (strcmp(was->fact[i].section, section) != 0)
			continue;
		set_was(&f, &was->fact[i]);
		if (partner[i] != AP_NONE)
			set_is(&f, &is->fact[partner[i]]);
		f.changed = !f.is || strcmp(f.was, f.is) != 0;
		AP_PUSH(t->ctx->arena, *out, f);
	}
	for (uint32_t i = 0; i < is->nfact; i++) {
		struct ap_diff_figure f = new_figure(&is->fact[i]);

		if (known[i] || strcmp(is->fact[i].section, section) != 0)
			continue;
		set_is(&f, &is->fact[i]);
		f.changed = true;
		AP_PUSH(t->ctx->arena, *out, f);
	}
}

void ap_diff_figures(struct ap_diff_task *t, struct ap_diff *out)
{
	static const char *const sections[] = {"prediction", "memory", "stages", "search",
		"route", "baselines", "pipeline", "graph", "machine", "settings", "inputs", "tool"};
	struct ap_arena *a = t->ctx->scratch;
	struct ap_mark mark = ap_arena_mark(a);
	const struct ap_map *keys = index_facts(t->ctx, t->was);
	const struct ap_map *others = index_facts(t->ctx, t->is);
	ap_id *partner = AP_NEW_N(a, ap_id, t->was->nfact);
	bool *known = AP_NEW_N(a, bool, t->is->nfact);
	struct figures all = {0};

	for (uint32_t i = 0; i < t->was->nfact; i++) {
		size_t len;
		const char *key = ap_map_key(keys, i, &len);

		partner[i] = ap_map_get(others, key, len);
		if (partner[i] != AP_NONE)
			known[partner[i]] = true;
	}
	for (size_t i = 0; i < AP_COUNT(sections); i++)
		add_section(t, sections[i], partner, known, &all);
	ap_arena_release(a, mark);
	out->nfigure = (uint32_t)all.n;
	out->figure = all.v;
}

const struct ap_diff_figure *ap_diff_figure(const struct ap_diff *d, const char *section,
	const char *key)
{
	for (uint32_t i = 0; i < d->nfigure; i++)
		if (!strcmp(d->figure[i].section, section) && !strcmp(d->figure[i].key, key))
			return &d->figure[i];
	return NULL;
}

static bool is_equal(const struct ap_diff *d)
{
	for (uint32_t i = 0; i < d->nfigure; i++)
		if (d->figure[i].changed && !d->figure[i].noted)
			return false;
	return !d->operators.n && !d->parameters.n && !d->redistributions.n && !d->collectives.n;
}

void ap_diff_make(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	struct ap_diff *out)
{
	struct ap_diff_task t = {.ctx = ctx, .was = was, .is = is};
	struct ap_saved strategies;

	*out = (struct ap_diff){.file = {was->file, is->file},
		.is_plan = {was->is_plan, is->is_plan}, .reduced = was->is_plan != is->is_plan};
	if (out->reduced) {
		ap_saved_strategies(ctx, was->is_plan ? was : is, &strategies);
		t.was = was->is_plan ? &strategies : was;
		t.is = is->is_plan ? &strategies : is;
	}
	ap_diff_match(&t);
	ap_diff_figures(&t, out);
	ap_diff_operators(&t, &out->operators);
	ap_diff_params(&t, &out->parameters);
	ap_diff_moves(&t, &out->redistributions);
	ap_diff_comms(&t, out);
	out->equal = is_equal(out);
}

const struct ap_diff_writer *ap_diff_writer_at(size_t i)
{
	static const struct ap_diff_writer writers[] = {
		{"text", ap_diff_write_text},
		{"json", ap_diff_write_json},
		{"markdown", ap_diff_write_markdown},
	};

	return i < AP_COUNT(writers) ? &writers[i] : NULL;
}
