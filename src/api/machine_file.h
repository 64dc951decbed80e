/* SPDX-License-Identifier: Apache-2.0 */
/* Files that describe a machine, known by their content: rank tables, lists of hosts, servers as their tools
 * describe them. */
#ifndef AP_API_MACHINE_FILE_H
#define AP_API_MACHINE_FILE_H

#include "api/files.h"
#include "hw/hosts.h"
#include "hw/server.h"

struct ap_machine_file { /* one of the three; the others are NULL */
	const struct ap_topo *table; /* of a rank table */
	const struct ap_hosts *hosts;
	const struct ap_server *server;
	const char *sha256; /* of the text */
};

/* Reads a machine from a text. AP_SYNTAX for what is none of the three. */
enum ap_status ap_machine_file_read(struct ap_ctx *ctx, const struct ap_input *in,
	struct ap_machine_file *out);

/* The machine of a file as ranks: of a server ndev devices on servers like it (0: one server), of hosts
 * without a number of slots per_server each (0: that is an error). */
enum ap_status ap_machine_file_topo(struct ap_ctx *ctx, const struct ap_machine_file *file, int64_t ndev,
	int64_t per_server, const struct ap_topo **out);

#endif
