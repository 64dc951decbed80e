/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "fault.h"

void ex_trouble(struct ex_world *w, const char *fmt, ...)
{
	struct ap_str text;
	va_list ap;

	if (w->trouble)
		return;
	ap_str_init(&text, w->ctx->arena);
	va_start(ap, fmt);
	ap_str_vaddf(&text, fmt, ap);
	va_end(ap);
	w->trouble = text.s;
}

int64_t ex_group(struct ex_world *w, const struct ap_axes *axes, int64_t rank,
	int64_t ranks[EX_MAX_DEV])
{
	int64_t n = ap_axes_size(axes);

	if (n > w->ndev) {
		ex_trouble(w, "a group of %" PRId64 " on %" PRId64 " ranks", n, w->ndev);
		ranks[0] = rank;
		return 1;
	}
	ap_axes_group(axes, rank, ranks);
	if (w->fault && w->fault->group)
		w->faulted |= w->fault->group(w, rank, n, ranks);
	for (int64_t k = 0; k < n; k++)
		if (ranks[k] < 0 || ranks[k] >= w->ndev) {
			ex_trouble(w, "rank %" PRId64 " in a group on %" PRId64 " ranks", ranks[k],
				w->ndev);
			ranks[k] = rank;
		}
	return n;
}

void ex_check_bytes(struct ex_world *w, const struct ap_comm *c, int64_t elements, enum ap_dtype t)
{
	bool wide = c->phase == AP_PHASE_GRADIENT && w->gradient_fp32_sync && ap_dtype_bytes(t) == 2;
	int64_t bytes = elements * (wide ? 4 : ap_dtype_bytes(t));

	if (bytes != c->bytes)
		ex_trouble(w, "%s of %s %d: %" PRId64 " bytes are charged, %" PRId64 " are sent",
			ap_coll_name(c->kind), c->result >= 0 ? "result" : "operand",
			c->result >= 0 ? c->result : c->operand, c->bytes, bytes);
}
