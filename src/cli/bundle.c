/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "bundle/bundle.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/run.h"
#include "cli/stage_files.h"
#include "cli/written.h"

static enum ap_status fault(
	struct ap_run *run, enum ap_status st, const char *path, const char *text)
{
	struct ap_where where = {.file = path};

	return ap_diag_add(run->ctx.diag, AP_ERROR, st, &where, NULL, "%s", text);
}

static enum ap_status cannot_write(struct ap_run *run, const char *path)
{
	return fault(run, AP_IO, path,
		ap_arena_printf(run->ctx.arena, "cannot write: %s", strerror(errno)));
}

/* The folder, without slashes at its end. */
static const char *folder(struct ap_run *run)
{
	const char *path = run->opt->bundle;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return ap_arena_strndup(run->ctx.arena, path, len);
}

static const char *join_to(struct ap_run *run, const char *dir, const char *name)
{
	bool slash = *dir && dir[strlen(dir) - 1] == '/';

	return ap_arena_printf(run->ctx.arena, "%s%s%s", dir, slash ? "" : "/", name);
}

static const char *join(struct ap_run *run, const char *name)
{
	return join_to(run, folder(run), name);
}

static bool exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* What a folder is to a bundle. */
enum state {
	FREE, /* not there, or nothing in it */
	BEGUN, /* a run is at work on it, or was killed */
	BUNDLE,
	UNLISTED, /* a bundle whose manifest is missing or cannot be read; older versions wrote none */
	TAKEN, /* none of these */
};

struct ap_bundle_folder {
	enum state state;
	struct ap_written older; /* what runs before wrote: manifest, notes of one that was killed */
};

bool ap_bundle_has_mark(struct ap_run *run, const char *dir)
{
	const char *path = ap_arena_printf(run->ctx.arena, "%s/" AP_BUNDLE_README, dir);
	char text[sizeof AP_BUNDLE_MARK] = "";
	struct stat st;
	FILE *file = !stat(path, &st) && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
	size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;

	if (file)
		fclose(file);
	return len == sizeof text - 1 && !strcmp(text, AP_BUNDLE_MARK);
}

/* Without a message. */
static bool read_manifest(struct ap_run *run, struct ap_bundle_manifest *out)
{
	const char *path = join(run, AP_BUNDLE_MANIFEST);
	struct ap_diag *real = run->ctx.diag;
	struct ap_json *doc;
	struct stat st;
	size_t len;
	char *text;
	bool read;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	run->ctx.diag = ap_diag_create(run->ctx.arena, false);
	read = ap_file_read(&run->ctx, path, AP_FILE_MAX_BYTES, &text, &len) == AP_OK &&
		ap_json_parse(&run->ctx, path, text, len, 0, &doc) == AP_OK &&
		ap_bundle_manifest_read(&run->ctx, doc, out) == AP_OK;
	run->ctx.diag = real;
	return read;
}

static enum state look_at(struct ap_run *run, struct ap_bundle_manifest *manifest)
{
	const char *dir = folder(run);

	*manifest = (struct ap_bundle_manifest){0};
	if (!exists(dir))
		return FREE;
	if (read_manifest(run, manifest))
		return BUNDLE;
	if (ap_bundle_has_mark(run, dir))
		return UNLISTED;
	if (exists(join(run, AP_BUNDLE_LOCK)))
		return BEGUN;
	return ap_folder_is_free(dir) ? FREE : TAKEN;
}

/* Another run may begin or end between two of the looks: its files are seen, its lock not yet, or the lock
 * is gone and the manifest was not there before. Who looks again sees the one or the other. */
static enum state find_state(struct ap_run *run, struct ap_bundle_manifest *manifest)
{
	enum state state = TAKEN;

	for (int i = 0; i < 8 && state == TAKEN; i++)
		state = look_at(run, manifest);
	return state;
}

/* Names a file that the bundle would have itself, if there is one. */
static enum ap_status refuse_taken(struct ap_run *run)
{
	const char *const *name, *path;
	size_t n;

	AP_TRY(ap_folder_names(&run->ctx, folder(run), &n, &name));
	for (size_t i = 0; (path = ap_bundle_path(run, i)); i++)
		if (exists(path))
			break;
	path = path ? path : n ? join(run, name[0]) : folder(run); /* hidden files only */
	return fault(run, AP_USAGE, path,
		"is in the way: the folder is not empty and holds no bundle; expected a new or an empty "
		"folder, or one that holds a bundle");
}

static enum ap_status check_folder(struct ap_run *run, const char *dir)
{
	const char *base = ap_file_base(dir);
	const char *parent =
		base == dir ? "."
			    : ap_arena_printf(run->ctx.arena, "%.*s.", (int)(base - dir), dir);
	struct ap_bundle_manifest manifest;

	if (!strcmp(dir, "-"))
		return fault(run, AP_USAGE, "standard output",
			"is no folder; expected one for the bundle");
	AP_TRY(ap_out_check_input(run, dir));
	if (!exists(dir))
		return access(parent, W_OK | X_OK) ? cannot_write(run, dir) : AP_OK;
	if (!ap_file_is_folder(dir))
		return fault(run, AP_USAGE, dir, "is no folder; expected one for the bundle");
	if (find_state(run, &manifest) == TAKEN)
		return refuse_taken(run);
	return access(dir, W_OK | X_OK) ? cannot_write(run, dir) : AP_OK;
}

/* Other people's files are not written over. */
static enum ap_status check_names(struct ap_run *run, const struct ap_bundle_folder *f)
{
	const struct ap_bundle_file *file;

	for (size_t i = 0; f->state != UNLISTED && (file = ap_bundle_file_at(i)); i++) {
		const char *path = join(run, file->name);

		if (exists(path) && strcmp(file->name, AP_BUNDLE_MANIFEST) != 0 &&
			!ap_written_has(&f->older, file->name))
			(void)fault(run, AP_USAGE, path,
				"is in the way of a file of the bundle, and no run wrote it; expected it "
				"elsewhere, or another folder for the bundle");
	}
	if (exists(join(run, AP_BUNDLE_STAGES)) && !ap_file_is_folder(join(run, AP_BUNDLE_STAGES)))
		(void)fault(run, AP_USAGE, join(run, AP_BUNDLE_STAGES),
			"is no folder; the files of the pipeline stages are written into one of this name");
	return ap_diag_status(run->ctx.diag);
}

enum ap_status ap_bundle_check(struct ap_run *run)
{
	if (run->opt->bundle)
		return check_folder(run, folder(run));
	if (!run->opt->operator_strategy_template)
		return AP_OK;
	return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"--operator-strategy-template %s is filled into a file of a bundle; --bundle DIR "
		"is missing",
		run->opt->operator_strategy_template);
}

enum ap_status ap_bundle_begin(struct ap_run *run)
{
	struct ap_bundle_folder *f = AP_NEW(run->ctx.arena, struct ap_bundle_folder);
	struct ap_bundle_manifest manifest;
	const char *notes;

	if (!run->opt->bundle)
		return AP_OK;
	AP_TRY(ap_out_folder(run, folder(run)));
	f->state = find_state(run, &manifest); /* before there is a lock of our own */
	if (f->state == TAKEN)
		return refuse_taken(run);
	AP_TRY(ap_outputs_lock(&run->ctx, run->outputs, folder(run), AP_BUNDLE_LOCK, &notes));
	if (f->state != UNLISTED && read_manifest(run, &manifest)) /* by a run that ended meanwhile */
		f->state = BUNDLE;
	for (uint32_t i = 0; i < manifest.npart; i++)
		ap_written_add(&run->ctx, &f->older, manifest.part[i].name, manifest.part[i].sha256);
	ap_written_add_text(&run->ctx, &f->older, notes);
	run->bundle = f;
	ap_outputs_clear(run->outputs, folder(run));
	ap_outputs_clear(run->outputs, join(run, AP_BUNDLE_STAGES));
	return check_names(run, f);
}

const char *ap_bundle_path(struct ap_run *run, size_t i)
{
	const struct ap_bundle_file *file = ap_bundle_file_at(i);

	if (!run->opt->bundle)
		return NULL;
	if (file)
		return join(run, file->name);
	return i == 0 || ap_bundle_file_at(i - 1) ? join(run, AP_BUNDLE_STAGES) : NULL;
}

enum ap_status ap_bundle_template(struct ap_run *run, const struct ap_op_template **out)
{
	const char *path = run->opt->operator_strategy_template;
	struct ap_input in;
	struct ap_json *doc;

	*out = NULL;
	if (!path)
		return AP_OK;
	AP_TRY(ap_input_read(run, path, &in));
	AP_TRY(ap_input_json(run, &in, 0, &doc));
	return ap_op_template_read(&run->ctx, doc, out);
}

/* The settings of the plan, and those that no plan depends on. */
static void add_settings(struct ap_run *run, const struct ap_plan *plan, struct ap_bundle *b)
{
	struct ap_setting *list =
		AP_NEW_N(run->ctx.arena, struct ap_setting, plan->nsetting + AP_OPT_COUNT);
	uint32_t n = plan->nsetting;

	for (uint32_t i = 0; i < plan->nsetting; i++)
		list[i] = plan->setting[i];
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);

		if (row->group == AP_GROUP_ACCEPTED)
			list[n++] = (struct ap_setting){
				row->key, ap_option_json(run->ctx.arena, row, run->opt)};
	}
	b->nsetting = n;
	b->setting = list;
}

struct staging {
	struct ap_run *run;
	struct ap_bundle *b;
	const struct ap_written *older;
	struct ap_written written;
	struct parts {
		struct ap_bundle_part *v;
		size_t n, cap;
	} parts;
};

static void list(void *user, const char *name, const struct ap_file_sum *sum)
{
	struct staging *s = user;
	struct ap_arena *arena = s->run->ctx.arena;
	struct ap_bundle_part part = {name, sum->bytes, ap_arena_strdup(arena, sum->sha256)};

	AP_PUSH(arena, s->parts, part);
	ap_written_add(&s->run->ctx, &s->written, name, part.sha256);
	s->b->part = s->parts.v;
	s->b->npart = (uint32_t)s->parts.n;
}

static enum ap_status stage_file(struct staging *s, const struct ap_bundle_file *file)
{
	const char *path = join(s->run, file->name);
	struct ap_output_sink sink;
	struct ap_file_sum sum;

	if (file->wanted && !file->wanted(s->b))
		return AP_OK;
	AP_TRY(ap_out_open(s->run, path, &sink));
	file->write(&s->run->ctx, s->b, ap_output_write_fn, &sink);
	ap_outputs_sum(sink.o, sink.id, &sum);
	list(s, file->name, &sum);
	return strcmp(file->name, AP_BUNDLE_MANIFEST) && s->run->bundle->state != UNLISTED
		? ap_written_replace(s->run, s->older, file->name, path, sum.sha256)
		: AP_OK;
}

/* Of one stage there are no files of stages. */
static enum ap_status stage_stages(struct staging *s)
{
	struct ap_run *run = s->run;
	uint32_t n = s->b->plan->nstage > 1 ? s->b->plan->nstage : 0;
	struct ap_ckpt *stage = AP_NEW_N(run->ctx.arena, struct ap_ckpt, n + 1);

	for (uint32_t i = 0; i < n; i++)
		ap_ckpt_of_stage(&run->ctx, s->b->plan, (int32_t)i, s->b->frozen, &stage[i]);
	if (!n)
		return AP_OK;
	return ap_ckpt_stage_files(run, join(run, AP_BUNDLE_STAGES), AP_BUNDLE_STAGES "/", ".ckpt", n, stage,
		s->older, list, s);
}

static enum ap_status clear_file(struct staging *s, const char *name)
{
	const char *path = join(s->run, name);
	bool gone;

	AP_TRY(ap_written_remove(s->run, s->older, name, path, &gone));
	if (gone)
		return AP_OK;
	return ap_diag_add(s->run->ctx.diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path},
		"bundle-files", "is no file of the bundle, and %s; it stays",
		ap_written_has(s->older, name) ? "was changed after a run had written it"
					       : "is not known to be written by a run");
}

/* What runs before wrote and this one does not goes; what others wrote or changed stays. */
static enum ap_status clear_folder(struct staging *s, const char *sub)
{
	struct ap_run *run = s->run;
	const char *const *name;
	size_t n;

	AP_TRY(ap_folder_names(&run->ctx, *sub ? join(run, sub) : folder(run), &n, &name));
	for (size_t i = 0; i < n; i++) {
		const char *known =
			*sub ? ap_arena_printf(run->ctx.arena, "%s/%s", sub, name[i]) : name[i];

		if (!strcmp(known, AP_BUNDLE_STAGES) && ap_file_is_folder(join(run, known))) {
			if (s->b->plan->nstage == 1)
				ap_outputs_empty(&run->ctx, run->outputs, join(run, known));
			AP_TRY(clear_folder(s, known));
		} else if (!ap_written_has(&s->written, known) && strcmp(known, AP_BUNDLE_CACHE) != 0 &&
			   strcmp(known, AP_BUNDLE_MANIFEST) != 0) {
			AP_TRY(clear_file(s, known));
		}
	}
	return AP_OK;
}

enum ap_status ap_bundle_stage(
	struct ap_run *run, const struct ap_plan *plan, const struct ap_op_template *op_template)
{
	struct ap_expert expert;
	struct ap_bundle b = {
		.plan = plan,
		.op_template = op_template,
		.expert = &expert,
		.frozen = !run->opt->only_trainable_params,
		.global_rank = run->opt->global_rank,
	};
	struct staging s = {.run = run, .b = &b, .older = &run->bundle->older};
	const struct ap_bundle_file *file;
	const char *notes;

	if (op_template)
		AP_TRY(ap_op_template_check(&run->ctx, op_template, plan));
	ap_expert_find(&run->ctx, plan, &expert);
	add_settings(run, plan, &b);
	AP_TRY(stage_stages(&s));
	for (size_t i = 0; (file = ap_bundle_file_at(i)); i++) {
		if (!strcmp(file->name, AP_BUNDLE_MANIFEST)) /* the last; what goes, goes before */
			AP_TRY(clear_folder(&s, ""));
		AP_TRY(stage_file(&s, file));
	}
	notes = ap_written_text(&run->ctx, &s.written);
	return ap_outputs_note(&run->ctx, run->outputs, notes, strlen(notes));
}

bool ap_bundle_is(struct ap_run *run, const char *dir)
{
	return exists(join_to(run, dir, AP_BUNDLE_MANIFEST)) || exists(join_to(run, dir, AP_BUNDLE_LOCK)) ||
	       ap_bundle_has_mark(run, dir);
}

static void verify_file(struct ap_run *run, const char *path, const struct ap_bundle_part *part)
{
	struct ap_where where = {.file = path};
	struct ap_diag *diag = run->ctx.diag;
	struct ap_file_sum sum;
	int error = ap_file_sum(path, &sum);

	if (error == ENOENT || error == ENOTDIR)
		(void)ap_diag_add(diag, AP_ERROR, AP_MEANING, &where, "bundle-missing",
			"is missing; the bundle was made with it");
	else if (error)
		(void)ap_diag_add(diag, AP_ERROR, AP_IO, &where, NULL, "cannot read: %s", strerror(error));
	else if (sum.bytes != part->bytes || strcmp(sum.sha256, part->sha256) != 0)
		(void)ap_diag_add(diag, AP_ERROR, AP_MEANING, &where, "bundle-changed",
			"is not what the bundle was made with: %" PRId64 " bytes, SHA-256 %.12s..; expected "
			"%" PRId64 ", %.12s..",
			sum.bytes, sum.sha256, part->bytes, part->sha256);
}

static enum ap_status find_others(struct ap_run *run, const char *dir, const char *sub,
	const struct ap_written *listed)
{
	const char *const *name;
	size_t n;

	AP_TRY(ap_folder_names(&run->ctx, join_to(run, dir, sub), &n, &name));
	for (size_t i = 0; i < n; i++) {
		const char *known =
			*sub ? ap_arena_printf(run->ctx.arena, "%s/%s", sub, name[i]) : name[i];
		const char *path = join_to(run, dir, known);

		if (!strcmp(known, AP_BUNDLE_STAGES) && ap_file_is_folder(path))
			AP_TRY(find_others(run, dir, known, listed));
		else if (!ap_written_has(listed, known) && strcmp(known, AP_BUNDLE_CACHE) != 0)
			(void)ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING,
				&(struct ap_where){.file = path}, "bundle-extra",
				"is no file of the bundle; expected it elsewhere");
	}
	return AP_OK;
}

enum ap_status ap_bundle_verify(struct ap_run *run, const char *dir, struct ap_bundle_manifest *out)
{
	struct ap_written listed = {0};
	size_t errors = ap_diag_count(run->ctx.diag, AP_ERROR);
	struct ap_input in;
	struct ap_json *doc;

	if (!exists(join_to(run, dir, AP_BUNDLE_MANIFEST)))
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = dir},
			"bundle-whole",
			"holds a bundle without " AP_BUNDLE_MANIFEST ": the run that made it has not ended, "
			"was killed, or was of an older version; expected a whole one");
	AP_TRY(ap_input_read(run, join_to(run, dir, AP_BUNDLE_MANIFEST), &in));
	AP_TRY(ap_input_json(run, &in, 0, &doc));
	AP_TRY(ap_bundle_manifest_read(&run->ctx, doc, out));
	ap_written_add(&run->ctx, &listed, AP_BUNDLE_MANIFEST, "");
	for (uint32_t i = 0; i < out->npart; i++) {
		ap_written_add(&run->ctx, &listed, out->part[i].name, out->part[i].sha256);
		verify_file(run, join_to(run, dir, out->part[i].name), &out->part[i]);
	}
	AP_TRY(find_others(run, dir, "", &listed));
	return ap_diag_count(run->ctx.diag, AP_ERROR) == errors ? AP_OK : ap_diag_status(run->ctx.diag);
}
