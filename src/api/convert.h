/* SPDX-License-Identifier: Apache-2.0 */
/* One file made of others: the other form of it, an operator graph of a dump, a picture. */
#ifndef AP_API_CONVERT_H
#define AP_API_CONVERT_H

#include "api/outputs.h"

/* A strategy checkpoint, or the files of pipeline stages merged, in the form that the name into says, or as
 * stage files where that is a folder; a rank table as version 1.0. */
enum ap_status ap_convert(struct ap_writing *to, size_t n, const char *const *from, const char *into);

/* The operator graph of a dump of MindSpore, into set->graph_out, else standard output. */
enum ap_status ap_import_dump(struct ap_writing *to, const char *path);

/* The picture of a plan or a graph, into set->dot_out. */
enum ap_status ap_render(struct ap_writing *to, const char *path);

#endif
