/* SPDX-License-Identifier: Apache-2.0 */
/* A text dump of MindSpore's intermediate representation: sub-graphs of nodes with operands,
 * attributes, types and lines. Only the grammar is checked. */
#ifndef AP_IMPORT_IR_H
#define AP_IMPORT_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "rule/rule.h"

enum ap_ir_kind {
	AP_IR_NONE,
	AP_IR_BOOL,
	AP_IR_INT,
	AP_IR_FLOAT,
	AP_IR_WORD, /* a string, quoted or bare, or an element type */
	AP_IR_LIST, /* tuple or list */
	AP_IR_TENSOR, /* a constant tensor */
	AP_IR_MONAD,
	AP_IR_OTHER, /* a dictionary, a Python object, .. */
	AP_IR_FUNC, /* @sub-graph */
	AP_IR_NODE, /* %3 */
	AP_IR_PARAM, /* %para3_name */
	AP_IR_FREE /* $(@sub-graph:para3_name), $(@sub-graph:label) */
};

#define AP_IR_MOST_PARTS (1 << 20) /* of a tuple, nested ones included */
#define AP_IR_MOST_NESTED 64 /* lists and tuples */

struct ap_ir_value {
	enum ap_ir_kind kind;
	uint8_t depth; /* LIST: nesting, 1 for a flat list; else 0 */
	uint32_t n; /* of v */
	uint32_t size; /* LIST: all nested parts and itself, capped at AP_IR_MOST_PARTS + 1; else 1 */
	int64_t i; /* BOOL, INT, NODE */
	double f; /* FLOAT, INT */
	const char *s; /* WORD, OTHER; TENSOR and scalars: the text; FUNC, PARAM, FREE: the name */
	const char *of; /* FREE: the sub-graph; TENSOR, INT, FLOAT: the element type, "": unknown */
	const struct ap_ir_value *v; /* LIST: elements; TENSOR: lengths */
};

enum ap_ir_form {
	AP_IR_TYPE_NULL, /* <null>: written before type inference */
	AP_IR_TYPE_TENSOR,
	AP_IR_TYPE_TUPLE,
	AP_IR_TYPE_OTHER /* scalars, monads, functions */
};

struct ap_ir_type {
	enum ap_ir_form form;
	bool ref; /* a parameter itself */
	bool monad; /* orders side effects; no value */
	bool shaped; /* rank and dim are set */
	uint8_t rank; /* above AP_MAX_RANK, only the first lengths are known */
	enum ap_dtype dtype; /* AP_DTYPE_COUNT: unknown */
	const int64_t *dim; /* [rank]; -1, -2: unknown */
	const char *ref_key; /* of a parameter, or NULL */
	uint32_t n; /* parts of a tuple; 0 also if unknown */
	const struct ap_ir_type *v;
};

struct ap_ir_attr {
	const char *key;
	struct ap_ir_value value;
};

struct ap_ir_attrs {
	const struct ap_ir_attr *v;
	uint32_t n;
};

struct ap_ir_node {
	int64_t line;
	int64_t id; /* -1: Return */
	const char *label; /* "": none */
	const char *prim; /* NULL: a call of `callee`; without PrimFunc_ */
	bool listed; /* PrimFunc_: all constants are operands */
	bool typed; /* has a line of types */
	size_t bytes; /* of its text and scope */
	struct ap_ir_value callee; /* FUNC, NODE, PARAM, FREE */
	uint32_t nin;
	const struct ap_ir_value *in;
	const struct ap_ir_type *in_type; /* [nin], if typed */
	struct ap_ir_type out;
	struct ap_ir_attrs prim_attrs, node_attrs, primal_attrs, derived; /* derived: {in_strategy: ..} */
	const char *instance; /* {instance name: ..}; NULL: none */
	const char *scope; /* from the comment; NULL: none */
	bool full; /* scope is a full name */
};

struct ap_ir_param {
	int64_t line;
	const char *name; /* "para3_layer1.weight" */
	struct ap_ir_type type;
	bool has_default;
};

struct ap_ir_func {
	int64_t line, end; /* first and last line */
	const char *name; /* "": nodes outside sub-graphs */
	bool closed; /* has an end */
	size_t bytes; /* of its nodes and parameters */
	uint32_t nparam;
	const char *const *param;
	struct {
		struct ap_ir_node *v;
		size_t n;
	} nodes; /* ids ascend */
};

struct ap_ir {
	const char *file;
	bool headed; /* begins with a dump's header */
	const char *entry; /* NULL: no header */
	int64_t lines; /* of the file */
	size_t bytes; /* of the file */
	int64_t said_funcs, said_nodes; /* from the header; -1: unknown */
	int64_t anew; /* line of a second piece without header, where reading ends; 0: none */
	int64_t gap; /* line where "..." marks an omitted piece; 0: none */
	AP_VEC(struct ap_ir_param) params;
	AP_VEC(struct ap_ir_func) funcs;
};

/* Limits on the bytes made of a dump: calls are expanded, and names repeated. */
enum { AP_IR_SPARE_BYTES = 64 << 20, AP_IR_MOST_COPIES = 256 };

#endif
