/* SPDX-License-Identifier: Apache-2.0 */
#include "api/convert.h"

#include <inttypes.h>
#include <string.h>

#include "api/files.h"
#include "api/machine_file.h"
#include "api/model.h"
#include "api/onnx.h"
#include "api/request.h"
#include "api/stage_files.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_match.h"
#include "diff/diff_write.h"
#include "draw/picture.h"
#include "graph/graph.h"
#include "hw/rank_table.h"
#include "import/import.h"
#include "import/write.h"
#include "planfile/plan_form.h"
#include "planfile/plan_read.h"
#include "report/html.h"

struct job {
	size_t n;
	const char *const *from; /* [n] */
	const char *into;
	bool into_folder; /* into is a folder of stage files */
};

/* Adds the parameters' shapes from the graph: the JSON form has them, protobuf has not. */
static enum ap_status add_shapes(struct ap_writing *to, const char *path, struct ap_ckpt *ckpt)
{
	const struct ap_graph *g;

	if (to->set->graph) {
		AP_TRY(ap_input_graph(to->ctx, to->set, to->set->graph, &g));
		AP_TRY(ap_ckpt_add_shapes(to->ctx, g, ckpt));
		return ap_ckpt_fits(to->ctx, ckpt, g);
	}
	for (uint32_t i = 0; i < ckpt->nlayout; i++)
		if (!ckpt->layout[i].has_shape)
			return ap_diag_add(to->ctx->diag, AP_WARNING, AP_OK,
				&(struct ap_where){.file = path}, "shape-known",
				"holds no full shapes; without --graph only MindSpore's Python tools "
				"will read the JSON form");
	return AP_OK;
}

/* JSON keeps only one of several equal keys. */
static enum ap_status warn_of_keys(struct ap_writing *to, const char *path, const struct ap_ckpt *c)
{
	uint32_t lost = 0;

	for (uint32_t i = 1; i < c->nitem; i++)
		lost += !strcmp(c->item[i - 1].node_name, c->item[i].node_name);
	if (!lost)
		return AP_OK;
	return ap_diag_add(to->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path},
		"ckpt-keys", "%" PRIu32 " operators have their key in a later stage, too; of these "
		"the JSON form holds the last stage's, as MindSpore merges", lost);
}

static enum ap_status write_strategy(struct ap_writing *to, const struct job *job, struct ap_ckpt *ckpt,
	bool json)
{
	if (job->into_folder) {
		struct ap_ckpt *stage;
		uint32_t n;

		/* Stage files keep the form of the file that was read. */
		if (!ap_ckpt_is_merged(ckpt))
			return ap_path_fault(to->ctx, AP_MEANING, job->from[0],
				"is no merged file; only one can become a folder of stage files");
		AP_TRY(ap_ckpt_split(to->ctx, ckpt, &n, &stage));
		return ap_ckpt_stage_folder(to, job->into, json ? ".json" : ".ckpt", n, stage, NULL);
	}
	if (ap_path_is_json(job->into) || to->set->graph)
		AP_TRY(add_shapes(to, job->from[0], ckpt));
	if (ap_path_is_json(job->into)) {
		AP_TRY(warn_of_keys(to, job->from[0], ckpt));
	} else {
		AP_TRY(ap_out_check_binary(to, job->into));
	}
	return ap_ckpt_stage_file(to, job->into, ckpt);
}

/* Merges stage files, named one by one or as a folder. */
static enum ap_status convert_stages(struct ap_writing *to, const struct job *job)
{
	struct ap_ckpt *part = AP_NEW_N(to->ctx->arena, struct ap_ckpt, job->n), all;

	for (size_t i = 0; i < job->n; i++)
		AP_TRY(ap_ckpt_load(to->ctx, to->set, job->from[i], &part[i]));
	if (job->n > 1)
		AP_TRY(ap_ckpt_merge(to->ctx, (uint32_t)job->n, part, &all));
	else
		all = *part;
	return write_strategy(to, job, &all, all.nlayout && all.layout->has_shape);
}

static enum ap_status convert_rank_table(struct ap_writing *to, const struct ap_known *file,
	const char *path)
{
	const struct ap_topo *topo;
	struct ap_output_sink sink;

	AP_TRY(ap_topo_load(to->ctx, file->doc, ap_input_sha256(to->ctx, &file->in), &topo));
	AP_TRY(ap_topo_write_losses(to->ctx, file->doc, topo));
	AP_TRY(ap_out_open(to, path, &sink));
	ap_topo_write(topo, ap_output_write_fn, &sink);
	return AP_OK;
}

/* Makes a rank table of what says servers, and says what such a table cannot hold. */
static enum ap_status convert_machine(struct ap_writing *to, const struct ap_known *file, const char *path)
{
	const struct ap_where where = {.file = file->in.path};
	const struct ap_settings *set = to->set;
	struct ap_machine_file machine;
	const struct ap_topo *made;
	struct ap_output_sink sink;
	struct ap_topo topo;

	AP_TRY(ap_machine_file_read(to->ctx, &file->in, &machine));
	AP_TRY(ap_machine_file_topo(to->ctx, &machine, set->device_num, set->devices_per_server, &made));
	topo = *made;
	if (machine.server) {
		AP_TRY(ap_server_profile(to->ctx, machine.server, &topo.chip_info));
		AP_TRY(ap_diag_add(to->ctx->diag, AP_WARNING, AP_OK, &where, "convert-lost",
			"a rank table does not say how devices are linked; --topology %s beside it does",
			file->in.path));
	} else if (set->device_num && set->device_num != topo.ndev) {
		return ap_diag_add(to->ctx->diag, AP_ERROR, AP_USAGE, &where, NULL,
			"has %" PRIu32 " slots; --device-num says %" PRId64, topo.ndev, set->device_num);
	}
	topo.name = ap_file_base(file->in.path);
	AP_TRY(ap_topo_write_losses(to->ctx, NULL, &topo));
	AP_TRY(ap_out_open(to, path, &sink));
	ap_topo_write(&topo, ap_output_write_fn, &sink);
	return AP_OK;
}

static enum ap_status convert_file(struct ap_writing *to, const struct job *job)
{
	struct ap_known file;
	struct ap_ckpt ckpt;

	AP_TRY(ap_kind_read(to->ctx, to->set, job->from[0], &file));
	ap_ctx_phase(to->ctx, "converting");
	if (file.kind == AP_KIND_RANK_TABLE || file.kind == AP_KIND_HOSTS || file.kind == AP_KIND_SERVER) {
		if (job->into_folder)
			return ap_path_fault(to->ctx, AP_USAGE, job->into,
				"is a folder; expected the name of a file");
		return file.kind == AP_KIND_RANK_TABLE ? convert_rank_table(to, &file, job->into)
			: convert_machine(to, &file, job->into);
	}
	if (file.kind != AP_KIND_STRATEGY)
		return ap_path_fault(to->ctx, AP_MEANING, file.in.path, ap_arena_printf(to->ctx->arena,
			"is %s; expected a strategy checkpoint, a rank table, a hostfile or a "
			"description of a server",
			ap_kind_text(file.kind)));
	AP_TRY(ap_ckpt_read(to->ctx, file.in.path, file.in.text, file.in.len, file.json, &ckpt));
	return write_strategy(to, job, &ckpt, file.json);
}

enum ap_status ap_convert(struct ap_writing *to, size_t n, const char *const *from, const char *into)
{
	struct job job = {n, from, into, ap_file_is_folder(into) || ap_file_suffix(into, "/")};

	AP_TRY(ap_out_check(to, job.into_folder ? NULL : into));
	for (size_t i = 0; i < n; i++)
		if (job.into_folder && ap_file_same(from[i], into))
			return ap_path_fault(to->ctx, AP_USAGE, into, "is also an input");
	ap_ctx_phase(to->ctx, "reading");
	AP_TRY(n > 1 || ap_file_is_folder(from[0]) ? convert_stages(to, &job) : convert_file(to, &job));
	return ap_out_commit(to);
}

static enum ap_status import_dump(struct ap_writing *to, const struct ap_input *in)
{
	const struct ap_settings *set = to->set;
	const struct ap_import_params params = {
		.micro_batches = set->micro_batches,
		.partial = set->partial,
		.searched = set->searched_strategies,
		.unknown_batch_parallel = set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	struct ap_input made = {.path = "graph.json"};
	const struct ap_import *g;
	struct ap_str text;

	AP_TRY(ap_import_ir(to->ctx, in->path, in->text, in->len, &params, &g));
	AP_TRY(ap_model_no_config(to->ctx, set, in->path, "a dump"));
	AP_TRY(ap_onnx_alone(to->ctx, set, in->path, "a dump"));
	ap_str_init(&text, to->ctx->arena);
	ap_import_write(to->ctx, g, ap_str_take, &text);
	made.text = text.s;
	made.len = text.len;
	return ap_model_put(to, &made, set->json);
}

static enum ap_status import_config(struct ap_writing *to, const struct ap_json *doc)
{
	struct ap_input made;

	AP_TRY(ap_onnx_alone(to->ctx, to->set, ap_json_file(doc), "a configuration"));
	AP_TRY(ap_model_of_config(to->ctx, to->set, doc, &made));
	return ap_model_put(to, &made, !to->set->quiet);
}

/* A launch says the network, too, and the samples of a step, unless --batch does. */
static enum ap_status import_launch(struct ap_writing *to, enum ap_launch_language language,
	const struct ap_input *in)
{
	struct ap_ctx quiet = ap_diag_apart(to->ctx);
	struct ap_settings set = *to->set;
	const struct ap_jv *batch;
	struct ap_input made;
	struct ap_json *said;

	AP_TRY(ap_onnx_alone(to->ctx, &set, in->path, "a launch"));
	if (!set.batch &&
		ap_launch_settings(&quiet, language, in->path, in->text, in->len, &said) == AP_OK) {
		batch = ap_jv_get(ap_json_root(said), "batch");
		if (batch)
			(void)ap_jv_int(said, batch, &set.batch);
	}
	AP_TRY(ap_model_of_launch(to->ctx, &set, language, in, &made));
	return ap_model_put(to, &made, !to->set->quiet);
}

/* What a graph computes is told where it is small enough to be loaded for that. */
static enum ap_status import_onnx(struct ap_writing *to, const struct ap_input *in)
{
	enum { MOST_TOLD = 20000 }; /* operators */
	const struct ap_import *g;
	struct ap_input made = {.path = "graph.json"};
	struct ap_output_sink sink;
	struct ap_str text;

	AP_TRY(ap_onnx_load(to->ctx, to->set, in, &g));
	if (!to->set->json && (to->set->quiet || !to->set->graph_out || ap_import_size(g) > MOST_TOLD)) {
		AP_TRY(ap_out_open(to, to->set->graph_out ? to->set->graph_out : "-", &sink));
		ap_import_write(to->ctx, g, ap_output_write_fn, &sink);
		return AP_OK;
	}
	ap_str_init(&text, to->ctx->arena);
	ap_import_write(to->ctx, g, ap_str_take, &text);
	made.text = text.s;
	made.len = text.len;
	return ap_model_put(to, &made, true);
}

enum ap_status ap_import_file(struct ap_writing *to, const char *path)
{
	enum ap_launch_language language;
	enum ap_file_kind kind;
	struct ap_input in;
	struct ap_json *doc;
	bool onnx;

	AP_TRY(ap_out_check(to, NULL));
	ap_ctx_phase(to->ctx, "reading");
	AP_TRY(ap_input_read_any(to->ctx, to->set, path, &in, &onnx));
	if (onnx) {
		AP_TRY(import_onnx(to, &in));
		return ap_out_commit(to);
	}
	language = ap_launch_language(in.text, in.len);
	if (language != AP_LAUNCH_NONE || !ap_input_is_json(&in)) {
		AP_TRY(language == AP_LAUNCH_NONE ? import_dump(to, &in)
			: import_launch(to, language, &in));
		return ap_out_commit(to);
	}
	AP_TRY(ap_input_json(to->ctx, &in, 0, &doc));
	kind = ap_kind_of(ap_json_root(doc));
	if (kind != AP_KIND_MODEL)
		return ap_path_fault(to->ctx, AP_MEANING, in.path,
			ap_arena_printf(to->ctx->arena,
				"is %s; expected a model of ONNX, a graph dump of MindSpore, a model's "
				"configuration, a "
				"MindFormers YAML or Megatron's arguments",
				kind == AP_KIND_COUNT ? "no kind of file that is known"
							: ap_kind_text(kind)));
	AP_TRY(import_config(to, doc));
	return ap_out_commit(to);
}

static enum ap_status read_plan(struct ap_writing *to, const struct ap_known *file, struct ap_saved *out)
{
	AP_TRY(ap_plan_form_check(to->ctx, file->doc));
	return ap_saved_of_plan(to->ctx, file->doc, out);
}

/* Reports a file that is none of what was expected. */
static enum ap_status unexpected(struct ap_writing *to, const struct ap_known *file, const char *expected)
{
	const struct ap_where where = {.file = file->in.path};

	if (file->kind == AP_KIND_STRATEGY && !file->json)
		return ap_diag_add(to->ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL,
			"is not JSON; expected %s", expected);
	return ap_diag_add(to->ctx->diag, AP_ERROR, AP_MEANING, &where, NULL, "is %s; expected %s",
		ap_kind_text(file->kind), expected);
}

/* old: a plan that a plan is held against, or NULL. */
static enum ap_status make_picture(struct ap_writing *to, const struct ap_known *file,
	const struct ap_known *old, struct ap_picture *pic)
{
	const struct ap_graph_params params = {
		.unknown_batch_parallel = to->set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	const struct ap_graph *g;
	struct ap_saved plan, before;

	if (file->kind == AP_KIND_PLAN) {
		AP_TRY(read_plan(to, file, &plan));
		if (old && old->kind != AP_KIND_PLAN)
			return unexpected(to, old, "a plan");
		if (old)
			AP_TRY(read_plan(to, old, &before));
		ap_picture_of_saved(to->ctx, &plan, old ? &before : NULL, pic);
		return AP_OK;
	}
	if (file->kind != AP_KIND_GRAPH || old)
		return unexpected(to, file, old ? "a plan" : "a plan or an operator graph");
	AP_TRY(ap_graph_load(to->ctx, file->doc,
		ap_input_sha256(to->ctx, &file->in), &params, &g));
	ap_picture_of_graph(to->ctx, g, pic);
	return AP_OK;
}

/* Reads all that the page of a plan shows. */
static enum ap_status read_page(struct ap_writing *to, const struct ap_known *file,
	struct ap_html_plan *out)
{
	struct ap_saved *saved = AP_NEW(to->ctx->arena, struct ap_saved);
	struct ap_picture *picture = AP_NEW(to->ctx->arena, struct ap_picture);

	if (file->kind != AP_KIND_PLAN)
		return unexpected(to, file, "a plan");
	AP_TRY(read_plan(to, file, saved));
	ap_picture_of_saved(to->ctx, saved, NULL, picture);
	*out = (struct ap_html_plan){.file = ap_file_base(file->in.path), .picture = picture};
	ap_figures_read(to->ctx, file->doc, saved, &out->figures);
	return AP_OK;
}

static enum ap_status write_report(struct ap_writing *to, const struct ap_known *file,
	const struct ap_known *old)
{
	struct ap_html_plan plan, before;
	struct ap_output_sink sink;
	struct ap_str page;

	AP_TRY(read_page(to, file, &plan));
	if (old) {
		struct ap_diff d;

		AP_TRY(read_page(to, old, &before));
		ap_diff_make(to->ctx, before.figures.saved, plan.figures.saved, &d);
		plan.change = ap_diff_message(to->ctx, &d);
	}
	ap_ctx_phase(to->ctx, "writing the report");
	ap_str_init(&page, to->ctx->arena);
	ap_html_write(to->ctx, &plan, old ? &before : NULL, &page);
	AP_TRY(ap_out_open(to, to->set->report, &sink));
	ap_output_write_fn(&sink, page.s, page.len);
	return AP_OK;
}

enum ap_status ap_render(struct ap_writing *to, const char *path)
{
	const char *dot_out = to->set->dot_out, *against = to->set->against;
	struct ap_known file, old;
	struct ap_picture pic;
	enum ap_status st;

	if (!dot_out && !to->set->report)
		return ap_diag_add(to->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"render: no output; expected --dot-out FILE or --report FILE");
	AP_TRY(ap_out_check(to, NULL));
	ap_ctx_phase(to->ctx, "reading");
	AP_TRY(ap_model_file(to->ctx, path, &path));
	AP_TRY(ap_kind_read(to->ctx, to->set, path, &file));
	if (against)
		AP_TRY(ap_kind_read(to->ctx, to->set, against, &old));
	if (to->set->report)
		AP_TRY(write_report(to, &file, against ? &old : NULL));
	if (!dot_out)
		return ap_out_commit(to);
	AP_TRY(make_picture(to, &file, against ? &old : NULL, &pic));
	ap_ctx_phase(to->ctx, "drawing");
	st = ap_out_draw(to, dot_out, NULL, &pic);
	if (st == AP_LIMIT)
		return ap_out_fault(to, st, dot_out, "memory ran out while the picture was drawn");
	return st == AP_OK ? ap_out_commit(to) : st;
}
