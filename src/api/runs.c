/* SPDX-License-Identifier: Apache-2.0 */
#include "api/runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/against.h"
#include "api/config.h"
#include "api/refit.h"
#include "api/launch.h"
#include "api/model.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/bundle.h"
#include "hybrid/hybrid_parse.h"
#include "plan/make.h"

struct pair { /* a plan and its log while they are compared */
	struct ap_ctx *ctx;
	const struct ap_settings *asked;
	const char *plan; /* the file itself, where a bundle is named */
	const char *log;
	const struct ap_json *doc;
	struct ap_settings planned; /* that the plan echoes */
	struct ap_hybrid hybrid; /* degrees of the plan; 0 where they are not known */
	int64_t devices, batch, sequence; /* of the plan; sequence 0: not known */
	struct ap_run_held *run;
	AP_VEC(struct ap_compared_memory) memory;
};

/* ---- what the plan says ---- */

static const struct ap_jv *member(const struct pair *p, const char *section, const char *key)
{
	return ap_jv_get(ap_jv_get(ap_json_root(p->doc), section), key);
}

static int64_t whole(const struct pair *p, const struct ap_jv *v)
{
	int64_t n = 0;

	return v && ap_jv_type(v) == AP_JNUMBER && ap_jv_int(p->doc, v, &n) ? n : 0;
}

/* Tokens of a sample: the second dimension of inputs of integers, of which there is a row for each sample. */
static int64_t sequence_of(const struct pair *p)
{
	const struct ap_jv *shape = ap_jv_first(member(p, "graph", "input_shapes"));
	const struct ap_jv *type = ap_jv_first(member(p, "graph", "input_dtypes"));

	for (; shape && type; shape = ap_jv_next(shape), type = ap_jv_next(type)) {
		const struct ap_jv *rows = ap_jv_first(shape);

		if (!strncmp(ap_jv_str(type), "int", 3) && ap_jv_count(shape) == 2 &&
			whole(p, rows) == p->batch)
			return whole(p, ap_jv_next(rows));
	}
	return 0;
}

/* The degrees of a plan: as --hybrid gave them, or its search came to them, else those that its pipeline
 * says. */
static void read_degrees(struct pair *p)
{
	struct ap_ctx quiet = ap_diag_apart(p->ctx);
	const struct ap_jv *searched = member(p, "search", "hybrid");
	const char *text = p->planned.hybrid ? p->planned.hybrid : searched ? ap_jv_str(searched) : NULL;
	struct ap_hybrid *h = &p->hybrid;
	int64_t samples;

	p->devices = whole(p, member(p, "machine", "devices"));
	p->batch = whole(p, member(p, "graph", "batch"));
	p->sequence = sequence_of(p);
	h->pp = p->planned.pipeline_stages;
	h->vpp = p->planned.pipeline_segments ? p->planned.pipeline_segments : 1;
	h->micro_batches = p->planned.micro_batches;
	if (!text || ap_hybrid_parse(&quiet, text, h) != AP_OK)
		return;
	h->pp = p->planned.pipeline_stages;
	h->vpp = p->planned.pipeline_segments ? p->planned.pipeline_segments : 1;
	if (ap_hybrid_fill(&quiet, p->devices, h) != AP_OK) {
		*h = (struct ap_hybrid){.pp = h->pp, .vpp = h->vpp};
		return;
	}
	h->micro_batches = p->planned.micro_batches;
	samples = h->dp * h->micro_batches;
	h->mbs = samples && p->batch % samples == 0 ? p->batch / samples : 0;
}

static enum ap_status read_plan(struct pair *p, const char *path)
{
	struct ap_known file;

	p->plan = ap_file_is_folder(path) ? ap_path_join(p->ctx->arena, path, AP_BUNDLE_PLAN) : path;
	AP_TRY(ap_kind_read(p->ctx, p->asked, p->plan, &file));
	if (file.kind != AP_KIND_PLAN)
		return ap_diag_add(p->ctx->diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = file.in.path}, NULL,
			"is %s; expected a plan, as --plan-out writes it, or a bundle",
			ap_kind_text(file.kind));
	AP_TRY(ap_plan_check_file(p->ctx, file.doc));
	p->doc = file.doc;
	ap_settings_init(&p->planned);
	AP_TRY(ap_config_echo(p->ctx, p->doc, ap_jv_get(ap_json_root(p->doc), "settings"), AP_FOR_evaluate,
		&p->planned));
	read_degrees(p);
	p->run->found.plan = path;
	p->run->found.planned_s = ap_jv_double(member(p, "prediction", "step_time_s"));
	return AP_OK;
}

/* ---- the inputs of the plan, found again ---- */

/* Is there a file of this path with this hash? */
static bool is_that_file(struct pair *p, const char *path, const char *sha256)
{
	struct ap_ctx quiet = ap_diag_apart(p->ctx);
	struct ap_input in;

	return ap_input_read(&quiet, p->asked, path, &in) == AP_OK &&
		!strcmp(ap_input_sha256(&quiet, &in), sha256);
}

/* The path of an input that the plan names: here, beside the plan, beside its folder; or a bundled model, by
 * its name. NULL: there is none with its hash. */
static const char *find_input(struct pair *p, const char *role)
{
	struct ap_arena *arena = p->ctx->arena;
	struct ap_ctx quiet = ap_diag_apart(p->ctx);
	const struct ap_jv *input = member(p, "inputs", role);
	const char *folder = ap_path_folder(arena, p->plan), *name, *sha256, *model, *path;

	if (!input || ap_jv_type(input) != AP_JOBJECT)
		return NULL;
	name = ap_jv_str(ap_jv_get(input, "name"));
	sha256 = ap_jv_str(ap_jv_get(input, "sha256"));
	if (!*name || strchr(name, '/'))
		return NULL;
	path = ap_path_join(arena, folder, name);
	if (is_that_file(p, name, sha256))
		return name;
	if (is_that_file(p, path, sha256))
		return path;
	path = ap_path_join(arena, ap_path_join(arena, folder, ".."), name);
	if (is_that_file(p, path, sha256))
		return path;
	model = !ap_file_suffix(name, ".json") ? name
		: ap_arena_strndup(arena, name, strlen(name) - strlen(".json"));
	return ap_model_file(&quiet, model, &path) == AP_OK && is_that_file(p, path, sha256) ? model : NULL;
}

/* Makes what the plan can be evaluated with, where its graph is at hand. */
static enum ap_status find_inputs(struct pair *p)
{
	struct ap_run_held *run = p->run;
	const struct ap_jv *model = member(p, "inputs", "model");
	const char *role = model && ap_jv_type(model) == AP_JOBJECT ? "model" : "graph";
	const char *graph = p->asked->graph ? p->asked->graph : find_input(p, role);
	const char *table = find_input(p, "rank_table");
	struct ap_settings asked = *p->asked;
	struct ap_named named = {.graph = {.path = graph}, .table = {.path = table}};

	if (!graph)
		return ap_diag_add(p->ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = p->plan},
			"graph-found", "%s, of which it was made, is neither here nor beside it, so it "
			"cannot be evaluated anew: nothing is explained; --graph FILE names it",
			ap_diag_name(p->ctx->diag,
			ap_jv_str(ap_jv_get(member(p, "inputs", role), "name"))));
	if (!strcmp(role, "model") && !ap_path_is_json(graph))
		asked.config = graph; /* the launch that says the network */
	asked.graph = NULL;
	AP_TRY(ap_against_inputs(p->ctx, &asked, p->plan, &named, &run->set, &run->src, &run->in));
	for (ap_id i = 0; i < run->in.graph->nnode; i++)
		if (!run->in.counts[i])
			return ap_diag_add(p->ctx->diag, AP_WARNING, AP_OK,
				&(struct ap_where){.file = p->plan},
				"plan-operators", "its cuts are not of this graph: nothing is explained");
	run->graph = run->in.graph;
	run->path = graph;
	run->software = *run->in.step.software;
	run->chip = *run->in.chip;
	return AP_OK;
}

static int64_t counted(const struct ap_memory *m, enum ap_run_bytes kind)
{
	return kind == AP_RUN_USED ? m->total : m->total - m->context - m->buffers;
}

void ap_run_predict(struct ap_ctx *ctx, const struct ap_run_held *run, struct ap_run_predicted *out)
{
	struct ap_ctx own = ap_diag_apart(ctx);
	struct ap_step step = run->in.step;
	const struct ap_machine *machine;
	struct ap_plan_maker *maker;
	struct ap_plan plan;
	enum ap_status st;

	own.arena = ap_arena_create_like(ctx->arena);
	own.diag = ap_diag_create(own.arena, false);
	step.software = &run->software;
	st = ap_machine_make(&own, run->in.topo, ap_chip_driven(own.arena, &run->chip, &run->software),
		&machine);
	(void)st; /* it could be made of the chip as it was */
	if (run->in.machine->nstage > 1)
		ap_machine_split_as(&own, machine, run->in.machine, &machine);
	maker = ap_plan_maker_create(&own, run->in.graph, machine, &step, run->in.request.capacity_bytes);
	ap_plan_sketch_in(maker, own.arena, run->in.counts, &plan);
	*out = (struct ap_run_predicted){.step_s = plan.prediction.step_time_s};
	for (uint32_t s = 0; s < plan.nstage; s++)
		for (int k = 0; k < AP_RUN_BYTES; k++) {
			int64_t bytes = counted(&plan.stage[s].memory, (enum ap_run_bytes)k);

			out->bytes[k] = bytes > out->bytes[k] ? bytes : out->bytes[k];
		}
	ap_arena_destroy(own.arena);
}

/* ---- settings ---- */

/* The plan's number under a key that logs state; 0: not known. */
static int64_t planned_number(const struct pair *p, const char *key)
{
	const struct ap_hybrid *h = &p->hybrid;
	const struct { const char *key; int64_t value; } numbers[] = {{"dp", h->dp}, {"tp", h->tp},
		{"pp", h->pp ? h->pp : 1}, {"cp", h->cp}, {"ep", h->ep}, {"etp", h->etp}, {"vpp", h->vpp},
		{"mbs", h->mbs}, {"micro_batches", h->micro_batches}, {"batch", p->batch},
		{"sequence", p->sequence}, {"device_num", p->devices}};

	for (size_t i = 0; i < AP_COUNT(numbers); i++)
		if (!strcmp(numbers[i].key, key))
			return numbers[i].value;
	return 0;
}

/* line: of the log, where at is NULL. */
static enum ap_status tell_difference(struct pair *p, const char *key, const char *said, const char *planned,
	int64_t line, const struct ap_json *doc, const struct ap_jv *at)
{
	const char *shown = ap_diag_name(p->ctx->diag, said);

	p->run->found.nstated++;
	if (!strcmp(said, planned))
		return AP_OK;
	p->run->found.ndiffer++;
	if (at)
		return ap_json_report(p->ctx, doc, at, AP_WARNING, AP_OK, NULL, "log-settings",
			"the run had %s %s, the plan has %s", key, shown,
			ap_diag_name(p->ctx->diag, planned));
	return ap_diag_add(p->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = p->log, .line = line},
		"log-settings", "the run had %s %s, the plan has %s", key, shown,
		ap_diag_name(p->ctx->diag, planned));
}

/* The plan's value under a key that logs state, as they write it; NULL: not known, or without effect. */
static const char *planned_text(const struct pair *p, const char *key)
{
	int64_t n = planned_number(p, key);

	if (!strcmp(key, "sp"))
		return p->hybrid.tp > 1 ? p->hybrid.sp ? "1" : "0" : NULL;
	if (!strcmp(key, "zero")) /* level 1 where none is given, as plans have it */
		n = !p->planned.enable_parallel_optimizer ? 0
			: p->planned.optimizer_level == AP_LEVEL_NONE ? 1
			: ap_setting_level(p->planned.optimizer_level);
	else if (n <= 0)
		return NULL;
	return ap_arena_printf(p->ctx->arena, "%" PRId64, n);
}

static enum ap_status compare_said(struct pair *p)
{
	const struct ap_runlog *log = &p->run->log;

	for (size_t i = 0; i < log->said.n; i++) {
		const char *planned = planned_text(p, log->said.v[i].key);

		if (planned)
			AP_TRY(tell_difference(p, log->said.v[i].key, log->said.v[i].value, planned,
				log->said.v[i].line, NULL, NULL));
	}
	return AP_OK;
}

/* Compares degrees of a text of --hybrid on the devices of the run; words: the document in which the log's
 * arguments stand by their names. */
static enum ap_status compare_hybrid(struct pair *p, const char *text, const struct ap_settings *said,
	const struct ap_json *words)
{
	struct ap_ctx quiet = ap_diag_apart(p->ctx);
	struct ap_hybrid h;
	const struct { const char *key; const int64_t *value; const char *argument; } degrees[] = {
		{"dp", &h.dp, "data_parallel_size"}, {"tp", &h.tp, "tensor_model_parallel_size"},
		{"pp", &h.pp, "pipeline_model_parallel_size"}, {"vpp", &h.vpp,
		"virtual_pipeline_model_parallel_size"}, {"cp", &h.cp, "context_parallel_size"},
		{"ep", &h.ep, "expert_model_parallel_size"}, {"etp", &h.etp, "expert_tensor_parallel_size"},
		{"mbs", &h.mbs, "micro_batch_size"}};

	if (ap_hybrid_parse(&quiet, text, &h) != AP_OK)
		return AP_OK;
	if (said->device_num && ap_hybrid_fill(&quiet, said->device_num, &h) != AP_OK)
		return AP_OK;
	for (size_t i = 0; i < AP_COUNT(degrees); i++) {
		int64_t planned = planned_number(p, degrees[i].key);

		if (planned > 0 && *degrees[i].value > 0)
			AP_TRY(tell_difference(p, degrees[i].key,
				ap_arena_printf(p->ctx->arena, "%" PRId64, *degrees[i].value),
				ap_arena_printf(p->ctx->arena, "%" PRId64, planned), 0, words,
				ap_jv_get(ap_json_root(words), degrees[i].argument)));
	}
	if (h.tp > 1 && p->hybrid.tp > 1)
		AP_TRY(tell_difference(p, "sp", h.sp ? "1" : "0", planned_text(p, "sp"), 0, words,
			ap_jv_get(ap_json_root(words), "sequence_parallel")));
	return AP_OK;
}

/* Compares what the log's block of arguments, or a launch in it, says as settings of ours. */
static enum ap_status compare_launch(struct pair *p, const struct ap_input *in)
{
	static const enum ap_setting_id apart[] = {AP_SET_executor, AP_SET_hybrid, AP_SET_optimizer,
		AP_SET_chip, AP_SET_micro_batches, AP_SET_devices_per_server};
	struct ap_ctx quiet = ap_diag_apart(p->ctx);
	enum ap_launch_language language = ap_launch_language(in->text, in->len);
	struct ap_settings said;
	struct ap_json *doc, *words;
	int64_t parameters, planned = whole(p, member(p, "graph", "parameters"));

	ap_settings_init(&said);
	if (language == AP_LAUNCH_NONE ||
		ap_launch_settings(&quiet, language, in->path, in->text, in->len, &doc) != AP_OK ||
		ap_launch_document(&quiet, language, in->path, in->text, in->len, &words) != AP_OK ||
		ap_config_set(&quiet, doc, AP_FOR_evaluate, &said) != AP_OK)
		return AP_OK;
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)i);
		const char *was = ap_setting_text(p->ctx->arena, row, &said);
		const char *is = ap_setting_text(p->ctx->arena, row, &p->planned);
		bool is_apart = false;

		for (size_t k = 0; k < AP_COUNT(apart); k++)
			is_apart = is_apart || apart[k] == (enum ap_setting_id)i;
		if (said.origin[i] >= AP_FROM_CONFIG && !is_apart && was && is)
			AP_TRY(tell_difference(p, row->key, was, is, 0, doc,
				ap_jv_get(ap_json_root(doc), row->key)));
	}
	if (said.hybrid)
		AP_TRY(compare_hybrid(p, said.hybrid, &said, words));
	parameters = ap_model_launch_parameters(&quiet, &p->planned, language, in);
	if (!parameters || !planned)
		return AP_OK;
	p->run->found.nstated++;
	if (llabs(parameters - planned) <= planned / 20) /* words may be padded to some multiple */
		return AP_OK;
	p->run->found.ndiffer++;
	return ap_diag_add(p->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = p->log},
		"log-settings",
		"the run trained a network of %" PRId64 " parameter elements, the plan is of one with %"
		PRId64,
		parameters, planned);
}

/* ---- memory ---- */

/* The plan's stage of a rank; -1: not known. */
static int64_t stage_of(const struct pair *p, const struct ap_run_memory *m)
{
	int64_t stage = -1, i = 0;

	if (m->stage >= 0)
		return m->stage;
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(ap_json_root(p->doc), "stages"));
		m->rank >= 0 && v; v = ap_jv_next(v), i++)
		if (whole(p, ap_jv_get(v, "first_rank")) <= m->rank)
			stage = i;
	return m->rank < p->devices ? stage : -1;
}

/* Bytes of the plan's stage, or of the fullest one, as a kind counts. */
static int64_t planned_bytes(const struct pair *p, int64_t stage, enum ap_run_bytes kind)
{
	int64_t most = 0, i = 0;

	for (const struct ap_jv *v = ap_jv_first(member(p, "prediction", "memory")); v;
		v = ap_jv_next(v), i++) {
		const struct ap_memory m = {.total = whole(p, ap_jv_get(v, "total_bytes")),
			.context = whole(p, ap_jv_get(v, "context_bytes")),
			.buffers = whole(p, ap_jv_get(v, "buffers_bytes"))};

		if ((stage < 0 || i == stage) && counted(&m, kind) > most)
			most = counted(&m, kind);
	}
	return most;
}

static int by_stage(const void *a, const void *b)
{
	const struct ap_compared_memory *x = a, *y = b;

	return x->stage != y->stage ? (x->stage > y->stage) - (x->stage < y->stage)
		: (x->kind > y->kind) - (x->kind < y->kind);
}

/* The most of each stage and kind, beside what the plan says. */
static void compare_memory(struct pair *p)
{
	struct ap_run_held *run = p->run;
	size_t n = 0;

	for (size_t i = 0; i < run->log.memory.n; i++) {
		const struct ap_run_memory *m = &run->log.memory.v[i];
		int64_t stage = stage_of(p, m);
		size_t k = 0;

		while (k < p->memory.n && (p->memory.v[k].stage != stage || p->memory.v[k].kind != m->kind))
			k++;
		if (k == p->memory.n)
			AP_PUSH(p->ctx->arena, p->memory,
				((struct ap_compared_memory){.stage = stage, .kind = m->kind}));
		p->memory.v[k].lines++;
		if (m->bytes > p->memory.v[k].measured_bytes)
			p->memory.v[k].measured_bytes = m->bytes;
	}
	for (size_t k = 0; k < p->memory.n; k++) {
		struct ap_compared_memory m = p->memory.v[k];
		bool finer = false; /* what is reserved is not predicted, and told where nothing else is */

		for (size_t i = 0; m.kind == AP_RUN_RESERVED && i < run->log.memory.n; i++)
			finer = finer || run->log.memory.v[i].kind == AP_RUN_ALLOCATED;
		m.predicted_bytes = planned_bytes(p, m.stage, m.kind);
		if (m.predicted_bytes && !finer)
			p->memory.v[n++] = m;
	}
	if (n > 0)
		qsort(p->memory.v, n, sizeof *p->memory.v, by_stage);
	run->found.memory = p->memory.v;
	run->found.nmemory = n;
	run->memory_kind = -1;
	for (size_t k = 0; k < n; k++)
		if (p->memory.v[k].kind == AP_RUN_USED && p->memory.v[k].measured_bytes > run->memory_bytes) {
			run->memory_kind = AP_RUN_USED;
			run->memory_bytes = p->memory.v[k].measured_bytes;
		}
}

/* ---- a pair ---- */

static enum ap_status compare_pair(struct ap_ctx *ctx, const struct ap_settings *set, const char *plan,
	const char *log, struct ap_run_held *run)
{
	struct pair p = {.ctx = ctx, .asked = set, .log = log, .run = run};
	struct ap_run_predicted predicted;
	struct ap_input in;

	AP_TRY(read_plan(&p, plan));
	AP_TRY(ap_input_read(ctx, set, log, &in));
	AP_TRY(ap_runlog_read(ctx, in.path, in.text, in.len, &run->log));
	p.log = in.path;
	run->found.log = log;
	run->found.format = run->log.format;
	run->found.tokens_of_device = p.devices ? (double)p.batch * (double)p.sequence / (double)p.devices
		: 0;
	if (!ap_runlog_settle(ctx, &run->log, (double)p.batch, run->found.tokens_of_device,
		&run->found.settled))
		AP_TRY(ap_diag_add(ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = p.log},
			"log-times",
			"tells rates, and the plan's graph has no tokens or no batch to make times of them"));
	else if (run->found.settled.read == 1)
		AP_TRY(ap_diag_add(ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = p.log},
			"log-times",
			"holds one iteration, which may have loaded and compiled what others find ready"));
	AP_TRY(compare_said(&p));
	AP_TRY(compare_launch(&p, &in));
	compare_memory(&p);
	AP_TRY(find_inputs(&p));
	if (!run->graph)
		return AP_OK;
	ap_run_predict(ctx, run, &predicted);
	run->found.predicted_s = predicted.step_s;
	return AP_OK;
}

/* The name of a profile: that of its file. */
static const char *name_of(struct ap_arena *arena, const char *path)
{
	const char *base = ap_file_base(path);
	size_t len = strlen(base);

	if (ap_file_suffix(base, ".json"))
		len -= strlen(".json");
	return ap_arena_strndup(arena, base, len);
}

static enum ap_status write_profile(struct ap_writing *to, size_t n, struct ap_run_held *run,
	struct ap_compared *c)
{
	const char *path = to->set->profile;
	struct ap_str text;

	for (size_t i = 0; i < n; i++)
		if (!run[i].graph || !run[i].found.settled.read)
			return ap_diag_add(to->ctx->diag, AP_ERROR, AP_USAGE,
				&(struct ap_where){.file = run[i].found.log}, NULL,
				"--profile needs the time of a step, and the graph of its plan");
	ap_str_init(&text, to->ctx->arena);
	AP_TRY(ap_refit(to->ctx, n, run, name_of(to->ctx->arena, path), c, &text));
	c->profile = path;
	if (!strcmp(path, "-")) {
		AP_TRY(ap_out_text(to, text.s, text.len));
	} else {
		struct ap_output_sink sink;

		AP_TRY(ap_out_open(to, path, &sink));
		ap_output_write_fn(&sink, text.s, text.len);
	}
	return AP_OK;
}

/* The command that plans again what the first run was of, under figures that are other than the plan's;
 * NULL: they are not. */
static const char *plan_again(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_run_held *run)
{
	const struct { const char *option, *file; } others[] = {
		{"--software", set->profile && strcmp(set->profile, "-") != 0 ? set->profile : set->software},
		{"--link-curve", set->link_curve}, {"--kernel-times", set->kernel_times}};
	struct ap_str s;
	size_t n = 0;

	ap_str_init(&s, ctx->arena);
	ap_str_addf(&s, "autopar-plan check %s --against %s --search", ap_diag_path(ctx->diag,
		run->found.plan),
		ap_diag_path(ctx->diag, run->path ? run->path : ""));
	for (size_t i = 0; i < AP_COUNT(others); i++)
		if (others[i].file) {
			ap_str_addf(&s, " %s %s", others[i].option, ap_diag_path(ctx->diag, others[i].file));
			n++;
		}
	return n && run->path ? s.s : NULL;
}

enum ap_status ap_runs_compare(struct ap_writing *to, size_t n, const char *const *path, struct ap_str *text)
{
	struct ap_ctx *ctx = to->ctx;
	struct ap_run_held *run = AP_NEW_N(ctx->arena, struct ap_run_held, n / 2 + 1);
	struct ap_compared c = {.nrun = n / 2};
	struct ap_compared_run *found = AP_NEW_N(ctx->arena, struct ap_compared_run, n / 2 + 1);
	bool taken = to->set->profile && !strcmp(to->set->profile, "-");

	if (n % 2)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"compare: no log goes with \"%s\"; expected PLAN LOG, and as often as there are runs",
			path[n - 1]);
	AP_TRY(ap_out_check(to, NULL));
	ap_ctx_phase(ctx, "reading");
	for (size_t i = 0; i < c.nrun; i++)
		AP_TRY(compare_pair(ctx, to->set, path[2 * i], path[2 * i + 1], &run[i]));
	ap_ctx_phase(ctx, "comparing");
	AP_TRY(ap_refit_suspects(ctx, c.nrun, run, &c));
	if (to->set->profile)
		AP_TRY(write_profile(to, c.nrun, run, &c));
	for (size_t i = 0; i < c.nrun; i++)
		found[i] = run[i].found;
	c.run = found;
	c.again = plan_again(ctx, to->set, &run[0]);
	if (to->set->json)
		ap_compared_write_json(ctx, &c, text);
	else if (!to->set->quiet)
		ap_compared_write(ctx, &c, text);
	if (!taken && text->len)
		AP_TRY(ap_out_text(to, text->s, text->len));
	if (!taken)
		text->len = 0;
	return ap_out_commit(to);
}
