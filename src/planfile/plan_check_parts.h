/* SPDX-License-Identifier: Apache-2.0 */
/* A plan file whose form is right, indexed for the rules of plan_rules.def. */
#ifndef AP_PLANFILE_PLAN_CHECK_PARTS_H
#define AP_PLANFILE_PLAN_CHECK_PARTS_H

#include "base/ctx.h"
#include "base/map.h"
#include "base/vec.h"
#include "planfile/plan_check.h"
#include "shard/layout.h"

struct ap_book_list {
	size_t n;
	const int64_t *v;
};

enum ap_book_source { AP_BOOK_INPUT, AP_BOOK_RESULT, AP_BOOK_PARAM, AP_BOOK_CONSTANT };

struct ap_book_tensor {
	enum ap_book_source source;
	const struct ap_jv *where; /* that makes it known */
	uint32_t op, result; /* of a result */
	uint32_t param; /* index of a parameter */
	uint32_t nuse; /* by operators */
	bool has_shape; /* a constant has none */
	struct ap_book_list shape;
	int bytes; /* of an element */
	bool has_slice; /* of one micro-batch: what is told of one user holds for the others */
	uint64_t batch; /* dimensions that the micro-batches divide, a bit each */
};

struct ap_book_op {
	const struct ap_jv *v;
	const char *name;
	int64_t stage, segment;
	uint32_t nin, nout;
	const ap_id *in, *out; /* tensors */
	struct ap_book_list dev; /* dev_matrix */
	struct ap_layout *in_layout, *out_layout; /* filled by the rule cuts; rank -1: none, it is at fault */
	uint32_t ncomm;
	const struct ap_jv **comm;
};

struct ap_book {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_jv *root;
	const char *check; /* of the rule that speaks */
	const char *oper; /* the operator that it speaks of; NULL: none */
	uint32_t nfault;
	int64_t devices, nstage, ndev; /* ndev: of a stage */
	int64_t micro_batches, segments;
	bool inference;
	bool recomputes; /* anything */
	bool names_constants; /* plans of before do not */
	uint32_t nop, nmove, nparam;
	struct ap_book_op *op;
	const struct ap_jv **move, **param, **stage;
	struct ap_map *op_names, *tensor_names; /* ids are indices */
	AP_VEC(struct ap_book_tensor) tensor;
};

/* A fault at v. */
void ap_book_fault(struct ap_book *b, const struct ap_jv *v, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Members of an object, whose form is right. */
const struct ap_jv *ap_book_at(const struct ap_jv *obj, const char *key); /* NULL: left out, or null */
int64_t ap_book_int(const struct ap_book *b, const struct ap_jv *obj, const char *key);
double ap_book_num(const struct ap_jv *obj, const char *key);
const char *ap_book_str(const struct ap_jv *obj, const char *key);
bool ap_book_bool(const struct ap_jv *obj, const char *key); /* false: left out */
int64_t ap_book_whole(const struct ap_book *b, const struct ap_jv *v); /* of an integer */
struct ap_book_list ap_book_list(struct ap_book *b, const struct ap_jv *list); /* kept in scratch */

/* Equal but for the last digits of sums that are added up in another order. */
bool ap_book_near(double a, double b);

/* The member key of obj is this. */
void ap_book_want_int(struct ap_book *b, const struct ap_jv *obj, const char *key, int64_t want,
	const char *why);
void ap_book_want_num(struct ap_book *b, const struct ap_jv *obj, const char *key, double want,
	const char *why);
void ap_book_want_near(struct ap_book *b, const struct ap_jv *obj, const char *key, double want,
	const char *why);
void ap_book_want_str(struct ap_book *b, const struct ap_jv *obj, const char *key, const char *want,
	const char *why);

/* Axes and ranks of a group within count ranks from first on: axes nest, ranks follow from them. *out (may
 * be NULL): the axes. False where they are at fault. */
bool ap_book_group(struct ap_book *b, const struct ap_jv *obj, int64_t first, int64_t count,
	struct ap_axes *out);

#define RULE(name, check, base) void ap_plan_rule_##name(struct ap_book *b);
#include "planfile/plan_rules.def"
#undef RULE

#endif
