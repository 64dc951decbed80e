/* SPDX-License-Identifier: Apache-2.0 */
/* A graph being read and checked; shared by the files of graph/. */
#ifndef AP_GRAPH_LOAD_H
#define AP_GRAPH_LOAD_H

#include "base/map.h"
#include "base/vec.h"
#include "graph/cell.h"
#include "graph/graph.h"

#define AP_MAX_ELEMENTS (INT64_C(1) << 53) /* of a tensor: exact as a double */

enum ap_check {
#define CHECK(id, name, level, needs, run, text) AP_CHECK_##id,
#include "graph/checks.def"
#undef CHECK
	AP_CHECK_COUNT
};

struct ap_raw_tensor {
	struct ap_tensor t; /* shape.rank AP_RANK_UNKNOWN, shape.dtype AP_DTYPE_COUNT: unknown */
	const struct ap_jv *at; /* its object; NULL: a result not named in the file */
	struct ap_shape said; /* as declared in the file */
	int64_t batch_dim; /* -1: not given */
	bool sound; /* its declaration has no fault */
};

struct ap_raw_node {
	struct ap_node n; /* bound.row NULL: not bound */
	const char *rows; /* type whose rule it is bound to */
	const struct ap_jv *at;
	uint16_t nin, nout; /* operands given, results declared */
	const char **operand; /* [nin] names */
	uint16_t *slot; /* [nin] position in the file's list, which has null for omitted operands */
	uint16_t nafter; /* results that it runs behind, whether or not it reads them */
	const char **after_name; /* [nafter] */
	ap_id *after; /* [nafter] AP_NONE if unknown */
	ap_id *in, *out; /* in: AP_NONE if unknown; out: bound.nout, before binding nout */
	bool sound;
};

struct ap_raw_cell {
	struct ap_cell c;
	const struct ap_jv *at;
};

struct ap_load {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_graph_params *params;
	enum ap_status status; /* of the first finding that prevents a graph */
	uint64_t failed; /* mask of checks with findings */
	uint32_t found; /* findings so far */
	bool incomplete; /* a tensor may be missing because it could not be read */
	/* tensors and nodes are in scratch until the graph is finished */
	AP_VEC(struct ap_raw_tensor) tensors;
	AP_VEC(struct ap_raw_node) nodes;
	AP_VEC(const struct ap_jv *) outputs; /* strings */
	AP_VEC(struct ap_raw_cell) cells;
	struct ap_map *names; /* of tensors */
	struct ap_map *bound_ids; /* bound operators, by all that determines a binding */
	AP_VEC(struct ap_bound) bounds; /* by bound_ids */
	ap_id *by_name; /* by id of names: the first tensor of the name */
	ap_id *order; /* nodes in topological order, the file's where it is one until all are bound, then
			graph/canonical.h; NULL if there is a cycle */
	ap_id *leaves; /* [nleaf] tensors that no node produces, graph/canonical.h */
	uint32_t nleaf;
	const char *name, *optimizer;
	int64_t batch;
};

/* Reports a finding at `at` (NULL: the document) about operator oper (NULL: none). */
void ap_load_say(struct ap_load *l, enum ap_check c, const struct ap_jv *at, const char *oper,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Records the status of a call that reports by itself; true if AP_OK. */
bool ap_load_ok(struct ap_load *l, enum ap_status st);

/* A name from the file, safe to print. */
const char *ap_load_name(struct ap_load *l, const char *raw);

/* The check of a name from ap_rule_bind(). */
enum ap_check ap_check_find(const char *name);

/* The tensor of a name; AP_NONE if there is none. */
ap_id ap_load_tensor(const struct ap_load *l, const char *name);

/* Element i of an array, or NULL. O(i). */
const struct ap_jv *ap_load_element(const struct ap_jv *array, size_t i);

/* Name of check i, for the man page and a test of bad files; NULL past the end. *text: one line
 * about it. */
const char *ap_graph_check_at(size_t i, const char **text);

#endif
