/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables: which ranks there are, and on which server and device each lives. */
#ifndef AP_HW_TOPO_H
#define AP_HW_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/json.h"

#define AP_MAX_DEVICES (1 << 20)

struct ap_place { /* of one rank */
	uint32_t server; /* index, in order of the lowest rank on it */
	int32_t device_id; /* physical id in the server; -1 unknown */
	const char *device_ip; /* as written, may be "" */
	uint32_t next; /* the next rank on the same server; AP_NONE after the last */
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
};

/* Reads any known form (a row {name, recognise, parse} each); the order of entries never matters.
 * Located messages for everything that is wrong (reliability.md section 2 D). An unknown form says
 * which are known; an operator graph given by mistake is recognised and named. */
enum ap_status ap_topo_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_topo **out);

/* ndev ranks on servers of per_server each (the last may hold fewer). 1 <= ndev <= AP_MAX_DEVICES;
 * AP_USAGE outside. */
enum ap_status ap_topo_make(struct ap_ctx *ctx, int64_t ndev, int64_t per_server,
	const struct ap_topo **out);

/* Writes the table in form 1.0 (device_ip "" is left out). For `convert`. */
void ap_topo_write(const struct ap_topo *t, ap_write_fn *write, void *user);

/* The HCCL rules of an Ascend 910 (formats 2.7): 1, 2, 4, 8 cards on one server, 8 n over n servers,
 * ids 0..7, 2-card pairs inside 0-3 or 4-7, the eight legal sets of 4. as_warning: `--no-hccl-rules`. */
enum ap_status ap_topo_check_910(struct ap_ctx *ctx, const struct ap_topo *t, bool as_warning);

#endif
