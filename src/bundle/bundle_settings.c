/* SPDX-License-Identifier: Apache-2.0 */
/* settings.json: the calls that make MindSpore run as planned, in both of its spellings. */
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/bundle_parts.h"
#include "pipeline/schedule.h"

#define CLASS "AutoParallel"
#define CONTEXT "set_auto_parallel_context"
#define NN "mindspore.parallel.nn"
#define OLD_NN "mindspore.nn"

struct call { /* a row of the file */
	const char *api, *name;
	const char *type; /* of the argument; "none": there is none; "kwargs": they are named */
	bool (*wanted)(const struct ap_bundle *b); /* NULL: always */
	void (*value)(const struct ap_bundle *b, struct ap_jw *w);
	const char *keys; /* that the value may have, a blank between two; NULL: any, or it has none */
	bool (*unsaid)(const struct ap_bundle *b); /* is it what no method of the class says? NULL: no */
};

static const struct ap_step *step_of(const struct ap_bundle *b)
{
	return b->plan->step;
}

static void none(const struct ap_bundle *b, struct ap_jw *w)
{
	(void)b;
	ap_jw_null(w);
}

static void yes(const struct ap_bundle *b, struct ap_jw *w)
{
	(void)b;
	ap_jw_bool(w, true);
}

/* Mode and strategy files. */

static void class_mode(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_str(w, ap_bundle_way(b)->of_class);
}

static void context_mode(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_str(w, ap_bundle_way(b)->mode);
}

static bool searches(const struct ap_bundle *b)
{
	return ap_bundle_way(b)->search;
}

static void search_mode(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_str(w, ap_bundle_way(b)->search);
}

static void device_num(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_int(w, ap_bundle_devices(b));
}

static bool loads(const struct ap_bundle *b, const char *file)
{
	const char *loaded = ap_bundle_way(b)->file;

	return loaded && !strcmp(loaded, file);
}

static bool loads_ckpt(const struct ap_bundle *b)
{
	return loads(b, AP_BUNDLE_CKPT);
}

static bool loads_operators(const struct ap_bundle *b)
{
	return loads(b, AP_BUNDLE_OPERATORS);
}

/* Each rank loads the file of its own stage. */
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

static void operators_file(const struct ap_bundle *b, struct ap_jw *w)
{
	(void)b;
	ap_jw_str(w, AP_BUNDLE_OPERATORS);
}

static void operators_config(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_kstr(w, "mode", "LOAD");
	ap_jw_key(w, "path");
	operators_file(b, w);
	ap_jw_end(w);
}

static bool loads_frozen(const struct ap_bundle *b)
{
	return b->frozen && loads_ckpt(b);
}

/* The dataset. */

static bool arrives_by_lists(const struct ap_bundle *b)
{
	return step_of(b)->narrival > 0;
}

static bool arrives_by_word(const struct ap_bundle *b)
{
	return !arrives_by_lists(b);
}

static void arrival_word(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_str(w, step_of(b)->full_batch ? "full_batch" : "data_parallel");
}

static void full_batch(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_bool(w, step_of(b)->full_batch);
}

/* The optimizer's share. */

static bool deals(const struct ap_bundle *b)
{
	return step_of(b)->optimizer_sharding;
}

static bool saves_whole(const struct ap_bundle *b)
{
	return deals(b) && step_of(b)->saved_whole;
}

static const char *level_of(const struct ap_bundle *b)
{
	static const char *const names[] = {"level1", "level2", "level3"};

	return names[step_of(b)->optimizer_level - 1];
}

static void hsdp(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_kint(w, "shard_size", step_of(b)->shard_size);
	ap_jw_kint(w, "threshold", step_of(b)->shard_threshold_bytes >> 10);
	ap_jw_kstr(w, "optimizer_level", level_of(b));
	ap_jw_end(w);
}

static void enable_parallel_optimizer(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_bool(w, deals(b) || step_of(b)->deal_whole);
}

/* MindSpore takes no size of -1 here, and the older name of level2 beside no other level. */
static void parallel_optimizer_config(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	if (step_of(b)->optimizer_level == 2)
		ap_jw_kbool(w, "gradient_accumulation_shard", true);
	ap_jw_kint(w, "parallel_optimizer_threshold", step_of(b)->shard_threshold_bytes >> 10);
	if (step_of(b)->shard_size > 0)
		ap_jw_kint(w, "optimizer_weight_shard_size", step_of(b)->shard_size);
	ap_jw_kstr(w, "optimizer_level", level_of(b));
	ap_jw_end(w);
}

/* The pipeline, and what cuts the batch. */

static bool is_staged(const struct ap_bundle *b)
{
	return b->plan->nstage > 1;
}

/* A pipeline that infers runs the batch in one piece, unless it is told otherwise. */
static bool is_pipelined(const struct ap_bundle *b)
{
	return is_staged(b) && (step_of(b)->training || step_of(b)->micro_batches > 1);
}

static bool broadcasts(const struct ap_bundle *b)
{
	return is_staged(b) && ap_bundle_differs(b, "pipeline_result_broadcast", "false");
}

/* MindSpore's own name, and whether it has to be told that this is none of the plain pipeline: 1f1b over
 * several segments is called interleave, and without that it takes no other scheduler than 1f1b. */
static const char *scheduler_of(const struct ap_bundle *b, bool *interleave)
{
	const char *name = step_of(b)->pipe->scheduler->name;

	*interleave = strcmp(name, "1f1b") != 0;
	return strcmp(name, "interleaved") ? name : "1f1b";
}

static void pipeline(const struct ap_bundle *b, struct ap_jw *w)
{
	bool interleave;
	const char *scheduler = scheduler_of(b, &interleave);

	ap_jw_obj(w);
	ap_jw_kint(w, "stages", b->plan->nstage);
	ap_jw_kbool(w, "output_broadcast", broadcasts(b));
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

static bool accumulates(const struct ap_bundle *b)
{
	return !is_staged(b) && step_of(b)->training && step_of(b)->micro_batches > 1;
}

static void micro_size(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_kint(w, "micro_size", step_of(b)->micro_batches);
	ap_jw_end(w);
}

static bool interleaves_batches(const struct ap_bundle *b)
{
	return ap_bundle_differs(b, "interleave_num", "1");
}

static void interleave_num(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_key(w, "interleave_num");
	ap_jw_raw(w, ap_bundle_setting(b, "interleave_num"));
	ap_jw_end(w);
}

/* Communication. */

static bool trains(const struct ap_bundle *b)
{
	return step_of(b)->training;
}

static void fusion(struct ap_jw *w, const char *key, const struct ap_fusion *f)
{
	bool automatic = f->mode == AP_FUSION_SIZE && f->bytes == AP_FUSION_BYTES;

	ap_jw_key(w, key);
	ap_jw_obj(w);
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

/* Beside a state that is not open MindSpore would take any kind that is named as wanted. */
static void comm_fusion(const struct ap_bundle *b, struct ap_jw *w)
{
	const struct ap_step *step = step_of(b);
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

static bool fuses_by_index(const struct ap_bundle *b)
{
	return trains(b) && step_of(b)->allreduce.mode == AP_FUSION_INDEX;
}

static void fusion_index(const struct ap_bundle *b, struct ap_jw *w)
{
	const struct ap_fusion *f = &step_of(b)->allreduce;

	ap_jw_arr(w);
	for (uint32_t i = 0; i < f->nindex; i++)
		ap_jw_int(w, f->index[i]);
	ap_jw_end(w);
}

static bool forces_fp32(const struct ap_bundle *b)
{
	return step_of(b)->force_fp32;
}

static void force_fp32(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_bool(w, step_of(b)->force_fp32);
}

static bool means(const struct ap_bundle *b)
{
	return step_of(b)->gradients_mean;
}

static void gradients_mean(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_bool(w, step_of(b)->gradients_mean);
}

static bool syncs_as_is(const struct ap_bundle *b)
{
	return !step_of(b)->gradient_fp32_sync;
}

static void gradient_fp32_sync(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_bool(w, step_of(b)->gradient_fp32_sync);
}

static bool repeats_loss(const struct ap_bundle *b)
{
	return ap_bundle_differs(b, "loss_repeated_mean", "true");
}

static void loss_repeated_mean(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_bool(w, !repeats_loss(b));
}

static void alltoall(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_bool(w, step_of(b)->alltoall);
}

/* What no plan depends on. */

static bool broadcasts_parameters(const struct ap_bundle *b)
{
	return ap_bundle_differs(b, "parameter_broadcast", "false");
}

static bool has_group_mode(const struct ap_bundle *b)
{
	return ap_bundle_differs(b, "communi_parallel_mode", "\"all_group_parallel\"");
}

static void group_mode(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_raw(w, ap_bundle_setting(b, "communi_parallel_mode"));
}

static bool dumps_norms(const struct ap_bundle *b)
{
	return ap_bundle_differs(b, "dump_local_norm", "false");
}

static bool names_norms(const struct ap_bundle *b)
{
	return ap_bundle_differs(b, "dump_local_norm_path", "null");
}

static bool prints_norms(const struct ap_bundle *b)
{
	return dumps_norms(b) && !names_norms(b);
}

static bool saves_norms(const struct ap_bundle *b)
{
	return dumps_norms(b) && names_norms(b);
}

/* The class takes the folder only together with the switch. */
static bool names_idle_norms(const struct ap_bundle *b)
{
	return !dumps_norms(b) && names_norms(b);
}

static void norm_path(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_raw(w, ap_bundle_setting(b, "dump_local_norm_path"));
}

static bool dumps_device_norms(const struct ap_bundle *b)
{
	return ap_bundle_differs(b, "dump_device_local_norm", "false");
}

static void speed_up_file(const struct ap_bundle *b, struct ap_jw *w)
{
	(void)b;
	ap_jw_str(w, AP_BUNDLE_SPEED_UP);
}

static void speed_up_config(const struct ap_bundle *b, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_key(w, "parallel_speed_up_json_path");
	speed_up_file(b, w);
	ap_jw_end(w);
}

/* In the order in which they are to be made. */
static const struct call calls[] = {
	{NN, "MicroBatchInterleaved", "kwargs", interleaves_batches, interleave_num,
		"interleave_num"},
	{NN, "Pipeline", "kwargs", is_pipelined, micro_size,
		"micro_size"},
	{NN, "GradAccumulation", "kwargs", accumulates, micro_size,
		"micro_size"},
	{OLD_NN, "MicroBatchInterleaved", "kwargs", interleaves_batches, interleave_num,
		"interleave_num"},
	{OLD_NN, "PipelineCell", "kwargs", is_pipelined, micro_size,
		"micro_size"},
	{OLD_NN, "GradAccumulationCell", "kwargs", accumulates, micro_size,
		"micro_size"},

	{CLASS, "parallel_mode", "str", NULL, class_mode},
	{CLASS, "load_param_strategy_file", "str", loads_ckpt, ckpt_file},
	{CLASS, "disable_strategy_file_only_for_trainable_params", "none", loads_frozen, none},
	{CLASS, "load_operator_strategy_file", "str", loads_operators, operators_file},
	{CLASS, "dataset_strategy", "str", arrives_by_word, arrival_word},
	{CLASS, "dataset_strategy", "tuple", arrives_by_lists, ap_bundle_write_arrivals},
	{CLASS, "hsdp", "kwargs", deals, hsdp,
		"shard_size threshold optimizer_level"},
	{CLASS, "pipeline", "kwargs", is_staged, pipeline,
		"stages output_broadcast interleave scheduler"},
	{CLASS, "comm_fusion", "dict", trains, comm_fusion,
		"openstate allreduce allgather reducescatter"},
	{CLASS, "enable_fp32_communication", "none", forces_fp32, none},
	{CLASS, "enable_gradients_mean", "none", means, none},
	{CLASS, "disable_gradient_fp32_sync", "none", syncs_as_is, none},
	{CLASS, "disable_loss_repeated_mean", "none", repeats_loss, none},
	{CLASS, "transformer_opt", "str", ap_bundle_speeds_up, speed_up_file},
	{CLASS, "print_local_norm", "none", prints_norms, none},
	{CLASS, "dump_local_norm", "str", saves_norms, norm_path},
	{CLASS, "enable_device_local_norm", "none", dumps_device_norms, none},

	{CONTEXT, "device_num", "int", NULL, device_num},
	{CONTEXT, "parallel_mode", "str", NULL, context_mode},
	{CONTEXT, "search_mode", "str", searches, search_mode},
	{CONTEXT, "strategy_ckpt_load_file", "str", loads_ckpt, ckpt_file},
	{CONTEXT, "strategy_ckpt_config", "dict", loads_ckpt, ckpt_config,
		"load_file only_trainable_params"},
	{CONTEXT, "full_batch", "bool", arrives_by_word, full_batch},
	{CONTEXT, "dataset_strategy", "str", arrives_by_word, arrival_word},
	{CONTEXT, "dataset_strategy", "tuple", arrives_by_lists, ap_bundle_write_arrivals},
	{CONTEXT, "enable_parallel_optimizer", "bool", NULL, enable_parallel_optimizer},
	{CONTEXT, "parallel_optimizer_config", "dict", deals, parallel_optimizer_config,
		"gradient_accumulation_shard parallel_optimizer_threshold optimizer_weight_shard_size "
		"optimizer_level"},
	{CONTEXT, "optimizer_weight_shard_aggregated_save", "bool", saves_whole, yes},
	{CONTEXT, "pipeline_stages", "int", NULL, pipeline_stages},
	{CONTEXT, "pipeline_config", "dict", is_staged, pipeline_config,
		"pipeline_interleave pipeline_scheduler"},
	{CONTEXT, "pipeline_result_broadcast", "bool", broadcasts, yes},
	{CONTEXT, "comm_fusion", "dict", trains, comm_fusion,
		"openstate allreduce allgather reducescatter"},
	{CONTEXT, "all_reduce_fusion_config", "list", fuses_by_index, fusion_index},
	{CONTEXT, "force_fp32_communication", "bool", NULL, force_fp32},
	{CONTEXT, "gradients_mean", "bool", NULL, gradients_mean},
	{CONTEXT, "gradient_fp32_sync", "bool", NULL, gradient_fp32_sync},
	{CONTEXT, "loss_repeated_mean", "bool", NULL, loss_repeated_mean},
	{CONTEXT, "enable_alltoall", "bool", NULL, alltoall},
	{CONTEXT, "parameter_broadcast", "bool", broadcasts_parameters, yes, NULL, broadcasts_parameters},
	{CONTEXT, "communi_parallel_mode", "str", has_group_mode, group_mode, NULL, has_group_mode},
	{CONTEXT, "dump_local_norm", "bool", dumps_norms, yes},
	{CONTEXT, "dump_local_norm_path", "str", names_norms, norm_path, NULL, names_idle_norms},
	{CONTEXT, "dump_device_local_norm", "bool", dumps_device_norms, yes},
	{"set_op_strategy_config", "set_op_strategy_config", "kwargs", loads_operators, operators_config,
		"mode path"},
	{"set_context", "ascend_config", "dict", ap_bundle_speeds_up, speed_up_config,
		"parallel_speed_up_json_path"},
};

static bool is_wanted(const struct ap_bundle *b, const struct call *c)
{
	if (!strcmp(c->api, CLASS) && !ap_bundle_way(b)->of_class)
		return false;
	return !c->wanted || c->wanted(b);
}

void ap_bundle_write_settings(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user)
{
	struct ap_jw w;

	(void)ctx;
	ap_jw_init(&w, write, user, 1);
	ap_jw_arr(&w);
	for (size_t i = 0; i < AP_COUNT(calls); i++) {
		if (!is_wanted(b, &calls[i]))
			continue;
		ap_jw_obj_flat(&w);
		ap_jw_kstr(&w, "api", calls[i].api);
		ap_jw_kstr(&w, "name", calls[i].name);
		ap_jw_kstr(&w, "type", calls[i].type);
		ap_jw_key(&w, "value");
		calls[i].value(b, &w);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

size_t ap_bundle_unsaid(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_str *out)
{
	size_t n = 0;

	for (size_t i = 0; i < AP_COUNT(calls) && ap_bundle_way(b)->of_class; i++) {
		struct ap_str value;
		struct ap_jw w;

		if (!calls[i].unsaid || !calls[i].unsaid(b))
			continue;
		ap_str_init(&value, ctx->arena);
		ap_jw_str_init(&w, &value, 0);
		calls[i].value(b, &w);
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
