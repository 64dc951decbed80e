/* SPDX-License-Identifier: Apache-2.0 */
/* Binds operators to rules in topological order, so that operands' shapes are known. */
#include "graph/bind.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "rule/attr.h"
#include "rule/bind.h"
#include "rule/binding.h"

#define KEY(key, x) ap_str_addn((key), (const char *)&(x), sizeof(x))

static void key_shapes(struct ap_str *key, const struct ap_shape *s, uint16_t n)
{
	KEY(key, n);
	for (uint16_t i = 0; i < n; i++) {
		const uint8_t head[] = {s[i].rank, (uint8_t)s[i].dtype};

		KEY(key, head);
		if (s[i].rank <= AP_MAX_RANK)
			ap_str_addn(key, (const char *)s[i].dim, s[i].rank * sizeof *s[i].dim);
	}
}

/* All that a binding depends on, as bytes in scratch. */
static struct ap_str key_of(struct ap_load *l, const struct ap_bind_in *want)
{
	struct ap_str key;

	ap_str_init(&key, l->ctx->scratch);
	ap_str_addn(&key, want->type, strlen(want->type) + 1);
	key_shapes(&key, want->in, want->nin);
	key_shapes(&key, want->declared, want->nout);
	ap_str_addn(&key, (const char *)want->slot, want->nin * sizeof *want->slot);
	for (uint32_t i = 0; i < want->attrs->n; i++) {
		const struct ap_attr *a = &want->attrs->v[i];

		ap_str_addn(&key, a->name, strlen(a->name) + 1);
		switch (a->type) {
		case AP_ATTR_STRING:
			ap_str_addn(&key, a->s, strlen(a->s) + 1);
			break;
		case AP_ATTR_INTS:
			KEY(&key, a->n);
			ap_str_addn(&key, (const char *)a->list, a->n * sizeof *a->list);
			break;
		case AP_ATTR_FLOAT:
			KEY(&key, a->f);
			break;
		default:
			KEY(&key, a->i);
		}
	}
	return key;
}

/* Binds node n to its operands' current shapes. Equal operators are bound once and share the rule's
 * results. O(1) in the size of the graph. */
static enum ap_status bind(struct ap_load *l, struct ap_raw_node *n, struct ap_bind_fault *fault)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_shape *in = AP_NEW_N(l->ctx->scratch, struct ap_shape, n->nin);
	struct ap_shape *said = AP_NEW_N(l->ctx->scratch, struct ap_shape, n->nout);
	struct ap_bind_in want = {n->rows, &n->n.attrs, n->nin, n->nout, in, n->slot, said};
	enum ap_status st = AP_OK;
	struct ap_str key;
	ap_id id;

	for (uint16_t k = 0; k < n->nin; k++) {
		in[k] = l->tensors.v[n->in[k]].t.shape;
		in[k].dtype = ap_tensor_read_type(&l->tensors.v[n->in[k]].t);
	}
	for (uint16_t k = 0; k < n->nout; k++)
		said[k] = l->tensors.v[n->out[k]].said;
	key = key_of(l, &want);
	id = ap_map_get(l->bound_ids, key.s, key.len);
	if (id != AP_NONE) {
		n->n.bound = l->bounds.v[id];
	} else {
		st = ap_rule_bind(l->ctx, &want, &n->n.bound, fault);
		if (st == AP_OK) {
			ap_map_put(l->bound_ids, key.s, key.len, NULL);
			AP_PUSH(l->ctx->arena, l->bounds, n->n.bound);
		}
	}
	n->n.bound.name = n->operand;
	ap_arena_release(l->ctx->scratch, mark);
	return st;
}

static void say_fault(struct ap_load *l, const struct ap_raw_node *n,
	const struct ap_bind_fault *f)
{
	const struct ap_jv *at = n->at, *v;

	if (f->operand >= 0) {
		v = ap_load_element(ap_jv_get(n->at, "inputs"), n->slot[f->operand]);
		ap_load_say(l, ap_check_find(f->check), v, n->n.name, "%s (\"%s\")", f->text,
			ap_load_name(l, n->operand[f->operand]));
		return;
	}
	v = strcmp(f->check, "operator-attr") == 0 ? ap_jv_get(n->at, "attrs") : NULL;
	ap_load_say(l, ap_check_find(f->check), v ? v : at, n->n.name, "%s", f->text);
}

static bool same_shape(const struct ap_shape *s, const struct ap_operand *o)
{
	return s->rank == o->rank && memcmp(s->dim, o->size, o->rank * sizeof *o->size) == 0;
}

/* Adds a result, unnamed in the file, that is kept for the backward pass. */
static ap_id add_hidden(struct ap_load *l, ap_id node, uint32_t result)
{
	const char *owner = l->nodes.v[node].n.name;
	const char *name = ap_arena_printf(l->ctx->arena, "%s:%u", owner, result);
	struct ap_raw_tensor t = {.sound = true, .batch_dim = -1,
		.said = {AP_RANK_UNKNOWN, AP_DTYPE_COUNT, {0}}};

	while (ap_map_get_str(l->names, name) != AP_NONE)
		name = ap_arena_printf(l->ctx->arena, "%s'", name);
	t.t = (struct ap_tensor){.name = name, .kind = AP_TENSOR_ACT, .comm_fusion = -1,
		.read_as = AP_DTYPE_COUNT, .producer = node, .result = result};
	AP_PUSH(l->ctx->scratch, l->tensors, t);
	return (ap_id)(l->tensors.n - 1);
}

static void set_shape(struct ap_tensor *t, const struct ap_operand *o)
{
	t->shape.rank = o->rank;
	t->shape.dtype = o->dtype;
	memcpy(t->shape.dim, o->size, sizeof o->size);
}

static void take_results(struct ap_load *l, ap_id id)
{
	struct ap_raw_node *n = &l->nodes.v[id];
	const struct ap_bound *b = &n->n.bound;
	ap_id *out = AP_NEW_N(l->ctx->arena, ap_id, b->nout);
	int64_t count;

	for (uint16_t k = 0; k < b->nout; k++) {
		out[k] = k < n->nout ? n->out[k] : add_hidden(l, id, k);
		if (ap_product(b->out[k].size, b->out[k].rank, &count) && count <= AP_MAX_ELEMENTS)
			set_shape(&l->tensors.v[out[k]].t, &b->out[k]);
		else
			ap_load_say(l, AP_CHECK_SHAPE_SIZE, n->at, n->n.name,
				"the element count of the result %s overflows; at most 2^53 elements are "
				"supported", ap_shape_text(l->ctx->arena, b->out[k].size, b->out[k].rank));
		if (k < n->nout) {
			const struct ap_raw_tensor *t = &l->tensors.v[out[k]];
			const struct ap_operand *o = &b->out[k];

			if (t->said.rank != AP_RANK_UNKNOWN && !same_shape(&t->said, o))
				ap_load_say(l, AP_CHECK_OUTPUT_SHAPE, ap_jv_get(t->at, "shape"), n->n.name,
					"result \"%s\" is declared as %s; %s is inferred",
					ap_load_name(l, t->t.name), ap_shape_text(l->ctx->arena,
						t->said.dim, t->said.rank),
					ap_shape_text(l->ctx->arena, o->size, o->rank));
			if (t->said.dtype != AP_DTYPE_COUNT && t->said.dtype != o->dtype)
				ap_load_say(l, AP_CHECK_OUTPUT_DTYPE, ap_jv_get(t->at, "dtype"), n->n.name,
					"result \"%s\" is declared as %s; %s is inferred",
					ap_load_name(l, t->t.name), ap_dtype_name(t->said.dtype),
					ap_dtype_name(o->dtype));
		}
	}
	n->out = out;
}

void ap_load_bind(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		struct ap_raw_node *n = &l->nodes.v[l->order[i]];
		struct ap_bind_fault fault;
		bool known = n->sound;

		for (uint16_t k = 0; known && k < n->nin; k++) {
			const struct ap_shape *s = &l->tensors.v[n->in[k]].t.shape;

			known = s->rank != AP_RANK_UNKNOWN && s->dtype != AP_DTYPE_COUNT;
		}
		if (!known)
			continue;
		if (bind(l, n, &fault) == AP_OK)
			take_results(l, l->order[i]);
		else
			say_fault(l, n, &fault);
	}
}

/* Multiplies batch extents by batch / l->batch. */
static bool scale(const struct ap_load *l, struct ap_shape *s, uint8_t mask, int64_t batch)
{
	for (uint8_t i = 0; i < s->rank; i++) {
		int64_t n;

		if (!(mask >> i & 1))
			continue;
		if (!ap_mul(s->dim[i], batch, &n) || n % l->batch != 0 || n / l->batch > INT32_MAX)
			return false;
		s->dim[i] = n / l->batch;
	}
	return true;
}

/* Attributes with an entry per dimension, which scales if the dimension is of the batch. */
static const struct {
	const char *name;
	enum { OF_OPERAND, OF_RESULT, OF_GROWTH } of; /* dimensions of operand 0; of the result;
			of the result without the operand's */
} batch_lists[] = {
	{"shape", OF_RESULT},
	{"size", OF_RESULT},
	{"multiples", OF_GROWTH},
	{"begin", OF_OPERAND},
	{"end", OF_OPERAND},
};

static void scale_list(struct ap_load *l, struct ap_raw_node *n, const struct ap_attr *a,
	uint32_t mask, int64_t batch)
{
	struct ap_attr *copy = ap_arena_memdup(l->ctx->arena, n->n.attrs.v,
		n->n.attrs.n * sizeof *copy);
	int64_t *list = ap_arena_memdup(l->ctx->arena, a->list, a->n * sizeof *list), v;

	for (uint32_t i = 0; i < a->n; i++)
		if (mask >> i & 1 && list[i] > 0 && ap_mul(list[i], batch, &v))
			list[i] = v / l->batch;
	copy[a - n->n.attrs.v].list = list;
	n->n.attrs.v = copy;
}

static void say_no_scale(struct ap_load *l, const struct ap_raw_node *n, int64_t batch,
	const char *why)
{
	ap_load_say(l, AP_CHECK_BATCH_SCALE, n ? n->at : NULL, n ? n->n.name : NULL,
		"the batch of %" PRId64 " cannot be changed to %" PRId64 ": %s", l->batch, batch,
		why);
}

static bool rebind(struct ap_load *l, struct ap_raw_node *n, int64_t batch)
{
	struct ap_bind_fault fault;
	const struct ap_tensor *out, *in;
	bool moved;
	int added;

	for (uint16_t k = 0; k < n->n.bound.nout; k++) {
		struct ap_raw_tensor *t = &l->tensors.v[n->out[k]];

		t->said = t->t.shape;
		if (!scale(l, &t->said, t->t.batch, batch)) {
			say_no_scale(l, n, batch, "a length would not be whole");
			return false;
		}
	}
	out = &l->tensors.v[n->out[0]].t;
	in = n->nin ? &l->tensors.v[n->in[0]].t : out;
	moved = ap_attr_int(&n->n.attrs, "ellipsis_mask", 0) ||
		ap_attr_int(&n->n.attrs, "new_axis_mask", 0);
	added = out->shape.rank - in->shape.rank;
	for (size_t i = 0; i < AP_COUNT(batch_lists); i++) {
		const struct ap_attr *a = ap_attr_get(&n->n.attrs, batch_lists[i].name);
		bool operand = batch_lists[i].of == OF_OPERAND;
		uint32_t mask = operand ? in->batch : out->batch;

		if (batch_lists[i].of == OF_GROWTH && added >= 0)
			mask &= ~((uint32_t)in->batch << added);
		if (a && a->type == AP_ATTR_INTS && !(operand && moved) &&
			a->n <= (operand ? in : out)->shape.rank)
			scale_list(l, n, a, mask, batch);
	}
	if (bind(l, n, &fault) != AP_OK) {
		say_no_scale(l, n, batch, fault.text);
		return false;
	}
	for (uint16_t k = 0; k < n->n.bound.nout; k++) {
		struct ap_raw_tensor *t = &l->tensors.v[n->out[k]];

		set_shape(&t->t, &n->n.bound.out[k]);
		if (!same_shape(&t->said, &n->n.bound.out[k])) {
			say_no_scale(l, n, batch, "a result does not follow the batch");
			return false;
		}
	}
	return true;
}

void ap_load_rescale(struct ap_load *l, int64_t batch)
{
	if (l->batch == 0) {
		ap_load_say(l, AP_CHECK_BATCH_SCALE, NULL, NULL,
			"no input has a batch_dim; the batch cannot be changed to %" PRId64, batch);
		return;
	}
	for (size_t i = 0; i < l->tensors.n; i++) {
		struct ap_raw_tensor *t = &l->tensors.v[i];

		if (t->t.kind == AP_TENSOR_INPUT && !scale(l, &t->t.shape, t->t.batch, batch))
			say_no_scale(l, NULL, batch, "a length would not be whole");
	}
	for (size_t i = 0; i < l->nodes.n && l->status == AP_OK; i++)
		rebind(l, &l->nodes.v[l->order[i]], batch);
	if (l->status != AP_OK)
		return;
	l->batch = batch;
	ap_load_mark_batch(l);
}
