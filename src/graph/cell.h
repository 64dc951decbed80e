/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of a network by name, as MindSpore's cells_and_names() gives them: attributes joined by dots,
 * "_backbone.layer1". An operator is in its own cell and in all whose names its cell's begins with,
 * up to a dot.
 */
#ifndef AP_GRAPH_CELL_H
#define AP_GRAPH_CELL_H

#include "base/map.h"

/* "_backbone.layer1" of a full scope name: the path within the network that its user hands over, without
 * the cells (_VirtualDatasetCell, PipelineCell, ..) that MindSpore's training puts around it. */
const char *ap_graph_cell(struct ap_ctx *ctx, const char *scope);

/* Adds a cell and all around it to a map of names. O(length). */
void ap_cell_note(struct ap_map *cells, const char *cell);

/* The innermost cell of map `named` that `cell` is, or is in; AP_NONE where there is none. O(length). */
ap_id ap_cell_find(const struct ap_map *named, const char *cell);

/* The same around it, itself left out. */
ap_id ap_cell_around(const struct ap_map *named, const char *cell);

/* What else may have been meant: "; did you mean "a.b" or "a.c"?", from the names of a map that are nearest;
 * "" where none is near. In the arena. O(names * length^2). */
const char *ap_cell_meant(struct ap_ctx *ctx, const struct ap_map *cells, const char *name);

#endif
