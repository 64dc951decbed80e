/* SPDX-License-Identifier: Apache-2.0 */
#include "api/shortlist.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/planning.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"

/* ---- the folder ---- */

static const char *folder(struct ap_ctx *ctx, const struct ap_settings *set)
{
	size_t len = strlen(set->bundle);

	while (len > 1 && set->bundle[len - 1] == '/')
		len--;
	return ap_arena_strndup(ctx->arena, set->bundle, len);
}

bool ap_shortlist_asked(const struct ap_settings *set)
{
	return set->bundle && ap_setting_given(set, AP_SET_top) && set->top > 1;
}

const char *ap_shortlist_folder(struct ap_ctx *ctx, const struct ap_settings *set, uint32_t k)
{
	const char *dir = folder(ctx, set);

	return k ? ap_path_join(ctx->arena, dir, ap_arena_printf(ctx->arena, "%" PRIu32, k)) : dir;
}

/* The number that a name is, without leading zeros; 0: it is none. */
static uint32_t number_of(const char *name)
{
	size_t n = strspn(name, "0123456789");

	return *name == '0' || name[n] || n > 4 ? 0 : (uint32_t)strtoul(name, NULL, 10);
}

/* Does a table say anything behind the last comma of a row? */
static bool has_measured(const char *text)
{
	for (const char *end = strchr(text, '\n'); end; end = strchr(end + 1, '\n')) {
		const char *line = end + 1, *last = line + strcspn(line, "\r\n");

		while (last > line && strchr(" \t", last[-1]))
			last--;
		if (last > line && last[-1] != ',')
			return true;
	}
	return false;
}

static enum ap_status check_table(struct ap_writing *to, const char *path)
{
	struct ap_ctx quiet = ap_diag_apart(to->ctx);
	char *text;
	size_t len;

	if (access(path, F_OK) || ap_file_read(&quiet, path, AP_FILE_MAX_BYTES, &text, &len) != AP_OK ||
		!has_measured(text))
		return AP_OK;
	return ap_out_fault(to, AP_USAGE, path,
		"has measured times, which would be lost; expected another folder for the bundles");
}

enum ap_status ap_shortlist_check(struct ap_writing *to)
{
	const char *dir = folder(to->ctx, to->set);
	const char *const *name;
	size_t n;

	if (!strcmp(dir, "-"))
		return ap_out_fault(to, AP_USAGE, dir, "is no folder; expected one for the bundles");
	AP_TRY(ap_out_check_input(to, dir));
	if (access(dir, F_OK))
		return access(ap_path_folder(to->ctx->arena, dir), W_OK | X_OK)
			? ap_out_cannot_write(to, dir) : AP_OK;
	if (!ap_file_is_folder(dir))
		return ap_out_fault(to, AP_USAGE, dir, "is no folder; expected one for the bundles");
	if (access(dir, W_OK | X_OK))
		return ap_out_cannot_write(to, dir);
	AP_TRY(ap_folder_names(to->ctx, dir, &n, &name));
	for (size_t i = 0; i < n; i++)
		if (!number_of(name[i]) && strcmp(name[i], AP_SHORTLIST_CSV) != 0 &&
			strcmp(name[i], AP_SHORTLIST_TEXT) != 0)
			return ap_out_fault(to, AP_USAGE, ap_path_join(to->ctx->arena, dir, name[i]),
				"is in the way: the folder is not empty and holds no list of bundles; "
				"expected a new or an empty folder, or one of an earlier list");
	return check_table(to, ap_path_join(to->ctx->arena, dir, AP_SHORTLIST_CSV));
}

enum ap_status ap_shortlist_begin(struct ap_writing *to, const struct ap_shortlist *list)
{
	const char *const *name;
	size_t n;

	AP_TRY(ap_out_folder(to, list->dir));
	AP_TRY(ap_folder_names(to->ctx, list->dir, &n, &name));
	for (size_t i = 0; i < n; i++)
		if (number_of(name[i]) > list->n)
			(void)ap_diag_add(to->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){
				.file = ap_path_join(to->ctx->arena, list->dir, name[i])}, "bundle-files",
				"is of an earlier, longer list; it stays");
	return AP_OK;
}

/* ---- the plans ---- */

struct placing { /* of one plan */
	struct ap_writing to;
	struct ap_ctx ctx;
	struct ap_settings set;
	const struct ap_sources *src;
	enum ap_status st;
};

static enum ap_status make(struct placing *p)
{
	struct ap_planning *plan = AP_NEW(p->ctx.arena, struct ap_planning);
	enum ap_status st;
	bool taken;

	p->ctx.diag = ap_diag_create(p->ctx.arena, false);
	AP_TRY(ap_planning_check(&p->to, AP_FOR_evaluate, plan));
	AP_TRY(ap_planning_begin(&p->to, p->src, AP_FOR_evaluate, plan));
	AP_TRY(ap_planning_make(&p->to, p->src, AP_FOR_evaluate, plan));
	st = ap_plan_stage(&p->to, &plan->made, &taken);
	return st == AP_OK ? ap_out_commit(&p->to) : st;
}

static void undo(void *user)
{
	struct placing *p = user;

	ap_outputs_discard(p->to.staged);
	p->to.staged = NULL;
}

static void try_make(void *user)
{
	struct placing *p = user;

	p->st = make(p);
	undo(p);
}

/* The settings of a plan that has no outputs but its bundle. */
static struct ap_settings alone(const struct ap_settings *set, const char *bundle)
{
	struct ap_settings o = *set;

	for (int i = 0; i < AP_SET_COUNT; i++)
		if (ap_setting_at((enum ap_setting_id)i)->type == AP_SET_OUTPUT)
			ap_setting_unset(&o, (enum ap_setting_id)i);
	o.bundle = bundle;
	return o;
}

static const char *why_not(struct ap_arena *arena, const struct placing *p)
{
	const char *error = ap_diag_first_error(p->ctx.diag);

	return ap_arena_strdup(arena, error ? error : ap_status_text(p->st));
}

/* Puts DIR/k in place. *why: what keeps the plan from being a bundle; NULL: nothing. */
static enum ap_status place(struct ap_writing *to, const struct ap_sources *src,
	const struct ap_shortlist *list, uint32_t k, const char **why)
{
	struct placing p = {.ctx = *to->ctx, .src = src};
	const char *dir = ap_path_join(to->ctx->arena, list->dir, ap_arena_printf(to->ctx->arena,
		"%" PRIu32, k));
	struct ap_arena *made;

	p.set = alone(list->row[k - 1].set, dir);
	p.to = (struct ap_writing){.ctx = &p.ctx, .set = &p.set, .nread = to->nread, .read = to->read};
	p.ctx.phase = NULL;
	if (!ap_attempt_apart(&p.ctx, try_make, undo, &p, &made)) {
		*why = "memory of the planner ran out";
		p.st = AP_USAGE;
	} else {
		*why = p.st == AP_OK ? NULL : why_not(to->ctx->arena, &p);
		if (p.st != AP_OK && p.st != AP_USAGE && p.st != AP_STOPPED)
			ap_diag_pass_on(to->ctx->diag, p.ctx.diag);
		ap_arena_destroy(made);
	}
	if (p.st != AP_USAGE)
		return p.st;
	return ap_diag_add(to->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = dir}, NULL,
		"is left out, of %s: %s", list->row[k - 1].decided, *why);
}

/* ---- the table ---- */

static enum ap_status stage_text(struct ap_writing *to, const char *path, const struct ap_str *text)
{
	struct ap_output_sink sink;

	AP_TRY(ap_out_open(to, path, &sink));
	ap_output_write_fn(&sink, text->s, text->len);
	return AP_OK;
}

static enum ap_status stage_tables(struct ap_writing *to, const struct ap_shortlist *list,
	const char *const *why)
{
	const char *dir = list->dir;
	struct ap_str csv, text;
	char step[32], bytes[32];

	ap_str_init(&csv, to->ctx->arena);
	ap_str_init(&text, to->ctx->arena);
	ap_str_add(&csv, "folder,decided,step_time_s,memory_bytes,measured_step_time_s\n");
	ap_str_add(&text, "The fastest plans, a folder each, which its README.txt says how to run.\n"
		"They differ in settings. Predictions have errors: run some of them, put the seconds\n"
		"that a step takes into the last column of " AP_SHORTLIST_CSV ", and keep the fastest.\n\n"
		"folder   step        memory      decided\n");
	for (uint32_t k = 1; k <= list->n; k++) {
		const struct ap_shortlist_row *r = &list->row[k - 1];
		char seconds[32];

		(void)ap_format_double(r->step_s, seconds);
		if (!why[k - 1])
			ap_str_addf(&csv, "%" PRIu32 ",\"%s\",%s,%" PRId64 ",\n", k, r->decided, seconds,
				r->memory_bytes);
		ap_str_addf(&text, "%6" PRIu32 "   %-10s  ", k, ap_format_seconds(r->step_s, step));
		ap_str_addf(&text, "%-10s  %s\n", ap_format_bytes(r->memory_bytes, bytes), r->decided);
		if (why[k - 1])
			ap_str_addf(&text, "         no folder: %s\n", why[k - 1]);
	}
	AP_TRY(stage_text(to, ap_path_join(to->ctx->arena, dir, AP_SHORTLIST_TEXT), &text));
	return stage_text(to, ap_path_join(to->ctx->arena, dir, AP_SHORTLIST_CSV), &csv);
}

enum ap_status ap_shortlist_stage(struct ap_writing *to, const struct ap_sources *src,
	const struct ap_shortlist *list, const struct ap_plan *own)
{
	const char **why = AP_NEW_N(to->ctx->arena, const char *, list->n);
	enum ap_status early = AP_OK;

	for (uint32_t k = 2; k <= list->n; k++) {
		enum ap_status st = ap_ctx_stopped(to->ctx) ? AP_STOPPED
			: place(to, src, list, k, &why[k - 1]);

		if (st == AP_STOPPED) {
			why[k - 1] = "the run was stopped";
			early = st;
		} else {
			AP_TRY(st);
		}
	}
	list->row[0].step_s = own->prediction.step_time_s;
	list->row[0].memory_bytes = own->prediction.memory.total;
	AP_TRY(stage_tables(to, list, why));
	return early;
}
