/* SPDX-License-Identifier: Apache-2.0 */
/* One server as its own tools describe it: how its devices are joined, its network cards, and which chip its
 * devices are. A chip joined as a server says has the server's links as its levels. */
#ifndef AP_HW_SERVER_H
#define AP_HW_SERVER_H

#include "hw/chip.h"

enum { AP_MOST_SERVER_DEVICES = 256 };

enum ap_near { /* how two devices of a server reach each other, nearest first */
	AP_NEAR_LINK, /* links of their own: NVLink, xGMI, HCCS */
	AP_NEAR_SWITCH, /* PCIe switches: PIX and PXB of nvidia-smi */
	AP_NEAR_HOST, /* PCIe of one processor: PHB, NODE */
	AP_NEAR_SYSTEM, /* links between processors: SYS */
	AP_NEAR_COUNT
};

struct ap_server {
	const char *name; /* base name of the file */
	const char *form; /* what made it: "NCCL XML", "nvidia-smi topo -m", "npu-smi info -t topo" */
	uint32_t ndev; /* devices 0..ndev-1; 1 to AP_MOST_SERVER_DEVICES */
	const char *chip; /* profile of its devices; "": the file does not say which */
	int generation; /* of device.def; 0: the file does not say */
	const uint8_t *near; /* [ndev][ndev] enum ap_near, symmetric */
	const uint16_t *links; /* [ndev][ndev] links of their own between two devices, symmetric; 0: none */
	const char *direct; /* these: "nvlink", "xgmi", "hccs"; NULL: the file does not say of any */
	uint32_t switch_links; /* links of each device to switches that join all; 0: there are none */
	double pcie_Bps; /* of a device's slot, per direction; 0: the file does not say */
	double processor_Bps; /* from one processor to the others, as NCCL counts on it */
	uint32_t ncard; /* network cards that devices use; 0: the file does not say */
	double cards_Bps; /* of all these cards together, per direction; 0: the file does not say */
};

/* The profile of the server's devices, or that which their generation stands for, of which a note says what
 * else they may be; "" if the file says neither. */
enum ap_status ap_server_profile(struct ap_ctx *ctx, const struct ap_server *server, const char **out);

/*
 * The chip with the server's links: levels inside servers as they lie in the file, those of pods and
 * clusters as the profile has them, and of the network a device's share of the server's cards. Efficiencies
 * and latencies are the profile's where it has such a link; of rates that the file does not give likewise,
 * else NCCL's constants. Every number changed has the file as its source. Warns where the profile is of
 * another chip than the file, and of links that no block of consecutive devices shares. AP_MEANING if the
 * file has links that the chip cannot have. O(ndev^3).
 */
enum ap_status ap_server_chip(struct ap_ctx *ctx, const struct ap_server *server, const struct ap_chip *chip,
	const struct ap_chip **out);

#endif
