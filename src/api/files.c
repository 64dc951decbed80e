/* SPDX-License-Identifier: Apache-2.0 */
#include "api/files.h"

#include <string.h>

#include "api/config.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/foreign.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/groups.h"
#include "import/import.h"
#include "model/hf.h"

enum ap_status ap_path_fault(struct ap_ctx *ctx, enum ap_status st, const char *path, const char *text)
{
	return ap_diag_add(ctx->diag, AP_ERROR, st, &(struct ap_where){.file = path}, NULL, "%s", text);
}

const char *ap_path_join(struct ap_arena *arena, const char *folder, const char *name)
{
	return ap_arena_printf(arena, "%s%s%s", folder, ap_file_suffix(folder, "/") ? "" : "/", name);
}

bool ap_path_is_json(const char *path)
{
	return ap_file_suffix(path, ".json");
}

enum ap_status ap_input_read(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_input *out)
{
	bool onnx;

	AP_TRY(ap_input_read_any(ctx, set, path, out, &onnx));
	return onnx ? ap_path_fault(ctx, AP_MEANING, out->path, ap_arena_printf(ctx->arena,
		"is %s; import makes an operator graph of it", ap_kind_text(AP_KIND_ONNX))) : AP_OK;
}

enum ap_status ap_input_read_any(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_input *out, bool *onnx)
{
	enum { HEAD_BYTES = 512 };
	char head[HEAD_BYTES];
	size_t n = ap_file_head(path, head, sizeof head);
	const char *model = ap_foreign_model(head, n);

	*out = (struct ap_input){.path = strcmp(path, "-") ? path : "standard input"};
	*onnx = ap_import_is_onnx(head, n);
	if (!model && *onnx)
		return AP_OK;
	if (!model) {
		AP_TRY(ap_file_read(ctx, path, (size_t)set->max_input, &out->text, &out->len));
		*onnx = ap_import_is_onnx(out->text, out->len);
		model = ap_foreign_model(out->text, out->len);
	}
	return model ? ap_path_fault(ctx, AP_SYNTAX, out->path, model) : AP_OK;
}

const char *ap_input_sha256(struct ap_ctx *ctx, const struct ap_input *in)
{
	char *hex = ap_arena_alloc(ctx->arena, AP_SHA256_HEX + 1, 1);

	ap_sha256_hex(in->text, in->len, hex);
	return hex;
}

enum ap_status ap_input_json(struct ap_ctx *ctx, const struct ap_input *in, unsigned flags,
	struct ap_json **out)
{
	return ap_json_parse(ctx, in->path, in->text, in->len, flags, out);
}

/* Operator strategies name operators by path; checkpoints do not. */
static bool is_op_strategy(const struct ap_jv *root)
{
	const struct ap_jv *item = ap_jv_get(root, "parallel_strategy_item");
	const struct ap_jv *first = item && ap_jv_type(item) == AP_JOBJECT ? ap_jv_first(item) : NULL;

	return first && strchr(ap_jv_key(first), '/') && !ap_jv_get(root, "parallel_layout_item");
}

static bool is_settings(const struct ap_jv *root)
{
	const struct ap_jv *first = ap_jv_type(root) == AP_JARRAY ? ap_jv_first(root) : NULL;

	return first && ap_jv_type(first) == AP_JOBJECT && ap_jv_get(first, "api");
}

static bool is_cells(const struct ap_jv *root)
{
	const struct ap_jv *first = ap_jv_type(root) == AP_JOBJECT ? ap_jv_first(root) : NULL;

	return first && ap_jv_type(first) == AP_JNUMBER;
}

/* A cell may have the name of a setting, but not each of them: those of settings have no dot. */
static bool is_config(const struct ap_jv *root)
{
	bool cells = is_cells(root), dot = false;

	for (const struct ap_jv *v = cells ? ap_jv_first(root) : NULL; v; v = ap_jv_next(v)) {
		cells &= ap_jv_type(v) == AP_JNUMBER;
		dot |= strchr(ap_jv_key(v), '.') != NULL;
	}
	return ap_config_is_one(root) && !(cells && dot);
}

/* Some switches are settings too, but not all. */
static bool is_switches(const struct ap_jv *root)
{
	const struct ap_jv *first = ap_jv_type(root) == AP_JOBJECT ? ap_jv_first(root) : NULL;

	return first && ap_jv_type(first) == AP_JBOOL &&
		(ap_member_spelling_of("parallel_speed_up", ap_jv_key(first)) || !ap_config_is_one(root));
}

static const struct {
	const char *schema; /* value of "schema"; NULL if the kind has none */
	const char *keys[5]; /* one of these identifies the kind if there is no schema */
	const char *text;
	bool (*fits)(const struct ap_jv *root); /* identifies the kind like a key; or NULL */
} kinds[AP_KIND_COUNT] = {
	[AP_KIND_GRAPH] = {"autopar-graph/", {"operators"}, "an operator graph"},
	[AP_KIND_RANK_TABLE] = {NULL, {"group_list", "server_list", "rank_list", "node_list"},
		"a rank table"},
	[AP_KIND_CHIP] = {"autopar-chip/", {NULL}, "a chip profile"},
	[AP_KIND_SOFTWARE] = {"autopar-software/", {NULL}, "a software profile"},
	[AP_KIND_PLAN] = {"autopar-plan/", {NULL}, "a plan"},
	[AP_KIND_PROBLEM] = {"autopar-problem/", {"matrices"}, "a search problem"},
	[AP_KIND_PIPELINE] = {"autopar-pipeline/", {NULL}, "a pipeline problem"},
	[AP_KIND_MANIFEST] = {"autopar-bundle/", {NULL}, "the manifest of a bundle"},
	[AP_KIND_TRACE] = {NULL, {"traceEvents"}, "a trace"},
	[AP_KIND_RECOMPUTE] = {NULL, {"primitives"}, "calls of recompute()"},
	[AP_KIND_SHARD] = {NULL, {"shards"}, "calls of shard()"},
	[AP_KIND_SETTINGS] = {NULL, {NULL}, "settings of a bundle", is_settings},
	[AP_KIND_OP_STRATEGY] = {NULL, {"parallel_out_strategy_item", "parallel_layout_value_item",
		"parallel_out_layout_value_item", "parallel_newshape_layout_value_item"},
		"operator strategies", is_op_strategy},
	[AP_KIND_STRATEGY] = {NULL, {"parallel_strategy_item", "parallel_layout_item"},
		"a strategy checkpoint"},
	[AP_KIND_MODEL] = {NULL, {NULL}, "a model's configuration", ap_hf_is_one},
	[AP_KIND_SWITCHES] = {NULL, {NULL}, "switches of transformer_opt()", is_switches},
	[AP_KIND_CONFIG] = {NULL, {NULL}, "a configuration", is_config},
	[AP_KIND_CELLS] = {NULL, {NULL}, "stages or segments of cells", is_cells},
	[AP_KIND_GROUPS] = {NULL, {NULL}, "a group file"},
	[AP_KIND_DUMP] = {NULL, {NULL}, "a graph dump of MindSpore"},
	[AP_KIND_HOSTS] = {NULL, {NULL}, "a hostfile"},
	[AP_KIND_SERVER] = {NULL, {NULL}, "a description of a server"},
	[AP_KIND_ONNX] = {NULL, {NULL}, "a model of ONNX"},
};

const char *ap_kind_text(enum ap_file_kind k)
{
	return kinds[k].text;
}

static bool has_key(const struct ap_jv *root, const char *const *keys)
{
	for (; ap_jv_type(root) == AP_JOBJECT && *keys; keys++)
		if (ap_jv_get(root, *keys))
			return true;
	return false;
}

enum ap_file_kind ap_kind_of(const struct ap_jv *root)
{
	const struct ap_jv *schema;

	schema = ap_jv_type(root) == AP_JOBJECT ? ap_jv_get(root, "schema") : NULL;
	for (int k = 0; k < AP_KIND_COUNT; k++) {
		const char *name = kinds[k].schema;

		if (schema && ap_jv_type(schema) == AP_JSTRING
				? name && !strncmp(ap_jv_str(schema), name, strlen(name))
				: has_key(root, kinds[k].keys) || (kinds[k].fits && kinds[k].fits(root)))
			return (enum ap_file_kind)k;
	}
	return AP_KIND_COUNT;
}

/* The kind of a JSON text, faulty or not; issues no messages. */
static enum ap_file_kind guess(struct ap_ctx *ctx, const struct ap_input *in)
{
	enum ap_file_kind kind = AP_KIND_COUNT;
	struct ap_ctx own = *ctx;
	struct ap_json *doc;

	own.arena = ap_arena_create_like(ctx->arena);
	own.diag = ap_diag_create(own.arena, false);
	if (ap_input_json(&own, in, AP_JSON_TRAILING_COMMA, &doc) == AP_OK)
		kind = ap_kind_of(ap_json_root(doc));
	ap_arena_destroy(own.arena);
	return kind;
}

/* Is the text meant as JSON, well-formed or not? No protobuf checkpoint starts with a brace or a
 * UTF-16 mark, or is all blanks. */
bool ap_input_is_json(const struct ap_input *in)
{
	const char *s = in->text, *end = in->text + in->len;

	if (in->len >= 2 && (!memcmp(s, "\xff\xfe", 2) || !memcmp(s, "\xfe\xff", 2)))
		return true;
	if (in->len >= 3 && !memcmp(s, "\xef\xbb\xbf", 3))
		s += 3;
	while (s < end && strchr(" \t\r\n", *s) && *s)
		s++;
	return s == end || *s == '{' || *s == '[';
}

bool ap_kind_is_dump(const struct ap_input *in)
{
	static const char *const heads[] = {"# IR entry", "#IR entry"};

	for (size_t i = 0; i < AP_COUNT(heads); i++)
		if (in->len > strlen(heads[i]) && !memcmp(in->text, heads[i], strlen(heads[i])))
			return true;
	return false;
}

/* AP_SYNTAX if the file is known to be of another program. */
static enum ap_status check_foreign(struct ap_ctx *ctx, const struct ap_input *in)
{
	const char *other = ap_input_is_json(in) ? NULL : ap_foreign(ctx, in->text, in->len);

	return !other ? AP_OK : ap_diag_add(ctx->diag, AP_ERROR, AP_SYNTAX,
		&(struct ap_where){.file = in->path}, NULL, "%s", other);
}

static const char *all_kinds(struct ap_ctx *ctx)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (int k = 0; k < AP_KIND_COUNT; k++)
		ap_str_addf(&s, "%s%s", k == 0 ? "" : k + 1 < AP_KIND_COUNT ? ", " : " or ", kinds[k].text);
	return s.s;
}

bool ap_input_is_prose(const struct ap_input *in)
{
	size_t bad;

	for (size_t i = 0; i < in->len; i++)
		if ((unsigned char)in->text[i] < ' ' && !memchr("\t\n\r", in->text[i], 3))
			return false;
	return in->len && ap_str_utf8(in->text, in->len, &bad);
}

enum ap_status ap_kind_read(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_known *out)
{
	bool onnx;

	*out = (struct ap_known){.kind = AP_KIND_STRATEGY};
	AP_TRY(ap_input_read_any(ctx, set, path, &out->in, &onnx));
	if (onnx) {
		out->kind = AP_KIND_ONNX;
		return AP_OK;
	}
	if (ap_kind_is_dump(&out->in)) {
		out->kind = AP_KIND_DUMP;
		return AP_OK;
	}
	if (!ap_input_is_json(&out->in) && !ap_path_is_json(path)) {
		switch (ap_foreign_machine(ctx, out->in.text, out->in.len)) {
		case AP_TEXT_NCCL_XML:
		case AP_TEXT_LINK_MATRIX:
			out->kind = AP_KIND_SERVER;
			return AP_OK;
		case AP_TEXT_HOSTS:
			out->kind = AP_KIND_HOSTS;
			return AP_OK;
		case AP_TEXT_OTHER:
			break;
		}
		AP_TRY(check_foreign(ctx, &out->in));
		if (ap_groups_look_like(out->in.text, out->in.len))
			out->kind = AP_KIND_GROUPS;
		return AP_OK;
	}
	out->kind = guess(ctx, &out->in);
	out->json = true;
	if (out->kind == AP_KIND_STRATEGY)
		return AP_OK;
	AP_TRY(ap_input_json(ctx, &out->in,
		out->kind == AP_KIND_RANK_TABLE ? AP_JSON_TRAILING_COMMA : 0, &out->doc));
	if (out->kind != AP_KIND_COUNT)
		return AP_OK;
	return ap_json_report(ctx, out->doc, ap_json_root(out->doc), AP_ERROR, AP_MEANING, NULL,
		"kind-known", "this is no kind of file that is known; expected %s", all_kinds(ctx));
}

enum ap_status ap_ckpt_of_input(struct ap_ctx *ctx, const struct ap_input *in, struct ap_ckpt *out)
{
	return ap_ckpt_read(ctx, in->path, in->text, in->len, ap_input_is_json(in), out);
}

static enum ap_status load_file(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_ckpt *out)
{
	struct ap_input file;
	bool json;

	AP_TRY(ap_input_read(ctx, set, path, &file));
	AP_TRY(check_foreign(ctx, &file));
	json = strcmp(path, "-") ? ap_path_is_json(path) : ap_input_is_json(&file);
	return ap_ckpt_read(ctx, file.path, file.text, file.len, json, out);
}

struct paths {
	const char **v;
	size_t n, cap;
};

/* Finds the files in a folder that MindSpore would merge. */
static enum ap_status find_files(struct ap_ctx *ctx, const char *folder, struct paths *out)
{
	const char *const *name;
	size_t n, json = 0;

	AP_TRY(ap_folder_names(ctx, folder, &n, &name));
	for (size_t i = 0; i < n; i++) {
		bool is_json = ap_file_suffix(name[i], ".json");

		if (!is_json && !ap_file_suffix(name[i], ".ckpt"))
			continue;
		json += is_json;
		AP_PUSH(ctx->arena, *out, ap_path_join(ctx->arena, folder, name[i]));
	}
	if (!out->n)
		return ap_path_fault(ctx, AP_MEANING, folder, "is a folder without files in .ckpt or .json");
	if (json && json < out->n)
		return ap_path_fault(ctx, AP_MEANING, folder,
			"holds files in .ckpt and in .json; MindSpore merges those of one form only");
	return AP_OK;
}

static enum ap_status load_part(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_ckpt *out)
{
	struct ap_known file;

	AP_TRY(ap_kind_read(ctx, set, path, &file));
	if (file.kind != AP_KIND_STRATEGY)
		return ap_path_fault(ctx, AP_MEANING, path, ap_arena_printf(ctx->arena,
			"is %s; expected the strategy checkpoint of a pipeline stage",
			ap_kind_text(file.kind)));
	return ap_ckpt_read(ctx, file.in.path, file.in.text, file.in.len, ap_path_is_json(path),
		out);
}

enum ap_status ap_ckpt_load(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_ckpt *out)
{
	struct paths files = {0};
	struct ap_ckpt *part;

	if (!ap_file_is_folder(path))
		return load_file(ctx, set, path, out);
	AP_TRY(find_files(ctx, path, &files));
	part = AP_NEW_N(ctx->arena, struct ap_ckpt, files.n);
	for (size_t i = 0; i < files.n; i++)
		AP_TRY(load_part(ctx, set, files.v[i], &part[i]));
	if (files.n > 1)
		AP_TRY(ap_ckpt_merge(ctx, (uint32_t)files.n, part, out));
	else
		*out = *part;
	out->file = path;
	return AP_OK;
}
