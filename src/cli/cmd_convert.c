/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "api/files.h"
#include "api/outputs.h"
#include "api/stage_files.h"
#include "base/arena.h"
#include "base/diag.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_match.h"
#include "cli/cmd.h"
#include "cli/run.h"

struct job {
	size_t n;
	const char *const *from; /* [n] */
	const char *to;
	bool to_folder; /* of stage files */
};

/* Shapes of the parameters: the JSON form has them, protobuf has not, a graph knows them. */
static enum ap_status add_shapes(struct ap_run *run, const char *path, struct ap_ckpt *ckpt)
{
	const struct ap_graph *g;

	if (run->set->graph) {
		AP_TRY(ap_input_graph(&run->ctx, run->set, run->set->graph, &g));
		AP_TRY(ap_ckpt_add_shapes(&run->ctx, g, ckpt));
		return ap_ckpt_fits(&run->ctx, ckpt, g);
	}
	for (uint32_t i = 0; i < ckpt->nlayout; i++)
		if (!ckpt->layout[i].has_shape)
			return ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK,
				&(struct ap_where){.file = path}, "shape-known",
				"holds no full shapes; without --graph only MindSpore's Python tools "
				"will read the JSON form");
	return AP_OK;
}

/* In JSON a key can stand but once. */
static enum ap_status warn_of_keys(struct ap_run *run, const char *path, const struct ap_ckpt *c)
{
	uint32_t lost = 0;

	for (uint32_t i = 1; i < c->nitem; i++)
		lost += !strcmp(c->item[i - 1].node_name, c->item[i].node_name);
	if (!lost)
		return AP_OK;
	return ap_diag_add(run->ctx.diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path},
		"ckpt-keys", "%" PRIu32 " operators have their key in a later stage, too; of these "
		"the JSON form holds the last stage's, as MindSpore merges", lost);
}

/* The stage files are of the form that was read. */
static enum ap_status write_stages(struct ap_run *run, const struct job *job, const struct ap_ckpt *ckpt,
	bool json)
{
	struct ap_ckpt *stage;
	uint32_t n;

	if (!ap_ckpt_is_merged(ckpt))
		return ap_path_fault(&run->ctx, AP_MEANING, job->from[0],
			"is no merged file; only one can become a folder of stage files");
	AP_TRY(ap_ckpt_split(&run->ctx, ckpt, &n, &stage));
	return ap_ckpt_stage_folder(&run->to, job->to, json ? ".json" : ".ckpt", n, stage, NULL);
}

static enum ap_status write_strategy(struct ap_run *run, const struct job *job, struct ap_ckpt *ckpt,
	bool json)
{
	if (job->to_folder)
		return write_stages(run, job, ckpt, json);
	if (ap_path_is_json(job->to) || run->set->graph)
		AP_TRY(add_shapes(run, job->from[0], ckpt));
	if (ap_path_is_json(job->to)) {
		AP_TRY(warn_of_keys(run, job->from[0], ckpt));
	} else {
		AP_TRY(ap_out_check_binary(&run->to, job->to));
	}
	return ap_ckpt_stage_file(&run->to, job->to, ckpt);
}

/* Files of stages, each named or all in a folder. */
static enum ap_status convert_stages(struct ap_run *run, const struct job *job)
{
	struct ap_ckpt *part = AP_NEW_N(run->ctx.arena, struct ap_ckpt, job->n), all;

	for (size_t i = 0; i < job->n; i++)
		AP_TRY(ap_ckpt_load(&run->ctx, run->set, job->from[i], &part[i]));
	if (job->n > 1)
		AP_TRY(ap_ckpt_merge(&run->ctx, (uint32_t)job->n, part, &all));
	else
		all = *part;
	return write_strategy(run, job, &all, all.nlayout && all.layout->has_shape);
}

static enum ap_status convert_rank_table(struct ap_run *run, const struct ap_known *file, const char *to)
{
	const struct ap_topo *topo;
	struct ap_output_sink sink;

	AP_TRY(ap_topo_load(&run->ctx, file->doc, ap_input_sha256(&run->ctx, &file->in), &topo));
	AP_TRY(ap_topo_write_losses(&run->ctx, file->doc, topo));
	AP_TRY(ap_out_open(&run->to, to, &sink));
	ap_topo_write(topo, ap_output_write_fn, &sink);
	return AP_OK;
}

static enum ap_status convert_file(struct ap_run *run, const struct job *job)
{
	struct ap_known file;
	struct ap_ckpt ckpt;

	AP_TRY(ap_kind_read(&run->ctx, run->set, job->from[0], &file));
	ap_ctx_phase(&run->ctx, "converting");
	if (file.kind == AP_KIND_RANK_TABLE)
		return job->to_folder ? ap_path_fault(&run->ctx, AP_USAGE, job->to,
			"is a folder; expected the name of a file")
			: convert_rank_table(run, &file, job->to);
	if (file.kind != AP_KIND_STRATEGY)
		return ap_path_fault(&run->ctx, AP_MEANING, file.in.path, ap_arena_printf(run->ctx.arena,
			"is %s; expected a strategy checkpoint or a rank table",
			ap_kind_text(file.kind)));
	AP_TRY(ap_ckpt_read(&run->ctx, file.in.path, file.in.text, file.in.len, file.json, &ckpt));
	return write_strategy(run, job, &ckpt, file.json);
}

static enum ap_status check_job(struct ap_run *run, const struct job *job)
{
	run->to.nread -= !job->to_folder; /* the last argument is none */
	AP_TRY(ap_out_check(&run->to, job->to_folder ? NULL : job->to));
	for (size_t i = 0; i < job->n; i++)
		if (job->to_folder && ap_file_same(job->from[i], job->to))
			return ap_path_fault(&run->ctx, AP_USAGE, job->to, "is also an input");
	return AP_OK;
}

enum ap_status ap_cmd_convert(struct ap_run *run)
{
	struct job job = {.n = run->cli->narg - 1, .from = run->cli->arg,
		.to = run->cli->arg[run->cli->narg - 1]};

	job.to_folder = ap_file_is_folder(job.to) || ap_file_suffix(job.to, "/");
	AP_TRY(check_job(run, &job));
	ap_ctx_phase(&run->ctx, "reading");
	if (job.n > 1 || ap_file_is_folder(job.from[0]))
		AP_TRY(convert_stages(run, &job));
	else
		AP_TRY(convert_file(run, &job));
	return ap_out_commit(&run->to);
}
