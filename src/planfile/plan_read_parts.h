/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a plan file, part by part. Private to planfile/plan_read*.c. */
#ifndef AP_PLANFILE_PLAN_READ_PARTS_H
#define AP_PLANFILE_PLAN_READ_PARTS_H

#include "base/map.h"
#include "base/vec.h"
#include "planfile/plan_read.h"

struct ap_plan_reader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	int64_t micro_batches;
	struct ap_map *oper; /* names of operators: ids are their indices */
	AP_VEC(struct ap_saved_fact) facts;
	AP_VEC(struct ap_saved_op) ops;
	AP_VEC(struct ap_saved_param) params;
	AP_VEC(struct ap_saved_move) moves;
};

enum ap_status ap_plan_read_fault(struct ap_plan_reader *r, const struct ap_jv *v, const char *text);

/* AP_MEANING where v is not of this type. */
enum ap_status ap_plan_read_type(struct ap_plan_reader *r, const struct ap_jv *v, enum ap_jtype type);

/* A member that must be there, of this type. */
enum ap_status ap_plan_read_member(struct ap_plan_reader *r, const struct ap_jv *obj, const char *key,
	enum ap_jtype type, const struct ap_jv **out);

/* A value as compact JSON: a plain one, or arrays and objects of such nested at most three deep. */
enum ap_status ap_plan_read_json(struct ap_plan_reader *r, const struct ap_jv *v, const char **out);

/* The lists of a plan, in this order: redistributions name operators. */
enum ap_status ap_plan_read_operators(struct ap_plan_reader *r, const struct ap_jv *root);
enum ap_status ap_plan_read_moves(struct ap_plan_reader *r, const struct ap_jv *root);
enum ap_status ap_plan_read_params(struct ap_plan_reader *r, const struct ap_jv *root);

#endif
