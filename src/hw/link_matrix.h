/* SPDX-License-Identifier: Apache-2.0 */
/* Servers as the matrix of nvidia-smi topo -m or npu-smi info -t topo has them: a row and a column for each
 * device and network card, the word at their crossing says what joins the two. */
#ifndef AP_HW_LINK_MATRIX_H
#define AP_HW_LINK_MATRIX_H

#include "hw/server.h"

/* Reads a server from the matrix that `nvidia-smi topo -m` or `npu-smi info -t topo` prints; what stands
 * before and behind it may name the chip, as `nvidia-smi -L` does. AP_SYNTAX, with line and column, for rows
 * that do not fit the head. O(len + ndev^2). */
enum ap_status ap_server_read_matrix(struct ap_ctx *ctx, const char *path, const char *text, size_t len,
	const struct ap_server **out);

#endif
