/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the graph as it was read, before any operator is bound. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "graph/load.h"

void ap_check_graph_empty(struct ap_load *l)
{
	if (l->nodes.n == 0 && !l->incomplete)
		ap_load_say(l, AP_CHECK_GRAPH_EMPTY,
			ap_jv_get(ap_json_root(l->doc), "operators"), NULL,
			"there are no operators");
}

static const char *const kinds[] = {"an input", "a parameter", "a constant", "a result"};

static const struct ap_jv *name_at(const struct ap_jv *v)
{
	return ap_jv_type(v) == AP_JOBJECT ? ap_jv_get(v, "name") : v;
}

static void say_twice(struct ap_load *l, const struct ap_raw_tensor *t,
	const struct ap_raw_tensor *first)
{
	const char *name = ap_load_name(l, t->t.name);

	if (t->t.kind == AP_TENSOR_ACT && first->t.kind == AP_TENSOR_ACT)
		ap_load_say(l, AP_CHECK_TENSOR_UNIQUE, name_at(t->at),
			l->nodes.v[t->t.producer].n.name,
			"tensor \"%s\" is a result of operator \"%s\" too", name,
			ap_load_name(l, l->nodes.v[first->t.producer].n.name));
	else
		ap_load_say(l, AP_CHECK_TENSOR_UNIQUE, name_at(t->at), NULL,
			"tensor \"%s\" is %s and %s", name, kinds[first->t.kind],
			kinds[t->t.kind]);
}

/* Also makes the table of names. */
void ap_check_tensor_unique(struct ap_load *l)
{
	l->by_name = AP_NEW_N(l->ctx->arena, ap_id, l->tensors.n);
	for (size_t i = 0; i < l->tensors.n; i++) {
		struct ap_raw_tensor *t = &l->tensors.v[i];
		bool fresh;
		ap_id id = ap_map_put_str(l->names, t->t.name, &fresh);

		if (fresh)
			l->by_name[id] = (ap_id)i;
		else if (*t->t.name)
			say_twice(l, t, &l->tensors.v[l->by_name[id]]);
	}
}

void ap_check_operator_unique(struct ap_load *l)
{
	struct ap_map *names = ap_map_create(l->ctx->arena);

	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[i];
		bool fresh;

		ap_map_put_str(names, n->n.name, &fresh);
		if (!fresh && *n->n.name)
			ap_load_say(l, AP_CHECK_OPERATOR_UNIQUE, name_at(n->at), n->n.name,
				"the name is used twice");
	}
}

void ap_check_shape_size(struct ap_load *l)
{
	for (size_t i = 0; i < l->tensors.n; i++) {
		struct ap_raw_tensor *t = &l->tensors.v[i];
		int64_t n;

		if (t->t.shape.rank == AP_RANK_UNKNOWN)
			continue;
		if (ap_product(t->said.dim, t->said.rank, &n) && n <= AP_MAX_ELEMENTS)
			continue;
		t->t.shape.rank = AP_RANK_UNKNOWN;
		t->sound = false;
		ap_load_say(l, AP_CHECK_SHAPE_SIZE, ap_jv_get(t->at, "shape"),
			t->t.producer == AP_NONE ? NULL : l->nodes.v[t->t.producer].n.name,
			"the element count of tensor \"%s\" overflows; at most 2^53 elements are "
			"supported", ap_load_name(l, t->t.name));
	}
}

static bool batch_dim_exists(struct ap_load *l, struct ap_raw_tensor *t)
{
	if (t->batch_dim < t->said.rank)
		return true;
	ap_load_say(l, AP_CHECK_BATCH_DIM, ap_jv_get(t->at, "batch_dim"), NULL,
		"input \"%s\" has %d dimensions; batch_dim is %" PRId64,
		ap_load_name(l, t->t.name), t->said.rank, t->batch_dim);
	return false;
}

/* The batch is the shortest of the inputs' batch dimensions; the others hold a whole number of
 * elements for each sample (batch and sequence in one dimension). */
void ap_check_batch_dim(struct ap_load *l)
{
	for (size_t i = 0; i < l->tensors.n; i++) {
		struct ap_raw_tensor *t = &l->tensors.v[i];
		int64_t n;

		if (t->batch_dim < 0 || !t->sound || !batch_dim_exists(l, t))
			continue;
		n = t->said.dim[t->batch_dim];
		t->t.batch = (uint8_t)(1 << t->batch_dim);
		t->t.batch_outer[t->batch_dim] = 1;
		if (l->batch == 0 || n < l->batch)
			l->batch = n;
	}
	for (size_t i = 0; i < l->tensors.n; i++) {
		const struct ap_raw_tensor *t = &l->tensors.v[i];

		if (t->t.batch && t->said.dim[t->batch_dim] % l->batch != 0)
			ap_load_say(l, AP_CHECK_BATCH_DIM, ap_jv_get(t->at, "batch_dim"), NULL,
				"the batch of input \"%s\" is %" PRId64 ", another input's is "
				"%" PRId64, ap_load_name(l, t->t.name),
				t->said.dim[t->batch_dim], l->batch);
	}
}

static void say_unknown(struct ap_load *l, const struct ap_raw_node *n, const char *near)
{
	const char *reason = ap_op_unsupported(n->n.type), *type = ap_load_name(l, n->n.type);
	const struct ap_jv *at = ap_jv_get(n->at, "type");

	if (reason)
		ap_load_say(l, AP_CHECK_OPERATOR_KNOWN, at, n->n.name,
			"operator type \"%s\" is known but not planned with: %s; --unknown-operators "
			"batch-parallel takes it for an unknown one", type, reason);
	else if (near)
		ap_load_say(l, AP_CHECK_OPERATOR_KNOWN, at, n->n.name,
			"operator type \"%s\" is unknown; did you mean \"%s\"?", type, near);
	else
		ap_load_say(l, AP_CHECK_OPERATOR_KNOWN, at, n->n.name,
			"operator type \"%s\" is unknown; --unknown-operators batch-parallel plans with "
			"it as MindSpore does", type);
}

/* Once for each type: what it is planned as. */
static void say_assumed(struct ap_load *l, const struct ap_raw_node *n, struct ap_map *told)
{
	bool fresh;

	ap_map_put_str(told, n->n.type, &fresh);
	if (fresh)
		ap_load_say(l, AP_CHECK_OPERATOR_ASSUMED, ap_jv_get(n->at, "type"), n->n.name,
			"no rule is known for operator type \"%s\"; it is planned with as MindSpore "
			"does: %s", ap_load_name(l, n->n.type), strcmp(n->rows, AP_OP_UNCUT) == 0
			? "nothing of it is cut" : "dimension 0 of all inputs and results is cut "
			"among all devices, or nothing is");
}

void ap_check_operator_known(struct ap_load *l)
{
	struct ap_map *told = ap_map_create(l->ctx->arena);

	for (size_t i = 0; i < l->nodes.n; i++) {
		struct ap_raw_node *n = &l->nodes.v[i];
		const char *near = NULL;

		if (!*n->n.type && !n->sound)
			continue;
		n->rows = ap_op_canonical(n->n.type, &near);
		if (n->rows) {
			n->n.type = n->rows;
		} else if (l->params && l->params->unknown_batch_parallel) {
			n->rows = ap_op_unknown(n->n.type);
			say_assumed(l, n, told);
		} else {
			n->sound = false;
			say_unknown(l, n, near);
		}
	}
}

void ap_check_edge_known(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		struct ap_raw_node *n = &l->nodes.v[i];

		for (uint16_t k = 0; k < n->nin; k++) {
			n->in[k] = ap_load_tensor(l, n->operand[k]);
			if (n->in[k] != AP_NONE)
				continue;
			n->sound = false;
			if (l->incomplete)
				continue;
			ap_load_say(l, AP_CHECK_EDGE_KNOWN,
				ap_load_element(ap_jv_get(n->at, "inputs"), n->slot[k]), n->n.name,
				"no tensor \"%s\"", ap_load_name(l, n->operand[k]));
		}
	}
}

void ap_check_output_known(struct ap_load *l)
{
	for (size_t i = 0; i < l->outputs.n && !l->incomplete; i++)
		if (ap_load_tensor(l, ap_jv_str(l->outputs.v[i])) == AP_NONE)
			ap_load_say(l, AP_CHECK_OUTPUT_KNOWN, l->outputs.v[i], NULL,
				"no tensor \"%s\"", ap_load_name(l, ap_jv_str(l->outputs.v[i])));
}
