/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/str.h"
#include "cli/run.h"
#include "cost/optimizer.h"

#define TABLES 4 /* that a search holds at once, beside graph and plan, as a rule */

#define FAULT(run, ...) \
	ap_diag_add((run)->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL, __VA_ARGS__)

enum ap_status ap_input_read(struct ap_run *run, const char *path, struct ap_input *out)
{
	*out = (struct ap_input){.path = strcmp(path, "-") ? path : "standard input"};
	return ap_file_read(&run->ctx, path, (size_t)run->opt->max_input, &out->text, &out->len);
}

const char *ap_input_sha256(struct ap_run *run, const struct ap_input *in)
{
	char *hex = ap_arena_alloc(run->ctx.arena, 65, 1);

	ap_sha256_hex(in->text, in->len, hex);
	return hex;
}

enum ap_status ap_input_json(struct ap_run *run, const struct ap_input *in, unsigned flags,
	struct ap_json **out)
{
	return ap_json_parse(&run->ctx, in->path, in->text, in->len, flags, out);
}

enum ap_status ap_input_graph(struct ap_run *run, const char *path, struct ap_json **doc,
	const struct ap_graph **out)
{
	const struct ap_graph_params params = {
		.batch = run->opt->batch,
		.micro_batches = run->opt->micro_batches,
		.inference = run->opt->run_phase == AP_RUN_INFERENCE,
		.unknown_batch_parallel = run->opt->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	struct ap_input in;
	struct ap_json *parsed;

	AP_TRY(ap_input_read(run, path, &in));
	AP_TRY(ap_input_json(run, &in, 0, &parsed));
	if (doc)
		*doc = parsed;
	return ap_graph_load(&run->ctx, parsed, ap_input_sha256(run, &in), &params,
		out);
}

static enum ap_status read_rank_table(struct ap_run *run, const char *path,
	const struct ap_topo **out)
{
	struct ap_input in;
	struct ap_json *doc;

	AP_TRY(ap_input_read(run, path, &in));
	AP_TRY(ap_input_json(run, &in, AP_JSON_TRAILING_COMMA, &doc));
	return ap_topo_load(&run->ctx, doc, ap_input_sha256(run, &in), out);
}

/* The rank table that is an argument, else that of the environment; NULL where there is none. */
static const char *rank_table_path(struct ap_run *run)
{
	const char *path = run->cli->narg > 1 ? run->cli->arg[1] : getenv("RANK_TABLE_FILE");

	return path && *path ? path : NULL;
}

static enum ap_status load_topo(struct ap_run *run, const char *path, const struct ap_topo **out)
{
	int64_t devices = run->opt->device_num;

	AP_TRY(read_rank_table(run, path, out));
	if (devices && devices != (*out)->ndev)
		return FAULT(run, "--device-num says %" PRId64 ", but the rank table %s holds %" PRIu32
			" devices", devices, path, (*out)->ndev);
	return AP_OK;
}

/* The machine of --device-num: servers and super pods as the options say, else as the chip has them,
 * where these fit together. */
static enum ap_status make_topo(struct ap_run *run, const struct ap_chip *chip,
	const struct ap_topo **out)
{
	const struct ap_options *o = run->opt;
	int64_t server = o->devices_per_server ? o->devices_per_server : chip->server_devices;
	int64_t pod = o->devices_per_pod;

	if (!pod && chip->pod_devices % server == 0)
		pod = chip->pod_devices;
	AP_TRY(ap_topo_make(&run->ctx, o->device_num, server, out));
	return pod ? ap_topo_make_pods(&run->ctx, *out, pod, out) : AP_OK;
}

static enum ap_status no_chip(struct ap_run *run, const char *chip_info)
{
	struct ap_str names;
	const char *name;

	ap_str_init(&names, run->ctx.arena);
	for (size_t i = 0; (name = ap_chip_at(i, NULL)); i++)
		ap_str_addf(&names, "%s%s", i ? ", " : "", name);
	if (*chip_info)
		return FAULT(run, "the rank table's chip_info \"%s\" is no chip that is known; give "
			"--chip (%s, or a profile that ends in .json)", chip_info, names.s);
	return FAULT(run, "no chip is known; give --chip (%s, or a profile that ends in .json)",
		names.s);
}

static enum ap_status load_chip(struct ap_run *run, const char *chip_info,
	const struct ap_chip **out)
{
	if (run->opt->chip)
		return ap_chip_get(&run->ctx, run->opt->chip, out);
	*out = NULL;
	if (*chip_info)
		AP_TRY(ap_chip_by_info(&run->ctx, chip_info, out));
	return *out ? AP_OK : no_chip(run, chip_info);
}

static enum ap_status load_machine(struct ap_run *run, struct ap_inputs *in)
{
	const char *path = rank_table_path(run);

	if (path)
		AP_TRY(load_topo(run, path, &in->topo));
	else if (!run->opt->device_num)
		return FAULT(run, "no machine is known; give a rank table, set RANK_TABLE_FILE or "
			"use --device-num");
	AP_TRY(load_chip(run, path ? in->topo->chip_info : "", &in->chip));
	if (!path)
		AP_TRY(make_topo(run, in->chip, &in->topo));
	AP_TRY(ap_hccl_check(&run->ctx, in->topo, in->chip->hccl, !run->opt->hccl_rules));
	return ap_machine_make(&run->ctx, in->topo, in->chip, &in->machine);
}

static enum ap_status unknown_optimizer(struct ap_run *run, const struct ap_json *doc,
	const char *name)
{
	return ap_json_report(&run->ctx, doc, ap_jv_get(ap_json_root(doc), "optimizer"), AP_ERROR,
		AP_MEANING, NULL, "optimizer-known", "unknown optimizer \"%s\"; expected %s",
		ap_diag_name(run->ctx.diag, name),
		ap_option_expects(run->ctx.arena, ap_option_at(AP_OPT_optimizer)));
}

static enum ap_status load_optimizer(struct ap_run *run, const struct ap_json *doc,
	const struct ap_graph *g, const struct ap_optimizer **out)
{
	static const char usual[] = "adam_weight_decay";

	if (run->opt->optimizer >= 0) {
		*out = ap_optimizer_at((size_t)run->opt->optimizer);
		return AP_OK;
	}
	if (*g->optimizer) {
		*out = ap_optimizer_find(g->optimizer);
		return *out ? AP_OK : unknown_optimizer(run, doc, g->optimizer);
	}
	*out = ap_optimizer_find(usual);
	return ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, NULL,
		"neither --optimizer nor the graph names an optimizer; %s is assumed", usual);
}

/* Behind a Reshape the batch may be one of two dimensions it was split in: that one is divided. */
static enum ap_status check_micro_extents(struct ap_run *run, const struct ap_graph *g, int64_t parts)
{
	for (ap_id i = 0; i < g->nnode; i++)
		for (int f = 0; f < g->node[i].bound.nfactor; f++) {
			const struct ap_factor *factor = &g->node[i].bound.factor[f];

			if (factor->flags & AP_FACTOR_BATCH && factor->size % parts)
				return FAULT(run, "--micro-batches %" PRId64 " does not divide the "
					"length of %" PRId64 " that carries the batch in operator \"%s\"",
					parts, factor->size,
					ap_diag_name(run->ctx.diag, g->node[i].name));
		}
	return AP_OK;
}

static enum ap_status check_micro_batches(struct ap_run *run, const struct ap_graph *g)
{
	int64_t parts = run->opt->micro_batches;

	if (parts == 1)
		return AP_OK;
	if (!g->batch)
		return FAULT(run, "--micro-batches %" PRId64 ": no input of %s has a batch_dim", parts,
			g->file);
	if (g->batch % parts)
		return FAULT(run, "--micro-batches %" PRId64 " does not divide the batch of %" PRId64,
			parts, g->batch);
	return check_micro_extents(run, g, parts);
}

static enum ap_status make_step(struct ap_run *run, const struct ap_json *doc,
	const struct ap_graph *g, struct ap_step *step)
{
	const struct ap_options *o = run->opt;
	const char *executor = ap_choices_executor((size_t)o->executor);

	*step = (struct ap_step)AP_STEP_DEFAULT;
	step->micro_batches = o->micro_batches;
	step->training = o->run_phase == AP_RUN_TRAINING;
	step->executor = (enum ap_executor)o->executor;
	step->full_batch = o->full_batch;
	step->optimizer_sharding = o->enable_parallel_optimizer;
	step->gradient_fp32_sync = o->gradient_fp32_sync;
	if (step->training)
		AP_TRY(load_optimizer(run, doc, g, &step->optimizer));
	AP_TRY(check_micro_batches(run, g));
	return ap_software_get(&run->ctx, o->software ? o->software : executor, &step->software);
}

/* The settings that decide the result, as they took effect. */
static void echo_settings(struct ap_run *run, struct ap_inputs *in)
{
	struct ap_options o = *run->opt;
	struct ap_setting *list = AP_NEW_N(run->ctx.arena, struct ap_setting, AP_OPT_COUNT);
	uint32_t n = 0;

	o.device_num = in->topo->ndev;
	if (strcmp(in->topo->form, "given") != 0)
		o.devices_per_server = o.devices_per_pod = 0;
	else if (!o.devices_per_server)
		o.devices_per_server = in->chip->server_devices;
	if (in->topo->pod.n && !o.devices_per_pod && strcmp(in->topo->form, "given") == 0)
		o.devices_per_pod = in->chip->pod_devices;
	o.chip = in->chip->name;
	o.software = in->step.software->name;
	o.memory = in->request.capacity_bytes;
	o.batch = in->graph->batch;
	for (size_t i = 0; in->step.optimizer && ap_optimizer_at(i); i++)
		if (ap_optimizer_at(i) == in->step.optimizer)
			o.optimizer = (int)i;
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);

		if (row->group <= AP_GROUP_SEARCH && ap_cli_takes(run->cli, row))
			list[n++] = (struct ap_setting){row->key,
				ap_option_json(run->ctx.arena, row, &o)};
	}
	in->request.nsetting = n;
	in->request.setting = list;
}

static void make_request(struct ap_run *run, struct ap_inputs *in)
{
	const struct ap_options *o = run->opt;

	in->request = (struct ap_request){
		.graph = in->graph,
		.machine = in->machine,
		.step = &in->step,
		.capacity_bytes = o->memory ? o->memory : in->chip->usable_bytes,
		.search_mode = ap_choices_search_mode((size_t)o->search_mode),
		.budget = {
			.work = o->work_limit ? (uint64_t)o->work_limit : AP_DEFAULT_WORK,
			.table_bytes = (size_t)o->planner_memory / TABLES,
			.gap = o->gap / 100,
			.no_fold = !o->fold,
		},
		.prune = o->prune,
		.certify = o->certify,
	};
	echo_settings(run, in);
}

enum ap_status ap_inputs_load(struct ap_run *run, struct ap_inputs *out)
{
	struct ap_json *doc;

	*out = (struct ap_inputs){0};
	ap_run_phase(run, "reading the graph");
	AP_TRY(ap_input_graph(run, run->cli->arg[0], &doc, &out->graph));
	ap_run_phase(run, "reading the machine");
	AP_TRY(load_machine(run, out));
	AP_TRY(make_step(run, doc, out->graph, &out->step));
	make_request(run, out);
	return ap_diag_status(run->ctx.diag);
}
