/* SPDX-License-Identifier: Apache-2.0 */
/* Servers as NCCL's XML has them: processors hold PCIe switches, these hold devices and network cards. */
#ifndef AP_HW_NCCL_XML_H
#define AP_HW_NCCL_XML_H

#include "hw/server.h"

/* Reads a server from NCCL's XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE). AP_SYNTAX for what is no XML;
 * AP_MEANING, with the line, for XML that describes no server, or several. O(len + ndev^2). */
enum ap_status ap_server_read_xml(struct ap_ctx *ctx, const char *path, const char *text, size_t len,
	const struct ap_server **out);

#endif
