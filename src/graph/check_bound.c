/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that need shapes: operators bound, edges known. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "graph/load.h"

#define MAX_GRAPH_BYTES (INT64_C(1) << 60)

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
