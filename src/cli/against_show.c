/* SPDX-License-Identifier: Apache-2.0 */
/* What was found of a plan and its inputs, as text and as JSON. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/str.h"
#include "cli/against.h"
#include "cli/run.h"

static void add_json_input(struct ap_jw *w, const struct ap_against_input *in)
{
	static const char *const keys[] = {"old", "new"};
	const char *const hash[] = {in->was, in->is};

	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "input", in->role);
	for (int i = 0; i < 2; i++) {
		ap_jw_key(w, keys[i]);
		if (hash[i])
			ap_jw_str(w, hash[i]);
		else
			ap_jw_null(w);
	}
	ap_jw_kbool(w, "same", !in->other);
	ap_jw_end(w);
}

static void add_json_values(struct ap_jw *w, const struct ap_plan_values *values)
{
	ap_jw_key(w, "values");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < values->nlisted; i++) {
		const struct ap_plan_value *v = &values->v[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "pointer", v->pointer);
		ap_jw_kraw(w, "old", v->was);
		ap_jw_kraw(w, "new", v->is);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void add_json_diff(struct ap_run *run, struct ap_jw *w, const struct ap_diff *d)
{
	const struct ap_diff_style plain = {.color = false};
	const struct ap_diff_writer *writer;
	struct ap_str text;

	ap_jw_key(w, "changes");
	if (!d) {
		ap_jw_null(w);
		return;
	}
	ap_str_init(&text, run->ctx.arena);
	for (size_t i = 0; (writer = ap_diff_writer_at(i)); i++)
		if (!strcmp(writer->name, "json"))
			writer->write(&run->ctx, d, &plain, &text);
	text.s[text.len - 1] = '\0'; /* the end of its last line */
	ap_jw_raw(w, text.s);
}

static void add_json(struct ap_run *run, const struct ap_against *a, struct ap_str *out)
{
	struct ap_jw w;

	ap_jw_str_init(&w, out, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-check/1");
	ap_jw_kstr(&w, "file", ap_file_base(a->file));
	ap_jw_kstr(&w, "kind", a->kind == AP_KIND_PLAN ? "plan" : "strategy");
	ap_jw_kstr(&w, "graph", ap_file_base(a->graph));
	ap_jw_kbool(&w, "fits", a->fits);
	ap_jw_key(&w, "inputs");
	ap_jw_arr(&w);
	for (uint32_t i = 0; i < a->ninput; i++)
		add_json_input(&w, &a->input[i]);
	ap_jw_end(&w);
	ap_jw_key(&w, "findings");
	ap_jw_arr(&w);
	for (uint32_t i = 0; i < a->nfinding; i++)
		ap_jw_str(&w, a->finding[i]);
	ap_jw_end(&w);
	add_json_values(&w, &a->values);
	add_json_diff(run, &w, a->diff);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

static void add_values(struct ap_run *run, const struct ap_plan_values *values, struct ap_str *out)
{
	uint32_t most = (uint32_t)run->opt->max_errors, n = values->nlisted < most ? values->nlisted : most;

	for (uint32_t i = 0; i < n; i++) {
		const struct ap_plan_value *v = &values->v[i];

		ap_str_addf(out, "  %s: %s%s; %s%s of these inputs\n",
			ap_diag_name(run->ctx.diag, v->pointer), v->was ? "says " : "is not there",
			v->was ? v->was : "", v->is ? "expected " : "expected nothing", v->is ? v->is : "");
	}
	if (values->n > n)
		ap_str_addf(out, "  and %" PRIu32 " values more\n", values->n - n);
}

static void add_text(struct ap_run *run, const struct ap_against *a, struct ap_str *out)
{
	const struct ap_diff_style style = {.color = run->opt->color == AP_COLOR_ALWAYS ||
		(run->opt->color == AP_COLOR_AUTO && isatty(STDOUT_FILENO))};
	struct ap_diag *names = run->ctx.diag;

	ap_str_addf(out, "%s: %s: %s for %s", ap_diag_path(names, a->file), ap_kind_text(a->kind),
		a->fits ? "still right" : "no longer right", ap_diag_path(names, a->graph));
	ap_str_addf(out, "%s%s\n", a->table ? " and " : "", a->table ? ap_diag_path(names, a->table) : "");
	for (uint32_t i = 0; i < a->nfinding; i++)
		ap_str_addf(out, "  %s\n", a->finding[i]);
	if (!a->fits)
		add_values(run, &a->values, out);
	if (!a->diff || (a->diff->equal && !a->diff->nverdict))
		return;
	ap_str_addc(out, '\n');
	ap_diff_writer_at(0)->write(&run->ctx, a->diff, &style, out);
}

enum ap_status ap_against_print(struct ap_run *run, const struct ap_against *a)
{
	struct ap_str text;

	if (run->opt->quiet)
		return AP_OK;
	ap_str_init(&text, run->ctx.arena);
	if (run->opt->json)
		add_json(run, a, &text);
	else
		add_text(run, a, &text);
	run->answered = true;
	return ap_stdout_write(&run->ctx, text.s, text.len);
}
