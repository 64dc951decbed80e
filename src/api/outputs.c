/* SPDX-License-Identifier: Apache-2.0 */
#include "api/outputs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "draw/graphviz.h"

enum { MANY_BOXES = 2000 }; /* dot takes long beyond this */

/* ---- names ---- */

struct paths {
	const char **v;
	size_t n, cap;
};

const char *ap_out_shown(const char *path)
{
	return strcmp(path, "-") ? path : "standard output";
}

enum ap_status ap_out_fault(struct ap_writing *to, enum ap_status st, const char *path, const char *text)
{
	return ap_path_fault(to->ctx, st, ap_out_shown(path), text);
}

enum ap_status ap_out_cannot_write(struct ap_writing *to, const char *path)
{
	return ap_out_fault(to, AP_IO, path, ap_arena_printf(to->ctx->arena, "cannot write: %s",
		strerror(errno)));
}

/* Collects every file that is read. */
static void collect_inputs(struct ap_writing *to, struct paths *in)
{
	for (size_t i = 0; i < to->nread; i++)
		AP_PUSH(to->ctx->arena, *in, to->read[i]);
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);

		if ((row->type == AP_SET_INPUT || row->type == AP_SET_DICT) && ap_setting_path(row,
			to->set))
			AP_PUSH(to->ctx->arena, *in, ap_setting_path(row, to->set));
	}
	if (to->set->chip)
		AP_PUSH(to->ctx->arena, *in, to->set->chip);
	if (to->set->software)
		AP_PUSH(to->ctx->arena, *in, to->set->software);
}

/* Collects every file that is written, in the order of the rows. */
static void collect_outputs(struct ap_writing *to, const char *further, struct paths *out)
{
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);

		if (row->type == AP_SET_OUTPUT && ap_setting_path(row, to->set))
			AP_PUSH(to->ctx->arena, *out, ap_setting_path(row, to->set));
	}
	if (further)
		AP_PUSH(to->ctx->arena, *out, further);
}

const char *ap_path_folder(struct ap_arena *arena, const char *path)
{
	const char *base = ap_file_base(path);

	return base == path ? "." :
		ap_arena_printf(arena, "%.*s.", (int)(base - path), path);
}

/* Do two names refer to one file, which may not exist yet? */
static bool same_file(struct ap_writing *to, const char *a, const char *b)
{
	struct stat st;

	if (!strcmp(a, b))
		return true;
	if (!strcmp(a, "-") || !strcmp(b, "-"))
		return false;
	if (!stat(a, &st) || !stat(b, &st))
		return ap_file_same(a, b);
	return !strcmp(ap_file_base(a), ap_file_base(b)) &&
		ap_file_same(ap_path_folder(to->ctx->arena, a), ap_path_folder(to->ctx->arena, b));
}

/* Formats of pictures by suffix: drawn by dot, or left as DOT (format NULL). */
static const struct {
	const char *suffix, *format;
} pictures[] = {{".dot", NULL}, {".gv", NULL}, {".svg", "svg"}, {".png", "png"}, {".pdf", "pdf"}};

enum { NPICTURE = AP_COUNT(pictures) };

/* The suffix of a name, or "". */
static const char *suffix_of(const char *path)
{
	const char *base = ap_file_base(path), *dot = strrchr(base, '.');

	return dot && dot > base ? dot : "";
}

const char *ap_draw_format(const char *path)
{
	for (int i = 0; i < NPICTURE; i++)
		if (!strcmp(suffix_of(path), pictures[i].suffix))
			return pictures[i].format;
	return NULL;
}

/* A name without a suffix is DOT; unknown suffixes are refused. */
static enum ap_status check_picture(struct ap_writing *to, const char *path)
{
	const char *suffix = suffix_of(path);
	struct ap_str known;

	ap_str_init(&known, to->ctx->arena);
	for (int i = 0; i < NPICTURE; i++) {
		if (!*suffix || !strcmp(suffix, pictures[i].suffix))
			return AP_OK;
		ap_str_addf(&known, "%s%s", i == 0 ? "" : i + 1 < NPICTURE ? ", " : " or ",
			pictures[i].suffix);
	}
	return ap_out_fault(to, AP_USAGE, path, ap_arena_printf(to->ctx->arena,
		"pictures of this kind (%s) are not drawn; expected a name that ends in %s", suffix,
		known.s));
}

enum ap_status ap_out_check_binary(struct ap_writing *to, const char *path)
{
	if (strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO))
		return AP_OK;
	return ap_out_fault(to, AP_USAGE, path, "a terminal is no place for protobuf");
}

enum ap_status ap_out_check_input(struct ap_writing *to, const char *path)
{
	struct paths in = {0};

	collect_inputs(to, &in);
	for (size_t i = 0; i < in.n; i++)
		if (same_file(to, path, in.v[i]))
			return ap_out_fault(to, AP_USAGE, path, "is also an input");
	return AP_OK;
}

bool ap_out_is_output(struct ap_writing *to, const char *path)
{
	struct paths out = {0};

	collect_outputs(to, NULL, &out);
	for (size_t i = 0; i < out.n; i++)
		if (same_file(to, path, out.v[i]))
			return true;
	return false;
}

enum ap_status ap_out_check_names(struct ap_writing *to, const char *further, const char *const *also)
{
	struct paths in = {0}, out = {0};

	collect_inputs(to, &in);
	collect_outputs(to, further, &out);
	while (also && *also)
		AP_PUSH(to->ctx->arena, out, *also++);
	for (size_t i = 0; i < out.n; i++) {
		for (size_t j = 0; j < i; j++)
			if (same_file(to, out.v[i], out.v[j]))
				(void)ap_out_fault(to, AP_USAGE, out.v[i],
					"two outputs are given this name");
		for (size_t j = 0; j < in.n; j++)
			if (strcmp(out.v[i], "-") != 0 && same_file(to, out.v[i], in.v[j]))
				(void)ap_out_fault(to, AP_USAGE, out.v[i], "is also an input");
	}
	for (size_t i = 0, standard = 0; i < in.n; i++)
		if (!strcmp(in.v[i], "-") && standard++)
			(void)ap_diag_add(to->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"standard input can be only one input");
	if (to->set->strategy_ckpt_save_file)
		(void)ap_out_check_binary(to, to->set->strategy_ckpt_save_file);
	if (to->set->group_ckpt_save_file)
		(void)ap_out_check_binary(to, to->set->group_ckpt_save_file);
	if (to->set->dot_out)
		(void)check_picture(to, to->set->dot_out);
	return ap_diag_status(to->ctx->diag);
}

/* A regular file needs a writable folder; other problems show when the file is opened. */
enum ap_status ap_out_check_targets(struct ap_writing *to, const char *further)
{
	struct paths out = {0};

	collect_outputs(to, further, &out);
	for (size_t i = 0; i < out.n; i++) {
		const char *path = out.v[i];
		struct stat st;
		bool there = !stat(path, &st);

		if (!strcmp(path, "-"))
			continue;
		if ((there && S_ISDIR(st.st_mode)) || ap_file_suffix(path, "/"))
			(void)ap_out_fault(to, AP_USAGE, path, "is a folder; expected the name of a file");
		else if ((!there || S_ISREG(st.st_mode)) &&
			access(ap_path_folder(to->ctx->arena, path), W_OK | X_OK))
			(void)ap_out_cannot_write(to, path);
	}
	return ap_diag_status(to->ctx->diag);
}

enum ap_status ap_out_check(struct ap_writing *to, const char *further)
{
	AP_TRY(ap_out_check_names(to, further, NULL));
	return ap_out_check_targets(to, further);
}

/* ---- staging ---- */

static struct ap_outputs *outputs_of(struct ap_writing *to)
{
	if (!to->staged)
		to->staged = ap_outputs_create(to->ctx);
	return to->staged;
}

enum ap_status ap_out_folder(struct ap_writing *to, const char *path)
{
	return ap_outputs_folder(to->ctx, outputs_of(to), path);
}

void ap_out_clear(struct ap_writing *to, const char *folder)
{
	ap_outputs_clear(outputs_of(to), folder);
}

enum ap_status ap_out_open(struct ap_writing *to, const char *path, struct ap_output_sink *out)
{
	out->o = outputs_of(to);
	return ap_outputs_open(to->ctx, out->o, path, &out->id);
}

enum ap_status ap_out_text(struct ap_writing *to, const char *text, size_t len)
{
	struct ap_output_sink sink;

	AP_TRY(ap_out_open(to, "-", &sink));
	ap_output_write_fn(&sink, text, len);
	return AP_OK;
}

enum ap_status ap_out_commit(struct ap_writing *to)
{
	AP_TRY(ap_diag_status(to->ctx->diag));
	return to->staged ? ap_outputs_commit(to->ctx, to->staged) : AP_OK;
}

/* ---- files that runs wrote ---- */

static bool is_one(const struct ap_written *w, const char *name, const char *sha256)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->v[i].name, name) && !strcmp(w->v[i].sha256, sha256))
			return true;
	return false;
}

void ap_written_add(struct ap_ctx *ctx, struct ap_written *w, const char *name, const char *sha256)
{
	const struct ap_written_file file = {name, sha256};

	if (!is_one(w, name, sha256))
		AP_PUSH(ctx->arena, *w, file);
}

void ap_written_add_text(struct ap_ctx *ctx, struct ap_written *w, const char *text)
{
	const size_t hash = AP_SHA256_HEX;

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len < hash + 3 || !ap_sha256_is_hex(text, hash) || strncmp(text + hash, "  ", 2) != 0)
			continue;
		ap_written_add(ctx, w, ap_arena_strndup(ctx->arena, text + hash + 2, len - hash - 2),
			ap_arena_strndup(ctx->arena, text, hash));
	}
}

const char *ap_written_text(struct ap_ctx *ctx, const struct ap_written *w)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; i < w->n; i++)
		ap_str_addf(&text, "%s  %s\n", w->v[i].sha256, w->v[i].name);
	return text.s;
}

bool ap_written_has(const struct ap_written *w, const char *name)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->v[i].name, name))
			return true;
	return false;
}

/* Is the file at this path one that a run wrote under this name, unchanged? */
static bool written_is(const struct ap_written *w, const char *name, const char *path)
{
	struct ap_file_sum sum;

	return ap_written_has(w, name) && !ap_file_sum(path, &sum) && is_one(w, name, sum.sha256);
}

enum ap_status ap_written_replace(struct ap_writing *to, const struct ap_written *w, const char *name,
	const char *path, const char *sha256)
{
	struct ap_file_sum sum;

	if (ap_file_sum(path, &sum) || !strcmp(sum.sha256, sha256) || is_one(w, name, sum.sha256))
		return AP_OK;
	return ap_diag_add(to->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path},
		"file-changed",
		ap_written_has(w, name) ? "was changed after a run had written it, and is replaced"
					: "is not known to be written by a run, and is replaced");
}

enum ap_status ap_written_remove(struct ap_writing *to, const struct ap_written *w, const char *name,
	const char *path, bool *gone)
{
	*gone = written_is(w, name, path);
	if (!*gone)
		return AP_OK;
	AP_TRY(ap_out_check_input(to, path));
	return ap_outputs_remove(to->ctx, to->staged, path);
}

/* ---- pictures ---- */

/* Arguments of drawing a picture of a plan, or of pic. */
struct drawing {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	const struct ap_plan *plan; /* NULL: draw pic */
	const struct ap_picture *pic;
	const char *format;
	struct ap_drawn *out;
	enum ap_status st;
};

static void make_picture(void *user)
{
	struct drawing *d = user;
	struct ap_drawn *out = d->out;
	struct ap_picture of_plan;
	uint32_t nbox;

	if (d->plan) {
		ap_picture_of_plan(d->ctx, d->plan, &of_plan);
		d->pic = &of_plan;
	}
	d->st = ap_emit_dot_apart(d->ctx, d->pic, (enum ap_pic_detail)d->set->detail, &out->text,
		&out->len, &nbox);
	if (d->st == AP_OK && d->format && nbox > MANY_BOXES)
		d->st = ap_diag_add(d->ctx->diag, AP_WARNING, AP_OK, NULL, NULL,
			"the picture has %" PRIu32 " boxes: dot may take minutes; --detail fold "
			"draws at most %d", nbox, AP_PIC_MOST_BOXES);
	if (d->st == AP_OK && d->format)
		d->st = ap_emit_rendered(d->ctx, out->text, out->len, d->format, &out->text, &out->len);
}

enum ap_status ap_draw(struct ap_ctx *ctx, const struct ap_settings *set, const char *format,
	const struct ap_plan *plan, const struct ap_picture *pic, struct ap_drawn *out)
{
	struct drawing d = {ctx, set, plan, pic, format, out, AP_OK};

	*out = (struct ap_drawn){0};
	return ap_attempt_apart(ctx, make_picture, NULL, &d, &out->arena) ? d.st : AP_LIMIT;
}

enum ap_status ap_out_draw(struct ap_writing *to, const char *path, const struct ap_plan *plan,
	const struct ap_picture *pic)
{
	struct ap_output_sink sink;
	struct ap_drawn drawn;
	enum ap_status st = ap_draw(to->ctx, to->set, ap_draw_format(path), plan, pic, &drawn);

	if (st == AP_OK)
		st = ap_out_open(to, path, &sink);
	if (st == AP_OK)
		ap_output_write_fn(&sink, drawn.text, drawn.len);
	ap_arena_destroy(drawn.arena);
	return st;
}
