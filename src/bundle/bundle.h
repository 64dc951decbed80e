/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bundle: a folder with all that an executor needs to run a plan. Each file is a row of a
 * table; the command line writes them, and beside them checkpoints of pipeline stages
 * (stages/stage_0.ckpt).
 */
#ifndef AP_BUNDLE_BUNDLE_H
#define AP_BUNDLE_BUNDLE_H

#include "ckpt/op_template.h"
#include "drive/expert.h"

struct ap_bundle_part { /* a file as written */
	const char *name; /* in the folder: "stages/stage_0.ckpt" */
	int64_t bytes;
	const char *sha256;
};

/* Switches of computation and communication, which transformer_opt() and ascend_config read from
 * their own file, one row each: SWITCH(name, is it a number? else true or false). */
#define AP_SPEED_UPS(SWITCH) \
	SWITCH(recomputation_communication_overlap, false) \
	SWITCH(grad_matmul_communication_overlap, false) \
	SWITCH(grad_fa_allgather_overlap, false) \
	SWITCH(enable_communication_fusion, false) \
	SWITCH(grad_computation_allreduce_overlap, false) \
	SWITCH(computation_allgather_overlap, false) \
	SWITCH(computation_communication_fusion_level, true) \
	SWITCH(dataset_broadcast_opt_level, true) \
	SWITCH(allreduce_and_biasadd_swap, false) \
	SWITCH(enable_allreduce_slice_to_reducescatter, false) \
	SWITCH(enable_interleave_split_concat_branch, false) \
	SWITCH(enable_interleave_parallel_branch, false)
enum ap_speed_up {
#define SWITCH(name, is_number) AP_SPEED_UP_##name,
	AP_SPEED_UPS(SWITCH)
#undef SWITCH
	AP_SPEED_UP_COUNT
};

enum ap_bundle_mode { /* the source of the strategies */
	AP_BUNDLE_ROUTE, /* the plan's route */
	AP_BUNDLE_SEMI_AUTO,
	AP_BUNDLE_DATA_PARALLEL,
	AP_BUNDLE_HYBRID_PARALLEL,
	AP_BUNDLE_STAND_ALONE
};

struct ap_bundle_asked { /* requests that no plan depends on; all 0: none */
	enum ap_bundle_mode mode;
	const struct ap_route *route; /* used if the plan has none; NULL: row 0 */
	bool broadcasts_result, broadcasts_parameters, sums_loss, dumps_norms, dumps_device_norms;
	const char *norm_path; /* may be NULL */
	const char *group_mode; /* communi_parallel_mode; NULL: all groups at once */
	int64_t interleave_num; /* copies of the batch; 0 or 1: none */
	double scale_sense; /* 0 or 1: not scaled */
	int64_t speed_up[AP_SPEED_UP_COUNT]; /* 0: off */
};

enum ap_language { /* a framework that is told degrees of parallelism, and nothing else of a plan */
	AP_LANGUAGE_MINDFORMERS,
	AP_LANGUAGE_MEGATRON,
	AP_LANGUAGE_MINDSPEED,
	AP_LANGUAGE_TORCHTITAN,
	AP_LANGUAGE_DEEPSPEED, /* of plans for generic, too, as far as a configuration goes */
	AP_LANGUAGES
};

enum ap_unsaid_kind {
	AP_UNSAID_STOPS, /* the framework would not start so: there is no file */
	AP_UNSAID_LEFT, /* the file lacks it */
	AP_UNSAID_OTHERWISE /* the framework runs it only as the file says, which is not the plan's way */
};

struct ap_said { /* a plan in the words of one of them; all 0: its words are not asked for */
	const char *framework; /* "Megatron-LM" */
	const char *text; /* NULL: it would not start */
	const char *python; /* of torchtitan and DeepSpeed: what no flag or key says; NULL: nothing */
	const char *script; /* of DeepSpeed, whose text is a configuration; NULL: none */
	uint32_t nunsaid;
	const struct ap_unsaid {
		enum ap_unsaid_kind kind;
		const char *what;
	} *unsaid; /* [nunsaid] what it cannot be told */
};

/* A decoder as Megatron's arguments describe it. */
struct ap_bundle_network {
	uint32_t n;
	const char *const *word; /* [n] an argument with its values: "--num-layers 32" */
	int64_t layers, further; /* further: behind the others, which predict tokens behind the next */
	bool read; /* out of the graph */
	const char *missing; /* "the activation": what the graph does not tell; NULL: nothing */
};

struct ap_bundle { /* the source of all files */
	const struct ap_plan *plan;
	const struct ap_op_template *op_template; /* NULL: not given */
	const struct ap_expert *expert;
	bool frozen; /* checkpoints hold frozen parameters too */
	int64_t global_rank; /* of the group file */
	struct ap_bundle_asked asked;
	const struct ap_bundle_network *network; /* NULL: not known, as of a graph's file */
	struct ap_said said[AP_LANGUAGES]; /* by ap_bundle_say() */
	uint32_t npart; /* files already written, which the manifest lists */
	const struct ap_bundle_part *part;
};

struct ap_bundle_file {
	const char *name; /* in the folder: "settings.json" */
	const char *text; /* one line: its purpose */
	bool (*wanted)(const struct ap_bundle *b); /* NULL: always */
	void (*write)(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user);
};

/* Says the plan to the frameworks that the bundle has files for, before these are written. O(operators). */
void ap_bundle_say(struct ap_ctx *ctx, struct ap_bundle *b);

/* The framework that runs the plan; AP_LANGUAGES: none of them. */
enum ap_language ap_bundle_language(const struct ap_bundle *b);

/* File i, in the order of writing; NULL past the end. */
const struct ap_bundle_file *ap_bundle_file_at(size_t i);

/*
 * The manifest, which is written after all other files: a folder without it, or with files of other
 * sizes or hashes, is not a complete bundle. Names are of files in the folder, each once.
 */
#define AP_BUNDLE_MANIFEST "manifest.json"
#define AP_BUNDLE_PLAN "plan.json" /* has its hash separately */
struct ap_bundle_manifest {
	uint32_t npart;
	const struct ap_bundle_part *part;
};
enum ap_status ap_bundle_manifest_read(struct ap_ctx *ctx, const struct ap_json *doc,
	struct ap_bundle_manifest *out);

#define AP_BUNDLE_LOCK ".autopar-plan.lock" /* in the folder during a run */

#define AP_BUNDLE_CACHE "__pycache__" /* Python's cache of apply_plan.py */

#define AP_BUNDLE_STAGES "stages" /* subfolder of stage files */

/* A file of every bundle, and its first text: they identify a folder that holds a bundle. */
#define AP_BUNDLE_README "README.txt"
#define AP_BUNDLE_MARK "A bundle of autopar-plan"

#endif
