/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "graph/load.h"

static const char *next_part(const char *part)
{
	const char *slash = strchr(part, '/');

	return slash ? slash + 1 : NULL;
}

/*
 * "Default/network-WithLossCell/_backbone-Network/layer1-Dense/MatMul-op0": every part but the last
 * (the operator) is a cell, as attribute-Class; Default and the outermost network are not part of
 * parameter names, nor of this.
 */
const char *ap_graph_cell(struct ap_ctx *ctx, const char *scope)
{
	const char *part = scope;
	struct ap_str cell;

	ap_str_init(&cell, ctx->arena);
	if (strncmp(part, "Default/", 8) == 0) {
		part = next_part(part);
		if (next_part(part))
			part = next_part(part);
	}
	for (const char *next; (next = next_part(part)); part = next) {
		if (cell.len > 0)
			ap_str_addc(&cell, '.');
		ap_str_addn(&cell, part, strcspn(part, "-/"));
	}
	return cell.s;
}
