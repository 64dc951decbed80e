/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that need shapes: operators bound, edges known. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "graph/load.h"

#define MAX_GRAPH_BYTES (INT64_C(1) << 60)

/* Shape that vector k of a strategy is about; NULL: an empty vector is due. */
static const struct ap_operand *strategy_operand(const struct ap_bound *b, uint32_t k)
{
	char letter;

	if (!*b->row->strategy)
		return &b->in[k];
	letter = b->row->strategy[2 * k];
	if (letter == '-')
		return NULL;
	return letter >= 'o' ? &b->out[letter - 'o'] : &b->in[letter - 'a'];
}

static uint32_t strategy_length(const struct ap_bound *b)
{
	size_t n = strlen(b->row->strategy);

	return n ? (uint32_t)(n / 2 + 1) : b->nin;
}

static void pin_length(struct ap_load *l, const struct ap_raw_node *n)
{
	const struct ap_jv *at = ap_jv_get(n->at, "in_strategy");
	const struct ap_pin *pin = &n->n.in_pin;

	if (pin->n != strategy_length(&n->n.bound)) {
		ap_load_say(l, AP_CHECK_PIN_LENGTH, at, n->n.name,
			"%" PRIu32 " vectors; %" PRIu32 " are expected", pin->n,
			strategy_length(&n->n.bound));
		return;
	}
	for (uint32_t k = 0; k < pin->n; k++) {
		const struct ap_operand *o = strategy_operand(&n->n.bound, k);
		int rank = o ? o->rank : 0;

		if (pin->v[k].rank != rank)
			ap_load_say(l, AP_CHECK_PIN_LENGTH, ap_load_element(at, k), n->n.name,
				"%d numbers; %d dimensions are to be cut", pin->v[k].rank, rank);
	}
}

static bool is_pinned(const struct ap_raw_node *n)
{
	return n->n.bound.row && n->n.in_pin.n > 0;
}

void ap_check_pin_length(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++)
		if (is_pinned(&l->nodes.v[i]))
			pin_length(l, &l->nodes.v[i]);
}

static void pin_vector(struct ap_load *l, const struct ap_raw_node *n, uint32_t k)
{
	const struct ap_operand *o = strategy_operand(&n->n.bound, k);
	const struct ap_jv *at = ap_load_element(ap_jv_get(n->at, "in_strategy"), k);

	for (uint8_t i = 0; i < n->n.in_pin.v[k].rank; i++) {
		int32_t cut = n->n.in_pin.v[k].cut[i];

		if (cut < 1)
			ap_load_say(l, AP_CHECK_PIN_VALUE, ap_load_element(at, i), n->n.name,
				"dimension %d is to be cut in %" PRId32 "; at least 1 is expected",
				i, cut);
		else if (o->size[i] % cut != 0)
			ap_load_say(l, AP_CHECK_PIN_VALUE, ap_load_element(at, i), n->n.name,
				"dimension %d of length %" PRId64 " cannot be cut in %" PRId32
				" equal parts", i, o->size[i], cut);
	}
}

void ap_check_pin_value(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++)
		for (uint32_t k = 0; is_pinned(&l->nodes.v[i]) && k < l->nodes.v[i].n.in_pin.n; k++)
			pin_vector(l, &l->nodes.v[i], k);
}

void ap_check_graph_size(struct ap_load *l)
{
	int64_t total = 0, bytes;

	for (size_t i = 0; i < l->tensors.n; i++) {
		const struct ap_shape *s = &l->tensors.v[i].t.shape;

		if (s->rank == AP_RANK_UNKNOWN || s->dtype == AP_DTYPE_COUNT)
			continue;
		if (ap_product(s->dim, s->rank, &bytes) &&
			ap_mul(bytes, ap_dtype_bytes(s->dtype), &bytes) &&
			ap_add(total, bytes, &total) && total <= MAX_GRAPH_BYTES)
			continue;
		ap_load_say(l, AP_CHECK_GRAPH_SIZE, NULL, NULL,
			"all tensors together have more than 2^60 bytes");
		return;
	}
}

static bool *mark_used(struct ap_load *l)
{
	bool *used = AP_NEW_N(l->ctx->scratch, bool, l->tensors.n);

	for (size_t i = 0; i < l->outputs.n; i++)
		used[ap_load_tensor(l, ap_jv_str(l->outputs.v[i]))] = true;
	return used;
}

void ap_check_tensor_unused(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	bool *used = mark_used(l);

	for (size_t i = 0; i < l->nodes.n; i++)
		for (uint16_t k = 0; k < l->nodes.v[i].nin; k++)
			used[l->nodes.v[i].in[k]] = true;
	for (size_t i = 0; i < l->tensors.n; i++)
		if (!used[i] && l->tensors.v[i].t.kind != AP_TENSOR_ACT)
			ap_load_say(l, AP_CHECK_TENSOR_UNUSED, l->tensors.v[i].at, NULL,
				"tensor \"%s\" is never used", ap_load_name(l, l->tensors.v[i].t.name));
	ap_arena_release(l->ctx->scratch, mark);
}

/* Bits of operators whose results lead to an output. */
static bool *mark_reached(struct ap_load *l)
{
	bool *used = mark_used(l), *reached = AP_NEW_N(l->ctx->scratch, bool, l->nodes.n);

	for (size_t i = l->nodes.n; i-- > 0;) {
		const struct ap_raw_node *n = &l->nodes.v[l->order[i]];

		for (uint16_t k = 0; k < n->nout; k++)
			reached[l->order[i]] |= used[n->out[k]];
		for (uint16_t k = 0; reached[l->order[i]] && k < n->nin; k++)
			used[n->in[k]] = true;
	}
	return reached;
}

void ap_check_operator_unused(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	const bool *reached = mark_reached(l);

	for (size_t i = 0; i < l->nodes.n; i++)
		if (!reached[i])
			ap_load_say(l, AP_CHECK_OPERATOR_UNUSED, l->nodes.v[i].at,
				l->nodes.v[i].n.name, "no output of the graph depends on the operator");
	ap_arena_release(l->ctx->scratch, mark);
}
