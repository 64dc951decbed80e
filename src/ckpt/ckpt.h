/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy checkpoint (formats section 1) as data, with a reader and a writer per form. */
#ifndef AP_CKPT_CKPT_H
#define AP_CKPT_CKPT_H

#include "plan/plan.h"

struct ap_ckpt_vec {
	uint32_t n;
	const int64_t *v;
};

struct ap_ckpt_item { /* ParallelStrategyItem */
	const char *node_name; /* "MatMul_net.fc1.weight" */
	uint32_t stage;
	uint32_t n;
	const struct ap_ckpt_vec *strategy; /* one per strategy operand */
};

struct ap_ckpt_layout { /* ParallelLayoutItem */
	const char *param_name;
	struct ap_ckpt_vec dev_matrix;
	uint32_t nmap; /* TensorMap messages: 1, or one per dimension for nested maps */
	const struct ap_ckpt_vec *tensor_map;
	struct ap_ckpt_vec param_split_shape, indices_offset; /* normally empty */
	int32_t field, weight_step, weight_size;
	struct ap_ckpt_vec tensor_shape; /* n == 0: unknown (protobuf does not hold it) */
	bool has_shape;
};

struct ap_ckpt {
	const char *file; /* for messages; NULL when it was not read */
	uint32_t current_stage; /* a count of saves, not the pipeline stage */
	uint32_t nitem;
	const struct ap_ckpt_item *item; /* sorted by node_name, bytewise, then stage */
	uint32_t nlayout;
	const struct ap_ckpt_layout *layout; /* sorted by param_name, bytewise */
};

/* The file of one pipeline stage: items of its operators with a trainable parameter (no Reshape),
 * layouts of all their trainable parameters that the stage owns and of the optimizer's states
 * ("moments.<param>"; accu_grads.<param> with micro-batches or a pipeline). Frozen parameters are left
 * out, as MindSpore 2.x does, unless frozen says that they count like the others. */
void ap_ckpt_of_stage(struct ap_ctx *ctx, const struct ap_plan *p, int32_t stage, bool frozen,
	struct ap_ckpt *out);

/* The file of the whole plan: of several stages it is the merged one. */
void ap_ckpt_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, bool frozen, struct ap_ckpt *out);

/*
 * The merged file of stage files, as merge_pipeline_strategys() writes it: items of all stages, names
 * of layouts behind their stage ("1-net.w"). Files of one stage that say the same count once, for each
 * rank may have written its own. AP_MEANING: two files of one stage differ, one is merged already or
 * empty, the stages are not 0 to n - 1.
 */
enum ap_status ap_ckpt_merge(struct ap_ctx *ctx, uint32_t n, const struct ap_ckpt *part,
	struct ap_ckpt *out);

/* Is it a merged file? */
bool ap_ckpt_is_merged(const struct ap_ckpt *c);

/* The stage files of a merged file, [*n]. AP_MEANING: its stages are not 0 to n - 1, or one is empty. */
enum ap_status ap_ckpt_split(struct ap_ctx *ctx, const struct ap_ckpt *merged, uint32_t *n,
	struct ap_ckpt **out);

/* AP_MEANING when a parameter name holds '-' (MindSpore splits merged names there), or two operators
 * of one key take strategies of different form: to be called before the search when a checkpoint is
 * asked for. */
enum ap_status ap_ckpt_check_names(struct ap_ctx *ctx, const struct ap_graph *g, bool frozen);

void ap_ckpt_write_pb(struct ap_ctx *ctx, const struct ap_ckpt *c, ap_write_fn *write, void *user);
void ap_ckpt_write_json(const struct ap_ckpt *c, ap_write_fn *write, void *user);

/* Reads either form; json: by the ".json" suffix of the file, as MindSpore decides. All checks of
 * reliability.md section 2 F that need no graph; bytes[len] is NUL, file is for messages. */
enum ap_status ap_ckpt_read(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	bool json, struct ap_ckpt *out);

/* A warning (check "ckpt-empty") when no operator is in it: MindSpore refuses such a file. Another one for
 * each operator without vectors, which MindSpore saves where a script gives layouts, and loads there only. */
enum ap_status ap_ckpt_check_empty(struct ap_ctx *ctx, const char *file, const struct ap_ckpt *c);

/* Fills tensor_shape of every layout from a graph (optimizer states by their prefix). AP_MEANING
 * naming the parameters that the graph lacks. */
enum ap_status ap_ckpt_add_shapes(struct ap_ctx *ctx, const struct ap_graph *g,
	struct ap_ckpt *c);

/* Counts per node ([nnode], rows NULL where the checkpoint says nothing) of a checkpoint for a
 * graph on ndev devices a stage. AP_MEANING: keys that match no operator and operators with a parameter
 * that are missing (first 10 named), strategies that are illegal, other device count, stages that are
 * not those of the step's pipeline, an operator in another stage than the graph has it in (where it
 * has one). */
enum ap_status ap_ckpt_counts(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, const int32_t *const **out);

/* Is what the file says of the operators that the graph has too as they can be cut, and do its layouts
 * follow from that? Neither has to be whole, and the number of devices is the file's. */
enum ap_status ap_ckpt_fits(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g);

/* The same of a file that need not be of the whole graph, to start a search from: operators that only
 * one of the two has are warned of, and it is AP_MEANING when they share none. */
enum ap_status ap_ckpt_counts_some(struct ap_ctx *ctx, const struct ap_ckpt *c,
	const struct ap_graph *g, int64_t ndev, const struct ap_step *step,
	const int32_t *const **out);

#endif
