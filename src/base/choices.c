/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

struct numbers {
	int64_t *v;
	size_t n, cap;
};

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

size_t ap_choices_sort(int64_t *v, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(v, n, sizeof *v, compare);
	for (size_t i = 0; i < n; i++)
		if (!i || v[i] != v[kept - 1])
			v[kept++] = v[i];
	return kept;
}

/* The value of a range that follows v; false if there is none up to end. */
static bool follow(enum ap_range range, int64_t end, int64_t *v)
{
	if (range == AP_RANGE_EVERY ? *v >= end : *v > end / 2)
		return false;
	*v = range == AP_RANGE_EVERY ? *v + 1 : *v * 2;
	return true;
}

static bool add(struct ap_arena *arena, struct numbers *all, int64_t from, int64_t to, enum ap_range range,
	const char **why)
{
	int64_t v = from;

	do {
		if (all->n == AP_CHOICES_MOST) {
			*why = ap_arena_printf(arena, "these are more than %d values", AP_CHOICES_MOST);
			return false;
		}
		AP_PUSH(arena, *all, v);
	} while (v != to && follow(range, to, &v));
	return true;
}

static bool add_item(struct ap_arena *arena, char *item, int64_t least, int64_t most, enum ap_range range,
	struct numbers *all, const char **why)
{
	char *dots = range == AP_RANGE_NONE ? NULL : strstr(item, "..");
	int64_t from, to;

	if (dots)
		*dots = '\0';
	if (!ap_parse_int(item, least, most, &from))
		return false;
	if (!dots)
		return add(arena, all, from, from, range, why);
	if (!ap_parse_int(dots + 2, least, most, &to))
		return false;
	if (to < from)
		*why = ap_arena_printf(arena, "%" PRId64 "..%" PRId64 " goes down", from, to);
	else if (range == AP_RANGE_DOUBLINGS && from < 1)
		*why = ap_arena_printf(arena, "%" PRId64 " cannot be doubled up to %" PRId64, from, to);
	else
		return add(arena, all, from, to, range, why);
	return false;
}

bool ap_choices_read(struct ap_arena *arena, const char *text, int64_t least, int64_t most,
	enum ap_range range, struct ap_choices *out, const char **why)
{
	char *item = ap_arena_strdup(arena, text);
	struct numbers all = {0};
	bool more;

	*why = NULL;
	*out = (struct ap_choices){.any = !strcmp(text, "auto")};
	if (out->any)
		return true;
	do {
		char *end = item + strcspn(item, ",");

		more = *end;
		*end = '\0';
		if (!add_item(arena, item, least, most, range, &all, why))
			return false;
		item = end + 1;
	} while (more);
	out->n = ap_choices_sort(all.v, all.n);
	out->v = all.v;
	return true;
}

const char *ap_choices_text(struct ap_arena *arena, const struct ap_choices *c, enum ap_range range)
{
	struct ap_str s;

	if (c->any)
		return "auto";
	ap_str_init(&s, arena);
	for (size_t i = 0; i < c->n; i++) {
		int64_t v = c->v[i];
		size_t last = i;

		while (range != AP_RANGE_NONE && v > 0 && last + 1 < c->n &&
			follow(range, c->v[last + 1], &v) && v == c->v[last + 1])
			last++;
		ap_str_addf(&s, "%s%" PRId64, i ? "," : "", c->v[i]);
		if (last < i + 2) /* two are no range yet */
			continue;
		ap_str_addf(&s, "..%" PRId64, c->v[last]);
		i = last;
	}
	return s.s;
}

bool ap_choices_has(const struct ap_choices *c, int64_t value)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i] == value)
			return true;
	return c->any;
}
