/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/attr.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static const struct declared {
	const char *name;
	enum ap_attr_type type;
} declared[] = {
#define ATTR(name, type) {#name, AP_ATTR_##type},
#include "rule/attrs.def"
};

static const struct {
	const char *operators, *name;
	enum ap_attr_type type;
} others[] = {
#define ATTR_OF(operators, name, type) {operators, #name, AP_ATTR_##type},
#include "rule/attrs.def"
};

static const struct {
	const char *operators, *old, *now;
} aliases[] = {
#define ATTR_ALIAS(operators, old, now) {operators, #old, #now},
#include "rule/attrs.def"
};

static const struct {
	const char *operators, *name, *harmless, *reason;
} refused[] = {
#define ATTR_REFUSED(operators, name, harmless, reason) {operators, #name, harmless, reason},
#include "rule/attrs.def"
};

bool ap_attr_concerns(const char *operators, const char *op)
{
	size_t n = strlen(op);

	for (const char *p = operators; *p; p += strcspn(p, " "), p += *p == ' ')
		if (strcspn(p, " ") == n && memcmp(p, op, n) == 0)
			return true;
	return !*operators;
}

static const char *current_name(const char *op, const char *name)
{
	for (size_t i = 0; i < AP_COUNT(aliases); i++)
		if (strcmp(aliases[i].old, name) == 0 && ap_attr_concerns(aliases[i].operators, op))
			return aliases[i].now;
	return name;
}

static int compare(const void *name, const void *row)
{
	return strcmp(name, ((const struct declared *)row)->name);
}

const char *ap_attr_find(const char *op, const char *name, enum ap_attr_type *type)
{
	const struct declared *d = bsearch(current_name(op, name), declared, AP_COUNT(declared),
		sizeof *declared, compare);

	if (!d)
		return NULL;
	*type = d->type;
	for (size_t i = 0; i < AP_COUNT(others); i++)
		if (strcmp(others[i].name, d->name) == 0 && ap_attr_concerns(others[i].operators, op))
			*type = others[i].type;
	return d->name;
}

const char *ap_attr_at(size_t i)
{
	return i < AP_COUNT(declared) ? declared[i].name : NULL;
}

bool ap_attr_alias_at(size_t i, struct ap_attr_alias *alias)
{
	if (i >= AP_COUNT(aliases))
		return false;
	*alias = (struct ap_attr_alias){aliases[i].operators, aliases[i].old, aliases[i].now};
	return true;
}

bool ap_attr_refusal_at(size_t i, const char **operators, const char **name,
	struct ap_attr_refusal *refusal)
{
	if (i >= AP_COUNT(refused))
		return false;
	*operators = refused[i].operators;
	*name = refused[i].name;
	*refusal = (struct ap_attr_refusal){refused[i].harmless, refused[i].reason};
	return true;
}

static bool is_harmless(const struct ap_attr *a, const char *value)
{
	switch (a->type) {
	case AP_ATTR_STRING:
		return strcmp(a->s, value) == 0;
	case AP_ATTR_FLOAT:
		return a->f == strtod(value, NULL);
	case AP_ATTR_INT:
	case AP_ATTR_BOOL:
		return a->i == strtoll(value, NULL, 10);
	default:
		return false;
	}
}

bool ap_attr_refused(const char *op, const struct ap_attr *a, struct ap_attr_refusal *why)
{
	for (size_t i = 0; i < AP_COUNT(refused); i++) {
		if (strcmp(refused[i].name, a->name) != 0 || !ap_attr_concerns(refused[i].operators, op) ||
			is_harmless(a, refused[i].harmless))
			continue;
		*why = (struct ap_attr_refusal){refused[i].harmless, refused[i].reason};
		return true;
	}
	return false;
}

const struct ap_attr *ap_attr_get(const struct ap_attrs *a, const char *name)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i].name, name) == 0)
			return &a->v[i];
	return NULL;
}

static bool is_int(const struct ap_attr *a)
{
	return a->type == AP_ATTR_INT || a->type == AP_ATTR_BOOL;
}

int64_t ap_attr_int(const struct ap_attrs *a, const char *name, int64_t otherwise)
{
	const struct ap_attr *v = ap_attr_get(a, name);

	if (v && is_int(v))
		return v->i;
	return v && v->type == AP_ATTR_INTS && v->n == 1 ? v->list[0] : otherwise;
}

bool ap_attr_bool(const struct ap_attrs *a, const char *name, bool otherwise)
{
	const struct ap_attr *v = ap_attr_get(a, name);

	return v && is_int(v) ? v->i != 0 : otherwise;
}

const char *ap_attr_str(const struct ap_attrs *a, const char *name, const char *otherwise)
{
	const struct ap_attr *v = ap_attr_get(a, name);

	return v && v->type == AP_ATTR_STRING ? v->s : otherwise;
}
