/* SPDX-License-Identifier: Apache-2.0 */
/* Several integers in place of one, to decide among: "4", "1,2,4..16", "auto". */
#ifndef AP_BASE_CHOICES_H
#define AP_BASE_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ap_arena;

enum { AP_CHOICES_MOST = 4096 }; /* values of a text */

enum ap_range { /* what a..b stands for */
	AP_RANGE_NONE, /* there are no ranges */
	AP_RANGE_EVERY, /* every integer from a to b */
	AP_RANGE_DOUBLINGS /* a, and its doublings up to b; a is above 0 */
};

struct ap_choices {
	bool any; /* auto: whatever there is; n is 0 */
	size_t n;
	const int64_t *v; /* ascending, each once */
	const char *const *word; /* what they stand for, where that is text; else NULL */
};

/* Reads integers from least to most, and ranges of them, in any order, or "auto"; blanks are refused.
 * Returns false if text is none of these; *why: a reason ("16..4 goes down"), or NULL. */
bool ap_choices_read(struct ap_arena *arena, const char *text, int64_t least, int64_t most,
	enum ap_range range, struct ap_choices *out, const char **why);

/* Sorts values and drops those that are there twice; returns how many are left. */
size_t ap_choices_sort(int64_t *v, size_t n);

/* The shortest text that reads back as the same: "1,2,4..16". */
const char *ap_choices_text(struct ap_arena *arena, const struct ap_choices *c, enum ap_range range);

/* Is value among them? */
bool ap_choices_has(const struct ap_choices *c, int64_t value);

#endif
