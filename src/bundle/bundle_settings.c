/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/bundle_settings.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/vec.h"
#include "bundle/bundle_way.h"
#include "pipeline/schedule.h"

#define CLASS "AutoParallel"
#define CONTEXT "set_auto_parallel_context"
#define NN "mindspore.parallel.nn"
#define OLD_NN "mindspore.nn"

/* ---- switches, read by transformer_opt() and ascend_config from a separate file ---- */

static const struct {
	const char *name;
	bool is_number;
} switches[] = {
#define SWITCH(name, is_number) {#name, is_number},
	AP_SPEED_UPS(SWITCH)
#undef SWITCH
};

bool ap_bundle_speeds_up(const struct ap_bundle *b)
{
	for (int i = 0; i < AP_SPEED_UP_COUNT; i++)
		if (b->asked.speed_up[i])
			return true;
	return false;
}

void ap_bundle_write_speed_up(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	struct ap_jw w;

	(void)ctx;
	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	for (int i = 0; i < AP_SPEED_UP_COUNT; i++) {
		int64_t value = b->asked.speed_up[i];

		if (value && switches[i].is_number)
			ap_jw_kint(&w, switches[i].name, value);
		else if (value)
			ap_jw_kbool(&w, switches[i].name, true);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

/* ---- facts of a plan that calls depend on ---- */

enum fact {
	NEVER,
	ALWAYS,
	SEARCHES,
	LOADS_CKPT,
	LOADS_FROZEN, /* frozen parameters of a checkpoint, too */
	LOADS_OPERATORS,
	ARRIVES_BY_LISTS, /* inputs arrive in different ways */
	ARRIVES_BY_WORD,
	FULL_BATCH,
	DEALS, /* parameters to the devices that hold the same slice */
	DEALS_ANYTHING,
	SAVES_WHOLE,
	STAGED,
	PIPELINED, /* without training, by default the batch is one piece */
	BROADCASTS_RESULT,
	ACCUMULATES,
	INTERLEAVES_BATCHES,
	TRAINS,
	FUSES_BY_INDEX,
	FP32_COMMUNICATION,
	GRADIENTS_MEAN,
	FP32_SYNC,
	SYNCS_AS_IS,
	LOSS_MEAN,
	LOSS_SUM,
	ALLTOALL,
	BROADCASTS_PARAMETERS,
	HAS_GROUP_MODE,
	DUMPS_NORMS,
	NAMES_NORMS, /* the class takes their folder only with the switch */
	PRINTS_NORMS,
	SAVES_NORMS,
	NAMES_IDLE_NORMS,
	DUMPS_DEVICE_NORMS,
	SPEEDS_UP,
	FACT_COUNT
};

static void find_facts(const struct ap_bundle *b, bool is[FACT_COUNT])
{
	const struct ap_step *s = b->plan->step;
	bool ckpt = ap_bundle_loads(b, AP_BUNDLE_CKPT), staged = b->plan->nstage > 1;
	const struct ap_bundle_asked *asked = &b->asked;
	bool dumps = asked->dumps_norms, named = asked->norm_path;

	is[NEVER] = false;
	is[ALWAYS] = true;
	is[SEARCHES] = ap_bundle_way(b)->search;
	is[LOADS_CKPT] = ckpt;
	is[LOADS_FROZEN] = ckpt && b->frozen;
	is[LOADS_OPERATORS] = ap_bundle_loads(b, AP_BUNDLE_OPERATORS);
	is[ARRIVES_BY_LISTS] = s->narrival > 0;
	is[ARRIVES_BY_WORD] = s->narrival == 0;
	is[FULL_BATCH] = s->full_batch;
	is[DEALS] = s->optimizer_sharding;
	is[DEALS_ANYTHING] = s->optimizer_sharding || s->deal_whole;
	is[SAVES_WHOLE] = s->optimizer_sharding && s->saved_whole;
	is[STAGED] = staged;
	is[PIPELINED] = staged && (s->training || s->micro_batches > 1);
	is[BROADCASTS_RESULT] = staged && asked->broadcasts_result;
	is[ACCUMULATES] = !staged && s->training && s->micro_batches > 1;
	is[INTERLEAVES_BATCHES] = asked->interleave_num > 1;
	is[TRAINS] = s->training;
	is[FUSES_BY_INDEX] = s->training && s->allreduce.mode == AP_FUSION_INDEX;
	is[FP32_COMMUNICATION] = s->force_fp32;
	is[GRADIENTS_MEAN] = s->gradients_mean;
	is[FP32_SYNC] = s->gradient_fp32_sync;
	is[SYNCS_AS_IS] = !s->gradient_fp32_sync;
	is[LOSS_MEAN] = !asked->sums_loss;
	is[LOSS_SUM] = asked->sums_loss;
	is[ALLTOALL] = s->alltoall;
	is[BROADCASTS_PARAMETERS] = asked->broadcasts_parameters;
	is[HAS_GROUP_MODE] = asked->group_mode;
	is[DUMPS_NORMS] = dumps;
	is[NAMES_NORMS] = named;
	is[PRINTS_NORMS] = dumps && !named;
	is[SAVES_NORMS] = dumps && named;
	is[NAMES_IDLE_NORMS] = !dumps && named;
	is[DUMPS_DEVICE_NORMS] = asked->dumps_device_norms;
	is[SPEEDS_UP] = ap_bundle_speeds_up(b);
}

/* ---- values other than facts and texts ---- */

static void device_num(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_int(w, ap_bundle_devices(b));
}

static void ckpt_file(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_str(w, b->plan->nstage > 1 ? AP_BUNDLE_STAGES "/stage_{stage}.ckpt" : AP_BUNDLE_CKPT);
}

static void ckpt_config(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_key(w, "load_file");
	ckpt_file(b, w);
	ap_jw_kbool(w, "only_trainable_params", !b->frozen);
	ap_jw_end(w);
}

/* The parts of each dimension, those of adjacent ranks adjacent. */
static void arrival_parts(const struct ap_arrival *a, int rank, struct ap_jw *w)
{
	ap_jw_arr(w);
	for (int d = 0; d < rank; d++)
		ap_jw_int(w, a->cut > 1 && d == a->dim ? a->cut : 1);
	ap_jw_end(w);
}

/* A Layout on the stage's devices: repeats, parts, repeats. */
static void arrival_layout(const struct ap_bundle *b, const struct ap_arrival *a, int rank, struct ap_jw *w)
{
	const int64_t parts = a->cut > 1 ? a->cut : 1, stride = a->cut > 1 ? a->stride : 1;
	const int64_t matrix[] = {b->plan->machine->ndev / (parts * stride), parts, stride};
	static const char *const names[] = {"outer", "parts", "inner"};

	ap_jw_obj(w);
	ap_jw_kints(w, "device_matrix", matrix, 3);
	ap_jw_karr(w, "alias_name");
	for (int i = 0; i < 3; i++)
		ap_jw_str(w, names[i]);
	ap_jw_end(w);
	ap_jw_karr(w, "tensor_map");
	for (int d = 0; d < rank; d++)
		ap_jw_str(w, a->cut > 1 && d == a->dim ? names[1] : "None");
	ap_jw_end(w);
	ap_jw_end(w);
}

/* Numbers of parts if they suffice for all inputs, as MindSpore takes no mixture. */
static void arrivals(const struct ap_bundle *b, struct ap_jw *w)
{
	const struct ap_step *step = b->plan->step;
	const struct ap_graph *g = b->plan->graph;
	bool plain = true;

	for (uint32_t i = 0; i < step->narrival; i++)
		plain &= step->arrival[i].cut <= 1 || step->arrival[i].stride == 1;
	ap_jw_arr(w);
	for (uint32_t i = 0; i < step->narrival; i++) {
		int rank = g->tensor[g->input[i]].shape.rank;

		if (plain)
			arrival_parts(&step->arrival[i], rank, w);
		else
			arrival_layout(b, &step->arrival[i], rank, w);
	}
	ap_jw_end(w);
}

static void arrival_word(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_str(w, b->plan->step->full_batch ? "full_batch" : "data_parallel");
}

static const char *level_of(const struct ap_bundle *b)
{
	static const char *const names[] = {"level1", "level2", "level3"};

	return names[b->plan->step->optimizer_level - 1];
}

static void hsdp(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_kint(w, "shard_size", b->plan->step->shard_size);
	ap_jw_kint(w, "threshold", b->plan->step->shard_threshold_bytes >> 10);
	ap_jw_kstr(w, "optimizer_level", level_of(b));
	ap_jw_end(w);
}

/* MindSpore refuses size -1 here, and the older name of level2 with another level. */
static void parallel_optimizer_config(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	if (b->plan->step->optimizer_level == 2)
		ap_jw_kbool(w, "gradient_accumulation_shard", true);
	ap_jw_kint(w, "parallel_optimizer_threshold", b->plan->step->shard_threshold_bytes >> 10);
	if (b->plan->step->shard_size > 0)
		ap_jw_kint(w, "optimizer_weight_shard_size", b->plan->step->shard_size);
	ap_jw_kstr(w, "optimizer_level", level_of(b));
	ap_jw_end(w);
}

/* MindSpore's name of the scheduler. interleave: 1f1b over several segments, and a precondition of
 * any scheduler but 1f1b. */
static const char *scheduler_of(const struct ap_bundle *b, bool *interleave)
{
	const char *name = b->plan->step->pipe->scheduler->name;

	*interleave = strcmp(name, "1f1b") != 0;
	return strcmp(name, "interleaved") ? name : "1f1b";
}

static void pipeline(const struct ap_bundle *b, struct ap_jw *w)
{
	bool interleave;
	const char *scheduler = scheduler_of(b, &interleave);

	ap_jw_obj(w);
	ap_jw_kint(w, "stages", b->plan->nstage);
	ap_jw_kbool(w, "output_broadcast", b->asked.broadcasts_result);
	ap_jw_kbool(w, "interleave", interleave);
	ap_jw_kstr(w, "scheduler", scheduler);
	ap_jw_end(w);
}

static void pipeline_stages(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_int(w, b->plan->nstage);
}

static void pipeline_config(const struct ap_bundle *b, struct ap_jw *w)
{
	bool interleave;
	const char *scheduler = scheduler_of(b, &interleave);

	ap_jw_obj(w);
	ap_jw_kbool(w, "pipeline_interleave", interleave);
	ap_jw_kstr(w, "pipeline_scheduler", scheduler);
	ap_jw_end(w);
}

static void micro_size(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_kint(w, "micro_size", b->plan->step->micro_batches);
	ap_jw_end(w);
}

static void interleave_num(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_kint(w, "interleave_num", b->asked.interleave_num);
	ap_jw_end(w);
}

static void norm_path(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_str(w, b->asked.norm_path);
}

static void group_mode(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_str(w, b->asked.group_mode);
}

static void fusion(struct ap_jw *w, const char *key, const struct ap_fusion *f)
{
	bool automatic = f->mode == AP_FUSION_SIZE && f->bytes == AP_FUSION_BYTES;

	ap_jw_kobj(w, key);
	ap_jw_kstr(w, "mode", automatic ? "auto" : f->mode == AP_FUSION_SIZE ? "size" : "index");
	if (f->mode == AP_FUSION_INDEX) {
		ap_jw_kints(w, "config", f->index, f->nindex);
	} else if (!automatic) {
		ap_jw_kint(w, "config", f->bytes >> 20);
	} else {
		ap_jw_key(w, "config");
		ap_jw_null(w);
	}
	ap_jw_end(w);
}

/* If openstate is false, MindSpore would fuse every kind that is named. */
static void comm_fusion(const struct ap_bundle *b, struct ap_jw *w)
{
	const struct ap_step *step = b->plan->step;
	bool open = step->allreduce.mode != AP_FUSION_OFF;

	ap_jw_obj(w);
	ap_jw_kbool(w, "openstate", open);
	if (open) {
		fusion(w, "allreduce", &step->allreduce);
		fusion(w, "allgather", &step->allgather);
		fusion(w, "reducescatter", &step->reducescatter);
	}
	ap_jw_end(w);
}

static void fusion_index(const struct ap_bundle *b, struct ap_jw *w)
{
	const struct ap_fusion *f = &b->plan->step->allreduce;

	ap_jw_arr(w);
	for (uint32_t i = 0; i < f->nindex; i++)
		ap_jw_int(w, f->index[i]);
	ap_jw_end(w);
}

/* ---- the calls ---- */

struct call { /* a row of the table */
	const char *api, *name;
	const char *type; /* of the argument; "none": no argument; "kwargs": named ones */
	enum fact wanted;
	const char *keys; /* allowed in the value, separated by blanks; NULL: any, or none */
	/* the value, one of these, else null */
	void (*value)(const struct ap_bundle *b, struct ap_jw *w);
	enum fact fact;
	const char *json;
	size_t way; /* offset of the text in struct ap_bundle_way; 0: not there */
	enum fact unsaid; /* when the class has no method for it */
};

/* In the order of calling. */
static const struct call calls[] = {
	{NN, "MicroBatchInterleaved", "kwargs", INTERLEAVES_BATCHES, "interleave_num", interleave_num},
	{NN, "Pipeline", "kwargs", PIPELINED, "micro_size", micro_size},
	{NN, "GradAccumulation", "kwargs", ACCUMULATES, "micro_size", micro_size},
	{OLD_NN, "MicroBatchInterleaved", "kwargs", INTERLEAVES_BATCHES, "interleave_num", interleave_num},
	{OLD_NN, "PipelineCell", "kwargs", PIPELINED, "micro_size", micro_size},
	{OLD_NN, "GradAccumulationCell", "kwargs", ACCUMULATES, "micro_size", micro_size},

	{CLASS, "parallel_mode", "str", ALWAYS, .way = offsetof(struct ap_bundle_way, of_class)},
	{CLASS, "load_param_strategy_file", "str", LOADS_CKPT, NULL, ckpt_file},
	{CLASS, "disable_strategy_file_only_for_trainable_params", "none", LOADS_FROZEN},
	{CLASS, "load_operator_strategy_file", "str", LOADS_OPERATORS,
		.json = "\"" AP_BUNDLE_OPERATORS "\""},
	{CLASS, "dataset_strategy", "str", ARRIVES_BY_WORD, NULL, arrival_word},
	{CLASS, "dataset_strategy", "tuple", ARRIVES_BY_LISTS, NULL, arrivals},
	{CLASS, "hsdp", "kwargs", DEALS, "shard_size threshold optimizer_level", hsdp},
	{CLASS, "pipeline", "kwargs", STAGED, "stages output_broadcast interleave scheduler", pipeline},
	{CLASS, "comm_fusion", "dict", TRAINS, "openstate allreduce allgather reducescatter", comm_fusion},
	{CLASS, "enable_fp32_communication", "none", FP32_COMMUNICATION},
	{CLASS, "enable_gradients_mean", "none", GRADIENTS_MEAN},
	{CLASS, "disable_gradient_fp32_sync", "none", SYNCS_AS_IS},
	{CLASS, "disable_loss_repeated_mean", "none", LOSS_SUM},
	{CLASS, "transformer_opt", "str", SPEEDS_UP, .json = "\"" AP_BUNDLE_SPEED_UP "\""},
	{CLASS, "print_local_norm", "none", PRINTS_NORMS},
	{CLASS, "dump_local_norm", "str", SAVES_NORMS, .value = norm_path},
	{CLASS, "enable_device_local_norm", "none", DUMPS_DEVICE_NORMS},

	{CONTEXT, "device_num", "int", ALWAYS, NULL, device_num},
	{CONTEXT, "parallel_mode", "str", ALWAYS, .way = offsetof(struct ap_bundle_way, mode)},
	{CONTEXT, "search_mode", "str", SEARCHES, .way = offsetof(struct ap_bundle_way, search)},
	{CONTEXT, "strategy_ckpt_load_file", "str", LOADS_CKPT, NULL, ckpt_file},
	{CONTEXT, "strategy_ckpt_config", "dict", LOADS_CKPT, "load_file only_trainable_params", ckpt_config},
	{CONTEXT, "full_batch", "bool", ARRIVES_BY_WORD, .fact = FULL_BATCH},
	{CONTEXT, "dataset_strategy", "str", ARRIVES_BY_WORD, NULL, arrival_word},
	{CONTEXT, "dataset_strategy", "tuple", ARRIVES_BY_LISTS, NULL, arrivals},
	{CONTEXT, "enable_parallel_optimizer", "bool", ALWAYS, .fact = DEALS_ANYTHING},
	{CONTEXT, "parallel_optimizer_config", "dict", DEALS,
		"gradient_accumulation_shard parallel_optimizer_threshold optimizer_weight_shard_size "
		"optimizer_level", parallel_optimizer_config},
	{CONTEXT, "optimizer_weight_shard_aggregated_save", "bool", SAVES_WHOLE, .fact = ALWAYS},
	{CONTEXT, "pipeline_stages", "int", ALWAYS, NULL, pipeline_stages},
	{CONTEXT, "pipeline_config", "dict", STAGED, "pipeline_interleave pipeline_scheduler",
		pipeline_config},
	{CONTEXT, "pipeline_result_broadcast", "bool", BROADCASTS_RESULT, .fact = ALWAYS},
	{CONTEXT, "comm_fusion", "dict", TRAINS, "openstate allreduce allgather reducescatter", comm_fusion},
	{CONTEXT, "all_reduce_fusion_config", "list", FUSES_BY_INDEX, NULL, fusion_index},
	{CONTEXT, "force_fp32_communication", "bool", ALWAYS, .fact = FP32_COMMUNICATION},
	{CONTEXT, "gradients_mean", "bool", ALWAYS, .fact = GRADIENTS_MEAN},
	{CONTEXT, "gradient_fp32_sync", "bool", ALWAYS, .fact = FP32_SYNC},
	{CONTEXT, "loss_repeated_mean", "bool", ALWAYS, .fact = LOSS_MEAN},
	{CONTEXT, "enable_alltoall", "bool", ALWAYS, .fact = ALLTOALL},
	{CONTEXT, "parameter_broadcast", "bool", BROADCASTS_PARAMETERS, .fact = ALWAYS,
		.unsaid = BROADCASTS_PARAMETERS},
	{CONTEXT, "communi_parallel_mode", "str", HAS_GROUP_MODE, .value = group_mode,
		.unsaid = HAS_GROUP_MODE},
	{CONTEXT, "dump_local_norm", "bool", DUMPS_NORMS, .fact = ALWAYS},
	{CONTEXT, "dump_local_norm_path", "str", NAMES_NORMS, .value = norm_path,
		.unsaid = NAMES_IDLE_NORMS},
	{CONTEXT, "dump_device_local_norm", "bool", DUMPS_DEVICE_NORMS, .fact = ALWAYS},
	{"set_op_strategy_config", "set_op_strategy_config", "kwargs", LOADS_OPERATORS, "mode path",
		.json = "{\"mode\": \"LOAD\", \"path\": \"" AP_BUNDLE_OPERATORS "\"}"},
	{"set_context", "ascend_config", "dict", SPEEDS_UP, "parallel_speed_up_json_path",
		.json = "{\"parallel_speed_up_json_path\": \"" AP_BUNDLE_SPEED_UP "\"}"},
};

static void write_value(const struct ap_bundle *b, const struct call *c, const bool is[FACT_COUNT],
	struct ap_jw *w)
{
	if (c->value)
		c->value(b, w);
	else if (c->way)
		ap_jw_str(w, *(const char *const *)((const char *)ap_bundle_way(b) + c->way));
	else if (c->fact)
		ap_jw_bool(w, is[c->fact]);
	else
		ap_jw_raw(w, c->json ? c->json : "null");
}

void ap_bundle_write_settings(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
{
	bool is[FACT_COUNT];
	struct ap_jw w;

	(void)ctx;
	find_facts(b, is);
	ap_jw_init(&w, write, user, 1);
	ap_jw_arr(&w);
	for (size_t i = 0; i < AP_COUNT(calls); i++) {
		const struct call *c = &calls[i];

		if (!is[c->wanted] || (!strcmp(c->api, CLASS) && !ap_bundle_way(b)->of_class))
			continue;
		ap_jw_obj_flat(&w);
		ap_jw_kstr(&w, "api", c->api);
		ap_jw_kstr(&w, "name", c->name);
		ap_jw_kstr(&w, "type", c->type);
		ap_jw_key(&w, "value");
		write_value(b, c, is, &w);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

size_t ap_bundle_unsaid(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_str *out)
{
	bool is[FACT_COUNT];
	size_t n = 0;

	find_facts(b, is);
	for (size_t i = 0; i < AP_COUNT(calls) && ap_bundle_way(b)->of_class; i++) {
		struct ap_str value;
		struct ap_jw w;

		if (!is[calls[i].unsaid])
			continue;
		ap_str_init(&value, ctx->arena);
		ap_jw_str_init(&w, &value, 0);
		write_value(b, &calls[i], is, &w);
		ap_str_addf(out, "%s%s %s", n++ ? ", " : "", calls[i].name, value.s);
	}
	return n;
}

bool ap_bundle_call_known(const char *api, const char *name, const char *type, const char **keys)
{
	for (size_t i = 0; i < AP_COUNT(calls); i++)
		if (!strcmp(calls[i].api, api) && !strcmp(calls[i].name, name) &&
			(!type || !strcmp(calls[i].type, type))) {
			*keys = calls[i].keys;
			return true;
		}
	return false;
}
