/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors and operators of a model, and how they are written. */
#include "model/model.h"

#include <assert.h>
#include <fnmatch.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/vec.h"

struct tensor {
	const char *name;
	enum { INPUT, PARAM, CONST, RESULT } kind;
	bool learned;
	struct ap_shape shape;
};

struct node {
	struct ap_model_op op;
	const char *name;
	ap_id first; /* id of the first result */
	ap_id after; /* tensor that it runs behind; AP_NONE */
};

struct ap_model {
	struct ap_arena *arena;
	const char *name, *optimizer, *prefix;
	bool fused;
	struct ap_map *names; /* of tensors; their ids are the tensors' ids */
	struct ap_map *kinds; /* "SCOPE/TYPE" */
	AP_VEC(uint32_t) numbers; /* [kinds] number of operators so far */
	AP_VEC(struct tensor) tensor;
	AP_VEC(struct node) node;
	AP_VEC(const char *) recomputed; /* cells */
	ap_id output; /* AP_NONE: the last tensor */
};

struct ap_model *ap_model_create(struct ap_arena *arena, const char *name, const char *optimizer)
{
	struct ap_model *m = AP_NEW(arena, struct ap_model);

	m->arena = arena;
	m->name = name;
	m->optimizer = optimizer;
	m->prefix = "";
	m->output = AP_NONE;
	m->names = ap_map_create(arena);
	m->kinds = ap_map_create(arena);
	return m;
}

struct ap_arena *ap_model_arena(struct ap_model *m)
{
	return m->arena;
}

void ap_model_fuse(struct ap_model *m)
{
	m->fused = true;
}

bool ap_model_is_fused(const struct ap_model *m)
{
	return m->fused;
}

void ap_model_recompute(struct ap_model *m, const char *cell)
{
	AP_PUSH(m->arena, m->recomputed, cell);
}

void ap_model_prefix(struct ap_model *m, const char *prefix)
{
	m->prefix = prefix;
}

static ap_id add_tensor(struct ap_model *m, const char *name, int kind, struct ap_shape shape)
{
	struct tensor t = {.name = name, .kind = kind, .learned = kind == PARAM, .shape = shape};
	bool fresh;
	ap_id id = ap_map_put_str(m->names, name, &fresh);

	assert(fresh && id == m->tensor.n);
	AP_PUSH(m->arena, m->tensor, t);
	return id;
}

ap_id ap_model_input(struct ap_model *m, const char *name, struct ap_shape shape)
{
	return add_tensor(m, name, INPUT, shape);
}

ap_id ap_model_param(struct ap_model *m, const char *name, struct ap_shape shape)
{
	return add_tensor(m, name, PARAM, shape);
}

ap_id ap_model_state(struct ap_model *m, const char *name, struct ap_shape shape)
{
	ap_id id = add_tensor(m, name, PARAM, shape);

	m->tensor.v[id].learned = false;
	return id;
}

ap_id ap_model_const(struct ap_model *m, const char *name, struct ap_shape shape)
{
	return add_tensor(m, name, CONST, shape);
}

ap_id ap_model_number(struct ap_model *m, const char *name, enum ap_dtype dtype)
{
	ap_id id = ap_map_get_str(m->names, name);

	if (id == AP_NONE)
		return ap_model_const(m, name, ap_model_scalar(dtype));
	assert(m->tensor.v[id].kind == CONST && m->tensor.v[id].shape.dtype == dtype);
	return id;
}

ap_id ap_model_find(const struct ap_model *m, const char *name)
{
	ap_id id = ap_map_get_str(m->names, name);

	assert(id != AP_NONE);
	return id;
}

struct ap_shape ap_model_shape(const struct ap_model *m, ap_id tensor)
{
	assert(tensor < m->tensor.n);
	return m->tensor.v[tensor].shape;
}

double ap_model_bytes(const struct ap_model *m)
{
	uint32_t *readers = AP_NEW_N(m->arena, uint32_t, m->tensor.n);
	double sum = 0;

	for (size_t i = 0; i < m->node.n; i++)
		for (uint32_t k = 0; k < m->node.v[i].op.nin; k++)
			if (m->node.v[i].op.in[k] != AP_NONE)
				readers[m->node.v[i].op.in[k]]++;
	for (size_t t = 0; t < m->tensor.n; t++) {
		const struct ap_shape *s = &m->tensor.v[t].shape;
		double bytes = (double)ap_dtype_bytes(s->dtype) * (1 + readers[t]);

		for (int i = 0; i < s->rank; i++)
			bytes *= (double)s->dim[i];
		sum += bytes;
	}
	return sum;
}

int64_t ap_model_parameters(const struct ap_model *m)
{
	int64_t sum = 0;

	for (size_t t = 0; t < m->tensor.n; t++) {
		const struct ap_shape *s = &m->tensor.v[t].shape;
		int64_t elements = 1;

		for (int i = 0; i < s->rank; i++)
			elements *= s->dim[i];
		sum += m->tensor.v[t].learned ? elements : 0;
	}
	return sum;
}

uint32_t ap_model_operators(const struct ap_model *m)
{
	return (uint32_t)m->node.n;
}

const char *ap_model_scope(struct ap_model *m, const char *scope, const char *cell)
{
	return ap_arena_printf(m->arena, "%s/%s", scope, cell);
}

const char *ap_model_name(struct ap_model *m, const char *prefix, const char *name)
{
	return ap_arena_printf(m->arena, "%s.%s", prefix, name);
}

/* MindSpore numbers the operators of one type within their scope. */
static const char *full_name(struct ap_model *m, const struct ap_model_op *op)
{
	const char *kind = ap_model_scope(m, op->scope, op->type);
	ap_id id = ap_map_put_str(m->kinds, kind, NULL);

	if (id == m->numbers.n)
		AP_PUSH(m->arena, m->numbers, 0);
	return ap_arena_printf(m->arena, "%s-op%u", kind, (unsigned)m->numbers.v[id]++);
}

ap_id ap_model_op(struct ap_model *m, const struct ap_model_op *op)
{
	struct node n = {*op, full_name(m, op), (ap_id)m->tensor.n, AP_NONE};

	assert(op->nin && op->nout);
	for (uint32_t i = 0; i < op->nin; i++)
		assert(op->in[i] < m->tensor.n || op->in[i] == AP_NONE);
	AP_PUSH(m->arena, m->node, n);
	for (uint32_t i = 0; i < op->nout; i++)
		add_tensor(m, ap_arena_printf(m->arena, "%s%s", m->prefix, op->out[i].name),
			RESULT, op->out[i].shape);
	return n.first;
}

void ap_model_run_behind(struct ap_model *m, uint32_t node, ap_id tensor)
{
	assert(node < m->node.n && tensor < m->tensor.n);
	m->node.v[node].after = tensor;
}

ap_id ap_model_op_one(struct ap_model *m, struct ap_model_op op, const char *name, struct ap_shape shape)
{
	op.nout = 1;
	op.out[0].name = name;
	op.out[0].shape = shape;
	return ap_model_op(m, &op);
}

struct ap_shape ap_model_shape_of(enum ap_dtype dtype, size_t rank, const int64_t *dim)
{
	struct ap_shape s = {.rank = (uint8_t)rank, .dtype = dtype};

	assert(rank <= AP_MAX_RANK);
	if (rank)
		memcpy(s.dim, dim, rank * sizeof *dim);
	return s;
}

struct ap_shape ap_model_scalar(enum ap_dtype dtype)
{
	return ap_model_shape_of(dtype, 0, NULL);
}

static ap_id output_of(const struct ap_model *m)
{
	return m->output == AP_NONE ? (ap_id)m->tensor.n - 1 : m->output;
}

uint32_t ap_model_freeze(struct ap_model *m, const char *pattern)
{
	uint32_t n = 0;

	for (size_t t = 0; t < m->tensor.n; t++)
		if (m->tensor.v[t].learned && fnmatch(pattern, m->tensor.v[t].name, 0) == 0) {
			m->tensor.v[t].learned = false;
			n++;
		}
	return n;
}

/* "PREFIX" of the parameter "PREFIX.weight" by which a node multiplies rows; NULL: it does nothing like
 * that. */
static const char *matrix_of(const struct ap_model *m, const struct node *n)
{
	static const char end[] = ".weight";
	const struct tensor *w = n->op.nin == 2 ? &m->tensor.v[n->op.in[1]] : NULL;
	size_t len = w ? strlen(w->name) : 0;

	if (strcmp(n->op.type, "MatMul") != 0 || !w || w->kind != PARAM || len < sizeof end ||
		strcmp(w->name + len + 1 - sizeof end, end) != 0)
		return NULL;
	return ap_arena_strndup(m->arena, w->name, len + 1 - sizeof end);
}

static const char *last_part(const char *prefix)
{
	const char *dot = strrchr(prefix, '.');

	return dot ? dot + 1 : prefix;
}

static bool is_target(const char *part, const char *target)
{
	size_t len = strlen(target);

	return !strncmp(part, target, len) && (!part[len] || !strcmp(part + len, "_proj"));
}

bool ap_model_has_target(const struct ap_model *m, const char *target)
{
	for (size_t i = 0; i < m->node.n; i++) {
		const char *prefix = matrix_of(m, &m->node.v[i]);

		if (prefix && is_target(last_part(prefix), target))
			return true;
	}
	return false;
}

const char *ap_model_targets(struct ap_model *m)
{
	struct ap_map *seen = ap_map_create(m->arena);
	const char *all = "";

	for (size_t i = 0; i < m->node.n; i++) {
		const char *prefix = matrix_of(m, &m->node.v[i]);
		bool fresh = false;

		if (prefix)
			ap_map_put_str(seen, last_part(prefix), &fresh);
		if (fresh)
			all = ap_arena_printf(m->arena, "%s%s%s", all, *all ? ", " : "", last_part(prefix));
	}
	return all;
}

/* Adds the adapter of a product; returns the sum. */
static ap_id adapt(struct ap_model *m, const struct node *n, const char *prefix, int64_t rank)
{
	const struct ap_shape x = m->tensor.v[n->op.in[0]].shape, y = m->tensor.v[n->first].shape;
	const char *name = m->tensor.v[n->first].name;
	ap_id a = ap_model_param(m, ap_model_name(m, prefix, "lora_A.weight"),
		AP_MODEL_SHAPE(y.dtype, rank, x.dim[1]));
	ap_id b = ap_model_param(m, ap_model_name(m, prefix, "lora_B.weight"),
		AP_MODEL_SHAPE(y.dtype, y.dim[1], rank));
	struct ap_model_op product = {.scope = ap_model_scope(m, n->op.scope, "lora_A-Linear"),
		.type = "MatMul",
		.nin = 2, .in = {n->op.in[0], a}, .nattr = 1, .attr = {AP_MODEL_FLAG("transpose_b", true)}};
	struct ap_model_op sum = {.scope = n->op.scope, .nin = 2};
	ap_id few = ap_model_op_one(m, product, ap_model_name(m, name, "lora_a"),
		AP_MODEL_SHAPE(y.dtype, x.dim[0], rank));

	product.scope = ap_model_scope(m, n->op.scope, "lora_B-Linear");
	product.in[0] = few;
	product.in[1] = b;
	sum.type = "Mul";
	sum.in[0] = ap_model_op_one(m, product, ap_model_name(m, name, "lora_b"), y);
	sum.in[1] = ap_model_number(m, "lora_scale", y.dtype);
	sum.in[1] = ap_model_op_one(m, sum, ap_model_name(m, name, "lora"), y);
	sum.type = "Add";
	sum.in[0] = n->first;
	return ap_model_op_one(m, sum, ap_model_name(m, name, "adapted"), y);
}

uint32_t ap_model_adapt(struct ap_model *m, int64_t rank, const char *const *targets, size_t ntarget)
{
	struct node *old = m->node.v;
	size_t n = m->node.n, before = m->tensor.n;
	ap_id *now = AP_NEW_N(m->arena, ap_id, before);
	uint32_t adapted = 0;

	m->output = output_of(m);
	m->prefix = "";
	ap_model_freeze(m, "*");
	m->node.v = NULL;
	m->node.n = m->node.cap = 0;
	for (size_t t = 0; t < before; t++)
		now[t] = (ap_id)t;
	for (size_t i = 0; i < n; i++) {
		const char *prefix = matrix_of(m, &old[i]);
		bool is = false;

		for (uint32_t k = 0; k < old[i].op.nin; k++)
			if (old[i].op.in[k] != AP_NONE)
				old[i].op.in[k] = now[old[i].op.in[k]];
		if (old[i].after != AP_NONE)
			old[i].after = now[old[i].after];
		AP_PUSH(m->arena, m->node, old[i]);
		for (size_t k = 0; prefix && k < ntarget; k++)
			is |= is_target(last_part(prefix), targets[k]);
		if (!is)
			continue;
		now[old[i].first] = adapt(m, &old[i], prefix, rank);
		adapted++;
	}
	return adapted;
}

static void write_tensor(struct ap_jw *w, const struct tensor *t)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", t->name);
	ap_jw_kints(w, "shape", t->shape.dim, t->shape.rank);
	ap_jw_kstr(w, "dtype", ap_dtype_name(t->shape.dtype));
	if (t->kind == INPUT)
		ap_jw_kint(w, "batch_dim", 0);
	if (t->kind == PARAM && !t->learned)
		ap_jw_kbool(w, "trainable", false);
	ap_jw_end(w);
}

static void write_tensors(struct ap_jw *w, const struct ap_model *m, const char *key, int kind)
{
	ap_jw_key(w, key);
	ap_jw_arr(w);
	for (size_t t = 0; t < m->tensor.n; t++)
		if ((int)m->tensor.v[t].kind == kind)
			write_tensor(w, &m->tensor.v[t]);
	ap_jw_end(w);
}

static void write_attr(struct ap_jw *w, const struct ap_attr *a)
{
	ap_jw_key(w, a->name);
	switch (a->type) {
	case AP_ATTR_INT:
		ap_jw_int(w, a->i);
		break;
	case AP_ATTR_FLOAT:
		ap_jw_num(w, a->f);
		break;
	case AP_ATTR_BOOL:
		ap_jw_bool(w, a->i);
		break;
	case AP_ATTR_STRING:
		ap_jw_str(w, a->s);
		break;
	case AP_ATTR_INTS:
	case AP_ATTR_PAIR:
		ap_jw_ints(w, a->list, a->n);
		break;
	case AP_ATTR_ANY:
		ap_jw_null(w);
		break;
	}
}

static void write_attrs(struct ap_jw *w, const struct ap_model_op *op)
{
	if (!op->nattr)
		return;
	ap_jw_key(w, "attrs");
	ap_jw_obj_flat(w);
	for (uint32_t i = 0; i < op->nattr; i++)
		write_attr(w, &op->attr[i]);
	ap_jw_end(w);
}

static void write_node(struct ap_jw *w, const struct ap_model *m, const struct node *n)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", n->name);
	ap_jw_kstr(w, "type", n->op.type);
	ap_jw_key(w, "inputs");
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < n->op.nin; i++) {
		if (n->op.in[i] == AP_NONE)
			ap_jw_null(w);
		else
			ap_jw_str(w, m->tensor.v[n->op.in[i]].name);
	}
	ap_jw_end(w);
	ap_jw_key(w, "outputs");
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < n->op.nout; i++)
		write_tensor(w, &m->tensor.v[n->first + i]);
	ap_jw_end(w);
	write_attrs(w, &n->op);
	if (n->after != AP_NONE) {
		ap_jw_key(w, "after");
		ap_jw_arr_flat(w);
		ap_jw_str(w, m->tensor.v[n->after].name);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_cells(struct ap_jw *w, const struct ap_model *m)
{
	if (!m->recomputed.n)
		return;
	ap_jw_key(w, "cells");
	ap_jw_arr(w);
	for (size_t i = 0; i < m->recomputed.n; i++) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "name", m->recomputed.v[i]);
		ap_jw_kbool(w, "recompute", true);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

void ap_model_write(const struct ap_model *m, ap_write_fn *write, void *user)
{
	struct ap_jw w;

	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-graph/1");
	ap_jw_kstr(&w, "name", m->name);
	ap_jw_kstr(&w, "optimizer", m->optimizer);
	write_tensors(&w, m, "inputs", INPUT);
	write_tensors(&w, m, "parameters", PARAM);
	write_tensors(&w, m, "constants", CONST);
	write_cells(&w, m);
	ap_jw_key(&w, "operators");
	ap_jw_arr(&w);
	for (size_t i = 0; i < m->node.n; i++)
		write_node(&w, m, &m->node.v[i]);
	ap_jw_end(&w);
	ap_jw_key(&w, "outputs");
	ap_jw_arr_flat(&w);
	ap_jw_str(&w, m->tensor.v[output_of(m)].name);
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
