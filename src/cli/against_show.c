/* SPDX-License-Identifier: Apache-2.0 */
/* What was found of a plan and its inputs, as text and as JSON. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/against.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/run.h"
#include "diff/diff_write.h"

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
	uint32_t most = (uint32_t)run->set->max_errors, n = values->nlisted < most ? values->nlisted : most;

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
	const struct ap_diff_style style = {.color = run->set->color == AP_COLOR_ALWAYS ||
		(run->set->color == AP_COLOR_AUTO && isatty(STDOUT_FILENO))};
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

static enum ap_status print(struct ap_run *run, const struct ap_against *a)
{
	struct ap_str text;

	if (run->set->quiet)
		return AP_OK;
	ap_str_init(&text, run->ctx.arena);
	if (run->set->json)
		add_json(run, a, &text);
	else
		add_text(run, a, &text);
	run->answered = true;
	return ap_stdout_write(&run->ctx, text.s, text.len);
}

enum ap_status ap_check_against(struct ap_run *run)
{
	struct ap_named named = ap_run_inputs(run, run->set->against, NULL);
	struct ap_against found;

	if (run->cli->narg > 2)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"check --against: one argument too many, \"%s\"; expected PLAN [RANK_TABLE]",
			run->cli->arg[2]);
	AP_TRY(ap_against(&run->ctx, run->set, run->cli->arg[0], &named, &found));
	if (run->cli->narg < 2) /* what the environment says is not told */
		found.table = NULL;
	AP_TRY(print(run, &found));
	AP_TRY(ap_diag_status(run->ctx.diag));
	return found.fits ? AP_OK : AP_DIFFERS;
}
