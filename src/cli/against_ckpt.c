/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy checkpoint held against a graph and a machine. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "ckpt/ckpt_form.h"
#include "cli/against.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "cli/stage_files.h"

struct holding {
	struct ap_run *run;
	struct ap_run as; /* its messages are findings */
	struct ap_cli cli;
	struct ap_ckpt ckpt;
	uint32_t nstage;
	const struct ap_graph *graph;
	const struct ap_topo *table; /* NULL: none */
	struct ap_json *doc; /* of the graph */
};

static enum ap_status read_inputs(struct holding *h)
{
	const struct ap_options *o = h->run->opt;
	const struct ap_graph_params params = {
		.batch = o->batch,
		.micro_batches = o->micro_batches,
		.unknown_batch_parallel = true,
	};
	struct ap_sources src;
	struct ap_diag *quiet = h->as.ctx.diag;

	h->as.ctx.diag = h->run->ctx.diag;
	AP_TRY(ap_ckpt_load(h->run, h->run->cli->arg[0], &h->ckpt));
	AP_TRY(ap_sources_read(&h->as, &src));
	AP_TRY(ap_graph_load(&h->run->ctx, src.graph, src.sha256, &params, &h->graph));
	h->as.ctx.diag = quiet;
	h->table = src.table;
	h->doc = src.graph;
	return AP_OK;
}

/* Devices of a stage: of the machine that is given, else those that the file was made for. */
static enum ap_status count_devices(struct holding *h, int64_t *ndev)
{
	int64_t total = h->table ? h->table->ndev : h->run->opt->device_num;

	*ndev = 1;
	if (!total && h->ckpt.nlayout)
		return ap_product(h->ckpt.layout[0].dev_matrix.v, h->ckpt.layout[0].dev_matrix.n, ndev)
			? AP_OK : AP_MEANING;
	if (h->run->opt->device_num && h->table && h->run->opt->device_num != h->table->ndev)
		return ap_diag_add(h->run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--device-num says %" PRId64 ", but the rank table holds %" PRIu32 " devices",
			h->run->opt->device_num, h->table->ndev);
	*ndev = total / h->nstage;
	if (total % h->nstage)
		(void)ap_diag_add(h->as.ctx.diag, AP_ERROR, AP_MEANING, NULL, NULL,
			"holds %" PRIu32 " pipeline stages, which do not divide %" PRId64 " devices",
			h->nstage, total);
	return AP_OK;
}

/* The JSON form holds the whole shapes. */
static void check_shapes(struct holding *h)
{
	const struct ap_graph *g = h->graph;
	struct ap_map *names = ap_map_create(h->run->ctx.arena);
	ap_id *tensor = AP_NEW_N(h->run->ctx.arena, ap_id, g->ntensor);

	for (ap_id i = 0; i < g->ntensor; i++)
		if (g->tensor[i].kind == AP_TENSOR_PARAM)
			tensor[ap_map_put_str(names, g->tensor[i].name, NULL)] = i;
	for (uint32_t i = 0; i < h->ckpt.nlayout; i++) {
		const struct ap_ckpt_layout *l = &h->ckpt.layout[i];
		ap_id id = ap_map_get_str(names, ap_ckpt_bare_name(l->param_name));
		const struct ap_shape *shape = id == AP_NONE ? NULL : &g->tensor[tensor[id]].shape;

		if (!l->has_shape || !shape || (l->tensor_shape.n == shape->rank &&
			!memcmp(l->tensor_shape.v, shape->dim, shape->rank * sizeof *shape->dim)))
			continue;
		(void)ap_diag_add(h->as.ctx.diag, AP_ERROR, AP_MEANING, NULL, NULL,
			"layout \"%s\": the parameter has another shape now",
			ap_diag_name(h->run->ctx.diag, l->param_name));
	}
}

static bool is_state(const char *name)
{
	const char *prefix;
	char buf[32];

	for (size_t i = 0; (prefix = ap_ckpt_state_prefix(i, buf)); i++)
		if (ap_ckpt_state_source(ap_ckpt_bare_name(name), prefix))
			return true;
	return false;
}

/* What is wrong of a parameter is wrong of its optimizer's states, and said once. */
static struct ap_ckpt without_states(struct holding *h)
{
	struct ap_ckpt_layout *layout =
		AP_NEW_N(h->run->ctx.arena, struct ap_ckpt_layout, h->ckpt.nlayout);
	struct ap_ckpt copy = h->ckpt;

	copy.nlayout = 0;
	for (uint32_t i = 0; i < h->ckpt.nlayout; i++)
		if (!is_state(h->ckpt.layout[i].param_name))
			layout[copy.nlayout++] = h->ckpt.layout[i];
	copy.layout = layout;
	return copy;
}

static enum ap_status hold(struct holding *h)
{
	struct ap_pipe pipe = {.nstage = 1, .nsegment = 1};
	struct ap_step step;
	const int32_t *const *counts;
	const uint32_t *stage;
	struct ap_ckpt copy;
	int64_t ndev;

	h->nstage = ap_ckpt_stages(&h->as.ctx, &h->ckpt, &stage);
	h->nstage = h->nstage ? stage[h->nstage - 1] + 1 : 1;
	AP_TRY(count_devices(h, &ndev));
	AP_TRY(ap_input_step(&h->as, h->doc, h->graph, &step));
	pipe.nstage = (int32_t)h->nstage;
	step.pipe = &pipe;
	if (ndev)
		(void)ap_ckpt_counts(&h->as.ctx, &h->ckpt, h->graph, ndev, &step, &counts);
	copy = without_states(h);
	(void)ap_ckpt_add_shapes(&h->as.ctx, h->graph, &copy);
	check_shapes(h);
	return AP_OK;
}

enum ap_status ap_against_ckpt(struct ap_run *run, struct ap_against *out)
{
	struct holding h = {.run = run};

	ap_against_run(run, &h.cli, &h.as);
	AP_TRY(read_inputs(&h));
	(void)hold(&h);
	AP_TRY(ap_diag_status(run->ctx.diag));
	ap_against_findings(run, h.as.ctx.diag, out);
	out->fits = !out->nfinding;
	if (h.table || run->opt->device_num)
		return AP_OK;
	return ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, &(struct ap_where){.file = out->file}, NULL,
		"the machine is not compared; give a rank table or --device-num for that");
}
