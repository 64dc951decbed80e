/* SPDX-License-Identifier: Apache-2.0 */
#include "import/onnx_val.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "graph/load.h"
#include "rule/bind.h"

struct ap_onnx_val *ap_onnx_val(const struct ap_onnx_walk *w, ap_id id)
{
	assert(id < w->vals.n);
	return &w->vals.v[id];
}

/* The name of a node for messages. */
static const char *node_name(const struct ap_onnx_walk *w)
{
	return *w->node->name ? w->node->name : w->node->nout ? w->node->out[0] : "";
}

enum ap_status ap_onnx_say(struct ap_onnx_walk *w, const char *check, const char *fmt, ...)
{
	const struct ap_where where = {.file = w->model->file, .oper = w->node ? node_name(w) : NULL};
	enum ap_status st;
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(w->ctx->diag, AP_ERROR, AP_MEANING, &where, check, fmt, ap);
	va_end(ap);
	if (w->status == AP_OK)
		w->status = st;
	return st;
}

ap_id ap_onnx_fail(struct ap_onnx_walk *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->failed) {
		const char *why;
		struct ap_str text;

		ap_str_init(&text, w->ctx->arena);
		va_start(ap, fmt);
		ap_str_vaddf(&text, fmt, ap);
		va_end(ap);
		why = text.s;
		if (w->node)
			(void)ap_onnx_say(
				w, "onnx-node", "%s: %s", ap_diag_name(w->ctx->diag, w->node->type), why);
	}
	w->failed = true;
	return AP_NONE;
}

ap_id ap_onnx_add(struct ap_onnx_walk *w, struct ap_onnx_val v)
{
	v.tensor = AP_NONE;
	AP_PUSH(w->ctx->arena, w->vals, v);
	return (ap_id)(w->vals.n - 1);
}

/* A name in the call at work, in scratch. */
static const char *full_name(const struct ap_onnx_walk *w, const char *name)
{
	return *w->prefix ? ap_arena_printf(w->ctx->scratch, "%s%s", w->prefix, name) : name;
}

/* Gives a name to a value. A name that is taken already is a fault. */
void ap_onnx_put(struct ap_onnx_walk *w, const char *name, ap_id id)
{
	struct ap_mark mark = ap_arena_mark(w->ctx->scratch);
	bool fresh;
	ap_id key = ap_map_put_str(w->names, full_name(w, name), &fresh);

	ap_arena_release(w->ctx->scratch, mark);
	if (!fresh && w->named.v[key] != AP_NONE) {
		(void)ap_onnx_say(w, "onnx-names", "the tensor \"%s\" is made twice",
			ap_diag_name(w->ctx->diag, name));
		return;
	}
	if (fresh)
		AP_PUSH(w->ctx->arena, w->named, id);
	else
		w->named.v[key] = id;
	if (id < w->vals.n && !ap_onnx_val(w, id)->name)
		ap_onnx_val(w, id)->name = ap_map_key(w->names, key, NULL);
}

ap_id ap_onnx_find(const struct ap_onnx_walk *w, const char *name)
{
	struct ap_mark mark = ap_arena_mark(w->ctx->scratch);
	ap_id key = ap_map_get_str(w->names, full_name(w, name));

	ap_arena_release(w->ctx->scratch, mark);
	return key == AP_NONE ? AP_NONE : w->named.v[key];
}

ap_id ap_onnx_broken(struct ap_onnx_walk *w)
{
	return ap_onnx_add(w, (struct ap_onnx_val){.kind = AP_ONNX_BROKEN, .base = AP_NONE, .op = AP_NONE,
		.shape = {.rank = AP_RANK_UNKNOWN, .dtype = AP_DTYPE_COUNT}});
}

ap_id ap_onnx_in(struct ap_onnx_walk *w, uint32_t i)
{
	if (i >= w->node->nin || !*w->node->in[i])
		return AP_ONNX_LEFT_OUT;
	return ap_onnx_find(w, w->node->in[i]);
}

void ap_onnx_out(struct ap_onnx_walk *w, uint32_t i, ap_id id)
{
	if (i < w->node->nout && *w->node->out[i])
		ap_onnx_put(w, w->node->out[i], id == AP_NONE ? ap_onnx_broken(w) : id);
}

const struct ap_onnx_attr *ap_onnx_attr(const struct ap_onnx_walk *w, const char *name)
{
	for (uint32_t i = 0; i < w->node->nattr; i++) {
		const struct ap_onnx_attr *a = &w->node->attr[i];

		if (strcmp(a->name, name))
			continue;
		if (!a->of || !*a->of)
			return a;
		for (uint32_t k = 0; k < w->nargs; k++)
			if (!strcmp(w->args[k].name, a->of))
				return &w->args[k];
		return NULL;
	}
	return NULL;
}

int64_t ap_onnx_int(const struct ap_onnx_walk *w, const char *name, int64_t otherwise)
{
	const struct ap_onnx_attr *a = ap_onnx_attr(w, name);

	return a ? a->i : otherwise;
}

double ap_onnx_real(const struct ap_onnx_walk *w, const char *name, double otherwise)
{
	const struct ap_onnx_attr *a = ap_onnx_attr(w, name);

	return a ? a->f : otherwise;
}

const char *ap_onnx_word(const struct ap_onnx_walk *w, const char *name, const char *otherwise)
{
	const struct ap_onnx_attr *a = ap_onnx_attr(w, name);

	return a && a->s ? a->s : otherwise;
}

bool ap_onnx_ints(struct ap_onnx_walk *w, uint32_t i, const char *attr, const int64_t **v, uint32_t *n)
{
	const struct ap_onnx_attr *a = attr ? ap_onnx_attr(w, attr) : NULL;
	ap_id id = ap_onnx_in(w, i);
	const struct ap_onnx_val *val;

	*n = 0;
	if (a) {
		*v = a->ints;
		*n = a->nints;
		return true;
	}
	if (id == AP_ONNX_LEFT_OUT)
		return false;
	val = ap_onnx_val(w, id);
	if (val->kind != AP_ONNX_CONST || !val->values || !val->values->i || val->uniform) {
		(void)ap_onnx_fail(w, "operand %" PRIu32 " (\"%s\") depends on what the network computes; a "
			"constant, or what follows from shapes, is expected", i + 1,
			ap_diag_name(w->ctx->diag, w->node->in[i]));
		return false;
	}
	*v = val->values->i;
	*n = val->values->n;
	return true;
}

ap_id ap_onnx_constant(struct ap_onnx_walk *w, struct ap_shape shape, const struct ap_onnx_numbers *values)
{
	return ap_onnx_add(w, (struct ap_onnx_val){.kind = AP_ONNX_CONST, .shape = shape, .values = values,
		.base = AP_NONE, .op = AP_NONE});
}

static const struct ap_onnx_numbers *one_number(struct ap_onnx_walk *w, enum ap_dtype dtype, double value)
{
	struct ap_onnx_numbers *n = AP_NEW(w->ctx->arena, struct ap_onnx_numbers);
	int64_t i = value > -0x1p62 && value < 0x1p62 ? (int64_t)value : 0;

	n->n = 1;
	if (ap_dtype_is_float(dtype))
		n->f = ap_arena_memdup(w->ctx->arena, &value, sizeof value);
	else
		n->i = ap_arena_memdup(w->ctx->arena, &i, sizeof i);
	return n;
}

ap_id ap_onnx_filled(struct ap_onnx_walk *w, struct ap_shape shape, double value)
{
	ap_id id = ap_onnx_constant(w, shape, one_number(w, shape.dtype, value));

	ap_onnx_val(w, id)->uniform = shape.rank > 0;
	return id;
}

ap_id ap_onnx_scalar(struct ap_onnx_walk *w, enum ap_dtype dtype, double value)
{
	struct {
		double value;
		int64_t dtype;
	} key = {value, dtype};
	bool fresh;
	ap_id id = ap_map_put(w->scalars, &key, sizeof key, &fresh);

	if (fresh) {
		ap_id made = ap_onnx_filled(w, (struct ap_shape){.dtype = dtype}, value);

		ap_onnx_val(w, made)->name = ap_arena_printf(w->ctx->arena, "constant.%" PRIu32, id);
		AP_PUSH(w->ctx->arena, w->scalar_vals, made);
	}
	return w->scalar_vals.v[id];
}

bool ap_onnx_number(const struct ap_onnx_walk *w, ap_id id, double *out)
{
	const struct ap_onnx_val *v;

	if (id >= w->vals.n)
		return false;
	v = ap_onnx_val(w, id);
	if (v->kind != AP_ONNX_CONST || !v->values || v->values->n != 1)
		return false;
	*out = v->values->i ? (double)v->values->i[0] : v->values->f[0];
	return true;
}

bool ap_onnx_is_empty(const struct ap_shape *s)
{
	for (uint8_t i = 0; i < s->rank; i++)
		if (!s->dim[i])
			return true;
	return false;
}

enum ap_dtype ap_onnx_dtype(const struct ap_onnx_walk *w, int64_t type)
{
	static const enum ap_dtype types[] = {AP_DTYPE_COUNT, AP_FLOAT32, AP_UINT8, AP_INT8, AP_UINT16,
		AP_INT16, AP_INT32, AP_INT64, AP_DTYPE_COUNT, AP_BOOL, AP_FLOAT16, AP_FLOAT64, AP_UINT32,
		AP_UINT64, AP_COMPLEX64, AP_COMPLEX128, AP_BFLOAT16, AP_FLOAT8_E4M3FN, AP_DTYPE_COUNT,
		AP_FLOAT8_E5M2, AP_DTYPE_COUNT};
	enum ap_dtype t = type >= 0 && type < (int64_t)AP_COUNT(types) ? types[type] : AP_DTYPE_COUNT;

	if (w->params->dtype != AP_DTYPE_COUNT && (t == AP_FLOAT16 || t == AP_BFLOAT16 || t == AP_FLOAT32))
		return w->params->dtype;
	return t;
}

void ap_onnx_weigh(struct ap_onnx_walk *w, ap_id id)
{
	struct ap_onnx_val *v;

	if (id >= w->vals.n)
		return;
	v = ap_onnx_val(w, id);
	if ((v->kind == AP_ONNX_CONST || v->kind == AP_ONNX_INPUT) && v->tensor == AP_NONE && v->name &&
		ap_dtype_is_float(v->shape.dtype) && v->shape.rank > 0)
		v->kind = AP_ONNX_WEIGHT;
}

struct ap_onnx_made *ap_onnx_maker(const struct ap_onnx_walk *w, ap_id id)
{
	const struct ap_onnx_val *v = id < w->vals.n ? ap_onnx_val(w, id) : NULL;

	return v && v->kind == AP_ONNX_RESULT ? &w->ops.v[v->op] : NULL;
}

/* ---- shapes ---- */

static void key_attr(struct ap_str *key, const struct ap_attr *a)
{
	ap_str_addn(key, a->name, strlen(a->name) + 1);
	if (a->type == AP_ATTR_STRING)
		ap_str_addn(key, a->s, strlen(a->s) + 1);
	else if (a->type == AP_ATTR_INTS)
		ap_str_addn(key, (const char *)a->list, a->n * sizeof *a->list);
	else if (a->type == AP_ATTR_FLOAT)
		ap_str_addn(key, (const char *)&a->f, sizeof a->f);
	else
		ap_str_addn(key, (const char *)&a->i, sizeof a->i);
}

void ap_onnx_drop_unread(struct ap_onnx_walk *w)
{
	uint32_t *uses = AP_NEW_N(w->ctx->arena, uint32_t, w->vals.n + 1);
	bool more = true;

	for (size_t i = 0; i < w->ops.n; i++)
		for (uint32_t k = 0; !w->ops.v[i].gone && k < w->ops.v[i].nin; k++)
			if (w->ops.v[i].in[k] != AP_NONE)
				uses[w->ops.v[i].in[k]]++;
	for (size_t i = 0; i < w->outputs.n; i++)
		uses[w->outputs.v[i]]++;
	while (more) { /* nearly all in one pass, as readers come behind */
		more = false;
		for (size_t i = w->ops.n; i-- > 0;) {
			struct ap_onnx_made *op = &w->ops.v[i];
			uint32_t read = 0;

			for (uint32_t k = 0; k < op->nout; k++)
				read += uses[op->out + k];
			if (op->gone || read)
				continue;
			op->gone = more = true;
			for (uint32_t k = 0; k < op->nin; k++)
				if (op->in[k] != AP_NONE)
					uses[op->in[k]]--;
		}
	}
}

/* Shapes of an operator's results, by its rule: equal operators are bound once. NULL, told if `tells`,
 * where it has none. */
static const struct ap_shape *shapes_of(struct ap_onnx_walk *w, const struct ap_onnx_made *op, bool tells)
{
	struct ap_mark mark = ap_arena_mark(w->ctx->scratch);
	struct ap_shape *in = AP_NEW_N(w->ctx->scratch, struct ap_shape, op->nin + 1);
	uint16_t *slot = AP_NEW_N(w->ctx->scratch, uint16_t, op->nin + 1), n = 0;
	struct ap_bind_in want = {.type = op->type, .attrs = &op->attrs, .nout = (uint16_t)op->nout, .in = in,
		.slot = slot};
	struct ap_bind_fault fault;
	struct ap_bound bound;
	struct ap_str key;
	bool fresh;
	ap_id id;

	ap_str_init(&key, w->ctx->scratch);
	ap_str_addn(&key, op->type, strlen(op->type) + 1);
	ap_str_addn(&key, (const char *)&op->nout, sizeof op->nout);
	for (uint32_t i = 0; i < op->nin; i++) {
		if (op->in[i] == AP_NONE)
			continue;
		in[n] = ap_onnx_val(w, op->in[i])->shape;
		slot[n] = (uint16_t)i;
		ap_str_addc(&key, (char)in[n].rank);
		ap_str_addc(&key, (char)in[n].dtype);
		ap_str_addc(&key, (char)i);
		ap_str_addn(&key, (const char *)in[n].dim, in[n].rank * sizeof *in[n].dim);
		n++;
	}
	want.nin = n;
	for (uint32_t i = 0; i < op->attrs.n; i++)
		key_attr(&key, &op->attrs.v[i]);
	id = ap_map_get(w->bound, key.s, key.len);
	if (id == AP_NONE) {
		if (ap_rule_bind(w->ctx, &want, &bound, &fault) != AP_OK) {
			if (tells)
				(void)ap_onnx_fail(w, "as %s: %s", op->type, fault.text);
			ap_arena_release(w->ctx->scratch, mark);
			return NULL;
		}
		id = ap_map_put(w->bound, key.s, key.len, &fresh);
		AP_PUSH(w->ctx->arena, w->first, (uint32_t)w->shapes.n);
		for (uint32_t k = 0; k < op->nout; k++) {
			struct ap_shape s = {0};
			int64_t count;

			if (k < bound.nout) {
				s.rank = bound.out[k].rank;
				s.dtype = bound.out[k].dtype;
				memcpy(s.dim, bound.out[k].size, sizeof s.dim);
			}
			if (!ap_product(s.dim, s.rank, &count) || count > AP_MAX_ELEMENTS)
				s.rank = AP_RANK_UNKNOWN;
			AP_PUSH(w->ctx->arena, w->shapes, s);
		}
	}
	ap_arena_release(w->ctx->scratch, mark);
	for (uint32_t k = 0; k < op->nout; k++)
		if (w->shapes.v[w->first.v[id] + k].rank == AP_RANK_UNKNOWN) {
			if (tells)
				(void)ap_onnx_fail(w, "a result has more than 2^53 elements");
			return NULL;
		}
	return &w->shapes.v[w->first.v[id]];
}

bool ap_onnx_binds(struct ap_onnx_walk *w, const struct ap_onnx_made *op)
{
	const struct ap_shape *s = &ap_onnx_val(w, op->out)->shape, *made = shapes_of(w, op, false);

	return made && made->rank == s->rank && made->dtype == s->dtype &&
		!memcmp(made->dim, s->dim, s->rank * sizeof *s->dim);
}

ap_id ap_onnx_emit(struct ap_onnx_walk *w, const char *type, uint32_t nin, const ap_id *in, uint32_t nattr,
	const struct ap_attr *attr, uint32_t nout)
{
	struct ap_arena *a = w->ctx->arena;
	struct ap_onnx_made op = {.node = w->node, .type = type, .nin = nin, .nout = nout};
	const struct ap_shape *shapes;
	bool constant = true;
	ap_id first;

	if (w->failed)
		return AP_NONE;
	if (nin > AP_MAX_OPERAND || nout > AP_MAX_OPERAND)
		return ap_onnx_fail(w, "has more than %d operands or results", AP_MAX_OPERAND);
	for (uint32_t i = 0; i < nin; i++) {
		if (in[i] == AP_NONE)
			return ap_onnx_fail(w, "an operand is missing");
		constant &= in[i] == AP_ONNX_LEFT_OUT || ap_onnx_val(w, in[i])->kind == AP_ONNX_CONST;
	}
	while (op.nin && in[op.nin - 1] == AP_ONNX_LEFT_OUT)
		op.nin--;
	op.in = ap_arena_memdup(a, in, op.nin * sizeof *in);
	for (uint32_t i = 0; i < op.nin; i++)
		if (op.in[i] == AP_ONNX_LEFT_OUT)
			op.in[i] = AP_NONE;
		else if (ap_onnx_is_empty(&ap_onnx_val(w, op.in[i])->shape))
			return ap_onnx_fail(w, "operand %" PRIu32 " has no elements", i + 1);
	if (nattr) {
		struct ap_attr *copy = ap_arena_memdup(a, attr, nattr * sizeof *attr);

		for (uint32_t i = 0; i < nattr; i++)
			if (copy[i].type == AP_ATTR_INTS)
				copy[i].list =
					ap_arena_memdup(a, copy[i].list, copy[i].n * sizeof *copy[i].list);
		op.attrs = (struct ap_attrs){nattr, copy};
	}
	shapes = shapes_of(w, &op, true);
	if (!shapes)
		return AP_NONE;
	first = (ap_id)w->vals.n;
	for (uint32_t k = 0; k < nout; k++) {
		struct ap_onnx_val v = {.kind = constant ? AP_ONNX_CONST : AP_ONNX_RESULT, .shape = shapes[k],
			.base = AP_NONE, .op = constant ? AP_NONE : (ap_id)w->ops.n};

		(void)ap_onnx_add(w, v);
	}
	if (!constant) {
		op.out = first;
		op.cell = w->node ? w->node->cell ? w->node->cell : w->scope : NULL;
		AP_PUSH(a, w->ops, op);
	}
	return first;
}
