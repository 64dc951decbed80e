/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a profile by name: what reads and writes profiles, lists them and fits them works from one
 * table of each (hw/chip.def, hw/software.def; peaks, kernels of attention and levels are as a chip has
 * them). */
#ifndef AP_HW_CONSTANT_H
#define AP_HW_CONSTANT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ctx.h"
#include "base/json.h"
#include "hw/chip.h"

enum ap_constant_type { AP_CONSTANT_REAL, AP_CONSTANT_INT, AP_CONSTANT_INT64 };

enum ap_constant_more { /* what a larger value makes of any plan */
	AP_CONSTANT_EITHER, /* it depends on the plan */
	AP_CONSTANT_FASTER, /* nothing of it takes longer, and it fits if it did */
	AP_CONSTANT_SLOWER /* nothing of it takes less, and it fits only if it did */
};

struct ap_constant {
	const char *path; /* "launch_s", "efficiency.matmul", "levels.nvlink.latency_s" */
	const char *unit; /* "s", "B/s", "share" of a whole, "times" as long, ... */
	double least, most; /* range that a profile may state */
	double otherwise; /* what holds where a profile does not state it; NAN: it has to */
	double from, to; /* where a fit looks for it, from > 0; 0, 0: it is never fitted */
	enum ap_constant_type type;
	enum ap_constant_more more;
	void *at; /* the field */
};

/* All numbers of a profile in the order in which profiles are written, in arena; they are fields of *chip, a
 * copy of which (by assignment) can be changed without changing the profile. O(their number). */
size_t ap_chip_constants(struct ap_arena *arena, struct ap_chip *chip, struct ap_constant **out);
size_t ap_software_constants(struct ap_arena *arena, struct ap_software *software, struct ap_constant **out);

/* The constant of a path; NULL: there is none. O(n). */
const struct ap_constant *ap_constant_find(const struct ap_constant *list, size_t n, const char *path);

double ap_constant_get(const struct ap_constant *c);

/* Sets the field; numbers that are whole are rounded. The value is within the range of what may be stated. */
void ap_constant_set(const struct ap_constant *c, double value);

/* The text that says where a number is from, of its path or of the object that it lies in: of
 * "attention.npu.forward", "attention.npu", "attention". NULL: no text. O(sources). */
const char *ap_source_of(struct ap_profile_sources sources, const char *path);

/* The same sources but for the text of one path, which is replaced or added at the end. In arena. */
struct ap_profile_sources ap_sources_with(struct ap_arena *arena, struct ap_profile_sources sources,
	const char *path, const char *text);

/* What a number stands on, by the beginning of its text. */
enum ap_basis {
	AP_BASIS_NONE, /* there is no text */
	AP_BASIS_PUBLISHED, /* stated by the source that is named, or taken from kernels measured there */
	AP_BASIS_FITTED, /* "fitted to ... runs": chosen for the least error of predictions of whole steps */
	AP_BASIS_ASSUMED /* "assumed: ...", "inferred: ...": for a reason, without a measurement */
};
enum ap_basis ap_basis_of(const char *text); /* text may be NULL */
const char *ap_basis_name(enum ap_basis basis); /* "published", ... */

/* The tables: numbers of a chip or a software profile, of each level, of the rates of each kernel. */
enum ap_numbers { AP_NUMBERS_CHIP, AP_NUMBERS_SOFTWARE, AP_NUMBERS_LEVEL, AP_NUMBERS_RATE };

/* Reads the numbers of an object, key by key, into fields of *out: struct ap_chip, ap_software, ap_link_level
 * or ap_attention_rate. Those that are not stated become what holds otherwise. object: the object's key in
 * its profile; NULL: the profile itself, or it is an element. Returns AP_MEANING after a message about one
 * that is missing or out of range. */
enum ap_status ap_numbers_read(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	enum ap_numbers of, const char *object, void *out);

/* Warns of keys that are neither numbers of the object nor among others (NULL-terminated; NULL: none).
 * Returns as ap_json_known() does. */
enum ap_status ap_numbers_known(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	enum ap_numbers of, const char *object, const char *const *others);

#endif
