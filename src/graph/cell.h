/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of a network by name, as from MindSpore's cells_and_names(): attributes joined by dots,
 * "_backbone.layer1". An operator is in its own cell and in all whose names are dotted prefixes of
 * it. */
#ifndef AP_GRAPH_CELL_H
#define AP_GRAPH_CELL_H

#include "base/map.h"

/* "_backbone.layer1" of a full scope name: the path within the user's network, without the cells
 * (_VirtualDatasetCell, PipelineCell, ..) that MindSpore's training wraps around it. */
const char *ap_graph_cell(struct ap_ctx *ctx, const char *scope);

/* Adds a cell and all enclosing ones to a map of names. O(length). */
void ap_cell_note(struct ap_map *cells, const char *cell);

/* The innermost cell of map `named` that is or contains `cell`; AP_NONE if there is none.
 * O(length). */
ap_id ap_cell_find(const struct ap_map *named, const char *cell);

/* The same, excluding `cell` itself. */
ap_id ap_cell_around(const struct ap_map *named, const char *cell);

/* A suggestion: "; did you mean "a.b" or "a.c"?", of the nearest names in a map; "" if none is
 * near. In the arena. O(names * length^2). */
const char *ap_cell_meant(struct ap_ctx *ctx, const struct ap_map *cells, const char *name);

#endif
