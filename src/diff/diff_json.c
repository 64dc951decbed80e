/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as JSON, autopar-diff/1. */
#include "base/json_write.h"
#include "diff/diff_parts.h"

static void write_names(struct ap_jw *w, const char *key, uint32_t n, const char *const *name)
{
	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < n; i++)
		ap_jw_str(w, name[i]);
	ap_jw_end(w);
}

static void write_sides(struct ap_jw *w, const struct ap_diff *d)
{
	static const char *const keys[] = {"old", "new"};

	for (int i = 0; i < 2; i++) {
		ap_jw_key(w, keys[i]);
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "file", d->file[i]);
		ap_jw_kstr(w, "kind", d->is_plan[i] ? "plan" : "strategy");
		ap_jw_end(w);
	}
}

static void write_figures(struct ap_jw *w, const struct ap_diff *d)
{
	ap_jw_key(w, "figures");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < d->nfigure; i++) {
		const struct ap_diff_figure *f = &d->figure[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "section", f->section);
		ap_jw_kstr(w, "key", f->key);
		ap_jw_kraw(w, "old", f->was);
		ap_jw_kraw(w, "new", f->is);
		ap_jw_kbool(w, "changed", f->changed);
		if (f->was_number > 0 && f->changed)
			ap_jw_knum(w, "ratio", f->is_number / f->was_number);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_line(struct ap_jw *w, const struct ap_diff_line *l,
	const struct ap_diff_name *names)
{
	static const char *const kinds[] = {
		[AP_DIFF_CHANGED] = "changed",
		[AP_DIFF_ADDED] = "added",
		[AP_DIFF_REMOVED] = "removed",
		[AP_DIFF_RENAMED] = "renamed",
	};

	ap_jw_obj(w);
	ap_jw_kstr(w, "change", kinds[l->kind]);
	ap_jw_kstr(w, "label", l->label);
	if (*l->type)
		ap_jw_kstr(w, "type", l->type);
	if (l->operand >= 0)
		ap_jw_kint(w, "operand", l->operand);
	ap_jw_key(w, "fields");
	ap_jw_obj(w);
	for (uint32_t i = 0; i < l->nfield; i++) {
		ap_jw_key(w, names[l->field[i].field].key);
		ap_jw_obj_flat(w);
		ap_jw_kraw(w, "old", l->field[i].was);
		ap_jw_kraw(w, "new", l->field[i].is);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_kint(w, "count", l->n);
	write_names(w, "names", l->n, l->name);
	if (l->old_name)
		write_names(w, "old_names", l->n, l->old_name);
	ap_jw_end(w);
}

static void write_lines(struct ap_jw *w, const char *key, const struct ap_diff_lines *lines,
	const struct ap_diff_name *names)
{
	ap_jw_key(w, key);
	ap_jw_arr(w);
	for (uint32_t i = 0; i < lines->n; i++)
		write_line(w, &lines->v[i], names);
	ap_jw_end(w);
}

static void write_verdicts(struct ap_jw *w, const struct ap_diff *d)
{
	ap_jw_key(w, "conditions");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < d->nverdict; i++) {
		const struct ap_verdict *v = &d->verdict[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "condition", v->text);
		ap_jw_knum(w, "old", v->was_number);
		ap_jw_knum(w, "new", v->is_number);
		ap_jw_kbool(w, "holds", v->holds);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_load(struct ap_jw *w, const char *key, const struct ap_diff_load *load)
{
	ap_jw_key(w, key);
	ap_jw_obj_flat(w);
	ap_jw_kint(w, "count", load->count);
	ap_jw_kint(w, "bytes", load->bytes);
	ap_jw_end(w);
}

static void write_flows(struct ap_jw *w, const char *key, const struct ap_diff_flows *flows)
{
	ap_jw_key(w, key);
	ap_jw_arr(w);
	for (uint32_t i = 0; i < flows->n; i++) {
		const struct ap_diff_flow *f = &flows->v[i];

		ap_jw_obj(w);
		ap_jw_kstr(w, "kind", f->kind);
		ap_jw_kint(w, "ranks", f->ranks);
		ap_jw_kstr(w, "phase", f->phase);
		write_load(w, "old", &f->was);
		write_load(w, "new", &f->is);
		if (f->n) {
			ap_jw_kstr(w, "label", f->label);
			write_names(w, "names", f->n, f->name);
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

void ap_diff_write_json(struct ap_ctx *ctx, const struct ap_diff *d,
	const struct ap_diff_style *style, struct ap_str *out)
{
	struct ap_jw w;

	(void)ctx;
	(void)style;
	ap_jw_str_init(&w, out, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-diff/1");
	write_sides(&w, d);
	ap_jw_kbool(&w, "equal", d->equal);
	if (d->nverdict)
		write_verdicts(&w, d);
	write_figures(&w, d);
	write_lines(&w, "operators", &d->operators, ap_diff_op_names);
	write_flows(&w, "collectives", &d->totals);
	write_flows(&w, "collectives_by_operator", &d->collectives);
	write_lines(&w, "redistributions", &d->redistributions, ap_diff_move_names);
	write_lines(&w, "parameters", &d->parameters, ap_diff_param_names);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
