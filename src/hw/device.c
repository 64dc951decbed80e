/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/device.h"

#include <string.h>

#include "base/vec.h"

static const struct ap_device devices[] = {
#define DEVICE(vendor, id, generation, name, profile) {vendor, id, generation, name, profile},
#define GENERATION(id, links, Bps, share, most, profile)
#define CARD(vendor, id, bits)
#include "hw/device.def"
#undef DEVICE
#undef GENERATION
#undef CARD
};

static const struct ap_generation generations[] = {
#define DEVICE(vendor, id, generation, name, profile)
#define GENERATION(id, links, Bps, share, most, profile) {id, links, Bps, share, most, profile},
#define CARD(vendor, id, bits)
#include "hw/device.def"
#undef DEVICE
#undef GENERATION
#undef CARD
};

static const struct {
	uint16_t vendor, id;
	double bits;
} cards[] = {
#define DEVICE(vendor, id, generation, name, profile)
#define GENERATION(id, links, Bps, share, most, profile)
#define CARD(vendor, id, bits) {vendor, id, bits},
#include "hw/device.def"
#undef DEVICE
#undef GENERATION
#undef CARD
};

const struct ap_device *ap_device_at(size_t i)
{
	return i < AP_COUNT(devices) ? &devices[i] : NULL;
}

const struct ap_generation *ap_generation_at(size_t i)
{
	return i < AP_COUNT(generations) ? &generations[i] : NULL;
}

const struct ap_device *ap_device_by_id(unsigned long vendor, unsigned long id)
{
	for (size_t i = 0; i < AP_COUNT(devices); i++)
		if (id && devices[i].vendor == vendor && devices[i].id == id)
			return &devices[i];
	return NULL;
}

const struct ap_device *ap_device_of_profile(const char *profile)
{
	for (size_t i = 0; i < AP_COUNT(devices); i++)
		if (!strcmp(devices[i].profile, profile))
			return &devices[i];
	return NULL;
}

const struct ap_generation *ap_generation_of(int id)
{
	for (size_t i = 0; i < AP_COUNT(generations); i++)
		if (generations[i].id == id)
			return &generations[i];
	return NULL;
}

static bool is_part_of_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool has_word(const char *text, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= len; i++)
		if (!memcmp(text + i, word, n) && (!i || !is_part_of_word(text[i - 1])) &&
			(i + n == len || !is_part_of_word(text[i + n])))
			return true;
	return false;
}

const struct ap_device *ap_device_in_text(const char *text, size_t len)
{
	const struct ap_device *best = NULL;

	for (size_t i = 0; i < AP_COUNT(devices); i++)
		if ((!best || strlen(devices[i].name) > strlen(best->name)) && has_word(text, len,
			devices[i].name))
			best = &devices[i];
	return best;
}

double ap_card_Bps(unsigned long vendor, unsigned long id)
{
	for (size_t i = 0; i < AP_COUNT(cards); i++)
		if (cards[i].vendor == vendor && cards[i].id == id)
			return cards[i].bits / 8;
	return 0;
}
