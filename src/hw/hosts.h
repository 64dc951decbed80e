/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts, as MPI, DeepSpeed, Slurm and PBS have them: which servers there are, and how many devices
 * of each are meant. */
#ifndef AP_HW_HOSTS_H
#define AP_HW_HOSTS_H

#include "hw/topo.h"

struct ap_hosts {
	const char *path, *sha256; /* of the file, as named; of its text */
	uint32_t n;
	const char *const *name; /* [n] in the file's order, each once */
	const uint32_t *slots; /* [n] devices; 0: not said */
};

/*
 * Reads a list of hosts. A line names hosts, "node1" or, as Slurm does, "node[01-16,20]r[1-2],login1", each
 * with its number of slots if the line says it: "node1 slots=8 max_slots=8", "node1:8,node2:4". A line of
 * numbers, "8(x15),4", says those of all hosts above it, as SLURM_TASKS_PER_NODE does; "SLURM_...=" before
 * either is what `env` prints. A host that stands several times has as many slots. "#" begins a comment.
 * AP_SYNTAX, with line and column, for what is none of it; AP_MEANING for hosts told twice; AP_LIMIT for
 * more hosts than a machine has. O(len + hosts).
 */
enum ap_status ap_hosts_read(struct ap_ctx *ctx, const char *path, const char *text, size_t len,
	const char *sha256, const struct ap_hosts **out);

/* A rank for each slot, in the order of the hosts; hosts without a number have per_host (0: that is an
 * error, AP_USAGE). AP_LIMIT for more than AP_MAX_DEVICES ranks. */
enum ap_status ap_hosts_topo(struct ap_ctx *ctx, const struct ap_hosts *hosts, int64_t per_host,
	const struct ap_topo **out);

#endif
