/* SPDX-License-Identifier: Apache-2.0 */
#include "api/request.h"

#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "api/keep.h"
#include "api/launch.h"
#include "api/machine_file.h"
#include "api/model.h"
#include "api/rules.h"
#include "api/settle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_match.h"
#include "cost/float8.h"
#include "cost/optimizer.h"
#include "cost/pins.h"
#include "cost/quantum.h"
#include "cost/recompute.h"
#include "cost/task.h"
#include "drive/baseline.h"
#include "graph/family.h"
#include "graph/graph.h"
#include "graph/kernel_times.h"
#include "hw/constant.h"
#include "hw/hccl.h"
#include "hw/link_curve.h"
#include "pipeline/stages.h"
#include "route/semi_auto.h"
#include "shard/arrival.h"
#include "shard/imposed.h"
#include "shard/recompute_parse.h"

#define TABLES 4 /* held at once by a search, usually, beside graph and plan */

#define FAULT(ctx, ...) ap_diag_add((ctx)->diag, AP_ERROR, AP_USAGE, NULL, NULL, __VA_ARGS__)

static enum ap_status load_graph(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_graph **out)
{
	const struct ap_graph_params params = {
		.batch = set->batch,
		.micro_batches = set->hybrid ? 2 : set->micro_batches, /* checked later */
		.inference = set->run_phase == AP_RUN_INFERENCE,
		.unknown_batch_parallel = set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
		.source = src->source,
		.source_sha256 = src->source_sha256,
	};

	struct ap_ctx own = ap_diag_apart(ctx);
	struct ap_input in;
	enum ap_status st;

	AP_TRY(ap_graph_load(ctx, src->graph, src->sha256, &params, out));
	if (!set->kernel_times)
		return AP_OK;
	AP_TRY(ap_input_read(ctx, set, set->kernel_times, &in));
	st = ap_kernel_times_apply(&own, in.path, in.text, in.len, *out, out);
	ap_diag_pass_on(ctx->diag, own.diag); /* of graphs that are loaded several times */
	return st;
}

bool ap_sources_mix_batch(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src)
{
	struct ap_settings several = *set;
	struct ap_ctx quiet = ap_diag_apart(ctx);
	const struct ap_graph *g;
	struct ap_message m;

	several.hybrid = NULL;
	several.micro_batches = 2;
	(void)load_graph(&quiet, &several, src, &g);
	for (size_t i = 0; ap_diag_at(quiet.diag, i, &m); i++)
		if (m.check && !strcmp(m.check, "batch-mixed"))
			return true;
	return false;
}

/* The given text, or that of the file. */
static enum ap_status read_named(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_input *named, struct ap_input *in)
{
	*in = *named;
	return named->text ? AP_OK : ap_input_read(ctx, set, named->path, in);
}

/* Does the file of a launch stand where it says the network, too: in place of a graph beside itself as
 * --config, or as what --against holds a plan against? */
static bool says_network(const struct ap_settings *set, const char *path)
{
	return (set->config && !strcmp(set->config, path)) || (set->against && !strcmp(set->against, path));
}

/* Elements of all parameters that a graph's document lists; 0 if it is no such document. */
static double listed_parameters(const struct ap_json *doc)
{
	const struct ap_jv *root = ap_json_root(doc), *list = ap_jv_type(root) == AP_JOBJECT
		? ap_jv_get(root, "parameters") : NULL;
	double sum = 0;

	for (const struct ap_jv *p = list && ap_jv_type(list) == AP_JARRAY ? ap_jv_first(list) : NULL; p;
		p = ap_jv_next(p)) {
		const struct ap_jv *shape = ap_jv_type(p) == AP_JOBJECT ? ap_jv_get(p, "shape") : NULL;
		double n = shape && ap_jv_type(shape) == AP_JARRAY ? 1 : 0;

		for (const struct ap_jv *d = n > 0 ? ap_jv_first(shape) : NULL; d; d = ap_jv_next(d))
			n *= ap_jv_type(d) == AP_JNUMBER ? ap_jv_double(d) : 0;
		sum += n;
	}
	return sum;
}

/* Where --config names a launch beside a graph, its words of the network are not read: a network of other
 * size is likely a mistake. Words may be padded to some multiple. */
static enum ap_status compare_launch(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_json *graph)
{
	static const double padding = 0.05;
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_input in = {.path = set->config};
	enum ap_launch_language language;
	double have = listed_parameters(graph), said;

	if (!in.path || !strcmp(in.path, "-") || ap_input_read(&quiet, set, in.path, &in) != AP_OK)
		return AP_OK;
	language = ap_launch_language(in.text, in.len);
	said = language != AP_LAUNCH_NONE
		? (double)ap_model_launch_parameters(ctx, set, language, &in) : 0;
	if (said <= 0 || have <= 0 || (have >= said * (1 - padding) && have <= said * (1 + padding)))
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = in.path}, "launch",
		"describes a network of %.0f parameter elements, the graph has %.0f; the graph is planned",
		said, have);
}

/* Reads a graph, or makes it of a model's configuration. */
static enum ap_status read_graph(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_input *named, struct ap_sources *out)
{
	struct ap_input file = *named, in, made;
	enum ap_launch_language language;

	if (!file.text)
		AP_TRY(ap_model_file(ctx, named->path, &file.path));
	AP_TRY(read_named(ctx, set, &file, &in));
	if (ap_kind_is_dump(&in)) {
		(void)ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = in.path},
			NULL,
			"is %s; import makes an operator graph of it", ap_kind_text(AP_KIND_DUMP));
		return AP_MEANING;
	}
	language = ap_launch_language(in.text, in.len);
	if (language != AP_LAUNCH_NONE && says_network(set, named->path)) {
		out->source = ap_file_base(in.path);
		out->source_sha256 = ap_input_sha256(ctx, &in);
		AP_TRY(ap_model_of_launch(ctx, set, language, &in, &made));
		out->decoder = made.decoder;
		out->sha256 = ap_input_sha256(ctx, &made);
		return ap_input_json(ctx, &made, 0, &out->graph);
	}
	if (language != AP_LAUNCH_NONE)
		return ap_path_fault(ctx, AP_USAGE, in.path, ap_arena_printf(ctx->arena,
			"is %s, which --config takes; expected an operator graph or a model's configuration",
			ap_launch_text(language)));
	AP_TRY(ap_input_json(ctx, &in, 0, &out->graph));
	out->sha256 = ap_input_sha256(ctx, &in);
	switch (ap_kind_of(ap_json_root(out->graph))) {
	case AP_KIND_MODEL:
		AP_TRY(ap_model_of_config(ctx, set, out->graph, &made));
		out->decoder = made.decoder;
		out->source = ap_file_base(in.path);
		out->source_sha256 = out->sha256;
		out->sha256 = ap_input_sha256(ctx, &made);
		return ap_input_json(ctx, &made, 0, &out->graph);
	case AP_KIND_CONFIG:
		return ap_path_fault(ctx, AP_USAGE, in.path, says_network(set, named->path)
			? "holds settings, which say no network; expected GRAPH as well"
			: "holds settings, which --config takes; expected an operator graph or a model's "
			"configuration");
	default:
		return ap_model_no_config(ctx, set, in.path, "an operator graph");
	}
}

enum ap_status ap_input_graph(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_graph **out)
{
	struct ap_sources src = {0};

	AP_TRY(read_graph(ctx, set, &(struct ap_input){.path = path}, &src));
	return load_graph(ctx, set, &src, out);
}

/* Reads the stage configuration, from a file or from the setting's own object. */
static enum ap_status read_stage_config(struct ap_ctx *ctx, const struct ap_settings *set,
	struct ap_json **out)
{
	const struct ap_setting_row *row = ap_setting_at(AP_SET_stage_config);
	const char *text = set->stage_config, *path = ap_setting_path(row, set);
	struct ap_input in = {.path = row->key};

	if (!text)
		return AP_OK;
	if (path) {
		AP_TRY(ap_input_read(ctx, set, path, &in));
	} else {
		in.text = ap_arena_strdup(ctx->arena, text);
		in.len = strlen(text);
	}
	return ap_input_json(ctx, &in, 0, out);
}

/* A file of a machine says its ranks or one of its servers; two files one each, or the same twice. What a
 * site says yields. */
static enum ap_status read_machine(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_input *named, struct ap_machine_file *ranks, struct ap_machine_file *server,
	struct ap_sources *out)
{
	struct ap_machine_file file, *to;
	struct ap_input in;

	AP_TRY(read_named(ctx, set, named, &in));
	AP_TRY(ap_machine_file_read(ctx, &in, &file));
	to = file.server ? server : ranks;
	if (to->sha256 && set->origin[AP_SET_topology] == AP_FROM_SITE)
		return AP_OK;
	if (to->sha256 && strcmp(to->sha256, file.sha256) != 0)
		return FAULT(ctx, "%s and %s both say %s; expected one of them",
			file.server ? out->server_path : out->table_path, in.path,
			file.server ? "how the devices of a server are linked" : "which devices there are");
	if (!to->sha256)
		*(file.server ? &out->server_path : &out->table_path) = named->path;
	*to = file;
	return AP_OK;
}

/* Devices of hosts whose file does not say how many each has. */
static int64_t host_devices(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_server *server)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	const struct ap_chip *chip;

	if (set->devices_per_server || server)
		return set->devices_per_server ? set->devices_per_server : server->ndev;
	return set->chip && ap_chip_get(&quiet, set->chip, &chip) == AP_OK ? chip->server_devices : 0;
}

static enum ap_status read_machines(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_input *named, struct ap_sources *out)
{
	struct ap_machine_file ranks = {0}, server = {0};
	int64_t each;

	out->table = NULL;
	out->server = NULL;
	if (named->path)
		AP_TRY(read_machine(ctx, set, named, &ranks, &server, out));
	if (set->topology)
		AP_TRY(read_machine(ctx, set, &(struct ap_input){.path = set->topology}, &ranks,
			&server, out));
	out->server = server.server;
	if (!ranks.sha256)
		return AP_OK;
	AP_TRY(ap_machine_file_topo(ctx, &ranks, 0, ranks.hosts ? host_devices(ctx, set, out->server) : 0,
		&out->table));
	for (uint32_t s = 0; s < out->table->nserver && out->server; s++) {
		each = 0;
		for (uint32_t r = out->table->first[s]; r != AP_NONE; r = out->table->place[r].next)
			each++;
		if (each > out->server->ndev)
			return FAULT(ctx, "%s has %" PRId64 " devices on server %s, but %s describes a "
				"server of %" PRIu32, out->table_path, each,
				ap_diag_name(ctx->diag, out->table->server[s]), out->server_path,
				out->server->ndev);
	}
	return AP_OK;
}

int64_t ap_sources_devices(const struct ap_settings *set, const struct ap_sources *src)
{
	return set->device_num ? set->device_num : src->table ? src->table->ndev
		: src->server ? src->server->ndev : 0;
}

enum ap_status ap_sources_read(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_named *named, struct ap_sources *out)
{
	*out = (struct ap_sources){.strategy = named->strategy};
	AP_TRY(read_stage_config(ctx, set, &out->stage_config));
	ap_ctx_phase(ctx, "reading the graph");
	AP_TRY(read_graph(ctx, set, &named->graph, out));
	if (named->graph.text || !says_network(set, named->graph.path))
		AP_TRY(compare_launch(ctx, set, out->graph));
	ap_ctx_phase(ctx, "reading the machine");
	return read_machines(ctx, set, &named->table, out);
}

enum ap_status ap_sources_table(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_sources *io)
{
	const struct ap_input named = {.path = path};

	return read_machines(ctx, set, &named, io);
}

/* Makes the machine for --device-num, or of one server that a file describes. Servers and super pods are as
 * the options say, else the chip's if they divide. */
static enum ap_status make_topo(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_chip *chip, const struct ap_topo **out)
{
	int64_t server = set->devices_per_server ? set->devices_per_server : chip->server_devices;
	int64_t pod = set->devices_per_pod;

	if (src->server && server > src->server->ndev)
		return FAULT(ctx, "--devices-per-server says %" PRId64 ", but %s describes a server of "
			"%" PRIu32, server, src->server_path, src->server->ndev);
	if (!pod && chip->pod_devices % server == 0)
		pod = chip->pod_devices;
	AP_TRY(ap_topo_make(ctx, ap_sources_devices(set, src), server, out));
	return pod ? ap_topo_make_pods(ctx, *out, pod, out) : AP_OK;
}

static enum ap_status no_chip(struct ap_ctx *ctx, const char *chip_info)
{
	struct ap_str names;
	const char *name;

	ap_str_init(&names, ctx->arena);
	for (size_t i = 0; (name = ap_chip_at(i, NULL)); i++)
		ap_str_addf(&names, "%s%s", i ? ", " : "", name);
	if (*chip_info)
		return FAULT(ctx, "the rank table's chip_info \"%s\" is no chip that is known; give "
			"--chip (%s, or a profile that ends in .json)", chip_info, names.s);
	return FAULT(ctx, "no chip is known; give --chip (%s, or a profile that ends in .json)",
		names.s);
}

/* The chip with links as they were measured. */
static enum ap_status measure_links(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_chip **chip)
{
	struct ap_link_curves curves;
	struct ap_input in;

	if (!set->link_curve)
		return AP_OK;
	AP_TRY(ap_input_read(ctx, set, set->link_curve, &in));
	AP_TRY(ap_link_curves_read(ctx, in.path, in.text, in.len, &curves));
	return ap_link_curves_chip(ctx, &curves, *chip, chip);
}

/* What a file says goes before what a site says, unless it is a guess from its generation. */
static enum ap_status find_chip(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_chip **out)
{
	const char *chip_info = src->table ? src->table->chip_info : "", *name = chip_info;
	bool from_site = set->origin[AP_SET_chip] == AP_FROM_SITE;

	*out = NULL;
	if (*chip_info && (!set->chip || from_site))
		AP_TRY(ap_chip_by_info(ctx, chip_info, out));
	else if (src->server && (!set->chip || (from_site && *src->server->chip)))
		AP_TRY(ap_server_profile(ctx, src->server, &name));
	if (!*out && *name && name != chip_info)
		AP_TRY(ap_chip_get(ctx, name, out));
	if (!*out && set->chip)
		AP_TRY(ap_chip_get(ctx, name = set->chip, out));
	if (!*out)
		return no_chip(ctx, chip_info);
	AP_TRY(ap_chip_note_family(ctx, name, *out));
	if (src->server)
		AP_TRY(ap_server_chip(ctx, src->server, *out, out));
	return measure_links(ctx, set, out);
}

/* The chip with the number that the settings put in place of its own, where it is one of a chip. */
static const struct ap_chip *chip_with_number(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_chip *chip)
{
	const struct ap_constant *c;
	struct ap_constant *list;
	struct ap_chip *own;
	size_t n;

	if (!set->number)
		return chip;
	own = ap_arena_memdup(ctx->arena, chip, sizeof *chip);
	n = ap_chip_constants(ctx->arena, own, &list);
	c = ap_constant_find(list, n, set->number->path);
	if (!c)
		return chip;
	ap_constant_set(c, set->number->value);
	return own;
}

enum ap_status ap_input_chip(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_chip **out)
{
	struct ap_ctx own = ap_diag_apart(ctx); /* what is said once is not said again of the same inputs */
	enum ap_status st = find_chip(&own, set, src, out);

	ap_diag_pass_on(ctx->diag, own.diag);
	if (st == AP_OK)
		*out = chip_with_number(ctx, set, *out);
	return st;
}

enum ap_status ap_input_software(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_software **out)
{
	const char *own = ap_route_at((size_t)set->executor)->software, *said = set->software;
	const struct ap_constant *c;
	struct ap_constant *list;
	struct ap_software *other;
	size_t n;

	if (!said)
		said = own;
	else if (*said == '@')
		said = ap_arena_printf(ctx->scratch, "%s%s", own, said);
	AP_TRY(ap_software_get(ctx, said, out));
	if (!set->number)
		return AP_OK;
	other = ap_arena_memdup(ctx->arena, *out, sizeof **out);
	n = ap_software_constants(ctx->arena, other, &list);
	c = ap_constant_find(list, n, set->number->path);
	if (!c)
		return AP_OK;
	ap_constant_set(c, set->number->value);
	*out = other;
	return AP_OK;
}

static enum ap_status load_machine(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_inputs *in)
{
	const struct ap_software *software;

	if (src->machine) {
		in->machine = src->machine;
		in->topo = in->machine->topo;
		in->chip = in->machine->chip;
		return AP_OK;
	}
	in->topo = set->parallel_mode == AP_MODE_STAND_ALONE ? NULL : src->table;
	if (in->topo && set->device_num && set->device_num != in->topo->ndev)
		return FAULT(ctx, "--device-num says %" PRId64 ", but the %s %s holds %" PRIu32 " devices",
			set->device_num, ap_topo_what(in->topo), src->table_path, in->topo->ndev);
	if (!in->topo && !set->device_num && !src->server)
		return FAULT(ctx, "no machine is known; give a rank table, set RANK_TABLE_FILE or "
			"use --device-num");
	AP_TRY(ap_input_chip(ctx, set, src, &in->chip));
	if (!in->topo)
		AP_TRY(make_topo(ctx, set, src, in->chip, &in->topo));
	AP_TRY(ap_settings_fit_devices(ctx, set, in->topo->ndev));
	AP_TRY(ap_hccl_check(ctx, in->topo, in->chip->hccl, !set->hccl_rules));
	AP_TRY(ap_input_software(ctx, set, &software));
	return ap_machine_make(ctx, in->topo, ap_chip_driven(ctx->arena, in->chip, software), &in->machine);
}

/* Refuses products in 8 bits on a chip without; names those with. */
static enum ap_status check_float8(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_chip *chip)
{
	struct ap_str names;
	const char *name;

	if (set->fp8_format < 0 || chip->peak_flops[AP_UNIT_CUBE][AP_FLOAT8_E4M3FN] > 0)
		return AP_OK;
	ap_str_init(&names, ctx->arena);
	for (size_t i = 0; (name = ap_chip_at(i, NULL)); i++) {
		const struct ap_chip *other;

		AP_TRY(ap_chip_get(ctx, name, &other));
		if (other->peak_flops[AP_UNIT_CUBE][AP_FLOAT8_E4M3FN] > 0)
			ap_str_addf(&names, names.len ? ", %s" : "%s", name);
	}
	return FAULT(ctx, "%s: %s has no products in 8 bits; these have: %s, and profiles with a peak of "
		"float8_e4m3fn", ap_setting_said(ctx, set, AP_SET_fp8_format), chip->name, names.s);
}

static bool has_mindspore_names(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (!strncmp(g->node[i].name, "Default/", strlen("Default/")))
			return true;
	return false;
}

/* Asks for the executor if nothing says that it is MindSpore: neither devices that it alone runs on, nor
 * names that it gives to operators. */
static enum ap_status ask_executor(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_graph *g, const struct ap_chip *chip)
{
	const char *name = ap_route_at((size_t)set->executor)->name;

	if (ap_setting_given(set, AP_SET_executor) || *chip->hccl || has_mindspore_names(g))
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "executor",
		"%s is assumed to run the plan, though operators of %s are not named as MindSpore names "
		"them (Default/...); --executor says who does, such as megatron, torchtitan or generic",
		name, g->file);
}

/* Records the settings that decide the result, as they took effect. */
static void echo_settings(struct ap_ctx *ctx, const struct ap_settings *set, unsigned use,
	struct ap_inputs *in)
{
	struct ap_settings o = *set;
	struct ap_setting *list = AP_NEW_N(ctx->arena, struct ap_setting, AP_SET_COUNT);
	uint32_t n = 0;

	o.device_num = in->topo->ndev;
	if (strcmp(in->topo->form, "given") != 0) {
		o.devices_per_server = strcmp(in->topo->form, "hostfile") ? 0 : o.devices_per_server;
		o.devices_per_pod = 0;
	}
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
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);

		if (row->group <= AP_GROUP_SEARCH && row->uses & use)
			list[n++] = (struct ap_setting){row->key,
				ap_setting_json(ctx->arena, row, &o)};
	}
	in->request.nsetting = n;
	in->request.setting = list;
}

static struct ap_fusion fusion(struct ap_arena *arena, const struct ap_settings *o, int mode,
	const struct ap_ints *config)
{
	struct ap_fusion f = {.mode = AP_FUSION_SIZE, .bytes = AP_FUSION_BYTES};

	if (!o->comm_fusion_openstate)
		return (struct ap_fusion){.mode = AP_FUSION_OFF};
	if (mode == AP_FUSE_SIZE)
		f.bytes = config->v[0] << 20;
	if (mode == AP_FUSE_INDEX)
		f = (struct ap_fusion){.mode = AP_FUSION_INDEX, .nindex = (uint32_t)config->n,
			.index = ap_arena_memdup(arena, config->v, config->n * sizeof *config->v)};
	return f;
}

/* Copies settings to fields of a step. */
static void assign(struct ap_arena *arena, const struct ap_settings *o, struct ap_step *step)
{
	const struct ap_ints *parts = &o->all_reduce_fusion_config;

	step->micro_batches = o->micro_batches;
	step->training = o->run_phase == AP_RUN_TRAINING;
	step->executor = ap_route_at((size_t)o->executor)->executor;
	step->dealing = ap_route_at((size_t)o->executor)->dealing;
	step->recompute_whole = ap_route_at((size_t)o->executor)->recompute_whole;
	step->full_batch = o->full_batch;
	step->optimizer_sharding = o->enable_parallel_optimizer;
	step->optimizer_level = ap_setting_level(o->optimizer_level);
	if (!step->optimizer_level)
		step->optimizer_level = 1; /* of what is not dealt */
	step->shard_size = o->optimizer_weight_shard_size;
	step->shard_threshold_bytes = o->parallel_optimizer_threshold << 10;
	step->layerwise = o->parallel_mode == AP_MODE_HYBRID_PARALLEL;
	step->gradient_fp32_sync = o->gradient_fp32_sync;
	step->force_fp32 = o->force_fp32_communication;
	step->exchange_behind = !o->overlap_grad_reduce;
	step->product_overlap = o->tp_comm_overlap && step->executor == AP_EXECUTOR_GENERIC;
	step->float8 = o->fp8_format >= 0 ? ap_float8_recipe_at((size_t)o->fp8_recipe) : NULL;
	step->float8_hybrid = o->fp8_format == AP_FP8_HYBRID;
	step->float8_params = step->float8 && o->fp8_param_gather;
	step->experts_relayed = o->moe_token_dispatcher_type == AP_DISPATCH_DEEPEP;
	step->expert_imbalance = fmax(0, o->expert_imbalance);
	step->gradients_mean = o->gradients_mean;
	step->alltoall = o->enable_alltoall;
	step->recompute_keeps_comm = !o->mp_comm_recompute;
	step->recompute_regathers = o->parallel_optimizer_comm_recompute;
	step->recompute_slices = o->recompute_slice_activation;
	step->fully_use = o->fully_use_devices;
	step->slice_align = o->tensor_slice_align_enable ? o->tensor_slice_align_size : 0;
	step->follow = o->elementwise_op_strategy_follow;
	step->saved_whole = o->optimizer_weight_shard_aggregated_save;
	step->allreduce = parts->n
		? fusion(arena, o, AP_FUSE_INDEX, parts)
		: fusion(arena, o, o->comm_fusion_allreduce_mode, &o->comm_fusion_allreduce_config);
	step->allgather = fusion(arena, o, o->comm_fusion_allgather_mode,
		&o->comm_fusion_allgather_config);
	step->reducescatter = fusion(arena, o, o->comm_fusion_reducescatter_mode,
		&o->comm_fusion_reducescatter_config);
}

/* Deals whole parameters to the devices, as data_parallel does. */
static enum ap_status deal_whole(struct ap_ctx *ctx, const struct ap_settings *o, const struct ap_graph *g,
	int64_t ndev, struct ap_step *step)
{
	const char *why = ap_dealt_refuses(ctx, g, ndev, step->optimizer);

	if (why)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s and %s contradict each other: %s",
			ap_setting_said(ctx, o, AP_SET_parallel_mode),
			ap_setting_said(ctx, o, AP_SET_enable_parallel_optimizer), why);
	step->optimizer_sharding = false;
	step->deal_whole = ndev;
	return AP_OK;
}

/* Sets what depends on the graph and on the devices of all stages: how inputs arrive, and how
 * data_parallel deals parameters. */
static enum ap_status fit_step(struct ap_ctx *ctx, const struct ap_settings *o, const struct ap_graph *g,
	int64_t ndev, struct ap_step *step)
{
	if (*o->dataset_strategy == '[' || *o->dataset_strategy == '(')
		AP_TRY(ap_arrival_parse_text(ctx, o->name[AP_SET_dataset_strategy]
			? o->name[AP_SET_dataset_strategy] : "--dataset-strategy", o->dataset_strategy, g,
			ndev / o->pipeline_stages, step));
	if (step->training && step->optimizer_sharding && o->parallel_mode == AP_MODE_DATA_PARALLEL &&
		ndev > 1)
		AP_TRY(deal_whole(ctx, o, g, ndev, step));
	return AP_OK;
}

static enum ap_status unknown_optimizer(struct ap_ctx *ctx, const struct ap_json *doc, const char *name)
{
	return ap_json_report(ctx, doc, ap_jv_get(ap_json_root(doc), "optimizer"), AP_ERROR,
		AP_MEANING, NULL, "optimizer-known", "unknown optimizer \"%s\"; expected %s",
		ap_diag_name(ctx->diag, name),
		ap_setting_expects(ctx->arena, ap_setting_at(AP_SET_optimizer)));
}

static enum ap_status load_optimizer(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_json *doc, const struct ap_graph *g, const struct ap_optimizer **out)
{
	static const char usual[] = "adam_weight_decay";

	if (set->optimizer >= 0) {
		*out = ap_optimizer_at((size_t)set->optimizer);
		return AP_OK;
	}
	if (*g->optimizer) {
		*out = ap_optimizer_find(g->optimizer);
		return *out ? AP_OK : unknown_optimizer(ctx, doc, g->optimizer);
	}
	*out = ap_optimizer_find(usual);
	return ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, NULL,
		"neither --optimizer nor the graph names an optimizer; %s is assumed", usual);
}

static enum ap_status check_micro_batches(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_graph *g)
{
	int64_t parts = set->micro_batches;

	if (parts == 1)
		return AP_OK;
	if (!g->batch)
		return FAULT(ctx, "--micro-batches %" PRId64 ": no input of %s has a batch_dim", parts,
			g->file);
	if (g->batch % parts)
		return FAULT(ctx, "--micro-batches %" PRId64 " does not divide the batch of %" PRId64,
			parts, g->batch);
	return AP_OK;
}

enum ap_status ap_input_step(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_graph *g, struct ap_step *step)
{
	*step = (struct ap_step)AP_STEP_DEFAULT;
	assign(ctx->arena, set, step);
	AP_TRY(ap_recompute_parse(ctx, ap_setting_said(ctx, set, AP_SET_recompute), set->recompute, step));
	if (step->training)
		AP_TRY(load_optimizer(ctx, set, src->graph, g, &step->optimizer));
	AP_TRY(check_micro_batches(ctx, set, g));
	step->software = src->software;
	if (!step->software)
		AP_TRY(ap_input_software(ctx, set, &step->software));
	if (set->master_dtype >= 0) {
		struct ap_software *own = AP_NEW(ctx->arena, struct ap_software);

		*own = *step->software;
		own->master_bytes = set->master_dtype == 0 ? 0 : (int)sizeof(float);
		step->software = own;
	}
	return AP_OK;
}

static int64_t largest(const struct ap_ints *list)
{
	int64_t most = 0;

	for (size_t i = 0; i < list->n; i++)
		most = list->v[i] > most ? list->v[i] : most;
	return most;
}

/* Fills *hybrid from stages and segments of o and the machine; sets o->micro_batches to those that
 * mbs implies. */
static enum ap_status fill_hybrid(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_inputs *in, struct ap_settings *o, struct ap_hybrid *hybrid)
{
	const struct ap_route *route = ap_route_at((size_t)o->executor);
	int64_t micro_batches = o->micro_batches;

	if (!o->hybrid)
		return AP_OK;
	AP_TRY(ap_hybrid_parse(ctx, o->hybrid, hybrid));
	hybrid->cp_usual = hybrid->cp_algo == AP_CP_USUAL;
	if (hybrid->cp_usual)
		hybrid->cp_algo = route->cp_algo;
	hybrid->cp_even = route->cp_even;
	hybrid->pp = o->pipeline_stages;
	hybrid->vpp = o->pipeline_segments;
	if (o->stage_devices.n > 0 && (hybrid->dp || hybrid->mbs))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s= is another number in "
			"stages of unequal numbers of devices; expected the other degrees, of which dp "
			"follows in each stage%s", ap_setting_said(ctx, set, AP_SET_hybrid),
			hybrid->dp ? "dp" : "mbs", hybrid->dp ? "" : ", and --micro-batches");
	for (size_t i = 0; i < o->stage_devices.n; i++) {
		int64_t tp = hybrid->tp ? hybrid->tp : 1, cp = hybrid->cp ? hybrid->cp : 1;

		if (o->stage_devices.v[i] % tp || o->stage_devices.v[i] / tp % cp)
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: tp=%" PRId64
				" x cp=%" PRId64 " does not divide the %" PRId64 " devices of stage %zu",
				ap_setting_said(ctx, set, AP_SET_hybrid), tp, cp, o->stage_devices.v[i], i);
	}
	AP_TRY(ap_hybrid_fill(ctx, o->stage_devices.n > 0 ? largest(&o->stage_devices) * hybrid->pp
		: in->machine->ndev, hybrid));
	AP_TRY(ap_hybrid_step(ctx, hybrid, in->graph->batch, &o->micro_batches));
	if (o->micro_batches == micro_batches || !ap_setting_given(o, AP_SET_micro_batches))
		return AP_OK;
	return ap_settings_contradict(ctx, set, AP_SET_hybrid, AP_SET_micro_batches,
		ap_arena_printf(ctx->arena, "dp=%" PRId64 " x mbs=%" PRId64 " of a batch of %" PRId64
			" are %" PRId64 " micro-batches", hybrid->dp, hybrid->mbs, in->graph->batch,
			o->micro_batches));
}

/* Does the graph file assign stages, for a run without them? */
static bool says_stages(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].stage > 0 || g->node[i].segment > 0)
			return true;
	return false;
}

/* Cuts the graph between layers as well, if they divide. */
static void cut_evenly(struct ap_ctx *ctx, const struct ap_stages_request *by_cost, struct ap_inputs *in)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_stages_request rq = *by_cost;
	struct ap_pipe_cut *how = AP_NEW(ctx->arena, struct ap_pipe_cut);
	struct ap_pipe *pipe = ap_arena_memdup(ctx->arena, in->step.pipe, sizeof *pipe);
	const struct ap_spot *spot;

	rq.layers = (struct ap_layer_cut){.kind = AP_LAYERS_EVEN};
	if (ap_stages_make(&quiet, &rq, &spot, how) != AP_OK || how->by != AP_CUT_BY_LAYERS)
		return;
	ap_graph_staged(ctx, in->graph, spot, &in->other.graph);
	pipe->cut = how;
	in->other_step = in->step;
	in->other_step.pipe = pipe;
	in->other.step = &in->other_step;
}

void ap_inputs_recut(struct ap_inputs *in)
{
	in->graph = in->request.graph = in->other.graph;
	in->step = in->other_step;
	in->request.other = NULL;
	in->request.cutting = NULL;
}

bool ap_inputs_place(struct ap_ctx *ctx, const struct ap_spot *spot, enum ap_pipe_cut_by by,
	struct ap_inputs *in)
{
	const struct ap_graph *g = in->cutting.graph;
	struct ap_pipe_cut *how = AP_NEW(ctx->arena, struct ap_pipe_cut);
	struct ap_pipe *pipe = ap_arena_memdup(ctx->arena, in->step.pipe, sizeof *pipe);

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			ap_id from = g->tensor[g->node[i].in[k]].producer;

			if (from != AP_NONE && spot[from].part > spot[i].part)
				return false;
		}
	how->by = by;
	pipe->cut = how;
	ap_graph_staged(ctx, g, spot, &in->graph);
	in->request.graph = in->graph;
	in->step.pipe = pipe;
	in->request.other = NULL;
	in->request.cutting = NULL;
	return true;
}

static enum ap_status cut(struct ap_ctx *ctx, const struct ap_settings *o, const struct ap_sources *src,
	const struct ap_scheduler *scheduler, struct ap_inputs *in, struct ap_pipe_cut *how)
{
	const struct ap_stages_request rq = {
		.graph = in->graph,
		.machine = in->machine,
		.step = &in->step,
		.scheduler = scheduler,
		.nstage = (int32_t)o->pipeline_stages,
		.nsegment = (int32_t)o->pipeline_segments,
		.doc = src->stage_config,
		.config = src->stage_config ? ap_json_root(src->stage_config) : NULL,
		.layers = in->hybrid.layers,
	};
	const struct ap_spot *spot;

	AP_TRY(ap_stages_make(ctx, &rq, &spot, how));
	if (how->by == AP_CUT_BY_COST && !o->hybrid && !in->machine->part &&
		o->pipeline_stages * o->pipeline_segments > 1) {
		in->cutting = rq;
		cut_evenly(ctx, &rq, in);
	}
	if (o->pipeline_stages * o->pipeline_segments > 1 || says_stages(in->graph))
		ap_graph_staged(ctx, in->graph, spot, &in->graph);
	if (src->sketches && !in->graph->layers)
		in->graph = ap_family_note(ctx, in->graph);
	return AP_OK;
}

/* The setting that determines the scheduler. */
static enum ap_setting_id asked_by(const struct ap_settings *o)
{
	return ap_setting_given(o, AP_SET_pipeline_scheduler) ? AP_SET_pipeline_scheduler
		: o->pipeline_interleave ? AP_SET_pipeline_interleave
		: o->pipeline_segments > 1 ? AP_SET_pipeline_segments : AP_SET_pipeline_stages;
}

/* The tokens that an operator sends to experts; NULL: none does. */
static const struct ap_tensor *moved_tokens(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (!strcmp(g->node[i].type, "MoeDispatch"))
			return &g->tensor[g->node[i].in[0]];
	return NULL;
}

/* *scheduler becomes the one that runs a forward and a backward pass as one, if asked for. */
static enum ap_status run_passes_beside(struct ap_ctx *ctx, const struct ap_settings *o,
	const struct ap_inputs *in, const struct ap_scheduler **scheduler)
{
	const struct ap_tensor *tokens = moved_tokens(in->graph);

	if (!o->overlap_moe_expert_parallel_comm || !in->step.training ||
		in->step.executor != AP_EXECUTOR_GENERIC)
		return AP_OK;
	if (!ap_scheduler_beside(*scheduler) || (o->pipeline_stages > 1 && o->pipeline_segments == 1))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: in a pipeline interleaved stages alone run a forward and a backward pass as one",
			ap_setting_said(ctx, o, AP_SET_overlap_moe_expert_parallel_comm));
	if (tokens && ap_dtype_is_narrow(tokens->shape.dtype)) {
		*scheduler = ap_scheduler_beside(*scheduler);
		return AP_OK;
	}
	if (!tokens)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: the network has no experts to whom tokens are sent (MoeDispatch)",
			ap_setting_said(ctx, o, AP_SET_overlap_moe_expert_parallel_comm));
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"%s: the network sends its experts %s; Megatron runs two passes as one in 16-bit types alone",
		ap_setting_said(ctx, o, AP_SET_overlap_moe_expert_parallel_comm),
		ap_dtype_name(tokens->shape.dtype));
}

/* Divides the machine into stages of these, unequal, numbers of devices. */
static void divide(struct ap_ctx *ctx, const struct ap_ints *devices, struct ap_inputs *in)
{
	struct ap_graph *g = ap_arena_memdup(ctx->arena, in->graph, sizeof *g);
	struct ap_stage_devices *of = AP_NEW_N(ctx->arena, struct ap_stage_devices, devices->n);
	uint32_t *n = AP_NEW_N(ctx->scratch, uint32_t, devices->n);

	for (size_t i = 0; i < devices->n; i++)
		n[i] = (uint32_t)devices->v[i];
	ap_machine_divided(ctx, in->machine, (uint32_t)devices->n, n, &in->machine);
	for (size_t i = 0; i < devices->n; i++)
		of[i] = (struct ap_stage_devices){devices->v[i], (int32_t)in->machine->part[i].like};
	g->devices = of;
	in->graph = g;
}

/* What any cut of an operator divides, whichever stage it will be in. */
static int64_t common_devices(const struct ap_inputs *in)
{
	int64_t n = in->machine->ndev;

	for (uint32_t s = 0; in->machine->part && s < in->machine->nstage; s++) {
		int64_t own = in->machine->part[s].machine->ndev;

		n = n / ap_gcd(n, own) * own;
	}
	return n;
}

/* Deals the machine to the stages and enters them in the graph and in the step. */
static enum ap_status make_pipeline(struct ap_ctx *ctx, const struct ap_settings *o,
	const struct ap_sources *src, struct ap_inputs *in)
{
	int32_t nstage = (int32_t)o->pipeline_stages, nsegment = (int32_t)o->pipeline_segments;
	const struct ap_scheduler *scheduler = ap_scheduler_at((size_t)o->pipeline_scheduler);
	struct ap_pipe *pipe = AP_NEW(ctx->arena, struct ap_pipe);
	struct ap_pipe_cut *how = AP_NEW(ctx->arena, struct ap_pipe_cut);
	struct ap_constraints rules;
	const char *why;

	AP_TRY(run_passes_beside(ctx, o, in, &scheduler));
	why = scheduler->refuses(nstage, nsegment, o->micro_batches);
	if (why)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s %s",
			ap_setting_said(ctx, o, asked_by(o)), scheduler->name, why);
	if (o->stage_devices.n > 0)
		divide(ctx, &o->stage_devices, in);
	AP_TRY(ap_stages_check(ctx, in->graph, in->topo->ndev, nstage, nsegment));
	if (nstage > 1 && o->stage_devices.n == 0)
		ap_machine_staged(ctx, in->machine, (uint32_t)nstage, &in->machine);
	in->graph = ap_graph_imposed(ctx, in->graph, in->machine->ndev, &in->step);
	AP_TRY(ap_rules_parse(ctx, o, &rules));
	AP_TRY(ap_constraints_apply(ctx, &rules, in->graph, common_devices(in), &in->step, &in->graph));
	AP_TRY(ap_arrival_parse_text(ctx, "--dataset-strategy", o->dataset_strategy, in->graph,
		in->machine->ndev, &in->step));
	ap_schedule_pipe(ctx, scheduler, nstage, nsegment, o->micro_batches, pipe);
	in->step.pipe = pipe;
	pipe->cut = how;
	return cut(ctx, o, src, scheduler, in, how);
}

/* Datasets of MindFormers are cut by data parallelism, where nothing else is said, not among all devices. */
static void cut_inputs(struct ap_ctx *ctx, const struct ap_inputs *in, struct ap_settings *o)
{
	const struct ap_route *route = ap_route_at((size_t)o->executor);
	const struct ap_graph *g = in->graph;
	struct ap_str rows;

	if (!in->hybrid.dp || !route->degrees || route->executor != AP_EXECUTOR_MINDSPORE ||
		strcmp(o->dataset_strategy, "data_parallel") != 0)
		return;
	ap_str_init(&rows, ctx->arena);
	for (uint32_t i = 0; i < g->ninput; i++) {
		const struct ap_tensor *t = &g->tensor[g->input[i]];

		ap_str_add(&rows, i ? "],[" : "[[");
		for (int d = 0; d < t->shape.rank; d++)
			ap_str_addf(&rows, "%s%" PRId64, d ? "," : "", t->batch >> d & 1 ? in->hybrid.dp : 1);
	}
	ap_str_add(&rows, "]]");
	if (g->ninput)
		o->dataset_strategy = rows.s;
}

enum ap_status ap_inputs_make(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, unsigned use, struct ap_inputs *out)
{
	struct ap_settings o = *set; /* including what --hybrid sets */
	bool limited = ap_setting_given(&o, AP_SET_work_limit), piped;

	*out = (struct ap_inputs){0};
	AP_TRY(ap_rules_merge(ctx, &o));
	ap_ctx_phase(ctx, "checking the graph");
	if (src->ready)
		out->loaded = src->ready;
	else
		AP_TRY(load_graph(ctx, set, src, &out->loaded));
	out->graph = out->loaded;
	ap_ctx_phase(ctx, "making the machine");
	AP_TRY(load_machine(ctx, set, src, out));
	if (src->apart && src->stage)
		out->machine = src->stage;
	else if (src->apart)
		ap_machine_stage(ctx, out->machine, src->apart, &out->machine);
	if (o.stage_devices.n > 0 && ap_ints_equal(&o.stage_devices)) /* then it says nothing */
		ap_setting_unset(&o, AP_SET_stage_devices);
	AP_TRY(check_float8(ctx, set, out->chip));
	AP_TRY(ask_executor(ctx, set, out->graph, out->chip));
	AP_TRY(fill_hybrid(ctx, set, out, &o, &out->hybrid));
	cut_inputs(ctx, out, &o);
	AP_TRY(ap_input_step(ctx, &o, src, out->graph, &out->step));
	AP_TRY(fit_step(ctx, &o, out->graph, out->topo->ndev, &out->step));
	piped = o.pipeline_stages > 1 || src->apart > 1;
	out->step.gathers_each = ap_route_at((size_t)o.executor)->fsdp2 && !piped;
	out->step.sums_whole = ap_route_at((size_t)o.executor)->fsdp2 && piped;
	if (!src->sketches)
		AP_TRY(ap_recompute_notes(ctx, out->graph, &out->step));
	AP_TRY(make_pipeline(ctx, &o, src, out));
	if (!src->sketches || out->step.nrecompute_first)
		AP_TRY(ap_recompute_check(ctx, out->graph, &out->step,
			ap_setting_said(ctx, set, AP_SET_recompute)));
	if (!src->sketches)
		out->step.quantum_s = ap_cost_quantum_s(ctx, out->graph, out->machine, &out->step);
	out->other_step.quantum_s = out->step.quantum_s;
	out->request = (struct ap_request){
		.other = out->other.graph ? &out->other : NULL,
		.cutting = out->cutting.graph ? &out->cutting : NULL,
		.graph = out->graph,
		.machine = out->machine,
		.step = &out->step,
		.route = ap_route_at((size_t)o.executor),
		.capacity_bytes = o.memory ? o.memory : out->chip->usable_bytes,
		.search_mode = ap_setting_text(ctx->arena, ap_setting_at(AP_SET_search_mode), &o),
		.budget = {
			.work = !limited ? AP_DEFAULT_WORK : o.work_limit ? (uint64_t)o.work_limit : 1,
			.table_bytes = (size_t)o.planner_memory / TABLES,
			.gap = o.objective_gap / 100,
			.no_fold = !o.fold,
		},
		.hybrids = !ap_route_at((size_t)o.executor)->complete,
		.deals = !ap_route_at((size_t)o.executor)->complete && o.out_strategy,
		.baselines_only = limited && o.work_limit == 0,
		.step_gap = (o.gap < 0 ? AP_DEFAULT_STEP_GAP : o.gap) / 100,
		.prune = o.prune,
		.certify = o.certify,
	};
	if (src->server)
		o.topology = src->server_path;
	echo_settings(ctx, &o, use, out);
	return ap_diag_status(ctx->diag);
}

bool ap_settings_search(const struct ap_settings *o)
{
	return !o->hybrid && o->parallel_mode == AP_MODE_AUTO_PARALLEL;
}

const char *ap_settings_giver(struct ap_ctx *ctx, const struct ap_settings *o)
{
	return ap_setting_said(ctx, o, o->hybrid ? AP_SET_hybrid : AP_SET_parallel_mode);
}

static enum ap_status refuse(struct ap_ctx *ctx, const struct ap_settings *set, const char *why)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "hybrid", "--hybrid %s: %s",
		set->hybrid, why);
}

/* Counts from --hybrid. */
static enum ap_status by_hybrid(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_inputs *in)
{
	const char *why = "";
	const struct ap_graph *dealt = ap_hybrid_deal(ctx, in->graph, in->machine->ndev, &in->step,
		&in->hybrid, &why);

	if (!dealt)
		return refuse(ctx, set, why);
	in->graph = in->request.graph = dealt;
	in->counts = ap_hybrid_counts(ctx, dealt, in->machine->ndev, &in->step, &in->hybrid, &why);
	return in->counts ? AP_OK : refuse(ctx, set, why);
}

enum ap_status ap_inputs_deal(struct ap_ctx *ctx, const char *degrees, struct ap_inputs *in)
{
	struct ap_hybrid h;
	const char *why = "";
	const struct ap_graph *dealt;

	AP_TRY(ap_hybrid_parse(ctx, degrees, &h));
	AP_TRY(ap_hybrid_fill(ctx, in->machine->ndev, &h));
	h.pp = in->step.pipe->nstage;
	h.vpp = in->step.pipe->nsegment;
	h.micro_batches = in->step.micro_batches;
	if (ap_hybrid_expert_stride(&h) > 0)
		dealt = ap_hybrid_deal(ctx, in->graph, in->machine->ndev, &in->step, &h, &why);
	else
		dealt = NULL;
	if (!dealt)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "hybrid", "%s: %s", degrees, why);
	in->graph = in->request.graph = dealt;
	return AP_OK;
}

/* Where the cut is ours, takes the one that the checkpoint was made of: by cost, between layers, or what its
 * operators' stages say. */
static enum ap_status cut_as_told(struct ap_ctx *ctx, const struct ap_ckpt *ckpt, struct ap_inputs *in)
{
	struct ap_stages_request rq = in->cutting;
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_where where = {.file = ckpt->file};
	const struct ap_spot *spot;
	const uint32_t *stage;
	uint32_t n = ap_ckpt_stages(ctx, ckpt, &stage);

	if (!rq.graph || n != (uint32_t)rq.nstage || ap_ckpt_has_stages(ctx, ckpt, in->graph))
		return AP_OK;
	if (in->other.graph && ap_ckpt_has_stages(ctx, ckpt, in->other.graph)) {
		ap_inputs_recut(in);
		return AP_OK;
	}
	rq.known = ap_ckpt_stages_said(ctx, ckpt, rq.graph);
	if (ap_stages_make(&quiet, &rq, &spot, NULL) != AP_OK ||
		!ap_inputs_place(ctx, spot, AP_CUT_BY_STRATEGY, in) ||
		!ap_ckpt_has_stages(ctx, ckpt, in->graph))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &where, "ckpt-stage",
			"has operators in stages in which no cut of this graph into %" PRId32 " stages has "
			"them; expected --stage-config FILE as well, the file that --stage-config-out FILE "
			"wrote when the plan was made", rq.nstage);
	return ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &where, "stages",
		"says the stages of operators with a parameter; the others stand where the least is "
		"sent between stages, unless --stage-config says theirs");
}

/* Counts from the checkpoint. whole: it must name every operator with a parameter, and no other. */
static enum ap_status by_checkpoint(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_inputs *in, bool whole, const int32_t *const **counts)
{
	const struct ap_input *s = &src->strategy;
	struct ap_ckpt ckpt;

	ap_ctx_phase(ctx, "reading the strategy");
	AP_TRY(s->text ? ap_ckpt_of_input(ctx, s, &ckpt) : ap_ckpt_load(ctx, set, s->path, &ckpt));
	AP_TRY(cut_as_told(ctx, &ckpt, in));
	return (whole ? ap_ckpt_counts : ap_ckpt_counts_some)(ctx, &ckpt, in->graph, in->machine->ndev,
		&in->step, counts);
}

/* All counts are 1. */
static void by_none(struct ap_ctx *ctx, struct ap_inputs *in)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, in->graph->nnode);
	int32_t *ones = AP_NEW_N(ctx->arena, int32_t, AP_MAX_FACTOR);

	for (int f = 0; f < AP_MAX_FACTOR; f++)
		ones[f] = 1;
	for (ap_id i = 0; i < in->graph->nnode; i++)
		counts[i] = ones;
	in->counts = counts;
}

/* Cuts the batch and nothing else. */
static enum ap_status by_batch(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_inputs *in)
{
	const char *why;

	in->counts = ap_baseline_data_parallel(ctx, in->graph, in->machine->ndev, &in->step, &why);
	return in->counts ? AP_OK : FAULT(ctx, "%s: %s", ap_settings_giver(ctx, set), why);
}

/* Completes the given counts by MindSpore's fixed rule. */
static enum ap_status by_rule(struct ap_ctx *ctx, struct ap_inputs *in, const int32_t *const *given)
{
	const int32_t *const *fixed;

	AP_TRY(ap_pins_make(ctx, in->graph, in->machine->ndev, &in->step, given, &fixed));
	return ap_semi_auto_complete(ctx, in->graph, in->machine, &in->step, fixed, &in->counts);
}

void ap_inputs_open_sums(struct ap_ctx *ctx, struct ap_inputs *in)
{
	if (!in->request.deals)
		return;
	in->graph = in->request.graph = ap_graph_deal_if_asked(ctx, in->graph);
	if (in->other.graph)
		in->other.graph = ap_graph_deal_if_asked(ctx, in->other.graph);
	if (in->cutting.graph)
		in->cutting.graph = ap_graph_deal_if_asked(ctx, in->cutting.graph);
}

enum ap_status ap_inputs_give(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, unsigned use, struct ap_inputs *in)
{
	bool base;

	if (use == AP_FOR_search && set->keep && !ap_settings_search(set))
		return FAULT(ctx, "--keep: %s leaves nothing to search", ap_settings_giver(ctx, set));
	if (set->hybrid)
		return by_hybrid(ctx, set, in);
	if (use == AP_FOR_evaluate) {
		AP_TRY(by_checkpoint(ctx, set, src, in, true, &in->counts));
		return set->parallel_mode == AP_MODE_AUTO_PARALLEL ? AP_OK : by_rule(ctx, in, in->counts);
	}
	base = src->strategy.path && !src->strategy.text && ap_keep_is_plan(ctx, set, src->strategy.path);
	if (src->strategy.path && !base)
		AP_TRY(by_checkpoint(ctx, set, src, in, false, &in->request.given));
	ap_inputs_open_sums(ctx, in);
	if (base)
		AP_TRY(ap_keep_base(ctx, set, src->strategy.path, in));
	AP_TRY(ap_keep_give(ctx, set, in));
	switch (set->parallel_mode) {
	case AP_MODE_STAND_ALONE:
		by_none(ctx, in);
		return AP_OK;
	case AP_MODE_DATA_PARALLEL:
	case AP_MODE_HYBRID_PARALLEL:
		return by_batch(ctx, set, in);
	case AP_MODE_SEMI_AUTO_PARALLEL:
		return by_rule(ctx, in, in->request.given);
	default:
		return AP_OK;
	}
}

enum ap_status ap_inputs_plan(struct ap_ctx *ctx, const struct ap_inputs *in, struct ap_found *found,
	struct ap_plan *out, const struct ap_problem **problem)
{
	return in->counts ? ap_drive_evaluate(ctx, &in->request, in->counts, out)
		: found ? ap_drive_find(ctx, &in->request, found, out, problem)
		: ap_drive_search(ctx, &in->request, out, problem);
}
