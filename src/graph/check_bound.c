/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that need shapes: operators bound, edges known. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "graph/load.h"

#define MAX_GRAPH_BYTES (INT64_C(1) << 57) /* states, copies and what waits in a pipeline add up below 2^63 */

/* INT64_MAX: more than that; 0: unknown. */
static int64_t tensor_bytes(const struct ap_shape *s)
{
	int64_t bytes;

	if (s->rank == AP_RANK_UNKNOWN || s->dtype == AP_DTYPE_COUNT)
		return 0;
	return ap_product(s->dim, s->rank, &bytes) && ap_mul(bytes, ap_dtype_bytes(s->dtype), &bytes) ? bytes
		: INT64_MAX;
}

/* A tensor counts once, and once more for every operator that reads it and may hold a copy. */
void ap_check_graph_size(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	int64_t *times = AP_NEW_N(l->ctx->scratch, int64_t, l->tensors.n), total = 0, largest = 0;
	size_t at = 0;
	bool fits = true;
	char size[32];

	for (size_t i = 0; i < l->nodes.n; i++)
		for (uint16_t k = 0; k < l->nodes.v[i].nin; k++)
			if (l->nodes.v[i].in[k] != AP_NONE)
				times[l->nodes.v[i].in[k]]++;
	for (size_t i = 0; i < l->tensors.n; i++) {
		int64_t bytes = tensor_bytes(&l->tensors.v[i].t.shape);

		fits = fits && ap_mul(bytes, 1 + times[i], &times[i]) && ap_add(total, times[i], &total) &&
			total <= MAX_GRAPH_BYTES;
		if (bytes > largest) {
			largest = bytes;
			at = i;
		}
	}
	if (!fits)
		ap_load_say(l, AP_CHECK_GRAPH_SIZE, l->tensors.v[at].at, NULL,
			"all tensors together, each once more for every reader, have more than 2^57 bytes; "
			"the largest, \"%s\", has %s", ap_load_name(l, l->tensors.v[at].t.name),
			ap_format_bytes(largest, size));
	ap_arena_release(l->ctx->scratch, mark);
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
