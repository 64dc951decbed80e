/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy checkpoint (formats section 1) as data: one pipeline stage, or all stages merged. */
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
	struct ap_ckpt_vec tensor_shape; /* n == 0: unknown (not stored in protobuf) */
	bool has_shape;
};

struct ap_ckpt {
	const char *file; /* for messages; NULL if not read from a file */
	uint32_t current_stage; /* a count of saves, not a pipeline stage */
	uint32_t nitem;
	const struct ap_ckpt_item *item; /* sorted by node_name, bytewise, then stage */
	uint32_t nlayout;
	const struct ap_ckpt_layout *layout; /* sorted by param_name, bytewise */
};

/* Sorts items by name and stage, layouts by name; comparison functions for qsort. */
int ap_ckpt_compare_items(const void *a, const void *b);
int ap_ckpt_compare_layouts(const void *a, const void *b);
void ap_ckpt_sort(struct ap_ctx *ctx, struct ap_ckpt *c);

/* Reports about the file, and about an operator unless NULL; returns AP_MEANING for an error, else
 * AP_OK. */
enum ap_status ap_ckpt_report(struct ap_ctx *ctx, const struct ap_ckpt *c, enum ap_level level,
	const char *oper, const char *check, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

bool ap_ckpt_vec_equal(const struct ap_ckpt_vec *a, const struct ap_ckpt_vec *b);

/* Dimensions that a layout's map covers; parts of dimension d. */
uint32_t ap_ckpt_rank(const struct ap_ckpt_layout *l);
int64_t ap_ckpt_parts(const struct ap_ckpt_layout *l, uint32_t d);

/* Prefix i of names of states that MindSpore clones from a parameter ("moments"); NULL past the
 * end. The parameter in a state's name; NULL if the prefix differs. */
const char *ap_ckpt_state_prefix(size_t i, char buf[32]);
const char *ap_ckpt_state_source(const char *name, const char *prefix);

/* The stage in a name of a merged file, "0-net.fc1.weight" (false if there is none), and the name
 * after it. */
bool ap_ckpt_name_stage(const char *param_name, uint32_t *stage);
const char *ap_ckpt_bare_name(const char *param_name);

bool ap_ckpt_is_merged(const struct ap_ckpt *c);

/* Stages that occur in a file, ascending, in scratch; returns their number. */
uint32_t ap_ckpt_stages(struct ap_ctx *ctx, const struct ap_ckpt *c, const uint32_t **out);

/* Joins unmerged files of stages 0 to n - 1, in this order. */
void ap_ckpt_join(struct ap_ctx *ctx, uint32_t n, const struct ap_ckpt *stage, struct ap_ckpt *out);

/* Merges stage files as merge_pipeline_strategys() does: items of all stages, layout names prefixed
 * by stage ("1-net.w"). Equal files of a stage count once, as each rank may have written its own.
 * Returns AP_MEANING if two files of a stage differ, one is merged or empty, or stages are not 0 to
 * n - 1. */
enum ap_status ap_ckpt_merge(struct ap_ctx *ctx, uint32_t n, const struct ap_ckpt *part,
	struct ap_ckpt *out);

/* Splits a merged file into [*n] stage files. Returns AP_MEANING if stages are not 0 to n - 1, or
 * one is empty. */
enum ap_status ap_ckpt_split(struct ap_ctx *ctx, const struct ap_ckpt *merged, uint32_t *n,
	struct ap_ckpt **out);

#endif
