/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/cell.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"

enum { MOST_MEANT = 3 };

static const char *next_part(const char *part)
{
	const char *slash = strchr(part, '/');

	return slash ? slash + 1 : NULL;
}

/* Is a part of a scope, attribute-Class, a wrapper cell of the user's network? */
static bool wraps(const char *part)
{
	static const char *const classes[] = {"_VirtualDatasetCell", "AutoParallel", "PipelineCell",
		"Pipeline", "GradAccumulationCell", "GradAccumulation", "MicroBatchInterleaved",
		"TrainOneStepCell", "TrainOneStepWithLossScaleCell", "_TrainPipelineAccuStepCell",
		"_TrainGradAccuStepCell", "MFTrainOneStepCell", "MFPipelineWithLossScaleCell"};
	size_t len = strcspn(part, "/"), attribute = strcspn(part, "-/") + 1;

	for (size_t i = 0; attribute < len && i < AP_COUNT(classes); i++)
		if (strlen(classes[i]) == len - attribute &&
			!strncmp(part + attribute, classes[i], len - attribute))
			return true;
	return false;
}

/* Skips the outermost network and its wrappers; the operator if nothing else is left. */
static const char *inside(const char *part)
{
	bool more = true;

	while (more && next_part(part)) {
		more = wraps(part);
		part = next_part(part);
	}
	return part;
}

/* The cells of a scope: "Default/network-WithLossCell/_backbone-Network/layer1-Dense/MatMul-op0".
 * Each part but the last (the operator) is a cell, attribute-Class; Default, the outermost network
 * and training wrappers are left out, as in parameter names. */
const char *ap_graph_cell(struct ap_ctx *ctx, const char *scope)
{
	const char *part = scope;
	struct ap_str cell;

	ap_str_init(&cell, ctx->arena);
	if (strncmp(part, "Default/", 8) == 0)
		part = inside(next_part(part));
	for (const char *next; (next = next_part(part)); part = next) {
		if (cell.len > 0)
			ap_str_addc(&cell, '.');
		ap_str_addn(&cell, part, strcspn(part, "-/"));
	}
	return cell.s;
}

/* Length of the cell around the named one; 0 if there is none. */
static size_t around(const char *cell, size_t len)
{
	while (len > 0 && cell[len - 1] != '.')
		len--;
	return len > 0 ? len - 1 : 0;
}

void ap_cell_note(struct ap_map *cells, const char *cell)
{
	bool fresh = true;

	for (size_t len = strlen(cell); fresh && len > 0; len = around(cell, len))
		ap_map_put(cells, cell, len, &fresh);
}

static ap_id find(const struct ap_map *named, const char *cell, size_t len)
{
	ap_id id = AP_NONE;

	for (; id == AP_NONE && len > 0; len = around(cell, len))
		id = ap_map_get(named, cell, len);
	return id;
}

ap_id ap_cell_find(const struct ap_map *named, const char *cell)
{
	return find(named, cell, strlen(cell));
}

ap_id ap_cell_around(const struct ap_map *named, const char *cell)
{
	return find(named, cell, around(cell, strlen(cell)));
}

/* The usual mistake is a wrapper cell too many or too few. */
static bool ends_with(const char *cell, const char *name)
{
	size_t n = strlen(cell), k = strlen(name);

	return n > k && cell[n - k - 1] == '.' && strcmp(cell + n - k, name) == 0;
}

const char *ap_cell_meant(struct ap_ctx *ctx, const struct ap_map *cells, const char *name)
{
	int least = (int)(strlen(name) / 3) + 1, nmeant = 0;
	const char *meant[MOST_MEANT] = {NULL};
	struct ap_str s;

	for (ap_id i = 0; i < ap_map_size(cells); i++) {
		const char *cell = ap_map_key(cells, i, NULL);
		int d = ends_with(cell, name) || ends_with(name, cell) ? 0 :
			ap_str_distance(cell, name, least);

		if (d > least || (d == least && nmeant == 0))
			continue;
		if (d < least)
			nmeant = 0;
		least = d;
		if (nmeant < MOST_MEANT)
			meant[nmeant++] = cell;
	}
	ap_str_init(&s, ctx->arena);
	for (int i = 0; i < nmeant; i++)
		ap_str_addf(&s, "%s\"%s\"", i == 0 ? "; did you mean " : i + 1 < nmeant ? ", " : " or ",
			ap_diag_name(ctx->diag, meant[i]));
	if (nmeant > 0)
		ap_str_addc(&s, '?');
	return s.s;
}
