/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables: which ranks there are, and on which server and device each lives. */
#ifndef AP_HW_TOPO_H
#define AP_HW_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/json.h"
#include "base/json_write.h"

#define AP_MAX_DEVICES (1 << 20)
#define AP_MINDSPORE_DEVICES 4096 /* the most that MindSpore itself runs */
#define AP_LAST_DEVICE_ID 15 /* in a server, as HCCL counts */

struct ap_place { /* of one rank */
	uint32_t server; /* index, in order of the lowest rank on it */
	int32_t device_id; /* as written; -1 unknown */
	int64_t super_device_id; /* in its super pod; -1 where there are none */
	const char *device_ip; /* as written, may be "" */
	uint32_t next; /* the next rank on the same server; AP_NONE after the last */
};

/* Sets of servers: super pods, or clusters. A server is in one, and each holds some. */
struct ap_tier {
	uint32_t n; /* 0: the machine has none */
	const char *const *id; /* [n], in order of the lowest rank in each */
	const uint32_t *of; /* [nserver] index */
	const uint32_t *first; /* [n] first server of each */
	const uint32_t *next; /* [nserver] the next server of the same; AP_NONE after the last */
};

struct ap_topo {
	const char *name; /* base name of the rank table, or "" */
	const char *sha256; /* of its text, or "" */
	const char *form; /* "lab", "1.0", "given" (--device-num) */
	const char *chip_info; /* "" when the table has none */
	uint32_t ndev; /* ranks 0..ndev-1 */
	uint32_t nserver;
	const char *const *server; /* [nserver] ids */
	const uint32_t *first; /* [nserver] lowest rank on each */
	const struct ap_place *place; /* [ndev] by rank */
	struct ap_tier pod; /* super pods: servers joined by more than the network */
	struct ap_tier cluster; /* sites of a job over several; a super pod lies in one */
	bool job_wide_ids; /* device_id counts over the whole job, not in the server */
};

/* ndev ranks on servers of per_server each (the last may hold fewer). 1 <= ndev <= AP_MAX_DEVICES;
 * AP_USAGE outside. */
enum ap_status ap_topo_make(struct ap_ctx *ctx, int64_t ndev, int64_t per_server,
	const struct ap_topo **out);

/* The same servers, joined to super pods of per_pod devices each (the last may hold fewer); AP_USAGE
 * where servers do not fit in evenly. */
enum ap_status ap_topo_make_pods(struct ap_ctx *ctx, const struct ap_topo *t, int64_t per_pod,
	const struct ap_topo **out);

/* Links the places of each server (next), and returns the lowest rank on each. */
const uint32_t *ap_topo_link(
	struct ap_ctx *ctx, struct ap_place *place, uint32_t ndev, uint32_t nserver);

/* Makes first and next of a tier from of. */
void ap_topo_link_tier(struct ap_ctx *ctx, struct ap_tier *tier, uint32_t nserver);

/* Number of a rank's device in its server from 0, also where ids count over the whole job; the
 * place among the server's ranks where ids are unknown. [ndev], in arena. */
uint32_t *ap_topo_local_ids(struct ap_arena *arena, const struct ap_topo *t);

/* Writes the table in the form that it needs: 1.2 where there are super pods, else 1.0. What is
 * "" or unknown is left out. */
void ap_topo_write(const struct ap_topo *t, ap_write_fn *write, void *user);

/* Warns of what ap_topo_write() cannot keep of the table that t was loaded from. */
enum ap_status ap_topo_write_losses(
	struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_topo *t);

#endif
