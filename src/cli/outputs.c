/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/outputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "ckpt/groups.h"
#include "cli/bundle.h"
#include "cli/run.h"
#include "cli/stage_files.h"
#include "cli/stop.h"
#include "cli/written.h"
#include "pipeline/stages.h"
#include "planfile/plan_json.h"
#include "report/summary.h"
#include "report/trace.h"

enum { MANY_BOXES = 2000 }; /* beyond, dot takes long */

struct paths {
	const char **v;
	size_t n, cap;
};

static const char *shown(const char *path)
{
	return strcmp(path, "-") ? path : "standard output";
}

static enum ap_status fault(struct ap_run *run, enum ap_status st, const char *path,
	const char *text)
{
	struct ap_where where = {.file = shown(path)};

	return ap_diag_add(run->ctx.diag, AP_ERROR, st, &where, NULL, "%s", text);
}

/* Every file that the run reads: arguments, options, environment. */
static void collect_inputs(struct ap_run *run, const char *further, struct paths *in)
{
	const struct ap_options *o = run->opt;
	const char *table = getenv("RANK_TABLE_FILE");

	for (size_t i = 0; i < run->cli->narg; i++)
		if (run->cli->arg[i] != further)
			AP_PUSH(run->ctx.arena, *in, run->cli->arg[i]);
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);

		if ((row->type == AP_OPT_INPUT || row->type == AP_OPT_DICT) && ap_option_path(row, o))
			AP_PUSH(run->ctx.arena, *in, ap_option_path(row, o));
	}
	if (o->chip)
		AP_PUSH(run->ctx.arena, *in, o->chip);
	if (o->software)
		AP_PUSH(run->ctx.arena, *in, o->software);
	if (table)
		AP_PUSH(run->ctx.arena, *in, table);
}

/* Every file that the run writes, in the order of the rows. */
static void collect_outputs(struct ap_run *run, const char *further, struct paths *out)
{
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);

		if (row->type == AP_OPT_OUTPUT && ap_option_path(row, run->opt))
			AP_PUSH(run->ctx.arena, *out, ap_option_path(row, run->opt));
	}
	if (further)
		AP_PUSH(run->ctx.arena, *out, further);
}

/* And those of the folder that --bundle names. */
static void collect_bundle(struct ap_run *run, struct paths *out)
{
	const char *path;

	for (size_t i = 0; (path = ap_bundle_path(run, i)); i++)
		AP_PUSH(run->ctx.arena, *out, path);
}

static const char *folder_of(struct ap_run *run, const char *path)
{
	const char *base = ap_file_base(path);

	return base == path ? "." :
		ap_arena_printf(run->ctx.arena, "%.*s.", (int)(base - path), path);
}

/* Do two names stand for one file, which may not exist yet? */
static bool same_file(struct ap_run *run, const char *a, const char *b)
{
	struct stat st;

	if (!strcmp(a, b))
		return true;
	if (!strcmp(a, "-") || !strcmp(b, "-"))
		return false;
	if (!stat(a, &st) || !stat(b, &st))
		return ap_file_same(a, b);
	return !strcmp(ap_file_base(a), ap_file_base(b)) &&
		ap_file_same(folder_of(run, a), folder_of(run, b));
}

/* A regular file needs a folder that takes new files; what else there is shows when it is opened. */
static enum ap_status check_target(struct ap_run *run, const char *path)
{
	struct stat st;
	bool there = !stat(path, &st);

	if (!strcmp(path, "-"))
		return AP_OK;
	if ((there && S_ISDIR(st.st_mode)) || path[strlen(path) - 1] == '/')
		return fault(run, AP_USAGE, path, "is a folder; expected the name of a file");
	if ((!there || S_ISREG(st.st_mode)) && access(folder_of(run, path), W_OK | X_OK))
		return fault(run, AP_IO, path, ap_arena_printf(run->ctx.arena, "cannot write: %s",
			strerror(errno)));
	return AP_OK;
}

static void check_names(struct ap_run *run, const struct paths *in, const struct paths *out)
{
	for (size_t i = 0; i < out->n; i++) {
		for (size_t j = 0; j < i; j++)
			if (same_file(run, out->v[i], out->v[j]))
				(void)fault(run, AP_USAGE, out->v[i],
					"two outputs are given this name");
		for (size_t j = 0; j < in->n; j++)
			if (strcmp(out->v[i], "-") != 0 && same_file(run, out->v[i], in->v[j]))
				(void)fault(run, AP_USAGE, out->v[i], "is also an input");
	}
	for (size_t i = 0, standard = 0; i < in->n; i++)
		if (!strcmp(in->v[i], "-") && standard++)
			(void)ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"standard input can be only one input");
}

enum ap_status ap_out_check_binary(struct ap_run *run, const char *path)
{
	if (strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO))
		return AP_OK;
	return fault(run, AP_USAGE, path, "a terminal is no place for protobuf");
}

/* Pictures by the suffixes of their names: drawn by dot in this format, or left as DOT. */
static const struct {
	const char *suffix, *format; /* NULL: DOT */
} pictures[] = {{".dot", NULL}, {".gv", NULL}, {".svg", "svg"}, {".png", "png"}, {".pdf", "pdf"}};

enum { NPICTURE = AP_COUNT(pictures) };

/* The suffix of a name, "" where it has none. */
static const char *suffix_of(const char *path)
{
	const char *base = ap_file_base(path), *dot = strrchr(base, '.');

	return dot && dot > base ? dot : "";
}

/* What dot is to make of a picture of this name; NULL: it stays DOT. */
static const char *format_of(const char *path)
{
	for (int i = 0; i < NPICTURE; i++)
		if (!strcmp(suffix_of(path), pictures[i].suffix))
			return pictures[i].format;
	return NULL;
}

/* A name without a suffix is one of DOT; of any other kind nothing is known to draw. */
static enum ap_status check_picture(struct ap_run *run, const char *path)
{
	const char *suffix = suffix_of(path);
	struct ap_str known;

	ap_str_init(&known, run->ctx.arena);
	for (int i = 0; i < NPICTURE; i++) {
		if (!*suffix || !strcmp(suffix, pictures[i].suffix))
			return AP_OK;
		ap_str_addf(&known, "%s%s", i == 0 ? "" : i + 1 < NPICTURE ? ", " : " or ",
			pictures[i].suffix);
	}
	return fault(run, AP_USAGE, path, ap_arena_printf(run->ctx.arena,
		"pictures of this kind (%s) are not drawn; expected a name that ends in %s", suffix,
		known.s));
}

enum ap_status ap_out_check(struct ap_run *run, const char *further)
{
	struct paths in = {0}, out = {0}, all = {0};

	collect_inputs(run, further, &in);
	collect_outputs(run, further, &out);
	collect_outputs(run, further, &all);
	collect_bundle(run, &all);
	check_names(run, &in, &all);
	if (run->opt->strategy_ckpt_save_file)
		(void)ap_out_check_binary(run, run->opt->strategy_ckpt_save_file);
	if (run->opt->group_ckpt_save_file)
		(void)ap_out_check_binary(run, run->opt->group_ckpt_save_file);
	if (run->opt->dot_out)
		(void)check_picture(run, run->opt->dot_out);
	AP_TRY(ap_diag_status(run->ctx.diag));
	for (size_t i = 0; i < out.n; i++)
		(void)check_target(run, out.v[i]);
	(void)ap_bundle_check(run);
	return ap_diag_status(run->ctx.diag);
}

enum ap_status ap_out_check_input(struct ap_run *run, const char *path)
{
	struct paths in = {0};

	collect_inputs(run, NULL, &in);
	for (size_t i = 0; i < in.n; i++)
		if (same_file(run, path, in.v[i]))
			return fault(run, AP_USAGE, path, "is also an input");
	return AP_OK;
}

/* The folder of the stage files: one that is there and takes files, or can be made. */
static enum ap_status check_folder(struct ap_run *run, const char *path)
{
	struct paths out = {0};
	struct stat st;

	AP_TRY(ap_out_check_input(run, path));
	collect_outputs(run, NULL, &out);
	for (size_t i = 0; i < out.n; i++)
		if (same_file(run, path, out.v[i]))
			return fault(run, AP_USAGE, path, "is an output, and the folder of the stage files");
	if (lstat(path, &st))
		return AP_OK;
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return fault(run, AP_USAGE, path,
			"is no folder; the files of the pipeline stages are written into one of this name");
	return access(path, W_OK | X_OK) ? fault(run, AP_IO, path, ap_arena_printf(run->ctx.arena,
		"cannot write: %s", strerror(errno))) : AP_OK;
}

enum ap_status ap_out_check_stages(struct ap_run *run, uint32_t nstage)
{
	const char *path = run->opt->strategy_ckpt_save_file;

	if (nstage == 1 || !path)
		return AP_OK;
	if (strcmp(path, "-") != 0)
		return check_folder(run, ap_ckpt_folder(run, path));
	return fault(run, AP_USAGE, path, ap_arena_printf(run->ctx.arena,
		"takes the strategy checkpoint of one pipeline stage, not of %" PRIu32
		"; expected the name of a file", nstage));
}

bool ap_out_is_json(const char *path)
{
	return ap_file_suffix(path, ".json");
}

static struct ap_outputs *outputs_of(struct ap_run *run)
{
	if (!run->outputs)
		run->outputs = ap_outputs_create(&run->ctx);
	return run->outputs;
}

enum ap_status ap_out_folder(struct ap_run *run, const char *path)
{
	return ap_outputs_folder(&run->ctx, outputs_of(run), path);
}

enum ap_status ap_out_open(struct ap_run *run, const char *path, struct ap_output_sink *out)
{
	out->o = outputs_of(run);
	return ap_outputs_open(&run->ctx, out->o, path, &out->id);
}

enum ap_status ap_out_text(struct ap_run *run, const char *text, size_t len)
{
	struct ap_output_sink sink;

	AP_TRY(ap_out_open(run, "-", &sink));
	ap_output_write_fn(&sink, text, len);
	return AP_OK;
}

/* A picture while it is made, of a plan or of what is given. */
struct drawing {
	struct ap_run *run;
	const struct ap_plan *plan; /* NULL: pic is */
	const struct ap_picture *pic;
	const char *format, *text;
	size_t len;
	enum ap_status st;
};

static void make_picture(void *user)
{
	struct drawing *d = user;
	struct ap_ctx *ctx = &d->run->ctx;
	struct ap_picture of_plan;
	uint32_t nbox;

	if (d->plan) {
		ap_picture_of_plan(ctx, d->plan, &of_plan);
		d->pic = &of_plan;
	}
	d->st = ap_emit_dot_apart(ctx, d->pic, (enum ap_pic_detail)d->run->opt->detail, &d->text, &d->len,
		&nbox);
	if (d->st == AP_OK && d->format && nbox > MANY_BOXES)
		d->st = ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, NULL,
			"the picture has %" PRIu32 " boxes: dot may take minutes; --detail fold "
			"draws at most %d", nbox, AP_PIC_MOST_BOXES);
	if (d->st == AP_OK && d->format)
		d->st = ap_emit_rendered(ctx, d->text, d->len, d->format, &d->text, &d->len);
}

/* Memory that runs out while a picture is drawn is no reason to lose what else there is: AP_LIMIT without
 * a message, and nothing is staged. */
static enum ap_status draw_picture(struct ap_run *run, const char *path, const struct ap_plan *plan,
	const struct ap_picture *pic)
{
	struct drawing d = {.run = run, .plan = plan, .pic = pic, .format = format_of(path)};
	struct ap_output_sink sink;
	struct ap_arena *made;
	enum ap_status st;

	if (!ap_attempt_apart(&run->ctx, make_picture, NULL, &d, &made))
		return AP_LIMIT;
	st = d.st;
	if (st == AP_OK)
		st = ap_out_open(run, path, &sink);
	if (st == AP_OK)
		ap_output_write_fn(&sink, d.text, d.len);
	ap_arena_destroy(made);
	return st;
}

enum ap_status ap_out_picture(struct ap_run *run, const char *path, const struct ap_picture *pic)
{
	enum ap_status st = draw_picture(run, path, NULL, pic);

	return st == AP_LIMIT ? fault(run, st, path, "memory ran out while the picture was drawn") : st;
}

/* What a search or an evaluation made. */
struct made {
	const struct ap_plan *plan;
	const struct ap_problem *problem; /* NULL: the search was stopped before there was one */
	const struct ap_op_template *op_template; /* NULL: none is given */
};

/* dot may take seconds: a time limit, which is one of the search, leaves them to it, a signal not. */
static enum ap_status stage_picture(struct ap_run *run, const char *path, const struct made *m)
{
	if (format_of(path) && ap_stop_signal())
		return AP_STOPPED;
	return draw_picture(run, path, m->plan, NULL);
}

static enum ap_status stage_problem(struct ap_run *run, const char *path, const struct made *m)
{
	struct ap_output_sink sink;

	if (!m->problem)
		return AP_STOPPED;
	AP_TRY(ap_out_open(run, path, &sink));
	ap_problem_write_json(m->problem, ap_output_write_fn, &sink);
	return AP_OK;
}

static enum ap_status stage_trace(struct ap_run *run, const char *path, const struct made *m)
{
	struct ap_output_sink sink;

	AP_TRY(ap_out_open(run, path, &sink));
	ap_emit_trace(&run->ctx, m->plan, ap_output_write_fn, &sink);
	return AP_OK;
}

static enum ap_status stage_plan(struct ap_run *run, const char *path, const struct made *m)
{
	struct ap_output_sink sink;

	AP_TRY(ap_out_open(run, path, &sink));
	ap_emit_plan_json(&run->ctx, m->plan, ap_output_write_fn, &sink);
	return AP_OK;
}

static enum ap_status stage_config(struct ap_run *run, const char *path, const struct made *m)
{
	struct ap_output_sink sink;
	struct ap_str text;

	AP_TRY(ap_out_open(run, path, &sink));
	ap_str_init(&text, run->ctx.arena);
	ap_stages_write_config(&run->ctx, m->plan->graph, &text);
	ap_output_write_fn(&sink, text.s, text.len);
	return AP_OK;
}

static enum ap_status stage_groups(struct ap_run *run, const char *path, const struct made *m)
{
	struct ap_output_sink sink;
	struct ap_groups groups;

	AP_TRY(ap_out_open(run, path, &sink));
	ap_groups_of_plan(&run->ctx, m->plan, run->opt->global_rank, &groups);
	ap_groups_write(&run->ctx, &groups, ap_output_write_fn, &sink);
	return AP_OK;
}

static enum ap_status stage_bundle(struct ap_run *run, const char *path, const struct made *m)
{
	(void)path;
	return ap_bundle_stage(run, m->plan, m->op_template);
}

/* The stage files of a pipeline come first, the merged one last. */
static enum ap_status stage_stages(struct ap_run *run, const char *path, const struct ap_plan *p)
{
	struct ap_ckpt *stage = AP_NEW_N(run->ctx.arena, struct ap_ckpt, p->nstage);
	const char *folder = ap_ckpt_folder(run, path);
	struct ap_written older = {0};

	for (uint32_t s = 0; s < p->nstage; s++)
		ap_ckpt_of_stage(&run->ctx, p, (int32_t)s, !run->opt->only_trainable_params,
			&stage[s]);
	ap_ckpt_written(run, path, &older);
	return ap_ckpt_stage_folder(run, folder, ap_out_is_json(path) ? ".json" : ".ckpt", p->nstage,
		stage, &older);
}

static enum ap_status stage_strategy(struct ap_run *run, const char *path, const struct made *m)
{
	struct ap_ckpt ckpt;

	if (m->plan->nstage > 1)
		AP_TRY(stage_stages(run, path, m->plan));
	else /* what a run of more stages left that was killed */
		ap_outputs_clear(outputs_of(run), ap_ckpt_folder(run, path));
	ap_ckpt_of_plan(&run->ctx, m->plan, !run->opt->only_trainable_params, &ckpt);
	AP_TRY(ap_ckpt_check_empty(&run->ctx, shown(path), &ckpt));
	return ap_ckpt_stage_file(run, path, &ckpt);
}

static void add_text(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

static void summarize(struct ap_run *run, const struct ap_plan *plan, struct ap_str *text)
{
	ap_str_init(text, run->ctx.arena);
	if (run->opt->json)
		ap_emit_summary_json(plan, add_text, text);
	else if (!run->opt->quiet)
		ap_emit_summary(plan, text);
}

/* What takes too long when we are told to stop is no reason to lose the plan. */
static enum ap_status leave_out(struct ap_run *run, const char *path, const char *why, const char *hint)
{
	struct ap_where where = {.file = path};

	return ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK, &where, NULL, "is left out, for %s%s", why,
		hint);
}

/* *taken: one of the files is standard output. */
static enum ap_status stage_files(struct ap_run *run, const struct made *m, bool *taken)
{
	static const struct {
		enum ap_opt_id id;
		enum ap_status (*stage)(struct ap_run *, const char *, const struct made *);
		const char *hint; /* where it is left out */
	} writers[] = { /* in the order in which they are put in place */
		{AP_OPT_dot_out, stage_picture, "; `autopar-plan render` draws it from the plan"},
		{AP_OPT_trace_out, stage_trace, ""},
		{AP_OPT_problem_out, stage_problem, ""},
		{AP_OPT_plan_out, stage_plan, ""},
		{AP_OPT_stage_config_out, stage_config, ""},
		{AP_OPT_group_ckpt_save_file, stage_groups, ""},
		{AP_OPT_bundle, stage_bundle, ""},
		{AP_OPT_strategy_ckpt_save_file, stage_strategy, ""},
	};
	enum ap_status outcome = AP_OK;

	for (size_t i = 0; i < AP_COUNT(writers); i++) {
		const char *path = ap_option_path(ap_option_at(writers[i].id), run->opt);
		enum ap_status st = path ? writers[i].stage(run, path, m) : AP_OK;

		*taken |= path && !strcmp(path, "-");
		if (st == AP_STOPPED || (st == AP_LIMIT && writers[i].id == AP_OPT_dot_out)) {
			outcome = AP_STOPPED;
			st = leave_out(run, path, st == AP_STOPPED ? "the run was stopped"
				: "memory ran out while it was drawn", writers[i].hint);
		}
		AP_TRY(st);
	}
	return outcome;
}

enum ap_status ap_out_plan(struct ap_run *run, const struct ap_plan *plan,
	const struct ap_problem *problem, const struct ap_op_template *op_template)
{
	const struct made m = {plan, problem, op_template};
	struct ap_str summary;
	bool taken = false;
	enum ap_status st = stage_files(run, &m, &taken);

	if (st != AP_OK && st != AP_STOPPED)
		return st;
	summarize(run, plan, &summary);
	if (!taken && summary.len)
		AP_TRY(ap_out_text(run, summary.s, summary.len));
	AP_TRY(ap_out_commit(run));
	if (taken)
		fputs(summary.s, stderr);
	return st;
}

enum ap_status ap_out_commit(struct ap_run *run)
{
	AP_TRY(ap_diag_status(run->ctx.diag));
	return run->outputs ? ap_outputs_commit(&run->ctx, run->outputs) : AP_OK;
}
