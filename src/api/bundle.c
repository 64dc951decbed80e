/* SPDX-License-Identifier: Apache-2.0 */
#include "api/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/network.h"
#include "api/planning.h"
#include "api/stage_files.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/op_strategy.h"
#include "model/megatron.h"

/* The folder without trailing slashes. */
static const char *folder(struct ap_writing *to)
{
	const char *path = to->set->bundle;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return ap_arena_strndup(to->ctx->arena, path, len);
}

static const char *join(struct ap_writing *to, const char *name)
{
	return ap_path_join(to->ctx->arena, folder(to), name);
}

static bool exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* What the bundle's folder holds. */
enum state {
	FREE, /* missing or empty */
	BEGUN, /* files of a run that is at work, or that was killed */
	BUNDLE,
	UNLISTED, /* a bundle without a readable manifest; older versions wrote none */
	TAKEN, /* anything else */
};

struct ap_bundle_folder {
	enum state state;
	struct ap_written older; /* written by earlier runs: manifest, and notes of killed ones */
};

/* Does the folder hold the README of a bundle, starting with the mark? */
static bool has_mark(struct ap_arena *arena, const char *dir)
{
	const char *path = ap_arena_printf(arena, "%s/" AP_BUNDLE_README, dir);
	char text[sizeof AP_BUNDLE_MARK] = "";
	struct stat st;
	FILE *file = !stat(path, &st) && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
	size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;

	if (file)
		fclose(file);
	return len == sizeof text - 1 && !strcmp(text, AP_BUNDLE_MARK);
}

/* Issues no messages. */
static bool read_manifest(struct ap_writing *to, struct ap_bundle_manifest *out)
{
	const char *path = join(to, AP_BUNDLE_MANIFEST);
	struct ap_ctx quiet = ap_diag_apart(to->ctx);
	struct ap_json *doc;
	struct stat st;
	size_t len;
	char *text;

	return !stat(path, &st) && S_ISREG(st.st_mode) &&
		ap_file_read(&quiet, path, AP_FILE_MAX_BYTES, &text, &len) == AP_OK &&
		ap_json_parse(&quiet, path, text, len, 0, &doc) == AP_OK &&
		ap_bundle_manifest_read(&quiet, doc, out) == AP_OK;
}

static enum state look_at(struct ap_writing *to, struct ap_bundle_manifest *manifest)
{
	const char *dir = folder(to);

	*manifest = (struct ap_bundle_manifest){0};
	if (!exists(dir))
		return FREE;
	if (read_manifest(to, manifest))
		return BUNDLE;
	if (has_mark(to->ctx->arena, dir))
		return UNLISTED;
	if (exists(join(to, AP_BUNDLE_LOCK)))
		return BEGUN;
	return ap_folder_is_free(dir) ? FREE : TAKEN;
}

/* Another run may begin or end between two looks, so that its files are seen but not yet its lock,
 * or its lock is gone but the manifest was not yet there. Looking again resolves that. */
static enum state find_state(struct ap_writing *to, struct ap_bundle_manifest *manifest)
{
	enum state state = TAKEN;

	for (int i = 0; i < 8 && state == TAKEN; i++)
		state = look_at(to, manifest);
	return state;
}

const char *const *ap_bundle_paths(struct ap_writing *to)
{
	const char **path;
	size_t n = 0;

	if (!to->set->bundle)
		return NULL;
	while (ap_bundle_file_at(n))
		n++;
	path = AP_NEW_N(to->ctx->arena, const char *, n + 2);
	for (size_t i = 0; i < n; i++)
		path[i] = join(to, ap_bundle_file_at(i)->name);
	path[n] = join(to, AP_BUNDLE_STAGES);
	return path;
}

/* Reports a file that is in the way of the bundle. */
static enum ap_status refuse_taken(struct ap_writing *to)
{
	const char *const *name, *path;
	size_t n;

	AP_TRY(ap_folder_names(to->ctx, folder(to), &n, &name));
	for (const char *const *p = ap_bundle_paths(to); (path = *p) && !exists(path); p++)
		;
	path = path ? path : n ? join(to, name[0]) : folder(to); /* only hidden files */
	return ap_out_fault(to, AP_USAGE, path,
		"is in the way: the folder is not empty and holds no bundle; expected a new or an empty "
		"folder, or one that holds a bundle");
}

static enum ap_status check_folder(struct ap_writing *to, const char *dir)
{
	const char *parent = ap_path_folder(to->ctx->arena, dir);
	struct ap_bundle_manifest manifest;

	if (!strcmp(dir, "-"))
		return ap_out_fault(to, AP_USAGE, dir,
			"is no folder; expected one for the bundle");
	AP_TRY(ap_out_check_input(to, dir));
	if (!exists(dir))
		return access(parent, W_OK | X_OK) ? ap_out_cannot_write(to, dir) : AP_OK;
	if (!ap_file_is_folder(dir))
		return ap_out_fault(to, AP_USAGE, dir, "is no folder; expected one for the bundle");
	if (find_state(to, &manifest) == TAKEN)
		return refuse_taken(to);
	return access(dir, W_OK | X_OK) ? ap_out_cannot_write(to, dir) : AP_OK;
}

/* Refuses to overwrite files that no run wrote. */
static enum ap_status check_names(struct ap_writing *to, const struct ap_bundle_folder *f)
{
	const struct ap_bundle_file *file;

	for (size_t i = 0; f->state != UNLISTED && (file = ap_bundle_file_at(i)); i++) {
		const char *path = join(to, file->name);

		if (exists(path) && strcmp(file->name, AP_BUNDLE_MANIFEST) != 0 &&
			!ap_written_has(&f->older, file->name))
			(void)ap_out_fault(to, AP_USAGE, path,
				"is in the way of a file of the bundle, and no run wrote it; expected it "
				"elsewhere, or another folder for the bundle");
	}
	if (exists(join(to, AP_BUNDLE_STAGES)) && !ap_file_is_folder(join(to, AP_BUNDLE_STAGES)))
		(void)ap_out_fault(to, AP_USAGE, join(to, AP_BUNDLE_STAGES),
			"is no folder; the files of the pipeline stages are written into one of this name");
	return ap_diag_status(to->ctx->diag);
}

enum ap_status ap_bundle_check(struct ap_writing *to)
{
	if (to->set->bundle)
		return check_folder(to, folder(to));
	if (!to->set->operator_strategy_template)
		return AP_OK;
	return ap_diag_add(to->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"--operator-strategy-template %s is filled into a file of a bundle; --bundle DIR "
		"is missing",
		to->set->operator_strategy_template);
}

enum ap_status ap_bundle_begin(struct ap_writing *to)
{
	struct ap_bundle_folder *f = AP_NEW(to->ctx->arena, struct ap_bundle_folder);
	struct ap_bundle_manifest manifest;
	const char *notes;

	if (!to->set->bundle)
		return AP_OK;
	AP_TRY(ap_out_folder(to, folder(to)));
	f->state = find_state(to, &manifest); /* before we take the lock ourselves */
	if (f->state == TAKEN)
		return refuse_taken(to);
	AP_TRY(ap_outputs_lock(to->ctx, to->staged, folder(to), AP_BUNDLE_LOCK, &notes));
	if (f->state != UNLISTED && read_manifest(to, &manifest)) /* another run ended in between */
		f->state = BUNDLE;
	for (uint32_t i = 0; i < manifest.npart; i++)
		ap_written_add(to->ctx, &f->older, manifest.part[i].name, manifest.part[i].sha256);
	ap_written_add_text(to->ctx, &f->older, notes);
	to->bundle = f;
	ap_outputs_clear(to->staged, folder(to));
	ap_outputs_clear(to->staged, join(to, AP_BUNDLE_STAGES));
	return check_names(to, f);
}

enum ap_status ap_bundle_template(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_op_template **out)
{
	const char *path = set->operator_strategy_template;
	struct ap_input in;
	struct ap_json *doc;

	*out = NULL;
	if (!path)
		return AP_OK;
	AP_TRY(ap_input_read(ctx, set, path, &in));
	AP_TRY(ap_input_json(ctx, &in, 0, &doc));
	return ap_op_template_read(ctx, doc, out);
}

static struct ap_bundle_asked asked_of(const struct ap_settings *set)
{
	static const enum ap_bundle_mode modes[] = {
		[AP_MODE_AUTO_PARALLEL] = AP_BUNDLE_ROUTE,
		[AP_MODE_SEMI_AUTO_PARALLEL] = AP_BUNDLE_SEMI_AUTO,
		[AP_MODE_DATA_PARALLEL] = AP_BUNDLE_DATA_PARALLEL,
		[AP_MODE_HYBRID_PARALLEL] = AP_BUNDLE_HYBRID_PARALLEL,
		[AP_MODE_STAND_ALONE] = AP_BUNDLE_STAND_ALONE,
	};
	size_t groups = (size_t)set->communi_parallel_mode;

	return (struct ap_bundle_asked){
		.mode = modes[set->parallel_mode],
		.route = ap_route_at((size_t)set->executor),
		.broadcasts_result = set->pipeline_result_broadcast,
		.broadcasts_parameters = set->parameter_broadcast,
		.sums_loss = !set->loss_repeated_mean,
		.dumps_norms = set->dump_local_norm,
		.dumps_device_norms = set->dump_device_local_norm,
		.norm_path = set->dump_local_norm_path,
		.group_mode = groups ? ap_setting_at(AP_SET_communi_parallel_mode)->choices(groups) : NULL,
		.interleave_num = set->interleave_num,
		.scale_sense = set->scale_sense,
		.speed_up = {
#define SWITCH(name, is_number) set->name,
			AP_SPEED_UPS(SWITCH)
#undef SWITCH
		},
	};
}

struct staging {
	struct ap_writing *to;
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
	struct ap_arena *arena = s->to->ctx->arena;
	struct ap_bundle_part part = {name, sum->bytes, ap_arena_strdup(arena, sum->sha256)};

	AP_PUSH(arena, s->parts, part);
	ap_written_add(s->to->ctx, &s->written, name, part.sha256);
	s->b->part = s->parts.v;
	s->b->npart = (uint32_t)s->parts.n;
}

static enum ap_status stage_file(struct staging *s, const struct ap_bundle_file *file)
{
	const char *path = join(s->to, file->name);
	struct ap_output_sink sink;
	struct ap_file_sum sum;

	if (file->wanted && !file->wanted(s->b))
		return AP_OK;
	AP_TRY(ap_out_open(s->to, path, &sink));
	file->write(s->to->ctx, s->b, ap_output_write_fn, &sink);
	ap_outputs_sum(sink.o, sink.id, &sum);
	list(s, file->name, &sum);
	return strcmp(file->name, AP_BUNDLE_MANIFEST) && s->to->bundle->state != UNLISTED
		? ap_written_replace(s->to, s->older, file->name, path, sum.sha256)
		: AP_OK;
}

/* A plan of one stage has no stage files. */
static enum ap_status stage_stages(struct staging *s)
{
	struct ap_writing *to = s->to;
	uint32_t n = s->b->plan->nstage > 1 ? s->b->plan->nstage : 0;
	struct ap_ckpt *stage = AP_NEW_N(to->ctx->arena, struct ap_ckpt, n + 1);

	for (uint32_t i = 0; i < n; i++)
		ap_ckpt_of_stage(to->ctx, s->b->plan, (int32_t)i, s->b->frozen, &stage[i]);
	if (!n)
		return AP_OK;
	return ap_ckpt_stage_files(to, join(to, AP_BUNDLE_STAGES), AP_BUNDLE_STAGES "/", ".ckpt", n, stage,
		s->older, list, s);
}

static enum ap_status clear_file(struct staging *s, const char *name)
{
	const char *path = join(s->to, name);
	bool gone;

	AP_TRY(ap_written_remove(s->to, s->older, name, path, &gone));
	if (gone)
		return AP_OK;
	return ap_diag_add(s->to->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path},
		"bundle-files", "is no file of the bundle, and %s; it stays",
		ap_written_has(s->older, name) ? "was changed after a run had written it"
					       : "is not known to be written by a run");
}

/* Removes what earlier runs wrote and this one does not; keeps what others wrote or changed. */
static enum ap_status clear_folder(struct staging *s, const char *sub)
{
	struct ap_writing *to = s->to;
	const char *const *name;
	size_t n;

	AP_TRY(ap_folder_names(to->ctx, *sub ? join(to, sub) : folder(to), &n, &name));
	for (size_t i = 0; i < n; i++) {
		const char *known =
			*sub ? ap_arena_printf(to->ctx->arena, "%s/%s", sub, name[i]) : name[i];

		if (!strcmp(known, AP_BUNDLE_STAGES) && ap_file_is_folder(join(to, known))) {
			if (s->b->plan->nstage == 1)
				ap_outputs_empty(to->ctx, to->staged, join(to, known));
			AP_TRY(clear_folder(s, known));
		} else if (!ap_written_has(&s->written, known) && strcmp(known, AP_BUNDLE_CACHE) != 0 &&
			   strcmp(known, AP_BUNDLE_MANIFEST) != 0) {
			AP_TRY(clear_file(s, known));
		}
	}
	return AP_OK;
}

/* What the arguments of Megatron say of the network that the graph was made from, or that it is; NULL: it is
 * not known. */
static const struct ap_bundle_network *network_of(struct ap_ctx *ctx, const struct ap_made *made, int64_t tp)
{
	struct ap_bundle_network *network = AP_NEW(ctx->arena, struct ap_bundle_network);
	const struct ap_decoder *d = made->decoder;
	struct ap_megatron_words words = {0};
	struct ap_network read = {0};

	network->read = !d && made->loaded && ap_network_find(ctx, made->loaded, &read);
	if (!d && !network->read)
		return NULL;
	d = network->read ? &read.decoder : d;
	if (!read.sizes_alone)
		words = ap_megatron_of_decoder(ctx->arena, d, tp);
	if (network->read && words.n == 0) {
		read.missing = read.missing ? read.missing : "what of its layers no argument says";
		words = ap_megatron_of_sizes(ctx->arena, d, tp);
	}
	network->missing = read.missing;
	network->n = words.n;
	network->word = words.word;
	network->layers = d->layers;
	network->further = d->further;
	return words.n ? network : NULL;
}

/* A plan that was given is refused where its executor cannot be told of all of it; for one that was found a
 * warning does, and README.txt says the same. */
static enum ap_status check_said(struct ap_ctx *ctx, const struct ap_bundle *b)
{
	static const char *const how[] = {[AP_UNSAID_STOPS] = "would not start with",
		[AP_UNSAID_LEFT] = "cannot be told", [AP_UNSAID_OTHERWISE] = "is told otherwise"};
	enum ap_language own = ap_bundle_language(b);
	const struct ap_said *said = own < AP_LANGUAGES ? &b->said[own] : NULL;

	for (uint32_t i = 0; said && i < said->nunsaid; i++) {
		bool refused = b->plan->search.status == AP_PLAN_GIVEN &&
			said->unsaid[i].kind != AP_UNSAID_OTHERWISE;

		(void)ap_diag_add(ctx->diag, refused ? AP_ERROR : AP_WARNING, refused ? AP_USAGE : AP_OK,
			NULL, "bundle-words", "--bundle: %s %s: %s", said->framework,
			how[said->unsaid[i].kind], said->unsaid[i].what);
	}
	return ap_diag_status(ctx->diag);
}

enum ap_status ap_bundle_stage(struct ap_writing *to, const struct ap_made *made)
{
	const struct ap_plan *plan = made->plan;
	struct ap_expert expert;
	struct ap_bundle b = {
		.plan = plan,
		.op_template = made->op_template,
		.expert = &expert,
		.frozen = !to->set->only_trainable_params,
		.asked = asked_of(to->set),
		.global_rank = to->set->global_rank,
	};
	struct staging s = {.to = to, .b = &b, .older = &to->bundle->older};
	const struct ap_bundle_file *file;
	const char *notes;

	if (made->op_template)
		AP_TRY(ap_op_template_check(to->ctx, made->op_template, plan));
	ap_expert_find(to->ctx, plan, made->hybrid, &expert);
	b.network = network_of(to->ctx, made, expert.hybrid.tp ? expert.hybrid.tp : 1);
	ap_bundle_say(to->ctx, &b);
	AP_TRY(check_said(to->ctx, &b));
	AP_TRY(stage_stages(&s));
	for (size_t i = 0; (file = ap_bundle_file_at(i)); i++) {
		if (!strcmp(file->name, AP_BUNDLE_MANIFEST)) /* it comes last, after removals */
			AP_TRY(clear_folder(&s, ""));
		AP_TRY(stage_file(&s, file));
	}
	notes = ap_written_text(to->ctx, &s.written);
	return ap_outputs_note(to->ctx, to->staged, notes, strlen(notes));
}

bool ap_bundle_is(struct ap_ctx *ctx, const char *dir)
{
	return exists(ap_path_join(ctx->arena, dir, AP_BUNDLE_MANIFEST)) || exists(ap_path_join(ctx->arena,
		dir, AP_BUNDLE_LOCK)) ||
	       has_mark(ctx->arena, dir);
}

static void verify_file(struct ap_ctx *ctx, const char *path, const struct ap_bundle_part *part)
{
	struct ap_where where = {.file = path};
	struct ap_diag *diag = ctx->diag;
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

static enum ap_status find_others(struct ap_ctx *ctx, const char *dir, const char *sub,
	const struct ap_written *listed)
{
	const char *const *name;
	size_t n;

	AP_TRY(ap_folder_names(ctx, ap_path_join(ctx->arena, dir, sub), &n, &name));
	for (size_t i = 0; i < n; i++) {
		const char *known =
			*sub ? ap_arena_printf(ctx->arena, "%s/%s", sub, name[i]) : name[i];
		const char *path = ap_path_join(ctx->arena, dir, known);

		if (!strcmp(known, AP_BUNDLE_STAGES) && ap_file_is_folder(path))
			AP_TRY(find_others(ctx, dir, known, listed));
		else if (!ap_written_has(listed, known) && strcmp(known, AP_BUNDLE_CACHE) != 0)
			(void)ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING,
				&(struct ap_where){.file = path}, "bundle-extra",
				"is no file of the bundle; expected it elsewhere");
	}
	return AP_OK;
}

enum ap_status ap_bundle_verify(struct ap_ctx *ctx, const struct ap_settings *set, const char *dir,
	struct ap_bundle_manifest *out)
{
	struct ap_written listed = {0};
	size_t errors = ap_diag_count(ctx->diag, AP_ERROR);
	struct ap_input in;
	struct ap_json *doc;

	if (!exists(ap_path_join(ctx->arena, dir, AP_BUNDLE_MANIFEST)))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = dir},
			"bundle-whole",
			"holds a bundle without " AP_BUNDLE_MANIFEST ": the run that made it has not ended, "
			"was killed, or was of an older version; expected a whole one");
	AP_TRY(ap_input_read(ctx, set, ap_path_join(ctx->arena, dir, AP_BUNDLE_MANIFEST), &in));
	AP_TRY(ap_input_json(ctx, &in, 0, &doc));
	AP_TRY(ap_bundle_manifest_read(ctx, doc, out));
	ap_written_add(ctx, &listed, AP_BUNDLE_MANIFEST, "");
	for (uint32_t i = 0; i < out->npart; i++) {
		ap_written_add(ctx, &listed, out->part[i].name, out->part[i].sha256);
		verify_file(ctx, ap_path_join(ctx->arena, dir, out->part[i].name), &out->part[i]);
	}
	AP_TRY(find_others(ctx, dir, "", &listed));
	return ap_diag_count(ctx->diag, AP_ERROR) == errors ? AP_OK : ap_diag_status(ctx->diag);
}
