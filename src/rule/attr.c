/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/rule.h"

#include <string.h>

static const struct {
	const char *name;
	enum ap_attr_type type;
} known[] = {
#define ATTR(name, type) {#name, AP_ATTR_##type},
#include "rule/attrs.def"
#undef ATTR
};

bool ap_attr_known(const char *name, enum ap_attr_type *type)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(known[i].name, name) == 0) {
			*type = known[i].type;
			return true;
		}
	}
	return false;
}

const char *ap_attr_at(size_t i)
{
	return i < sizeof known / sizeof *known ? known[i].name : NULL;
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
