/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: ranks, and the server and device of each. */
#ifndef AP_HW_TOPO_H
#define AP_HW_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/json.h"
#include "base/json_write.h"

#define AP_MAX_DEVICES (1 << 20)
#define AP_MINDSPORE_DEVICES 4096 /* most devices that MindSpore runs */
#define AP_LAST_DEVICE_ID 15 /* per server, as in HCCL */

struct ap_place { /* of one rank */
	uint32_t server; /* index, ordered by lowest rank */
	int32_t device_id; /* as written; -1: unknown */
	int64_t super_device_id; /* in its super pod; -1: no pods */
	const char *device_ip; /* as written; may be "" */
	uint32_t next; /* next rank on the same server; AP_NONE at the end */
};

/* Sets of servers: super pods or clusters. Each server is in one. */
struct ap_tier {
	uint32_t n; /* 0: none */
	const char *const *id; /* [n], ordered by lowest rank */
	const uint32_t *of; /* [nserver] index */
	const uint32_t *first; /* [n] first server of each */
	const uint32_t *next; /* [nserver] next server of the same set; AP_NONE at the end */
};

struct ap_topo {
	const char *name; /* base name of the rank table, or "" */
	const char *sha256; /* of its text, or "" */
	const char *form; /* "lab", "1.0", "hostfile", "given" (--device-num) */
	const char *chip_info; /* "" if not given */
	uint32_t ndev; /* ranks 0..ndev-1 */
	uint32_t nserver;
	const char *const *server; /* [nserver] ids */
	const uint32_t *first; /* [nserver] lowest rank on each */
	const struct ap_place *place; /* [ndev] by rank */
	struct ap_tier pod; /* super pods: servers with faster links */
	struct ap_tier cluster; /* sites of a job; a super pod is in one */
	bool job_wide_ids; /* device_id counts over the job, not per server */
};

/* Makes ndev ranks on servers of per_server each (the last may have fewer). Returns AP_USAGE unless
 * 1 <= ndev <= AP_MAX_DEVICES. */
enum ap_status ap_topo_make(struct ap_ctx *ctx, int64_t ndev, int64_t per_server,
	const struct ap_topo **out);

/* The same servers in super pods of per_pod devices each (the last may have fewer). Returns
 * AP_USAGE if pods do not hold whole servers. */
enum ap_status ap_topo_make_pods(struct ap_ctx *ctx, const struct ap_topo *t, int64_t per_pod,
	const struct ap_topo **out);

/* Links the places of each server (next); returns the lowest rank on each. */
const uint32_t *ap_topo_link(
	struct ap_ctx *ctx, struct ap_place *place, uint32_t ndev, uint32_t nserver);

/* Sets first and next of a tier from of. */
void ap_topo_link_tier(struct ap_ctx *ctx, struct ap_tier *tier, uint32_t nserver);

/* Index of each rank's device in its server, even if ids count over the job; if ids are unknown,
 * the position among the server's ranks. [ndev], in arena. */
uint32_t *ap_topo_local_ids(struct ap_arena *arena, const struct ap_topo *t);

/* Writes a rank table: version 1.2 if there are super pods, else 1.0, without unknown values. */
void ap_topo_write(const struct ap_topo *t, ap_write_fn *write, void *user);

/* What a topology was read from: "rank table", "hostfile". */
const char *ap_topo_what(const struct ap_topo *t);

/* Warns of contents of t's table that ap_topo_write() drops; doc NULL: it is of no table. Returns AP_MEANING
 * if it cannot be written. */
enum ap_status ap_topo_write_losses(
	struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_topo *t);

#endif
