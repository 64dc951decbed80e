/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and network cards as the tools of a server name them: rows of device.def. */
#ifndef AP_HW_DEVICE_H
#define AP_HW_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ap_device {
	uint16_t vendor, id; /* of PCI; id 0: none is known */
	int generation; /* 0: none */
	const char *name; /* as nvidia-smi and npu-smi print it */
	const char *profile; /* of chips/ */
};

struct ap_generation {
	int id; /* NVIDIA's compute capability, AMD's gfx number */
	const char *links; /* kind of links between its devices: "nvlink", "xgmi" */
	double link_Bps; /* of one link, per direction */
	double share; /* of it that NCCL counts on */
	uint32_t most_links; /* of a device */
	const char *profile; /* that the generation alone stands for; NULL: none */
};

/* Rows by index; NULL past the end. */
const struct ap_device *ap_device_at(size_t i);
const struct ap_generation *ap_generation_at(size_t i);

/* Each NULL if there is no such row. */
const struct ap_device *ap_device_by_id(unsigned long vendor, unsigned long id);
const struct ap_device *ap_device_of_profile(const char *profile); /* the first */
const struct ap_generation *ap_generation_of(int id);

/* The device with the longest name that stands as a word in the text. O(rows len). */
const struct ap_device *ap_device_in_text(const char *text, size_t len);

/* Bytes per second of a network card's port, per direction; 0 if there is no such row. */
double ap_card_Bps(unsigned long vendor, unsigned long id);

#endif
