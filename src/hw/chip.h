/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: what a device can do (chips/NAME.json, "autopar-chip/1") and what the software on it
 * adds (chips/software/NAME.json, "autopar-software/1"). Both are built into the program, or read
 * from a file. Every number in them has its source beside it.
 */
#ifndef AP_HW_CHIP_H
#define AP_HW_CHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/dtype.h"
#include "base/json.h"

enum ap_unit { AP_UNIT_CUBE, AP_UNIT_VECTOR, AP_UNIT_MEMORY, AP_UNIT_COUNT };

enum ap_link { /* how ranks at one level share bandwidth */
	AP_LINK_SWITCH, /* each rank has bandwidth_Bps whatever the group */
	AP_LINK_MESH, /* links of bandwidth_Bps each: a group of g ranks uses g - 1 of them, or as many
	                 as the profile says */
	AP_LINK_BUS, /* the block's ranks share bandwidth_Bps */
	AP_LINK_NIC /* one network card of bandwidth_Bps per rank; g ranks of a server in a group
	               drive g cards, concurrent groups share them */
};

enum ap_within { /* what a block of a level stays inside of */
	AP_WITHIN_SERVER,
	AP_WITHIN_POD, /* a super pod; the server where there is none */
	AP_WITHIN_CLUSTER, /* a site; the machine where there is only one */
	AP_WITHIN_MACHINE
};

#define AP_MAX_LEVELS 7 /* six of a profile, and one between clusters */

struct ap_link_level {
	const char *name; /* "hccs", "pcie", "roce", "nvlink", ... */
	enum ap_link kind;
	enum ap_within within;
	uint32_t span; /* devices of a server that one block holds; 0: all of what it is within */
	const double *links; /* mesh: those that a group of 2, 3, ... ranks uses; NULL: g - 1 */
	int nlinks; /* a larger group uses as many as the last */
	double bandwidth_Bps; /* per direction, see kind */
	double latency_s; /* per step between neighbours */
	double efficiency; /* reachable part of the bandwidth, (0, 1] */
};

struct ap_chip {
	const char *name;
	const char *file; /* base name of the file, or "NAME.json" for a built-in one */
	const char *sha256; /* of the profile's text */
	double peak_flops[AP_UNIT_COUNT][AP_DTYPE_COUNT]; /* FLOP/s dense; 0: unit lacks the type */
	double fixed_s[AP_UNIT_COUNT]; /* launch and drain of one kernel */
	double matmul_efficiency; /* of the peak, for large shapes */
	double matmul_half[3]; /* extents m, n, k at which that dimension alone halves it */
	double vector_efficiency;
	double memory_Bps, memory_efficiency;
	int64_t memory_bytes; /* of the device */
	int64_t usable_bytes; /* for a job */
	double collective_fixed_s; /* start of any collective call */
	int nlevel; /* inner to outer; the last spans the machine */
	struct ap_link_level level[AP_MAX_LEVELS];
	int64_t server_devices; /* of a server, where no rank table says */
	int64_t pod_devices; /* of a super pod, likewise; 0: there are none */
	const char *hccl; /* family whose rules of HCCL hold, see ap_hccl_check(); "" none */
	int nalias;
	const char *const *alias; /* further names, rank-table chip_info values included; lower case */
};

struct ap_software { /* how frameworks behave, apart from the machine */
	const char *name;
	const char *file, *sha256;
	double gradient_exposed; /* part of the gradient exchange that outlasts the backward pass beside it */
	double overlap_slowdown; /* >= 1: compute time factor while a collective runs beside it */
	int master_bytes; /* per element of a 16-bit trainable parameter: full-precision copy */
	int gradient_bytes; /* per element of a 16-bit parameter's gradient buffer */
	int gradient_copy_bytes; /* per element of a 16-bit gradient: the optimizer's full-precision copy */
	int64_t context_bytes; /* runtime, library workspaces */
	int64_t comm_buffer_bytes; /* collective library buffers */
};

/* The built-in profile of that name or alias, in capitals or not, or, where name ends in ".json", the
 * file. Unknown: AP_USAGE with the list of names and the nearest one. */
enum ap_status ap_chip_get(struct ap_ctx *ctx, const char *name, const struct ap_chip **out);
enum ap_status ap_software_get(struct ap_ctx *ctx, const char *name,
	const struct ap_software **out);

/* The built-in profile whose aliases hold this rank-table chip_info ("910"); NULL when none. */
enum ap_status ap_chip_by_info(struct ap_ctx *ctx, const char *chip_info,
	const struct ap_chip **out);

/* Parses a profile from a document: every number checked for its range, located messages. */
enum ap_status ap_chip_parse(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_chip *out);
enum ap_status ap_software_parse(struct ap_ctx *ctx, const struct ap_json *doc,
	struct ap_software *out);

/* Name and JSON text of built-in chip i, NULL past the end. */
const char *ap_chip_at(size_t i, const char **text);

#endif
