/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/against.h"
#include "api/catalogue.h"
#include "api/check.h"
#include "api/combine.h"
#include "api/compare.h"
#include "api/convert.h"
#include "api/decided.h"
#include "api/explain.h"
#include "api/model.h"
#include "api/planning.h"
#include "api/relax.h"
#include "api/rules.h"
#include "api/runs.h"
#include "api/solve.h"
#include "api/vary.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/help.h"
#include "cli/run.h"
#include "cli/stop.h"

/* The conditions of --min-devices: settings that memory depends on, and that no trial changes. */
static const enum ap_setting_id fixed[] = {AP_SET_executor, AP_SET_batch, AP_SET_micro_batches,
	AP_SET_pipeline_stages, AP_SET_pipeline_segments, AP_SET_recompute, AP_SET_enable_parallel_optimizer,
	AP_SET_optimizer_level, AP_SET_parallel_mode, AP_SET_hybrid, AP_SET_memory};

static void write_conditions(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_str *out)
{
	ap_str_addf(out, "that holds where %s vary, and these settings do not:", ap_settings_search(set)
		? "the number of devices and the cut of each operator" : "numbers of devices");
	for (size_t i = 0; i < AP_COUNT(fixed); i++) {
		const struct ap_setting_row *row = ap_setting_at(fixed[i]);
		const char *text = ap_setting_text(ctx->arena, row, set);

		if (text && (fixed[i] != AP_SET_optimizer_level || set->enable_parallel_optimizer))
			ap_str_addf(out, " %s=%s", row->key, text);
	}
	ap_str_add(out, "; `plan --device-num 1..N` decides among these, too\n");
}

static void write_devices(const struct ap_devices *d, struct ap_str *out)
{
	char need[32];

	ap_str_addf(out, "%" PRId64 " device%s (%" PRId64 " a server): a plan of %s on each\n", d->fits,
		d->fits > 1 ? "s" : "", d->server, ap_format_bytes(d->memory_bytes, need));
	if (!d->below)
		return;
	ap_str_addf(out, "%" PRId64 " %s", d->below, d->proven ? "do not do: no strategy fits"
		: "probably do not do: no plan that fits was found");
	if (d->below_bytes)
		ap_str_addf(out, "; the smallest plan found needs %s",
			ap_format_bytes(d->below_bytes, need));
	ap_str_addc(out, '\n');
}

/* Prints the result of --min-devices on standard output. */
static enum ap_status min_devices(struct ap_run *run, const struct ap_sources *src)
{
	struct ap_devices found;
	struct ap_str out;

	ap_ctx_phase(&run->ctx, "trying numbers of devices");
	AP_TRY(ap_min_devices(&run->ctx, run->set, src, &found));
	ap_str_init(&out, run->ctx.arena);
	if (run->set->json) {
		struct ap_jw w;

		ap_jw_str_init(&w, &out, 0);
		ap_jw_obj(&w);
		ap_jw_kint(&w, "min_devices", found.fits);
		ap_jw_kint(&w, "devices_per_server", found.server);
		ap_jw_kint(&w, "memory_bytes", found.memory_bytes);
		if (found.below) {
			ap_jw_kint(&w, "not_enough", found.below);
			ap_jw_kint(&w, "not_enough_bytes", found.below_bytes);
			ap_jw_kbool(&w, "proven", found.proven);
		}
		ap_jw_kobj_flat(&w, "fixed");
		for (size_t i = 0; i < AP_COUNT(fixed); i++)
			ap_jw_kraw(&w, ap_setting_at(fixed[i])->key, ap_setting_json(run->ctx.arena,
				ap_setting_at(fixed[i]), run->set));
		ap_jw_end(&w);
		ap_jw_end(&w);
		ap_jw_finish(&w);
	} else {
		write_devices(&found, &out);
		write_conditions(&run->ctx, run->set, &out);
	}
	AP_TRY(ap_out_text(&run->to, out.s, out.len));
	return ap_out_commit(&run->to);
}

/* The rank tables behind the first, NULL-terminated. */
static const char *const *further_tables(struct ap_run *run)
{
	size_t n = run->cli->narg > 2 ? run->cli->narg - 2 : 0;
	const char **path = AP_NEW_N(run->ctx.arena, const char *, n + 1);

	for (size_t i = 0; i < n; i++)
		path[i] = run->cli->arg[i + 2];
	return path;
}

/* Decides the settings that are left open, and takes them for the rest of the run. AP_STOPPED: so far. *use:
 * what then makes the plan. *src: then those of the machine that is taken. list: of bundles, where one is
 * asked for. */
static enum ap_status decide(struct ap_run *run, struct ap_sources *src, struct ap_settings *decided,
	struct ap_decided *all, struct ap_plan_joint **report, unsigned *use, struct ap_shortlist *list)
{
	enum ap_status st = ap_decide_machines(&run->ctx, run->set, src, further_tables(run), all);
	const struct ap_settings *set;

	if (st != AP_OK && st != AP_STOPPED)
		return st;
	set = &all->set[all->taken];
	*src = all->src[all->taken];
	*report = ap_decided_take(&run->ctx, all, st == AP_OK, decided, use);
	run->to.set = decided;
	if (!ap_shortlist_asked(set))
		return st;
	ap_decided_shortlist(&run->ctx, all, *report, list);
	decided->bundle = ap_shortlist_folder(&run->ctx, set, 1);
	AP_TRY(ap_shortlist_begin(&run->to, list));
	return st;
}

/* Checks before any work. Of a list of bundles the folder is checked, which then has those. */
static enum ap_status check_outputs(struct ap_run *run, unsigned use, struct ap_planning *p)
{
	struct ap_settings without = *run->set;
	enum ap_status st;

	if (use == AP_FOR_plan && ap_plan_settings_path(&run->ctx, run->set))
		AP_TRY(ap_out_check(&run->to, ap_plan_settings_path(&run->ctx, run->set)));
	if (use != AP_FOR_plan || !ap_shortlist_asked(run->set))
		return ap_planning_check(&run->to, use, p);
	AP_TRY(ap_shortlist_check(&run->to));
	without.bundle = ap_shortlist_folder(&run->ctx, run->set, access(run->set->bundle, F_OK) ? 0 : 1);
	run->to.set = &without;
	st = ap_planning_check(&run->to, use, p);
	run->to.set = run->set;
	return st;
}

/* evaluate --strategy of a plan, with its settings. */
static enum ap_status evaluate_plan(struct ap_run *run, const char *path, const struct ap_named *named,
	struct ap_planning *p)
{
	struct ap_settings set;
	struct ap_sources src;
	const char *rest;
	enum ap_status st, written;

	AP_TRY(ap_against_inputs(&run->ctx, run->set, path, named, &set, &src, &p->in));
	run->to.set = &set;
	st = ap_planning_make(&run->to, &src, AP_FOR_evaluate, p);
	if (st != AP_OK && st != AP_STOPPED)
		return st;
	AP_TRY(ap_planning_take(&run->to, p));
	run->to.hurry = ap_stop_signal();
	written = ap_planning_write(&run->to, p, &rest);
	fputs(rest, stderr);
	return written != AP_OK ? written : st;
}

/* Prints the result of --vary on standard output, and writes its plot and the best plan of now. */
static enum ap_status vary(struct ap_run *run, unsigned use, const struct ap_sources *src)
{
	struct ap_output_sink sink;
	struct ap_varied found;
	struct ap_vary_present *present = AP_NEW(run->ctx.arena, struct ap_vary_present);
	struct ap_str out, plot;
	enum ap_status st = ap_vary(&run->ctx, run->set, src, use, &found, present);

	if (st != AP_OK && st != AP_STOPPED)
		return st;
	ap_str_init(&out, run->ctx.arena);
	ap_str_init(&plot, run->ctx.arena);
	ap_varied_write(&run->ctx, &found, run->set->json, &out);
	if (run->set->plot_out) {
		ap_varied_plot(&run->ctx, &found, &plot);
		AP_TRY(ap_out_open(&run->to, run->set->plot_out, &sink));
		ap_output_write_fn(&sink, plot.s, plot.len);
	}
	if (present->any) {
		AP_TRY(ap_out_open(&run->to, run->set->plan_out, &sink));
		AP_TRY(ap_plan_write(&run->ctx, run->set, &(struct ap_made){.plan = &present->plan},
			AP_SET_plan_out, run->set->plan_out, ap_output_write_fn, &sink));
	} else if (run->set->plan_out) {
		AP_TRY(ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK,
			&(struct ap_where){.file = run->set->plan_out}, NULL,
			"is left out: no plan of now is known"));
	}
	if (!run->set->quiet && !(present->any && strcmp(run->set->plan_out, "-") == 0))
		AP_TRY(ap_out_text(&run->to, out.s, out.len));
	AP_TRY(ap_out_commit(&run->to));
	return st;
}

static enum ap_status plan(struct ap_run *run, unsigned use, const char *strategy)
{
	const struct ap_settings *set = run->set;
	struct ap_plan_joint *joint = NULL;
	struct ap_decided all;
	struct ap_settings decided;
	struct ap_shortlist list = {.n = 0};
	enum ap_status early = AP_OK;
	const struct ap_named named = ap_run_inputs(run, run->cli->narg ? run->cli->arg[0] : set->config,
		strategy);
	struct ap_planning one, *p = &one;
	struct ap_sources src;
	const char *rest;
	enum ap_status st, written;

	if (set->time_limit > 0)
		ap_stop_after(set->time_limit);
	AP_TRY(check_outputs(run, use, p));
	if (use == AP_FOR_evaluate && strategy && ap_against_is_plan(&run->ctx, set, strategy))
		return evaluate_plan(run, strategy, &named, p);
	AP_TRY(ap_sources_read(&run->ctx, set, &named, &src));
	if (set->time_limit == 0)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_LIMIT, NULL, NULL,
			"--time-limit 0 leaves no time for a plan");
	if (set->min_devices)
		return min_devices(run, &src);
	if (set->vary)
		return run->cli->narg < 3 ? vary(run, use, &src)
			: ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"--vary: one machine at a time; expected GRAPH and at most one RANK_TABLE");
	if (use == AP_FOR_plan) {
		early = decide(run, &src, &decided, &all, &joint, &use, &list);
		if (early != AP_OK && early != AP_STOPPED)
			return early;
	}
	if (ap_combine_asked(run->to.set)) {
		st = ap_combine(&run->to, &src, &one, &p);
	} else {
		AP_TRY(ap_planning_begin(&run->to, &src, use, p));
		st = ap_planning_make(&run->to, &src, use, p);
	}
	if (st != AP_OK && st != AP_STOPPED)
		return st;
	p->plan.joint = joint;
	if (joint) {
		ap_decided_finish(&run->ctx, &all, &p->in, &p->plan, joint);
		joint->settings = ap_plan_settings_path(&run->ctx, set);
	}
	if (st == AP_OK && !p->made.tries && !set->quiet)
		ap_rules_price(&run->ctx, run->to.set, &src, use, &p->plan);
	if (use == AP_FOR_search && st == AP_OK && !joint && !p->made.tries && !set->quiet && !set->json)
		p->plan.hint = ap_decided_hint(&run->ctx, set, &src, &p->plan);
	if (list.n) {
		enum ap_status others = ap_shortlist_stage(&run->to, &src, &list, &p->plan);

		if (others != AP_OK && others != AP_STOPPED)
			return others;
		early = others == AP_STOPPED ? others : early;
	}
	run->to.hurry = ap_stop_signal();
	written = ap_planning_write(&run->to, p, &rest);
	fputs(rest, stderr);
	return written != AP_OK ? written : early != AP_OK ? early : st;
}

enum ap_status ap_cmd_plan(struct ap_run *run)
{
	return plan(run, AP_FOR_plan, NULL);
}

enum ap_status ap_cmd_search(struct ap_run *run)
{
	return plan(run, AP_FOR_search, run->set->strategy_ckpt_load_file);
}

enum ap_status ap_cmd_evaluate(struct ap_run *run)
{
	return plan(run, AP_FOR_evaluate, run->set->strategy);
}

/* check --against. AP_DIFFERS: the plan is no longer right. */
static enum ap_status check_against(struct ap_run *run)
{
	struct ap_named named = ap_run_inputs(run, run->set->against, NULL);
	struct ap_against found;
	struct ap_str text;

	if (run->cli->narg > 2)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"check --against: one argument too many, \"%s\"; expected PLAN [RANK_TABLE]",
			run->cli->arg[2]);
	AP_TRY(ap_against(&run->ctx, run->set, run->cli->arg[0], &named, &found));
	if (run->cli->narg < 2) /* a table from the environment is not named */
		found.table = NULL;
	ap_str_init(&text, run->ctx.arena);
	ap_against_write(&run->ctx, run->set, &found, ap_run_colors(run->set, STDOUT_FILENO), &text);
	AP_TRY(ap_run_answer(run, &text));
	AP_TRY(ap_diag_status(run->ctx.diag));
	return found.fits ? AP_OK : AP_DIFFERS;
}

/* Refuses options that only describe the inputs of --against if that is not given. */
static enum ap_status check_options(struct ap_run *run)
{
	static const enum ap_setting_id inputs[] = {AP_SET_device_num, AP_SET_devices_per_server,
		AP_SET_devices_per_pod, AP_SET_chip, AP_SET_memory, AP_SET_software, AP_SET_batch,
		AP_SET_sequence, AP_SET_attention, AP_SET_loss, AP_SET_names, AP_SET_mtp,
		AP_SET_masked_positions, AP_SET_dtype,
		AP_SET_freeze, AP_SET_lora, AP_SET_micro_batches, AP_SET_search};

	for (size_t i = 0; i < AP_COUNT(inputs); i++)
		if (run->set->origin[inputs[i]] == AP_FROM_OPTION)
			(void)ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: check takes it beside --against only", run->set->name[inputs[i]]);
	return ap_diag_status(run->ctx.diag);
}

/* Writes a line about a file: what it is, and the number of findings. */
static void report(struct ap_run *run, const char *path, const struct ap_checked *file, size_t errors,
	size_t warnings, struct ap_str *text, struct ap_jw *w)
{
	struct ap_diag *diag = run->ctx.diag;

	if (run->set->json) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "file", ap_diag_path(diag, path));
		if (file->kind) {
			ap_jw_kstr(w, "kind", strchr(file->kind, ' ') + 1); /* without its article */
			ap_jw_kstr(w, "what", ap_diag_name(diag, file->what));
		}
		ap_jw_kint(w, "errors", (int64_t)errors);
		ap_jw_kint(w, "warnings", (int64_t)warnings);
		ap_jw_end(w);
		return;
	}
	ap_str_addf(text, "%s: ", ap_diag_path(diag, path));
	if (file->kind)
		ap_str_addf(text, "%s (%s): ", file->kind, ap_diag_name(diag, file->what));
	if (errors || warnings)
		ap_str_addf(text, "errors %zu, warnings %zu\n", errors, warnings);
	else
		ap_str_add(text, "nothing to report\n");
}

static enum ap_status check_files(struct ap_run *run, const struct ap_fail_if *conditions)
{
	struct ap_diag *diag = run->ctx.diag;
	uint32_t nplan = 0;
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, run->ctx.arena);
	if (run->set->json) {
		ap_jw_str_init(&w, &text, 1);
		ap_jw_obj(&w);
		ap_jw_kstr(&w, "schema", "autopar-check/1");
		ap_jw_karr(&w, "files");
	}
	ap_ctx_phase(&run->ctx, "checking");
	for (size_t i = 0; i < run->cli->narg; i++) {
		size_t errors = ap_diag_count(diag, AP_ERROR), warnings = ap_diag_count(diag, AP_WARNING);
		struct ap_checked file;

		ap_check_file(&run->ctx, run->set, run->cli->arg[i], conditions, &nplan, &file);
		report(run, run->cli->arg[i], &file, ap_diag_count(diag, AP_ERROR) - errors,
			ap_diag_count(diag, AP_WARNING) - warnings, &text, &w);
	}
	if (conditions->n && !nplan)
		(void)ap_diag_add(diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--fail-if: none of these files is a plan");
	if (run->set->json) {
		ap_jw_end(&w);
		ap_diag_write(diag, &w, (size_t)run->set->max_errors);
		ap_jw_end(&w);
		ap_jw_finish(&w);
	}
	AP_TRY(ap_run_answer(run, &text));
	return ap_diag_status(diag);
}

enum ap_status ap_cmd_check(struct ap_run *run)
{
	struct ap_fail_if conditions;

	AP_TRY(ap_out_check(&run->to, NULL));
	if (run->set->against)
		return check_against(run);
	AP_TRY(check_options(run));
	AP_TRY(ap_fail_if_read(&run->ctx, run->set, &conditions));
	return check_files(run, &conditions);
}

enum ap_status ap_cmd_import(struct ap_run *run)
{
	return ap_import_file(&run->to, run->cli->arg[0]);
}

enum ap_status ap_cmd_model(struct ap_run *run)
{
	run->to.nread--; /* the argument is no file */
	return ap_model_graph(&run->to, run->cli->arg[0]);
}

enum ap_status ap_cmd_render(struct ap_run *run)
{
	return ap_render(&run->to, run->cli->arg[0]);
}

enum ap_status ap_cmd_show(struct ap_run *run)
{
	struct ap_str text;

	ap_str_init(&text, run->ctx.arena);
	AP_TRY(ap_show_plan(&run->to, run->cli->arg[0], &text));
	return ap_run_answer(run, &text);
}

enum ap_status ap_cmd_explain(struct ap_run *run)
{
	const char *name = run->cli->narg > 1 ? run->cli->arg[1] : NULL, *table = getenv("RANK_TABLE_FILE");
	struct ap_str text;

	if (name)
		run->to.nread--; /* it is no file */
	ap_str_init(&text, run->ctx.arena);
	AP_TRY(ap_explain(&run->to, run->cli->arg[0], name, table && *table ? table : NULL, &text));
	return ap_run_answer(run, &text);
}

enum ap_status ap_cmd_convert(struct ap_run *run)
{
	size_t last = run->cli->narg - 1;

	run->to.nread--; /* the last argument is an output */
	return ap_convert(&run->to, last, run->cli->arg, run->cli->arg[last]);
}

enum ap_status ap_cmd_diff(struct ap_run *run)
{
	struct ap_str text;
	enum ap_status st;

	ap_str_init(&text, run->ctx.arena);
	st = ap_compare(&run->to, run->cli->arg[0], run->cli->arg[1], ap_run_colors(run->set,
		STDOUT_FILENO), &text);
	if (st != AP_OK && st != AP_DIFFERS)
		return st;
	AP_TRY(ap_run_answer(run, &text));
	AP_TRY(ap_diag_status(run->ctx.diag));
	return st;
}

enum ap_status ap_cmd_compare(struct ap_run *run)
{
	struct ap_str text;

	ap_str_init(&text, run->ctx.arena);
	AP_TRY(ap_runs_compare(&run->to, run->cli->narg, run->cli->arg, &text));
	if (text.len) /* standard output has the profile */
		fputs(text.s, stderr);
	return ap_diag_status(run->ctx.diag);
}

static bool takes_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

enum ap_status ap_cmd_solve(struct ap_run *run)
{
	const struct ap_settings *set = run->set;
	const char *rest;
	enum ap_status st;

	if (set->time_limit > 0)
		ap_stop_after(set->time_limit);
	st = ap_solve(&run->to, run->cli->arg[0], &rest);
	if (takes_stdout(set->write_lp) || takes_stdout(set->write_wcsp))
		fputs(rest, stderr);
	else if (*rest)
		(void)ap_stdout_write(&run->ctx, rest, strlen(rest));
	if (st == AP_LIMIT && !ap_stop_signal() && !ap_diag_count(run->ctx.diag, AP_ERROR))
		return ap_diag_add(run->ctx.diag, AP_ERROR, st, NULL, NULL,
			"a limit was hit before any choice was found");
	return st;
}

enum ap_status ap_cmd_list(struct ap_run *run)
{
	const char *topic = run->cli->arg[0], *name = run->cli->narg > 1 ? run->cli->arg[1] : NULL;
	bool known = true, found;
	struct ap_str out;
	struct ap_jw w, *json = run->set->json ? &w : NULL;

	ap_str_init(&out, run->ctx.arena);
	if (json) {
		ap_jw_str_init(json, &out, 2);
		ap_jw_arr(json);
	}
	found = !strcmp(topic, "settings") ? ap_help_settings(name, &out, json)
		: ap_catalogue(&run->ctx, run->set, topic, name, &out, json, &known);
	if (!known)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"list: \"%s\" is not accepted; expected one of chips, engines, families, models, "
			"operators, optimizers, settings, software", topic);
	AP_TRY(ap_diag_status(run->ctx.diag));
	if (!found)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"there is no \"%s\" among the %s; see `autopar-plan list %s`", name, topic, topic);
	if (json) {
		ap_jw_end(json);
		ap_jw_finish(json);
	}
	return ap_stdout_write(&run->ctx, out.s, out.len);
}
