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
#include "cli/kind.h"
#include "cli/pipeline.h"
#include "cli/run.h"
#include "cli/settings.h"
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

static enum ap_status load_graph(struct ap_run *run, const struct ap_json *doc, const char *sha256,
	const struct ap_graph **out)
{
	const struct ap_graph_params params = {
		.batch = run->opt->batch,
		.micro_batches = run->opt->hybrid ? 2 : run->opt->micro_batches, /* to be judged */
		.inference = run->opt->run_phase == AP_RUN_INFERENCE,
		.unknown_batch_parallel = run->opt->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};

	return ap_graph_load(&run->ctx, doc, sha256, &params, out);
}

static enum ap_status read_graph(struct ap_run *run, const char *path, struct ap_json **doc,
	const char **sha256)
{
	struct ap_input in;

	AP_TRY(ap_input_read(run, path, &in));
	if (ap_kind_is_dump(&in)) {
		(void)ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = in.path}, NULL,
			"is %s; import makes an operator graph of it", ap_kind_text(AP_KIND_DUMP));
		return AP_MEANING;
	}
	AP_TRY(ap_input_json(run, &in, 0, doc));
	*sha256 = ap_input_sha256(run, &in);
	return AP_OK;
}

enum ap_status ap_input_graph(struct ap_run *run, const char *path, const struct ap_graph **out)
{
	struct ap_json *doc;
	const char *sha256;

	AP_TRY(read_graph(run, path, &doc, &sha256));
	return load_graph(run, doc, sha256, out);
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

static enum ap_status check_devices(struct ap_run *run, const struct ap_topo *table)
{
	int64_t devices = run->opt->device_num;

	if (devices && devices != table->ndev)
		return FAULT(run, "--device-num says %" PRId64 ", but the rank table %s holds %" PRIu32
			" devices", devices, rank_table_path(run), table->ndev);
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

enum ap_status ap_input_chip(struct ap_run *run, const struct ap_sources *src,
	const struct ap_chip **out)
{
	return load_chip(run, src->table ? src->table->chip_info : "", out);
}

static enum ap_status load_machine(struct ap_run *run, const struct ap_sources *src,
	struct ap_inputs *in)
{
	in->topo = run->opt->parallel_mode == AP_MODE_STAND_ALONE ? NULL : src->table;
	if (in->topo)
		AP_TRY(check_devices(run, in->topo));
	else if (!run->opt->device_num)
		return FAULT(run, "no machine is known; give a rank table, set RANK_TABLE_FILE or "
			"use --device-num");
	AP_TRY(ap_input_chip(run, src, &in->chip));
	if (!in->topo)
		AP_TRY(make_topo(run, in->chip, &in->topo));
	AP_TRY(ap_settings_fit_devices(&run->ctx, run->opt, in->topo->ndev));
	AP_TRY(ap_hccl_check(&run->ctx, in->topo, in->chip->hccl, !run->opt->hccl_rules));
	return ap_machine_make(&run->ctx, in->topo, in->chip, &in->machine);
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
		.route = ap_route_at((size_t)run->opt->executor),
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

enum ap_status ap_sources_read(struct ap_run *run, struct ap_sources *out)
{
	const char *table = rank_table_path(run);

	*out = (struct ap_sources){0};
	AP_TRY(ap_pipeline_read_config(run, &out->stage_config));
	ap_run_phase(run, "reading the graph");
	AP_TRY(read_graph(run, run->cli->arg[0], &out->graph, &out->sha256));
	ap_run_phase(run, "reading the machine");
	return table ? read_rank_table(run, table, &out->table) : AP_OK;
}

enum ap_status ap_inputs_make(struct ap_run *run, const struct ap_sources *src, struct ap_inputs *out)
{
	struct ap_options o = *run->opt;
	struct ap_run effective = *run; /* with what --hybrid says */

	*out = (struct ap_inputs){0};
	effective.opt = &o;
	ap_run_phase(run, "checking the graph");
	AP_TRY(load_graph(run, src->graph, src->sha256, &out->graph));
	ap_run_phase(run, "making the machine");
	AP_TRY(load_machine(run, src, out));
	AP_TRY(ap_pipeline_hybrid(run, out, &o, &out->hybrid));
	AP_TRY(ap_input_step(&effective, src->graph, out->graph, &out->step));
	AP_TRY(ap_settings_step_on(&run->ctx, &o, out->graph, out->topo->ndev, &out->step));
	AP_TRY(ap_pipeline_make(&effective, src, out));
	out->step.quantum_s = ap_cost_quantum_s(&run->ctx, out->graph, out->machine, &out->step);
	make_request(&effective, out);
	return ap_diag_status(run->ctx.diag);
}

enum ap_status ap_inputs_load(struct ap_run *run, struct ap_inputs *out)
{
	struct ap_sources src;

	AP_TRY(ap_sources_read(run, &src));
	return ap_inputs_make(run, &src, out);
}
