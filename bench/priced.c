/* SPDX-License-Identifier: Apache-2.0 */
#include "priced.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autopar/autopar.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/launched.h"

/* Why a row cannot be expressed. */
#define BECAUSE(f, ...) return ap_arena_printf((f)->arena, __VA_ARGS__)

static const char *first_error(const struct facts *f, const struct autopar *a)
{
	for (size_t i = 0; i < autopar_messages(a); i++)
		if (!strcmp(autopar_message(a, i, "level"), "error"))
			BECAUSE(f, "%s", autopar_message(a, i, "text"));
	return "no plan";
}

/* A network with latent attention, said as Megatron's arguments would say it. */
static struct ap_model *make_latent(struct ap_ctx *ctx, const struct run *run)
{
	const struct ap_model_params *p = &run->params;
	const struct latent *l = run->latent;
	const struct { const char *name; int64_t n; } counts[] = {{"num_layers", p->layers},
		{"hidden_size", p->hidden}, {"num_attention_heads", p->heads},
		{"ffn_hidden_size", run->dense_inner}, {"padded_vocab_size", p->vocabulary},
		{"seq_length", p->sequence}, {"kv_lora_rank", l->key}, {"qk_pos_emb_head_dim", l->turned},
		{"qk_head_dim", l->plain}, {"v_head_dim", l->value}, {"num_experts", p->experts},
		{"moe_router_topk", p->active}, {"moe_ffn_hidden_size", p->inner},
		{"moe_shared_expert_intermediate_size", l->shared * p->inner}, {"q_lora_rank", l->query},
		{"moe_expert_capacity_factor", (int64_t)p->capacity}};
	static const char *const on[] = {"multi_latent_attention", "swiglu", "disable_bias_linear",
		"untie_embeddings_and_output_weights"};
	const struct ap_launched_options asked = {.batch = p->batch, .dtype = p->dtype, .flash = p->flash,
		.loss = p->loss, .small = !p->flash, .name = p->name};
	int64_t dense = (l->dense * p->layers + l->layers - 1) / l->layers;
	struct ap_hf_net net;
	struct ap_json *doc;
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, ctx->arena);
	ap_jw_str_init(&w, &text, 0);
	ap_jw_obj(&w);
	for (size_t i = 0; i < AP_COUNT(counts); i++)
		if (counts[i].n)
			ap_jw_kint(&w, counts[i].name, counts[i].n);
	for (size_t i = 0; i < AP_COUNT(on); i++)
		ap_jw_kbool(&w, on[i], true);
	ap_jw_kstr(&w, "position_embedding_type", "rope");
	ap_jw_kstr(&w, "normalization", "RMSNorm");
	ap_jw_key(&w, "moe_layer_freq");
	ap_jw_arr(&w);
	for (int64_t i = 0; i < p->layers; i++)
		ap_jw_int(&w, i >= dense);
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	if (ap_json_parse(ctx, "arguments", text.s, text.len, 0, &doc) != AP_OK ||
		ap_launched_megatron(ctx, doc, &asked, &net) != AP_OK)
		die(EXIT_IO, p->name, ap_diag_text(ctx->diag, 0, NULL, NULL));
	return net.make(ctx->arena, net.dimensions);
}

static const char *network_text(struct ap_arena *arena, const struct run *run, size_t *len)
{
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create(0, NULL, NULL), .jobs = 1,
		.diag = ap_diag_create(arena, false)};
	struct ap_model *m = run->latent ? make_latent(&ctx, run)
		: ap_model_family_find(run->generator->kind)->make(arena, &run->params);
	struct ap_str s;

	for (int64_t i = 0; run->every_second && i < run->params.layers; i++)
		if (i % 2 == 0)
			ap_model_recompute(m,
				ap_arena_printf(arena, "%s.%d", run->generator->blocks, (int)i));
	ap_str_init(&s, arena);
	ap_model_write(m, ap_str_take, &s);
	ap_arena_destroy(ctx.scratch);
	*len = s.len;
	return s.s;
}

static bool wide_gradients(const struct facts *f, const struct run *run)
{
	enum sums sums = run->framework->sums;

	return sums == WIDE || (sums == WIDE_BF16 && run->precision->dtype == AP_BFLOAT16) ||
		holds(f->precision, "reduce-fp32") || holds(f->precision, "fp32 grad");
}

/* Do products run beside the collectives of their results, as the row or its framework's recipes have it? */
static bool overlaps_products(const struct facts *f, const struct run *run)
{
	return holds(f->overlap, "use-mc2") || holds(f->overlap, "tp-comm-overlap") ||
		holds(f->overlap, "AsyncTP") || begins(f->overlap, "TP/") ||
		(run->framework->beside && holds(f->overlap, "recipe"));
}

static const char *hybrid_of(struct ap_arena *arena, const struct run *run)
{
	const struct { const char *key; int64_t n; } degrees[] = {{"tp", run->tp}, {"pp", run->pp},
		{"vpp", run->vpp}, {"cp", run->cp}, {"ep", run->ep}};
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_str_addf(&s, "dp=%" PRId64 ",mbs=%" PRId64, run->dp, run->mbs);
	for (size_t i = 0; i < AP_COUNT(degrees); i++)
		if (degrees[i].n > 1)
			ap_str_addf(&s, ",%s=%" PRId64, degrees[i].key, degrees[i].n);
	if (run->tp > 1 && run->sp)
		ap_str_add(&s, ",sp=1");
	else if (run->tp > 1 && run->pp > 1 && run->scatters)
		ap_str_add(&s, ",pp_scatter=1");
	if (run->pp > 1 && run->params.heads &&
		(run->framework->by_cost || run->params.layers % (run->pp * run->vpp))) {
		ap_str_add(&s, ",layers=");
		for (int64_t part = 0; part < run->pp * run->vpp; part++)
			ap_str_addf(&s, part ? ",%" PRId64 : "%" PRId64, layers_of(run, part));
	}
	return s.s;
}

/*
 * What measurements of memory count, by words of the column mem_kind. An allocator that keeps freed
 * blocks for later holds more than tensors take, by a share of what passes hold: 0.25, of 56 runs of
 * BigScience (nvidia-smi), 0.4 of 10 of torchtitan (its memory line prints max_reserved).
 */
static const struct measure {
	const char *word;
	bool first; /* the peak of the first step, whose passes run before its update allocates the moments:
	               Megatron reports memory once, after it */
	bool libraries; /* they and their buffers count, too */
	bool here; /* of the server where it is called, the first of a run, alone: BigScience's tr3m on two
	              shows 13 GB where the same run on cards of 16 GB ran out of memory */
	double reserved;
} measures[] = {
	{"logged rank", true, false, false, 0},
	{"torchtitan", false, false, false, 0.4},
	{"torch", false, false, false, 0},
	{"first/last node", false, true, false, 0.25},
	{"nvidia-smi", false, true, true, 0.25},
	{"", false, true, false, 0},
};

static const struct measure *measure_of(const char *kind)
{
	size_t i = 0;

	while (*measures[i].word && !holds(kind, measures[i].word))
		i++;
	return &measures[i];
}

static int64_t part_of(const struct facts *f, struct autopar_plan *plan, size_t stage, const char *part)
{
	double bytes = 0;

	(void)autopar_plan_number(plan, ap_arena_printf(f->arena, "/prediction/memory/%zu/%s_bytes", stage,
		part), &bytes);
	return (int64_t)bytes;
}

/* The most that the passes of a first step hold on a device, or its update: moments are what two states take,
 * and AdamW has two, momentum one. */
static int64_t first_bytes(const struct facts *f, struct autopar *a, struct autopar_plan *plan)
{
	struct autopar_plan *one;
	int64_t most = 0;

	if (autopar_set(a, "optimizer", "momentum") != AUTOPAR_OK || autopar_evaluate(a, &one) != AUTOPAR_OK)
		return 0;
	for (size_t s = 0; s < autopar_plan_count(plan, "/prediction/memory"); s++) {
		int64_t all = part_of(f, plan, s, "total") - part_of(f, plan, s, "context") -
			part_of(f, plan, s, "buffers");
		int64_t moments = 2 * (part_of(f, plan, s, "optimizer") - part_of(f, one, s, "optimizer"));
		int64_t passed = part_of(f, plan, s, "activations") + part_of(f, plan, s, "recompute") +
			part_of(f, plan, s, "temporary");
		int64_t held = all - (moments < passed ? moments : passed);

		most = held > most ? held : most;
	}
	autopar_plan_destroy(one);
	return autopar_set(a, "optimizer", "adam_weight_decay") == AUTOPAR_OK ? most : 0;
}

static int64_t stage_number(const struct facts *f, struct autopar_plan *plan, size_t stage, const char *name)
{
	double v = 0;

	(void)autopar_plan_number(plan, ap_arena_printf(f->arena, "/stages/%zu/%s", stage, name), &v);
	return (int64_t)v;
}

/* Bytes of a plan that a measurement counts. */
static int64_t counted_bytes(const struct facts *f, struct autopar *a, const struct run *run,
	const char *kind, struct autopar_plan *plan)
{
	const struct measure *m = measure_of(kind);
	bool one = m->here && run->per_node > 0; /* server */
	int64_t most = 0;

	if (m->first)
		return first_bytes(f, a, plan);
	for (size_t s = 0; s < autopar_plan_count(plan, "/prediction/memory"); s++) {
		int64_t libraries = part_of(f, plan, s, "context") + part_of(f, plan, s, "buffers");
		int64_t peak = stage_number(f, plan, s, "peak_bytes") - libraries;
		int64_t passes = peak - part_of(f, plan, s, "weights") - part_of(f, plan, s, "gathered") -
			part_of(f, plan, s, "gradients") - part_of(f, plan, s, "optimizer");
		int64_t kept = (int64_t)(m->reserved * (double)passes);
		int64_t held = peak + (m->libraries ? libraries : 0) + kept;

		if (one && stage_number(f, plan, s, "first_rank") >= run->per_node)
			break;
		most = held > most ? held : most;
	}
	return most;
}

/* Reads what a step is made of from the summary of a plan. */
static bool read_terms(struct autopar_plan *plan, struct terms *out)
{
	struct ap_arena *arena = ap_arena_create(0, NULL, NULL); /* of each call: a fit makes thousands */
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create(0, NULL, NULL), .jobs = 1,
		.diag = ap_diag_create(arena, false)};
	struct ap_json *doc = NULL;
	const char *text;
	size_t len;
	bool is_there = autopar_plan_memory(plan, "summary", ".json", &text, &len) == AUTOPAR_OK &&
		ap_json_parse(&ctx, "summary", text, len, 0, &doc) == AP_OK;

	if (is_there) {
		const struct ap_jv *prediction = ap_jv_get(ap_json_root(doc), "prediction");

		*out = (struct terms){ap_jv_double(ap_jv_get(prediction, "compute_s")),
			ap_jv_double(ap_jv_get(prediction, "exposed_communication_s")),
			ap_jv_double(ap_jv_get(prediction, "bubble_s")),
			ap_jv_double(ap_jv_get(prediction, "optimizer_s"))};
	}
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(arena);
	return is_there;
}

static const char *evaluate(const struct facts *f, struct autopar *a, const struct run *run,
	enum priced_what what, struct row *row)
{
	struct autopar_plan *plan;
	bool is_there;

	if (autopar_set(a, "recompute", run->recompute) != AUTOPAR_OK ||
		autopar_evaluate(a, &plan) != AUTOPAR_OK)
		return first_error(f, a);
	row->predicted_s = autopar_plan_step_time_s(plan);
	row->needed_bytes = autopar_plan_memory_bytes(plan);
	if (what == PRICED_ALL || (what == PRICED_MEASURED && row->measured_bytes))
		row->predicted_bytes = counted_bytes(f, a, run, row->field[COL_mem_kind], plan);
	is_there = what != PRICED_ALL || read_terms(plan, &row->terms);
	autopar_plan_destroy(plan);
	return is_there ? NULL : "no summary";
}

static const char *text_of(const struct facts *f, int64_t n)
{
	return ap_arena_printf(f->arena, "%" PRId64, n);
}

static const char *dispatcher_of(const struct facts *f, const struct run *run)
{
	const char *calls = run->framework->calls;

	return run->ep > 1 && !(calls && begins(f->model, calls)) ? run->framework->dispatcher : NULL;
}

static const char *scales_of(const struct run *run)
{
	return run->precision->scales ? run->precision->scales : run->framework->scales;
}

/* Settings of a run; what is not taken is named by the evaluation. */
static enum autopar_status set_all(struct autopar *a, const struct facts *f, const struct run *run,
	struct profiles *p, bool is_neutral)
{
	static const char *const levels[] = {NULL, "level1", "level2", "level3"};
	const struct { const char *key, *value; } settings[] = {
		{"jobs", "1"},
		{"hccl_rules", "false"},
		{"executor", run->framework->executor},
		{"software", software_of(p, run, is_neutral)},
		{"chip", chip_of(p, run)},
		{"device_num", text_of(f, run->devices)},
		{"devices_per_server", run->per_node ? text_of(f, run->per_node) : NULL},
		{"devices_per_pod", run->device->pod && run->devices > run->device->pod ?
			text_of(f, run->device->pod) : NULL},
		{"hybrid", hybrid_of(f->arena, run)},
		{"gradient_fp32_sync", wide_gradients(f, run) ? "true" : "false"},
		{"overlap_grad_reduce", run->framework->behind && !holds(f->overlap, "overlap-grad-reduce")
			? "false" : NULL},
		{"fp8_format", run->precision->bits == 8 ? "hybrid" : NULL},
		{"fp8_recipe", run->precision->bits == 8 ? scales_of(run) : NULL},
		{"fp8_param_gather", run->precision->bits == 8 && run->zero && run->framework->narrow ? "true"
			: NULL},
		{"tp_comm_overlap", overlaps_products(f, run) ? "true" : NULL},
		{"moe_token_dispatcher_type", dispatcher_of(f, run)},
		{"expert_imbalance", run->framework->balanced ? "1" : NULL},
		{"enable_parallel_optimizer", run->zero ? "true" : "false"},
		{"optimizer_level", run->zero > 1 ? levels[run->zero] : NULL},
	};
	enum autopar_status st = AUTOPAR_OK;

	for (size_t i = 0; i < AP_COUNT(settings) && st == AUTOPAR_OK; i++)
		if (settings[i].value)
			st = autopar_set(a, settings[i].key, settings[i].value);
	return st;
}

struct priced {
	struct ap_arena *arena; /* its own */
	const char *folder, *name; /* where graphs and plans are left; NULL: nowhere */
	struct facts facts;
	struct run run;
	const char *why; /* it cannot be expressed; NULL: it can */
	enum priced_what what;
	struct { struct try { int64_t mbs; struct autopar *a; } *v; size_t n, cap; } tries; /* graphs made so
			far */
};

struct priced *priced_open(struct ap_arena *arena, const struct row *row)
{
	struct priced *p = AP_NEW(arena, struct priced);

	p->arena = ap_arena_create(0, NULL, NULL);
	p->facts = facts_of(p->arena, row);
	p->why = express(&p->facts, &p->run);
	return p;
}

void priced_close(struct priced *p)
{
	for (size_t i = 0; i < p->tries.n; i++)
		autopar_destroy(p->tries.v[i].a);
	ap_arena_destroy(p->arena);
}

void priced_only(struct priced *p, enum priced_what what)
{
	p->what = what;
}

const struct run *priced_run(const struct priced *p)
{
	return p->why ? NULL : &p->run;
}

void priced_keep(struct priced *p, const char *folder, const char *name)
{
	p->folder = folder;
	p->name = name;
}

static const char *kept_path(struct priced *p, const char *what)
{
	return ap_arena_printf(p->arena, "%s/%s.%s.json", p->folder, p->name, what);
}

static void write_kept(struct priced *p, const char *what, const char *text, size_t len)
{
	const char *path = kept_path(p, what);
	FILE *out = fopen(path, "wb");

	if (!out || fwrite(text, 1, len, out) != len || fclose(out))
		die(EXIT_IO, path, strerror(errno));
}

/* The run with its graph, which is made at the first call for these micro-batches. */
static struct autopar *graph_of(struct priced *p, const struct run *run)
{
	struct try *t;
	const char *text;
	size_t len;

	for (size_t i = 0; i < p->tries.n; i++)
		if (p->tries.v[i].mbs == run->mbs)
			return p->tries.v[i].a;
	AP_PUSH(p->arena, p->tries, ((struct try){run->mbs, autopar_create()}));
	t = &p->tries.v[p->tries.n - 1];
	text = t->a ? network_text(p->arena, run, &len) : NULL;
	if (text && autopar_graph_memory(t->a, p->folder ? ap_file_base(kept_path(p, "graph")) : "network",
		text,
		len) != AUTOPAR_OK)
		die(EXIT_IO, p->facts.model, first_error(&p->facts, t->a));
	if (text && p->folder)
		write_kept(p, "graph", text, len);
	return t->a;
}

/* Leaves the plan of a run, and the chip that it is of. */
static void keep_plan(struct priced *p, struct autopar *a, struct profiles *profiles)
{
	const char *chip = chip_of(profiles, &p->run), *text;
	struct autopar_plan *plan;
	char *profile;
	size_t len;

	if (autopar_evaluate(a, &plan) != AUTOPAR_OK ||
		autopar_plan_memory(plan, "plan_out", ".json", &text, &len) != AUTOPAR_OK)
		die(EXIT_IO, p->name, first_error(&p->facts, a));
	write_kept(p, "plan", text, len);
	autopar_plan_destroy(plan);
	if (!ap_file_suffix(chip, ".json"))
		return;
	if (ap_file_read(profiles->ctx, chip, AP_FILE_MAX_BYTES, &profile, &len) != AP_OK)
		die(EXIT_IO, chip, "it cannot be read");
	write_kept(p, "chip", profile, len);
}

/* Evaluates a run as it is expressed. */
static const char *predict_run(struct priced *p, const struct run *run, struct profiles *profiles,
	bool is_neutral, struct row *row)
{
	const char *why;
	struct autopar *a = graph_of(p, run);

	if (!a)
		return "out of memory";
	if (set_all(a, &p->facts, run, profiles, is_neutral) != AUTOPAR_OK)
		return first_error(&p->facts, a);
	why = evaluate(&p->facts, a, run, p->what, row);
	if (!why && p->folder && run == &p->run)
		keep_plan(p, a, profiles);
	return why;
}

/* Where nothing is said of micro-batches, they were tuned: of all powers of two that deal the batch the one
 * that is predicted to be the fastest and to fit counts. */
static const char *predict_tuned(struct priced *p, struct profiles *profiles, bool is_neutral,
	struct row *row)
{
	double room = number(p->facts.hw_mem_gib) * (1 << 30);
	struct row best = *row;
	struct run run = p->run;
	const char *why = predict_run(p, &run, profiles, is_neutral, &best);

	for (run.mbs = 2; !why && room > 0 && run.batch % (run.dp * run.mbs) == 0; run.mbs *= 2) {
		struct row next = *row;

		if (predict_run(p, &run, profiles, is_neutral, &next) || (double)next.needed_bytes > room)
			break;
		if (next.predicted_s < best.predicted_s)
			best = next;
	}
	*row = best;
	return why;
}

void priced_predict(struct priced *p, struct profiles *profiles, bool is_neutral, struct row *row)
{
	const char *why = p->why;

	row->reason = NULL;
	if (!why)
		why = *p->facts.mbs || *p->facts.grad_accum ? predict_run(p, &p->run, profiles, is_neutral,
			row) : predict_tuned(p, profiles, is_neutral, row);
	if (why) {
		row->reason = ap_arena_strdup(profiles->ctx->arena, why);
		row->predicted_s = 0;
		row->predicted_bytes = 0;
		row->needed_bytes = 0;
	}
}
