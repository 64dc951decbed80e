/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/op.h"

#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))

static const struct ap_op_row rows[] = {
#define OP(name, rule, when, flops, backward, unit, save, grad, types, dev, left, reduce, legal, \
	strategy, doc, source) \
	{#name, rule, when, flops, backward, AP_OP_##unit, save, grad, types, dev, left, \
		AP_REDUCE_##reduce, legal, strategy, doc, source},
#include "rule/ops.def"
};

static const struct {
	const char *old, *now;
} aliases[] = {
#define ALIAS(old, now) {#old, #now},
#include "rule/ops.def"
};

static const struct {
	const char *name, *reason;
} unsupported[] = {
#define KNOWN(name, reason) {#name, reason},
#include "rule/ops.def"
};

static const char *const cross_batch[] = {
#define CROSS_BATCH(name) #name,
#include "rule/ops.def"
};

const struct ap_op_row *ap_op_at(size_t i)
{
	return i < AP_COUNT(rows) ? &rows[i] : NULL;
}

const struct ap_op_row *ap_op_next(const struct ap_op_row *after, const char *type)
{
	const struct ap_op_row *end = rows + AP_COUNT(rows);

	for (const struct ap_op_row *r = after ? after + 1 : rows; r < end; r++)
		if (*r->name == *type && strcmp(r->name, type) == 0)
			return r;
	return NULL;
}

const char *ap_op_family(const struct ap_op_row *row)
{
	static const struct {
		const char *name;
		size_t n; /* rows */
	} families[] = {
		{"", 0
#define OP(...) +1
#define FAMILY(name) }, {name, 0
#include "rule/ops.def"
		},
	};
	size_t left = (size_t)(row - rows), i = 0;

	for (; left >= families[i].n; i++)
		left -= families[i].n;
	return families[i].name;
}

static bool is_among(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

bool ap_op_is_view(const struct ap_op_row *row)
{
	return row->unit == AP_OP_VIEW;
}

bool ap_op_has_strategy(const struct ap_op_row *row)
{
	return strcmp(row->source, "reshape_info.cc") != 0 &&
		strcmp(row->source, "get_next_info.cc") != 0;
}

bool ap_op_follows(const struct ap_op_row *row)
{
	static const char *const names[] = {
#define FOLLOWS(name) #name,
#include "rule/ops.def"
	};

	return is_among(names, AP_COUNT(names), row->name);
}

bool ap_op_is_fallback(const struct ap_op_row *row)
{
	static const char *const names[] = {
#define FALLBACK(name) #name,
#include "rule/ops.def"
	};

	return is_among(names, AP_COUNT(names), row->name);
}

bool ap_op_is_batch_parallel(const struct ap_op_row *row)
{
	static const char *const names[] = {
#define BATCH_PARALLEL(name) #name,
#include "rule/ops.def"
	};

	return ap_op_is_fallback(row) || is_among(names, AP_COUNT(names), row->name);
}

const char *ap_op_unknown(const char *type)
{
	static const char *const names[] = {
#define NEVER_CUT(name) #name,
#include "rule/ops.def"
	};

	return is_among(names, AP_COUNT(names), type) ? AP_OP_UNCUT : AP_OP_UNKNOWN;
}

bool ap_op_takes_cross_batch(const struct ap_op_row *row)
{
	return is_among(cross_batch, AP_COUNT(cross_batch), row->name);
}

bool ap_op_is_product(const struct ap_op_row *row)
{
	return strchr(row->save, '*') != NULL;
}

bool ap_op_alias_at(size_t i, const char **old_name, const char **canonical)
{
	if (i >= AP_COUNT(aliases))
		return false;
	*old_name = aliases[i].old;
	*canonical = aliases[i].now;
	return true;
}

bool ap_op_unsupported_at(size_t i, const char **type, const char **reason)
{
	if (i >= AP_COUNT(unsupported))
		return false;
	*type = unsupported[i].name;
	*reason = unsupported[i].reason;
	return true;
}

const char *ap_op_unsupported(const char *type)
{
	for (size_t i = 0; i < AP_COUNT(unsupported); i++)
		if (strcmp(unsupported[i].name, type) == 0)
			return unsupported[i].reason;
	return NULL;
}

/* Copies in lower case, cut to size, so that names compare regardless of case. */
static void lower(const char *s, char *out, size_t size)
{
	size_t i = 0;

	for (; s[i] && i + 1 < size; i++)
		out[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] - 'A' + 'a' : s[i]);
	out[i] = '\0';
}

static void closer(const char *name, const char *type, int *best, const char **nearest)
{
	char a[64], b[64];
	int d;

	lower(name, a, sizeof a);
	lower(type, b, sizeof b);
	d = ap_str_distance(a, b, *best - 1);
	if (d < *best) {
		*best = d;
		*nearest = name;
	}
}

static const char *find_nearest(const char *type)
{
	const char *nearest = NULL;
	size_t len = strlen(type);
	int best = (int)MIN(len / 3, 3) + 1; /* a larger distance is no misspelling */

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (rows[i].unit != AP_OP_LINK)
			closer(rows[i].name, type, &best, &nearest);
	for (size_t i = 0; i < AP_COUNT(aliases); i++)
		closer(aliases[i].old, type, &best, &nearest);
	return nearest;
}

const char *ap_op_canonical(const char *type, const char **nearest)
{
	const struct ap_op_row *row = ap_op_next(NULL, type);

	if (row && !ap_op_unsupported(type))
		return row->name;
	for (size_t i = 0; i < AP_COUNT(aliases); i++)
		if (strcmp(aliases[i].old, type) == 0)
			return aliases[i].now;
	if (nearest)
		*nearest = find_nearest(type);
	return NULL;
}
